"""What is done for a Provider next: the objects of its process, health by its answers, adoption, and its status.

Health changes with checks alone, one in each interval, and by thresholds.  What the hypervisor reports is written
with a check, so that machines that come and go between two checks cost the Provider nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from holdfast.kernel.outcomes import Again, Done, Failure, Outcome, soonest, until
from holdfast.kinds.virtrigaud.machines import VirtualMachine, VirtualMachineStatus
from holdfast.kinds.virtrigaud.providers import ProviderProbes
from holdfast.meta import durations, times
from holdfast.meta.objects import Key
from holdfast.operators.virtualmachine.providers import adoption, render
from holdfast.operators.virtualmachine.providers.observe import World, endpoint
from holdfast.operators.virtualmachine.providers.status import Health, report
from holdfast.operators.virtualmachine.settings import Settings
from holdfast.providers.contract import Listed
from holdfast.runtime.controllers import Signals
from holdfast.runtime.decisions import Decision

FINALIZER: Final = "provider.infra.virtrigaud.io/finalizer"

_UNCHECKED: Final = timedelta(hours=1)
"""How often a Provider is looked at whose health is not checked."""


def decide(world: World, now: datetime, *, settings: Settings) -> Decision:
    health = checked(world, now)
    adopted = adoption.adopt(world, now)
    status, notices = report(world, health, now, adoption=adopted.status, settings=settings)
    return Decision(
        children=render.children(world, settings),
        writes=(*adopted.writes, *((shared,) if (shared := render.shared_claim(world, settings)) else ())),
        status=status,
        notices=(*adopted.notices, *notices),
        outcome=_next(world, health, now),
    )


def cleanup(world: World, now: datetime, *, settings: Settings) -> Decision:
    """Keep the process until its machines are gone, and disks of migrations: they are deleted through it."""
    if not world.is_needed:
        return Decision(finalized=True)
    health = checked(world, now)
    status, notices = report(world, health, now, adoption=world.before.adoption, settings=settings)
    return Decision(
        children=render.children(world, settings),
        status=status,
        notices=notices,
        outcome=Again(timedelta(seconds=30), "machines are still on the provider"),
    )


def explain(world: World, failure: Failure, now: datetime, *, settings: Settings) -> dict[str, object]:
    """The status of a pass that failed, such as one whose objects were refused."""
    status, _ = report(
        world, checked(world, now), now, adoption=world.before.adoption, settings=settings, failure=failure
    )
    return status


# --- health


def checked(world: World, now: datetime) -> Health:
    """The health by this pass: a check, where one is due, or as it was."""
    before, check = world.before, world.provider.spec.health_check
    if world.answers is None:
        return Health(healthy=False, counted=False, last=before.last_health_check)
    if check is not None and check.enabled is False:
        error = world.answers.error
        return Health(healthy=error is None, counted=_is_due(world, now), last=before.last_health_check, error=error)
    if not _is_due(world, now):
        return Health(healthy=bool(before.healthy), counted=False, last=before.last_health_check, probes=before.probes)
    failures_needed = (check.failure_threshold if check else None) or 3
    successes_needed = (check.success_threshold if check else None) or 1
    probes = before.probes or ProviderProbes()
    error = world.answers.error
    if error is not None:
        failures = min((probes.failures or 0) + 1, failures_needed)
        healthy = bool(before.healthy) and failures < failures_needed
        return Health(
            healthy=healthy,
            counted=True,
            last=times.format(now),
            probes=ProviderProbes(failures=failures),
            error=error,
            needed=failures_needed,
        )
    successes = (probes.successes or 0) + 1
    healthy = bool(before.healthy) or successes >= successes_needed
    left = None if healthy else ProviderProbes(successes=successes)
    return Health(healthy=healthy, counted=True, last=times.format(now), probes=left, needed=successes_needed)


def _is_due(world: World, now: datetime) -> bool:
    """Whether a check counts: after the interval, at once for a new process, and for a spec that was changed."""
    before = world.before
    last = times.read(before.last_health_check)
    moved = before.runtime is None or before.runtime.endpoint != endpoint(world)
    changed = before.observed_generation != world.object.meta.generation
    return last is None or moved or changed or now >= last + interval(world)


def interval(world: World) -> timedelta:
    check = world.provider.spec.health_check
    if check is not None and check.enabled is False:
        return _UNCHECKED
    return max(durations.parse((check.interval if check else None) or "30s"), timedelta(seconds=1))


def _next(world: World, health: Health, now: datetime) -> Outcome:
    if world.answers is None:
        # The pods of the process bring the Provider when they change.
        return Done()
    last = times.read(health.last) or now
    wait = until(last + interval(world), now=now, because="the next health check is due")
    return soonest((wait,))


# --- machines that changed


@dataclass(frozen=True, slots=True)
class Change:
    """A machine that is no longer as its status says."""

    key: Key
    what: str


def changes(world: World) -> tuple[Change, ...]:
    """The machines that differ from what their status says, by the list of the hypervisor."""
    if world.answers is None or world.answers.error is not None:
        return ()
    listed = {each.id: each for each in world.answers.machines}
    found = []
    for obj in world.machines:
        status = obj.decode(VirtualMachine).status
        if status is None or not status.id or status.operation is not None:
            continue
        what = _difference(status, listed.get(status.id))
        if what:
            found.append(Change(obj.key, what))
    return tuple(found)


def _difference(status: VirtualMachineStatus, listed: Listed | None) -> str:
    if listed is None:
        return "it is gone"
    if status.power_state is not None and listed.power and status.power_state.value.lower() != listed.power.lower():
        return f"it is {listed.power}"
    if listed.ips and tuple(listed.ips) != tuple(status.ips):
        return "its addresses changed"
    size = status.current_resources
    if (
        size is not None
        and listed.cpus
        and listed.memory_mib
        and (size.cpu, size.memory_mib)
        != (
            listed.cpus,
            listed.memory_mib,
        )
    ):
        return f"it has {listed.cpus} CPUs and {listed.memory_mib} MiB"
    return ""


async def act(world: World, decision: Decision, *, signals: Signals) -> Decision:
    """Have machines looked at that changed on the hypervisor."""
    for change in changes(world):
        signals.send(change.key)
    return decision
