"""The server of the dashboard: pages, JSON and streams of changes, over HTTP.

    GET  /                    the page; /assets/NAME its scripts and styles
    GET  /api/session         who the viewer is; POST begins a session, DELETE ends it
    GET  /api/stream          the rows of the overview, or the sections of one object's page, as they change
    POST /api/verb            what a verb would do (preview), or the verb itself
    POST /api/plan            a plan and a simulation

Everything that is shown or changed is asked of the API server with the identity of the
viewer.  This module must not know how clients are made, nor any kind.
"""

from __future__ import annotations

import asyncio
import ssl
import time
from collections.abc import Iterable
from typing import Final

from aiohttp import web

from holdfast.dashboard import gate
from holdfast.dashboard.access import Access
from holdfast.dashboard.answers import answered
from holdfast.dashboard.files import Files
from holdfast.dashboard.sessions import Sessions
from holdfast.dashboard.settings import Settings
from holdfast.dashboard.streams import Streams
from holdfast.dashboard.verbs import Verbs
from holdfast.dashboard.worlds import Worlds
from holdfast.operators.operator import Operator
from holdfast.operators.shown import ShownKind

LARGEST: Final = 64 * 1024
"""The largest request."""

_DRAIN_SECONDS: Final = 1.0


class Dashboard:
    """The dashboard of one cluster."""

    def __init__(self, worlds: Worlds, settings: Settings, *, watches: bool = False) -> None:
        self._watches = watches
        self._watching: asyncio.Task[None] | None = None
        self._worlds = worlds
        self._streams = Streams(worlds)
        self._sessions = Sessions(clock=time.monotonic, ended=self._streams.end)
        files, access, verbs = Files(), Access(self._sessions, worlds, settings), Verbs(worlds, settings)
        app = web.Application(client_max_size=LARGEST, middlewares=[gate.gate(settings.hosts), answered])
        app.on_response_prepare.append(gate.forbid)
        app.add_routes(
            [
                web.get("/", files.index),
                web.get("/healthz", _healthz),
                web.get("/assets/{name}", files.asset),
                web.get("/api/session", access.who),
                web.post("/api/session", access.begin),
                web.delete("/api/session", access.changing(access.end)),
                web.post("/api/link", access.changing(access.link)),
                web.get("/api/stream", access.reading(self._streams.serve)),
                web.post("/api/verb", access.changing(verbs.verb)),
                web.post("/api/plan", access.changing(verbs.plan)),
            ]
        )
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=_DRAIN_SECONDS, handler_cancellation=True)
        self._listening: asyncio.Server | None = None

    async def serve(self, bind: str, port: int, *, tls: ssl.SSLContext | None = None) -> tuple[str, int]:
        """Listen at an address; returns the host and the port, which is any free one for 0.  Raises `OSError`."""
        if self._runner.server is None:
            await self._runner.setup()
        loop, manager = asyncio.get_running_loop(), self._runner.server
        assert manager is not None, "the runner is set up"
        self._listening = await loop.create_server(lambda: gate.Connection(manager, loop), bind, port, ssl=tls)
        host, bound, *_ = self._listening.sockets[0].getsockname()
        if self._watches:
            self._watching = asyncio.ensure_future(self._worlds.watch())
        return str(host), int(bound)

    def link(self) -> str:
        """A secret that begins one session."""
        return self._sessions.link()

    async def close(self) -> None:
        if self._watching is not None:
            self._watching.cancel()
            await asyncio.gather(self._watching, return_exceptions=True)
        if self._listening is not None:
            self._listening.close()
        self._streams.close()
        await self._runner.cleanup()
        await self._worlds.close()


async def _healthz(request: web.Request) -> web.StreamResponse:
    return web.Response(text="ok\n")


def kinds_of(operators: Iterable[Operator]) -> tuple[ShownKind, ...]:
    """The kinds that operators show."""
    return tuple(kind for each in operators for kind in each.shown_kinds())
