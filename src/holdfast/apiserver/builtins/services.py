"""Service, Endpoints, EndpointSlice, Ingress, IngressClass and NetworkPolicy."""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from typing import Final

from holdfast.apiserver.builtins.common import checks
from holdfast.apiserver.builtins.common.checks import Problems, each
from holdfast.apiserver.builtins.common.columns import AGE, NAME, NONE, UNSET, column, field, get, joined, selector_text
from holdfast.apiserver.builtins.common.kinds import builtin
from holdfast.apiserver.builtins.pods.checks import PROTOCOLS
from holdfast.apiserver.resources import Object, ResourceType
from holdfast.meta import names
from holdfast.meta.errors import FieldError

TYPES: Final = ("ClusterIP", "ExternalName", "LoadBalancer", "NodePort")
HEADLESS: Final = "None"
ADDRESS_RULE: Final = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"
SHOWN_ENDPOINTS: Final = 3


# Services.


def _default_service(obj: Object) -> None:
    spec = obj["spec"]
    kind, external = spec.get("type"), spec.get("type") == "ExternalName"
    for port in spec.get("ports") or ():
        if port.get("targetPort") in (None, 0, ""):
            port["targetPort"] = port.get("port", 0)
    if spec.get("sessionAffinity") == "ClientIP":
        spec.setdefault("sessionAffinityConfig", {"clientIP": {"timeoutSeconds": 10800}})
    if not external:
        spec.setdefault("internalTrafficPolicy", "Cluster")
    if kind in ("NodePort", "LoadBalancer") or (kind == "ClusterIP" and spec.get("externalIPs")):
        spec.setdefault("externalTrafficPolicy", "Cluster")
    if kind == "LoadBalancer":
        spec.setdefault("allocateLoadBalancerNodePorts", True)


def settle_address(obj: Object) -> None:
    """Set the fields that follow from the cluster IP of a Service."""
    spec = obj["spec"]
    if spec.get("type") == "ExternalName":
        return
    if spec.get("clusterIP"):
        spec.setdefault("clusterIPs", [spec["clusterIP"]])
    spec.setdefault("ipFamilyPolicy", "SingleStack")
    spec.setdefault("ipFamilies", [_family(spec.get("clusterIP", ""))])


def _family(address: str) -> str:
    return "IPv6" if ":" in address else "IPv4"


def _keep_address(obj: Object, old: Object) -> None:
    """An update without a cluster IP keeps the current one."""
    spec, before = obj["spec"], old["spec"]
    if "ExternalName" not in (spec.get("type"), before.get("type")):
        kept = () if _moved(spec, before) else ("clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy")
        for name in kept:
            if not spec.get(name) and name in before:
                spec[name] = before[name]
        if spec.get("type") == before.get("type") != "ClusterIP":
            _keep_node_ports(spec, before)
    settle_address(obj)


def _moved(spec: Object, before: Object) -> bool:
    return bool(spec.get("clusterIP")) and spec.get("clusterIP") != before.get("clusterIP")


def _keep_node_ports(spec: Object, before: Object) -> None:
    had = {(port.get("protocol"), port.get("port")): port.get("nodePort") for port in before.get("ports") or ()}
    for port in spec.get("ports") or ():
        taken = had.get((port.get("protocol"), port.get("port")))
        if taken and not port.get("nodePort"):
            port["nodePort"] = taken


def _validate_service(obj: Object, old: Object | None) -> list[FieldError]:
    problems = list(_service_problems(obj["spec"]))
    return problems if old is None else [*problems, *_address_changes(obj["spec"], old["spec"])]


def _service_problems(spec: Object) -> Problems:
    kind, address = spec.get("type"), spec.get("clusterIP", "")
    yield from checks.chosen(kind, "spec.type", among=TYPES)
    if kind == "ExternalName":
        yield from checks.named(spec.get("externalName", "").rstrip("."), "spec.externalName")
        if address and address != HEADLESS:
            yield FieldError.forbidden("spec.clusterIPs[0]", "may not be set when `type` is 'ExternalName'")
    elif not spec.get("ports") and address != HEADLESS:
        yield FieldError.required("spec.ports")
    if kind in ("NodePort", "LoadBalancer") and address == HEADLESS:
        detail = f"may not be set to 'None' for {kind} services"
        yield FieldError.invalid("spec.clusterIPs[0]", address, detail=detail)
    if address and address != HEADLESS and not _is_address(address):
        yield FieldError.invalid("spec.clusterIPs[0]", address, detail=ADDRESS_RULE)
    yield from checks.labels(spec.get("selector"), "spec.selector")
    yield from checks.chosen(spec.get("sessionAffinity"), "spec.sessionAffinity", among=("ClientIP", "None"))
    for name in ("externalTrafficPolicy", "internalTrafficPolicy"):
        yield from checks.maybe_chosen(spec.get(name), f"spec.{name}", among=("Cluster", "Local"))
    yield from _service_ports(spec.get("ports") or (), with_node_ports=kind in ("NodePort", "LoadBalancer"))


