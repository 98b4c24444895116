"""What the status of a VMPlacementPolicy says: its machines, its providers, statistics, and conflicts.  Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any, Final

import msgspec

from holdfast.client.objects import Object
from holdfast.kernel.conditions import Verdict
from holdfast.kinds.virtrigaud import Provider, VirtualMachine
from holdfast.kinds.virtrigaud.machines import PlacementStatus
from holdfast.kinds.virtrigaud.placement import (
    PlacementConstraints,
    PolicyConflict,
    ResourceConstraints,
    SecurityConstraints,
    VMPlacementPolicySpec,
)
from holdfast.kinds.virtrigaud.providers import ProviderInventory
from holdfast.meta import durations, times
from holdfast.operators.virtualmachine.placement import demand, validate
from holdfast.operators.virtualmachine.placement.judging import listed
from holdfast.operators.virtualmachine.placement.rules import NUMA, SECURE_BOOT, TPM
from holdfast.operators.virtualmachine.policies.conflicts import conflicts
from holdfast.operators.virtualmachine.policies.observe import World
from holdfast.operators.virtualmachine.reasons import PolicyReason, advised
from holdfast.runtime import status
from holdfast.runtime.decisions import Decision
from holdfast.runtime.status import present, wire

_MACHINES: Final = 1000
_CONFLICTS: Final = 50
_FEATURES: Final = 50
_SAID: Final = 20
_PLACES: Final = 500
"""How many entries the lists of the status have at most."""

_PASSED_ON: Final = frozenset({"hard.hosts", "hard.clusters", "hard.datastores", "hard.folders", "hard.resourcePools"})
"""What a provider without an inventory can follow: names that it gets with the machine."""

_SECTIONS: Final = ("hard", "soft", "affinity", "antiAffinity", "resourceConstraints", "securityConstraints")


def decide(world: World, now: datetime) -> Decision:
    """The status, and when it changes."""
    wrong = validate.problems(world.policy)
    results = {label: _result(world, label, provider, now) for label, (_, provider) in world.providers.items()}
    found = () if wrong else tuple(conflicts(world.own, world.others, world.namespaces))
    fields = {
        "usedByVMs": [{"name": each.key.name} for each in world.machines[:_MACHINES]] or None,
        "validationResults": results or None,
        "placementStats": _statistics(world),
        "conflictingPolicies": [wire(each) for each in found[:_CONFLICTS]] or None,
    }
    said, turned = status.report(
        world.object,
        _verdicts([f"{each.path}: {each.message}" for each in wrong], results, found),
        now=now,
        fields=fields,
        announced={("Ready", "False"): "Warning", ("Conflicts", "True"): "Warning"},
    )
    return Decision(status=said, notices=turned)


# --- conditions


def _verdicts(
    wrong: list[str], results: Mapping[str, dict[str, Any]], found: tuple[PolicyConflict, ...]
) -> dict[str, Verdict]:
    validated, supported, clashing = _validated(wrong, results), _supported(results), _clashing(found)
    severe = [each for each in found if each.severity in ("critical", "high")]
    if validated.status.value != "True":
        ready = validated
    elif supported.status.value != "True":
        ready = supported
    elif severe:
        ready = Verdict.false(PolicyReason.CONFLICTS, clashing.message)
    else:
        ready = Verdict.true(PolicyReason.VALID, "machines can use the policy")
    return {"Ready": ready, "Validated": validated, "Conflicts": clashing, "Supported": supported}


def _validated(wrong: list[str], results: Mapping[str, dict[str, Any]]) -> Verdict:
    if wrong:
        return Verdict.false(PolicyReason.INVALID, advised(PolicyReason.INVALID, "; ".join(wrong)))
    errors = [f"{label}: {text}" for label, each in sorted(results.items()) for text in each.get("errors", ())]
    if errors:
        return Verdict.false(PolicyReason.IMPOSSIBLE, advised(PolicyReason.IMPOSSIBLE, "; ".join(errors)))
    return Verdict.true(PolicyReason.VALID, "the policy is valid on every provider whose machines refer to it")


def _supported(results: Mapping[str, dict[str, Any]]) -> Verdict:
    lacking = {label: each["unsupportedFeatures"] for label, each in results.items() if each.get("unsupportedFeatures")}
    if not lacking:
        return Verdict.true(PolicyReason.VALID, "every provider whose machines refer to the policy can follow it")
    text = "; ".join(
        f"provider {label} reports no hosts, so it does not follow {listed(names)}"
        for label, names in sorted(lacking.items())
    )
    return Verdict.false(PolicyReason.UNSUPPORTED, advised(PolicyReason.UNSUPPORTED, text))


def _clashing(found: tuple[PolicyConflict, ...]) -> Verdict:
    if not found:
        return Verdict.false(PolicyReason.NO_CONFLICTS, "no other policy contradicts the policy")
    text = "; ".join(f"{each.conflict_type} conflict with {each.policy_name}: {each.description}" for each in found[:5])
    return Verdict.true(PolicyReason.CONFLICTS, advised(PolicyReason.CONFLICTS, text))


# --- providers


def features(spec: VMPlacementPolicySpec) -> tuple[str, ...]:
    """The parts of a policy that are used, such as hard.zones."""
    given = msgspec.to_builtins(spec)
    return tuple(f"{section}.{field}" for section in _SECTIONS for field in given.get(section) or ())[:_FEATURES]


def _result(world: World, label: str, provider: Provider, now: datetime) -> dict[str, Any]:
    """Whether a provider can follow the policy; the time is that of the last change."""
    spec, found = world.policy.spec, provider.status
    used = features(spec)
    reported = found.reported_capabilities if found else None
    errors: list[str] = []
    warnings: list[str] = []
    unsupported: tuple[str, ...] = ()
    if reported is None:
        warnings.append("the provider has not said yet what it can do")
    elif not reported.supports_inventory:
        unsupported = tuple(each for each in used if each not in _PASSED_ON)
        warnings.append("the provider reports no hosts: it gets the first name of each list of spec.hard")
    elif found is not None and found.inventory is not None:
        for path, names, there in _asked(spec, found.inventory):
            missing = [each for each in names if each not in there]
            text = f"{path}: it has no {listed(missing)}; it has {listed(there) or 'none'}"
            if missing:
                (errors if len(missing) == len(names) or path not in _ANY_OF else warnings).append(text)
    valid = not errors and not unsupported
    result = present(
        {
            "valid": valid,
            "message": "the provider can follow the policy"
            if valid
            else "; ".join(errors) or "the provider passes on hard constraints alone",
            "warnings": warnings[:_SAID] or None,
            "errors": errors[:_SAID] or None,
            "supportedFeatures": [each for each in used if each not in unsupported] or None,
            "unsupportedFeatures": list(unsupported) or None,
        }
    )
    before = world.before.validation_results.get(label)
    old = {} if before is None else wire(before)
    at = old.pop("lastValidated", None)
    return {**result, "lastValidated": at if old == result and at else times.format(now)}


_ANY_OF: Final = frozenset(
    {
        f"spec.hard.{each}"
        for each in ("hosts", "clusters", "datastores", "folders", "resourcePools", "zones", "regions")
    }
)
"""The lists of which one name is enough."""


def _asked(
    spec: VMPlacementPolicySpec, there: ProviderInventory
) -> Iterator[tuple[str, tuple[str, ...], tuple[str, ...]]]:
    """The names that a policy requires, and those that there are."""
    hard = spec.hard or PlacementConstraints()
    yield "spec.hard.hosts", hard.hosts, there.hosts
    yield "spec.hard.clusters", hard.clusters, there.clusters
    yield "spec.hard.datastores", hard.datastores, there.datastores
    yield "spec.hard.zones", hard.zones, there.zones
    yield "spec.hard.regions", hard.regions, there.regions
    yield "spec.hard.networks", hard.networks, there.networks
    if there.folders:
        yield "spec.hard.folders", hard.folders, there.folders
    if there.resource_pools:
        yield "spec.hard.resourcePools", hard.resource_pools, there.resource_pools
    resources, security = (
        spec.resource_constraints or ResourceConstraints(),
        spec.security_constraints or SecurityConstraints(),
    )
    yield "spec.resourceConstraints.requiredFeatures", resources.required_features, there.features
    for field, asked, feature in (
        ("requireSecureBoot", security.require_secure_boot, SECURE_BOOT),
        ("requireTPM", security.require_tpm, TPM),
        ("requireNUMATopology", security.require_numa_topology, NUMA),
    ):
        if asked:
            yield f"spec.securityConstraints.{field}", (feature,), there.features


# --- statistics


def _statistics(world: World) -> dict[str, Any] | None:
    """Of the machines that refer to the policy now, so that nothing is counted twice."""
    places = [(each, _place(each)) for each in world.machines]
    placed = [(each, place) for each, place in places if place is not None and place.phase == demand.PLACED]
    failed = [place for _, place in places if place is not None and place.phase == demand.UNPLACEABLE]
    if not placed and not failed:
        return None
    took = [seconds for each, place in placed if (seconds := _seconds(each, place)) is not None]
    unmet = sum(len(place.unmet) for _, place in placed)
    where = Counter(place.host or place.cluster or "unknown" for _, place in placed)
    return present(
        {
            "totalPlacements": len(placed) + len(failed),
            "successfulPlacements": len(placed),
            "failedPlacements": len(failed),
            "averagePlacementTime": durations.format(timedelta(seconds=round(sum(took) / len(took), 3)))
            if took
            else None,
            "constraintViolations": unmet + len({each.reason for place in failed for each in place.refused}),
            "lastPlacementTime": max((place.last_scheduled_time or "" for _, place in placed), default="") or None,
            "placementDistribution": dict(sorted(where.most_common(_PLACES))) or None,
        }
    )


def _place(obj: Object) -> PlacementStatus | None:
    found = obj.decode(VirtualMachine).status
    return found.placement if found else None


def _seconds(obj: Object, place: PlacementStatus) -> float | None:
    """How long a machine waited for its place."""
    since, until = times.read(obj.meta.creation_timestamp), times.read(place.last_scheduled_time)
    return None if since is None or until is None else max((until - since).total_seconds(), 0.0)
