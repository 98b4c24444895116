"""Retries: which failed request is sent again, and after how long.

Pure: an error, the number of the attempt and a random spread go in, seconds or None
come out.  Reads are sent again after any failure that may pass.  A write is sent again
only if it surely did nothing: it was never sent, or the server refused it before
looking at it and said when to come back.  Whether any other write was done is unknown,
and the caller must read the object again.  This module must not know how requests
travel.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from email.utils import parsedate_to_datetime
from typing import Final

from holdfast.client.protocols import Unreachable, Unsent, Untrusted
from holdfast.meta.errors import StatusError

READS: Final = frozenset({"GET", "HEAD", "OPTIONS"})

_TURNED_AWAY: Final = frozenset({429, 503})
"""Answers that, with a time to come back, mean that the request was not looked at."""

_PASSING: Final = frozenset({408, 429, 502, 503, 504})
"""Answers after which a read may succeed a moment later.  Not 500: that is a defect, and likely to stay."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """How patient a client is: at most `attempts`, waiting from `base` seconds, doubled, up to `cap`.

    A server that asks for more than `longest` seconds is not asked again: the caller gets the error, which says how
    long to wait.
    """

    attempts: int = 5
    base: float = 0.1
    cap: float = 5.0
    longest: float = 30.0


def wait(error: StatusError | Unreachable, attempt: int, *, method: str, policy: Policy, spread: float) -> float | None:
    """Seconds until the request is sent again after its `attempt`-th failure; None if it must not be.

    `spread` in [0, 1) keeps clients that failed together from coming back together.
    """
    if attempt >= policy.attempts or not _is_safe(error, reading=method in READS):
        return None
    asked = error.retry_after_seconds if isinstance(error, StatusError) else 0
    if asked > policy.longest:
        return None
    # What the server asks for is a lower bound, so its spread only lengthens; that of a guess shortens to a half.
    grown = min(policy.base * 2.0 ** (attempt - 1), policy.cap)
    return asked + grown * spread if asked else grown * (1 - spread / 2)


def _is_safe(error: StatusError | Unreachable, *, reading: bool) -> bool:
    if isinstance(error, Unreachable):
        return (reading or isinstance(error, Unsent)) and not isinstance(error, Untrusted)
    if error.causes:
        return False  # a decision, such as a disruption budget's, and not a matter of load
    if reading:
        return error.code in _PASSING or error.retry_after_seconds > 0
    return error.code in _TURNED_AWAY and error.retry_after_seconds > 0


def retry_after(headers: Mapping[str, str]) -> int:
    """What ``Retry-After`` asks for, in whole seconds and at least one; 0 if it asks for nothing that can be read.

    A date is measured from the answer's own ``Date``: the server's clock, whatever ours says.
    """
    lowered = {name.lower(): value.strip() for name, value in headers.items()}
    asked = lowered.get("retry-after", "")
    if asked.isascii() and asked.isdigit():
        return max(1, int(asked))
    until, since = _date(asked), _date(lowered.get("date", ""))
    if until is None or since is None:
        return 0
    return max(1, math.ceil((until - since).total_seconds()))


def _date(text: str) -> datetime | None:
    try:
        date = parsedate_to_datetime(text)
    except ValueError:
        return None
    return date if date.tzinfo else None
