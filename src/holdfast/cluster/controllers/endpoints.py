"""Endpoints: the addresses behind a service, in the old form, which keeps them all in one object.

There is one for each service with a selector, by its name; it is deleted with the service, unless
another client wrote it.  Addresses with the same ports share a subset, sorted, so that the same pods
always read the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

import msgspec

from holdfast.client.objects import Meta, Object
from holdfast.client.resources import ENDPOINTS, SERVICES
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
from holdfast.meta.objects import Key
from holdfast.runtime.controllers import Controller, View, Watch
from holdfast.runtime.decisions import NOTHING, Create, Decision, Delete, Patch

MANAGED_BY: Final = "endpoints.kubernetes.io/managed-by"
MANAGER: Final = "endpoint-controller"
OVER_CAPACITY: Final = "endpoints.kubernetes.io/over-capacity"

_CAPACITY: Final = 1000
"""Addresses that one object may have; more are left out, and it says so."""


class Endpoints(msgspec.Struct, frozen=True):
    metadata: Meta = Meta()
    subsets: list[dict[str, Any]] = []


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    key: Key
    service: Service | None = None
    backends: tuple[Backend, ...] = ()
    endpoints: Endpoints | None = None


def observe(view: View, key: Key) -> World | None:
    found, held = view.get(SERVICES, key), view.get(ENDPOINTS, key)
    endpoints = None if held is None else held.decode(Endpoints)
    if found is None:
        return World(key=key, endpoints=endpoints)
    service = Service.of(found)
    if not service.selects:
        return None
    return World(key=key, service=service, backends=backends_of(view, service), endpoints=endpoints)


def decide(world: World, now: datetime) -> Decision:
    held, service = world.endpoints, world.service
    if service is None:
        return NOTHING if held is None else _without_service(held)
    listed = [each for each in world.backends if _counts(service, each)]
    subsets, over = _within(_CAPACITY, _subsets(service, listed))
    labels = {**service.metadata.labels, MANAGED_BY: MANAGER} | ({HEADLESS: ""} if service.headless else {})
    marks: dict[str, str | None] = {TRIGGERED: triggered(service, listed)}
    if over:
        marks[OVER_CAPACITY] = "truncated"
    if held is None:
        return Decision(writes=(_created(service, subsets, labels=labels, annotations=marks),))
    had = held.metadata
    if held.subsets == subsets and had.labels == labels and (OVER_CAPACITY in had.annotations) == over:
        return NOTHING
    if not over and OVER_CAPACITY in had.annotations:
        marks[OVER_CAPACITY] = None
    patch: dict[str, Any] = {"metadata": {"annotations": marks}, "subsets": subsets}
    if had.labels != labels:
        patch["metadata"]["labels"] = relabelled(had.labels, labels)
    return Decision(
        writes=(
            Patch(
                because="the pods behind the service have changed",
                resource=ENDPOINTS,
                key=world.key,
                patch=patch,
                uid=had.uid,
                version=had.resource_version,
            ),
        )
    )


def _without_service(held: Endpoints) -> Decision:
    meta = held.metadata
    if meta.labels.get(MANAGED_BY) != MANAGER:
        return NOTHING
    key = Key(meta.namespace, meta.name)
    return Decision(writes=(Delete(because="its service is gone", resource=ENDPOINTS, key=key, uid=meta.uid),))


def _created(
    service: Service, subsets: list[dict[str, Any]], *, labels: Mapping[str, str], annotations: Mapping[str, Any]
) -> Create:
    meta = service.metadata
    manifest: dict[str, Any] = {
        "apiVersion": ENDPOINTS.api_version,
        "kind": ENDPOINTS.kind,
        "metadata": {
            "name": meta.name,
            "namespace": meta.namespace,
            "labels": dict(labels),
            "annotations": dict(annotations),
        },
    }
    if subsets:
        manifest["subsets"] = subsets
    return Create(because="the service has none yet", resource=ENDPOINTS, manifest=manifest)


# --- subsets


def _counts(service: Service, backend: Backend) -> bool:
    leaving = backend.deleting and not service.spec.publish_not_ready_addresses
    listed = not backend.finished and not leaving and reachable(service, backend)
    return listed and bool(backend.addresses(service.families[0]))


def _subsets(service: Service, backends: Iterable[Backend]) -> list[dict[str, Any]]:
    groups: dict[tuple[Port, ...], list[Backend]] = {}
    for backend in backends:
        groups.setdefault(ports_of(service, backend), []).append(backend)
    return [_subset(service, groups[ports], ports) for ports in sorted(groups)]


def _subset(service: Service, backends: Iterable[Backend], ports: tuple[Port, ...]) -> dict[str, Any]:
    sides: dict[str, list[dict[str, Any]]] = {"addresses": [], "notReadyAddresses": []}
    for backend in backends:
        ready = backend.ready or service.spec.publish_not_ready_addresses
        sides["addresses" if ready else "notReadyAddresses"].append(_address(service, backend))
    subset: dict[str, Any] = {
        side: sorted(addresses, key=lambda each: (each["ip"], each["targetRef"]["uid"]))
        for side, addresses in sides.items()
        if addresses
    }
    if ports:
        subset["ports"] = [{key: value for key, value in port.wire().items() if value != ""} for port in ports]
    return subset


def _address(service: Service, backend: Backend) -> dict[str, Any]:
    address: dict[str, Any] = {"ip": backend.addresses(service.families[0])[0]}
    if backend.hostname_for(service):
        address["hostname"] = backend.hostname_for(service)
    if backend.spec.node_name:
        address["nodeName"] = backend.spec.node_name
    return {**address, "targetRef": backend.reference}


def _within(capacity: int, subsets: list[dict[str, Any]]) -> tuple[list[dict[str, Any]], bool]:
    """The subsets with no more addresses than there may be, those that serve before those that do not."""
    sides = ("addresses", "notReadyAddresses")
    if sum(len(subset.get(side, ())) for subset in subsets for side in sides) <= capacity:
        return subsets, False
    cut = [dict(subset) for subset in subsets]
    for side in sides:
        for subset in cut:
            kept = subset.pop(side, [])[:capacity]
            capacity -= len(kept)
            if kept:
                subset[side] = kept
    return [subset for subset in cut if any(side in subset for side in sides)], True


def _same_key(obj: Object, view: View) -> Iterator[Key]:
    yield obj.key


CONTROLLER: Final = Controller(
    name="endpoints",
    resource=SERVICES,
    watches=(POD_CHANGES, Watch(resource=ENDPOINTS, keys=_same_key)),
    indexes=(BY_SELECTOR,),
    observe=observe,
    decide=decide,
)
