"""The world of one PodCliqueScalingGroup: its replicas, and what its set asks of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from holdfast.client.objects import Object
from holdfast.kinds.grove.components import RollingUpdate
from holdfast.kinds.grove.groups import PodCliqueScalingGroup, PodCliqueScalingGroupStatus
from holdfast.kinds.grove.templates import ScalingGroupTemplate
from holdfast.meta.objects import Key
from holdfast.operators.podcliqueset import hashes, labels
from holdfast.operators.podcliqueset.mandates import Mandate, layout_of, mandate
from holdfast.operators.podcliqueset.parts import Clique, GroupReplica
from holdfast.operators.podcliqueset.resources import CLIQUES, GROUPS
from holdfast.operators.podcliqueset.templates import Layout
from holdfast.runtime.controllers import View


@dataclass(frozen=True, kw_only=True)
class World:
    """
    object    the scaling group as it came
    group     the same, typed
    template  what the set's template says of it
    layout    the set that it belongs to
    index     the replica of the set that it belongs to
    mandate   what the set asks of it now
    cliques   its PodCliques by index and clique, and as they came
    hashes    the templates that its cliques should have
    bounds    how far an update may disturb it, if anybody said so
    """

    object: Object
    group: PodCliqueScalingGroup
    template: ScalingGroupTemplate
    layout: Layout
    index: int
    mandate: Mandate
    cliques: Mapping[int, Mapping[str, Clique]]
    objects: Mapping[str, Object]
    hashes: Mapping[str, str]
    bounds: RollingUpdate | None = None

    @property
    def replicas(self) -> int:
        return 1 if self.group.spec.replicas is None else self.group.spec.replicas

    @property
    def minimum(self) -> int:
        return self.group.spec.min_available or 1

    @property
    def before(self) -> PodCliqueScalingGroupStatus:
        return self.group.status or PodCliqueScalingGroupStatus()

    @cached_property
    def expected(self) -> tuple[GroupReplica, ...]:
        """The replicas that there should be."""
        return tuple(self.replica(index) for index in range(self.replicas))

    @cached_property
    def beyond(self) -> tuple[GroupReplica, ...]:
        """The replicas that there are beyond those."""
        return tuple(self.replica(index) for index in sorted(self.cliques) if index >= self.replicas)

    def replica(self, index: int) -> GroupReplica:
        members = self.cliques.get(index, {})
        return GroupReplica(index=index, hashes=self.hashes, generation=self.mandate.generation, members=members)


def observe(view: View, key: Key) -> World | None:
    """The world of a scaling group; None when it, or its set, is gone or going: then its PodCliques go as well."""
    obj = view.get(GROUPS, key)
    if obj is None or obj.deleting:
        return None
    layout = layout_of(view, obj)
    marks = obj.meta.labels
    index = labels.index(marks, labels.SET_INDEX)
    template = None if layout is None else layout.group(marks.get(labels.TEMPLATE, ""))
    if layout is None or index is None or template is None:
        return None
    owned = tuple(each for each in view.owned(CLIQUES, obj.uid) if each.controller is not None)
    cliques: dict[int, dict[str, Clique]] = {}
    for each in owned:
        clique = Clique.of(each)
        place = labels.index(each.meta.labels, labels.GROUP_INDEX)
        if place is not None:
            cliques.setdefault(place, {})[clique.template] = clique
    return World(
        object=obj,
        group=obj.decode(PodCliqueScalingGroup),
        template=template,
        layout=layout,
        index=index,
        mandate=mandate(layout, index),
        cliques=cliques,
        objects={each.meta.name: each for each in owned},
        hashes=wanted_hashes(layout, template, cliques),
        bounds=layout.rolling_update(template),
    )


def wanted_hashes(
    layout: Layout, template: ScalingGroupTemplate, cliques: Mapping[int, Mapping[str, Clique]]
) -> dict[str, str]:
    """The template hash of each clique of a group; what is recorded on its PodCliques is kept while it holds."""
    return {
        name: hashes.template_hash(
            layout.pod_templates[name],
            recorded=(members[name].template_hash for members in cliques.values() if name in members),
        )
        for name in template.clique_names
    }
