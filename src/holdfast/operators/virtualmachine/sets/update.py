"""The update of a VMSet: its revisions, its machines as replicas of the engine, and the engine's next step.  Pure.

A machine below the partition has the right revision whichever it is, so the engine leaves it alone.  A machine that
differs from the template by its class alone, or that is only to be restarted, is changed in place where the engine
stops it: it counts as stopped until it is ready again.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

import msgspec

from holdfast.kernel import floors
from holdfast.kernel.fleet import Fleet, Replica, Side
from holdfast.kernel.floors import Floor
from holdfast.kernel.limits import Limits, resolve
from holdfast.kernel.planning import parse_strategy
from holdfast.kernel.reasons import Because, Code
from holdfast.kernel.rollout import Progress, Rollout
from holdfast.kernel.stepping import Situation, Step, progressed, step
from holdfast.kernel.strategies import steps_of
from holdfast.kinds.model import FloorStatus
from holdfast.kinds.virtrigaud.sets import VMSetUpdateStatus, VMSetUpdateStrategyType
from holdfast.meta import times
from holdfast.operators.virtualmachine.sets.observe import Machine, World
from holdfast.operators.virtualmachine.sets.render import Template

SHARE: Final = "25%"
"""maxSurge and maxUnavailable where the spec leaves them out."""

PROGRESS_DEADLINE: Final = timedelta(minutes=30)


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What one reconciliation observed and decided.

    target   what the machines should be made from
    current  what the last complete update made them from, if that is known and is not the target
    settled  the target was rolled out completely before
    changes  the machines that the engine stops and that are changed in place instead
    deletes  the machines that it stops and that are deleted
    creates  the machines to create: the place, and what each is made from
    blocked  names of machines to create that other VirtualMachines have
    at       when the update last made progress; None: there is none
    """

    world: World
    target: Template
    current: Template | None
    settled: bool
    step: Step
    changes: tuple[Machine, ...] = ()
    deletes: tuple[Machine, ...] = ()
    creates: tuple[tuple[int, Template], ...] = ()
    blocked: tuple[str, ...] = ()
    at: datetime | None = None

    @property
    def fleet(self) -> Fleet:
        return self.step.fleet

    @property
    def limits(self) -> Limits:
        return self.step.rollout.limits

    @property
    def live(self) -> tuple[Machine, ...]:
        return tuple(each for each in self.world.machines if not each.object.deleting)

    @property
    def outdated(self) -> tuple[Machine, ...]:
        """The machines of other revisions that the update concerns."""
        return tuple(_concerned(self.world, self.target))

    @property
    def updated(self) -> tuple[Machine, ...]:
        revision = self.target.revision
        return tuple(each for each in self.live if each.revision == revision)

    @property
    def complete(self) -> bool:
        """Whether all machines have the revision of the template and are available."""
        return self.step.complete and len(self.updated) == len(self.live)

    @property
    def kept(self) -> VMSetUpdateStatus:
        """What the status keeps of this update; empty when it has just begun."""
        return kept(self.world, self.target)

    @property
    def floor(self) -> Floor:
        """The floor, with the most and the fewest machines that were available.

        A step without a floor, such as the first one of Recreate, stops machines on purpose.
        """
        known = self.world.before.floor or FloorStatus()
        before = Floor(most=known.most or 0, lowest=known.lowest)
        free = self.step.verdict.shape.floor < self.limits.floor
        return floors.observed(
            Floor() if free else before,
            limits=self.limits,
            available=self.fleet.available,
            afresh=self.world.before.update_revision != self.target.revision,
        )


def kept(world: World, target: Template) -> VMSetUpdateStatus:
    same = world.before.update_revision == target.revision
    return (world.before.update_status if same else None) or VMSetUpdateStatus()


def assess(world: World, now: datetime) -> Facts:
    """The facts of one reconciliation."""
    target = _recorded(world, Template.of(world.object.wire()))
    complete = world.records.get(world.before.current_revision or "")
    current = None if complete is None or complete.template == target else complete.template
    settled = world.before.current_revision == target.revision and not _concerned(world, target)
    limits = _limits(world, target)
    situation = Situation(
        rollout=_rollout(world, target, limits),
        replicas=_replicas(world, target, limits),
        now=now,
        progress=Progress(target.revision),
        min_ready=timedelta(seconds=world.spec.min_ready_seconds or 0),
        stable=None if current is None else current.revision,
    )
    at = None
    if not settled and not world.spec.paused:
        before = world.before
        at = progressed(
            situation,
            before=times.read(kept(world, target).progress_time),
            old_before=(before.replicas or 0) - (before.updated_replicas or 0),
        )
        situation = situation.since(at)
    taken = step(situation)
    stopped = set(taken.stops)
    stops = [each for each in world.machines if each.name in stopped]
    changes = tuple(each for each in stops if _changes_in_place(world, each, target))
    started = _started(world, taken, target, current)
    return Facts(
        world=world,
        target=target,
        current=current,
        settled=settled,
        step=taken,
        changes=changes,
        deletes=tuple(each for each in stops if each not in changes),
        creates=tuple(each for each in started if world.named(each[0]) not in world.taken),
        blocked=tuple(name for index, _ in started if (name := world.named(index)) in world.taken),
        at=at,
    )


