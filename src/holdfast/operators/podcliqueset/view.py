"""How the rollout of a PodCliqueSet is shown: its state, and its replicas with their parts and pods as a tree.

Pure.  It reads the world with the operator's own `observe`, so that available and updated
mean the same in both.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Final

import msgspec

from holdfast.client.objects import Object
from holdfast.client.resources import PODS
from holdfast.kernel.reasons import Code, count
from holdfast.kinds.grove.components import RollingUpdate
from holdfast.kinds.grove.progress import currently_updating_replica, is_rolling_update_in_progress, update_progress
from holdfast.kinds.grove.sets import PodCliqueSet, PodCliqueSetStatus
from holdfast.kinds.grove.templates import CliqueTemplate, ScalingGroupTemplate
from holdfast.kinds.model import FloorStatus
from holdfast.meta import durations, times
from holdfast.meta.objects import Key
from holdfast.operators.podcliqueset import labels, names
from holdfast.operators.podcliqueset.groups.observe import observe as observe_group
from holdfast.operators.podcliqueset.part_status import Clique, Group
from holdfast.operators.podcliqueset.reasons import PodCliqueSetReason
from holdfast.operators.podcliqueset.resources import CLIQUES
from holdfast.operators.podcliqueset.sets.observe import SetReplica
from holdfast.operators.podcliqueset.sets.observe import observe as observe_set
from holdfast.operators.podcliqueset.sets.status import BLOCKED, PROGRESSING, TOPOLOGY
from holdfast.operators.podcliqueset.status import READY, UPDATE
from holdfast.operators.podcliqueset.templates import Layout, replicas
from holdfast.operators.rollouts import (
    Demo,
    Headline,
    Observed,
    Wire,
    generation_seen,
    is_current,
    is_true,
    left_alone,
    message_of,
    status_of,
    with_version,
)
from holdfast.runtime.controllers import PAUSED, View
from holdfast.views.rollouts import (
    Because,
    Floor,
    RolloutState,
    Standing,
    condition,
    floor_warnings,
    holds,
    moment,
    said,
)
from holdfast.views.trees import NEW, OLD, Branch, Pod, Tree, leaves

_FOR_GOOD: Final = frozenset(
    {PodCliqueSetReason.INVALID.value, Code.NO_DISRUPTION_BUDGET.value, "ChildConflict", "Invalid"}
)
"""Reasons of `Blocked` that need a change by the user; others end by themselves, as when a node has room again."""

_PAUSED: Final = Because(
    Code.PAUSED.value,
    f"it is paused by the annotation {PAUSED}: the update of the current replica is finished, and no other begins",
)
_PHASES: Final = {PodCliqueSetReason.CREATING.value: "Creating", PodCliqueSetReason.DEGRADED.value: "Degraded"}


@dataclass(frozen=True, slots=True)
class Gangs:
    """A set, and the replicas that should exist."""

    set: PodCliqueSet
    layout: Layout
    replicas: tuple[SetReplica, ...]

    @classmethod
    def of(cls, observed: Observed) -> Gangs:
        world = observe_set(observed.view, observed.object.key)
        decoded = observed.object.decode(PodCliqueSet)
        return cls(decoded, Layout(decoded), () if world is None else world.replicas)

    @property
    def status(self) -> PodCliqueSetStatus:
        return self.set.status or PodCliqueSetStatus()

    @property
    def updating(self) -> int | None:
        """The index of the replica that is being updated."""
        return currently_updating_replica(self.set)


def fresh(obj: Object) -> bool:
    status = obj.decode(PodCliqueSet).status
    return generation_seen(obj, None if status is None else status.observed_generation)


# --- its state


def standing(observed: Observed) -> Standing:
    gangs = Gangs.of(observed)
    status, progress = gangs.status, gangs.status.rolling_update_progress
    updated, _ = update_progress(gangs.set)
    topology = condition(status, TOPOLOGY)
    made = Standing(
        name=gangs.layout.name,
        strategy="OnDelete" if gangs.layout.on_delete else "RollingRecreate",
        state=_state(gangs) if fresh(observed.object) else RolloutState.UNSEEN,
        phase=_phase(gangs),
        because=_because(status),
        desired=gangs.layout.replicas,
        ready=status.available_replicas or 0,
        available=status.available_replicas or 0,
        updated=updated,
        floors=tuple(_floors(gangs)),
        target=status.current_generation_hash or "",
        started=None if progress is None else moment(progress.update_started_at),
        ended=None if progress is None else moment(progress.update_ended_at),
        progressed=_progressed(gangs),
        due=_due(gangs),
        warnings=(*floor_warnings(status), *((topology.message or "",) if topology is not None else ())),
        facts=tuple(_facts(gangs)),
        more=_more(gangs),
    )
    held = left_alone(observed.object, made, because=_PAUSED)
    return msgspec.structs.replace(held, verb="resume") if held.because is _PAUSED else held


def _state(gangs: Gangs) -> RolloutState:
    status, blocked = gangs.status, holds(gangs.status, BLOCKED)
    if blocked is not None and blocked.reason == Code.PROGRESS_DEADLINE_EXCEEDED.value:
        return RolloutState.FAILED
    if blocked is not None and blocked.reason in _FOR_GOOD:
        return RolloutState.BLOCKED
    if is_rolling_update_in_progress(gangs.set):
        return RolloutState.UNDER_WAY
    if said(condition(status, UPDATE)).code == PodCliqueSetReason.OUTDATED.value:
        return RolloutState.WAITING
    whole = status.available_replicas == status.updated_replicas == gangs.layout.replicas
    return RolloutState.COMPLETED if whole and holds(status, READY) else RolloutState.UNDER_WAY


def _phase(gangs: Gangs) -> str:
    if holds(gangs.status, BLOCKED):
        return "Blocked"
    if is_rolling_update_in_progress(gangs.set):
        return "Updating"
    return _PHASES.get(said(condition(gangs.status, PROGRESSING)).code, "Ready")


def _because(status: PodCliqueSetStatus) -> Because:
    """The first of its conditions that is True."""
    for type in (BLOCKED, UPDATE, PROGRESSING):
        if (found := holds(status, type)) is not None:
            return said(found)
    outdated = said(condition(status, UPDATE))
    return outdated if outdated.code == PodCliqueSetReason.OUTDATED.value else said(condition(status, READY))


def _floors(gangs: Gangs) -> Iterator[Floor]:
    """The floor of each part, those of the replica that is being updated first."""
    for each in sorted(gangs.replicas, key=lambda replica: replica.index != gangs.updating):
        for part in each.parts:
            ready = part.status.ready_replicas if isinstance(part, Clique) else part.status.available_replicas
            required = min(part.spec.min_available, part.spec.replicas)
            floor = part.status.floor or FloorStatus(required=required, available=ready)
            yield Floor.reported(floor, desired=part.spec.replicas, name=part.name)


def _progressed(gangs: Gangs) -> datetime | None:
    """When a part that is being updated last made progress."""
    progress = (part.status.update_progress for replica in gangs.replicas for part in replica.parts)
    moments = (
        times.parse(each.last_progress_at)
        for each in progress
        if each is not None and each.update_ended_at is None and each.last_progress_at
    )
    return max(moments, default=None)


def _due(gangs: Gangs) -> datetime | None:
    """When the progress deadline of the first part that is being updated passes."""
    parts = (part for replica in gangs.replicas for part in replica.parts)
    moments = (
        times.parse(progress.last_progress_at) + durations.parse(bounds.progress_deadline)
        for part in parts
        if (progress := part.status.update_progress) is not None
        and progress.update_ended_at is None
        and progress.last_progress_at
        and (bounds := _bounds(gangs.layout, part.metadata.labels.get(labels.TEMPLATE, ""))) is not None
        and bounds.progress_deadline
    )
    return min(moments, default=None)


def _bounds(layout: Layout, template: str) -> RollingUpdate | None:
    """The bounds of an update of a clique or a scaling group, where the user set any."""
    found = layout.by_name.get(template) or layout.group(template)
    return None if found is None else layout.rolling_update(found)


def _facts(gangs: Gangs) -> Iterator[str]:
    if is_rolling_update_in_progress(gangs.set):
        updated, total = update_progress(gangs.set)
        yield f"{updated:,} of {count(total)} updated"
        yield (
            "the next replica is being selected"
            if gangs.updating is None
            else f"replica {gangs.updating} is being updated"
        )


def _more(gangs: Gangs) -> dict[str, Any]:
    updated, total = update_progress(gangs.set)
    progress = gangs.status.rolling_update_progress
    return {
        "rollingUpdateInProgress": is_rolling_update_in_progress(gangs.set),
        "currentlyUpdatingReplica": gangs.updating,
        "updateProgress": {"updated": updated, "total": total},
        "updatedPodCliques": [] if progress is None else list(progress.updated_pod_cliques),
        "updatedPodCliqueScalingGroups": [] if progress is None else list(progress.updated_pod_clique_scaling_groups),
    }


# --- the tree


Place = tuple[str, int | None]
"""A part of a replica: a standalone clique, or a scaling group and the index of its replica."""


@dataclass(frozen=True, slots=True)
class Replica:
    """One replica of a set, with its pods.

    wanted  the template hashes that its pods should have, by clique
    pods    those that exist, by part
    """

    gangs: Gangs
    index: int
    replica: SetReplica | None
    wanted: Mapping[str, str]
    pods: Mapping[Place, Sequence[Pod]]
    now: datetime

    @property
    def updating(self) -> bool:
        return self.index == self.gangs.updating

    def branch(self) -> Branch:
        if self.replica is None:
            return Branch(name=f"replica {self.index}", index=OLD, marks=("leaving",), children=tuple(self._parts()))
        there = self.replica
        return Branch(
            name=f"replica {self.index}",
            index=NEW if there.current else OLD,
            marks=("updating",) if self.updating else (),
            note="available" if there.available else "not available",
            why="" if there.available else f"it lacks {'; '.join(there.lacking)}",
            urgent=self.updating or not there.available,
            children=tuple(self._parts()),
        )

    def _parts(self) -> Iterator[Branch]:
        layout = self.gangs.layout
        for clique in layout.standalone:
            yield self._clique(clique)
        for group in layout.groups:
            indices = {number for name, number in self.pods if name == group.name and number is not None}
            for number in sorted(indices | set(range(self._group_replicas(group)))):
                yield self._group_replica(group, number)

    def _group_replicas(self, template: ScalingGroupTemplate) -> int:
        if self.replica is None:
            return 0
        group = self.replica.groups.get(template.name)
        return replicas(template) if group is None else group.spec.replicas

    def _clique(self, template: CliqueTemplate) -> Branch:
        found = None if self.replica is None else self.replica.cliques.get(template.name)
        doing = None if found is None else found.doing
        made = self._grown((template.name, None), (template,), names.clique(*self._named, template.name))
        floor = "" if found is None else f"floor {found.spec.min_available}"
        return replace(made, note=floor, **_marked(doing is not None, "" if doing is None else doing.message or ""))

    def _group_replica(self, template: ScalingGroupTemplate, number: int) -> Branch:
        found = None if self.replica is None else self.replica.groups.get(template.name)
        doing = None if found is None else found.doing
        members = self.gangs.layout.members(template)
        made = self._grown((template.name, number), members, f"{names.group(*self._named, template.name)}-{number}")
        if doing is None or number != (_selected(found) or 0):
            return made
        return replace(made, **_marked(_selected(found) is not None, doing.message or ""))

    @property
    def _named(self) -> tuple[str, int]:
        return self.gangs.layout.name, self.index

    def _grown(self, place: Place, templates: Sequence[CliqueTemplate], name: str) -> Branch:
        """A part with its pods, of one or more cliques."""
        pods = self.pods.get(place, ())
        title, number = place
        bounds = _bounds(self.gangs.layout, title)
        children = leaves(
            pods,
            index=lambda pod: NEW if self._is_new(pod) else OLD,
            now=self.now,
            min_ready=timedelta(seconds=(bounds.min_ready_seconds or 0) if bounds is not None else 0),
        )
        return Branch(
            name=title if number is None else f"{title} {number}",
            index=NEW if all(map(self._is_new, pods)) else OLD,
            images=_images(templates, [pod for pod in pods if not self._is_new(pod)]),
            prefix=f"{name}-",
            children=children,
        )

    def _is_new(self, pod: Pod) -> bool:
        marks = pod.metadata.labels
        return marks.get(labels.TEMPLATE_HASH) == self.wanted.get(marks.get(labels.TEMPLATE, ""))


def _marked(updating: bool, why: str) -> dict[str, Any]:
    return {"marks": ("updating",) if updating else (), "why": why, "urgent": updating}


def _selected(group: Group | None) -> int | None:
    """The replica of a scaling group that the update stopped last."""
    progress = None if group is None else group.status.update_progress
    chosen = None if progress is None else progress.ready_replica_indices_selected_to_update
    return None if chosen is None else chosen.current


def _images(templates: Sequence[CliqueTemplate], old: Sequence[Pod]) -> tuple[str, ...]:
    """The image of a part; where it changes, the first that does, with the image before."""
    for template in templates:
        wanted = [str(each.get("image", "")) for each in template.spec.pod_spec.get("containers") or ()]
        before = next((pod for pod in old if pod.metadata.labels.get(labels.TEMPLATE) == template.name), None)
        pairs = zip(before.images if before is not None else (), wanted, strict=False)
        changed = next(((one, other) for one, other in pairs if one != other), None)
        if changed is not None:
            return changed
        if len(templates) == 1:
            return tuple(wanted[:1])
    return ()


def tree(observed: Observed, now: datetime) -> Tree:
    """Replicas in the order of their indices, each with its parts and their pods."""
    gangs = Gangs.of(observed)
    layout = gangs.layout
    grouped: dict[int, dict[Place, list[Pod]]] = {}
    chosen = labels.selector(labels.of_set(layout.name))
    for each in observed.view.list(PODS, namespace=observed.object.key.namespace, labels=chosen):
        marks = each.meta.labels
        index, template = labels.index(marks, labels.SET_INDEX), marks.get(labels.TEMPLATE, "")
        if index is None:
            continue
        group = layout.group_of.get(template)
        place = (template, None) if group is None else (group.name, labels.index(marks, labels.GROUP_INDEX))
        grouped.setdefault(index, {}).setdefault(place, []).append(each.decode(Pod))
    known = {replica.index: replica for replica in gangs.replicas}
    branches = tuple(
        Replica(
            gangs, index, known.get(index), _wanted(observed, known.get(index)), grouped.get(index, {}), now
        ).branch()
        for index in sorted(known.keys() | grouped.keys())
    )
    return Tree(standing=_focused(standing(observed), gangs), branches=branches, now=now, size=_size(gangs))


def _focused(standing: Standing, gangs: Gangs) -> Standing:
    """With what the first part waits for as the reason; the reasons of the others are beside them in the tree."""
    current = next((replica for replica in gangs.replicas if replica.index == gangs.updating), None)
    doing = None if current is None else next((part for part in current.parts if part.doing is not None), None)
    if doing is None or standing.because.code != PodCliqueSetReason.ROLLING.value:
        return standing
    because = said(doing.doing)
    named = Because(because.code, f"{doing.name}: {because.message}")
    return msgspec.structs.replace(standing, because=named)


def _wanted(observed: Observed, replica: SetReplica | None) -> dict[str, str]:
    """The template hashes that the pods of a replica should have."""
    if replica is None:
        return {}
    found = dict(replica.hashes)
    for group in replica.groups.values():
        world = observe_group(observed.view, Key(observed.object.key.namespace, group.name))
        found |= {} if world is None else world.hashes
    return found


def _size(gangs: Gangs) -> int:
    """How many pods should exist."""
    layout, total = gangs.layout, 0
    for replica in gangs.replicas:
        for clique in layout.standalone:
            known = replica.cliques.get(clique.name)
            total += replicas(clique) if known is None else known.spec.replicas
        for group in layout.groups:
            there = replica.groups.get(group.name)
            number = replicas(group) if there is None else there.spec.replicas
            total += number * sum(map(replicas, layout.members(group)))
    return total


# --- in one line, and in the demo


def headline(wire: Wire) -> Headline:
    status, replicas = status_of(wire), wire["spec"].get("replicas", 0)
    whole = status.get("availableReplicas") == status.get("updatedReplicas") == replicas
    at_rest = is_current(wire) and whole and not is_true(wire, UPDATE)
    for type, phase in ((BLOCKED, "Blocked"), (UPDATE, "Updating"), (PROGRESSING, "Progressing")):
        if is_true(wire, type):
            return Headline(phase, message_of(wire, type), at_rest)
    return Headline("Ready" if is_true(wire, READY) else "New", message_of(wire, READY), at_rest)


def _pod_group(name: str, marks: Mapping[str, str]) -> str | None:
    return f"clique {marks[labels.CLIQUE]}" if marks.get(labels.PART_OF) == name and labels.CLIQUE in marks else None


def _clique_floors(wire: Wire, view: View) -> dict[str, tuple[int, int]]:
    metadata = wire["metadata"]
    ours = labels.selector(labels.of_set(metadata["name"]))
    cliques = view.list(CLIQUES, namespace=metadata["namespace"], labels=ours)
    specs = {each.key.name: each.wire()["spec"] for each in cliques}
    return {f"clique {name}": (spec.get("minAvailable", 0), spec["replicas"]) for name, spec in specs.items()}


def _change(manifest: Wire, version: str) -> Wire:
    cliques = [_clique_change(clique, version) for clique in manifest["spec"]["template"]["cliques"]]
    return {"spec": {"template": {"cliques": cliques}}}


def _clique_change(clique: Wire, version: str) -> Wire:
    spec = clique["spec"]
    containers = [{**each, "image": with_version(each["image"], version)} for each in spec["podSpec"]["containers"]]
    return {**clique, "spec": {**spec, "podSpec": {**spec["podSpec"], "containers": containers}}}


DEMO: Final = Demo(group=_pod_group, floors=_clique_floors, change=_change)
