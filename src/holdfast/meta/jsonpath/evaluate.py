r"""JSONPath as kubectl speaks it: for `-o jsonpath`, `--sort-by`, custom columns and the printer columns of CRDs.

An expression with braces is a template: text, paths in braces, `{range .items[*]}…{end}`, and text in quotes such as
`{"\n"}`. Without braces it is one path, whose first dot may be left out (`metadata.name`).

A path has fields (`.spec.replicas`, `.labels.app\.kubernetes\.io/name`, `['spec']`), indices and slices (`[0]`,
`[-1]`, `[0:2]`, `[::2]`), `[*]` and `.*`, unions (`[0,2]`, `['a','b']`), descent (`..name`) and filters
(`[?(@.state=="Ready")]`, `[?(@.ready)]`). As in kubectl, and unlike elsewhere: `$` and `@` both mean the value at
hand, dots in a quoted name separate fields unless escaped, an index or slice beyond the end is an error, and there
are no regular expressions and no `&&`. Filters may hold filters, which kubectl cannot read. JSON is printed with
sorted keys and without escapes for HTML.

A compiled path is a frozen value and `compile` remembers them. How expressions are read is in `jsonpath_syntax`.
This module must not know kinds, tables or columns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from operator import eq, ge, gt, le, lt, ne
from typing import Any, Final, NoReturn

import msgspec

from holdfast.meta.jsonpath.syntax import (
    Descent,
    Field,
    Filter,
    Index,
    InvalidExpression,
    JSONPathError,
    Literal,
    Node,
    Operand,
    Print,
    Range,
    Slice,
    Step,
    Text,
    Union,
    Wildcard,
    parse,
)

__all__ = ["EvaluationError", "InvalidExpression", "JSONPathError", "MissingKey", "Path", "compile", "text_of"]

# JSONPathError             .expression, .position, .problem
#  ├─ InvalidExpression     the expression cannot be read
#  └─ EvaluationError       the expression does not fit the value
#      └─ MissingKey        a field is not there, and missing_ok is off


class EvaluationError(JSONPathError):
    """The expression does not fit the value it was given."""


class MissingKey(EvaluationError):
    """A field does not exist in any of the values it was looked for in."""


@dataclass(frozen=True, slots=True)
class Path:
    """A compiled expression; made by `compile`."""

    expression: str
    nodes: tuple[Node, ...]

    def find(self, obj: Any, *, missing_ok: bool = True) -> list[Any]:
        """Return all values that the paths of the expression select, in order, without the text between them."""
        found = _run(self.nodes, obj, _Context(self.expression, missing_ok))
        return [value for group in found if not isinstance(group, str) for value in group]

    def first(self, obj: Any) -> Any:
        """Return the first value, None if there is none or the expression does not fit: what a printer column shows."""
        try:
            return next(iter(self.find(obj)), None)
        except EvaluationError:
            return None

    def render(self, obj: Any, *, missing_ok: bool = True) -> str:
        """Return the text that kubectl prints: the values of one path are separated by spaces."""
        found = _run(self.nodes, obj, _Context(self.expression, missing_ok))
        return "".join(group if isinstance(group, str) else " ".join(map(text_of, group)) for group in found)


@lru_cache(maxsize=1024)
def compile(expression: str) -> Path:
    """Compile a template (with braces) or a single path (without).

    >>> compile("{.metadata.name}").render({"metadata": {"name": "web"}})
    'web'
    >>> compile("spec.ports[*].port").find({"spec": {"ports": [{"port": 80}, {"port": 443}]}})
    [80, 443]
    """
    return Path(expression, parse(expression))


_encode_sorted: Final = msgspec.json.Encoder(order="sorted").encode


def text_of(value: Any) -> str:
    """Return a value as kubectl prints it: strings bare, objects and lists as JSON, whole floats without a fraction."""
    if isinstance(value, str):
        return value
    if isinstance(value, float):
        return str(int(value)) if value.is_integer() and abs(value) < 1e21 else repr(value)
    return _encode_sorted(value).decode()


# --- Evaluating ---

_COMPARE: Final[dict[str, Callable[[Any, Any], bool]]] = {"==": eq, "!=": ne, "<": lt, "<=": le, ">": gt, ">=": ge}


@dataclass(frozen=True, slots=True)
class _Context:
    expression: str
    missing_ok: bool

    def fail(self, problem: str, at: int, error: type[EvaluationError] = EvaluationError) -> NoReturn:
        raise error(problem, expression=self.expression, position=at)


def _run(nodes: tuple[Node, ...], obj: Any, context: _Context) -> Iterator[str | list[Any]]:
    """Yield the text and the groups of values of a template, in the order in which they are printed."""
    for node in nodes:
        match node:
            case Text(text):
                yield text
            case Print(steps):
                yield _walk([obj], steps, context)
            case Range(steps, body):
                for item in _walk([obj], steps, context):
                    yield from _run(body, item, context)


def _walk(values: list[Any], steps: tuple[Step, ...], context: _Context) -> list[Any]:
    for step in steps:
        values = _select(values, step, context)
    return values


def _select(values: list[Any], step: Step, context: _Context) -> list[Any]:
    match step:
        case Field(name, at):
            found = [value[name] for value in values if isinstance(value, dict) and name in value]
            if values and not found and not context.missing_ok:
                context.fail(f"{name!r} is not there", at, MissingKey)
            return found
        case Wildcard():
            return [member for value in values for member in _members(value)]
        case Descent():
            return [found for value in values for found in _descend(value)]
        case Index(index, at):
            return [_item(items, index, at, context) for items in _lists(values, at, context)]
        case Slice():
            return [item for items in _lists(values, step.at, context) for item in _cut(items, step, context)]
        case Union(branches):
            return [found for branch in branches for found in _walk(values, branch, context)]
        case Filter():
            return [
                item for items in _lists(values, step.at, context) for item in items if _passes(item, step, context)
            ]


def _members(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return list(value.values())
    return value if isinstance(value, list) else []


def _descend(value: Any) -> Iterator[Any]:
    if members := _members(value):
        yield value
        for member in members:
            yield from _descend(member)


def _lists(values: list[Any], at: int, context: _Context) -> Iterator[list[Any]]:
    for value in values:
        if isinstance(value, list):
            yield value
        elif value is not None:
            context.fail(f"only a list can be indexed, sliced or filtered, and this is {_excerpt(value)}", at)


def _item(items: list[Any], index: int, at: int, context: _Context) -> Any:
    if not -len(items) <= index < len(items):
        context.fail(f"index {index} is out of bounds: the list has {len(items)} items", at)
    return items[index]


def _cut(items: list[Any], cut: Slice, context: _Context) -> list[Any]:
    size = len(items)
    start = 0 if cut.start is None else cut.start + size if cut.start < 0 else cut.start
    stop = size if cut.stop is None else cut.stop + size if cut.stop < 0 else cut.stop
    if start == stop:
        return []
    if not 0 <= start < size or not 0 <= stop <= size:
        context.fail(f"the slice reaches out of bounds: the list has {size} items", cut.at)
    if start > stop:
        context.fail(f"the slice starts at {start}, after its end at {stop}", cut.at)
    return items[start : stop : cut.step]


def _passes(item: Any, test: Filter, context: _Context) -> bool:
    if not test.operator:
        try:
            return bool(_operand_values(item, test.left, context))
        except EvaluationError:
            return False
    left = _operand_values(item, test.left, context)
    right = _operand_values(item, test.right, context)
    if len(left) > 1 or len(right) > 1:
        context.fail("a filter compares one value with one value, and here a side has several", test.at)
    if not left or not right or left[0] is None or right[0] is None:
        return False
    if not _comparable(left[0], right[0], test.operator):
        problem = f"cannot compare {_excerpt(left[0])} {test.operator} {_excerpt(right[0])}"
        context.fail(f"{problem}: text is quoted, numbers, true and false are not", test.at)
    return _COMPARE[test.operator](left[0], right[0])


def _operand_values(item: Any, operand: Operand, context: _Context) -> list[Any]:
    return [operand.value] if isinstance(operand, Literal) else _walk([item], operand, context)


def _comparable(left: Any, right: Any, operator: str) -> bool:
    if isinstance(left, bool) or isinstance(right, bool):
        return isinstance(left, bool) and isinstance(right, bool) and operator in ("==", "!=")
    return (isinstance(left, str) and isinstance(right, str)) or (
        isinstance(left, (int, float)) and isinstance(right, (int, float))
    )


def _excerpt(value: Any) -> str:
    text = _encode_sorted(value).decode()
    return text if len(text) <= 60 else text[:57] + "..."
