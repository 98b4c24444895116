"""How a simulated pod behaves: what its annotations ask for, and chance for the rest.

    sim.holdfast.dev/ready-after       how long it takes to become ready: 5s
    sim.holdfast.dev/never-ready       true: it never does
    sim.holdfast.dev/crash-after       its containers fail after having run for so long
    sim.holdfast.dev/run-for           its containers end by themselves after so long; for pods of Jobs 1s
    sim.holdfast.dev/exit-code         with which code they end: 1 for a crash, 0 otherwise
    sim.holdfast.dev/fail-probability  0..1: only so many of the pods do what is asked above, or crash; the others
                                       are well.  Which, is drawn for each pod
    sim.holdfast.dev/stop-after        how long its containers take to end when it is deleted, within its grace
    sim.holdfast.dev/init-for          how long each init container runs

An image whose tag is ``broken`` cannot be pulled.

Pure.  This module must not know states of containers, nor what time it is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Final, TypeVar

from holdfast.client.objects import Meta
from holdfast.cluster.simulation.draws import between, draw
from holdfast.meta import durations
from holdfast.meta.errors import MalformedError

T = TypeVar("T")

PREFIX: Final = "sim.holdfast.dev/"
_LATEST: Final = timedelta(days=3650)


@dataclass(frozen=True, slots=True, kw_only=True)
class Defaults:
    """What pods do that ask for nothing; of a range, each pod draws its own time.

    seed  another seed gives other times and other victims
    """

    seed: int = 0
    ready: tuple[timedelta, timedelta] = (timedelta(seconds=0.1), timedelta(seconds=1))
    stop: tuple[timedelta, timedelta] = (timedelta(seconds=0.1), timedelta(seconds=0.5))
    init: tuple[timedelta, timedelta] = (timedelta(seconds=0.1), timedelta(seconds=0.5))
    job: timedelta = timedelta(seconds=1)


@dataclass(frozen=True, slots=True)
class Ending:
    """Containers end after having run for a while, with a code."""

    after: timedelta
    code: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Behaviour:
    """
    warm_up   from the start of a container until it is ready
    asked     whether the warm-up was asked for, and is therefore kept to the letter
    ready     whether it ever gets ready
    ending    how its containers end by themselves, if they do
    stop      how long they take to end when they are asked to
    init      how long each init container runs
    problems  annotations that could not be understood, and are therefore not obeyed
    """

    warm_up: timedelta
    stop: timedelta
    init: timedelta
    asked: bool = False
    ready: bool = True
    ending: Ending | None = None
    problems: tuple[str, ...] = ()

    def slowed(self, factor: float) -> Behaviour:
        """The same, with everything taking longer."""
        ending = self.ending
        return replace(
            self,
            warm_up=_longer(self.warm_up, factor),
            stop=_longer(self.stop, factor),
            init=_longer(self.init, factor),
            ending=None if ending is None else Ending(_longer(ending.after, factor), ending.code),
        )


def behaviour(pod: Meta, *, defaults: Defaults, job: bool = False) -> Behaviour:
    """How a pod behaves; `job` says that it is there to end."""
    read = _Reader(pod.annotations)
    seed, uid = defaults.seed, pod.uid
    ready_after = read.get("ready-after", _duration)
    warm_up = between(*defaults.ready, seed, "ready", uid) if ready_after is None else ready_after
    probability = read.get("fail-probability", _probability)
    fails = probability is None or draw(seed, "fail", uid) < probability
    never, crash_after = read.get("never-ready", _truth) or False, read.get("crash-after", _duration)
    code, run_for = read.get("exit-code", _code), read.get("run-for", _duration)
    if run_for is None and job:
        run_for = defaults.job
    if fails and probability is not None and crash_after is None and not never:
        # Nothing says how it fails: it crashes when it should have got ready, or have ended.
        crash_after = warm_up if run_for is None else run_for
    return Behaviour(
        warm_up=warm_up,
        asked=ready_after is not None,
        ready=not (never and fails),
        ending=_ending(crash_after if fails else None, run_for, code if fails else None),
        stop=_or(read.get("stop-after", _duration), between(*defaults.stop, seed, "stop", uid)),
        init=_or(read.get("init-for", _duration), between(*defaults.init, seed, "init", uid)),
        problems=tuple(read.problems),
    )


def is_broken(image: str) -> bool:
    """Whether an image cannot be pulled."""
    name, _, _ = image.partition("@")
    return name.rpartition("/")[2].partition(":")[2] == "broken"


def _ending(crash_after: timedelta | None, run_for: timedelta | None, code: int | None) -> Ending | None:
    if crash_after is not None and (run_for is None or crash_after <= run_for):
        return Ending(crash_after, _or(code, 1))
    if run_for is not None:
        return Ending(run_for, _or(code, 0) if crash_after is None else 0)
    return None


def _or(value: T | None, otherwise: T) -> T:
    return otherwise if value is None else value


def _longer(time: timedelta, factor: float) -> timedelta:
    return min(time * factor, _LATEST) if time < _LATEST / max(factor, 1) else _LATEST


# --- annotations


class _Reader:
    """Reads annotations, and keeps what is wrong with them."""

    def __init__(self, annotations: Mapping[str, str]) -> None:
        self._annotations = annotations
        self.problems: list[str] = []

    def get(self, name: str, parse: Callable[[str], T]) -> T | None:
        text = self._annotations.get(PREFIX + name)
        if text is None:
            return None
        try:
            return parse(text)
        except MalformedError as error:
            self.problems.append(f"{PREFIX}{name}: {error}")
            return None


def _duration(text: str) -> timedelta:
    parsed = durations.parse(text)
    if parsed < timedelta(0):
        raise MalformedError(f"{text!r} is before the beginning; write a time such as '5s'")
    return min(parsed, _LATEST)


def _probability(text: str) -> float:
    try:
        parsed = float(text)
    except ValueError:
        parsed = -1
    if not 0 <= parsed <= 1:
        raise MalformedError(f"{text!r} is not a probability; write a number from '0' to '1'")
    return parsed


def _code(text: str) -> int:
    if not (text.isascii() and text.isdecimal() and len(text) < 10) or int(text) > 255:
        raise MalformedError(f"{text!r:.40} is not an exit code; write a number from '0' to '255'")
    return int(text)


def _truth(text: str) -> bool:
    if text not in ("true", "false"):
        raise MalformedError(f"{text!r} is neither 'true' nor 'false'")
    return text == "true"
