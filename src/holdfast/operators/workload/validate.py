"""The spec of a Workload as the engine takes it, or why it is invalid.

`rollout_spec` turns the decoded manifest into a `kernel.planning.WorkloadSpec`, and refuses fields that exclude each
other.  An API server refuses most of them by CEL rules; `holdfast plan` runs without one, and errors here name the
JSON path.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Final

from holdfast.kernel.planning import RolloutStrategy, WorkloadSpec
from holdfast.kernel.strategies import CanaryStep
from holdfast.kinds import InvalidDocument, Problem
from holdfast.kinds.cloudless import Workload
from holdfast.kinds.cloudless.rollouts import BlueGreen, Rollout, Strategy
from holdfast.meta import amounts, durations, names

REPLICAS: Final = 1
SCALE_DOWN_DELAY: Final = "30s"
PROGRESS_DEADLINE: Final = "10m"
"""The defaults that an API server sets; a manifest may not have passed one yet."""

_AT: Final = "spec.rollout"


def rollout_spec(workload: Workload) -> WorkloadSpec:
    """What the engine is asked for; raises `InvalidDocument` if the spec is invalid."""
    rollout = workload.spec.rollout or Rollout()
    found = (*_problems(rollout), *_name_problems(rollout, workload.metadata.name or ""))
    if found:
        raise InvalidDocument(*found)
    replicas = REPLICAS if workload.spec.replicas is None else workload.spec.replicas
    blue_green = rollout.blue_green or BlueGreen()
    switches = _strategy(rollout) is Strategy.BLUE_GREEN
    delay = duration(blue_green.scale_down_delay or SCALE_DOWN_DELAY)
    return WorkloadSpec(
        name=workload.metadata.name or "",
        replicas=replicas,
        rollout=RolloutStrategy(
            strategy=str(_strategy(rollout)),
            max_surge=rollout.max_surge,
            max_unavailable=rollout.max_unavailable,
            # 0 is how Cloudless writes "not set": it means a derived minimum.  "0%" means that none must be available.
            min_available=None if rollout.min_available == 0 else rollout.min_available,
            pause_duration=duration(rollout.pause_duration),
            partition=0 if rollout.partition is None else amounts.resolve(rollout.partition, replicas, round="up"),
            canary_steps=tuple(_canary_steps(rollout)),
            approval=switches and blue_green.auto_promote is False,
            scale_down_delay=delay if switches else timedelta(),
        ),
    )


def _strategy(rollout: Rollout) -> Strategy:
    return rollout.strategy or Strategy.ROLLING_UPDATE


def _canary_steps(rollout: Rollout) -> Iterator[CanaryStep]:
    for step in rollout.canary.steps if rollout.canary is not None else ():
        yield CanaryStep(
            weight=step.weight,
            replicas=step.replicas,
            pause=None if step.pause_duration is None else duration(step.pause_duration),
            approval=bool(step.manual),
        )


def duration(text: str | None) -> timedelta:
    return timedelta() if text is None else durations.parse(text)


# --- invalid combinations


def _problems(rollout: Rollout) -> Iterator[Problem]:
    strategy = _strategy(rollout)
    for field, value, owner in (
        ("canary", rollout.canary, Strategy.CANARY),
        ("blueGreen", rollout.blue_green, Strategy.BLUE_GREEN),
        ("partition", rollout.partition, Strategy.ROLLING_UPDATE),
    ):
        if value is not None and strategy is not owner:
            hint = f"remove it, or write strategy: {owner}"
            yield Problem(f"{_AT}.{field}", f"is only for the strategy {owner}, and the strategy is {strategy}", hint)
    for field, share in (("minAvailable", rollout.min_available), ("maxUnavailable", rollout.max_unavailable)):
        if isinstance(share, str) and amounts.IntOrPercent.parse(share).number > 100:
            yield Problem(f"{_AT}.{field}", f"{share} is more than all replicas", "write 100% or less")
    if strategy is Strategy.ROLLING_UPDATE and _is_zero(rollout.max_surge) and _is_zero(rollout.max_unavailable):
        message = "maxSurge and maxUnavailable cannot both be 0: no replica could ever be replaced"
        yield Problem(f"{_AT}.maxSurge", message, "write 1 or more for one of them")
    yield from _canary_problems(rollout)
    yield from _duration_problems(rollout)


def _name_problems(rollout: Rollout, name: str) -> Iterator[Problem]:
    """The name of a BlueGreen Workload that is not valid for its Service."""
    named = rollout.blue_green is not None and rollout.blue_green.service is not None
    if name and _strategy(rollout) is Strategy.BLUE_GREEN and not named and names.dns_1035_label(name):
        message = f"{name}, the name of the Workload, is not a valid name for the Service that is switched"
        yield Problem(f"{_AT}.blueGreen.service", message, "name a Service, such as blueGreen: {service: web}")


def _is_zero(share: int | str | None) -> bool:
    return share is not None and amounts.IntOrPercent.parse(share).number == 0


def _canary_problems(rollout: Rollout) -> Iterator[Problem]:
    if rollout.canary is None:
        if _strategy(rollout) is Strategy.CANARY:
            yield Problem(f"{_AT}.canary", "the strategy Canary needs steps", "write canary: {steps: [{weight: 25}]}")
        return
    for index, step in enumerate(rollout.canary.steps):
        path = f"{_AT}.canary.steps[{index}]"
        if (step.weight is None) == (step.replicas is None):
            yield Problem(path, "give either the weight or the replicas of a step", "write weight: 25 or replicas: 1")
        if step.pause_duration is not None and step.manual:
            hint = "write pauseDuration or manual, not both"
            yield Problem(path, "a step ends after a time or by approval", hint)


def _duration_problems(rollout: Rollout) -> Iterator[Problem]:
    """Durations that are well-formed and too long."""
    steps = rollout.canary.steps if rollout.canary is not None else ()
    for path, text in (
        ("pauseDuration", rollout.pause_duration),
        ("progressDeadline", rollout.progress_deadline),
        ("blueGreen.scaleDownDelay", None if rollout.blue_green is None else rollout.blue_green.scale_down_delay),
        *((f"canary.steps[{index}].pauseDuration", step.pause_duration) for index, step in enumerate(steps)),
    ):
        try:
            duration(text)
        except durations.DurationError as error:
            yield Problem(f"{_AT}.{path}", str(error))
