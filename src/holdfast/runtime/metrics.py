"""What the runtime counts, in the text format of Prometheus.

A registry of its own, so that two managers in one process do not share numbers.
Counting is what passes do all the time, so it costs a dictionary look-up and an
addition; numbers that can be computed when the metrics are read are not counted.
This module must not know how anything is done.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Histogram, ProcessCollector, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"

_PASS_BUCKETS: Final = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)
_CALL_BUCKETS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)


RESULTS: Final[Mapping[str, bool]] = {
    "done": False,
    "again": False,
    "paused": False,
    "permanent": False,
    "stale": True,
    "retry": True,
    "timeout": True,
    "panic": True,
}
"""How a pass can end, and whether its key is queued again because it failed."""


@dataclass(frozen=True, slots=True)
class Backlog:
    """The queue of a controller: how many keys are due, and for how long each of the passes under way has run."""

    depth: int
    running: tuple[float, ...] = ()


class Metrics:
    """The numbers of one process.

    A method for everything that is counted, and `ask` for what is computed when the metrics are read.
    """

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self._gauges = _Gauges()
        self._registry.register(self._gauges)
        ProcessCollector(registry=self._registry)
        # Finding a child by its labels costs more than counting, so each is found once.
        self._results = self._counter("reconcile", "Passes by how they ended.", "controller", "result")
        self._errors = self._counter("reconcile_errors", "Failed passes by reason.", "controller", "reason")
        self._passes = self._histogram(
            "reconcile_duration_seconds", "Time of a pass.", "controller", buckets=_PASS_BUCKETS
        )
        self._retries = self._counter("queue_retries", "Keys that were queued again after a failure.", "controller")
        self._latencies = self._histogram(
            "queue_latency_seconds", "Time that a due key waited for its pass.", "controller", buckets=_PASS_BUCKETS
        )
        self._notices = self._counter(
            "notices",
            "What Events tell, by reason, also where an Event was not written.",
            "component",
            "type",
            "reason",
        )
        self._writes = self._counter("writes", "Writes that succeeded.", "controller", "verb")
        self._watches = self._counter("watch_restarts", "Watches that were begun anew.", "resource", "reason")
        self._calls = self._counter(
            "api_requests", "Requests by answer; code 0 is none at all.", "verb", "resource", "code"
        )
        self._call_seconds = self._histogram(
            "api_request_duration_seconds", "Time until an answer.", "verb", "resource", buckets=_CALL_BUCKETS
        )
        self._crashes = self._counter("crashes", "Controllers and components that crashed and began again.", "part")
        self._emitted = self._counter("events_emitted", "Events that were written.", "component", "type")
        self._dropped = self._counter("events_dropped", "Events that were not, by reason.", "component", "reason")

    def ask(
        self,
        *,
        queues: Callable[[], Mapping[str, Backlog]] | None = None,
        stores: Callable[[], Mapping[str, int]] | None = None,
        leader: Callable[[], bool] | None = None,
    ) -> None:
        """Where to look: backlogs by controller, numbers of objects by resource, and whether this process leads."""
        self._gauges.queues = queues or self._gauges.queues
        self._gauges.stores = stores or self._gauges.stores
        self._gauges.leader = leader or self._gauges.leader

    def extend(self, collector: Collector) -> None:
        """Show the metrics of another collector too."""
        self._registry.register(collector)

    def expect(self, controller: str) -> None:
        """Show a controller's numbers from the start, as zeros: an absent series could mean anything."""
        for result in RESULTS:
            self._results(controller, result)
        self._passes(controller)
        self._retries(controller)
        self._latencies(controller)

    def taken(self, controller: str, *, waited: float) -> None:
        """A pass begins, of a key that was due for that long."""
        self._latencies(controller).observe(waited)

    def passed(self, controller: str, result: str, *, seconds: float) -> None:
        """A pass has ended; `result` is one of `RESULTS`."""
        self._results(controller, result).inc()
        self._passes(controller).observe(seconds)
        if RESULTS[result]:
            self._retries(controller).inc()

    def failed(self, controller: str, reason: str) -> None:
        self._errors(controller, reason).inc()

    def wrote(self, controller: str, verb: str) -> None:
        self._writes(controller, verb).inc()

    def watch_restarted(self, resource: str, reason: str) -> None:
        self._watches(resource, reason).inc()

    def called(self, verb: str, resource: str, code: int, seconds: float) -> None:
        """Called by the client (`client.api.Observed`).  How long a watch lasts is not measured."""
        self._calls(verb, resource, str(code)).inc()
        if verb != "watch":
            self._call_seconds(verb, resource).observe(seconds)

    def crashed(self, part: str) -> None:
        """A controller or component, such as ``component scheduler``, ended with a defect."""
        self._crashes(part).inc()

    def event_emitted(self, component: str, type: str) -> None:
        self._emitted(component, type).inc()

    def noticed(self, component: str, type: str, reason: str) -> None:
        """An Event is due; a floor that is broken is counted here under its reason, BelowFloor."""
        self._notices(component, type, reason).inc()

    def event_dropped(self, component: str, reason: str) -> None:
        self._dropped(component, reason).inc()

    def render(self) -> bytes:
        """Everything in the text format of Prometheus."""
        return generate_latest(self._registry)

    def _counter(self, name: str, help_text: str, *labels: str) -> Callable[..., Counter]:
        return cache(Counter(f"holdfast_{name}", help_text, labels, registry=self._registry).labels)

    def _histogram(
        self, name: str, help_text: str, *labels: str, buckets: tuple[float, ...]
    ) -> Callable[..., Histogram]:
        return cache(Histogram(f"holdfast_{name}", help_text, labels, buckets=buckets, registry=self._registry).labels)


class _Gauges(Collector):
    """Numbers that are computed when the metrics are read, and cost nothing otherwise."""

    def __init__(self) -> None:
        self.queues: Callable[[], Mapping[str, Backlog]] = dict
        self.stores: Callable[[], Mapping[str, int]] = dict
        self.leader: Callable[[], bool] | None = None

    def collect(self) -> Iterable[Metric]:
        queues = self.queues()
        running = {controller: backlog.running for controller, backlog in queues.items()}
        yield _gauge(
            "queue_depth", "Keys that are due.", "controller", {name: each.depth for name, each in queues.items()}
        )
        yield _gauge(
            "queue_unfinished_seconds",
            "Time that the passes under way have taken so far, all together.",
            "controller",
            {name: sum(seconds) for name, seconds in running.items()},
        )
        yield _gauge(
            "queue_longest_running_seconds",
            "Time that the oldest pass under way has taken so far.",
            "controller",
            {name: max(seconds, default=0) for name, seconds in running.items()},
        )
        yield _gauge("store_objects", "Objects in the stores.", "resource", self.stores())
        if self.leader is not None:
            yield GaugeMetricFamily("holdfast_leader", "Whether this process leads.", value=int(self.leader()))


def _gauge(name: str, help_text: str, label: str, values: Mapping[str, float]) -> GaugeMetricFamily:
    family = GaugeMetricFamily(f"holdfast_{name}", help_text, labels=[label])
    for value, number in values.items():
        family.add_metric([value], number)
    return family
