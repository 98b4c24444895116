"""The gate: which requests are let in, and what every answer forbids the browser.

A page of another site must reach nothing here: not by a name that it points at this
machine (Host), not by a form or a script of its own (Origin, the token of the session), not in
a frame.  Scripts and styles come from this server alone, as files.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable
from ipaddress import ip_address
from typing import Any, Final
from urllib.parse import urlsplit

from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError
from aiohttp.typedefs import Middleware

_log: Final = logging.getLogger("holdfast.dashboard")

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

CSRF: Final = "X-Holdfast-Csrf"

POLICY: Final = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self'",
        "connect-src 'self'",
        "manifest-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
        "require-trusted-types-for 'script'",
    )
)

HEADERS: Final = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), microphone=(), geolocation=(), payment=(), usb=()",
}

NOT_HTTP: Final = "the request is not valid HTTP/1.1"

NOT_HTTP_ERRORS: Final = (HttpProcessingError, web.RequestPayloadError)
"""What aiohttp raises where the body of a request is not HTTP."""

FAILED: Final = 500
"""The least status of a failure of the server itself."""

_SAFE: Final = frozenset({"GET", "HEAD"})
_OWN: Final = frozenset({"same-origin", "none"})


def is_known_host(host: str, names: Iterable[str]) -> bool:
    """Whether a Host header names this server: by address, as localhost, or by a name that it was given.

    An address is always right: a page of another site comes here only by a name of its own.
    """
    hostname = _hostname(host)
    if hostname is None:
        return False
    if hostname == "localhost" or hostname in {each.lower() for each in names}:
        return True
    try:
        ip_address(hostname)
    except ValueError:
        return False
    return True


def _hostname(host: str) -> str | None:
    try:
        parts = urlsplit(f"//{host}")
        _ = parts.port
    except ValueError:
        return None
    if parts.path or parts.query or parts.fragment or "@" in host:
        return None
    return parts.hostname


def is_own_origin(request: web.Request) -> bool:
    """Whether a request comes from a page of this server."""
    origin = request.headers.get("Origin", "")
    try:
        parts = urlsplit(origin)
    except ValueError:
        return False
    return parts.scheme in ("http", "https") and parts.netloc.lower() == request.host.lower()


def is_of_another_page(request: web.Request) -> bool:
    """Whether a page of another origin asks for data.

    Browsers send cookies to every port of a host, also for a page at another port.
    """
    return request.path.startswith("/api/") and request.headers.get("Sec-Fetch-Site", "none") not in _OWN


def matches(given: str, expected: str) -> bool:
    return secrets.compare_digest(given.encode("utf-8", "replace"), expected.encode())


def gate(names: Iterable[str]) -> Middleware:
    """The middleware: checks Host and Origin, and sets the headers of every answer."""
    known = tuple(names)

    @web.middleware
    async def checked(request: web.Request, handler: Handler) -> web.StreamResponse:
        if not is_known_host(request.headers.get("Host", ""), known):
            return web.json_response(
                {"error": f"this server is not called {request.host!r}; start it with --host"}, status=421
            )
        if request.method not in _SAFE and not is_own_origin(request):
            return web.json_response({"error": "changes come from pages of this server alone"}, status=403)
        if is_of_another_page(request):
            return web.json_response({"error": "data is for pages of this server alone"}, status=403)
        return await handler(request)

    return checked


async def forbid(request: web.Request, response: web.StreamResponse) -> None:
    """Set the headers of every answer; a signal of the application, so that streams have them too."""
    _forbid(response)


def _forbid(response: web.StreamResponse) -> None:
    for name, value in HEADERS.items():
        response.headers.setdefault(name, value)
    response.headers.setdefault("Cache-Control", "no-store")


class Connection(web.RequestHandler):
    """One connection: what is not HTTP is refused with the headers of every answer, and is no error in the log."""

    __slots__ = ()

    def __init__(self, manager: web.Server, loop: asyncio.AbstractEventLoop) -> None:
        silent: dict[str, Any] = {"access_log": None}
        super().__init__(manager, loop=loop, **silent)

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        if status >= FAILED:
            _log.error("answer failed", exc_info=exc)
        else:
            _log.debug("not HTTP", extra={"fields": {"remote": request.remote, "problem": type(exc).__name__}})
        if request.writer.output_size > 0:
            raise ConnectionError("the answer has already begun")
        error = "the dashboard failed; its log says where" if status >= FAILED else NOT_HTTP
        answer = web.json_response({"error": error}, status=status)
        _forbid(answer)
        answer.force_close()
        return answer

    def log_exception(self, *args: Any, **kw: Any) -> None:
        # aiohttp reads the rest of a body after the answer, and fails there again where it is not HTTP.
        if not isinstance(kw.get("exc_info"), NOT_HTTP_ERRORS):
            super().log_exception(*args, **kw)


class Places:
    """A bounded number of requests that are answered at once: so many in all, and so many for each viewer."""

    def __init__(self, *, most: int, each: int) -> None:
        self._most = most
        self._each = each
        self._taken: Counter[str] = Counter()

    def take(self, viewer: str) -> bool:
        """Take a place for a viewer, to be given back; False where none is free."""
        if self._taken[viewer] >= self._each or self._taken.total() >= self._most:
            return False
        self._taken[viewer] += 1
        return True

    def give_back(self, viewer: str) -> None:
        self._taken[viewer] -= 1
        self._taken += Counter()  # drops those without any
