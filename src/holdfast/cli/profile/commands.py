"""``holdfast profile``: a group whose first argument may also be a model.

Its commands are imported when they are run.
"""

from __future__ import annotations

from importlib import import_module
from typing import Final

import click

from holdfast.cli.groups import Group

COMMANDS: Final = {
    "model": "holdfast.cli.profile.search:command",
    "estimate": "holdfast.cli.profile.estimate:command",
    "measure": "holdfast.cli.profile.measure:command",
    "job": "holdfast.cli.profile.job:command",
}
"""The commands of the group; ``model`` is what is meant where none is named."""


class Profile(Group):
    """A group that takes what is not one of its commands as a model."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [name for name in COMMANDS if name != "model"]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module, _, attribute = COMMANDS[cmd_name].partition(":")
        command: click.Command = getattr(import_module(module), attribute)
        return command

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if args and args[0] not in COMMANDS and args[0] not in ctx.help_option_names:
            args = ["model", *args]
        return super().parse_args(ctx, args)


@click.group("profile", cls=Profile, subcommand_metavar="MODEL|COMMAND [OPTIONS]")
def command() -> None:
    """Find the configuration of a model that meets a service level.

    No GPU is needed.

    \b
    A model:          holdfast profile Qwen/Qwen3-32B --gpu h200_sxm --gpus 8
    Its options:      holdfast profile model --help
    One prediction:   holdfast profile estimate --model Qwen/Qwen3-32B --isl 4000
    Another GPU:      holdfast profile measure --write my-gpu.json
    """
