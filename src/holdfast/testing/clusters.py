"""An embedded cluster on virtual time: the real API server, the real runtime, and the controllers a test names.

    def test_two_pods_are_made() -> None:
        async def story(cluster: Cluster) -> None:
            await cluster.create(REPLICA_SETS, replica_set("web", replicas=2))
            await cluster.settle()
            assert len(await cluster.list(PODS)) == 2

        play(story, controllers=[replicasets.CONTROLLER])

Nothing sleeps: `settle` returns when no task has anything to do at this moment,
`advance` lets time pass, and `until` does both until something is so.
"""

from __future__ import annotations

import asyncio
import contextlib
import inspect
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import datetime
from functools import cache
from random import Random
from typing import Any, TypeVar

from holdfast.apiserver.server import Server
from holdfast.client.api import ApiClient
from holdfast.client.inprocess import InProcess
from holdfast.client.protocols import Client, Scope
from holdfast.client.resources import DEFINITIONS, PODS, Resource
from holdfast.kinds import crds
from holdfast.kinds.model import Kind
from holdfast.meta import times
from holdfast.meta.errors import NotFound
from holdfast.meta.objects import Key
from holdfast.runtime.controllers import Component, Controller
from holdfast.runtime.manager import Manager, Settings
from holdfast.testing.loops import VirtualLoop, run

T = TypeVar("T")
Wire = dict[str, Any]

_QUIET = 60
"""Turns of the loop without a write after which no task writes any more before time passes."""

_STARTUP = 60.0
"""Virtual seconds in which a manager reads all that it needs."""

_BUSY = 100_000
"""Turns of the loop in a row with something to do and no time that passes, after which it is a loop without end."""

Employ = Callable[[Server], Manager]
"""Makes a manager with a client of its own, as a new process would."""


class Cluster:
    """A server with a manager on it, and a client for the test."""

    def __init__(self, loop: VirtualLoop, server: Server, *, employ: Employ, seed: int = 1) -> None:
        self.loop = loop
        self.server = server
        self.client: Client = connected(server, seed=seed)
        self._employ = employ
        self._working: asyncio.Task[None] | None = None
        self.manager = employ(server)
        self._restarted = asyncio.Event()
        self._restarted.set()

    async def start(self) -> None:
        """Start the manager, and wait until it runs."""
        self._working = asyncio.create_task(self.manager.run())
        begun = asyncio.create_task(_waited(self.manager.working))
        done, _ = await asyncio.wait({begun, self._working}, timeout=_STARTUP, return_when=asyncio.FIRST_COMPLETED)
        if begun not in done:
            begun.cancel()
            assert self._working in done, (
                f"the manager does not work after {_STARTUP:g} virtual seconds: {self.manager.ready['stores']()}; "
                "install the kinds that its controllers and components read"
            )
            self._working.result()

    async def stop(self) -> None:
        """Stop the manager in an orderly way."""
        self.manager.stop()
        if self._working is not None:
            await self._working
        self._working = None

    async def kill(self) -> None:
        """End the manager at once, as a crash does."""
        if self._working is not None:
            self._working.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._working
        self._working = None

    async def restart(self) -> None:
        """Replace the manager that was killed by a new one, which has no memory of the old one."""
        self._restarted.clear()
        try:
            await self.kill()
            self.manager = self._employ(self.server)
            await self.start()
        finally:
            self._restarted.set()

    # --- objects, as plain mappings

    async def create(self, resource: Resource, manifest: Mapping[str, Any]) -> Wire:
        return (await self.client.create(resource, _placed(resource, manifest))).wire()

    async def apply(self, resource: Resource, manifest: Mapping[str, Any]) -> Wire:
        return (await self.client.apply(resource, _placed(resource, manifest))).wire()

    async def get(self, resource: Resource, name: str, namespace: str = "default") -> Wire:
        return (await self.client.get(resource, _key(resource, name, namespace))).wire()

    async def find(self, resource: Resource, name: str, namespace: str = "default") -> Wire | None:
        """The object, or None."""
        try:
            return await self.get(resource, name, namespace)
        except NotFound:
            return None

    async def list(self, resource: Resource, labels: str = "", *, namespace: str = "default") -> list[Wire]:
        scope = Scope(namespace=namespace if resource.namespaced else "", labels=labels)
        return [obj.wire() for obj in (await self.client.list(resource, scope)).objects]

    async def patch(
        self, resource: Resource, name: str, patch: Any, *, namespace: str = "default", subresource: str = ""
    ) -> Wire:
        """A merge patch."""
        patched = await self.client.patch(resource, _key(resource, name, namespace), patch, subresource=subresource)
        return patched.wire()

    async def delete(self, resource: Resource, name: str, namespace: str = "default", **options: Any) -> None:
        await self.client.delete(resource, _key(resource, name, namespace), **options)

    # --- pods that nothing but the test moves

    async def report(self, pod: str, *, ready: bool = True, phase: str = "Running", namespace: str = "default") -> Wire:
        """Write the status of a pod as its node would: it runs, and is ready or not."""
        now = times.format(self.loop.now())
        status = "True" if ready else "False"
        condition = {"type": "Ready", "status": status, "lastTransitionTime": now}
        patch = {"status": {"phase": phase, "conditions": [condition]}}
        return await self.patch(PODS, pod, patch, namespace=namespace, subresource="status")

    async def report_all(self, labels: str = "", *, ready: bool = True, namespace: str = "default") -> None:
        """The same for all pods that are not being deleted."""
        for pod in await self.list(PODS, labels, namespace=namespace):
            if "deletionTimestamp" not in pod["metadata"]:
                await self.report(pod["metadata"]["name"], ready=ready, namespace=namespace)

    # --- time

    def now(self) -> datetime:
        return self.loop.now()

    async def settle(self) -> None:
        """Run until no task has anything to do before time passes."""
        quiet, revision, turns, began, first = 0, -1, 0, self.loop.time(), self.server.store.revision
        while quiet < _QUIET:
            await asyncio.sleep(0)
            # A manager that starts over may wait for time to pass, which it does not while this loop turns.
            await self._restarted.wait()
            turns = turns + 1 if self.loop.time() == began else 0
            began = self.loop.time()
            assert turns < _BUSY, (
                f"a loop without end: {self.server.store.revision - first} writes in {_BUSY} turns, and no time passes"
            )
            # A manager that is being replaced waits for time to pass.
            busy = self.manager.working.is_set() and not self.manager.quiet
            moved = self.server.store.revision != revision or busy
            quiet = 0 if moved else quiet + 1
            revision = self.server.store.revision

    async def advance(self, seconds: float) -> None:
        """Let time pass, and then every task react."""
        await asyncio.sleep(seconds)
        await self.settle()

    async def until(
        self, holds: Callable[[], Awaitable[Any] | Any], *, within: float = 600.0, step: float = 0.5
    ) -> None:
        """Let time pass until something holds; fails when it does not within so many virtual seconds."""
        deadline = self.loop.time() + within
        while True:
            await self.settle()
            answer = holds()
            if inspect.isawaitable(answer):
                answer = await answer
            if answer:
                return
            assert self.loop.time() < deadline, f"it did not come about within {within:g} virtual seconds"
            await asyncio.sleep(step)


