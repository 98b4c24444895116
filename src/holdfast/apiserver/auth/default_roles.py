"""The roles and role bindings of a new cluster, created where they are absent.

Data, with the names and contents of Kubernetes.  Administrators may change them; the server does not restore them.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from holdfast.apiserver.auth.rbac import GROUP, aggregated
from holdfast.apiserver.resources import Object

_READ: Final = ("get", "list", "watch")
_WRITE: Final = ("create", "delete", "deletecollection", "patch", "update")
_LABELS: Final = {"kubernetes.io/bootstrapping": "rbac-defaults"}
_ANNOTATIONS: Final = {"rbac.authorization.kubernetes.io/autoupdate": "true"}

_HEALTH: Final = ("/healthz", "/livez", "/readyz")
_VERSION: Final = ("/version", "/version/")


def bootstrap_objects() -> list[Object]:
    """Cluster roles and their bindings."""
    roles = [
        _role("cluster-admin", _rule("*", groups="*", resources="*"), _paths("*", "*")),
        _role("system:basic-user", *_BASIC_USER),
        _role("system:discovery", _paths("get", "/api", "/api/*", "/apis", "/apis/*", *_OPENAPI, *_HEALTH, *_VERSION)),
        _role("system:public-info-viewer", _paths("get", *_HEALTH, *_VERSION)),
        _role("system:monitoring", _paths("get", "/metrics", "/metrics/slis", *_HEALTH, *(f"{p}/*" for p in _HEALTH))),
        _role(
            "system:service-account-issuer-discovery",
            _paths("get", "/.well-known/openid-configuration", "/.well-known/openid-configuration/", *_JWKS),
        ),
        _role("system:auth-delegator", *_AUTH_DELEGATOR),
        _role("system:aggregate-to-view", *_VIEW, aggregate_to="view"),
        _role("system:aggregate-to-edit", *_EDIT, aggregate_to="edit"),
        _role("system:aggregate-to-admin", *_ADMIN, aggregate_to="admin"),
        _role("view", aggregate_to="edit", aggregates="view"),
        _role("edit", aggregate_to="admin", aggregates="edit"),
        _role("admin", aggregates="admin"),
    ]
    for role in roles:
        if "aggregationRule" in role:
            role["rules"] = aggregated(role, roles)
    bindings = [
        _binding("cluster-admin", "system:masters"),
        _binding("system:basic-user", "system:authenticated"),
        _binding("system:discovery", "system:authenticated"),
        _binding("system:public-info-viewer", "system:authenticated", "system:unauthenticated"),
        _binding("system:monitoring", "system:monitoring"),
        _binding("system:service-account-issuer-discovery", "system:serviceaccounts"),
    ]
    return [*roles, *bindings]


def _rule(*verbs: str, groups: str, resources: str) -> dict[str, Any]:
    """A rule with its groups and resources separated by spaces; ``core`` is the group without a name."""
    named = ["" if group == "core" else group for group in groups.split()]
    return {"apiGroups": named, "resources": resources.split(), "verbs": list(verbs)}


def _paths(verb: str, *paths: str) -> dict[str, Any]:
    return {"nonResourceURLs": list(paths), "verbs": [verb]}


def _role(name: str, *rules: dict[str, Any], aggregate_to: str = "", aggregates: str = "") -> Object:
    role = _object("ClusterRole", name)
    if aggregate_to:
        role["metadata"]["labels"] |= _aggregation(aggregate_to)
    if aggregates:
        role["aggregationRule"] = {"clusterRoleSelectors": [{"matchLabels": _aggregation(aggregates)}]}
    role["rules"] = list(rules)
    return role


def _aggregation(role: str) -> dict[str, str]:
    return {f"{GROUP}/aggregate-to-{role}": "true"}


def _binding(name: str, *groups: str) -> Object:
    binding = _object("ClusterRoleBinding", name)
    binding["roleRef"] = {"apiGroup": GROUP, "kind": "ClusterRole", "name": name}
    binding["subjects"] = [{"apiGroup": GROUP, "kind": "Group", "name": group} for group in groups]
    return binding


def _object(kind: str, name: str) -> Object:
    metadata = {"name": name, "labels": dict(_LABELS), "annotations": dict(_ANNOTATIONS)}
    return {"apiVersion": f"{GROUP}/v1", "kind": kind, "metadata": metadata}


def _with(subresources: Iterable[str], *resources: str) -> str:
    """Resources, and each of them with each subresource."""
    return " ".join((*resources, *(f"{each}/{sub}" for each in resources for sub in subresources)))


_OPENAPI: Final = ("/openapi", "/openapi/*")
_JWKS: Final = ("/openid/v1/jwks", "/openid/v1/jwks/")
_STATUS: Final = ("status",)
_SCALE: Final = ("scale",)
_BOTH: Final = ("scale", "status")

_BASIC_USER: Final = (
    _rule("create", groups="authorization.k8s.io", resources="selfsubjectaccessreviews selfsubjectrulesreviews"),
    _rule("create", groups="authentication.k8s.io", resources="selfsubjectreviews"),
)
_AUTH_DELEGATOR: Final = (
    _rule("create", groups="authentication.k8s.io", resources="tokenreviews"),
    _rule("create", groups="authorization.k8s.io", resources="subjectaccessreviews"),
)
_VIEW: Final = (
    _rule(
        *_READ,
        groups="core",
        resources=_with(_STATUS, "persistentvolumeclaims", "pods", "resourcequotas", "services")
        + " "
        + _with(_BOTH, "replicationcontrollers")
        + " bindings configmaps endpoints events limitranges namespaces namespaces/status pods/log serviceaccounts",
    ),
    _rule(*_READ, groups="discovery.k8s.io", resources="endpointslices"),
    _rule(
        *_READ,
        groups="apps",
        resources="controllerrevisions "
        + _with(_STATUS, "daemonsets")
        + " "
        + _with(_BOTH, "deployments", "replicasets", "statefulsets"),
    ),
    _rule(*_READ, groups="autoscaling", resources=_with(_STATUS, "horizontalpodautoscalers")),
    _rule(*_READ, groups="batch", resources=_with(_STATUS, "cronjobs", "jobs")),
    _rule(*_READ, groups="policy", resources=_with(_STATUS, "poddisruptionbudgets")),
    _rule(*_READ, groups="networking.k8s.io", resources=_with(_STATUS, "ingresses") + " networkpolicies"),
)
_EDIT: Final = (
    _rule(
        *_READ,
        groups="core",
        resources="pods/attach pods/exec pods/portforward pods/proxy secrets services/proxy",
    ),
    _rule("impersonate", groups="core", resources="serviceaccounts"),
    _rule(
        *_WRITE,
        groups="core",
        resources="pods pods/attach pods/exec pods/portforward pods/proxy configmaps events persistentvolumeclaims "
        "replicationcontrollers replicationcontrollers/scale secrets serviceaccounts services services/proxy",
    ),
    _rule("create", groups="core", resources="pods/eviction serviceaccounts/token"),
    _rule(
        *_WRITE,
        groups="apps",
        resources="daemonsets deployments/rollback " + _with(_SCALE, "deployments", "replicasets", "statefulsets"),
    ),
    _rule(*_WRITE, groups="autoscaling", resources="horizontalpodautoscalers"),
    _rule(*_WRITE, groups="batch", resources="cronjobs jobs"),
    _rule(*_WRITE, groups="policy", resources="poddisruptionbudgets"),
    _rule(*_WRITE, groups="networking.k8s.io", resources="ingresses networkpolicies"),
    _rule(*_READ, *_WRITE, groups="coordination.k8s.io", resources="leases"),
)
_ADMIN: Final = (
    _rule("create", groups="authorization.k8s.io", resources="localsubjectaccessreviews"),
    _rule(*_READ, *_WRITE, groups=GROUP, resources="rolebindings roles"),
)
