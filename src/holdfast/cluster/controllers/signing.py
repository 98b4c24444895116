"""Certificate signing requests: approved ones are signed by the authority of the cluster.

It signs for the signers of Kubernetes whose certificates the API server trusts, with their rules about usages and
subjects.  A request that breaks the rules of its signer gets the condition ``Failed``.  Requests of other signers
are left to their own controllers.  Who may approve is a matter of the API server.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import Any, Final

import msgspec
from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from holdfast.client.objects import Object
from holdfast.client.resources import Resource
from holdfast.meta import times
from holdfast.meta.objects import Key
from holdfast.runtime.controllers import Controller, View
from holdfast.runtime.decisions import NOTHING, Decision

SIGNING_REQUESTS: Final = Resource(
    "certificates.k8s.io", "v1", "certificatesigningrequests", "CertificateSigningRequest", namespaced=False
)

LIFETIME: Final = timedelta(days=365)
SHORTEST: Final = timedelta(minutes=10)
"""The lifetime of certificates: the longest, which is also the default, and the shortest."""

_BACKDATED: Final = timedelta(minutes=5)
"""Certificates are valid from this long ago, for verifiers whose clock is behind."""

_LONG: Final = timedelta(hours=8)
"""Of a certificate that lives as long as this, the backdating is part of its lifetime."""

DIGITAL_SIGNATURE: Final = "digital signature"
KEY_ENCIPHERMENT: Final = "key encipherment"
CLIENT_AUTH: Final = "client auth"
SERVER_AUTH: Final = "server auth"
_EXTENDED: Final = {CLIENT_AUTH: ExtendedKeyUsageOID.CLIENT_AUTH, SERVER_AUTH: ExtendedKeyUsageOID.SERVER_AUTH}


@dataclass(frozen=True, slots=True)
class Authority:
    """The certificate authority of the cluster."""

    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey


class _Spec(msgspec.Struct, frozen=True, rename="camel"):
    request: str = ""
    signer_name: str = ""
    usages: tuple[str, ...] = ()
    expiration_seconds: int | None = None


class _Request(msgspec.Struct, frozen=True, rename="camel"):
    spec: _Spec = _Spec()
    status: dict[str, Any] = {}

    @property
    def is_due(self) -> bool:
        """Whether it was approved, and neither denied nor signed nor refused since."""
        types = {each.get("type") for each in self.status.get("conditions") or ()}
        return "Approved" in types and not types & {"Denied", "Failed"} and not self.status.get("certificate")


class Refused(ValueError):
    """A request that its signer does not sign; the message says why."""


def observe(view: View, key: Key) -> Object | None:
    return view.get(SIGNING_REQUESTS, key)


def decide(authority: Authority, obj: Object, now: datetime) -> Decision:
    asked = obj.decode(_Request)
    rule = _RULES.get(asked.spec.signer_name)
    if rule is None or obj.deleting or not asked.is_due:
        return NOTHING
    try:
        request = _parsed(asked.spec.request)
        rule(request, asked.spec.usages)
        certificate = _signed(authority, request, asked.spec, now=now)
    except Refused as problem:
        return Decision(status=_failed(asked.status, str(problem), now=now))
    encoded = base64.b64encode(certificate.public_bytes(serialization.Encoding.PEM)).decode()
    return Decision(status={**asked.status, "certificate": encoded})


def controller(authority: Authority) -> Controller[Object]:
    return Controller(
        name="certificate-signer",
        resource=SIGNING_REQUESTS,
        observe=observe,
        decide=partial(decide, authority),
    )


def _failed(status: Mapping[str, Any], message: str, *, now: datetime) -> dict[str, Any]:
    stamp = times.format(now)
    condition = {
        "type": "Failed",
        "status": "True",
        "reason": "SignerValidationFailure",
        "message": message,
        "lastUpdateTime": stamp,
        "lastTransitionTime": stamp,
    }
    return {**status, "conditions": [*(status.get("conditions") or ()), condition]}


# --- what the signers accept, with the messages of Kubernetes


@dataclass(frozen=True, slots=True)
class _Names:
    """What a request asks to be called."""

    common_name: str
    organizations: tuple[str, ...]
    alternatives: tuple[x509.GeneralName, ...]

    @classmethod
    def of(cls, request: x509.CertificateSigningRequest) -> _Names:
        names = request.subject.get_attributes_for_oid(NameOID.COMMON_NAME)
        organizations = request.subject.get_attributes_for_oid(NameOID.ORGANIZATION_NAME)
        return cls(
            common_name=str(names[-1].value) if names else "",
            organizations=tuple(str(each.value) for each in organizations),
            alternatives=tuple(_alternatives(request) or ()),
        )

    def has(self, kind: type[x509.GeneralName]) -> bool:
        return any(isinstance(each, kind) for each in self.alternatives)


def _client(request: x509.CertificateSigningRequest, usages: tuple[str, ...]) -> None:
    for usage in usages:
        if usage not in (DIGITAL_SIGNATURE, KEY_ENCIPHERMENT, CLIENT_AUTH):
            raise Refused(f"invalid usage for client certificate: {usage}")
    if CLIENT_AUTH not in usages:
        raise Refused(f"missing required usage for client certificate: {CLIENT_AUTH}")


def _kubelet_client(request: x509.CertificateSigningRequest, usages: tuple[str, ...]) -> None:
    names = _of_nodes(request)
    for kind, said in _KINDS_OF_NAMES.items():
        if names.has(kind):
            raise Refused(f"{said} subjectAltNames are not allowed")
    _check_node(names)
    _check_usages(usages, CLIENT_AUTH)


def _kubelet_serving(request: x509.CertificateSigningRequest, usages: tuple[str, ...]) -> None:
    names = _of_nodes(request)
    if not (names.has(x509.DNSName) or names.has(x509.IPAddress)):
        raise Refused("DNS or IP subjectAltName is required")
    for kind in (x509.RFC822Name, x509.UniformResourceIdentifier):
        if names.has(kind):
            raise Refused(f"{_KINDS_OF_NAMES[kind]} subjectAltNames are not allowed")
    _check_usages(usages, SERVER_AUTH)
    _check_node(names)


_KINDS_OF_NAMES: Final[Mapping[type[x509.GeneralName], str]] = {
    x509.DNSName: "DNS",
    x509.RFC822Name: "Email",
    x509.IPAddress: "IP",
    x509.UniformResourceIdentifier: "URI",
}

_RULES: Final[Mapping[str, Callable[[x509.CertificateSigningRequest, tuple[str, ...]], None]]] = {
    "kubernetes.io/kube-apiserver-client": _client,
    "kubernetes.io/kube-apiserver-client-kubelet": _kubelet_client,
    "kubernetes.io/kubelet-serving": _kubelet_serving,
}
"""By the name of a signer, what it demands of a request; raises `Refused`."""


def _of_nodes(request: x509.CertificateSigningRequest) -> _Names:
    names = _Names.of(request)
    if names.organizations != ("system:nodes",):
        raise Refused("subject organization is not system:nodes")
    return names


def _check_node(names: _Names) -> None:
    if not names.common_name.startswith("system:node:"):
        raise Refused("subject common name does not begin with system:node:")


def _check_usages(usages: tuple[str, ...], auth: str) -> None:
    if set(usages) - {KEY_ENCIPHERMENT} != {DIGITAL_SIGNATURE, auth}:
        raise Refused(f"usages did not match [{' '.join(sorted((DIGITAL_SIGNATURE, KEY_ENCIPHERMENT, auth)))}]")


# --- signing


def _parsed(request: str) -> x509.CertificateSigningRequest:
    try:
        parsed = x509.load_pem_x509_csr(base64.b64decode(request, validate=True))
        _alternatives(parsed)
        if parsed.is_signature_valid:
            return parsed
    except (ValueError, TypeError, binascii.Error, InvalidSignature, UnsupportedAlgorithm) as error:
        raise Refused(f"unable to parse csr: {error}") from None
    raise Refused("the signature of the request does not belong to its key")


def _alternatives(request: x509.CertificateSigningRequest) -> x509.SubjectAlternativeName | None:
    try:
        return request.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return None


def _signed(
    authority: Authority, request: x509.CertificateSigningRequest, spec: _Spec, *, now: datetime
) -> x509.Certificate:
    began, ends = _validity(spec.expiration_seconds, now)
    alternatives, extended = _alternatives(request), [_EXTENDED[each] for each in spec.usages if each in _EXTENDED]
    builder = (
        x509.CertificateBuilder()
        .subject_name(request.subject)
        .issuer_name(authority.certificate.subject)
        .public_key(request.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(began)
        .not_valid_after(min(ends, authority.certificate.not_valid_after_utc))
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_key_usage(spec.usages), critical=True)
        .add_extension(x509.ExtendedKeyUsage(extended), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(authority.key.public_key()), critical=False)
    )
    if alternatives is not None:
        builder = builder.add_extension(alternatives, critical=not request.subject.rdns)
    return builder.sign(authority.key, hashes.SHA256())


def _validity(seconds: int | None, now: datetime) -> tuple[datetime, datetime]:
    lifetime = LIFETIME if seconds is None else min(max(timedelta(seconds=seconds), SHORTEST), LIFETIME)
    return now - _BACKDATED, now + lifetime - (_BACKDATED if lifetime >= _LONG else timedelta())


def _key_usage(usages: tuple[str, ...]) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=DIGITAL_SIGNATURE in usages,
        key_encipherment=KEY_ENCIPHERMENT in usages,
        content_commitment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=False,
        crl_sign=False,
        encipher_only=False,
        decipher_only=False,
    )
