"""The command ``holdfast tui``: checks that it can run, connects, and starts the application."""

from __future__ import annotations

import sys

import click

from holdfast.cli import connecting
from holdfast.cli.connecting import Session, Verb, Where
from holdfast.cli.errors import Complaint, ExitCode, InputError

INSTALL = "pip install 'holdfast[tui]'"


class NotInstalled(InputError):
    """The libraries of the interface are not installed, or there is no terminal."""

    exit_code = ExitCode.BLOCKED


@click.command("tui", cls=Verb)
@click.option("--read-only", is_flag=True, help="Offer no verb that changes anything.")
@connecting.options
def command(*, where: Where, read_only: bool) -> None:
    """Show all objects on one screen, live, and steer them by keys.

    Objects in trouble come first. Enter opens an object, / filters, : takes a command, and ? shows all keys.

    \b
    All namespaces:    holdfast tui
    One namespace:     holdfast tui -n shop
    Only to look:      holdfast tui --read-only
    """
    try:
        from holdfast.cli.tui.app import HoldfastApp
    except ModuleNotFoundError as error:
        if error.name is None or not error.name.startswith("textual"):
            raise
        message = "the terminal interface needs Textual, which is not installed"
        raise NotInstalled(Complaint(message=message, hint=f"install it: {INSTALL}")) from None
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        hint = "'holdfast get', 'holdfast rollout status' and 'holdfast events' work in pipes"
        raise NotInstalled(Complaint(message="the terminal interface needs a terminal", hint=hint))

    async def run(session: Session) -> ExitCode | None:
        known = await session.discovery()
        app = HoldfastApp(session, known, namespace=where.namespace, read_only=read_only)
        await app.run_async()
        return None

    connecting.run(where, run)
