"""Structural schemas at work: what an API server does to an object by its schema.

::

    schema = compile(openapi)      once for each kind
    schema.unknown(obj)            the paths of fields that the schema does not have
    schema.prune(obj)              drops them
    schema.default(obj)            writes defaults, drops nulls that are not allowed
    schema.validate(obj, old=...)  every problem, in Kubernetes' words

A schema is read once into a tree of nodes that hold nothing but what the walks
need.  The walks are in the path of every write, so they touch only what can
matter: a node knows whether anything below it has defaults, sets or resources.
CEL rules are not this module's matter, nor are definitions that hold a schema.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from holdfast.meta.errors import FieldError
from holdfast.meta.schemas.check import Found, check_value, is_unchanged, resource_problems, set_problems
from holdfast.meta.schemas.constraints import Path, Patterns, name_of, python_patterns
from holdfast.meta.schemas.nodes import OBJECT_META, Node

_ROOT: Final[Path] = ()
_META_FIELDS: Final = frozenset({"apiVersion", "kind", "metadata"})


def compile(schema: Mapping[str, Any], *, patterns: Patterns = python_patterns, resource: bool = True) -> Schema:
    """Reads a schema for use.

    `patterns` makes searches of the schema's patterns; give an engine that cannot be stalled where schemas come
    from strangers.  `resource` says that the values are whole objects, with apiVersion, kind and metadata.
    """
    return Schema(Node(schema, patterns, resource=resource), Node(OBJECT_META, patterns))


class Schema:
    """A schema, ready for use.  Make it with `compile`."""

    __slots__ = ("_meta", "_root")

    def __init__(self, root: Node, meta: Node) -> None:
        self._root = root
        self._meta = meta

    def unknown(self, obj: Any) -> list[str]:
        """The paths of fields that the schema does not have, sorted."""
        found: list[Path] = []
        self._sift(self._root, obj, _ROOT, found, drop=False)
        return sorted(map(name_of, found))

    def prune(self, obj: Any) -> list[str]:
        """Drops what `unknown` finds, and returns its paths."""
        found: list[Path] = []
        self._sift(self._root, obj, _ROOT, found, drop=True)
        return sorted(map(name_of, found))

    def default(self, obj: Any) -> None:
        """Writes the defaults of absent fields; a null that is not allowed counts as absent."""
        _default(self._root, obj)

    def validate(self, obj: Any, *, path: str = "", old: Any = None) -> list[FieldError]:
        """Every problem.  What an update leaves as it was is not held against it."""
        return [*self.check_values(obj, path=path, old=old), *self.check_rest(obj, path=path, old=old)]

    def check_values(self, obj: Any, *, path: str = "", old: Any = None) -> list[FieldError]:
        """The problems of the values by themselves: types, ranges, required fields."""
        found: Found = []
        start: Path = ((), path) if path else _ROOT
        check_value(self._root, obj, start, found)
        if found and old is not None:
            found = [each for each in found if not is_unchanged(self._root, each[0], start, (obj, old))]
        return [
            error if error.field else FieldError(error.type, "<nil>", error.value, error.detail) for _, error in found
        ]

    def check_rest(self, obj: Any, *, path: str = "", old: Any = None) -> list[FieldError]:
        """The problems that take a second look: embedded resources, and lists that are sets or maps."""
        start: Path = ((), path) if path else _ROOT
        found = list(resource_problems(self._root, obj, start)) if self._root.has_resources else []
        if self._root.has_sets:
            duplicates = list(set_problems(self._root, obj, start))
            if duplicates and (old is None or not any(set_problems(self._root, old, start))):
                found += duplicates
        return found

    def _sift(self, node: Node, value: Any, path: Path, found: list[Path], *, drop: bool, keep: bool = False) -> None:
        """Finds unknown fields; `keep` holds inside a list whose own node keeps them."""
        if type(value) is list:
            if node.items is not None:
                for index, item in enumerate(value):
                    if type(item) in (dict, list):
                        self._sift(node.items, item, (path, index), found, drop=drop, keep=node.open)
            return
        if type(value) is not dict:
            return
        properties, additional, kept = node.properties, node.additional, node.open or keep
        surplus: list[str] = []
        for key, item in value.items():
            inner = properties.get(key) or additional
            if node.resource and key in _META_FIELDS:
                if key != "metadata":
                    continue
                if inner is None or "labels" not in inner.properties:
                    inner = self._meta
            if inner is None:
                if not kept:
                    surplus.append(key)
            elif type(item) in (dict, list):
                self._sift(inner, item, (path, key), found, drop=drop)
        if surplus:
            found += [(path, key) for key in surplus]
            if drop:
                for key in surplus:
                    del value[key]


def _default(node: Node, value: Any) -> None:
    if type(value) is dict:
        for name, default in node.defaulted:
            if value.get(name) is None and not (name in value and node.properties[name].nullable):
                value[name] = _copied(default)
        properties, additional = node.properties, node.additional
        nulls: list[str] = []
        for key, item in value.items():
            inner = properties.get(key) or additional
            if inner is None:
                continue
            if item is None:
                if not inner.nullable:
                    nulls.append(key)
            elif inner.has_inside and type(item) in (dict, list):
                _default(inner, item)
        for key in nulls:
            inner = properties.get(key) or additional
            if inner is not None and inner.has_default:
                value[key] = _copied(inner.default)
                _default(inner, value[key])
            else:
                del value[key]
    elif type(value) is list and node.items is not None:
        items = node.items
        for index, item in enumerate(value):
            if item is None and items.has_default and not items.nullable:
                value[index] = item = _copied(items.default)
            if items.has_inside and type(item) in (dict, list):
                _default(items, item)


def _copied(value: Any) -> Any:
    if type(value) is dict:
        return {key: _copied(item) for key, item in value.items()}
    return [_copied(item) for item in value] if type(value) is list else value
