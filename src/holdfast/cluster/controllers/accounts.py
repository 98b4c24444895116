"""The ``default`` ServiceAccount: every live namespace has one, since pods that name none run as it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from holdfast.client.objects import Object
from holdfast.client.resources import NAMESPACES, SERVICE_ACCOUNTS
from holdfast.meta.objects import Key
from holdfast.runtime.controllers import Controller, View, Watch
from holdfast.runtime.decisions import NOTHING, Create, Decision

DEFAULT: Final = "default"


@dataclass(frozen=True, slots=True)
class World:
    """A live namespace, and whether it has its account."""

    namespace: str
    has_account: bool


def observe(view: View, key: Key) -> World | None:
    namespace = view.get(NAMESPACES, key)
    if namespace is None or namespace.deleting:
        return None
    return World(key.name, view.get(SERVICE_ACCOUNTS, Key(key.name, DEFAULT)) is not None)


def decide(world: World, now: datetime) -> Decision:
    if world.has_account:
        return NOTHING
    account = {"metadata": {"name": DEFAULT, "namespace": world.namespace}}
    because = "pods that name no account run as this one"
    return Decision(writes=(Create(resource=SERVICE_ACCOUNTS, manifest=account, because=because),))


def _namespace_of(account: Object, view: View) -> Iterable[Key]:
    return (Key("", account.meta.namespace),) if account.meta.name == DEFAULT else ()


CONTROLLER: Final = Controller(
    name="service-account",
    resource=NAMESPACES,
    watches=(Watch(resource=SERVICE_ACCOUNTS, keys=_namespace_of),),
    observe=observe,
    decide=decide,
)
