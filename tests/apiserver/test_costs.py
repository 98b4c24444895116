"""What a request costs: it grows with the size and not with its square, and other requests are answered meanwhile."""

from __future__ import annotations

import asyncio
import gc
import time
import warnings
from collections.abc import Iterator

import pytest
from tests.apiserver.costs import REQUESTS, Costly

from holdfast.apiserver.server import Server
from holdfast.meta.exchange import Response

LONGEST_STALL = 0.1
"""How long the process may work while other requests wait, in seconds."""

NEGLIGIBLE = 0.01
"""Seconds below which a measurement is mostly noise."""

GROWTH = 6
"""How often the cost of a request may be that of one of a fourth of its size.

Four times is linear, sixteen times is quadratic. A larger request misses more of the processor's caches, most where
other processes use them too, so exactly four times cannot be asked for.
"""

ROUNDS = 40
"""How often a request is measured until the least of its measurements agree with the limits."""


@pytest.fixture(autouse=True)
def _without_collector() -> Iterator[None]:
    """The garbage collector runs when it likes, and its time grows with everything else in this process."""
    with warnings.catch_warnings():
        # What other tests left open is not the subject here.
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()
    gc.disable()
    yield
    gc.enable()


class Measured:
    """The time that a request takes the process, and the longest part of it that the event loop had to wait for."""

    def __init__(self, costly: Costly, n: int) -> None:
        self.seconds = self.stall = 0.0
        self.answer = asyncio.run(self._measure(costly, n))

    async def _measure(self, costly: Costly, n: int) -> Response:
        server = await Server.open(None)
        token = server.identity.admin_token
        for preparation in costly.preparations(n, token):
            answer = await server.handle(preparation)
            assert answer.status == 201, answer.body[:1000]
        request = costly.request(n, token)
        ticking = asyncio.create_task(self._tick())
        await asyncio.sleep(0)
        started = time.process_time()
        answer = await server.handle(request)
        self.seconds = time.process_time() - started
        await asyncio.sleep(0.005)
        ticking.cancel()
        await server.close()
        return answer

    async def _tick(self) -> None:
        # By the processor's time too: where other processes use it, nothing of this one stalls the loop.
        last = time.process_time()
        while True:
            await asyncio.sleep(0.002)
            now = time.process_time()
            self.stall, last = max(self.stall, now - last), now


@pytest.mark.parametrize("costly", REQUESTS, ids=lambda costly: costly.name)
def test_the_cost_of_a_request_grows_with_its_size_and_stalls_no_other_request(costly: Costly) -> None:
    little = much = stall = float("inf")
    for _ in range(ROUNDS):
        small, large = Measured(costly, costly.size // 2), Measured(costly, 2 * costly.size)
        assert small.answer.status in costly.code, small.answer.body[:1000]
        # What is refused is told without the whole of it.
        assert small.answer.status < 300 or len(small.answer.body) < 500_000
        little, much, stall = min(little, small.seconds), min(much, large.seconds), min(stall, large.stall)
        if much <= max(GROWTH * little, NEGLIGIBLE) and stall <= LONGEST_STALL:
            return
    assert much <= max(GROWTH * little, NEGLIGIBLE), f"{little * 1e3:.1f} ms, four times the size {much * 1e3:.1f} ms"
    assert stall <= LONGEST_STALL, f"the event loop was not available for {stall * 1e3:.0f} ms"
