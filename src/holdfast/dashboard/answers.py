"""Requests and answers of the dashboard: JSON is read and written here, and every failure becomes an answer.

This module must not know what requests mean.
"""

from __future__ import annotations

import logging
from typing import Any, Final, TypeVar

import msgspec
from aiohttp import web

from holdfast.client.protocols import Unreachable
from holdfast.client.resources import Resource
from holdfast.dashboard import gate
from holdfast.meta.errors import NotFound, StatusError, Unauthorized
from holdfast.meta.objects import Key

_log: Final = logging.getLogger("holdfast.dashboard")

RETRY_SECONDS: Final = 1
"""After how many seconds a viewer may try again for whom there is no place."""

FAILURES: Final = (StatusError, Unreachable)
"""What an API server, or the way to it, may answer instead."""

T = TypeVar("T")


class Problem(Exception):
    """A request that is not answered: the status, what is wrong, what to do, and after how many seconds."""

    def __init__(self, status: int, message: str, hint: str = "", *, retry: int = 0) -> None:
        super().__init__(message)
        self.status = status
        self.retry = retry
        self.message = message
        self.hint = hint


def problem_of(error: StatusError | Unreachable | Problem) -> Problem:
    """A failure as viewers see it."""
    match error:
        case Problem():
            return error
        case NotFound():
            return Problem(404, error.message, "it may have been deleted")
        case Unauthorized():
            return Problem(401, f"the API server does not accept the identity: {error.message}")
        case StatusError():
            return Problem(error.code, f"the API server refuses: {error.message}")
        case Unreachable():
            return Problem(503, f"the API server does not answer: {error}", "it is asked again")


async def read(request: web.Request, type: type[T]) -> T:
    """The body of a request; raises `Problem` where it is not of that type."""
    try:
        return msgspec.json.decode(await request.read(), type=type)
    except gate.NOT_HTTP_ERRORS as error:
        _log.debug("not HTTP", extra={"fields": {"remote": request.remote, "problem": error.__class__.__name__}})
        raise Problem(400, gate.NOT_HTTP) from None
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise Problem(400, f"the request cannot be read: {error}") from None


def key_of(resource: Resource, namespace: str, name: str) -> Key:
    """The key of an object; what is no name would be another path of the API server."""
    return Key(checked("namespace", namespace) if resource.namespaced else "", checked("name", name))


def checked(what: str, text: str) -> str:
    """A name, if it can be one of an object; `what` says of what it is the name."""
    if not text or text in (".", "..") or not text.isprintable() or set(text) & set("/%"):
        raise Problem(400, f"{text!r} is no {what} of an object")
    return text


def json_answer(value: Any, *, status: int = 200) -> web.Response:
    return web.Response(body=msgspec.json.encode(value), content_type="application/json", status=status)


@web.middleware
async def answered(request: web.Request, handler: gate.Handler) -> web.StreamResponse:
    """The middleware: every failure is an answer in JSON."""
    try:
        return await handler(request)
    except (*FAILURES, Problem) as error:
        problem = problem_of(error)
        answer = json_answer({"error": problem.message, "hint": problem.hint}, status=problem.status)
        if problem.retry:
            answer.headers["Retry-After"] = str(problem.retry)
        return answer
    except web.HTTPException as error:
        return json_answer({"error": error.reason}, status=error.status)
    except Exception:
        _log.exception("request failed", extra={"fields": {"path": request.path}})
        return json_answer({"error": "the dashboard failed; its log says where"}, status=500)
