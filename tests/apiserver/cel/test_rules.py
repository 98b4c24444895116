"""Rules: which definitions they may be in, what they refuse, and what they cost."""

from __future__ import annotations

import inspect
import itertools
import time
from typing import Any

import pytest
from tests.kinds.cases import Case, cases

from holdfast import kinds
from holdfast.apiserver.cel.rules import Rules, compile_rules, rule_problems
from holdfast.apiserver.cel.types import escaped
from holdfast.kinds.crds import schema_of
from holdfast.meta.schemas import walk

RULES = "x-kubernetes-validations"
TEXT = {"type": "string"}
NUMBER = {"type": "integer"}


def record(*rules: str | dict[str, Any], **properties: Any) -> dict[str, Any]:
    """An object with fields, and rules that are given as text or whole."""
    written = [{"rule": rule} if isinstance(rule, str) else rule for rule in rules]
    return {"type": "object", "properties": properties, **({RULES: written} if written else {})}


def said(schema: dict[str, Any], obj: Any, old: Any = None) -> list[str]:
    return [str(problem) for problem in compile_rules(schema).check(obj, old)]


# --- expressions -------------------------------------------------------------

SELF = {
    "n": 3, "s": "abc", "l": [3, 1, 2], "names": ["b", "a"], "m": {"k": 1}, "limit": "5%", "ratio": 1,
    "when": "2026-01-31T12:00:00Z", "day": "2026-01-31", "wait": "1h30m", "blob": "YWJj", "namespace": "x",
    "a-b": 1, "a.b": 2, "a/b": 3, "a__b": 4, "maybe": None, "items": [{"name": "x", "size": 1}],
    "memory": "1Gi", "matrix": [[1, 2], [3]],
}  # fmt: skip
SELF_SCHEMA = record(
    **{
        "n": NUMBER, "s": TEXT, "l": {"type": "array", "items": NUMBER}, "names": {"type": "array", "items": TEXT},
        "m": {"type": "object", "additionalProperties": NUMBER}, "limit": {"x-kubernetes-int-or-string": True},
        "ratio": {"type": "number"}, "when": {"type": "string", "format": "date-time"},
        "day": {"type": "string", "format": "date"}, "wait": {"type": "string", "format": "duration"},
        "blob": {"type": "string", "format": "byte"}, "namespace": TEXT, "a-b": NUMBER, "a.b": NUMBER, "a/b": NUMBER,
        "a__b": NUMBER, "maybe": {"type": "string", "nullable": True}, "memory": TEXT,
        "items": {"type": "array", "items": record(name=TEXT, size=NUMBER)},
        "matrix": {"type": "array", "items": {"type": "array", "items": NUMBER}},
        "map_a": {"type": "object", "additionalProperties": TEXT},
        "mapA": {"type": "object", "additionalProperties": TEXT},
    }
)  # fmt: skip

