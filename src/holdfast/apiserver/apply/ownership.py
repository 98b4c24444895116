"""Ownership by schema: which values are divided into fields, and which are owned as a whole.

Objects are divided into their fields and maps into their keys, unless they are atomic; lists are owned as a whole,
unless they are sets or keyed.  From this follow the fields that a configuration speaks of, and those in which two
objects differ.  This module must not know managers, requests or conflicts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from holdfast.apiserver.apply.fieldsets import LEAF, SELF, Tree, key_element, value_element
from holdfast.apiserver.resources import Object

_NOTHING: Final[Mapping[str, Any]] = {}

_FILLED_IN: Final = frozenset({"securityContext"})
"""Structs that are empty by default, but absent before defaulting."""

_TEXTS: Final = {"type": "object", "additionalProperties": {"type": "string"}}
_OBJECT_META: Final[Mapping[str, Any]] = {
    "type": "object",
    "properties": {
        "labels": _TEXTS,
        "annotations": _TEXTS,
        "finalizers": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
        "ownerReferences": {
            "type": "array",
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["uid"],
            "items": {"type": "object", "x-kubernetes-map-type": "atomic"},
        },
    },
}


class Structure:
    """Ownership by schema: which values are divided into fields, and which are owned as a whole.

    Children are read on first use, so that schemas may be large, shared and circular.
    """

    __slots__ = ("_additional", "_defaults", "_embedded", "_fields", "_item", "_items", "_open", "_properties",
                 "_required", "_rest", "_written", "atomic", "divided", "keys")  # fmt: skip

    def __init__(self, schema: Mapping[str, Any], *, embedded: bool = False) -> None:
        self.atomic = schema.get("x-kubernetes-map-type") == "atomic"
        """Whether an object is owned as a whole."""
        self.divided, self.keys = _list_rules(schema)
        """Whether the items of a list are owned one by one, and the fields that name them if they are objects."""
        self._properties: Mapping[str, Any] = schema.get("properties") or _NOTHING
        self._required: Sequence[str] = schema.get("required") or ()
        additional = schema.get("additionalProperties")
        self._additional: Mapping[str, Any] = additional if isinstance(additional, Mapping) else _NOTHING
        preserves = schema.get("x-kubernetes-preserve-unknown-fields") is True
        self._open = bool(additional) or preserves or not self._properties
        self._embedded = embedded or schema.get("x-kubernetes-embedded-resource") is True
        self._items: Mapping[str, Any] = schema.get("items") or _NOTHING
        fields = self._items.get("properties") or _NOTHING
        self._defaults = {key: fields[key].get("default") for key in self.keys if key in fields}
        self._fields: dict[str, Structure] = {}
        self._rest: Structure | None = None
        self._item: Structure | None = None
        self._written: Object | None = None

    def names(self, field: str) -> bool:
        """Whether `field` is the name of a field, not the key of a map; maps own their keys, objects do not."""
        return not self._open or field in self._properties or (self._embedded and field == "metadata")

    def child(self, field: str) -> Structure:
        found = self._fields.get(field)
        if found is not None:
            return found
        if self._embedded and field == "metadata":
            found = Structure(_OBJECT_META)
        elif field in self._properties:
            found = Structure(self._properties[field])
        else:
            # Not cached by name: users choose the keys of maps, and there is no bound on them.
            self._rest = self._rest or Structure(self._additional)
            return self._rest
        self._fields[field] = found
        return found

    @property
    def item(self) -> Structure:
        self._item = self._item or Structure(self._items)
        return self._item

    def index(self, items: Sequence[Any]) -> dict[str, list[Any]] | None:
        """The items of a divided list by path element; None if an item lacks its keys: the list is one value."""
        found: dict[str, list[Any]] = {}
        for item in items:
            element = self.element(item)
            if element is None:
                return None
            found.setdefault(element, []).append(item)
        return found

    def element(self, item: Any) -> str | None:
        """The path element of an item of a divided list; None if it lacks its keys."""
        if not self.keys:
            return value_element(item) if isinstance(item, str | int | float) else None
        if not isinstance(item, dict):
            return None
        values = []
        for key in self.keys:
            value = item.get(key)
            if value is None:
                value = self._defaults.get(key)
            if not isinstance(value, str | int | float):
                return None
            values.append(value)
        return key_element(self.keys, *values)

    def blank(self) -> Object:
        """An empty object of a built-in kind, with the fields that are always written; not to be changed."""
        if self._written is not None:
            return self._written
        written: Object = {}
        for name, schema in self._properties.items():
            default = schema.get("default")
            if default == {} and schema.get("properties") and name not in _FILLED_IN:
                written[name] = self.child(name).blank()
            elif name in self._required and (schema.get("type") == "array" or default in ("", 0)):
                written[name] = default
        self._written = written
        return written


def _list_rules(schema: Mapping[str, Any]) -> tuple[bool, tuple[str, ...]]:
    match schema.get("x-kubernetes-list-type"):
        case "map":
            return True, tuple(sorted(schema.get("x-kubernetes-list-map-keys") or ()))
        case "set":
            return True, ()
        case None if str(schema.get("x-kubernetes-patch-strategy", "")).startswith("merge"):
            key = schema.get("x-kubernetes-patch-merge-key")
            return True, (key,) if key else ()
        case _:
            return False, ()


_structures: Final[dict[int, tuple[Mapping[str, Any], Structure]]] = {}
_MOST_STRUCTURES: Final = 2048


def structure_of(schema: Mapping[str, Any]) -> Structure:
    """The structure of a kind; cached as long as the schema is the same value."""
    known = _structures.get(id(schema))
    if known is None:
        if len(_structures) >= _MOST_STRUCTURES:
            _structures.clear()
        # The schema is kept too, so that its id is not reused.
        known = _structures[id(schema)] = (schema, Structure(schema, embedded=True))
    return known[1]


# --- The fields of objects ---

_UNOWNED: Final = frozenset({"apiVersion", "kind"})
_UNOWNED_METADATA: Final = frozenset(
    {"name", "namespace", "creationTimestamp", "selfLink", "uid", "clusterName", "generation", "managedFields",
     "resourceVersion"}
)  # fmt: skip


def ownable(obj: Mapping[str, Any]) -> Object:
    """An object without the fields that have no owner: its identity, and what only the server writes."""
    metadata = obj.get("metadata") or {}
    owned = {name: value for name, value in obj.items() if name not in _UNOWNED}
    owned["metadata"] = {name: value for name, value in metadata.items() if name not in _UNOWNED_METADATA}
    return owned


def of_object(obj: Mapping[str, Any], structure: Structure) -> Tree:
    """The fields of an applied configuration: its leaves, the items of its lists, the keys of its maps."""
    owned = ownable(obj)
    if not owned["metadata"]:
        del owned["metadata"]
    return _fields_of(owned, structure)


def _fields_of(fields: Mapping[str, Any], structure: Structure) -> Tree:
    tree: Tree = {}
    for name, value in fields.items():
        child = structure.child(name)
        below = _below(value, child)
        if below is None:
            tree[f"f:{name}"] = LEAF
        elif not structure.names(name):
            tree[f"f:{name}"] = {SELF: LEAF, **below} if below else LEAF
        elif below:
            tree[f"f:{name}"] = below
    return tree


def _below(value: Any, structure: Structure) -> Tree | None:
    """What a value is divided into; None if it is a leaf."""
    if isinstance(value, dict) and value and not structure.atomic:
        return _fields_of(value, structure)
    if isinstance(value, list) and structure.divided and (index := structure.index(value)) is not None:
        return {element: _item_fields(items, structure.item) for element, items in index.items()}
    return None


def _item_fields(items: list[Any], structure: Structure) -> Tree:
    """An item is owned itself; of a duplicate item, nothing else is."""
    below = _below(items[0], structure) if len(items) == 1 else None
    return {SELF: LEAF, **below} if below else LEAF


@dataclass(frozen=True, slots=True)
class Comparison:
    """How two objects differ: what is new or has another value, and what is gone."""

    changed: Tree
    removed: Tree


def compare(old: Mapping[str, Any], new: Mapping[str, Any], structure: Structure) -> Comparison:
    """Compare two objects, of which only the `ownable` part counts; the order of divided lists does not."""
    changed: Tree = {}
    removed: Tree = {}
    _compare_fields(ownable(old), ownable(new), structure, changed, removed)
    return Comparison(changed, removed)


def _compare_fields(
    old: Mapping[str, Any], new: Mapping[str, Any], structure: Structure, changed: Tree, removed: Tree
) -> None:
    for name, value in new.items():
        if name not in old:
            changed[f"f:{name}"] = _whole(value, structure.child(name))
        elif (before := old[name]) != value:
            _compare_values(f"f:{name}", before, value, structure.child(name), changed, removed)
    for name, value in old.items():
        if name not in new:
            removed[f"f:{name}"] = _whole(value, structure.child(name))


def _compare_values(element: str, old: Any, new: Any, structure: Structure, changed: Tree, removed: Tree) -> None:
    """Record under `element` how two values differ."""
    parts = _parts(old, new, structure)
    if parts is None:
        _replace(element, _whole(old, structure), _whole(new, structure), changed, removed)
        return
    more, less = parts
    if more:
        changed[element] = more
    if less:
        removed[element] = less


def _replace(element: str, old: Tree, new: Tree, changed: Tree, removed: Tree) -> None:
    """Record that a value replaced another, and that the children of the old one are gone."""
    changed[element] = new
    gone = {name: node for name, node in old.items() if name != SELF}
    if gone:
        removed[element] = gone


def _parts(old: Any, new: Any, structure: Structure) -> tuple[Tree, Tree] | None:
    """How the parts of two values differ; None if they are not divided alike."""
    changed: Tree = {}
    removed: Tree = {}
    if _comparable(dict, old, new) and not structure.atomic:
        _compare_fields(old or {}, new or {}, structure, changed, removed)
        return changed, removed
    if not (_comparable(list, old, new) and structure.divided):
        return None
    before, after = structure.index(old or ()), structure.index(new or ())
    if before is None or after is None:
        return None
    inner = structure.item
    for element, items in after.items():
        others = before.get(element)
        if others is None:
            changed[element] = _whole_item(items, inner)
        elif others != items and len(items) == len(others) == 1:
            _compare_values(element, others[0], items[0], inner, changed, removed)
        elif others != items:
            _replace(element, _whole_item(others, inner), _whole_item(items, inner), changed, removed)
    removed |= {element: _whole_item(items, inner) for element, items in before.items() if element not in after}
    return changed, removed


def _comparable(kind: type, old: Any, new: Any) -> bool:
    """Whether both are of the same JSON type; null counts as empty, unless both are empty."""
    return bool(old or new) and all(value is None or isinstance(value, kind) for value in (old, new))


_DIVISIBLE: Final = frozenset({dict, list})


def _whole(value: Any, structure: Structure) -> Tree:
    """The fields of a value that is added or removed."""
    if not value:
        return LEAF
    if isinstance(value, dict):
        if structure.atomic:
            return LEAF
        node: Tree = {SELF: LEAF}
        for name, item in value.items():
            node["f:" + name] = _whole(item, structure.child(name)) if type(item) in _DIVISIBLE else LEAF
        return node
    if isinstance(value, list) and structure.divided and (index := structure.index(value)) is not None:
        item = structure.item
        return {SELF: LEAF, **{element: _whole_item(items, item) for element, items in index.items()}}
    return LEAF


def _whole_item(items: list[Any], structure: Structure) -> Tree:
    return _whole(items[0], structure) if len(items) == 1 else LEAF
