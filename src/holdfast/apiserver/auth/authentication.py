"""Authentication: determines the user of a request from its client certificate or bearer token.

A client certificate, the admin token or a service account token names a user.  A request without any of them is
anonymous, one with a token that is not accepted is refused.  What users may do is decided in `rbac`.
"""

from __future__ import annotations

import hmac
import ssl
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final
from urllib.parse import unquote

from holdfast.apiserver.auth.tokens import Claims, Issuer, Reference, TokenError
from holdfast.apiserver.routes import RequestInfo
from holdfast.meta.errors import BadRequest, Unauthorized
from holdfast.meta.exchange import ANONYMOUS, Request, User

MASTERS: Final = "system:masters"
AUTHENTICATED: Final = "system:authenticated"
UNAUTHENTICATED: Final = "system:unauthenticated"
ACCOUNTS: Final = "system:serviceaccounts"
ADMIN: Final = User("admin", (MASTERS, AUTHENTICATED))

OPEN_PATHS: Final = frozenset({"/healthz", "/livez", "/readyz", "/version"})
_OPEN_TREES: Final = ("/healthz/", "/livez/", "/readyz/")

UidOf = Callable[[str, str, str], str | None]
"""The uid of an existing object by resource, namespace and name; None if it does not exist."""


def is_open(path: str) -> bool:
    """Whether a path may be read without authentication: health and version."""
    return path in OPEN_PATHS or path.startswith(_OPEN_TREES)


@dataclass(frozen=True, slots=True)
class Verified:
    """An accepted token: its user, and those of the requested audiences that it is valid for."""

    user: User
    audiences: tuple[str, ...]


class Authenticator:
    """Authenticates requests by certificate, admin token or service account token."""

    def __init__(self, *, admin_token: str, issuer: Issuer, uid_of: UidOf) -> None:
        self._admin_token = admin_token.encode()
        self._uid_of = uid_of
        self.issuer = issuer

    def user(self, request: Request, now: datetime) -> User:
        """The user of a request; raises `Unauthorized` for a token that is not accepted."""
        if request.user.name != ANONYMOUS.name:
            return request.user  # verified by the TLS connection
        scheme, _, token = request.headers.get("authorization", "").strip().partition(" ")
        token = token.strip()
        if scheme.lower() != "bearer" or not token:
            return ANONYMOUS
        try:
            return self.verify(token, now=now).user
        except TokenError:
            raise Unauthorized.of() from None

    def verify(self, token: str, *, now: datetime, audiences: tuple[str, ...] = ()) -> Verified:
        """The user of a token for any of `audiences` or for this server; raises `TokenError` if it is not valid."""
        wanted = audiences or self.issuer.audiences
        # Bytes, since text comparison accepts ASCII only; and first, so that it takes the same time for any token.
        if hmac.compare_digest(token.encode(errors="replace"), self._admin_token):
            accepted = tuple(each for each in wanted if each in self.issuer.audiences)
            if not accepted:
                raise TokenError(f"token is not for {', '.join(wanted)}")
            return Verified(ADMIN, accepted)
        claims = self.issuer.verify(token, now)
        accepted = tuple(each for each in wanted if each in claims.aud)
        if not accepted:
            raise TokenError(f"token audiences {list(claims.aud)} are not {list(wanted)}")
        self._check_holder(claims)
        return Verified(account_user(claims), accepted)

    def _check_holder(self, claims: Claims) -> None:
        holder = claims.holder
        self._check_exists("serviceaccounts", holder.namespace, holder.serviceaccount)
        for resource, namespace, bound in (
            ("pods", holder.namespace, holder.pod),
            ("secrets", holder.namespace, holder.secret),
            # A token bound to a pod only mentions the pod's node.
            ("nodes", "", holder.node if holder.pod is None else None),
        ):
            if bound is not None:
                self._check_exists(resource, namespace, bound)

    def _check_exists(self, resource: str, namespace: str, reference: Reference) -> None:
        uid = self._uid_of(resource, namespace, reference.name)
        if uid is None:
            raise TokenError(f"{resource} {reference.name!r} of the token no longer exists")
        if uid != reference.uid:
            raise TokenError(f"{resource} {reference.name!r} of the token was replaced by another object of that name")


