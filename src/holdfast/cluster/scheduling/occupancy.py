"""Occupancy: the nodes and the pods on them, adjusted with every change, never recounted.

What a scheduler asks again and again (what is free on a node, how many pods of some
kind run in a zone) is a number that a change adjusts, so one pod costs the same
among a hundred as among ten thousand.  This module must not know what makes a node
fit for a pod.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

from holdfast.client.objects import Object
from holdfast.cluster.scheduling.needs import CPU, MEMORY, Claim, HostPort, PodTerm, Spread, amounts
from holdfast.meta import nodes
from holdfast.meta.nodes import Taint
from holdfast.meta.objects import Key
from holdfast.meta.selectors import LabelSelector, Operator, Requirement

T = TypeVar("T")

_MOST_TALLIES: Final = 4096
"""Groups of pods that are counted all the time; one more is recounted when it is asked for again."""


# --- nodes


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """A node, with the fields that scheduling needs."""

    name: str
    labels: Mapping[str, str]
    allocatable: Mapping[str, int]
    taints: tuple[Taint, ...] = ()
    unschedulable: bool = False
    ready: bool = True

    @classmethod
    def of(cls, obj: Object) -> Node:
        read = obj.decode(_Node)
        return cls(
            name=obj.meta.name,
            labels=obj.meta.labels,
            allocatable=amounts(read.status.allocatable),
            taints=read.spec.taints,
            unschedulable=read.spec.unschedulable,
            ready=read.ready,
        )


class _NodeStatus(nodes.NodeStatus, frozen=True, gc=False):
    allocatable: dict[str, str | int | float] = {}


class _Node(nodes.Node, frozen=True, gc=False):
    status: _NodeStatus = _NodeStatus()


class Host:
    """A node and what has been taken of it.  Only a `Cluster` changes it."""

    __slots__ = ("cpu", "memory", "node", "pods", "ports", "taken")

    def __init__(self, node: Node) -> None:
        self.node = node
        self.taken: dict[str, int] = {}
        self.pods = 0
        self.ports: Counter[HostPort] = Counter()
        self.cpu = 0
        self.memory = 0

    @property
    def name(self) -> str:
        return self.node.name

    def take(self, claim: Claim, sign: int) -> None:
        needs, taken = claim.needs, self.taken
        for name, number in needs.requests:
            taken[name] = taken.get(name, 0) + sign * number
        self.pods += sign
        self.cpu += sign * needs.weight[0]
        self.memory += sign * needs.weight[1]
        for port in needs.ports:
            self.ports[port] += sign

    def used(self, claim: Claim) -> tuple[float, float]:
        """The shares of CPU and memory that would be used with one more pod; all, where there is none."""
        allocatable, (cpu, memory) = self.node.allocatable, claim.needs.weight
        return (
            min(1.0, (self.cpu + cpu) / (allocatable.get(CPU) or 1)),
            min(1.0, (self.memory + memory) / (allocatable.get(MEMORY) or 1)),
        )


# --- groups of pods


@dataclass(frozen=True, slots=True)
class Group:
    """Pods of some namespaces that a selector selects; those on their way out count, unless they are left out."""

    namespaces: frozenset[str]
    selector: LabelSelector
    staying: bool = False

    def has(self, claim: Claim) -> bool:
        return (
            claim.namespace in self.namespaces
            and not (self.staying and claim.deleting)
            and self.selector.matches(claim.labels)
        )


@dataclass(frozen=True, slots=True)
class Apart:
    """Pods that a placed pod will not have near it: `term`, as a pod of this namespace with these labels means it."""

    topology_key: str
    selector: LabelSelector
    namespaces: frozenset[str]
    namespace_selector: LabelSelector | None


class _Selections(Generic[T]):
    """Things with selectors, found from a pod's labels without trying all of them."""

    def __init__(self) -> None:
        self._by_label: dict[tuple[str, str] | None, dict[T, LabelSelector]] = {}

    def add(self, thing: T, selector: LabelSelector) -> None:
        self._by_label.setdefault(_handle(selector), {})[thing] = selector

    def discard(self, thing: T, selector: LabelSelector) -> None:
        handle = _handle(selector)
        bucket = self._by_label.get(handle, {})
        bucket.pop(thing, None)
        if not bucket:
            self._by_label.pop(handle, None)

    def of(self, labels: Mapping[str, str]) -> Iterator[T]:
        for handle in (None, *labels.items()):
            for thing, selector in self._by_label.get(handle, {}).items():
                if selector.matches(labels):
                    yield thing


