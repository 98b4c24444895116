r"""JSONPath as kubectl speaks it: for `-o jsonpath`, `--sort-by`, custom columns and the printer columns of CRDs.

An expression with braces is a template: text, paths in braces, `{range .items[*]}…{end}`, and text in quotes such as
`{"\n"}`. Without braces it is one path, whose first dot may be left out (`metadata.name`).

A path has fields (`.spec.replicas`, `.labels.app\.kubernetes\.io/name`, `['spec']`), indices and slices (`[0]`,
`[-1]`, `[0:2]`, `[::2]`), `[*]` and `.*`, unions (`[0,2]`, `['a','b']`), descent (`..name`) and filters
(`[?(@.state=="Ready")]`, `[?(@.ready)]`). As in kubectl, and unlike elsewhere: `$` and `@` both mean the value at
hand, dots in a quoted name separate fields unless escaped, an index or slice beyond the end is an error, and there
are no regular expressions and no `&&`. Filters may hold filters, which kubectl cannot read. JSON is printed with
sorted keys and without escapes for HTML.

A compiled path is a frozen value and `compile` remembers them. This module must not know kinds, tables or columns.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from operator import eq, ge, gt, le, lt, ne
from typing import Any, Final, NoReturn, TypeAlias

import msgspec

__all__ = ["EvaluationError", "InvalidExpression", "JSONPathError", "MissingKey", "Path", "compile", "text_of"]

# JSONPathError             .expression, .position, .problem
#  ├─ InvalidExpression     the expression cannot be read
#  └─ EvaluationError       the expression does not fit the value
#      └─ MissingKey        a field is not there, and missing_ok is off


class JSONPathError(ValueError):
    """An expression failed; the message shows it with a caret at the place."""

    def __init__(self, problem: str, *, expression: str, position: int) -> None:
        line_start = expression.rfind("\n", 0, position) + 1
        line = expression[line_start:].partition("\n")[0].replace("\t", " ")
        super().__init__(f"{problem}\n  {line}\n  {' ' * (position - line_start)}^")
        self.problem = problem
        self.expression = expression
        self.position = position


class InvalidExpression(JSONPathError):
    """The expression cannot be read."""


class EvaluationError(JSONPathError):
    """The expression does not fit the value it was given."""


class MissingKey(EvaluationError):
    """A field does not exist in any of the values it was looked for in."""


# --- What an expression is made of; `at` is the place in the expression ---


@dataclass(frozen=True, slots=True)
class _Field:
    name: str
    at: int


@dataclass(frozen=True, slots=True)
class _Wildcard:
    """`.*`: the members of an object or the items of a list."""


@dataclass(frozen=True, slots=True)
class _Descent:
    """`..`: the value and all that it holds, as far as they hold something."""


@dataclass(frozen=True, slots=True)
class _Index:
    index: int
    at: int


@dataclass(frozen=True, slots=True)
class _Slice:
    start: int | None
    stop: int | None
    step: int
    at: int


@dataclass(frozen=True, slots=True)
class _Union:
    branches: tuple[tuple[_Step, ...], ...]


@dataclass(frozen=True, slots=True)
class _Literal:
    value: str | int | float | bool


@dataclass(frozen=True, slots=True)
class _Filter:
    left: _Operand
    operator: str
    """Empty for a filter that asks only whether there is something."""
    right: _Operand
    at: int


_Step: TypeAlias = _Field | _Wildcard | _Descent | _Index | _Slice | _Union | _Filter
_Operand: TypeAlias = _Literal | tuple[_Step, ...]


@dataclass(frozen=True, slots=True)
class _Text:
    text: str


@dataclass(frozen=True, slots=True)
class _Print:
    steps: tuple[_Step, ...]


@dataclass(frozen=True, slots=True)
class _Range:
    steps: tuple[_Step, ...]
    body: tuple[_Node, ...]


_Node: TypeAlias = _Text | _Print | _Range


@dataclass(frozen=True, slots=True)
class Path:
    """A compiled expression; made by `compile`."""

    expression: str
    nodes: tuple[_Node, ...]

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
    parser = _Parser(expression)
    return Path(expression, parser.template() if "{" in expression else (_Print(parser.relaxed_path()),))


_encode_sorted: Final = msgspec.json.Encoder(order="sorted").encode


def text_of(value: Any) -> str:
    """Return a value as kubectl prints it: strings bare, objects and lists as JSON, whole floats without a fraction."""
    if isinstance(value, str):
        return value
    if isinstance(value, float):
        return str(int(value)) if value.is_integer() and abs(value) < 1e21 else repr(value)
    return _encode_sorted(value).decode()


# --- Reading ---

_NAME_ENDS: Final = frozenset(" \t\r\n.,[]$@{}")
_FILTER_NAME_ENDS: Final = _NAME_ENDS | frozenset("=!<>)(&|")
_SLICE: Final = re.compile(r"(-?[0-9]{1,9})?(:(-?[0-9]{1,9})?)?(:(-?[0-9]{1,9})?)?")
_NUMBER: Final = re.compile(r"[+-]?[0-9]{1,18}(\.[0-9]{1,18})?")
_MAX_DEPTH: Final = 16  # of filters in filters; more is no question but an attack on the stack
_OPERATOR: Final = re.compile(r"[=!<>~&|]+")
_ESCAPES: Final = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "f": "\f", "v": "\v"}
_UNICODE_ESCAPES: Final = {"x": 2, "u": 4, "U": 8}
_OPERATOR_HINTS: Final = {
    "=": "write ==",
    "=~": "kubectl's JSONPath has no regular expressions",
    "&&": "a filter makes one comparison, kubectl's JSONPath has no && and no ||",
    "||": "a filter makes one comparison, kubectl's JSONPath has no && and no ||",
}
_OPERATORS: Final[dict[str, Callable[[Any, Any], bool]]] = {"==": eq, "!=": ne, "<": lt, "<=": le, ">": gt, ">=": ge}


class _Parser:
    """Reads one expression from left to right."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.position = 0
        self.depth = 0

    def template(self) -> tuple[_Node, ...]:
        # Each open range waits with its steps and its place for the nodes of its body.
        open_ranges: list[tuple[tuple[_Step, ...], int]] = []
        bodies: list[list[_Node]] = [[]]
        while self.position < len(self.text):
            start = self.position
            if self.text[start] != "{":
                brace = self.text.find("{", start)
                self.position = len(self.text) if brace < 0 else brace
                bodies[-1].append(_Text(self.text[start : self.position]))
                continue
            self.position += 1
            self._skip_spaces()
            if self._take_word("range"):
                open_ranges.append((self._steps(_NAME_ENDS), start))
                bodies.append([])
            elif self._take_word("end"):
                if not open_ranges:
                    self._fail("{end} without a {range …} before it", start)
                bodies[-2].append(_Range(open_ranges.pop()[0], tuple(bodies.pop())))
            elif self._peek() in ("'", '"'):
                bodies[-1].append(_Text(self._quoted()))
            else:
                bodies[-1].append(_Print(self._steps(_NAME_ENDS)))
            self._skip_spaces()
            self._close("}", start)
        if open_ranges:
            self._fail("this {range} has no {end}", open_ranges[-1][1])
        return tuple(bodies[0])

    def relaxed_path(self) -> tuple[_Step, ...]:
        self._skip_spaces()
        leading = (self._field(_NAME_ENDS),) if self._at_name(_NAME_ENDS) else ()
        steps = (*leading, *self._steps(_NAME_ENDS))
        if self.position < len(self.text):
            self._fail(f"unexpected {self._peek()!r}")
        return steps

    def _steps(self, name_ends: frozenset[str]) -> tuple[_Step, ...]:
        """Read a path up to the first character that cannot belong to it."""
        steps: list[_Step] = []
        self._skip_spaces()
        if self._peek() in ("@", "$"):
            self.position += 1
        while True:
            self._skip_spaces()
            if self._peek() == "[":
                steps += self._bracket()
                continue
            if self._take(".."):
                if steps and isinstance(steps[-1], _Descent):
                    self._fail("'..' twice in a row: one descent already finds everything below", self.position - 2)
                steps.append(_Descent())
            elif not self._take("."):
                if self._at_name(name_ends):
                    self._fail(f"unexpected {self._peek()!r}: a field starts with a dot")
                return tuple(steps)
            if self._at_name(name_ends):
                steps.append(self._field(name_ends))

    def _field(self, name_ends: frozenset[str]) -> _Field | _Wildcard:
        start = self.position
        name = self._name(name_ends)
        return _Wildcard() if name == "*" else _Field(name, start)

    def _name(self, ends: frozenset[str]) -> str:
        """Read a name; a backslash takes away the meaning of the character after it."""
        letters = []
        while self._at_name(ends):
            letter = self._peek()
            if letter == "\\":
                self.position += 1
                letter = self._peek()
                if not letter:
                    self._fail("a backslash needs a character after it", self.position - 1)
            letters.append(letter)
            self.position += 1
        return "".join(letters)

    def _bracket(self) -> tuple[_Step, ...]:
        start = self.position
        self.position += 1
        self._skip_spaces()
        if self._take("?"):
            return (self._filter(start),)
        branches = [self._selector(start)]
        while self._take(","):
            self._skip_spaces()
            branches.append(self._selector(start))
        self._close("]", start)
        return branches[0] if len(branches) == 1 else (_Union(tuple(branches)),)

    def _selector(self, start: int) -> tuple[_Step, ...]:
        """Read one of the alternatives between brackets."""
        at = self.position
        steps: tuple[_Step, ...]
        if self._peek() in ("'", '"'):
            steps = self._quoted_fields()
        elif self._take("*"):
            steps = (_Slice(None, None, 1, start),)
        else:
            match = _SLICE.match(self.text, at)
            if match is None or match.end() == at:
                self._fail("expected an index, a slice such as 0:2, '*', a quoted name or a filter ?(…)")
            self.position = match.end()
            first, colon, second, _, third = match.groups()
            step = int(third or 1)
            if step < 1:
                self._fail("the step of a slice must be 1 or more", at)
            if colon is None:
                steps = (_Index(int(first), start),)
            else:
                steps = (_Slice(_int_or_none(first), _int_or_none(second), step, start),)
        self._skip_spaces()
        return steps

    def _quoted_fields(self) -> tuple[_Step, ...]:
        """Read a quoted name; its dots separate fields, as kubectl has it."""
        start = self.position
        quote = self._peek()
        self.position += 1
        ends = frozenset({quote, "."})
        fields: list[_Step] = [self._field(ends)]
        while self._take("."):
            fields.append(self._field(ends))
        self._close(quote, start)
        return tuple(fields)

    def _filter(self, start: int) -> _Filter:
        if not self._take("("):
            self._fail("a filter is written [?(…)]")
        self.depth += 1
        if self.depth > _MAX_DEPTH:
            self._fail(f"filters are nested more than {_MAX_DEPTH} deep", start)
        left, operator = self._operand(), ""
        right: _Operand = ()
        if match := _OPERATOR.match(self.text, self.position):
            operator = match.group()
            if operator not in _OPERATORS:
                known = f"the operators are {' '.join(_OPERATORS)}"
                self._fail(f"unknown operator {operator!r}: {_OPERATOR_HINTS.get(operator, known)}")
            self.position = match.end()
            right = self._operand()
        if self._peek() in ("&", "|"):
            self._fail(_OPERATOR_HINTS["&&"])
        self._close(")", start)
        self._skip_spaces()
        self._close("]", start)
        self.depth -= 1
        return _Filter(left, operator, right, start)

    def _operand(self) -> _Operand:
        self._skip_spaces()
        operand: _Operand
        if self._peek() in ("'", '"'):
            operand = _Literal(self._quoted())
        elif match := _NUMBER.match(self.text, self.position):
            self.position = match.end()
            operand = _Literal(float(match.group()) if match.group(1) else int(match.group()))
        elif self._take_word("true"):
            operand = _Literal(True)
        elif self._take_word("false"):
            operand = _Literal(False)
        elif self._peek() in ("@", "$", ".", "["):
            operand = self._steps(_FILTER_NAME_ENDS)
        else:
            self._fail('expected a path such as @.name, a "text", a number, true or false')
        self._skip_spaces()
        return operand

    def _quoted(self) -> str:
        start = self.position
        quote = self.text[start]
        self.position += 1
        letters = []
        while (letter := self._peek()) != quote:
            if not letter:
                self._fail("a quote is open here and not closed", start)
            self.position += 1
            letters.append(self._escape() if letter == "\\" else letter)
        self.position += 1
        return "".join(letters)

    def _escape(self) -> str:
        """Read what follows a backslash in quotes."""
        letter = self._peek()
        self.position += 1
        if size := _UNICODE_ESCAPES.get(letter, 0):
            digits = self.text[self.position : self.position + size]
            code = int(digits, 16) if re.fullmatch(rf"[0-9a-fA-F]{{{size}}}", digits) else -1
            if not 0 <= code <= 0x10FFFF or 0xD800 <= code <= 0xDFFF:
                self._fail(f"\\{letter} needs {size} hex digits of a character", self.position - 2)
            self.position += size
            return chr(code)
        if letter not in _ESCAPES and letter not in ("\\", '"', "'", "/"):
            self._fail(f"unknown escape \\{letter}", self.position - 2)
        return _ESCAPES.get(letter, letter)

    def _peek(self) -> str:
        return self.text[self.position : self.position + 1]

    def _take(self, token: str) -> bool:
        if not self.text.startswith(token, self.position):
            return False
        self.position += len(token)
        return True

    def _take_word(self, word: str) -> bool:
        after = self.text[self.position + len(word) : self.position + len(word) + 1]
        return (not after or after in _FILTER_NAME_ENDS) and self._take(word)

    def _close(self, token: str, opened: int) -> None:
        if not self._take(token):
            if self._peek():
                self._fail(f"expected {token!r}, not {self._peek()!r}")
            self._fail(f"this is never closed: expected {token!r} at the end", opened)

    def _at_name(self, ends: frozenset[str]) -> bool:
        return self._peek() != "" and self._peek() not in ends

    def _skip_spaces(self) -> None:
        while self._peek().isspace():
            self.position += 1

    def _fail(self, problem: str, at: int | None = None) -> NoReturn:
        raise InvalidExpression(problem, expression=self.text, position=self.position if at is None else at)


