"""Outcomes: how a reconcile ends, and when the next one is due.

A reconcile that succeeds returns an `Outcome`: `Done` or `Again`.  One that
fails raises, and the type says whether trying again can help:

    Failure
    ├── Retry      the cause may go away by itself: back off, report it, try again
    └── Permanent  it will not: report what to change, and wait for that change

The runtime turns these values into queue entries, log lines and Events; this
module must not know them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

_SHORTEST = timedelta(milliseconds=100)


@dataclass(frozen=True, slots=True)
class Done:
    """Nothing to do until something changes."""


@dataclass(frozen=True, slots=True)
class Again:
    """Reconcile again after a while, because no watch event will announce what is waited for."""

    after: timedelta
    because: str

    def __post_init__(self) -> None:
        if self.after <= timedelta(0):
            raise ValueError(
                f"Again(after={self.after}) is due already and would spin; act now, or use until() for a deadline"
            )
        if not self.because:
            raise ValueError("Again needs a sentence in `because`: every wait names what it waits for")


Outcome = Done | Again


def until(deadline: datetime, *, now: datetime, because: str) -> Again:
    """`Again` at a deadline.

    One that is due by a hair (status keeps whole seconds, clocks do not) comes
    a moment later instead of at once, so a rounding error cannot spin.
    """
    return Again(max(deadline - now, _SHORTEST), because)


def soonest(outcomes: Iterable[Outcome]) -> Outcome:
    """Several outcomes as one: the earliest `Again`, the first named among equals; `Done` if none waits."""
    waits = [outcome for outcome in outcomes if isinstance(outcome, Again)]
    return min(waits, key=lambda wait: wait.after, default=Done())


class Failure(Exception):
    """A reconcile failed: a code for machines and a message for people.

    Raise one of its two kinds; catch this one to handle both.
    """

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(f"{reason}: {message}")
        self.reason = reason
        self.message = message


class Retry(Failure):
    """Transient: trying again may help.  `after` overrides the usual backoff, as a Retry-After header does."""

    def __init__(self, reason: str, message: str, *, after: timedelta | None = None) -> None:
        if after is not None and after < timedelta(0):
            raise ValueError(f"Retry(after={after}) lies in the past; leave it out for the usual backoff")
        super().__init__(reason, message)
        self.after = after


class Permanent(Failure):
    """Trying again cannot help; `message` says what the user has to change."""
