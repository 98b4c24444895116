"""A real server over HTTP, a namespace of our own on it, and managers that work there, in real time.

Nothing here may assume whose server it is: what is made is in the namespace, or is named
after it, and is removed in the end.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tests.waiting import eventually

from holdfast.apiserver.http import listener as serve
from holdfast.apiserver.server import Server
from holdfast.client.kubeconfig import Connection, connect
from holdfast.client.protocols import Scope
from holdfast.client.resources import DEFINITIONS, NAMESPACES, Resource
from holdfast.meta.errors import NotFound
from holdfast.meta.objects import Key
from holdfast.runtime.controllers import Controller
from holdfast.runtime.hosting import LeaderElection, build_manager
from holdfast.runtime.leadership.leases import Terms
from holdfast.runtime.manager import Manager, Settings

PATIENCE = 60.0
TERMS = Terms(duration=4, deadline=3, retry=0.5)
Wire = dict[str, Any]


class Process:
    """A manager with a connection of its own."""

    def __init__(self, site: Site, controllers: Sequence[Controller[Any]], identity: str) -> None:
        self._connection = connect(site.kubeconfig)
        lease = Key(site.namespace, "leader")
        self.manager: Manager = build_manager(
            self._connection.transport,
            controllers=controllers,
            now=lambda: datetime.now(UTC),
            settings=Settings(namespaces=(site.namespace,)),
            election=LeaderElection(lease=lease, identity=identity, terms=TERMS) if identity else None,
        )
        self._task = asyncio.create_task(self.manager.run())

    async def stop(self) -> None:
        """End it as SIGTERM does."""
        self.manager.stop()
        await self._task
        await self._connection.client.close()

    async def kill(self) -> None:
        """End it without a word to the server."""
        await self._connection.client.close()
        self._task.cancel()
        await asyncio.wait({self._task})


class Site:
    """A namespace, with objects as plain mappings."""

    def __init__(self, kubeconfig: Path, connection: Connection, namespace: str) -> None:
        self.kubeconfig = kubeconfig
        self.client = connection.client
        self.namespace = namespace
        self._processes: list[Process] = []
        self._definitions: list[str] = []

    async def start(self, *controllers: Controller[Any], identity: str = "", waits: bool = True) -> Process:
        process = Process(self, controllers, identity)
        self._processes.append(process)
        if waits:
            await asyncio.wait_for(process.manager.working.wait(), PATIENCE)
        return process

    async def close(self) -> None:
        for process in self._processes:
            await process.kill()
        for name in self._definitions:
            with suppress(NotFound):
                await self.client.delete(DEFINITIONS, Key("", name))
        with suppress(NotFound):
            await self.client.delete(NAMESPACES, Key("", self.namespace))

    @property
    def scope(self) -> Scope:
        return Scope(namespace=self.namespace)

    async def define(self, resource: Resource) -> None:
        """Install a kind that no other test uses."""
        names = {"plural": resource.plural, "kind": resource.kind}
        schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
        version = {
            "name": resource.version,
            "served": True,
            "storage": True,
            "schema": {"openAPIV3Schema": schema},
            "subresources": {"status": {}},
        }
        spec = {"group": resource.group, "scope": "Namespaced", "names": names, "versions": [version]}
        self._definitions.append(resource.group_resource)
        await self.client.create(DEFINITIONS, {"metadata": {"name": resource.group_resource}, "spec": spec})

    async def create(self, resource: Resource, name: str, *, annotations: Wire | None = None, **rest: Any) -> None:
        metadata = {"namespace": self.namespace, "name": name, "annotations": annotations or {}}
        await self.client.create(resource, {"metadata": metadata, **rest})

    async def patch(self, resource: Resource, name: str, patch: Wire) -> None:
        await self.client.patch(resource, Key(self.namespace, name), patch)

    async def delete(self, resource: Resource, name: str) -> None:
        await self.client.delete(resource, Key(self.namespace, name))

    async def find(self, resource: Resource, name: str) -> Wire | None:
        try:
            return (await self.client.get(resource, Key(self.namespace, name))).wire()
        except NotFound:
            return None

    async def children(self, resource: Resource) -> list[str]:
        """The names of those that have an owner; a cluster may put others beside them."""
        listed = await self.client.list(resource, self.scope)
        return [obj.key.name for obj in listed.objects if obj.controller is not None]

    async def eventually(self, holds: Callable[[], Awaitable[Any] | Any], what: str) -> None:
        try:
            await eventually(holds, within=PATIENCE)
        except TimeoutError:
            raise AssertionError(f"{what}: it did not come about within {PATIENCE:g} seconds") from None


def play(story: Callable[[Site], Awaitable[None]], *, kubeconfig: Path | None, directory: Path) -> None:
    """Play a story on the server of a kubeconfig, or on one of our own, in a namespace of its own."""

    async def played() -> None:
        if kubeconfig is not None:
            await _inside(story, kubeconfig)
            return
        async with _embedded(directory) as own:
            await _inside(story, own)

    asyncio.run(played())


async def _inside(story: Callable[[Site], Awaitable[None]], kubeconfig: Path) -> None:
    connection = connect(kubeconfig)
    try:
        made = await connection.client.create(NAMESPACES, {"metadata": {"generateName": "holdfast-test-"}})
        site = Site(kubeconfig, connection, made.key.name)
        try:
            await story(site)
        finally:
            await site.close()
    finally:
        await connection.client.close()


@asynccontextmanager
async def _embedded(directory: Path) -> AsyncIterator[Path]:
    """A server of our own on a loopback socket with TLS; its kubeconfig."""
    server = await Server.open(None)
    listener = await serve.listen(server.handle, "127.0.0.1", tls=server.identity.tls())
    host, port = listener.address
    path = directory / "kubeconfig"
    path.write_text(json.dumps(server.identity.kubeconfig(f"https://{host}:{port}")))
    try:
        yield path
    finally:
        await listener.drain(1)
        await server.close()
