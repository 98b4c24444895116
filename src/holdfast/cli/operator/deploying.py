"""Deploying: the objects that run operators in a cluster: a Deployment, who it is, and what it may do.

Pure: operators and options in, manifests out.  What is allowed is what the controllers declare (`permissions`), a role
for each operator, and nothing besides.  `holdfast operator manifests`, the kustomize base and the Helm chart
(`packaging`) are made from the same parts.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, Literal

from holdfast.cli.operator import alerts, pages, permissions, registration, selection
from holdfast.cli.operator.permissions import Permission
from holdfast.cli.operator.registration import WebhookOptions
from holdfast.kinds.model import Kind
from holdfast.operators.admission import Admission
from holdfast.operators.operator import Operator
from holdfast.runtime.controllers import Controller
from holdfast.runtime.manager import GRACE

NAME: Final = "holdfast-operator"
"""Of everything that is made, and of the lease."""

CERTIFICATE: Final = f"{NAME}-webhooks"
"""The Certificate of cert-manager for the webhooks."""

HEALTH_PORT: Final = 8081
WEBHOOK_PORT: Final = 9443
CERTIFICATE_FILES: Final = Path("/etc/holdfast/webhooks")
"""Where a certificate of cert-manager is mounted."""

_LABELS: Final = {"app.kubernetes.io/name": NAME}
_RBAC: Final = "rbac.authorization.k8s.io"
_MARGIN: Final = 10
"""Seconds between the last pass that may end and the kill."""

_READ: Final = ("get", "list", "watch")
_EDIT: Final = ("create", "delete", "deletecollection", "patch", "update")

Manifest = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Installation:
    """What is installed.

    controllers  the controllers that run, by operator
    installs     whether the operator itself installs the definitions
    webhooks     the webhooks that the operator serves, as `webhook_options` gives them; None: it serves none
    arguments    more arguments of the command
    """

    namespace: str
    image: str
    controllers: dict[str, tuple[Controller[Any], ...]]
    replicas: int = 2
    installs: bool = True
    webhooks: WebhookOptions | None = None
    arguments: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Part:
    """Manifests that are installed together: which, and the operator or the option that they belong to, if any."""

    name: str
    manifests: tuple[Manifest, ...]
    operator: str = ""
    option: str = ""


def by_operator(
    operators: Iterable[Operator], chosen: Sequence[Controller[Any]]
) -> dict[str, tuple[Controller[Any], ...]]:
    """The chosen controllers, by the operator that they are part of."""
    names = {each.name for each in chosen}
    found = {each.name: tuple(it for it in each.controllers if it.name in names) for each in operators}
    return {name: controllers for name, controllers in found.items() if controllers}


def manifests(installation: Installation) -> list[Manifest]:
    """Everything but what only some clusters can take, in the order in which it can be created."""
    return [manifest for part in parts(installation) if not part.option for manifest in part.manifests]


def parts(installation: Installation) -> Iterator[Part]:
    """All parts, in the order in which they can be created."""
    namespace, webhooks = installation.namespace, installation.webhooks
    kinds = selection.kinds_of(it for each in installation.controllers.values() for it in each)
    yield Part("namespace", (_namespace(namespace),))
    yield Part("account", ({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": _metadata(namespace)},))
    for operator, controllers in installation.controllers.items():
        yield Part(
            f"role-{operator}", _granted(operator, permissions.needed(controllers), namespace), operator=operator
        )
    if installation.installs:
        yield Part("role-definitions", _granted("definitions", permissions.to_install(kinds), namespace))
    yield Part("role-lease", _granted("lease", permissions.to_elect(NAME), namespace, kind="Role"))
    yield Part("lease", (_lease(namespace),))
    yield Part("roles-for-users", tuple(_roles_for_users(kinds)))
    if webhooks is not None:
        register = permissions.to_register(registration.CONFIGURATION)
        yield Part("role-webhooks", _granted("webhooks", register, namespace))
        if webhooks.files is None:
            keep = permissions.to_keep_certificate(registration.SECRET)
            yield Part("role-certificate", _granted("certificate", keep, namespace, kind="Role"))
            yield Part("webhook-secret", (_secret(namespace),))
        else:
            yield Part("webhook-certificate", tuple(_certificate(webhooks, namespace)))
        yield Part("webhook-service", (_webhook_service(namespace),))
    yield Part("deployment", (_deployment(installation),))
    if webhooks is not None:
        yield Part("webhook-configurations", tuple(_configurations(webhooks, namespace)))
    yield Part("service", (_service(namespace),))
    yield Part("disruption-budget", (_budget(namespace),))
    yield Part("network-policy", (_network_policy(namespace),), option="networkPolicy")
    yield Part("service-monitor", (_service_monitor(namespace),), option="serviceMonitor")
    yield Part("prometheus-rule", (_prometheus_rule(namespace),), option="prometheusRule")
    yield Part("dashboard", (_dashboard(namespace),), option="grafanaDashboard")
    yield Part("pages", pages.manifests(namespace, installation.image), option="dashboard.enabled")


# --- who it is, and what it may do


def _namespace(namespace: str) -> Manifest:
    labels = {"pod-security.kubernetes.io/enforce": "restricted"}
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace, "labels": labels}}


def _granted(
    name: str, allowed: Iterable[Permission], namespace: str, *, kind: Literal["ClusterRole", "Role"] = "ClusterRole"
) -> tuple[Manifest, Manifest]:
    """A role for the whole cluster, or for the operator's namespace, and that the operator has it."""
    called = f"{NAME}-{name}"
    place = namespace if kind == "Role" else ""
    return _role(kind, called, allowed, place), _binding(kind, called, namespace)


