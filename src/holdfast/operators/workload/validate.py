"""What a Workload asks for, in the engine's terms, or why it cannot be had.

`rollout_spec` turns the typed manifest into what `kernel.planning` takes, and
refuses combinations that no fleet can have.  An API server refuses most of them
by CEL rules already; here they are refused without one, and with the path.
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
"""What an API server writes when they are absent; a manifest may not have met one yet."""

_AT: Final = "spec.rollout"


def rollout_spec(workload: Workload) -> WorkloadSpec:
    """What the engine is asked for; raises `InvalidDocument` for what it cannot be asked."""
    wish = workload.spec.rollout or Rollout()
    found = (*_problems(wish), *_name_problems(wish, workload.metadata.name or ""))
    if found:
        raise InvalidDocument(*found)
    replicas = REPLICAS if workload.spec.replicas is None else workload.spec.replicas
    blue_green = wish.blue_green or BlueGreen()
    switches = _strategy(wish) is Strategy.BLUE_GREEN
    delay = duration(blue_green.scale_down_delay or SCALE_DOWN_DELAY)
    return WorkloadSpec(
        name=workload.metadata.name or "",
        replicas=replicas,
        rollout=RolloutStrategy(
            strategy=str(_strategy(wish)),
            max_surge=wish.max_surge,
            max_unavailable=wish.max_unavailable,
            min_available=wish.min_available,
            pause_duration=duration(wish.pause_duration),
            partition=0 if wish.partition is None else amounts.resolve(wish.partition, replicas, round="up"),
            canary_steps=tuple(_canary_steps(wish)),
            approval=switches and blue_green.auto_promote is False,
            scale_down_delay=delay if switches else timedelta(),
        ),
    )


def _strategy(wish: Rollout) -> Strategy:
    return wish.strategy or Strategy.ROLLING_UPDATE


def _canary_steps(wish: Rollout) -> Iterator[CanaryStep]:
    for step in wish.canary.steps if wish.canary is not None else ():
        yield CanaryStep(
            weight=step.weight,
            replicas=step.replicas,
            pause=None if step.pause_duration is None else duration(step.pause_duration),
            approval=bool(step.manual),
        )


def duration(text: str | None) -> timedelta:
    return timedelta() if text is None else durations.parse(text)


# --- what cannot be asked ----------------------------------------------------


def _problems(wish: Rollout) -> Iterator[Problem]:
    strategy = _strategy(wish)
    for field, value, owner in (
        ("canary", wish.canary, Strategy.CANARY),
        ("blueGreen", wish.blue_green, Strategy.BLUE_GREEN),
        ("partition", wish.partition, Strategy.ROLLING_UPDATE),
    ):
        if value is not None and strategy is not owner:
            hint = f"remove it, or write strategy: {owner}"
            yield Problem(f"{_AT}.{field}", f"is for the strategy {owner} alone, and this is {strategy}", hint)
    for field, share in (("minAvailable", wish.min_available), ("maxUnavailable", wish.max_unavailable)):
        if isinstance(share, str) and amounts.IntOrPercent.parse(share).number > 100:
            yield Problem(f"{_AT}.{field}", f"{share} is more than all replicas", "write 100% or less")
    if strategy is Strategy.ROLLING_UPDATE and _is_zero(wish.max_surge) and _is_zero(wish.max_unavailable):
        message = "maxSurge and maxUnavailable cannot both be 0: no replica could ever be replaced"
        yield Problem(f"{_AT}.maxSurge", message, "write 1 or more for one of them")
    yield from _canary_problems(wish)
    yield from _duration_problems(wish)


def _name_problems(wish: Rollout, name: str) -> Iterator[Problem]:
    """A BlueGreen Workload whose name cannot be that of its Service."""
    named = wish.blue_green is not None and wish.blue_green.service is not None
    if name and _strategy(wish) is Strategy.BLUE_GREEN and not named and names.dns_1035_label(name):
        message = f"the Service that is switched cannot be named {name}, as this Workload is"
        yield Problem(f"{_AT}.blueGreen.service", message, "name one, such as blueGreen: {service: web}")


def _is_zero(share: int | str | None) -> bool:
    return share is not None and amounts.IntOrPercent.parse(share).number == 0


def _canary_problems(wish: Rollout) -> Iterator[Problem]:
    if wish.canary is None:
        if _strategy(wish) is Strategy.CANARY:
            yield Problem(f"{_AT}.canary", "the strategy Canary needs steps", "write canary: {steps: [{weight: 25}]}")
        return
    for index, step in enumerate(wish.canary.steps):
        path = f"{_AT}.canary.steps[{index}]"
        if (step.weight is None) == (step.replicas is None):
            yield Problem(path, "give either the weight or the replicas of a step", "write weight: 25 or replicas: 1")
        if step.pause_duration is not None and step.manual:
            hint = "write pauseDuration or manual, not both"
            yield Problem(path, "a step ends by time or by approval", hint)


def _duration_problems(wish: Rollout) -> Iterator[Problem]:
    """Durations that have the right form and are longer than time is counted."""
    steps = wish.canary.steps if wish.canary is not None else ()
    for path, text in (
        ("pauseDuration", wish.pause_duration),
        ("progressDeadline", wish.progress_deadline),
        ("blueGreen.scaleDownDelay", None if wish.blue_green is None else wish.blue_green.scale_down_delay),
        *((f"canary.steps[{index}].pauseDuration", step.pause_duration) for index, step in enumerate(steps)),
    ):
        try:
            duration(text)
        except durations.DurationError as error:
            yield Problem(f"{_AT}.{path}", str(error))
