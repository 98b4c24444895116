"""Selectors by label and by field."""

from __future__ import annotations

import pickle
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.meta.selectors import (
    EVERYTHING,
    NOTHING,
    FieldSelector,
    FieldTerm,
    LabelSelector,
    Operator,
    Requirement,
    SelectorError,
    field_value,
)


def requires(key: str, operator: Operator, *values: str) -> LabelSelector:
    return LabelSelector(frozenset({Requirement(key, operator, frozenset(values))}))


READ = [
    ("", EVERYTHING, ""),
    ("  ", EVERYTHING, ""),
    ("a=b", requires("a", Operator.IN, "b"), "a=b"),
    ("a==b", requires("a", Operator.IN, "b"), "a=b"),
    ("a in (b)", requires("a", Operator.IN, "b"), "a=b"),
    ("a=", requires("a", Operator.IN, ""), "a="),
    ("a in ()", requires("a", Operator.IN, ""), "a="),
    ("a in (,)", requires("a", Operator.IN, ""), "a="),
    ("a!=b", requires("a", Operator.NOT_IN, "b"), "a!=b"),
    ("a!=", requires("a", Operator.NOT_IN, ""), "a!="),
    ("a", requires("a", Operator.EXISTS), "a"),
    ("!a", requires("a", Operator.DOES_NOT_EXIST), "!a"),
    ("! a", requires("a", Operator.DOES_NOT_EXIST), "!a"),
    ("a in (y,x,y)", requires("a", Operator.IN, "x", "y"), "a in (x,y)"),
    ("a in(x,,y)", requires("a", Operator.IN, "", "x", "y"), "a in (,x,y)"),
    ("a\tnotin\n( z , y )", requires("a", Operator.NOT_IN, "y", "z"), "a notin (y,z)"),
    ("a>3", requires("a", Operator.GREATER_THAN, "3"), "a>3"),
    ("a < 3", requires("a", Operator.LESS_THAN, "3"), "a<3"),
    ("in in (in, notin)", requires("in", Operator.IN, "in", "notin"), "in in (in,notin)"),
    ("notin", requires("notin", Operator.EXISTS), "notin"),
    ("!in", requires("in", Operator.DOES_NOT_EXIST), "!in"),
    ("x=in", requires("x", Operator.IN, "in"), "x=in"),
    ("example.com/app = web", requires("example.com/app", Operator.IN, "web"), "example.com/app=web"),
    ("b,a=", requires("b", Operator.EXISTS) & requires("a", Operator.IN, ""), "a=,b"),
    ("a=,b", requires("b", Operator.EXISTS) & requires("a", Operator.IN, ""), "a=,b"),
    ("a,a", requires("a", Operator.EXISTS), "a"),
]


@pytest.mark.parametrize(("text", "selector", "canonical"), READ, ids=[text for text, _, _ in READ])
def test_label_selectors_are_read_and_printed_canonically(text: str, selector: LabelSelector, canonical: str) -> None:
    assert LabelSelector.parse(text) == selector
    assert str(selector) == canonical


REFUSED = [
    ("bad  selector!!", 6, "found 'selector', expected: in, notin, =, ==, !=, gt, lt"),
    (",a", 1, "found ',', expected: !, identifier, or 'end of string'"),
    ("=b", 1, "found '=', expected: !, identifier, or 'end of string'"),
    ("a,", 3, "found '', expected: identifier after ','"),
    ("a,,b", 3, "found ',', expected: identifier after ','"),
    ("a=b c", 5, "found 'c', expected: ',' or 'end of string'"),
    ("!a=b", 3, "found '=', expected: ',' or 'end of string'"),
    ("!", 2, "found '', expected: identifier after '!'"),
    ("a=(b)", 3, "found '(', expected: identifier"),
    ("a=!b", 3, "found '!', expected: identifier"),
    ("a in b", 6, "found 'b', expected: '('"),
    ("a in (b", 8, "found '', expected: ',' or ')'"),
    ("a in (b c)", 9, "found 'c', expected: ',' or ')'"),
    ("a in (=)", 7, "found '=', expected: ',' or ')'"),
    ("a>x", 3, "found 'x', expected: an integer"),
    ("a>", 3, "found '', expected: an integer"),
    ("a>9223372036854775808", 3, "found '9223372036854775808', expected: an integer"),
]


