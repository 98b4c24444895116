"""Gangs: pods that are scheduled together or not at all.

A PodGang names groups of pods and how many of each must run.  So many of every
group are tried together; if one of them is unschedulable, none is bound.  Pods beyond
the minimum are scheduled as room allows.  Pods that are bound count, so a gang whose
binding was interrupted is completed by the next try.

Topology constraints say which label nodes must share: the required one is never
left, the preferred one is tried first.  Domains are tried from the emptiest on;
what was found for one group is not undone for the next.

Pure.  This module must not know how pods are bound, nor what the status of a gang says.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

import msgspec

from holdfast.client.objects import Object
from holdfast.client.resources import Resource
from holdfast.cluster.scheduling.needs import Claim
from holdfast.cluster.scheduling.occupancy import Cluster, Trial
from holdfast.cluster.scheduling.placing import Placed, place
from holdfast.kernel.reasons import count
from holdfast.kinds.grove_scheduler import POD_GANG, PodGangSpec, TopologyConstraint
from holdfast.meta.objects import Key

POD_GANGS: Final = Resource.of(POD_GANG)

LABEL: Final = "grove.io/podgang"
"""The label by which a pod names its gang."""

Nodes = Collection[str] | None
"""Names of nodes; None means all."""


@dataclass(frozen=True, slots=True)
class Pack:
    """The labels that the nodes of pods must, and should, share."""

    required: str = ""
    preferred: str = ""

    @classmethod
    def of(cls, constraint: TopologyConstraint | None) -> Pack:
        pack = constraint.pack_constraint if constraint else None
        return cls(pack.required or "", pack.preferred or "") if pack else cls()


@dataclass(frozen=True, slots=True)
class Part:
    """Some of a gang's pods, or parts of it, that are packed together.  Only those with pods of their own need any."""

    name: str
    pack: Pack
    members: tuple[Key, ...] = ()
    minimum: int = 0
    parts: tuple[Part, ...] = ()

    @property
    def groups(self) -> Iterator[Part]:
        """The parts that have pods."""
        if not self.parts:
            yield self
        for part in self.parts:
            yield from part.groups

    @property
    def pods(self) -> Iterator[Key]:
        for group in self.groups:
            yield from group.members


class _Specified(msgspec.Struct, frozen=True):
    spec: PodGangSpec


@dataclass(frozen=True, slots=True)
class Gang:
    """A PodGang, with the fields that scheduling needs."""

    key: Key
    whole: Part

    @classmethod
    def of(cls, obj: Object) -> Gang:
        spec = obj.decode(_Specified).spec
        groups = {
            group.name: Part(
                group.name,
                Pack.of(group.topology_constraint),
                tuple(Key(each.namespace, each.name) for each in group.pod_references),
                group.min_replicas,
            )
            for group in spec.pod_groups
        }
        parts = []
        for each in spec.topology_constraint_group_configs:
            within = tuple(groups.pop(name) for name in each.pod_group_names if name in groups)
            if within:
                parts.append(Part(each.name, Pack.of(each.topology_constraint), parts=within))
        return cls(obj.key, Part(obj.meta.name, Pack.of(spec.topology_constraint), parts=(*parts, *groups.values())))


@dataclass(frozen=True, slots=True)
class Together:
    """The gang has its places: which pods to bind where, and which of those beyond its minimum must wait, and why."""

    bindings: tuple[tuple[Claim, str], ...]
    waiting: Mapping[Key, str]


@dataclass(frozen=True, slots=True)
class Held:
    """No pod of the gang may be bound now, and why."""

    message: str


def is_complete(gang: Gang, cluster: Cluster) -> bool:
    """Whether every group of a gang has its minimum, so that only pods beyond it can wait."""
    return all(_placed(group, cluster) >= group.minimum for group in gang.whole.groups)


def place_gang(
    gang: Gang, waiting: Mapping[Key, Claim], cluster: Cluster, *, beyond_minimum: bool = True
) -> Together | Held:
    """Places for the pods of a gang that wait for one; for those beyond its minimum only if that is wanted."""
    needed = {group.name: _needed(group, waiting, cluster) for group in gang.whole.groups}
    for group in gang.whole.groups:
        missing = group.minimum - _placed(group, cluster) - len(needed[group.name])
        if missing > 0:
            pods = count(missing, "pod")
            return Held(f"PodGang {gang.key} waits for {pods} of group {group.name} to exist and pass its gates.")
    with cluster.trial() as trial:
        attempt = _Attempt(cluster, trial, waiting, needed)
        problem = attempt.fit(gang.whole, None)
        if problem is not None:
            return Held(f"PodGang {gang.key} cannot be placed as a whole: {problem}")
        left = attempt.fit_rest(gang.whole, None) if beyond_minimum else {}
        return Together(tuple(attempt.bindings), left)


