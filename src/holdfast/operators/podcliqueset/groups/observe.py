"""The world of one PodCliqueScalingGroup: its replicas, each a set of PodCliques, and the set that it belongs to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cached_property

from holdfast.client.objects import Object
from holdfast.kernel.limits import Limits
from holdfast.kinds.grove.components import RollingUpdate
from holdfast.kinds.grove.groups import PodCliqueScalingGroup, PodCliqueScalingGroupStatus
from holdfast.kinds.grove.templates import ScalingGroupTemplate
from holdfast.meta.objects import Key
from holdfast.operators.podcliqueset import hashes, labels
from holdfast.operators.podcliqueset.part_status import Clique, GroupReplica
from holdfast.operators.podcliqueset.resources import CLIQUES, GROUPS
from holdfast.operators.podcliqueset.templates import Layout
from holdfast.operators.podcliqueset.turns import Turn, layout_of, turn_of
from holdfast.operators.podcliqueset.update import limits_of
from holdfast.runtime.controllers import View
from holdfast.runtime.passes.sightings import Sight


@dataclass(frozen=True, kw_only=True)
class World:
    """
    object    the scaling group as it was read
    group     the same, typed
    template  the scaling group in the template of the set
    layout    the set that it belongs to
    index     the replica of the set that it belongs to
    turn      what the set says to that replica
    cliques   its PodCliques by index and clique
    objects   the same as they were read, by name
    hashes    the template hashes that its cliques should have
    bounds    the user's bounds of an update, if there are any
    sighted   for replicas that are ready since a time that is still to come: when that was first seen, by identity
    """

    object: Object
    group: PodCliqueScalingGroup
    template: ScalingGroupTemplate
    layout: Layout
    index: int
    turn: Turn
    cliques: Mapping[int, Mapping[str, Clique]]
    objects: Mapping[str, Object]
    hashes: Mapping[str, str]
    bounds: RollingUpdate | None = None
    sighted: Mapping[str, datetime] = field(default_factory=dict)

    @property
    def replicas(self) -> int:
        return 1 if self.group.spec.replicas is None else self.group.spec.replicas

    @property
    def minimum(self) -> int:
        """How many replicas must be available: minAvailable, and no more than there should be."""
        return min(self.group.spec.min_available or 1, self.replicas)

    @cached_property
    def limits(self) -> Limits:
        return limits_of(self.replicas, self.minimum, self.bounds)

    @property
    def before(self) -> PodCliqueScalingGroupStatus:
        return self.group.status or PodCliqueScalingGroupStatus()

    @cached_property
    def expected(self) -> tuple[GroupReplica, ...]:
        """The replicas that should exist."""
        return tuple(self.replica(index) for index in range(self.replicas))

    @cached_property
    def existing(self) -> tuple[GroupReplica, ...]:
        """The replicas of which at least one PodClique exists, also surge and surplus ones."""
        return tuple(self.replica(index) for index in sorted(self.cliques))

    @property
    def available(self) -> int:
        """How many replicas are available, of those that should exist; a surge replica stands in for one of them."""
        return min(sum(replica.available for replica in self.existing), self.replicas)

    def replica(self, index: int) -> GroupReplica:
        members = self.cliques.get(index, {})
        return GroupReplica(index=index, hashes=self.hashes, generation=self.turn.generation, members=members)

    def identity(self, replica: GroupReplica) -> str:
        return f"{self.object.uid}/{replica.index}"


def sight(world: World, seen: Sight) -> World:
    """The world with the times at which replicas became ready by the clock of the operator, which may be set back."""
    ready = ((world.identity(replica), replica.ready_since) for replica in world.existing)
    sighted = seen.corrected(ready)
    return replace(world, sighted=sighted) if sighted else world


def observe(view: View, key: Key) -> World | None:
    """The world of a scaling group; None when it or its set is deleted: then its PodCliques are garbage."""
    obj = view.get(GROUPS, key)
    if obj is None or obj.deleting:
        return None
    group, layout = obj.decode(PodCliqueScalingGroup), layout_of(view, obj)
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
        group=group,
        template=template,
        layout=layout,
        index=index,
        turn=turn_of(layout, index),
        cliques=cliques,
        objects={each.meta.name: each for each in owned},
        hashes={
            name: hashes.template_hash(
                layout.pod_templates[name],
                recorded=(members[name].template_hash for members in cliques.values() if name in members),
            )
            for name in template.clique_names
            if name in layout.pod_templates
        },
        bounds=layout.rolling_update(template),
    )
