"""The objects that an object owns, directly or through others, and the pods among them.

Kubernetes records only the owner of an object, so everything that can be owned is listed (metadata alone) and the
owner references are followed.  This module must not know how any of it is shown.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Final

from holdfast.cli.connecting import Session
from holdfast.cli.objects.describe import children_of, seen
from holdfast.client.discovery import Discovery, Served
from holdfast.client.objects import Object
from holdfast.client.protocols import Scope
from holdfast.client.resources import NODES, PODS, SERVICES

SELECTED: Final = (SERVICES,)
"""The resources that own no pods, and select them by labels."""


async def owned(session: Session, served: Served, obj: Object, known: Discovery) -> tuple[Object, ...]:
    """What an object owns, directly or through others; only the metadata of it."""
    here = Scope(namespace=obj.key.namespace)
    listings = await asyncio.gather(
        *(seen(session.client.list(each.resource, here, metadata_only=True)) for each in _ownable(served, known))
    )
    found = (each for listing in listings if listing is not None for each in listing.objects)
    return below(obj.uid, found)


def below(uid: str, objects: Iterable[Object]) -> tuple[Object, ...]:
    """Those of the objects that one owns, directly or through others; owners before what they own."""
    owned_by: dict[str, list[Object]] = {}
    for each in objects:
        for owner in each.meta.owner_references:
            owned_by.setdefault(owner.uid, []).append(each)
    found: dict[str, Object] = {}
    waiting = [uid]
    for owner_uid in waiting:
        for each in owned_by.get(owner_uid, ()):
            if each.uid not in found and each.uid != uid:
                found[each.uid] = each
                waiting.append(each.uid)
    return tuple(found.values())


async def pods(session: Session, served: Served, obj: Object, known: Discovery) -> tuple[Object, ...]:
    """The pods of an object, by name: itself, those that it selects or runs, or those that it owns."""
    if served.resource == PODS:
        return (obj,)
    scope = _selected(served, obj)
    if scope is None:
        uids = {each.uid for each in await owned(session, served, obj, known) if each.resource == PODS}
        scope = Scope(namespace=obj.key.namespace)
    else:
        uids = None
    if uids is not None and not uids:
        return ()
    listing = await session.client.list(PODS, scope)
    found = (each for each in listing.objects if uids is None or each.uid in uids)
    return tuple(sorted(found, key=lambda each: each.key))


def _selected(served: Served, obj: Object) -> Scope | None:
    """The pods of an object that owns none, as it selects them; None: it may own some."""
    if served.resource == NODES:
        return Scope(fields=f"spec.nodeName={obj.key.name}")
    selector = (obj.wire().get("spec") or {}).get("selector") if served.resource in SELECTED else None
    if not selector:
        return None
    labels = ",".join(f"{name}={value}" for name, value in sorted(selector.items()))
    return Scope(namespace=obj.key.namespace, labels=labels)


def _ownable(served: Served, known: Discovery) -> tuple[Served, ...]:
    """The resources whose objects one of this resource may own, directly or through others."""
    found: dict[str, Served] = {}
    waiting = [served]
    for each in waiting:
        for child in children_of(each, known):
            name = child.resource.group_resource
            if name not in found and "list" in child.verbs:
                found[name] = child
                waiting.append(child)
    return tuple(found.values())
