"""Discovery: which groups, versions and resources are served.

Two forms of the same facts: one document per group and version, and one aggregated document.  All of it comes from
the registry; this module knows no particular kind.
"""

from __future__ import annotations

import platform
import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from holdfast.apiserver.http.negotiation import form_of, respond
from holdfast.apiserver.openapi.documents import Document, accepted, must_read, page_not_found, per_revision
from holdfast.apiserver.resources import Registry, ResourceType
from holdfast.meta.errors import NotFound
from holdfast.meta.exchange import JSON, Request, Response, encode
from holdfast.meta.objects import GVK

GIT_VERSION: Final = "v1.36.0+holdfast"
"""The version of Kubernetes whose API this is; clients choose features by it."""

_PRIORITY: Final = (
    "",
    "apiregistration.k8s.io",
    "apps",
    "events.k8s.io",
    "authentication.k8s.io",
    "authorization.k8s.io",
    "autoscaling",
    "batch",
    "certificates.k8s.io",
    "networking.k8s.io",
    "policy",
    "rbac.authorization.k8s.io",
    "storage.k8s.io",
    "admissionregistration.k8s.io",
    "apiextensions.k8s.io",
    "scheduling.k8s.io",
    "coordination.k8s.io",
    "node.k8s.io",
    "discovery.k8s.io",
    "flowcontrol.apiserver.k8s.io",
)
"""Kubernetes' order of its groups.  Where two groups have a resource of one name, clients take the first."""

_CUSTOM_VERBS: Final = ("delete", "deletecollection", "get", "list", "patch", "create", "update", "watch")
"""The order in which Kubernetes lists the verbs of custom resources; those of others are in alphabetical order."""

_PART_VERBS: Final = ("get", "patch", "update")
_VERSION: Final = re.compile(r"v([0-9]+)(?:(alpha|beta)([0-9]+))?")
_STABILITY: Final = {None: 0, "beta": 1, "alpha": 2}


@dataclass(frozen=True, slots=True)
class Version:
    """One version of a group and its resources, by name."""

    group: str
    name: str
    types: tuple[ResourceType, ...]

    @property
    def path(self) -> str:
        """Where it is served, without the leading slash: ``api/v1``, ``apis/apps/v1``."""
        return f"apis/{self.group}/{self.name}" if self.group else f"api/{self.name}"

    @property
    def group_version(self) -> str:
        return f"{self.group}/{self.name}" if self.group else self.name


@dataclass(frozen=True, slots=True)
class Group:
    """A group and its versions, the preferred one first."""

    name: str
    versions: tuple[Version, ...]


@dataclass(frozen=True, slots=True)
class Subresource:
    """A subresource: its name, the kind of its bodies, and its verbs."""

    name: str
    kind: GVK
    verbs: tuple[str, ...]


ACTIONS: Final[Mapping[str, tuple[GVK | None, tuple[str, ...]]]] = {
    "scale": (GVK("autoscaling", "v1", "Scale"), _PART_VERBS),
    "eviction": (GVK("policy", "v1", "Eviction"), ("create",)),
    "binding": (GVK("", "v1", "Binding"), ("create",)),
    "token": (GVK("authentication.k8s.io", "v1", "TokenRequest"), ("create",)),
    "log": (None, ("get",)),
    "finalize": (None, ("update",)),
}
"""Subresources with behaviour of their own; without a kind, their bodies are of the kind of the resource."""

CONNECTIONS: Final[Mapping[str, tuple[str, tuple[str, ...]]]] = {
    "attach": ("AttachOptions", ("create", "get")),
    "exec": ("ExecOptions", ("create", "get")),
    "portforward": ("PortForwardOptions", ("create", "get")),
    "proxy": ("ProxyOptions", ("create", "delete", "get", "patch", "update")),
}
"""Subresources that connect to containers; their options are a core kind that is named for the resource's kind."""


