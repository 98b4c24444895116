"""The kinds of virtual machines: how they are served, what they accept, what they refuse and where."""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import Any

import msgspec
import pytest
from tests.kinds.structural import crd_problems

from holdfast.kinds import checks
from holdfast.kinds.crds import crd_of
from holdfast.kinds.model import Kind
from holdfast.kinds.virtrigaud import (
    KINDS,
    classes,
    clones,
    images,
    machines,
    migrations,
    networks,
    placement,
    providers,
    references,
    sets,
    snapshots,
)

BY_NAME: Mapping[str, Kind] = {kind.name: kind for kind in KINDS}

MACHINE: Mapping[str, Any] = {
    "providerRef": {"name": "local"},
    "classRef": {"name": "small"},
    "imageRef": {"name": "debian"},
}

SMALLEST: Mapping[str, Mapping[str, Any]] = {
    "VirtualMachine": MACHINE,
    "Provider": {
        "type": "qemu",
        "endpoint": "qemu:///system",
        "credentialSecretRef": {"name": "credentials"},
        "runtime": {"image": "provider-qemu:1"},
    },
    "VMMigration": {
        "source": {"vmRef": {"name": "a"}},
        "target": {"name": "b", "providerRef": {"name": "other"}},
    },
    "VMSet": {"selector": {"matchLabels": {"app": "db"}}, "template": {"spec": MACHINE}},
    "VMPlacementPolicy": {},
    "VMSnapshot": {"vmRef": {"name": "a"}},
    "VMClass": {"cpu": 1, "memory": "1Gi"},
    "VMImage": {"source": {"http": {"url": "https://example.com/disk.qcow2"}}},
    "VMClone": {"source": {"vmRef": {"name": "a"}}, "target": {"name": "b"}},
    "VMNetworkAttachment": {"network": {}},
}
"""The least that each kind's spec may say."""


def document(kind: str, **fields: Any) -> dict[str, Any]:
    """An object of ``kind`` with its smallest spec, and with the given fields at dotted paths."""
    doc: dict[str, Any] = {
        "apiVersion": "infra.virtrigaud.io/v1beta1",
        "kind": kind,
        "metadata": {"name": "x"},
        "spec": copy.deepcopy(dict(SMALLEST[kind])),
    }
    for path, value in fields.items():
        *parents, last = path.split(".")
        place = doc
        for step in parents:
            place = place.setdefault(step, {})
        place[last] = value
    return doc


