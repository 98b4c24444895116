"""``holdfast up``: an API server, a cluster and all operators, in one process."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import sys
from datetime import timedelta
from pathlib import Path
from typing import Final

import click
from click.core import ParameterSource

from holdfast.apiserver.http.event_loops import new_event_loop
from holdfast.cli import progress
from holdfast.cli.arguments import PathType
from holdfast.cli.dashboard import serving as dashboard
from holdfast.cli.errors import Complaint, InputError
from holdfast.cli.local.apiserver import kubeconfigs, serving
from holdfast.cli.local.cluster import hints
from holdfast.cli.local.cluster.embedded import ClusterOptions, Embedded, embedded
from holdfast.cli.local.cluster.fleets import parsed_fleets
from holdfast.cli.local.cluster.summary import watch_summary
from holdfast.cli.operator import health, selection
from holdfast.cli.operator import settings as operator_settings
from holdfast.cli.process.signals import until_signalled
from holdfast.client.settings import KubeconfigError
from holdfast.dashboard.settings import Settings as DashboardSettings
from holdfast.meta import durations
from holdfast.operators.shown import ShownKind
from holdfast.runtime.health import LOOPBACK

DIRECTORY: Final = Path(".holdfast")
"""The default data directory, in the working directory."""


def _range(ctx: click.Context, parameter: click.Parameter, text: str) -> tuple[timedelta, timedelta]:
    """Two times, or twice the same."""
    low, dots, high = text.partition("..")
    try:
        first = durations.parse(low.strip())
        last = durations.parse(high.strip()) if dots else first
    except durations.DurationError as error:
        raise click.BadParameter(f"{error}; write such as 2s..8s, or 5s") from None
    if not timedelta() <= first <= last:
        raise click.BadParameter(f"{text!r} must go from a shorter to a longer time; write such as 2s..8s")
    return first, last


@click.command("up")
@click.option(
    "--data-dir",
    type=PathType(file_okay=False),
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
    help="Simulated nodes of another kind, such as cpu=32,memory=128Gi,nvidia.com/gpu=8,count=4,labels=disk=ssd ; "
    "may be repeated.",
)
@click.option(
    "--seed", type=int, default=0, show_default=True, help="The seed of the random behaviour of simulated pods."
)
@click.option(
    "--ready-after",
    callback=_range,
    default="2s..5s",
    show_default=True,
    envvar="HOLDFAST_READY_AFTER",
    metavar="TIME[..TIME]",
    help="How long simulated pods take to become ready; of a range, each pod draws its own time.",
)
@click.option(
    "--merge",
    is_flag=True,
    help="Add a context to the kubeconfig of kubectl (KUBECONFIG, or ~/.kube/config) until the cluster stops.",
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
@click.option("--no-dashboard", is_flag=True, help="Do not serve the dashboard.")
@click.option(
    "--dashboard-port",
    type=click.IntRange(0, 65535),
    help=f"The port of the dashboard on the loopback; 0 is any free one.  [default: {dashboard.PORT}, or any free one]",
)
@operator_settings.OPTION
@serving.options
def command(
    options: serving.Options,
    nodes: int,
    described: tuple[str, ...],
    seed: int,
    ready_after: tuple[timedelta, timedelta],
    merge: bool,
    health_port: int | None,
    names: str | None,
    no_dashboard: bool,
    dashboard_port: int | None,
    given: tuple[str, ...],
) -> None:
    """Start a cluster in one process: the API, controllers, nodes and operators.

    Nodes are simulated and start no containers; pods with runtimeClassName: process run as processes of this
    machine.  The state stays in the data directory for the next start.  Ctrl-C or `holdfast down` stops the cluster.

    \b
    Try it:        holdfast up --ephemeral
    Keep it:       holdfast up --data-dir ./state --port 6443
    Use it:        holdfast kubectl get nodes
    With kubectl:  holdfast up --merge
    At once:       holdfast up --ready-after 0s
    Other operators in it:  holdfast up --operators none
    """
    fleets = parsed_fleets(described)
    if fleets and click.get_current_context().get_parameter_source("nodes") is ParameterSource.COMMANDLINE:
        raise click.UsageError("--node says how many nodes there are (count=4); leave --nodes out")
    operators = selection.operators() if names is None else selection.named(names)
    values = operator_settings.values(given, os.environ)
    with options.settings(DIRECTORY, level=logging.WARNING) as (settings, home):
        cluster = ClusterOptions(
            settings=settings,
            nodes=sum(fleet.count for fleet in fleets) or nodes,
            fleets=fleets,
            seed=seed,
            ready=ready_after,
            operators=operators,
            values=values,
            home=home,
        )
        with asyncio.Runner(loop_factory=new_event_loop) as runner:
            runner.run(
                until_signalled(_run(cluster, health_port, merge=merge, shows=not no_dashboard, port=dashboard_port))
            )


async def _run(options: ClusterOptions, health_port: int | None, *, merge: bool, shows: bool, port: int | None) -> None:
    async with contextlib.AsyncExitStack() as stack:
        async with progress.waiting(lambda: f"starting a cluster with {options.nodes} nodes"):
            cluster = await stack.enter_async_context(embedded(options))
        on_terminal = sys.stdout.isatty()
        # A program reads one line; on a terminal each part has one, so that it can be copied.
        between = "\n" if on_terminal else "  "
        lines = [f"ready: {cluster.url}{between}export KUBECONFIG={options.settings.kubeconfig}"]
        if merge:
            lines.append(_added_context(options, cluster, stack))
        if health_port is not None:
            address = await stack.enter_async_context(health.served(cluster.manager, LOOPBACK, port=health_port))
            lines.append(f"health: {address}/readyz  metrics: {address}/metrics")
        if shows:
            shown = dashboard.worlds_of(options.operators, cluster.client_of)
            settings = DashboardSettings(server=cluster.url, changes=True)
            link = await stack.enter_async_context(
                dashboard.served(shown, settings, bind=LOOPBACK, port=port, watches=True)
            )
            lines.append(f"dashboard: {link}")
        if on_terminal:
            lines += hints.activation()
            lines.append(f"next: {hints.next_commands()} in another terminal; Ctrl-C stops it\n")
        click.echo("\n".join(lines))
        sys.stdout.flush()
        summary = asyncio.create_task(watch_summary(cluster.manager.caches, _shown(options)))
        try:
            await asyncio.wait({cluster.ended})
        finally:
            summary.cancel()


def _shown(options: ClusterOptions) -> tuple[ShownKind, ...]:
    """The kinds of the operators that run."""
    return tuple(kind for each in options.operators for kind in each.shown_kinds())


def _added_context(options: ClusterOptions, cluster: Embedded, stack: contextlib.AsyncExitStack) -> str:
    """Add a context for kubectl until the cluster stops; returns the line that says so."""
    path = kubeconfigs.default_path(os.environ)
    try:
        added = kubeconfigs.add_context(path, cluster.kubeconfig, home=options.home)
    except KubeconfigError as error:
        raise InputError(Complaint(message=f"{error}; correct it, or leave --merge out", path="--merge")) from error
    except OSError as error:
        message = f"{path}: {error.strerror}; leave --merge out, or set KUBECONFIG to a file that you can write"
        raise InputError(Complaint(message=message, path="--merge")) from error
    stack.callback(kubeconfigs.remove_context, options.home)
    return f"context: {added.context} is the current one of {added.path}, until the cluster stops"
