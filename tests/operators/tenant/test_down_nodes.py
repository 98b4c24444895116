"""Servers on nodes that are down: taken away by force only where the machine is known to be off."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest
from tests.operators.tenant.stories import play_story, pool, reaches, servers, tenant

from holdfast.client.resources import CONFIG_MAPS, EVENTS, NODES
from holdfast.cluster.simulation import chaos
from holdfast.kernel.outcomes import Again
from holdfast.kinds.rustfs.tenants import PodDeletionPolicy
from holdfast.meta.nodes import Node
from holdfast.operators.tenant.down_nodes import OUT_OF_SERVICE, PodOnDownNode, deletions
from holdfast.operators.tenant.observe import TENANTS
from holdfast.testing.clusters import Cluster

NOW = datetime(2030, 1, 1, 12, tzinfo=UTC)
FORCED = [
    PodDeletionPolicy.FORCE_DELETE,
    PodDeletionPolicy.DELETE_STATEFUL_SET_POD,
    PodDeletionPolicy.DELETE_BOTH,
]


def node(*taints: dict[str, Any]) -> Node:
    conditions = [{"type": "Ready", "status": "Unknown"}]
    return msgspec.convert({"spec": {"taints": list(taints)}, "status": {"conditions": conditions}}, Node)


def server(node: Node | None, *tolerations: dict[str, Any]) -> PodOnDownNode:
    wire = {
        "metadata": {"name": "store-pool-0-1", "namespace": "ns", "uid": "u"},
        "spec": {"nodeName": "n1", "tolerations": list(tolerations)},
    }
    return msgspec.structs.replace(msgspec.convert(wire, PodOnDownNode), node=node)


OFF = {"key": OUT_OF_SERVICE, "value": "nodeshutdown", "effect": "NoExecute", "timeAdded": "2030-01-01T11:59:00Z"}
FOR_EVER = {"key": OUT_OF_SERVICE, "operator": "Exists"}
FOR_A_MINUTE = {**FOR_EVER, "tolerationSeconds": 60}
FOR_AN_HOUR = {**FOR_EVER, "tolerationSeconds": 3600}
OTHER = {"key": "node.kubernetes.io/unreachable", "effect": "NoExecute"}


@pytest.mark.parametrize(
    ("pod", "deleted"),
    [
        (server(None), True),
        (server(node()), False),
        (server(node(OTHER)), False),
        (server(node(OFF)), True),
        (server(node(OFF), FOR_EVER), False),
        (server(node(OFF), FOR_A_MINUTE), True),
        (server(node(OFF), FOR_AN_HOUR), False),
        (server(node(OFF), FOR_A_MINUTE, FOR_EVER), False),
        (server(node(OFF), {"key": "storage", "operator": "Exists"}), True),
        (server(node(OFF), {"key": OUT_OF_SERVICE, "value": "other"}), True),
        (server(node(OFF), {"key": OUT_OF_SERVICE, "value": "nodeshutdown"}), False),
        (server(node(OFF), {"operator": "Exists", "effect": "NoExecute"}), False),
    ],
)
@pytest.mark.parametrize("policy", FORCED)
def test_only_what_is_fenced_is_taken_by_force(policy: PodDeletionPolicy, pod: PodOnDownNode, deleted: bool) -> None:
    cleared = deletions(policy, [pod], now=NOW)
    assert [(each.key.name, each.uid, each.grace_seconds) for each in cleared.writes] == (
        [("store-pool-0-1", "u", 0)] if deleted else []
    )
    (notice,) = cleared.notices
    assert notice.reason.endswith("ForceDeletedPodOnDownNode" if deleted else "SkippedNodeNotFenced")


def test_a_toleration_that_ends_is_waited_for() -> None:
    cleared = deletions(PodDeletionPolicy.FORCE_DELETE, [server(node(OFF), FOR_AN_HOUR)], now=NOW)
    assert isinstance(cleared.outcome, Again)
    assert cleared.outcome.after == timedelta(minutes=59)


@pytest.mark.parametrize(
    ("policy", "told_of"),
    [
        (None, []),
        (PodDeletionPolicy.DO_NOTHING, []),
        (PodDeletionPolicy.DELETE_DEPLOYMENT_POD, []),
        (PodDeletionPolicy.DELETE, ["RequestedPodDeleteOnDownNode"]),
    ],
)
def test_other_policies_take_nothing(policy: PodDeletionPolicy | None, told_of: list[str]) -> None:
    cleared = deletions(policy, [server(None)], now=NOW)
    assert cleared.writes == ()
    assert [notice.reason for notice in cleared.notices] == told_of


@pytest.mark.parametrize("policy", ["DoNothing", "ForceDelete"])
def test_a_server_comes_back_elsewhere_once_its_node_is_fenced(policy: str) -> None:
    async def story(cluster: Cluster) -> None:
        made = tenant("store", pool(servers=2), podDeletionPolicyWhenNodeIsDown=policy)
        await cluster.create(TENANTS, made)
        await reaches(cluster, "Ready")
        victim = (await servers(cluster))[0]
        name, host = victim["metadata"]["name"], victim["spec"]["nodeName"]
        fault = chaos.NodeDown(since=cluster.now(), nodes=(host,))
        place = {"metadata": {"name": chaos.PLACE.name, "namespace": chaos.PLACE.namespace}}
        await cluster.create(CONFIG_MAPS, place | {"data": {"down": chaos.written(fault)}})

        async def stuck() -> bool:
            return any("deletionTimestamp" in each["metadata"] for each in await servers(cluster))

        await cluster.until(stuck, within=900, step=10)
        await cluster.advance(120)
        assert await stuck(), "nobody knows whether it still runs"
        off = {"key": OUT_OF_SERVICE, "value": "off", "effect": "NoSchedule"}
        taints = (await cluster.get(NODES, host))["spec"].get("taints", [])
        await cluster.patch(NODES, host, {"spec": {"taints": [*taints, off]}})
        await cluster.advance(30)
        if policy == "ForceDelete":
            found = {each["metadata"]["name"]: each["metadata"]["uid"] for each in await servers(cluster)}
            assert found[name] != victim["metadata"]["uid"]
            reasons = [each["reason"] for each in await cluster.list(EVENTS)]
            assert "ForceDeletedPodOnDownNode" in reasons

    play_story(story)
