"""The documentation names every reason with its meaning."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.operators.podcliqueset.reasons import Why

PAGE = Path(__file__).parents[3] / "docs" / "podcliquesets.md"


@pytest.mark.parametrize("reason", Why)
def test_every_reason_is_documented(reason: Why) -> None:
    assert f"| `{reason.value}` | {reason.meaning} |" in PAGE.read_text()
