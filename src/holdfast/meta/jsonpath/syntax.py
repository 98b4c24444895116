"""The syntax of kubectl's JSONPath: what an expression is made of, and how it is read.

`parse` turns a text into a tuple of nodes, which are frozen values; it accepts what `jsonpath` describes and says of
anything else what is wrong and where. This module must not know how nodes are evaluated or printed.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, NoReturn, TypeAlias

OPERATORS: Final = ("==", "!=", "<", "<=", ">", ">=")
"""How a filter may compare."""


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


# --- What an expression is made of; `at` is the place in the expression ---


@dataclass(frozen=True, slots=True)
class Field:
    name: str
    at: int


@dataclass(frozen=True, slots=True)
class Wildcard:
    """`.*`: the members of an object or the items of a list."""


@dataclass(frozen=True, slots=True)
class Descent:
    """`..`: the value and all that it holds, as far as they hold something."""


@dataclass(frozen=True, slots=True)
class Index:
    index: int
    at: int


@dataclass(frozen=True, slots=True)
class Slice:
    start: int | None
    stop: int | None
    step: int
    at: int


@dataclass(frozen=True, slots=True)
class Union:
    branches: tuple[tuple[Step, ...], ...]


@dataclass(frozen=True, slots=True)
class Literal:
    value: str | int | float | bool


@dataclass(frozen=True, slots=True)
class Filter:
    left: Operand
    operator: str
    """Empty for a filter that asks only whether there is something."""
    right: Operand
    at: int


Step: TypeAlias = Field | Wildcard | Descent | Index | Slice | Union | Filter
Operand: TypeAlias = Literal | tuple[Step, ...]


@dataclass(frozen=True, slots=True)
class Text:
    text: str


@dataclass(frozen=True, slots=True)
class Print:
    steps: tuple[Step, ...]


@dataclass(frozen=True, slots=True)
class Range:
    steps: tuple[Step, ...]
    body: tuple[Node, ...]


Node: TypeAlias = Text | Print | Range


def parse(expression: str) -> tuple[Node, ...]:
    """Read a template (with braces) or a single path (without)."""
    parser = _Parser(expression)
    return parser.template() if "{" in expression else (Print(parser.relaxed_path()),)


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


class _Parser:
    """Reads one expression from left to right."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.position = 0
        self.depth = 0

    def template(self) -> tuple[Node, ...]:
        # Each open range waits with its steps and its place for the nodes of its body.
        open_ranges: list[tuple[tuple[Step, ...], int]] = []
        bodies: list[list[Node]] = [[]]
        while self.position < len(self.text):
            start = self.position
            if self.text[start] != "{":
                brace = self.text.find("{", start)
                self.position = len(self.text) if brace < 0 else brace
                bodies[-1].append(Text(self.text[start : self.position]))
                continue
            self.position += 1
            self._skip_spaces()
            if self._take_word("range"):
                open_ranges.append((self._steps(_NAME_ENDS), start))
                bodies.append([])
            elif self._take_word("end"):
                if not open_ranges:
                    self._fail("{end} without a {range …} before it", start)
                bodies[-2].append(Range(open_ranges.pop()[0], tuple(bodies.pop())))
            elif self._peek() in ("'", '"'):
                bodies[-1].append(Text(self._quoted()))
            else:
                bodies[-1].append(Print(self._steps(_NAME_ENDS)))
            self._skip_spaces()
            self._close("}", start)
        if open_ranges:
            self._fail("this {range} has no {end}", open_ranges[-1][1])
        return tuple(bodies[0])

    def relaxed_path(self) -> tuple[Step, ...]:
        self._skip_spaces()
        leading = (self._field(_NAME_ENDS),) if self._at_name(_NAME_ENDS) else ()
        steps = (*leading, *self._steps(_NAME_ENDS))
        if self.position < len(self.text):
            self._fail(f"unexpected {self._peek()!r}")
        return steps

    def _steps(self, name_ends: frozenset[str]) -> tuple[Step, ...]:
        """Read a path up to the first character that cannot belong to it."""
        steps: list[Step] = []
        self._skip_spaces()
        if self._peek() in ("@", "$"):
            self.position += 1
        while True:
            self._skip_spaces()
            if self._peek() == "[":
                steps += self._bracket()
                continue
            if self._take(".."):
                if steps and isinstance(steps[-1], Descent):
                    self._fail("'..' twice in a row: one descent already finds everything below", self.position - 2)
                steps.append(Descent())
            elif not self._take("."):
                if self._at_name(name_ends):
                    self._fail(f"unexpected {self._peek()!r}: a field starts with a dot")
                return tuple(steps)
            if self._at_name(name_ends):
                steps.append(self._field(name_ends))

    def _field(self, name_ends: frozenset[str]) -> Field | Wildcard:
        start = self.position
        name = self._name(name_ends)
        return Wildcard() if name == "*" else Field(name, start)

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

    def _bracket(self) -> tuple[Step, ...]:
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
        return branches[0] if len(branches) == 1 else (Union(tuple(branches)),)

    def _selector(self, start: int) -> tuple[Step, ...]:
        """Read one of the alternatives between brackets."""
        at = self.position
        steps: tuple[Step, ...]
        if self._peek() in ("'", '"'):
            steps = self._quoted_fields()
        elif self._take("*"):
            steps = (Slice(None, None, 1, start),)
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
                steps = (Index(int(first), start),)
            else:
                steps = (Slice(_int_or_none(first), _int_or_none(second), step, start),)
        self._skip_spaces()
        return steps

    def _quoted_fields(self) -> tuple[Step, ...]:
        """Read a quoted name; its dots separate fields, as kubectl has it."""
        start = self.position
        quote = self._peek()
        self.position += 1
        ends = frozenset({quote, "."})
        fields: list[Step] = [self._field(ends)]
        while self._take("."):
            fields.append(self._field(ends))
        self._close(quote, start)
        return tuple(fields)

    def _filter(self, start: int) -> Filter:
        if not self._take("("):
            self._fail("a filter is written [?(…)]")
        self.depth += 1
        if self.depth > _MAX_DEPTH:
            self._fail(f"filters are nested more than {_MAX_DEPTH} deep", start)
        left, operator = self._operand(), ""
        right: Operand = ()
        if match := _OPERATOR.match(self.text, self.position):
            operator = match.group()
            if operator not in OPERATORS:
                known = f"the operators are {' '.join(OPERATORS)}"
                self._fail(f"unknown operator {operator!r}: {_OPERATOR_HINTS.get(operator, known)}")
            self.position = match.end()
            right = self._operand()
        if self._peek() in ("&", "|"):
            self._fail(_OPERATOR_HINTS["&&"])
        self._close(")", start)
        self._skip_spaces()
        self._close("]", start)
        self.depth -= 1
        return Filter(left, operator, right, start)

    def _operand(self) -> Operand:
        self._skip_spaces()
        operand: Operand
        if self._peek() in ("'", '"'):
            operand = Literal(self._quoted())
        elif match := _NUMBER.match(self.text, self.position):
            self.position = match.end()
            operand = Literal(float(match.group()) if match.group(1) else int(match.group()))
        elif self._take_word("true"):
            operand = Literal(True)
        elif self._take_word("false"):
            operand = Literal(False)
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
