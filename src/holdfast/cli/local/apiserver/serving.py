"""An API server for as long as a command runs: its socket, its kubeconfig and its certificates.

What ``holdfast apiserver`` and ``holdfast up`` have in common.  It must not know what else runs beside the server.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import logging
import os
import ssl
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from ipaddress import IPv4Network
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

import click

from holdfast import kinds
from holdfast.apiserver.admission.checks import OwnAdmission
from holdfast.apiserver.admission.service_addresses import NETWORK
from holdfast.apiserver.auth.identity import Identity, IdentityError, load_serving
from holdfast.apiserver.expiry import DEFAULT_SECONDS
from holdfast.apiserver.http.gate import access_log
from holdfast.apiserver.http.listener import Listener, listen
from holdfast.apiserver.server import Server
from holdfast.apiserver.storage.store import CannotOpen, InUse
from holdfast.apiserver.verbs.subresources import Connectors, LogSource
from holdfast.cli import logs
from holdfast.cli.arguments import FloatRange, PathType
from holdfast.cli.bundling import bundled
from holdfast.cli.errors import Complaint, InputError
from holdfast.cli.local.apiserver import kubeconfigs
from holdfast.cli.process import ports, running
from holdfast.cli.process.binding import CannotStart, checked_bind
from holdfast.cli.process.garbage import collect_rarely
from holdfast.client.settings import KubeconfigError

_EVERYWHERE: Final = {"0.0.0.0": "127.0.0.1", "::": "::1"}
"""Addresses that listen on all interfaces, and the address to connect to instead."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Where the server stores its state, and its address."""

    data_dir: Path | None
    bind: str
    port: int
    """0: the port that it had before in its data directory, or any free one."""
    kubeconfig: Path
    event_seconds: float = DEFAULT_SECONDS
    """How long Events are kept after their last write."""


