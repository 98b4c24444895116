"""``holdfast apiserver``: a Kubernetes API server in one process."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
from pathlib import Path

import click

from holdfast.apiserver.http.event_loops import new_event_loop
from holdfast.apiserver.http.gate import access_log
from holdfast.cli import logs
from holdfast.cli.arguments import PathType
from holdfast.cli.local import running, serving
from holdfast.cli.local.binding import checked_bind
from holdfast.cli.local.serving import Settings
from holdfast.cli.local.signals import until_signalled


@click.command("apiserver")
@click.option(
    "--data-dir",
    type=PathType(file_okay=False),
    help="Where objects, keys and the kubeconfig are kept.  [default: ~/.local/share/holdfast]",
)
@click.option("--ephemeral", is_flag=True, help="Keep nothing; everything is gone when it stops.")
@serving.options
def command(
    data_dir: Path | None,
    ephemeral: bool,
    bind: str,
    port: int,
    kubeconfig: Path | None,
    event_seconds: float,
    allow_non_loopback: bool,
    logs_access: bool,
    log_format: logs.Format,
) -> None:
    """Run a Kubernetes API server in one process.

    It keeps everything in one directory and serves until SIGTERM or Ctrl-C; then it
    finishes what is under way.  Nothing but the API runs: no controllers and no nodes, which `holdfast up` has.

    \b
    Try it:     holdfast apiserver --ephemeral
    Keep it:    holdfast apiserver --data-dir ./state --port 6443
    """
    if ephemeral and data_dir is not None:
        raise click.UsageError("--ephemeral keeps nothing, so it has no --data-dir; leave one of them out")
    bind = checked_bind(bind, allow_others=allow_non_loopback)
    logs.configure(log_format, level=logging.INFO)
    access_log.setLevel(logging.INFO if logs_access else logging.WARNING)
    with contextlib.ExitStack() as stack:
        kept = None if ephemeral else (data_dir or serving.default_directory()).absolute()
        home = kept or stack.enter_context(running.for_now())
        target = (kubeconfig or home / "kubeconfig").absolute()
        settings = Settings(data_dir=kept, bind=bind, port=port, kubeconfig=target, event_seconds=event_seconds)
        with asyncio.Runner(loop_factory=new_event_loop) as runner:
            runner.run(until_signalled(_run(settings)))


async def _run(settings: Settings) -> None:
    async with serving.serving(settings) as served:
        # Everything imported and built so far is never freed, so the garbage collector may skip it.
        gc.freeze()
        click.echo(f"ready: {served.url}  KUBECONFIG={settings.kubeconfig}")
        await asyncio.Event().wait()
