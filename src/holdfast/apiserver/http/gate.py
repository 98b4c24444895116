"""The gate before the verbs: authenticates, impersonates, authorizes, waits for a seat; counts and logs the response.

The body of a request is read once its user may send it, and while few others are in memory.  `guarded` wraps a handler
so that untrusted clients can call it.  It does not know what a request does.
"""

from __future__ import annotations

import logging
import random
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from datetime import datetime
from time import perf_counter
from typing import Any, Final

from msgspec.structs import replace

from holdfast.apiserver.auth.authentication import MASTERS, Authenticator, impersonation, is_open
from holdfast.apiserver.auth.rbac import Authorizer
from holdfast.apiserver.http.fairness import Limits
from holdfast.apiserver.http.metrics import CONTENT_TYPE, Metrics
from holdfast.apiserver.http.refusals import refusal
from holdfast.apiserver.routes import RequestInfo, parse
from holdfast.apiserver.storage.store import Full, WriteFailed
from holdfast.apiserver.workers import OfRequest
from holdfast.meta import uids
from holdfast.meta.errors import InsufficientStorage, InternalError, StatusError
from holdfast.meta.exchange import Request, Response, User

Handle = Callable[[Request], Awaitable[Response]]

Answer = Callable[[Request, RequestInfo], Awaitable[Response]]
"""Answers an authorized request, of which the gate has parsed what it is about."""

PEER: Final = ":peer"
"""The pseudo header with the client certificate of the connection; no client can send a header name with a colon."""

AUDIT_ID: Final = "Audit-Id"
_AUDIT_ID: Final = re.compile(r"[\x21-\x7e]{1,64}")

access_log: Final = logging.getLogger("holdfast.apiserver.http.gate")
_log: Final = logging.getLogger("holdfast.apiserver")


def guarded(
    answer: Answer,
    authenticator: Authenticator,
    *,
    authorizer: Authorizer,
    limits: Limits,
    metrics: Metrics,
    now: Callable[[], datetime],
) -> Handle:
    """`answer` behind the gate.  It gets the authenticated user, and its errors become responses."""
    gate = _Gate(answer, authenticator, authorizer=authorizer, limits=limits, metrics=metrics, now=now)
    return gate.answer


class _Gate:
    def __init__(
        self,
        answer: Answer,
        authenticator: Authenticator,
        *,
        authorizer: Authorizer,
        limits: Limits,
        metrics: Metrics,
        now: Callable[[], datetime],
    ) -> None:
        self._behind = answer
        self._authenticator = authenticator
        self._authorizer = authorizer
        self._limits = limits
        self._metrics = metrics
        self._now = now

    async def answer(self, request: Request) -> Response:
        with OfRequest():
            return await self._answer(request)

    async def _answer(self, request: Request) -> Response:
        started = perf_counter()
        info = parse(request.method, request.path, request.query)
        audit_id = _audit_id(request)
        try:
            request = replace(request, user=self._user(request))
            response = await self._allowed(request, info)
        except StatusError as error:
            response = refusal(error)
        except WriteFailed as error:
            # The store logs why; its reasons name files, which are not for every client.
            response = refusal(_unwritten(error))
        except Exception:
            # The one place that catches a defect: its client gets a 500, and other requests are not affected.
            _log.exception("request failed", extra={"fields": {"audit_id": audit_id, "path": request.path}})
            response = refusal(InternalError.of("an unexpected error; the server's log has it under this Audit-Id"))
        response.headers.setdefault(AUDIT_ID, audit_id)
        seconds = perf_counter() - started
        self._metrics.answered(info, response.status, seconds=None if response.stream else seconds)
        if access_log.isEnabledFor(logging.INFO):
            access_log.info("request", extra={"fields": _fields(request, info, response, seconds)})
        return response

    def _user(self, request: Request) -> User:
        """The user of a request, or the user that it impersonates."""
        user = self._authenticator.user(request, self._now())
        wanted = impersonation(request.headers)
        if wanted is None:
            return user
        for need in wanted.needs:
            self._authorizer.check(user, need)
        return wanted.user

    async def _allowed(self, request: Request, info: RequestInfo) -> Response:
        if is_open(info.path) and request.method in ("GET", "HEAD"):
            return await self._behind(request, info)  # health checks do not wait for a seat
        self._authorizer.check(request.user, info)
        if info.path == "/metrics" and request.method == "GET":
            return Response(200, self._metrics.render(), content_type=CONTENT_TYPE)
        if request.receive is None:
            return await self._answered(request, info)
        admin = MASTERS in request.user.groups
        async with self._limits.body(request.user.name, size=_announced_size(request), admin=admin):
            return await self._answered(await request.received(), info)

    async def _answered(self, request: Request, info: RequestInfo) -> Response:
        return await (self._watched(request, info) if info.verb == "watch" else self._seated(request, info))

    async def _watched(self, request: Request, info: RequestInfo) -> Response:
        name = request.user.name
        self._limits.begin_watch(name)
        try:
            response = await self._seated(request, info)
        except BaseException:
            self._limits.end_watch(name)
            raise
        if response.stream is None:
            self._limits.end_watch(name)
        else:
            response.stream = Following(response.stream, lambda: self._limits.end_watch(name))
        return response

    async def _seated(self, request: Request, info: RequestInfo) -> Response:
        """The response; a stream gives its seat back once it has started."""
        async with self._limits.seat(request.user.name, admin=MASTERS in request.user.groups):
            return await self._behind(request, info)


class Following(AsyncIterator[bytes]):
    """A stream that calls back when it is over, whether it was read to its end, closed, or never begun.

    Not a generator, because one that was never started does not run its ``finally``.
    """

    def __init__(self, stream: AsyncIterator[bytes], over: Callable[[], None]) -> None:
        self._stream = stream
        self._over: Callable[[], None] | None = over

    async def __anext__(self) -> bytes:
        try:
            return await anext(self._stream)
        except BaseException:
            self._end()
            raise

    async def aclose(self) -> None:
        try:
            await close(self._stream)
        finally:
            self._end()

    def _end(self) -> None:
        over, self._over = self._over, None
        if over is not None:
            over()


async def close(stream: AsyncIterator[bytes]) -> None:
    """Close a stream, where its kind can be closed."""
    aclose = getattr(stream, "aclose", None)
    if aclose is not None:
        await aclose()


def _announced_size(request: Request) -> int | None:
    """The length that the headers announce for the body; None if they do not."""
    given = request.headers.get("content-length", "")
    return int(given) if given.isdecimal() and len(given) < 20 else None


def _audit_id(request: Request) -> str:
    """The request id that the client sent, or a new one."""
    given = request.headers.get("audit-id", "")
    return given if given and _AUDIT_ID.fullmatch(given) else uids.from_bits(random.getrandbits(128))


def _fields(request: Request, info: RequestInfo, response: Response, seconds: float) -> Mapping[str, Any]:
    """The log line of a request: no header except User-Agent, and no body."""
    return {
        "audit_id": response.headers[AUDIT_ID],
        "peer": request.headers.get(PEER, ""),
        "user": request.user.name,
        "verb": info.verb,
        "method": request.method,
        "path": request.path,
        "agent": request.headers.get("user-agent", ""),
        "code": response.status,
        "bytes": len(response.body),
        "seconds": round(seconds, 6),
    }


def _unwritten(error: WriteFailed) -> StatusError:
    if isinstance(error, Full):
        return InsufficientStorage(
            "the disk of the server is full, and nothing was written; free space on it, or delete objects, "
            "which still works"
        )
    return InternalError.of("the server cannot write to its disk, and nothing was written; its log says why")
