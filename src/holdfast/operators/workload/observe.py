"""What the controller reads for one Workload: its replicas, its revisions, and the objects that affect them.

`observe` only reads; `decide` draws the conclusions.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import chain
from typing import Any, Final

import msgspec

from holdfast.client.objects import Object
from holdfast.client.pods import Pod
from holdfast.client.resources import CONFIG_MAPS, CONTROLLER_REVISIONS, PODS, SECRETS, SERVICES, Resource
from holdfast.kinds.cloudless import KINDS, Strategy, Workload
from holdfast.kinds.cloudless.rollouts import Rollout as RolloutSpec
from holdfast.meta import hashing
from holdfast.meta.objects import Key
from holdfast.operators.workload.containers import references
from holdfast.operators.workload.members import Member, member
from holdfast.operators.workload.render import SWITCHED_FOR, WORKLOAD, Template, budget_name, labels
from holdfast.runtime.adoption import Claimed, claim
from holdfast.runtime.controllers import Index, View, Watch
from holdfast.runtime.decisions import Write
from holdfast.runtime.disruption import PODS_BY_NODE, Budget, cordoned, foreign_budgets, is_reported, own_budget
from holdfast.runtime.passes.sightings import Sight
from holdfast.runtime.references import References

WORKLOADS: Final = Resource.of(KINDS[0])

_CONFIGS: Final = {"ConfigMap": CONFIG_MAPS, "Secret": SECRETS}


class Record(msgspec.Struct, frozen=True):
    """A ControllerRevision: a template, and a number that grows with each revision."""

    name: str
    uid: str
    number: int
    template: Template


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """
    object    the Workload as the API server sent it
    workload  the same, decoded
    members   its replicas, including those that have ended
    sighted   for replicas that are ready since a time that is still to come: when that was first seen, by uid
    idle      the members that do not serve: not ready, ended or terminating
    claims    writes that adopt pods with its labels and no controller, and release pods that lost the labels
    records   its ControllerRevisions, by revision
    configs   fingerprints of the ConfigMaps and Secrets that are part of the revision; empty if one is missing
    cordoned  the nodes of its replicas that take no new pods
    budgets   disruption budgets of others that select its replicas
    budget    the disruption budget that the controller keeps, or one of its name with another owner
    service   the Service whose selector a BlueGreen rollout switches
    released  Services that were switched for it before, and are not any more
    """

    object: Object
    workload: Workload
    members: tuple[Member, ...] = ()
    sighted: Mapping[str, datetime] = field(default_factory=dict)
    idle: tuple[Member, ...] = ()
    claims: tuple[Write, ...] = ()
    records: Mapping[str, Record]
    configs: Mapping[str, str]
    cordoned: frozenset[str] = frozenset()
    budgets: tuple[Budget, ...] = ()
    budget: Object | None = None
    service: Object | None = None
    released: tuple[Object, ...] = ()

    @property
    def rollout(self) -> RolloutSpec:
        """spec.rollout, or its defaults."""
        return self.workload.spec.rollout or RolloutSpec()

    @property
    def keeps_budget(self) -> bool:
        """Whether the controller keeps a disruption budget: not switched off, and none of others selects the pods."""
        return self.rollout.disruption_budget != "Unmanaged" and not self.budgets


def sight(world: World, seen: Sight) -> World:
    """The world with the times at which replicas became ready by the clock of the operator."""
    ready = ((each.meta.uid, each.replica.ready_since) for each in world.members)
    sighted = seen.corrected(ready)
    return replace(world, sighted=sighted) if sighted else world


def observe(view: View, key: Key) -> World | None:
    """The world of a Workload; None if it does not exist or is being deleted, when its replicas are deleted too."""
    obj = view.get(WORKLOADS, key)
    if obj is None or obj.deleting:
        return None
    workload = obj.decode(Workload)
    members, claims = _members(view, obj)
    # Budgets that select a replica, or will select the next one.
    worn = chain([{**obj.meta.labels, **labels(key.name)}], (each.meta.labels for each in members))
    service = view.get(SERVICES, Key(key.namespace, service_name(workload))) if switches(workload) else None
    switched = view.indexed(SERVICES, "switched-for", str(key))
    return World(
        object=obj,
        workload=workload,
        members=members,
        idle=tuple([each for each in members if not each.serves]),
        claims=claims,
        records={record.template.revision: record for record in _records(view, obj)},
        configs=dict(_fingerprints(view, obj, workload)),
        cordoned=cordoned(view, {each.replica.node for each in members}),
        budgets=foreign_budgets(view, obj, worn),
        budget=own_budget(view, obj, budget_name(key.name)),
        service=service,
        released=tuple(each for each in switched if service is None or each.uid != service.uid),
    )


def _members(view: View, owner: Object) -> tuple[tuple[Member, ...], tuple[Write, ...]]:
    """The replicas, and the writes that make them so.

    They are the pods that the Workload controls, and those without a controller that have its labels, which it adopts.
    A pod that lost the labels receives no traffic, so it is released and replaced, as by a ReplicaSet.
    """
    uid, name = owner.uid, labels(owner.key.name)[WORKLOAD]
    owned = [pod.derive(member) for pod in view.owned(PODS, uid)]
    orphans = [pod.derive(member) for pod in view.indexed(PODS, _ORPHANS, _selected_by(owner.key))]
    others = [each for each in owned if each.controller != uid or each.workload != name]
    if not orphans and not others:  # as usual, and a pass reads a thousand of them
        return tuple(owned), ()
    controlled = [each for each in owned if each.controller == uid]
    strays = [each for each in others if each.controller == uid and not each.replica.terminating]
    claimed = _claimed(owner, [*strays, *(each for each in orphans if not each.replica.terminating)])
    lost = {each.meta.uid for each in (*strays, *orphans)} - claimed.uids
    found = [*controlled, *orphans]
    return tuple(each for each in found if each.replica.terminating or each.meta.uid not in lost), claimed.writes


def _claimed(owner: Object, candidates: Sequence[Member]) -> Claimed:
    wanted = labels(owner.key.name).items()
    metas = (each.meta for each in candidates)
    return claim(owner.head(), metas, resource=PODS, fits=lambda meta: wanted <= meta.labels.items())


def switches(workload: Workload) -> bool:
    """Whether a Service sends the traffic to one revision at a time."""
    return workload.spec.rollout is not None and workload.spec.rollout.strategy is Strategy.BLUE_GREEN


def _named_service(workload: Workload) -> str | None:
    rollout = workload.spec.rollout
    return rollout.blue_green.service if rollout is not None and rollout.blue_green is not None else None


def service_name(workload: Workload) -> str:
    """The Service of a BlueGreen Workload: the one that the spec names, or the one of the Workload's name."""
    return _named_service(workload) or workload.metadata.name or ""