def subresources(each: ResourceType) -> Iterator[Subresource]:
    """The subresources of a resource, in the order in which Kubernetes lists them."""
    for name in sorted(each.parts, reverse=each.custom):  # custom kinds: status, then scale
        if name in CONNECTIONS:
            options, verbs = CONNECTIONS[name]
            yield Subresource(name, GVK("", "v1", f"{each.kind}{options}"), verbs)
        else:
            kind, verbs = ACTIONS.get(name, (None, _PART_VERBS))
            yield Subresource(name, kind or each.gvk, verbs)


def verbs(each: ResourceType) -> list[str]:
    """The verbs of a resource, in the order in which Kubernetes lists them."""
    return [verb for verb in _CUSTOM_VERBS if verb in each.verbs] if each.custom else sorted(each.verbs)


def version_order(version: str) -> tuple[int, int, int, str]:
    """A key that puts the preferred version first: v2, v1, v1beta2, v1beta1, v1alpha1, then others by name."""
    match = _VERSION.fullmatch(version)
    if match is None:
        return len(_STABILITY), 0, 0, version
    return _STABILITY[match[2]], -int(match[1]), -int(match[3] or 0), ""


@per_revision
def groups(registry: Registry) -> tuple[Group, ...]:
    """Every group: the core first, then Kubernetes' own as Kubernetes orders them, then custom ones by name."""
    types: dict[str, dict[str, list[ResourceType]]] = {}
    for each in registry:
        types.setdefault(each.group, {}).setdefault(each.version, []).append(each)
    return tuple(
        Group(
            name,
            tuple(_version(name, version, types[name][version]) for version in sorted(types[name], key=version_order)),
        )
        for name in sorted(types, key=lambda name: (_rank(name), name))
    )


def _version(group: str, name: str, types: list[ResourceType]) -> Version:
    return Version(group, name, tuple(sorted(types, key=lambda each: each.plural)))


def _rank(group: str) -> int:
    return _PRIORITY.index(group) if group in _PRIORITY else len(_PRIORITY)


# Unaggregated discovery.


@per_revision
def _legacy(registry: Registry) -> dict[str, bytes]:
    """The unaggregated documents by path, without ``/api``, which depends on the address of the request."""
    known = [group for group in groups(registry) if group.name]
    listed = {"kind": "APIGroupList", "apiVersion": "v1", "groups": [_api_group(group) for group in known]}
    documents: dict[str, Any] = {"/apis": listed}
    for group in known:
        documents[f"/apis/{group.name}"] = {"kind": "APIGroup", "apiVersion": "v1", **_api_group(group)}
    for group in groups(registry):
        for version in group.versions:
            documents[f"/{version.path}"] = {
                "kind": "APIResourceList",
                "apiVersion": "v1",
                "groupVersion": version.group_version,
                "resources": [entry for each in version.types for entry in _api_resources(each)],
            }
    return {path: encode(document) for path, document in documents.items()}


def _api_group(group: Group) -> dict[str, Any]:
    versions = [{"groupVersion": each.group_version, "version": each.name} for each in group.versions]
    return {"name": group.name, "versions": versions, "preferredVersion": versions[0]}


def _api_resources(each: ResourceType) -> Iterator[dict[str, Any]]:
    """The entry of a resource, then those of its subresources."""
    yield {
        "name": each.plural,
        "singularName": each.singular,
        "namespaced": each.namespaced,
        "kind": each.kind,
        "verbs": verbs(each),
        **_names(each),
    }
    for sub in subresources(each):
        elsewhere = (sub.kind.group, sub.kind.version) != (each.group, each.version)
        yield {
            "name": f"{each.plural}/{sub.name}",
            "singularName": "",
            "namespaced": each.namespaced,
            **({"group": sub.kind.group, "version": sub.kind.version} if elsewhere else {}),
            "kind": sub.kind.kind,
            "verbs": list(sub.verbs),
        }


def _names(each: ResourceType) -> dict[str, list[str]]:
    names = {"shortNames": each.short_names, "categories": each.categories}
    return {field: list(values) for field, values in names.items() if values}


