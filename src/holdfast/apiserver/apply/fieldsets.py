"""Sets of fields, in the notation of managedFields (FieldsV1).

A set is kept as it is written, a tree of path elements (`FieldsV1`)::

    f:spec                      a field
    k:{"name":"main"}           the item of a keyed list
    v:"finalizer.example"       the item of a set
    i:0                         an item by its place, which only clients write
    .                           the node itself, beside what is below it

    {"f:data": {"f:x": {}}, "f:spec": {".": {}, "f:replicas": {}}}  is  {.data.x, .spec, .spec.replicas}

A node without children is a member of the set; one with children is a member if it has ``.`` among them.  The root
never is.  Trees are values: functions share their parts and never change them.

This module must not know schemas, objects or managers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any, Final, TypeAlias

import msgspec

from holdfast.meta.errors import MalformedError

Tree: TypeAlias = "dict[str, Tree]"
Path: TypeAlias = tuple[str, ...]

LEAF: Final[Tree] = {}
SELF: Final = "."


class FieldSetError(MalformedError):
    """A tree that is not a set of fields."""


# --- The algebra of sets ---


def union(left: Tree, right: Tree) -> Tree:
    """What is in either."""
    if not left or not right:
        return left or right
    joined = dict(left)
    for element, node in right.items():
        mine = joined.get(element)
        joined[element] = node if mine is None else _joined(mine, node)
    return joined


def union_all(trees: Iterable[Tree]) -> Tree:
    """What is in any of them, in time linear in all of them together."""
    nodes: dict[str, list[Tree]] = {}
    for tree in trees:
        for element, node in tree.items():
            nodes.setdefault(element, []).append(node)
    return {element: each[0] if len(each) == 1 else _all_joined(each) for element, each in nodes.items()}


def difference(left: Tree, right: Tree) -> Tree:
    """What is in the left and not in the right; an owner of a node does not own its children."""
    if not right:
        return left
    kept: Tree = {}
    for element, node in left.items():
        other = right.get(element)
        rest = node if other is None else _without(node, other)
        if rest is not None:
            kept[element] = rest
    return kept


def intersection(left: Tree, right: Tree) -> Tree:
    """What is in both."""
    return {
        element: common
        for element, node in left.items()
        if element in right and (common := _common(node, right[element])) is not None
    }


def paths(tree: Tree) -> Iterator[Path]:
    """The members, in canonical order: those of a level before those below it."""
    yield from _paths(tree, ())


def _paths(tree: Tree, above: Path) -> Iterator[Path]:
    elements = [element for element in _in_order(tree) if element != SELF]
    yield from ((*above, element) for element in elements if is_member(tree[element]))
    for element in elements:
        yield from _paths(tree[element], (*above, element))


def is_member(node: Tree) -> bool:
    """Whether a node of a tree is in the set itself, not only something below it."""
    return not node or SELF in node


def _joined(left: Tree, right: Tree) -> Tree:
    if left is right:
        return left
    if not left or not right:
        node = left or right
        return node if is_member(node) else {SELF: LEAF, **node}
    return union(left, right)


def _all_joined(nodes: list[Tree]) -> Tree:
    below = union_all(nodes)
    return below if all(nodes) or is_member(below) else {SELF: LEAF, **below}


def _without(left: Tree, right: Tree) -> Tree | None:
    taken = is_member(right)
    if not left:
        return None if taken else left
    kept = difference(left, right)
    if taken and SELF in kept:
        kept = {element: node for element, node in kept.items() if element != SELF}
    return _node(kept)


def _common(left: Tree, right: Tree) -> Tree | None:
    kept = intersection(left, right)
    if is_member(left) and is_member(right):
        kept = {SELF: LEAF, **kept}
    return _node(kept)


def _node(kept: Tree) -> Tree | None:
    """A node in canonical form: None if it is empty, a leaf if it has only itself."""
    if not kept:
        return None
    return LEAF if len(kept) == 1 and SELF in kept else kept


# --- Reading and writing ---


def parse(value: Any) -> Tree:
    """Parse a tree that a client wrote, with every element in canonical form."""
    if not isinstance(value, Mapping):
        raise FieldSetError(f"fieldsV1: must be an object, not {value!r}")
    tree = {element: node for element, node in _parsed(value).items() if element != SELF}
    return ordered(tree)


def ordered(tree: Tree) -> Tree:
    """A copy of the tree in canonical order."""
    elements = _in_order(tree)
    if not any(tree.values()):
        return dict.fromkeys(elements, LEAF)
    return {element: ordered(tree[element]) if tree[element] else LEAF for element in elements}


def show(path: Path) -> str:
    """A path as people read it: ``.spec.containers[name="main"].image``."""
    return "".join(map(_shown, path))


def _parsed(tree: Mapping[str, Any]) -> Tree:
    read: Tree = {}
    for element, node in tree.items():
        if not isinstance(node, Mapping):
            raise FieldSetError(f"fieldsV1: {element!r} must hold an object, not {node!r}")
        below = _parsed(node)
        if not node or below:
            read[_canonical(element)] = _node(below) or LEAF
    return read


def _canonical(element: str) -> str:
    if element == SELF or element.startswith("f:"):
        return element
    kind, _, text = element.partition(":")
    try:
        match kind:
            case "i":
                return f"i:{int(text)}"
            case "v":
                return f"v:{_json(msgspec.json.decode(text))}"
            case "k":
                key = msgspec.json.decode(text, type=dict[str, Any])
                return f"k:{_json(dict(sorted(key.items())))}"
    except ValueError as error:
        raise FieldSetError(f"fieldsV1: {element!r} cannot be read: {error}") from error
    raise FieldSetError(
        f"fieldsV1: {element!r} is no path element; write 'f:name', 'k:{{\"name\":\"x\"}}' or 'v:\"x\"'"
    )


def _shown(element: str) -> str:
    kind, _, text = element.partition(":")
    if kind == "f":
        return f".{text}"
    if kind == "k":
        return "[" + ",".join(f"{name}={_json(value)}" for name, value in msgspec.json.decode(text).items()) + "]"
    return f"[={text}]" if kind == "v" else f"[{text}]"


def _in_order(tree: Tree) -> list[str]:
    elements = sorted(tree)
    # A node's own mark and fields sort as text; only lists need a closer look.
    return elements if not elements or elements[-1][0] in ".f" else sorted(elements, key=_rank)


@lru_cache(maxsize=4096)
def _rank(element: str) -> tuple[Any, ...]:
    kind, _, text = element.partition(":")
    match kind:
        case "k":
            key = msgspec.json.decode(text)
            return (2, *((name, *_value_rank(value)) for name, value in key.items()))
        case "v":
            return (3, _value_rank(msgspec.json.decode(text)))
        case "i":
            return (4, int(text))
        case _:
            return (0 if element == SELF else 1, text)


def _value_rank(value: Any) -> tuple[Any, ...]:
    match value:
        case bool():
            return (2, value)
        case int() | float():
            return (0, value)
        case str():
            return (1, value)
        case _:
            return (3, _json(value))


_encode: Final = msgspec.json.Encoder(order="deterministic").encode


def _json(value: Any) -> str:
    """JSON as Go writes it: whole floats without a fraction, and HTML characters escaped."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    text = _encode(value).decode()
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


# --- Path elements ---


@lru_cache(maxsize=16384, typed=True)
def value_element(value: str | float) -> str:
    """The item of a set."""
    return f"v:{_json(value)}"


@lru_cache(maxsize=16384, typed=True)
def key_element(names: tuple[str, ...], *values: str | float) -> str:
    """The item of a keyed list; `names` are sorted."""
    pairs = ",".join(f"{_json(name)}:{_json(value)}" for name, value in zip(names, values, strict=True))
    return f"k:{{{pairs}}}"
