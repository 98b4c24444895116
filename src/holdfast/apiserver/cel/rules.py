"""Validation rules of schemas (``x-kubernetes-validations``): checked when a kind is defined, evaluated on every write.

::

    rule_problems(schema, path)   what is wrong with the rules of a definition
    rules = compile_rules(schema) once for each kind
    rules.check(obj, old)         what the rules refuse

Rules are checked with the types of the schema and evaluated on plain values.  The engine bounds the cost of one
evaluation to some ten thousand loop steps; the time given to `check` bounds the cost of all rules for one object.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Final

from cel_expr_python import cel
from cel_expr_python.ext.ext_bindings import ExtBindings
from cel_expr_python.ext.ext_encoders import ExtEncoders
from cel_expr_python.ext.ext_math import ExtMath
from cel_expr_python.ext.ext_optional import ExtOptional
from cel_expr_python.ext.ext_strings import ExtStrings

from holdfast.apiserver.cel import library
from holdfast.apiserver.cel.types import Convert, Types, converter
from holdfast.meta.errors import OMITTED, FieldError
from holdfast.meta.fieldpaths import find
from holdfast.meta.patches.json import json_equal
from holdfast.meta.schemas.constraints import Key, Path, name_of
from holdfast.meta.schemas.nodes import EMBEDDED, LIST_TYPE, MAP_KEYS
from holdfast.meta.schemas.structural import RULES, children, has_rules

_Schema = Mapping[str, Any]
_Rule = Mapping[str, Any]

_SECONDS: Final = 0.5
"""The processor's time for the rules of one object."""

_LONGEST_MESSAGE: Final = 5 * 1024
_MAKE_OPTIONAL: Final = "cel.bind(oldSelf, hasOldSelf ? optional.of(oldSelf) : optional.none(),\n{rule}\n)"
"""The engine accepts no optional as an argument, so a rule with ``optionalOldSelf`` is wrapped to make its own."""

_OVER_BUDGET: Final = "validation failed due to running out of cost budget, no further validation rules will be run"


@cache
def _extensions(*, checking: bool) -> list[Any]:
    kubernetes = library.for_checking() if checking else library.for_running()
    return [ExtStrings(), ExtMath(), ExtOptional(), ExtBindings(), ExtEncoders(), kubernetes]


@cache
def _runner() -> Any:
    """The environment in which rules are evaluated, with dynamic types."""
    variables = {"self": cel.Type.DYN, "oldSelf": cel.Type.DYN, "hasOldSelf": cel.Type.BOOL}
    return cel.NewEnv(variables=variables, extensions=_extensions(checking=False))


@cache
def _without_old() -> Any:
    """An environment without oldSelf."""
    return cel.NewEnv(variables={"self": cel.Type.DYN}, extensions=_extensions(checking=False))


class _CompileError(Exception):
    """A rule that the engine does not accept."""


def _compiled(environment: Any, text: str) -> Any:
    try:
        return environment.compile(text)
    except RuntimeError as error:  # the engine raises no other type
        raise _CompileError(re.sub(r"^[A-Z_]+: | \[[A-Z_]+\]$", "", str(error))) from error


def _uses_old(rule: _Rule) -> bool:
    """Whether a rule uses oldSelf."""
    try:
        _compiled(_without_old(), rule["rule"])
    except _CompileError:
        return True
    return False


def _text_of(rule: _Rule) -> str:
    return _MAKE_OPTIONAL.format(rule=rule["rule"]) if rule.get("optionalOldSelf") else str(rule["rule"])


# --- definitions -------------------------------------------------------------


def rule_problems(schema: _Schema, path: str) -> list[FieldError]:
    """Rules that do not compile, or are not allowed at their place; the schema must be structural."""
    if not has_rules(schema):
        return []
    return _checked(schema, path, Types(schema), root=True, uncorrelatable="")


def _checked(schema: _Schema, path: str, types: Types, *, root: bool, uncorrelatable: str) -> list[FieldError]:
    found: list[FieldError] = []
    rules = schema.get(RULES, ())
    if rules:
        kind = cel.Type(types.type_of(schema, root=root))
        environment = cel.NewEnv(
            descriptor_pool=types.pool,
            variables={"self": kind, "oldSelf": kind, "hasOldSelf": cel.Type.BOOL},
            extensions=_extensions(checking=True),
        )
        for index, rule in enumerate(rules):
            at = f"{path}.{RULES}[{index}]"
            found += _rule_problems(rule, at, environment, uncorrelatable=uncorrelatable)
    keyed = schema.get(LIST_TYPE) == "map"
    for _, step, inner in children(schema):
        below = uncorrelatable or (path if step == ".items" and not keyed else "")
        embedded = bool(inner.get(EMBEDDED))
        found += _checked(inner, f"{path}{step}", types, root=embedded, uncorrelatable=below)
    return found


