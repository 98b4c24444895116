"""The world of one PodClique: its pods, its set, and what else decides how many of its pods may go.

`observe` reads and judges nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Final

from holdfast.client.objects import Object
from holdfast.client.resources import PODS
from holdfast.kernel.limits import Limits
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
from holdfast.runtime.controllers import View

OTHERS_BUDGETS: Final = disruption.budgets_of_others(CLIQUES)


@dataclass(frozen=True, kw_only=True)
class World:
    """
    object      the PodClique as it was read
    clique      the same, typed
    layout      the set that it belongs to
    turn        what the set says to its replica
    objects     its pods as they were read, also those that have ended or are being deleted
    parents     the PodCliques that its pods start after
    standalone  it is updated pod by pod; a PodClique of a scaling group is replaced with its replica
    bounds      the user's bounds of an update, if there are any
    cordoned    nodes of its pods that are cordoned
    budget      its PodDisruptionBudget, or another object of that name
    selected    another PodDisruptionBudget selects its pods
    """

    object: Object
    clique: PodClique
    layout: Layout
    turn: Turn
    objects: tuple[Object, ...] = ()
    parents: tuple[Parent, ...] = ()
    standalone: bool = True
    bounds: RollingUpdate | None = None
    cordoned: frozenset[str] = frozenset()
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

    @cached_property
    def active(self) -> tuple[Pod, ...]:
        return tuple(pod for pod in self.pods if pod.active)

    @cached_property
    def outdated(self) -> tuple[Pod, ...]:
        return tuple(pod for pod in self.active if pod.template_hash != self.wanted)


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
    pods = tuple(pod for pod in view.owned(PODS, obj.uid) if pod.controller is not None)
    return World(
        object=obj,
        clique=clique,
        layout=layout,
        turn=turn_of(layout, index),
        objects=pods,
        parents=starts_after(layout, template, index=index, group_index=labels.index(marks, labels.GROUP_INDEX)),
        standalone=standalone,
        bounds=layout.rolling_update(layout.by_name[template]) if standalone else None,
        cordoned=disruption.cordoned(view, (Pod.of(pod).spec.node_name for pod in pods)),
        budget=disruption.own_budget(view, obj, key.name),
        selected=bool(disruption.foreign_budgets(view, obj, [marks | {labels.CLIQUE: key.name}], index=OTHERS_BUDGETS)),
    )
