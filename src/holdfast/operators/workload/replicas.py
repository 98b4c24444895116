"""The replicas of a Workload as the engine sees them: from pods to `kernel.fleet.Replica`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Final

import msgspec

from holdfast.kernel.fleet import Replica
from holdfast.kinds.cloudless.containers import RestartPolicy
from holdfast.operators.workload.members import Member
from holdfast.operators.workload.observe import World
from holdfast.operators.workload.validate import duration

RESTART_BACKOFF: Final = "10s"


@dataclass(frozen=True, slots=True, kw_only=True)
class Replicas:
    """
    all         every replica
    broken      how many should serve and do not: they failed, or were ready before
    replace_at  when the next replica that ended is replaced; None: no replica waits for that
    """

    all: tuple[Replica, ...]
    broken: int
    replace_at: datetime | None


def replicas(world: World, *, stable: str | None, now: datetime) -> Replicas:
    """The replicas now; `stable` is the revision that was rolled out completely, if it is being replaced."""
    policy = world.workload.spec.restart_policy or RestartPolicy()
    ended = {each.replica.id: _replace_at(each, policy) for each in world.idle if _has_ended(each, policy)}
    lost = {each.replica.id for each in world.idle if _was_ready(each, stable)}
    return Replicas(
        all=tuple(_present(world, dead=frozenset(name for name, moment in ended.items() if moment <= now))),
        broken=len(ended.keys() | lost),
        replace_at=min((moment for moment in ended.values() if moment > now), default=None),
    )


def _present(world: World, *, dead: frozenset[str]) -> Iterable[Replica]:
    """The replicas, with what their own pods do not say."""
    found = [each.replica for each in world.members]
    cordoned, sighted = world.cordoned, world.sighted
    if not (dead or cordoned or sighted):
        return found
    return (
        msgspec.structs.replace(
            each,
            ready_since=sighted.get(of.meta.uid) or each.ready_since,
            dead=each.id in dead,
            leaving=each.node in cordoned,
        )
        for of, each in zip(world.members, found, strict=True)
    )


def _has_ended(member: Member, policy: RestartPolicy) -> bool:
    """Whether its containers are not restarted any more, or were restarted more often than maxRetries."""
    retries, restarts = policy.max_retries, member.replica.restarts
    exhausted = retries is not None and restarts > retries and not member.ready
    return not member.replica.terminating and (member.finished or exhausted)


def _replace_at(member: Member, policy: RestartPolicy) -> datetime:
    """When a replica that ended is replaced: at once, unless it is younger than the backoff."""
    return member.replica.created_at + duration(policy.backoff or RESTART_BACKOFF)


def _was_ready(member: Member, stable: str | None) -> bool:
    """Whether a replica that is not ready was ready before: it restarted, or its revision was rolled out completely."""
    replica = member.replica
    return replica.ready_since is None and member.active and (replica.restarts > 0 or replica.revision == stable)
