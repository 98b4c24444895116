"""Groups: several roles rolled out in lockstep, each above its own floor.

The same rule, once for each role, and one addition: a role may be ahead of the
slowest one by a single batch.  A cap on the new replicas of each role does that,
so every other promise is that of a single rollout.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from fractions import Fraction
from math import ceil

import msgspec

from holdfast.kernel.fleet import Fleet
from holdfast.kernel.reasons import Because, Code
from holdfast.kernel.rollout import Blocked, Done, Hold, Progress, RollBack, Rollout, Verdict, decide, hold


class Role(msgspec.Struct, frozen=True):
    """One role of a group: its rollout, its fleet and its progress."""

    rollout: Rollout
    fleet: Fleet
    progress: Progress = Progress()

    @property
    def goal(self) -> int:
        """How many new replicas the role has when its rollout is complete."""
        return self.rollout.steps[-1].new(self.rollout.limits.replicas)


def decide_group(roles: Mapping[str, Role], *, now: datetime) -> dict[str, Verdict]:
    """One verdict per role.  When one role is refused, the others hold until it can go on."""
    paced = _paced(roles)
    verdicts = {name: decide(role.rollout, role.fleet, progress=role.progress, now=now) for name, role in paced.items()}
    refused = [name for name, verdict in verdicts.items() if isinstance(verdict.refusal, Blocked | RollBack)]
    if not refused:
        return verdicts
    message = f"role {', '.join(refused)} cannot go on, so the group holds"
    held = Hold(None, Because(Code.WAITING_FOR_ROLES, message))
    return {
        name: verdict
        if verdict.refusal is not None or isinstance(verdict.decision, Done)
        else hold(roles[name].rollout, roles[name].fleet, held, progress=roles[name].progress, now=now)
        for name, verdict in verdicts.items()
    }


def lockstep(roles: Mapping[str, Role]) -> dict[str, int]:
    """How many new replicas each role may have while the slowest is where it is."""
    pace = min(
        (Fraction(min(role.fleet.new.available, role.goal), role.goal) for role in roles.values() if role.goal),
        default=Fraction(1),
    )
    return {name: _cap(role, pace) for name, role in roles.items()}


def _cap(role: Role, pace: Fraction) -> int:
    limits = role.rollout.limits
    batch = max(1, limits.max_unavailable, limits.surge)
    return min(limits.replicas, ceil(role.goal * pace) + batch)


def _paced(roles: Mapping[str, Role]) -> dict[str, Role]:
    """The roles with their caps, and with the progress of the group: a role that waits for a slower one is not late."""
    caps = lockstep(roles)
    latest = max((at for role in roles.values() if (at := role.fleet.progressed_at) is not None), default=None)
    return {
        name: msgspec.structs.replace(
            role,
            rollout=msgspec.structs.replace(role.rollout, at_most=caps[name]),
            fleet=role.fleet
            if role.fleet.progressed_at is None
            else msgspec.structs.replace(role.fleet, progressed_at=latest),
        )
        for name, role in roles.items()
    }
