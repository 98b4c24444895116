"""Canonical hashing: one short name for "the same desired state", however it was written down.

A rollout starts when a hash changes, so a hash must move when the meaning moves and at no other time. Two values
hash alike when they differ only in:

- the order of object keys;
- empty fields: members that are None, "", [] or {}, also those that become empty this way. `false` and `0` are
  answers, not omissions, and count. Items of a list are never dropped: their place has a meaning;
- the order of a list keyed by name: every item is an object with a non-empty string `name`, and no two share one;
- the spelling of a number: 1 and 1.0 are one JSON number. `true` is not 1, and "1" is not 1.

In maps of strings (labels, annotations, a nodeSelector) "" is a value: `gpu: ""` selects other nodes than no `gpu`.
Version 1 dropped it. A value with such a member is hashed by version 2, every other one still by version 1.

Two named lists keep their order, because Kubernetes reads it: `initContainers` run one after the other, and an `env`
in which some value holds a `$(REFERENCE)` sees only the variables above it.

A hash carries the version of its algorithm: `v1-…` in the long form, the first letter in the short one. The algorithm
of a version is frozen for ever and pinned by golden tests, and `verify` recomputes an old hash with the version that
made it; so an upgrade of this library never rolls a fleet.

This module knows JSON and these few field names. It must not know kinds, revisions or where a hash is kept.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from hashlib import blake2b
from math import isfinite
from operator import itemgetter
from typing import Any, Final

import msgspec

__all__ = ["HashError", "MalformedHash", "NotJSON", "UnknownHashVersion", "canonical_hash", "short_hash", "verify"]

# HashError
#  ├─ NotJSON             the value holds something that JSON cannot say
#  ├─ MalformedHash       the text is no hash of ours
#  └─ UnknownHashVersion  the hash is ours, and from a newer release


class HashError(ValueError):
    """A hash cannot be computed or compared."""


class NotJSON(HashError):
    """The value, or something in it, is not a JSON value."""


class MalformedHash(HashError):
    """The text was not made by `canonical_hash` or `short_hash`."""


class UnknownHashVersion(HashError):
    """The hash was made by an algorithm that this release does not have; treat the value as unchanged."""


_LONG_LENGTHS: Final = range(8, 61)  # "v1-" and 60 digits fill the 63 characters of a label value
_SHORT_LENGTHS: Final = range(6, 25)  # 23 digits of 27 letters use up 109 of the digest's 256 bits

# No vowels and no 0, 1, 3: a suffix never spells a word and is never misread.
_SAFE_ALPHABET: Final = "bcdfghjklmnpqrstvwxz2456789"


def canonical_hash(value: Any, *, length: int = 32) -> str:
    """Hash a JSON-like value to `v1-` and `length` hex digits; fits a label value and ends a DNS label.

    >>> canonical_hash({"b": 0, "a": None}) == canonical_hash({"b": 0.0})
    True
    """
    _check_length(length, _LONG_LENGTHS)
    return _long(_version(value), value, length)


def short_hash(value: Any, *, length: int = 10) -> str:
    """Hash a JSON-like value to `length` letters for names of pods and revisions; the first letter is the version."""
    _check_length(length, _SHORT_LENGTHS)
    return _short(_version(value), value, length)


def verify(value: Any, old_hash: str) -> bool:
    """Say whether `old_hash`, of either form and any known version, is a hash of `value`.

    A hash of version 1 is none of a value that needs version 2: it does not tell it from one without its empty members.
    """
    version, dash, digits = old_hash.partition("-")
    if dash and version[:1] == "v" and version[1:].isdecimal() and len(digits) in _LONG_LENGTHS:
        number = _known(int(version[1:]), old_hash)
        return number >= _version(value) and _long(number, value, len(digits)) == old_hash
    if len(old_hash) in _SHORT_LENGTHS and all(letter in _SAFE_ALPHABET for letter in old_hash):
        number = _known(_SAFE_ALPHABET.index(old_hash[0]) + 1, old_hash)
        return number >= _version(value) and _short(number, value, len(old_hash)) == old_hash
    raise MalformedHash(
        f"{old_hash!r} is not a hash: expected 'v1-' and {_span(_LONG_LENGTHS)} hex digits, "
        f"or {_span(_SHORT_LENGTHS)} letters out of {_SAFE_ALPHABET!r}"
    )


def _long(version: int, value: Any, length: int) -> str:
    return f"v{version}-{_ALGORITHMS[version](value).hex()[:length]}"


def _short(version: int, value: Any, length: int) -> str:
    number = int.from_bytes(_ALGORITHMS[version](value), "big")
    letters = [_SAFE_ALPHABET[version - 1]]
    for _ in range(length - 1):
        number, digit = divmod(number, len(_SAFE_ALPHABET))
        letters.append(_SAFE_ALPHABET[digit])
    return "".join(letters)


def _known(version: int, old_hash: str) -> int:
    if version not in _ALGORITHMS:
        raise UnknownHashVersion(
            f"hash {old_hash!r} is of version {version}, this release knows up to {_CURRENT}: "
            "it was written by a newer release; keep the object as it is and upgrade"
        )
    return version


def _check_length(length: int, allowed: range) -> None:
    if length not in allowed:
        raise ValueError(f"length must be {_span(allowed)}, not {length}")


def _span(lengths: range) -> str:
    return f"{lengths.start} to {lengths.stop - 1}"


# --- Version 1. Frozen: a change here rolls every fleet. Write a version 2 beside it instead. ---

_encode_v1: Final = msgspec.json.Encoder(order="deterministic").encode
_name_of: Final = itemgetter("name")


def _digest_v1(value: Any) -> bytes:
    normal = _normal_v1(value, "")
    # A value that lost all its members is no different from one that was never written.
    empty = not normal and type(normal) not in (int, bool)
    return blake2b(_encode_v1(None if empty else normal), digest_size=32).digest()


# The next three functions are nearly the whole cost of a hash. Hence the tests on exact types, most frequent first,
# and the scalars handled in the loops rather than by a call each.


def _normal_v1(value: Any, field: str) -> Any:
    """Return `value` in normal form; `field` is the member it was found under, "" in a list or at the top."""
    kind = type(value)
    if kind is dict:
        return _object_v1(value)
    if kind is list or kind is tuple:
        return _list_v1(value, field)
    if kind is str or kind is int or kind is bool or value is None:
        return value
    if kind is float:
        return _number_v1(value)
    raise NotJSON(
        f"cannot hash a {kind.__name__}{f' in field {field!r}' if field else ''}: "
        "pass JSON values only (for a struct, msgspec.to_builtins first)"
    )


def _object_v1(value: dict[str, Any]) -> dict[str, Any]:
    members = {}
    for key, member in value.items():
        kind = type(member)
        if kind is str:
            if member:
                members[key] = member
        elif kind is int or kind is bool:
            members[key] = member
        else:
            normal = _object_v1(member) if kind is dict else _normal_v1(member, key)
            if normal or type(normal) is int:  # a 0.0 came back as 0
                members[key] = normal
    return members


def _list_v1(value: list[Any] | tuple[Any, ...], field: str) -> list[Any]:
    """Return the items in normal form, sorted by name if they have distinct names and their order means nothing."""
    items = []
    names = set()
    for item in value:
        kind = type(item)
        if kind is dict:
            normal = _object_v1(item)
            items.append(normal)
            if type(name := normal.get("name")) is str:
                names.add(name)
        else:
            items.append(item if kind is str else _normal_v1(item, ""))
    if len(names) != len(items) or len(items) < 2 or _order_matters_v1(items, field):
        return items
    return sorted(items, key=_name_of)


def _order_matters_v1(items: list[Any], field: str) -> bool:
    if field == "env":
        return any("$(" in str(item.get("value")) for item in items)
    return field == "initContainers"


def _number_v1(value: float) -> int | msgspec.Raw:
    if value.is_integer():
        return int(value)
    if not isfinite(value):
        raise NotJSON(f"cannot hash {value}: JSON has no such number")
    # Python's shortest form, rather than the encoder's, so that another encoder cannot change a hash.
    return msgspec.Raw(repr(value).encode())


# --- Version 2: version 1, with the empty members of maps of strings.  Frozen as well. ---

_STRING_MAPS_V2: Final = frozenset({"labels", "annotations", "nodeSelector", "matchLabels", "selector", "data"})
_EMPTY_V2: Final = "\0"
"""What stands for "" in such a map; no label, annotation or key has it."""


def _digest_v2(value: Any) -> bytes:
    return _digest_v1(_marked_v2(value, ""))


def _marked_v2(value: Any, field: str) -> Any:
    """The value with its empty members marked; the very same one if there are none."""
    kind = type(value)
    if kind is dict:
        marked = value
        for key, member in value.items():
            if member == "" and field in _STRING_MAPS_V2:
                new: Any = _EMPTY_V2
            else:
                new = _marked_v2(member, key) if type(member) in (dict, list, tuple) else member
            if new is not member:
                marked = dict(value) if marked is value else marked
                marked[key] = new
        return marked
    if kind is list or kind is tuple:
        items = [_marked_v2(item, "") for item in value]
        return items if any(new is not old for new, old in zip(items, value, strict=True)) else value
    return value


def _version(value: Any) -> int:
    """The version by which a value is hashed: the first that tells it from others."""
    return 2 if _has_empty_members(value, strings=False) else 1


def _has_empty_members(value: Any, *, strings: bool) -> bool:
    """Whether a map of strings in it has an empty member; nothing is copied, because hardly any value has one."""
    if type(value) is dict:
        if strings and "" in value.values():
            return True
        for key, member in value.items():
            kind = type(member)
            if (kind is dict or kind is list or kind is tuple) and _has_empty_members(
                member, strings=key in _STRING_MAPS_V2
            ):
                return True
        return False
    for item in value if type(value) in (list, tuple) else ():
        kind = type(item)
        if (kind is dict or kind is list or kind is tuple) and _has_empty_members(item, strings=False):
            return True
    return False


_ALGORITHMS: Final[Mapping[int, Callable[[Any], bytes]]] = {1: _digest_v1, 2: _digest_v2}
_CURRENT: Final = max(_ALGORITHMS)
