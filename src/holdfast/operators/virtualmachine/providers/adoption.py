"""Adoption: a VirtualMachine for each machine that was on the hypervisor before.

An annotation of the Provider asks for it, and another one says which machines (`filters`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

import msgspec

from holdfast.kinds.virtrigaud.machines import VirtualMachine
from holdfast.kinds.virtrigaud.providers import ProviderAdoptionStatus
from holdfast.meta import times
from holdfast.operators.virtualmachine import names
from holdfast.operators.virtualmachine.providers.filters import filter_of
from holdfast.operators.virtualmachine.providers.observe import World
from holdfast.operators.virtualmachine.reasons import ProviderReason, advised
from holdfast.operators.virtualmachine.resources import CLASSES, MACHINES
from holdfast.providers.contract import Listed
from holdfast.runtime.decisions import Create, Notice, Write

EVERY: Final = timedelta(hours=1)
"""How often a hypervisor is searched at least."""

SOONEST: Final = timedelta(minutes=5)
"""How often at most."""

_MOST: Final = 200
"""How many machines are adopted in one pass."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Adoption:
    """What is written for machines that are adopted, and what the status says of it."""

    writes: tuple[Write, ...] = ()
    status: ProviderAdoptionStatus | None = None
    notices: tuple[Notice, ...] = ()


def adopt(world: World, now: datetime) -> Adoption:
    """What is adopted in this pass; the status as it was where the hypervisor was not searched."""
    before = world.before.adoption
    annotations = world.object.meta.annotations
    if annotations.get(names.ADOPT) != "true":
        return Adoption()
    if world.answers is None or world.answers.error is not None:
        return Adoption(status=before)
    chosen = filter_of(annotations.get(names.ADOPT_FILTER, ""))
    if isinstance(chosen, str):
        message = advised(ProviderReason.INVALID_FILTER, chosen)
        failed = ProviderAdoptionStatus(message=message)
        if before is not None:
            failed = msgspec.structs.replace(before, message=message)
        notice = Notice(type="Warning", reason=ProviderReason.INVALID_FILTER.value, message=message)
        return Adoption(status=failed, notices=(notice,) if before is None or before.message != message else ())
    managed = set(_managed(world))
    found = [each for each in world.answers.machines if chosen.takes(each)]
    new = [each for each in found if each.id not in managed and each.name not in managed]
    last = times.read(before.last_discovery_time) if before else None
    if last is not None and now < last + (SOONEST if new else EVERY):
        return Adoption(status=before)
    writes = tuple(_writes(world, new[:_MOST]))
    status = ProviderAdoptionStatus(
        last_discovery_time=times.format(now),
        discovered_vms=len(world.answers.machines),
        adopted_vms=sum(each.id in managed for each in found) + len(new[:_MOST]),
        failed_adoptions=0,
        message=f"{len(new)} machines of {len(world.answers.machines)} are adopted now",
    )
    return Adoption(
        writes=writes,
        status=status,
        notices=tuple(
            Notice(reason=ProviderReason.ADOPTED.value, message=f"the machine {each.name} ({each.id}) is adopted")
            for each in new[:_MOST]
        ),
    )


def _managed(world: World) -> Iterator[str]:
    """The identifiers, and the names on the hypervisor, of the machines that are managed already."""
    for obj in world.machines:
        status = obj.decode(VirtualMachine).status
        yield names.machine(obj.key.name, obj.uid)
        for id in (status and status.id, obj.meta.annotations.get(names.ADOPT_ID)):
            if id:
                yield id


def _writes(world: World, machines: Iterable[Listed]) -> Iterator[Write]:
    namespace, taken = world.object.key.namespace, set(world.taken)
    classes = set(world.classes)
    for machine in machines:
        vm_class = f"adopted-{machine.cpus}cpu-{machine.memory_mib}mb"
        if vm_class not in classes:
            classes.add(vm_class)
            yield Create(
                because=f"the machine {machine.name} is adopted",
                resource=CLASSES,
                manifest=_class(namespace, vm_class, machine),
            )
        name = _name(machine, taken)
        taken.add(name)
        yield Create(
            because=f"the machine {machine.name} is adopted",
            resource=MACHINES,
            manifest=_machine(world, name, vm_class, machine),
            wave=1,
        )


def _name(machine: Listed, taken: set[str]) -> str:
    """A name for a VirtualMachine: that of the machine, as far as the API accepts it."""
    plain = re.sub(r"[^a-z0-9-]+", "-", machine.name.lower()).strip("-")[:50].strip("-") or "adopted"
    if plain not in taken:
        return plain
    tail = re.sub(r"[^a-z0-9]+", "-", machine.id.lower()).strip("-")
    return f"{plain}-{tail}"[:63].strip("-")


def _class(namespace: str, name: str, machine: Listed) -> dict[str, Any]:
    return {
        "apiVersion": CLASSES.api_version,
        "kind": CLASSES.kind,
        "metadata": {"name": name, "namespace": namespace, "labels": {names.ADOPTED: "true"}},
        "spec": {"cpu": max(machine.cpus, 1), "memory": f"{max(machine.memory_mib, 1)}Mi"},
    }


def _machine(world: World, name: str, vm_class: str, machine: Listed) -> dict[str, Any]:
    disk = machine.disks[0].id if machine.disks else machine.id
    return {
        "apiVersion": MACHINES.api_version,
        "kind": MACHINES.kind,
        "metadata": {
            "name": name,
            "namespace": world.object.key.namespace,
            "labels": {names.ADOPTED: "true"},
            "annotations": {names.ADOPT_ID: machine.id},
        },
        "spec": {
            "providerRef": {"name": world.object.key.name},
            "classRef": {"name": vm_class},
            "importedDisk": {"diskID": disk, "source": "manual"},
            # As it is: a machine is neither started nor stopped because it is adopted.
            "powerState": "Off" if machine.power.lower() == "off" else "On",
        },
    }