def is_taken(world: World) -> bool:
    """Whether the Service of the Workload's name has another owner, and the spec does not name it."""
    service = world.service
    unnamed = _named_service(world.workload) is None
    return service is not None and unnamed and not service.is_controlled_by(world.object.uid)


def _records(view: View, owner: Object) -> Iterator[Record]:
    for obj in view.owned(CONTROLLER_REVISIONS, owner.uid):
        if obj.is_controlled_by(owner.uid):
            kept = obj.decode(_Kept)
            yield Record(obj.key.name, obj.uid, kept.revision, kept.data)


class _Kept(msgspec.Struct, frozen=True):
    data: Template
    revision: int = 0


def _fingerprints(view: View, owner: Object, workload: Workload) -> Iterator[tuple[str, str]]:
    for reference in references(workload.spec):
        if not reference.part_of_revision:
            continue
        found = view.get(_CONFIGS[reference.kind], Key(owner.key.namespace, reference.name))
        if found is not None:
            # A ControllerRevision can be read without permission to read Secrets.  The UID of the Secret, which needs
            # that permission too, keeps a short Secret from being guessed from its fingerprint.
            salt = found.uid if reference.kind == "Secret" else ""
            yield str(reference), hashing.short_hash([salt, _content(found)])
        elif not reference.optional:
            yield str(reference), ""


def _content(obj: Object) -> Mapping[str, Any]:
    wire = obj.wire()
    return {field: wire[field] for field in ("data", "binaryData") if wire.get(field)}


# --- changes of pods


def is_urgent(old: Object | None, new: Object | None, view: View) -> bool:
    """Whether a change of an owned object may change what the controller does.

    Where a new pod runs, and what of its start passes by itself, does not; nor does the end of a pod that was
    terminating, unless the rollout waits for that.
    """
    if old is None or old.resource != PODS:
        return not is_reported(old, new)
    before = old.derive(member)
    if new is not None:
        return before.decisive != new.derive(member).decisive
    owner = old.controller
    found = None if owner is None else view.get(WORKLOADS, Key(old.meta.namespace, owner.name))
    return not before.replica.terminating or found is None or _awaits_terminations(found.decode(Workload))


def _awaits_terminations(workload: Workload) -> bool:
    rollout = workload.spec.rollout or RolloutSpec()
    return rollout.strategy is Strategy.RECREATE or rollout.replacement == "onTermination"


# --- indexes


def _mentions(obj: Object) -> Iterator[tuple[Resource, str]]:
    workload = obj.decode(Workload)
    for reference in references(workload.spec):
        yield _CONFIGS[reference.kind], reference.name
    if switches(workload):
        yield SERVICES, service_name(workload)


REFERENCES: Final = References(WORKLOADS, _mentions)
"""The ConfigMaps, Secrets and Services that Workloads refer to by name."""


def _switched_for(service: Object) -> Iterable[str]:
    name = service.meta.annotations.get(SWITCHED_FOR)
    return (str(Key(service.key.namespace, name)),) if name else ()


# --- pods without a controller

_ORPHANS: Final = "orphans"
_SELECTING: Final = "selecting"


def _selected_by(key: Key) -> str:
    """How the pods of a Workload are found by their label; it may be shorter than the name."""
    return f"{key.namespace}/{labels(key.name)[WORKLOAD]}"


def _orphaned(pod: Object) -> Iterable[str]:
    name = pod.meta.labels.get(WORKLOAD)
    return (f"{pod.key.namespace}/{name}",) if name and pod.controller is None and not Pod.of(pod).finished else ()


def _adopters(pod: Object, view: View) -> Iterable[Key]:
    return (each.key for value in _orphaned(pod) for each in view.indexed(WORKLOADS, _SELECTING, value))


WITHOUT_CONTROLLER: Final = Watch(resource=PODS, keys=_adopters)
"""Pods without a controller that have the labels of a Workload."""

INDEXES: Final = (
    Index(resource=PODS, name=_ORPHANS, values=_orphaned),
    Index(resource=WORKLOADS, name=_SELECTING, values=lambda obj: (_selected_by(obj.key),)),
    REFERENCES.index,
    PODS_BY_NODE,
    Index(resource=SERVICES, name="switched-for", values=_switched_for),
)
