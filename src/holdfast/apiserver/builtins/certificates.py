"""CertificateSigningRequest.  Requests are stored, approved and denied; controllers sign them."""

from __future__ import annotations

import base64
import binascii
from typing import Final

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm

from holdfast.apiserver.builtins.common import checks
from holdfast.apiserver.builtins.common.checks import Problems
from holdfast.apiserver.builtins.common.columns import AGE, NAME, column, field, get
from holdfast.apiserver.builtins.common.kinds import builtin
from holdfast.apiserver.resources import Object, ResourceType
from holdfast.meta.errors import OMITTED, FieldError

GROUP: Final = "certificates.k8s.io"
DECISIONS: Final = frozenset({"Approved", "Denied"})
"""The conditions that only the subresource ``approval`` changes."""

_BEGIN: Final = b"-----BEGIN CERTIFICATE REQUEST-----"
_SHORTEST_SECONDS: Final = 600


def _problems(obj: Object, old: Object | None) -> Problems:
    spec = obj.get("spec") or {}
    if old is None:
        yield from _request_problems(spec.get("request"))
    elif spec != old.get("spec"):
        yield FieldError.forbidden("spec", "updates to the spec of a certificate signing request are forbidden")
    yield from checks.required(spec.get("usages"), "spec.usages")
    yield from checks.required(spec.get("signerName"), "spec.signerName")
    seconds = spec.get("expirationSeconds")
    if seconds is not None and seconds < _SHORTEST_SECONDS:
        detail = "may not specify a duration less than 600 seconds (10 minutes)"
        yield FieldError.invalid("spec.expirationSeconds", seconds, detail=detail)
    decided = {each["type"] for each in get(obj, "status", "conditions", default=())} & DECISIONS
    if len(decided) > 1:
        detail = "Approved and Denied conditions are mutually exclusive"
        yield FieldError.invalid("status.conditions", OMITTED, detail=detail)


def _request_problems(request: str | None) -> Problems:
    yield from checks.required(request, "spec.request")
    try:
        content = base64.b64decode(request or "", validate=True)
    except (binascii.Error, ValueError):
        content = b""
    if request and not content.lstrip().startswith(_BEGIN):
        detail = "PEM block type must be CERTIFICATE REQUEST"
        yield FieldError.invalid("spec.request", OMITTED, detail=detail)
    elif request and parsed(request) is None:
        detail = "the PEM block holds no certificate request (PKCS #10)"
        yield FieldError.invalid("spec.request", OMITTED, detail=detail)


def parsed(request: str) -> x509.CertificateSigningRequest | None:
    """The certificate request in a field ``spec.request``; None if it is none."""
    try:
        return x509.load_pem_x509_csr(base64.b64decode(request, validate=True))
    except (ValueError, UnsupportedAlgorithm):
        return None


def _validate(obj: Object, old: Object | None) -> list[FieldError]:
    return list(_problems(obj, old))


def _condition(obj: Object) -> str:
    types = [each.get("type", "") for each in get(obj, "status", "conditions", default=())]
    issued = ["Issued"] if get(obj, "status", "certificate") else []
    return ",".join([*types, *issued]) or "Pending"


CERTIFICATE_SIGNING_REQUEST: Final = builtin(
    "CertificateSigningRequest",
    group=GROUP,
    namespaced=False,
    short_names=("csr",),
    status=True,
    subresources=("approval",),
    generation=False,
    columns=(
        NAME,
        AGE,
        field("SignerName", "spec", "signerName"),
        field("Requestor", "spec", "username"),
        field("RequestedDuration", "spec", "expirationSeconds", default="<none>"),
        column("Condition", _condition),
    ),
    fields=("spec.signerName",),
    validate=_validate,
)
RESOURCES: Final[tuple[ResourceType, ...]] = (CERTIFICATE_SIGNING_REQUEST,)
