"""The timeline of a page: the replicas of a rollout over time."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

import msgspec

from holdfast.meta import times
from holdfast.views.pages.sections import Section
from holdfast.views.rollouts import Standing


class Sample(msgspec.Struct, frozen=True, array_like=True):
    """How many replicas were ready, updated and desired from a moment on, and the floor."""

    at: str
    ready: int
    updated: int
    desired: int
    floor: int


class Timeline(Section, frozen=True, kw_only=True):
    """The rollout over time.

    lowest   the fewest ready replicas since the rollout began; None: not counted
    samples  the numbers, whenever one of them changed while the object was watched
    """

    started: str | None = None
    ended: str | None = None
    expected: str | None = None
    due: str | None = None
    until: str | None = None
    lowest: int | None = None
    samples: tuple[Sample, ...] = ()


def timeline(standing: Standing | None, samples: Iterable[Sample]) -> Timeline:
    if standing is None:
        return Timeline(samples=tuple(samples))
    lowest = [each.lowest for each in standing.floors if each.lowest is not None]
    return Timeline(
        started=_written(standing.started),
        ended=_written(standing.ended),
        expected=_written(standing.expected),
        due=_written(standing.due),
        until=_written(standing.until),
        lowest=min(lowest, default=None),
        samples=tuple(samples),
    )


def _written(moment: datetime | None) -> str | None:
    return None if moment is None else times.format(moment)
