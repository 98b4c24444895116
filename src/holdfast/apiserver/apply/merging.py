"""Merging an applied configuration into an object, and taking back what is no longer applied.

Objects and maps are merged field by field, sets and keyed lists item by item, all else is replaced.  What the
configuration has stands in its order; what only the live object has stays where it stood among it.  This module must
not know managers: the caller says which fields to remove.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

from holdfast.apiserver.apply.fieldsets import LEAF, SELF, Tree, is_member, show
from holdfast.apiserver.apply.ownership import Structure
from holdfast.apiserver.resources import Object
from holdfast.meta.errors import MalformedError


class UnmergeableError(MalformedError):
    """A configuration with list items that cannot be identified by their keys."""


def check(config: Mapping[str, Any], structure: Structure) -> None:
    """Refuse merged lists with items that lack their keys or have the same keys."""
    _check_fields(config, structure, ())


_Place: TypeAlias = "tuple[()] | tuple[_Place, str]"
"""The place of a value, as its container's place and a path element; put into words for an error alone."""


def _check_fields(fields: Mapping[str, Any], structure: Structure, place: _Place) -> None:
    for name, value in fields.items():
        if isinstance(value, dict | list):
            _check_value(value, structure.child(name), (place, f"f:{name}"))


def _check_value(value: Any, structure: Structure, place: _Place) -> None:
    if isinstance(value, dict) and not structure.atomic:
        _check_fields(value, structure, place)
    if not isinstance(value, list) or not structure.divided:
        return
    seen = set()
    for index, item in enumerate(value):
        element = structure.element(item)
        if element is None:
            keys = " and ".join(structure.keys)
            wanted = f"an object with {keys}" if keys else "a string, number or boolean"
            raise UnmergeableError(f"{_shown(place)}: element {index}: items of this list are merged; write {wanted}")
        if element in seen:
            raise UnmergeableError(f"{_shown(place)}: duplicate entries for key {show((element,))}")
        seen.add(element)
        _check_value(item, structure.item, (place, element))


def _shown(place: _Place) -> str:
    elements: list[str] = []
    while place:
        place, element = place
        elements.append(element)
    return show(tuple(reversed(elements)))


def merge(live: Object, config: Mapping[str, Any], structure: Structure) -> Object:
    """`live` with the fields of `config`; shares unchanged values with `live`, and nothing with `config`."""
    merged = dict(live)
    for name, value in config.items():
        merged[name] = _merged(merged[name], value, structure.child(name)) if name in merged else _copied(value)
    return merged


def _merged(live: Any, config: Any, structure: Structure) -> Any:
    """A null in the configuration claims a field without changing its value."""
    if not live:
        return _copied(config)
    if isinstance(live, dict) and isinstance(config, dict | None) and not structure.atomic:
        return merge(live, config or {}, structure)
    if isinstance(live, list) and isinstance(config, list | None) and structure.divided:
        return _merged_list(live, config or [], structure)
    return _copied(config)


def _merged_list(live: list[Any], config: list[Any], structure: Structure) -> list[Any]:
    before, wanted = structure.index(live), structure.index(config)
    if before is None or wanted is None:
        return [_copied(item) for item in config]
    items: list[Any] = []
    for element in _order(before, list(wanted)):
        standing = before.get(element, [])
        if element not in wanted:
            items += standing
        elif len(standing) == 1:
            items.append(_merged(standing[0], wanted[element][0], structure.item))
        else:
            items.append(_copied(wanted[element][0]))
    return items


def _order(live: Iterable[str], config: Sequence[str]) -> list[str]:
    """The order of the configuration; an item that is only live stays before the shared item that follows it."""
    known, placed, order = set(live), 0, list[str]()
    wanted = set(config)
    shared_places = (place for place, element in enumerate(config) if element in known)
    shared = next(shared_places, None)
    for element in live:
        if element not in wanted:
            order.append(element)
        elif shared is not None and config[shared] == element:
            order += config[placed : shared + 1]
            placed, shared = shared + 1, next(shared_places, None)
    return [*order, *config[placed:]]


def _copied(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _copied(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_copied(item) for item in value]
    return value


def with_parents(tree: Tree, structure: Structure) -> Tree:
    """The set with every named field above its members: a manager that sets a field also keeps its parents."""
    whole: Tree = {}
    for element, node in tree.items():
        name = element[2:]
        if not node:
            whole[element] = LEAF
        elif element.startswith("f:"):
            below = with_parents(node, structure.child(name))
            whole[element] = {SELF: LEAF, **below} if structure.names(name) else below
        else:
            whole[element] = with_parents(node, structure.item)
    return whole


def without(obj: Object, gone: Tree, structure: Structure, *, kept: Tree) -> Object:
    """The object without the members of `gone`, their children, and parents that this empties and are not `kept`."""
    rest: Object = {}
    for name, value in obj.items():
        node = gone.get(f"f:{name}")
        if node is None:
            rest[name] = value
        elif not is_member(node):
            keeper = kept.get(f"f:{name}")
            left = _value_without(value, node, structure.child(name), kept=keeper or LEAF)
            if left or (keeper is not None and is_member(keeper)):
                rest[name] = left
    return rest


def _value_without(value: Any, gone: Tree, structure: Structure, *, kept: Tree) -> Any:
    if isinstance(value, dict):
        return without(value, gone, structure, kept=kept)
    if not isinstance(value, list):
        return value
    items = []
    for item in value:
        element = structure.element(item) or ""
        node = gone.get(element)
        if node is None:
            items.append(item)
        elif not is_member(node):
            items.append(_value_without(item, node, structure.item, kept=kept.get(element, LEAF)))
    return items
