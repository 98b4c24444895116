"""The status of a Provider: its process, its health, and what the hypervisor reports."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from holdfast.kernel.conditions import Verdict
from holdfast.kernel.outcomes import Failure
from holdfast.kinds.virtrigaud.machines import VirtualMachine
from holdfast.kinds.virtrigaud.providers import (
    ProviderAdoptionStatus,
    ProviderCapability,
    ProviderProbes,
    ProviderRuntimePhase,
)
from holdfast.meta.sizes import MIB
from holdfast.operators.virtualmachine import names
from holdfast.operators.virtualmachine.providers.observe import World, endpoint, mounted
from holdfast.operators.virtualmachine.providers.render import served_type
from holdfast.operators.virtualmachine.reasons import OF_CODE, MachineReason, ProviderReason, advised
from holdfast.operators.virtualmachine.settings import Settings
from holdfast.providers.contract import Capabilities, Code, Inventory, ProviderError
from holdfast.runtime import status
from holdfast.runtime.decisions import Notice
from holdfast.runtime.status import Announced, Invalid, present, stored_status, wire

INVALID: Final = Invalid(conditions={"Ready": False}, fields={"healthy": False})

ANNOUNCED: Final[Announced] = {("Ready", "True"): "Normal"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Health:
    """The health of a hypervisor.

    counted  whether this pass was a check
    last     when it was last checked
    probes   checks in a row that do not count yet
    error    what the check failed with
    needed   how many checks in a row count
    """

    healthy: bool
    counted: bool
    last: str | None = None
    probes: ProviderProbes | None = None
    error: ProviderError | None = None
    needed: int = 1


def report(
    world: World,
    health: Health,
    now: datetime,
    *,
    adoption: ProviderAdoptionStatus | None,
    settings: Settings,
    failure: Failure | None = None,
) -> tuple[dict[str, Any], tuple[Notice, ...]]:
    """The whole status, and the Events that follow from it."""
    phase, runtime = _runtime(world, settings, failure)
    before = stored_status(world.object)
    kept = {name: before.get(name) for name in _REPORTED}
    fields = {
        "healthy": health.healthy,
        "lastHealthCheck": health.last,
        "runtime": present(
            {
                "mode": "Remote",
                "endpoint": endpoint(world) or None,
                "serviceRef": None
                if world.external
                else {"name": names.runtime(world.object.key.namespace, world.object.key.name)},
                "phase": phase.value,
                "message": runtime.message,
                "readyReplicas": world.deployment.status.ready_replicas if world.deployment else 0,
                "availableReplicas": world.deployment.status.available_replicas if world.deployment else 0,
            }
        ),
        **(kept | _reported(world) if health.counted or world.idle else kept),
        "adoption": None if adoption is None else wire(adoption),
        "mountedClaims": mounted(world, lambda pod: pod.claims),
        # What is mounted for processes of the node is in a folder of the user.
        "mountedExports": None if settings.processes else mounted(world, lambda pod: pod.exports),
        "probes": None if health.probes is None else wire(health.probes),
    }
    verdicts = _verdicts(world, health, runtime)
    said, turned = status.report(world.object, verdicts, now=now, fields=fields, announced=ANNOUNCED)
    return said, (*turned, *_troubles(world, phase, verdicts["Ready"]))


def _troubles(world: World, phase: ProviderRuntimePhase, ready: Verdict) -> Iterator[Notice]:
    """An Event when a Provider that was ready is so no more, and when its process cannot run."""
    before = world.before.runtime
    lost = _as_before(world, "Ready")
    failed = phase is ProviderRuntimePhase.FAILED and (before is None or before.phase is not phase)
    if failed or (lost is not None and lost.status.value == "True" and ready.status.value != "True"):
        yield Notice(type="Warning", reason=ready.reason, message=ready.message)


# --- the process


def _runtime(world: World, settings: Settings, failure: Failure | None) -> tuple[ProviderRuntimePhase, Verdict]:
    """The phase of the process, and the verdict whether it runs."""
    if world.object.deleting:
        number = len(world.machines)
        text = f"{number} machine{'' if number == 1 else 's'} still refer to the Provider"
        return ProviderRuntimePhase.STOPPING, Verdict.false(ProviderReason.STOPPING, text)
    if world.external:
        text = f"the process at {world.external} is not managed here"
        return ProviderRuntimePhase.RUNNING, Verdict.true(ProviderReason.EXTERNAL, text)
    if failure is not None:
        text = advised(ProviderReason.INVALID_CONFIGURATION, failure.message)
        return ProviderRuntimePhase.FAILED, Verdict.false(ProviderReason.INVALID_CONFIGURATION, text)
    if world.idle and not world.pods:
        text = "the process starts when a machine refers to the Provider"
        return ProviderRuntimePhase.PENDING, Verdict.false(ProviderReason.ON_DEMAND, text)
    trouble = next((f"pod {name}: {pod.trouble}" for name, ready, pod in world.pods if not ready and pod.trouble), "")
    if any(ready for _, ready, _ in world.pods):
        text = "the process runs"
        if served_type(world, settings) != world.provider.spec.type.value:
            text = f"the process runs; it simulates machines, and no {world.provider.spec.type.value} is contacted"
        return ProviderRuntimePhase.RUNNING, Verdict.true(ProviderReason.DEPLOYMENT_READY, text)
    if trouble:
        text = advised(ProviderReason.DEPLOYMENT_FAILED, trouble)
        return ProviderRuntimePhase.FAILED, Verdict.false(ProviderReason.DEPLOYMENT_FAILED, text)
    if world.pods:
        text = f"{len(world.pods)} pods of the process are starting"
        return ProviderRuntimePhase.STARTING, Verdict.false(ProviderReason.STARTING, text)
    return ProviderRuntimePhase.PENDING, Verdict.false(ProviderReason.NOT_READY, "no pod of the process exists yet")


# --- conditions


def _verdicts(world: World, health: Health, runtime: Verdict) -> dict[str, Verdict]:
    running = runtime.status.value == "True"
    healthy = _healthy(world, health, running)
    connected = _connected(world, health, running)
    if not running:
        ready = Verdict.false(runtime.reason, runtime.message)
    elif not health.healthy:
        ready = Verdict.false(healthy.reason, healthy.message)
    else:
        ready = Verdict.true(ProviderReason.READY, "the process runs and the hypervisor answers")
    return {
        "Ready": ready,
        "Healthy": healthy,
        "Connected": connected,
        "RuntimeReady": runtime,
        "TLSConfigured": _tls(world),
        "CapabilitiesReported": _capable(world, health),
    }


def _healthy(world: World, health: Health, running: bool) -> Verdict:
    check = world.provider.spec.health_check
    if not running or world.answers is None:
        return Verdict.false(ProviderReason.NOT_CONNECTED, "the process does not run, so the hypervisor is not asked")
    if check is not None and check.enabled is False and health.healthy:
        return Verdict.true(ProviderReason.NOT_CHECKED, "spec.healthCheck.enabled is false")
    if health.error is not None:
        failures = (health.probes.failures if health.probes else None) or 1
        text = f"the last {failures} checks failed, {health.needed} in a row count: {health.error.message}"
        if health.healthy:
            # Fewer failures than count change nothing.
            return Verdict.true(ProviderReason.HEALTHY, "the hypervisor answers")
        reason = OF_CODE[health.error.code]
        if reason is MachineReason.UNAVAILABLE:
            return Verdict.false(ProviderReason.UNHEALTHY, advised(ProviderReason.UNHEALTHY, text))
        return Verdict.false(reason, advised(reason, text))
    if not health.counted:
        return _as_before(world, "Healthy") or Verdict.false(ProviderReason.NOT_CHECKED_YET, "it was not asked yet")
    if not health.healthy:
        done = (health.probes.successes if health.probes else None) or 0
        text = f"{done} of {health.needed} checks in a row succeeded"
        return Verdict.false(ProviderReason.UNHEALTHY, text)
    return Verdict.true(ProviderReason.HEALTHY, "the hypervisor answers")


def _connected(world: World, health: Health, running: bool) -> Verdict:
    if not running or world.answers is None:
        return Verdict.false(ProviderReason.NOT_CONNECTED, "the process does not run")
    if not health.counted:
        before = _as_before(world, "Connected")
        if before is not None:
            return before
    error = world.answers.error
    if error is not None and error.code is Code.RETRYABLE and not health.healthy:
        text = f"the process at {endpoint(world)} does not answer: {error.message}"
        return Verdict.false(ProviderReason.NOT_CONNECTED, advised(ProviderReason.NOT_CONNECTED, text))
    return Verdict.true(ProviderReason.CONNECTED, f"the process answers at {endpoint(world)}")


def _as_before(world: World, type: str) -> Verdict | None:
    found = next((each for each in status.prior_conditions(world.object) if each.type == type), None)
    return None if found is None else Verdict(found.status, found.reason, found.message)


def _tls(world: World) -> Verdict:
    if not world.secure:
        text = advised(ProviderReason.TLS_DISABLED, "calls to the provider are not encrypted")
        return Verdict.false(ProviderReason.TLS_DISABLED, text)
    if world.external or world.idle:
        return _external_tls(world)
    complete = world.secret is not None and all(world.secret.get(key) for key in ("ca.crt", "tls.crt", "tls.key"))
    if not complete and world.issued is None:
        text = advised(ProviderReason.TLS_SECRET_MISSING, "the Secret with the certificates is missing or incomplete")
        return Verdict.false(ProviderReason.TLS_SECRET_MISSING, text)
    return Verdict.true(ProviderReason.TLS_ENABLED, "calls are encrypted, and both sides prove who they are")


def _external_tls(world: World) -> Verdict:
    """The posture of a process that is not ours, or not started yet."""
    if world.idle:
        return Verdict.true(ProviderReason.TLS_ENABLED, "certificates are issued when the process starts")
    if not world.secret:
        text = "calls are encrypted once spec.runtime.service.tls.secretRef names a Secret with certificates"
        return Verdict.false(ProviderReason.TLS_SECRET_MISSING, text)
    return Verdict.true(ProviderReason.TLS_ENABLED, "calls are encrypted, and both sides prove who they are")


def _capable(world: World, health: Health) -> Verdict:
    if not health.counted:
        before = _as_before(world, "CapabilitiesReported")
        if before is not None:
            return before
    if world.answers is None or world.answers.capabilities is None:
        return Verdict.false(ProviderReason.NO_CAPABILITIES, "the provider has not said yet what it can do")
    return Verdict.true(ProviderReason.CAPABILITIES, "the provider said what it can do")


# --- what the hypervisor reports

_PLACES: Final = 1000
"""How many names of one kind of place are kept."""

_REPORTED: Final = ("capabilities", "reportedCapabilities", "version", "connectedVMs", "resourceUsage", "inventory")


def _reported(world: World) -> dict[str, Any]:
    """The fields that a check brings."""
    found: dict[str, Any] = {"connectedVMs": sum(_has_id(each.decode(VirtualMachine)) for each in world.machines)}
    answers = world.answers
    if world.idle:  # it has no machine, so what machines used when it was last asked is not in use any more
        return found | {"resourceUsage": None}
    if answers is None:
        return found
    if answers.capabilities is not None:
        found["capabilities"] = [each.value for each in broad(answers.capabilities)]
        found["reportedCapabilities"] = reported(answers.capabilities)
        found["version"] = answers.capabilities.version or None
    if answers.inventory is not None:
        found["resourceUsage"] = usage(answers.inventory)
        found["inventory"] = places(answers.inventory)
    return found


def _has_id(machine: VirtualMachine) -> bool:
    return bool(machine.status and machine.status.id)


def broad(found: Capabilities) -> Iterator[ProviderCapability]:
    """What a provider can do, in broad words."""
    yield ProviderCapability.VIRTUAL_MACHINES
    if found.snapshots:
        yield ProviderCapability.SNAPSHOTS
    if found.linked_clones or found.instant_clones:
        yield ProviderCapability.CLONING
    if found.disk_expansion_online or found.disk_types:
        yield ProviderCapability.DISK_MANAGEMENT
    if found.network_types:
        yield ProviderCapability.NETWORK_MANAGEMENT
    if found.disk_export:
        yield ProviderCapability.BACKUP
    if found.image_import:
        yield ProviderCapability.TEMPLATES


def reported(found: Capabilities) -> dict[str, Any]:
    """What a provider says that it can do, in the words of the API."""
    flags = {
        "supportsReconfigureOnline": found.reconfigure_online,
        "supportsDiskExpansionOnline": found.disk_expansion_online,
        "supportsSnapshots": found.snapshots,
        "supportsMemorySnapshots": found.memory_snapshots,
        "supportsLinkedClones": found.linked_clones,
        "supportsImageImport": found.image_import,
        "supportsDiskExport": found.disk_export,
        "supportsDiskImport": found.disk_import,
        "supportsExportCompression": found.export_compression,
        "supportsInventory": found.inventory,
    }
    lists = {
        "supportedDiskTypes": found.disk_types,
        "supportedNetworkTypes": found.network_types,
        "supportedExportFormats": found.export_formats,
        "supportedImportFormats": found.import_formats,
        "supportedExportBackends": found.export_backends,
        "supportedImportBackends": found.import_backends,
        "supportedTransferModes": found.transfer_modes,
    }
    return {**flags, **{name: list(values) for name, values in lists.items() if values}}


def usage(found: Inventory) -> dict[str, Any]:
    """How full the hypervisor is: processors, and bytes of memory and storage."""
    hosts, stores = found.hosts, found.datastores
    total = sum(store.total_bytes for store in stores)
    return present(
        {
            "cpu": _usage(sum(host.cpus for host in hosts), sum(host.cpus_used for host in hosts)),
            "memory": _usage(
                sum(host.memory_mib for host in hosts) * MIB, sum(host.memory_mib_used for host in hosts) * MIB
            ),
            "storage": _usage(total, total - sum(store.free_bytes for store in stores)),
        }
    )


def places(found: Inventory) -> dict[str, list[str]]:
    """The names of the places that there are."""
    hosts = found.hosts
    named = {
        "hosts": (each.name for each in hosts),
        "clusters": (each.cluster for each in hosts),
        "datastores": (each.name for each in found.datastores),
        "zones": (each.zone for each in hosts),
        "regions": (each.region for each in hosts),
        "folders": iter(found.folders),
        "resourcePools": (each.name for each in found.resource_pools),
        "networks": (name for each in hosts for name in each.networks),
        "features": (name for each in hosts for name in each.features),
        "unavailable": (each.name for each in hosts if each.maintenance),
    }
    kept = {field: sorted({name for name in names if name})[:_PLACES] for field, names in named.items()}
    return {field: names for field, names in kept.items() if names}


def _usage(total: int, used: int) -> dict[str, int] | None:
    if total <= 0:
        return None
    percent = min(max(round(100 * used / total), 0), 100)
    return {"total": total, "used": used, "available": max(total - used, 0), "usagePercent": percent}
