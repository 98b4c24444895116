"""What may be a name: DNS labels and subdomains, label keys and values, and names made out of others.

Validators return problem sentences, empty when all is well, so that a caller can put them behind any field
path. They use the sentences that Kubernetes answers with: users search for those. Names are *made* from their
inputs alone; this module must not know a source of randomness, nor which kinds use which rule.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

LABEL_MAX: Final = 63
SUBDOMAIN_MAX: Final = 253
_LONGEST_SEARCHED: Final = 4096

# Neither vowels nor the digits that look like them: no hash may spell a word.
_ALPHABET: Final = "bcdfghjklmnpqrstvwxz2456789"
_GENERATED_LENGTH: Final = 5
_HASH_LENGTH: Final = 8


@dataclass(frozen=True, slots=True)
class _Rule:
    """A pattern, the sentence that explains it, and names that follow it."""

    sentence: str
    pattern: re.Pattern[str]
    examples: tuple[str, ...]

    def allows(self, value: str) -> bool:
        # No name is as long; the time of the search grows with the length, and nothing interrupts it.
        return len(value) <= _LONGEST_SEARCHED and self.pattern.fullmatch(value) is not None

    def __str__(self) -> str:
        examples = " or ".join(f"'{example}', " for example in self.examples)
        return f"{self.sentence} (e.g. {examples}regex used for validation is '{self.pattern.pattern}')"


_LABEL_PATTERN: Final = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_NAME_CHARACTERS: Final = (
    "consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character"
)

_DNS_LABEL: Final = _Rule(
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', "
    "and must start and end with an alphanumeric character",
    re.compile(_LABEL_PATTERN),
    ("my-name", "123-abc"),
)
_DNS_SUBDOMAIN: Final = _Rule(
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', "
    "and must start and end with an alphanumeric character",
    re.compile(rf"{_LABEL_PATTERN}(\.{_LABEL_PATTERN})*"),
    ("example.com",),
)
_DNS_1035_LABEL: Final = _Rule(
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', "
    "start with an alphabetic character, and end with an alphanumeric character",
    re.compile("[a-z]([-a-z0-9]*[a-z0-9])?"),
    ("my-name", "abc-123"),
)
_QUALIFIED_NAME: Final = _Rule(
    f"must {_NAME_CHARACTERS}",
    re.compile("([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"),
    ("MyName", "my.name", "123-abc"),
)
_LABEL_VALUE: Final = _Rule(
    f"a valid label must be an empty string or {_NAME_CHARACTERS}",
    re.compile("(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?"),
    ("MyValue", "my_value", "12345"),
)


def dns_label(value: str) -> list[str]:
    """Problems of a DNS-1123 label, such as a namespace or a container name."""
    problems = _too_long(value, LABEL_MAX)
    if not _DNS_LABEL.allows(value):
        problems.append("must not contain dots" if _DNS_SUBDOMAIN.allows(value) else str(_DNS_LABEL))
    return problems


def dns_subdomain(value: str) -> list[str]:
    """Problems of a DNS-1123 subdomain, which is what most objects are named by."""
    return _too_long(value, SUBDOMAIN_MAX) + _broken(value, _DNS_SUBDOMAIN)


def dns_1035_label(value: str) -> list[str]:
    """Problems of a DNS-1035 label, such as a Service's name."""
    return _too_long(value, LABEL_MAX) + _broken(value, _DNS_1035_LABEL)


def label_key(value: str) -> list[str]:
    """Problems of a qualified name: a name of up to 63 characters after an optional DNS subdomain and ``/``."""
    prefix, slash, name = value.rpartition("/")
    if "/" in prefix:
        optional = "with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
        return [f"a qualified name {_QUALIFIED_NAME} {optional}"]
    problems = []
    if slash:
        problems += [f"prefix part {problem}" for problem in _not_empty(prefix) or dns_subdomain(prefix)]
    name_problems = _not_empty(name) + _too_long(name, LABEL_MAX) + _broken(name, _QUALIFIED_NAME)
    return problems + [f"name part {problem}" for problem in name_problems]


def annotation_key(value: str) -> list[str]:
    """Problems of an annotation's key: as a label's, but the prefix may be in upper case."""
    return label_key(value.lower())


_VALID_LABEL_KEY: Final = re.compile(
    rf"((?=[^/]{{1,{SUBDOMAIN_MAX}}}/){_DNS_SUBDOMAIN.pattern.pattern}/)?"
    rf"[A-Za-z0-9]([-A-Za-z0-9_.]{{,{LABEL_MAX - 2}}}[A-Za-z0-9])?"
)
_VALID_LABEL_VALUE: Final = re.compile(rf"([A-Za-z0-9]([-A-Za-z0-9_.]{{,{LABEL_MAX - 2}}}[A-Za-z0-9])?)?")


def are_labels(labels: Mapping[str, str]) -> bool:
    """Whether no key and no value has a problem, at the cost of two matches a label."""
    keys, values = map(_VALID_LABEL_KEY.fullmatch, labels), map(_VALID_LABEL_VALUE.fullmatch, labels.values())
    return all(keys) and all(values)


def label_value(value: str) -> list[str]:
    """Problems of a label's value, which may be empty."""
    return _too_long(value, LABEL_MAX) + _broken(value, _LABEL_VALUE)


def path_segment(value: str) -> list[str]:
    """Problems of a name that need only fit into a URL path, such as a Role's."""
    if value in (".", ".."):
        return [f"may not be '{value}'"]
    return [f"may not contain '{character}'" for character in "/%" if character in value]


def hash_suffix(data: str, length: int = _HASH_LENGTH) -> str:
    """A short lower-case text that stands for `data`: equal data, equal suffix, on every machine and for ever."""
    number = int.from_bytes(hashlib.sha256(data.encode()).digest(), "big")
    characters = []
    for _ in range(length):
        number, index = divmod(number, len(_ALPHABET))
        characters.append(_ALPHABET[index])
    return "".join(characters)


def make_name(prefix: str, suffix: str, *, max: int = LABEL_MAX) -> str:
    """``prefix-suffix``, or, where that is too long, as much of it as fits and a hash of the whole.

    The suffix is kept before the prefix, since it is what tells siblings apart to a reader; the hash tells apart
    the names whose beginnings agree.
    """
    name = f"{prefix.rstrip('-')}-{suffix}"
    if len(name) <= max:
        return name
    tail = f"-{hash_suffix(name)}"
    kept = f"-{suffix}"
    if len(kept) + len(tail) >= max:
        return name[: max - len(tail)].rstrip("-.") + tail
    return prefix[: max - len(kept) - len(tail)].rstrip("-.") + kept + tail


def generate_name(base: str, seed: str) -> str:
    """The name that a server gives for ``generateName: base``: five characters from `seed` after the base.

    The server passes fresh randomness as `seed`; a base that leaves no room loses its end.
    """
    return base[: LABEL_MAX - _GENERATED_LENGTH] + hash_suffix(seed, _GENERATED_LENGTH)


def _too_long(value: str, limit: int) -> list[str]:
    return [f"must be no more than {limit} characters"] if len(value) > limit else []


def _not_empty(value: str) -> list[str]:
    return [] if value else ["must be non-empty"]


def _broken(value: str, rule: _Rule) -> list[str]:
    return [] if rule.allows(value) else [str(rule)]
