"""``holdfast check``: what of the data of a cluster is damaged, and what can be kept."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import click

from holdfast.apiserver.storage import recovery
from holdfast.apiserver.storage.sqlite_log import InUse, StorageError
from holdfast.cli.arguments import PathType
from holdfast.cli.errors import Complaint, ExitCode, InputError

MOST_LISTED: Final = 20


class CannotCheck(InputError):
    """The directory is valid, but a server has it open."""

    exit_code = ExitCode.BLOCKED


@click.command("check")
@click.argument("directory", metavar="DIR", type=PathType(file_okay=False))
@click.option("--repair", is_flag=True, help="Keep the last whole state of every object; move the damaged files aside.")
def command(directory: Path, repair: bool) -> int:
    """Check the data of a cluster for damage.

    Reads all data of a stopped cluster and says what is damaged.  Without --repair it changes nothing.  It exits with 1
    if there is damage.
    """
    try:
        found = recovery.survey(directory)
        for problem in found.problems:
            click.echo(f"damaged: {problem}")
        for loss in found.losses[:MOST_LISTED]:
            click.echo(f"  {loss}")
        if len(found.losses) > MOST_LISTED:
            click.echo(f"  and {len(found.losses) - MOST_LISTED} more")
        held = f"{len(found.entries)} objects, version {found.revision}"
        if not found.problems:
            click.echo(f"{directory} is whole: {held}")
            return ExitCode.OK
        if repair and found.rows:
            aside = recovery.repair(directory, found)
            click.echo(f"repaired: {held}; the damaged files are in {aside}")
            return ExitCode.OK
    except StorageError as error:
        raise (CannotCheck if isinstance(error, InUse) else InputError)(Complaint(message=str(error))) from error
    click.echo("restore a backup with: holdfast restore FILE DIR")
    if found.rows:
        click.echo(f"or keep the {held}, with: holdfast check {directory} --repair")
    return ExitCode.BLOCKED
