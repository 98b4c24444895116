"""``holdfast apiserver``: a Kubernetes API server in one process."""

from __future__ import annotations

import asyncio
import logging

import click

from holdfast.apiserver.http.event_loops import new_event_loop
from holdfast.cli.arguments import PathType
from holdfast.cli.local.apiserver import serving
from holdfast.cli.local.apiserver.serving import Settings
from holdfast.cli.process.signals import until_signalled


@click.command("apiserver")
@click.option(
    "--data-dir",
    type=PathType(file_okay=False),
    help="Where objects, keys and the kubeconfig are kept.  [default: ~/.local/share/holdfast]",
)
@click.option("--ephemeral", is_flag=True, help="Keep nothing; everything is gone when it stops.")
@serving.options
def command(options: serving.Options) -> None:
    """Run a Kubernetes API server in one process.

    It keeps everything in one directory and serves until SIGTERM or Ctrl-C; then it
    finishes what is under way.  Nothing but the API runs: no controllers and no nodes, which `holdfast up` has.

    \b
    Try it:     holdfast apiserver --ephemeral
    Keep it:    holdfast apiserver --data-dir ./state --port 6443
    """
    given = options.settings(serving.default_directory(), level=logging.INFO)
    with given as (settings, _), asyncio.Runner(loop_factory=new_event_loop) as runner:
        runner.run(until_signalled(_run(settings)))


async def _run(settings: Settings) -> None:
    async with serving.serving(settings) as served:
        click.echo(f"ready: {served.url}  KUBECONFIG={settings.kubeconfig}")
        await asyncio.Event().wait()
