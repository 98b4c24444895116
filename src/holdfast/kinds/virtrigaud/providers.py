"""Provider: a hypervisor, and the process that speaks to it.

This module must not know what the process does; that is the provider contract.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Final, Literal

import msgspec

from holdfast.kinds.model import (
    Column,
    Count,
    Duration,
    Model,
    OpenObject,
    Percentage,
    Positive,
    Resource,
    Status,
    Time,
    Total,
    api,
    immutable,
)
from holdfast.kinds.virtrigaud.references import (
    GROUP,
    ContainerImage,
    Inventory,
    LocalObjectReference,
    Message,
    ObjectRef,
)

_HOST: Final = r"[a-zA-Z0-9.-]+"
_ENDPOINT: Final = (
    rf"^(https?://{_HOST}(:[0-9]+)?(/.*)?"
    rf"|(tcp|grpc)://{_HOST}:[0-9]+(/.*)?"
    r"|qemu(\+ssh|\+tcp|\+tls)?://([a-zA-Z0-9@._-]+(:[0-9]+)?)?/.*)$"
)


class ProviderType(StrEnum):
    """The kinds of hypervisor."""

    VSPHERE = "vsphere"
    LIBVIRT = "libvirt"
    FIRECRACKER = "firecracker"
    QEMU = "qemu"
    PROXMOX = "proxmox"
    MOCK = "mock"
    """No hypervisor at all: machines that exist in memory, for tests and demonstrations."""
    SIMULATED = "simulated"
    """The same, with hosts, datastores and tasks that take time."""


class ProviderRuntimePhase(StrEnum):
    """The phase of the process of a provider."""

    PENDING = "Pending"
    STARTING = "Starting"
    RUNNING = "Running"
    STOPPING = "Stopping"
    FAILED = "Failed"


class ProviderCapability(StrEnum):
    """What a provider can do, in broad words."""

    VIRTUAL_MACHINES = "VirtualMachines"
    SNAPSHOTS = "Snapshots"
    CLONING = "Cloning"
    LIVE_MIGRATION = "LiveMigration"
    CONSOLE_ACCESS = "ConsoleAccess"
    DISK_MANAGEMENT = "DiskManagement"
    NETWORK_MANAGEMENT = "NetworkManagement"
    GPU_PASSTHROUGH = "GPUPassthrough"
    HIGH_AVAILABILITY = "HighAvailability"
    BACKUP = "Backup"
    TEMPLATES = "Templates"


class ProviderCondition(StrEnum):
    """The condition types of a provider."""

    READY = "Ready"
    HEALTHY = "Healthy"
    CONNECTED = "Connected"
    RUNTIME_READY = "RuntimeReady"
    TLS_CONFIGURED = "TLSConfigured"
    CAPABILITIES_REPORTED = "CapabilitiesReported"


class ProviderTLSSpec(Model):
    """How calls to the provider's process are secured."""

    enabled: Annotated[bool, api("Whether calls are encrypted; false must be explicit.", default=True)] | None = None
    secret_ref: Annotated[LocalObjectReference, api("A Secret with tls.crt, tls.key and ca.crt.")] | None = None
    insecure_skip_verify: (
        Annotated[bool, api("Whether certificates are accepted unverified.", default=False)] | None
    ) = None


class ProviderServiceSpec(Model):
    """The Service in front of the provider's process."""

    port: Annotated[int, api("Port on which the process answers gRPC.", default=9443, ge=1024, le=65535)] | None = None
    tls: Annotated[ProviderTLSSpec, api("How calls are secured.")] | None = None