def _service_ports(ports: Sequence[Object], *, with_node_ports: bool) -> Problems:
    taken = set()
    for place, port in each(ports, "spec.ports"):
        name = port.get("name", "")
        if name:
            yield from checks.named(name, f"{place}.name", rule=names.dns_label)
        elif len(ports) > 1:
            yield FieldError.required(f"{place}.name")
        yield from checks.port(port.get("port", 0), f"{place}.port")
        yield from checks.chosen(port.get("protocol"), f"{place}.protocol", among=PROTOCOLS)
        yield from checks.port(port.get("targetPort"), f"{place}.targetPort")
        if port.get("nodePort") and not with_node_ports:
            yield FieldError.forbidden(f"{place}.nodePort", "may not be used when `type` is 'ClusterIP'")
        key = (port.get("protocol"), port.get("port"))
        if key in taken:
            yield FieldError.duplicate(place, {"protocol": key[0], "port": key[1]})
        taken.add(key)
    yield from checks.unique(ports, "spec.ports", key="name")


def _address_changes(spec: Object, old: Object) -> Problems:
    had, has = old.get("clusterIP"), spec.get("clusterIP")
    if had and has != had and "ExternalName" not in (spec.get("type"), old.get("type")):
        shown = spec.get("clusterIPs") or [has]
        yield FieldError.invalid("spec.clusterIPs[0]", shown, detail="may not change once set")


def _is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True


def _external(obj: Object) -> str:
    """The external addresses of a Service."""
    spec, listed = obj.get("spec") or {}, get(obj, "spec", "externalIPs", default=[])
    match spec.get("type"):
        case "ExternalName":
            return spec.get("externalName") or NONE
        case "LoadBalancer":
            given = [
                e.get("ip") or e.get("hostname", "") for e in get(obj, "status", "loadBalancer", "ingress", default=())
            ]
            return joined([*given, *listed], otherwise="<pending>")
        case _:
            return joined(listed, otherwise=NONE)


def _ports(obj: Object) -> str:
    def shown(port: Object) -> str:
        node = f":{port['nodePort']}" if port.get("nodePort") else ""
        return f"{port.get('port')}{node}/{port.get('protocol')}"

    return joined(map(shown, get(obj, "spec", "ports", default=())), otherwise=NONE)


# Endpoints.


def _endpoints(obj: Object) -> str:
    shown: list[str] = []
    for subset in obj.get("subsets") or ():
        addresses = [address.get("ip", "") for address in subset.get("addresses") or ()]
        ports = [port.get("port") for port in subset.get("ports") or ()]
        shown += [_host_port(a, port) for port in ports for a in addresses] if ports else addresses
    return _first(shown)


def _host_port(address: str, port: int | None) -> str:
    return f"[{address}]:{port}" if ":" in address else f"{address}:{port}"


def _first(shown: list[str]) -> str:
    more = len(shown) - SHOWN_ENDPOINTS
    text = joined(shown[:SHOWN_ENDPOINTS], otherwise=NONE)
    return f"{text} + {more} more..." if more > 0 else text


def _slice_ports(obj: Object) -> str:
    ports = [str(port["port"]) if port.get("port") else "*" for port in obj.get("ports") or ()]
    return _first(ports) if ports else UNSET


def _slice_endpoints(obj: Object) -> str:
    return _first([a for endpoint in obj.get("endpoints") or () for a in endpoint.get("addresses") or ()])


def _validate_slice(obj: Object, old: Object | None) -> list[FieldError]:
    problems = list(checks.chosen(obj.get("addressType"), "addressType", among=("FQDN", "IPv4", "IPv6")))
    for place, endpoint in each(obj.get("endpoints"), "endpoints"):
        if not endpoint.get("addresses"):
            problems.append(FieldError.required(f"{place}.addresses", "must contain at least 1 address"))
    if old is not None:
        problems += checks.unchanged(obj.get("addressType"), old.get("addressType"), path="addressType")
    return problems


# Ingress and policies.


def _validate_ingress(obj: Object, old: Object | None) -> list[FieldError]:
    return list(_ingress_problems(obj["spec"]))


def _ingress_problems(spec: Object) -> Problems:
    if not spec.get("rules") and not spec.get("defaultBackend"):
        yield FieldError.invalid("spec", [], detail="either `defaultBackend` or `rules` must be specified")
    if spec.get("defaultBackend"):
        yield from _backend(spec["defaultBackend"], "spec.defaultBackend")
    for place, rule in each(spec.get("rules"), "spec.rules"):
        host = rule.get("host", "")
        if host:
            yield from checks.named(host.removeprefix("*."), f"{place}.host")
        http = rule.get("http")
        if http is None:
            continue
        if not http.get("paths"):
            yield FieldError.required(f"{place}.http.paths")
        for at, path in each(http.get("paths"), f"{place}.http.paths"):
            yield from _ingress_path(path, at)


