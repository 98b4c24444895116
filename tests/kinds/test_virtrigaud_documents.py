"""Whole objects of virtual machines: everything that spec and status can tell is read and kept."""

from __future__ import annotations

from operator import attrgetter
from typing import Any

import msgspec
import pytest
from tests.kinds.documents import plain

from holdfast.kinds import checks
from holdfast.kinds.virtrigaud import KINDS
from holdfast.kinds.virtrigaud.machines import PowerState, VirtualMachinePhase
from holdfast.kinds.virtrigaud.migrations import MigrationPhase
from holdfast.kinds.virtrigaud.providers import ProviderCapability, ProviderRuntimePhase
from holdfast.kinds.virtrigaud.sets import VMSetUpdatePhase
from holdfast.kinds.virtrigaud.snapshots import SnapshotPhase

BY_NAME = {kind.name: kind for kind in KINDS}

NOON = "2026-03-01T12:00:00Z"
LATER = "2026-03-01T12:30:00Z"


def condition(kind: str, status: str, *, reason: str, message: str) -> dict[str, Any]:
    return {
        "type": kind,
        "status": status,
        "observedGeneration": 3,
        "lastTransitionTime": NOON,
        "reason": reason,
        "message": message,
    }


MACHINE_SPEC: dict[str, Any] = {
    "providerRef": {"name": "rack-a"},
    "classRef": {"name": "small"},
    "imageRef": {"name": "debian"},
}

