"""Killed at random moments, a server keeps what it promised its clients; `torture_server.py` tells how that is seen."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from tests.torture.server import ClientWitness, torture


def test_no_promise_to_a_client_is_broken_when_the_server_is_killed_again_and_again(tmp_path: Path) -> None:
    witness = asyncio.run(torture(tmp_path / "data", rounds=5, seed=20250115))
    assert witness.openings > 2
    assert witness.promises > 100
    assert witness.removed


FIRST = ["event", 7, "a", False, "1f"]


@pytest.mark.parametrize(
    ("lines", "complaint"),
    [
        ([["acknowledged", 7, "a", False, "1f"], ["found", 6, {}]], "gone after a restart"),
        ([["acknowledged", 7, "a", False, "1f"], ["event", 9, "b", False, "1f"]], "never among the events"),
        ([["removed", "uid"], FIRST], "deleted, but never among the events"),
        ([["gone", "uid"], ["gone", "uid"]], "deleted twice"),
        ([FIRST, FIRST], "event 7 follows 7"),
        ([FIRST, ["event", 5, "b", False, "1f"]], "event 5 follows 7"),
        ([FIRST, ["found", 8, {}], ["event", 9, "b", False, "1f"]], "differs from the events"),
        ([["found", 8, {"a": [7, "1f"]}], ["event", 9, "b", False, "1f"]], "differs from the events"),
        ([["found", 8, {}], FIRST], "never came to the version"),
    ],
)
def test_the_witness_of_clients_notices_a_broken_promise(lines: list[list[object]], complaint: str) -> None:
    witness = ClientWitness()

    def hear() -> None:
        for line in lines:
            witness.hear(line)
        witness.settle()

    with pytest.raises(AssertionError, match=complaint):
        hear()


def test_versions_of_other_kinds_are_no_broken_promise() -> None:
    witness = ClientWitness()
    for line in (FIRST, ["found", 8, {"a": [7, "1f"]}], ["event", 12, "b", False, "2f"]):
        witness.hear(line)
    witness.settle()