@pytest.mark.parametrize(("text", "character", "problem"), REFUSED, ids=[text for text, _, _ in REFUSED])
def test_a_malformed_label_selector_is_refused_at_its_character(text: str, character: int, problem: str) -> None:
    with pytest.raises(SelectorError) as refusal:
        LabelSelector.parse(text)
    assert refusal.value.problem == problem
    assert refusal.value.where == f"label selector {text!r}, character {character}"
    assert str(refusal.value) == f"{refusal.value.where}: {problem}"


@pytest.mark.parametrize(
    ("text", "character", "problem"),
    [
        ("b@d=x", 1, "name part must consist of"),
        ("a=-x", 3, "a valid label must be"),
        ("a,b in (x, y@)", 12, "a valid label must be"),
        ("!" + "k" * 64, 2, "name part must be no more than 63 characters"),
        ("a>-1", 3, "a valid label must be"),
    ],
)
def test_keys_and_values_must_be_such_as_labels_may_have(text: str, character: int, problem: str) -> None:
    with pytest.raises(SelectorError, match=f"character {character}: .*{problem}"):
        LabelSelector.parse(text)


LABELS = {"app": "web", "tier": "", "n": "5"}


@pytest.mark.parametrize(
    ("text", "selected"),
    [
        ("", True),
        ("app=web", True),
        ("app=api", False),
        ("absent=", False),
        ("tier=", True),
        ("tier", True),
        ("absent", False),
        ("!absent", True),
        ("!app", False),
        ("app!=api", True),
        ("app!=web", False),
        ("absent!=x", True),
        ("app in (api,web)", True),
        ("absent in (api,web)", False),
        ("app notin (api,web)", False),
        ("absent notin (api,web)", True),
        ("n>4", True),
        ("n>5", False),
        ("n<6", True),
        ("n<5", False),
        ("app>1", False),
        ("app<1", False),
        ("absent>1", False),
        ("app=web,n>4,!absent", True),
        ("app=web,absent", False),
    ],
)
def test_labels_are_selected_as_kubernetes_does(text: str, selected: bool) -> None:
    assert LabelSelector.parse(text).matches(LABELS) is selected


@pytest.mark.parametrize(
    ("obj", "text"),
    [
        ({}, ""),
        ({"matchLabels": None, "matchExpressions": None}, ""),
        ({"matchLabels": {"b": "", "a": "x"}}, "a=x,b="),
        ({"matchExpressions": [{"key": "a", "operator": "In", "values": ["y", "x"]}]}, "a in (x,y)"),
        ({"matchExpressions": [{"key": "a", "operator": "NotIn", "values": ["x"]}]}, "a!=x"),
        ({"matchExpressions": [{"key": "a", "operator": "Exists"}]}, "a"),
        ({"matchExpressions": [{"key": "a", "operator": "DoesNotExist", "values": []}]}, "!a"),
        ({"matchLabels": {"a": "x"}, "matchExpressions": [{"key": "b", "operator": "Exists"}]}, "a=x,b"),
    ],
)
def test_the_object_form_means_the_same_as_the_text(obj: dict[str, Any], text: str) -> None:
    assert LabelSelector.from_object(obj) == LabelSelector.parse(text)


