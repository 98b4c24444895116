"""The world of one PodClique: its pods, its set, and what else decides how many of its pods may go.

`observe` reads and judges nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cached_property
from typing import Final

from holdfast.client.objects import Object
from holdfast.client.resources import PODS
from holdfast.kernel import pod_problems
from holdfast.kernel.limits import Limits
from holdfast.kernel.pod_problems import Diagnosis, PodReason
from holdfast.kinds.grove.cliques import PodClique, PodCliqueStatus
from holdfast.kinds.grove.components import RollingUpdate
from holdfast.meta.objects import Key
from holdfast.operators.podcliqueset import labels
from holdfast.operators.podcliqueset.cliques.pods import Pod
from holdfast.operators.podcliqueset.resources import CLIQUES, SETS
from holdfast.operators.podcliqueset.startup import Parent, starts_after
from holdfast.operators.podcliqueset.templates import Layout
from holdfast.operators.podcliqueset.turns import Turn, layout_of, turn_of
from holdfast.operators.podcliqueset.update import limits_of
from holdfast.runtime import disruption
from holdfast.runtime.adoption import Claimed, claim
from holdfast.runtime.controllers import Index, View, Watch
from holdfast.runtime.decisions import Write
from holdfast.runtime.passes.sightings import Sight

OTHERS_BUDGETS: Final = disruption.budgets_of_others(CLIQUES)


@dataclass(frozen=True, kw_only=True)
class World:
    """
    object      the PodClique as it was read
    clique      the same, typed
    layout      the set that it belongs to
    turn        what the set says to its replica
    objects     its pods as they were read, also those that have ended or are being deleted
    sighted     for pods that are ready since a time that is still to come: when that was first seen, by uid
    claims      writes that adopt pods with its labels and no controller, and release pods that lost the labels
    parents     the PodCliques that its pods start after
    standalone  it is updated pod by pod; a PodClique of a scaling group is replaced with its replica
    bounds      the user's bounds of an update, if there are any
    cordoned    nodes of its pods that are cordoned
    lost        nodes of pods that are not ready, which do not report
    budget      its PodDisruptionBudget, or another object of that name
    selected    another PodDisruptionBudget selects its pods
    """

    object: Object
    clique: PodClique
    layout: Layout
    turn: Turn
    objects: tuple[Object, ...] = ()
    sighted: Mapping[str, datetime] = field(default_factory=dict)
    claims: tuple[Write, ...] = ()
    parents: tuple[Parent, ...] = ()
    standalone: bool = True
    bounds: RollingUpdate | None = None
    cordoned: frozenset[str] = frozenset()
    lost: frozenset[str] = frozenset()
    budget: Object | None = None
    selected: bool = False

    @property
    def replicas(self) -> int:
        return 1 if self.clique.spec.replicas is None else self.clique.spec.replicas

    @property
    def minimum(self) -> int:
        return self.clique.spec.min_available or self.replicas

    @cached_property
    def limits(self) -> Limits:
        return limits_of(self.replicas, self.minimum, self.bounds)

    @property
    def wanted(self) -> str:
        """The hash of the template that its pods should have."""
        return self.object.meta.labels.get(labels.TEMPLATE_HASH, "")

    @property
    def before(self) -> PodCliqueStatus:
        return self.clique.status or PodCliqueStatus()

    @cached_property
    def pods(self) -> tuple[Pod, ...]:
        return tuple(map(Pod.of, self.objects))

    def ready_since(self, pod: Pod) -> datetime | None:
        """When a pod became ready; None if it is not."""
        return self.sighted.get(pod.metadata.uid) or pod.ready_since() or (pod.created_at if pod.ready else None)

    @cached_property
    def active(self) -> tuple[Pod, ...]:
        return tuple(pod for pod in self.pods if pod.active)

    @cached_property
    def diagnosis(self) -> Diagnosis | None:
        """Why pods are not ready; of those that are being deleted, only the ones that a lost node keeps."""
        reported = (pod_problems.decode(obj.raw) for obj in self.objects)
        shown = (
            pod
            for pod in reported
            if pod.metadata.deletion_timestamp is None
            or ((found := pod_problems.problem(pod, lost=self.lost)) and found.reason is PodReason.NODE_LOST)
        )
        return pod_problems.diagnose(shown, lost=self.lost)

    @cached_property
    def outdated(self) -> tuple[Pod, ...]:
        return tuple(pod for pod in self.active if pod.template_hash != self.wanted)


def sight(world: World, seen: Sight) -> World:
    """The world with the times at which pods became ready by the clock of the operator."""
    ready = ((pod.metadata.uid, pod.ready_since()) for pod in world.pods)
    sighted = seen.corrected(ready)
    return replace(world, sighted=sighted) if sighted else world


def observe(view: View, key: Key) -> World | None:
    """The world of a PodClique; None when it or its set is deleted: then its pods are garbage."""
    obj = view.get(CLIQUES, key)
    if obj is None or obj.deleting:
        return None
    clique, layout = obj.decode(PodClique), layout_of(view, obj)
    marks = obj.meta.labels
    index, template = labels.index(marks, labels.SET_INDEX), marks.get(labels.TEMPLATE, "")
    if layout is None or index is None or template not in layout.by_name:
        return None
    owner = obj.controller
    standalone = owner is not None and owner.kind == SETS.kind
    candidates = _candidates(view, obj)
    claimed = _claimed(obj, candidates)
    pods = tuple(pod for pod in candidates if pod.deleting or pod.uid in claimed.uids)
    return World(
        object=obj,
        clique=clique,
        layout=layout,
        turn=turn_of(layout, index),
        objects=pods,
        claims=claimed.writes,
        parents=starts_after(layout, template, index=index, group_index=labels.index(marks, labels.GROUP_INDEX)),
        standalone=standalone,
        bounds=layout.rolling_update(layout.by_name[template]) if standalone else None,
        cordoned=disruption.cordoned(view, (Pod.of(pod).spec.node_name for pod in pods)),
        lost=disruption.lost(view, (each.spec.node_name for each in map(Pod.of, pods) if not each.ready)),
        budget=disruption.own_budget(view, obj, key.name),
        selected=bool(disruption.foreign_budgets(view, obj, [marks | {labels.CLIQUE: key.name}], index=OTHERS_BUDGETS)),
    )


def _candidates(view: View, owner: Object) -> tuple[Object, ...]:
    """The pods that the PodClique controls, and those without a controller that have its name as a label."""
    controlled = (pod for pod in view.owned(PODS, owner.uid) if pod.is_controlled_by(owner.uid))
    return (*controlled, *view.indexed(PODS, ORPHANS.name, str(owner.key)))


def _claimed(owner: Object, candidates: Iterable[Object]) -> Claimed:
    """Which pods are its own: those that have its labels, as a ReplicaSet claims its pods.

    A pod that lost them is not selected by the Service of its replica, so it is released and replaced.
    """
    wanted = labels.of_pods(owner.key.name, owner.meta.labels).items()
    pods = (pod.meta for pod in candidates if not pod.deleting)
    return claim(owner.head(), pods, resource=PODS, fits=lambda meta: wanted <= meta.labels.items())


def is_urgent(old: Object | None, new: Object | None, view: View) -> bool:
    """Whether a change of an owned object concerns the PodClique, and not an earlier one of its name that left it."""
    changed = new or old
    owner = None if changed is None or changed.resource != PODS else changed.controller
    if changed is None or owner is None:
        return not disruption.is_reported(old, new)
    found = view.get(CLIQUES, Key(changed.meta.namespace, owner.name))
    return found is None or found.uid == owner.uid


# --- pods without a controller


def _adopter(pod: Object) -> Iterable[Key]:
    name = pod.meta.labels.get(labels.CLIQUE)
    adoptable = pod.controller is None and not pod.deleting and not Pod.of(pod).finished
    return (Key(pod.meta.namespace, name),) if name and adoptable else ()


ORPHANS: Final = Index(resource=PODS, name="orphans-of-clique", values=lambda pod: map(str, _adopter(pod)))
WITHOUT_CONTROLLER: Final = Watch(resource=PODS, keys=lambda pod, view: _adopter(pod))
"""Pods without a controller that have the name of a PodClique as a label."""