@dataclass(frozen=True, slots=True)
class Serving:
    """A server that answers at `url`, and the kubeconfig of its admin."""

    server: Server
    url: str

    @property
    def kubeconfig(self) -> dict[str, Any]:
        return self.server.identity.kubeconfig(self.url)


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What a user says of a server; the command itself adds --data-dir and --ephemeral."""

    data_dir: Path | None
    ephemeral: bool
    bind: str
    port: int
    kubeconfig: Path | None
    event_seconds: float
    allow_non_loopback: bool
    logs_access: bool
    log_format: logs.Format

    @contextlib.contextmanager
    def settings(self, directory: Path, *, level: int) -> Iterator[tuple[Settings, Path]]:
        """The settings, and the directory of the process; the log is configured from `level` on.

        directory  where a server stores its state without --data-dir
        """
        if self.ephemeral and self.data_dir is not None:
            raise click.UsageError("--ephemeral keeps nothing, so it has no --data-dir; leave one of them out")
        bind = checked_bind(self.bind, allow_others=self.allow_non_loopback)
        logs.configure(self.log_format, level=level)
        access_log.setLevel(logging.INFO if self.logs_access else logging.WARNING)
        with contextlib.ExitStack() as stack:
            kept = None if self.ephemeral else (self.data_dir or directory).absolute()
            home = kept or stack.enter_context(running.for_now())
            yield (
                Settings(
                    data_dir=kept,
                    bind=bind,
                    port=self.port,
                    kubeconfig=(self.kubeconfig or home / "kubeconfig").absolute(),
                    event_seconds=self.event_seconds,
                ),
                home,
            )


options: Final = bundled(
    "options",
    Options,
    click.option("--bind", metavar="ADDRESS", default="127.0.0.1", show_default=True, help="The address to listen on."),
    click.option(
        "--port",
        type=click.IntRange(0, 65535),
        default=0,
        help="The port to listen on.  [default: as before, or any free one]",
    ),
    click.option(
        "--kubeconfig",
        type=PathType(dir_okay=False),
        help="The file to add the kubeconfig of the admin to.  [default: kubeconfig in the data directory]",
    ),
    click.option(
        "--event-seconds",
        type=FloatRange(min=1),
        default=DEFAULT_SECONDS,
        show_default=True,
        help="How long Events are kept after their last write.",
    ),
    click.option("--allow-non-loopback", is_flag=True, help="Let other machines reach it; needed for such a --bind."),
    click.option("--access-log", "logs_access", is_flag=True, help="Log every request."),
    click.option(
        "--log-format", type=click.Choice(logs.FORMATS), default="text", show_default=True, help="How to log."
    ),
)
"""Give a command the options of a server, as one argument `options`: its address, the lifetime of Events, its log."""


@contextlib.asynccontextmanager
async def serving(
    settings: Settings,
    *,
    log_source: LogSource | None = None,
    connectors: Connectors = MappingProxyType({}),
    service_network: IPv4Network = NETWORK,
    admission: OwnAdmission | None = None,
) -> AsyncIterator[Serving]:
    """Serve until the end of the block; then finish the requests in progress."""
    async with _opened(settings, log_source, connectors, service_network, admission) as server:
        tls = server.identity.tls()
        listener = await _listening(server, settings, tls)
        url = _url(listener)
        _write_kubeconfig(server.identity, settings, url)
        renewal = asyncio.ensure_future(_renew(tls, server.identity, settings.bind))
        collect_rarely()
        await server.own_service.start(*listener.address)
        try:
            yield Serving(server, url)
        finally:
            renewal.cancel()
            server.draining = True
            await listener.drain()


@contextlib.asynccontextmanager
async def _opened(
    settings: Settings,
    log_source: LogSource | None,
    connectors: Connectors,
    service_network: IPv4Network,
    admission: OwnAdmission | None,
) -> AsyncIterator[Server]:
    try:
        server = await Server.open(
            settings.data_dir,
            bind=settings.bind,
            log_source=log_source,
            connectors=connectors,
            event_seconds=settings.event_seconds,
            service_network=service_network,
            conversions=kinds.conversion,
            admission=admission,
        )
    except InUse as error:
        hint = _how_to_stop(settings.data_dir) if settings.data_dir is not None else None
        raise CannotStart(Complaint(message=str(error), hint=hint, path="--data-dir")) from error
    except (CannotOpen, IdentityError) as error:
        raise InputError(Complaint(message=str(error), path="--data-dir")) from error
    except OSError as error:
        message = f"{settings.data_dir}: {error.strerror}; choose a directory that you can write"
        raise InputError(Complaint(message=message, path="--data-dir")) from error
    try:
        yield server
    finally:
        await server.close()


def _how_to_stop(directory: Path) -> str | None:
    """How to stop the cluster that `holdfast up` started in a directory, if it is that which runs there."""
    if running.process_in(directory) is None:
        return None
    return f"'holdfast down --data-dir {directory}' stops the cluster that runs there"


async def _listening(server: Server, settings: Settings, tls: ssl.SSLContext) -> Listener:
    before = ports.last(settings.data_dir, "api")
    try:
        listener = await listen(server.handle, settings.bind, port=settings.port or before, tls=tls)
    except OSError as error:
        if error.errno == errno.EADDRINUSE and not settings.port:
            listener = await listen(server.handle, settings.bind, port=0, tls=tls)
            message = f"port {before}, which this server had before, is in use; it listens on {listener.address[1]} now"
            click.echo(f"note: {message}, and kubeconfigs that were copied before do not reach it", err=True)
        elif error.errno == errno.EADDRINUSE:
            message = f"{settings.port} is in use on {settings.bind}; choose another, or leave it out for any free one"
            raise CannotStart(Complaint(message=message, path="--port")) from error
        elif error.errno == errno.EACCES:
            message = f"{settings.port} is for the superuser alone; choose one above 1023"
            raise InputError(Complaint(message=message, path="--port")) from error
        else:
            message = f"{settings.bind!r} is not an address of this machine; write one, such as 127.0.0.1"
            raise InputError(Complaint(message=message, path="--bind")) from error
    ports.keep(settings.data_dir, "api", listener.address[1])
    return listener


def _write_kubeconfig(identity: Identity, settings: Settings, url: str) -> None:
    own = settings.data_dir is not None and settings.kubeconfig == settings.data_dir / "kubeconfig"
    try:
        (kubeconfigs.replace if own else kubeconfigs.merge)(settings.kubeconfig, identity.kubeconfig(url))
    except KubeconfigError as error:
        message = f"{error}; correct it, or choose another file"
        raise InputError(Complaint(message=message, path="--kubeconfig")) from error
    except OSError as error:
        message = f"{settings.kubeconfig}: {error.strerror}; choose a file that you can write"
        raise InputError(Complaint(message=message, path="--kubeconfig")) from error


async def _renew(tls: ssl.SSLContext, identity: Identity, bind: str) -> None:
    """Renew the serving certificate long before it expires."""
    while True:
        left = identity.serving.renew_at - datetime.now(UTC)
        await asyncio.sleep(max(left.total_seconds(), 0))
        identity = identity.renewed(bind, now=datetime.now(UTC))
        load_serving(tls, identity.serving)


def _url(listener: Listener) -> str:
    """The URL of the server from this machine."""
    host, port = listener.address
    host = _EVERYWHERE.get(host, host)
    return f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}"


def default_directory() -> Path:
    """The default directory of a server's state."""
    base = os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share"
    return Path(base) / "holdfast"
