"""The VirtualMachine that a clone has become: until it is ready, and the commands in its guest have run.  Pure."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import Any, Final

import msgspec

from holdfast.kernel.reasons import Reason
from holdfast.kinds.virtrigaud.clones import (
    ClonePhase,
    CloneProgress,
    CustomizationStatus,
    GuestCommand,
    VMCustomization,
)
from holdfast.kinds.virtrigaud.machines import VirtualMachinePhase, VirtualMachineStatus
from holdfast.kinds.virtrigaud.references import LocalObjectReference
from holdfast.meta import times
from holdfast.operators.virtualmachine.clones.creation import failing
from holdfast.operators.virtualmachine.clones.observe import World
from holdfast.operators.virtualmachine.clones.steps import Call, Step, failed, fails, recorded, step
from holdfast.operators.virtualmachine.machines.observe import is_true
from holdfast.operators.virtualmachine.reasons import CloneReason

_STAGES: Final = ("pre-customization", "post-customization", "first-boot")
_COMMAND: Final = "guestCommands["
_COMMANDS_RUN: Final = "commands run in the guest"


def completed(world: World, now: datetime) -> Step | None:
    if world.before.phase is not ClonePhase.READY:
        return None
    return step(world, ClonePhase.READY, CloneReason.COMPLETED, "the machine is made")


def made(world: World, now: datetime) -> Step | None:
    """The VMClone has made the VirtualMachine: it must become ready, then the commands run in its guest."""
    if world.machine is None:
        return _deleted(world)
    obj, machine = world.machine
    bound, status = _bound(world), machine.status or VirtualMachineStatus()
    if not is_true(obj, "Ready") or status.observed_generation != obj.meta.generation:
        return _not_ready(bound, obj.key.name, status)
    if commands(bound) and status.phase is VirtualMachinePhase.RUNNING:
        return _customizes(bound, status, now)
    return _done(bound, now)


def _deleted(world: World) -> Step | None:
    if world.before.target_ref is None:
        return None
    message = f"VirtualMachine {world.before.target_ref.name} was deleted before the clone was ready"
    return fails(world, CloneReason.TARGET_DELETED, message)


def _not_ready(world: World, name: str, status: VirtualMachineStatus) -> Step:
    message = f"VirtualMachine {name}: {status.message or 'it has no status yet'}"
    if world.from_image and not status.id:
        share = status.operation.percentage if status.operation else None
        if share is not None:
            world = world.having(progress=CloneProgress(overall_percentage=share))
        return step(world, ClonePhase.CLONING, CloneReason.CLONING, message)
    if world.options.power_on:
        return step(world, ClonePhase.POWERING_ON, CloneReason.POWERING_ON, message)
    return step(world, ClonePhase.CUSTOMIZING, CloneReason.CUSTOMIZING, message)


def _bound(world: World) -> World:
    """The world of a clone that has become a VirtualMachine: its status refers to that."""
    before, custom = world.before, world.clone.spec.customization
    customization = before.customization_status
    if customization is None and custom is not None:
        given = {
            "hostname": custom.hostname or custom.domain,
            "networks": custom.networks,
            "userData": custom.user_data,
            "tags": custom.tags,
        }
        done = tuple(name for name, value in given.items() if value)
        customization = CustomizationStatus(started=True, completed=False, completed_steps=done)
    return world.having(
        target_ref=LocalObjectReference(name=world.clone.spec.target.name),
        actual_clone_type=before.actual_clone_type or world.type,
        task_ref=None,
        customization_status=customization,
    )


def _done(world: World, now: datetime) -> Step:
    if world.before.customization_status is not None:
        world = _customized(world, current_step=None, completed=True)
    after = world.having(completion_time=times.format(now), progress=CloneProgress(overall_percentage=100), failed=None)
    return step(after, ClonePhase.READY, CloneReason.COMPLETED, "the machine is made")


# --- commands in the guest


def commands(world: World) -> tuple[GuestCommand, ...]:
    """The commands that have not run yet, by stage."""
    custom = world.clone.spec.customization or VMCustomization()
    ordered = sorted(custom.guest_commands, key=lambda each: _STAGES.index(each.stage or "post-customization"))
    return tuple(ordered[_run(world) :])


def _customizes(world: World, status: VirtualMachineStatus, now: datetime) -> Step:
    after = _customized(world, current_step=_next_command(world), completed=False)
    if not status.ips:
        message = "commands wait until the guest reports an address"
        return step(after, ClonePhase.CUSTOMIZING, CloneReason.CUSTOMIZING, message)
    found = step(after, ClonePhase.CUSTOMIZING, CloneReason.CUSTOMIZING, _COMMANDS_RUN)
    return failing(after, now) or replace(found, call=Call.COMMAND)


def ran(world: World, now: datetime) -> Step:
    """One more command has run."""
    world = _bound(world)
    steps = (*_customization(world).completed_steps, _next_command(world))
    after = _customized(world, completed_steps=steps, failed_steps=(), message=None).having(failed=None)
    if not commands(after):
        return _done(after, now)
    return recorded(after, ClonePhase.CUSTOMIZING, CloneReason.CUSTOMIZING, _COMMANDS_RUN)


def command_failed(world: World, reason: Reason, message: str, now: datetime) -> Step:
    """The next command has failed."""
    world = _bound(world)
    after = _customized(world, failed_steps=(_next_command(world),), message=message)
    return failed(after, reason, message, now)


def _run(world: World) -> int:
    """How many commands have run."""
    return sum(each.startswith(_COMMAND) for each in _customization(world).completed_steps)


def _next_command(world: World) -> str:
    return f"{_COMMAND}{_run(world)}]"


def _customization(world: World) -> CustomizationStatus:
    return world.before.customization_status or CustomizationStatus(started=True)


def _customized(world: World, **fields: Any) -> World:
    return world.having(customization_status=msgspec.structs.replace(_customization(world), **fields))