@pytest.mark.parametrize(
    ("obj", "where", "problem"),
    [
        ({"matchlabels": {}}, "spec.selector.matchlabels", "write matchLabels or matchExpressions"),
        ([], "spec.selector", "must be an object"),
        ({"matchLabels": []}, "spec.selector.matchLabels", "must be an object"),
        ({"matchLabels": {"a b": "x"}}, "spec.selector.matchLabels", "'a b': name part"),
        ({"matchLabels": {"a": "x y"}}, "spec.selector.matchLabels[a]", "a valid label"),
        ({"matchLabels": {"a": 1}}, "spec.selector.matchLabels[a]", "must be a string, not 1; quote it"),
        ({"matchExpressions": {}}, "spec.selector.matchExpressions", "must be a list"),
        ({"matchExpressions": ["a"]}, "spec.selector.matchExpressions[0]", "must be an object of key"),
        ({"matchExpressions": [{}]}, "spec.selector.matchExpressions[0].key", "must be a string"),
        (
            {"matchExpressions": [{"key": "a", "operator": "in"}]},
            "spec.selector.matchExpressions[0].operator",
            "'in' is not one; write In, NotIn, Exists, DoesNotExist",
        ),
        (
            {"matchExpressions": [{"key": "a", "operator": "In"}]},
            "spec.selector.matchExpressions[0].values",
            "must not be empty when the operator is In",
        ),
        (
            {"matchExpressions": [{"key": "a", "operator": "Exists", "values": ["x"]}]},
            "spec.selector.matchExpressions[0].values",
            "must be empty when the operator is Exists",
        ),
        (
            {"matchExpressions": [{"key": "a", "operator": "In", "values": "web"}]},
            "spec.selector.matchExpressions[0].values",
            "must be a list, not 'web'",
        ),
        (
            {"matchExpressions": [{"key": "a", "operator": "In", "values": ["x", "?"]}]},
            "spec.selector.matchExpressions[0].values[1]",
            "a valid label",
        ),
    ],
)
def test_a_malformed_object_is_refused_at_its_path(obj: Any, where: str, problem: str) -> None:
    with pytest.raises(SelectorError) as refusal:
        LabelSelector.from_object(obj, "spec.selector")
    assert refusal.value.where == where
    assert problem in refusal.value.problem


def test_no_selector_selects_nothing_and_an_empty_one_everything() -> None:
    assert LabelSelector.from_object(None) == NOTHING
    assert LabelSelector.from_object({}) == EVERYTHING
    assert EVERYTHING.matches(None)
    assert not NOTHING.matches({})
    assert not NOTHING.matches({"nothing": "x"})
    assert LabelSelector.parse(str(NOTHING)) == NOTHING


FIELDS_READ = [
    ("", frozenset[FieldTerm](), ""),
    (",,", frozenset[FieldTerm](), ""),
    ("metadata.name=x", {FieldTerm("metadata.name", "x")}, "metadata.name=x"),
    ("metadata.name==x", {FieldTerm("metadata.name", "x")}, "metadata.name=x"),
    ("a!=b", {FieldTerm("a", "b", negated=True)}, "a!=b"),
    ("a=", {FieldTerm("a", "")}, "a="),
    ("b=1,a!=2", {FieldTerm("b", "1"), FieldTerm("a", "2", negated=True)}, "a!=2,b=1"),
    (r"a=x\,y\=z\\", {FieldTerm("a", "x,y=z\\")}, r"a=x\,y\=z\\"),
    ("a=x y!", {FieldTerm("a", "x y!")}, "a=x y!"),
]


@pytest.mark.parametrize(("text", "terms", "canonical"), FIELDS_READ, ids=[text for text, _, _ in FIELDS_READ])
def test_field_selectors_are_read_and_printed_canonically(text: str, terms: set[FieldTerm], canonical: str) -> None:
    selector = FieldSelector.parse(text)
    assert selector.terms == terms
    assert str(selector) == canonical


@pytest.mark.parametrize(
    ("text", "character", "problem"),
    [
        ("metadata.name", 1, "can't understand 'metadata.name'; write field=value"),
        ("a=b,=c", 5, "can't understand '=c'"),
        ("a=b, c=d", 5, "can't understand ' c=d'"),
        ("a=b=c", 4, "found '=c'"),
        ("a==b=c", 5, "found '=c'"),
        (r"a=b\x", 4, r"found '\x'"),
        ("a=b\\", 4, "found '\\'"),
    ],
)
def test_a_malformed_field_selector_is_refused_at_its_character(text: str, character: int, problem: str) -> None:
    with pytest.raises(SelectorError) as refusal:
        FieldSelector.parse(text)
    assert refusal.value.where == f"field selector {text!r}, character {character}"
    assert problem in refusal.value.problem


POD = {
    "metadata": {"name": "x"},
    "spec": {"replicas": 3, "hostNetwork": True, "ports": []},
    "status": {"phase": "Running"},
}


