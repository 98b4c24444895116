"""Problems of a VirtualMachine that its schema does not find: durations out of range, and network cards.  Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import timedelta
from ipaddress import IPv4Address, IPv4Network, ip_address
from typing import Final

from holdfast.kinds import Problem
from holdfast.kinds.virtrigaud import VirtualMachine
from holdfast.kinds.virtrigaud.devices import VMNetworkRef
from holdfast.kinds.virtrigaud.machines import ReconfigurePolicy, VirtualMachineSpec
from holdfast.meta import durations
from holdfast.meta.durations import DurationError

_WEEK: Final = timedelta(days=7)
_ALONE: Final = 30
"""The longest prefix of a network in which there is room for a gateway."""


def problems(machine: VirtualMachine) -> tuple[Problem, ...]:
    """All problems of a spec."""
    return spec_problems("spec", machine.spec)


def spec_problems(at: str, spec: VirtualMachineSpec) -> tuple[Problem, ...]:
    """The problems of the spec of a machine at a path; a template has one too."""
    return (*cards(f"{at}.networks", spec.networks), *unreadable(at, spec))


def unreadable(at: str, spec: VirtualMachineSpec) -> tuple[Problem, ...]:
    """The durations that are out of range: with these nothing can be done to a machine that exists either."""
    timeout = spec.lifecycle.graceful_shutdown_timeout if spec.lifecycle else None
    return (
        *_windows(f"{at}.reconfigure.windows", spec.reconfigure or ReconfigurePolicy()),
        *out_of_range(f"{at}.lifecycle.gracefulShutdownTimeout", timeout),
    )


def out_of_range(path: str, text: str | None) -> Iterator[Problem]:
    """A duration of the right form that is too long for one."""
    try:
        durations.parse(text or "0")
    except DurationError as error:
        yield Problem(path, str(error))


def _windows(at: str, policy: ReconfigurePolicy) -> Iterator[Problem]:
    for n, window in enumerate(policy.windows):
        path = f"{at}[{n}].duration"
        found = tuple(out_of_range(path, window.duration))
        yield from found
        if not found and not timedelta() < durations.parse(window.duration) <= _WEEK:
            message = f"a window is open for more than 0s and at most 168h (a week), and not for {window.duration}"
            yield Problem(path, message, "write a duration such as 2h")


def cards(at: str, networks: Sequence[VMNetworkRef]) -> Iterator[Problem]:
    """The problems of network cards: addresses that two cards have, and gateways that a card cannot reach."""
    addresses: dict[str, str] = {}
    for n, card in enumerate(networks):
        path = f"{at}[{n}]"
        for field, value in (("ipAddress", card.ip_address), ("macAddress", card.mac_address)):
            same = value.lower().replace("-", ":") if value else ""
            if same in addresses:
                yield Problem(f"{path}.{field}", f"{value} is also the address of {addresses[same]}", "write another")
            elif same:
                addresses[same] = path
        yield from _gateway(path, card)
        for server in filter(None, (card.dns or "").split(",")):
            if not is_address(server.strip()):
                message = f"{server.strip()!r} is not an IP address"
                yield Problem(f"{path}.dns", message, "write addresses separated by commas, such as 10.0.0.2,10.0.0.3")


def _gateway(path: str, card: VMNetworkRef) -> Iterator[Problem]:
    """The gateway of a static address must be in the network of the address, unless the card is alone in it."""
    if not card.ip_address or not card.gateway or not card.prefix or card.prefix > _ALONE:
        return
    try:
        network, gateway = IPv4Network((card.ip_address, card.prefix), strict=False), IPv4Address(card.gateway)
    except ValueError:
        # An octet with a leading zero, which the schema accepts: the provider decides.
        return
    if gateway not in network:
        message = f"{card.gateway} is not in {network}, the network of ipAddress and prefix"
        yield Problem(f"{path}.gateway", message, "write an address of that network, or correct prefix")


def is_address(text: str) -> bool:
    try:
        ip_address(text)
    except ValueError:
        return False
    return True
