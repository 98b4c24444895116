"""Revisions: the states that a template has had, numbered, as ControllerRevisions keep them.

`plan` is a pure function from a template and the revisions there are to the one that
is current, the one to update to, and what to write:

    plan = revisions.plan(owner, history, current=status.get("currentRevision", ""), live=revisions_of_pods)

A template that equals the newest revision needs nothing; one that equals an older
revision is a rollback, and that revision gets the next number; any other is a new one.
The data of a revision is a strategic merge patch that puts the template back, which
is what ``kubectl rollout undo`` sends.

This module must not know pods, nor how an update proceeds.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from itertools import count
from typing import Any, Final

import msgspec

from holdfast.client.objects import Meta, Object
from holdfast.client.resources import CONTROLLER_REVISIONS
from holdfast.meta import hashing
from holdfast.meta.objects import Key, owner_reference
from holdfast.runtime.decisions import Create, Delete, Patch, Write

HASH_LABEL: Final = "controller.kubernetes.io/hash"
_PREFIX_MAX: Final = 223
"""Of the owner's name, this much goes into a revision's."""


class Revision(msgspec.Struct, frozen=True, rename="camel", gc=False):
    """One state of a template."""

    metadata: Meta = Meta()
    revision: int = 0
    data: dict[str, Any] = {}

    @classmethod
    def of(cls, obj: Object) -> Revision:
        return obj.decode(cls)

    @property
    def name(self) -> str:
        return self.metadata.name

    @property
    def template(self) -> dict[str, Any]:
        """The pod template that it keeps."""
        kept = self.data["spec"]["template"]
        return {field: value for field, value in kept.items() if field != "$patch"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Where an owner stands among its revisions.

    current     the revision of replicas that are not to be updated yet
    update      the revision of the template as it is
    collisions  how often a name was taken; it is part of the names to come
    writes      what makes it so
    """

    current: Revision
    update: Revision
    collisions: int = 0
    writes: tuple[Write, ...] = ()


def patch_of(template: Mapping[str, Any]) -> dict[str, Any]:
    """The data of a revision: a strategic merge patch that replaces the whole template."""
    return {"spec": {"template": {**template, "$patch": "replace"}}}


def in_order(revisions: Iterable[Revision]) -> tuple[Revision, ...]:
    """From the oldest to the newest, as their numbers say."""
    return tuple(sorted(revisions, key=lambda each: (each.revision, each.metadata.creation_timestamp or "", each.name)))


def plan(
    owner: Mapping[str, Any],
    revisions: Iterable[Revision],
    *,
    current: str = "",
    collisions: int = 0,
    taken: Collection[str] = (),
    live: Collection[str] = (),
    limit: int | None = 10,
) -> Plan:
    """Find or make the revision of the owner's template, and drop old ones beyond the limit.

    revisions   those of the owner
    current     the name of the current one, as its status has it
    taken       names that revisions of others have
    live        names that replicas still have; those are never dropped
    """
    history = in_order(revisions)
    data = patch_of(owner["spec"]["template"])
    number = history[-1].revision + 1 if history else 1
    same = next((each for each in reversed(history) if each.data == data), None)
    writes: list[Write] = []
    if same is None:
        names = {*taken, *(each.name for each in history)}
        update, collisions = _new(owner, data, number=number, collisions=collisions, taken=names)
        writes.append(_created(owner, update))
    elif same is history[-1]:
        update = same
    else:
        update = msgspec.structs.replace(same, revision=number)
        writes.append(_renumbered(same, number))
    found = next((each for each in history if each.name == current), update)
    kept = {found.name, update.name, *live}
    writes += _truncated([each for each in history if each.name not in kept], limit)
    return Plan(current=found, update=update, collisions=collisions, writes=tuple(writes))


def _new(
    owner: Mapping[str, Any],
    data: dict[str, Any],
    *,
    number: int,
    collisions: int,
    taken: Collection[str],
) -> tuple[Revision, int]:
    meta = owner["metadata"]
    for collided in count(collisions):
        digest = hashing.short_hash({"data": data, "collisions": collided})
        name = f"{meta['name'][:_PREFIX_MAX]}-{digest}"
        if name not in taken:
            labels = {**(owner["spec"]["template"].get("metadata", {}).get("labels") or {}), HASH_LABEL: digest}
            made = Meta(
                name=name,
                namespace=meta.get("namespace", ""),
                labels=labels,
                annotations=dict(meta.get("annotations") or {}),
            )
            return Revision(metadata=made, revision=number, data=data), collided
    raise AssertionError("names do not end")


def _created(owner: Mapping[str, Any], revision: Revision) -> Create:
    meta = revision.metadata
    metadata: dict[str, Any] = {
        "name": meta.name,
        "namespace": meta.namespace,
        "labels": meta.labels,
        "ownerReferences": [owner_reference(owner)],
    }
    if meta.annotations:
        metadata["annotations"] = meta.annotations
    return Create(
        because=f"the template has no revision yet; this is number {revision.revision}",
        resource=CONTROLLER_REVISIONS,
        manifest={
            "apiVersion": CONTROLLER_REVISIONS.api_version,
            "kind": CONTROLLER_REVISIONS.kind,
            "metadata": metadata,
            "data": revision.data,
            "revision": revision.revision,
        },
    )


def _renumbered(revision: Revision, number: int) -> Patch:
    meta = revision.metadata
    return Patch(
        because=f"the template is that of revision {revision.revision} again, which becomes the newest",
        resource=CONTROLLER_REVISIONS,
        key=Key(meta.namespace, meta.name),
        patch={"revision": number},
        uid=meta.uid,
        version=meta.resource_version,
    )


def _truncated(old: list[Revision], limit: int | None) -> list[Delete]:
    excess = 0 if limit is None or limit < 0 else max(len(old) - limit, 0)
    return [
        Delete(
            because=f"{len(old)} revisions are kept and unused, {limit} are to be",
            resource=CONTROLLER_REVISIONS,
            key=Key(each.metadata.namespace, each.metadata.name),
            uid=each.metadata.uid,
        )
        for each in old[:excess]
    ]
