"""The dashboard for as long as a command runs: its socket and its link."""

from __future__ import annotations

import contextlib
import errno
import ssl
from collections.abc import AsyncIterator, Callable
from typing import Final

from holdfast.cli.errors import Complaint, InputError
from holdfast.cli.process.binding import CannotStart
from holdfast.client.protocols import Client
from holdfast.dashboard.server import Dashboard, kinds_of
from holdfast.dashboard.settings import Settings
from holdfast.dashboard.worlds import Worlds
from holdfast.operators.operator import Operator

PORT: Final = 6480
"""The port of the dashboard, where it is free."""


@contextlib.asynccontextmanager
async def served(
    worlds: Worlds,
    settings: Settings,
    *,
    bind: str,
    port: int | None,
    tls: ssl.SSLContext | None = None,
    watches: bool = False,
) -> AsyncIterator[str]:
    """Serve the dashboard until the block ends; gives its link.

    watches  look on from the beginning, so that timelines begin before the first viewer comes
    """
    dashboard = Dashboard(worlds, settings, watches=watches)
    try:
        host, bound = await _listen(dashboard, bind, port, tls)
        yield _link(dashboard, settings, host, bound, tls)
    finally:
        await dashboard.close()


async def _listen(dashboard: Dashboard, bind: str, port: int | None, tls: ssl.SSLContext | None) -> tuple[str, int]:
    try:
        return await dashboard.serve(bind, PORT if port is None else port, tls=tls)
    except OSError as error:
        if error.errno == errno.EADDRINUSE and port is None:
            return await dashboard.serve(bind, 0, tls=tls)
        if error.errno == errno.EADDRINUSE:
            message = f"{port} is in use on {bind}; choose another, or leave it out for any free one"
            raise CannotStart(Complaint(message=message, path="--port")) from error
        if error.errno == errno.EACCES:
            raise InputError(
                Complaint(message=f"{port} is for the superuser alone; choose one above 1023", path="--port")
            ) from error
        message = f"{bind!r} is not an address of this machine; write one, such as 127.0.0.1"
        raise InputError(Complaint(message=message, path="--bind")) from error


_EVERYWHERE: Final = {"0.0.0.0": "127.0.0.1", "::": "::1"}


def _link(dashboard: Dashboard, settings: Settings, host: str, port: int, tls: ssl.SSLContext | None) -> str:
    host = _EVERYWHERE.get(host, host)
    base = f"{'http' if tls is None else 'https'}://{f'[{host}]' if ':' in host else host}:{port}/"
    # Behind the #, a browser keeps the secret to itself: it is in no log and no referrer.
    return f"{base}#link={dashboard.link()}" if settings.links else base


def worlds_of(operators: tuple[Operator, ...], client: Callable[[str], Client]) -> Worlds:
    """The worlds of a cluster in this process."""
    return Worlds(client, kinds_of(operators))
