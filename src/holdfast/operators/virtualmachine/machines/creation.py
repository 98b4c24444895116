"""The creation of a machine, and what it waits for: its image, and a host.  Pure."""

from __future__ import annotations

from holdfast.kinds.virtrigaud.machines import OperationType
from holdfast.operators.virtualmachine import names
from holdfast.operators.virtualmachine.machines import render
from holdfast.operators.virtualmachine.machines.facts import CPU, DISK, MEMORY, REQUEST, Facts
from holdfast.operators.virtualmachine.machines.guest_data import MissingKey
from holdfast.operators.virtualmachine.machines.steps import Call, Step, calls, fails, waits
from holdfast.operators.virtualmachine.placement import demand
from holdfast.operators.virtualmachine.placement.waiting import awaited
from holdfast.operators.virtualmachine.reasons import MachineReason


def absent(facts: Facts) -> Step | None:
    world = facts.world
    if facts.exists:
        return None
    if not world.id and world.object.meta.labels.get(names.ADOPTED) == "true":
        return waits(facts, MachineReason.WAITING_FOR_ADOPTION, "the machine to adopt is not known yet")
    drift = facts.drift
    if drift and world.machine.spec.drift_policy == "Report":
        return fails(facts, MachineReason.DRIFTED, drift)
    waiting = _image(facts) or _place(facts)
    if waiting is not None:
        return waiting
    try:
        machine = render.machine(world)
    except MissingKey as error:
        return fails(facts, MachineReason.NO_CLOUD_INIT_KEY, str(error))
    details = {f"{DISK}{disk.name}": str(disk.size_gib) for disk in machine.disks if disk.name != render.ROOT}
    details |= {CPU: str(machine.cpus), MEMORY: str(machine.memory_mib)}
    request = world.object.meta.annotations.get(names.REBOOT)
    if request:
        # A machine that is new need not be rebooted.
        details[REQUEST] = request
    return calls(facts, Call(type=OperationType.CREATE, machine=machine, details=details))


def _image(facts: Facts) -> Step | None:
    """What a machine waits for until its image is on the provider."""
    world = facts.world
    if world.image is None or world.provider is None:
        return None
    obj, image = world.image
    name, kind = world.provider[0].key.name, world.provider[1].spec.type
    source = render.source_of(image.spec, kind)
    if source is None:
        path = f"VMImage {obj.key.name} has no source for a provider of type {kind.value}"
        return fails(facts, MachineReason.INVALID_SPEC, f"spec.imageRef: {path}")
    if not render.needs_import(source) or world.capabilities.supports_image_import is False:
        return None
    found = world.image_on_provider
    if found is not None and found.available:
        return None
    missing = image.spec.prepare.on_missing if image.spec.prepare else None
    said = f": {found.message}" if found is not None and found.message else ""
    message = f"VMImage {obj.key.name} is not on provider {name}{said}"
    if missing == "Fail":
        return fails(facts, MachineReason.IMAGE_MISSING, message)
    return waits(facts, MachineReason.WAITING_FOR_IMAGE, message)


def _place(facts: Facts) -> Step | None:
    """What a machine waits for until its VMPlacementPolicy has chosen a host."""
    world = facts.world
    if world.policy is None or not demand.needs_place(world.object, world.machine):
        return None
    return waits(facts, *awaited(world.policy[1], world.policy[0].key.name, world.before.placement))
