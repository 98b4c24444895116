"""Adoption: an owner adopts an object that its selector matches, and releases it when it no longer does.

Ownership is the controller reference and nothing else.  An object without one is
adopted by the owner that selects it; one that is no longer selected is released, and not
deleted.  An owner that is being deleted adopts nothing.  This module must not know kinds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from holdfast.client.objects import Meta, OwnerReference
from holdfast.client.resources import Resource
from holdfast.meta.objects import Key, owner_reference
from holdfast.runtime.decisions import Patch, Write


@dataclass(frozen=True, slots=True)
class Claimed:
    """Which objects are the owner's, by UID, and what makes it so."""

    uids: frozenset[str]
    writes: tuple[Write, ...] = ()


def claim(
    owner: Mapping[str, Any],
    metas: Iterable[Meta],
    *,
    resource: Resource,
    fits: Callable[[Meta], bool],
    finalizer: str = "",
) -> Claimed:
    """Sort candidates: the owner's, those to adopt (with a finalizer, if given), and those to release."""
    uid, going = owner["metadata"]["uid"], bool(owner["metadata"].get("deletionTimestamp"))
    ours: set[str] = set()
    writes: list[Write] = []
    for meta in metas:
        controller = meta.controller
        if controller is not None:
            if controller.uid != uid:
                continue
            if fits(meta):
                ours.add(meta.uid)
            elif not going:
                writes.append(_released(meta, uid, resource))
        elif fits(meta) and not going and meta.deletion_timestamp is None:
            ours.add(meta.uid)
            writes.append(_adopted(meta, owner, resource=resource, finalizer=finalizer))
    return Claimed(frozenset(ours), tuple(writes))


def _adopted(meta: Meta, owner: Mapping[str, Any], *, resource: Resource, finalizer: str) -> Patch:
    change: dict[str, Any] = {"ownerReferences": [*wired(meta.owner_references), owner_reference(owner)]}
    if finalizer and finalizer not in meta.finalizers:
        change["finalizers"] = [*meta.finalizers, finalizer]
    because = f"it has no controller, and {owner['kind']} {owner['metadata']['name']} selects it"
    return _patched(meta, change, resource=resource, because=because)


def _released(meta: Meta, uid: str, resource: Resource) -> Patch:
    kept = wired(each for each in meta.owner_references if each.uid != uid)
    because = "its controller does not select it any more"
    return _patched(meta, {"ownerReferences": kept or None}, resource=resource, because=because)


def _patched(meta: Meta, change: Mapping[str, Any], *, resource: Resource, because: str) -> Patch:
    # A merge patch replaces lists whole, so it holds for the version that was seen and for no other.
    return Patch(
        because=because,
        resource=resource,
        key=Key(meta.namespace, meta.name),
        patch={"metadata": change},
        uid=meta.uid,
        version=meta.resource_version,
    )


def wired(references: Iterable[OwnerReference]) -> list[dict[str, Any]]:
    """Owner references as they are written, without what they leave open."""
    plain: list[dict[str, Any]] = msgspec.to_builtins(list(references))
    return [{field: value for field, value in each.items() if value is not None} for each in plain]
