"""Label and field selectors: read, matched, joined and printed.

Both are sets of requirements that must all hold, so two selectors that say the same in another order, or with
``==`` for ``=``, are equal, and printing gives the one canonical text: ``parse(str(s)) == s``. This module must
not know where labels and objects come from, nor which fields a server can select by.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final, NoReturn, TypeVar, assert_never

from holdfast.meta import names
from holdfast.meta.errors import MalformedError

_Container = TypeVar("_Container", list[Any], dict[str, Any])


class SelectorError(MalformedError):
    """A selector that cannot be understood: `where`, a character of the text or a path, and the `problem` there."""

    def __init__(self, where: str, problem: str) -> None:
        super().__init__(where, problem)
        self.where = where
        self.problem = problem

    def __str__(self) -> str:
        return f"{self.where}: {self.problem}"


class Operator(Enum):
    """How a requirement compares; the values are the words of ``matchExpressions``."""

    IN = "In"
    NOT_IN = "NotIn"
    EXISTS = "Exists"
    DOES_NOT_EXIST = "DoesNotExist"
    GREATER_THAN = "Gt"
    LESS_THAN = "Lt"


@dataclass(frozen=True, slots=True)
class Requirement:
    """One condition on one label. Equality is `IN` with one value."""

    key: str
    operator: Operator
    values: frozenset[str] = frozenset()

    def matches(self, labels: Mapping[str, str]) -> bool:
        value = labels.get(self.key)
        match self.operator:
            case Operator.IN:
                return value in self.values
            case Operator.NOT_IN:
                return value not in self.values
            case Operator.EXISTS:
                return value is not None
            case Operator.DOES_NOT_EXIST:
                return value is None
            case Operator.GREATER_THAN | Operator.LESS_THAN:
                return self._compares(value)
            case _:
                assert_never(self.operator)

    def _compares(self, value: str | None) -> bool:
        actual = _integer(value or "")
        bound = _integer(min(self.values))
        if actual is None or bound is None:
            return False
        return actual > bound if self.operator is Operator.GREATER_THAN else actual < bound

    def __str__(self) -> str:
        values = ",".join(sorted(self.values))
        match self.operator:
            case Operator.IN:
                return f"{self.key}={values}" if len(self.values) == 1 else f"{self.key} in ({values})"
            case Operator.NOT_IN:
                return f"{self.key}!={values}" if len(self.values) == 1 else f"{self.key} notin ({values})"
            case Operator.EXISTS:
                return self.key
            case Operator.DOES_NOT_EXIST:
                return f"!{self.key}"
            case Operator.GREATER_THAN:
                return f"{self.key}>{values}"
            case Operator.LESS_THAN:
                return f"{self.key}<{values}"
            case _:
                assert_never(self.operator)


@dataclass(frozen=True, slots=True)
class LabelSelector:
    """Requirements that labels must all meet; none at all is met by everything."""

    requirements: frozenset[Requirement] = frozenset()

    @classmethod
    def parse(cls, text: str) -> LabelSelector:
        """Read ``a=b, c!=d, e in (x,y), f notin (z), g, !h, i>3``; the empty text selects everything."""
        return cls(frozenset(_LabelReader(text).requirements()))

    @classmethod
    def from_object(cls, selector: Mapping[str, Any] | None, path: str = "selector") -> LabelSelector:
        """Read ``{matchLabels: ..., matchExpressions: ...}``; None selects nothing, ``{}`` everything.

        `path` is where the object stands, for errors. Unknown fields are refused, since a misspelt one would
        select everything.
        """
        return NOTHING if selector is None else cls(frozenset(_object_requirements(selector, path)))

    def matches(self, labels: Mapping[str, str] | None) -> bool:
        """Whether `labels` meet every requirement; absent labels are none."""
        return all(requirement.matches(labels or {}) for requirement in self.requirements)

    def __and__(self, other: LabelSelector) -> LabelSelector:
        return LabelSelector(self.requirements | other.requirements)

    def __str__(self) -> str:
        return ",".join(sorted(map(str, self.requirements)))


EVERYTHING: Final = LabelSelector()

# A contradiction instead of a special case: it joins, prints and travels to any server like other selectors.
NOTHING: Final = LabelSelector(
    frozenset({Requirement("nothing", Operator.EXISTS), Requirement("nothing", Operator.DOES_NOT_EXIST)})
)


_SYMBOLS: Final = "!=(),<>"
_TOKENS: Final = re.compile(r"[ \t\r\n]*(!=|==|[!=(),<>]|[^ \t\r\n!=(),<>]*)")
_TEXT_OPERATORS: Final = {
    "=": Operator.IN,
    "==": Operator.IN,
    "in": Operator.IN,
    "!=": Operator.NOT_IN,
    "notin": Operator.NOT_IN,
    ">": Operator.GREATER_THAN,
    "<": Operator.LESS_THAN,
}


class _LabelReader:
    """A reader of the text form that looks one token ahead; the end of the text is the empty token.

    What it expects, it says in the words of Kubernetes' own parser.
    """

    def __init__(self, text: str) -> None:
        self._tokens = _TOKENS.finditer(text)
        self._current = next(self._tokens)

    @property
    def _token(self) -> str:
        return self._current[1]

    @property
    def _where(self) -> str:
        return _place("label", self._current.string, self._current.start(1))

    def requirements(self) -> list[Requirement]:
        if not self._token:
            return []
        found = [self._requirement("!, identifier, or 'end of string'")]
        while self._token:
            self._skip(",", "',' or 'end of string'")
            found.append(self._requirement("identifier after ','"))
        return found

    def _requirement(self, expected: str) -> Requirement:
        if self._token == "!":
            self._take()
            return Requirement(self._name(names.label_key, "identifier after '!'"), Operator.DOES_NOT_EXIST)
        key = self._name(names.label_key, expected)
        if self._token in ("", ","):
            return Requirement(key, Operator.EXISTS)
        operator = _TEXT_OPERATORS.get(self._token)
        if operator is None:
            self._fail("in, notin, =, ==, !=, gt, lt")
        if self._take() in ("in", "notin"):
            return Requirement(key, operator, self._list())
        if operator in (Operator.GREATER_THAN, Operator.LESS_THAN) and _integer(self._token) is None:
            self._fail("an integer")
        return Requirement(key, operator, frozenset({self._value("identifier", ends=("", ","))}))

    def _list(self) -> frozenset[str]:
        """``(a,b)``; a missing value is the empty one, so ``()`` holds just that."""
        self._skip("(", "'('")
        values = {self._listed()}
        while self._token == ",":
            self._take()
            values.add(self._listed())
        self._skip(")", "',' or ')'")
        return frozenset(values)

    def _listed(self) -> str:
        return self._value("',' or ')'", ends=(",", ")"))

    def _value(self, expected: str, *, ends: tuple[str, ...]) -> str:
        return "" if self._token in ends else self._name(names.label_value, expected)

    def _name(self, validate: Callable[[str], list[str]], expected: str) -> str:
        if not self._token or self._token[0] in _SYMBOLS:
            self._fail(expected)
        _checked(self._token, validate, where=self._where)
        return self._take()

    def _skip(self, token: str, expected: str) -> None:
        if self._token != token:
            self._fail(expected)
        self._take()

    def _take(self) -> str:
        token = self._token
        self._current = next(self._tokens)
        return token

    def _fail(self, expected: str) -> NoReturn:
        raise SelectorError(self._where, f"found '{self._token}', expected: {expected}")


_OBJECT_OPERATORS: Final = {
    operator.value: operator for operator in (Operator.IN, Operator.NOT_IN, Operator.EXISTS, Operator.DOES_NOT_EXIST)
}


def _object_requirements(selector: Mapping[str, Any], path: str) -> Iterator[Requirement]:
    _check_fields(selector, ("matchLabels", "matchExpressions"), path=path)
    for key, value in _optional(selector, "matchLabels", of=dict, path=path).items():
        _checked(key, names.label_key, where=f"{path}.matchLabels")
        _checked(value, names.label_value, where=f"{path}.matchLabels[{key}]")
        yield Requirement(key, Operator.IN, frozenset({value}))
    for index, expression in enumerate(_optional(selector, "matchExpressions", of=list, path=path)):
        yield _object_requirement(expression, f"{path}.matchExpressions[{index}]")


def _object_requirement(expression: Mapping[str, Any], path: str) -> Requirement:
    _check_fields(expression, ("key", "operator", "values"), path=path)
    key = _checked(expression.get("key"), names.label_key, where=f"{path}.key")
    word = expression.get("operator")
    operator = _OBJECT_OPERATORS.get(word) if isinstance(word, str) else None
    if operator is None:
        raise SelectorError(f"{path}.operator", f"{word!r} is not one; write {', '.join(_OBJECT_OPERATORS)}")
    values = _optional(expression, "values", of=list, path=path)
    for index, value in enumerate(values):
        _checked(value, names.label_value, where=f"{path}.values[{index}]")
    if operator in (Operator.IN, Operator.NOT_IN) and not values:
        raise SelectorError(f"{path}.values", f"must not be empty when the operator is {operator.value}")
    if operator in (Operator.EXISTS, Operator.DOES_NOT_EXIST) and values:
        raise SelectorError(f"{path}.values", f"must be empty when the operator is {operator.value}")
    return Requirement(key, operator, frozenset(values))


@dataclass(frozen=True, slots=True)
class FieldTerm:
    """One field that must, or if `negated` must not, have a value. An absent field has the empty one."""

    field: str
    value: str
    negated: bool = False

    def __str__(self) -> str:
        escaped = re.sub(r"([\\,=])", r"\\\1", self.value)
        return f"{self.field}{'!=' if self.negated else '='}{escaped}"


@dataclass(frozen=True, slots=True)
class FieldSelector:
    """Terms that an object's fields must all meet; none at all is met by everything."""

    terms: frozenset[FieldTerm] = frozenset()

    @classmethod
    def parse(cls, text: str) -> FieldSelector:
        """Read ``metadata.name=x,status.phase!=Running``; in values ``\\`` escapes ``,``, ``=`` and itself."""
        return cls(frozenset(_field_term(match) for match in _FIELD_TERMS.finditer(text) if match[0]))

    @property
    def fields(self) -> frozenset[str]:
        """The fields it speaks of, for a server to refuse those that it does not index."""
        return frozenset(term.field for term in self.terms)

    def matches(self, obj: Mapping[str, Any]) -> bool:
        """Whether an object's own fields meet every term."""
        return self.matches_fields({field: field_value(obj, field) for field in self.fields})

    def matches_fields(self, values: Mapping[str, str]) -> bool:
        """Whether fields given by their dotted paths meet every term."""
        return all((values.get(term.field, "") == term.value) != term.negated for term in self.terms)

    def __and__(self, other: FieldSelector) -> FieldSelector:
        return FieldSelector(self.terms | other.terms)

    def __str__(self) -> str:
        return ",".join(sorted(map(str, self.terms)))


