"""What is said of a VMNetworkAttachment: on which providers it is available, who joins it, which addresses collide."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any, Final

from holdfast.kernel.conditions import Verdict
from holdfast.kinds.virtrigaud import Provider, VirtualMachine
from holdfast.kinds.virtrigaud.networks import NetworkAttachmentPhase
from holdfast.kinds.virtrigaud.providers import ProviderType
from holdfast.meta import times
from holdfast.operators.virtualmachine.machines.observe import key_of
from holdfast.operators.virtualmachine.networks.observe import World
from holdfast.operators.virtualmachine.reasons import NetworkReason, advised
from holdfast.runtime import status
from holdfast.runtime.decisions import Decision

_MOST: Final = 1000
"""How many addresses the status lists."""


def decide(world: World, now: datetime) -> Decision:
    missing = {label: problem for label, (_, each) in world.providers.items() if (problem := _problem(world, each))}
    available = sorted(world.providers.keys() - missing.keys())
    addresses = list(_addresses(world))
    conflicts = tuple(_conflicts(addresses))
    verdicts = _verdicts(missing, conflicts)
    ready = verdicts["Ready"].status.value == "True"
    fields = {
        "ready": ready,
        "phase": (NetworkAttachmentPhase.READY if ready else NetworkAttachmentPhase.FAILED).value,
        "message": verdicts["Ready"].message,
        "availableOn": available or None,
        "connectedVMs": len(world.machines),
        "ipAllocations": _allocations(world, addresses, now) or None,
        "providerStatus": {
            label: _on_provider(world, label, missing.get(label), now) for label in sorted(world.providers)
        }
        or None,
    }
    said, turned = status.report(
        world.object, verdicts, now=now, fields=fields, announced={("Ready", "False"): "Warning"}
    )
    return Decision(status=said, notices=turned)


def _problem(world: World, provider: Provider) -> str:
    """Why machines of a provider cannot join; empty if they can."""
    network, type = world.network.spec.network, provider.spec.type
    described = {
        ProviderType.VSPHERE: network.vsphere,
        ProviderType.PROXMOX: network.proxmox,
        ProviderType.LIBVIRT: network.libvirt,
        ProviderType.QEMU: network.libvirt,
        ProviderType.FIRECRACKER: network.libvirt,
    }
    if type in described and described[type] is None:
        field = "libvirt" if type in (ProviderType.QEMU, ProviderType.FIRECRACKER) else type.value
        return f"spec.network.{field} is not set, which providers of type {type.value} need"
    return ""


def _verdicts(missing: dict[str, str], conflicts: tuple[str, ...]) -> dict[str, Verdict]:
    configuring = Verdict.false(NetworkReason.NOT_CONFIGURING, "nothing is being configured")
    if conflicts:
        bad = Verdict.false(NetworkReason.CONFLICT, advised(NetworkReason.CONFLICT, "; ".join(conflicts)))
    elif missing:
        text = "; ".join(f"{label}: {problem}" for label, problem in sorted(missing.items()))
        bad = Verdict.false(NetworkReason.NO_CONFIGURATION, advised(NetworkReason.NO_CONFIGURATION, text))
    else:
        valid = Verdict.true(NetworkReason.VALID, "the description is complete, and no addresses collide")
        ready = Verdict.true(NetworkReason.READY, "machines can join the network")
        return {"Ready": ready, "Configuring": configuring, "Validated": valid}
    return {"Ready": bad, "Configuring": configuring, "Validated": bad}


def _addresses(world: World) -> Iterator[tuple[str, str, str | None]]:
    """The static addresses on the network: machine, address, hardware address."""
    for obj in world.machines:
        for card in obj.decode(VirtualMachine).spec.networks:
            joined = card.network_ref is not None and key_of(card.network_ref, obj.key) == world.object.key
            if joined and card.ip_address:
                same = obj.key.namespace == world.object.key.namespace
                name = obj.key.name if same else f"{obj.key.namespace}/{obj.key.name}"
                yield name, card.ip_address, card.mac_address


def _conflicts(addresses: list[tuple[str, str, str | None]]) -> Iterator[str]:
    by_address: dict[str, list[str]] = {}
    for name, address, _ in addresses:
        by_address.setdefault(address, []).append(name)
    for address, machines in sorted(by_address.items()):
        if len(machines) > 1:
            yield f"{' and '.join(machines[:3])} have the same address {address}"


def _allocations(world: World, addresses: list[tuple[str, str, str | None]], now: datetime) -> list[dict[str, Any]]:
    since = {(each.vm, each.ip): each.allocated_at for each in world.before.ip_allocations}
    return [
        {
            "vm": name,
            "ip": address,
            **({"mac": mac} if mac else {}),
            "allocatedAt": since.get((name, address)) or times.format(now),
        }
        for name, address, mac in addresses[:_MOST]
    ]


def _on_provider(world: World, label: str, problem: str | None, now: datetime) -> dict[str, Any]:
    before = world.before.provider_status.get(label)
    message = problem or "machines can join the network"
    same = before is not None and (before.available, before.message) == (problem is None, message)
    at = before.last_updated if before is not None and same else None
    return {
        "available": problem is None,
        "message": message,
        "state": "Failed" if problem else "Ready",
        "lastUpdated": at or times.format(now),
    }
