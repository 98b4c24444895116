"""Domains of libvirt: their type, power state and addresses, and how they are shut down.  Runs in threads."""

from __future__ import annotations

import time
from typing import Any, Final

import libvirt

POWER: Final = {
    libvirt.VIR_DOMAIN_RUNNING: "On",
    libvirt.VIR_DOMAIN_BLOCKED: "On",
    libvirt.VIR_DOMAIN_PAUSED: "Paused",
    libvirt.VIR_DOMAIN_SHUTDOWN: "On",
    libvirt.VIR_DOMAIN_SHUTOFF: "Off",
    libvirt.VIR_DOMAIN_CRASHED: "Off",
    libvirt.VIR_DOMAIN_PMSUSPENDED: "Suspended",
}


def domain_type(connection: Any) -> str:
    """The type of domains of a connection."""
    if connection.getType() == "TEST":
        return "test"
    return "kvm" if "<domain type='kvm'" in connection.getCapabilities() else "qemu"


def addresses(domain: Any) -> tuple[str, ...]:
    """The addresses that the agent or the leases of the networks know."""
    if not domain.isActive():
        return ()
    for source in (
        libvirt.VIR_DOMAIN_INTERFACE_ADDRESSES_SRC_AGENT,
        libvirt.VIR_DOMAIN_INTERFACE_ADDRESSES_SRC_LEASE,
    ):
        try:
            found = domain.interfaceAddresses(source) or {}
        except libvirt.libvirtError:
            continue
        ips = tuple(
            address["addr"]
            for name, interface in found.items()
            if name != "lo"
            for address in interface.get("addrs") or ()
            if not address["addr"].startswith("fe80:")
        )
        if ips:
            return ips
    return ()


def shut_down(domain: Any, seconds: float) -> dict[str, str]:
    """Ask the guest to shut down; switch it off if it has not after a while.  Runs in a thread."""
    if domain.isActive():
        domain.shutdown()
    ending = time.monotonic() + seconds
    while domain.isActive() and time.monotonic() < ending:
        time.sleep(0.2)  # events of libvirt need a loop of their own, and this runs in a thread
    if domain.isActive():
        domain.destroy()
    return {}
