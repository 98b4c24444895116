"""Service account tokens: JSON Web Tokens with an expiry, issued and verified by this server.

They are signed with ES256 and have the claims that Kubernetes writes, so that other programs can read them.  This
module does not know whether an account still exists, how tokens are sent, or what they allow.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import uuid
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Any, Final

import msgspec
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature, encode_dss_signature

ISSUER: Final = "https://kubernetes.default.svc.cluster.local"
SHORTEST: Final = timedelta(minutes=10)
LONGEST: Final = timedelta(seconds=2**32)
DEFAULT_LIFETIME: Final = timedelta(hours=1)
BINDABLE: Final = {"Pod": "pods", "Secret": "secrets", "Node": "nodes"}
"""Kinds that a token can be bound to, and their resources; the token is not valid once the object is deleted."""

_LONGEST_TEXT: Final = 16 * 1024
_COORDINATE: Final = 32


class TokenError(Exception):
    """A token that is not accepted, and why; the reason is for TokenReviews and logs, not for the client."""


class Reference(msgspec.Struct, frozen=True):
    """An object by name and uid."""

    name: str
    uid: str


class Holder(msgspec.Struct, frozen=True, omit_defaults=True):
    """The service account of a token, and the objects that it is bound to."""

    namespace: str
    serviceaccount: Reference
    pod: Reference | None = None
    secret: Reference | None = None
    node: Reference | None = None


class Claims(msgspec.Struct, frozen=True, kw_only=True):
    """The claims of a token."""

    iss: str
    sub: str
    aud: tuple[str, ...]
    exp: int
    iat: int
    nbf: int
    jti: str
    holder: Holder = msgspec.field(name="kubernetes.io")


class _Header(msgspec.Struct, frozen=True):
    alg: str
    kid: str


_read_header: Final = msgspec.json.Decoder(_Header).decode
_read_claims: Final = msgspec.json.Decoder(Claims).decode


@dataclass(frozen=True, slots=True)
class Issued:
    """A new token and its expiry."""

    token: str
    expires: datetime


class Issuer:
    """Signs tokens with one key, and verifies them."""

    def __init__(
        self, key: ec.EllipticCurvePrivateKey, *, url: str = ISSUER, audiences: tuple[str, ...] = (ISSUER,)
    ) -> None:
        self._key = key
        self._public = key.public_key()
        self.url = url
        self.audiences = audiences
        """The audiences of a token that names none: this server."""
        point = self._public.public_bytes(serialization.Encoding.X962, serialization.PublicFormat.UncompressedPoint)
        self._key_id = _encoded(hashlib.sha256(point).digest())
        self._point = point
        # Cached, because a client sends the same token with every request and its signature stays valid.
        self._signed = lru_cache(maxsize=1024)(self._read_signed)

    def issue(
        self,
        namespace: str,
        name: str,
        *,
        uid: str,
        now: datetime,
        lifetime: timedelta = DEFAULT_LIFETIME,
        audiences: Iterable[str] = (),
        bound: tuple[str, Reference] | None = None,
    ) -> Issued:
        """A token for the service account `name`; `bound` is a kind of `BINDABLE` and the object."""
        start = int(now.timestamp())
        end = start + int(lifetime.total_seconds())
        binding = {bound[0].lower(): bound[1]} if bound is not None else {}
        claims = Claims(
            iss=self.url,
            sub=subject(namespace, name),
            aud=tuple(audiences) or self.audiences,
            exp=end,
            iat=start,
            nbf=start,
            jti=str(uuid.uuid4()),
            holder=Holder(namespace, Reference(name, uid), **binding),
        )
        return Issued(self._sign(claims), datetime.fromtimestamp(end, tz=now.tzinfo))

    def verify(self, token: str, now: datetime) -> Claims:
        """The claims of a valid token of this issuer; raises `TokenError` otherwise."""
        claims = self._signed(token)
        instant = now.timestamp()
        if instant >= claims.exp:
            raise TokenError("service account token has expired")
        if instant < claims.nbf:
            raise TokenError("service account token is not valid yet")
        return claims

    def jwks(self) -> dict[str, Any]:
        """The public key (JWKS), with which other programs verify tokens."""
        x, y = self._point[1 : 1 + _COORDINATE], self._point[1 + _COORDINATE :]
        key = {"use": "sig", "kty": "EC", "kid": self._key_id, "crv": "P-256", "alg": "ES256"}
        return {"keys": [key | {"x": _encoded(x), "y": _encoded(y)}]}

    def discovery(self) -> dict[str, Any]:
        """The OpenID discovery document, which points to the public key."""
        return {
            "issuer": self.url,
            "jwks_uri": f"{self.url}/openid/v1/jwks",
            "response_types_supported": ["id_token"],
            "subject_types_supported": ["public"],
            "id_token_signing_alg_values_supported": ["ES256"],
        }

    def _sign(self, claims: Claims) -> str:
        header = msgspec.json.encode(_Header("ES256", self._key_id))
        content = f"{_encoded(header)}.{_encoded(msgspec.json.encode(claims))}"
        r, s = decode_dss_signature(self._key.sign(content.encode(), ec.ECDSA(hashes.SHA256())))
        signature = r.to_bytes(_COORDINATE, "big") + s.to_bytes(_COORDINATE, "big")
        return f"{content}.{_encoded(signature)}"

    def _read_signed(self, token: str) -> Claims:
        if len(token) > _LONGEST_TEXT or not token.isascii() or token.count(".") != 2:
            raise TokenError("not a service account token")
        content, _, signature = token.rpartition(".")
        header, _, claims = content.partition(".")
        try:
            stated = _read_header(_decoded(header))
            # The key determines the algorithm; a token with another one is not of this issuer.
            if stated.alg != "ES256" or stated.kid != self._key_id:
                raise TokenError("service account token was signed with another key")
            self._public.verify(_der(_decoded(signature)), content.encode(), ec.ECDSA(hashes.SHA256()))
            return self._checked(_read_claims(_decoded(claims)))
        except (binascii.Error, msgspec.MsgspecError, ValueError) as error:
            raise TokenError("not a service account token") from error
        except InvalidSignature as error:
            raise TokenError("service account token has a wrong signature") from error

    def _checked(self, claims: Claims) -> Claims:
        holder = claims.holder
        if claims.iss != self.url or claims.sub != subject(holder.namespace, holder.serviceaccount.name):
            raise TokenError("service account token names another issuer or subject")
        return claims


def subject(namespace: str, name: str) -> str:
    """The user name of a service account."""
    return f"system:serviceaccount:{namespace}:{name}"


def _encoded(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).rstrip(b"=").decode()


def _decoded(text: str) -> bytes:
    return base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)


def _der(signature: bytes) -> bytes:
    if len(signature) != 2 * _COORDINATE:
        raise TokenError("service account token has a wrong signature")
    halves = signature[:_COORDINATE], signature[_COORDINATE:]
    return encode_dss_signature(*(int.from_bytes(half, "big") for half in halves))
