"""Prometheus metrics of the server, with the names that Kubernetes uses.

Each server has a registry of its own, so that two servers in one process do not share numbers.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping
from itertools import accumulate
from typing import Final, TypeAlias

from prometheus_client import CollectorRegistry, Counter, ProcessCollector, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector
from prometheus_client.utils import floatToGoString

from holdfast.apiserver.routes import RequestInfo

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"

_VERBS: Final = {"create": "POST", "update": "PUT"}
"""Verbs that Kubernetes' metrics name by their HTTP method; the others are in upper case."""

_METHODS: Final = frozenset({"DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT"})
"""Methods that are counted by their name; clients may send any other word."""

_LABELS: Final = ("verb", "group", "version", "resource", "subresource")
_BUCKETS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)

_Labels: TypeAlias = tuple[str, str, str, str, str]

Known = Callable[[RequestInfo], bool]
"""Whether a resource and its subresource are served: names that clients invent must not become labels."""


class Metrics:
    """The metrics of one server.

    counts    objects of each resource that are stored
    in_flight requests of each kind that are under way: ``readOnly``, ``mutating``, ``watch`` and so on
    """

    def __init__(
        self,
        *,
        known: Known,
        counts: Callable[[], Mapping[str, int]],
        in_flight: Callable[[], Mapping[str, int]],
    ) -> None:
        self._known = known
        self._registry = CollectorRegistry()
        self._answers = _Answers()
        self._registry.register(self._answers)
        self._rejected = Counter(
            "apiserver_flowcontrol_rejected_requests_total",
            "Requests that the limits refused.",
            registry=self._registry,
        )
        self._registry.register(_Gauges(counts, in_flight))
        ProcessCollector(registry=self._registry)

    def answered(self, info: RequestInfo, code: int, *, seconds: float | None) -> None:
        """Count an answer; `seconds` is None for a stream."""
        self._answers.add(self._labels(info), code, seconds)
        if code == 429:
            self._rejected.inc()

    def render(self) -> bytes:
        """Everything in the text format of Prometheus."""
        return generate_latest(self._registry)

    def _labels(self, info: RequestInfo) -> _Labels:
        verb = _VERBS.get(info.verb) or info.verb.upper()
        if not info.is_resource:
            return verb if verb in _METHODS else "OTHER", "", "", "", ""
        if not self._known(info):
            return verb, "", "", "", ""
        return verb, info.group, info.version, info.resource, info.subresource


class _Answers(Collector):
    """How many answers there were and how long they took.

    Counted on the event loop alone, so without the locks of the library's own counters, which cost more than a lookup.
    """

    def __init__(self) -> None:
        self._codes: dict[tuple[_Labels, int], int] = {}
        self._seconds: dict[_Labels, list[float]] = {}
        """By labels: the number of answers in each bucket and beyond, then the sum."""

    def add(self, labels: _Labels, code: int, seconds: float | None) -> None:
        key = labels, code
        self._codes[key] = self._codes.get(key, 0) + 1
        if seconds is not None:
            found = self._seconds.get(labels)
            if found is None:
                found = self._seconds[labels] = [0.0] * (len(_BUCKETS) + 2)
            found[bisect_left(_BUCKETS, seconds)] += 1
            found[-1] += seconds

    def collect(self) -> Iterable[Metric]:
        total = CounterMetricFamily(
            "apiserver_request", "Requests by verb, resource and answer.", labels=(*_LABELS, "code")
        )
        for (labels, code), number in self._codes.items():
            total.add_metric((*labels, str(code)), number)
        yield total
        duration = HistogramMetricFamily(
            "apiserver_request_duration_seconds",
            "Time until the answer to a request was there, streams left out.",
            labels=_LABELS,
        )
        bounds = [*map(floatToGoString, _BUCKETS), "+Inf"]
        for labels, (*numbers, sum_seconds) in self._seconds.items():
            duration.add_metric(labels, [*zip(bounds, accumulate(numbers), strict=True)], sum_seconds)
        yield duration


class _Gauges(Collector):
    """Gauges that are computed when the metrics are scraped."""

    def __init__(self, counts: Callable[[], Mapping[str, int]], in_flight: Callable[[], Mapping[str, int]]) -> None:
        self._families = (
            ("apiserver_storage_objects", "Objects stored of each resource.", "resource", counts),
            ("apiserver_current_inflight_requests", "Requests under way.", "request_kind", in_flight),
        )

    def collect(self) -> Iterable[Metric]:
        for name, help_text, label, values in self._families:
            family = GaugeMetricFamily(name, help_text, labels=[label])
            for value, number in values().items():
                family.add_metric([value], number)
            yield family
