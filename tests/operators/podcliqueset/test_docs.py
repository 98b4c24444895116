"""The documentation names every reason with its meaning."""

from __future__ import annotations

import pytest
from tests.places import ROOT

from holdfast.operators.podcliqueset.reasons import PodCliqueSetReason

PAGE = ROOT / "docs" / "podcliquesets.md"


@pytest.mark.parametrize("reason", PodCliqueSetReason)
def test_every_reason_is_documented(reason: PodCliqueSetReason) -> None:
    assert f"| `{reason.value}` | {reason.meaning} |" in PAGE.read_text()
