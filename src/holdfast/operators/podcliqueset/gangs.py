"""PodGangs: which pods are placed together, and when they may be.

A PodGang names, for each of its PodCliques, how many pods must be placed together and
which pods there are.  A pod is held back by a gate of ours until its gang names it;
one of a scaled gang also until the base gang has its places.

A PodGang is there while PodCliques name it.  All that concerns it is decided here,
gang by gang, so that a pod that comes or goes concerns its own gang alone.  This module
must not know who places pods.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from holdfast.client.objects import Object
from holdfast.client.protocols import PatchType
from holdfast.client.resources import PODS
from holdfast.kernel import conditions
from holdfast.kernel.conditions import Condition, Verdict
from holdfast.kinds.grove.templates import ScalingGroupTemplate
from holdfast.kinds.grove_scheduler import PodGangPhase
from holdfast.meta.objects import Key, owner_reference
from holdfast.operators.podcliqueset import labels, names, render
from holdfast.operators.podcliqueset.keeping import patched
from holdfast.operators.podcliqueset.mandates import layout_of
from holdfast.operators.podcliqueset.parts import Clique
from holdfast.operators.podcliqueset.parts import Group as ScalingGroup
from holdfast.operators.podcliqueset.pod_render import GATE
from holdfast.operators.podcliqueset.pods import Pod
from holdfast.operators.podcliqueset.reasons import Why
from holdfast.operators.podcliqueset.reports import wire_conditions
from holdfast.operators.podcliqueset.resources import CLIQUES, GANGS, GROUPS, SETS
from holdfast.operators.podcliqueset.templates import Layout, minimum, replicas
from holdfast.runtime.controllers import View
from holdfast.runtime.decisions import Create, Decision, Delete, Patch, Write

INITIALIZED = "Initialized"


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """The pods of one PodClique in a gang.

    clique    its name
    minimum   how many are placed together or not at all
    replicas  how many there should be
    pods      those that there are
    """

    clique: str
    minimum: int
    replicas: int
    pods: tuple[Pod, ...] = ()

    def wire(self) -> dict[str, Any]:
        references = [{"namespace": pod.metadata.namespace, "name": pod.name} for pod in self.pods]
        return {"name": self.clique, "podReferences": references, "minReplicas": self.minimum}


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """
    object      the PodGang as it came, if there is one
    wanted      the PodGang as it should be, but for its pods; None if there should be none
    groups      what should be in it
    base_lacks  what the base gang of a scaled one still lacks, in words; empty where nothing is waited for
    """

    object: Object | None
    wanted: dict[str, Any] | None = None
    groups: tuple[Group, ...] = ()
    base_lacks: str = ""


# --- observe


def observe(view: View, key: Key) -> World | None:
    """The world of a PodGang, also of one that is yet to be made: PodCliques name it."""
    obj = view.get(GANGS, key)
    if obj is not None and obj.deleting:
        return None
    chosen = labels.selector({labels.GANG: key.name})
    named_by = next(
        (each for each in view.list(CLIQUES, namespace=key.namespace, labels=chosen) if not each.deleting), None
    )
    source = obj or named_by
    layout = None if source is None else layout_of(view, source)
    if source is None or layout is None:
        return None
    marks = source.meta.labels
    index = labels.index(marks, labels.SET_INDEX)
    if index is None or not (named_by is not None or _is_wanted(view, layout, marks, index)):
        return World(object=obj)
    place = labels.index(marks, labels.GROUP_INDEX) if labels.BASE_GANG in marks else None
    group = next(
        (each for each in layout.groups if names.group(layout.name, index, each.name) == marks.get(labels.GROUP)), None
    )
    if place is None or group is None:
        wanted, base = render.base_gang(layout, index), None
    else:
        wanted = render.scaled_gang(layout, group, index=index, group_index=place)
        base = Key(key.namespace, names.replica(layout.name, index))
    owner = view.get(SETS, Key(key.namespace, layout.name))
    assert owner is not None, "its layout was read from it"
    wanted["metadata"]["ownerReferences"] = [owner_reference(owner.wire())]
    return World(
        object=obj,
        wanted=wanted,
        groups=tuple(_groups(view, key.namespace, _expected(layout, index, group, place))),
        base_lacks="" if base is None else _lacks(view, base),
    )


def _is_wanted(view: View, layout: Layout, marks: Mapping[str, str], index: int) -> bool:
    """Whether a gang should be there though none of its PodCliques is, because they are being made anew."""
    if index >= layout.replicas:
        return False
    place, group = labels.index(marks, labels.GROUP_INDEX), marks.get(labels.GROUP)
    if labels.BASE_GANG not in marks or place is None or group is None:
        return True
    found = view.get(GROUPS, Key(layout.namespace, group))
    return found is not None and place < ScalingGroup.of(found).spec.replicas


def _groups(view: View, namespace: str, expected: Iterable[tuple[str, int, int]]) -> Iterator[Group]:
    """The groups that a gang should have, in the order of the template."""
    for name, least, begins_with in expected:
        found = view.get(CLIQUES, Key(namespace, name))
        if found is None or found.deleting:
            yield Group(clique=name, minimum=least, replicas=begins_with)
            continue
        clique = Clique.of(found)
        pods = sorted((Pod.of(pod) for pod in view.owned(PODS, found.uid)), key=lambda pod: pod.name)
        yield Group(
            clique=name,
            minimum=min(clique.spec.min_available, clique.spec.replicas),
            replicas=clique.spec.replicas,
            pods=tuple(pod for pod in pods if pod.active),
        )


def _expected(
    layout: Layout, index: int, group: ScalingGroupTemplate | None, place: int | None
) -> Iterator[tuple[str, int, int]]:
    """The PodCliques of a gang, with how many pods must be and should be: of the base gang, or of one replica."""
    if place is None:
        for clique in layout.standalone:
            yield names.clique(layout.name, index, clique.name), minimum(clique), replicas(clique)
    for each in layout.groups if place is None else filter(None, (group,)):
        group_name = names.group(layout.name, index, each.name)
        for one in range(minimum(each)) if place is None else (place,):
            for clique in layout.members(each):
                yield names.member(group_name, one, clique.name), minimum(clique), replicas(clique)


def _lacks(view: View, base: Key) -> str:
    """The groups of a base gang that have too few pods on nodes."""
    chosen = labels.selector({labels.GANG: base.name})
    cliques = [Clique.of(each) for each in view.list(CLIQUES, namespace=base.namespace, labels=chosen)]
    lacking = [
        clique.name
        for clique in cliques
        if (clique.status.scheduled_replicas or 0) < min(clique.spec.min_available, clique.spec.replicas)
    ]
    if not cliques:
        return f"PodGang {base.name} has no PodCliques yet"
    return f"PodGang {base.name} has no place yet for {', '.join(lacking[:3])}" if lacking else ""


# --- decide


def decide(world: World, now: datetime) -> Decision:
    obj, wanted = world.object, world.wanted
    if wanted is None:
        gone = () if obj is None else (_deletion(obj),)
        return Decision(writes=gone)
    groups = [group.wire() for group in world.groups]
    if obj is None:
        spec = {**wanted["spec"], "podgroups": groups}
        return Decision(
            writes=(Create(because="PodCliques name it", resource=GANGS, manifest={**wanted, "spec": spec}),)
        )
    have = (obj.wire().get("spec") or {}).get("podgroups") or []
    named = _named(have)
    if groups != have and _is_worth_naming(world, have, named):
        wanted = {**wanted, "spec": {**wanted["spec"], "podgroups": groups}}
    writes = (*patched(obj, wanted), *_gates(world, named))
    return Decision(writes=writes, status=_status(world, obj, named, now))


def _deletion(obj: Object) -> Delete:
    return Delete(because="it has no PodCliques any more", resource=GANGS, key=obj.key, uid=obj.uid)


def _is_worth_naming(world: World, have: list[Any], named: frozenset[str]) -> bool:
    """Whether to write down which pods there are.

    Not while a gang of which nothing is placed is still being made: its pods need not be named one by one.
    And not when pods only went: what replaces them will have to be named anyway.
    """
    pods = [pod for group in world.groups for pod in group.pods]
    making = any(len(group.pods) < group.minimum for group in world.groups)
    if not any(pod.scheduled for pod in pods) and making:
        return False
    lost = any(len(group.pods) < group.replicas for group in world.groups)
    fresh = any(pod.name not in named for pod in pods)
    return fresh or not lost or len(have) != len(world.groups)


def _named(groups: Iterable[Mapping[str, Any]]) -> frozenset[str]:
    return frozenset(reference["name"] for group in groups for reference in group.get("podReferences") or ())


def _gates(world: World, named: frozenset[str]) -> Iterator[Write]:
    """Let go those that the gang names; only our own gate is taken away."""
    if world.base_lacks:
        return
    for group in world.groups:
        for pod in group.pods:
            if pod.gated and pod.name in named:
                yield Patch(
                    because="its gang names it",
                    resource=PODS,
                    key=Key(pod.metadata.namespace, pod.name),
                    patch={"spec": {"schedulingGates": [{"$patch": "delete", "name": GATE}]}},
                    uid=pod.metadata.uid,
                    type=PatchType.STRATEGIC,
                )


def _status(world: World, obj: Object, named: frozenset[str], now: datetime) -> dict[str, Any]:
    """What is ours to say of a gang; a scheduler says the rest."""
    before: dict[str, Any] = obj.wire().get("status") or {}
    old = tuple(map(Condition.from_wire, before.get("conditions") or ()))
    merged = conditions.merge(
        old,
        {INITIALIZED: _initialized(world, named, conditions.find(old, INITIALIZED))},
        generation=obj.meta.generation,
        now=now,
        unnamed="keep",
    )
    # Two write this list; whoever came first chose its order.
    order = [each.type for each in old]
    merged = tuple(sorted(merged, key=lambda each: order.index(each.type) if each.type in order else len(order)))
    return {"phase": PodGangPhase.PENDING.value, **before, "conditions": wire_conditions(merged)}


def _initialized(world: World, named: frozenset[str], before: Condition | None) -> Verdict:
    """Whether all pods were made and named.  One that is replaced while others run is no new beginning."""
    pods = [pod for group in world.groups for pod in group.pods]
    missing = any(len(group.pods) < group.replicas for group in world.groups)
    running = before is not None and before.status is conditions.Status.TRUE and any(pod.scheduled for pod in pods)
    if not running and (missing or any(pod.name not in named for pod in pods)):
        return Verdict.false(Why.PODS_PENDING, "pods of the gang are still to be made, or to be named")
    if world.base_lacks:
        return Verdict.true(Why.PODS_CREATED, f"all pods exist; they wait: {world.base_lacks}")
    return Verdict.true(Why.PODS_CREATED, "all pods exist")


# --- whose world changes when something else does


def of_pod(pod: Object, view: View) -> Iterable[Key]:
    gang = pod.meta.labels.get(labels.GANG)
    return (Key(pod.meta.namespace, gang),) if gang else ()


def of_clique(clique: Object, view: View) -> Iterable[Key]:
    """The gang of a PodClique, and the scaled gangs that wait for it."""
    gang = clique.meta.labels.get(labels.GANG)
    if not gang:
        return ()
    chosen = labels.selector({labels.BASE_GANG: gang})
    waiting = view.list(GANGS, namespace=clique.meta.namespace, labels=chosen)
    return (Key(clique.meta.namespace, gang), *(each.key for each in waiting))