def _int_or_none(digits: str | None) -> int | None:
    return int(digits) if digits else None


# --- Evaluating ---


@dataclass(frozen=True, slots=True)
class _Context:
    expression: str
    missing_ok: bool

    def fail(self, problem: str, at: int, error: type[EvaluationError] = EvaluationError) -> NoReturn:
        raise error(problem, expression=self.expression, position=at)


def _run(nodes: tuple[_Node, ...], obj: Any, context: _Context) -> Iterator[str | list[Any]]:
    """Yield the text and the groups of values of a template, in the order in which they are printed."""
    for node in nodes:
        match node:
            case _Text(text):
                yield text
            case _Print(steps):
                yield _walk([obj], steps, context)
            case _Range(steps, body):
                for item in _walk([obj], steps, context):
                    yield from _run(body, item, context)


def _walk(values: list[Any], steps: tuple[_Step, ...], context: _Context) -> list[Any]:
    for step in steps:
        values = _select(values, step, context)
    return values


def _select(values: list[Any], step: _Step, context: _Context) -> list[Any]:
    match step:
        case _Field(name, at):
            found = [value[name] for value in values if isinstance(value, dict) and name in value]
            if values and not found and not context.missing_ok:
                context.fail(f"{name!r} is not there", at, MissingKey)
            return found
        case _Wildcard():
            return [member for value in values for member in _members(value)]
        case _Descent():
            return [found for value in values for found in _descend(value)]
        case _Index(index, at):
            return [_item(items, index, at, context) for items in _lists(values, at, context)]
        case _Slice():
            return [item for items in _lists(values, step.at, context) for item in _cut(items, step, context)]
        case _Union(branches):
            return [found for branch in branches for found in _walk(values, branch, context)]
        case _Filter():
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


def _cut(items: list[Any], cut: _Slice, context: _Context) -> list[Any]:
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


def _passes(item: Any, test: _Filter, context: _Context) -> bool:
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
    return _OPERATORS[test.operator](left[0], right[0])


def _operand_values(item: Any, operand: _Operand, context: _Context) -> list[Any]:
    return [operand.value] if isinstance(operand, _Literal) else _walk([item], operand, context)


def _comparable(left: Any, right: Any, operator: str) -> bool:
    if isinstance(left, bool) or isinstance(right, bool):
        return isinstance(left, bool) and isinstance(right, bool) and operator in ("==", "!=")
    return (isinstance(left, str) and isinstance(right, str)) or (
        isinstance(left, (int, float)) and isinstance(right, (int, float))
    )


def _excerpt(value: Any) -> str:
    text = _encode_sorted(value).decode()
    return text if len(text) <= 60 else text[:57] + "..."
