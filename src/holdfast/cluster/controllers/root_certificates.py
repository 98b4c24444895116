"""The ConfigMap ``kube-root-ca.crt`` of every live namespace: the authority that signed the server's certificate.

Pods mount it beside the token of their service account.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Final

import msgspec

from holdfast.client.objects import Object
from holdfast.client.resources import CONFIG_MAPS, NAMESPACES
from holdfast.meta.objects import Key
from holdfast.runtime.controllers import Controller, View, Watch
from holdfast.runtime.decisions import NOTHING, Create, Decision, Patch

NAME: Final = "kube-root-ca.crt"


class _Data(msgspec.Struct, frozen=True):
    data: dict[str, str] = {}


@dataclass(frozen=True, slots=True)
class World:
    """A live namespace, and the ConfigMap that it has."""

    namespace: str
    found: Object | None


def observe(view: View, key: Key) -> World | None:
    namespace = view.get(NAMESPACES, key)
    if namespace is None or namespace.deleting:
        return None
    return World(key.name, view.get(CONFIG_MAPS, Key(key.name, NAME)))


def decide(world: World, now: datetime, *, authority: str) -> Decision:
    data = {"ca.crt": authority}
    if world.found is None:
        manifest = {"metadata": {"name": NAME, "namespace": world.namespace}, "data": data}
        return Decision(
            writes=(Create(resource=CONFIG_MAPS, manifest=manifest, because="pods trust the server by it"),)
        )
    if world.found.deleting or world.found.decode(_Data).data == data:
        return NOTHING
    patch = Patch(
        resource=CONFIG_MAPS,
        key=world.found.key,
        uid=world.found.uid,
        patch={"data": data},
        because="the server has another authority",
    )
    return Decision(writes=(patch,))


def _namespace_of(found: Object, view: View) -> Iterable[Key]:
    return (Key("", found.meta.namespace),) if found.meta.name == NAME else ()


def controller(authority: str) -> Controller[World]:
    """Publishes this certificate."""
    return Controller(
        name="root-certificate",
        resource=NAMESPACES,
        watches=(Watch(resource=CONFIG_MAPS, keys=_namespace_of),),
        observe=observe,
        decide=partial(decide, authority=authority),
    )
