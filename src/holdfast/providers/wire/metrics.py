"""What is counted of the calls to providers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

_BUCKETS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)


class ServedMetrics:
    """Numbers of the calls that a provider answered."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._calls = Counter(
            "holdfast_provider_served_calls",
            "Calls that were answered: OK or a code of the contract.",
            ("call", "code"),
            registry=registry,
        )
        self._seconds = Histogram(
            "holdfast_provider_served_call_seconds",
            "How long calls took to answer.",
            ("call",),
            buckets=_BUCKETS,
            registry=registry,
        )

    def ended(self, call: str, code: str, seconds: float) -> None:
        self._calls.labels(call, code).inc()
        self._seconds.labels(call).observe(seconds)


class CallMetrics:
    """Numbers of all providers of a process, in the registry that is given."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._calls = Counter(
            "holdfast_provider_calls",
            "Calls to providers by how they ended: OK or a code of the contract.",
            ("provider", "call", "code"),
            registry=registry,
        )
        self._seconds = Histogram(
            "holdfast_provider_call_seconds",
            "How long calls to providers took, with their retries.",
            ("provider", "call"),
            buckets=_BUCKETS,
            registry=registry,
        )
        self._retries = Counter(
            "holdfast_provider_call_retries", "Calls that were repeated.", ("provider", "call"), registry=registry
        )
        self._in_flight = Gauge(
            "holdfast_provider_calls_in_flight", "Calls that have not ended.", ("provider",), registry=registry
        )
        self._breaker = Gauge(
            "holdfast_provider_circuit_breaker_state",
            "0: calls are made; 1: one call is tried; 2: no calls are made, because the last ones failed.",
            ("provider",),
            registry=registry,
        )

    def ended(self, provider: str, call: str, code: str, seconds: float) -> None:
        self._calls.labels(provider, call, code).inc()
        self._seconds.labels(provider, call).observe(seconds)

    def retried(self, provider: str, call: str) -> None:
        self._retries.labels(provider, call).inc()

    def in_flight(self, provider: str, change: int) -> None:
        self._in_flight.labels(provider).inc(change)

    def breaker(self, provider: str, state: Callable[[], int]) -> None:
        """Compute the state of a provider's circuit breaker when the metrics are read."""
        self._breaker.labels(provider).set_function(state)

    def forget(self, provider: str) -> None:
        """Remove the gauges of a provider that is closed."""
        for gauge in (self._breaker, self._in_flight):
            if (provider,) in gauge._metrics:
                gauge.remove(provider)