def nodes(schema: Mapping[str, Any], path: str = "") -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Every node of a schema, with its path."""
    yield path, schema
    for name, inner in schema.get("properties", {}).items():
        yield from nodes(inner, f"{path}.{name}")
    if "items" in schema:
        yield from nodes(schema["items"], f"{path}[]")
    if "additionalProperties" in schema:
        yield from nodes(schema["additionalProperties"], f"{path}{{}}")


def version_of(kind: str) -> dict[str, Any]:
    version: dict[str, Any] = crd_of(BY_NAME[kind])["spec"]["versions"][0]
    return version


def schema_at(kind: str, path: str) -> Mapping[str, Any]:
    return dict(nodes(version_of(kind)["schema"]["openAPIV3Schema"]))[path]


# --- how they are served -----------------------------------------------------

SERVED = [
    ("VirtualMachine", "virtualmachines", "vm", ["Phase", "Provider", "Class", "Image", "IPs", "Age"]),
    ("Provider", "providers", "prov", ["Type", "Endpoint", "Healthy", "Connected VMs", "Age"]),
    ("VMMigration", "vmmigrations", "vmmig", ["Source", "Target", "Phase", "Progress", "Age"]),
    ("VMSet", "vmsets", "vmset", ["Desired", "Current", "Ready", "Updated", "Age"]),
    ("VMPlacementPolicy", "vmplacementpolicies", "vmpp", ["Used By VMs", "Priority", "Successful", "Failed", "Age"]),
    ("VMSnapshot", "vmsnapshots", "vmsnap", ["VM", "Phase", "Size", "Created", "Expires", "Age"]),
    ("VMClass", "vmclasses", "vmclass", ["CPU", "Memory", "Firmware", "Used By", "Age"]),
    ("VMImage", "vmimages", "vmimg", ["Ready", "Phase", "Size", "Providers", "Age"]),
    ("VMClone", "vmclones", "vmclone", ["Source", "Target", "Phase", "Clone Type", "Progress", "Age"]),
    ("VMNetworkAttachment", "vmnetworkattachments", "vmnet", ["Ready", "Type", "Connected VMs", "Providers", "Age"]),
]


def test_the_group_has_the_kinds_of_the_table_and_no_other() -> None:
    assert [kind.name for kind in KINDS] == [row[0] for row in SERVED]
    assert {kind.api_version for kind in KINDS} == {"infra.virtrigaud.io/v1beta1"}


@pytest.mark.parametrize(("kind", "plural", "short", "columns"), SERVED, ids=[row[0] for row in SERVED])
def test_a_kind_has_the_names_and_columns_that_people_know(
    kind: str, plural: str, short: str, columns: list[str]
) -> None:
    names = crd_of(BY_NAME[kind])["spec"]["names"]
    assert (names["plural"], names["shortNames"]) == (plural, [short])
    shown = version_of(kind)["additionalPrinterColumns"]
    assert [column["name"] for column in shown if not column.get("priority")] == columns


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_an_api_server_would_take_the_definition(kind: Kind) -> None:
    assert crd_problems(crd_of(kind)) == []


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_every_kind_has_a_status_subresource_and_only_a_set_has_scale(kind: Kind) -> None:
    subresources = version_of(kind.name)["subresources"]
    assert subresources["status"] == {}
    assert ("scale" in subresources) == (kind.name == "VMSet")


def test_the_scale_of_a_set_tells_autoscalers_its_selector() -> None:
    assert version_of("VMSet")["subresources"]["scale"] == {
        "specReplicasPath": ".spec.replicas",
        "statusReplicasPath": ".status.replicas",
        "labelSelectorPath": ".status.selector",
    }


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_every_field_and_every_object_is_described(kind: Kind) -> None:
    schema = version_of(kind.name)["schema"]["openAPIV3Schema"]
    silent = [
        path
        for path, node in nodes(schema)
        if "description" not in node
        and path != ".metadata"
        and (node.get("properties") or not path.endswith(("[]", "{}")))
    ]
    assert silent == []


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_abbreviations_keep_their_capitals_on_the_wire(kind: Kind) -> None:
    schema = version_of(kind.name)["schema"]["openAPIV3Schema"]
    lowered = re.compile(r"[a-z](Vms?|Ids?|Ips?|Cpu|Url|Mib|Gib|Tpm|Mac|Iops|Cidr|Numa|Pvc|Fd|Idx)(?=[A-Z]|$)")
    assert [path for path, _ in nodes(schema) if lowered.search(path.rpartition(".")[2])] == []


# --- what they accept --------------------------------------------------------


@pytest.mark.parametrize("kind", SMALLEST)
def test_the_smallest_spec_is_accepted_and_nothing_is_filled_in(kind: str) -> None:
    doc = document(kind)
    assert checks.problems(BY_NAME[kind], doc) == ()
    assert msgspec.to_builtins(msgspec.convert(doc, BY_NAME[kind].model)) == doc


MIGRATING = "Exporting Transferring Converting Importing Creating"

ENUMS: list[tuple[type[StrEnum], str]] = [
    (machines.PowerState, "On Off OffGraceful"),
    (machines.VirtualMachinePhase, "Pending Provisioning Running Stopped Reconfiguring Deleting Failed"),
    (machines.VirtualMachineCondition, "Ready Provisioning Reconfiguring Deleting"),
    (providers.ProviderRuntimePhase, "Pending Starting Running Stopping Failed"),
    (migrations.MigrationPhase, f"Pending Validating Snapshotting {MIGRATING} Validating-Target Ready Failed"),
    (
        migrations.VMMigrationCondition,
        "Ready Validating Snapshotting Exporting Transferring Importing Failed",
    ),
    (sets.VMSetUpdatePhase, "Pending InProgress Paused Completed Failed"),
    (sets.VMSetUpdateStrategyType, "RollingUpdate OnDelete Recreate"),
    (sets.VMSetCondition, "Ready Progressing ReplicaFailure UpdateInProgress Scaling"),
    (placement.VMPlacementPolicyCondition, "Ready Validated Conflicts Supported"),
    (snapshots.SnapshotPhase, "Pending Creating Ready Deleting Failed Expired"),
    (snapshots.VMSnapshotCondition, "Ready Creating Deleting Expired"),
    (classes.VMClassCondition, "Ready Validated Supported"),
    (images.ImagePhase, "Pending Downloading Importing Converting Optimizing Ready Failed"),
    (images.ImageMissingAction, "Import Fail Wait"),
    (images.ImageFormat, "qcow2 raw vmdk vhd vhdx iso ova ovf"),
    (images.VMImageCondition, "Ready Downloading Importing Validated"),
    (clones.ClonePhase, "Pending Preparing Cloning Customizing Powering-On Ready Failed"),
    (clones.CloneType, "FullClone LinkedClone InstantClone"),
    (clones.VMCloneCondition, "Ready Cloning Customizing Failed"),
    (networks.NetworkAttachmentPhase, "Pending Configuring Ready Failed"),
    (networks.IPAllocationType, "DHCP Static Pool None"),
    (networks.VMNetworkAttachmentCondition, "Ready Configuring Validated"),
    (references.DiskType, "thin thick eagerzeroedthick ssd hdd nvme"),
]


@pytest.mark.parametrize(("enum", "members"), ENUMS, ids=lambda value: getattr(value, "__name__", ""))
def test_an_enum_has_exactly_the_members_that_people_know(enum: type[StrEnum], members: str) -> None:
    assert [member.value for member in enum] == members.split()


def test_a_provider_has_the_conditions_of_its_api_and_those_of_its_security() -> None:
    assert {"Ready", "Healthy", "Connected", "RuntimeReady"} < {member.value for member in providers.ProviderCondition}


def test_a_provider_may_be_of_any_known_hypervisor_or_of_none() -> None:
    assert [member.value for member in providers.ProviderType] == [
        *("vsphere", "libvirt", "firecracker", "qemu", "proxmox"),
        *("mock", "simulated"),
    ]


@pytest.mark.parametrize(
    "endpoint",
    [
        "qemu:///system",
        "qemu+tcp://libvirt.example.com/system",
        "qemu+ssh://virt@host.example.com:2222/system",
        "https://vcenter.example.com/sdk",
        "https://pve.example.com:8006",
        "grpc://provider.local:9443",
    ],
)
def test_an_endpoint_of_each_scheme_is_accepted(endpoint: str) -> None:
    assert checks.problems(BY_NAME["Provider"], document("Provider", **{"spec.endpoint": endpoint})) == ()


@pytest.mark.parametrize(
    "image",
    [
        "provider:1",
        "registry.example.com:5000/team/provider:v0.2.3",
        "registry.example.com/provider@sha256:" + "a" * 64,
    ],
)
def test_a_runtime_image_by_tag_by_digest_or_with_a_port_is_accepted(image: str) -> None:
    assert checks.problems(BY_NAME["Provider"], document("Provider", **{"spec.runtime.image": image})) == ()


@pytest.mark.parametrize("cron", ["0 3 * * *", "*/15 9-17 * * MON-FRI", "@daily", "@every 6h", "0 0 3 * * * *"])
def test_a_schedule_reads_what_cron_reads(cron: str) -> None:
    doc = document("VMSnapshot", **{"spec.schedule": {"enabled": True, "cronSpec": cron}})
    assert checks.problems(BY_NAME["VMSnapshot"], doc) == ()


def test_a_reference_may_name_any_object_that_kubernetes_can_name() -> None:
    assert (
        checks.problems(BY_NAME["VMSnapshot"], document("VMSnapshot", **{"spec.vmRef.name": "web.example.com"})) == ()
    )


def test_a_machine_without_an_address_of_its_own_may_say_so_with_an_empty_one() -> None:
    doc = document("VirtualMachine", **{"spec.networks": [{"name": "app", "ipAddress": ""}]})
    assert checks.problems(BY_NAME["VirtualMachine"], doc) == ()


# --- what the API server fills in --------------------------------------------

DEFAULTS = [
    ("VirtualMachine", "spec.disks", [{"name": "d", "sizeGiB": 1}], "type", "thin"),
    ("VirtualMachine", "spec.disks", [{"name": "d", "sizeGiB": 1}], "expandPolicy", "Offline"),
    ("VirtualMachine", "spec.lifecycle", {}, "gracefulShutdownTimeout", "60s"),
    ("Provider", "spec.runtime.service", {}, "port", 9443),
    ("Provider", "spec.runtime.service.tls", {}, "enabled", True),
    ("Provider", "spec.rateLimit", {}, "qps", 10),
    ("Provider", "spec.healthCheck", {}, "interval", "30s"),
    ("Provider", "spec.connectionPooling", {}, "maxConnections", 10),
    ("VMMigration", "spec.options", {}, "timeout", "4h"),
    ("VMMigration", "spec.options", {}, "cleanupPolicy", "OnSuccess"),
    ("VMMigration", "spec.options.retryPolicy", {}, "maxRetries", 3),
    ("VMMigration", "spec.storage", {}, "type", "pvc"),
    ("VMMigration", "spec.storage", {}, "transferMode", "auto"),
    ("VMSet", "spec.updateStrategy", {}, "type", "RollingUpdate"),
    ("VMSet", "spec.updateStrategy.rollingUpdate", {}, "maxUnavailable", "25%"),
    ("VMSet", "spec.updateStrategy.rollingUpdate", {}, "maxSurge", "25%"),
    ("VMSet", "spec.persistentVolumeClaimRetentionPolicy", {}, "whenDeleted", "Retain"),
    ("VMSnapshot", "spec.snapshotConfig", {}, "quiesce", True),
    ("VMSnapshot", "spec.retentionPolicy", {}, "gracePeriod", "24h"),
    ("VMClass", "spec.diskDefaults", {}, "size", "40Gi"),
    ("VMImage", "spec.prepare", {}, "onMissing", "Import"),
    ("VMClone", "spec.options", {}, "type", "FullClone"),
    ("VMNetworkAttachment", "spec.network", {}, "mtu", 1500),
    ("VMNetworkAttachment", "spec.ipAllocation", {}, "type", "DHCP"),
]


@pytest.mark.parametrize(("kind", "path", "given", "field", "expected"), DEFAULTS)
def test_an_api_server_fills_in_the_default(kind: str, path: str, given: Any, field: str, expected: Any) -> None:
    place: Any = checks.defaulted(BY_NAME[kind], document(kind, **{path: given}))
    for step in path.split("."):
        place = place[step]
    assert (place[0] if isinstance(place, list) else place)[field] == expected


@pytest.mark.parametrize(
    ("kind", "path"),
    [
        ("Provider", "spec.runtime.service.tls.enabled"),
        ("Provider", "spec.healthCheck.enabled"),
        ("VMMigration", "spec.source.createSnapshot"),
        ("VMSnapshot", "spec.snapshotConfig.quiesce"),
        ("VMSnapshot", "spec.retentionPolicy.deleteOnVMDelete"),
    ],
)
def test_an_explicit_false_survives_where_the_default_is_true(kind: str, path: str) -> None:
    doc = document(kind, **{path: False})
    assert msgspec.to_builtins(msgspec.convert(doc, BY_NAME[kind].model)) == doc


# --- what they refuse, and where ---------------------------------------------

REFUSED = [
    ("VirtualMachine", "spec.powerState", "on", "spec.powerState"),
    ("VirtualMachine", "spec.resources", {"cpu": 0}, "spec.resources.cpu"),
    ("VirtualMachine", "spec.resources", {"cpu": 129}, "spec.resources.cpu"),
    ("VirtualMachine", "spec.resources", {"memoryMiB": 127}, "spec.resources.memoryMiB"),
    ("VirtualMachine", "spec.resources", {"gpu": {"count": 9}}, "spec.resources.gpu.count"),
    ("VirtualMachine", "spec.disks", [{"name": "d", "sizeGiB": 0}], "spec.disks[0].sizeGiB"),
    ("VirtualMachine", "spec.disks", [{"name": "d", "sizeGiB": 65537}], "spec.disks[0].sizeGiB"),
    ("VirtualMachine", "spec.disks", [{"name": "Data", "sizeGiB": 1}], "spec.disks[0].name"),
    ("VirtualMachine", "spec.networks", [{"name": "n", "ipAddress": "10.0.0.256"}], "spec.networks[0].ipAddress"),
    ("VirtualMachine", "spec.networks", [{"name": "n", "prefix": 33}], "spec.networks[0].prefix"),
    ("VirtualMachine", "spec.networks", [{"name": "n", "macAddress": "00:11"}], "spec.networks[0].macAddress"),
    ("VirtualMachine", "spec.networks", [{"name": f"n{i}"} for i in range(11)], "spec.networks"),
    (
        "VirtualMachine",
        "spec.lifecycle",
        {"gracefulShutdownTimeout": "a while"},
        "spec.lifecycle.gracefulShutdownTimeout",
    ),
    ("VirtualMachine", "spec.imageRef", {"name": "-bad"}, "spec.imageRef.name"),
    ("VirtualMachine", "spec.importedDisk", {"diskID": ""}, "spec.importedDisk.diskID"),
    ("Provider", "spec.type", "hyperv", "spec.type"),
    ("Provider", "spec.endpoint", "vcenter.example.com", "spec.endpoint"),
    ("Provider", "spec.runtime.replicas", 11, "spec.runtime.replicas"),
    ("Provider", "spec.runtime.service", {"port": 80}, "spec.runtime.service.port"),
    ("Provider", "spec.rateLimit", {"qps": 0}, "spec.rateLimit.qps"),
    ("VMMigration", "spec.options", {"retryPolicy": {"maxRetries": 11}}, "spec.options.retryPolicy.maxRetries"),
    ("VMMigration", "spec.storage", {"type": "ftp"}, "spec.storage.type"),
    ("VMMigration", "spec.storage", {"pvc": {"size": "big"}}, "spec.storage.pvc.size"),
    ("VMMigration", "spec.target.name", "with.dots", "spec.target.name"),
    ("VMSet", "spec.replicas", 1001, "spec.replicas"),
    ("VMSet", "spec.replicas", -1, "spec.replicas"),
    ("VMSet", "spec.minReadySeconds", 3601, "spec.minReadySeconds"),
    ("VMSet", "spec.updateStrategy", {"type": "Canary"}, "spec.updateStrategy.type"),
    (
        "VMSet",
        "spec.updateStrategy",
        {"rollingUpdate": {"maxSurge": "a few"}},
        "spec.updateStrategy.rollingUpdate.maxSurge",
    ),
    ("VMPlacementPolicy", "spec.priority", 1001, "spec.priority"),
    ("VMPlacementPolicy", "spec.weight", 0, "spec.weight"),
    (
        "VMPlacementPolicy",
        "spec.antiAffinity",
        {"hostAntiAffinity": {"enabled": True, "maxVMsPerHost": 0}},
        "spec.antiAffinity.hostAntiAffinity.maxVMsPerHost",
    ),
    (
        "VMPlacementPolicy",
        "spec.resourceConstraints",
        {"maxCPUUtilization": 101},
        "spec.resourceConstraints.maxCPUUtilization",
    ),
    ("VMSnapshot", "spec.retentionPolicy", {"maxCount": 0}, "spec.retentionPolicy.maxCount"),
    ("VMSnapshot", "spec.retentionPolicy", {"maxAge": "1h" * 33}, "spec.retentionPolicy.maxAge"),
    ("VMSnapshot", "spec.schedule", {"cronSpec": "at dawn"}, "spec.schedule.cronSpec"),
    ("VMClass", "spec.cpu", 0, "spec.cpu"),
    ("VMClass", "spec.firmware", "uefi", "spec.firmware"),
    ("VMClass", "spec.diskDefaults", {"iops": 99}, "spec.diskDefaults.iops"),
    ("VMImage", "spec.source", {"http": {"url": "disk.qcow2"}}, "spec.source.http.url"),
    ("VMImage", "spec.prepare", {"retries": 11}, "spec.prepare.retries"),
    ("VMImage", "spec.source", {"proxmox": {"templateID": 99}}, "spec.source.proxmox.templateID"),
    ("VMClone", "spec.options", {"type": "Copy"}, "spec.options.type"),
    ("VMClone", "spec.options", {"performance": {"maxIOPS": 1}}, "spec.options.performance.maxIOPS"),
    ("VMNetworkAttachment", "spec.network", {"mtu": 67}, "spec.network.mtu"),
    (
        "VMNetworkAttachment",
        "spec.network",
        {"vsphere": {"vlan": {"vlanID": 4095}}},
        "spec.network.vsphere.vlan.vlanID",
    ),
    ("VMNetworkAttachment", "spec.network", {"vsphere": {"pciSlotNumber": 31}}, "spec.network.vsphere.pciSlotNumber"),
    ("VMNetworkAttachment", "spec.network", {"proxmox": {"bridge": "br0"}}, "spec.network.proxmox.bridge"),
    ("VMNetworkAttachment", "spec.qos", {"dscp": 64}, "spec.qos.dscp"),
]


@pytest.mark.parametrize(("kind", "path", "value", "where"), REFUSED)
def test_a_value_out_of_bounds_is_refused_at_its_path(kind: str, path: str, value: Any, where: str) -> None:
    doc = document(kind, **{path: value})
    assert [problem.path for problem in checks.problems(BY_NAME[kind], doc)] == [where]
    with pytest.raises(msgspec.ValidationError, match=re.escape(f"`$.{where}`")):
        msgspec.convert(doc, BY_NAME[kind].model)


@pytest.mark.parametrize(("kind", "field"), [(kind, field) for kind, spec in SMALLEST.items() for field in spec])
def test_a_spec_without_a_required_field_is_refused(kind: str, field: str) -> None:
    doc = document(kind)
    del doc["spec"][field]
    # Nothing is logged in to where machines are simulated.
    optional = (kind, field) in (("VirtualMachine", "imageRef"), ("Provider", "credentialSecretRef"))
    found = [problem.path for problem in checks.problems(BY_NAME[kind], doc)]
    assert found == ([] if optional else [f"spec.{field}"])


@pytest.mark.parametrize(
    ("kind", "path", "entry"),
    [
        ("VirtualMachine", "spec.disks", {"name": "data", "sizeGiB": 1}),
        ("VirtualMachine", "spec.networks", {"name": "app"}),
        (
            "VMNetworkAttachment",
            "spec.security.firewall.rules",
            {"name": "ssh", "action": "ACCEPT", "direction": "in"},
        ),
    ],
)
def test_two_entries_of_one_name_are_refused(kind: str, path: str, entry: dict[str, Any]) -> None:
    found = checks.problems(BY_NAME[kind], document(kind, **{path: [entry, entry]}))
    assert [problem.path for problem in found] == [f"{path}[1]"]


# --- what only a rule can say ------------------------------------------------

RULES = [
    ("VirtualMachine", "", "providerRef is immutable once the machine exists"),
    ("VirtualMachine", ".spec", "exactly one of imageRef and importedDisk"),
    ("VirtualMachine", ".spec.lifecycle.preStop", "exactly one of exec, httpGet and snapshot"),
    ("Provider", ".spec.type", "spec.type is immutable"),
    ("VMMigration", ".spec.source.vmRef", "spec.source.vmRef is immutable"),
    ("VMMigration", ".spec.target.name", "spec.target.name is immutable"),
    ("VMMigration", ".spec.target.providerRef", "spec.target.providerRef is immutable"),
    ("VMMigration", ".spec.storage", "s3 is written with type s3"),
    ("VMMigration", ".spec.storage", "nfs is written with type nfs"),
    ("VMMigration", ".spec.storage", "only nfs is reached directly"),
    ("VMMigration", ".spec.storage.pvc", "the name of a claim, or the size"),
    ("VMSet", ".spec.selector", "spec.selector is immutable"),
    ("VMSet", ".spec.selector", "an empty selector"),
    ("VMSet", ".spec.template.spec", "exactly one of imageRef and importedDisk"),
    ("VMPlacementPolicy", ".spec.affinity.vmAffinity.requiredDuringScheduling[].matchExpressions[]", "need values"),
    ("VMSnapshot", ".spec.vmRef", "spec.vmRef is immutable"),
    ("VMSnapshot", ".spec.schedule", "needs cronSpec"),
    ("VMImage", ".spec.source", "at least one of vsphere"),
    ("VMImage", ".spec.source.libvirt", "path or url"),
    ("VMClone", ".spec.source", "exactly one of vmRef"),
    ("VMClone", ".spec.source", "spec.source is immutable"),
    ("VMClone", ".spec.target.name", "spec.target.name is immutable"),
    ("VMNetworkAttachment", ".spec.ipAllocation", "needs poolConfig"),
    ("VMNetworkAttachment", ".spec.security.firewall.rules[].ports", "before start"),
]


@pytest.mark.parametrize(("kind", "path", "message"), RULES)
def test_a_rule_stands_where_it_can_see_what_it_judges(kind: str, path: str, message: str) -> None:
    messages = [rule["message"] for rule in schema_at(kind, path).get("x-kubernetes-validations", ())]
    assert [found for found in messages if message in found], messages