def _api_versions(request: Request, registry: Registry) -> Response:
    versions = [version.name for group in groups(registry) if not group.name for version in group.versions]
    address = {"clientCIDR": "0.0.0.0/0", "serverAddress": request.headers.get("host", "")}
    listed = {"kind": "APIVersions", "versions": versions, "serverAddressByClientCIDRs": [address]}
    return respond(form_of(request), encode(listed))


# Aggregated discovery.

_AGGREGATED: Final = tuple(
    GVK("apidiscovery.k8s.io", version, "APIGroupDiscoveryList") for version in ("v2", "v2beta1")
)


@per_revision
def _aggregated(registry: Registry) -> dict[tuple[str, GVK], Document]:
    """The aggregated documents by path and form."""
    return {
        (path, form): _discovery_list(registry, form, core=path == "/api")
        for path in ("/api", "/apis")
        for form in _AGGREGATED
    }


def _discovery_list(registry: Registry, form: GVK, *, core: bool) -> Document:
    items = [_group_discovery(group) for group in groups(registry) if core == (not group.name)]
    listed = {"kind": form.kind, "apiVersion": form.api_version, "metadata": {}, "items": items}
    return Document(encode(listed), f"{JSON};g={form.group};v={form.version};as={form.kind}")


def _group_discovery(group: Group) -> dict[str, Any]:
    versions = [
        {"version": each.name, "resources": [_resource_discovery(kind) for kind in each.types], "freshness": "Current"}
        for each in group.versions
    ]
    return {"metadata": {"name": group.name} if group.name else {}, "versions": versions}


def _resource_discovery(each: ResourceType) -> dict[str, Any]:
    entry = {
        "resource": each.plural,
        "responseKind": _response_kind(each.gvk),
        "scope": "Namespaced" if each.namespaced else "Cluster",
        "singularResource": each.singular,
        "verbs": verbs(each),
        **_names(each),
    }
    parts = [
        {"subresource": sub.name, "responseKind": _response_kind(sub.kind), "verbs": list(sub.verbs)}
        for sub in subresources(each)
    ]
    return entry | ({"subresources": parts} if parts else {})


def _response_kind(kind: GVK) -> dict[str, str]:
    return {"group": kind.group, "version": kind.version, "kind": kind.kind}


def _wanted_form(request: Request) -> GVK | None:
    """The aggregated form that the client accepts; None if it prefers the unaggregated one."""
    for clause in accepted(request):
        if clause.takes(JSON) and (clause.target is None or clause.target in _AGGREGATED):
            return clause.target
    return None


# Serving.

_ARCHITECTURES: Final = {"x86_64": "amd64", "aarch64": "arm64"}


def version_info() -> dict[str, str]:
    """The response of ``/version``."""
    major, minor, _ = GIT_VERSION.removeprefix("v").split(".", 2)
    machine = platform.machine()
    return {
        "major": major,
        "minor": minor,
        "gitVersion": GIT_VERSION,
        "gitCommit": "",
        "gitTreeState": "clean",
        "buildDate": "",
        "goVersion": "",
        "compiler": platform.python_implementation(),
        "platform": f"{sys.platform}/{_ARCHITECTURES.get(machine, machine)}",
    }


def serve(request: Request, registry: Registry) -> Response | None:
    """Answer a request for discovery or the version; None if it is for something else."""
    path = request.path.rstrip("/")
    prefix, *rest = path.removeprefix("/").split("/")
    if path == "/version":
        must_read(request)
        return Response.of(version_info())
    if len(rest) > {"api": 1, "apis": 2}.get(prefix, -1):
        return None
    must_read(request)
    form = None if rest else _wanted_form(request)
    if form is not None:
        return _aggregated(registry)[path, form].answer(request)
    if path == "/api":
        return _api_versions(request, registry)
    body = _legacy(registry).get(path)
    if body is None and prefix == "api":
        raise NotFound.of_path()
    return page_not_found() if body is None else respond(form_of(request), body)
