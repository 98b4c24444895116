"""ReplicaSets: one pass at a time from a world to a decision, and then on the embedded server."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from tests.cluster.rollouts import GOING, LABELS, NOW, pod, replica_set, says

from holdfast.client.objects import Object
from holdfast.client.pods import Pod
from holdfast.client.resources import EVENTS, PODS, REPLICA_SETS
from holdfast.cluster.controllers.replicasets import BURST, CONTROLLER, adopters, decide, explain, observe, surplus
from holdfast.kernel.outcomes import Again, Done, Retry
from holdfast.meta.objects import Key
from holdfast.runtime.decisions import Create, Decision, Delete, Patch
from holdfast.testing.clusters import Cluster, play
from holdfast.testing.contract import FAULTS, Scenario, check, check_second_look
from holdfast.testing.snapshots import Snapshot

SET = replica_set()
EARLIER = "2030-01-01T11:00:00Z"


def seen(wire: dict[str, Any], *pods: dict[str, Any]) -> Snapshot:
    return Snapshot([(REPLICA_SETS, wire), *((PODS, each) for each in pods)])


def decided(wire: dict[str, Any], *pods: dict[str, Any]) -> Decision:
    world = observe(seen(wire, *pods), Key("default", wire["metadata"]["name"]))
    assert world is not None
    return decide(world, NOW)


def started(decision: Decision) -> list[str]:
    return [write.manifest["metadata"]["name"] for write in decision.writes if isinstance(write, Create)]


def stopped(decision: Decision) -> list[str]:
    return [write.key.name for write in decision.writes if isinstance(write, Delete)]


# --- how many


def test_missing_pods_are_made_from_the_template_with_names_that_events_can_tell() -> None:
    decision = decided(SET)
    made = [write.manifest for write in decision.writes if isinstance(write, Create)]
    assert len(made) == 3
    assert len({each["metadata"]["name"] for each in made}) == 3
    for manifest, notice in zip(made, decision.notices, strict=True):
        assert manifest["metadata"]["generateName"] == "web-1-"
        assert manifest["metadata"]["labels"] == LABELS
        assert manifest["metadata"]["ownerReferences"][0]["uid"] == "uid-web-1"
        assert notice.reason == "SuccessfulCreate"
        assert notice.message == f"Created pod: {manifest['metadata']['name']}"


def test_the_same_view_makes_the_same_pods() -> None:
    assert decided(SET) == decided(SET)


def test_a_pass_that_was_cut_off_makes_only_the_rest() -> None:
    first, *rest = started(decided(SET))
    assert started(decided(SET, pod(first, owner=SET, node=""))) == rest


def test_a_great_many_pods_are_made_in_several_passes() -> None:
    assert len(decided(replica_set(replicas=BURST + 100)).writes) == BURST


def test_finished_pods_and_those_on_their_way_out_are_replaced_and_not_counted() -> None:
    pods = [pod("a", owner=SET), pod("b", owner=SET, phase="Failed"), pod("c", owner=SET, meta=GOING)]
    decision = decided(SET, *pods)
    assert len(decision.writes) == 2
    assert all(isinstance(write, Create) for write in decision.writes)
    assert decision.status is not None
    assert (decision.status["replicas"], decision.status["terminatingReplicas"]) == (1, 1)


def test_a_replica_set_that_is_being_deleted_only_counts() -> None:
    decision = decided(replica_set(meta=GOING), pod("a", owner=SET), pod("orphan"))
    assert decision.writes == ()
    assert decision.status is not None
    assert decision.status["replicas"] == 1


# --- which ones go


@pytest.mark.parametrize(
    ("why", "goes", "stays"),
    [
        ("it has no node", {"node": "", "ready": EARLIER}, {"phase": "Pending"}),
        ("it is pending", {"phase": "Pending", "ready": EARLIER}, {"phase": "Unknown"}),
        ("it is unknown", {"phase": "Unknown", "ready": EARLIER}, {"phase": "Running"}),
        ("it is not ready", {}, {"ready": EARLIER, "restarts": 9}),
        ("it costs less", {"ready": EARLIER}, {"ready": NOW, "meta": "5"}),
        ("it is cheap to lose", {"ready": EARLIER, "meta": "-5"}, {"ready": NOW}),
        ("a sibling is on its node", {"ready": EARLIER, "node": "n2"}, {"ready": NOW}),
        ("it was ready for less time", {"ready": "2030-01-01T11:59:00Z"}, {"ready": EARLIER, "restarts": 9}),
        ("it restarted more", {"restarts": 2}, {"restarts": 1, "created": "2030-01-01T11:59:00Z"}),
        ("it is newer", {"created": "2030-01-01T11:59:00Z"}, {"created": "2030-01-01T08:00:00Z"}),
    ],
)
def test_the_pod_that_is_missed_least_goes_first(why: str, goes: dict[str, Any], stays: dict[str, Any]) -> None:
    def made(name: str, how: dict[str, Any]) -> Pod:
        cost = {"annotations": {"controller.kubernetes.io/pod-deletion-cost": how["meta"]}} if "meta" in how else {}
        ready = "2030-01-01T12:00:00Z" if how.get("ready") is NOW else how.get("ready")
        return Pod.of(Object.of(PODS, pod(name, **{**how, "meta": cost, "ready": ready})))

    # Named so that an order by name or UID would choose the other one.
    pods = [made("a", stays), made("b", goes)]
    crowd = [made("c", {"node": "n2"})]
    assert [each.metadata.name for each in surplus(pods, 1, siblings=crowd, now=NOW)] == ["b"], why


def test_a_cost_that_is_no_number_counts_for_nothing() -> None:
    annotations = {"controller.kubernetes.io/pod-deletion-cost": "much"}
    dear = pod("a", owner=SET, ready=EARLIER, meta={"annotations": annotations}, restarts=3)
    assert stopped(decided(replica_set(replicas=1), dear, pod("b", owner=SET, ready=EARLIER))) == ["a"]


def test_pods_of_siblings_under_the_same_controller_decide_which_node_is_crowded() -> None:
    above = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "uid": "above"}}
    mine, other = replica_set(replicas=1, owner=above), replica_set("web-2", replicas=1, owner=above)
    view = seen(
        mine,
        pod("a", owner=mine, ready=EARLIER, node="n1"),
        pod("b", owner=mine, ready=EARLIER, node="n2"),
        pod("c", owner=other, ready=EARLIER, node="n2"),
    )
    view.put(REPLICA_SETS, other)
    world = observe(view, Key("default", "web-1"))
    assert world is not None
    assert stopped(decide(world, NOW)) == ["b"]


def test_pods_that_go_are_named_in_events_and_deleted_by_their_uid() -> None:
    decision = decided(replica_set(replicas=0), pod("a", owner=SET))
    (write,) = decision.writes
    assert isinstance(write, Delete)
    assert write.uid == "uid-a"
    assert [(each.reason, each.message) for each in decision.notices] == [("SuccessfulDelete", "Deleted pod: a")]


# --- whose they are


def test_an_orphan_that_is_selected_is_adopted_and_counts_at_once() -> None:
    decision = decided(replica_set(replicas=1), pod("orphan", ready=EARLIER))
    (write,) = decision.writes
    assert isinstance(write, Patch)
    assert write.patch["metadata"]["ownerReferences"][0]["uid"] == "uid-web-1"
    assert (write.uid, write.version) == ("uid-orphan", "7")
    assert decision.status is not None
    assert decision.status["readyReplicas"] == 1


def test_a_pod_that_is_no_longer_selected_is_let_go_and_replaced() -> None:
    released, created = decided(replica_set(replicas=1), pod("a", owner=SET, labels={"app": "other"})).writes
    assert isinstance(released, Patch)
    assert released.patch == {"metadata": {"ownerReferences": None}}
    assert isinstance(created, Create)


def test_pods_of_another_controller_are_not_touched() -> None:
    other = replica_set("other")
    assert len(decided(replica_set(replicas=1), pod("a", owner=other)).writes) == 1


def test_an_orphan_brings_the_replica_sets_that_select_it() -> None:
    view = seen(SET)
    view.put(REPLICA_SETS, replica_set("else", selector={"matchLabels": {"app": "else"}}))
    assert list(adopters(Object.of(PODS, pod("orphan")), view)) == [Key("default", "web-1")]
    assert list(adopters(Object.of(PODS, pod("owned", owner=SET)), view)) == []


# --- what is said


def test_the_status_counts_labels_readiness_and_availability() -> None:
    labels = {**LABELS, "tier": "front"}
    labelled = replica_set(template={"metadata": {"labels": labels}, "spec": {}}, minReadySeconds=90)
    pods = [
        pod("a", owner=SET, ready=EARLIER, labels=labels),
        pod("b", owner=SET, ready="2030-01-01T11:59:30Z"),
        pod("c", owner=SET),
    ]
    decision = decided(labelled, *pods)
    assert decision.status == {
        "replicas": 3,
        "fullyLabeledReplicas": 1,
        "readyReplicas": 2,
        "availableReplicas": 1,
        "terminatingReplicas": 0,
        "observedGeneration": 1,
    }
    assert isinstance(decision.outcome, Again)
    assert decision.outcome.after == timedelta(seconds=60)


def test_without_a_wait_for_availability_nothing_is_looked_at_again() -> None:
    assert decided(SET, *(pod(name, owner=SET, ready=EARLIER) for name in "abc")).outcome == Done()


@pytest.mark.parametrize(("replicas", "reason"), [(3, "FailedCreate"), (0, "FailedDelete")])
def test_a_failure_is_a_condition_until_it_works_again(replicas: int, reason: str) -> None:
    wire = replica_set(replicas=replicas)
    world = observe(seen(wire, pod("a", owner=SET)), Key("default", "web-1"))
    assert world is not None
    status = explain(world, Retry("Forbidden", "exceeded quota"), NOW)
    failure = {
        "type": "ReplicaFailure",
        "status": "True",
        "lastTransitionTime": "2030-01-01T12:00:00Z",
        "reason": reason,
        "message": "exceeded quota",
    }
    assert status["conditions"] == [failure]
    failed = replica_set(replicas=replicas, status=status)
    again = observe(seen(failed, pod("a", owner=SET)), Key("default", "web-1"))
    assert again is not None
    assert explain(again, Retry("Forbidden", "other words"), NOW)["conditions"] == [failure]
    healed = decided(failed, pod("a", owner=SET)).status
    assert healed is not None
    assert "conditions" not in healed


# --- on the embedded server


def web(replicas: int = 3, **spec: Any) -> dict[str, Any]:
    made = replica_set(replicas=replicas)
    return {"metadata": {"name": "web"}, "spec": {**made["spec"], **spec}}


async def _failing(cluster: Cluster) -> None:
    await cluster.create(REPLICA_SETS, web())
    await says(cluster, REPLICA_SETS, "web", replicas=3)
    await cluster.report_all()
    await says(cluster, REPLICA_SETS, "web", readyReplicas=3)
    first = (await cluster.list(PODS))[0]["metadata"]["name"]
    await cluster.report(first, ready=False, phase="Failed")
    await says(cluster, REPLICA_SETS, "web", replicas=3, readyReplicas=2)


def test_a_failed_pod_is_replaced_and_stays_to_be_looked_at() -> None:
    async def story(cluster: Cluster) -> None:
        await _failing(cluster)
        assert sorted(each["status"]["phase"] for each in await cluster.list(PODS)) == [
            "Failed",
            "Pending",
            "Running",
            "Running",
        ]
        status = (await cluster.get(REPLICA_SETS, "web"))["status"]
        assert (status["replicas"], status["readyReplicas"]) == (3, 2)
        reasons = {each["reason"] for each in await cluster.list(EVENTS)}
        assert reasons == {"SuccessfulCreate"}

    play(story, controllers=[CONTROLLER])


def test_a_pod_becomes_available_when_its_time_has_passed_and_no_event_says_so() -> None:
    async def story(cluster: Cluster) -> None:
        await cluster.create(REPLICA_SETS, web(replicas=2, minReadySeconds=30))
        await cluster.settle()
        await cluster.report_all()
        await cluster.settle()
        assert "availableReplicas" not in (await cluster.get(REPLICA_SETS, "web"))["status"]
        await cluster.advance(31)
        assert (await cluster.get(REPLICA_SETS, "web"))["status"]["availableReplicas"] == 2

    play(story, controllers=[CONTROLLER])


def test_a_pod_that_is_relabelled_is_let_go_and_taken_back() -> None:
    async def story(cluster: Cluster) -> None:
        await cluster.create(REPLICA_SETS, web(replicas=1))
        await cluster.settle()
        (first,) = await cluster.list(PODS)
        name = first["metadata"]["name"]
        await cluster.patch(PODS, name, {"metadata": {"labels": {"app": "debug"}}})
        await cluster.settle()
        assert "ownerReferences" not in (await cluster.get(PODS, name))["metadata"]
        assert len(await cluster.list(PODS, "app=web")) == 1
        await cluster.report_all("app=web")
        await cluster.patch(PODS, name, {"metadata": {"labels": {"app": "web"}}})
        await cluster.settle()
        (left,) = await cluster.list(PODS)
        assert left["metadata"]["name"] != name, "the one that does not run is missed least"

    play(story, controllers=[CONTROLLER])


SCENARIO = Scenario(name="a failed pod", controllers=(CONTROLLER,), story=_failing)


@pytest.mark.parametrize("faults", FAULTS)
def test_the_contract_holds(faults: str) -> None:
    check(SCENARIO, faults)


def test_a_second_look_writes_nothing() -> None:
    check_second_look(SCENARIO)
