"""The address of a webhook's Service: a ready endpoint behind it.

The network of a cluster does this for a real API server; this one reads EndpointSlices and Endpoints itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

from holdfast.apiserver.http import bodies
from holdfast.apiserver.resources import Object
from holdfast.apiserver.storage.store import Store

Resolve = Callable[[str, str, int, str], str]
"""Namespace, name, port and path of a service, to a URL; raises `Unresolved`."""

SERVICES: Final = "/services"
ENDPOINTS: Final = "/endpoints"
SLICES: Final = "discovery.k8s.io/endpointslices"
SERVICE_NAME: Final = "kubernetes.io/service-name"


class Unresolved(Exception):
    """A Service that does not exist, or has no ready endpoint."""


def resolver(store: Store) -> Resolve:
    """Resolve services from the objects in a store."""

    def resolve(namespace: str, name: str, port: int, path: str) -> str:
        entry = store.get(SERVICES, namespace, name)
        if entry is None:
            raise Unresolved(f'service "{name}" not found')
        spec = bodies.read_json(entry.value).get("spec") or {}
        if spec.get("type") == "ExternalName":
            return _url(spec["externalName"], port, path)
        wanted = next((each for each in spec.get("ports") or () if each["port"] == port), None)
        if wanted is None:
            raise Unresolved(f'no service port {port} found for service "{name}"')
        for host, number in _addresses(store, namespace, name, wanted.get("name") or ""):
            return _url(host, number, path)
        raise Unresolved(f'no endpoints available for service "{name}"')

    return resolve


def _url(host: str, port: int, path: str) -> str:
    shown = f"[{host}]" if ":" in host else host
    return f"https://{shown}:{port}/{path.lstrip('/')}"


def _addresses(store: Store, namespace: str, name: str, port: str) -> Iterator[tuple[str, int]]:
    for entry in store.list(SLICES, namespace):
        if entry.labels.get(SERVICE_NAME) == name:
            yield from _of_slice(bodies.read_json(entry.value), port)
    found = store.get(ENDPOINTS, namespace, name)
    for subset in (bodies.read_json(found.value).get("subsets") or ()) if found is not None else ():
        for number in _numbers(subset, port):
            for address in subset.get("addresses") or ():
                yield address["ip"], number


def _of_slice(part: Object, port: str) -> Iterator[tuple[str, int]]:
    for number in _numbers(part, port):
        for endpoint in part.get("endpoints") or ():
            # Absent means unknown, which counts as ready.
            if (endpoint.get("conditions") or {}).get("ready") is not False and endpoint.get("addresses"):
                yield endpoint["addresses"][0], number


def _numbers(part: dict[str, Any], port: str) -> Iterator[int]:
    """The numbers that a port of the service has there, by its name."""
    for each in part.get("ports") or ():
        if (each.get("name") or "") == port and each.get("port"):
            yield each["port"]
