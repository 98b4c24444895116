"""The calls and tasks of the simulated hypervisor, on its clock.

A call checks its arguments and makes a task, with an end on the clock; the effect of a task, the method `_do_CALL`,
is applied by the first call at or after its end.  So nothing runs between calls, and a test that moves its clock sees
what a real hypervisor would show at that time.
"""

from __future__ import annotations

import asyncio
import heapq
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec

from holdfast.providers.contract import (
    Capabilities,
    Code,
    Disk,
    ProviderError,
    Stage,
    Task,
    TaskState,
    Transfer,
)
from holdfast.providers.simulated.journal import Journal
from holdfast.providers.simulated.records import DiskRecord, ImageRecord, MachineRecord, TaskRecord
from holdfast.providers.simulated.stores import MemoryStore, Store
from holdfast.providers.simulated.world import Fault, Latencies, World, chance

CAPABILITIES: Final = Capabilities(
    version="simulated/1",
    reconfigure_online=True,
    disk_expansion_online=True,
    snapshots=True,
    memory_snapshots=True,
    quiesce=True,
    linked_clones=True,
    instant_clones=True,
    image_import=True,
    disk_types=("thin", "thick"),
    network_types=("bridge", "user"),
    disk_export=True,
    disk_import=True,
    export_formats=("qcow2", "raw", "vmdk"),
    import_formats=("qcow2", "raw", "vmdk"),
    export_compression=True,
    export_backends=("pvc", "nfs", "s3"),
    import_backends=("pvc", "nfs", "s3"),
    transfer_modes=("relay", "direct"),
    inventory=True,
    guest_commands=True,
)

TASKS_KEPT: Final = 10_000


