"""Addresses of Services: allocates a cluster IP for each, and node ports where its type has them.

An address is free if no stored Service has it and it was not just allocated: another request may come between the
allocation and the write.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from ipaddress import IPv4Network
from typing import Final, TypeVar

from holdfast.apiserver.builtins.services import settle_address
from holdfast.apiserver.http.bodies import read_json
from holdfast.apiserver.resources import Object
from holdfast.apiserver.storage.store import Store
from holdfast.apiserver.verbs.writes import Admit, Writing
from holdfast.meta.errors import InternalError

T = TypeVar("T", str, int)

SERVICES: Final = "/services"
NETWORK: Final = IPv4Network("10.96.0.0/16")
"""Where cluster IPs are from, unless the server is given another network."""
NODE_PORTS: Final = range(30000, 32768)
WITH_NODE_PORTS: Final = frozenset({"NodePort", "LoadBalancer"})


def services(store: Store, network: IPv4Network = NETWORK) -> Admit:
    """Allocate the address and the ports that a Service leaves out."""
    given: deque[str | int] = deque(maxlen=256)

    async def admit(
        writing: Writing, obj: Object, old: Object | None, operation: str
    ) -> tuple[Object, tuple[str, ...]]:
        spec = obj.get("spec") or {}
        if writing.kind.key != SERVICES or spec.get("type") == "ExternalName":
            return obj, ()
        wants_ports = [
            port for port in spec.get("ports") or () if spec.get("type") in WITH_NODE_PORTS and not port.get("nodePort")
        ]
        if spec.get("clusterIP") and not wants_ports:
            return obj, ()
        taken = {*given, *_taken(store)}
        if not spec.get("clusterIP"):
            spec["clusterIP"] = _first_free(map(str, network.hosts()), taken)
            spec["clusterIPs"] = [spec["clusterIP"]]
            given.append(spec["clusterIP"])
            settle_address(obj)
        for port in wants_ports:
            port["nodePort"] = _first_free(iter(NODE_PORTS), taken)
            taken.add(port["nodePort"])
            given.append(port["nodePort"])
        return obj, ()

    return admit


def _taken(store: Store) -> Iterator[str | int]:
    for entry in store.list(SERVICES):
        spec = read_json(entry.value).get("spec") or {}
        yield from spec.get("clusterIPs") or ()
        yield from (port["nodePort"] for port in spec.get("ports") or () if port.get("nodePort"))


def _first_free(candidates: Iterator[T], taken: set[str | int]) -> T:
    for candidate in candidates:
        if candidate not in taken:
            return candidate
    raise InternalError.of("no address or node port is left for this service")
