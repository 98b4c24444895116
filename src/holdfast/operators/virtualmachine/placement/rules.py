"""The rules of a VMPlacementPolicy for one machine.

A rule judges a place with a value between 0 and 1, and says in words why the value is less than 1.  A required rule
refuses every place with less than 1; a preferred rule has a weight, and counts in the score.  Hard and soft
constraints, strict and preferred scopes, required and preferred terms are the same rules, with and without a weight.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from holdfast.kernel.reasons import count, some
from holdfast.kinds.virtrigaud.placement import (
    AffinityRules,
    AntiAffinityRules,
    ApplicationAffinityRule,
    ApplicationAntiAffinityRule,
    PlacementConstraints,
    PlaceRule,
    ResourceConstraints,
    SecurityConstraints,
    VMAffinity,
    VMAffinityTerm,
    VMToleration,
)
from holdfast.meta.quantities import Quantity
from holdfast.operators.virtualmachine.placement.gathering import gatherings
from holdfast.operators.virtualmachine.placement.world import (
    HOST_KEYS,
    Place,
    Policy,
    Request,
    Resident,
    World,
    domain,
)
from holdfast.providers.contract import Host, Taint

WEIGHT: Final = 50
"""The weight of a preference that has none of its own."""

SECURE_BOOT: Final = "secure-boot"
TPM: Final = "tpm"
NUMA: Final = "numa"

ISOLATION: Final = ("none", "basic", "strict", "maximum")
TRUST: Final = ("untrusted", "basic", "trusted", "highly-trusted")

_MIB: Final = 1 << 20
_GIB: Final = 1 << 30
_NAMED: Final = 3
"""How many machines a sentence names."""

Judgement = tuple[float, str]
MET: Final[Judgement] = (1.0, "")


@dataclass(frozen=True, slots=True)
class Rule:
    """
    path    the field of the policy, or of the machine, that it comes from
    weight  how much it counts; None: it is required
    judge   how well a place meets it, from 0 to 1, and why not fully
    """

    path: str
    weight: int | None
    judge: Callable[[Place], Judgement]


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
        *_affinity(policy, request, world),
        *_anti_affinity(policy, request, world),
        *_apart_from_others(policy, request, world),
    )


def _unless(failed: bool, words: str) -> Judgement:
    return (0.0, words) if failed else MET


def listed(names: Iterable[str], most: int = _NAMED) -> str:
    """Names in a sentence; of many, the first ones."""
    return some(names, most)


# --- what a host can hold


def _capacity(request: Request, world: World) -> Iterator[Rule]:
    yield Rule("maintenance", None, lambda place: _unless(place.host.maintenance, "in maintenance"))
    yield Rule("avoided", None, lambda place: _avoided(place, request))
    yield Rule("memory", None, lambda place: _memory(place.host, request))
    yield Rule("cpu", None, lambda place: _cpus(place.host, request))
    yield Rule("disks", None, lambda place: _disks(place, request, world))
    if request.gpus:
        yield Rule("gpu", None, lambda place: _gpus(place.host, request, world))


def _avoided(place: Place, request: Request) -> Judgement:
    return _unless(place.host.name in request.avoided, "the provider could not create the machine there")


def _memory(host: Host, request: Request) -> Judgement:
    free = host.memory_mib - host.memory_mib_used
    short = host.memory_mib > 0 and free < request.memory_mib
    return _unless(short, f"{max(free, 0)} MiB of memory free, {request.memory_mib} needed")


def _cpus(host: Host, request: Request) -> Judgement:
    free = int(host.cpus * host.cpu_overcommit) - host.cpus_used
    short = host.cpu_overcommit > 0 and free < request.cpus
    return _unless(short, f"{max(free, 0)} virtual CPUs free, {request.cpus} needed")


def _disks(place: Place, request: Request, world: World) -> Judgement:
    store = world.datastores.get(place.datastore)
    if store is None or not store.total_bytes:
        return MET
    short = store.free_bytes < request.disk_bytes
    said = f"datastore {store.name} has {_gib(store.free_bytes)} free, {_gib(request.disk_bytes)} needed"
    return _unless(short, said)


def _gib(size: int) -> str:
    return f"{size / _GIB:.3g} GiB"


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
    return _unless(free < request.gpus, f"{max(free, 0)}{kind} GPUs free, {request.gpus} needed")


# --- what the machine itself asks for


def _pinned(request: Request) -> Iterator[Rule]:
    pinned = request.pinned
    for field, value, of in (
        ("host", pinned.host, lambda place: place.host.name),
        ("cluster", pinned.cluster, lambda place: place.host.cluster),
        ("datastore", pinned.datastore, lambda place: place.datastore),
    ):
        if value:
            yield _one_of(f"spec.placement.{field} of the machine", None, field, (value,), of)


def _one_of(path: str, weight: int | None, what: str, names: tuple[str, ...], of: Callable[[Place], str]) -> Rule:
    allowed = frozenset(names)

    def judge(place: Place) -> Judgement:
        name = of(place)
        said = f"{_named(what, name)}not among {path} ({listed(names)})"
        return _unless(name not in allowed, said if name else f"no {what}, and {path} is {listed(names)}")

    return Rule(path, weight, judge)


def _none_of(path: str, weight: int | None, what: str, names: tuple[str, ...], of: Callable[[Place], str]) -> Rule:
    avoided = frozenset(names)
    return Rule(path, weight, lambda place: _unless(of(place) in avoided, f"{_named(what, of(place))}among {path}"))


def _named(what: str, name: str) -> str:
    """The beginning of a sentence about a place; a host is named where the sentence stands."""
    return "" if what == "host" else f"{what} {name} is "


def _there(what: str, name: str) -> str:
    return "there" if what in HOST_KEYS else f"in {what} {name}"


# --- hard and soft constraints

_PLACES: Final[Mapping[str, Callable[[Place], str]]] = {
    "host": lambda place: place.host.name,
    "cluster": lambda place: place.host.cluster,
    "datastore": lambda place: place.datastore,
    "zone": lambda place: place.host.zone,
    "region": lambda place: place.host.region,
}


def _constraints(given: PlacementConstraints | None, path: str, weight: int | None) -> Iterator[Rule]:
    if given is None:
        return
    included = {"host": given.hosts, "cluster": given.clusters, "datastore": given.datastores}
    included |= {"zone": given.zones, "region": given.regions}
    excluded = {"Hosts": given.excluded_hosts, "Clusters": given.excluded_clusters}
    excluded |= {"Datastores": given.excluded_datastores}
    for what, names in included.items():
        if names:
            yield _one_of(f"{path}.{what}s", weight, what, names, _PLACES[what])
    for field, names in excluded.items():
        if names:
            what = field[:-1].lower()
            yield _none_of(f"{path}.excluded{field}", weight, what, names, _PLACES[what])
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
    return _unless(bool(found), f"taint {listed(found)} is not tolerated")


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
        memory = Quantity.parse(given.min_memory_per_host).to_int() // _MIB
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
    return _unless(free < least, f"{max(free, 0)} CPUs free, minCPUPerHost is {least}")


def _free_memory(host: Host, least: int) -> Judgement:
    free = host.memory_mib - host.memory_mib_used
    return _unless(free < least, f"{max(free, 0)} MiB of memory free, minMemoryPerHost is {least} MiB")


def _free_disk(place: Place, least: int, world: World) -> Judgement:
    store = world.datastores.get(place.datastore)
    free = 0 if store is None else store.free_bytes
    has = f"datastore {place.datastore} has {_gib(free)} free" if place.datastore else "no datastore"
    return _unless(free < least, f"{has}, minDiskSpacePerHost is {_gib(least)}")


def _at_most(field: str, what: str, most: int, use: Callable[[Place], float | None]) -> Rule:
    def judge(place: Place) -> Judgement:
        share = use(place)
        over = share is not None and share * 100 > most
        return _unless(over, f"{100 * (share or 0):.0f} % of the {what} would be in use, {field} is {most} %")

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
    return _unless(store is None or not store.encrypted, said)


def _grouped(host: Host, allowed: tuple[str, ...]) -> Judgement:
    outside = not set(host.security_groups) & set(allowed)
    return _unless(outside, f"in none of the security groups {listed(allowed)}")


def _denied(host: Host, denied: tuple[str, ...]) -> Judgement:
    found = [each for each in host.security_groups if each in denied]
    return _unless(bool(found), f"in security group {listed(found)}, which is denied")


def _leveled(
    field: str, level: str, levels: tuple[str, ...], of: Callable[[Host], str]
) -> Callable[[Place], Judgement]:
    def judge(place: Place) -> Judgement:
        has = of(place.host)
        rank = levels.index(has) if has in levels else 0
        return _unless(rank < levels.index(level), f"{field} is {has or levels[0]}, {level} needed")

    return judge


# --- machines to run with


def _affinity(policy: Policy, request: Request, world: World) -> Iterator[Rule]:
    given, path = policy.spec.affinity or AffinityRules(), "spec.affinity"
    for name, weight, term in terms(given.vm_affinity or VMAffinity()):
        yield _with_machines(f"{path}.vmAffinity.{name}", weight, term, policy, request, world)
    for each in gatherings(policy.spec):
        field, what = f"{path}.{each.what}Affinity", each.what
        if each.gather.enabled and each.names:
            preferred = f"{field}.preferred{what.capitalize()}s"
            yield _one_of(preferred, _weight(each.gather), what, each.names, _PLACES[what])
        elif each.gather.enabled:
            yield _gathered(field, _weight(each.gather), what, _of_policy(policy), "of the policy", world)
    app = given.application_affinity
    if app is not None and app.enabled:
        label, value = _application(app, request)
        same = _of_application(label, lambda other: bool(value) and other == value, request)
        yield _gathered(f"{path}.applicationAffinity", _weight(app), "host", same, f"with {label}={value}", world)


def _weight(rule: PlaceRule) -> int | None:
    return None if rule.scope == "strict" else WEIGHT


def terms(given: VMAffinity) -> Iterator[tuple[str, int | None, VMAffinityTerm]]:
    """The terms with their fields and weights; one without a weight is required."""
    for number, term in enumerate(given.required_during_scheduling):
        yield f"requiredDuringScheduling[{number}]", None, term
    for number, weighted in enumerate(given.preferred_during_scheduling):
        yield f"preferredDuringScheduling[{number}]", weighted.weight, weighted.vm_affinity_term


def _of_policy(policy: Policy) -> Callable[[Resident], bool]:
    return lambda resident: resident.policy == policy.key


def _application(rule: ApplicationAffinityRule | ApplicationAntiAffinityRule, request: Request) -> tuple[str, str]:
    label = rule.application_label or "app"
    return label, request.labels.get(label, "")


def _of_application(label: str, wanted: Callable[[str], bool], request: Request) -> Callable[[Resident], bool]:
    """Machines of the same namespace whose application is wanted."""

    def counts(resident: Resident) -> bool:
        value = resident.labels.get(label, "")
        return bool(value) and resident.key.namespace == request.key.namespace and wanted(value)

    return counts


def _gathered(
    path: str, weight: int | None, what: str, counts: Callable[[Resident], bool], whose: str, world: World
) -> Rule:
    """Run where such machines run already; the first one may run anywhere."""
    found = world.count(what, counts)

    def judge(place: Place) -> Judgement:
        name = world.domain(what, place.host.name, place.datastore)
        return _unless(bool(found) and not found[name], f"no machine {whose} {_there(what, name)}, as {path} asks for")

    return Rule(path, weight, judge)


def _with_machines(
    path: str, weight: int | None, term: VMAffinityTerm, policy: Policy, request: Request, world: World
) -> Rule:
    selects = world.selecting(term, policy.key.namespace)
    found = world.count(term.topology_key, lambda each: selects(each.key, each.labels))
    first = not found and selects(request.key, request.labels)

    def judge(place: Place) -> Judgement:
        name = world.domain(term.topology_key, place.host.name, place.datastore)
        if not name:
            return 0.0, f"no {term.topology_key}, which {path} needs"
        return _unless(
            not first and not found[name], f"no machine that {path} selects {_there(term.topology_key, name)}"
        )

    return Rule(path, weight, judge)


# --- machines to run apart from


def _anti_affinity(policy: Policy, request: Request, world: World) -> Iterator[Rule]:
    given, path = policy.spec.anti_affinity or AntiAffinityRules(), "spec.antiAffinity"
    for name, weight, term in terms(given.vm_anti_affinity or VMAffinity()):
        selects = world.selecting(term, policy.key.namespace)
        chosen = [each for each in world.residents if selects(each.key, each.labels)]
        yield _apart(f"{path}.vmAntiAffinity.{name}", weight, term.topology_key, chosen, world)
    for each in gatherings(policy.spec):
        if each.spread.enabled:
            field = f"{path}.{each.what}AntiAffinity"
            yield _spread(field, _weight(each.spread), each.what, each.most, policy, world)
    app = given.application_anti_affinity
    if app is not None and app.enabled:
        label, value = _application(app, request)
        others = _of_application(label, lambda other: bool(value) and other != value, request)
        chosen = [each for each in world.residents if others(each)]
        yield _apart(f"{path}.applicationAntiAffinity", _weight(app), "host", chosen, world)


def _apart(path: str, weight: int | None, key: str, chosen: list[Resident], world: World) -> Rule:
    """Run in no part of a topology with one of these machines; each of them there lowers the value."""
    found: dict[str, list[str]] = {}
    for each in chosen:
        found.setdefault(world.domain(key, each.host, each.datastore), []).append(each.key.name)

    def judge(place: Place) -> Judgement:
        name = world.domain(key, place.host.name, place.datastore)
        there = found.get(name, []) if name else []
        if not there:
            return MET
        are = "is" if len(there) == 1 else "are"
        return 1 / (1 + len(there)), f"{listed(there)} {are} {_there(key, name)}, which {path} forbids"

    return Rule(path, weight, judge)


def _spread(path: str, weight: int | None, what: str, most: int, policy: Policy, world: World) -> Rule:
    """At most so many machines of the policy in one place."""
    found = world.count(what, _of_policy(policy))

    def judge(place: Place) -> Judgement:
        name = world.domain(what, place.host.name, place.datastore)
        over = found[name] + 1 - most if name else 0
        if over <= 0:
            return MET
        machines = count(found[name], "machine")
        return 1 / (1 + over), f"{machines} of the policy {_there(what, name)}, {path} allows {most}"

    return Rule(path, weight, judge)


def _apart_from_others(policy: Policy, request: Request, world: World) -> Iterator[Rule]:
    """Machines whose own policy keeps them apart from this one, unless its policy has the higher priority."""
    for key, spec in sorted(world.policies.items()):
        apart = spec.anti_affinity.vm_anti_affinity if spec.anti_affinity else None
        if apart is None or (spec.priority or 0) < policy.priority:
            continue
        for number, term in enumerate(apart.required_during_scheduling):
            if world.selecting(term, key.namespace)(request.key, request.labels):
                path = f"spec.antiAffinity.vmAntiAffinity.requiredDuringScheduling[{number}] of policy {key.name}"
                chosen = [each for each in world.residents if each.policy == key]
                yield _apart(path, None, term.topology_key, chosen, world)
