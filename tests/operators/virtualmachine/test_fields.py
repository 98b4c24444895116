"""Every field, phase and condition of the statuses of all kinds is seen; those of migrations in a story of their own.

The schema of a kind says which fields there are; `ELSEWHERE` lists those that this story does not reach, and why.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterator
from typing import Any

import msgspec
import pytest
from tests.operators.virtualmachine.snapshot_stories import in_phase, snapshot, taken
from tests.operators.virtualmachine.stories import (
    CLASSES,
    CLONES,
    HOT,
    IMAGES,
    MACHINES,
    NETWORKS,
    POLICIES,
    PROVIDERS,
    SETS,
    SNAPSHOTS,
    Fault,
    Hypervisors,
    Wire,
    created,
    image,
    is_ready,
    machine,
    play_story,
    policy,
    provider,
    vm_class,
)
from tests.operators.virtualmachine.test_clones import clone
from tests.operators.virtualmachine.test_clones import in_phase as clone_in_phase
from tests.operators.virtualmachine.test_sets import ANOTHER, rolling, vm_set

from holdfast.client.protocols import Bookmark
from holdfast.client.resources import Resource
from holdfast.kinds import crds, virtrigaud
from holdfast.providers.contract import Code
from holdfast.providers.simulated import CAPABILITIES
from holdfast.testing.clusters import Cluster

RESOURCES = (MACHINES, PROVIDERS, SETS, SNAPSHOTS, CLONES, IMAGES, CLASSES, NETWORKS, POLICIES)

SEED: dict[str, tuple[str, str, str]] = {
    "VirtualMachine": (
        (
            "id powerState phase message ips consoleURL lastTaskRef reconfigureTaskRef lastReconfigureTime "
            "currentResources snapshots observedGeneration provider"
        ),
        "Pending Provisioning Running Stopped Reconfiguring Deleting Failed",
        "Ready Provisioning Reconfiguring Deleting",
    ),
    "Provider": (
        (
            "healthy lastHealthCheck runtime.mode runtime.endpoint runtime.phase runtime.message "
            "capabilities version connectedVMs resourceUsage observedGeneration"
        ),
        "",
        "Ready Healthy Connected RuntimeReady",
    ),
    "VMSet": (
        (
            "replicas readyReplicas availableReplicas updatedReplicas currentReplicas currentRevision updateRevision "
            "collisionCount updateStatus.phase updateStatus.message updateStatus.startTime updateStatus.completionTime "
            "updateStatus.updatedVMs updateStatus.pendingVMs updateStatus.failedVMs vmStatus observedGeneration"
        ),
        "Pending InProgress Paused Completed Failed",
        "Ready Progressing ReplicaFailure UpdateInProgress Scaling",
    ),
    "VMSnapshot": (
        (
            "snapshotID phase message creationTime completionTime expiryTime size virtualSize progress taskRef "
            "providerStatus children parent observedGeneration"
        ),
        "Pending Creating Ready Deleting Failed Expired",
        "Ready Creating Deleting Expired",
    ),
    "VMClone": (
        (
            "phase message targetRef targetVMID taskRef startTime completionTime retryCount lastRetryTime "
            "actualCloneType progress.overallPercentage customizationStatus observedGeneration"
        ),
        "Pending Preparing Cloning Customizing Powering-On Ready Failed",
        "Ready Cloning Customizing Failed",
    ),
    "VMImage": (
        (
            "ready phase message availableOn lastPrepareTime prepareTaskRef importProgress size checksum format "
            "providerStatus observedGeneration"
        ),
        "Pending Downloading Importing Converting Optimizing Ready Failed",
        "Ready Downloading Importing Validated",
    ),
    "VMClass": ("usedByVMs supportedProviders validationResults observedGeneration", "", "Ready Validated Supported"),
    "VMNetworkAttachment": (
        "ready phase message availableOn connectedVMs ipAllocations providerStatus observedGeneration",
        "Ready Failed",
        "Ready Validated",
    ),
    "VMPlacementPolicy": (
        (
            "usedByVMs validationResults placementStats.totalPlacements placementStats.successfulPlacements "
            "placementStats.failedPlacements placementStats.averagePlacementTime placementStats.constraintViolations "
            "placementStats.lastPlacementTime placementStats.placementDistribution conflictingPolicies "
            "observedGeneration"
        ),
        "",
        "Ready Validated Conflicts Supported",
    ),
}
"""The fields, the phases and the conditions of each kind that its users know from VirtRigaud."""

ELSEWHERE: dict[str, dict[str, str]] = {
    "VirtualMachine": {
        **{
            f"currentResources.gpu{each}": "no provider gives machines GPUs"
            for each in ("", ".count", ".memory", ".type")
        },
        "heldFor": "a migration holds its source: test_migrations.py",
    },
    "Provider": {
        **{f"inventory.{each}": "the simulated hypervisor has none" for each in ("folders", "resourcePools")},
        "probes.successes": "test_providers.py",
        **{
            f"resourceUsage.network{each}": "no provider counts traffic"
            for each in ("", ".bytesReceived", ".bytesSent", ".packetsReceived", ".packetsSent")
        },
    },
    "VMSet": {
        "floor.lowered": "an update for which minAvailable leaves no way is blocked, and the floor not lowered",
        "updateStatus.waitingVMs": "a class that needs a restart: test_sets.py",
    },
    "VMSnapshot": {
        "providerStatus.path": "no provider says where it stores snapshots",
        "failed.generation": "only migrations record it",
    },
    "VMClone": {"failed.generation": "only migrations record it"},
    "VMNetworkAttachment": {
        "ipAllocations.leaseExpiry": "only static addresses are listed, and those are not leased",
        "providerStatus.id": "networks are described, and not made on providers",
    },
}
"""Fields of each kind that are not reached, and why."""


class Seen:
    """What the statuses of one kind have shown."""

    def __init__(self, schema: Wire) -> None:
        self.schema = schema
        self.fields: set[str] = set()
        self.phases: set[str] = set()
        self.conditions: set[tuple[str, str]] = set()

    def add(self, status: Wire) -> None:
        self.fields |= set(present(self.schema, status))
        phase = status.get("phase") or status.get("updateStatus", {}).get("phase")
        self.phases |= {phase} if phase else set()
        self.conditions |= {(each["type"], each["status"]) for each in status.get("conditions", ())}


def present(schema: Wire, value: Any, at: str = "") -> Iterator[str]:
    """The paths of the fields of a value; the keys of maps and the places in lists are left out."""
    if isinstance(value, dict) and "properties" in schema:
        for name, inner in value.items():
            path = f"{at}.{name}" if at else name
            yield path
            yield from present(schema["properties"].get(name, {}), inner, path)
    elif isinstance(value, dict) and isinstance(schema.get("additionalProperties"), dict):
        for inner in value.values():
            yield from present(schema["additionalProperties"], inner, at)
    elif isinstance(value, list):
        for inner in value:
            yield from present(schema.get("items", {}), inner, at)


def declared(schema: Wire, at: str = "") -> Iterator[str]:
    """The paths of all fields of a schema, in the same form."""
    for name, inner in schema.get("properties", {}).items():
        path = f"{at}.{name}" if at else name
        yield path
        yield from declared(inner, path)
    for key in ("additionalProperties", "items"):
        if isinstance(schema.get(key), dict):
            yield from declared(schema[key], at)


def status_schema(resource: Resource) -> Wire:
    kind = next(each for each in virtrigaud.KINDS if each.plural == resource.plural)
    schema: Wire = crds.schema_of(kind.model)["properties"]["status"]
    return schema


@contextlib.asynccontextmanager
async def watched(cluster: Cluster) -> AsyncIterator[dict[str, Seen]]:
    """Look at every status that is written."""
    seen = {resource.kind: Seen(status_schema(resource)) for resource in RESOURCES}

    async def follow(resource: Resource) -> None:
        while True:
            async with cluster.client.watch(resource, initial=True) as events:
                async for event in events:
                    if not isinstance(event, Bookmark):
                        seen[resource.kind].add(event.object.wire().get("status") or {})

    tasks = [asyncio.ensure_future(follow(resource)) for resource in RESOURCES]
    try:
        yield seen
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


@pytest.fixture(scope="module")
def seen() -> dict[str, Seen]:
    faults = (
        Fault(call="inventory", times=1),
        Fault(call="create", name="bad-*", code=Code.INVALID),
        Fault(call="snapshot", name="frail-*", times=1, code=Code.INTERNAL, when="task"),
        Fault(call="clone", name="frail-copy-*", times=1, code=Code.CONFLICT, when="task"),
        Fault(call="execute", name="copy-*", times=1, code=Code.CONFLICT),
        Fault(call="prepare_image", name="broken-*", code=Code.INTERNAL),
        Fault(call="clone", name="lucky-*", times=1, code=Code.QUOTA),
        Fault(call="create", name="picky-*", times=1, code=Code.QUOTA),
    )

    hypervisors = Hypervisors(faults=faults)

    async def story(cluster: Cluster) -> dict[str, Seen]:
        hypervisors.at("blind:9443").answers = msgspec.structs.replace(CAPABILITIES, inventory=False)
        async with watched(cluster) as found:
            await _furnished(cluster)
            hypervisors.at().set_maintenance("host-2", True)
            for part in (_machines, _networks, _snapshots, _clones, _sets, _policies):
                await part(cluster)
            await cluster.settle()
            return found

    return play_story(story, hypervisors)


async def _furnished(cluster: Cluster) -> None:
    await cluster.create(PROVIDERS, provider())
    await cluster.create(CLASSES, vm_class(**HOT))
    await cluster.create(CLASSES, vm_class("large", cpu=4, **HOT))
    checksum = {"checksum": "0" * 64, "checksumType": "sha256", "format": "qcow2"}
    source = {"libvirt": {"url": "https://images.example.com/a.qcow2", **checksum}}
    await cluster.create(IMAGES, image(source=source, prepare={"optimization": {"enableCompression": True}}))
    await cluster.create(IMAGES, image("nowhere", source={"dataVolume": {"name": "disk"}}))
    await cluster.create(IMAGES, image("broken", source={"http": {"url": "https://images.example.com/b"}}))
    await cluster.until(lambda: is_ready(cluster, PROVIDERS, "sim"))


async def _machines(cluster: Cluster) -> None:
    await created(cluster, "db", disks=[{"name": "data", "sizeGiB": 1}])
    await taken(cluster, "described", machine="db", snapshotConfig={"description": "before"})
    await cluster.patch(MACHINES, "db", {"spec": {"snapshot": {"revertToRef": {"name": "described"}}}})
    await cluster.advance(30)
    await cluster.patch(MACHINES, "db", {"metadata": {"annotations": {"virtrigaud.io/reboot": "now"}}})
    await cluster.advance(30)
    await cluster.patch(MACHINES, "db", {"spec": {"resources": {"cpu": 1}}})  # it needs a restart, and waits
    await cluster.patch(PROVIDERS, "sim", {"metadata": {"annotations": {"virtrigaud.io/adopt-vms": "true"}}})
    await cluster.advance(60)


async def _networks(cluster: Cluster) -> None:
    await cluster.create(
        NETWORKS, {"metadata": {"name": "net"}, "spec": {"network": {"libvirt": {"networkName": "n"}}}}
    )
    card = {"name": "a", "networkRef": {"name": "net"}, "ipAddress": "10.0.0.5", "macAddress": "52:54:00:00:00:01"}
    await created(cluster, networks=[card])
    await created(cluster, "frail", networks=[card])
    await cluster.create(MACHINES, machine("unlucky", imageRef={"name": "broken"}))
    await cluster.create(MACHINES, machine("nowhere", imageRef={"name": "nowhere"}))
    await cluster.create(PROVIDERS, provider("silent", type="libvirt", endpoint="qemu:///system"))
    await cluster.create(MACHINES, machine("silent", providerRef={"name": "silent"}))
    await cluster.create(CLASSES, vm_class("wrong", memory="1Mi"))
    await cluster.create(CLASSES, vm_class("fast", diskDefaults={"type": "ssd"}))
    await cluster.create(MACHINES, machine("quick", classRef={"name": "fast"}))
    await cluster.patch(CLASSES, "small", {"spec": {"cpu": 3}})
    await cluster.advance(60)


async def _snapshots(cluster: Cluster) -> None:
    await cluster.create(SNAPSHOTS, snapshot("early", machine="later"))
    await in_phase(cluster, "Pending", "early")
    await taken(cluster, snapshotConfig={"includeMemory": True}, retentionPolicy={"maxAge": "20m", "gracePeriod": "1m"})
    await taken(cluster, "second")
    await cluster.create(SNAPSHOTS, snapshot("frail", machine="frail"))
    await in_phase(cluster, "Ready", "frail")
    await cluster.create(SNAPSHOTS, snapshot("secret", snapshotConfig={"encryption": {"enabled": True}}))
    await in_phase(cluster, "Failed", "secret")
    await cluster.create(SNAPSHOTS, snapshot("daily", schedule={"enabled": True, "cronSpec": "*/10 * * * *"}))
    await cluster.advance(1300)
    await cluster.delete(SNAPSHOTS, "daily")
    await cluster.advance(600)
    assert await cluster.find(SNAPSHOTS, "before") is None, "it has expired, and was deleted after the grace period"


async def _clones(cluster: Cluster) -> None:
    custom = {"hostname": "copy-1", "guestCommands": [{"command": "date"}, {"command": "true"}]}
    waiting = clone("early", source={"vmRef": {"name": "later"}}, target={"name": "later-copy"})
    await cluster.create(CLONES, waiting)
    options = {"powerOn": True, "retryPolicy": {"retryDelay": "10s"}}
    await cluster.create(CLONES, clone(options=options, customization=custom))
    await clone_in_phase(cluster, "Ready")
    policy = {"maxRetries": 1, "retryDelay": "30s"}
    frail = clone("frail", target={"name": "frail-copy"}, options={"retryPolicy": policy})
    await cluster.create(CLONES, frail)
    await clone_in_phase(cluster, "Ready", "frail")
    await cluster.create(CLONES, clone("second", target={"name": "copy"}))
    await clone_in_phase(cluster, "Failed", "second")


async def _sets(cluster: Cluster) -> None:
    async def phase(name: str, wanted: str) -> None:
        async def holds() -> bool:
            found = await cluster.get(SETS, name)
            status = found.get("status") or {}
            current = status.get("observedGeneration") == found["metadata"]["generation"]
            return current and status.get("updateStatus", {}).get("phase") == wanted

        await cluster.until(holds, within=3600)

    await cluster.create(SETS, vm_set(updateStrategy=rolling(maxSurge=0, maxUnavailable=1), minAvailable=1))
    await phase("web", "Completed")
    await cluster.patch(SETS, "web", {"spec": {"template": {"spec": {"classRef": {"name": "large"}}}}})
    await phase("web", "Completed")
    await cluster.patch(SETS, "web", ANOTHER)
    await phase("web", "InProgress")
    await cluster.patch(SETS, "web", {"spec": {"paused": True}})
    await phase("web", "Paused")
    await cluster.patch(SETS, "web", {"spec": {"paused": None, "updateStrategy": {"type": "OnDelete"}}})
    await phase("web", "InProgress")
    await cluster.patch(SETS, "web", {"spec": {"template": {"spec": {"tags": ["v3"]}}}})
    await phase("web", "Pending")
    await cluster.patch(SETS, "web", {"spec": {"replicas": 1}})
    await cluster.advance(30)
    await cluster.create(SETS, vm_set("few", updateStrategy=rolling(maxSurge=0, maxUnavailable="10%")))
    await phase("few", "Completed")
    await cluster.patch(SETS, "few", ANOTHER)
    await phase("few", "Completed")
    await cluster.create(SETS, vm_set("bad", replicas=2, progressDeadlineSeconds=60))
    await phase("bad", "Failed")


async def _policies(cluster: Cluster) -> None:
    near = {"labelSelector": {"matchLabels": {"app": "db"}}, "topologyKey": "zone"}
    apart = {"labelSelector": {"matchLabels": {"app": "web"}}, "topologyKey": "zone"}
    await cluster.create(PROVIDERS, provider("blind"))
    await cluster.create(POLICIES, policy("db", antiAffinity={"vmAntiAffinity": {"requiredDuringScheduling": [apart]}}))
    near_db = {"vmAffinity": {"requiredDuringScheduling": [near]}}
    await cluster.create(POLICIES, policy("web", affinity=near_db, hard={"hosts": ["host-0", "host-77"]}))
    await cluster.create(POLICIES, policy("lost", hard={"zones": ["zone-q"]}, soft={"zones": ["zone-a"]}))
    for name in ("db", "web", "lost"):
        await cluster.create(MACHINES, machine(f"{name}-1", labels={"app": name}, placementRef={"name": name}))
    blind = {"providerRef": {"name": "blind"}, "placementRef": {"name": "db"}}
    await cluster.create(MACHINES, machine("db-2", **blind))
    filed = {"folders": ["prod"], "resourcePools": ["gold"], "excludedHosts": ["host-3"]}
    await cluster.create(POLICIES, policy("copies", hard=filed, soft={"zones": ["zone-q"]}))
    await cluster.create(MACHINES, machine("picky", placementRef={"name": "copies"}))
    target = {"name": "lucky", "placementRef": {"name": "copies"}}
    await cluster.create(CLONES, clone("lucky", target=target, options={"retryPolicy": {"retryDelay": "10s"}}))
    await cluster.advance(60)
    await cluster.patch(POLICIES, "db", {"spec": {"antiAffinity": None}})
    await cluster.advance(60)


@pytest.mark.parametrize("kind", SEED)
def test_every_field_of_the_schema_is_seen(seen: dict[str, Seen], kind: str) -> None:
    every = set(declared(seen[kind].schema))
    assert sorted(every - seen[kind].fields - set(ELSEWHERE.get(kind, {}))) == []


@pytest.mark.parametrize("kind", SEED)
def test_every_field_phase_and_condition_of_the_seed_is_seen(seen: dict[str, Seen], kind: str) -> None:
    fields, phases, conditions = (set(each.split()) for each in SEED[kind])
    assert fields - seen[kind].fields == set()
    assert phases - seen[kind].phases == set()
    both = {(each, status) for each in conditions for status in ("True", "False")}
    assert both - seen[kind].conditions == set()
