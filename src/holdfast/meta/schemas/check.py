"""The walk that finds everything in a value that breaks its schema, in the order of the API server.

Each finding has the path of the value whose node made it, so that an update is not held responsible for what it left
as it was.  The module must not change a value, nor put a finding into words.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from itertools import islice
from typing import Any, Final

from holdfast.meta.errors import MOST_PROBLEMS
from holdfast.meta.patches.json import hashable, json_equal
from holdfast.meta.schemas.constraints import Finding, Key, Path
from holdfast.meta.schemas.messages import JSON_TYPES
from holdfast.meta.schemas.nodes import Node, key_of

_ABSENT: Final = object()

Found = list[Finding]

ENOUGH: Final = 10_000
"""A list with more findings is not looked at further."""


def check_value(node: Node, value: Any, path: Path, found: Found) -> None:
    kind = type(value)
    problem = _type_problem(node, value, path)
    if problem is not None:
        found.append(problem)
    if value is not None:
        has_more = node.alternatives or node.excluded is not None
        if has_more and not (node.restates_type and problem is None):
            _check_alternatives(node, value, path, found)
        if kind is str:
            _check_text(node, value, path, found)
        elif kind is int or kind is float:
            for check in node.checks_number:
                problem = check(value, path)
                if problem is not None:
                    found.append(problem)
        elif kind is list:
            _check_list(node, value, path, found)
    if node.choice is not None:
        problem = node.choice(value, path)
        if problem is not None:
            found.append(problem)
    if kind is dict:
        _check_object(node, value, path, found)


def _type_problem(node: Node, value: Any, path: Path) -> Finding | None:
    kinds, kind = node.kinds, JSON_TYPES.get(type(value), "")
    if not kinds or kind in kinds:
        return None
    if value is None:
        return None if node.nullable else Finding("type", path, value, kinds)
    if kind == "integer" and "number" in kinds:
        return None
    if kind == "number" and "integer" in kinds and value.is_integer():
        return None
    return Finding("type", path, value, (node.format_name,) if node.format_name and kind != "array" else kinds)


def _check_text(node: Node, value: str, path: Path, found: Found) -> None:
    checks, form = node.checks_text
    for check in checks:
        problem = check(value, path)
        if problem is not None:
            found.append(problem)
            break
    if form is not None:
        problem = form(value, path)
        if problem is not None:
            found.append(problem)


def _check_list(node: Node, value: list[Any], path: Path, found: Found) -> None:
    items = node.items
    if items is not None:
        for index, item in enumerate(value):
            _check_inside(items, item, (path, index), found)
            if len(found) > ENOUGH:
                return
    if len(value) < node.min_items:
        found.append(Finding("minItems", path, value, node.min_items))
    if node.max_items is not None and len(value) > node.max_items:
        found.append(Finding("maxItems", path, value, node.max_items))
    if node.unique and len(set(map(hashable, value))) < len(value):
        found.append(Finding("uniqueItems", path, value))


def _check_object(node: Node, value: dict[str, Any], path: Path, found: Found) -> None:
    if len(value) < node.min_properties:
        found.append(Finding("minProperties", path, value, node.min_properties))
        return
    if node.max_properties is not None and len(value) > node.max_properties:
        found.append(Finding("maxProperties", path, value, node.max_properties))
        return
    missing = (name for name in node.required if name not in value)
    found += [Finding("required", path, limit=name) for name in islice(missing, MOST_PROBLEMS + 1)]
    properties, additional = node.properties, node.additional
    for key, item in value.items():
        inner = properties.get(key) or additional
        if inner is None:
            continue
        if type(item) is not inner.plain:
            check_value(inner, item, (path, key), found)
        elif inner.fits is None or not inner.fits(item):
            _check_inside(inner, item, (path, key), found)


def _check_inside(node: Node, value: Any, path: Path, found: Found) -> None:
    """As `check_value`, by the shortest way for a value of the type that is expected."""
    kind = type(value)
    if kind is node.plain:
        if kind is dict:
            _check_object(node, value, path, found)
            return
        if kind is list:
            _check_list(node, value, path, found)
            return
        if node.fits is not None and node.fits(value):
            return
    check_value(node, value, path, found)


def _check_alternatives(node: Node, value: Any, path: Path, found: Found) -> None:
    for word, branches in node.alternatives:
        results: list[Found] = []
        for branch in branches:
            result: Found = []
            check_value(branch, value, path, result)
            results.append(result)
        found += _judged(word, results, path)
    if node.excluded is not None:
        result = []
        check_value(node.excluded, value, path, result)
        if result == []:
            found.append(Finding("not", path, value))


def _judged(word: str, results: list[Found], path: Path) -> Found:
    """What is wrong if these are the findings by each alternative."""
    valid = sum(not result for result in results)
    nearest = min(results, key=len)
    if (word == "anyOf" and not valid) or (word == "oneOf" and valid != 1):
        return [Finding(word, path, limit=valid), *nearest]
    if word == "allOf" and valid != len(results):
        return [*(finding for result in results for finding in result), Finding(word, path, limit=valid)]
    return []


# --- updates -----------------------------------------------------------------


class Update:
    """The old and the new value of an update, to tell which findings the update is responsible for.

    Comparisons and the keys of lists are remembered, because many findings may be in one list.
    """

    def __init__(self, node: Node, start: Path, *, new: Any, old: Any) -> None:
        self._node = node
        self._start = start
        self._new = new
        self._old = old
        self._equal: dict[tuple[int, int], bool] = {}
        self._indexes: dict[tuple[int, int], dict[Hashable, Any]] = {}

    def leaves(self, path: Path) -> bool:
        """Whether the value at `path`, or one that holds it, is what it was before the update."""
        steps: list[str | int] = []
        while path and path != self._start:
            path, step = path
            steps.append(step)
        new, old = self._new, self._old
        inner: Node | None = self._node
        while not self._are_equal(new, old):
            if not steps or inner is None:
                return False
            step = steps.pop()
            if isinstance(step, int):
                new, old = new[step], self._counterpart(inner, new[step], old)
                inner = inner.items
            else:
                new, old = new[step], old.get(step, _ABSENT) if isinstance(old, dict) else _ABSENT
                inner = inner.properties.get(step) or inner.additional
            if old is _ABSENT:
                return False
        return True

    def _are_equal(self, new: Any, old: Any) -> bool:
        if not isinstance(new, dict | list):
            return json_equal(new, old)
        pair = id(new), id(old)
        known = self._equal.get(pair)
        if known is None:
            known = self._equal[pair] = json_equal(new, old)
        return known

    def _counterpart(self, node: Node, item: Any, old: Any) -> Any:
        """The old entry of a list for a new one, found by its keys; lists without keys have none."""
        if node.list_type != "map" or not isinstance(old, list) or not isinstance(item, dict):
            return _ABSENT
        pair = id(node), id(old)
        index = self._indexes.get(pair)
        if index is None:
            index = self._indexes[pair] = {}
            for candidate in old:
                if isinstance(candidate, dict):
                    index.setdefault(hashable(key_of(node, candidate)), candidate)
        return index.get(hashable(key_of(node, item)), _ABSENT)


# --- second look -------------------------------------------------------------


def _inside(node: Node, value: Any, path: Path) -> Iterator[tuple[Node, Any, Path]]:
    """The values in a value, with their nodes."""
    if type(value) is dict:
        for key, item in value.items():
            inner = node.properties.get(key)
            if inner is not None:
                yield inner, item, (path, key)
            elif node.additional is not None:
                yield node.additional, item, (path, Key(key))
    elif type(value) is list and node.items is not None:
        for index, item in enumerate(value):
            yield node.items, item, (path, index)


def set_problems(node: Node, value: Any, path: Path) -> Iterator[Finding]:
    """Entries of sets and of maps that repeat an earlier one; the limit of a finding is the earlier one's index."""
    if type(value) is list and node.list_type in ("set", "map"):
        first: dict[Hashable, int] = {}
        for index, item in enumerate(value):
            if node.list_type == "map":
                if not isinstance(item, dict):
                    yield Finding("listMap", (path, index), item)
                    continue
                item = key_of(node, item)
            # As in Kubernetes, 1 and 1.0 are two entries.
            types = tuple(map(type, item.values() if isinstance(item, dict) else (item,)))
            earlier = first.setdefault((types, hashable(item)), index)
            if earlier != index:
                yield Finding("duplicate", (path, index), item, earlier)
    for inner, item, where in _inside(node, value, path):
        if inner.has_sets:
            yield from set_problems(inner, item, where)


def resource_problems(node: Node, value: Any, path: Path) -> Iterator[Finding]:
    """Embedded objects that lack what every object has."""
    if node.embedded and type(value) is dict:
        for name in ("apiVersion", "kind"):
            if value.get(name) in (None, ""):
                yield Finding("resource", (path, name))
            elif not isinstance(value[name], str):
                yield Finding("type", (path, name), value[name], ("string",))
        if not isinstance(value.get("metadata", {}), dict):
            yield Finding("type", (path, "metadata"), value["metadata"], ("object",))
    for inner, item, where in _inside(node, value, path):
        if inner.has_resources:
            yield from resource_problems(inner, item, where)
