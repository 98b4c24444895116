"""A whole deployment in virtual time: requests are routed to engines, and every token has its time.

What a load test against mock workers would measure on a machine that is never late, computed in a moment.  Pure and
deterministic.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final

from holdfast.profiler.load.figures import Sample
from holdfast.profiler.mocker.engine import Engine, Limits, Outcome, Timing

_ARRIVES: Final = 0
_ENDS: Final = 1
_WAKES: Final = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Pool:
    """Engines that are alike."""

    replicas: int
    limits: Limits
    timing: Timing

    def engines(self) -> list[Engine]:
        return [Engine(self.limits, self.timing) for _ in range(self.replicas)]


def _at_once(prompt: int) -> float:
    return 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Deployment:
    """Workers, or a pool of prefill workers before a pool of decode workers.

    transfer  seconds that the KV cache of a prompt takes from one to the other
    """

    workers: Pool
    prefill: Pool | None = None
    transfer: Callable[[int], float] = _at_once


@dataclass(frozen=True, slots=True, kw_only=True)
class Traffic:
    """Requests that are alike: sent at times, or so many at a time.

    requests     how many there are
    times        when they are sent (open loop)
    concurrency  how many are in flight (closed loop), where no times are given
    ramp         seconds over which the first of a closed loop are sent, so that they do not stay in step
    """

    isl: int
    osl: int
    requests: int
    times: Iterable[float] | None = None
    concurrency: int = 1
    ramp: float = 0.0

    def first(self) -> Iterator[float]:
        if self.times is None:
            first = min(self.concurrency, self.requests)
            return (self.ramp * number / first for number in range(first))
        return itertools.islice(self.times, self.requests)


@dataclass(slots=True)
class _Record:
    sent: float
    first: float = 0.0


@dataclass(slots=True)
class _Host:
    """An engine, the requests that it has, and the step that it runs."""

    engine: Engine
    load: int = 0
    outcome: Outcome | None = None


@dataclass(slots=True)
class _Run:
    deployment: Deployment
    traffic: Traffic
    events: list[tuple[float, int, int, _Host | None]] = field(default_factory=list)
    numbers: Iterator[int] = field(default_factory=itertools.count)
    records: dict[str, _Record] = field(default_factory=dict)
    samples: list[Sample] = field(default_factory=list)
    decode: list[_Host] = field(default_factory=list)
    prefill: list[_Host] = field(default_factory=list)
    left: int = 0

    def run(self) -> tuple[Sample, ...]:
        self.decode = [_Host(engine) for engine in self.deployment.workers.engines()]
        if self.deployment.prefill is not None:
            self.prefill = [_Host(engine) for engine in self.deployment.prefill.engines()]
        arrivals = list(self.traffic.first())
        for at in arrivals:
            self._schedule(at, _ARRIVES)
        self.left = self.traffic.requests - len(arrivals)
        while self.events:
            now, kind, _, host = heapq.heappop(self.events)
            if host is None:
                self._arrive(now)
            elif kind == _ENDS:
                self._end(host, now)
            elif host.outcome is None:
                self._begin(host, now)
        return tuple(self.samples)

    def _schedule(self, at: float, kind: int, host: _Host | None = None) -> None:
        heapq.heappush(self.events, (at, kind, next(self.numbers), host))

    def _arrive(self, now: float) -> None:
        id = str(len(self.records))
        self.records[id] = _Record(now)
        if self.prefill:
            self._submit(self.prefill, id, now, output=1)
        else:
            self._submit(self.decode, id, now, output=self.traffic.osl)

    def _submit(self, hosts: list[_Host], id: str, at: float, *, output: int, cached: bool = False) -> None:
        host = min(hosts, key=lambda each: each.load)
        host.load += 1
        host.engine.submit(id, at=at, prompt=self.traffic.isl, output=output, cached=cached)
        if host.outcome is None:
            self._schedule(at, _WAKES, host)

    def _begin(self, host: _Host, now: float) -> None:
        start = host.engine.next_start(now)
        if start is None:
            return
        if start > now:
            self._schedule(start, _WAKES, host)
            return
        host.outcome = host.engine.step(now)
        assert host.outcome is not None, "what can start has something to do"
        self._schedule(host.outcome.end, _ENDS, host)

    def _end(self, host: _Host, now: float) -> None:
        assert host.outcome is not None, "a step that ends has begun"
        tokens, host.outcome = host.outcome.tokens, None
        for token in tokens:
            record = self.records[token.sequence]
            if token.index == 0:
                record.first = now
            if token.last:
                host.load -= 1
                self._finish(token.sequence, record, now, prefilled=host in self.prefill)
        self._begin(host, now)

    def _finish(self, id: str, record: _Record, now: float, *, prefilled: bool) -> None:
        traffic = self.traffic
        if prefilled and traffic.osl > 1:
            ready = now + self.deployment.transfer(traffic.isl)
            self._submit(self.decode, id, ready, output=traffic.osl, cached=True)
            return
        self.samples.append(
            Sample(sent=record.sent, first=record.first, last=now, tokens=traffic.osl, prompt=traffic.isl)
        )
        if traffic.times is None and self.left:
            self.left -= 1
            self._schedule(now, _ARRIVES)


def simulate(deployment: Deployment, traffic: Traffic) -> tuple[Sample, ...]:
    """The samples of a load test, in the order in which the requests ended."""
    return _Run(deployment, traffic).run()