def field_value(obj: Mapping[str, Any], path: str) -> str:
    """The scalar at a dotted path as a selector compares it; empty where there is none."""
    value: Any = obj
    for step in path.split("."):
        value = value.get(step) if isinstance(value, Mapping) else None
    match value:
        case bool():
            return "true" if value else "false"
        case str() | int() | float():
            return str(value)
        case _:
            return ""


_FIELD_TERMS: Final = re.compile(r"(?:\\.|[^,])*", re.DOTALL)
_FIELD_TERM: Final = re.compile(r"([^\s!=\\]+)(!=|==|=)(.*)", re.DOTALL)
_FIELD_VALUE: Final = re.compile(r"(?:[^\\=]|\\[\\,=])*")


def _field_term(term: re.Match[str]) -> FieldTerm:
    match = _FIELD_TERM.fullmatch(term[0])
    if match is None:
        problem = f"can't understand '{term[0]}'; write field=value or field!=value, such as 'metadata.name=web'"
        raise SelectorError(_place("field", term.string, term.start()), problem)
    field, operator, escaped = match.groups()
    sound = _FIELD_VALUE.match(escaped)
    end = sound.end() if sound else 0
    if end < len(escaped):
        problem = f"found '{escaped[end:]}'; in a value write '\\=', '\\,' and '\\\\' for '=', ',' and '\\'"
        raise SelectorError(_place("field", term.string, term.start() + match.start(3) + end), problem)
    return FieldTerm(field, re.sub(r"\\(.)", r"\1", escaped), negated=operator == "!=")


