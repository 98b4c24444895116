"""Strategic merge patch: a merge patch that knows which lists are keyed, and by what.

`kubectl edit`, `label`, `set image` and `apply` use it for the built-in kinds. Which lists are merged, and by which
key, is part of the OpenAPI schema of a kind (`x-kubernetes-patch-strategy`, `x-kubernetes-patch-merge-key`). Lists
without a strategy are replaced, objects are merged, null removes. In a patch these members are directives:

- `$patch: replace | delete | merge` in an object, or as an item of a keyed list;
- `$setElementOrder/<list>`: the order that the items should have;
- `$deleteFromPrimitiveList/<list>`: values to take out of a list that is a set;
- `$retainKeys`: members to keep, all others go.

The order of a merged list is that of the API server: items that the patch names come in the patch's order, the others
keep theirs, and where the old list gives no order, those of the patch come first.

Values are never changed in place. This module must not know requests, media types or which kinds are custom.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from holdfast.meta.patches.json import hashable

__all__ = [
    "MalformedDirective",
    "MissingMergeKey",
    "Schema",
    "StrategicPatchError",
    "apply",
]

# StrategicPatchError       .path of the field in the patch
#  ├─ MalformedDirective    a directive has a value that it cannot have
#  └─ MissingMergeKey       an item of a keyed list does not say which item it is


class StrategicPatchError(ValueError):
    """A strategic merge patch cannot be applied; the object is unchanged."""

    def __init__(self, problem: str, *, path: str) -> None:
        super().__init__(f"{path or 'patch'}: {problem}")
        self.path = path


class MalformedDirective(StrategicPatchError):
    """A directive has a value that it cannot have."""


class MissingMergeKey(StrategicPatchError):
    """An item of a keyed list lacks the key, or is no object at all."""


@dataclass(frozen=True, slots=True)
class Schema:
    """How a value is patched: what its OpenAPI schema says about strategic merge patches."""

    openapi: Mapping[str, Any] = field(default_factory=dict)

    def child(self, name: str) -> Schema:
        """The schema of a field: of an object, or of the items of a list."""
        holder: Mapping[str, Any] = self.openapi.get("items", self.openapi)
        return Schema(holder.get("properties", {}).get(name, {}))

    @property
    def merge_key(self) -> str | None:
        """Of a list: the field that identifies an item. "" is a set of scalars, None a list that is replaced."""
        merged = self.openapi.get("type") == "array" and "merge" in self._strategies
        return self.openapi.get("x-kubernetes-patch-merge-key", "") if merged else None

    @property
    def replace(self) -> bool:
        """Of an object: replaced as a whole instead of merged."""
        return "replace" in self._strategies

    @property
    def _strategies(self) -> list[str]:
        return str(self.openapi.get("x-kubernetes-patch-strategy", "")).split(",")


_PATCH: Final = "$patch"
_RETAIN_KEYS: Final = "$retainKeys"
_ORDER: Final = "$setElementOrder/"
_DELETE: Final = "$deleteFromPrimitiveList/"


def apply(original: Mapping[str, Any], patch: Mapping[str, Any], *, schema: Schema) -> dict[str, Any]:
    """Return `original` with `patch` merged in as `schema` says.

    >>> keyed = {"x-kubernetes-patch-strategy": "merge", "x-kubernetes-patch-merge-key": "name"}
    >>> schema = Schema({"properties": {"env": {"type": "array", **keyed}}})
    >>> apply({"env": [{"name": "A"}]}, {"env": [{"name": "B"}]}, schema=schema)
    {'env': [{'name': 'B'}, {'name': 'A'}]}
    """
    return _merge_objects(original, patch, schema, "")


def _merge_objects(original: Mapping[str, Any], patch: Mapping[str, Any], schema: Schema, path: str) -> dict[str, Any]:
    match _directive(patch, path):
        case "replace":
            return _fresh_object(patch)
        case "delete":
            return {}
    merged = _retained(original, patch, path)
    for name, values in _parallel_lists(patch, _DELETE, path):
        if isinstance(merged.get(name), list):
            unwanted = set(map(hashable, values))
            merged[name] = [item for item in merged[name] if hashable(item) not in unwanted]
    for name, value in patch.items():
        if _is_directive(name):
            continue
        if value is None or (name not in merged and _marked(value, "delete")):
            merged.pop(name, None)
        else:
            merged[name] = _merge_values(merged.get(name), value, schema.child(name), _join(path, name))
    for name, order in _parallel_lists(patch, _ORDER, path):
        if isinstance(merged.get(name), list):
            place = _join(path, name)
            wanted = _wanted_order(order, patch.get(name) or [], schema.child(name), place)
            merged[name] = _interleave(merged[name], wanted, original.get(name) or [], schema.child(name))
    return merged


def _merge_values(original: Any, patch: Any, schema: Schema, path: str) -> Any:
    if isinstance(patch, dict) and isinstance(original, dict) and not schema.replace:
        return _merge_objects(original, patch, schema, path)
    if isinstance(patch, list) and isinstance(original, list) and schema.merge_key is not None:
        return _merge_lists(original, patch, schema, path)
    return _fresh(patch)


def _merge_lists(original: list[Any], patch: list[Any], schema: Schema, path: str) -> list[Any]:
    """Merge a set, or a keyed list: its directives first, then each item into its namesake."""
    changes: list[tuple[Any, Any]] = []
    doomed: set[Any] = set()
    for index, item in enumerate(patch):
        match _directive(item, path) if isinstance(item, dict) else "merge":
            case "replace":
                return _fresh_list(patch)
            case "delete":
                doomed.add(_key(item, schema, f"{path}[{index}]"))
            case _:
                changes.append((_key(item, schema, f"{path}[{index}]"), item))
    if doomed:
        original = [live for live in original if _key_of(live, schema) not in doomed]
    merged = list(original)
    # Of several with one key the first is meant, so it has to be entered last.
    places = {_key_of(item, schema): place for place, item in reversed(list(enumerate(original)))}
    for key, item in changes:
        if key not in places:
            places[key] = len(merged)
            merged.append(_fresh(item))
        elif isinstance(item, dict):
            merged[places[key]] = _merge_objects(merged[places[key]], item, schema, f"{path}[{key}]")
    return _interleave(merged, [key for key, _ in changes], original, schema)


def _interleave(items: list[Any], wanted: Sequence[Any], live: Iterable[Any], schema: Schema) -> list[Any]:
    """Sort the items whose key is in `wanted` by it, and put the others where they were in `live`.

    A new item was nowhere in `live`: there, those in `wanted` come first.
    """
    rank = {key: place for place, key in reversed(list(enumerate(wanted)))}
    was = {_key_of(item, schema): place for place, item in reversed(list(enumerate(live)))}
    keyed = [(_key_of(item, schema), item) for item in items]
    named = sorted((each for each in keyed if each[0] in rank), key=lambda each: rank[each[0]])
    others = deque(each for each in keyed if each[0] not in rank)
    result = []
    for key, item in named:
        before = was.get(key, -1)
        while others and was.get(others[0][0], before) < before:
            result.append(others.popleft()[1])
        result.append(item)
    return [*result, *(item for _, item in others)]


def _wanted_order(order: list[Any], patch: Any, schema: Schema, path: str) -> list[Any]:
    """Return the keys of an order directive; the items of the patch must be in it, and in the same order."""
    keys = [_key(item, schema, path) for item in order]
    remaining = iter(keys)
    for item in patch:
        if _marked(item, "delete", "replace"):
            continue
        if _key(item, schema, path) not in remaining:
            listed = f"{_key(item, schema, path)!r} is missing there or out of order"
            raise MalformedDirective(f"the items must follow {_ORDER}{path.rpartition('.')[2]}: {listed}", path=path)
    return keys


def _retained(original: Mapping[str, Any], patch: Mapping[str, Any], path: str) -> dict[str, Any]:
    keep = patch.get(_RETAIN_KEYS)
    if keep is None:
        return dict(original)
    if not isinstance(keep, list):
        raise MalformedDirective(f"{_RETAIN_KEYS} must be a list of member names, not {keep!r}", path=path)
    keep = {name for name in keep if isinstance(name, str)}
    for name, value in patch.items():
        if value is not None and name not in keep and not _is_directive(name):
            raise MalformedDirective(f"{name!r} is set but not listed in {_RETAIN_KEYS}: add it there", path=path)
    return {name: value for name, value in original.items() if name in keep}


def _fresh(value: Any) -> Any:
    """Return a value of the patch that meets nothing to be merged with: without directives and removals."""
    if isinstance(value, dict):
        return _fresh_object(value)
    return _fresh_list(value) if isinstance(value, list) else value


def _fresh_object(patch: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: _fresh(value)
        for name, value in patch.items()
        if value is not None and not _is_directive(name) and not _marked(value, "delete")
    }


def _fresh_list(patch: list[Any]) -> list[Any]:
    return [_fresh(item) for item in patch if not _marked(item, "delete", "replace")]


def _marked(value: Any, *directives: str) -> bool:
    return isinstance(value, dict) and value.get(_PATCH) in directives


def _directive(patch: Mapping[str, Any], path: str) -> str:
    directive = patch.get(_PATCH, "merge")
    if directive not in ("merge", "replace", "delete"):
        raise MalformedDirective(f"{_PATCH} must be merge, replace or delete, not {directive!r}", path=path)
    return str(directive)


def _is_directive(name: str) -> bool:
    # Not every "$": the schemas inside a CustomResourceDefinition have members such as $ref.
    return name[:1] == "$" and (name in (_PATCH, _RETAIN_KEYS) or name.startswith((_ORDER, _DELETE)))


def _parallel_lists(patch: Mapping[str, Any], prefix: str, path: str) -> Iterator[tuple[str, list[Any]]]:
    for name, values in patch.items():
        if name.startswith(prefix):
            if not isinstance(values, list):
                raise MalformedDirective(f"{name} must be a list, not {values!r}", path=path)
            yield name[len(prefix) :], values


def _key(item: Any, schema: Schema, path: str) -> Any:
    """Return the key of an item in a patch, which must have one."""
    key = _key_of(item, schema)
    if key is None:
        wanted = f"an object with a {schema.merge_key!r}" if schema.merge_key else "a scalar"
        raise MissingMergeKey(f"every item of this list must be {wanted}, not {item!r}", path=path)
    return key


def _key_of(item: Any, schema: Schema) -> Any:
    """Return the key of an item, None for one without: a stored object may hold such, and keeps it."""
    if schema.merge_key:
        item = item.get(schema.merge_key) if isinstance(item, dict) else None
    return None if isinstance(item, (dict, list)) else item


def _join(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name
