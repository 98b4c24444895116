"""The hardware of a machine: what differs from the spec, and whether it can be changed while the machine runs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from holdfast.kinds.virtrigaud.machines import OperationType, PowerState
from holdfast.operators.virtualmachine.machines import render
from holdfast.operators.virtualmachine.machines.facts import CPU, DISK, MEMORY, Facts
from holdfast.operators.virtualmachine.reasons import MachineReason
from holdfast.providers.contract import Change, Disk

_NOT_ONLINE: Final = frozenset({MachineReason.UNSUPPORTED, MachineReason.CONFLICT})
"""How providers refuse a change of a running machine that they could make if it were off."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """What differs between a machine and its spec.

    online   what can be changed as the machine is now
    restart  what can be changed only if the machine is stopped for it, and why, in sentences
    offline  the changes of `restart`
    kept     what is never done, in sentences
    refused  what the spec must not ask for, in sentences with JSON paths
    """

    online: Change | None = None
    offline: Change | None = None
    restart: tuple[str, ...] = ()
    kept: tuple[str, ...] = ()
    refused: tuple[str, ...] = ()


def difference(facts: Facts) -> Difference:
    """What differs, of a machine that exists."""
    online: dict[str, int] = {}
    offline: dict[str, int] = {}
    restart: list[str] = []
    for name, what, have, want in _sizes(facts):
        why = _needs_restart(facts, grows=want > have)
        (offline if why else online)[name] = want
        if why:
            restart.append(f"{what} {have} -> {want}: {why}")
    added_online: list[Disk] = []
    added_offline: list[Disk] = []
    for disk, have, grows_online in _disks(facts):
        why = _disk_needs_restart(facts, is_new=have == 0, grows_online=grows_online)
        (added_offline if why else added_online).append(disk)
        if why:
            restart.append(f"disk {disk.name} {have} -> {disk.size_gib} GiB: {why}")
    return Difference(
        online=_change(online, added_online),
        offline=_change(offline, added_offline, offline=True),
        restart=tuple(restart),
        kept=tuple(_kept(facts)),
        refused=tuple(_shrunk(facts)),
    )


def details(change: Change) -> dict[str, str]:
    """What a change brings about, as an operation records it."""
    found = {f"{DISK}{disk.name}": str(disk.size_gib) for disk in change.disks}
    if change.cpus is not None:
        found[CPU] = str(change.cpus)
    if change.memory_mib is not None:
        found[MEMORY] = str(change.memory_mib)
    return found


def _change(sizes: dict[str, int], disks: list[Disk], *, offline: bool = False) -> Change | None:
    if not sizes and not disks:
        return None
    return Change(cpus=sizes.get(CPU), memory_mib=sizes.get(MEMORY), disks=tuple(disks), offline=offline)


def _sizes(facts: Facts) -> Iterator[tuple[str, str, int, int]]:
    have, want = facts.size, render.size(facts.world)
    if have is None:
        return
    if have.cpus != want.cpus:
        yield CPU, "CPUs", have.cpus, want.cpus
    if have.memory_mib != want.memory_mib:
        yield MEMORY, "memory in MiB", have.memory_mib, want.memory_mib


def _needs_restart(facts: Facts, *, grows: bool) -> str:
    """Why processors or memory cannot be changed as the machine is; empty if they can."""
    if facts.power is PowerState.OFF:
        return ""
    if not facts.world.capabilities.supports_reconfigure_online:
        return "the provider changes only machines that are off"
    if not grows:
        return "a running machine cannot get less"
    return _refused_online(facts)


def _disk_needs_restart(facts: Facts, *, is_new: bool, grows_online: bool) -> str:
    if facts.power is PowerState.OFF:
        return ""
    if is_new:
        able = facts.world.capabilities.supports_reconfigure_online
        return _refused_online(facts) if able else "the provider changes only machines that are off"
    if not grows_online:
        return "its expandPolicy is Offline"
    if not facts.world.capabilities.supports_disk_expansion_online:
        return "the provider grows only disks of machines that are off"
    return _refused_online(facts)


def _refused_online(facts: Facts) -> str:
    failed = facts.failed
    if failed is None or failed.type is not OperationType.RECONFIGURE or failed.reason not in _NOT_ONLINE:
        return ""
    return f"the provider refused it while the machine runs ({failed.message})"


def _disks(facts: Facts) -> Iterator[tuple[Disk, int, bool]]:
    """Disks to add and to grow, each with the size that it has, and whether it may grow under a running machine."""
    for spec in facts.world.machine.spec.disks:
        have = facts.disks.get(spec.name, 0)
        if spec.size_gib > have:
            yield render.disk(spec), have, spec.expand_policy == "Online"


def _shrunk(facts: Facts) -> Iterator[str]:
    for number, spec in enumerate(facts.world.machine.spec.disks):
        have = facts.disks.get(spec.name, 0)
        if spec.size_gib < have:
            yield (
                f"spec.disks[{number}].sizeGiB: disk {spec.name} has {have} GiB and cannot shrink to "
                f"{spec.size_gib} GiB; write {have} or more"
            )


def _kept(facts: Facts) -> Iterator[str]:
    own = facts.world.machine.spec.resources
    if own is not None and own.gpu is not None:
        yield "spec.resources.gpu: providers do not pass graphics processors through yet"
    wanted = {spec.name for spec in facts.world.machine.spec.disks}
    for name, size in facts.disks.items():
        if name not in wanted:
            yield f"disk {name} of {size} GiB is no longer in spec.disks; it is kept with its data"
