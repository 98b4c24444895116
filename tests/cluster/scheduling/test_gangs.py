"""Gangs: all or none, those beyond as room allows, and packed into one place."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

import pytest
from tests.cluster.fleets import cluster, node, pod, pod_wire

from holdfast.client.objects import Object
from holdfast.client.resources import PODS
from holdfast.cluster.scheduling import gang_status
from holdfast.cluster.scheduling.backlog import Backlog, Bind
from holdfast.cluster.scheduling.gangs import LABEL, POD_GANGS, Gang, Held, Together, place_gang
from holdfast.cluster.scheduling.needs import Claim
from holdfast.cluster.scheduling.occupancy import Cluster
from holdfast.cluster.scheduling.scheduler import SERVED
from holdfast.meta.objects import Key
from holdfast.testing.snapshots import Snapshot

NOW = datetime(2030, 1, 1, tzinfo=UTC)
RACK, ZONE = "rack", "zone"


def group(name: str, members: Iterable[str], minimum: int, **more: Any) -> dict[str, Any]:
    references = [{"namespace": "default", "name": member} for member in members]
    return {"name": name, "podReferences": references, "minReplicas": minimum, **more}


def gang_wire(*groups: dict[str, Any], **spec: Any) -> dict[str, Any]:
    metadata = {"name": "gang", "namespace": "default", "uid": "g", "generation": 3}
    return {
        "apiVersion": "scheduler.grove.io/v1alpha1",
        "kind": "PodGang",
        "metadata": metadata,
        "spec": {"podgroups": list(groups), **spec},
    }


def gang(*groups: dict[str, Any], **spec: Any) -> Gang:
    return Gang.of(Object.of(POD_GANGS, gang_wire(*groups, **spec)))


def pack(required: str = "", preferred: str = "") -> dict[str, Any]:
    wanted = {"required": required, "preferred": preferred}
    return {"packConstraint": {name: label for name, label in wanted.items() if label}}


def workers(*names: str, cpu: str = "1") -> dict[Key, Claim]:
    return {claim.key: claim for name in names if (claim := pod(name, requests={"cpu": cpu}))}


def racks(layout: Mapping[str, str], cpu: str = "2") -> list[Any]:
    """Nodes by name, with their racks, each of a zone: rack ``a1`` is of zone ``a``."""
    return [node(name, cpu=cpu, labels={RACK: rack, ZONE: rack[0]}) for name, rack in layout.items()]


def bound(found: Together | Held) -> dict[str, str]:
    assert isinstance(found, Together), found
    return {claim.key.name: where for claim, where in found.bindings}


TRIO = group("workers", ("a", "b", "c"), 3)


def test_a_gang_that_fits_is_placed_as_a_whole() -> None:
    found = place_gang(gang(TRIO), workers("a", "b", "c"), cluster([node("n1", cpu="2"), node("n2", cpu="1")]))
    assert sorted(bound(found)) == ["a", "b", "c"]
    assert sorted(bound(found).values()) == ["n1", "n1", "n2"]


def test_a_gang_of_which_one_pod_has_no_place_gets_none() -> None:
    world = cluster([node("n1", cpu="2")])
    found = place_gang(gang(TRIO), workers("a", "b", "c"), world)
    assert found == Held(
        "PodGang default/gang cannot be placed as a whole: pod c of group workers: "
        "0/1 nodes are available: 1 Insufficient cpu."
    )
    assert all(world.place_of(key) is None for key in workers("a", "b", "c"))


def test_a_gang_waits_for_pods_that_do_not_exist_or_are_gated() -> None:
    found = place_gang(gang(TRIO), workers("a"), cluster([node("n1")]))
    assert found == Held("PodGang default/gang waits for 2 pods of group workers to exist and pass its gates.")


def test_the_minimum_of_every_group_is_placed_or_none() -> None:
    leader, rest = group("leader", ("l",), 1), group("workers", ("a", "b"), 2)
    waiting = workers("l", "a", "b")
    assert isinstance(place_gang(gang(leader, rest), waiting, cluster([node("n1", cpu="2")])), Held)
    assert len(bound(place_gang(gang(leader, rest), waiting, cluster([node("n1", cpu="3")])))) == 3


def test_pods_beyond_the_minimum_are_placed_as_room_allows() -> None:
    some = group("workers", ("a", "b", "c"), 1)
    found = place_gang(gang(some), workers("a", "b", "c"), cluster([node("n1", cpu="2")]))
    assert bound(found) == {"a": "n1", "b": "n1"}
    assert isinstance(found, Together)
    assert found.waiting == {Key("default", "c"): "0/1 nodes are available: 1 Insufficient cpu."}


def test_the_minimum_of_a_later_group_goes_before_what_an_earlier_one_has_beyond_its_own() -> None:
    first, second = group("first", ("a", "b"), 1), group("second", ("c",), 1)
    found = place_gang(gang(first, second), workers("a", "b", "c"), cluster([node("n1", cpu="2")]))
    assert sorted(bound(found)) == ["a", "c"]


def test_a_gang_that_was_bound_in_part_is_completed() -> None:
    placed = workers("a", "b")
    world = cluster([node("n1", cpu="3")], {"n1": placed.values()})
    assert bound(place_gang(gang(TRIO), workers("c"), world)) == {"c": "n1"}


def test_a_lost_pod_of_a_gang_is_replaced_on_its_own() -> None:
    world = cluster([node("n1", cpu="3")], {"n1": workers("a", "b", "c").values()})
    world.remove(Key("default", "b"))
    replaced = gang(group("workers", ("a", "d", "c"), 3))
    assert bound(place_gang(replaced, workers("d"), world)) == {"d": "n1"}


# --- topology


LAYOUT = {"n1": "a1", "n2": "a2", "n3": "b1", "n4": "b1"}


@pytest.mark.parametrize(
    ("constraint", "cpu", "nodes"),
    [
        pytest.param(pack(required=RACK), "2", {"n3", "n4"}, id="only one rack is large enough"),
        pytest.param(pack(required=ZONE), "2", {"n1", "n2"}, id="the first zone is as empty as the other"),
        pytest.param(pack(preferred=RACK), "2", {"n3", "n4"}, id="a rack that can hold it is preferred"),
        pytest.param(pack(preferred=RACK), "1", {"n1", "n2", "n3"}, id="and left where none can"),
        pytest.param(pack(required=RACK), "1", None, id="but not where it is required"),
    ],
)
def test_gangs_are_packed_into_one_domain(constraint: dict[str, Any], cpu: str, nodes: set[str] | None) -> None:
    found = place_gang(
        gang(TRIO, topologyConstraint=constraint), workers("a", "b", "c"), cluster(racks(LAYOUT, cpu=cpu))
    )
    if nodes is None:
        assert isinstance(found, Held)
        return
    assert set(bound(found).values()) <= nodes


def test_pods_that_come_later_join_the_domain_of_those_that_are_there() -> None:
    world = cluster(racks(LAYOUT), {"n3": workers("a", "b").values()})
    asked = gang(group("workers", ("a", "b", "c", "d", "e"), 2), topologyConstraint=pack(required=RACK))
    found = place_gang(asked, workers("c", "d", "e"), world)
    assert bound(found) == {"c": "n4", "d": "n4"}
    assert isinstance(found, Together)
    assert found.waiting == {Key("default", "e"): "0/2 nodes are available: 2 Insufficient cpu."}


def test_groups_have_domains_of_their_own_within_that_of_the_gang() -> None:
    world = cluster(racks({"n1": "a1", "n2": "b1", "n3": "b2"}))
    one = group("one", ("a", "b"), 2, topologyConstraint=pack(required=RACK))
    two = group("two", ("c", "d"), 2, topologyConstraint=pack(required=RACK))
    found = bound(place_gang(gang(one, two, topologyConstraint=pack(required=ZONE)), workers(*"abcd"), world))
    assert found == {"a": "n2", "b": "n2", "c": "n3", "d": "n3"}


def test_groups_can_share_a_domain_that_others_need_not() -> None:
    world = cluster(racks({"n1": "a1", "n2": "b1", "n3": "b1"}))
    groups = group("one", ("a",), 1), group("two", ("b", "c"), 2), group("free", ("d", "e"), 2)
    shared = {"name": "pair", "podGroupNames": ["one", "two"], "topologyConstraint": pack(required=RACK)}
    found = bound(place_gang(gang(*groups, topologyConstraintGroupConfigs=[shared]), workers(*"abcde"), world))
    assert {found[name] for name in "abc"} == {"n2", "n3"}
    assert "n1" in {found[name] for name in "de"}


# --- what a gang says of itself


def status(wire: dict[str, Any], *pods: dict[str, Any]) -> dict[str, Any]:
    view = Snapshot([(POD_GANGS, wire), *((PODS, each) for each in pods)])
    world = gang_status.observe(view, Key("default", "gang"))
    assert world is not None
    decided = gang_status.decide(world, NOW).status
    assert decided is not None
    return dict(decided)


def member(name: str, *, on: str = "", phase: str = "Pending", ready: str = "False") -> dict[str, Any]:
    conditions = [{"type": "Ready", "status": ready}]
    return pod_wire(name, nodeName=on, status={"phase": phase, "conditions": conditions})


@pytest.mark.parametrize(
    ("pods", "phase", "scheduled", "ready"),
    [
        ([], "Pending", "False", "False"),
        ([member("a", on="n1"), member("b")], "Pending", "False", "False"),
        ([member("a", on="n1"), member("b", on="n1")], "Starting", "True", "False"),
        ([member(name, on="n1", phase="Running") for name in "ab"], "Running", "True", "False"),
        ([member(name, on="n1", phase="Running", ready="True") for name in "ab"], "Running", "True", "True"),
    ],
)
def test_a_gang_says_how_far_it_is(pods: list[dict[str, Any]], phase: str, scheduled: str, ready: str) -> None:
    found = status(gang_wire(group("workers", ("a", "b"), 2)), *pods)
    assert found["phase"] == phase
    assert [(each["type"], each["status"]) for each in found["conditions"]] == [
        ("Scheduled", scheduled),
        ("Ready", ready),
    ]


def test_conditions_that_others_wrote_are_kept() -> None:
    wire = gang_wire(group("workers", ("a",), 1))
    wire["status"] = {"conditions": [{"type": "Initialized", "status": "True", "reason": "Created", "message": ""}]}
    found = status(wire)
    assert [each["type"] for each in found["conditions"]] == ["Scheduled", "Ready", "Initialized"]
    assert found["conditions"][0]["message"] == "Too few pods are on nodes: workers (0 of 1)."


def test_placing_a_gang_changes_nothing_by_itself() -> None:
    world: Cluster = cluster([node("n1")])
    bound(place_gang(gang(TRIO), workers("a", "b", "c"), world))
    assert [host.pods for host in world.hosts] == [0]


def test_the_minimums_of_all_gangs_are_placed_before_what_any_has_beyond_its_own() -> None:
    backlog = Backlog(cluster([]), SERVED, gangs_exist=True)
    for number, name in enumerate(("first", "second")):
        wire = gang_wire(group("workers", [f"{name}-{each}" for each in "abc"], 1))
        wire["metadata"] |= {"name": name, "uid": name}
        backlog.see_gang(Key("default", name), Object.of(POD_GANGS, wire))
        for each in "abc":
            made = pod_wire(
                f"{name}-{each}",
                labels={LABEL: name},
                requests={"cpu": "1"},
                metadata={"creationTimestamp": f"2030-01-01T00:00:0{number}Z"},
            )
            backlog.see_pod(Key("default", f"{name}-{each}"), Object.of(PODS, made))
    backlog.take(NOW, most=100)
    backlog.cluster.put_node(node("n1", cpu="3"))
    placed = [step.claim.key.name for step in backlog.take(NOW, most=100) if isinstance(step, Bind)]
    assert placed == ["first-a", "second-a", "first-b"], "the third place is for a pod beyond the minimum of the older"
