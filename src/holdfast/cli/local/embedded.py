"""A whole cluster in this process, for as long as a command needs it: API server, controllers, nodes, operators."""

from __future__ import annotations

import asyncio
import contextlib
import gc
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from holdfast import kinds
from holdfast.apiserver.verbs.subresources import LogSource
from holdfast.cli.local import running, serving
from holdfast.cli.local.serving import Serving, Settings
from holdfast.cli.operator import installing, selection
from holdfast.client.api import ApiClient
from holdfast.client.inprocess import InProcess
from holdfast.cluster.assembly import Cluster
from holdfast.cluster.nodes.suspension import Suspension
from holdfast.cluster.process.node import ProcessNode
from holdfast.meta.errors import AlreadyExists
from holdfast.meta.exchange import Request
from holdfast.runtime.manager import Manager
from holdfast.runtime.metrics import Metrics


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """
    settings   where the server keeps its state and is reached
    nodes      how many simulated nodes there are
    seed       by which simulated pods draw their fates
    directory  where pods that run as processes have their files
    """

    settings: Settings
    nodes: int
    seed: int
    directory: Path


@dataclass(frozen=True, slots=True)
class Embedded:
    """A cluster that works, a client of it, and what ends when the cluster cannot go on."""

    url: str
    client: ApiClient
    manager: Manager
    ended: asyncio.Task[None]


@contextlib.asynccontextmanager
async def embedded(wish: Wish) -> AsyncIterator[Embedded]:
    """Run a cluster until the end of the block."""
    processes = ProcessNode(wish.directory) if wish.nodes else None
    async with serving.serving(wish.settings, log_source=_log_source(processes)) as served:
        with running.announced(wish.settings.data_dir) if wish.settings.data_dir else contextlib.nullcontext():
            async with _managed(served, wish, processes) as cluster:
                # What was imported and built by now stays for good.
                gc.freeze()
                yield cluster


@contextlib.asynccontextmanager
async def _managed(served: Serving, wish: Wish, processes: ProcessNode | None) -> AsyncIterator[Embedded]:
    metrics = Metrics()
    client = ApiClient(InProcess(served.server.handle, served.server.identity.admin_token), observed=metrics.called)
    await installing.install(client, kinds.ALL)
    cluster = Cluster(
        nodes=wish.nodes,
        processes=processes,
        seed=wish.seed,
        scalable=kinds.ALL,
        suspension=Suspension(datetime.now(UTC)),
    )
    for resource, manifest in cluster.default_objects():
        with contextlib.suppress(AlreadyExists):
            await client.create(resource, manifest)
    manager = Manager(
        client,
        controllers=(*cluster.controllers(), *selection.every_controller()),
        components=cluster.components(),
        now=lambda: datetime.now(UTC),
        metrics=metrics,
    )
    ended = asyncio.create_task(manager.run())
    begun = asyncio.create_task(manager.working.wait())
    try:
        await asyncio.wait({begun, ended}, return_when=asyncio.FIRST_COMPLETED)
        yield Embedded(served.url, client, manager, ended)
    finally:
        begun.cancel()
        manager.stop()
        await ended
        await client.close()


def _log_source(processes: ProcessNode | None) -> LogSource:
    """Logs of processes; a simulated container says that it is one."""

    def logs_of(pod: Mapping[str, Any], request: Request) -> AsyncIterator[bytes] | None:
        written = processes.logs(pod, request) if processes is not None else None
        if written is None and (pod.get("status") or {}).get("phase") in ("Running", "Succeeded", "Failed"):
            return _simulated()
        return written

    return logs_of


async def _simulated() -> AsyncIterator[bytes]:
    yield b"This container is simulated: nothing runs, so nothing is logged. Pods with runtimeClassName: process run.\n"
