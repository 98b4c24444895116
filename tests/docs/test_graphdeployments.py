"""The page of DynamoGraphDeployments: it has every reason that their conditions and Events give."""

from __future__ import annotations

import pytest
from tests.places import ROOT

from holdfast.kernel.reasons import Reason
from holdfast.operators.deploymentrequest.adapters.reasons import AdapterReason
from holdfast.operators.deploymentrequest.graphs.reasons import GraphReason
from holdfast.operators.deploymentrequest.models.reasons import ModelReason

PAGE = (ROOT / "docs" / "graphdeployments.md").read_text()


@pytest.mark.parametrize("reason", [*GraphReason, *ModelReason, *AdapterReason], ids=str)
def test_the_page_has_every_reason(reason: Reason) -> None:
    assert f"`{reason.value}`" in PAGE
