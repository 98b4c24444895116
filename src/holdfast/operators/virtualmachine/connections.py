"""Connections to providers: how a Provider is reached, and the hypervisors that are connected.

`Target` is all that a connection needs; `Connections` keeps one for each provider and opens another one when the
target changes.  This module must not know how a provider is called.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from holdfast.client.resources import SECRETS
from holdfast.kinds.virtrigaud.providers import Provider
from holdfast.meta.objects import Key
from holdfast.operators.virtualmachine import names
from holdfast.operators.virtualmachine.secrets import Sealed, read
from holdfast.providers.contract import Hypervisor
from holdfast.runtime.controllers import View

CA: Final = "ca.crt"
CERTIFICATE: Final = "tls.crt"
KEY: Final = "tls.key"
CLIENT_CERTIFICATE: Final = "client.crt"
CLIENT_KEY: Final = "client.key"


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """How a provider is reached.

    provider     namespace and name of the Provider
    address      host and port of its process
    server_name  the name in its certificate
    secure       whether calls are encrypted
    credentials  ca.crt, and the certificate and key with which we are the client
    verify       whether its certificate is verified
    qps, burst   how fast it may be called
    connections  how many calls may be under way
    """

    provider: Key
    address: str
    server_name: str = ""
    secure: bool = True
    credentials: Sealed = field(default_factory=Sealed)
    verify: bool = True
    qps: int = 10
    burst: int = 20
    connections: int = 10


Connect: TypeAlias = Callable[[Target], Hypervisor]
"""Connects to a provider; it does not wait."""


class Connections:
    """The hypervisors that are connected, one for each Provider."""

    def __init__(self, connect: Connect) -> None:
        self._connect = connect
        self._open: dict[Key, tuple[Target, asyncio.AbstractEventLoop, Hypervisor]] = {}
        self._closing: set[asyncio.Task[None]] = set()

    def to(self, target: Target) -> Hypervisor:
        """The hypervisor at a target; a connection to another target of the same Provider is closed."""
        loop = asyncio.get_running_loop()
        found = self._open.get(target.provider)
        if found is not None and found[0] == target and found[1] is loop:
            return found[2]
        if found is not None and found[1] is loop:
            task = loop.create_task(found[2].close())
            self._closing.add(task)
            task.add_done_callback(self._closing.discard)
        hypervisor = self._connect(target)
        self._open[target.provider] = (target, loop, hypervisor)
        return hypervisor


def target_of(view: View, key: Key, provider: Provider, address: str) -> Target | None:
    """How a Provider is reached; None while its process has no address."""
    if not address:
        return None
    tls = provider.spec.runtime.service.tls if provider.spec.runtime.service else None
    secure = tls is None or tls.enabled is not False
    secret = tls.secret_ref.name if tls and tls.secret_ref else names.certificate(key.namespace, key.name)
    limit, pool = provider.spec.rate_limit, provider.spec.connection_pooling
    return Target(
        provider=key,
        address=address,
        server_name=server_name(key),
        secure=secure,
        credentials=(read(view, SECRETS, Key(key.namespace, secret)) or Sealed()) if secure else Sealed(),
        verify=not (tls and tls.insecure_skip_verify),
        qps=(limit.qps if limit and limit.qps else 10),
        burst=(limit.burst if limit and limit.burst else 20),
        connections=(pool.max_connections if pool and pool.max_connections else 10),
    )


def address_of(provider: Provider) -> str:
    """The address of the process of a Provider, as its status has it; empty while it has none."""
    runtime = None if provider.status is None else provider.status.runtime
    return (runtime.endpoint if runtime else None) or ""


def server_name(key: Key) -> str:
    """The name in the certificate of a provider: that of its Service."""
    return f"{names.runtime(key.namespace, key.name)}.{key.namespace}.svc.cluster.local"
