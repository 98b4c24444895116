"""Groups: several roles rolled out in lockstep, each above its own floor.

The same rule, once per role, with one thing added: a role may run ahead of the
slowest one by a single batch.  What a role may not do is decided by a cap on
its new replicas, so every other promise is the single rollout's own.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

import msgspec

from holdfast.kernel.fleet import Fleet, Side
from holdfast.kernel.reasons import Because, Code
from holdfast.kernel.rollout import Blocked, Progress, RollBack, Rollout, Verdict, Wait, decide


class Role(msgspec.Struct, frozen=True):
    """One role of a group: what is asked for, what is seen, how far it is."""

    rollout: Rollout
    fleet: Fleet
    progress: Progress = Progress()


def decide_group(roles: Mapping[str, Role], *, now: datetime) -> dict[str, Verdict]:
    """One verdict per role.  When one role is refused, the others wait for it."""
    caps = lockstep(roles)
    verdicts = {
        name: decide(
            msgspec.structs.replace(role.rollout, at_most=caps[name]), role.fleet, progress=role.progress, now=now
        )
        for name, role in roles.items()
    }
    refused = [name for name, verdict in verdicts.items() if isinstance(verdict.decision, Blocked | RollBack)]
    if not refused:
        return verdicts
    held = {name: msgspec.structs.replace(role.rollout, paused=True) for name, role in roles.items()}
    because = Because(Code.WAITING_FOR_ROLES, f"role {', '.join(refused)} cannot go on, so the group holds")
    for name, role in roles.items():
        if name in refused:
            continue
        verdict = decide(held[name], role.fleet, progress=role.progress, now=now)
        # Losses and scaling are still answered; everything else waits for the group.
        if verdict.decision.because.code is Code.PAUSED:
            verdict = msgspec.structs.replace(verdict, decision=Wait(Side.NEW, 0, None, because))
        verdicts[name] = verdict
    return verdicts


def lockstep(roles: Mapping[str, Role]) -> dict[str, int]:
    """How many new replicas each role may have while the slowest is where it is."""
    paced = [role for role in roles.values() if role.rollout.limits.replicas > 0]
    # The slowest role's fraction of available new replicas, as a ratio of integers.
    done, total = min(
        ((min(role.fleet.new.available, role.rollout.limits.replicas), role.rollout.limits.replicas) for role in paced),
        key=lambda ratio: ratio[0] / ratio[1],
        default=(1, 1),
    )
    return {name: _cap(role, done, total) for name, role in roles.items()}


def _cap(role: Role, done: int, total: int) -> int:
    limits = role.rollout.limits
    even = -(-limits.replicas * done // total)
    step = max(1, limits.replicas - limits.floor, limits.surge)
    return min(limits.replicas, even + step)
