"""Secrets of type ``kubernetes.io/service-account-token``: they get a token of the account that they name.

The token is valid as long as the account and the Secret exist.  The Secret is deleted with the account; one that names
an account that does not exist yet waits for it.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Final, TypeAlias

import msgspec

from holdfast.client.objects import Meta, Object
from holdfast.client.resources import SECRETS, SERVICE_ACCOUNTS
from holdfast.meta.objects import Key
from holdfast.runtime.controllers import Controller, Index, View, Watch
from holdfast.runtime.decisions import NOTHING, Decision, Delete, Patch

TYPE: Final = "kubernetes.io/service-account-token"
ACCOUNT_NAME: Final = "kubernetes.io/service-account.name"
ACCOUNT_UID: Final = "kubernetes.io/service-account.uid"
_BY_ACCOUNT: Final = "token secrets by account"
_KEYS: Final = ("ca.crt", "namespace", "token")


@dataclass(frozen=True, slots=True)
class Bound:
    """An object by key and uid."""

    key: Key
    uid: str


Issue: TypeAlias = Callable[[Bound, Bound, datetime], str]
"""A new token of a service account, bound to a Secret."""


@dataclass(frozen=True, slots=True)
class Tokens:
    """What makes the content of the Secrets: tokens, and the certificate of the API server's authority in PEM."""

    issue: Issue
    authority: bytes


class _Secret(msgspec.Struct, frozen=True, rename="camel"):
    metadata: Meta = Meta()
    type: str = ""
    data: dict[str, str] | None = None

    @property
    def account(self) -> str:
        return self.metadata.annotations.get(ACCOUNT_NAME, "") if self.type == TYPE else ""


@dataclass(frozen=True, slots=True)
class World:
    """A Secret that names an account, and the account, if it exists."""

    obj: Object
    secret: _Secret
    account: Bound | None


def observe(view: View, key: Key) -> World | None:
    obj = view.get(SECRETS, key)
    if obj is None or obj.deleting:
        return None
    secret = obj.decode(_Secret)
    if not secret.account:
        return None
    account = view.get(SERVICE_ACCOUNTS, Key(key.namespace, secret.account))
    found = None if account is None or account.deleting else Bound(account.key, account.uid)
    return World(obj, secret, found)


def decide(tokens: Tokens, world: World, now: datetime) -> Decision:
    obj, secret, account = world.obj, world.secret, world.account
    known = secret.metadata.annotations.get(ACCOUNT_UID, "")
    if known and (account is None or account.uid != known):
        because = f"its service account {secret.account} is gone"
        return Decision(writes=(Delete(resource=SECRETS, key=obj.key, uid=obj.uid, because=because),))
    if account is None or (known and all((secret.data or {}).get(name) for name in _KEYS)):
        return NOTHING
    content = {
        "ca.crt": tokens.authority,
        "namespace": obj.key.namespace.encode(),
        "token": tokens.issue(account, Bound(obj.key, obj.uid), now).encode(),
    }
    patch = {
        "metadata": {"annotations": {ACCOUNT_UID: account.uid}},
        "data": {name: base64.b64encode(value).decode() for name, value in content.items()},
    }
    because = f"it has no token of service account {secret.account} yet"
    write = Patch(resource=SECRETS, key=obj.key, patch=patch, uid=obj.uid, version=obj.version, because=because)
    return Decision(writes=(write,))


def _account_of(secret: Object) -> Iterable[str]:
    name = secret.meta.annotations.get(ACCOUNT_NAME)
    return (f"{secret.key.namespace}/{name}",) if name else ()


def _secrets_of(account: Object, view: View) -> Iterable[Key]:
    found = view.indexed(SECRETS, _BY_ACCOUNT, f"{account.key.namespace}/{account.key.name}")
    return tuple(secret.key for secret in found)


def controller(tokens: Tokens) -> Controller[World]:
    return Controller(
        name="token-secret",
        resource=SECRETS,
        watches=(Watch(resource=SERVICE_ACCOUNTS, keys=_secrets_of),),
        indexes=(Index(resource=SECRETS, name=_BY_ACCOUNT, values=_account_of),),
        observe=observe,
        decide=partial(decide, tokens),
    )
