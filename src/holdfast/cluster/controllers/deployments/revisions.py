"""Revisions of a Deployment: which ReplicaSet has its template, what a new one looks like, which old ones are deleted.

Two templates are the same revision if they are equal but for the hash that a ReplicaSet's carries.
A template that returns (``kubectl rollout undo``) finds its old ReplicaSet, which gets the next number.
This module must not know sizes, nor how a rollout proceeds.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import msgspec

from holdfast.client.objects import Meta
from holdfast.client.resources import DEPLOYMENTS, REPLICA_SETS
from holdfast.cluster.controllers.replica_types import (
    UNLIMITED,
    Deployment,
    Fleet,
    ReplicaSet,
    ReplicaSetSpec,
    identity,
)
from holdfast.meta import names
from holdfast.meta.objects import owner_reference
from holdfast.runtime.decisions import Create, Delete

HASH: Final = "pod-template-hash"
REVISION: Final = "deployment.kubernetes.io/revision"
HISTORY: Final = "deployment.kubernetes.io/revision-history"
DESIRED: Final = "deployment.kubernetes.io/desired-replicas"
MAXIMUM: Final = "deployment.kubernetes.io/max-replicas"

_NOT_COPIED: Final = frozenset(
    {
        "kubectl.kubernetes.io/last-applied-configuration",
        "deprecated.deployment.rollback.to",
        REVISION,
        HISTORY,
        DESIRED,
        MAXIMUM,
    }
)
"""Annotations that are about the Deployment itself; all others go to its ReplicaSet."""

_HASH_LENGTH: Final = 10
_NAME_MAX: Final = names.SUBDOMAIN_MAX
_HISTORY_MAX: Final = 2000
"""Characters of the history that is kept of numbers that a ReplicaSet had before."""

_encode: Final = msgspec.json.Encoder(order="deterministic").encode


# --- which one is new


def fleet_of(deployment: Deployment, sets: Iterable[ReplicaSet]) -> Fleet:
    """The ReplicaSets sorted into new and old; the oldest of several with the template is the new one."""
    ordered = sorted(sets, key=lambda each: each.age)
    wanted = _meaning(deployment.spec.template)
    new = next((each for each in ordered if _meaning(each.spec.template) == wanted), None)
    return Fleet(new=new, old=tuple(each for each in ordered if each is not new))


def _meaning(template: Mapping[str, Any]) -> Any:
    """A template without the hash and without what is empty: what is left decides whether two are the same."""
    metadata = template.get("metadata") or {}
    labels = {name: value for name, value in (metadata.get("labels") or {}).items() if name != HASH}
    return _pruned({**template, "metadata": {**metadata, "labels": labels, "creationTimestamp": None}})


def _pruned(value: Any) -> Any:
    if isinstance(value, dict):
        pruned = {name: _pruned(member) for name, member in value.items()}
        return {name: member for name, member in pruned.items() if member not in (None, {}, [])}
    return [_pruned(item) for item in value] if isinstance(value, list) else value


# --- numbers


def next_revision(fleet: Fleet) -> int:
    """The number of the new ReplicaSet: one more than any old one has."""
    return max((each.number(REVISION) or 0 for each in fleet.old), default=0) + 1


def marks_of(deployment: Deployment, replica_set: ReplicaSet | None, *, revision: int) -> dict[str, str]:
    """The annotations that the new ReplicaSet should have, with those that it has, but for its sizes."""
    had = {} if replica_set is None else replica_set.metadata.annotations
    copied = {name: text for name, text in deployment.metadata.annotations.items() if name not in _NOT_COPIED}
    wanted = {**had, **copied}
    number = None if replica_set is None else replica_set.number(REVISION)
    if number is None or number < revision:
        wanted[REVISION] = str(revision)
        if number is not None:
            wanted[HISTORY] = _remembered(had.get(HISTORY, ""), str(number))
    return wanted


def _remembered(history: str, number: str) -> str:
    """The history with one number more; the oldest are forgotten where it becomes too long."""
    numbers = [*filter(None, history.split(",")), number]
    while len(",".join(numbers)) > _HISTORY_MAX:
        del numbers[0]
    return ",".join(numbers)


def refreshed(deployment: Deployment, fleet: Fleet) -> Fleet:
    """The fleet with its new ReplicaSet numbered and annotated as it should be."""
    new = fleet.new
    if new is None:
        return fleet
    marks = marks_of(deployment, new, revision=next_revision(fleet))
    metadata = msgspec.structs.replace(new.metadata, annotations=marks)
    spec = msgspec.structs.replace(new.spec, min_ready_seconds=deployment.spec.min_ready_seconds)
    return Fleet(new=msgspec.structs.replace(new, metadata=metadata, spec=spec), old=fleet.old)


# --- a new one


def template_hash(deployment: Deployment) -> str:
    """What stands for the template in names and labels; another one after each collision."""
    collisions = deployment.status.collision_count or 0
    said = [_meaning(deployment.spec.template), collisions]
    return names.hash_suffix(_encode(said).decode(), _HASH_LENGTH)


def name_of_new(deployment: Deployment) -> str:
    digest = template_hash(deployment)
    return f"{deployment.name[: _NAME_MAX - len(digest) - 1]}-{digest}"


def new_set(deployment: Deployment, fleet: Fleet) -> ReplicaSet:
    """The ReplicaSet for a template that has none yet, without a size."""
    digest = template_hash(deployment)
    template, selector = deployment.spec.template, deployment.spec.selector or {}
    metadata = template.get("metadata") or {}
    labels = {**(metadata.get("labels") or {}), HASH: digest}
    return ReplicaSet(
        metadata=Meta(
            name=name_of_new(deployment),
            namespace=deployment.metadata.namespace,
            labels=labels,
            annotations=marks_of(deployment, None, revision=next_revision(fleet)),
        ),
        spec=ReplicaSetSpec(
            replicas=0,
            min_ready_seconds=deployment.spec.min_ready_seconds,
            selector={**selector, "matchLabels": {**(selector.get("matchLabels") or {}), HASH: digest}},
            template={**template, "metadata": {**metadata, "labels": labels}},
        ),
    )


def created(deployment: Deployment, replica_set: ReplicaSet) -> Create:
    """The request that makes it."""
    meta, spec = replica_set.metadata, replica_set.spec
    metadata = {
        "name": meta.name,
        "namespace": meta.namespace,
        "labels": meta.labels,
        "annotations": meta.annotations,
        "ownerReferences": [owner_reference(identity(DEPLOYMENTS, deployment.metadata))],
    }
    body: dict[str, Any] = {"replicas": spec.replicas, "selector": spec.selector, "template": spec.template}
    if spec.min_ready_seconds:
        body["minReadySeconds"] = spec.min_ready_seconds
    return Create(
        because="the template has no ReplicaSet yet",
        resource=REPLICA_SETS,
        manifest={
            "apiVersion": REPLICA_SETS.api_version,
            "kind": REPLICA_SETS.kind,
            "metadata": metadata,
            "spec": body,
        },
    )


# --- old ones that go


def outdated(deployment: Deployment, old: Sequence[ReplicaSet]) -> list[Delete]:
    """The oldest beyond the limit of the history, but for those that still have pods or may have."""
    limit = deployment.spec.revision_history_limit
    if limit is None or limit == UNLIMITED:
        return []
    kept = sorted((each for each in old if not each.deleting), key=_by_revision)
    return [
        Delete(
            because=f"it is beyond the {limit} old revisions that are kept",
            resource=REPLICA_SETS,
            key=each.key,
            uid=each.uid,
            wave=2,
        )
        for each in kept[: max(len(kept) - limit, 0)]
        if each.spec.replicas == each.status.replicas == 0
        and each.status.observed_generation >= each.metadata.generation
    ]


def _by_revision(replica_set: ReplicaSet) -> tuple[int, tuple[str, str]]:
    return replica_set.number(REVISION) or 0, replica_set.age
