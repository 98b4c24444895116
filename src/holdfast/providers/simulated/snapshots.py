"""Snapshots of simulated machines."""

from __future__ import annotations

from holdfast.providers.contract import (
    Code,
    Made,
    ProviderError,
    Task,
)
from holdfast.providers.simulated.power import Power
from holdfast.providers.simulated.records import SnapshotRecord, TaskRecord
from holdfast.providers.simulated.world import any_match


class Snapshots(Power):
    """The snapshots of machines."""

    async def snapshot(
        self, id: str, name: str, *, memory: bool = False, quiesce: bool = False, description: str = ""
    ) -> Made:
        answer = await self._call("snapshot", self._name(id))
        record = self._known(id)
        self._can(self.answers.snapshots, "snapshots")
        if memory:
            self._can(self.answers.memory_snapshots, "snapshots with memory")
        if quiesce:
            self._can(self.answers.quiesce, "quiesced snapshots")
            if record.power == "On" and any_match(self.world.no_agent, record.name):
                raise ProviderError(
                    Code.CONFLICT, f"machine {record.name} has no guest agent, so it cannot be quiesced"
                )
        there = record.snapshot(name)
        if there is not None:
            answer()
            return Made(id=there.id)
        size = record.memory_mib << 20 if memory and record.power == "On" else 0
        waiting = [self._tasks[one] for one in self._open.get(id, ())]
        same = next((one for one in waiting if one.call == "snapshot" and one.args["name"] == name), None)
        if same is not None:
            answer()
            return Made(id=same.args["id"], task=Task(id=same.id))
        snapshot = self._next("snap")
        task = await self._start(
            "snapshot",
            record.name,
            id,
            self.latencies.snapshot + self.latencies.copying(size),
            total_bytes=size,
            args={"id": snapshot, "name": name, "memory": memory, "description": description},
        )
        answer()
        return Made(id=snapshot, task=task)

    async def _do_snapshot(self, task: TaskRecord) -> dict[str, str]:
        record = self._known(task.subject)
        memory = task.args["memory"] and record.power == "On"
        taken = SnapshotRecord(
            id=task.args["id"],
            name=task.args["name"],
            description=task.args["description"],
            memory=memory,
            parent=record.current,
            size_bytes=(record.memory_mib << 20 if memory else 0) + (64 << 20),
            power="On" if memory else "Off",
            cpus=record.cpus,
            memory_mib=record.memory_mib,
            disks=[disk.copy(disk.id) for disk in record.disks],
        )
        record.snapshots.append(taken)
        record.current = taken.id
        self._save(record)
        return {"size_bytes": str(taken.size_bytes), "parent": taken.parent}

    async def delete_snapshot(self, id: str, snapshot: str) -> Task | None:
        answer = await self._call("delete_snapshot", self._name(id))
        record = self._machines.get(id)
        task = None
        if record is not None and (record.snapshot(snapshot) is not None or not self._idle(id)):
            task = await self._start("delete_snapshot", record.name, id, self.latencies.snapshot, args={"id": snapshot})
        answer()
        return task

    async def _do_delete_snapshot(self, task: TaskRecord) -> None:
        record = self._machines.get(task.subject)
        gone = record.snapshot(task.args["id"]) if record else None
        if record is None or gone is None:
            return
        record.snapshots.remove(gone)
        for child in record.snapshots:
            if child.parent == gone.id:
                child.parent = gone.parent
        if record.current == gone.id:
            record.current = gone.parent
        self._save(record)

    async def revert(self, id: str, snapshot: str) -> Task | None:
        answer = await self._call("revert", self._name(id))
        record = self._known(id)
        if record.snapshot(snapshot) is None and self._idle(id):
            raise ProviderError(Code.NOT_FOUND, f"machine {record.name} has no snapshot {snapshot}")
        task = await self._start("revert", record.name, id, self.latencies.revert, args={"id": snapshot})
        answer()
        return task

    async def _do_revert(self, task: TaskRecord) -> None:
        record = self._known(task.subject)
        taken = record.snapshot(task.args["id"])
        if taken is None:
            raise ProviderError(Code.NOT_FOUND, f"machine {record.name} has no snapshot {task.args['id']}")
        record.disks = [disk.copy(disk.id) for disk in taken.disks]
        record.cpus, record.memory_mib, record.current = taken.cpus, taken.memory_mib, taken.id
        self._set_power(record, taken.power, task.end - (self.latencies.boot if taken.memory else 0))
        self._save(record)
