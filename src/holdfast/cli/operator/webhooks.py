"""The webhooks of ``holdfast operator run``: their certificate, their server, and how definitions name them.

The certificate and its authority are kept in a Secret, so that all processes of an operator share them; they are
created by the first one, and renewed long before they expire.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import contextlib
import ssl
from collections.abc import AsyncIterator, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final
from urllib.parse import urlsplit

from holdfast.apiserver.auth import certificates
from holdfast.apiserver.auth.certificates import CertificateError, Pair
from holdfast.apiserver.auth.identity import load_serving
from holdfast.cli.errors import Complaint
from holdfast.cli.local.binding import CannotStart
from holdfast.cli.operator.permissions import MUTATING, VALIDATING
from holdfast.client.protocols import Client
from holdfast.client.resources import SECRETS, Resource
from holdfast.kinds import reviews
from holdfast.kinds.model import Kind
from holdfast.meta.errors import AlreadyExists, Conflict, NotFound
from holdfast.meta.objects import Key
from holdfast.operators.admission import Admission
from holdfast.runtime.webhooks import Route, Webhooks

SECRET: Final = "holdfast-operator-webhooks"
"""The Secret with the certificate, in the namespace of the operator."""

CONVERT: Final = "/convert"
DEFAULT: Final = "/default"
VALIDATE: Final = "/validate"

CONFIGURATION: Final = "holdfast-operator"
"""The name of the MutatingWebhookConfiguration and of the ValidatingWebhookConfiguration."""

_EXEMPT: Final = ("kube-system", "kube-public", "kube-node-lease")
"""The namespaces in which nothing is reviewed, beside the operator's own: a cluster must start without us."""

_SECONDS: Final = 5
"""After which the API server does not wait for a review any longer."""


def routes(admission: Admission) -> dict[str, Route]:
    return {CONVERT: reviews.answered, DEFAULT: admission.completed, VALIDATE: admission.reviewed}


_FILES: Final = ("ca.crt", "ca.key", "tls.crt", "tls.key")
_ATTEMPTS: Final = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookOptions:
    """Where webhooks listen, and how the API server reaches them: by a Service, or by a URL.

    service    namespace and name of the Service, whose port 443 leads to them; empty: the URL is used
    url        such as https://192.0.2.7:9443
    strict     whether objects are refused while no webhook answers; else they are accepted without a review
    """

    bind: str
    port: int
    service: tuple[str, str] = ("", "")
    url: str = ""
    strict: bool = False

    @property
    def hosts(self) -> tuple[str, ...]:
        """The names of the certificate."""
        namespace, name = self.service
        if name:
            return f"{name}.{namespace}.svc", f"{name}.{namespace}.svc.cluster.local"
        return (urlsplit(self.url).hostname or "localhost",)


@dataclass(frozen=True, slots=True)
class Serving:
    """Webhooks that are served: how definitions have their objects converted there."""

    conversion: dict[str, Any]


@contextlib.asynccontextmanager
async def served(
    client: Client, options: WebhookOptions, namespace: str, admission: Admission
) -> AsyncIterator[Serving]:
    """Answer reviews until the end of the block; the Secret of the certificate is in this namespace."""
    authority, serving = await certificate(client, namespace, options.hosts)
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.minimum_version = ssl.TLSVersion.TLSv1_2
    load_serving(tls, serving)
    webhooks = Webhooks(routes(admission))
    try:
        await webhooks.serve(options.bind, options.port, tls)
    except OSError as error:
        message = f"webhooks cannot be served at {options.bind}, port {options.port}: {error.strerror}"
        raise CannotStart(Complaint(message=message, hint="choose another --webhook-port or --webhook-bind")) from None
    renewal = asyncio.create_task(_renewed(client, namespace, options, tls, serving))
    try:
        for resource, wire in configurations(options, authority.certificate_pem, admission, namespace):
            await client.apply(resource, wire)
        yield Serving(_conversion(options, authority))
    finally:
        renewal.cancel()
        await webhooks.close()


def _conversion(options: WebhookOptions, authority: Pair) -> dict[str, Any]:
    """`spec.conversion` of a definition whose objects are converted here."""
    config = _client_config(options, authority.certificate_pem, CONVERT)
    return {"strategy": "Webhook", "webhook": {"clientConfig": config, "conversionReviewVersions": ["v1"]}}


def _client_config(options: WebhookOptions, authority: bytes, path: str) -> dict[str, Any]:
    namespace, name = options.service
    config: dict[str, Any] = {"caBundle": base64.b64encode(authority).decode()}
    if name:
        config["service"] = {"namespace": namespace, "name": name, "path": path, "port": 443}
    else:
        config["url"] = f"{options.url.rstrip('/')}{path}"
    return config


