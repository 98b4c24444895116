"""The plan of a PodCliqueSet: what its controllers would do with each part, from the objects of a cluster.

The template of the set is applied to each PodClique and scaling group as it is now, and
the functions that its controller runs give the rollout of the part, as if it were the
turn of its replica.  Pure.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

import msgspec

from holdfast.client.objects import Object, Undecodable
from holdfast.kernel.fleet import Fleet
from holdfast.kernel.reasons import count
from holdfast.kernel.rollout import Rollout
from holdfast.kernel.stepping import Step
from holdfast.kinds.grove.cliques import PodClique
from holdfast.kinds.grove.groups import PodCliqueScalingGroup
from holdfast.kinds.grove.templates import CliqueTemplate, ScalingGroupTemplate
from holdfast.meta.objects import Key
from holdfast.meta.patches import merge
from holdfast.operators.podcliqueset import render
from holdfast.operators.podcliqueset.cliques.observe import observe as observe_clique
from holdfast.operators.podcliqueset.cliques.update import update as update_clique
from holdfast.operators.podcliqueset.groups.observe import observe as observe_group
from holdfast.operators.podcliqueset.groups.termination import Termination
from holdfast.operators.podcliqueset.groups.update import update as update_group
from holdfast.operators.podcliqueset.patching import patched
from holdfast.operators.podcliqueset.sets.observe import SetReplica, World
from holdfast.operators.podcliqueset.sets.observe import observe as observe_set
from holdfast.operators.podcliqueset.sets.update import urgency
from holdfast.operators.podcliqueset.templates import Layout, replicas
from holdfast.operators.podcliqueset.turns import Turn
from holdfast.operators.podcliqueset.update import limits_of, rollout_of
from holdfast.operators.podcliqueset.validate import problems
from holdfast.operators.rollouts import Refusal
from holdfast.runtime.controllers import View, is_paused
from holdfast.runtime.decisions import Patch
from holdfast.views.plans import Beginning, PlanSummary, PlanView, part_view


def outlook(view: View, key: Key, now: datetime) -> PlanSummary | Refusal:
    """The plan of each part of a set from here, or why there is none."""
    try:
        world = observe_set(view, key)
        if world is None:
            return Refusal("it is being deleted", "apply it again when it is gone")
        found = problems(world.layout)
        if found:
            return Refusal("; ".join(map(str, found)), "correct the field and apply it again")
        order = sorted(world.replicas, key=urgency)
        parts = [part for replica in order for part in _parts(view, world, replica, now) if part.rows or part.blocked]
    except Undecodable as error:
        return Refusal(f"it cannot be read: {error.problem}", "correct the field and apply it again")
    return PlanSummary(name=world.layout.name, notes=tuple(_notes(world, order, parts)), parts=tuple(parts))


def _notes(world: World, order: list[SetReplica], parts: list[PlanView]) -> Iterator[str]:
    layout = world.layout
    if is_paused(world.object):
        yield "it is paused: this is what follows when it is resumed"
    if not parts:
        yield "no part has pods to start or to replace"
    replaced = [replica.index for replica in order if replica.parts]
    if any(not part.scaling_only for part in parts) and len(replaced) > 1:
        yield (
            f"replicas of the set are updated one after another, in the order {', '.join(map(str, replaced))}; "
            "the parts of a replica are updated at the same time"
        )
    if layout.on_delete and world.changed:
        yield (
            f"the updateStrategy is OnDelete: pods of {', '.join(sorted(world.changed))} "
            "get the new template when you delete them"
        )
    surplus = sorted(index for index in {*world.cliques, *world.groups} if index >= layout.replicas)
    if surplus:
        yield f"{count(len(surplus))} of the set deleted: {', '.join(map(str, surplus))}"


def _parts(view: View, world: World, replica: SetReplica, now: datetime) -> Iterator[PlanView]:
    layout = world.layout
    turn = Turn(generation=layout.generation_hash, on_delete=layout.on_delete, selected=not layout.on_delete)
    for clique in layout.standalone:
        made = render.clique(layout, clique, replica.index, template_hash=world.hashes[clique.name])
        yield _clique(view, layout, clique, made, turn, now)
    for group in layout.groups:
        yield _group(view, layout, group, render.group(layout, group, replica.index), turn, now)


def _clique(
    view: View, layout: Layout, template: CliqueTemplate, made: Mapping[str, Any], turn: Turn, now: datetime
) -> PlanView:
    key = Key(layout.namespace, made["metadata"]["name"])
    world = observe_clique(view, key)
    if world is None:
        return _created(layout, template, key.name)
    obj = _as_rendered(world.object, made)
    known = replace(world, object=obj, clique=obj.decode(PodClique), layout=layout, turn=turn)
    return _planned(key.name, update_clique(known, now).step, now)


def _group(
    view: View, layout: Layout, template: ScalingGroupTemplate, made: Mapping[str, Any], turn: Turn, now: datetime
) -> PlanView:
    key = Key(layout.namespace, made["metadata"]["name"])
    world = observe_group(view, key)
    if world is None:
        return _created(layout, template, key.name)
    obj = _as_rendered(world.object, made)
    known = replace(world, object=obj, group=obj.decode(PodCliqueScalingGroup), layout=layout, turn=turn)
    return _planned(key.name, update_group(known, Termination(), now).step, now)


def _as_rendered(have: Object, made: Mapping[str, Any]) -> Object:
    """A part as the set would patch it."""
    wire = have.wire()
    for write in patched(have, render.without_replicas(dict(made))):
        assert isinstance(write, Patch)
        wire = merge.apply(wire, write.patch)
    return Object.of(have.resource, wire)


def _planned(name: str, step: Step, now: datetime) -> PlanView:
    fleet = step.fleet
    scaling = not fleet.old.live
    rollout = _kept(step.rollout) if scaling else step.rollout
    return part_view(name, Beginning.at(now, rollout, fleet), current=fleet.live, scaling_only=scaling)


def _kept(rollout: Rollout) -> Rollout:
    """A rollout that replaces nothing: its floor is minAvailable, and is not lowered."""
    limits = msgspec.structs.replace(rollout.limits, floor=rollout.limits.min_available, warnings=())
    return msgspec.structs.replace(rollout, limits=limits)


def _created(layout: Layout, template: CliqueTemplate | ScalingGroupTemplate, name: str) -> PlanView:
    bounds = layout.rolling_update(template)
    limits = limits_of(replicas(template), layout.minimum(template), bounds)
    rollout = _kept(rollout_of(limits, bounds, target="", replacing=False))
    return part_view(name, Beginning(rollout, Fleet()), current=0, scaling_only=True)
