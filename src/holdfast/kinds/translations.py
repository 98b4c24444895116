"""Translations: documents of another API as objects of a kind.

A `Translation` holds the translated document, what was left out of it, and where each of its fields stands in the
document that was given, so that problems name what the author wrote.  This module must not know any kind.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from holdfast.meta.fieldpaths import child
from holdfast.meta.schemas.hints import Problem


@dataclass(frozen=True, slots=True)
class Translation:
    """A translated document.

    notes    what was left out, and why; the rest means the same
    origins  the path in the given document of each path in the translated one
    """

    document: Mapping[str, Any]
    notes: tuple[Problem, ...] = ()
    origins: Mapping[str, str] = field(default_factory=dict)

    def origin(self, path: str) -> str:
        """Where a field of the translated document stands in the given one; its nearest parent that is there."""
        at = path
        while at and at not in self.origins:
            at = at[: max(at.rfind("."), at.rfind("["), 0)]
        return self.origins.get(at, path) if at else path


@dataclass(frozen=True, slots=True)
class Moved:
    """A value that stands elsewhere in the given document, or has another form there.

    value  the value; its own fields are still spelled as given
    path   where it stands in the given document
    """

    value: Any
    path: str


def spelled(value: Any, schema: Mapping[str, Any], *, new: str, old: str, origins: dict[str, str]) -> Any:
    """A value with the field names of a schema in place of their snake_case spellings; names that users choose stay.

    `new` and `old` are its paths in the translated and in the given document; `origins` receives both for each field.
    """
    if isinstance(value, Moved):
        value, old = value.value, value.path
    origins[new] = old
    if isinstance(value, list):
        items = schema.get("items", {})
        return [
            spelled(each, items, new=child(new, index), old=child(old, index), origins=origins)
            for index, each in enumerate(value)
        ]
    if not isinstance(value, Mapping):
        return value
    return {
        name: spelled(inner, below, new=child(new, name), old=child(old, key), origins=origins)
        for key, name, inner, below in _fields(value, schema)
    }


def _fields(value: Mapping[str, Any], schema: Mapping[str, Any]) -> Iterator[tuple[str, str, Any, Mapping[str, Any]]]:
    """The fields of an object: name as given, name in the schema, value, schema."""
    properties: Mapping[str, Any] = schema.get("properties", {})
    names = {_folded(name): name for name in properties}
    for key, inner in value.items():
        name = key if key in properties or "_" not in key else names.get(_folded(key), key)
        if name != key and name in value:
            name = key  # given in both spellings: the schema refuses this one
        below = properties.get(name, schema.get("additionalProperties"))
        yield key, name, inner, below if isinstance(below, Mapping) else {}


def _folded(name: str) -> str:
    return name.replace("_", "").replace("-", "").lower()
