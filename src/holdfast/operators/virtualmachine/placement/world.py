"""What a machine is placed by: the request, the machines that are placed already, and the hosts.  Values only."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Final

import msgspec

from holdfast.kinds.virtrigaud.placement import VMAffinityTerm, VMPlacementPolicySpec, VMSelectorRequirement
from holdfast.kinds.virtrigaud.selectors import LabelSelectorRequirement
from holdfast.meta.objects import Key
from holdfast.meta.selectors import NOTHING, LabelSelector
from holdfast.providers.contract import Datastore, Host, Inventory, Placement

HOST_KEYS: Final = frozenset({"host", "hostname", "kubernetes.io/hostname", "virtrigaud.io/host"})
_CLUSTER: Final = frozenset({"cluster", "virtrigaud.io/cluster"})
_DATASTORE: Final = frozenset({"datastore", "virtrigaud.io/datastore"})
_ZONE: Final = frozenset({"zone", "topology.kubernetes.io/zone", "virtrigaud.io/zone"})
_REGION: Final = frozenset({"region", "topology.kubernetes.io/region", "virtrigaud.io/region"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """A VMPlacementPolicy: its key and its spec."""

    key: Key
    spec: VMPlacementPolicySpec

    @property
    def priority(self) -> int:
        return self.spec.priority or 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """A machine that needs a place.

    key         namespace and name of the machine
    labels      its labels, by which rules of other machines may select it
    gpus        how many graphics processors it needs, of which type, and with how much memory each
    disk_bytes  the size of its disks
    pinned      what its own spec.placement asks for
    avoided     hosts on which the provider could not create it
    """

    key: Key
    labels: Mapping[str, str] = field(default_factory=dict)
    cpus: int = 1
    memory_mib: int = 512
    disk_bytes: int = 0
    gpus: int = 0
    gpu_type: str = ""
    gpu_memory_mib: int = 0
    pinned: Placement = field(default_factory=Placement)
    avoided: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class Resident:
    """A machine that has a place, also while the provider still creates it.

    policy   the VMPlacementPolicy that it refers to
    counted  whether the numbers of the inventory include it
    """

    key: Key
    labels: Mapping[str, str] = field(default_factory=dict)
    policy: Key | None = None
    host: str = ""
    datastore: str = ""
    cpus: int = 0
    memory_mib: int = 0
    disk_bytes: int = 0
    gpus: int = 0
    gpu_type: str = ""
    counted: bool = True


@dataclass(frozen=True, slots=True)
class Place:
    """A host and a datastore that it reaches; the name of the datastore is empty where none is reported."""

    host: Host
    datastore: str = ""


@dataclass(frozen=True, kw_only=True)
class World:
    """
    inventory   the hosts and datastores of one provider
    residents   the machines on it
    policies    the policies of the residents
    namespaces  the labels of namespaces, for terms that select them
    """

    inventory: Inventory
    residents: tuple[Resident, ...] = ()
    policies: Mapping[Key, VMPlacementPolicySpec] = field(default_factory=dict)
    namespaces: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

    def with_resident(self, resident: Resident) -> World:
        """The world after one more machine got a place."""
        return replace(self, residents=(*self.residents, resident))

    @cached_property
    def hosts(self) -> Mapping[str, Host]:
        """The hosts by name, with what machines use that the inventory does not count yet."""
        cpus: Counter[str] = Counter()
        memory: Counter[str] = Counter()
        for each in self.residents:
            if not each.counted:
                cpus[each.host] += each.cpus
                memory[each.host] += each.memory_mib
        return {
            host.name: host
            if host.name not in cpus
            else msgspec.structs.replace(
                host,
                cpus_used=host.cpus_used + cpus[host.name],
                memory_mib_used=host.memory_mib_used + memory[host.name],
            )
            for host in self.inventory.hosts
            if host.name
        }

    @cached_property
    def datastores(self) -> Mapping[str, Datastore]:
        """The datastores by name, less what machines use that the inventory does not count yet."""
        used: Counter[str] = Counter()
        for each in self.residents:
            if not each.counted:
                used[each.datastore] += each.disk_bytes
        return {
            store.name: store
            if not used[store.name]
            else msgspec.structs.replace(store, free_bytes=max(store.free_bytes - used[store.name], 0))
            for store in self.inventory.datastores
        }

    @cached_property
    def on_host(self) -> Counter[str]:
        """How many machines each host has."""
        return Counter(each.host for each in self.residents)

    def places(self, host: Host) -> tuple[Place, ...]:
        """The host with each datastore that it reaches."""
        named = dict.fromkeys(
            (*host.datastores, *(each.name for each in self.inventory.datastores if host.name in each.hosts))
        )
        return tuple(Place(host, each) for each in named) or (Place(host),)

    def domain(self, key: str, host: str, datastore: str = "") -> str:
        """The part of the topology that a place is in, such as the zone of its host; empty where it is in none."""
        if key in _DATASTORE:
            return datastore
        found = self.hosts.get(host)
        return "" if found is None else domain(key, found)

    def count(self, key: str, counts: Callable[[Resident], bool]) -> Counter[str]:
        """How many of the machines that count there are in each part of a topology."""
        found = Counter(self.domain(key, each.host, each.datastore) for each in self.residents if counts(each))
        del found[""]
        return found

    def selecting(self, term: VMAffinityTerm, of: str) -> Callable[[Key, Mapping[str, str]], bool]:
        """Whether a term in a policy of the namespace `of` selects a machine, by its key and labels."""
        chosen, within = selected(term), term.namespace_selector
        spaces = None if within is None else selector(within.match_labels, within.match_expressions)

        def selects(key: Key, labels: Mapping[str, str]) -> bool:
            if spaces is None:
                reached = key.namespace in (term.namespaces or (of,))
            else:
                reached = key.namespace in term.namespaces or spaces.matches(self.namespaces.get(key.namespace))
            return reached and chosen.matches(labels)

        return selects


def domain(key: str, host: Host) -> str:
    """The part of a topology that a host is in: the value of a label of the host, or one of the known keys."""
    if key in host.labels:
        return host.labels[key]
    if key in HOST_KEYS:
        return host.name
    if key in _CLUSTER:
        return host.cluster
    if key in _ZONE:
        return host.zone
    return host.region if key in _REGION else ""


def selected(term: VMAffinityTerm) -> LabelSelector:
    """The labels of the machines that a term selects; a term without any selector selects none."""
    given = term.label_selector
    if given is None and not term.match_expressions:
        return NOTHING
    more = selector({}, term.match_expressions)
    return more if given is None else selector(given.match_labels, given.match_expressions) & more


def selector(
    labels: Mapping[str, str], expressions: Iterable[LabelSelectorRequirement | VMSelectorRequirement]
) -> LabelSelector:
    """A selector; raises `SelectorError`, which the review of a policy reports."""
    return LabelSelector.from_object(
        {
            "matchLabels": dict(labels),
            "matchExpressions": [
                {"key": each.key, "operator": each.operator, **({"values": list(each.values)} if each.values else {})}
                for each in expressions
            ],
        }
    )
