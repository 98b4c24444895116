"""Registration of webhooks: the objects by which an API server finds them, and in which namespaces it asks them.

Pure.  The operator applies these objects with the authority that the server has to trust; manifests and chart have
the same objects without it.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import msgspec

from holdfast.cli.operator.permissions import MUTATING, VALIDATING
from holdfast.client.resources import Resource
from holdfast.kinds.model import Kind
from holdfast.meta.selectors import LabelSelector, SelectorError
from holdfast.operators.admission import Admission

CONVERT: Final = "/convert"
DEFAULT: Final = "/default"
VALIDATE: Final = "/validate"

CONFIGURATION: Final = "holdfast-operator"
"""The name of the MutatingWebhookConfiguration and of the ValidatingWebhookConfiguration."""

SECRET: Final = "holdfast-operator-webhooks"
"""The Secret with the operator's own certificate, in its namespace."""

ISSUED: Final = f"{SECRET}-cert-manager"
"""The Secret of cert-manager's certificate.  cert-manager keeps it when an installation has its own certificate again,
or is removed, so it is not the one that the operator's manifests have."""

INJECTED: Final = "cert-manager.io/inject-ca-from"
"""The annotation by which cert-manager writes the authority of a Certificate into an object."""

EXEMPT: Final = ("kube-system", "kube-public", "kube-node-lease")
"""The namespaces in which nothing is reviewed, beside the operator's own: a cluster must start without us."""

_SECONDS: Final = 5
"""After which the API server does not wait for a review any longer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookOptions:
    """Where webhooks listen, and how the API server reaches them: by a Service, or by a URL.

    service     namespace and name of the Service, whose port 443 leads to them; empty: the URL is used
    url         such as https://192.0.2.7:9443
    strict      whether objects are refused while no webhook answers; else they are accepted without a review
    selector    the labels of the namespaces whose objects are reviewed, as in a LabelSelector; empty: of all
    exempt      further namespaces in which nothing is reviewed
    files       the directory of tls.crt, tls.key and ca.crt; without it the operator makes its own certificate
    injected    namespace and name of cert-manager's Certificate, whose authority it writes into the objects
    """

    bind: str
    port: int
    service: tuple[str, str] = ("", "")
    url: str = ""
    strict: bool = False
    selector: Mapping[str, Any] = field(default_factory=dict)
    exempt: tuple[str, ...] = ()
    files: Path | None = None
    injected: str = ""

    @property
    def hosts(self) -> tuple[str, ...]:
        """The names of the certificate."""
        namespace, name = self.service
        if name:
            return f"{name}.{namespace}.svc", f"{name}.{namespace}.svc.cluster.local"
        return (urlsplit(self.url).hostname or "localhost",)

    @property
    def annotations(self) -> dict[str, str]:
        """The annotations of objects that name the webhooks."""
        return {INJECTED: self.injected} if self.injected else {}


def conversion(options: WebhookOptions, trusted: bytes) -> dict[str, Any]:
    """`spec.conversion` of a definition whose objects are converted here."""
    config = _client_config(options, trusted, CONVERT)
    return {"strategy": "Webhook", "webhook": {"clientConfig": config, "conversionReviewVersions": ["v1"]}}


@dataclass(frozen=True, slots=True)
class Registered:
    """How definitions have their objects converted by webhooks: `spec.conversion`, and what annotations it needs."""

    conversion: Mapping[str, Any]
    annotations: Mapping[str, str]

    @classmethod
    def of(cls, options: WebhookOptions, trusted: bytes) -> Registered:
        return cls(conversion(options, trusted), options.annotations)


def configurations(
    options: WebhookOptions, trusted: bytes, admission: Admission, namespace: str
) -> tuple[tuple[Resource, dict[str, Any]], ...]:
    """The objects by which the API server has objects defaulted and reviewed here.

    trusted    the authorities of the certificate, in PEM; empty: another controller writes them
    namespace  the operator's own
    """
    # Another webhook may add what a default depends on, so the server may ask again.
    defaulting = {
        **_webhook(options, trusted, DEFAULT, admission.defaulted_kinds, namespace),
        "reinvocationPolicy": "IfNeeded",
    }
    reviewing = _webhook(options, trusted, VALIDATE, admission.reviewed_kinds, namespace)
    metadata: dict[str, Any] = {"name": CONFIGURATION}
    if options.annotations:
        metadata["annotations"] = options.annotations
    return (
        (MUTATING, {"metadata": metadata, "webhooks": [defaulting]}),
        (VALIDATING, {"metadata": metadata, "webhooks": [reviewing]}),
    )


def _webhook(
    options: WebhookOptions, trusted: bytes, path: str, kinds: Iterable[Kind], namespace: str
) -> dict[str, Any]:
    """A webhook for objects of some kinds, outside the namespaces that are exempt."""
    groups: dict[tuple[str, str], list[str]] = {}
    for kind in kinds:
        groups.setdefault((kind.group, kind.version), []).append(kind.plural)
    exempt = dict.fromkeys((*EXEMPT, namespace, *options.exempt))
    outside = {"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": list(exempt)}
    expressions = [outside, *options.selector.get("matchExpressions", ())]
    return {
        "name": "objects.holdfast.dev",
        "clientConfig": _client_config(options, trusted, path),
        "rules": [
            {
                "apiGroups": [group],
                "apiVersions": [version],
                "resources": plurals,
                "operations": ["CREATE", "UPDATE"],
                "scope": "*",
            }
            for (group, version), plurals in groups.items()
        ],
        "namespaceSelector": {**options.selector, "matchExpressions": expressions},
        "failurePolicy": "Fail" if options.strict else "Ignore",
        "matchPolicy": "Equivalent",
        "sideEffects": "None",
        "timeoutSeconds": _SECONDS,
        "admissionReviewVersions": ["v1"],
    }


def _client_config(options: WebhookOptions, trusted: bytes, path: str) -> dict[str, Any]:
    namespace, name = options.service
    config: dict[str, Any] = {"caBundle": base64.b64encode(trusted).decode()} if trusted else {}
    if name:
        config["service"] = {"namespace": namespace, "name": name, "path": path, "port": 443}
    else:
        config["url"] = f"{options.url.rstrip('/')}{path}"
    return config


def parsed_name(text: str) -> tuple[str, str] | None:
    """``NAMESPACE/NAME``; None where it is not that."""
    namespace, _, name = text.partition("/")
    return (namespace, name) if namespace and name and "/" not in name else None


def parsed_selector(text: str) -> dict[str, Any]:
    """A LabelSelector, from JSON or from the text that ``kubectl --selector`` takes; raises `SelectorError`."""
    if text.lstrip().startswith("{"):
        try:
            selector = LabelSelector.from_object(msgspec.json.decode(text, type=dict[str, Any]))
        except msgspec.MsgspecError as error:
            raise SelectorError("selector", str(error)) from None
    else:
        selector = LabelSelector.parse(text)
    expressions = []
    for each in sorted(selector.requirements, key=str):
        values = {"values": sorted(each.values)} if each.values else {}
        expressions.append({"key": each.key, "operator": each.operator.value, **values})
    return {"matchExpressions": expressions} if expressions else {}
