"""Mutations of documents: each field absent, null, empty, of another type, huge, negative, and pairs of these.

Fields are those that a document has, and those that a schema knows.  Equal seeds give equal mutations.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any, Final

Path = tuple[str | int, ...]

ABSENT: Final = object()
"""The mutation that removes a field."""

VALUES: Final[tuple[Any, ...]] = (
    ABSENT,
    None,
    "",
    [],
    {},
    0,
    -1,
    2**31,
    10**30,
    0.5,
    True,
    "x",
    "x" * 5000,
    "9" * 5000,
    "a\0b",
    "-1",
    "100000000000000000000%",
    "1e999",
    [None],
    [""],
    [[]],
    [{}],
    {"": None},
    {"x": {}},
)

TEXTS: Final = tuple(value for value in VALUES if value is ABSENT or isinstance(value, str))
"""What can stand in a map of strings."""

_DEPTH: Final = 9
_HIDDEN: Final = frozenset({"managedFields", "uid", "resourceVersion", "creationTimestamp", "name", "namespace"})
"""Metadata that a server writes itself, or that names the object."""


@dataclass(frozen=True, slots=True)
class Mutation:
    """One field, and what it is set to."""

    path: Path
    value: Any

    def __str__(self) -> str:
        said = "absent" if self.value is ABSENT else repr(self.value)
        return f"{'.'.join(map(str, self.path))} = {said if len(said) < 40 else said[:40] + '…'}"


def applied(document: Mapping[str, Any], mutations: Sequence[Mutation]) -> dict[str, Any]:
    """A copy of a document with mutations; one whose place another has taken away is left out."""
    made = copy.deepcopy(dict(document))
    for mutation in mutations:
        _set(made, mutation)
    return made


def _set(document: Any, mutation: Mutation) -> None:
    *parents, last = mutation.path
    place = document
    for position, step in enumerate(parents):
        if isinstance(place, dict) and isinstance(step, str):
            following = mutation.path[position + 1]
            place = place.setdefault(step, [] if isinstance(following, int) else {})
        elif isinstance(place, list) and isinstance(step, int):
            if step >= len(place):
                place.append({})
            place = place[min(step, len(place) - 1)]
        else:
            return
    if isinstance(place, dict) and isinstance(last, str):
        place.pop(last, None)
        if mutation.value is not ABSENT:
            place[last] = copy.deepcopy(mutation.value)
    elif isinstance(place, list) and isinstance(last, int):
        del place[last : last + 1]
        if mutation.value is not ABSENT:
            place.insert(last, copy.deepcopy(mutation.value))


def fields(document: Any, at: Path = ()) -> Iterator[Path]:
    """The path of every field that a document has; of metadata, labels and annotations only."""
    if len(at) > _DEPTH:
        return
    if isinstance(document, Mapping):
        for name, value in document.items():
            if at in ((), ("metadata",)) and name in ("apiVersion", "kind", *_HIDDEN, "ownerReferences"):
                continue
            if at:
                yield (*at, name)
            yield from fields(value, (*at, name))
    elif isinstance(document, list):
        for position, value in enumerate(document[:2]):
            yield (*at, position)
            yield from fields(value, (*at, position))


def schema_fields(schema: Mapping[str, Any], at: Path = ()) -> Iterator[Path]:
    """The path of every field that a schema knows, with one item in each list; metadata aside."""
    if len(at) > _DEPTH:
        return
    for name, part in (schema.get("properties") or {}).items():
        if not at and name in ("apiVersion", "kind", "metadata"):
            continue
        yield (*at, name)
        yield from schema_fields(part, (*at, name))
    if isinstance(schema.get("items"), Mapping):
        yield (*at, 0)
        yield from schema_fields(schema["items"], (*at, 0))


def drawn(random: Random, paths: Sequence[Path]) -> tuple[Mutation, ...]:
    """One mutation, or a pair."""
    return tuple(_one(random, random.choice(paths)) for _ in range(random.choice((1, 1, 2))))


def _one(random: Random, path: Path) -> Mutation:
    # The server keeps labels and annotations maps of strings; everything else may be anything.
    if path[0] == "metadata":
        return Mutation(path, random.choice(TEXTS) if len(path) > 2 else ABSENT)
    return Mutation(path, random.choice(VALUES))
