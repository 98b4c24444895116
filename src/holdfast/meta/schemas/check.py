"""What is wrong with a value by a schema, in Kubernetes' words and order.

Problems are found with the path of the value whose node told them, so that an
update can be forgiven what it left as it was.  This module must not change a
value.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from holdfast.meta.errors import FieldError
from holdfast.meta.patches.json import json_equal
from holdfast.meta.schemas.constraints import Key, Path, invalid, mismatch, name_of
from holdfast.meta.schemas.nodes import Node, key_of

_JSON_TYPES: Final = {
    dict: "object", list: "array", str: "string", bool: "boolean", int: "integer", float: "number", type(None): "null",
}  # fmt: skip
_JSON_FORMATS: Final = {int: "int64", float: "float64"}
_ABSENT: Final = object()

Found = list[tuple[Path, FieldError]]
"""Problems, each with the path of the value whose node told it."""


def check_value(node: Node, value: Any, path: Path, found: Found) -> None:
    kind = type(value)
    problem = _type_problem(node, value, path)
    if problem is not None:
        found.append((path, problem))
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
                    found.append((path, problem))
        elif kind is list:
            _check_list(node, value, path, found)
    if node.choice is not None:
        problem = node.choice(value, path)
        if problem is not None:
            found.append((path, problem))
    if kind is dict:
        _check_object(node, value, path, found)


def _type_problem(node: Node, value: Any, path: Path) -> FieldError | None:
    kinds, kind = node.kinds, _JSON_TYPES[type(value)]
    if not kinds or kind in kinds:
        return None
    if value is None:
        return None if node.nullable else mismatch(path, kinds, kind)
    if kind == "integer" and "number" in kinds:
        return None
    if kind == "number" and "integer" in kinds and value.is_integer():
        return None
    if node.format_name and kind != "array":
        return mismatch(path, (node.format_name,), _JSON_FORMATS.get(type(value), ""))
    return mismatch(path, kinds, kind)


def _check_text(node: Node, value: str, path: Path, found: Found) -> None:
    checks, form = node.checks_text
    for check in checks:
        problem = check(value, path)
        if problem is not None:
            found.append((path, problem))
            break
    if form is not None:
        problem = form(value, path)
        if problem is not None:
            found.append((path, problem))


def _check_list(node: Node, value: list[Any], path: Path, found: Found) -> None:
    items = node.items
    if items is not None:
        for index, item in enumerate(value):
            _check_inside(items, item, (path, index), found)
    if len(value) < node.min_items:
        found.append((path, invalid(path, len(value), f"should have at least {node.min_items} items")))
    if node.max_items is not None and len(value) > node.max_items:
        found.append((path, FieldError.too_many(name_of(path), len(value), max_items=node.max_items)))
    if node.unique and any(json_equal(item, value[earlier]) for at, item in enumerate(value) for earlier in range(at)):
        found.append((path, invalid(path, "", "shouldn't contain duplicates")))


def _check_object(node: Node, value: dict[str, Any], path: Path, found: Found) -> None:
    if len(value) < node.min_properties:
        what = f"should have at least {node.min_properties} properties"
        found.append((path, invalid(path, len(value), what)))
        return
    if node.max_properties is not None and len(value) > node.max_properties:
        found.append((path, FieldError.too_many(name_of(path), len(value), max_items=node.max_properties)))
        return
    for name in node.required:
        if name not in value:
            found.append((path, FieldError.required(name_of((path, name)))))
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
            found.append((path, _joint(path, "must not validate the schema (not)")))


def _judged(word: str, results: list[Found], path: Path) -> Found:
    """What is wrong if these are the problems by each alternative."""
    valid = sum(not result for result in results)
    nearest = min(results, key=len)
    if word == "anyOf" and not valid:
        return [(path, _joint(path, "must validate at least one schema (anyOf)")), *nearest]
    if word == "oneOf" and valid != 1:
        why = f"Found {valid} valid alternatives" if valid else "Found none valid"
        return [(path, _joint(path, f"must validate one and only one schema (oneOf). {why}")), *nearest]
    if word == "allOf" and valid != len(results):
        why = "" if valid else ". None validated"
        problems = [problem for result in results for problem in result]
        return [*problems, (path, _joint(path, f"must validate all the schemas (allOf){why}"))]
    return []


def _joint(path: Path, what: str) -> FieldError:
    return FieldError.invalid("", "", detail=f'"{name_of(path)}" {what}')


# --- updates -----------------------------------------------------------------


def is_unchanged(node: Node, path: Path, start: Path, values: tuple[Any, Any]) -> bool:
    """Whether the value at `path`, or one that holds it, is what it was before the update."""
    steps: list[str | int] = []
    while path and path != start:
        path, step = path
        steps.append(step)
    new, old = values
    inner: Node | None = node
    while not json_equal(new, old):
        if not steps or inner is None:
            return False
        step = steps.pop()
        if isinstance(step, int):
            new, old = new[step], _counterpart(inner, new[step], old)
            inner = inner.items
        else:
            new, old = new[step], old.get(step, _ABSENT) if isinstance(old, dict) else _ABSENT
            inner = inner.properties.get(step) or inner.additional
        if old is _ABSENT:
            return False
    return True


def _counterpart(node: Node, item: Any, old: Any) -> Any:
    """The old entry of a list for a new one, found by its keys; lists without keys have none."""
    if node.list_type == "map" and isinstance(old, list) and isinstance(item, dict):
        key = key_of(node, item)
        for candidate in old:
            if isinstance(candidate, dict) and json_equal(key_of(node, candidate), key):
                return candidate
    return _ABSENT


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


def set_problems(node: Node, value: Any, path: Path) -> Iterator[FieldError]:
    if type(value) is list and node.list_type in ("set", "map"):
        seen: list[Any] = []
        known: set[Any] = set()
        for index, item in enumerate(value):
            if node.list_type == "map":
                if not isinstance(item, dict):
                    detail = "must be an object for an array of list-type map"
                    yield FieldError.invalid(name_of((path, index)), item, detail=detail)
                    continue
                item = key_of(node, item)
            if _is_repeated(item, seen, known):
                yield FieldError.duplicate(name_of((path, index)), item)
    for inner, item, where in _inside(node, value, path):
        if inner.has_sets:
            yield from set_problems(inner, item, where)


def _is_repeated(item: Any, seen: list[Any], known: set[Any]) -> bool:
    """Whether it came before; notes it.  Scalars go by hash, for lists of them are long."""
    flat = tuple(item.items()) if isinstance(item, dict) else item
    try:
        token = (type(item), flat, tuple(map(type, flat)) if isinstance(flat, tuple) else None)
        repeated = token in known
        known.add(token)
    except TypeError:  # something in it is a list or an object
        repeated = any(json_equal(item, earlier) for earlier in seen)
        seen.append(item)
    return repeated


def resource_problems(node: Node, value: Any, path: Path) -> Iterator[FieldError]:
    if node.embedded and type(value) is dict:
        for name in ("apiVersion", "kind"):
            if value.get(name) in (None, ""):
                yield FieldError.required(name_of((path, name)), "must not be empty")
            elif not isinstance(value[name], str):
                yield mismatch((path, name), ("string",), _JSON_TYPES[type(value[name])])
        if not isinstance(value.get("metadata", {}), dict):
            yield mismatch((path, "metadata"), ("object",), _JSON_TYPES[type(value["metadata"])])
    for inner, item, where in _inside(node, value, path):
        if inner.has_resources:
            yield from resource_problems(inner, item, where)
