"""A rollout as a tree: its parts, their pods, and why a pod is not available.

Pure.  Pods become leaves; the `view` module of each operator puts them on branches, and
`rollout_screens` lays them out.  This module must not know who owns the pods, nor how
they are shown.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

import msgspec

from holdfast.kernel import pod_problems
from holdfast.kernel.fleet import State
from holdfast.kernel.pod_problems import PodMetadata, PodReason, PodSpec, ReportedPod
from holdfast.meta import durations, times
from holdfast.views.fleets import ORDER, WORDS, Row
from holdfast.views.rollouts import Standing

# --- what is read of a pod


class _Metadata(PodMetadata, frozen=True):
    labels: dict[str, str] = {}
    creation_timestamp: str | None = None


class _Image(msgspec.Struct, frozen=True):
    image: str = ""


class _Spec(PodSpec, frozen=True):
    containers: tuple[_Image, ...] = ()


class Pod(ReportedPod, frozen=True):
    """The fields of a pod that a tree shows."""

    metadata: _Metadata = _Metadata()
    spec: _Spec = _Spec()

    @property
    def ready_since(self) -> datetime | None:
        ready = self.condition("Ready")
        if ready is None or ready.status != "True" or not ready.last_transition_time:
            return None
        return times.parse(ready.last_transition_time)

    @property
    def restarts(self) -> int:
        return sum(each.restart_count for each in self.status.container_statuses)

    @property
    def images(self) -> tuple[str, ...]:
        return tuple(each.image for each in self.spec.containers)

    def state(self, *, min_ready: timedelta, now: datetime) -> State:
        if self.metadata.deletion_timestamp is not None:
            return State.TERMINATING
        if self.status.phase in ("Succeeded", "Failed"):
            return State.DEAD
        since = self.ready_since
        if since is None:
            return State.UNREADY
        # As the operators count: without minReadySeconds, the clock of the node is not compared with ours.
        return State.AVAILABLE if not min_ready or now >= since + min_ready else State.SETTLING


# --- the tree

OLD: Final = 0
NEW: Final = 1
OTHER: Final = 2
"""What was there before, what is rolled out, and what came between; shapes and colours follow it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Leaf:
    """A pod, of a revision that is old or new; `why` is empty where it is as it should be."""

    name: str
    index: int
    state: State
    ready: str
    node: str
    age: timedelta
    restarts: int
    why: str

    @property
    def glyph(self) -> str:
        """How it looks."""
        return Row("", self.index, False, ((self.state, 1),)).text


@dataclass(frozen=True, slots=True, kw_only=True)
class Branch:
    """A part of a rollout, and what it is made of.

    index   whether it is old or new, as a whole
    number  which it is in the history, if there is one
    marks   words that matter of it
    note    what else there is to say of it
    images  what it runs; from one to the other, where it is changed
    prefix  what the names of its pods begin with, which narrow screens leave out
    why     what it does, or waits for
    urgent  it is shown in full before others are
    """

    name: str
    index: int
    number: str = ""
    marks: tuple[str, ...] = ()
    note: str = ""
    images: tuple[str, ...] = ()
    prefix: str = ""
    why: str = ""
    urgent: bool = False
    children: tuple[Branch | Leaf, ...] = ()

    @property
    def leaves(self) -> tuple[Leaf, ...]:
        """All pods of it."""
        return tuple(leaf for each in self.children for leaf in (each.leaves if isinstance(each, Branch) else (each,)))

    def rows(self, *, scale: int = 1) -> tuple[Row, ...]:
        """Its pods as cells, a row for each of new, between and old."""
        counts = Counter((leaf.index, leaf.state) for leaf in self.leaves)
        rows = (
            Row(
                self.name,
                index,
                index == NEW,
                tuple((state, n) for state in ORDER if (n := counts[index, state])),
                scale,
            )
            for index in (NEW, OTHER, OLD)
        )
        return tuple(row for row in rows if row.counts)

    @property
    def words(self) -> str:
        """``4 of 5 available, 1 terminating``."""
        counts = Counter(leaf.state for leaf in self.leaves)
        gone = [f"{counts[state]:,} {WORDS[state]}" for state in (State.DEAD, State.TERMINATING) if counts[state]]
        live = counts.total() - counts[State.DEAD] - counts[State.TERMINATING]
        here = [f"{counts[State.AVAILABLE]:,} of {live:,} available"] if live else []
        return ", ".join([*here, *gone]) or "none"


