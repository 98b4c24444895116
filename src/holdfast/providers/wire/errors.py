"""Errors of the contract as gRPC status codes, and back."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Final

import grpc

from holdfast.providers.contract import Code, ProviderError

CODE_KEY: Final = "holdfast-code"
"""The trailing metadata that names the contract's code; who sends it is alive, whatever the code."""

STATUS: Final[dict[Code, Any]] = {
    Code.NOT_FOUND: grpc.StatusCode.NOT_FOUND,
    Code.INVALID: grpc.StatusCode.INVALID_ARGUMENT,
    Code.RETRYABLE: grpc.StatusCode.UNAVAILABLE,
    Code.UNAUTHORIZED: grpc.StatusCode.UNAUTHENTICATED,
    Code.QUOTA: grpc.StatusCode.RESOURCE_EXHAUSTED,
    Code.CONFLICT: grpc.StatusCode.FAILED_PRECONDITION,
    Code.UNSUPPORTED: grpc.StatusCode.UNIMPLEMENTED,
    Code.INTERNAL: grpc.StatusCode.INTERNAL,
}

CODES: Final[dict[Any, Code]] = {
    **{status: code for code, status in STATUS.items()},
    grpc.StatusCode.OUT_OF_RANGE: Code.INVALID,
    grpc.StatusCode.DEADLINE_EXCEEDED: Code.RETRYABLE,
    grpc.StatusCode.ABORTED: Code.RETRYABLE,
    grpc.StatusCode.CANCELLED: Code.RETRYABLE,
    grpc.StatusCode.PERMISSION_DENIED: Code.UNAUTHORIZED,
    grpc.StatusCode.ALREADY_EXISTS: Code.CONFLICT,
}
"""Every status that has a code of its own; the others are internal errors."""

_USER_INFO: Final = re.compile(r"(?<=://)[^/@\s]+@")
HIDDEN: Final = "***"


def redacted(message: str, secrets: Iterable[str] = ()) -> str:
    """A message without secrets: without their values, and without names and passwords in URLs."""
    for secret in sorted((one for one in secrets if len(one) >= 4), key=len, reverse=True):
        message = message.replace(secret, HIDDEN)
    return _USER_INFO.sub(f"{HIDDEN}@", message)[:2000]


def from_status(error: Any, call: str, secrets: Iterable[str] = ()) -> ProviderError:
    """What a failed call means."""
    status = error.code()
    named = dict(error.trailing_metadata() or ()).get(CODE_KEY, "")
    code = Code(named) if named in set(Code) else CODES.get(status, Code.INTERNAL)
    words = redacted(error.details() or "", secrets)
    if code is Code.UNSUPPORTED and not named:
        words = f"the provider does not know the call {call}"
    elif not words:
        words = f"{call} failed with {status.name}"
    return ProviderError(code, words)


def of_connection(error: Any) -> bool:
    """Whether a failure says that the provider cannot be reached, rather than that it refused."""
    answered = CODE_KEY in dict(error.trailing_metadata() or ())
    return not answered and error.code() in (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED)
