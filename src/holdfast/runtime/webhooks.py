"""Webhooks over HTTPS: reviews that an API server posts, and the answers.

A `Route` is a pure function from a review to the review with its response; conversion and admission differ in their
routes alone.  This module must not know what is reviewed, nor where certificates come from.
"""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, TypeAlias

import msgspec
from aiohttp import web

Route: TypeAlias = Callable[[Mapping[str, Any]], dict[str, Any]]
"""The answer to a review."""

LARGEST: Final = 64 * 1024 * 1024
"""The largest review that is read: a list of objects is converted at once."""

_SLOW: Final = 64 * 1024
"""Reviews larger than this are answered in a thread, so that other tasks go on."""

_DRAIN_SECONDS: Final = 5.0

_log: Final = logging.getLogger("holdfast.webhooks")


class Webhooks:
    """The webhooks of one process, by path."""

    def __init__(self, routes: Mapping[str, Route]) -> None:
        app = web.Application(client_max_size=LARGEST)
        for path, route in routes.items():
            app.router.add_post(path, _handler(route))
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=_DRAIN_SECONDS)

    async def serve(self, bind: str, port: int, tls: ssl.SSLContext) -> tuple[str, int]:
        """Listen at an address; gives the host and the port, which is any free one for 0."""
        await self._runner.setup()
        await web.TCPSite(self._runner, bind, port, ssl_context=tls).start()
        host, bound, *_ = self._runner.addresses[0]
        return str(host), int(bound)

    async def close(self) -> None:
        await self._runner.cleanup()


def _handler(route: Route) -> Callable[[web.Request], Awaitable[web.Response]]:
    async def handle(request: web.Request) -> web.Response:
        body = await request.read()
        try:
            review = msgspec.json.decode(body, type=dict[str, Any])
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            return web.Response(status=400, text=f"the body is not a review: {error}\n")
        try:
            made = await asyncio.to_thread(route, review) if len(body) > _SLOW else route(review)
        except Exception:
            _log.exception("review failed", extra={"fields": {"path": request.path}})
            return web.Response(status=500, text="the review failed; the log of the operator says where\n")
        return web.Response(body=msgspec.json.encode(made), content_type="application/json")

    return handle