TRUE = [
    # what is in an object
    "self.n == 3 && has(self.s) && !has(self.map_a)",
    "self.m.all(k, self.m[k] == 1) && 'k' in self.m",
    "self.items.all(i, i.size > 0) && self.items.exists(i, i.name == 'x')",
    "self.__namespace__ == 'x'",
    "self.a__dash__b + self.a__dot__b + self.a__slash__b + self.a__underscores__b == 10",
    "self.maybe == null",
    "self.limit == '5%' && type(self.limit) == string",
    "self.ratio * 2.0 == 2.0",
    "self.when > timestamp('2026-01-01T00:00:00Z') && self.when.getFullYear() == 2026",
    "self.day == timestamp('2026-01-31T00:00:00Z')",
    "self.wait == duration('90m')",
    "self.blob == b'abc'",
    "self.matrix[0][1] == 2",
    "self.?map_a.orValue({}).size() == 0",
    "cel.bind(x, self.n + 1, x == 4)",
    # lists
    "!self.l.isSorted() && [1, 2].isSorted() && [].isSorted()",
    "self.l.sum() == 6 && [1.5, 0.5].sum() == 2.0 && [duration('1s'), duration('2s')].sum() == duration('3s')",
    "self.l.min() == 1 && self.l.max() == 3 && self.names.min() == 'a'",
    "[1, 2, 1].indexOf(1) == 0 && [1, 2, 1].lastIndexOf(1) == 2 && self.names.indexOf('z') == -1",
    "[[1], [2]].indexOf([2]) == 1",
    "[3, 1].sort() == [1, 3] && [1, 1].distinct() == [1] && [1, 2, 3].slice(1, 2) == [2]",
    "self.matrix.flatten() == [1, 2, 3]",
    "sets.contains([1, 2], [2]) && sets.equivalent([1, 2], [2, 1, 1]) && !sets.intersects([1], [2])",
    # texts
    "'a12b3'.find('[0-9]+') == '12' && 'x'.find('[0-9]') == ''",
    "'a12b3'.findAll('[0-9]+') == ['12', '3'] && 'a12b3'.findAll('[0-9]+', 1) == ['12']",
    "'Abc'.lowerAscii() == 'abc' && 'abc'.upperAscii() == 'ABC' && ' a '.trim() == 'a'",
    "'abc'.charAt(1) == 'b' && 'abc'.indexOf('c') == 2 && 'abab'.lastIndexOf('b') == 3",
    "'a,b'.split(',') == ['a', 'b'] && ['a', 'b'].join('-') == 'a-b'",
    "'abc'.substring(1) == 'bc' && 'aaa'.replace('a', 'b', 1) == 'baa' && 'abc'.matches('^a')",
    "'%s-%d'.format(['a', 1]) == 'a-1'",
    # quantities
    "quantity(self.memory) == quantity('1024Mi') && quantity('1').isLessThan(quantity('2'))",
    "quantity('2').isGreaterThan(quantity('1500m')) && quantity('1').compareTo(quantity('1000m')) == 0",
    "quantity('1').add(quantity('500m')).sub(1) == quantity('500m') && quantity('5').asInteger() == 5",
    "isQuantity('1Gi') && !isQuantity('x') && quantity('-1').sign() == -1 && !quantity('1.5').isInteger()",
    "quantity('500m').asApproximateFloat() == 0.5",
    # addresses
    "ip('10.0.0.1').family() == 4 && isIP('::1') && !isIP('10.0.0') && ip('127.0.0.1').isLoopback()",
    "ip('::1') == ip('0:0:0:0:0:0:0:1') && ip.isCanonical('::1') && !ip.isCanonical('0::1')",
    "ip('8.8.8.8').isGlobalUnicast() && ip('0.0.0.0').isUnspecified() && ip('fe80::1').isLinkLocalUnicast()",
    "ip('224.0.0.1').isLinkLocalMulticast()",
    "cidr('10.0.0.0/8').containsIP('10.1.2.3') && !cidr('10.0.0.0/8').containsIP(ip('11.0.0.1'))",
    "cidr('10.0.0.0/8').containsCIDR('10.1.0.0/16') && cidr('10.0.0.0/8').containsCIDR(cidr('10.1.0.0/16'))",
    "cidr('10.1.0.0/8').masked() == cidr('10.0.0.0/8') && cidr('10.1.0.0/8').ip() == ip('10.1.0.0')",
    "cidr('10.0.0.0/8').prefixLength() == 8 && isCIDR('::/0') && !isCIDR('10.0.0.0')",
    # URLs, versions, formats
    "url('https://u@h:80/a%20b?x=1&x=2').getHost() == 'h:80' && isURL('/a') && !isURL('a b')",
    "url('https://h:80/a%20b?x=1&x=2').getQuery()['x'] == ['1', '2']",
    "url('https://h:80/p').getPort() == '80' && url('https://h/p').getEscapedPath() == '/p'",
    "url('https://h/p').getScheme() == 'https' && url('https://h/p').getHostname() == 'h'",
    "semver('1.2.3').isGreaterThan(semver('1.2.3-rc.1')) && semver('1.10.0').compareTo(semver('1.9.0')) == 1",
    "isSemver('1.2.3') && !isSemver('1.2') && semver('v1.2', true).minor() == 2 && isSemver('v01.2', true)",
    "semver('1.2.3').major() == 1 && semver('1.2.3').patch() == 3",
    "!format.dns1123Label().validate('a-b').hasValue() && format.dns1123Label().validate('A').value().size() == 1",
    "format.named('uuid').hasValue() && !format.named('nope').hasValue()",
]  # fmt: skip