class Tasks:
    """What the hypervisor has and knows, and the tasks that change it."""

    def __init__(
        self,
        world: World | None = None,
        *,
        clock: Callable[[], float] = time.time,
        seed: int = 0,
        latencies: Latencies | None = None,
        faults: Sequence[Fault] = (),
        capabilities: Capabilities = CAPABILITIES,
        store: Store | None = None,
        journal: Path | None = None,
    ) -> None:
        self.world = world or World.of()
        self.latencies = latencies or Latencies()
        self.faults = list(faults)
        self.answers = capabilities
        self.store: Store = store or MemoryStore()
        self.calls: list[tuple[str, str]] = []
        """The calls so far, with the name of what they were for."""
        self.commands: list[tuple[str, tuple[str, ...]]] = []
        """The commands that were run in guests, with the names of the machines."""
        self._clock = clock
        self._seed = seed
        self._number = 0
        self._asked: dict[tuple[str, str], int] = {}
        self._used: dict[int, tuple[Fault, int]] = {}
        self._machines: dict[str, MachineRecord] = {}
        self._names: dict[str, str] = {}
        self._images: dict[str, ImageRecord] = {}
        self._disks: dict[str, DiskRecord] = {}
        self._tasks: dict[str, TaskRecord] = {}
        self._open: dict[str, list[str]] = {}
        self._due: list[tuple[float, int, str]] = []
        self._transfers: dict[str, Transfer] = {}
        """The transfers under way with their credentials, which the journal does not have."""
        self._sums: dict[str, str] = {}
        self._advancing = asyncio.Lock()
        self._journal = Journal(journal)
        self._recover()

    def _recover(self) -> None:
        for (kind, id), value in self._journal.records.items():
            match kind:
                case "machine":
                    machine = msgspec.convert(value, MachineRecord)
                    self._machines[id] = machine
                    self._names[machine.name] = id
                case "image":
                    self._images[id] = msgspec.convert(value, ImageRecord)
                case "disk":
                    self._disks[id] = msgspec.convert(value, DiskRecord)
                case "task":
                    self._enqueue(msgspec.convert(value, TaskRecord))
                case _:
                    continue
            self._number = max(self._number, int(id.rpartition("-")[2]))
        self._journal.records.clear()

    def _save(self, record: MachineRecord | ImageRecord | DiskRecord | TaskRecord) -> None:
        match record:
            case MachineRecord():
                self._machines[record.id] = record
                self._names[record.name] = record.id
                self._journal.write("machine", record.id, record)
            case ImageRecord():
                self._images[record.id] = record
                self._journal.write("image", record.id, record)
            case DiskRecord():
                self._disks[record.id] = record
                self._journal.write("disk", record.id, record)
            case TaskRecord():
                self._tasks[record.id] = record
                self._journal.write("task", record.id, record)

    def _forget(self, machine: MachineRecord) -> None:
        self._machines.pop(machine.id, None)
        if self._names.get(machine.name) == machine.id:
            del self._names[machine.name]
        self._journal.remove("machine", machine.id)

    def _next(self, kind: str) -> str:
        self._number += 1
        return f"{kind}-{self._number}"

    def _now(self) -> float:
        return self._clock()

    async def _call(self, call: str, name: str) -> Callable[[], None]:
        """Begin a call: wait its latency, fail if it is to fail, and apply what is due.

        The function that is returned fails a call whose answer is to be lost.
        """
        self.calls.append((call, name))
        if self.latencies.call:
            await asyncio.sleep(self.latencies.call)
        count = self._asked[call, name] = self._asked.get((call, name), 0) + 1
        self._fail(call, name, count, "before")
        await self._advance()
        return lambda: self._fail(call, name, count, "after")

    def _fail(self, call: str, name: str, count: int, when: str) -> None:
        fault = self._fault(call, name, count, when)
        if fault is not None:
            raise ProviderError(fault.code, fault.message)

    def _fault(self, call: str, name: str, count: int, when: str) -> Fault | None:
        for index, fault in enumerate(self.faults):
            if fault.when != when or not fault.matches(call, name):
                continue
            _, used = self._used.get(id(fault), (fault, 0))
            if fault.times is not None and used >= fault.times:
                continue
            if fault.rate < 1 and chance(self._seed, index, call, name, count, when) >= fault.rate:
                continue
            self._used[id(fault)] = fault, used + 1
            return fault
        return None

    async def _advance(self) -> None:
        """Apply the effects of the tasks whose end has come, in the order of their ends."""
        if not self._due or self._due[0][0] > self._now():
            return
        async with self._advancing:
            while self._due and self._due[0][0] <= self._now():
                record = self._tasks.get(heapq.heappop(self._due)[2])
                if record is not None and not record.done:
                    await self._finish(record)

    async def _finish(self, record: TaskRecord) -> None:
        try:
            if record.fails_with is not None:
                raise ProviderError(record.fails_with, record.fails)
            effect: Callable[[TaskRecord], Awaitable[dict[str, str] | None]] = getattr(self, f"_do_{record.call}")
            record.result = await effect(record) or {}
        except ProviderError as error:
            record.error, record.code = error.message, error.code
            await self._undo(record)
        self._close(record)

    def _close(self, record: TaskRecord) -> None:
        record.done = True
        waiting = self._open.get(record.subject, [])
        if record.id in waiting:
            waiting.remove(record.id)
        if not waiting:
            self._open.pop(record.subject, None)
        self._save(record)

    async def _undo(self, record: TaskRecord) -> None:
        """Remove what a failed task was to make."""
        undo: Callable[[TaskRecord], Awaitable[None]] | None = getattr(self, f"_undo_{record.call}", None)
        if undo is not None:
            await undo(record)

    def _enqueue(self, record: TaskRecord) -> None:
        self._tasks[record.id] = record
        if not record.done:
            self._open.setdefault(record.subject, []).append(record.id)
            heapq.heappush(self._due, (record.end, int(record.id.rpartition("-")[2]), record.id))

    async def _start(
        self,
        call: str,
        name: str,
        subject: str,
        seconds: float,
        *,
        total_bytes: int = 0,
        stages: tuple[tuple[str, int], ...] = (),
        disks: tuple[Disk, ...] = (),
        args: dict[str, Any] | None = None,
    ) -> Task | None:
        """A task for a subject, after those that it has; None if it is done at once."""
        args = args or {}
        before = [self._tasks[id] for id in self._open.get(subject, ())]
        if before and before[-1].call == call and before[-1].args == args:
            return Task(id=before[-1].id)
        if self.latencies.jitter:
            share = chance(self._seed, "jitter", call, name, self._asked.get((call, name), 0))
            seconds *= 1 + self.latencies.jitter * (2 * share - 1)
        start = max([self._now(), *(task.end for task in before)])
        fault = self._fault(call, name, self._asked.get((call, name), 0), "task")
        record = TaskRecord(
            id=self._next("task"),
            call=call,
            name=name,
            subject=subject,
            start=start,
            end=start + seconds,
            disks=disks,
            args=args,
            total_bytes=total_bytes,
            stages=stages,
            fails=fault.message if fault else "",
            fails_with=fault.code if fault else None,
        )
        self._enqueue(record)
        self._save(record)
        self._prune()
        await self._advance()
        if not record.done:
            return Task(id=record.id)
        del self._tasks[record.id]
        self._journal.remove("task", record.id)
        if record.code is not None:
            raise ProviderError(record.code, record.error)
        return None

    def _prune(self) -> None:
        """Forget the oldest tasks that are done, when there are many."""
        if len(self._tasks) > 2 * TASKS_KEPT:
            for id in [id for id, task in self._tasks.items() if task.done][:TASKS_KEPT]:
                del self._tasks[id]
                self._journal.remove("task", id)

    def _known(self, id: str) -> MachineRecord:
        machine = self._machines.get(id)
        if machine is None:
            raise ProviderError(Code.NOT_FOUND, f"machine {id} does not exist")
        return machine

    def _name(self, id: str) -> str:
        machine = self._machines.get(id)
        return machine.name if machine else id

    def _idle(self, id: str) -> bool:
        return id not in self._open

    @staticmethod
    def _can(ability: bool, what: str) -> None:
        if not ability:
            raise ProviderError(Code.UNSUPPORTED, f"this provider does not support {what}")

    async def task(self, task: Task) -> TaskState:
        (await self._call("task", self._tasks[task.id].name if task.id in self._tasks else ""))()
        record = self._tasks.get(task.id)
        if record is None:
            return TaskState.unknown(f"task {task.id} is not known")
        if record.done:
            return TaskState(
                done=True,
                error=record.error,
                code=record.code,
                percentage=None if record.error else 100,
                done_bytes=record.total_bytes or None,
                total_bytes=record.total_bytes or None,
                result=record.result,
            )
        now = self._now()
        share = min(1.0, max(0.0, (now - record.start) / max(record.end - record.start, 1e-9)))
        stage, ends = _stage(record, share)
        return TaskState(
            percentage=min(99, int(100 * share)),
            done_bytes=int(record.total_bytes * share) if record.total_bytes else None,
            total_bytes=record.total_bytes or None,
            again_after=max(0.001, record.start + ends * (record.end - record.start) - now),
            stage=stage,
        )

    async def cancel(self, task: Task) -> None:
        (await self._call("cancel", self._tasks[task.id].name if task.id in self._tasks else ""))()
        record = self._tasks.get(task.id)
        if record is not None and not record.done:
            record.error, record.code = "cancelled", Code.CONFLICT
            await self._undo(record)
            self._close(record)


def _stage(record: TaskRecord, share: float) -> tuple[Stage | None, float]:
    """The stage of a task of which a share is done, and the share at which the stage ends."""
    whole, before = sum(weight for _, weight in record.stages), 0
    for number, (name, weight) in enumerate(record.stages, 1):
        if share * whole < before + weight or number == len(record.stages):
            total = weight if whole == record.total_bytes else record.total_bytes or None
            done = None if total is None else min(total, int((share * whole - before) / max(weight, 1) * total))
            stage = Stage(name=name, number=number, count=len(record.stages), done_bytes=done, total_bytes=total)
            return stage, (before + weight) / whole
        before += weight
    return None, 1.0
