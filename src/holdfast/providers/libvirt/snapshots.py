"""Snapshots of domains of libvirt."""

from __future__ import annotations

from typing import Any

import libvirt

from holdfast.providers.contract import Code, Made, ProviderError, Task
from holdfast.providers.libvirt import xml
from holdfast.providers.libvirt.tasks import Tasks, lookup


class Snapshots(Tasks):
    """Snapshots are taken, deleted, and reverted to."""

    async def snapshot(
        self, id: str, name: str, *, memory: bool = False, quiesce: bool = False, description: str = ""
    ) -> Made:
        if quiesce:
            raise ProviderError(Code.UNSUPPORTED, "this provider does not quiesce guests")

        def work(connection: Any) -> dict[str, str]:
            found = connection.lookupByUUIDString(id)
            current = found.snapshotCurrent().getName() if found.hasCurrentSnapshot() else ""
            with_memory = memory and bool(found.isActive())
            flags = 0 if with_memory or not found.isActive() else libvirt.VIR_DOMAIN_SNAPSHOT_CREATE_DISK_ONLY
            found.snapshotCreateXML(xml.snapshot(name, description, memory=with_memory), flags)
            return {"parent": current}

        there = await self._do(
            lambda connection: lookup(connection.lookupByUUIDString(id).snapshotLookupByName, name) is not None
        )
        return Made(id=name) if there else Made(id=name, task=self._begin(work))

    async def delete_snapshot(self, id: str, snapshot: str) -> Task | None:
        def work(connection: Any) -> dict[str, str]:
            found = lookup(connection.lookupByUUIDString, id)
            taken = lookup(found.snapshotLookupByName, snapshot) if found is not None else None
            if taken is not None:
                taken.delete(0)
            return {}

        return self._begin(work)

    async def revert(self, id: str, snapshot: str) -> Task | None:
        def work(connection: Any) -> dict[str, str]:
            found = connection.lookupByUUIDString(id)
            taken = found.snapshotLookupByName(snapshot)
            found.revertToSnapshot(taken, libvirt.VIR_DOMAIN_SNAPSHOT_REVERT_FORCE)
            return {}

        await self._do(lambda connection: connection.lookupByUUIDString(id).snapshotLookupByName(snapshot))
        return self._begin(work)
