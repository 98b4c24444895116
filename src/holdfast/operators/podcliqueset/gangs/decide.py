"""What the controller does for a PodGang next: which pods it lists, and which pods it lets the scheduler see.

A PodGang lists, for each of its PodCliques, its pods and how many of them are scheduled
together.  A pod has a scheduling gate until its PodGang lists it; a pod of a scaled
PodGang also until the base gang is scheduled.  This module must not know the scheduler.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any

import msgspec

from holdfast.client.objects import Object, Undecodable
from holdfast.client.protocols import PatchType
from holdfast.client.resources import PODS
from holdfast.kernel import conditions
from holdfast.kernel.conditions import Condition, Verdict
from holdfast.kinds.grove_scheduler import PodGangPhase, PodGangSpec
from holdfast.meta.objects import Key
from holdfast.operators.podcliqueset.cliques.render import GATE
from holdfast.operators.podcliqueset.gangs.observe import INITIALIZED, World
from holdfast.operators.podcliqueset.patching import patched
from holdfast.operators.podcliqueset.reasons import PodCliqueSetReason
from holdfast.operators.podcliqueset.resources import GANGS
from holdfast.runtime.decisions import Create, Decision, Delete, Patch, Write
from holdfast.runtime.status import prior_conditions, stored_status


def decide(world: World, now: datetime) -> Decision:
    obj, wanted = world.object, world.wanted
    if wanted is None:
        gone = () if obj is None else (_deletion(obj),)
        return Decision(writes=gone)
    groups = [group.wire() for group in world.groups]
    if obj is None:
        spec = {**wanted["spec"], "podgroups": groups}
        return Decision(
            writes=(Create(because="PodCliques belong to it", resource=GANGS, manifest={**wanted, "spec": spec}),)
        )
    have = _listed(obj)
    named = _named(have)
    if groups != have and _is_worth_naming(world, have, named):
        wanted = {**wanted, "spec": {**wanted["spec"], "podgroups": groups}}
    writes = (*patched(obj, wanted), *_gates(world, named))
    return Decision(writes=writes, status=_status(world, obj, named, now))


def _deletion(obj: Object) -> Delete:
    return Delete(because="no PodClique belongs to it", resource=GANGS, key=obj.key, uid=obj.uid)


def _is_worth_naming(world: World, have: list[Any], named: frozenset[str]) -> bool:
    """Whether to list the pods that exist.

    Not while a PodGang without a scheduled pod is still being created: its pods need not be listed one by one.
    And not when pods were only deleted: their replacements have to be listed anyway.
    """
    pods = [pod for group in world.groups for pod in group.pods]
    making = any(len(group.pods) < group.minimum for group in world.groups)
    if not any(pod.scheduled for pod in pods) and making:
        return False
    lost = any(len(group.pods) < group.replicas for group in world.groups)
    fresh = any(pod.name not in named for pod in pods)
    return fresh or not lost or len(have) != len(world.groups)


class _Gang(msgspec.Struct, frozen=True):
    spec: PodGangSpec


def _listed(obj: Object) -> list[Any]:
    """The groups that a PodGang lists; none where they cannot be read, so that they are written again."""
    try:
        obj.decode(_Gang)
    except Undecodable:
        return []
    groups: list[Any] = obj.wire()["spec"].get("podgroups") or []
    return groups


def _named(groups: Iterable[Mapping[str, Any]]) -> frozenset[str]:
    return frozenset(reference["name"] for group in groups for reference in group.get("podReferences") or ())


def _gates(world: World, named: frozenset[str]) -> Iterator[Write]:
    """Remove our gate, and no other, from the pods that the PodGang lists."""
    if world.base_lacks:
        return
    for group in world.groups:
        for pod in group.pods:
            if pod.gated and pod.name in named:
                yield Patch(
                    because="its PodGang lists it",
                    resource=PODS,
                    key=Key(pod.metadata.namespace, pod.name),
                    patch={"spec": {"schedulingGates": [{"$patch": "delete", "name": GATE}]}},
                    uid=pod.metadata.uid,
                    type=PatchType.STRATEGIC,
                )


def _status(world: World, obj: Object, named: frozenset[str], now: datetime) -> dict[str, Any]:
    """Our part of the status of a PodGang; the scheduler writes the rest."""
    before = stored_status(obj)
    old = prior_conditions(obj)
    merged = conditions.merge(
        old,
        {INITIALIZED: _initialized(world, named, conditions.find(old, INITIALIZED))},
        generation=obj.meta.generation,
        now=now,
        unnamed="keep",
    )
    # The scheduler writes this list too, so the order that it has is kept.
    order = [each.type for each in old]
    merged = tuple(sorted(merged, key=lambda each: order.index(each.type) if each.type in order else len(order)))
    return {"phase": PodGangPhase.PENDING.value, **before, "conditions": [each.to_wire() for each in merged]}


def _initialized(world: World, named: frozenset[str], before: Condition | None) -> Verdict:
    """Whether all pods exist and are listed; stays True while pods of a running PodGang are replaced."""
    pods = [pod for group in world.groups for pod in group.pods]
    missing = any(len(group.pods) < group.replicas for group in world.groups)
    running = before is not None and before.status is conditions.Status.TRUE and any(pod.scheduled for pod in pods)
    if not running and (missing or any(pod.name not in named for pod in pods)):
        return Verdict.false(PodCliqueSetReason.PODS_PENDING, "pods of the PodGang do not exist or are not listed yet")
    if world.base_lacks:
        return Verdict.true(PodCliqueSetReason.PODS_CREATED, f"all pods exist, and wait: {world.base_lacks}")
    return Verdict.true(PodCliqueSetReason.PODS_CREATED, "all pods exist")