def _role(kind: str, name: str, allowed: Iterable[Permission], namespace: str = "") -> Manifest:
    rules = permissions.rules(allowed)
    return {"apiVersion": f"{_RBAC}/v1", "kind": kind, "metadata": _metadata(namespace, name), "rules": rules}


def _binding(role: str, name: str, namespace: str) -> Manifest:
    return {
        "apiVersion": f"{_RBAC}/v1",
        "kind": f"{role}Binding",
        "metadata": _metadata(namespace if role == "Role" else "", name),
        "roleRef": {"apiGroup": _RBAC, "kind": role, "name": name},
        "subjects": [{"kind": "ServiceAccount", "name": NAME, "namespace": namespace}],
    }


def _roles_for_users(kinds: Iterable[Kind]) -> Iterator[Manifest]:
    """What users may do with the kinds, as parts of Kubernetes' own roles view, edit and admin."""
    groups: dict[str, list[str]] = {}
    scaled: dict[str, list[str]] = {}
    for kind in kinds:
        groups.setdefault(kind.group, []).append(kind.plural)
        if kind.scale is not None:
            scaled.setdefault(kind.group, []).append(f"{kind.plural}/scale")
    reading = [
        _rule(group, [*plurals, *(f"{each}/status" for each in plurals)], _READ) for group, plurals in groups.items()
    ]
    writing = [_rule(group, plurals, _EDIT) for group, plurals in groups.items()]
    writing += [_rule(group, plurals, ("get", "patch", "update")) for group, plurals in scaled.items()]
    for name, rules in (("view", reading), ("edit", writing), ("admin", writing)):
        labels = {f"{_RBAC}/aggregate-to-{name}": "true"}
        metadata = _metadata("", f"holdfast-{name}")
        metadata["labels"] = {**metadata["labels"], **labels}
        yield {"apiVersion": f"{_RBAC}/v1", "kind": "ClusterRole", "metadata": metadata, "rules": rules}


def _rule(group: str, resources: Sequence[str], verbs: Sequence[str]) -> Manifest:
    return {"apiGroups": [group], "resources": list(resources), "verbs": list(verbs)}


# --- what the operator writes while it runs; it is installed with it, so that it is removed with it


