"""VMNetworkAttachment: a network that machines join.

This module must not know the machines; a machine's card refers to a network
(`devices`), never the other way round.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, ClassVar, Final, Literal

import msgspec

from holdfast.kinds.model import (
    Column,
    Count,
    Model,
    PortNumber,
    Positive,
    Resource,
    Rule,
    Status,
    Time,
    api,
)
from holdfast.kinds.virtrigaud.operations import OnProvider
from holdfast.kinds.virtrigaud.references import (
    CIDR,
    GROUP,
    Environment,
    Inventory,
    IPv4,
    LocalObjectReference,
    Message,
    Tags,
)

VLANID = Annotated[int, api(ge=1, le=4094)]

BitsPerSecond = Annotated[int, api(ge=1000)]


class IPAllocationType(StrEnum):
    """How machines get their addresses."""

    DHCP = "DHCP"
    STATIC = "Static"
    POOL = "Pool"
    NONE = "None"


class NetworkAttachmentPhase(StrEnum):
    """The phase of a network."""

    PENDING = "Pending"
    CONFIGURING = "Configuring"
    READY = "Ready"
    FAILED = "Failed"


class VMNetworkAttachmentCondition(StrEnum):
    """The condition types of a network."""

    READY = "Ready"
    CONFIGURING = "Configuring"
    VALIDATED = "Validated"


class DistributedSwitchConfig(Model):
    """A distributed switch of vSphere."""

    name: Annotated[Inventory, api("Name of the switch.")]
    uuid: Annotated[str, api("UUID of the switch, where names repeat.")] | None = None
    portgroup_type: Annotated[Literal["ephemeral", "distributed"], api("Type of its port groups.")] | None = None


class VLANConfig(Model):
    """The VLAN of a port group."""

    type: Annotated[Literal["none", "vlan", "pvlan", "trunk"], api("How frames are tagged.", default="none")] | None = (
        None
    )
    vlan_id: Annotated[VLANID, api("The VLAN, for vlan.")] | None = msgspec.field(name="vlanID", default=None)
    trunk_vlan_ids: Annotated[tuple[VLANID, ...], api("The VLANs, for trunk.", max_length=100)] = msgspec.field(
        name="trunkVlanIDs", default=()
    )
    primary_vlan_id: Annotated[VLANID, api("The primary VLAN, for pvlan.")] | None = msgspec.field(
        name="primaryVlanID", default=None
    )
    secondary_vlan_id: Annotated[VLANID, api("The secondary VLAN, for pvlan.")] | None = msgspec.field(
        name="secondaryVlanID", default=None
    )


class PortgroupSecurityConfig(Model):
    """What a port group lets machines do."""

    allow_promiscuous: Annotated[bool, api("Whether machines see the frames of others.", default=False)] | None = None
    allow_mac_changes: (
        Annotated[bool, api("Whether machines may change their hardware address.", default=True)] | None
    ) = msgspec.field(name="allowMACChanges", default=None)
    allow_forged_transmits: (
        Annotated[bool, api("Whether machines may send from another hardware address.", default=True)] | None
    ) = None


class TrafficShapingConfig(Model):
    """How fast a port group is."""

    enabled: Annotated[bool, api("Whether traffic is shaped.", default=False)] | None = None
    average_bandwidth: Annotated[BitsPerSecond, api("Bits a second on average.")] | None = None
    peak_bandwidth: Annotated[BitsPerSecond, api("Bits a second at most.")] | None = None
    burst_size: Annotated[int, api("Bytes of a burst.", ge=1024)] | None = None


class VSphereNetworkConfig(Model):
    """A network on vSphere."""

    portgroup: Annotated[Inventory, api("Name of the port group.")] | None = None
    distributed: (
        Annotated[bool, api("Whether the port group is of a distributed switch, as v1alpha1 wrote it; not acted on.")]
        | None
    ) = None
    distributed_switch: Annotated[DistributedSwitchConfig, api("The distributed switch.")] | None = None
    vlan: Annotated[VLANConfig, api("The VLAN of the port group.")] | None = None
    security: Annotated[PortgroupSecurityConfig, api("What machines may do.")] | None = None
    traffic_shaping: Annotated[TrafficShapingConfig, api("How fast the port group is.")] | None = None
    pci_slot_number: (
        Annotated[int, api("PCI slot of the card, which names it in the guest: 192 is ens192.", ge=32, le=1024)] | None
    ) = None
    adapter_type: (
        Annotated[Literal["vmxnet3", "e1000", "e1000e"], api("Card that is emulated.", default="vmxnet3")] | None
    ) = None


class BridgeConfig(Model):
    """A bridge of the host."""

    name: Annotated[str, api("Name of the bridge.", max_length=15)]
    stp: Annotated[bool, api("Whether it speaks the spanning tree protocol.", default=False)] | None = None
    delay: Annotated[Count, api("Forwarding delay in seconds.", le=30)] | None = None


class NetworkDriverConfig(Model):
    """How the host drives a card."""

    name: Annotated[Literal["kvm", "vfio", "uio"], api("Driver of the host to use.")] | None = None
    queues: Annotated[Positive, api("How many queues the card has.", le=16)] | None = None
    tx_mode: Annotated[Literal["iothread", "timer"], api("How packets are sent.")] | None = None
    io_event_fd: Annotated[bool, api("Whether ioeventfd is used.")] | None = msgspec.field(
        name="ioEventFD", default=None
    )
    event_idx: Annotated[bool, api("Whether event_idx is used.")] | None = msgspec.field(name="eventIDX", default=None)


class NetworkFilterRef(Model):
    """A filter of libvirt."""

    filter: Annotated[Inventory, api("Name of the filter.")]
    parameters: Annotated[dict[str, str], api("Parameters of the filter.", max_length=20)] = {}


class LibvirtNetworkConfig(Model):
    """A network on libvirt."""

    network_name: Annotated[Inventory, api("Name of a libvirt network.")] | None = None
    bridge: Annotated[BridgeConfig, api("A bridge of the host.")] | None = None
    model: (
        Annotated[
            Literal["virtio", "e1000", "e1000e", "rtl8139", "pcnet", "ne2k_pci"],
            api("Card that is emulated.", default="virtio"),
        ]
        | None
    ) = None
    driver: Annotated[NetworkDriverConfig, api("How the host drives the card.")] | None = None
    filter_ref: Annotated[NetworkFilterRef, api("Filter that traffic passes.")] | None = None


class ProxmoxNetworkConfig(Model):
    """A network on Proxmox VE."""

    bridge: Annotated[str, api("Bridge of the node.", max_length=15, pattern=r"^vmbr[0-9]+$")] | None = None
    model: (
        Annotated[Literal["virtio", "e1000", "rtl8139", "vmxnet3"], api("Card that is emulated.", default="virtio")]
        | None
    ) = None
    vlan_tag: Annotated[VLANID, api("VLAN that frames are tagged with.")] | None = None
    firewall: Annotated[bool, api("Whether Proxmox filters the card.", default=False)] | None = None
    rate_limit: Annotated[Positive, api("Megabytes a second at most.")] | None = None
    mtu: Annotated[int, api("Largest frame in bytes.", ge=68, le=65520)] | None = None


class NetworkConfig(Model):
    """What a network is, by kind of hypervisor. One network may be described for each."""

    vsphere: Annotated[VSphereNetworkConfig, api("The network on vSphere.")] | None = None
    libvirt: Annotated[LibvirtNetworkConfig, api("The network on libvirt, and on plain QEMU.")] | None = None
    proxmox: Annotated[ProxmoxNetworkConfig, api("The network on Proxmox VE.")] | None = None
    type: (
        Annotated[
            Literal["bridged", "nat", "isolated", "host-only", "external"],
            api("How it reaches the world.", default="bridged"),
        ]
        | None
    ) = None
    mtu: Annotated[int, api("Largest frame in bytes.", default=1500, ge=68, le=9000)] | None = None


class StaticRoute(Model):
    """A static route."""

    destination: Annotated[CIDR, api("Network that it leads to.")]
    gateway: Annotated[IPv4, api("Gateway that it leads through.")]
    metric: Annotated[Count, api("Cost; the lowest wins.", le=65535)] | None = None


class StaticIPConfig(Model):
    """A static address."""

    address: Annotated[CIDR, api("Address with prefix, such as 10.0.0.5/24.")]
    gateway: Annotated[IPv4, api("Default gateway of the address.")] | None = None
    routes: Annotated[tuple[StaticRoute, ...], api("Routes beside the default one.", max_length=20)] = ()


class IPPoolConfig(Model):
    """A pool to take addresses from."""

    pool_ref: Annotated[LocalObjectReference, api("The pool to take an address from.")]
    preferred_ip: Annotated[IPv4, api("Address to take if it is free.")] | None = msgspec.field(
        name="preferredIP", default=None
    )


class DHCPConfig(Model):
    """What the client sends to the DHCP server."""

    client_id: Annotated[str, api("Identifier that the client sends.", max_length=255)] | None = msgspec.field(
        name="clientID", default=None
    )
    hostname: Annotated[str, api("Host name to ask for.", max_length=255)] | None = None
    options: Annotated[dict[str, str], api("DHCP options by name.", max_length=20)] = {}


class DNSConfig(Model):
    """How guests resolve names."""

    servers: Annotated[tuple[str, ...], api("DNS servers of guests.", max_length=10)] = ()
    search_domains: Annotated[tuple[str, ...], api("Domains to search.", max_length=10)] = ()
    options: Annotated[dict[str, str], api("Options of the resolver.", max_length=10)] = {}


class IPAllocationConfig(Model):
    """How machines get their addresses."""

    RULES: ClassVar = (
        Rule(
            rule="!has(self.type) || self.type != 'Pool' || has(self.poolConfig)",
            message="type Pool needs poolConfig",
            reason="FieldValueRequired",
            field_path=".poolConfig",
        ),
    )

    type: Annotated[IPAllocationType, api("Who gives addresses.", default="DHCP")] | None = None
    static_config: Annotated[StaticIPConfig, api("The address, for Static; a machine's own wins.")] | None = None
    pool_config: Annotated[IPPoolConfig, api("The pool, for Pool.")] | None = None
    dhcp_config: Annotated[DHCPConfig, api("What the client sends to the server, for DHCP.")] | None = None
    dns_config: Annotated[DNSConfig, api("How guests resolve names.")] | None = None


class PortRange(Model):
    """A range of ports."""

    RULES: ClassVar = (Rule(rule="!has(self.end) || self.start <= self.end", message="end must not be before start"),)

    start: Annotated[PortNumber, api("First port of the range.")]
    end: Annotated[PortNumber, api("Last port; the first when unset.")] | None = None


class FirewallRule(Model):
    """What becomes of some traffic."""

    name: Annotated[Inventory, api("Name of the rule.")]
    action: Annotated[Literal["ACCEPT", "DROP", "REJECT"], api("What becomes of the traffic.")]
    direction: Annotated[Literal["in", "out", "inout"], api("Which way the traffic goes.")]
    protocol: Annotated[Literal["tcp", "udp", "icmp", "all"], api("Protocol of the traffic.")] | None = None
    source_cidr: Annotated[str, api("Network that the traffic comes from, as a CIDR.")] | None = msgspec.field(
        name="sourceCIDR", default=None
    )
    destination_cidr: Annotated[str, api("Network that the traffic goes to, as a CIDR.")] | None = msgspec.field(
        name="destinationCIDR", default=None
    )
    ports: Annotated[PortRange, api("Ports of the traffic.")] | None = None
    priority: Annotated[Positive, api("Order among the rules.", le=1000)] | None = None


class FirewallConfig(Model):
    """What traffic may pass."""

    enabled: Annotated[bool, api("Whether traffic is filtered.", default=False)] | None = None
    default_policy: (
        Annotated[Literal["ACCEPT", "DROP", "REJECT"], api("What no rule decides.", default="ACCEPT")] | None
    ) = None
    rules: Annotated[
        tuple[FirewallRule, ...], api("Rules that traffic is held against.", keys=("name",), max_length=100)
    ] = ()


class NetworkIsolationConfig(Model):
    """What networks can be reached."""

    mode: Annotated[Literal["none", "strict", "custom"], api("How strictly networks are kept apart.")] | None = None
    allowed_networks: Annotated[tuple[str, ...], api("Networks that can, as CIDRs.", max_length=50)] = ()
    denied_networks: Annotated[tuple[str, ...], api("Networks that cannot, as CIDRs.", max_length=50)] = ()


class NetworkEncryptionConfig(Model):
    """Whether traffic is encrypted."""

    enabled: Annotated[bool, api("Whether traffic is encrypted.", default=False)] | None = None
    protocol: Annotated[Literal["ipsec", "wireguard", "openvpn"], api("Protocol that encrypts the traffic.")] | None = (
        None
    )
    key_ref: Annotated[LocalObjectReference, api("The Secret with the keys.")] | None = None


class NetworkSecurityConfig(Model):
    """How a network is protected."""

    firewall: Annotated[FirewallConfig, api("What traffic may pass.")] | None = None
    isolation: Annotated[NetworkIsolationConfig, api("What networks can be reached.")] | None = None
    encryption: Annotated[NetworkEncryptionConfig, api("Whether traffic is encrypted.")] | None = None


class NetworkQoSConfig(Model):
    """How fast machines may be, and who goes first."""

    ingress_limit: Annotated[BitsPerSecond, api("Bits a second to a machine.")] | None = None
    egress_limit: Annotated[BitsPerSecond, api("Bits a second from a machine.")] | None = None
    priority: Annotated[Count, api("Priority, 7 being the highest.", le=7)] | None = None
    dscp: Annotated[Count, api("DSCP mark of the packets.", le=63)] | None = None


class NetworkMetadata(Model):
    """Descriptive metadata of a network."""

    display_name: Annotated[str, api("Name for people.", max_length=255)] | None = None
    description: Annotated[str, api("What the network is for.", max_length=1024)] | None = None
    environment: Annotated[Environment, api("Environment that it belongs to.")] | None = None
    tags: Annotated[Tags, api("Tags to find it by.")] = {}


class VMNetworkAttachmentSpec(Model):
    """Desired state of the network."""

    network: Annotated[NetworkConfig, api("What the network is.")]
    ip_allocation: Annotated[IPAllocationConfig, api("How machines get their addresses.")] | None = None
    security: Annotated[NetworkSecurityConfig, api("How it is protected.")] | None = None
    qos: Annotated[NetworkQoSConfig, api("How fast machines may be.")] | None = None
    metadata: Annotated[NetworkMetadata, api("Its name, description and tags.")] | None = None


class IPAllocation(Model):
    """An address that a machine has."""

    vm: Annotated[str, api("Name of the machine.")]
    ip: Annotated[str, api("Address of the machine.")]
    mac: Annotated[str, api("Hardware address of the machine.")] | None = None
    allocated_at: Annotated[Time, api("Since when the machine has the address.")] | None = None
    lease_expiry: Annotated[Time, api("Until when the machine has the address, if it is leased.")] | None = None


class ProviderNetworkStatus(OnProvider):
    """A network on one provider."""

    state: Annotated[str, api("Its state in the provider's words.")] | None = None


class VMNetworkAttachmentStatus(Status):
    """Where a network is available, and who uses it."""

    ready: Annotated[bool, api("Whether machines can join it.")] | None = None
    phase: Annotated[NetworkAttachmentPhase, api("Phase of the network.")] | None = None
    message: Message | None = None
    available_on: Annotated[tuple[str, ...], api("Providers that have it.")] = ()
    connected_vms: Annotated[Count, api("Machines that use it.")] | None = msgspec.field(
        name="connectedVMs", default=None
    )
    ip_allocations: Annotated[tuple[IPAllocation, ...], api("Addresses in use.")] = ()
    provider_status: Annotated[dict[str, ProviderNetworkStatus], api("The network by provider.")] = {}


class VMNetworkAttachment(Resource):
    """A network that machines join."""

    spec: Annotated[VMNetworkAttachmentSpec, api("Desired state of the network.")]
    status: Annotated[VMNetworkAttachmentStatus, api("Where it is available, and who uses it.")] | None = None


KIND: Final = GROUP.kind(
    VMNetworkAttachment,
    "vmnetworkattachments",
    Column("Ready", ".status.ready", "boolean"),
    Column("Type", ".spec.network.type"),
    Column("Connected VMs", ".status.connectedVMs", "integer"),
    Column("Providers", ".status.availableOn[*]"),
    short="vmnet",
)
