"""The summary below `holdfast up` counts what is in the stores, as it changes."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.cli.local.cluster.summary import followed, on_screen
from holdfast.cli.operator.selection import operators
from holdfast.client.resources import NODES, PODS, Resource
from holdfast.kinds.cloudless import KINDS
from holdfast.meta.objects import Key
from holdfast.operators.shown import ShownKind
from holdfast.testing.clusters import Cluster, play
from holdfast.views.summaries import Board

WORKLOADS = Resource.of(KINDS[0])
NOW = "2030-01-01T00:00:00Z"
POD = {"spec": {"containers": [{"name": "c", "image": "i"}]}}


def pod(name: str) -> dict[str, Any]:
    return {"metadata": {"name": name}, **POD}


@pytest.mark.parametrize("kept", [True, False], ids=["followed", "let go"])
def test_nodes_pods_and_workloads_are_counted_as_they_come_change_and_go(kept: bool) -> None:
    async def story(cluster: Cluster) -> None:
        board, changes = Board(), []
        kinds = [kind for each in operators() for kind in each.shown_kinds() if kind.resource == WORKLOADS]
        for resource in (NODES, PODS, WORKLOADS):
            cluster.manager.caches.require(resource)
        for name in ("a", "b", "c"):
            await cluster.create(PODS, pod(name))
        stops = followed(cluster.manager.caches, board, kinds, lambda: changes.append(1))
        await cluster.settle()
        assert board.summary().lines() == ("nodes 0/0 ready · pods 0/3 ready",)
        if not kept:
            for stop in stops:
                stop()
        changes.clear()
        await cluster.report("a")
        await cluster.report("b", ready=False, phase="Succeeded")
        await cluster.delete(PODS, "c", grace_seconds=0)
        await cluster.create(NODES, {"metadata": {"name": "n"}})
        spec = {"image": "shop:1", "replicas": 1}
        await cluster.create(WORKLOADS, {"metadata": {"name": "shop"}, "spec": spec})
        await cluster.settle()
        assert bool(changes) == kept
        assert board.summary().lines() == (
            (
                "nodes 0/1 ready · pods 1/1 ready · objects 0/1 ready",
                "  workload/default/shop  New: it has no status yet; is its operator running?",
            )
            if kept
            else ("nodes 0/0 ready · pods 0/3 ready",)
        )

    play(story, kinds=KINDS)


def test_every_object_in_trouble_is_counted_also_one_that_another_made() -> None:
    async def story(cluster: Cluster) -> None:
        board = Board()
        for resource in (NODES, PODS, WORKLOADS):
            cluster.manager.caches.require(resource)
        followed(cluster.manager.caches, board, [ShownKind(resource=WORKLOADS)], lambda: None)
        owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": "c", "uid": "1", "controller": True}
        for name, owners in (("alone", []), ("made", [owner]), ("quiet", [owner])):
            meta = {"name": name, "ownerReferences": owners}
            await cluster.create(WORKLOADS, {"metadata": meta, "spec": {"image": "shop:1", "replicas": 1}})
        blocked = {
            "type": "Blocked",
            "status": "True",
            "reason": "No",
            "message": "it waits",
            "lastTransitionTime": NOW,
        }
        for name in ("alone", "made"):
            patch = {"status": {"phase": "Failed", "conditions": [blocked]}}
            await cluster.client.patch(WORKLOADS, Key("default", name), patch, subresource="status")
        await cluster.settle()
        first, *rows = board.summary().lines()
        assert first.endswith(" · objects 0/2 ready · 2 in trouble")
        assert [row.split()[:2] for row in rows] == [["!", "workload/default/alone"], ["!", "workload/default/made"]]

    play(story, kinds=KINDS)


def test_a_summary_is_folded_and_cut_where_the_terminal_has_too_few_lines() -> None:
    lines = ("nodes 1/1 ready", "! workload/default/shop  Blocked: no room for a replica")
    assert on_screen(lines, width=40, height=24) == (
        "nodes 1/1 ready",
        "! workload/default/shop  Blocked: no",
        "    room for a replica",
    )
    assert on_screen(lines, width=40, height=3) == ("nodes 1/1 ready", "! workload/default/shop  Blocked: no r…")
    assert len(on_screen(lines, width=1, height=1)) == 1
