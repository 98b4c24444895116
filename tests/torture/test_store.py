"""Killed at random moments, the store keeps what it promised; `torture.py` tells how that is seen."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.torture.store import Witness, torture


def test_no_promise_is_broken_when_the_process_is_killed_again_and_again(tmp_path: Path) -> None:
    witness = torture(str(tmp_path / "data"), rounds=10, seed=20250115)
    assert witness.openings > 1
    assert len(witness.acknowledged) > 100


FIRST = ["event", 2, "a", False, "1f"]


@pytest.mark.parametrize(
    ("lines", "complaint"),
    [
        ([["acknowledged", 2, "a", False, "1f"], ["found", 1, {}]], "gone after a restart"),
        ([["acknowledged", 2, "a", False, "1f"]], "never among the events"),
        ([["acknowledged", 2, "a", False, "00"], FIRST], "event"),
        ([FIRST, ["acknowledged", 2, "a", True, "1f"]], "acknowledged"),
        ([FIRST, FIRST], "event 2 follows 2"),
        ([FIRST, ["event", 4, "b", False, "1f"]], "event 4 follows 2"),
        ([["found", 2, {"a": [2, "00"]}], FIRST], "differs from the events"),
        ([["found", 3, {}], FIRST], "never came to the version"),
    ],
)
def test_the_witness_notices_a_broken_promise(lines: list[list[object]], complaint: str) -> None:
    witness = Witness()

    def hear() -> None:
        for line in lines:
            witness.hear(line)
        witness.settle()

    with pytest.raises(AssertionError, match=complaint):
        hear()
