"""The tasks of the QEMU provider: written to the books before they begin, one after the other for each subject.

A task calls the method `_do_CALL` of the provider, and `_undo_CALL`, where there is one, when that failed.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any, Final

import msgspec

from holdfast.providers.contract import (
    Code,
    ProviderError,
    Stage,
    Task,
    TaskState,
    Transfer,
)
from holdfast.providers.qemu import launch
from holdfast.providers.qemu.guest import Guest
from holdfast.providers.qemu.records import (
    Books,
    TaskRecord,
    save,
)
from holdfast.providers.staging import HostPolicy, Staging

log: Final = logging.getLogger(__name__)

TASKS_KEPT: Final = 500

Effect = Callable[[TaskRecord], Awaitable[dict[str, str] | None]]


class Tasks:
    """What the provider has and knows, and the tasks that change it."""

    def __init__(
        self,
        data: Path,
        *,
        hosts: Mapping[str, Path] | None = None,
        image_folders: tuple[Path, ...] = (),
        storage: Path | None = None,
        claims: Mapping[str, Path] | None = None,
        hosts_allowed: tuple[str, ...] = (),
        acceleration: launch.Acceleration | None = None,
    ) -> None:
        self._data = data
        self._hosts = dict(hosts or {"local": data / "hosts" / "local"})
        self._staging = Staging(storage, claims=claims, hosts=HostPolicy(hosts_allowed))
        self._image_folders = (data / "images", *image_folders)
        self._acceleration = acceleration
        self._version = ""
        self._books = Books()
        self._guests: dict[str, Guest] = {}
        self._running: dict[str, asyncio.Task[None]] = {}
        self._last: dict[str, str] = {}
        self._progress: dict[str, tuple[int, int, float]] = {}
        self._stages: dict[str, Stage] = {}
        self._watched: dict[str, tuple[Path, int, int]] = {}
        self._transfers: dict[str, Transfer] = {}
        self._lock = -1

    def _write(self) -> None:
        save(self._data / "books.json", self._books)

    def _number(self, kind: str) -> str:
        self._books.number += 1
        return f"{kind}-{self._books.number}"

    def _submit(self, call: str, subject: str, args: dict[str, Any] | None = None) -> Task:
        """Note a task and begin it, after those of the same subject."""
        args = args or {}
        last = self._books.tasks.get(self._last.get(subject, ""))
        if last is not None and not last.done and last.call == call and last.args == args:
            return Task(id=last.id)
        record = TaskRecord(id=self._number("task"), call=call, subject=subject, args=args)
        self._books.tasks[record.id] = record
        finished = [id for id, task in self._books.tasks.items() if task.done]
        for id in finished[: max(0, len(finished) - TASKS_KEPT)]:
            del self._books.tasks[id]
        self._write()
        self._go(record)
        return Task(id=record.id)

    def _go(self, record: TaskRecord) -> None:
        before = self._running.get(self._last.get(record.subject, ""))
        self._last[record.subject] = record.id
        self._running[record.id] = asyncio.create_task(self._perform(record, before))

    async def _perform(self, record: TaskRecord, before: asyncio.Task[None] | None) -> None:
        try:
            if before is not None:
                await asyncio.wait({before})
            effect: Effect = getattr(self, f"_do_{record.call}")
            record.result = await effect(record) or {}
        except ProviderError as error:
            record.error, record.code = error.message, error.code
        except asyncio.CancelledError:
            if self._lock < 0:
                return  # the provider ends; the next one goes on
            record.error, record.code = "cancelled", Code.CONFLICT
        except Exception:
            log.exception("task failed by a defect", extra={"fields": {"task": record.id, "call": record.call}})
            record.error, record.code = "a defect of the provider; its log has the details", Code.INTERNAL
        if record.error:
            undo: Effect | None = getattr(self, f"_undo_{record.call}", None)
            with contextlib.suppress(ProviderError, OSError):
                if undo is not None:
                    await undo(record)
        record.done = True
        record.args = {}
        self._write()
        self._running.pop(record.id, None)
        self._progress.pop(record.id, None)
        self._stages.pop(record.id, None)
        self._watched.pop(record.id, None)
        self._transfers.pop(record.id, None)
        if self._last.get(record.subject) == record.id:
            del self._last[record.subject]

    def _report(self, task: str, total: int) -> Callable[[float], None]:
        """A function that takes percentages of a whole."""
        began = asyncio.get_running_loop().time()
        self._progress[task] = (0, total, began)
        return lambda percent: self._progress.__setitem__(task, (int(total * percent / 100), total, began))

    def _stage(self, task: str, stage: Stage, report: Callable[[float], None]) -> Callable[[float], None]:
        """Begin a stage of a task; returns a function that takes percentages of it, as `report` those of the task."""
        self._stages[task] = stage
        total = stage.total_bytes

        def at(percent: float) -> None:
            if total is not None:
                self._stages[task] = msgspec.structs.replace(stage, done_bytes=int(total * percent / 100))
            report((100 * (stage.number - 1) + percent) / stage.count)

        at(0)
        return at

    async def task(self, task: Task) -> TaskState:
        record = self._books.tasks.get(task.id)
        if record is None:
            return TaskState.unknown(f"task {task.id} is not known")
        if record.done:
            return TaskState(
                done=True,
                error=record.error,
                code=record.code,
                percentage=None if record.error else 100,
                result=record.result,
            )
        done, total, began = self._progress.get(task.id, (0, 0, 0.0))
        if task.id in self._watched:
            path, before, total = self._watched[task.id]
            with contextlib.suppress(OSError):
                done = min(total, max(0, path.stat().st_blocks * 512 - before))
        again = 0.5
        if done and total:
            rate = done / max(asyncio.get_running_loop().time() - began, 0.1)
            again = min(30.0, max(0.2, (total - done) / rate)) if began else 0.5
        return TaskState(
            percentage=min(99, 100 * done // total) if total else None,
            done_bytes=done if total else None,
            total_bytes=total or None,
            again_after=again,
            stage=self._stages.get(task.id),
        )

    async def cancel(self, task: Task) -> None:
        running = self._running.get(task.id)
        if running is not None:
            running.cancel()
            await asyncio.wait({running})

    def _guest(self, id: str) -> Guest:
        guest = self._guests.get(id)
        if guest is None:
            raise ProviderError(Code.NOT_FOUND, f"machine {id} does not exist")
        return guest

    def _named(self, name: str) -> Guest | None:
        return next((guest for guest in self._guests.values() if guest.record.name == name), None)

    def _transfer(self, task: TaskRecord) -> Transfer:
        """The transfer of a task with its credentials, which are nowhere but in memory."""
        if task.id in self._transfers:
            return self._transfers[task.id]
        if task.args.get("secret"):
            raise ProviderError(Code.RETRYABLE, "the provider was restarted and has no credentials for this any more")
        return msgspec.convert(task.args["transfer"], Transfer)
