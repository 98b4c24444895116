"""``holdfast dashboard``: serve the dashboard of any cluster."""

from __future__ import annotations

import asyncio
import logging
import os
import ssl
import sys
from collections.abc import Callable
from ipaddress import ip_address
from pathlib import Path
from urllib.parse import urlsplit

import click

from holdfast.cli import connecting, logs
from holdfast.cli.arguments import PathType
from holdfast.cli.connecting import Where
from holdfast.cli.dashboard.serving import PORT, served
from holdfast.cli.errors import Complaint, InputError
from holdfast.cli.operator import selection
from holdfast.cli.process.binding import checked_bind
from holdfast.cli.process.garbage import collect_rarely
from holdfast.cli.process.signals import until_signalled
from holdfast.client.kubeconfig import Connection, connect, with_token
from holdfast.client.protocols import Client
from holdfast.client.settings import KubeconfigError
from holdfast.dashboard.server import kinds_of
from holdfast.dashboard.settings import Settings
from holdfast.dashboard.worlds import Worlds


@click.command("dashboard")
@connecting.options
@click.option("--bind", metavar="ADDRESS", default="127.0.0.1", show_default=True, help="The address to listen on.")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    help=f"The port to listen on; 0 is any free one.  [default: {PORT}, or any free one]",
)
@click.option(
    "--host",
    "hosts",
    metavar="NAME",
    multiple=True,
    help="A name by which browsers reach it, beside localhost and addresses; may be repeated.",
)
@click.option("--allow-non-loopback", is_flag=True, help="Let other machines reach it; needed for such a --bind.")
@click.option(
    "--allow-changes/--read-only",
    "changes",
    default=None,
    help="Whether verbs can be carried out.  [default: only where the API server is on this machine]",
)
@click.option(
    "--login",
    type=click.Choice(["link", "token"]),
    default="link",
    show_default=True,
    help="How viewers sign in: with the link that is printed, as the user of the kubeconfig, or with bearer tokens.",
)
@click.option("--tls-cert", type=PathType(dir_okay=False), help="Serve HTTPS with this certificate, in PEM.")
@click.option("--tls-key", type=PathType(dir_okay=False), help="The key of the certificate, in PEM.")
@click.option("--log-format", type=click.Choice(logs.FORMATS), default="text", show_default=True, help="How to log.")
def command(
    *,
    where: Where,
    bind: str,
    port: int | None,
    hosts: tuple[str, ...],
    allow_non_loopback: bool,
    changes: bool | None,
    login: str,
    tls_cert: Path | None,
    tls_key: Path | None,
    log_format: logs.Format,
) -> None:
    """Serve a web page of all objects and their rollouts.

    Prints a link that signs one browser in as the user of the kubeconfig. Viewers see and change what their identity
    may see and change. On a cluster of another machine nothing can be changed unless --allow-changes is given.

    \b
    This directory's cluster:  holdfast dashboard
    Any cluster:               holdfast dashboard --context prod
    One namespace:             holdfast dashboard -n shop --read-only
    """
    bind = checked_bind(bind, allow_others=allow_non_loopback)
    tls = _tls(tls_cert, tls_key)
    logs.configure(log_format, level=logging.WARNING)
    found = connecting.kubeconfig(where.kubeconfig, environment=os.environ, directory=Path.cwd())
    try:
        connection = connect(found, context=where.context)
    except KubeconfigError as error:
        raise InputError(Complaint(message=str(error), hint="--kubeconfig names the kubeconfig of a server")) from None
    settings = Settings(
        server=connection.server,
        hosts=hosts,
        changes=is_local(connection.server) if changes is None else changes,
        links=login == "link",
    )

    async def run() -> None:
        namespaces = (where.namespace,) if where.namespace else ()
        worlds = Worlds(
            _clients(found, where.context, connection), kinds_of(selection.operators()), namespaces=namespaces
        )
        try:
            async with served(worlds, settings, bind=bind, port=port, tls=tls) as link:
                may = (
                    "changes are allowed"
                    if settings.changes
                    else "read-only; --allow-changes lets viewers change objects"
                )
                click.echo(f"dashboard: {link}\n  of {settings.server}, {may}")
                sys.stdout.flush()
                collect_rarely()
                await asyncio.get_running_loop().create_future()
        finally:
            await connection.client.close()

    asyncio.run(until_signalled(run()))


def _clients(kubeconfig: Path | None, context: str, connection: Connection) -> Callable[[str], Client]:
    """Clients by token; without one, as the user of the kubeconfig."""

    def client(token: str) -> Client:
        if token:
            return with_token(connection.endpoint, token)
        return connect(kubeconfig, context=context).client

    return client


def is_local(server: str) -> bool:
    """Whether an API server is on this machine."""
    host = urlsplit(server).hostname or ""
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False


def _tls(certificate: Path | None, key: Path | None) -> ssl.SSLContext | None:
    if certificate is None and key is None:
        return None
    if certificate is None or key is None:
        raise click.UsageError("--tls-cert and --tls-key belong together; give both")
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    try:
        context.load_cert_chain(certificate, key)
    except (OSError, ssl.SSLError) as error:
        message = f"{certificate} and {key} are no certificate with its key in PEM: {error}"
        raise InputError(Complaint(message=message, path="--tls-cert")) from None
    return context
