"""The documentation has every reason with its meaning, and every row of the transition table."""

from __future__ import annotations

import pytest
from tests.places import ROOT

from holdfast.operators.deploymentrequest.requests.overrides import ALLOWED
from holdfast.operators.deploymentrequest.requests.reasons import RequestReason
from holdfast.operators.deploymentrequest.requests.transitions import TABLE

PAGE = (ROOT / "docs" / "deploymentrequests.md").read_text()


@pytest.mark.parametrize("reason", RequestReason)
def test_every_reason_is_documented(reason: RequestReason) -> None:
    assert f"| `{reason.value}` | {reason.meaning} |" in PAGE


@pytest.mark.parametrize("row", TABLE)
def test_every_row_of_the_table_is_documented(row: str) -> None:
    found = TABLE[row]
    source = ", ".join(each or "–" for each in found.source) or "any other"
    assert f"| {row} | {source} | {found.when} | {found.target or '(stays)'} |" in PAGE


@pytest.mark.parametrize("field", ALLOWED)
def test_every_field_that_may_be_overridden_is_documented(field: str) -> None:
    assert f"`{field}`" in PAGE
