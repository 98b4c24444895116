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


@dataclass(frozen=True, slots=True)
class Credentials:
    """An access key with its secret, which is not shown when it is printed; `token` is that of a session."""

    access_key: str
    secret_key: str = field(repr=False)
    token: str = field(default="", repr=False)


def signed(
    request: Request, credentials: Credentials, *, host: str, now: datetime, region: str = REGION
) -> dict[str, str]:
    """The headers that a request is sent with; those that it has are signed too."""
    stamp = now.strftime("%Y%m%dT%H%M%SZ")
    headers = {**request.headers, "host": host, "x-amz-content-sha256": _hex(request.body), "x-amz-date": stamp}
    if credentials.token:
        headers["x-amz-security-token"] = credentials.token
    names = ";".join(sorted(headers))
    scope = _scope(stamp, region)
    signature = _signature(request, headers, secret_key=credentials.secret_key, stamp=stamp, region=region)
    credential = f"Credential={credentials.access_key}/{scope}"
    return {**headers, "authorization": f"{ALGORITHM} {credential}, SignedHeaders={names}, Signature={signature}"}


def query_string(query: Mapping[str, tuple[str, ...]]) -> str:
    """A query in the canonical form, which is also sent."""
    pairs = sorted((_escaped(name), _escaped(value)) for name, values in query.items() for value in values)
    return "&".join(f"{name}={value}" for name, value in pairs)


def path_string(path: str) -> str:
    """A path in the canonical form, which is also sent."""
    return quote(path, safe="/-_.~")


def _signature(request: Request, headers: Mapping[str, str], *, secret_key: str, stamp: str, region: str) -> str:
    scope = _scope(stamp, region)
    text = "\n".join((ALGORITHM, stamp, scope, _hex(_canonical(request, headers).encode())))
    key = f"AWS4{secret_key}".encode()
    for part in scope.split("/"):
        key = _mac(key, part)
    return _mac(key, text).hex()


def _scope(stamp: str, region: str) -> str:
    return f"{stamp[:8]}/{region}/{SERVICE}/aws4_request"


def _canonical(request: Request, headers: Mapping[str, str]) -> str:
    """The request in the canonical form that client and server hash."""
    names = sorted(headers)
    return "\n".join(
        (
            request.method,
            path_string(request.path),
            query_string(request.query),
            *(f"{name}:{headers[name].strip()}" for name in names),
            "",
            ";".join(names),
            headers["x-amz-content-sha256"],
        )
    )


def _escaped(text: str) -> str:
    return quote(text, safe="-_.~")


def _mac(key: bytes, text: str) -> bytes:
    return hmac.digest(key, text.encode(), "sha256")


def _hex(body: bytes) -> str:
    return hashlib.sha256(body).hexdigest()
