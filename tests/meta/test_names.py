"""Names: which are allowed, what is said of the others, and how long ones are shortened."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.meta import names

Validator = Callable[[str], list[str]]

GOOD: list[tuple[Validator, list[str]]] = [
    (names.dns_label, ["a", "0", "a-b", "123-abc", "a" * 63]),
    (names.dns_subdomain, ["a", "example.com", "a-b.c-d", "0.0", "a" * 253]),
    (names.dns_1035_label, ["a", "a-1", "abc-123", "a" * 63]),
    (names.label_key, ["a", "A_b.C-d", "example.com/MyName", "a" * 63, "a" * 253 + "/" + "b" * 63]),
    (names.annotation_key, ["a", "Example.COM/Name"]),
    (names.label_value, ["", "a", "A_b.C-d", "1.0", "a" * 63]),
    (names.path_segment, ["", "a b", "system:node", "...", "a.b"]),
]

BAD: list[tuple[Validator, str, str]] = [
    (names.dns_label, "", "a lowercase RFC 1123 label must"),
    (names.dns_label, "A", "a lowercase RFC 1123 label must"),
    (names.dns_label, "-a", "a lowercase RFC 1123 label must"),
    (names.dns_label, "a\n", "a lowercase RFC 1123 label must"),
    (names.dns_label, "é", "a lowercase RFC 1123 label must"),
    (names.dns_label, "a.b", "must not contain dots"),
    (names.dns_label, "a" * 64, "must be no more than 63 characters"),
    (names.dns_subdomain, "Not_A_Name", "a lowercase RFC 1123 subdomain must"),
    (names.dns_subdomain, "a..b", "a lowercase RFC 1123 subdomain must"),
    (names.dns_subdomain, "a" * 254, "must be no more than 253 characters"),
    (names.dns_1035_label, "1a", "a DNS-1035 label must"),
    (names.dns_1035_label, "a.b", "a DNS-1035 label must"),
    (names.label_key, "bad key!", "name part must consist of"),
    (names.label_key, "", "name part must be non-empty"),
    (names.label_key, "/a", "prefix part must be non-empty"),
    (names.label_key, "a/", "name part must be non-empty"),
    (names.label_key, "A/b", "prefix part a lowercase RFC 1123 subdomain must"),
    (names.label_key, "a/b/c", "a qualified name must"),
    (names.label_key, "a" * 64, "name part must be no more than 63 characters"),
    (names.annotation_key, "a b", "name part must consist of"),
    (names.label_value, "bad value!", "a valid label must be an empty string or"),
    (names.label_value, "a" * 64, "must be no more than 63 characters"),
    (names.path_segment, ".", "may not be '.'"),
    (names.path_segment, "..", "may not be '..'"),
    (names.path_segment, "a/b", "may not contain '/'"),
    (names.path_segment, "a%b", "may not contain '%'"),
]


@pytest.mark.parametrize(("validate", "values"), GOOD, ids=[validate.__name__ for validate, _ in GOOD])
def test_good_names_have_no_problems(validate: Validator, values: list[str]) -> None:
    assert {value: validate(value) for value in values} == {value: [] for value in values}


@pytest.mark.parametrize(("validate", "value", "problem"), BAD, ids=[f"{v.__name__} {t[:12]!r}" for v, t, _ in BAD])
def test_a_bad_name_is_told_its_problem(validate: Validator, value: str, problem: str) -> None:
    assert validate(value)[0].startswith(problem)


def test_a_rule_is_explained_with_examples_and_its_pattern() -> None:
    assert names.dns_label("A") == [
        (
            "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start "
            "and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is "
            "'[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
        )
    ]


def test_all_problems_are_told_at_once() -> None:
    assert len(names.dns_1035_label("-" * 64)) == 2
    assert len(names.path_segment("/%")) == 2


def test_a_short_name_is_joined_and_nothing_more() -> None:
    assert names.make_name("web", "0") == "web-0"
    assert names.make_name("web-", "0") == "web-0"
    assert names.make_name("a" * 61, "0") == "a" * 61 + "-0"


def test_a_long_name_keeps_its_suffix_and_gains_a_hash_that_never_changes() -> None:
    assert names.make_name("a" * 70, "worker-0") == "a" * 45 + "-worker-0-" + names.hash_suffix("a" * 70 + "-worker-0")
    assert names.hash_suffix("web") == "ntbvsvfx"


def test_a_suffix_too_long_to_keep_is_cut_like_the_rest() -> None:
    assert len(names.make_name("web", "b" * 80)) == 63
    assert names.make_name("web", "b" * 80).startswith("web-bbb")


def test_a_generated_name_is_the_base_and_five_characters_of_the_seed() -> None:
    assert names.generate_name("web-", "seed") == "web-" + names.hash_suffix("seed", 5)
    assert names.generate_name("a" * 80, "seed") == "a" * 58 + names.hash_suffix("seed", 5)


labels = st.from_regex(r"[a-z]([-a-z0-9]{0,98}[a-z0-9])?", fullmatch=True)


@given(prefix=labels, suffix=labels, limit=st.integers(20, 80))
def test_a_made_name_fits_and_begins_and_ends_as_a_label_may(prefix: str, suffix: str, limit: int) -> None:
    name = names.make_name(prefix, suffix, max=limit)
    assert len(name) <= limit
    assert all("must be no more" in problem for problem in names.dns_1035_label(name))


@given(prefix=labels, one=labels, other=labels)
def test_different_suffixes_make_different_names(prefix: str, one: str, other: str) -> None:
    assert (names.make_name(prefix, one) == names.make_name(prefix, other)) == (one == other)


@given(st.text(max_size=80))
def test_validators_agree_on_what_contains_what(value: str) -> None:
    if not names.dns_1035_label(value):
        assert not names.dns_label(value)
    if not names.dns_label(value):
        assert not names.dns_subdomain(value)
        assert not names.label_value(value)
        assert not names.label_key(value)
    if not names.label_key(value):
        assert not names.annotation_key(value)


@given(st.text(), st.integers(1, 20))
def test_a_hash_suffix_can_end_any_name(data: str, length: int) -> None:
    suffix = names.hash_suffix(data, length)
    assert len(suffix) == length
    assert not names.dns_label(suffix)


_PARTS = st.text(alphabet="aB0-_./é\n", max_size=8) | st.sampled_from(["a" * 63, "a" * 64, "a" * 253, "a" * 254, "/"])


@given(key=st.builds(str.__add__, _PARTS, _PARTS), value=_PARTS)
def test_labels_are_valid_exactly_if_no_key_and_no_value_has_a_problem(key: str, value: str) -> None:
    problems = names.label_key(key) + names.label_value(value)
    assert names.are_labels({key: value}) is not bool(problems)
    assert names.are_labels({"app": "web", key: value}) is not bool(problems)
