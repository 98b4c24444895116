"""Strategies: lists of steps over the one rule in `rollout`.

A step is a shape that the fleet should have, and a gate before the next step.
Because a strategy is only a list of steps, pause, abort, scale and a new
revision work the same in all of them.  The module must not know fleets.

    RollingUpdate  replace all
    Recreate       empty, until none is alive; then start all
    BlueGreen      start a second set; pause or approval; switch; delay; drain
    Canary         replace a part; pause or approval; ...; replace all
    OnDelete       start missing replicas; replace those that a user deletes
"""

from __future__ import annotations

from datetime import timedelta
from enum import Enum, StrEnum

import msgspec


class Strategy(StrEnum):
    """How a new revision takes the place of the old one."""

    ROLLING_UPDATE = "RollingUpdate"
    RECREATE = "Recreate"
    BLUE_GREEN = "BlueGreen"
    CANARY = "Canary"
    ON_DELETE = "OnDelete"


class Old(Enum):
    """What a step does with the old replicas."""

    REST = "as many as the new ones leave of the desired number"
    NONE = "gone"
    SERVE = "all that serve, beside a full new set"
    LIVING = "all that are alive; none is stopped for the update"


class Pause(msgspec.Struct, frozen=True):
    """The next step begins this long after the step's shape was reached."""

    duration: timedelta


class Approval(msgspec.Struct, frozen=True):
    """The next step begins when a user promotes this one."""


class NoneAlive(msgspec.Struct, frozen=True):
    """The next step begins when no old replica is left, terminating ones included."""


class Switched(msgspec.Struct, frozen=True):
    """The next step begins when all traffic goes to the new replicas."""


class Deletions(msgspec.Struct, frozen=True):
    """The rollout goes on whenever a user deletes an old replica."""


Gate = Pause | Approval | NoneAlive | Switched | Deletions


class Step(msgspec.Struct, frozen=True, kw_only=True):
    """A shape of the fleet, and the gate behind it.

    share   how much of the desired number is new: a percentage, or
    number  a count, or
    hold    all but this many; with none of them given: all
    floor   whether the floor binds in this step
    """

    share: int | None = None
    number: int | None = None
    hold: int = 0
    old: Old = Old.REST
    floor: bool = True
    gate: Gate | None = None

    def new(self, replicas: int) -> int:
        """How many new replicas this step wants of `replicas`."""
        if self.share is not None:
            wanted = -(-replicas * self.share // 100)
        elif self.number is not None:
            wanted = self.number
        else:
            wanted = replicas - self.hold
        return max(0, min(wanted, replicas))


class CanaryStep(msgspec.Struct, frozen=True, kw_only=True):
    """One step of a canary: how much is new, and what it waits for.

    `pause` None with `approval` False passes on at once.
    """

    weight: int | None = None
    replicas: int | None = None
    pause: timedelta | None = None
    approval: bool = False

    def gate(self) -> Gate | None:
        if self.approval:
            return Approval()
        return None if self.pause is None else Pause(self.pause)


def rolling_update(*, partition: int = 0) -> tuple[Step, ...]:
    """Replace all replicas, or all but `partition` of them."""
    return (Step(hold=partition),)


def recreate() -> tuple[Step, ...]:
    return (Step(share=0, old=Old.NONE, floor=False, gate=NoneAlive()), Step(old=Old.NONE))


def blue_green(
    *, pause: timedelta | None = None, approval: bool = False, delay: timedelta = timedelta()
) -> tuple[Step, ...]:
    """Start a full new set, switch to it after `pause` or approval, drain the old one after `delay`."""
    gate: Gate | None = Approval() if approval else (None if pause is None else Pause(pause))
    before = (Step(old=Old.SERVE, gate=gate),) if gate is not None else ()
    after = (Step(old=Old.SERVE, gate=Pause(delay)),) if delay else ()
    return (*before, Step(old=Old.SERVE, gate=Switched()), *after, Step(old=Old.NONE))


def canary(steps: tuple[CanaryStep, ...]) -> tuple[Step, ...]:
    """Replace the parts that `steps` name one after another, then the rest."""
    return (*(Step(share=step.weight, number=step.replicas, gate=step.gate()) for step in steps), Step())


def on_delete() -> tuple[Step, ...]:
    return (Step(old=Old.LIVING, gate=Deletions()),)


def steps_of(
    strategy: Strategy,
    *,
    pause: timedelta | None = None,
    partition: int = 0,
    canary_steps: tuple[CanaryStep, ...] = (),
    approval: bool = False,
    delay: timedelta = timedelta(),
) -> tuple[Step, ...]:
    """The steps of a strategy; options of other strategies are ignored.

    `pause` stands between the second set and the switch of a BlueGreen rollout;
    a RollingUpdate pauses between batches instead, which is not a step.
    """
    match strategy:
        case Strategy.ROLLING_UPDATE:
            return rolling_update(partition=partition)
        case Strategy.RECREATE:
            return recreate()
        case Strategy.BLUE_GREEN:
            return blue_green(pause=pause or None, approval=approval, delay=delay)
        case Strategy.CANARY:
            return canary(canary_steps)
        case Strategy.ON_DELETE:
            return on_delete()
