"""Health and watches are answered while another client sends costly requests; `make torture` sends all of them."""

from __future__ import annotations

import asyncio

import pytest
from tests.apiserver.costs import REQUESTS
from tests.torture.latency import QUICK, shortest


@pytest.mark.parametrize("name", QUICK)
def test_health_and_watches_do_not_wait_for_a_costly_request(name: str) -> None:
    (costly,) = [each for each in REQUESTS if each.name == name]
    delays = asyncio.run(shortest(costly, 2 * costly.size, kept=lambda it: it.kept_by_server))
    assert delays.kept_by_server, str(delays)
