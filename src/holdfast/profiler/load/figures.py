"""What a load test found: from samples of single requests to percentiles, rates and a verdict.

Pure.  Times are in seconds on one clock; figures are in milliseconds.  The inter-token latency of a request is the
mean over its tokens after the first, so that it does not matter how many tokens the server puts into one chunk.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final, Literal

import msgspec

Statistic = Literal["mean", "p50", "p90", "p95", "p99", "max"]
Name = Literal["ttft", "itl", "e2e"]
STATISTICS: Final[tuple[Statistic, ...]] = ("mean", "p50", "p90", "p95", "p99", "max")


class Sample(msgspec.Struct, frozen=True, kw_only=True):
    """One request.

    sent    when it was sent
    first   when its first token came
    last    when its last token came
    tokens  tokens of the answer
    prompt  tokens of the prompt, as the server counted them
    error   why it failed, in a few words; empty where it did not
    """

    sent: float
    first: float = math.nan
    last: float = math.nan
    tokens: int = 0
    prompt: int = 0
    error: str = ""

    @property
    def ttft(self) -> float:
        return (self.first - self.sent) * 1000

    @property
    def itl(self) -> float | None:
        """None of an answer with a single token."""
        return (self.last - self.first) * 1000 / (self.tokens - 1) if self.tokens > 1 else None

    @property
    def e2e(self) -> float:
        return (self.last - self.sent) * 1000


class Spread(msgspec.Struct, frozen=True, omit_defaults=True):
    """How a figure is distributed, in milliseconds."""

    mean: float
    p50: float
    p90: float
    p95: float
    p99: float
    max: float

    def at(self, statistic: Statistic) -> float:
        value: float = getattr(self, statistic)
        return value


class Figures(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What a load test found; a spread is None where no request gave one.

    seconds              from the first request to the last token
    tokens_per_second    of answers, of all requests together
    errors               how many requests failed, by why
    """

    requests: int
    completed: int
    seconds: float
    requests_per_second: float
    tokens_per_second: float
    isl: float
    osl: float
    ttft_ms: Spread | None
    itl_ms: Spread | None
    e2e_ms: Spread | None
    errors: dict[str, int] = {}


def figures(samples: Iterable[Sample], *, warmup: float = 0.0) -> Figures:
    """The figures of a test; requests that were sent in its first `warmup` seconds are left out."""
    every = sorted(samples, key=lambda each: each.sent)
    since = every[0].sent + warmup if every else 0.0
    counted = [each for each in every if each.sent >= since]
    good = [each for each in counted if not each.error]
    seconds = max((each.last for each in good), default=since) - since
    tokens = sum(each.tokens for each in good)
    return Figures(
        requests=len(counted),
        completed=len(good),
        seconds=seconds,
        requests_per_second=len(good) / seconds if seconds > 0 else 0.0,
        tokens_per_second=tokens / seconds if seconds > 0 else 0.0,
        isl=_mean([each.prompt for each in good]),
        osl=_mean([each.tokens for each in good]),
        ttft_ms=spread([each.ttft for each in good]),
        itl_ms=spread([each.itl for each in good if each.itl is not None]),
        e2e_ms=spread([each.e2e for each in good]),
        errors=dict(Counter(each.error for each in counted if each.error).most_common()),
    )


def spread(values: Sequence[float]) -> Spread | None:
    if not values:
        return None
    ordered = sorted(values)
    p50, p90, p95, p99 = (_percentile(ordered, part) for part in (0.5, 0.9, 0.95, 0.99))
    return Spread(_mean(ordered), p50, p90, p95, p99, ordered[-1])


def _percentile(ordered: Sequence[float], part: float) -> float:
    """Interpolated between the nearest two values."""
    place = part * (len(ordered) - 1)
    low = math.floor(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (place - low)


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else 0.0


# --- the verdict


class Comparison(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """One figure, beside what was asked and what was predicted, in milliseconds.

    error  how far the measured figure is from the predicted one, as a part of that
    """

    name: Name
    measured: float
    target: float | None = None
    predicted: float | None = None

    @property
    def met(self) -> bool | None:
        return None if self.target is None else self.measured <= self.target

    @property
    def error(self) -> float | None:
        return None if not self.predicted else self.measured / self.predicted - 1


class Goals(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """What was asked of a deployment, and what was predicted of it, in milliseconds."""

    ttft_ms: float | None = None
    itl_ms: float | None = None
    e2e_ms: float | None = None
    predicted_ttft_ms: float | None = None
    predicted_itl_ms: float | None = None


def compare(found: Figures, goals: Goals, *, by: Statistic = "mean") -> tuple[Comparison, ...]:
    """The figures that were measured, each beside its goals; predictions are means, so they stand beside means."""
    rows: tuple[tuple[Name, Spread | None, float | None, float | None], ...] = (
        ("ttft", found.ttft_ms, goals.ttft_ms, goals.predicted_ttft_ms),
        ("itl", found.itl_ms, goals.itl_ms, goals.predicted_itl_ms),
        ("e2e", found.e2e_ms, goals.e2e_ms, None),
    )
    return tuple(
        Comparison(name=name, measured=measured.at(by), target=target, predicted=predicted)
        for name, measured, target, predicted in rows
        if measured is not None
    )


def sla_met(found: Figures, compared: Iterable[Comparison]) -> bool | None:
    """Whether every target was met and no request failed; None where there was no target."""
    verdicts = [each.met for each in compared if each.met is not None]
    if not verdicts:
        return None
    return all(verdicts) and found.completed == found.requests and found.requests > 0
