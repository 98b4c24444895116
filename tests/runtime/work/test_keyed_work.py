"""KeyedWork: keys worked on once at a time, some at a time, until they are done."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta

import pytest

from holdfast.client.protocols import Unreachable
from holdfast.kernel.backoff import Backoff
from holdfast.kernel.outcomes import Again, Done, Outcome, Retry
from holdfast.meta.errors import Conflict, TooManyRequests
from holdfast.runtime.work.keyed_work import KeyedWork
from holdfast.testing.loops import VirtualLoop, run

Do = Callable[[str], Awaitable[Outcome]]


def worked(do: Do, *keys: str, seconds: float = 60, workers: int = 2) -> None:
    """Work on keys for some virtual seconds."""

    async def story(loop: VirtualLoop) -> None:
        work = KeyedWork("test", do, workers=workers, backoff=Backoff(base=timedelta(seconds=1)))
        for key in keys:
            work.add(key)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(work.run(), seconds)

    run(story)


def test_a_key_that_is_added_twice_is_worked_on_once() -> None:
    done: list[str] = []

    async def do(key: str) -> Outcome:
        done.append(key)
        return Done()

    worked(do, "a", "b", "a")
    assert done == ["a", "b"]


def test_no_more_than_so_many_are_worked_on_at_a_time() -> None:
    busy = most = 0

    async def do(key: str) -> Outcome:
        nonlocal busy, most
        busy += 1
        most = max(most, busy)
        await asyncio.sleep(1)
        busy -= 1
        return Done()

    worked(do, *"abcdefg", workers=3)
    assert most == 3


@pytest.mark.parametrize(
    ("error", "tried"),
    [
        pytest.param(TooManyRequests("busy"), [0, 1, 3, 7], id="a refusal"),
        pytest.param(Unreachable("away"), [0, 1, 3, 7], id="no answer"),
        pytest.param(Retry("NotYet", "wait"), [0, 1, 3, 7], id="a wait"),
        pytest.param(Retry("NotYet", "wait", after=timedelta(seconds=4)), [0, 4, 8], id="a wait of its own"),
        pytest.param(ValueError("a defect"), [0, 1, 3, 7], id="a defect"),
    ],
)
def test_what_fails_is_tried_again_after_a_while_that_grows(error: Exception, tried: list[float]) -> None:
    at: list[float] = []

    async def do(key: str) -> Outcome:
        at.append(asyncio.get_running_loop().time())
        raise error

    worked(do, "a", seconds=10)
    assert at == tried


@pytest.mark.parametrize(
    ("error", "logged"),
    [
        pytest.param(TooManyRequests("busy"), ["WARNING work failed"], id="a refusal is"),
        pytest.param(ValueError("a defect"), ["ERROR work crashed"], id="a defect is"),
        pytest.param(Conflict("changed meanwhile"), [], id="that others were faster is no trouble"),
        pytest.param(Retry("NotYet", "wait"), [], id="a wait is no trouble"),
    ],
)
def test_a_problem_is_logged_once(error: Exception, logged: list[str], caplog: pytest.LogCaptureFixture) -> None:
    async def do(key: str) -> Outcome:
        raise error

    worked(do, "a", seconds=100)
    assert [f"{record.levelname} {record.message}" for record in caplog.records] == logged


def test_a_key_may_ask_to_be_looked_at_again() -> None:
    at: list[float] = []

    async def do(key: str) -> Outcome:
        at.append(asyncio.get_running_loop().time())
        return Again(timedelta(seconds=5), "something is awaited") if len(at) < 3 else Done()

    worked(do, "a")
    assert at == [0, 5, 10]
