"""``holdfast profile``: which configuration of a model meets a service level."""

from __future__ import annotations

import click

from holdfast.cli.profile import job


@click.group("profile")
def command() -> None:
    """Find the configuration of a model that meets a service level."""


command.add_command(job.command)
