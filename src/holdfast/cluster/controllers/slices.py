"""EndpointSlices: the addresses behind a service, at most a hundred in an object.

An address stays in the slice where it is; new ones fill what is being changed anyway, then a slice
that has room for all of them, then new slices; and a slice that would go is used again instead of
making one.  So a change of one pod is a change of one slice.  A service without any pod has one
empty slice for each family of addresses.  The garbage collector removes them with their service.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import count
from typing import Any, Final

import msgspec

from holdfast.client.objects import Meta
from holdfast.client.resources import NODES, SERVICES, SLICES
from holdfast.cluster.controllers.backends import (
    BY_SELECTOR,
    HEADLESS,
    POD_CHANGES,
    TRIGGERED,
    Backend,
    Port,
    Service,
    backends_of,
    ports_of,
    reachable,
    relabelled,
    triggered,
)
from holdfast.cluster.controllers.replica_types import identity
from holdfast.meta import names
from holdfast.meta.objects import Key, owner_reference
from holdfast.runtime.controllers import Controller, View
from holdfast.runtime.decisions import Create, Decision, Delete, Patch, Write

SERVICE: Final = "kubernetes.io/service-name"
MANAGED_BY: Final = "endpointslice.kubernetes.io/managed-by"
MANAGER: Final = "endpointslice-controller.k8s.io"
ZONE: Final = "topology.kubernetes.io/zone"

_CAPACITY: Final = 100

Wire = dict[str, Any]


class Slice(msgspec.Struct, frozen=True, rename="camel"):
    metadata: Meta = Meta()
    address_type: str = ""
    endpoints: list[Wire] | None = None
    ports: list[Wire] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """`zones` has the zone of each node that says one."""

    service: Service
    backends: tuple[Backend, ...] = ()
    slices: tuple[Slice, ...] = ()
    zones: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """A slice as it should be, in place of one that is there (`of`), or a new one."""

    family: str
    ports: tuple[Port, ...] = ()
    endpoints: tuple[Wire, ...] = ()
    of: Slice | None = None

    @property
    def room(self) -> int:
        return _CAPACITY - len(self.endpoints)

    @property
    def is_changed(self) -> bool:
        held = self.of
        return held is None or held.ports != self.wire_ports or held.endpoints != list(self.endpoints)

    @property
    def wire_ports(self) -> list[Wire]:
        return [port.wire() for port in self.ports]

    def filled(self, endpoints: Iterable[Wire]) -> Wanted:
        return replace(self, endpoints=tuple(_in_order([*self.endpoints, *endpoints])))


def observe(view: View, key: Key) -> World | None:
    found = view.get(SERVICES, key)
    if found is None:
        return None
    service = Service.of(found)
    if not service.selects:
        return None
    backends = backends_of(view, service)
    slices = tuple(
        _held(obj.decode(Slice))
        for obj in view.owned(SLICES, found.uid)
        if obj.meta.labels.get(MANAGED_BY) == MANAGER and not obj.deleting
    )
    names_of_nodes = {each.spec.node_name for each in backends if each.spec.node_name}
    nodes = (view.get(NODES, Key("", name)) for name in names_of_nodes)
    zones = {node.meta.name: node.meta.labels[ZONE] for node in nodes if node is not None and ZONE in node.meta.labels}
    return World(service=service, backends=backends, slices=slices, zones=zones)


def decide(world: World, now: datetime) -> Decision:
    service = world.service
    marks = {TRIGGERED: triggered(service, world.backends)}
    labels = _labels(service)
    writes: list[Write] = []
    fresh = _free_names(world)
    spare = [each for each in world.slices if each.address_type not in service.families]
    for family in service.families:
        held = [each for each in world.slices if each.address_type == family]
        wanted, unused = planned(_endpoints(world, family), held, family=family)
        spare += unused
        for each in wanted:
            if each.of is None:
                writes.append(_created(service, each, name=next(fresh), labels=labels, annotations=marks))
            elif each.is_changed or each.of.metadata.labels != labels:
                writes.append(_patched(each, each.of, labels=labels, annotations=marks))
    writes += [_deleted(each) for each in spare]
    return Decision(writes=tuple(writes))


# --- what is to be in them


def _endpoints(world: World, family: str) -> dict[tuple[Port, ...], list[Wire]]:
    """The endpoints of one family, by the ports that they share."""
    service = world.service
    groups: dict[tuple[Port, ...], list[Wire]] = {}
    for backend in world.backends:
        addresses = backend.addresses(family)
        if addresses and not backend.finished and reachable(service, backend):
            made = _endpoint(world, backend, addresses)
            groups.setdefault(ports_of(service, backend), []).append(made)
    return groups


def _endpoint(world: World, backend: Backend, addresses: tuple[str, ...]) -> Wire:
    service, serving, terminating = world.service, backend.ready, backend.deleting
    endpoint: Wire = {
        "addresses": list(addresses),
        "conditions": {
            # A service that publishes pods that are not ready publishes them also while they are deleted.
            "ready": service.spec.publish_not_ready_addresses or (serving and not terminating),
            "serving": serving,
            "terminating": terminating,
        },
        "targetRef": backend.reference,
    }
    if backend.hostname_for(service):
        endpoint["hostname"] = backend.hostname_for(service)
    if backend.spec.node_name:
        endpoint["nodeName"] = backend.spec.node_name
        if backend.spec.node_name in world.zones:
            endpoint["zone"] = world.zones[backend.spec.node_name]
    return endpoint


def planned(
    groups: Mapping[tuple[Port, ...], list[Wire]], held: Iterable[Slice], *, family: str
) -> tuple[list[Wanted], list[Slice]]:
    """The slices that there should be, and those that are left over."""
    wanted: list[Wanted] = []
    unused = list(held)
    for ports in sorted(groups):
        matching = [each for each in unused if each.ports == [port.wire() for port in ports]]
        placed = _placed(groups[ports], matching, family=family, ports=ports)
        kept = [each.of for each in placed if each.of is not None]
        unused = [each for each in unused if each not in kept]
        wanted += placed
    if not wanted:
        wanted.append(Wanted(family=family))
    for place, each in enumerate(wanted):
        if each.of is None and unused:
            wanted[place] = replace(each, of=unused.pop(0))
    return wanted, unused


def _placed(endpoints: Iterable[Wire], held: Iterable[Slice], *, family: str, ports: tuple[Port, ...]) -> list[Wanted]:
    """The endpoints of one set of ports, in the slices where they are, where there is room, and in new ones."""
    waiting = {_identity(each): each for each in endpoints}
    placed: list[Wanted] = []
    for each in held:
        stays = [waiting.pop(_identity(one)) for one in each.endpoints or () if _identity(one) in waiting]
        if stays:
            placed.append(Wanted(family=family, ports=ports, of=each).filled(stays))
    left = _in_order(waiting.values())
    for place, some in enumerate(placed):
        if left and some.is_changed:
            placed[place], left = some.filled(left[: some.room]), left[some.room :]
    while left:
        fits = [place for place, some in enumerate(placed) if some.room >= len(left)]
        if fits:
            best = min(fits, key=lambda place: placed[place].room)
            placed[best], left = placed[best].filled(left), []
        else:
            made, left = left[:_CAPACITY], left[_CAPACITY:]
            placed.append(Wanted(family=family, ports=ports, endpoints=tuple(made)))
    return placed


def _identity(endpoint: Wire) -> str:
    return str((endpoint.get("targetRef") or {}).get("uid", ""))


def _in_order(endpoints: Iterable[Wire]) -> list[Wire]:
    return sorted(endpoints, key=lambda each: (each["targetRef"]["name"], each["targetRef"]["uid"]))


def _held(each: Slice) -> Slice:
    """A slice with its empty lists as lists, whichever way a server leaves them out."""
    return msgspec.structs.replace(each, endpoints=each.endpoints or [], ports=each.ports or [])


# --- writes


def _labels(service: Service) -> dict[str, str]:
    own = {SERVICE: service.metadata.name, MANAGED_BY: MANAGER}
    given = {name: text for name, text in service.metadata.labels.items() if name not in (*own, HEADLESS)}
    return {**given, **own} | ({HEADLESS: ""} if service.headless else {})


def _free_names(world: World) -> Iterator[str]:
    """Names for new slices: the same ones for the same view."""
    meta = world.service.metadata
    taken = {each.metadata.name for each in world.slices}
    versions = ",".join(sorted(each.metadata.resource_version for each in world.slices))
    for number in count():
        name = names.generate_name(f"{meta.name}-", f"{meta.uid}/{versions}/{number}")
        if name not in taken:
            yield name


def _created(
    service: Service, wanted: Wanted, *, name: str, labels: Mapping[str, str], annotations: Mapping[str, str]
) -> Create:
    metadata: Wire = {
        "name": name,
        "generateName": f"{service.metadata.name}-",
        "namespace": service.metadata.namespace,
        "labels": dict(labels),
        "annotations": dict(annotations),
        "ownerReferences": [owner_reference(identity(SERVICES, service.metadata))],
    }
    manifest: Wire = {
        "apiVersion": SLICES.api_version,
        "kind": SLICES.kind,
        "metadata": metadata,
        "addressType": wanted.family,
        "endpoints": list(wanted.endpoints),
        "ports": wanted.wire_ports,
    }
    return Create(because="the addresses of the service need a slice", resource=SLICES, manifest=manifest)


def _patched(wanted: Wanted, held: Slice, *, labels: Mapping[str, str], annotations: Mapping[str, str]) -> Patch:
    meta = held.metadata
    patch: Wire = {"metadata": {"annotations": dict(annotations)}, "endpoints": list(wanted.endpoints)}
    if held.ports != wanted.wire_ports:
        patch["ports"] = wanted.wire_ports
    if meta.labels != labels:
        patch["metadata"]["labels"] = relabelled(meta.labels, labels)
    return Patch(
        because="the pods behind the service have changed",
        resource=SLICES,
        key=Key(meta.namespace, meta.name),
        patch=patch,
        uid=meta.uid,
        version=meta.resource_version,
    )


def _deleted(held: Slice) -> Delete:
    meta = held.metadata
    key = Key(meta.namespace, meta.name)
    return Delete(because="no address of the service is in it", resource=SLICES, key=key, uid=meta.uid, wave=1)


CONTROLLER: Final = Controller(
    name="endpointslice",
    resource=SERVICES,
    owns=(SLICES,),
    watches=(POD_CHANGES,),
    reads=(NODES,),
    indexes=(BY_SELECTOR,),
    observe=observe,
    decide=decide,
)
