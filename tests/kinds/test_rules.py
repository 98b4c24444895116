"""The cases that prove the rules (CEL) of definitions cover them all, and nothing but them.

Whoever can evaluate CEL runs the cases; here they are only held against the definitions.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from tests.kinds.cases import Case, cases

from holdfast import kinds
from holdfast.kinds import checks
from holdfast.kinds.crds import schema_of
from holdfast.kinds.model import Kind


def rules(schema: Mapping[str, Any], path: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """Every rule below ``schema``, with the path of the field that its message is about."""
    for rule in schema.get("x-kubernetes-validations", ()):
        yield f"{path}{rule.get('fieldPath', '')}".lstrip("."), rule
    for name, inner in schema.get("properties", {}).items():
        yield from rules(inner, f"{path}.{name}")
    if "items" in schema:
        yield from rules(schema["items"], f"{path}[]")
    if "additionalProperties" in schema:
        yield from rules(schema["additionalProperties"], f"{path}.*")


def refused(kind: Kind) -> set[tuple[str, str]]:
    """The place and the message of every refusal among the cases, without indices."""
    return {
        (re.sub(r"\[[0-9]+\]", "[]", case.at), case.says)
        for case in cases()
        if case.kind is kind and case.at is not None and case.says is not None
    }


@pytest.mark.parametrize("kind", kinds.ALL, ids=lambda kind: kind.name)
def test_every_rule_refuses_something_in_the_cases(kind: Kind) -> None:
    places: dict[tuple[str, str], set[str]] = {}
    for path, rule in rules(schema_of(kind.model)):
        places.setdefault((rule["rule"], rule["message"]), set()).add(path)
    tried = refused(kind)
    untried = [message for (_, message), paths in places.items() if not any((at, message) in tried for at in paths)]
    assert untried == []


@pytest.mark.parametrize("kind", kinds.ALL, ids=lambda kind: kind.name)
def test_no_case_says_what_no_rule_says(kind: Kind) -> None:
    assert refused(kind) <= {(path, rule["message"]) for path, rule in rules(schema_of(kind.model))}


@pytest.mark.parametrize("kind", dict.fromkeys(case.kind for case in cases()), ids=lambda kind: kind.name)
def test_the_cases_of_a_kind_begin_with_an_object_that_is_accepted(kind: Kind) -> None:
    first = next(case for case in cases() if case.kind is kind)
    assert (first.says, first.old) == (None, None)


@pytest.mark.parametrize("case", cases(), ids=str)
def test_nothing_but_its_rules_decides_a_case(case: Case) -> None:
    assert checks.problems(case.kind, case.new) == ()
    assert case.old is None or checks.problems(case.kind, case.old) == ()