def account_user(claims: Claims) -> User:
    """The user of a service account token."""
    holder = claims.holder
    extra = {"authentication.kubernetes.io/credential-id": (f"JTI={claims.jti}",)}
    for kind, bound in (("pod", holder.pod), ("node", holder.node)):
        if bound is not None:
            extra[f"authentication.kubernetes.io/{kind}-name"] = (bound.name,)
            extra[f"authentication.kubernetes.io/{kind}-uid"] = (bound.uid,)
    return User(claims.sub, (*account_groups(holder.namespace), AUTHENTICATED), holder.serviceaccount.uid, extra)


def account_groups(namespace: str) -> tuple[str, str]:
    return ACCOUNTS, f"{ACCOUNTS}:{namespace}"


def account_of(user: str) -> tuple[str, str] | None:
    """Namespace and name of the service account of a user name; None if it is not one."""
    match user.split(":"):
        case ["system", "serviceaccount", namespace, name] if namespace and name:
            return namespace, name
        case _:
            return None


def certificate_user(certificate: Mapping[str, Any], now: datetime) -> User | None:
    """The user that a verified client certificate names, in the form that `ssl` returns it.

    A connection may outlive its certificate, so the expiry is checked on every request.
    """
    if now.timestamp() >= ssl.cert_time_to_seconds(certificate["notAfter"]):
        raise Unauthorized.of()
    attributes = [attribute for names in certificate.get("subject", ()) for attribute in names]
    name = next((value for key, value in attributes if key == "commonName"), "")
    if not name:
        return None
    groups = [value for key, value in attributes if key == "organizationName"]
    return User(name, (*groups, AUTHENTICATED))


_IMPERSONATE: Final = "impersonate-"
_EXTRA: Final = "impersonate-extra-"


@dataclass(frozen=True, slots=True)
class Impersonation:
    """The user that a request impersonates, and the permissions that this requires."""

    user: User
    needs: tuple[RequestInfo, ...]


def impersonation(headers: Mapping[str, str]) -> Impersonation | None:
    """Read the ``Impersonate-`` headers.  A repeated header has one value per line."""
    if _IMPERSONATE not in " ".join(headers):
        return None
    name = headers.get("impersonate-user", "")
    groups = _values(headers, "impersonate-group")
    uid = headers.get("impersonate-uid", "")
    extra = {
        unquote(header.removeprefix(_EXTRA)).lower(): _values(headers, header)
        for header in headers
        if header.startswith(_EXTRA)
    }
    if not name:
        if groups or uid or extra:
            raise BadRequest("Impersonate-Group, -Uid and -Extra- need Impersonate-User; send it too")
        return None
    needs = tuple(_needs(name, groups, uid=uid, extra=extra))
    return Impersonation(User(name, _effective_groups(name, groups), uid, extra), needs)


def _values(headers: Mapping[str, str], name: str) -> tuple[str, ...]:
    return tuple(headers[name].split("\n")) if name in headers else ()


def _needs(
    name: str, groups: tuple[str, ...], *, uid: str, extra: Mapping[str, tuple[str, ...]]
) -> Iterator[RequestInfo]:
    account = account_of(name)
    if account is not None:
        yield _impersonate("serviceaccounts", account[1], namespace=account[0])
    else:
        yield _impersonate("users", name)
    for group in groups:
        yield _impersonate("groups", group)
    for key, values in extra.items():
        for value in values:
            yield _impersonate("userextras", value, group="authentication.k8s.io", subresource=key)
    if uid:
        yield _impersonate("uids", uid, group="authentication.k8s.io")


def _impersonate(
    resource: str, name: str, *, group: str = "", namespace: str = "", subresource: str = ""
) -> RequestInfo:
    return RequestInfo(
        verb="impersonate",
        path="",
        is_resource=True,
        group=group,
        resource=resource,
        subresource=subresource,
        namespace=namespace,
        name=name,
    )


def _effective_groups(name: str, groups: tuple[str, ...]) -> tuple[str, ...]:
    account = account_of(name)
    if account is not None and not groups:
        groups = account_groups(account[0])
    if name == ANONYMOUS.name:
        return groups if UNAUTHENTICATED in groups else (*groups, UNAUTHENTICATED)
    return groups if AUTHENTICATED in groups else (*groups, AUTHENTICATED)