@pytest.mark.parametrize("rule", TRUE)
def test_the_functions_of_kubernetes_are_there_when_rules_are_checked_and_when_they_run(rule: str) -> None:
    schema = {**SELF_SCHEMA, RULES: [{"rule": rule}]}
    assert [str(problem) for problem in rule_problems(schema, "s")] == []
    assert said(schema, SELF) == []


REFUSED = [
    ("self.nope > 1", "undefined field 'nope'"),
    ("self.items.all(i, i.nope)", "undefined field 'nope'"),
    ("self.n > 'a'", "found no matching overload for '_>_' applied to '(int, string)'"),
    ("self.m.all(k, k > 0)", "found no matching overload"),
    ("quantity('1').isGreaterThan(2)", "found no matching overload for 'isGreaterThan'"),
    ("ip('::1') == quantity('1')", "found no matching overload"),
    ("self.s.nope()", "undeclared reference to 'nope'"),
    ("self.n +", "Syntax error"),
    ("self.n + 1", "cel expression must evaluate to a bool"),
    ("other == 1", "undeclared reference to 'other'"),
]


@pytest.mark.parametrize(("rule", "why"), REFUSED)
def test_a_rule_that_makes_no_sense_of_its_schema_is_refused_with_the_definition(rule: str, why: str) -> None:
    schema = {"type": "object", "properties": {"spec": {**SELF_SCHEMA, RULES: [{"rule": rule}]}}}
    (problem,) = rule_problems(schema, "s")
    assert problem.field == f"s.properties[spec].{RULES}[0].rule"
    assert why in problem.detail


def test_the_message_of_a_rule_may_be_an_expression_and_must_be_a_text() -> None:
    (problem,) = rule_problems(record({"rule": "true", "messageExpression": "self.n"}, n=NUMBER), "s")
    assert problem.field == f"s.{RULES}[0].messageExpression"
    assert problem.detail == "messageExpression must evaluate to a string"


OLD_SELF: list[tuple[dict[str, Any], str]] = [
    (
        {"type": "array", "items": {**TEXT, RULES: [{"rule": "self == oldSelf"}]}},
        "oldSelf cannot be used on the uncorrelatable portion of the schema within s.properties[a]",
    ),
    (
        {**TEXT, RULES: [{"rule": "self != ''", "optionalOldSelf": True}]},
        "may not be set if oldSelf is not used in rule",
    ),
]


@pytest.mark.parametrize(("schema", "why"), OLD_SELF)
def test_old_self_is_for_places_where_it_can_be_found(schema: dict[str, Any], why: str) -> None:
    (problem,) = rule_problems(record(a=schema), "s")
    assert problem.detail == why


def test_names_are_escaped_as_kubernetes_does() -> None:
    names = ["plain", "namespace", "x-y", "a.b/c", "a__b", "_x", "1st", "ü"]
    expected = ["plain", "__namespace__", "x__dash__y", "a__dot__b__slash__c", "a__underscores__b", "_x", None, None]
    assert [escaped(name) for name in names] == expected


# --- objects -----------------------------------------------------------------


def test_a_refusal_names_the_field_and_shows_a_value_only_if_it_is_short() -> None:
    schema = record(
        spec=record(
            {"rule": "self.n > 5", "message": "too few"},
            n={**NUMBER, RULES: [{"rule": "self % 2 == 0"}]},
            m={"type": "object", "additionalProperties": {**TEXT, RULES: [{"rule": "self != 'x'"}]}},
        )
    )
    assert said(schema, {"spec": {"n": 3, "m": {"k": "x"}}}) == [
        "spec: Invalid value: too few",
        "spec.n: Invalid value: 3: failed rule: self % 2 == 0",
        "spec.m[k]: Invalid value: \"x\": failed rule: self != 'x'",
    ]


