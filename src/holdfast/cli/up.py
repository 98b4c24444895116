"""``holdfast up``: an API server, a cluster and all operators, in one process."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import signal
import sys
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import click

from holdfast import kinds
from holdfast.apiserver import serve
from holdfast.apiserver.access import access_log
from holdfast.apiserver.subresources import LogSource
from holdfast.cli import installing, logs, operators, running, serving
from holdfast.cli.serving import Serving, Settings
from holdfast.cli.summary import watch_summary
from holdfast.client.api import ApiClient
from holdfast.client.inprocess import InProcess
from holdfast.cluster.nodelifecycle import NodeSettings
from holdfast.cluster.parts import Cluster
from holdfast.cluster.process.node import ProcessNode
from holdfast.meta.errors import AlreadyExists
from holdfast.meta.exchange import Request
from holdfast.runtime.manager import Manager
from holdfast.runtime.metrics import Metrics

DIRECTORY: Final = Path(".holdfast")
"""Where a cluster lives when nobody says: beside what is worked on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """What is to be started."""

    settings: Settings
    nodes: int
    seed: int
    node_directory: Path


@click.command("up")
@click.option(
    "--data-dir",
    type=click.Path(file_okay=False, path_type=Path),
    help="Where everything is kept.  [default: .holdfast]",
)
@click.option("--ephemeral", is_flag=True, help="Keep nothing; everything is gone when it stops.")
@click.option(
    "--nodes",
    type=click.IntRange(0, 1000),
    default=4,
    show_default=True,
    help="Simulated nodes; 0 runs no pods at all.",
)
@click.option(
    "--seed", type=int, default=0, show_default=True, help="By which simulated pods draw their times and fates."
)
@serving.options
def command(
    data_dir: Path | None,
    ephemeral: bool,
    nodes: int,
    seed: int,
    bind: str,
    port: int,
    kubeconfig: Path | None,
    allow_non_loopback: bool,
    logs_access: bool,
    log_format: logs.Format,
) -> None:
    """Start a cluster in one process: the Kubernetes API, its controllers, nodes, and all operators.

    Pods run on simulated nodes, where nothing really runs; those with runtimeClassName: process run as processes of
    this machine.  What is created stays in the data directory, for the next start.  Ctrl-C or `holdfast down` ends it.

    \b
    Try it:        holdfast up --ephemeral
    Keep it:       holdfast up --data-dir ./state --port 6443
    Use it:        holdfast kubectl get nodes
    """
    if ephemeral and data_dir is not None:
        raise click.UsageError("--ephemeral keeps nothing, so it has no --data-dir; leave one of them out")
    bind = serving.checked_bind(bind, allow_others=allow_non_loopback)
    logs.configure(log_format, level=logging.WARNING)
    access_log.setLevel(logging.INFO if logs_access else logging.WARNING)
    with contextlib.ExitStack() as stack:
        kept = None if ephemeral else (data_dir or DIRECTORY).absolute()
        home = kept or Path(stack.enter_context(TemporaryDirectory(prefix="holdfast-")))
        settings = Settings(
            data_dir=kept, bind=bind, port=port, kubeconfig=(kubeconfig or home / "kubeconfig").absolute()
        )
        wish = Wish(settings=settings, nodes=nodes, seed=seed, node_directory=home / "node")
        with asyncio.Runner(loop_factory=serve.new_event_loop) as runner:
            runner.run(_run(wish))


async def _run(wish: Wish) -> None:
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    processes = ProcessNode(wish.node_directory) if wish.nodes else None
    async with serving.serving(wish.settings, log_source=_log_source(processes)) as served:
        with running.announced(wish.settings.data_dir) if wish.settings.data_dir else contextlib.nullcontext():
            async with _managed(served, wish, processes) as manager:
                # What was imported and built by now stays for good.
                gc.freeze()
                click.echo(f"ready: {served.url}  export KUBECONFIG={wish.settings.kubeconfig}")
                sys.stdout.flush()
                summary = asyncio.create_task(watch_summary(manager.caches))
                await stop.wait()
                summary.cancel()


@contextlib.asynccontextmanager
async def _managed(served: Serving, wish: Wish, processes: ProcessNode | None) -> AsyncIterator[Manager]:
    """Run everything beside the server; what fails for good ends the command."""
    metrics = Metrics()
    transport = InProcess(served.server.handle, served.server.identity.admin_token)
    client = ApiClient(transport, observed=metrics.called)
    await installing.install(client, kinds.ALL)
    cluster = Cluster(
        nodes=wish.nodes,
        processes=processes,
        seed=wish.seed,
        scalable=kinds.ALL,
        lost=NodeSettings(listening=datetime.now(UTC)),
    )
    for resource, manifest in cluster.furniture():
        with contextlib.suppress(AlreadyExists):
            await client.create(resource, manifest)
    manager = Manager(
        client,
        controllers=(*cluster.controllers(), *operators.every_controller()),
        components=cluster.components(),
        now=lambda: datetime.now(UTC),
        metrics=metrics,
    )
    working = asyncio.create_task(manager.run())
    begun = asyncio.create_task(manager.working.wait())
    try:
        await asyncio.wait({begun, working}, return_when=asyncio.FIRST_COMPLETED)
        yield manager
    finally:
        begun.cancel()
        manager.stop()
        await working
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