def _lease(namespace: str) -> Manifest:
    return {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": _metadata(namespace)}


def _secret(namespace: str) -> Manifest:
    """The Secret that the operator keeps the certificate of its webhooks in."""
    metadata = _metadata(namespace, registration.SECRET)
    return {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "type": "Opaque"}


def _configurations(webhooks: WebhookOptions, namespace: str) -> Iterator[Manifest]:
    """The registration of the webhooks; the operator adds the authority of its certificate."""
    for resource, wire in registration.configurations(webhooks, b"", Admission(selection.operators()), namespace):
        metadata = {**wire["metadata"], "labels": dict(_LABELS)}
        yield {"apiVersion": resource.api_version, "kind": resource.kind, **wire, "metadata": metadata}


def _certificate(webhooks: WebhookOptions, namespace: str) -> Iterator[Manifest]:
    """What cert-manager issues the certificate of the webhooks from.

    The authority keeps its key when it is renewed.  A certificate that it signed before is then trusted by the renewed
    authority too, until every process has read the certificate after it from its files.
    """
    authority = f"{CERTIFICATE}-authority"
    ecdsa = {"algorithm": "ECDSA", "size": 256}
    yield _issued("Issuer", f"{authority}-self-signed", namespace, {"selfSigned": {}})
    yield _issued(
        "Certificate",
        authority,
        namespace,
        {
            "isCA": True,
            "commonName": authority,
            "secretName": authority,
            "duration": "87600h",
            "privateKey": {**ecdsa, "rotationPolicy": "Never"},
            "issuerRef": {"kind": "Issuer", "name": f"{authority}-self-signed"},
        },
    )
    yield _issued("Issuer", authority, namespace, {"ca": {"secretName": authority}})
    yield _issued(
        "Certificate",
        CERTIFICATE,
        namespace,
        {
            "secretName": registration.ISSUED,
            "dnsNames": list(webhooks.hosts),
            "duration": "2160h",
            "renewBefore": "720h",
            "privateKey": {**ecdsa, "rotationPolicy": "Always"},
            "usages": ["server auth", "digital signature"],
            "issuerRef": {"kind": "Issuer", "name": authority},
        },
    )


def _issued(kind: str, name: str, namespace: str, spec: Manifest) -> Manifest:
    return {"apiVersion": "cert-manager.io/v1", "kind": kind, "metadata": _metadata(namespace, name), "spec": spec}


# --- what runs


def _deployment(installation: Installation) -> Manifest:
    container: Manifest = {
        "name": "operator",
        "image": installation.image,
        "command": ["holdfast", "operator", "run"],
        "args": [
            "--leader-elect",
            "--health-bind=0.0.0.0",
            f"--health-port={HEALTH_PORT}",
            "--log-format=json",
            *([] if installation.installs else ["--no-install-crds"]),
            *(() if installation.webhooks is None else webhook_arguments(installation.webhooks)),
            *installation.arguments,
        ],
        "ports": [{"name": "health", "containerPort": HEALTH_PORT}],
        "livenessProbe": _probe("/healthz"),
        "readinessProbe": _probe("/readyz"),
        "resources": {"requests": {"cpu": "50m", "memory": "128Mi"}, "limits": {"memory": "1Gi"}},
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
        # Private keys of client certificates pass through a file for a moment, and it needs a place.
        "volumeMounts": [{"name": "tmp", "mountPath": "/tmp"}],
    }
    pod: Manifest = {
        "serviceAccountName": NAME,
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": 65532,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "terminationGracePeriodSeconds": int(GRACE) + _MARGIN,
        "containers": [container],
        "volumes": [{"name": "tmp", "emptyDir": {"medium": "Memory", "sizeLimit": "16Mi"}}],
        # One works, and one stands by with all that it needs to go on: on another node, where there is one.
        "topologySpreadConstraints": [
            {
                "maxSkew": 1,
                "topologyKey": "kubernetes.io/hostname",
                "whenUnsatisfiable": "ScheduleAnyway",
                "labelSelector": {"matchLabels": _LABELS},
            }
        ],
    }
    if installation.webhooks is not None and installation.webhooks.files is not None:
        mount, volume = certificate_mount(installation.webhooks.files)
        container["volumeMounts"].append(mount)
        pod["volumes"].append(volume)
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": _metadata(installation.namespace),
        "spec": {
            "replicas": installation.replicas,
            "selector": {"matchLabels": _LABELS},
            "template": {"metadata": {"labels": _LABELS}, "spec": pod},
        },
    }


