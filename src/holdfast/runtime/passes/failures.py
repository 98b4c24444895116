"""Failures: what a pass does about an answer of the API, in one table.

    Failure (kernel.outcomes)
    ├── Retry
    │   ├── Stale    the API is ahead of what we saw: nothing is wrong, look again
    │   └── Away     no answer came from the API
    └── Permanent
        └── Refused  the API refuses the request as it is

What is not in the table is a defect and is handled as one.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import timedelta
from typing import Final

from holdfast.client.protocols import Unreachable, Unsent
from holdfast.kernel.outcomes import Failure, Permanent, Retry
from holdfast.meta.errors import (
    AlreadyExists,
    BadRequest,
    Conflict,
    Forbidden,
    Invalid,
    MethodNotAllowed,
    NotAcceptable,
    NotFound,
    RequestEntityTooLarge,
    StatusError,
    UnsupportedMediaType,
)


class Stale(Retry):
    """A decision was made on an old view of the world, and the API said so."""


class Away(Retry):
    """No answer came: nothing is wrong with the request, and all other requests fail in the same way."""


class Refused(Permanent):
    """The API refuses the request as it is.

    What refuses it may change without any object of ours: a definition, a policy, a webhook.  So it is tried again, but
    seldom.
    """


_STALE: Final = (Conflict, AlreadyExists, NotFound)
"""The object has changed since the view was read."""

_GOING: Final = "NamespaceTerminating"
"""The cause of a refusal in a namespace that is being deleted: our object is about to go as well."""

_PERMANENT: Final = (
    Invalid,
    BadRequest,
    MethodNotAllowed,
    NotAcceptable,
    UnsupportedMediaType,
    RequestEntityTooLarge,
)
"""The same request will most likely be refused again; all other refusals (permissions, quotas, a busy server) end."""


_REQUEST_TIMEOUT: Final = 408


def failure_of(error: StatusError | Unreachable, doing: str) -> Failure:
    """What a pass makes of an API's answer to what it was doing."""
    message = f"{doing}: {_without_generated_name(str(error), doing)}"
    match error:
        case Unreachable():
            return Away("Unreachable", message)
        case _ if isinstance(error, _STALE):
            return Stale(error.reason, message)
        case Forbidden() if any(cause.reason == _GOING for cause in error.causes):
            return Stale(_GOING, message)
        case _ if isinstance(error, _PERMANENT):
            return Refused(error.reason, message)
        case _:
            seconds = error.retry_after_seconds
            return Retry(error.reason or "Refused", message, after=timedelta(seconds=seconds) if seconds else None)


def _without_generated_name(message: str, doing: str) -> str:
    """The message without the name that the API generated for an object that it refused.

    The name is another one in every pass; with it, the status would change in every pass and cause the next one.
    """
    name = _TO_GENERATE.search(doing)
    return message if name is None else re.sub(f"{re.escape(name[1])}[a-z0-9]{{5}}(?![a-z0-9])", name[0], message)


_TO_GENERATE: Final = re.compile(r"([a-z0-9.-]+)…")
"""The name of an object whose name the API generates, as it is in messages."""

_SHOWN: Final = 5


def combined(failures: Sequence[Failure]) -> Failure:
    """Several failures as one, with what each says.  It is tried again if that may help one of them."""
    first, *others = failures
    if not others or isinstance(first, Away):
        return first
    real = [failure for failure in failures if not isinstance(failure, Stale)]
    if not real:
        return first
    messages = list(dict.fromkeys(failure.message for failure in real))
    more = f"; and {len(messages) - _SHOWN} more" if len(messages) > _SHOWN else ""
    message = "; ".join(messages[:_SHOWN]) + more
    retries = [failure for failure in failures if isinstance(failure, Retry)]
    if not retries:
        permanent = Refused if any(isinstance(each, Refused) for each in real) else Permanent
        return permanent(real[0].reason, message)
    return Retry(real[0].reason, message, after=min((each.after for each in retries if each.after), default=None))


def outcome_unknown(error: StatusError | Unreachable) -> bool:
    """Whether a write that failed so may have been done all the same.

    The reply of a server, or of a proxy before it, that fails on the way (5xx) says nothing about what was committed.
    """
    if isinstance(error, Unreachable):
        return not isinstance(error, Unsent)
    return error.code >= 500 or error.code == _REQUEST_TIMEOUT