def _ingress_path(path: Object, place: str) -> Problems:
    among = ("Exact", "ImplementationSpecific", "Prefix")
    kind, text = path.get("pathType"), path.get("path", "")
    if not kind:
        yield FieldError.required(f"{place}.pathType", "pathType must be specified")
    else:
        yield from checks.chosen(kind, f"{place}.pathType", among=among)
    if kind in ("Exact", "Prefix") and not text.startswith("/"):
        yield FieldError.invalid(f"{place}.path", text, detail="must be an absolute path")
    yield from _backend(path.get("backend") or {}, f"{place}.backend")


def _backend(backend: Object, path: str) -> Problems:
    service, resource = backend.get("service"), backend.get("resource")
    if service is not None and resource is not None:
        yield FieldError.invalid(path, "", detail="cannot set both resource and service backends")
    elif service is None and resource is None:
        yield FieldError.required(path, "resource or service backend is required")
    elif service is not None:
        yield from checks.named(service.get("name"), f"{path}.service.name", rule=names.dns_1035_label)
        port = service.get("port") or {}
        if not port.get("name") and not port.get("number"):
            yield FieldError.required(path, "port name or number is required")


def _hosts(obj: Object) -> str:
    hosts = [rule["host"] for rule in get(obj, "spec", "rules", default=()) if rule.get("host")]
    return joined(hosts, otherwise="*")


def _addresses(obj: Object) -> str:
    return joined(
        e.get("ip") or e.get("hostname", "") for e in get(obj, "status", "loadBalancer", "ingress", default=())
    )


def _parameters(obj: Object) -> str:
    reference = get(obj, "spec", "parameters")
    if not reference:
        return NONE
    group = f".{reference['apiGroup']}" if reference.get("apiGroup") else ""
    return f"{reference.get('kind')}{group}/{reference.get('name')}"


def _default_policy(obj: Object) -> None:
    """The default policy types: Ingress, and Egress if the policy has egress rules."""
    spec = obj["spec"]
    if not spec.get("policyTypes"):
        spec["policyTypes"] = ["Ingress", *(["Egress"] if spec.get("egress") else [])]


def _validate_policy(obj: Object, old: Object | None) -> list[FieldError]:
    problems = list(checks.label_selector(get(obj, "spec", "podSelector"), "spec.podSelector"))
    for place, kind in each(get(obj, "spec", "policyTypes"), "spec.policyTypes"):
        problems += checks.chosen(kind, place, among=("Egress", "Ingress"))
    return problems


SERVICE: Final = builtin(
    "Service",
    short_names=("svc",),
    categories=("all",),
    status=True,
    generation=False,
    columns=(
        NAME,
        field("Type", "spec", "type"),
        field("Cluster-IP", "spec", "clusterIP", default=NONE),
        column("External-IP", _external),
        column("Port(s)", _ports),
        AGE,
        column("Selector", lambda obj: selector_text(get(obj, "spec", "selector")), wide=True),
    ),
    fields=("spec.clusterIP", "spec.type"),
    default=_default_service,
    on_create=settle_address,
    on_update=_keep_address,
    validate=_validate_service,
    created_by_update=True,
)
ENDPOINTS: Final = builtin(
    "Endpoints",
    plural="endpoints",
    list_kind="EndpointsList",
    short_names=("ep",),
    generation=False,
    columns=(NAME, column("Endpoints", _endpoints), AGE),
    created_by_update=True,
)
ENDPOINT_SLICE: Final = builtin(
    "EndpointSlice",
    group="discovery.k8s.io",
    columns=(
        NAME,
        field("AddressType", "addressType"),
        column("Ports", _slice_ports),
        column("Endpoints", _slice_endpoints),
        AGE,
    ),
    validate=_validate_slice,
)
INGRESS: Final = builtin(
    "Ingress",
    group="networking.k8s.io",
    plural="ingresses",
    short_names=("ing",),
    status=True,
    columns=(
        NAME,
        field("Class", "spec", "ingressClassName", default=NONE),
        column("Hosts", _hosts),
        column("Address", _addresses),
        column("Ports", lambda obj: "80, 443" if get(obj, "spec", "tls") else "80"),
        AGE,
    ),
    validate=_validate_ingress,
)
INGRESS_CLASS: Final = builtin(
    "IngressClass",
    group="networking.k8s.io",
    plural="ingressclasses",
    namespaced=False,
    columns=(NAME, field("Controller", "spec", "controller"), column("Parameters", _parameters), AGE),
)
NETWORK_POLICY: Final = builtin(
    "NetworkPolicy",
    group="networking.k8s.io",
    plural="networkpolicies",
    short_names=("netpol",),
    columns=(NAME, column("Pod-Selector", lambda obj: selector_text(get(obj, "spec", "podSelector"))), AGE),
    default=_default_policy,
    validate=_validate_policy,
)
RESOURCES: Final[tuple[ResourceType, ...]] = (
    SERVICE,
    ENDPOINTS,
    ENDPOINT_SLICE,
    INGRESS,
    INGRESS_CLASS,
    NETWORK_POLICY,
)
