"""The scheduler: who is next, who rests and for how long, and what is written, on a real server in virtual time."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from tests.cluster.fleets import node, node_wire, pod_wire

from holdfast.client.objects import Object
from holdfast.client.resources import DEFINITIONS, EVENTS, NODES, PODS
from holdfast.cluster.scheduling import gang_status
from holdfast.cluster.scheduling.backlog import Backlog, Bind, Refuse
from holdfast.cluster.scheduling.gangs import POD_GANGS
from holdfast.cluster.scheduling.needs import Claim
from holdfast.cluster.scheduling.occupancy import Cluster as Occupancy
from holdfast.cluster.scheduling.scheduler import SERVED, Scheduler
from holdfast.kinds import crds
from holdfast.kinds.grove_scheduler import POD_GANG
from holdfast.meta.errors import Conflict
from holdfast.meta.objects import Key
from holdfast.testing.clusters import Cluster, play

NOW = datetime(2030, 1, 1, tzinfo=UTC)


# --- the backlog, without a server


class Waits:
    """A backlog, and the pods in it."""

    def __init__(self, *nodes: Any) -> None:
        self.backlog = Backlog(Occupancy(), SERVED)
        for each in nodes:
            self.backlog.cluster.put_node(each)

    def see(self, name: str, **how: Any) -> None:
        seen = Object.of(PODS, pod_wire(name, **how))
        self.backlog.see_pod(seen.key, seen)

    def gone(self, name: str) -> None:
        self.backlog.see_pod(Key("default", name), None)

    def take(self, after: float = 0, most: int = 100) -> list[str]:
        """What is done, in words: ``a -> n1``, or ``a: why not``."""
        steps = self.backlog.take(NOW + timedelta(seconds=after), most=most)
        return [self.said(step) for step in steps]

    @staticmethod
    def said(step: Bind | Refuse) -> str:
        if isinstance(step, Bind):
            return f"{step.claim.key.name} -> {step.node}"
        return f"{step.pod.meta.name}: {step.message}"


FULL = "0/1 nodes are available: 1 Insufficient cpu."


def test_pods_are_tried_by_priority_and_then_by_age() -> None:
    waits = Waits(node("n1"))
    waits.see("young", metadata={"creationTimestamp": "2030-01-01T00:00:02Z"})
    waits.see("old", metadata={"creationTimestamp": "2030-01-01T00:00:01Z"})
    waits.see("urgent", priority=10, metadata={"creationTimestamp": "2030-01-01T00:00:03Z"})
    assert waits.take() == ["urgent -> n1", "old -> n1", "young -> n1"]
    assert waits.backlog.idle is False  # what was bound may help others
    assert waits.take() == []
    assert waits.backlog.idle


def test_a_place_is_taken_as_soon_as_it_is_given() -> None:
    waits = Waits(node("n1", cpu="1"))
    waits.see("a", requests={"cpu": "1"})
    waits.see("b", requests={"cpu": "1"})
    assert waits.take() == ["a -> n1", f"b: {FULL}"]


def test_what_a_pod_says_already_is_not_told_again() -> None:
    waits = Waits(node("n1", cpu="1"))
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": FULL}
    waits.see("a", requests={"cpu": "2"}, status={"phase": "Pending", "conditions": [condition]})
    assert waits.take() == []
    waits.backlog.cluster.put_node(node("n2", cpu="1"))
    assert waits.take() == ["a: 0/2 nodes are available: 2 Insufficient cpu."]
    assert waits.take(after=600) == []


@pytest.mark.parametrize("help_", ["node", "pod", "label"])
def test_a_pod_that_found_no_place_is_tried_again_when_that_may_help(help_: str) -> None:
    waits = Waits(node("n1", cpu="1"))
    waits.see("holder", requests={"cpu": "1"}, nodeName="n1")
    waits.see("a", requests={"cpu": "1"})
    assert waits.take() == [f"a: {FULL}"]
    waits.take()
    assert waits.backlog.idle
    match help_:
        case "node":
            waits.backlog.cluster.put_node(node("n2"))
        case "pod":
            waits.gone("holder")
        case "label":
            waits.see("a", requests={"cpu": "0"})
    assert not waits.backlog.idle
    assert [step.split()[0] for step in waits.take()] == ["a"]


def test_pods_that_come_help_only_those_that_wait_for_pods() -> None:
    term = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "db"}}}
    near = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    waits = Waits(node("n1", cpu="1"))
    waits.see("near", affinity=near)
    waits.see("large", requests={"cpu": "8"})
    assert len(waits.take()) == 2
    waits.see("db", labels={"app": "db"}, nodeName="n1")
    assert waits.take() == ["near -> n1"]


def test_without_a_change_a_pod_is_tried_ever_less_often() -> None:
    waits = Waits()
    waits.see("a")
    waits.take()
    due = []
    for _ in range(4):
        at = waits.backlog.due()
        assert at is not None
        due.append((at - NOW).total_seconds())
        waits.take(after=due[-1])
    assert due == [1, 3, 7, 15]


def test_a_binding_that_failed_frees_its_place_and_waits_a_little() -> None:
    waits = Waits(node("n1", cpu="1"))
    waits.see("a", requests={"cpu": "1"})
    assert waits.take() == ["a -> n1"]
    waits.backlog.failed(Claim.of(Object.of(PODS, pod_wire("a", requests={"cpu": "1"}))), NOW)
    assert waits.take() == []
    assert waits.take(after=1) == ["a -> n1"]


@pytest.mark.parametrize("how", [{"requests": {"cpu": "8"}}, {"schedulingGates": [{"name": "example.com/wait"}]}])
def test_a_condition_that_was_not_written_is_written_again(how: dict[str, Any]) -> None:
    waits = Waits(node("n1", cpu="1"))
    waits.see("a", **how)
    (step,) = waits.backlog.take(NOW, most=1)
    assert isinstance(step, Refuse)
    waits.backlog.not_reported(step, NOW)
    assert waits.take() == []
    assert waits.take(after=1) == [waits.said(step)]
    assert waits.take(after=1000) == []


def test_a_pod_that_is_being_bound_is_not_tried_again() -> None:
    waits = Waits(node("n1"))
    waits.see("a")
    assert waits.take() == ["a -> n1"]
    waits.see("a", labels={"new": "label"})
    assert waits.take() == []
    waits.see("a", nodeName="n1", labels={"new": "label"})
    assert len(waits.backlog) == 0
    assert waits.backlog.cluster.place_of(Key("default", "a")) == "n1"


def test_a_successor_of_the_same_name_is_another_pod() -> None:
    waits = Waits(node("n1"))
    waits.see("a")
    assert waits.take() == ["a -> n1"]
    waits.see("a", metadata={"uid": "another"})
    assert waits.take() == ["a -> n1"]


@pytest.mark.parametrize(
    "how",
    [
        {"schedulerName": "another"},
        {"metadata": {"deletionTimestamp": "2030-01-01T00:00:00Z"}},
        {"status": {"phase": "Failed"}},
    ],
)
def test_pods_that_are_not_ours_to_place_are_left_alone(how: dict[str, Any]) -> None:
    waits = Waits(node("n1"))
    waits.see("a", **how)
    assert waits.take() == []


def test_ten_thousand_pods_of_which_none_fits_cost_one_look() -> None:
    waits = Waits(*(node(f"n{number}", cpu="1") for number in range(50)))
    for number in range(10_000):
        waits.see(f"p{number}", requests={"cpu": "2"})
    assert len(waits.take(most=20_000)) == 10_000
    waits.backlog.cluster.put_node(node("n1", cpu="1", labels={"new": "label"}))
    assert waits.take(most=20_000) == []


# --- on a server


async def place_of(cluster: Cluster, name: str) -> str:
    return str((await cluster.get(PODS, name))["spec"].get("nodeName", ""))


async def scheduled(cluster: Cluster, name: str) -> dict[str, Any]:
    conditions = (await cluster.get(PODS, name))["status"].get("conditions", [])
    return next((each for each in conditions if each["type"] == "PodScheduled"), {})


def small(name: str, cpu: str = "1", **how: Any) -> dict[str, Any]:
    wire = pod_wire(name, requests={"cpu": cpu}, **how)
    del wire["metadata"]["uid"]
    return wire


def test_pods_get_nodes_and_say_so() -> None:
    async def story(cluster: Cluster) -> None:
        await cluster.create(NODES, node_wire("n1"))
        await cluster.create(PODS, small("a"))
        await cluster.settle()
        assert await place_of(cluster, "a") == "n1"
        assert (await scheduled(cluster, "a"))["status"] == "True"

    play(story, components=[Scheduler()])


def test_a_pod_without_a_place_says_why_and_is_placed_when_there_is_room() -> None:
    async def story(cluster: Cluster) -> None:
        await cluster.create(NODES, node_wire("n1", cpu="1"))
        await cluster.create(PODS, small("a"))
        await cluster.create(PODS, small("b"))
        await cluster.settle()
        condition = await scheduled(cluster, "b")
        assert (condition["status"], condition["reason"], condition["message"]) == ("False", "Unschedulable", FULL)
        (event,) = [each for each in await cluster.list(EVENTS) if each["reason"] == "FailedScheduling"]
        assert (event["type"], event["message"], event["involvedObject"]["name"]) == ("Warning", FULL, "b")
        await cluster.delete(PODS, "a", grace_seconds=0)
        await cluster.settle()
        assert await place_of(cluster, "b") == "n1"
        assert (await scheduled(cluster, "b"))["status"] == "True"

    play(story, components=[Scheduler()])


def test_a_gated_pod_waits_for_its_gates_and_says_so() -> None:
    async def story(cluster: Cluster) -> None:
        await cluster.create(NODES, node_wire("n1"))
        await cluster.create(PODS, small("a", schedulingGates=[{"name": "example.com/wait"}]))
        await cluster.settle()
        assert (await scheduled(cluster, "a"))["reason"] == "SchedulingGated"
        assert not await cluster.list(EVENTS)
        await cluster.patch(PODS, "a", {"spec": {"schedulingGates": None}})
        await cluster.settle()
        assert await place_of(cluster, "a") == "n1"

    play(story, components=[Scheduler()])


def test_a_scheduler_that_was_killed_goes_on_where_it_was() -> None:
    async def story(cluster: Cluster) -> None:
        await cluster.create(NODES, node_wire("n1", cpu="2"))
        await cluster.create(PODS, small("a"))
        await cluster.settle()
        await cluster.kill()
        await cluster.create(PODS, small("b"))
        await cluster.create(PODS, small("c"))
        await cluster.restart()
        await cluster.settle()
        assert await place_of(cluster, "b") == "n1"
        assert (await scheduled(cluster, "c"))["message"] == FULL

    play(story, components=[Scheduler()])


def test_a_binding_that_means_another_pod_of_the_name_is_refused() -> None:
    async def story(cluster: Cluster) -> None:
        await cluster.create(PODS, small("a"))
        body = {"metadata": {"uid": "another"}, "target": {"kind": "Node", "name": "n1"}}
        with pytest.raises(Conflict, match="Precondition failed"):
            await cluster.client.post(PODS, Key("default", "a"), "binding", body)

    play(story)


def gang_of(*names: str, minimum: int) -> dict[str, Any]:
    references = [{"namespace": "default", "name": name} for name in names]
    group = {"name": "workers", "podReferences": references, "minReplicas": minimum}
    return {"metadata": {"name": "gang"}, "spec": {"podgroups": [group]}}


def member(name: str) -> dict[str, Any]:
    return small(name, labels={"grove.io/podgang": "gang"})


def test_a_gang_is_bound_as_a_whole_when_there_is_room_for_it() -> None:
    async def story(cluster: Cluster) -> None:
        await cluster.create(NODES, node_wire("n1", cpu="2"))
        for name in "abc":
            await cluster.create(PODS, member(name))
        await cluster.create(POD_GANGS, gang_of("a", "b", "c", minimum=3))
        await cluster.settle()
        assert [await place_of(cluster, name) for name in "abc"] == ["", "", ""]
        assert (await scheduled(cluster, "a"))["message"].startswith("PodGang default/gang cannot be placed as a whole")
        assert (await cluster.get(POD_GANGS, "gang"))["status"]["phase"] == "Pending"
        await cluster.create(NODES, node_wire("n2", cpu="1"))
        await cluster.settle()
        assert sorted([await place_of(cluster, name) for name in "abc"]) == ["n1", "n1", "n2"]
        status = (await cluster.get(POD_GANGS, "gang"))["status"]
        assert status["phase"] == "Starting"
        assert [(each["type"], each["status"]) for each in status["conditions"]] == [
            ("Scheduled", "True"),
            ("Ready", "False"),
        ]

    play(story, components=[Scheduler()], controllers=[gang_status.CONTROLLER], kinds=[POD_GANG])


def test_a_gang_whose_binding_was_cut_short_is_completed() -> None:
    async def story(cluster: Cluster) -> None:
        await cluster.kill()
        await cluster.create(NODES, node_wire("n1", cpu="3"))
        for name in "abc":
            await cluster.create(PODS, member(name))
        await cluster.create(POD_GANGS, gang_of("a", "b", "c", minimum=3))
        target = {"target": {"kind": "Node", "name": "n1"}}
        await cluster.client.post(PODS, Key("default", "a"), "binding", target)
        await cluster.restart()
        await cluster.settle()
        assert [await place_of(cluster, name) for name in "abc"] == ["n1", "n1", "n1"]

    play(story, components=[Scheduler()], kinds=[POD_GANG])


def test_a_pod_that_its_gang_does_not_name_waits() -> None:
    async def story(cluster: Cluster) -> None:
        await cluster.create(NODES, node_wire("n1"))
        await cluster.create(PODS, member("a"))
        await cluster.settle()
        assert (await scheduled(cluster, "a"))["message"] == "PodGang default/gang does not exist."
        await cluster.create(POD_GANGS, gang_of("b", minimum=1))
        await cluster.settle()
        assert (await scheduled(cluster, "a"))["message"] == "PodGang default/gang does not name the pod."
        await cluster.patch(POD_GANGS, "gang", gang_of("a", minimum=1))
        await cluster.settle()
        assert await place_of(cluster, "a") == "n1"

    play(story, components=[Scheduler()], kinds=[POD_GANG])


def test_where_gangs_are_not_defined_pods_go_each_for_itself() -> None:
    async def story(cluster: Cluster) -> None:
        await cluster.create(NODES, node_wire("n1"))
        await cluster.create(PODS, member("a"))
        await cluster.settle()
        assert await place_of(cluster, "a") == "n1"

    play(story, components=[Scheduler()])


def test_gangs_hold_from_the_moment_they_are_defined() -> None:
    async def story(cluster: Cluster) -> None:
        await cluster.create(PODS, member("a"))
        await cluster.settle()
        await cluster.create(DEFINITIONS, crds.crd_of(POD_GANG))
        await cluster.settle()
        await cluster.create(NODES, node_wire("n1"))
        await cluster.advance(5)
        assert await place_of(cluster, "a") == ""
        await cluster.create(POD_GANGS, gang_of("a", minimum=1))
        await cluster.advance(5)
        assert await place_of(cluster, "a") == "n1"

    play(story, components=[Scheduler()])
