"""``holdfast up``: an API server, a cluster and all operators, in one process."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import sys
from pathlib import Path
from typing import Final

import click
from click.core import ParameterSource

from holdfast.apiserver.http import listener
from holdfast.apiserver.http.gate import access_log
from holdfast.cli import logs
from holdfast.cli.local import running, serving
from holdfast.cli.local.binding import checked_bind
from holdfast.cli.local.embedded import ClusterOptions, embedded
from holdfast.cli.local.fleets import parsed_fleets
from holdfast.cli.local.serving import Settings
from holdfast.cli.local.signals import until_signalled
from holdfast.cli.local.summary import watch_summary
from holdfast.cli.operator import health, selection
from holdfast.cli.operator import settings as operator_settings
from holdfast.operators.rollouts import RolloutKind
from holdfast.runtime.health import LOOPBACK

DIRECTORY: Final = Path(".holdfast")
"""The default data directory, in the working directory."""


@click.command("up")
@click.option(
    "--data-dir",
    type=click.Path(file_okay=False, path_type=Path),
    help="The directory of the cluster's state.  [default: .holdfast]",
)
@click.option("--ephemeral", is_flag=True, help="Keep the state in memory; it is lost when the cluster stops.")
@click.option(
    "--nodes",
    type=click.IntRange(0, 1000),
    default=4,
    show_default=True,
    help="The number of simulated nodes, each with 8 GPUs; with 0 no pods run.",
)
@click.option(
    "--node",
    "described",
    metavar="KEY=VALUE,...",
    multiple=True,
    help="Simulated nodes of another kind, such as cpu=32,memory=128Gi,nvidia.com/gpu=8,count=4,labels=disk:ssd ; "
    "may be repeated.",
)
@click.option(
    "--seed", type=int, default=0, show_default=True, help="The seed of the random behaviour of simulated pods."
)
@click.option(
    "--health-port",
    type=click.IntRange(0, 65535),
    help="Serve health and metrics of what runs in it on this port of the loopback; 0 is any free one.",
)
@click.option(
    "--operators",
    "names",
    metavar="NAME,...|none",
    help="The operators to run, such as workload,tenant; none leaves the cluster to other operators.  [default: all]",
)
@operator_settings.OPTION
@serving.options
def command(
    data_dir: Path | None,
    ephemeral: bool,
    nodes: int,
    described: tuple[str, ...],
    seed: int,
    health_port: int | None,
    names: str | None,
    given: tuple[str, ...],
    bind: str,
    port: int,
    kubeconfig: Path | None,
    event_seconds: float,
    allow_non_loopback: bool,
    logs_access: bool,
    log_format: logs.Format,
) -> None:
    """Start a cluster in one process: the API, controllers, nodes and operators.

    Nodes are simulated and start no containers; pods with runtimeClassName: process run as processes of this
    machine.  The state stays in the data directory for the next start.  Ctrl-C or `holdfast down` stops the cluster.

    \b
    Try it:        holdfast up --ephemeral
    Keep it:       holdfast up --data-dir ./state --port 6443
    Use it:        holdfast kubectl get nodes
    Other operators in it:  holdfast up --operators none
    """
    if ephemeral and data_dir is not None:
        raise click.UsageError("--ephemeral keeps nothing, so it has no --data-dir; leave one of them out")
    fleets = parsed_fleets(described)
    if fleets and click.get_current_context().get_parameter_source("nodes") is ParameterSource.COMMANDLINE:
        raise click.UsageError("--node says how many nodes there are (count=4); leave --nodes out")
    operators = selection.operators() if names is None else selection.named(names)
    values = operator_settings.values(given, os.environ)
    bind = checked_bind(bind, allow_others=allow_non_loopback)
    logs.configure(log_format, level=logging.WARNING)
    access_log.setLevel(logging.INFO if logs_access else logging.WARNING)
    with contextlib.ExitStack() as stack:
        kept = None if ephemeral else (data_dir or DIRECTORY).absolute()
        home = kept or stack.enter_context(running.for_now())
        settings = Settings(
            data_dir=kept,
            bind=bind,
            port=port,
            kubeconfig=(kubeconfig or home / "kubeconfig").absolute(),
            event_seconds=event_seconds,
        )
        options = ClusterOptions(
            settings=settings,
            nodes=sum(fleet.count for fleet in fleets) or nodes,
            fleets=fleets,
            seed=seed,
            operators=operators,
            values=values,
            home=home,
        )
        with asyncio.Runner(loop_factory=listener.new_event_loop) as runner:
            runner.run(until_signalled(_run(options, health_port)))


async def _run(options: ClusterOptions, health_port: int | None) -> None:
    async with embedded(options) as cluster, contextlib.AsyncExitStack() as stack:
        lines = [f"ready: {cluster.url}  export KUBECONFIG={options.settings.kubeconfig}"]
        if health_port is not None:
            address = await stack.enter_async_context(health.served(cluster.manager, LOOPBACK, port=health_port))
            lines.append(f"health: {address}/readyz  metrics: {address}/metrics")
        click.echo("\n".join(lines))
        sys.stdout.flush()
        summary = asyncio.create_task(watch_summary(cluster.manager.caches, _rollouts(options)))
        try:
            await asyncio.wait({cluster.ended})
        finally:
            summary.cancel()


def _rollouts(options: ClusterOptions) -> tuple[RolloutKind, ...]:
    """The kinds that roll out, of the operators that run."""
    return tuple(kind for each in options.operators for kind in each.rollouts)
