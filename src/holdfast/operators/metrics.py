"""Rollouts as metrics: what an alert needs to know of every object that rolls out, in the terms of its view.

Computed when the metrics are read, from what `RolloutKind.standing` says; nothing is counted while operators work.
How many objects are shown is bounded; those in trouble come first, and the rest is a number of its own.  This module
must not know any kind.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from holdfast.client.objects import Object, Undecodable
from holdfast.operators.rollouts import Observed, RolloutKind
from holdfast.runtime.controllers import View
from holdfast.views.rollouts import RolloutState, Standing

MOST: Final = 1_000
"""Objects of one kind that have metrics of their own."""

_BUCKETS: Final = (1, 5, 10, 30, 60, 120, 300, 600, 1_200, 1_800, 3_600, 7_200, 21_600)

_OBJECT: Final = ("kind", "namespace", "name")

_TROUBLE: Final = (
    RolloutState.FAILED,
    RolloutState.BLOCKED,
    RolloutState.RETURNING,
    RolloutState.REJECTED,
    RolloutState.WAITING,
    RolloutState.UNDER_WAY,
    RolloutState.UNSEEN,
    RolloutState.COMPLETED,
)
"""The states, those first that a person should look at first."""

_STOPPED: Final = frozenset({RolloutState.FAILED, RolloutState.BLOCKED, RolloutState.WAITING, RolloutState.REJECTED})
"""The states whose reason is shown."""


@dataclass(slots=True)
class _Seen:
    """What was last seen of an object, to count what has changed since."""

    ended: datetime | None
    rejected: str
    below: bool
    failed: bool


class RolloutMetrics(Collector):
    """The metrics of all objects of some kinds.

    view   where the objects are, and what belongs to them
    """

    def __init__(self, kinds: Iterable[RolloutKind], view: View, now: Callable[[], datetime], most: int = MOST) -> None:
        self._kinds = tuple(kinds)
        self._view = view
        self._now = now
        self._most = most
        self._seen: dict[str, _Seen] = {}
        self._finished: Counter[tuple[str, str]] = Counter()
        self._breaches: Counter[str] = Counter()
        self._durations: dict[str, list[float]] = {}
        for kind in self._kinds:
            name = kind.resource.kind
            self._finished.update({(name, "completed"): 0, (name, "rejected"): 0, (name, "failed"): 0})
            self._breaches[name] = 0
            self._durations[name] = []

    def collect(self) -> Iterator[Metric]:
        now, left_out = (
            self._now(),
            GaugeMetricFamily(
                "holdfast_rollout_objects_omitted",
                "Objects without metrics of their own, for their number.",
                labels=["kind"],
            ),
        )
        shown: list[tuple[tuple[str, ...], Standing]] = []
        gone = set(self._seen)
        for kind in self._kinds:
            objects = self._view.list(kind.resource)
            gone -= {each.uid for each in objects}
            # An object that cannot be decoded has a condition that says so, and no standing.
            found = [(each, standing) for each in objects if (standing := self._standing(kind, each)) is not None]
            found.sort(key=lambda pair: _TROUBLE.index(pair[1].state))
            left_out.add_metric([kind.resource.kind], max(0, len(found) - self._most))
            shown += (((kind.resource.kind, *_place(each)), standing) for each, standing in found[: self._most])
        for uid in gone:
            del self._seen[uid]
        yield from _counts(shown)
        yield from _floors(shown)
        yield from _states(shown)
        yield from _times(shown, now)
        yield from _figures(shown)
        yield left_out
        yield from self._totals()

    def _standing(self, kind: RolloutKind, obj: Object) -> Standing | None:
        """The standing of an object; what has ended or broken since the last one is counted."""
        seen = self._seen.get(obj.uid)
        try:
            standing = kind.standing(Observed(obj, self._view))
        except Undecodable:
            return None
        below = any(floor.lowest is not None and floor.lowest < floor.floor for floor in standing.floors)
        name, failed = kind.resource.kind, standing.state is RolloutState.FAILED
        if seen is not None:
            if standing.ended is not None and standing.ended != seen.ended:
                self._finished[name, "completed"] += 1
                if standing.started is not None:
                    self._durations[name].append((standing.ended - standing.started).total_seconds())
            if standing.rejected and standing.rejected != seen.rejected:
                self._finished[name, "rejected"] += 1
            if failed and not seen.failed:
                self._finished[name, "failed"] += 1
        if below and (seen is None or not seen.below):
            self._breaches[name] += 1
        self._seen[obj.uid] = _Seen(standing.ended, standing.rejected, below, failed)
        return standing

    def _totals(self) -> Iterator[Metric]:
        finished = CounterMetricFamily(
            "holdfast_rollouts_finished", "Rollouts that ended, by how.", labels=["kind", "result"]
        )
        for (kind, result), count in sorted(self._finished.items()):
            finished.add_metric([kind, result], count)
        breaches = CounterMetricFamily(
            "holdfast_floor_breaches", "Objects that fell below a floor, whatever the cause.", labels=["kind"]
        )
        for kind, count in sorted(self._breaches.items()):
            breaches.add_metric([kind], count)
        durations = HistogramMetricFamily(
            "holdfast_rollout_duration_seconds", "Time from the start of a rollout to its end.", labels=["kind"]
        )
        for kind, seconds in sorted(self._durations.items()):
            buckets = [(str(float(bound)), float(sum(each <= bound for each in seconds))) for bound in _BUCKETS]
            durations.add_metric([kind], [*buckets, ("+Inf", float(len(seconds)))], sum_value=sum(seconds))
        yield from (finished, breaches, durations)


def _place(obj: Object) -> tuple[str, str]:
    return obj.key.namespace, obj.key.name


_Shown = Iterable[tuple[tuple[str, ...], Standing]]


def _family(name: str, help_text: str, *labels: str) -> GaugeMetricFamily:
    return GaugeMetricFamily(f"holdfast_rollout_{name}", help_text, labels=[*_OBJECT, *labels])


def _counts(shown: _Shown) -> Iterator[Metric]:
    read: Mapping[str, tuple[str, Callable[[Standing], int]]] = {
        "desired": ("Replicas that the spec asks for.", lambda it: it.desired),
        "ready": ("Replicas that are ready.", lambda it: it.ready),
        "available": ("Replicas that are available.", lambda it: it.available),
        "updated": ("Replicas of the newest revision.", lambda it: it.updated),
    }
    for name, (help_text, figure) in read.items():
        family = _family(name, help_text)
        for labels, standing in shown:
            family.add_metric(labels, figure(standing))
        yield family


def _floors(shown: _Shown) -> Iterator[Metric]:
    floor = _family("floor", "Replicas of a part that must stay ready.", "part")
    ready = _family("floor_ready", "Replicas of a part that are ready, of those that the floor counts.", "part")
    lowest = _family("lowest_ready", "The fewest replicas of a part that were ready since the rollout began.", "part")
    for labels, standing in shown:
        for each in standing.floors:
            floor.add_metric([*labels, each.name], each.floor)
            ready.add_metric([*labels, each.name], each.ready)
            if each.lowest is not None:
                lowest.add_metric([*labels, each.name], each.lowest)
    yield from (floor, ready, lowest)


def _states(shown: _Shown) -> Iterator[Metric]:
    state = _family("state", "1 for the state and the phase that the rollout has.", "state", "phase")
    reason = _family("stopped", "1 for the reason for which the rollout does not go on.", "state", "reason")
    for labels, standing in shown:
        state.add_metric([*labels, standing.state.value, standing.phase], 1)
        if standing.state in _STOPPED:
            reason.add_metric([*labels, standing.state.value, standing.because.code], 1)
    yield from (state, reason)


def _figures(shown: _Shown) -> Iterator[Metric]:
    family = _family("figure", "Figures of the kind's own, such as the bytes that a migration transfers.", "figure")
    for labels, standing in shown:
        for name, value in standing.figures.items():
            family.add_metric([*labels, name], value)
    yield family


def _times(shown: _Shown, now: datetime) -> Iterator[Metric]:
    since = _family("seconds_since_progress", "Time since the rollout that is under way last made progress.")
    deadline = _family("seconds_to_deadline", "Time until the rollout fails if it makes no more progress.")
    for labels, standing in shown:
        if standing.state is RolloutState.COMPLETED:
            continue
        if standing.progressed is not None:
            since.add_metric(labels, max(0.0, (now - standing.progressed).total_seconds()))
        if standing.due is not None:
            deadline.add_metric(labels, (standing.due - now).total_seconds())
    yield from (since, deadline)
