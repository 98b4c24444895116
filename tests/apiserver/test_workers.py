"""Large computations leave the event loop, and no garbage is collected while a request with a huge object lasts."""

from __future__ import annotations

import asyncio
import gc
import threading
from collections.abc import Awaitable, Callable, Iterator

import pytest

from holdfast.apiserver import workers
from holdfast.apiserver.workers import HUGE, LARGE, OfRequest, compute


@pytest.fixture(autouse=True)
def _collecting() -> Iterator[None]:
    was = gc.isenabled()
    gc.enable()
    yield
    (gc.enable if was else gc.disable)()


def settled() -> bool:
    """Whether garbage is collected, when the thread has done all that it was given."""
    workers._thread().submit(lambda: None).result()
    return gc.isenabled()


def played(story: Callable[[], Awaitable[None]]) -> None:
    async def inside() -> None:
        await story()

    asyncio.run(inside())


@pytest.mark.parametrize(("size", "on_loop"), [(LARGE - 1, True), (LARGE, False)])
def test_what_is_large_is_computed_on_another_thread(size: int, on_loop: bool) -> None:
    async def story() -> None:
        assert (await compute(size, threading.get_ident) == threading.get_ident()) is on_loop

    played(story)


@pytest.mark.parametrize(("size", "collects"), [(HUGE - 1, True), (HUGE, False)])
def test_no_garbage_is_collected_from_a_huge_computation_to_the_end_of_its_request(size: int, collects: bool) -> None:
    async def story() -> None:
        with OfRequest():
            assert await compute(size, gc.isenabled) is collects
            assert gc.isenabled() is collects
        assert settled()

    played(story)


def test_collections_wait_for_the_last_of_several_huge_requests() -> None:
    async def story() -> None:
        first, second = asyncio.Event(), asyncio.Event()

        async def request(until: asyncio.Event) -> None:
            with OfRequest():
                await compute(HUGE, lambda: None)
                await until.wait()

        tasks = [asyncio.create_task(request(each)) for each in (first, second)]
        await compute(LARGE, lambda: None)
        first.set()
        await tasks[0]
        assert not settled()
        second.set()
        await tasks[1]
        assert settled()

    played(story)


def test_a_request_that_fails_postpones_nothing_any_more() -> None:
    async def story() -> None:
        with pytest.raises(ZeroDivisionError), OfRequest():
            await compute(HUGE, lambda: 1 // 0)
        assert settled()

    played(story)


def test_there_is_a_collection_now_and_then_although_huge_requests_never_end(monkeypatch: pytest.MonkeyPatch) -> None:
    collected: list[int] = []
    monkeypatch.setattr(workers, "_UNCOLLECTED_SECONDS", -1.0)
    monkeypatch.setattr(gc, "collect", lambda: collected.append(1))

    async def story() -> None:
        with OfRequest():
            await compute(HUGE, lambda: None)
            with OfRequest():
                await compute(HUGE, lambda: None)
        assert settled()

    played(story)
    assert collected == [1]


def test_who_has_switched_the_collector_off_finds_it_off() -> None:
    async def story() -> None:
        gc.disable()
        with OfRequest():
            await compute(HUGE, lambda: None)
        assert not settled()

    played(story)
