"""The rules of a VMPlacementPolicy for one machine.

A rule judges a place with a value between 0 and 1, and says in words why the value is less than 1.  A required rule
refuses every place with less than 1; a preferred rule has a weight, and counts in the score.  Hard and soft
constraints, strict and preferred scopes, required and preferred terms are the same rules, with and without a weight.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Final

from holdfast.kinds.virtrigaud.placement import (
    PlacementConstraints,
    ResourceConstraints,
    SecurityConstraints,
    VMToleration,
)
from holdfast.meta.quantities import Quantity
from holdfast.meta.sizes import MIB, readable
from holdfast.operators.virtualmachine.placement.affinity import apart, apart_from_others, together
from holdfast.operators.virtualmachine.placement.judging import (
    MET,
    PLACES,
    WEIGHT,
    Judgement,
    Rule,
    listed,
    none_of,
    one_of,
    unless,
)
from holdfast.operators.virtualmachine.placement.world import Place, Policy, Request, World, domain
from holdfast.providers.contract import Host, Taint

SECURE_BOOT: Final = "secure-boot"
TPM: Final = "tpm"
NUMA: Final = "numa"

ISOLATION: Final = ("none", "basic", "strict", "maximum")
TRUST: Final = ("untrusted", "basic", "trusted", "highly-trusted")


def rules(policy: Policy, request: Request, world: World) -> tuple[Rule, ...]:
    """All rules for a machine."""
    spec = policy.spec
    return (
        *_capacity(request, world),
        *_pinned(request),
        *_tolerations(spec.hard, spec.soft),
        *_constraints(spec.hard, "spec.hard", None),
        *_constraints(spec.soft, "spec.soft", WEIGHT),
        *_resources(spec.resource_constraints, request, world),
        *_security(spec.security_constraints, world),
        *together(policy, request, world),
        *apart(policy, request, world),
        *apart_from_others(policy, request, world),
    )


# --- what a host can hold


def _capacity(request: Request, world: World) -> Iterator[Rule]:
    yield Rule("maintenance", None, lambda place: unless(place.host.maintenance, "in maintenance"))
    yield Rule("avoided", None, lambda place: _avoided(place, request))
    yield Rule("memory", None, lambda place: _memory(place.host, request))
    yield Rule("cpu", None, lambda place: _cpus(place.host, request))
    yield Rule("disks", None, lambda place: _disks(place, request, world))
    if request.gpus:
        yield Rule("gpu", None, lambda place: _gpus(place.host, request, world))


def _avoided(place: Place, request: Request) -> Judgement:
    return unless(place.host.name in request.avoided, "the provider could not create the machine there")


def _memory(host: Host, request: Request) -> Judgement:
    free = host.memory_mib - host.memory_mib_used
    short = host.memory_mib > 0 and free < request.memory_mib
    return unless(short, f"{max(free, 0)} MiB of memory free, {request.memory_mib} needed")


def _cpus(host: Host, request: Request) -> Judgement:
    free = int(host.cpus * host.cpu_overcommit) - host.cpus_used
    short = host.cpu_overcommit > 0 and free < request.cpus
    return unless(short, f"{max(free, 0)} virtual CPUs free, {request.cpus} needed")


def _disks(place: Place, request: Request, world: World) -> Judgement:
    store = world.datastores.get(place.datastore)
    if store is None or not store.total_bytes:
        return MET
    short = store.free_bytes < request.disk_bytes
    said = f"datastore {store.name} has {readable(store.free_bytes)} free, {readable(request.disk_bytes)} needed"
    return unless(short, said)


def _gpus(host: Host, request: Request, world: World) -> Judgement:
    fitting = [
        each
        for each in host.gpus
        if request.gpu_type in ("", each.type) and (not each.memory_mib or each.memory_mib >= request.gpu_memory_mib)
    ]
    types = {each.type for each in fitting}
    used = sum(
        each.gpus
        for each in world.residents
        if each.host == host.name and (not each.gpu_type or each.gpu_type in types)
    )
    free = sum(each.count for each in fitting) - used
    kind = f" {request.gpu_type}" if request.gpu_type else ""
    return unless(free < request.gpus, f"{max(free, 0)}{kind} GPUs free, {request.gpus} needed")


# --- what the machine itself asks for


def _pinned(request: Request) -> Iterator[Rule]:
    pinned = request.pinned
    for field, value, of in (
        ("host", pinned.host, lambda place: place.host.name),
        ("cluster", pinned.cluster, lambda place: place.host.cluster),
        ("datastore", pinned.datastore, lambda place: place.datastore),
    ):
        if value:
            yield one_of(f"spec.placement.{field} of the machine", None, field, (value,), of)


# --- hard and soft constraints


def _constraints(given: PlacementConstraints | None, path: str, weight: int | None) -> Iterator[Rule]:
    if given is None:
        return
    included = {"host": given.hosts, "cluster": given.clusters, "datastore": given.datastores}
    included |= {"zone": given.zones, "region": given.regions}
    excluded = {"Hosts": given.excluded_hosts, "Clusters": given.excluded_clusters}
    excluded |= {"Datastores": given.excluded_datastores}
    for what, names in included.items():
        if names:
            yield one_of(f"{path}.{what}s", weight, what, names, PLACES[what])
    for field, names in excluded.items():
        if names:
            what = field[:-1].lower()
            yield none_of(f"{path}.excluded{field}", weight, what, names, PLACES[what])
    if given.networks:
        yield Rule(f"{path}.networks", weight, lambda place: _has(place.host.networks, given.networks, "network"))
    if given.node_selector:
        yield Rule(f"{path}.nodeSelector", weight, lambda place: _labelled(place.host, given.node_selector))


def _has(have: tuple[str, ...], wanted: tuple[str, ...], what: str) -> Judgement:
    missing = [each for each in wanted if each not in have]
    return 1 - len(missing) / len(wanted), f"{what} {listed(missing)} is missing" if missing else ""


def _labelled(host: Host, wanted: Mapping[str, str]) -> Judgement:
    missing = [f"{key}={value}" for key, value in sorted(wanted.items()) if domain(key, host) != value]
    return 1 - len(missing) / len(wanted), f"label {listed(missing)} is missing" if missing else ""


def _tolerations(hard: PlacementConstraints | None, soft: PlacementConstraints | None) -> Iterator[Rule]:
    """Taints keep machines off; a taint PreferNoSchedule only lowers the score."""
    tolerated = hard.tolerations if hard else ()
    also = (*tolerated, *(soft.tolerations if soft else ()))
    yield Rule("spec.hard.tolerations", None, lambda place: _tainted(place.host, tolerated, firm=True))
    yield Rule("spec.soft.tolerations", WEIGHT, lambda place: _tainted(place.host, also, firm=False))


def _tainted(host: Host, tolerated: tuple[VMToleration, ...], *, firm: bool) -> Judgement:
    found = [
        f"{each.key}={each.value}:{each.effect}"
        for each in host.taints
        if (each.effect != "PreferNoSchedule") is firm and not any(_tolerates(one, each) for one in tolerated)
    ]
    return unless(bool(found), f"taint {listed(found)} is not tolerated")


def _tolerates(toleration: VMToleration, taint: Taint) -> bool:
    if toleration.effect is not None and toleration.effect != taint.effect:
        return False
    if toleration.key is None:
        return toleration.operator == "Exists"
    same = toleration.operator == "Exists" or (toleration.value or "") == taint.value
    return toleration.key == taint.key and same


# --- resources


def _resources(given: ResourceConstraints | None, request: Request, world: World) -> Iterator[Rule]:
    if given is None:
        return
    path = "spec.resourceConstraints"
    if given.min_cpu_per_host is not None:
        least = given.min_cpu_per_host
        yield Rule(f"{path}.minCPUPerHost", None, lambda place: _free_cpus(place.host, least))
    if given.min_memory_per_host is not None:
        memory = Quantity.parse(given.min_memory_per_host).to_int() // MIB
        yield Rule(f"{path}.minMemoryPerHost", None, lambda place: _free_memory(place.host, memory))
    if given.min_disk_space_per_host is not None:
        space = Quantity.parse(given.min_disk_space_per_host).to_int()
        yield Rule(f"{path}.minDiskSpacePerHost", None, lambda place: _free_disk(place, space, world))
    for field, what, most, use in (
        ("maxCPUUtilization", "CPUs", given.max_cpu_utilization, lambda place: cpu_use(place.host, request)),
        ("maxMemoryUtilization", "memory", given.max_memory_utilization, lambda place: memory_use(place.host, request)),
        ("maxDiskUtilization", "datastore", given.max_disk_utilization, lambda place: disk_use(place, request, world)),
    ):
        if most is not None:
            yield _at_most(field, what, most, use)
    if given.required_features:
        wanted = given.required_features
        yield Rule(f"{path}.requiredFeatures", None, lambda place: _has(place.host.features, wanted, "feature"))
    if given.preferred_features:
        liked = given.preferred_features
        yield Rule(f"{path}.preferredFeatures", WEIGHT, lambda place: _has(place.host.features, liked, "feature"))


def capacity(host: Host) -> int:
    """How many virtual processors a host gives, or has where it has no limit."""
    return int(host.cpus * (host.cpu_overcommit or 1))


def _free_cpus(host: Host, least: int) -> Judgement:
    free = capacity(host) - host.cpus_used
    return unless(free < least, f"{max(free, 0)} CPUs free, minCPUPerHost is {least}")


def _free_memory(host: Host, least: int) -> Judgement:
    free = host.memory_mib - host.memory_mib_used
    return unless(free < least, f"{max(free, 0)} MiB of memory free, minMemoryPerHost is {least} MiB")


def _free_disk(place: Place, least: int, world: World) -> Judgement:
    store = world.datastores.get(place.datastore)
    free = 0 if store is None else store.free_bytes
    has = f"datastore {place.datastore} has {readable(free)} free" if place.datastore else "no datastore"
    return unless(free < least, f"{has}, minDiskSpacePerHost is {readable(least)}")


def _at_most(field: str, what: str, most: int, use: Callable[[Place], float | None]) -> Rule:
    def judge(place: Place) -> Judgement:
        share = use(place)
        over = share is not None and share * 100 > most
        return unless(over, f"{100 * (share or 0):.0f} % of the {what} would be in use, {field} is {most} %")

    return Rule(f"spec.resourceConstraints.{field}", None, judge)


def cpu_use(host: Host, request: Request) -> float | None:
    """The share of the processors of a host that machines have, with the new one; None where it is not known."""
    return (host.cpus_used + request.cpus) / capacity(host) if host.cpus else None


def memory_use(host: Host, request: Request) -> float | None:
    return (host.memory_mib_used + request.memory_mib) / host.memory_mib if host.memory_mib else None


def disk_use(place: Place, request: Request, world: World) -> float | None:
    store = world.datastores.get(place.datastore)
    if store is None or not store.total_bytes:
        return None
    return (store.total_bytes - store.free_bytes + request.disk_bytes) / store.total_bytes


# --- security


def _security(given: SecurityConstraints | None, world: World) -> Iterator[Rule]:
    if given is None:
        return
    path = "spec.securityConstraints"
    for field, asked, feature in (
        ("requireSecureBoot", given.require_secure_boot, SECURE_BOOT),
        ("requireTPM", given.require_tpm, TPM),
        ("requireNUMATopology", given.require_numa_topology, NUMA),
    ):
        if asked:
            yield Rule(f"{path}.{field}", None, _with_feature(feature))
    if given.require_encrypted_storage:
        yield Rule(f"{path}.requireEncryptedStorage", None, lambda place: _encrypted(place, world))
    if given.allowed_security_groups:
        allowed = given.allowed_security_groups
        yield Rule(f"{path}.allowedSecurityGroups", None, lambda place: _grouped(place.host, allowed))
    if given.denied_security_groups:
        denied = given.denied_security_groups
        yield Rule(f"{path}.deniedSecurityGroups", None, lambda place: _denied(place.host, denied))
    for field, level, levels, of in (
        ("isolationLevel", given.isolation_level, ISOLATION, lambda host: host.isolation),
        ("trustLevel", given.trust_level, TRUST, lambda host: host.trust),
    ):
        if level is not None:
            yield Rule(f"{path}.{field}", None, _leveled(field, level, levels, of))


def _with_feature(feature: str) -> Callable[[Place], Judgement]:
    return lambda place: _has(place.host.features, (feature,), "feature")


def _encrypted(place: Place, world: World) -> Judgement:
    store = world.datastores.get(place.datastore)
    said = f"datastore {place.datastore} is not encrypted" if place.datastore else "no encrypted datastore"
    return unless(store is None or not store.encrypted, said)


def _grouped(host: Host, allowed: tuple[str, ...]) -> Judgement:
    outside = not set(host.security_groups) & set(allowed)
    return unless(outside, f"in none of the security groups {listed(allowed)}")


def _denied(host: Host, denied: tuple[str, ...]) -> Judgement:
    found = [each for each in host.security_groups if each in denied]
    return unless(bool(found), f"in security group {listed(found)}, which is denied")


def _leveled(
    field: str, level: str, levels: tuple[str, ...], of: Callable[[Host], str]
) -> Callable[[Place], Judgement]:
    def judge(place: Place) -> Judgement:
        has = of(place.host)
        rank = levels.index(has) if has in levels else 0
        return unless(rank < levels.index(level), f"{field} is {has or levels[0]}, {level} needed")

    return judge