DOCUMENTS: list[tuple[str, dict[str, Any], dict[str, Any], dict[str, Any]]] = [
    (
        "VirtualMachine",
        MACHINE_SPEC,
        {
            "id": "vm-42",
            "powerState": "On",
            "phase": "Running",
            "message": "VM is running",
            "ips": ["10.0.0.7", "fe80::1"],
            "consoleURL": "vnc://rack-a:5901",
            "lastTaskRef": "task-1",
            "reconfigureTaskRef": "task-2",
            "lastReconfigureTime": NOON,
            "currentResources": {"cpu": 2, "memoryMiB": 4096, "gpu": {"count": 1, "type": "a10", "memory": 24576}},
            "snapshots": [
                {"id": "s-1", "name": "nightly", "creationTime": NOON, "sizeBytes": 1024, "hasMemory": False}
            ],
            "observedGeneration": 3,
            "conditions": [
                condition("Ready", "True", reason="ReconcileSucceeded", message="VM synchronized successfully"),
                condition("Provisioning", "False", reason="ReconcileSucceeded", message="created"),
            ],
            "provider": {"moref": "vm-42"},
            "boundProvider": {"namespace": "infra", "name": "rack-a", "uid": "8d1f"},
            "placement": {
                "cluster": "c1",
                "host": "h1",
                "datastore": "d1",
                "lastScheduledTime": NOON,
                "reason": "free",
            },
        },
        {
            "status.power_state": PowerState.ON,
            "status.phase": VirtualMachinePhase.RUNNING,
            "status.ips": ("10.0.0.7", "fe80::1"),
            "status.console_url": "vnc://rack-a:5901",
            "status.current_resources.memory_mib": 4096,
            "status.bound_provider.uid": "8d1f",
        },
    ),
    (
        "Provider",
        {
            "type": "vsphere",
            "endpoint": "https://vcenter.example.com/sdk",
            "credentialSecretRef": {"name": "vcenter"},
            "runtime": {
                "mode": "Remote",
                "image": "provider-vsphere:1",
                "env": [{"name": "A", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}],
                "affinity": {"nodeAffinity": {}},
            },
        },
        {
            "healthy": True,
            "lastHealthCheck": NOON,
            "runtime": {
                "mode": "Remote",
                "endpoint": "virtrigaud-provider-infra-rack-a:9443",
                "serviceRef": {"name": "virtrigaud-provider-infra-rack-a"},
                "phase": "Running",
                "message": "ready",
                "readyReplicas": 1,
                "availableReplicas": 1,
            },
            "capabilities": ["VirtualMachines", "Snapshots"],
            "reportedCapabilities": {
                "supportsSnapshots": True,
                "supportsLinkedClones": False,
                "supportedExportFormats": ["vmdk"],
                "supportedTransferModes": ["relay"],
            },
            "version": "1.0.0",
            "connectedVMs": 7,
            "resourceUsage": {
                "cpu": {"total": 64, "used": 16, "available": 48, "usagePercent": 25},
                "network": {"bytesReceived": 1, "bytesSent": 2, "packetsReceived": 3, "packetsSent": 4},
            },
            "adoption": {"lastDiscoveryTime": NOON, "discoveredVMs": 9, "adoptedVMs": 8, "failedAdoptions": 1},
            "observedGeneration": 3,
            "conditions": [
                condition("Ready", "True", reason="ProviderHealthy", message="Provider is healthy and ready")
            ],
        },
        {
            "status.runtime.phase": ProviderRuntimePhase.RUNNING,
            "status.capabilities": (ProviderCapability.VIRTUAL_MACHINES, ProviderCapability.SNAPSHOTS),
            "status.connected_vms": 7,
            "status.adoption.adopted_vms": 8,
            "status.reported_capabilities.supports_linked_clones": False,
        },
    ),
    (
        "VMMigration",
        {
            "source": {"vmRef": {"name": "a"}, "snapshotRef": {"name": "s"}, "createSnapshot": False},
            "target": {"name": "b", "providerRef": {"name": "rack-b", "namespace": "infra"}, "powerOn": True},
            "storage": {"type": "nfs", "nfs": {"server": "nas", "export": "/m", "readOnly": False, "uid": 0, "gid": 0}},
        },
        {
            "phase": "Exporting",
            "message": "Exporting disk from source provider",
            "targetVMRef": {"name": "b"},
            "snapshotRef": "s",
            "snapshotID": "snapshot-1",
            "exportID": "export-1",
            "importID": "import-1",
            "taskRef": "task-1",
            "targetVMID": "vm-43",
            "startTime": NOON,
            "completionTime": LATER,
            "progress": {
                "currentPhase": "Exporting",
                "totalBytes": 100,
                "transferredBytes": 30,
                "percentage": 30,
                "eta": "2m30s",
                "transferRate": 10,
                "phaseStartTime": NOON,
            },
            "diskInfo": {
                "sourceDiskID": "d-1",
                "sourceFormat": "vmdk",
                "sourceSize": "40Gi",
                "targetDiskID": "d-2",
                "targetFormat": "qcow2",
                "targetPath": "/images/d-2.qcow2",
                "targetSize": 42949672960,
                "checksum": "aa",
                "sourceChecksum": "aa",
                "targetChecksum": "aa",
            },
            "storageInfo": {"url": "nfs://nas/m/a", "size": "40Gi", "uploadedAt": NOON, "cleanedUp": False},
            "storagePVCName": "a-storage",
            "retryCount": 0,
            "lastRetryTime": NOON,
            "validationResults": {
                "diskSizeMatch": True,
                "checksumMatch": True,
                "bootSuccess": False,
                "connectivitySuccess": False,
                "validationErrors": ["no answer"],
            },
            "observedGeneration": 3,
            "conditions": [
                condition("Exporting", "True", reason="Exporting", message="Exporting disk from source provider")
            ],
        },
        {
            "status.phase": MigrationPhase.EXPORTING,
            "status.progress.percentage": 30,
            "status.target_vm_ref.name": "b",
            "status.storage_pvc_name": "a-storage",
            "status.disk_info.target_size": 42949672960,
            "status.retry_count": 0,
        },
    ),
    (
        "VMSet",
        {
            "replicas": 5,
            "paused": True,
            "selector": {"matchLabels": {"app": "db"}},
            "template": {"metadata": {"labels": {"app": "db"}}, "spec": MACHINE_SPEC},
            "updateStrategy": {"rollingUpdate": {"maxUnavailable": 1, "maxSurge": "50%", "partition": 0}},
            "ordinals": {"start": 1},
            "volumeClaimTemplates": [{"metadata": {"name": "data"}, "spec": {"accessModes": ["ReadWriteOnce"]}}],
        },
        {
            "replicas": 5,
            "readyReplicas": 4,
            "availableReplicas": 4,
            "updatedReplicas": 3,
            "currentReplicas": 2,
            "currentRevision": "db-1",
            "updateRevision": "db-2",
            "collisionCount": 0,
            "selector": "app=db",
            "updateStatus": {
                "phase": "InProgress",
                "message": "Rolling update in progress: 3/5 VMs updated",
                "startTime": NOON,
                "completionTime": LATER,
                "updatedVMs": ["vm-1", "vm-2"],
                "pendingVMs": ["vm-3"],
                "failedVMs": [
                    {"name": "vm-4", "reason": "NoRoom", "message": "full", "lastAttempt": NOON, "retryCount": 2}
                ],
            },
            "vmStatus": [
                {
                    "name": "vm-1",
                    "phase": "Running",
                    "ready": True,
                    "revision": "db-2",
                    "creationTime": NOON,
                    "lastUpdateTime": LATER,
                }
            ],
            "observedGeneration": 3,
            "conditions": [condition("Progressing", "True", reason="UpdatingReplicas", message="3 of 5 are updated")],
        },
        {
            "spec.update_strategy.rolling_update.max_unavailable": 1,
            "spec.update_strategy.rolling_update.max_surge": "50%",
            "status.update_status.phase": VMSetUpdatePhase.IN_PROGRESS,
            "status.update_status.updated_vms": ("vm-1", "vm-2"),
            "status.updated_replicas": 3,
        },
    ),
    (
        "VMPlacementPolicy",
        {
            "hard": {
                "clusters": ["c1"],
                "tolerations": [{"key": "spot", "operator": "Exists", "effect": "NoSchedule"}],
            },
            "affinity": {
                "vmAffinity": {
                    "preferredDuringScheduling": [
                        {
                            "weight": 50,
                            "vmAffinityTerm": {
                                "topologyKey": "zone",
                                "labelSelector": {"matchLabels": {"app": "db"}},
                                "matchExpressions": [{"key": "tier", "operator": "In", "values": ["gold"]}],
                            },
                        }
                    ]
                },
                "zoneAffinity": {"enabled": True, "preferredZones": ["z1"]},
            },
            "antiAffinity": {"clusterAntiAffinity": {"enabled": True, "maxVMsPerCluster": 3, "scope": "preferred"}},
            "resourceConstraints": {"minCPUPerHost": 4, "minMemoryPerHost": "8Gi", "maxCPUUtilization": 80},
            "securityConstraints": {"requireTPM": True, "requireNUMATopology": False, "trustLevel": "trusted"},
        },
        {
            "usedByVMs": [{"name": "a"}, {"name": "b"}],
            "validationResults": {
                "vsphere": {
                    "valid": True,
                    "message": "Policy is valid for vSphere provider",
                    "unsupportedFeatures": ["zones"],
                    "lastValidated": NOON,
                }
            },
            "placementStats": {
                "totalPlacements": 3,
                "successfulPlacements": 2,
                "failedPlacements": 1,
                "averagePlacementTime": "1.5s",
                "constraintViolations": 0,
                "lastPlacementTime": NOON,
                "placementDistribution": {"h1": 1, "h2": 1},
            },
            "conflictingPolicies": [{"policyName": "pack", "conflictType": "affinity", "severity": "high"}],
            "observedGeneration": 3,
            "conditions": [condition("Ready", "True", reason="Valid", message="Placement policy is valid and ready")],
        },
        {
            "status.placement_stats.successful_placements": 2,
            "spec.anti_affinity.cluster_anti_affinity.max_vms_per_cluster": 3,
            "spec.security_constraints.require_tpm": True,
            "spec.resource_constraints.min_cpu_per_host": 4,
        },
    ),
    (
        "VMSnapshot",
        {"vmRef": {"name": "a"}, "metadata": {"pinned": True, "purpose": "restore-point", "environment": "qa"}},
        {
            "snapshotID": "snapshot-1",
            "phase": "Creating",
            "message": "75 per cent",
            "creationTime": NOON,
            "completionTime": LATER,
            "expiryTime": LATER,
            "size": "1Gi",
            "virtualSize": "40Gi",
            "progress": {"totalBytes": 4, "completedBytes": 3, "percentage": 75, "startTime": NOON, "eta": "10s"},
            "taskRef": "task-1",
            "providerStatus": {"rack-a": {"available": False, "id": "snapshot-1", "state": "creating"}},
            "children": [{"name": "later", "namespace": "infra", "uid": "1"}],
            "parent": {"name": "earlier"},
            "observedGeneration": 3,
            "conditions": [
                condition("Creating", "True", reason="Creating", message="Snapshot creation in progress (75% complete)")
            ],
        },
        {
            "status.snapshot_id": "snapshot-1",
            "status.phase": SnapshotPhase.CREATING,
            "status.progress.percentage": 75,
            "status.parent.name": "earlier",
        },
    ),
    (
        "VMClass",
        {
            "cpu": 4,
            "memory": "16Gi",
            "resourceLimits": {"cpuLimit": 8000, "memoryReservation": "8Gi", "cpuShares": 2000},
            "securityProfile": {
                "tpmEnabled": True,
                "tpmVersion": "2.0",
                "encryptionPolicy": {"keyProvider": "external"},
            },
        },
        {
            "usedByVMs": 3,
            "supportedProviders": ["rack-a"],
            "validationResults": {"rack-a": {"valid": True, "warnings": ["no GPU"], "lastValidated": NOON}},
        },
        {"status.used_by_vms": 3, "spec.resource_limits.cpu_limit": 8000, "spec.security_profile.tpm_version": "2.0"},
    ),
    (
        "VMImage",
        {
            "source": {
                "vsphere": {"ovaURL": "https://example.com/a.ova", "checksum": "aa", "checksumType": "sha512"},
                "proxmox": {"templateID": 9000, "fullClone": False},
                "http": {
                    "url": "https://example.com/a.qcow2",
                    "authentication": {"clientCert": {"secretRef": {"name": "c"}, "certKey": "crt", "keyKey": "key"}},
                },
            },
            "prepare": {
                "storage": {"libvirt": {"preallocation": "metadata"}},
                "optimization": {"convertFormat": "raw"},
            },
        },
        {
            "ready": True,
            "phase": "Ready",
            "availableOn": ["rack-a"],
            "lastPrepareTime": NOON,
            "prepareTaskRef": "task-1",
            "importProgress": {"percentage": 100, "eta": "0s"},
            "size": "2Gi",
            "format": "qcow2",
            "providerStatus": {"rack-a": {"available": True, "path": "/images/a", "taskRef": "task-2"}},
        },
        {
            "spec.source.vsphere.ova_url": "https://example.com/a.ova",
            "spec.source.proxmox.template_id": 9000,
            "status.available_on": ("rack-a",),
        },
    ),
    (
        "VMClone",
        {
            "source": {"snapshotRef": {"name": "s"}},
            "target": {"name": "b", "networks": [{"name": "app", "macAddress": "52:54:00:00:00:01"}]},
            "options": {"performance": {"maxIOPS": 500, "ioThrottling": True}},
            "customization": {
                "sysprep": {"joinDomain": {"domain": "d", "username": "u", "password": {"secretRef": {"name": "p"}}}},
                "guestCommands": [{"command": "true", "stage": "first-boot"}],
                "certificates": [{"name": "ca", "store": "ca"}],
            },
        },
        {
            "targetRef": {"name": "b"},
            "targetVMID": "vm-44",
            "phase": "Powering-On",
            "actualCloneType": "LinkedClone",
            "progress": {"totalDisks": 2, "currentDisk": {"name": "root", "percentage": 10}, "overallPercentage": 55},
            "customizationStatus": {"started": True, "completedSteps": ["hostname"]},
        },
        {
            "status.target_vm_id": "vm-44",
            "spec.options.performance.max_iops": 500,
            "status.progress.overall_percentage": 55,
        },
    ),
    (
        "VMNetworkAttachment",
        {
            "network": {
                "vsphere": {
                    "vlan": {"type": "trunk", "trunkVlanIDs": [10, 20]},
                    "security": {"allowMACChanges": False},
                    "pciSlotNumber": 192,
                },
                "libvirt": {"driver": {"ioEventFD": True, "eventIDX": False, "txMode": "iothread"}},
            },
            "ipAllocation": {
                "type": "Pool",
                "poolConfig": {"poolRef": {"name": "p"}, "preferredIP": "10.0.0.9"},
                "dhcpConfig": {"clientID": "c"},
            },
            "security": {
                "firewall": {
                    "rules": [
                        {
                            "name": "ssh",
                            "action": "ACCEPT",
                            "direction": "in",
                            "sourceCIDR": "10.0.0.0/8",
                            "ports": {"start": 22},
                        }
                    ]
                }
            },
        },
        {
            "ready": True,
            "phase": "Ready",
            "connectedVMs": 2,
            "ipAllocations": [{"vm": "a", "ip": "10.0.0.9", "mac": "52:54:00:00:00:01", "allocatedAt": NOON}],
            "providerStatus": {"rack-a": {"available": True}},
        },
        {
            "spec.network.vsphere.vlan.trunk_vlan_ids": (10, 20),
            "spec.network.libvirt.driver.io_event_fd": True,
            "spec.ip_allocation.pool_config.preferred_ip": "10.0.0.9",
            "status.connected_vms": 2,
        },
    ),
]


@pytest.mark.parametrize(("kind", "spec", "status", "expected"), DOCUMENTS, ids=[row[0] for row in DOCUMENTS])
def test_a_full_object_is_read_field_by_field_and_a_round_trip_loses_nothing(
    kind: str, spec: dict[str, Any], status: dict[str, Any], expected: dict[str, Any]
) -> None:
    doc = {
        "apiVersion": "infra.virtrigaud.io/v1beta1",
        "kind": kind,
        "metadata": {"name": "x", "namespace": "infra"},
        "spec": spec,
        "status": status,
    }
    assert checks.problems(BY_NAME[kind], doc) == ()
    decoded = msgspec.convert(doc, BY_NAME[kind].model)
    assert {path: attrgetter(path)(decoded) for path in expected} == expected
    assert plain(msgspec.to_builtins(decoded)) == plain(doc)


def test_every_kind_has_a_full_object_in_the_table() -> None:
    assert {row[0] for row in DOCUMENTS} == set(BY_NAME)
