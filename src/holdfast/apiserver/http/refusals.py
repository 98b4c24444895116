"""Errors as responses, and the error for an object that cannot be decoded."""

from __future__ import annotations

from holdfast.meta.errors import BadRequest, StatusError
from holdfast.meta.exchange import Response


class Undecodable(BadRequest):
    """An object that cannot be decoded as its kind; `why` is the reason alone."""

    def __init__(self, kind: str, version: str, *, why: str, given: str = "") -> None:
        super().__init__(f'{given or kind} in version "{version}" cannot be handled as a {kind}: {why}')
        self.why = why


def refusal(error: StatusError) -> Response:
    """The Status of an error as a response, with Retry-After if the error has it."""
    response = Response.of(error.to_status(), status=error.code)
    if error.retry_after_seconds:
        response.headers["Retry-After"] = str(error.retry_after_seconds)
    return response
