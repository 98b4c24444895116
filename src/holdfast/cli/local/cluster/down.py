"""``holdfast down``: stop the cluster that ``holdfast up`` started."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final

import click

from holdfast.cli.arguments import PathType
from holdfast.cli.errors import Complaint, ExitCode, InputError
from holdfast.cli.local.apiserver import kubeconfigs
from holdfast.cli.process import running

DIRECTORY: Final = Path(".holdfast")
PATIENCE: Final = 30.0


class StillRunning(InputError):
    """The process did not stop in time."""

    exit_code = ExitCode.BLOCKED


@click.command("down")
@click.option(
    "--data-dir",
    type=PathType(file_okay=False),
    default=DIRECTORY,
    show_default=True,
    help="The data directory that it was started with.",
)
def command(data_dir: Path) -> None:
    """Stop the cluster that `up` started.

    What was created stays in the data directory, for the next start.
    """
    number = running.process_in(data_dir)
    if number is None:
        removed = kubeconfigs.remove_context(data_dir)  # of a process that was killed
        also = f"; removed the context {removed.context} from {removed.path}" if removed is not None else ""
        click.echo(f"nothing runs in {data_dir}{also}")
        return
    if sys.stderr.isatty():
        click.echo(f"stopping process {number}, and the processes of its pods ...", err=True)
    if not running.stop(data_dir, within=PATIENCE):
        message = f"process {number} has not ended within {PATIENCE:.0f} s; end it with kill -9 {number}"
        raise StillRunning(Complaint(message=message, path="--data-dir"))
    click.echo(f"stopped; {data_dir} keeps what was created")