def test_a_rule_says_its_reason_and_its_place() -> None:
    rules = [
        {"rule": "false", "message": "no", "reason": reason, "fieldPath": ".a"}
        for reason in ("FieldValueInvalid", "FieldValueForbidden", "FieldValueRequired", "FieldValueDuplicate")
    ]
    causes = [problem.to_cause() for problem in compile_rules(record(*rules, a=TEXT)).check({"a": "x"})]
    assert [(cause.reason, cause.field, cause.message) for cause in causes] == [
        ("FieldValueInvalid", "a", "Invalid value: no"),
        ("FieldValueForbidden", "a", "Forbidden: no"),
        ("FieldValueRequired", "a", "Required value: no"),
        ("FieldValueDuplicate", "a", "Duplicate value"),
    ]


MESSAGES: list[tuple[str, str]] = [
    ("'n is ' + string(self.n)", "n is 3"),
    ("''", "plain"),
    ("'a\\nb'", "plain"),
    ("string(1 / 0)", "plain"),
]


@pytest.mark.parametrize(("expression", "text"), MESSAGES)
def test_a_message_that_cannot_be_made_is_the_plain_one(expression: str, text: str) -> None:
    rule = {"rule": "false", "message": "plain", "messageExpression": expression}
    assert said(record(rule, n=NUMBER), {"n": 3}) == [f"<nil>: Invalid value: {text}"]


ERRORS: list[tuple[str, str]] = [
    ("self.m['x'] == 1", "no such key: x"),
    ("self.l[9] == 1", "index out of bounds: 9"),
    ("1 / (self.n - 3) == 1", "division by zero"),
    ("self.limit > 3", "no such overload"),
    ("quantity('x') == quantity('1')", "'x' is not a quantity"),
    ("'a'.find('(') == ''", "missing )"),
]


@pytest.mark.parametrize(("rule", "why"), ERRORS)
def test_a_rule_that_fails_refuses_the_object_and_says_why(rule: str, why: str) -> None:
    (problem,) = said({**SELF_SCHEMA, RULES: [{"rule": rule}]}, SELF)
    assert problem.startswith(f"<nil>: Invalid value: {why}")
    assert problem.endswith(f"evaluating rule: {rule}")


def test_a_rule_that_does_not_compile_refuses_every_object() -> None:
    (problem,) = said(record("self.("), {})
    assert "rule compile error" in problem


def test_a_null_is_not_judged() -> None:
    assert said(record(a={**TEXT, "nullable": True, RULES: [{"rule": "self == 'x'"}]}), {"a": None}) == []


# --- updates -----------------------------------------------------------------

IMMUTABLE = {**TEXT, RULES: [{"rule": "self == oldSelf", "message": "fixed"}]}
KEYED = {
    "type": "array",
    "x-kubernetes-list-type": "map",
    "x-kubernetes-list-map-keys": ["n"],
    "items": record(n=TEXT, v=IMMUTABLE),
}
FIRST = {"rule": "!oldSelf.hasValue() || oldSelf.value() <= self", "optionalOldSelf": True, "message": "shrinks"}

