"""Waiting in tests for what other processes, threads and connections do, in real time."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from typing import Any, Protocol, TypeVar, overload

from holdfast.providers.contract import Task, TaskState

T = TypeVar("T")

PATIENCE = 30.0
"""Seconds: far more than anything takes, also on a machine with much to do."""

_LOOK_SECONDS = 0.01


@overload
async def eventually(look: Callable[[], Awaitable[T | None]], *, within: float = PATIENCE) -> T: ...


@overload
async def eventually(look: Callable[[], T | None], *, within: float = PATIENCE) -> T: ...


async def eventually(look: Callable[[], Any], *, within: float = PATIENCE) -> Any:
    """Look until there is something to see, and return it; nothing announces what is waited for here."""
    async with asyncio.timeout(within):
        while True:
            seen = look()
            found = await seen if inspect.isawaitable(seen) else seen
            if found:
                return found
            await asyncio.sleep(_LOOK_SECONDS)


class Tasks(Protocol):
    """What has tasks, which callers ask for by contract: a hypervisor."""

    async def task(self, task: Task) -> TaskState: ...


async def ended(hypervisor: Tasks, task: Task | None) -> TaskState:
    """The state of a task at its end; no task has ended already."""
    if task is None:
        return TaskState(done=True)

    async def state() -> TaskState | None:
        found = await hypervisor.task(task)
        return found if found.done else None

    return await eventually(state, within=10 * PATIENCE)
