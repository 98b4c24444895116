"""A schema, compiled for use: what an API server does to an object by the schema of its kind.

::

    schema = compile(openapi)      once for each kind
    schema.unknown(obj)            the paths of fields that the schema does not have
    schema.prune(obj)              drops them
    schema.default(obj)            writes defaults, drops nulls that are not allowed
    schema.validate(obj, old=...)  every problem, in the words of the API server
    schema.findings(obj)           every problem and every unknown field, as facts

A schema is read once into a tree of nodes that hold nothing but what the walks need.  The walks are in the path of
every write, so they touch only what can matter: a node knows whether anything below it has defaults, sets or
resources.  CEL rules are not this module's matter, nor are definitions that hold a schema.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import islice
from typing import Any, Final

from holdfast.meta.errors import MOST_PROBLEMS, FieldError
from holdfast.meta.schemas.check import ENOUGH, Found, Update, check_value, resource_problems, set_problems
from holdfast.meta.schemas.constraints import Finding, Path, Patterns, name_of, python_patterns
from holdfast.meta.schemas.messages import field_error
from holdfast.meta.schemas.nodes import OBJECT_META, Node

_ROOT: Final[Path] = ()
_DIVIDED: Final = frozenset({dict, list})
_DIVIDED_OR_NULL: Final = frozenset({dict, list, type(None)})
"""The types of the values that a walk looks into, and those that defaulting looks at.

Whether an object has any is found out by `map` alone, since most objects inside an object have texts and numbers only.
"""

_META_FIELDS: Final = frozenset({"apiVersion", "kind", "metadata"})


def compile(schema: Mapping[str, Any], *, patterns: Patterns = python_patterns, resource: bool = True) -> Schema:
    """Compiles a schema.

    `patterns` makes searches of the schema's patterns; give an engine with linear running time where users may write
    schemas.  `resource` says that the values are whole objects, with apiVersion, kind and metadata.
    """
    return Schema(schema, Node(schema, patterns, resource=resource), Node(OBJECT_META, patterns))


class Schema:
    """A compiled schema.  Make it with `compile`; `source` is what it was compiled from."""

    __slots__ = ("_meta", "_root", "source")

    def __init__(self, source: Mapping[str, Any], root: Node, meta: Node) -> None:
        self.source = source
        self._root = root
        self._meta = meta

    def unknown(self, obj: Any) -> list[str]:
        """The paths of fields that the schema does not have, sorted, and no more than can be reported."""
        found: list[Path] = []
        self._sift(self._root, obj, _ROOT, found, drop=False)
        return sorted(map(name_of, found[:MOST_PROBLEMS]))

    def prune(self, obj: Any) -> list[str]:
        """Drops what `unknown` finds, and returns its paths."""
        found: list[Path] = []
        self._sift(self._root, obj, _ROOT, found, drop=True)
        return sorted(map(name_of, found[:MOST_PROBLEMS]))

    def default(self, obj: Any) -> None:
        """Writes the defaults of absent fields; a null that is not allowed counts as absent."""
        _default(self._root, obj)

    def drop_nulls(self, obj: Any) -> None:
        """Drops nulls that are not allowed, and writes no defaults in their place."""
        _default(self._root, obj, fill=False)

    def validate(self, obj: Any, *, path: str = "", old: Any = None) -> list[FieldError]:
        """Every problem.  What an update leaves as it was is not held against it."""
        return [*self.check_values(obj, path=path, old=old), *self.check_rest(obj, path=path, old=old)]

    def check_values(self, obj: Any, *, path: str = "", old: Any = None) -> list[FieldError]:
        """The problems of the values by themselves: types, ranges, required fields."""
        found: Found = []
        start: Path = ((), path) if path else _ROOT
        check_value(self._root, obj, start, found)
        # With more findings than are looked for, it is unknown which of them the update made.
        if found and old is not None and len(found) <= ENOUGH:
            update = Update(self._root, start, new=obj, old=old)
            found = [each for each in found if not update.leaves(each.path)]
        errors = _errors(found)
        return [error if error.field else replace(error, field="<nil>") for error in errors]

    def check_rest(self, obj: Any, *, path: str = "", old: Any = None) -> list[FieldError]:
        """The problems that take a second look: embedded resources, and lists that are sets or maps."""
        start: Path = ((), path) if path else _ROOT
        found = list(resource_problems(self._root, obj, start)) if self._root.has_resources else []
        if self._root.has_sets:
            duplicates = list(set_problems(self._root, obj, start))
            if duplicates and (old is None or not any(set_problems(self._root, old, start))):
                found += duplicates
        return list(_errors(found))

    def findings(self, obj: Any) -> list[Finding]:
        """Everything that is wrong with a value, unknown fields (``unknown``) included, as facts."""
        unknown: list[Path] = []
        self._sift(self._root, obj, _ROOT, unknown, drop=False)
        found: Found = [Finding("unknown", path) for path in unknown]
        check_value(self._root, obj, _ROOT, found)
        return [*found, *resource_problems(self._root, obj, _ROOT), *set_problems(self._root, obj, _ROOT)]

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
        is_known = kept or additional is not None or value.keys() <= properties.keys()
        if is_known and not node.resource and _DIVIDED.isdisjoint(map(type, value.values())):
            return
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


def _errors(found: Iterable[Finding]) -> Iterator[FieldError]:
    """The errors of findings, one more than are reported at most: each may be as long as its schema."""
    return map(field_error, islice(found, MOST_PROBLEMS + 1))


def _default(node: Node, value: Any, *, fill: bool = True) -> None:
    if type(value) is dict:
        for name, default in node.defaulted if fill else ():
            if value.get(name) is None and not (name in value and node.properties[name].nullable):
                value[name] = copied(default)
        if _DIVIDED_OR_NULL.isdisjoint(map(type, value.values())):
            return
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
                _default(inner, item, fill=fill)
        for key in nulls:
            inner = properties.get(key) or additional
            if fill and inner is not None and inner.has_default:
                value[key] = copied(inner.default)
                _default(inner, value[key])
            else:
                del value[key]
    elif type(value) is list and node.items is not None:
        items = node.items
        for index, item in enumerate(value):
            if fill and item is None and items.has_default and not items.nullable:
                value[index] = item = copied(items.default)
            if items.has_inside and type(item) in (dict, list):
                _default(items, item, fill=fill)


def copied(value: Any) -> Any:
    """A copy of a JSON value that shares no object or list with it; tuples become lists."""
    if type(value) is dict:
        return {key: copied(item) for key, item in value.items()}
    return [copied(item) for item in value] if isinstance(value, list | tuple) else value