UPDATES: list[tuple[dict[str, Any], Any, Any, list[str]]] = [
    (record(a=IMMUTABLE), {"a": "x"}, None, []),
    (record(a=IMMUTABLE), {"a": "x"}, {}, []),
    (record(a=IMMUTABLE), {"a": "x"}, {"a": "x"}, []),
    (record(a=IMMUTABLE), {"a": "y"}, {"a": "x"}, ['a: Invalid value: "y": fixed']),
    (record(a=KEYED), {"a": [{"n": "2", "v": "y"}, {"n": "1", "v": "x"}]}, {"a": [{"n": "1", "v": "x"}]}, []),
    (
        record(a=KEYED),
        {"a": [{"n": "2", "v": "y"}, {"n": "1", "v": "z"}]},
        {"a": [{"n": "1", "v": "x"}]},
        ['a[1].v: Invalid value: "z": fixed'],
    ),
    (
        record(m={"type": "object", "additionalProperties": IMMUTABLE}),
        {"m": {"k": "y", "l": "z"}},
        {"m": {"k": "x"}},
        ['m[k]: Invalid value: "y": fixed'],
    ),
    (record(a={**NUMBER, RULES: [FIRST]}), {"a": 1}, None, []),
    (record(a={**NUMBER, RULES: [FIRST]}), {"a": 1}, {"a": 2}, ["a: Invalid value: 1: shrinks"]),
    (record(a={**NUMBER, RULES: [FIRST]}), {"a": 3}, {"a": 2}, []),
    # what the update left as it was
    (record(a={**NUMBER, RULES: [{"rule": "self < 5"}]}, b=TEXT), {"a": 9, "b": "x"}, {"a": 9, "b": "y"}, []),
    (
        record(a={**NUMBER, RULES: [{"rule": "self < 5"}]}),
        {"a": 9},
        {"a": 8},
        ["a: Invalid value: 9: failed rule: self < 5"],
    ),
    (
        record(a={"type": "array", "items": {**NUMBER, RULES: [{"rule": "self < 5"}]}}, b=TEXT),
        {"a": [9], "b": "x"},
        {"a": [9], "b": "y"},
        [],
    ),
]


@pytest.mark.parametrize(("schema", "new", "old", "problems"), UPDATES)
def test_updates_are_held_to_what_was(schema: dict[str, Any], new: Any, old: Any, problems: list[str]) -> None:
    assert rule_problems(schema, "s") == []
    assert said(schema, new, old) == problems


# --- cost --------------------------------------------------------------------


def test_a_rule_that_loops_too_long_is_cut_off() -> None:
    schema = record("self.l.all(a, self.l.all(b, a + b >= 0))", l={"type": "array", "items": NUMBER})
    (problem,) = said(schema, {"l": list(range(1000))})
    assert "running out of cost budget, no further validation rules will be run" in problem


def test_rules_share_the_time_that_an_object_gets() -> None:
    schema = record(l={"type": "array", "items": {**NUMBER, RULES: [{"rule": "self >= 0"}]}})
    clock = itertools.count()
    problems = compile_rules(schema).check({"l": list(range(1000))}, seconds=10, clock=lambda: float(next(clock)))
    assert [problem.field for problem in problems] == ["l[10]"]


def test_an_object_is_as_valid_on_a_machine_that_is_busy_or_was_suspended() -> None:
    assert inspect.signature(Rules.check).parameters["clock"].default is time.thread_time


# --- our own kinds -----------------------------------------------------------


@pytest.mark.parametrize("kind", kinds.ALL, ids=lambda kind: kind.name)
def test_every_rule_of_our_kinds_is_accepted(kind: Any) -> None:
    assert [str(problem) for problem in rule_problems(schema_of(kind.model), "s")] == []


@pytest.fixture(scope="module")
def judges() -> dict[str, tuple[walk.Schema, Rules]]:
    found = {}
    for kind in kinds.ALL:
        schema = schema_of(kind.model)
        found[kind.name] = (walk.compile(schema), compile_rules(schema))
    return found


@pytest.mark.parametrize("case", cases(), ids=str)
def test_the_rules_of_our_kinds_say_what_their_cases_say(
    case: Case, judges: dict[str, tuple[walk.Schema, Rules]]
) -> None:
    schema, rules = judges[case.kind.name]
    for obj in (case.new, case.old):
        schema.default(obj)
    expected = [] if case.says is None else [(case.at or "<nil>", " ".join(case.says.split()))]
    # A duplicate is identified by its reason alone, as in Kubernetes.
    shown = [(each.field, each.detail or (case.says or "")) for each in rules.check(case.new, case.old)]
    assert [(field, " ".join(text.split())) for field, text in shown] == expected