@asynccontextmanager
async def opened(
    loop: VirtualLoop, *, employ: Employ, kinds: Sequence[Kind] = (), seed: int = 1
) -> AsyncIterator[Cluster]:
    """A cluster that runs, with the definitions of `kinds` installed."""
    server = await Server.open(None, now=loop.now, random=Random(seed))
    cluster = Cluster(loop, server, employ=employ, seed=seed)
    try:
        for kind in kinds:
            await cluster.client.create(DEFINITIONS, _definition(kind))
        await cluster.start()
        await cluster.settle()
        yield cluster
        await cluster.stop()
    finally:
        await cluster.kill()
        await cluster.client.close()
        await server.close()


def play(
    story: Callable[[Cluster], Awaitable[T]],
    *,
    controllers: Sequence[Controller[Any]] = (),
    components: Sequence[Component] = (),
    kinds: Sequence[Kind] = (),
    settings: Settings | None = None,
    seed: int = 1,
) -> T:
    """Play a story on a cluster of its own."""

    async def played(loop: VirtualLoop) -> T:
        def employ(server: Server) -> Manager:
            return Manager(
                connected(server, seed=seed),
                controllers=controllers,
                components=components,
                now=loop.now,
                settings=settings,
                seed=seed,
            )

        async with opened(loop, employ=employ, kinds=kinds, seed=seed) as cluster:
            return await story(cluster)

    return run(played)


def connected(server: Server, *, seed: int = 1) -> ApiClient:
    """A client of a server in the same process, as its admin."""
    return ApiClient(InProcess(server.handle, server.identity.admin_token), random=Random(seed))


@cache
def _definition(kind: Kind) -> Mapping[str, Any]:
    """The definition of a kind, made once for all clusters of a process."""
    return crds.crd_of(kind)


async def _waited(event: asyncio.Event) -> None:
    await event.wait()


def _placed(resource: Resource, manifest: Mapping[str, Any]) -> Wire:
    """The manifest with apiVersion, kind and namespace filled in, so that tests need not write them."""
    metadata = dict(manifest["metadata"])
    if resource.namespaced:
        metadata.setdefault("namespace", "default")
    return {"apiVersion": resource.api_version, "kind": resource.kind, **manifest, "metadata": metadata}


def _key(resource: Resource, name: str, namespace: str) -> Key:
    return Key(namespace if resource.namespaced else "", name)
