"""Nodes that are heard from and nodes that are not: conditions, taints, and the pods on them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from holdfast.client.objects import Object
from holdfast.client.resources import LEASES, NODES, PODS
from holdfast.cluster.nodes import evictions, lifecycle
from holdfast.cluster.nodes.lifecycle import NOT_READY, UNREACHABLE, UNSCHEDULABLE, Node, NodeSettings, World
from holdfast.cluster.nodes.suspension import Suspension
from holdfast.kernel.outcomes import Again, Done
from holdfast.meta import times
from holdfast.meta.nodes import Taint, Toleration
from holdfast.meta.objects import Key
from holdfast.runtime.decisions import Decision, Delete, Notice, Patch
from holdfast.testing.clusters import Cluster, play
from holdfast.testing.snapshots import Snapshot

NOW = datetime(2030, 1, 1, 12, tzinfo=UTC)
SETTINGS = NodeSettings()
CONTROLLERS = (lifecycle.controller(SETTINGS), evictions.controller(SETTINGS))


def ago(seconds: float) -> str:
    return times.format(NOW - timedelta(seconds=seconds))


def condition(type: str, status: str, *, heard: float = 10, **more: Any) -> dict[str, Any]:
    said = {"type": type, "status": status, "lastHeartbeatTime": ago(heard), "lastTransitionTime": ago(600)}
    return said | more


def node(*conditions: dict[str, Any], age: float = 3600, **spec: Any) -> dict[str, Any]:
    meta = {"name": "n1", "uid": "u1", "resourceVersion": "7", "creationTimestamp": ago(age)}
    return {"metadata": meta, "spec": spec, "status": {"conditions": list(conditions), "phase": "kept"}}


def taint(key: str, effect: str = "NoSchedule", *, added: float | None = 0, **more: Any) -> dict[str, Any]:
    return {"key": key, "effect": effect, **({} if added is None else {"timeAdded": ago(added)}), **more}


def decided(wire: dict[str, Any], *, renewed: float | None = None, **world: Any) -> Decision:
    at = None if renewed is None else NOW - timedelta(seconds=renewed)
    settings = world.pop("settings", SETTINGS)
    return lifecycle.decide(World(node=Object.of(NODES, wire), renewed=at, **world), NOW, settings=settings)


# --- conditions


@pytest.mark.parametrize(
    ("heard", "renewed", "left"),
    [
        pytest.param(10, None, 30, id="it reported"),
        pytest.param(300, 5, 35, id="it renewed its lease"),
        pytest.param(5, 300, 35, id="the later one counts"),
    ],
)
def test_a_node_that_was_heard_from_is_looked_at_when_it_must_be_heard_from_again(
    heard: float, renewed: float | None, left: float
) -> None:
    decision = decided(node(condition("Ready", "True", heard=heard)), renewed=renewed)
    assert decision == Decision(outcome=Again(timedelta(seconds=left), "the node must be heard from within 40 s"))


def test_a_node_that_is_silent_becomes_unknown() -> None:
    disk = condition("DiskPressure", "False", heard=41)
    network = condition("NetworkUnavailable", "False", heard=41)
    decision = decided(node(condition("Ready", "True", heard=41, reason="KubeletReady"), disk, network), renewed=40)
    unknown = {"status": "Unknown", "reason": "NodeStatusUnknown", "message": "Kubelet stopped posting node status."}
    never = {"status": "Unknown", "reason": "NodeStatusNeverUpdated", "message": "Kubelet never posted node status."}
    now = {"lastTransitionTime": times.format(NOW)}
    assert decision.status == {
        "phase": "kept",
        "conditions": [
            condition("Ready", "True", heard=41) | unknown | now,
            disk | unknown | now,
            network,
            {"type": "MemoryPressure", "lastHeartbeatTime": ago(3600)} | never | now,
            {"type": "PIDPressure", "lastHeartbeatTime": ago(3600)} | never | now,
        ],
    }
    assert decision.notices == (Notice(reason="NodeNotReady", message="Node n1 status is now: NodeNotReady"),)
    assert decision.writes == ()


def test_a_new_node_has_longer_to_be_heard_from() -> None:
    assert decided(node(age=59)).outcome == Again(timedelta(seconds=1), "the node must be heard from within 40 s")
    status = decided(node(age=60)).status
    assert status is not None
    assert {each["reason"] for each in status["conditions"]} == {"NodeStatusNeverUpdated"}


def test_silence_before_this_process_listened_says_nothing() -> None:
    decision = decided(node(condition("Ready", "True", heard=900)), listening=NOW - timedelta(seconds=3))
    assert decision == Decision(
        outcome=Again(timedelta(seconds=37), "the node must be heard from within 40 s"),
    )


# --- taints


def tainted(decision: Decision) -> Any:
    """The taints that are asked for: None if they are left alone."""
    if not decision.writes:
        return None
    (patch,) = decision.writes
    assert isinstance(patch, Patch)
    assert (patch.uid, patch.version) == ("u1", "7")
    return patch.patch["spec"]["taints"]


BOTH_UNREACHABLE = [taint(UNREACHABLE), taint(UNREACHABLE, "NoExecute")]
FOREIGN = taint("example.com/gpu", value="a100", added=None)


@pytest.mark.parametrize(
    ("wire", "taints"),
    [
        pytest.param(node(condition("Ready", "True")), None, id="a node that is ready has none"),
        pytest.param(
            node(condition("Ready", "False")), [taint(NOT_READY), taint(NOT_READY, "NoExecute")], id="not ready"
        ),
        pytest.param(node(condition("Ready", "Unknown")), BOTH_UNREACHABLE, id="unreachable"),
        pytest.param(
            node(condition("Ready", "True"), condition("DiskPressure", "True")),
            [taint("node.kubernetes.io/disk-pressure")],
            id="under pressure",
        ),
        pytest.param(node(condition("Ready", "True"), unschedulable=True), [taint(UNSCHEDULABLE)], id="cordoned"),
        pytest.param(
            node(condition("Ready", "True"), taints=[taint(UNSCHEDULABLE), FOREIGN]), [FOREIGN], id="uncordoned"
        ),
        pytest.param(node(condition("Ready", "True"), taints=BOTH_UNREACHABLE), None, id="back again"),
        pytest.param(
            node(condition("Ready", "Unknown"), taints=[FOREIGN, taint(UNREACHABLE, "NoExecute", added=90)]),
            [FOREIGN, taint(UNREACHABLE, "NoExecute", added=90), taint(UNREACHABLE)],
            id="what is there already keeps its time",
        ),
        pytest.param(
            node(condition("Ready", "True"), taints=[taint("x", "NoExecute", added=None)]),
            [taint("x", "NoExecute")],
            id="what drives pods away must say since when",
        ),
    ],
)
def test_taints_follow_from_conditions(wire: dict[str, Any], taints: Any) -> None:
    decision = decided(wire)
    if taints is None and "taints" in wire["spec"]:
        assert len(decision.writes) == 1
    assert tainted(decision) == taints


def test_no_pod_is_evicted_while_no_node_is_ready() -> None:
    wire = node(condition("Ready", "Unknown"), taints=BOTH_UNREACHABLE)
    assert tainted(decided(wire, any_ready=False)) == [taint(UNREACHABLE)]


def test_the_lease_and_the_other_nodes_are_seen() -> None:
    lease = {
        "metadata": {"name": "n1", "namespace": "kube-node-lease"},
        "spec": {"renewTime": "2030-01-01T11:59:58.5Z"},
    }
    wire = node(condition("Ready", "False"))
    view = Snapshot([(NODES, wire), (LEASES, lease)], indexes=[lifecycle.BY_READINESS])
    seen = lifecycle.observe(view, Key("", "n1"), suspension=Suspension(NOW))
    assert seen is not None
    assert (seen.renewed, seen.any_ready, seen.listening) == (NOW - timedelta(seconds=1.5), False, NOW)
    assert lifecycle.observe(view, Key("", "n2"), suspension=Suspension()) is None


# --- pods on them


def pod(*tolerations: dict[str, Any], ready: bool = False, came: float = 500, phase: str = "Running") -> Object:
    conditions = [{"type": "PodScheduled", "status": "True", "lastTransitionTime": ago(came)}]
    conditions += [{"type": "Ready", "status": "True", "lastTransitionTime": ago(came)}] if ready else []
    wire = {
        "metadata": {"name": "web-0", "namespace": "default", "uid": "p1"},
        "spec": {"nodeName": "n1", "tolerations": list(tolerations)},
        "status": {"phase": phase, "conditions": conditions},
    }
    return Object.of(PODS, wire)


def bears(key: str = "x", seconds: int | None = None) -> dict[str, Any]:
    wire = {"key": key, "operator": "Exists", "effect": "NoExecute"}
    return wire if seconds is None else wire | {"tolerationSeconds": seconds}


def on(pod: Object, *taints: dict[str, Any], ready: str = "True") -> evictions.World:
    return evictions.World(pod, Node.of(Object.of(NODES, node(condition("Ready", ready), taints=list(taints)))))


DRIVES = taint("x", "NoExecute", added=100)


@pytest.mark.parametrize(
    ("world", "leaves"),
    [
        pytest.param(on(pod(), DRIVES), 100, id="who does not tolerate it leaves at once"),
        pytest.param(on(pod(bears()), DRIVES), None, id="who tolerates it for good stays"),
        pytest.param(on(pod(bears(seconds=30)), DRIVES), 70, id="who tolerates it for a while leaves then"),
        pytest.param(on(pod(bears(seconds=300)), DRIVES), -200, id="and not before"),
        pytest.param(on(pod(bears(seconds=30), came=50), DRIVES), 20, id="who came later is given its time too"),
        pytest.param(on(pod(bears(seconds=-5)), DRIVES), 100, id="less than no time is none"),
        pytest.param(on(pod(bears()), DRIVES, taint("y", "NoExecute", added=9)), 9, id="one taint is enough"),
        pytest.param(on(pod(), taint("x", "NoExecute", added=None)), None, id="one without a time waits for it"),
        pytest.param(on(pod(), taint("x", "NoSchedule", added=100)), None, id="other effects evict no pod"),
    ],
)
def test_when_a_pod_leaves(world: evictions.World, leaves: float | None) -> None:
    expected = None if leaves is None else NOW - timedelta(seconds=leaves)
    assert evictions.leaving(world, SETTINGS) == expected


def test_patience_with_nodes_in_trouble_can_be_shortened() -> None:
    settings = NodeSettings(patience=timedelta(seconds=5))
    trouble = taint(UNREACHABLE, "NoExecute", added=60)
    for tolerated in (bears(UNREACHABLE, 300), bears(UNREACHABLE)):
        assert evictions.leaving(on(pod(tolerated), trouble), settings) == NOW - timedelta(seconds=55)
    assert evictions.leaving(on(pod(bears(seconds=300)), DRIVES), settings) == NOW + timedelta(seconds=200)


def test_a_pod_that_is_driven_away_is_marked_and_deleted() -> None:
    decision = evictions.decide(on(pod(), DRIVES), NOW, settings=SETTINGS)
    marked, deleted = decision.writes
    assert isinstance(marked, Patch)
    assert marked.patch["status"]["conditions"] == [
        {
            "type": "DisruptionTarget",
            "status": "True",
            "reason": "DeletionByTaintManager",
            "message": "Taint manager: deleting due to NoExecute taint",
            "lastTransitionTime": times.format(NOW),
        }
    ]
    assert isinstance(deleted, Delete)
    assert (deleted.uid, deleted.wave, deleted.grace_seconds) == ("p1", 1, None)
    assert [each.reason for each in decision.notices] == ["TaintManagerEviction"]


def test_a_pod_waits_until_it_is_driven_away() -> None:
    decision = evictions.decide(on(pod(bears(seconds=300)), DRIVES), NOW, settings=SETTINGS)
    assert decision == Decision(outcome=Again(timedelta(seconds=200), "it tolerates the taints of its node until then"))


def test_a_pod_of_a_silent_node_is_not_ready() -> None:
    decision = evictions.decide(on(pod(ready=True), ready="Unknown"), NOW, settings=SETTINGS)
    (patch,) = decision.writes
    assert isinstance(patch, Patch)
    expected = {"type": "Ready", "status": "False", "lastTransitionTime": times.format(NOW)}
    assert patch.patch == {"status": {"conditions": [expected]}}
    assert (decision.outcome, [each.reason for each in decision.notices]) == (Done(), ["NodeNotReady"])


def test_pods_that_ended_or_are_on_their_way_are_left_alone() -> None:
    assert evictions.decide(on(pod(phase="Failed"), DRIVES), NOW, settings=SETTINGS) == Decision()
    going = pod().wire()
    going["metadata"]["deletionTimestamp"] = ago(1)
    view = Snapshot([(PODS, going), (NODES, node(condition("Ready", "Unknown")))])
    assert evictions.observe(view, Key("default", "web-0")) is None


def test_pods_of_nodes_that_are_well_are_left_alone() -> None:
    view = Snapshot([(PODS, pod().wire()), (NODES, node(condition("Ready", "True")))])
    assert evictions.observe(view, Key("default", "web-0")) is None


@pytest.mark.parametrize(
    ("toleration", "borne"),
    [
        pytest.param(Toleration("x", value="1"), True, id="the same value"),
        pytest.param(Toleration("x", value="2"), False, id="another value"),
        pytest.param(Toleration("x", "Exists"), True, id="any value"),
        pytest.param(Toleration("x", "Exists", effect="NoSchedule"), False, id="another effect"),
        pytest.param(Toleration("y", "Exists"), False, id="another key"),
        pytest.param(Toleration(operator="Exists"), True, id="everything"),
        pytest.param(Toleration(value="1"), False, id="a value alone means nothing"),
    ],
)
def test_what_is_tolerated(toleration: Toleration, borne: bool) -> None:
    assert toleration.tolerates(Taint("x", "1", "NoExecute")) is borne


# --- on a cluster


async def heartbeat(cluster: Cluster, name: str) -> None:
    renewed = {"spec": {"renewTime": times.format_micro(cluster.now())}}
    await cluster.apply(LEASES, {"metadata": {"name": name, "namespace": "kube-node-lease"}, **renewed})


async def join(cluster: Cluster, name: str) -> None:
    await cluster.create(NODES, {"metadata": {"name": name}})
    now = times.format(cluster.now())
    ready = {"type": "Ready", "status": "True", "lastHeartbeatTime": now, "lastTransitionTime": now}
    await cluster.patch(NODES, name, {"status": {"conditions": [ready]}}, subresource="status")
    await heartbeat(cluster, name)


def test_the_pods_of_a_node_that_falls_silent_leave_it_after_five_minutes() -> None:
    async def story(cluster: Cluster) -> None:
        for name in ("n1", "n2"):
            await join(cluster, name)
        await cluster.create(
            PODS,
            {"metadata": {"name": "web"}, "spec": {"nodeName": "n1", "containers": [{"name": "c", "image": "i"}]}},
        )
        await cluster.report("web")

        async def keep(seconds: int) -> None:
            for _ in range(seconds // 10):
                await cluster.advance(10)
                await heartbeat(cluster, "n2")
            await cluster.settle()

        await keep(30)
        assert "taints" not in (await cluster.get(NODES, "n1"))["spec"]
        await keep(20)
        silent = await cluster.get(NODES, "n1")
        assert {each["status"] for each in silent["status"]["conditions"]} == {"Unknown"}
        assert {(each["key"], each["effect"]) for each in silent["spec"]["taints"]} == {
            (UNREACHABLE, "NoSchedule"),
            (UNREACHABLE, "NoExecute"),
        }
        web = await cluster.get(PODS, "web")
        assert [each["status"] for each in web["status"]["conditions"] if each["type"] == "Ready"] == ["False"]
        assert "deletionTimestamp" not in web["metadata"]
        await keep(310)
        web = await cluster.get(PODS, "web")
        assert "deletionTimestamp" in web["metadata"]
        assert "DisruptionTarget" in {each["type"] for each in web["status"]["conditions"]}
        assert "taints" not in (await cluster.get(NODES, "n2"))["spec"]

    play(story, controllers=CONTROLLERS)


def test_a_node_that_is_back_loses_its_taints() -> None:
    async def story(cluster: Cluster) -> None:
        await join(cluster, "n1")
        await cluster.advance(60)
        # It is the only node, so no pod is evicted from it.
        assert [each["effect"] for each in (await cluster.get(NODES, "n1"))["spec"]["taints"]] == ["NoSchedule"]
        await join_again(cluster)
        await cluster.settle()
        assert "taints" not in (await cluster.get(NODES, "n1"))["spec"]
        await cluster.patch(NODES, "n1", {"spec": {"unschedulable": True}})
        await cluster.settle()
        assert [each["key"] for each in (await cluster.get(NODES, "n1"))["spec"]["taints"]] == [UNSCHEDULABLE]

    async def join_again(cluster: Cluster) -> None:
        now = times.format(cluster.now())
        ready = {"type": "Ready", "status": "True", "lastHeartbeatTime": now, "lastTransitionTime": now}
        await cluster.patch(NODES, "n1", {"status": {"conditions": [ready]}}, subresource="status")
        await heartbeat(cluster, "n1")

    play(story, controllers=CONTROLLERS)