def _rule_problems(rule: _Rule, path: str, environment: Any, *, uncorrelatable: str) -> list[FieldError]:
    found: list[FieldError] = []
    for word, text, wanted in (
        ("rule", _text_of(rule), cel.Type.BOOL),
        ("messageExpression", rule.get("messageExpression", ""), cel.Type.STRING),
    ):
        if text:
            try:
                result = _compiled(environment, text).return_type()
            except _CompileError as error:
                found.append(FieldError.invalid(f"{path}.{word}", rule, detail=f"compilation failed: {error}"))
                continue
            if result not in (wanted, cel.Type.DYN):
                expected = "bool" if word == "rule" else "string"
                detail = f"{'cel expression' if word == 'rule' else word} must evaluate to a {expected}"
                found.append(FieldError.invalid(f"{path}.{word}", rule, detail=detail))
    if found:
        return found
    if not _uses_old(rule):
        if "optionalOldSelf" in rule:
            detail = "may not be set if oldSelf is not used in rule"
            found.append(FieldError.invalid(f"{path}.optionalOldSelf", rule["optionalOldSelf"], detail=detail))
    elif uncorrelatable:
        detail = f"oldSelf cannot be used on the uncorrelatable portion of the schema within {uncorrelatable}"
        found.append(FieldError.invalid(f"{path}.rule", rule["rule"], detail=detail))
    return found


# --- objects -----------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Program:
    """A compiled rule."""

    rule: _Rule
    run: Any
    message: Any
    uses_old: bool
    at: str
    """The fieldPath of the rule, relative to its value."""

    @property
    def words(self) -> str:
        """The name of the rule in errors about the rule itself."""
        return str(self.rule.get("message") or self.rule["rule"]).strip()


@dataclass(frozen=True, slots=True)
class _Node:
    """A node of a schema that has rules, or whose children have."""

    programs: tuple[_Program, ...]
    broken: tuple[str, ...]
    convert: Convert | None
    shows_value: bool
    properties: Mapping[str, _Node]
    additional: _Node | None
    items: _Node | None
    map_keys: tuple[tuple[str, Any], ...]
    """The keys of a list that is a map, with their defaults."""


@dataclass(slots=True)
class _Run:
    """The state of the evaluation for one object."""

    deadline: float
    clock: Callable[[], float]
    found: list[FieldError] = field(default_factory=list)
    over: bool = False


@dataclass(frozen=True, slots=True)
class Rules:
    """The compiled rules of a schema; see `compile_rules`."""

    root: _Node | None

    def check(
        self, obj: Any, old: Any = None, *, seconds: float = _SECONDS, clock: Callable[[], float] = time.thread_time
    ) -> list[FieldError]:
        """Evaluate the rules; returns the problems.  `old` is the object that an update replaces.

        `seconds` bounds the processor's time: on a machine that is busy, or was suspended, the object is as valid.

        A rule without oldSelf is not evaluated for values that the update does not change (ratcheting).
        """
        if self.root is None:
            return []
        run = _Run(clock() + seconds, clock)
        _judge(self.root, obj, old, path=(), same_as=(obj, old) if old is not None else None, run=run)
        return run.found


def compile_rules(schema: _Schema) -> Rules:
    """Compile the rules of a schema.  A rule that does not compile refuses every object, with that as the reason."""
    return Rules(_node(schema, root=True))


def _node(schema: _Schema, *, root: bool = False) -> _Node | None:
    if not has_rules(schema):
        return None
    programs: list[_Program] = []
    broken: list[str] = []
    for rule in schema.get(RULES, ()):
        try:
            programs.append(_program(schema, rule))
        except _CompileError as error:
            broken.append(f"rule compile error: {error}")
    properties = {name: _node(inner) for name, inner in schema.get("properties", {}).items()}
    additional, items = schema.get("additionalProperties"), schema.get("items")
    keys = schema.get(MAP_KEYS, ()) if schema.get(LIST_TYPE) == "map" else ()
    entries = (items or {}).get("properties", {})
    return _Node(
        programs=tuple(programs),
        broken=tuple(broken),
        convert=converter(schema, root=root or bool(schema.get(EMBEDDED))),
        shows_value=schema.get("type") not in ("object", "array"),
        properties={name: node for name, node in properties.items() if node is not None},
        additional=_node(additional) if isinstance(additional, Mapping) else None,
        items=_node(items) if isinstance(items, Mapping) else None,
        map_keys=tuple((key, entries.get(key, {}).get("default")) for key in keys),
    )


def _program(schema: _Schema, rule: _Rule) -> _Program:
    at = find(schema, rule["fieldPath"])[0] if rule.get("fieldPath") else ""
    message = rule.get("messageExpression")
    return _Program(
        rule=rule,
        run=_compiled(_runner(), _text_of(rule)),
        message=_compiled(_runner(), message) if message else None,
        uses_old=_uses_old(rule),
        at=at if at.startswith("[") or not at else f".{at}",
    )