def _recorded(world: World, asked: Template) -> Template:
    """The recorded template that equals `asked`, if there is one: a default that is new makes no new revision."""
    if asked.revision in world.records:
        return asked
    return next((each.template for each in world.records.values() if each.template.defaulted() == asked), asked)


# --- the limits, and what the engine is asked for


def _limits(world: World, target: Template) -> Limits:
    """The limits; where machines are only changed in place, none is created beside them unless the floor needs it."""
    asked, least = world.replicas, world.spec.min_available
    if world.strategy is not VMSetUpdateStrategyType.ROLLING_UPDATE:
        limits = resolve(asked, max_surge=0, max_unavailable="100%", min_available=least)
        if world.strategy is VMSetUpdateStrategyType.RECREATE and limits.floor:
            return _not_guaranteed(limits)
        return limits
    rolling = world.rolling
    surge = SHARE if rolling.max_surge is None else rolling.max_surge
    missing = SHARE if rolling.max_unavailable is None else rolling.max_unavailable
    if only_in_place(world, target):
        without = resolve(asked, max_surge=0, max_unavailable=missing, min_available=least)
        if without.feasible:
            return without
    # A percentage that rounds down to none must not keep machines from ever being replaced.
    rounded = least is None and missing not in (0, "0%")
    limits = resolve(asked, max_surge=surge, max_unavailable=missing, min_available=least, may_lower=rounded)
    # The surge is for updates: a machine that is lost is created again under its own name, when that is free.
    return limits if _surges(world, target) else msgspec.structs.replace(limits, surge=0)


def _not_guaranteed(limits: Limits) -> Limits:
    message = (
        f"Recreate deletes all machines first, so minAvailable cannot hold: {limits.floor:,} should stay available; "
        "use RollingUpdate to keep them"
    )
    warnings = (*limits.warnings, Because(Code.FLOOR_NOT_GUARANTEED, message))
    return msgspec.structs.replace(limits, warnings=warnings)


def _concerned(world: World, target: Template) -> list[Machine]:
    """The machines of other revisions that are to get the target."""
    revision = target.revision
    return [
        each
        for each in world.machines
        if not each.object.deleting and each.revision != revision and not _is_held(world, each)
    ]


def _surges(world: World, target: Template) -> bool:
    """Whether machines are being replaced, or machines of the surge are left."""
    places = (world.index(each) for each in world.machines if not each.object.deleting)
    return bool(_concerned(world, target)) or any(index is None or index >= world.replicas for index in places)


def only_in_place(world: World, target: Template) -> bool:
    """Whether every machine that the update concerns is changed in place."""
    concerned = _concerned(world, target)
    return bool(concerned) and all(_changes_in_place(world, each, target) for each in concerned)


def _rollout(world: World, target: Template, limits: Limits) -> Rollout:
    ordered = world.rolling.pod_management_policy != "Parallel" and world.strategy is not (
        VMSetUpdateStrategyType.RECREATE
    )
    seconds = world.spec.progress_deadline_seconds
    return Rollout(
        limits=limits,
        target=target.revision,
        steps=steps_of(parse_strategy(world.strategy.value)),
        ordered=ordered,
        # A name is in use until its machine is gone, and so is its room on the hypervisor.
        count_terminating=True,
        deadline=PROGRESS_DEADLINE if seconds is None else timedelta(seconds=seconds),
        paused=bool(world.spec.paused),
    )


# --- machines as replicas


def _is_held(world: World, machine: Machine) -> bool:
    """Whether the partition keeps its revision."""
    index = world.index(machine)
    return index is not None and index < min(world.partition, world.replicas)


def _replicas(world: World, target: Template, limits: Limits) -> tuple[Replica, ...]:
    """The machines; those of the surge have the places from the desired number on, and leave when none is outdated."""
    revision = target.revision
    places = limits.ceiling if _concerned(world, target) else limits.replicas

    def replica(machine: Machine) -> Replica:
        index = world.index(machine)
        return Replica(
            id=machine.name,
            revision=revision if _is_held(world, machine) else machine.revision,
            created_at=machine.created_at,
            ready_since=machine.ready_since,
            terminating=machine.object.deleting,
            leaving=index is None or index >= places,
            ordinal=index,
        )

    return tuple(map(replica, world.machines))


def _changes_in_place(world: World, machine: Machine, target: Template) -> bool:
    index, record = world.index(machine), world.records.get(machine.revision)
    stays = index is not None and index < world.replicas
    return stays and record is not None and machine.revision != target.revision and record.template.reaches(target)


def _started(world: World, taken: Step, target: Template, current: Template | None) -> list[tuple[int, Template]]:
    """The places of the machines to create, and what each is made from: below the partition, what was there before."""
    before = target if current is None else current
    free = _free(world, taken.starts(Side.NEW) + taken.starts(Side.OLD))
    old = bool(taken.starts(Side.OLD))
    held = min(world.partition, world.replicas)
    return [(index, before if old or index < held else target) for index in free]


def _free(world: World, number: int) -> list[int]:
    """The smallest places that no machine of the set has."""
    used = {world.index(each) for each in world.machines}
    found: list[int] = []
    index = 0
    while len(found) < number:
        if index not in used:
            found.append(index)
        index += 1
    return found
