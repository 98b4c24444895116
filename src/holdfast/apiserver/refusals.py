"""A refusal as a response."""

from __future__ import annotations

from holdfast.apiserver.exchange import Response
from holdfast.meta.errors import StatusError


def refusal(error: StatusError) -> Response:
    """The Status of an error, with the time to wait where there is one."""
    response = Response.of(error.to_status(), status=error.code)
    if error.retry_after_seconds:
        response.headers["Retry-After"] = str(error.retry_after_seconds)
    return response
