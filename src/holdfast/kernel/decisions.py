"""Decisions of the engine, as a closed union of frozen values.

Each has its own data and a reason.  The module must not know how a decision is
made (`rollout`) or carried out.
"""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Final

import msgspec

from holdfast.kernel.fleet import Side, State
from holdfast.kernel.reasons import Because


class Kind(StrEnum):
    """Which replicas of a side a `Stop` means."""

    DEAD = "dead"
    UNREADY = "unready"
    READY = "ready"

    @property
    def states(self) -> frozenset[State]:
        """The states of the replicas that are meant."""
        return _STATES[self]


_STATES: Final = {
    Kind.DEAD: frozenset({State.DEAD}),
    Kind.UNREADY: frozenset({State.UNREADY}),
    Kind.READY: frozenset({State.SETTLING, State.AVAILABLE}),
}


class Start(msgspec.Struct, frozen=True, tag=True):
    """Start `count` replicas of the revision of `side`."""

    side: Side
    count: int
    because: Because


class Stop(msgspec.Struct, frozen=True, tag=True):
    """Stop `count` replicas of `side` that are `kind`."""

    side: Side
    kind: Kind
    count: int
    because: Because


class Switch(msgspec.Struct, frozen=True, tag=True):
    """Send `traffic` per cent of the traffic to the new replicas."""

    traffic: int
    because: Because


class Hold(msgspec.Struct, frozen=True, tag=True):
    """Do nothing until then; None: until a user acts."""

    until: datetime | None
    because: Because


class Wait(msgspec.Struct, frozen=True, tag=True):
    """Wait for `count` replicas of `side`; look again at `until` if nothing happens."""

    side: Side
    count: int
    until: datetime | None
    because: Because


class Blocked(msgspec.Struct, frozen=True, tag=True):
    """The rollout cannot go on, and what to change so that it can."""

    because: Because
    remedy: str


class RollBack(msgspec.Struct, frozen=True, tag=True):
    """Make the stable revision the wanted one; `final` when the new one is rejected for good."""

    final: bool
    because: Because


class Done(msgspec.Struct, frozen=True, tag=True):
    """The fleet is as the last step wants it."""

    because: Because


Decision = Start | Stop | Switch | Hold | Wait | Blocked | RollBack | Done

Refusal = Hold | Blocked | RollBack
"""Why a rollout must not go on."""