class ProviderRuntimeSpec(Model):
    """The Deployment of the provider's process."""

    mode: Annotated[Literal["Remote"], api("Where the process runs; always its own.", default="Remote")] | None = None
    image: Annotated[ContainerImage, api("Container image of the process.")]
    image_pull_policy: (
        Annotated[Literal["Always", "Never", "IfNotPresent"], api("When to pull the image.", default="IfNotPresent")]
        | None
    ) = None
    image_pull_secrets: Annotated[
        tuple[LocalObjectReference, ...], api("Secrets to pull the image with.", keys=("name",), max_length=10)
    ] = ()
    replicas: Annotated[Positive, api("How many processes run side by side.", default=1, le=10)] | None = None
    service: Annotated[ProviderServiceSpec, api("The Service in front of the process.")] | None = None
    resources: Annotated[OpenObject, api("Resource requirements of the pods.")] | None = None
    node_selector: Annotated[dict[str, str], api("Labels of the nodes that may run the pods.")] = {}
    tolerations: Annotated[tuple[OpenObject, ...], api("Taints that the pods tolerate.", max_length=20)] = ()
    affinity: Annotated[OpenObject, api("Affinity of the pods.")] | None = None
    security_context: Annotated[OpenObject, api("Security context of the container.")] | None = None
    log_level: (
        Annotated[Literal["debug", "info", "warn", "error"], api("What the process logs.", default="info")] | None
    ) = None
    log_format: Annotated[Literal["text", "json"], api("How the process logs.", default="text")] | None = None
    env: Annotated[tuple[OpenObject, ...], api("Environment variables of the container.", max_length=50)] = ()
    liveness_probe: Annotated[OpenObject, api("Liveness probe, instead of the built-in one.")] | None = None
    readiness_probe: Annotated[OpenObject, api("Readiness probe, instead of the built-in one.")] | None = None


class ProviderDefaults(Model):
    """Where machines are placed that do not choose."""

    datastore: Annotated[Inventory, api("Datastore for disks; wins over storagePod.")] | None = None
    storage_pod: Annotated[Inventory, api("Datastore cluster to choose a datastore from.")] | None = None
    cluster: Annotated[Inventory, api("Cluster to run in.")] | None = None
    folder: Annotated[Inventory, api("Folder to file machines in.")] | None = None
    resource_pool: Annotated[Inventory, api("Resource pool to draw from.")] | None = None
    network: Annotated[Inventory, api("Network that cards join.")] | None = None


class RateLimit(Model):
    """How fast the hypervisor may be called."""

    qps: Annotated[Positive, api("Calls a second in the long run.", default=10, le=1000)] | None = None
    burst: Annotated[Positive, api("Calls at once after a quiet time.", default=20, le=2000)] | None = None


class ProviderHealthCheck(Model):
    """How the hypervisor's health is watched."""

    enabled: Annotated[bool, api("Whether it is watched.", default=True)] | None = None
    interval: Annotated[Duration, api("Time between checks.", default="30s")] | None = None
    timeout: Annotated[Duration, api("How long a check may take.", default="10s")] | None = None
    failure_threshold: (
        Annotated[Positive, api("Failures in a row that make it unhealthy.", default=3, le=10)] | None
    ) = None
    success_threshold: (
        Annotated[Positive, api("Successes in a row that make it healthy again.", default=1, le=10)] | None
    ) = None


class ConnectionPooling(Model):
    """How connections to the hypervisor are kept."""

    max_connections: Annotated[Positive, api("Connections at most.", default=10, le=100)] | None = None
    max_idle_connections: Annotated[Positive, api("Idle connections at most.", default=5)] | None = None
    connection_timeout: Annotated[Duration, api("How long connecting may take.", default="30s")] | None = None
    idle_timeout: Annotated[Duration, api("How long an idle connection is kept.", default="5m")] | None = None


class ProviderSpec(Model):
    """The hypervisor, and how to speak to it."""

    type: Annotated[ProviderType, api("The kind of hypervisor.", rules=(immutable("spec.type"),))]
    endpoint: Annotated[str, api("Where the hypervisor answers, as a URI.", pattern=_ENDPOINT)]
    credential_secret_ref: (
        Annotated[ObjectRef, api("The Secret to log in with; not needed where nothing is logged in to.")] | None
    ) = None
    insecure_skip_verify: (
        Annotated[
            bool,
            api("Deprecated: write runtime.service.tls.insecureSkipVerify.", default=False),
        ]
        | None
    ) = None
    defaults: Annotated[ProviderDefaults, api("Where machines are placed that do not choose.")] | None = None
    rate_limit: Annotated[RateLimit, api("How fast the hypervisor may be called.")] | None = None
    runtime: Annotated[ProviderRuntimeSpec, api("The process that speaks to the hypervisor.")]
    health_check: Annotated[ProviderHealthCheck, api("How the hypervisor's health is watched.")] | None = None
    connection_pooling: Annotated[ConnectionPooling, api("How connections are kept.")] | None = None


