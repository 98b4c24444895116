"""Worlds of PodCliques, scaling groups and sets for pure tests: objects as a server has them, and what is decided."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from tests.operators.podcliqueset.gangsets import CLIQUES, GANGS, GROUPS, SETS, clique, group, pcs

from holdfast.client.resources import BUDGETS, PODS, Resource
from holdfast.meta import times
from holdfast.meta.objects import Key, owner_reference
from holdfast.operators.podcliqueset import labels, render
from holdfast.operators.podcliqueset.cliques.decide import decide as decide_clique
from holdfast.operators.podcliqueset.cliques.observe import ORPHANS, OTHERS_BUDGETS
from holdfast.operators.podcliqueset.cliques.observe import observe as observe_clique
from holdfast.operators.podcliqueset.groups.observe import World as GroupWorld
from holdfast.operators.podcliqueset.groups.observe import observe as observe_group
from holdfast.operators.podcliqueset.sets.observe import observe as observe_set
from holdfast.operators.podcliqueset.templates import Layout
from holdfast.runtime.decisions import Create, Decision, Delete, Evict, Patch
from holdfast.testing.snapshots import Snapshot

__all__ = ["CLIQUES", "GANGS", "GROUPS", "SETS", "clique", "group", "pcs"]

NOW = datetime(2030, 1, 1, 12, tzinfo=UTC)
OLD, NEW = "old", "new"
"""Generations."""


def at(minutes: float) -> str:
    """A moment so many minutes ago."""
    return times.format(NOW - timedelta(minutes=minutes))


def stored(
    resource: Resource, manifest: Mapping[str, Any], *, owner: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """An object as a server has it."""
    name = manifest["metadata"]["name"]
    metadata = {
        "namespace": "default",
        "uid": f"uid-{resource.plural}-{name}",
        "resourceVersion": "7",
        "generation": 1,
        "creationTimestamp": at(60),
        **manifest["metadata"],
    }
    if owner is not None:
        metadata["ownerReferences"] = [owner_reference(owner)]
    return {"apiVersion": resource.api_version, "kind": resource.kind, **manifest, "metadata": metadata}


def the_set(
    manifest: Mapping[str, Any], *, turn: int | None = None, generation: str = "", **status: Any
) -> dict[str, Any]:
    """A set, with the replica whose turn it is if there is one."""
    made = stored(SETS, manifest)
    known = generation or layout_of(made).generation_hash
    made["status"] = {"currentGenerationHash": known, **status}
    if turn is not None:
        current = {"replicaIndex": turn, "updateStartedAt": at(1)}
        made["status"]["rollingUpdateProgress"] = {"updateStartedAt": at(2), "currentlyUpdating": current}
    return made


def layout_of(made: Mapping[str, Any]) -> Layout:
    found = observe_set(Snapshot([(SETS, made)]), Key.of(made))
    assert found is not None
    return found.layout


def pod(
    name: str,
    owner: Mapping[str, Any],
    *,
    index: int = 0,
    outdated: bool = False,
    ready: bool = True,
    node: str = "n1",
    created: float = 30,
    crashed: bool = False,
    started: bool = True,
    phase: str = "",
    unschedulable: bool = False,
    **metadata: Any,
) -> dict[str, Any]:
    """A pod of a PodClique: ready on a node, unless it says otherwise."""
    marks = dict(owner["metadata"]["labels"]) | {labels.CLIQUE: owner["metadata"]["name"], labels.POD_INDEX: str(index)}
    if outdated:
        marks[labels.TEMPLATE_HASH] = "outdated"
    conditions = []
    if ready:
        conditions.append({"type": "Ready", "status": "True", "lastTransitionTime": at(created)})
    if unschedulable:
        conditions.append({"type": "PodScheduled", "status": "False", "reason": "Unschedulable"})
    container: dict[str, Any] = {"name": "main", "started": started}
    if crashed:
        container["lastState"] = {"terminated": {"exitCode": 1}}
    made = stored(PODS, {"metadata": {"name": name, "labels": marks, "creationTimestamp": at(created)}}, owner=owner)
    made["metadata"] |= metadata
    made["spec"] = {"nodeName": node} if node else {}
    made["status"] = {"phase": phase or ("Running" if node else "Pending"), "conditions": conditions}
    if node:
        made["status"]["containerStatuses"] = [container]
    return made


def the_clique(
    made: Mapping[str, Any],
    name: str = "a",
    *,
    index: int = 0,
    replicas: int | None = None,
    status: Mapping[str, Any] | None = None,
    template_hash: str = "",
) -> dict[str, Any]:
    """A standalone PodClique of a set."""
    layout = layout_of(made)
    world = observe_set(Snapshot([(SETS, made)]), Key.of(made))
    assert world is not None
    wanted = template_hash or world.hashes[name]
    wire = stored(CLIQUES, render.clique(layout, layout.by_name[name], index, template_hash=wanted), owner=made)
    if replicas is not None:
        wire["spec"]["replicas"] = replicas
    return wire | {"status": dict(status or {})}


def decided(
    made: Mapping[str, Any],
    part: Mapping[str, Any],
    pods: Iterable[Mapping[str, Any]] = (),
    more: Iterable[tuple[Resource, Mapping[str, Any]]] = (),
) -> Decision:
    """What is decided for a PodClique with these pods, and more objects around it."""
    view = Snapshot(
        [(SETS, made), (CLIQUES, part), *((PODS, pod) for pod in pods), *more], indexes=(OTHERS_BUDGETS, ORPHANS)
    )
    world = observe_clique(view, Key.of(part))
    assert world is not None
    return decide_clique(world, NOW, image="holdfast:test")


def creations(decision: Decision) -> list[Mapping[str, Any]]:
    """The pods that are created."""
    return [write.manifest for write in decision.writes if isinstance(write, Create) and write.resource == PODS]


def created(decision: Decision) -> int:
    return len(creations(decision))


def deleted(decision: Decision) -> list[str]:
    """The pods, or PodCliques, that are deleted."""
    return [write.key.name for write in decision.writes if isinstance(write, Delete) and write.resource != BUDGETS]


def evicted(decision: Decision) -> list[str]:
    return [write.key.name for write in decision.writes if isinstance(write, Evict)]


def touched(decision: Decision) -> bool:
    """Whether a pod is created, deleted or evicted."""
    return bool(created(decision) or deleted(decision) or evicted(decision))


def budget_writes(decision: Decision) -> list[Create | Patch | Delete]:
    """What is written about disruption budgets."""
    return [
        write for write in decision.writes if isinstance(write, Create | Patch | Delete) and write.resource == BUDGETS
    ]


def group_world(view: Snapshot, name: str) -> GroupWorld:
    world = observe_group(view, Key("default", name))
    assert world is not None
    return world
