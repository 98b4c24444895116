"""The rules of a VMPlacementPolicy about other machines: those to run with, and those to run apart from.  Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from holdfast.kernel.reasons import count
from holdfast.kinds.virtrigaud.placement import (
    AffinityRules,
    AntiAffinityRules,
    ApplicationAffinityRule,
    ApplicationAntiAffinityRule,
    PlaceRule,
    VMAffinity,
    VMAffinityTerm,
)
from holdfast.operators.virtualmachine.placement.gathering import gatherings
from holdfast.operators.virtualmachine.placement.judging import (
    MET,
    PLACES,
    WEIGHT,
    Judgement,
    Rule,
    listed,
    one_of,
    there_in,
    unless,
)
from holdfast.operators.virtualmachine.placement.world import Place, Policy, Request, Resident, World


def together(policy: Policy, request: Request, world: World) -> Iterator[Rule]:
    """The rules about machines to run with."""
    given, path = policy.spec.affinity or AffinityRules(), "spec.affinity"
    for name, weight, term in terms(given.vm_affinity or VMAffinity()):
        yield _with_machines(f"{path}.vmAffinity.{name}", weight, term, policy, request, world)
    for each in gatherings(policy.spec):
        field, what = f"{path}.{each.what}Affinity", each.what
        if each.gather.enabled and each.names:
            preferred = f"{field}.preferred{what.capitalize()}s"
            yield one_of(preferred, _weight(each.gather), what, each.names, PLACES[what])
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
        return unless(bool(found) and not found[name], f"no machine {whose} {there_in(what, name)}, as {path} asks for")

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
        return unless(
            not first and not found[name], f"no machine that {path} selects {there_in(term.topology_key, name)}"
        )

    return Rule(path, weight, judge)


def apart(policy: Policy, request: Request, world: World) -> Iterator[Rule]:
    """The rules about machines to run apart from."""
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
        return 1 / (1 + len(there)), f"{listed(there)} {are} {there_in(key, name)}, which {path} forbids"

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
        return 1 / (1 + over), f"{machines} of the policy {there_in(what, name)}, {path} allows {most}"

    return Rule(path, weight, judge)


def apart_from_others(policy: Policy, request: Request, world: World) -> Iterator[Rule]:
    """Machines whose own policy keeps them apart from this one, unless its policy has the higher priority."""
    for key, spec in sorted(world.policies.items()):
        theirs = spec.anti_affinity.vm_anti_affinity if spec.anti_affinity else None
        if theirs is None or (spec.priority or 0) < policy.priority:
            continue
        for number, term in enumerate(theirs.required_during_scheduling):
            if world.selecting(term, key.namespace)(request.key, request.labels):
                path = f"spec.antiAffinity.vmAntiAffinity.requiredDuringScheduling[{number}] of policy {key.name}"
                chosen = [each for each in world.residents if each.policy == key]
                yield _apart(path, None, term.topology_key, chosen, world)
