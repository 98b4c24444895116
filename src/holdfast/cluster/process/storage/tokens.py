"""Tokens of service accounts for pods that run as processes: asked for at the API, and renewed before they expire.

A token is bound to its pod, so that it ends with it.  This module must not know where tokens are put.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

import msgspec

from holdfast.client.protocols import Client
from holdfast.client.resources import SERVICE_ACCOUNTS
from holdfast.cluster.process.lifecycle.pods import Pod, TokenSource, account_of
from holdfast.cluster.process.running.env import Refused
from holdfast.meta import times
from holdfast.meta.errors import NotFound
from holdfast.meta.objects import Key

_RENEWED_AFTER: Final = 0.8
"""The part of its lifetime after which a token is renewed, as a kubelet does."""

_SOONEST: Final = timedelta(seconds=10)


class _Status(msgspec.Struct, frozen=True, rename="camel"):
    token: str = ""
    expiration_timestamp: str | None = None


class _Answer(msgspec.Struct, frozen=True):
    status: _Status = _Status()


@dataclass(frozen=True, slots=True)
class Minted:
    """Tokens by what asks for them, and when the first of them is to be renewed."""

    tokens: dict[TokenSource, str]
    renew_at: datetime

    def __repr__(self) -> str:
        return f"Minted({len(self.tokens)} tokens, renew at {self.renew_at})"


async def mint(client: Client, pod: Pod, sources: Iterable[TokenSource], *, now: datetime) -> Minted:
    """New tokens of the pod's service account; raises `Refused` where there is no such account."""
    tokens: dict[TokenSource, str] = {}
    renewals = []
    account = Key(pod.metadata.namespace, account_of(pod))
    for source in sources:
        try:
            answer = await client.post(SERVICE_ACCOUNTS, account, "token", _request(pod, source))
        except NotFound:
            raise Refused(f'serviceaccount "{account.name}" not found; create it') from None
        granted = msgspec.json.decode(answer, type=_Answer).status
        tokens[source] = granted.token
        expires = times.read(granted.expiration_timestamp) or now + timedelta(seconds=source.expiration_seconds)
        renewals.append(now + max((expires - now) * _RENEWED_AFTER, _SOONEST))
    return Minted(tokens, min(renewals))


def _request(pod: Pod, source: TokenSource) -> dict[str, Any]:
    bound = {"apiVersion": "v1", "kind": "Pod", "name": pod.metadata.name, "uid": pod.uid}
    spec: dict[str, Any] = {"expirationSeconds": source.expiration_seconds, "boundObjectRef": bound}
    if source.audience:
        spec["audiences"] = [source.audience]
    return {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec}
