"""Changing documents and reading schemas, for the tests of kinds."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from holdfast.kinds.crds import schema_of
from holdfast.kinds.model import Kind


def written(value: Any) -> Any:
    """``value`` as it goes over the wire."""
    return msgspec.json.decode(msgspec.json.encode(value))


def with_value(doc: dict[str, Any], path: str, value: Any) -> dict[str, Any]:
    """A copy of ``doc`` with ``value`` at a dotted path, in which numbers are indices."""
    changed = copy.deepcopy(doc)
    *parents, last = path.split(".")
    place: Any = changed
    for step in parents:
        place = place[int(step)] if step.isdigit() else place.setdefault(step, {})
    place[last] = value
    return changed


def value_at(doc: Any, path: str) -> Any:
    """What ``doc`` has at a dotted path, in which numbers are indices."""
    for step in path.split("."):
        doc = doc[int(step)] if step.isdigit() else doc[step]
    return doc


def rules_of(kind: Kind) -> list[tuple[str, str]]:
    """The message of every rule of ``kind``, with the path of the node that the rule stands at."""
    return list(_rules(schema_of(kind.model), ""))


def _rules(schema: Mapping[str, Any], path: str) -> Iterator[tuple[str, str]]:
    for rule in schema.get("x-kubernetes-validations", ()):
        yield path, rule["message"]
    for name, inner in schema.get("properties", {}).items():
        yield from _rules(inner, f"{path}.{name}")
    if "items" in schema:
        yield from _rules(schema["items"], f"{path}[]")