def _place(which: str, text: str, offset: int) -> str:
    return f"{which} selector {text!r}, character {offset + 1}"


def _checked(value: object, validate: Callable[[str], list[str]], *, where: str) -> str:
    if not isinstance(value, str):
        raise SelectorError(where, f"must be a string, not {value!r}; quote it")
    problems = validate(value)
    if problems:
        raise SelectorError(where, f"'{value}': {'; '.join(problems)}")
    return value


def _check_fields(value: object, known: tuple[str, ...], *, path: str) -> None:
    if not isinstance(value, Mapping):
        raise SelectorError(path, f"must be an object of {', '.join(known)}, not {value!r}")
    for unknown in sorted(value.keys() - set(known)):
        raise SelectorError(f"{path}.{unknown}", f"is not a field; write {' or '.join(known)}")


def _optional(fields: Mapping[str, Any], name: str, *, of: type[_Container], path: str) -> _Container:
    value = fields.get(name)
    if value is None:
        return of()
    if not isinstance(value, of):
        noun = "a list" if of is list else "an object"
        raise SelectorError(f"{path}.{name}", f"must be {noun}, not {value!r}")
    return value


def _integer(text: str) -> int | None:
    """A label's value as a signed 64-bit integer, if it is one."""
    if not re.fullmatch(r"[+-]?[0-9]{1,63}", text):
        return None
    number = int(text)
    return number if -(2**63) <= number < 2**63 else None
