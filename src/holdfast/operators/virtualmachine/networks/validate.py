"""Problems of a VMNetworkAttachment that its schema does not find: VLANs, addresses, the firewall.  Pure."""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import IPv4Address, IPv4Interface, ip_network

from holdfast.kinds import Problem
from holdfast.kinds.virtrigaud import VMNetworkAttachment
from holdfast.kinds.virtrigaud.networks import (
    DNSConfig,
    FirewallConfig,
    NetworkIsolationConfig,
    NetworkSecurityConfig,
    StaticIPConfig,
    VLANConfig,
    VSphereNetworkConfig,
)
from holdfast.operators.virtualmachine.machines.validate import is_address


def problems(network: VMNetworkAttachment) -> tuple[Problem, ...]:
    """All problems of a spec."""
    spec = network.spec
    vsphere, security = spec.network.vsphere or VSphereNetworkConfig(), spec.security or NetworkSecurityConfig()
    addresses = spec.ip_allocation
    return (
        *_vlan("spec.network.vsphere.vlan", vsphere.vlan or VLANConfig()),
        *_shaping("spec.network.vsphere.trafficShaping", vsphere),
        *_static("spec.ipAllocation.staticConfig", addresses.static_config if addresses else None),
        *_dns("spec.ipAllocation.dnsConfig", (addresses.dns_config if addresses else None) or DNSConfig()),
        *_firewall("spec.security.firewall", security.firewall or FirewallConfig()),
        *_isolation("spec.security.isolation", security.isolation or NetworkIsolationConfig()),
    )


def _vlan(at: str, vlan: VLANConfig) -> Iterator[Problem]:
    needed: dict[str, dict[str, object]] = {
        "vlan": {"vlanID": vlan.vlan_id},
        "trunk": {"trunkVlanIDs": vlan.trunk_vlan_ids},
        "pvlan": {"primaryVlanID": vlan.primary_vlan_id, "secondaryVlanID": vlan.secondary_vlan_id},
    }
    for name, value in needed.get(vlan.type or "none", {}).items():
        if not value:
            yield Problem(f"{at}.{name}", f"type {vlan.type} needs {name}", "add it")


def _shaping(at: str, vsphere: VSphereNetworkConfig) -> Iterator[Problem]:
    shaping = vsphere.traffic_shaping
    average, peak = (shaping.average_bandwidth, shaping.peak_bandwidth) if shaping else (None, None)
    if average and peak and peak < average:
        message = f"{peak} bits a second at most is less than averageBandwidth, {average}"
        yield Problem(f"{at}.peakBandwidth", message, "write a larger peak, or a smaller average")


def _static(at: str, static: StaticIPConfig | None) -> Iterator[Problem]:
    if static is None or not static.gateway:
        return
    try:
        network, gateway = IPv4Interface(static.address).network, IPv4Address(static.gateway)
    except ValueError:
        # An octet with a leading zero, which the schema accepts: the provider decides.
        return
    if gateway not in network and network.prefixlen < network.max_prefixlen - 1:
        message = f"{gateway} is not in {network}, the network of address"
        yield Problem(f"{at}.gateway", message, "write an address of that network, or correct the prefix of address")


def _dns(at: str, dns: DNSConfig) -> Iterator[Problem]:
    for n, server in enumerate(dns.servers):
        if not is_address(server):
            yield Problem(f"{at}.servers[{n}]", f"{server!r} is not an IP address", "write one such as 10.0.0.2")


def _firewall(at: str, firewall: FirewallConfig) -> Iterator[Problem]:
    for n, rule in enumerate(firewall.rules):
        path = f"{at}.rules[{n}]"
        yield from _network(f"{path}.sourceCIDR", rule.source_cidr)
        yield from _network(f"{path}.destinationCIDR", rule.destination_cidr)
        if rule.ports is not None and rule.protocol not in ("tcp", "udp"):
            message = f"ports need protocol tcp or udp, and not {rule.protocol or 'all'}"
            yield Problem(f"{path}.ports", message, "write protocol: tcp, or remove ports")


def _isolation(at: str, isolation: NetworkIsolationConfig) -> Iterator[Problem]:
    for n, network in enumerate(isolation.allowed_networks):
        yield from _network(f"{at}.allowedNetworks[{n}]", network)
    for n, network in enumerate(isolation.denied_networks):
        yield from _network(f"{at}.deniedNetworks[{n}]", network)
        if network in isolation.allowed_networks:
            yield Problem(f"{at}.deniedNetworks[{n}]", f"{network} is allowed and denied", "remove it from one list")


def _network(path: str, text: str | None) -> Iterator[Problem]:
    try:
        if text:
            ip_network(text, strict=False)
    except ValueError:
        yield Problem(path, f"{text!r} is not a network", "write a CIDR such as 10.0.0.0/8")