@dataclass(frozen=True, slots=True, kw_only=True)
class Tree:
    """A rollout at a moment.

    images  from what to what it changes
    size    how many pods there should be
    """

    standing: Standing
    branches: tuple[Branch, ...]
    now: datetime
    images: tuple[str, ...] = ()
    size: int

    @property
    def updated(self) -> int:
        """How many pods of the new revision are available."""
        leaves = (leaf for branch in self.branches for leaf in branch.leaves)
        return sum(leaf.index == NEW and leaf.state is State.AVAILABLE for leaf in leaves)


_URGENCY: Final = (State.DEAD, State.UNREADY, State.SETTLING, State.TERMINATING, State.AVAILABLE)


def leaves(
    pods: Iterable[Pod], *, index: Callable[[Pod], int], now: datetime, min_ready: timedelta = timedelta()
) -> tuple[Leaf, ...]:
    """The pods, those first that need to be looked at."""
    made = [leaf(pod, index=index(pod), min_ready=min_ready, now=now) for pod in pods]
    return tuple(sorted(made, key=lambda each: (_URGENCY.index(each.state), -each.restarts, -each.age, each.name)))


def leaf(pod: Pod, *, index: int = NEW, min_ready: timedelta, now: datetime) -> Leaf:
    """A pod, and why it is not further."""
    state = pod.state(min_ready=min_ready, now=now)
    containers = pod.status.container_statuses
    return Leaf(
        name=pod.metadata.name,
        index=index,
        state=state,
        ready=f"{sum(each.ready for each in containers)}/{len(containers) or 1}",
        node=pod.spec.node_name,
        age=_since(pod.metadata.creation_timestamp, now),
        restarts=pod.restarts,
        why=_why(pod, state, min_ready=min_ready, now=now),
    )


# --- why a replica is not further


def _why(pod: Pod, state: State, *, min_ready: timedelta, now: datetime) -> str:
    match state:
        case State.TERMINATING:
            return _going(pod, now)
        case State.SETTLING:
            since = min(pod.ready_since or now, now)  # the clock of a node may be ahead
            return f"ready {brief(now - since)}, available in {brief(since + min_ready - now)}"
        case State.UNREADY | State.DEAD:
            return _problem(pod)
        case State.AVAILABLE:
            return _scar(pod, now)


def _going(pod: Pod, now: datetime) -> str:
    # The time that the API server writes is when the grace is over, not when the deletion was asked for.
    late = _since(pod.metadata.deletion_timestamp, now)
    return (
        f"terminating, {brief(late)} past its grace" if late > _TARDY else f"terminating, {brief(-late)} of grace left"
    )


def _problem(pod: Pod) -> str:
    """What keeps it from being ready."""
    found = pod_problems.problem(pod)
    if found is None:
        return "ended"
    message = found.message
    if len(pod.status.container_statuses) == 1:
        # The only container needs no name in a row that is short.
        message = message.removeprefix(f"container {pod.status.container_statuses[0].name}").lstrip(": ")
    # A probe that has not succeeded yet is usual soon after the start.
    usual = found.passes or found.reason is PodReason.PROBE_FAILING
    return message if usual else f"{found.reason}: {message}"


_TARDY: Final = timedelta(seconds=2)
"""By how much clocks and nodes may be late before it is worth telling."""

_FRESH: Final = timedelta(minutes=10)
"""How long a restart is worth telling of a replica that is well again."""


def _scar(pod: Pod, now: datetime) -> str:
    """What a replica that is available has gone through lately."""
    for each in pod.status.container_statuses:
        last = each.last_state.terminated
        if last is not None and last.finished_at and _since(last.finished_at, now) < _FRESH:
            ago = brief(_since(last.finished_at, now))
            return f"restarted {ago} ago ({last.reason or 'ended'}, exit code {last.exit_code})"
    return ""


def brief(span: timedelta) -> str:
    """A span of time in so many figures as are read at a glance: ``12s``, ``3m5s``, ``2h10m``, ``5d``."""
    seconds = max(int(span.total_seconds()), 0)
    if seconds >= 2 * _DAY:
        return f"{seconds // _DAY}d"
    return durations.short(timedelta(seconds=seconds - seconds % 60 if seconds >= _HOUR else seconds))


_HOUR: Final = 3_600
_DAY: Final = 24 * _HOUR


def _since(moment: str | None, now: datetime) -> timedelta:
    return now - times.parse(moment) if moment else timedelta()
