"""Many pods: from their creation through the scheduler and a simulated node to Ready, and then idle.

Server, scheduler and node are one process, as in ``holdfast up``, so its CPU is that of all of them together.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import AsyncExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from multiprocessing import get_context
from pathlib import Path
from typing import Any, Final

from benchmarks.clusters import PER_NODE, Cluster
from benchmarks.load import CONNECTIONS
from benchmarks.operating import PROGRAMS
from benchmarks.sizes import sized
from benchmarks.tables import Line, show
from holdfast.apiserver.http.event_loops import new_event_loop
from holdfast.apiserver.server import Server
from holdfast.client.api import ApiClient
from holdfast.client.inprocess import InProcess
from holdfast.client.objects import Object
from holdfast.client.pods import Pod
from holdfast.client.protocols import Client
from holdfast.client.resources import PODS
from holdfast.runtime.manager import Manager

CROWD: Final = sized(10_000, 500)
IDLE_SECONDS: Final = sized(5.0, 0.2)
PATIENCE_SECONDS: Final = 120.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """Of so many pods."""

    ready_seconds: float
    cpu_seconds: float
    writes: int
    idle_share: float
    """Of a core, while nothing changes."""


LINES: Final[Sequence[Line[Figures]]] = (
    Line("pods from creation to Ready", "/s", lambda it: CROWD / it.ready_seconds),
    Line("writes for a pod", "", lambda it: it.writes / CROWD),
    Line("CPU for a pod, server and all", "ms", lambda it: it.cpu_seconds / CROWD * 1_000),
    Line("CPU while nothing changes", "%", lambda it: it.idle_share * 100, "< 1 %"),
)


def report() -> None:
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        figures = pool.submit(measured).result()
    show(f"{CROWD:,} pods", LINES, {"holdfast": figures})


def measured() -> Figures:
    with asyncio.Runner(loop_factory=new_event_loop) as runner:
        return runner.run(_measured())


async def _measured() -> Figures:
    server = await Server.open(None, now=_now)
    client = ApiClient(InProcess(server.handle, server.identity.admin_token))
    program = PROGRAMS["nodes"]()
    manager = Manager(client, controllers=program.controllers, components=program.components, now=_now)
    async with AsyncExitStack() as stack:
        stack.push_async_callback(server.close)
        stack.push_async_callback(client.close)
        await Cluster(client, Path()).create_nodes(count=CROWD // PER_NODE)
        running = asyncio.create_task(manager.run())
        await manager.working.wait()
        before, cpu, begin = server.store.revision, time.process_time(), time.perf_counter()
        async with asyncio.timeout(PATIENCE_SECONDS):
            await _crowd(client, manager)
        taken, used = time.perf_counter() - begin, time.process_time() - cpu
        writes = server.store.revision - before
        idle = await _idle()
        manager.stop()
        await running
    return Figures(ready_seconds=taken, cpu_seconds=used, writes=writes, idle_share=idle)


async def _crowd(client: Client, manager: Manager) -> None:
    """Create the pods, and wait until all of them are ready."""
    everybody = asyncio.Event()
    ready: set[str] = set()

    def seen(old: Object | None, new: Object | None) -> None:
        if new is not None and Pod.of(new).ready:
            ready.add(new.uid)
            if len(ready) == CROWD:
                everybody.set()

    numbers = iter(range(CROWD))

    async def creator() -> None:
        for number in numbers:
            await client.create(PODS, _pod(number))

    unsubscribe = manager.caches.subscribe(PODS, seen)
    await asyncio.gather(*(creator() for _ in range(CONNECTIONS)))
    await everybody.wait()
    unsubscribe()


async def _idle() -> float:
    """The share of a core that is used while nothing happens."""
    await asyncio.sleep(1)
    used, begin = time.process_time(), time.perf_counter()
    await asyncio.sleep(IDLE_SECONDS)
    return (time.process_time() - used) / (time.perf_counter() - begin)


def _pod(number: int) -> dict[str, Any]:
    container = {
        "name": "main",
        "image": "registry.example.com/team/server:v1",
        "resources": {"requests": {"cpu": "50m", "memory": "64Mi"}},
    }
    metadata = {"name": f"crowd-{number}", "namespace": "default", "labels": {"app": "crowd"}}
    return {"metadata": metadata, "spec": {"containers": [container]}}


def _now() -> datetime:
    return datetime.now(UTC)
