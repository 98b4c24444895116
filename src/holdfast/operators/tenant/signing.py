"""AWS Signature Version 4: requests that are authenticated without sending the secret.

    canonical request -> text to sign (with its time and scope) -> key for that day and scope -> signature

Pure: `now` is an argument.  This module must not know what is requested.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final
from urllib.parse import quote

from holdfast.meta.exchange import Request

ALGORITHM: Final = "AWS4-HMAC-SHA256"
REGION: Final = "us-east-1"
SERVICE: Final = "s3"

_SIGNED: Final = ("host", "x-amz-content-sha256", "x-amz-date")


@dataclass(frozen=True, slots=True)
class Credentials:
    """An access key with its secret, which is not shown when it is printed."""

    access_key: str
    secret_key: str = field(repr=False)


def signed(request: Request, credentials: Credentials, *, host: str, now: datetime) -> dict[str, str]:
    """The headers that a request is sent with."""
    stamp = now.strftime("%Y%m%dT%H%M%SZ")
    headers = {"host": host, "x-amz-content-sha256": _hex(request.body), "x-amz-date": stamp}
    scope = f"{stamp[:8]}/{REGION}/{SERVICE}/aws4_request"
    signature = sign(request, headers, secret_key=credentials.secret_key, stamp=stamp)
    headers["authorization"] = (
        f"{ALGORITHM} Credential={credentials.access_key}/{scope}, "
        f"SignedHeaders={';'.join(_SIGNED)}, Signature={signature}"
    )
    return headers


def sign(request: Request, headers: Mapping[str, str], *, secret_key: str, stamp: str) -> str:
    """The signature of a request that was made at `stamp`."""
    scope = f"{stamp[:8]}/{REGION}/{SERVICE}/aws4_request"
    text = "\n".join((ALGORITHM, stamp, scope, _hex(_canonical(request, headers).encode())))
    key = f"AWS4{secret_key}".encode()
    for part in scope.split("/"):
        key = _mac(key, part)
    return _mac(key, text).hex()


def _canonical(request: Request, headers: Mapping[str, str]) -> str:
    """The request in the canonical form that client and server hash."""
    query = sorted((_escaped(name), _escaped(value)) for name, values in request.query.items() for value in values)
    return "\n".join(
        (
            request.method,
            quote(request.path, safe="/-_.~"),
            "&".join(f"{name}={value}" for name, value in query),
            *(f"{name}:{headers.get(name, '').strip()}" for name in _SIGNED),
            "",
            ";".join(_SIGNED),
            headers.get("x-amz-content-sha256", ""),
        )
    )


def _escaped(text: str) -> str:
    return quote(text, safe="-_.~")


def _mac(key: bytes, text: str) -> bytes:
    return hmac.digest(key, text.encode(), "sha256")


def _hex(body: bytes) -> str:
    return hashlib.sha256(body).hexdigest()