class ProviderRuntimeStatus(Model):
    """Observed state of the process of the provider."""

    mode: Annotated[Literal["Remote"], api("Where the process runs.")] | None = None
    endpoint: Annotated[str, api("Where the process answers gRPC, as host:port.")] | None = None
    service_ref: Annotated[LocalObjectReference, api("The Service in front of it.")] | None = None
    phase: Annotated[ProviderRuntimePhase, api("Phase of the process.")] | None = None
    message: Message | None = None
    ready_replicas: Annotated[Count, api("Processes that are ready.")] | None = None
    available_replicas: Annotated[Count, api("Processes that are available.")] | None = None


class ReportedCapabilities(Model):
    """What the running provider says that it can do."""

    supports_reconfigure_online: (
        Annotated[bool, api("Whether it changes processors and memory of a running machine.")] | None
    ) = None
    supports_disk_expansion_online: Annotated[bool, api("Whether it grows disks of a running machine.")] | None = None
    supports_snapshots: Annotated[bool, api("Whether it takes snapshots.")] | None = None
    supports_memory_snapshots: Annotated[bool, api("Whether it takes snapshots with memory.")] | None = None
    supports_linked_clones: Annotated[bool, api("Whether it clones without copying disks.")] | None = None
    supports_image_import: Annotated[bool, api("Whether it fetches and prepares images.")] | None = None
    supported_disk_types: Annotated[tuple[str, ...], api("Disk types that it knows.")] = ()
    supported_network_types: Annotated[tuple[str, ...], api("Models of network cards that it knows.")] = ()
    supports_disk_export: Annotated[bool, api("Whether it exports disks, as the source of a migration.")] | None = None
    supports_disk_import: Annotated[bool, api("Whether it imports disks, as the target of a migration.")] | None = None
    supported_export_formats: Annotated[tuple[str, ...], api("Disk formats that it exports.")] = ()
    supported_import_formats: Annotated[tuple[str, ...], api("Disk formats that it imports.")] = ()
    supports_export_compression: Annotated[bool, api("Whether it compresses what it exports.")] | None = None
    supported_export_backends: Annotated[tuple[str, ...], api("Staging stores to export to; pvc when empty.")] = ()
    supported_import_backends: Annotated[tuple[str, ...], api("Staging stores to import from; pvc when empty.")] = ()
    supported_transfer_modes: Annotated[tuple[str, ...], api("Ways that bytes travel; relay when empty.")] = ()
    supports_inventory: Annotated[bool, api("Whether it reports its hosts and datastores, for placement.")] | None = (
        None
    )


class ProviderInventory(Model):
    """Names of the places that the hypervisor has, which VMPlacementPolicies choose from."""

    hosts: Annotated[tuple[str, ...], api("Names of its hosts.", max_length=1000)] = ()
    clusters: Annotated[tuple[str, ...], api("Names of its clusters.", max_length=1000)] = ()
    datastores: Annotated[tuple[str, ...], api("Names of its datastores.", max_length=1000)] = ()
    zones: Annotated[tuple[str, ...], api("Zones that hosts are in.", max_length=1000)] = ()
    regions: Annotated[tuple[str, ...], api("Regions that hosts are in.", max_length=1000)] = ()
    folders: Annotated[tuple[str, ...], api("Names of its folders.", max_length=1000)] = ()
    resource_pools: Annotated[tuple[str, ...], api("Names of its resource pools.", max_length=1000)] = ()
    networks: Annotated[tuple[str, ...], api("Networks that hosts reach.", max_length=1000)] = ()
    features: Annotated[tuple[str, ...], api("Features that some host has.", max_length=1000)] = ()
    unavailable: Annotated[tuple[str, ...], api("Hosts that are in maintenance.", max_length=1000)] = ()


