"""A cluster in real time whose only node runs processes, and what tests need to follow it.

Nothing sleeps: `until` looks whenever a pod has changed, and gives up after a time
that no healthy machine needs.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from holdfast.apiserver.server import Server
from holdfast.client.protocols import Client
from holdfast.client.resources import PODS, Resource
from holdfast.cluster.process.node import NAME, ProcessNode
from holdfast.meta.errors import NotFound
from holdfast.meta.exchange import Request
from holdfast.meta.objects import Key
from holdfast.runtime.manager import Manager
from holdfast.testing.clusters import connected

Wire = dict[str, Any]

PATIENCE = 30.0


def utc_now() -> datetime:
    return datetime.now(UTC)


def container(*command: str, name: str = "main", **rest: Any) -> Wire:
    return {"name": name, "image": "none", "command": list(command), **rest}


def shell(script: str, name: str = "main", **rest: Any) -> Wire:
    return container("sh", "-c", script, name=name, **rest)


def pod(name: str, *containers: Wire, metadata: Mapping[str, Any] | None = None, **spec: Any) -> Wire:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default", **(metadata or {})},
        "spec": {
            "runtimeClassName": "process",
            "nodeName": NAME,
            "terminationGracePeriodSeconds": 5,
            "containers": list(containers),
            **spec,
        },
    }


def state(pod: Wire, container: str = "main") -> Wire:
    """What is reported of a container; nothing, if nothing is yet."""
    status = pod.get("status", {})
    every = (*status.get("initContainerStatuses", ()), *status.get("containerStatuses", ()))
    return next((each for each in every if each["name"] == container), {"state": {}, "lastState": {}})


def terminated(pod: Wire, container: str = "main") -> Wire:
    return state(pod, container)["state"].get("terminated", {})


def is_running(pod: Wire, container: str = "main") -> bool:
    return "running" in state(pod, container)["state"]


def condition(pod: Wire, type: str = "Ready") -> Wire:
    return next((each for each in pod.get("status", {}).get("conditions", ()) if each["type"] == type), {})


def is_ready(pod: Wire) -> bool:
    return condition(pod).get("status") == "True"


def phase(wanted: str) -> Callable[[Wire], bool]:
    return lambda pod: pod.get("status", {}).get("phase") == wanted


class Local:
    """A server, and a node of processes that works for it."""

    def __init__(self, server: Server, node: ProcessNode, manager: Manager) -> None:
        self.server, self.node, self.manager = server, node, manager
        self.client: Client = connected(server)

    async def create(self, manifest: Wire, resource: Resource = PODS) -> Wire:
        return (await self.client.create(resource, manifest)).wire()

    async def get(self, name: str) -> Wire | None:
        try:
            return (await self.client.get(PODS, Key("default", name))).wire()
        except NotFound:
            return None

    async def delete(self, name: str, **options: Any) -> None:
        await self.client.delete(PODS, Key("default", name), **options)

    async def until(self, name: str, holds: Callable[[Wire], Any]) -> Wire:
        """The pod, as soon as something holds for it."""
        found: list[Wire] = []

        async def look() -> bool:
            pod = await self.get(name)
            if pod is not None and holds(pod):
                found.append(pod)
            return bool(found)

        await self._when(look, lambda: f"pod {name} never came to be so")
        return found[0]

    async def gone(self, name: str) -> None:
        async def look() -> bool:
            return await self.get(name) is None

        await self._when(look, lambda: f"pod {name} is still there")

    async def _when(self, look: Callable[[], Awaitable[bool]], complaint: Callable[[], str]) -> None:
        changed = asyncio.Event()
        stop = self.manager.caches.subscribe(PODS, lambda *_: changed.set())
        try:
            async with asyncio.timeout(PATIENCE):
                while not await look():
                    await changed.wait()
                    changed.clear()
        except TimeoutError:
            raise AssertionError(complaint()) from None
        finally:
            stop()

    async def stream(self, name: str, **query: str) -> AsyncIterator[bytes]:
        path = f"/api/v1/namespaces/default/pods/{name}/log"
        asked = {key: (value,) for key, value in query.items()}
        response = await self.client.raw(Request("GET", path, asked))
        assert response.stream is not None
        return response.stream

    async def log(self, name: str, **query: str) -> str:
        return b"".join([chunk async for chunk in await self.stream(name, **query)]).decode()


@asynccontextmanager
async def local(directory: Path, *, data: Path | None = None, **options: Any) -> AsyncIterator[Local]:
    """A cluster that works until the block ends."""
    node = ProcessNode(directory, **options)
    server = await Server.open(data, now=utc_now, log_source=node.logs)
    manager = Manager(connected(server), controllers=[], components=[node], now=utc_now)
    cluster = Local(server, node, manager)
    working = asyncio.create_task(manager.run())
    try:
        await manager.working.wait()
        yield cluster
    finally:
        manager.stop()
        with contextlib.suppress(asyncio.CancelledError):
            await working
        await cluster.client.close()
        await server.close()


def play(directory: Path, story: Callable[[Local], Coroutine[Any, Any, None]], **options: Any) -> None:
    """Run a story on a cluster of its own."""

    async def main() -> None:
        async with local(directory, **options) as cluster:
            await story(cluster)

    asyncio.run(main())