def _handle(selector: LabelSelector) -> tuple[str, str] | None:
    """One label that every pod of a selector has, if there is one."""
    single = (
        (each.key, *each.values)
        for each in selector.requirements
        if each.operator is Operator.IN and len(each.values) == 1
    )
    return min(((key, value) for key, value in single), default=None)


# --- all of it


class Cluster:
    """Nodes, and pods in their places.

    `freed` and `changed` count what may let a pod in that had no place: room or rules of nodes, and anything at all.
    """

    def __init__(self) -> None:
        self.freed = 0
        self.changed = 0
        self._hosts: dict[str, Host] = {}
        self._order: tuple[Host, ...] | None = None
        self._places: dict[Key, tuple[Claim, str]] = {}
        self._on: dict[str, dict[Key, Claim]] = {}
        self._namespaces: dict[str, Mapping[str, str]] = {}
        self._tallies: OrderedDict[Group, Counter[str]] = OrderedDict()
        self._counted: _Selections[Group] = _Selections()
        self._apart: dict[Apart, Counter[str]] = {}
        self._repelling: _Selections[Apart] = _Selections()
        self._owners: dict[str, Counter[str]] = {}

    # --- nodes and namespaces

    @property
    def hosts(self) -> tuple[Host, ...]:
        """In the order of their names."""
        if self._order is None:
            self._order = tuple(self._hosts[name] for name in sorted(self._hosts))
        return self._order

    def put_node(self, node: Node) -> None:
        host = self._hosts.get(node.name)
        if host is not None and host.node == node:
            return
        self._note_freed()
        if host is not None:
            host.node = node
            return
        host = self._hosts[node.name] = Host(node)
        for claim in self._on.get(node.name, {}).values():
            host.take(claim, 1)
        self._order = None

    def drop_node(self, name: str) -> None:
        if self._hosts.pop(name, None) is not None:
            self._order = None
            self._note_freed()

    def put_namespace(self, name: str, labels: Mapping[str, str] | None) -> None:
        if labels is None:
            self._namespaces.pop(name, None)
        elif self._namespaces.get(name) != labels:
            self._namespaces[name] = labels
            self._note_freed()

    def _note_freed(self) -> None:
        self.freed += 1
        self.changed += 1

    # --- pods

    def place_of(self, key: Key) -> str | None:
        placed = self._places.get(key)
        return placed[1] if placed else None

    def put(self, claim: Claim, node: str) -> None:
        """Give a pod its place; what it had before is forgotten."""
        before = self._places.get(claim.key)
        if before is not None:
            if before == (claim, node):
                return
            self.remove(claim.key)
        self._places[claim.key] = (claim, node)
        self._on.setdefault(node, {})[claim.key] = claim
        self._count(claim, node, 1)
        self.changed += 1

    def remove(self, key: Key) -> None:
        """Free a pod's place, if it has one."""
        placed = self._places.pop(key, None)
        if placed is None:
            return
        claim, node = placed
        del self._on[node][key]
        self._count(claim, node, -1)
        self._note_freed()

    @contextmanager
    def trial(self) -> Iterator[Trial]:
        """Give places only to see what follows: they are taken back at the end."""
        freed, changed = self.freed, self.changed
        trial = Trial(self)
        try:
            yield trial
        finally:
            trial.undo()
            self.freed, self.changed = freed, changed

    def _count(self, claim: Claim, node: str, sign: int) -> None:
        host = self._hosts.get(node)
        if host is not None:
            host.take(claim, sign)
        for group in self._counted.of(claim.labels):
            if group.has(claim):
                _adjust(self._tallies[group], node, sign)
        for term in claim.needs.apart:
            self._hold_apart(self._as_meant(term, claim), node, sign)
        if claim.owner:
            counts = self._owners.setdefault(claim.owner, Counter())
            _adjust(counts, node, sign)
            if not counts:
                del self._owners[claim.owner]

    def _hold_apart(self, apart: Apart, node: str, sign: int) -> None:
        counts = self._apart.get(apart)
        if counts is None:
            counts = self._apart[apart] = Counter()
            self._repelling.add(apart, apart.selector)
        _adjust(counts, node, sign)
        if not counts:
            del self._apart[apart]
            self._repelling.discard(apart, apart.selector)

    def _as_meant(self, term: PodTerm, claim: Claim) -> Apart:
        own = frozenset({claim.namespace}) if not term.namespaces and term.namespace_selector is None else frozenset()
        selector = resolved(term.selector, claim.labels, same=term.same, other=term.other)
        return Apart(term.topology_key, selector, term.namespaces | own, term.namespace_selector)

    # --- what is asked

    def group(self, term: PodTerm, claim: Claim) -> Group:
        """The pods that a term of a pod means."""
        meant = self._as_meant(term, claim)
        return Group(self._reached(meant), meant.selector)

    def spread_group(self, spread: Spread, claim: Claim) -> Group:
        """The pods that a pod is to be spread with."""
        selector = resolved(spread.selector, claim.labels, same=spread.same)
        return Group(frozenset({claim.namespace}), selector, staying=True)

    def tally(self, group: Group) -> Mapping[str, int]:
        """How many pods of a group each node has; nodes with none are not in it."""
        counts = self._tallies.get(group)
        if counts is not None:
            self._tallies.move_to_end(group)
            return counts
        counts = Counter(node for claim, node in self._places.values() if group.has(claim))
        self._tallies[group] = counts
        self._counted.add(group, group.selector)
        if len(self._tallies) > _MOST_TALLIES:
            oldest, _ = self._tallies.popitem(last=False)
            self._counted.discard(oldest, oldest.selector)
        return counts

    def siblings(self, claim: Claim) -> Mapping[str, int]:
        """How many pods of the same controller each node has."""
        return self._owners.get(claim.owner, {}) if claim.owner else {}

    def domains(self, counts: Mapping[str, int], topology_key: str) -> dict[str, int]:
        """Numbers by node as numbers by place; nodes without the label are left out."""
        found: dict[str, int] = {}
        for name, number in counts.items():
            host = self._hosts.get(name)
            domain = host.node.labels.get(topology_key) if host else None
            if domain is not None:
                found[domain] = found.get(domain, 0) + number
        return found

    def repelled(self, claim: Claim) -> dict[str, set[str]]:
        """The places, by topology key, whose pods will not have this one near them."""
        found: dict[str, set[str]] = {}
        for apart in self._repelling.of(claim.labels):
            if claim.namespace in self._reached(apart):
                places = self.domains(self._apart[apart], apart.topology_key)
                found.setdefault(apart.topology_key, set()).update(places)
        return found

    def _reached(self, apart: Apart) -> frozenset[str]:
        selector = apart.namespace_selector
        if selector is None:
            return apart.namespaces
        return apart.namespaces | {name for name, labels in self._namespaces.items() if selector.matches(labels)}


class Trial:
    """Assignments that may be taken back."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self.given: list[Key] = []
        """Who has a place for the moment, in the order in which they got it."""

    def put(self, claim: Claim, node: str) -> None:
        self._cluster.put(claim, node)
        self.given.append(claim.key)

    def mark(self) -> int:
        """How far it has come, for `undo`."""
        return len(self.given)

    def undo(self, to: int = 0) -> None:
        """Take back what was given since a mark."""
        while len(self.given) > to:
            self._cluster.remove(self.given.pop())


def resolved(
    selector: LabelSelector, labels: Mapping[str, str], *, same: Iterable[str] = (), other: Iterable[str] = ()
) -> LabelSelector:
    """A selector with what ``matchLabelKeys`` and ``mismatchLabelKeys`` add, for a pod with these labels."""
    added = [Requirement(key, Operator.IN, frozenset({labels[key]})) for key in same if key in labels]
    added += [Requirement(key, Operator.NOT_IN, frozenset({labels[key]})) for key in other if key in labels]
    return selector & LabelSelector(frozenset(added)) if added else selector


def _adjust(counts: Counter[str], node: str, sign: int) -> None:
    counts[node] += sign
    if not counts[node]:
        del counts[node]