def _needed(group: Part, waiting: Mapping[Key, Claim], cluster: Cluster) -> tuple[Claim, ...]:
    """The pods of a group that are still needed for its minimum: the first that wait."""
    here = (waiting[key] for key in group.members if key in waiting)
    lacking = max(0, group.minimum - _placed(group, cluster))
    return tuple(claim for _, claim in zip(range(lacking), here, strict=False))


def _placed(group: Part, cluster: Cluster) -> int:
    return sum(cluster.place_of(key) is not None for key in group.members)


@dataclass(slots=True)
class _Attempt:
    """One try to place a gang.  What was placed is taken back where it fails."""

    cluster: Cluster
    trial: Trial
    waiting: Mapping[Key, Claim]
    needed: Mapping[str, tuple[Claim, ...]]

    @property
    def bindings(self) -> Iterator[tuple[Claim, str]]:
        for key in self.trial.given:
            node = self.cluster.place_of(key)
            assert node is not None, "what the trial has given has a place"
            yield self.waiting[key], node

    def fit(self, part: Part, within: Nodes) -> str | None:
        """Place what is needed of a part, in one of the places that it may be packed into; or say what stopped it."""
        problem: str | None = f"no domain of the label {part.pack.required} can hold {part.name}."
        for nodes in self._options(part, within):
            mark = self.trial.mark()
            problem = self._fit_into(part, nodes)
            if problem is None:
                return None
            self.trial.undo(mark)
        return problem

    def _fit_into(self, part: Part, nodes: Nodes) -> str | None:
        for inner in part.parts:
            problem = self.fit(inner, nodes)
            if problem is not None:
                return problem
        for claim in self.needed.get(part.name, ()) if not part.parts else ():
            problem = self._put(claim, nodes)
            if problem is not None:
                return f"pod {claim.key.name} of group {part.name}: {problem}"
        return None

    def fit_rest(self, part: Part, within: Nodes) -> dict[Key, str]:
        """Place the others as room allows, near those that were placed; what is left, and why."""
        nodes = next(self._required(part, within), frozenset[str]())
        left: dict[Key, str] = {}
        for inner in part.parts:
            left |= self.fit_rest(inner, nodes)
        for key in part.members:
            if key in self.waiting and self.cluster.place_of(key) is None:
                problem = self._put(self.waiting[key], nodes)
                if problem is not None:
                    left[key] = problem
        return left

    def _put(self, claim: Claim, nodes: Nodes) -> str | None:
        found = place(claim, self.cluster, within=nodes)
        if isinstance(found, Placed):
            self.trial.put(claim, found.node)
            return None
        return found.message

    # --- where a part may be packed

    def _options(self, part: Part, within: Nodes) -> Iterator[Nodes]:
        for nodes in self._required(part, within):
            if part.pack.preferred:
                yield from self._domains(part, part.pack.preferred, nodes)
            yield nodes

    def _required(self, part: Part, within: Nodes) -> Iterator[Nodes]:
        if part.pack.required:
            yield from self._domains(part, part.pack.required, within)
        else:
            yield within

    def _domains(self, part: Part, label: str, within: Nodes) -> Iterator[Nodes]:
        """The nodes of each domain, the emptiest first; where pods of the part have places, only their domains."""
        domains: dict[str, list[str]] = {}
        used: dict[str, float] = {}
        for host in self.cluster.hosts:
            domain = host.node.labels.get(label)
            if domain is not None and (within is None or host.name in within):
                domains.setdefault(domain, []).append(host.name)
                used[domain] = used.get(domain, 0.0) + host.pods / max(1, host.node.allocatable.get("pods", 0))
        settled = {self.cluster.place_of(key) for key in part.pods} - {None}
        for domain in sorted(domains, key=lambda each: (used[each] / len(domains[each]), each)):
            if settled <= set(domains[domain]):
                yield frozenset(domains[domain])
