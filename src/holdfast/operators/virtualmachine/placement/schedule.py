"""Where a machine is placed: the choice among the hosts of one provider, with scores, and why others were refused.

`schedule` is pure, and may be called by every controller that needs a host: with a policy, a request, and the world.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from holdfast.operators.virtualmachine.placement.judging import Rule, listed
from holdfast.operators.virtualmachine.placement.rules import cpu_use, memory_use, rules
from holdfast.operators.virtualmachine.placement.world import Place, Policy, Request, Resident, World
from holdfast.providers.contract import Host, Placement, ResourcePool

PREFERENCES: Final = 80
"""How much of a score are the preferences of a policy without a weight, in per cent; the rest is free capacity."""

_SAID: Final = 12
"""How many reasons a message has; the status has all of them."""

_HOSTS: Final = 40
"""How many hosts a message names for one reason."""

_DIGITS: Final = re.compile(r"(\d+)")


@dataclass(frozen=True, slots=True)
class Refusal:
    """A host that is not possible, and why, in words."""

    host: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """
    placement  where the machine is created; None where it fits nowhere
    zone       the zone of the host
    score      the score of the host, from 0 to 100
    scores     the scores of all possible hosts
    refused    the hosts that are not possible, each with why
    unmet      the preferences that the chosen place does not meet, in words
    blind      whether the provider reports no hosts, so that the hard constraints are passed on as they are
    """

    placement: Placement | None = None
    zone: str = ""
    score: float = 0.0
    scores: Mapping[str, float] = field(default_factory=dict)
    refused: tuple[Refusal, ...] = ()
    unmet: tuple[str, ...] = ()
    blind: bool = False


@dataclass(frozen=True, slots=True)
class _Candidate:
    place: Place
    placement: Placement
    score: float
    unmet: tuple[str, ...]


def schedule(policy: Policy, request: Request, world: World) -> Choice:
    """Choose the place with the best score among those that every required rule allows."""
    if not world.inventory.hosts:
        return Choice(placement=_passed_on(policy, request), blind=True)
    judged = rules(policy, request, world)
    best: dict[str, _Candidate] = {}
    refused: list[Refusal] = []
    for host in sorted(world.hosts.values(), key=lambda each: natural(each.name)):
        found, reasons = _on_host(host, judged, policy, request, world)
        if found is None:
            refused.append(Refusal(host.name, reasons))
        else:
            best[host.name] = found
    scores = {name: round(each.score, 3) for name, each in best.items()}
    if not best:
        return Choice(scores=scores, refused=tuple(refused))
    chosen = min(best.values(), key=lambda each: (-round(each.score, 6), world.on_host[each.place.host.name]))
    return Choice(
        placement=chosen.placement,
        zone=chosen.place.host.zone,
        score=scores[chosen.place.host.name],
        scores=scores,
        refused=tuple(refused),
        unmet=chosen.unmet,
    )


def resident(policy: Policy | None, request: Request, placement: Placement) -> Resident:
    """A machine that was placed just now, for the world of the next one."""
    return Resident(
        key=request.key,
        labels=request.labels,
        policy=policy.key if policy else None,
        host=placement.host,
        datastore=placement.datastore,
        cpus=request.cpus,
        memory_mib=request.memory_mib,
        disk_bytes=request.disk_bytes,
        gpus=request.gpus,
        gpu_type=request.gpu_type,
        counted=False,
    )


def grouped(refused: tuple[Refusal, ...]) -> str:
    """Why hosts were refused, by the first reason of each; hosts with the same reason are named together."""
    hosts: dict[str, list[str]] = {}
    for each in refused:
        hosts.setdefault(each.reason.partition("; ")[0], []).append(each.host)
    parts = [f"{listed(names, _HOSTS)}: {why}" for why, names in hosts.items()]
    more = f"; and {len(parts) - _SAID} more, see status.placement.refused" if len(parts) > _SAID else ""
    return "; ".join(parts[:_SAID]) + more


def natural(name: str) -> tuple[tuple[int, int, str], ...]:
    """An order of names in which host-10 comes after host-9."""
    return tuple((0, int(part), "") if part.isdigit() else (1, 0, part) for part in _DIGITS.split(name) if part)


def _on_host(
    host: Host, judged: Iterable[Rule], policy: Policy, request: Request, world: World
) -> tuple[_Candidate | None, str]:
    """The best place on a host, or why there is none."""
    files, problem = _filing(host, policy, request, world)
    found: list[_Candidate] = []
    reasons: list[list[str]] = []
    for place in world.places(host):
        said, preferences = [problem] if problem else [], []
        for rule in judged:
            value, words = rule.judge(place)
            if rule.weight is not None:
                preferences.append((rule.weight, value, words))
            elif value < 1:
                said.append(words)
        if said:
            reasons.append(said)
            continue
        placement = Placement(
            datastore="" if request.pinned.storage_pod else place.datastore,
            storage_pod=request.pinned.storage_pod,
            cluster=host.cluster,
            folder=files.folder,
            host=host.name,
            resource_pool=files.resource_pool,
        )
        unmet = tuple(words for _, value, words in preferences if value < 1)
        found.append(_Candidate(place, placement, _score(place, preferences, policy, request), unmet))
    if not found:
        # Of several datastores, why those that come closest are not possible.
        least = min(map(len, reasons))
        return None, "; ".join(dict.fromkeys(words for each in reasons if len(each) == least for words in each))
    stores = world.datastores
    most_free = {each: -stores[each].free_bytes for each in stores}
    return min(found, key=lambda each: (-round(each.score, 6), most_free.get(each.place.datastore, 0))), ""


def _score(place: Place, preferences: Iterable[tuple[int, float, str]], policy: Policy, request: Request) -> float:
    """Preferences by their weights, and the share of the host that is left free, in the ratio of the policy."""
    given = list(preferences)
    total = sum(weight for weight, _, _ in given)
    liked = sum(weight * value for weight, value, _ in given) / total if total else 1.0
    uses = [each for each in (cpu_use(place.host, request), memory_use(place.host, request)) if each is not None]
    free = 1 - min(sum(uses) / len(uses), 1.0) if uses else 0.5
    share = policy.spec.weight or PREFERENCES
    return share * liked + (100 - share) * free


# --- folders and resource pools, which are chosen by name alone


def _filing(host: Host, policy: Policy, request: Request, world: World) -> tuple[Placement, str]:
    """The folder and the resource pool of a machine on a host, or why there is none."""
    hard, soft, inventory = policy.spec.hard, policy.spec.soft, world.inventory
    pools = [each for each in inventory.resource_pools if each.cluster in ("", host.cluster)]
    folder, no_folder = _named(
        "folder", request.pinned.folder, hard.folders if hard else (), soft.folders if soft else (), inventory.folders
    )
    pool, no_pool = _named(
        "resource pool",
        request.pinned.resource_pool,
        hard.resource_pools if hard else (),
        soft.resource_pools if soft else (),
        tuple(map(_pool_name, pools)),
        reported=bool(inventory.resource_pools),
    )
    return Placement(folder=folder, resource_pool=pool), no_folder or no_pool


def _pool_name(pool: ResourcePool) -> str:
    return pool.name


def _named(
    what: str,
    pinned: str,
    hard: tuple[str, ...],
    soft: tuple[str, ...],
    there: tuple[str, ...],
    *,
    reported: bool | None = None,
) -> tuple[str, str]:
    """A name among those that are allowed, a preferred one first; where none is reported, none is checked."""
    allowed = (pinned,) if pinned else hard
    known = bool(there) if reported is None else reported
    usable = [each for each in (allowed or soft) if not known or each in there]
    if allowed and not usable:
        return "", f"none of the {what}s {listed(allowed)} there"
    return next((each for each in usable if each in soft), next(iter(usable), "")), ""


def _passed_on(policy: Policy, request: Request) -> Placement:
    """The hard constraints as a provider without an inventory gets them: the first name of each list."""
    hard, pinned = policy.spec.hard, request.pinned
    if hard is None:
        return pinned

    def first(names: tuple[str, ...], excluded: tuple[str, ...] = ()) -> str:
        return next((each for each in names if each not in excluded), "")

    return Placement(
        datastore=pinned.datastore or ("" if pinned.storage_pod else first(hard.datastores, hard.excluded_datastores)),
        storage_pod=pinned.storage_pod,
        cluster=pinned.cluster or first(hard.clusters, hard.excluded_clusters),
        folder=pinned.folder or first(hard.folders),
        host=pinned.host
        or first(tuple(each for each in hard.hosts if each not in request.avoided), hard.excluded_hosts),
        resource_pool=pinned.resource_pool or first(hard.resource_pools),
    )
