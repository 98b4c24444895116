"""The hosts and datastores of the simulated hypervisor, with what its machines and disks use of them."""

from __future__ import annotations

import msgspec

from holdfast.meta.sizes import readable
from holdfast.providers.contract import (
    Code,
    Datastore,
    Host,
    Inventory,
    Placement,
    ProviderError,
)
from holdfast.providers.simulated.records import MachineRecord
from holdfast.providers.simulated.tasks import Tasks


class Places(Tasks):
    """The hosts and datastores of the world."""

    async def inventory(self) -> Inventory:
        answer = await self._call("inventory", "")
        answer()
        if not self.answers.inventory:
            return Inventory()
        return Inventory(
            hosts=tuple(self._hosts().values()),
            datastores=tuple(self._datastores().values()),
            folders=self.world.folders,
            resource_pools=self.world.resource_pools,
        )

    def _hosts(self) -> dict[str, Host]:
        on: dict[str, list[MachineRecord]] = {}
        for machine in self._machines.values():
            on.setdefault(machine.host, []).append(machine)
        return {
            host.name: msgspec.structs.replace(
                host,
                cpus_used=host.cpus_used + sum(one.cpus for one in on.get(host.name, ())),
                memory_mib_used=host.memory_mib_used + sum(one.memory_mib for one in on.get(host.name, ())),
                machines=tuple(one.id for one in on.get(host.name, ())),
                cpu_overcommit=host.cpu_overcommit or self.world.cpu_overcommit,
            )
            for host in self.world.hosts
        }

    def _datastores(self) -> dict[str, Datastore]:
        used: dict[str, int] = {}
        for disk in (*(disk for one in self._machines.values() for disk in one.disks), *self._disks.values()):
            used[disk.datastore] = used.get(disk.datastore, 0) + disk.actual_bytes
        return {
            one.name: msgspec.structs.replace(one, free_bytes=max(0, one.free_bytes - used.get(one.name, 0)))
            for one in self.world.datastores
        }

    def _datastore_for(self, host: Host | None, name: str, size: int) -> str:
        stores = self._datastores()
        if name and name not in stores:
            raise ProviderError(Code.INVALID, f"datastore {name} does not exist")
        names = [name] if name else list((host.datastores if host else ()) or stores)
        fitting = [stores[one] for one in names if one in stores and stores[one].free_bytes >= size]
        if fitting:
            return max(fitting, key=lambda one: one.free_bytes).name
        if not stores:
            return ""
        left = ", ".join(f"{one} has {readable(stores[one].free_bytes)} left" for one in names if one in stores)
        raise ProviderError(Code.QUOTA, f"no datastore has {readable(size)} left: {left or 'the host has none'}")

    def _known_place(self, placement: Placement) -> Placement:
        """A placement without the names of places that do not exist."""
        hosts, clusters = {each.name for each in self.world.hosts}, {each.cluster for each in self.world.hosts}
        stores = {each.name for each in self.world.datastores}
        return msgspec.structs.replace(
            placement,
            host=placement.host if placement.host in hosts else "",
            cluster=placement.cluster if placement.cluster in clusters else "",
            datastore=placement.datastore if placement.datastore in stores else "",
        )
