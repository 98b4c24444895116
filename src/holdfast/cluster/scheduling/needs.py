"""What a pod asks of the node it runs on, read once from its spec.

Pods of one template have the same spec, byte for byte, so what was read is kept by
those bytes: a thousand replicas cost one reading.  This module must not know any
node, nor what becomes of what is asked.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

import msgspec

from holdfast.client.objects import Object
from holdfast.client.pods import FINISHED
from holdfast.cluster.scheduling import specs
from holdfast.meta.nodes import Taint, Toleration, tolerating
from holdfast.meta.objects import Key
from holdfast.meta.quantities import Quantity
from holdfast.meta.selectors import EVERYTHING, LabelSelector, Operator, Requirement

CPU: Final = "cpu"
MEMORY: Final = "memory"
DEFAULT_SCHEDULER: Final = "default-scheduler"

Amounts = tuple[tuple[str, int], ...]
"""Resources by name: thousandths of a CPU, whole units of everything else."""

_ASSUMED: Final = {CPU: 100, MEMORY: 200 * 1024**2}
"""What a container that asks for nothing is taken to use when nodes are compared."""

_decoder: Final = msgspec.json.Decoder(specs.Spec)


# --- the parts


@dataclass(frozen=True, slots=True)
class NodeTerm:
    """Labels and fields that a node must have; a term that asks for nothing is met by no node."""

    labels: LabelSelector
    fields: LabelSelector

    def matches(self, labels: Mapping[str, str], name: str) -> bool:
        if not self.labels.requirements and not self.fields.requirements:
            return False
        return self.labels.matches(labels) and self.fields.matches({"metadata.name": name})


@dataclass(frozen=True, slots=True)
class PodTerm:
    """Pods that are to be near or far, and how far: the label that nodes of one place share.

    Without namespaces and a selector of them, those of the pod's own namespace are meant.
    """

    topology_key: str
    selector: LabelSelector
    namespaces: frozenset[str] = frozenset()
    namespace_selector: LabelSelector | None = None
    same: tuple[str, ...] = ()
    """Labels in which they must be as the pod itself is."""
    other: tuple[str, ...] = ()
    """Labels in which they must differ from it."""


@dataclass(frozen=True, slots=True)
class Spread:
    """How evenly the selected pods must be spread over the values of a label of nodes."""

    topology_key: str
    selector: LabelSelector
    max_skew: int
    required: bool
    min_domains: int
    same: tuple[str, ...]
    heeds_affinity: bool
    heeds_taints: bool


@dataclass(frozen=True, slots=True)
class HostPort:
    """A port of the node itself; without an address it is taken on all of them."""

    protocol: str
    port: int
    address: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Needs:
    """All that a spec asks for."""

    node_name: str = ""
    scheduler: str = DEFAULT_SCHEDULER
    runtime: str = ""
    """The runtime class that it asks for by name."""
    gates: tuple[str, ...] = ()
    priority: int = 0
    requests: Amounts = ()
    weight: tuple[int, int] = (0, 0)
    """CPU and memory that it is taken to use, for comparing nodes."""
    ports: tuple[HostPort, ...] = ()
    tolerations: tuple[Toleration, ...] = ()
    node_selector: LabelSelector = EVERYTHING
    node_terms: tuple[NodeTerm, ...] | None = None
    """Of which a node must meet one; None asks for nothing."""
    preferred_nodes: tuple[tuple[int, NodeTerm], ...] = ()
    near: tuple[PodTerm, ...] = ()
    apart: tuple[PodTerm, ...] = ()
    preferred_pods: tuple[tuple[int, PodTerm], ...] = ()
    """With weights; those that are to be apart have negative ones."""
    spreads: tuple[Spread, ...] = ()

    def tolerate(self, taint: Taint) -> bool:
        return tolerating(taint, self.tolerations) is not None

    def select(self, labels: Mapping[str, str], name: str) -> bool:
        """Whether a node is among those that are asked for."""
        if not self.node_selector.matches(labels):
            return False
        return self.node_terms is None or any(term.matches(labels, name) for term in self.node_terms)

    @property
    def depends_on_pods(self) -> bool:
        """Whether another pod's arrival may open a place that was closed."""
        return bool(self.near) or any(spread.required for spread in self.spreads)


@dataclass(frozen=True, slots=True)
class Claim:
    """A pod that has a place on a node, or wants one."""

    key: Key
    uid: str
    labels: Mapping[str, str]
    created: str
    owner: str
    """UID of its controller."""
    deleting: bool
    finished: bool
    needs: Needs

    @classmethod
    def of(cls, obj: Object) -> Claim:
        read = obj.decode(specs.Parts)
        meta, owner = obj.meta, obj.controller
        return cls(
            key=obj.key,
            uid=meta.uid,
            labels=meta.labels,
            created=meta.creation_timestamp or "",
            owner=owner.uid if owner else "",
            deleting=obj.deleting,
            finished=read.status.phase in FINISHED,
            needs=needs(bytes(read.spec)),
        )

    @property
    def namespace(self) -> str:
        return self.key.namespace