def _judge(node: _Node, value: Any, old: Any, *, path: Path, same_as: tuple[Any, Any] | None, run: _Run) -> None:
    """Evaluate the rules of a value and of its children.

    `same_as` is the nearest value, here or above, whose old self is known, with that old self.
    """
    if value is None or run.over:
        return
    if node.programs or node.broken:
        _judge_here(node, value, old, path=path, same_as=same_as, run=run)
    if isinstance(value, dict):
        before = old if isinstance(old, dict) else {}
        for key, item in value.items():
            inner, step = node.properties.get(key), key
            if inner is None:
                if node.additional is None:
                    continue
                inner, step = node.additional, Key(key)
            known = before.get(key)
            pair = (item, known) if known is not None else same_as
            _judge(inner, item, known, path=(path, step), same_as=pair, run=run)
    elif isinstance(value, list) and node.items is not None:
        by_key = _by_key(node, old)
        for index, item in enumerate(value):
            known = by_key.get(_key_of(node, item)) if by_key else None
            pair = (item, known) if known is not None else same_as
            _judge(node.items, item, known, path=(path, index), same_as=pair, run=run)


def _by_key(node: _Node, old: Any) -> dict[str, Any]:
    """The old entries of a list of type map, by their keys; items of other lists have no old value."""
    if not node.map_keys or not isinstance(old, list):
        return {}
    return {_key_of(node, item): item for item in old}


def _key_of(node: _Node, item: Any) -> str:
    return repr([item.get(key, default) for key, default in node.map_keys]) if isinstance(item, dict) else ""


def _judge_here(node: _Node, value: Any, old: Any, *, path: Path, same_as: tuple[Any, Any] | None, run: _Run) -> None:
    where = name_of(path) or "<nil>"
    shown = value if node.shows_value else OMITTED
    for text in node.broken:
        run.found.append(FieldError.invalid(where, shown, detail=text))
    convert = node.convert or (lambda same_value: same_value)
    data = {"self": convert(value), "oldSelf": convert(old) if old is not None else None, "hasOldSelf": old is not None}
    activation = _runner().Activation(data)
    for program in node.programs:
        if program.uses_old and old is None and not program.rule.get("optionalOldSelf"):
            continue
        if run.clock() > run.deadline:
            run.found.append(FieldError.invalid(where, shown, detail=_OVER_BUDGET))
            run.over = True
            return
        try:
            result = program.run.eval(activation)
        except RuntimeError:  # the engine reached its limit
            run.found.append(FieldError.invalid(where, shown, detail=_OVER_BUDGET))
            run.over = True
            return
        if result.type() == cel.Type.ERROR:
            detail = f"{_error_text(result.value())} evaluating rule: {program.words}"
            run.found.append(FieldError.invalid(where, shown, detail=detail))
        elif result.value() is not True:
            if not program.uses_old and same_as is not None and json_equal(*same_as):
                continue
            at = f"{name_of(path)}{program.at}".removeprefix(".") or "<nil>"
            run.found.append(_refusal(program, at, shown, activation))


def _refusal(program: _Program, where: str, shown: Any, activation: Any) -> FieldError:
    text = _message(program, activation)
    match program.rule.get("reason"):
        case "FieldValueForbidden":
            return FieldError.forbidden(where, text)
        case "FieldValueRequired":
            return FieldError.required(where, text)
        case "FieldValueDuplicate":
            return FieldError.duplicate(where, shown)
    return FieldError.invalid(where, shown, detail=text)


def _message(program: _Program, activation: Any) -> str:
    """The message of a failed rule: its messageExpression if that returns one valid line, else its message."""
    if program.message is not None:
        try:
            made = program.message.eval(activation)
        except RuntimeError:  # the engine reached its limit
            made = None
        text = made.value().strip() if made is not None and made.type() == cel.Type.STRING else ""
        if text and "\n" not in text and len(text.encode()) <= _LONGEST_MESSAGE:
            return text
    message = str(program.rule.get("message", "")).strip()
    return message or f"failed rule: {program.words}"


_ERROR_TEXTS: Final = (
    (re.compile(r'Key not found in map : "?(.*?)"?$'), r"no such key: \1"),
    (re.compile(r"Index error: index=(-?\d+).*"), r"index out of bounds: \1"),
    (re.compile(r"divide by zero"), "division by zero"),
    (re.compile(r"No matching overloads found : .*"), "no such overload"),
)
"""The engine's messages for a failed evaluation, and those of Kubernetes.  Used for display only."""


def _error_text(text: str) -> str:
    text = re.sub(r"^[A-Z_]+: ", "", text)
    for theirs, ours in _ERROR_TEXTS:
        text = theirs.sub(ours, text)
    return text