@pytest.mark.parametrize(
    ("text", "selected"),
    [
        ("", True),
        ("metadata.name=x", True),
        ("metadata.name!=x", False),
        ("metadata.name=x,status.phase!=Running", False),
        ("metadata.namespace=", True),
        ("metadata.namespace!=default", True),
        ("metadata.name.deeper=", True),
        ("spec.replicas=3,spec.hostNetwork=true", True),
        ("spec.ports=", True),
    ],
)
def test_objects_are_selected_by_their_fields(text: str, selected: bool) -> None:
    selector = FieldSelector.parse(text)
    assert selector.matches(POD) is selected
    assert selector.matches_fields({field: field_value(POD, field) for field in selector.fields}) is selected


def test_a_field_that_is_not_given_is_empty() -> None:
    assert FieldSelector.parse("a=").matches_fields({})
    assert not FieldSelector.parse("a=b").matches_fields({})


def test_a_refusal_survives_pickling() -> None:
    error = SelectorError("spec.selector", "is wrong")
    assert str(pickle.loads(pickle.dumps(error))) == "spec.selector: is wrong"


keys = st.sampled_from(["a", "b", "in", "notin", "example.com/app"])
words = st.sampled_from(["", "x", "y", "in", "notin", "1.0"])
requirements = st.one_of(
    st.builds(
        Requirement,
        keys,
        st.sampled_from([Operator.IN, Operator.NOT_IN]),
        st.frozensets(words, min_size=1, max_size=3),
    ),
    st.builds(Requirement, keys, st.sampled_from([Operator.EXISTS, Operator.DOES_NOT_EXIST])),
    st.builds(
        Requirement,
        keys,
        st.sampled_from([Operator.GREATER_THAN, Operator.LESS_THAN]),
        st.integers(0, 9).map(lambda number: frozenset({str(number)})),
    ),
)
selectors = st.builds(LabelSelector, st.frozensets(requirements, max_size=4))
label_maps = st.dictionaries(keys, words | st.integers(0, 9).map(str), max_size=4)
field_terms = st.builds(
    FieldTerm, st.sampled_from(["a", "b.c", "metadata.name"]), st.text("ab,=\\! ", max_size=6), st.booleans()
)
field_selectors = st.builds(FieldSelector, st.frozensets(field_terms, max_size=4))


@given(selectors)
def test_every_label_selector_round_trips(selector: LabelSelector) -> None:
    assert LabelSelector.parse(str(selector)) == selector


@given(selectors, selectors, label_maps)
def test_joined_label_selectors_select_what_both_do(
    one: LabelSelector, other: LabelSelector, labels: dict[str, str]
) -> None:
    assert (one & other).matches(labels) == (one.matches(labels) and other.matches(labels))
    assert one & other == other & one
    assert one & one == one & EVERYTHING == one
    assert not (one & NOTHING).matches(labels)


@given(keys, st.frozensets(words, min_size=1), label_maps)
def test_an_operator_and_its_opposite_divide_all_labels(
    key: str, values: frozenset[str], labels: dict[str, str]
) -> None:
    inside = Requirement(key, Operator.IN, values)
    outside = Requirement(key, Operator.NOT_IN, values)
    assert inside.matches(labels) != outside.matches(labels)
    assert Requirement(key, Operator.EXISTS).matches(labels) != Requirement(key, Operator.DOES_NOT_EXIST).matches(
        labels
    )


@given(st.text(alphabet="ab=!(),<>in \t0", max_size=16))
def test_any_text_is_read_or_refused_and_what_is_read_round_trips(text: str) -> None:
    try:
        selector = LabelSelector.parse(text)
    except SelectorError:
        return
    assert LabelSelector.parse(str(selector)) == selector


@given(field_selectors)
def test_every_field_selector_round_trips(selector: FieldSelector) -> None:
    assert FieldSelector.parse(str(selector)) == selector


@given(field_selectors, field_selectors, st.dictionaries(st.sampled_from(["a", "b.c"]), st.text("ab,", max_size=3)))
def test_joined_field_selectors_select_what_both_do(
    one: FieldSelector, other: FieldSelector, values: dict[str, str]
) -> None:
    assert (one & other).matches_fields(values) == (one.matches_fields(values) and other.matches_fields(values))


@given(st.text(alphabet="ab=!,\\ .", max_size=12))
def test_any_field_text_is_read_or_refused_and_what_is_read_round_trips(text: str) -> None:
    try:
        selector = FieldSelector.parse(text)
    except SelectorError:
        return
    assert FieldSelector.parse(str(selector)) == selector