def webhook_options(
    namespace: str,
    *,
    strict: bool = False,
    selector: Mapping[str, Any] = MappingProxyType({}),
    exempt: tuple[str, ...] = (),
    cert_manager: bool = False,
) -> WebhookOptions:
    """The webhooks of an operator that runs in this namespace, with its own certificate or one of cert-manager."""
    return WebhookOptions(
        bind="0.0.0.0",
        port=WEBHOOK_PORT,
        service=(namespace, NAME),
        strict=strict,
        selector=selector,
        exempt=exempt,
        files=CERTIFICATE_FILES if cert_manager else None,
        injected=f"{namespace}/{CERTIFICATE}" if cert_manager else "",
    )


def webhook_arguments(options: WebhookOptions) -> tuple[str, ...]:
    """The arguments of ``holdfast operator run`` that mean these options."""
    return (
        f"--webhook-port={options.port}",
        f"--webhook-bind={options.bind}",
        f"--webhook-service={'/'.join(options.service)}",
        *(["--webhook-strict"] if options.strict else []),
        *([f"--webhook-selector={json.dumps(options.selector)}"] if options.selector else []),
        *(f"--webhook-exempt={each}" for each in options.exempt),
        *([f"--webhook-certificate={options.files}"] if options.files else []),
        *([f"--webhook-inject-from={options.injected}"] if options.injected else []),
    )


def certificate_mount(directory: Path) -> tuple[Manifest, Manifest]:
    """How a container has the files of the certificate, and the volume that they are in."""
    mount = {"name": "webhooks", "mountPath": str(directory), "readOnly": True}
    return mount, {"name": "webhooks", "secret": {"secretName": registration.ISSUED}}


def _webhook_service(namespace: str) -> Manifest:
    """The Service of the webhooks; a process that stands by answers too."""
    ports = [{"name": "webhooks", "port": 443, "targetPort": WEBHOOK_PORT}]
    # A process is not ready before the definitions are installed, which the server may need the webhooks for.
    spec = {"selector": _LABELS, "ports": ports, "publishNotReadyAddresses": True}
    return {"apiVersion": "v1", "kind": "Service", "metadata": _metadata(namespace), "spec": spec}


def _probe(path: str) -> Manifest:
    return {"httpGet": {"path": path, "port": "health"}, "periodSeconds": 10, "failureThreshold": 3}


def _service(namespace: str) -> Manifest:
    ports = [{"name": "metrics", "port": HEALTH_PORT, "targetPort": "health"}]
    spec = {"selector": _LABELS, "ports": ports}
    return {"apiVersion": "v1", "kind": "Service", "metadata": _metadata(namespace, f"{NAME}-metrics"), "spec": spec}


def _budget(namespace: str) -> Manifest:
    spec = {"minAvailable": 1, "selector": {"matchLabels": _LABELS}}
    return {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": _metadata(namespace), "spec": spec}


# --- what only some clusters can take


def _network_policy(namespace: str) -> Manifest:
    """Nothing is reached but health, metrics and webhooks; what the operator reaches is not limited."""
    spec = {
        "podSelector": {"matchLabels": _LABELS},
        "policyTypes": ["Ingress"],
        "ingress": [{"ports": [{"protocol": "TCP", "port": port} for port in (HEALTH_PORT, WEBHOOK_PORT)]}],
    }
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": _metadata(namespace),
        "spec": spec,
    }


def _service_monitor(namespace: str) -> Manifest:
    spec = {"selector": {"matchLabels": _LABELS}, "endpoints": [{"port": "metrics", "interval": "30s"}]}
    return {
        "apiVersion": "monitoring.coreos.com/v1",
        "kind": "ServiceMonitor",
        "metadata": _metadata(namespace),
        "spec": spec,
    }


def _prometheus_rule(namespace: str) -> Manifest:
    rules = [alert.rule() for alert in alerts.ALERTS]
    return {
        "apiVersion": "monitoring.coreos.com/v1",
        "kind": "PrometheusRule",
        "metadata": _metadata(namespace),
        "spec": {"groups": [{"name": "holdfast", "rules": rules}]},
    }


def _dashboard(namespace: str) -> Manifest:
    metadata = _metadata(namespace, f"{NAME}-dashboard")
    metadata["labels"] = {**metadata["labels"], "grafana_dashboard": "1"}
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": metadata,
        "data": {"holdfast.json": alerts.dashboard()},
    }


def _metadata(namespace: str, name: str = NAME) -> Manifest:
    place = {"namespace": namespace} if namespace else {}
    return {"name": name, **place, "labels": dict(_LABELS)}
