"""``holdfast kubectl``: kubectl, with the kubeconfig that the other commands would use.

Everything after the word is kubectl's own; nothing of it is read here.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import click

from holdfast.cli import connecting
from holdfast.cli.errors import Complaint, ExitCode, InputError

_ANYTHING = {"ignore_unknown_options": True, "allow_interspersed_args": False, "help_option_names": []}


class NotInstalled(InputError):
    exit_code = ExitCode.BLOCKED


@click.command("kubectl", context_settings=_ANYTHING)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED, metavar="...")
def command(arguments: tuple[str, ...]) -> None:
    """Run kubectl with the kubeconfig that the other commands use.

    \b
    Try it:    holdfast kubectl rollout status deployment/web
    """
    program = shutil.which("kubectl")
    if program is None:
        hint = "holdfast get, describe, wait, apply and delete work without it"
        raise NotInstalled(Complaint(message="kubectl is not installed, or not on the PATH", hint=hint))
    found = connecting.kubeconfig(None, environment=os.environ, directory=Path.cwd())
    environment = {**os.environ, **({"KUBECONFIG": str(found)} if found else {})}
    os.execve(program, [program, *arguments], environment)
