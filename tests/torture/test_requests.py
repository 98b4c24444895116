"""A server answers whatever is sent to its socket; `requests.py` tells what is sent, `make torture` sends more."""

from __future__ import annotations

import asyncio
from pathlib import Path

from tests.torture.requests import PATIENCE, Requests, fuzzed

SEED = 20250115


def test_every_request_over_the_socket_is_answered_and_none_with_500(tmp_path: Path) -> None:
    tally = asyncio.run(fuzzed(tmp_path, requests=1_500, seed=SEED))
    assert tally.defects == [], f"seed {SEED}"
    assert tally.statuses["2xx"] > 50
    assert tally.slowest < PATIENCE


def test_a_request_is_drawn_from_its_seed_and_number_alone() -> None:
    first, again, other = Requests(1, "t"), Requests(1, "t"), Requests(2, "t")
    assert [first(number) for number in (5, 3)] == [again(number) for number in (5, 3)]
    assert first(3) != other(3)