@lru_cache(maxsize=4096)
def needs(spec: bytes) -> Needs:
    """What a pod with this spec asks for."""
    read = _decoder.decode(spec)
    affinity = read.affinity
    nodes, pods, anti = affinity.node_affinity, affinity.pod_affinity, affinity.pod_anti_affinity
    return Needs(
        node_name=read.node_name,
        scheduler=read.scheduler_name or DEFAULT_SCHEDULER,
        runtime=read.runtime_class_name,
        gates=tuple(gate["name"] for gate in read.scheduling_gates),
        priority=read.priority,
        requests=_requests(read),
        weight=_weight(read),
        ports=tuple(_ports(read)),
        tolerations=read.tolerations,
        node_selector=_labels(read.node_selector),
        node_terms=None if nodes.required is None else tuple(map(_node_term, nodes.required.node_selector_terms)),
        preferred_nodes=tuple((each.weight, _node_term(each.preference)) for each in nodes.preferred),
        near=tuple(map(_pod_term, pods.required)),
        apart=tuple(map(_pod_term, anti.required)),
        preferred_pods=tuple(
            (sign * each.weight, _pod_term(each.pod_affinity_term))
            for sign, terms in ((1, pods.preferred), (-1, anti.preferred))
            for each in terms
        ),
        spreads=tuple(map(_spread, read.topology_spread_constraints)),
    )


def amount(resource: str, quantity: str | int | float) -> int:
    """A quantity in the unit in which its resource is counted."""
    parsed = Quantity.parse(quantity)
    return parsed.to_millis() if resource == CPU else parsed.to_int()


def amounts(quantities: Mapping[str, str | int | float]) -> dict[str, int]:
    return {name: amount(name, quantity) for name, quantity in quantities.items()}


# --- from the wire


def _requests(spec: specs.Spec) -> Amounts:
    """The most that is asked for at any time: by all that run at last, or by one that runs before them.

    Sidecars count from their start on; what the pod asks for as a whole replaces what its containers do.
    """
    running: dict[str, int] = {}
    peak: dict[str, int] = {}
    for container in spec.init_containers:
        asked = amounts(container.resources.requests)
        if container.restart_policy == "Always":
            _add(running, asked)
        else:
            beside = dict(running)
            _add(beside, asked)
            peak = {name: max(peak.get(name, 0), beside.get(name, 0)) for name in peak | beside}
    for container in spec.containers:
        _add(running, amounts(container.resources.requests))
    total = {name: max(running.get(name, 0), peak.get(name, 0)) for name in running | peak}
    total |= amounts(spec.resources.requests)
    _add(total, amounts(spec.overhead))
    return tuple(sorted((name, number) for name, number in total.items() if number))


def _add(total: dict[str, int], more: Mapping[str, int]) -> None:
    for name, number in more.items():
        total[name] = total.get(name, 0) + number


def _weight(spec: specs.Spec) -> tuple[int, int]:
    def used(name: str) -> int:
        asked = (container.resources.requests.get(name) for container in spec.containers)
        return sum(_ASSUMED[name] if quantity is None else amount(name, quantity) for quantity in asked)

    return used(CPU), used(MEMORY)


def _ports(spec: specs.Spec) -> Iterable[HostPort]:
    for container in (*spec.containers, *spec.init_containers):
        for port in container.ports:
            if port.host_port:
                address = "" if port.host_ip in ("0.0.0.0", "::") else port.host_ip
                yield HostPort(port.protocol, port.host_port, address)


def _node_term(term: specs.NodeSelectorTerm) -> NodeTerm:
    return NodeTerm(_expressions(term.match_expressions), _expressions(term.match_fields))


def _expressions(expressions: Iterable[Mapping[str, Any]]) -> LabelSelector:
    """As in a label selector, but with ``Gt`` and ``Lt`` too."""
    return LabelSelector(
        frozenset(
            Requirement(each["key"], Operator(each["operator"]), frozenset(each.get("values") or ()))
            for each in expressions
        )
    )


def _labels(labels: Mapping[str, str]) -> LabelSelector:
    return LabelSelector(frozenset(Requirement(key, Operator.IN, frozenset({value})) for key, value in labels.items()))


def _pod_term(term: specs.PodAffinityTerm) -> PodTerm:
    namespaces = term.namespace_selector
    return PodTerm(
        term.topology_key,
        LabelSelector.from_object(term.label_selector),
        frozenset(term.namespaces),
        None if namespaces is None else LabelSelector.from_object(namespaces),
        term.match_label_keys,
        term.mismatch_label_keys,
    )


def _spread(constraint: specs.SpreadConstraint) -> Spread:
    return Spread(
        constraint.topology_key,
        LabelSelector.from_object(constraint.label_selector),
        constraint.max_skew,
        required=constraint.when_unsatisfiable == "DoNotSchedule",
        min_domains=constraint.min_domains,
        same=constraint.match_label_keys,
        heeds_affinity=constraint.node_affinity_policy == "Honor",
        heeds_taints=constraint.node_taints_policy == "Honor",
    )
