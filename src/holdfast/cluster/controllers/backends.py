"""Services and the pods behind them: which ones are selected, their addresses and ports, and whether they serve.

What Endpoints and EndpointSlices have in common.  This module must not know what either looks like.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from holdfast.client.objects import Meta, Object
from holdfast.client.pods import Pod, PodSpec, PodStatus
from holdfast.client.resources import PODS, SERVICES
from holdfast.meta.objects import Key
from holdfast.meta.selectors import LabelSelector
from holdfast.runtime.controllers import Index, View, Watch

HEADLESS: Final = "service.kubernetes.io/headless"
TRIGGERED: Final = "endpoints.kubernetes.io/last-change-trigger-time"


# --- services


class ServicePort(msgspec.Struct, frozen=True, rename="camel", gc=False):
    name: str = ""
    port: int = 0
    target_port: int | str = 0
    protocol: str = "TCP"
    app_protocol: str | None = None


class ServiceSpec(msgspec.Struct, frozen=True, rename="camel"):
    selector: dict[str, str] | None = None
    ports: tuple[ServicePort, ...] = ()
    type: str = "ClusterIP"
    cluster_ip: str = msgspec.field(default="", name="clusterIP")
    ip_families: tuple[str, ...] = ()
    publish_not_ready_addresses: bool = False


class Service(msgspec.Struct, frozen=True, rename="camel"):
    metadata: Meta = Meta()
    spec: ServiceSpec = ServiceSpec()

    @classmethod
    def of(cls, obj: Object) -> Service:
        return obj.decode(cls)

    @property
    def selects(self) -> bool:
        """Whether its addresses are found by a selector; otherwise another client writes them."""
        return self.spec.selector is not None and self.spec.type != "ExternalName"

    @property
    def headless(self) -> bool:
        return self.spec.cluster_ip in ("", "None")

    @property
    def families(self) -> tuple[str, ...]:
        return self.spec.ip_families or ("IPv4",)


# --- pods


class ContainerPort(msgspec.Struct, frozen=True, rename="camel", gc=False):
    name: str = ""
    container_port: int = 0
    protocol: str = "TCP"


class Container(msgspec.Struct, frozen=True, rename="camel", gc=False):
    ports: tuple[ContainerPort, ...] = ()
    restart_policy: str = ""


class BackendSpec(PodSpec, frozen=True, rename="camel", gc=False):
    containers: tuple[Container, ...] = ()
    init_containers: tuple[Container, ...] = ()

    def named_port(self, name: str, protocol: str) -> int | None:
        """The port that a container calls so; init containers that keep running count too."""
        sidecars = (each for each in self.init_containers if each.restart_policy == "Always")
        for container in (*self.containers, *sidecars):
            for port in container.ports:
                if (port.name, port.protocol) == (name, protocol):
                    return port.container_port
        return None


class Address(msgspec.Struct, frozen=True, gc=False):
    ip: str = ""


class BackendStatus(PodStatus, frozen=True, rename="camel", gc=False):
    pod_ips: tuple[Address, ...] = msgspec.field(default=(), name="podIPs")


class Backend(Pod, frozen=True, rename="camel"):
    """A pod with what is needed to reach it."""

    spec: BackendSpec = BackendSpec()
    status: BackendStatus = BackendStatus()

    def addresses(self, family: str) -> tuple[str, ...]:
        given = [each.ip for each in self.status.pod_ips] or [self.status.pod_ip]
        return tuple(ip for ip in given if ip and (":" in ip) == (family == "IPv6"))

    def hostname_for(self, service: Service) -> str:
        """The name under which the service's domain knows it, if it asks for one."""
        return self.spec.hostname if self.spec.subdomain == service.metadata.name else ""

    @property
    def reference(self) -> dict[str, Any]:
        meta = self.metadata
        return {"kind": PODS.kind, "namespace": meta.namespace, "name": meta.name, "uid": meta.uid}


@dataclass(frozen=True, slots=True, order=True)
class Port:
    """A port of a service, as one pod has it."""

    name: str
    port: int
    protocol: str
    app_protocol: str = ""

    def wire(self) -> dict[str, Any]:
        wired: dict[str, Any] = {"name": self.name, "port": self.port, "protocol": self.protocol}
        return wired | ({"appProtocol": self.app_protocol} if self.app_protocol else {})


def ports_of(service: Service, backend: Backend) -> tuple[Port, ...]:
    """The ports that the pod has for the service, in order; a port by a name that it lacks is left out."""
    found = []
    for port in service.spec.ports:
        target: int | str | None = port.target_port or port.port
        if isinstance(target, str):
            target = backend.spec.named_port(target, port.protocol)
        if target is not None:
            found.append(Port(port.name, target, port.protocol, port.app_protocol or ""))
    return tuple(sorted(found))


def reachable(service: Service, backend: Backend) -> bool:
    """Whether any port leads there; a service without a cluster address needs none."""
    return bool(ports_of(service, backend)) or (service.headless and not service.spec.ports)


def triggered(service: Service, backends: Iterable[Backend]) -> str:
    """The last change that the addresses follow: that the service came, or that a pod became ready or ceased to be."""
    stamps = [service.metadata.creation_timestamp or ""]
    for backend in backends:
        ready = backend.condition("Ready")
        if ready is not None:
            stamps.append(ready.last_transition_time or "")
    return max(stamps)


def relabelled(had: Mapping[str, str], wanted: Mapping[str, str]) -> dict[str, str | None]:
    """The merge patch from labels to labels."""
    changed: dict[str, str | None] = {name: text for name, text in wanted.items() if had.get(name) != text}
    return changed | {name: None for name in had if name not in wanted}


# --- what is seen


def backends_of(view: View, service: Service) -> tuple[Backend, ...]:
    labels = LabelSelector.from_object({"matchLabels": service.spec.selector or {}}, "spec.selector")
    found = view.list(PODS, namespace=service.metadata.namespace, labels=labels)
    return tuple(obj.decode(Backend) for obj in found)


def _first_label(obj: Object) -> Iterator[str]:
    """One pair of the selector, by which a pod's labels find the service; an empty selector has a place of its own."""
    selector = Service.of(obj).spec.selector
    if selector is not None:
        yield _pair(*min(selector.items(), default=("", "")))


def _pair(name: str, value: str) -> str:
    return f"{name}={value}"


BY_SELECTOR: Final = Index(resource=SERVICES, name="selector", values=_first_label)


def services_of(pod: Object, view: View) -> Iterator[Key]:
    """The services that select a pod."""
    labels = pod.meta.labels
    for name, value in (("", ""), *labels.items()):
        for found in view.indexed(SERVICES, BY_SELECTOR.name, _pair(name, value)):
            selector = Service.of(found).spec.selector or {}
            if found.meta.namespace == pod.meta.namespace and selector.items() <= labels.items():
                yield found.key


POD_CHANGES: Final = Watch(resource=PODS, keys=services_of)
