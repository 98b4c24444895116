"""Migrations between two simulated hypervisors that share a store, as the tests describe them."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any
from weakref import WeakKeyDictionary

import msgspec
from tests.operators.virtualmachine.stories import (
    CLASSES,
    IMAGES,
    MIGRATIONS,
    PROVIDERS,
    Hypervisors,
    Wire,
    image,
    is_ready,
    provider,
    status_of,
    vm_class,
)

from holdfast.client.protocols import Bookmark
from holdfast.providers.contract import Transfer
from holdfast.providers.simulated import CAPABILITIES, Simulated
from holdfast.testing.clusters import Cluster

SOURCE, TARGET = "sim:9443", "far:9443"
RUNS = {"powerOn": True}
OFF = {"powerOffBeforeMigration": True}
NFS: Wire = {
    "type": "nfs",
    "nfs": {"server": "files.example.com", "export": "/srv/vms", "path": "stage", "uid": 7},
}
S3 = {
    "bucket": "moves", "endpoint": "https://s3.example.com", "prefix": "/team/", "usePathStyle": True,
    "credentialsSecretRef": {"name": "bucket"},
}  # fmt: skip


class Shared:
    """A store of each run, which several simulated hypervisors share."""

    def __init__(self) -> None:
        self.seen: list[Transfer] = []
        self._files: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[str, bytes]] = WeakKeyDictionary()

    @property
    def files(self) -> dict[str, bytes]:
        return self._files.setdefault(asyncio.get_running_loop(), {})

    async def write(self, transfer: Transfer, data: bytes) -> None:
        self.files[transfer.url] = data
        self.seen.append(transfer)

    async def read(self, transfer: Transfer) -> bytes | None:
        return self.files.get(transfer.url)

    async def remove(self, transfer: Transfer) -> None:
        self.files.pop(transfer.url, None)


class Pair(Hypervisors):
    """Two hypervisors, and the store between them; `abilities` are those of the hypervisors at some addresses."""

    def __init__(self, *, abilities: Mapping[str, Mapping[str, Any]] | None = None, **more: Any) -> None:
        self.store, self._address, self._abilities = Shared(), SOURCE, abilities or {}
        super().__init__(**{"store": self.store, "make": self._able, **more})

    def at(self, address: str = SOURCE) -> Simulated:
        self._address = address
        return super().at(address)

    def _able(self, *arguments: Any, **more: Any) -> Simulated:
        if self._address in self._abilities:
            more["capabilities"] = msgspec.structs.replace(CAPABILITIES, **self._abilities[self._address])
        return Simulated(*arguments, **more)

    @property
    def source(self) -> Simulated:
        return self.at(SOURCE)

    @property
    def target(self) -> Simulated:
        return self.at(TARGET)


def migration(
    name: str = "move",
    *,
    source: Mapping[str, Any] | None = None,
    target: Mapping[str, Any] | None = None,
    **spec: Any,
) -> Wire:
    return {
        "metadata": {"name": name},
        "spec": {
            "source": {"vmRef": {"name": "web"}, **(source or {})},
            "target": {"name": "moved", "providerRef": {"name": "far"}, **(target or {})},
            **spec,
        },
    }


async def prepare(cluster: Cluster, **of_class: Any) -> None:
    """Two providers, a class and an image."""
    await cluster.create(PROVIDERS, provider())
    await cluster.create(PROVIDERS, provider("far"))
    await cluster.create(CLASSES, vm_class(**of_class))
    await cluster.create(IMAGES, image())
    for name in ("sim", "far"):
        await cluster.until(lambda name=name: is_ready(cluster, PROVIDERS, name))


async def in_phase(cluster: Cluster, phase: str, name: str = "move", *, within: float = 900) -> Wire:
    async def holds() -> bool:
        return (await status_of(cluster, name, MIGRATIONS)).get("phase") == phase

    await cluster.until(holds, within=within, step=0.25)
    return await status_of(cluster, name, MIGRATIONS)


class Diary:
    """Every version of a migration, as a watch delivers them."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self.versions: list[Wire] = []
        self._task = asyncio.create_task(self._read())

    async def _read(self) -> None:
        while True:
            # A server ends a watch after a while.
            async with self._cluster.client.watch(MIGRATIONS, initial=True) as events:
                async for event in events:
                    if not isinstance(event, Bookmark):
                        self.versions.append(event.object.wire().get("status") or {})

    def close(self) -> None:
        self._task.cancel()

    @property
    def phases(self) -> list[str]:
        """The phases, each time one was entered."""
        found = [each["phase"] for each in self.versions if "phase" in each]
        return [each for n, each in enumerate(found) if n == 0 or found[n - 1] != each]

    def progress(self, field: str) -> list[Any]:
        return [each["progress"][field] for each in self.versions if field in (each.get("progress") or {})]


def left(pair: Pair) -> dict[str, Any]:
    """Everything that providers and the store have: machines, disks of no machine, snapshots, tasks, files."""
    found = {}
    for name, at in (("source", pair.source), ("target", pair.target)):
        found[name] = {
            "machines": len(at._machines),
            "disks": list(at._disks),
            "snapshots": [each.id for machine in at._machines.values() for each in machine.snapshots],
            "tasks": [each.call for each in at._tasks.values() if not each.done],
        }
    return {**found, "files": list(pair.store.files)}


def nothing_but(source: int, target: int) -> dict[str, Any]:
    """What is left where there are so many machines and nothing else."""
    empty: dict[str, Any] = {"disks": [], "snapshots": [], "tasks": []}
    return {"source": {"machines": source, **empty}, "target": {"machines": target, **empty}, "files": []}