def configurations(
    options: WebhookOptions, authority: bytes, admission: Admission, namespace: str
) -> tuple[tuple[Resource, dict[str, Any]], ...]:
    """The objects by which the API server has objects defaulted and reviewed here."""
    # Another webhook may add what a default is missing in, so the server may ask again.
    defaulting = {
        **_webhook(options, authority, DEFAULT, admission.defaulted_kinds, namespace),
        "reinvocationPolicy": "IfNeeded",
    }
    reviewing = _webhook(options, authority, VALIDATE, admission.reviewed_kinds, namespace)
    return (
        (MUTATING, {"metadata": {"name": CONFIGURATION}, "webhooks": [defaulting]}),
        (VALIDATING, {"metadata": {"name": CONFIGURATION}, "webhooks": [reviewing]}),
    )


def _webhook(
    options: WebhookOptions, authority: bytes, path: str, kinds: Iterable[Kind], namespace: str
) -> dict[str, Any]:
    """A webhook for objects of some kinds, outside the namespaces that are exempt."""
    groups: dict[tuple[str, str], list[str]] = {}
    for kind in kinds:
        groups.setdefault((kind.group, kind.version), []).append(kind.plural)
    exempt = sorted({*_EXEMPT, namespace})
    return {
        "name": "objects.holdfast.dev",
        "clientConfig": _client_config(options, authority, path),
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
        "namespaceSelector": {
            "matchExpressions": [{"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": exempt}]
        },
        "failurePolicy": "Fail" if options.strict else "Ignore",
        "matchPolicy": "Equivalent",
        "sideEffects": "None",
        "timeoutSeconds": _SECONDS,
        "admissionReviewVersions": ["v1"],
    }


async def _renewed(client: Client, namespace: str, options: WebhookOptions, tls: ssl.SSLContext, serving: Pair) -> None:
    """Renew the certificate long before it expires."""
    while True:
        await asyncio.sleep(max((serving.renew_at - datetime.now(UTC)).total_seconds(), 3600))
        _, serving = await certificate(client, namespace, options.hosts)
        load_serving(tls, serving)


# --- the certificate


async def certificate(client: Client, namespace: str, hosts: tuple[str, ...]) -> tuple[Pair, Pair]:
    """The authority and the certificate of the webhooks, as the Secret has them; created or renewed where they lack."""
    key = Key(namespace, SECRET)
    for _ in range(_ATTEMPTS):
        now = datetime.now(UTC)
        try:
            found = (await client.get(SECRETS, key)).wire()
        except NotFound:
            found = None
        authority, serving = _pairs({} if found is None else found.get("data") or {})
        if authority is None or certificates.expired(authority, now):
            authority, serving = certificates.new_authority(now), None
        elif serving is not None and certificates.serves(serving, authority, hosts=hosts, now=now):
            return authority, serving
        serving = certificates.new_serving(authority, hosts, now=now)
        try:
            await _write(client, key, authority, serving, found)
        except (AlreadyExists, Conflict):
            continue  # another process of the operator was first: its certificate is read
        return authority, serving
    raise CannotStart(Complaint(message=f"the Secret {key} is being changed by another client again and again"))


def _pairs(data: Mapping[str, Any]) -> tuple[Pair | None, Pair | None]:
    """The authority and the certificate that a Secret has; None for what is missing or cannot be read."""
    try:
        pem = {name: base64.b64decode(str(data.get(name, "")), validate=True) for name in _FILES}
        authority = Pair.load(pem["ca.crt"], pem["ca.key"])
        return authority, Pair.load(pem["tls.crt"], pem["tls.key"])
    except (CertificateError, binascii.Error, ValueError):
        return None, None


async def _write(client: Client, key: Key, authority: Pair, serving: Pair, found: dict[str, Any] | None) -> None:
    content = (authority.certificate_pem, authority.key_pem, serving.certificate_pem, serving.key_pem)
    data = {name: base64.b64encode(value).decode() for name, value in zip(_FILES, content, strict=True)}
    if found is None:
        metadata = {"name": key.name, "namespace": key.namespace}
        await client.create(SECRETS, {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": data})
        return
    patch = {"metadata": {"resourceVersion": found["metadata"]["resourceVersion"]}, "data": data}
    await client.patch(SECRETS, key, patch)


def parsed_service(text: str) -> tuple[str, str] | None:
    """``namespace/name`` of a Service; None where it is not that."""
    namespace, _, name = text.partition("/")
    return (namespace, name) if namespace and name and "/" not in name else None
