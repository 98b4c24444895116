"""When a controller looks again at what a provider does, and when it tries again.  Pure."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from holdfast.kernel.backoff import Backoff
from holdfast.providers.contract import TaskState

LOOK: Final = timedelta(seconds=5)
"""When a controller looks again where the provider does not say when, and how often progress is recorded at most."""

SOON: Final = timedelta(seconds=0.1)
"""When a controller goes on after it has recorded something, and the shortest wait between two looks."""

BACKOFF: Final = Backoff(base=timedelta(seconds=1), cap=timedelta(minutes=5), jitter=0)
"""The wait after an operation failed so many times in a row."""


def as_said(again_after: float | None, *, otherwise: timedelta = LOOK) -> timedelta:
    """The wait that a provider asks for, in seconds, or else `otherwise`."""
    return max(timedelta(seconds=again_after), SOON) if again_after else otherwise


def recording(began: datetime, now: datetime) -> timedelta:
    """How often the progress of a task is recorded: the longer it takes, the less often."""
    return max(LOOK, (now - began) / 10)


def next_look(state: TaskState, began: datetime, now: datetime) -> timedelta:
    """The wait until the next look at a task: as the provider says, or earlier if there is progress to record."""
    after = as_said(state.again_after)
    has_progress = state.percentage is not None or state.done_bytes is not None
    return min(after, recording(began, now)) if has_progress else after
