"""``holdfast apiserver``: a Kubernetes API server in one process."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import gc
import logging
import os
import signal
import ssl
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import UTC, datetime
from ipaddress import ip_address
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import click

from holdfast.apiserver import serve
from holdfast.apiserver.access import access_log
from holdfast.apiserver.identity import Identity, IdentityError, load_serving, write_private
from holdfast.apiserver.server import Server
from holdfast.apiserver.storage import CannotOpen, InUse
from holdfast.cli import logs
from holdfast.cli.errors import Complaint, ExitCode, InputError

_EVERYWHERE: Final = {"0.0.0.0": "127.0.0.1", "::": "::1"}
"""Addresses that stand for all of a machine's, and what to call instead."""


class CannotStart(InputError):
    """What was asked for is fine, but not possible now."""

    exit_code = ExitCode.BLOCKED


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Where the server keeps its state and where it is reached."""

    data_dir: Path | None
    bind: str
    port: int
    kubeconfig: Path


@click.command("apiserver")
@click.option(
    "--data-dir",
    type=click.Path(file_okay=False, path_type=Path),
    help="Where objects, keys and the kubeconfig are kept.  [default: ~/.local/share/holdfast]",
)
@click.option("--ephemeral", is_flag=True, help="Keep nothing; everything is gone when it stops.")
@click.option("--bind", metavar="ADDRESS", default="127.0.0.1", show_default=True, help="The address to listen on.")
@click.option(
    "--port", type=click.IntRange(0, 65535), default=0, help="The port to listen on.  [default: any free one]"
)
@click.option(
    "--kubeconfig",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Where to write the kubeconfig of the admin.  [default: kubeconfig in the data directory]",
)
@click.option("--allow-non-loopback", is_flag=True, help="Let other machines reach it; needed for such a --bind.")
@click.option("--access-log", "logs_access", is_flag=True, help="Log every request.")
@click.option("--log-format", type=click.Choice(logs.FORMATS), default="text", show_default=True, help="How to log.")
def command(
    data_dir: Path | None,
    ephemeral: bool,
    bind: str,
    port: int,
    kubeconfig: Path | None,
    allow_non_loopback: bool,
    logs_access: bool,
    log_format: logs.Format,
) -> None:
    """Run a Kubernetes API server in one process.

    It keeps everything in one directory and serves until it is told to stop with SIGTERM or Ctrl-C; then it
    finishes what is under way.

    \b
    Try it:     holdfast apiserver --ephemeral
    Keep it:    holdfast apiserver --data-dir ./state --port 6443
    """
    if ephemeral and data_dir is not None:
        raise click.UsageError("--ephemeral keeps nothing, so it has no --data-dir; leave one of them out")
    # As a name it would be two addresses, with a free port each.
    bind = "127.0.0.1" if bind == "localhost" else bind
    _check_bind(bind, allowed=allow_non_loopback)
    logs.configure(log_format, level=logging.INFO)
    access_log.setLevel(logging.INFO if logs_access else logging.WARNING)
    with contextlib.ExitStack() as stack:
        kept = None if ephemeral else (data_dir or _default_directory()).absolute()
        home = kept or Path(stack.enter_context(TemporaryDirectory(prefix="holdfast-")))
        target = (kubeconfig or home / "kubeconfig").absolute()
        settings = Settings(data_dir=kept, bind=bind, port=port, kubeconfig=target)
        with asyncio.Runner(loop_factory=serve.new_event_loop) as runner:
            runner.run(_run(settings))


async def _run(settings: Settings) -> None:
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    async with _opened(settings) as server:
        tls = server.identity.tls()
        listener = await _listening(server, settings, tls)
        _write_kubeconfig(server.identity, settings, listener)
        renewal = asyncio.ensure_future(_renew(tls, server.identity, settings.bind))
        # What is there now stays for good; the collector need not look at it again and again.
        gc.freeze()
        click.echo(f"ready: {_url(listener)}  KUBECONFIG={settings.kubeconfig}")
        await stop.wait()
        renewal.cancel()
        server.draining = True
        await listener.drain()


@contextlib.asynccontextmanager
async def _opened(settings: Settings) -> AsyncIterator[Server]:
    try:
        server = await Server.open(settings.data_dir, bind=settings.bind)
    except InUse as error:
        raise CannotStart(Complaint(message=str(error), path="--data-dir")) from error
    except (CannotOpen, IdentityError) as error:
        raise InputError(Complaint(message=str(error), path="--data-dir")) from error
    except OSError as error:
        message = f"{settings.data_dir}: {error.strerror}; choose a directory that you can write"
        raise InputError(Complaint(message=message, path="--data-dir")) from error
    try:
        yield server
    finally:
        await server.close()


async def _listening(server: Server, settings: Settings, tls: ssl.SSLContext) -> serve.Listener:
    try:
        return await serve.listen(server.handle, settings.bind, port=settings.port, tls=tls)
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            message = f"{settings.port} is in use on {settings.bind}; choose another, or leave it out for any free one"
            raise CannotStart(Complaint(message=message, path="--port")) from error
        if error.errno == errno.EACCES:
            message = f"{settings.port} is for the superuser alone; choose one above 1023"
            raise InputError(Complaint(message=message, path="--port")) from error
        message = f"{settings.bind!r} is not an address of this machine; write one, such as 127.0.0.1"
        raise InputError(Complaint(message=message, path="--bind")) from error


def _write_kubeconfig(identity: Identity, settings: Settings, listener: serve.Listener) -> None:
    content = identity.kubeconfig(_url(listener)).encode()
    try:
        write_private(settings.kubeconfig, content)
    except OSError as error:
        message = f"{settings.kubeconfig}: {error.strerror}; choose a file that you can write"
        raise InputError(Complaint(message=message, path="--kubeconfig")) from error


async def _renew(tls: ssl.SSLContext, identity: Identity, bind: str) -> None:
    """Make a new serving certificate long before the one in use ends; the next start keeps one of its own."""
    while True:
        left = identity.serving.renew_at - datetime.now(UTC)
        await asyncio.sleep(max(left.total_seconds(), 0))
        identity = identity.renewed(bind, now=datetime.now(UTC))
        load_serving(tls, identity.serving)


def _url(listener: serve.Listener) -> str:
    """How the server is reached from this machine."""
    host, port = listener.address
    host = _EVERYWHERE.get(host, host)
    return f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}"


def _check_bind(bind: str, *, allowed: bool) -> None:
    try:
        local = ip_address(bind).is_loopback
    except ValueError:
        local = False
    if not local and not allowed:
        message = f"{bind} can be reached by other machines; add --allow-non-loopback if they shall, or bind 127.0.0.1"
        raise InputError(Complaint(message=message, path="--bind"))


def _default_directory() -> Path:
    base = os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share"
    return Path(base) / "holdfast"
