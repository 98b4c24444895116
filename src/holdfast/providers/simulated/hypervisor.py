"""The simulated hypervisor: what it can do, and what a test does to it."""

from __future__ import annotations

import msgspec

from holdfast.providers.contract import (
    Capabilities,
)
from holdfast.providers.simulated.changes import Changes
from holdfast.providers.simulated.clones import Clones
from holdfast.providers.simulated.snapshots import Snapshots
from holdfast.providers.simulated.transfers import Transfers


class Simulated(Changes, Clones, Snapshots, Transfers):
    """A `Hypervisor` in memory.  `clock` is the time in seconds; what it returns may only grow."""

    async def validate(self) -> None:
        (await self._call("validate", ""))()

    async def capabilities(self) -> Capabilities:
        (await self._call("capabilities", ""))()
        return self.answers

    async def close(self) -> None:
        self._journal.close()

    # --- what happens behind the back of the operator, for tests -----------------------

    def named(self, name: str) -> str:
        """The id of a machine by its name; empty if there is none."""
        return self._names.get(name, "")

    def set_power(self, id: str, power: str) -> None:
        record = self._known(id)
        self._set_power(record, power, self._now())
        self._save(record)

    def set_resources(self, id: str, *, cpus: int | None = None, memory_mib: int | None = None) -> None:
        record = self._known(id)
        record.cpus, record.memory_mib = cpus or record.cpus, memory_mib or record.memory_mib
        self._save(record)

    def crash_guest(self, id: str) -> None:
        """The guest ends without being asked to."""
        self.set_power(id, "Off")
        self._known(id).crashed = True
        self._save(self._known(id))

    def remove(self, id: str) -> None:
        """The machine is deleted by another client."""
        self._forget(self._known(id))

    def write_file(self, id: str, path: str, text: str) -> None:
        """The guest writes a file to its first disk."""
        record = self._known(id)
        record.disks[0].files[path] = text
        self._save(record)

    def read_file(self, id: str, path: str) -> str | None:
        return self._known(id).disks[0].files.get(path)

    def set_maintenance(self, host: str, maintenance: bool) -> None:
        hosts = tuple(
            msgspec.structs.replace(one, maintenance=maintenance) if one.name == host else one
            for one in self.world.hosts
        )
        self.world = msgspec.structs.replace(self.world, hosts=hosts)

    def leftovers(self) -> tuple[str, ...]:
        """Everything that exists here besides images: ids of machines and disks, for a test that lists them."""
        return (*self._machines, *self._disks)