class ResourceUsageStats(Model):
    """How much of something is in use."""

    total: Annotated[Total, api("How much there is in all.")] | None = None
    used: Annotated[Total, api("How much is in use.")] | None = None
    available: Annotated[Total, api("How much is free.")] | None = None
    usage_percent: Annotated[Percentage, api("In use, in per cent.")] | None = None


class NetworkUsageStats(Model):
    """Traffic since the hypervisor began to count."""

    bytes_received: Annotated[Total, api("Bytes that machines received.")] | None = None
    bytes_sent: Annotated[Total, api("Bytes that machines sent.")] | None = None
    packets_received: Annotated[Total, api("Packets that machines received.")] | None = None
    packets_sent: Annotated[Total, api("Packets that machines sent.")] | None = None


class ProviderResourceUsage(Model):
    """How full the hypervisor is."""

    cpu: Annotated[ResourceUsageStats, api("How busy the processors are.")] | None = None
    memory: Annotated[ResourceUsageStats, api("How full the memory is.")] | None = None
    storage: Annotated[ResourceUsageStats, api("How full the storage is.")] | None = None
    network: Annotated[NetworkUsageStats, api("Traffic on the network.")] | None = None


class ProviderAdoptionStatus(Model):
    """Adoption of machines that were already on the hypervisor."""

    last_discovery_time: Annotated[Time, api("When the hypervisor was last searched.")] | None = None
    discovered_vms: Annotated[Count, api("Machines that were found.")] | None = msgspec.field(
        name="discoveredVMs", default=None
    )
    adopted_vms: Annotated[Count, api("Machines that were adopted.")] | None = msgspec.field(
        name="adoptedVMs", default=None
    )
    failed_adoptions: Annotated[Count, api("Machines that could not be adopted.")] | None = None
    message: Message | None = None


class ProviderProbes(Model):
    """Health checks in a row that do not count yet."""

    failures: Annotated[Count, api("Failures in a row, up to the threshold.")] | None = None
    successes: Annotated[Count, api("Successes in a row, up to the threshold.")] | None = None


class ProviderStatus(Status):
    """Observed state of the hypervisor."""

    healthy: Annotated[bool, api("Whether the hypervisor answers.")] | None = None
    last_health_check: Annotated[Time, api("When it was last checked.")] | None = None
    runtime: Annotated[ProviderRuntimeStatus, api("The process that speaks to it.")] | None = None
    capabilities: Annotated[tuple[ProviderCapability, ...], api("What it can do, in broad words.")] = ()
    reported_capabilities: Annotated[ReportedCapabilities, api("What it says that it can do.")] | None = None
    version: Annotated[str, api("Version of the provider.")] | None = None
    connected_vms: Annotated[Count, api("Machines that it runs for us.")] | None = msgspec.field(
        name="connectedVMs", default=None
    )
    resource_usage: Annotated[ProviderResourceUsage, api("How full it is.")] | None = None
    inventory: Annotated[ProviderInventory, api("The places that it has.")] | None = None
    adoption: Annotated[ProviderAdoptionStatus, api("Adoption of machines that were found on it.")] | None = None
    probes: Annotated[ProviderProbes, api("Health checks in a row that do not count yet.")] | None = None
    mounted_claims: (
        Annotated[
            tuple[str, ...],
            api("The claims that its process has mounted for migrations; unset where the process is not ours."),
        ]
        | None
    ) = None
    mounted_exports: (
        Annotated[
            tuple[str, ...],
            api("The NFS exports that its process has mounted for migrations; unset where the operator mounts none."),
        ]
        | None
    ) = None


class Provider(Resource):
    """A hypervisor that runs virtual machines."""

    spec: Annotated[ProviderSpec, api("The hypervisor, and how to speak to it.")]
    status: Annotated[ProviderStatus, api("Observed state of the hypervisor.")] | None = None


KIND: Final = GROUP.kind(
    Provider,
    "providers",
    Column("Type", ".spec.type"),
    Column("Endpoint", ".spec.endpoint"),
    Column("Healthy", ".status.healthy", "boolean"),
    Column("Connected VMs", ".status.connectedVMs", "integer"),
    short="prov",
)
