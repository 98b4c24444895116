"""PodGangs: which pods are placed together, and when they may be.

A PodGang names, for each of its PodCliques, how many pods must be placed together and
which pods there are.  A pod is held back by a gate of ours until its gang names it;
one of a scaled gang also until the base gang has its places.

The set makes a PodGang; what is in it is kept here, gang by gang, so that a pod that
comes or goes concerns its own gang alone.  This module must not know who places pods.
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
from holdfast.kernel.reasons import count
from holdfast.kinds.grove_scheduler import PodGangPhase
from holdfast.meta.objects import Key
from holdfast.operators.podcliqueset import labels, names
from holdfast.operators.podcliqueset.mandates import layout_of
from holdfast.operators.podcliqueset.parts import Clique
from holdfast.operators.podcliqueset.pod_render import GATE
from holdfast.operators.podcliqueset.pods import Pod
from holdfast.operators.podcliqueset.reasons import Why
from holdfast.operators.podcliqueset.reports import wire_conditions
from holdfast.operators.podcliqueset.resources import CLIQUES, GANGS
from holdfast.operators.podcliqueset.templates import Layout, minimum, replicas
from holdfast.runtime.controllers import View
from holdfast.runtime.decisions import Decision, Patch, Write

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
    object     the PodGang as it came
    groups     what should be in it
    base_lacks what the base gang of a scaled one still lacks, in words; empty where nothing is waited for
    """

    object: Object
    groups: tuple[Group, ...]
    base_lacks: str = ""


# --- observe


def observe(view: View, key: Key) -> World | None:
    obj = view.get(GANGS, key)
    if obj is None or obj.deleting:
        return None
    layout = layout_of(view, obj)
    if layout is None:
        return None
    base = obj.meta.labels.get(labels.BASE_GANG)
    return World(
        object=obj,
        groups=tuple(_groups(view, obj, layout)),
        base_lacks="" if base is None else _lacks(view, Key(key.namespace, base)),
    )


def _groups(view: View, obj: Object, layout: Layout) -> Iterator[Group]:
    """The groups that a gang should have, in the order of the template."""
    for name, least, begins_with in _expected(obj, layout):
        found = view.get(CLIQUES, Key(obj.meta.namespace, name))
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


def _expected(obj: Object, layout: Layout) -> Iterator[tuple[str, int, int]]:
    """The PodCliques of a gang, with how many pods must be and should be."""
    marks = obj.meta.labels
    index, place = labels.index(marks, labels.SET_INDEX), labels.index(marks, labels.GROUP_INDEX)
    if index is None:
        return
    if place is None:
        for clique in layout.standalone:
            yield names.clique(layout.name, index, clique.name), minimum(clique), replicas(clique)
    for group in layout.groups:
        group_name = names.group(layout.name, index, group.name)
        if place is None:
            places: Iterable[int] = range(minimum(group))
        else:
            places = (place,) if marks.get(labels.GROUP) == group_name else ()
        for each in places:
            for clique in layout.members(group):
                yield names.member(group_name, each, clique.name), minimum(clique), replicas(clique)


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
    wanted = [group.wire() for group in world.groups]
    have = (world.object.wire().get("spec") or {}).get("podgroups") or []
    writes: list[Write] = []
    if wanted != have and _is_worth_naming(world, have):
        patch = {"spec": {"podgroups": wanted}}
        writes.append(
            Patch(
                because="pods of the gang came or went",
                resource=GANGS,
                key=world.object.key,
                patch=patch,
                uid=world.object.uid,
            )
        )
    writes += _gates(world, _named(have))
    return Decision(writes=tuple(writes), status=_status(world, have, now))


def _is_worth_naming(world: World, have: list[Any]) -> bool:
    """Whether the gang could be placed, or parts of it are: before, its pods need not be named one by one."""
    complete = all(len(group.pods) >= group.minimum for group in world.groups)
    return complete or not have or any(pod.scheduled for group in world.groups for pod in group.pods)


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


def _status(world: World, have: list[Any], now: datetime) -> dict[str, Any]:
    """What is ours to say of a gang; a scheduler says the rest."""
    before: dict[str, Any] = world.object.wire().get("status") or {}
    old = tuple(map(Condition.from_wire, before.get("conditions") or ()))
    merged = conditions.merge(
        old,
        {INITIALIZED: _initialized(world, _named(have))},
        generation=world.object.meta.generation,
        now=now,
        unnamed="keep",
    )
    # Two write this list; whoever came first chose its order.
    order = [each.type for each in old]
    merged = tuple(sorted(merged, key=lambda each: order.index(each.type) if each.type in order else len(order)))
    return {"phase": PodGangPhase.PENDING.value, **before, "conditions": wire_conditions(merged)}


def _initialized(world: World, named: frozenset[str]) -> Verdict:
    missing = sum(max(group.replicas - len(group.pods), 0) for group in world.groups)
    unnamed = sum(pod.name not in named for group in world.groups for pod in group.pods)
    if missing or unnamed:
        return Verdict.false(Why.PODS_PENDING, f"{count(missing, 'pod')} to be made, {unnamed} to be named")
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
