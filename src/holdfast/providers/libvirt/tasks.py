"""The connection to libvirt, the tasks with it, and the codes of its errors.

The binding blocks, so its calls run in threads.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Lock
from typing import Any, Final, TypeVar

import libvirt

from holdfast.providers.contract import Code, ProviderError, Task, TaskState

log: Final = logging.getLogger(__name__)
T = TypeVar("T")

TASKS_KEPT: Final = 1000
"""How many tasks that are done are kept; a caller asks soon after the end of one."""

CODES: Final[dict[int, Code]] = {
    **dict.fromkeys(
        (
            libvirt.VIR_ERR_NO_DOMAIN,
            libvirt.VIR_ERR_NO_STORAGE_VOL,
            libvirt.VIR_ERR_NO_STORAGE_POOL,
            libvirt.VIR_ERR_NO_DOMAIN_SNAPSHOT,
            libvirt.VIR_ERR_NO_NETWORK,
        ),
        Code.NOT_FOUND,
    ),
    **dict.fromkeys((libvirt.VIR_ERR_AUTH_FAILED, libvirt.VIR_ERR_ACCESS_DENIED), Code.UNAUTHORIZED),
    **dict.fromkeys(
        (
            libvirt.VIR_ERR_NO_SUPPORT,
            libvirt.VIR_ERR_OPERATION_UNSUPPORTED,
            libvirt.VIR_ERR_CONFIG_UNSUPPORTED,
            libvirt.VIR_ERR_ARGUMENT_UNSUPPORTED,
        ),
        Code.UNSUPPORTED,
    ),
    **dict.fromkeys((libvirt.VIR_ERR_OPERATION_INVALID, libvirt.VIR_ERR_DOM_EXIST), Code.CONFLICT),
    **dict.fromkeys((libvirt.VIR_ERR_INVALID_ARG, libvirt.VIR_ERR_XML_ERROR, libvirt.VIR_ERR_XML_DETAIL), Code.INVALID),
    **dict.fromkeys(
        (
            libvirt.VIR_ERR_RPC,
            libvirt.VIR_ERR_NO_CONNECT,
            libvirt.VIR_ERR_OPERATION_TIMEOUT,
            libvirt.VIR_ERR_INVALID_CONN,
        ),
        Code.RETRYABLE,
    ),
    libvirt.VIR_ERR_NO_MEMORY: Code.QUOTA,
}


def error_of(error: libvirt.libvirtError) -> ProviderError:
    code = CODES.get(error.get_error_code(), Code.INTERNAL)
    return ProviderError(code, f"libvirt: {error.get_error_message() or error}")


class Tasks:
    """One libvirt connection, and the tasks that work with it."""

    def __init__(self, uri: str) -> None:
        self._uri = uri
        self._connection: Any = None
        self._opening = Lock()
        self._threads = ThreadPoolExecutor(max_workers=4, thread_name_prefix="libvirt")
        self._numbers = itertools.count(1)
        self._tasks: dict[str, tuple[asyncio.Task[None], dict[str, str]]] = {}
        libvirt.registerErrorHandler(lambda *_: None, None)  # it would print every error

    async def _do(self, work: Callable[[Any], T]) -> T:
        """Run a piece of work with the connection, in a thread."""

        def run() -> T:
            try:
                return work(self._connected())
            except libvirt.libvirtError as error:
                raise error_of(error) from None

        return await asyncio.get_running_loop().run_in_executor(self._threads, run)

    def _connected(self) -> Any:
        with self._opening:
            if self._connection is None or not self._connection.isAlive():
                self._connection = libvirt.open(self._uri)
            return self._connection

    def _begin(self, work: Callable[[Any], dict[str, str]]) -> Task:
        """A task for work that may take long.  Tasks are in memory: after a restart the call is repeated."""
        for known in [id for id, (task, _) in self._tasks.items() if task.done()][:-TASKS_KEPT]:
            del self._tasks[known]
        id = f"task-{next(self._numbers)}"
        result: dict[str, str] = {}

        async def perform() -> None:
            result.update(await self._do(work))

        self._tasks[id] = (asyncio.create_task(perform()), result)
        return Task(id=id)

    async def task(self, task: Task) -> TaskState:
        found = self._tasks.get(task.id)
        if found is None:
            return TaskState.unknown(f"task {task.id} is not known")
        running, result = found
        if not running.done():
            return TaskState(again_after=1.0)
        error = running.exception()
        if isinstance(error, ProviderError):
            return TaskState(done=True, error=error.message, code=error.code)
        if error is not None:
            log.error("task failed by a defect", exc_info=error)
            return TaskState(done=True, error="a defect of the provider; its log has the details", code=Code.INTERNAL)
        return TaskState(done=True, percentage=100, result=result)

    async def cancel(self, task: Task) -> None:
        """Calls of libvirt cannot be cancelled; the task goes on to its end."""

    async def close(self) -> None:
        connection, self._connection = self._connection, None
        for running, _ in self._tasks.values():
            running.cancel()
        if connection is not None:
            await asyncio.get_running_loop().run_in_executor(self._threads, connection.close)
        self._threads.shutdown(wait=False)


def lookup(look: Callable[..., Any], *arguments: Any) -> Any:
    """What a function finds, or None if it does not exist."""
    try:
        return look(*arguments)
    except libvirt.libvirtError as error:
        if CODES.get(error.get_error_code()) in (Code.NOT_FOUND, Code.INVALID):
            return None
        raise
