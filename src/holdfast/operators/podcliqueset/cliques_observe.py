"""The world of one PodClique: its pods, and what its set asks of it.

`observe` reads and judges nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from holdfast.client.objects import Object
from holdfast.client.resources import PODS
from holdfast.kinds.grove.cliques import PodClique, PodCliqueStatus
from holdfast.kinds.grove.components import RollingUpdate
from holdfast.meta.objects import Key
from holdfast.operators.podcliqueset import labels
from holdfast.operators.podcliqueset.mandates import Mandate, layout_of, mandate
from holdfast.operators.podcliqueset.pods import Pod
from holdfast.operators.podcliqueset.resources import CLIQUES, SETS
from holdfast.operators.podcliqueset.startup import Parent, starts_after
from holdfast.operators.podcliqueset.templates import Layout
from holdfast.runtime.controllers import View


@dataclass(frozen=True, kw_only=True)
class World:
    """
    object      the PodClique as it came
    clique      the same, typed
    layout      the set that it belongs to
    mandate     what that asks of it now
    pods        its pods, also those that have ended or are about to
    parents     what its pods start after
    standalone  whether it is updated by itself; one of a scaling group is recreated with its replica
    bounds      how far an update may disturb it, if anybody said so
    """

    object: Object
    clique: PodClique
    layout: Layout
    mandate: Mandate
    pods: tuple[Pod, ...] = ()
    parents: tuple[Parent, ...] = ()
    standalone: bool = True
    bounds: RollingUpdate | None = None

    @property
    def replicas(self) -> int:
        return 1 if self.clique.spec.replicas is None else self.clique.spec.replicas

    @property
    def minimum(self) -> int:
        return self.clique.spec.min_available or self.replicas

    @property
    def wanted(self) -> str:
        """The hash of the template that its pods should have."""
        return self.object.meta.labels.get(labels.TEMPLATE_HASH, "")

    @property
    def before(self) -> PodCliqueStatus:
        return self.clique.status or PodCliqueStatus()

    @cached_property
    def active(self) -> tuple[Pod, ...]:
        return tuple(pod for pod in self.pods if pod.active)

    @cached_property
    def outdated(self) -> tuple[Pod, ...]:
        return tuple(pod for pod in self.active if pod.template_hash != self.wanted)


def observe(view: View, key: Key) -> World | None:
    """The world of a PodClique; None when it, or its set, is gone or going: then its pods go as well."""
    obj = view.get(CLIQUES, key)
    if obj is None or obj.deleting:
        return None
    layout = layout_of(view, obj)
    marks = obj.meta.labels
    index, template = labels.index(marks, labels.SET_INDEX), marks.get(labels.TEMPLATE, "")
    if layout is None or index is None or template not in layout.by_name:
        return None
    owner = obj.controller
    standalone = owner is not None and owner.kind == SETS.kind
    pods = (Pod.of(pod) for pod in view.owned(PODS, obj.uid) if pod.controller is not None)
    return World(
        object=obj,
        clique=obj.decode(PodClique),
        layout=layout,
        mandate=mandate(layout, index),
        pods=tuple(pods),
        parents=starts_after(layout, template, index=index, group_index=labels.index(marks, labels.GROUP_INDEX)),
        standalone=standalone,
        bounds=layout.rolling_update(layout.by_name[template]) if standalone else None,
    )
