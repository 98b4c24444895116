"""Faults as values: written, read, held, and whom they hit."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from holdfast.client.objects import Meta, Object
from holdfast.client.resources import CONFIG_MAPS
from holdfast.cluster.simulation import chaos
from holdfast.cluster.simulation.chaos import Crash, Fault, FaultError, Hang, NodeDown, NodeGone, Slow

NOW = datetime(2030, 1, 1, tzinfo=UTC)
LATER = NOW + timedelta(minutes=5)


@pytest.mark.parametrize(
    "fault",
    [
        Crash(since=NOW),
        Crash(since=NOW, until=LATER, namespace="shop", selector="app in (a,b)", share=0.25, seed=7),
        Hang(since=NOW, selector="app=web"),
        Slow(since=NOW, factor=2.5),
        NodeDown(since=NOW, until=LATER, nodes=("node-1", "node-2")),
        NodeGone(since=NOW, nodes=("node-1",)),
    ],
)
def test_what_is_written_is_read_again(fault: Fault) -> None:
    assert chaos.parse(chaos.written(fault)) == fault


def test_a_fault_is_written_for_people_too() -> None:
    assert chaos.written(Crash(since=NOW, selector="app=web")) == (
        '{"kind":"crash","since":"2030-01-01T00:00:00Z","selector":"app=web"}'
    )


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{}",
        '{"kind": "flood", "since": "2030-01-01T00:00:00Z"}',
        '{"kind": "crash"}',
        '{"kind": "crash", "since": "2030-01-01T00:00:00Z", "share": 2}',
        '{"kind": "crash", "since": "2030-01-01T00:00:00Z", "selector": "a in"}',
        '{"kind": "slow", "since": "2030-01-01T00:00:00Z", "factor": 0}',
    ],
)
def test_what_is_no_fault_is_refused_with_what_is_wrong(text: str) -> None:
    with pytest.raises(FaultError, match="is not a fault: "):
        chaos.parse(text)


def config_map(data: dict[str, str]) -> Object:
    return Object.of(CONFIG_MAPS, {"metadata": {"name": chaos.PLACE.name}, "data": data})


def test_entries_that_are_no_faults_are_left_out() -> None:
    crash = Crash(since=NOW)
    found = chaos.faults_in(config_map({"b": chaos.written(crash), "a": "nonsense"}))
    assert found.entries == (("b", crash),)
    assert chaos.faults_in(None) == chaos.NONE


@pytest.mark.parametrize(
    ("since", "until", "holds", "edges"),
    [
        (-10, None, True, []),
        (0, None, True, []),
        (10, None, False, [10]),
        (-10, 10, True, [10]),
        (-10, 0, False, []),
        (10, 20, False, [10, 20]),
    ],
)
def test_a_fault_holds_from_its_beginning_to_its_end(
    since: float, until: float | None, holds: bool, edges: list[float]
) -> None:
    fault = Hang(since=NOW + timedelta(seconds=since), until=None if until is None else NOW + timedelta(seconds=until))
    assert fault.holds(NOW) is holds
    assert [(edge - NOW).total_seconds() for edge in fault.edges(NOW)] == edges


def pod(**meta: Any) -> Meta:
    return Meta(**({"name": "p", "namespace": "shop", "uid": "u", "labels": {"app": "web"}} | meta))


@pytest.mark.parametrize(
    ("aim", "hit"),
    [
        ({}, True),
        ({"namespace": "shop"}, True),
        ({"namespace": "bank"}, False),
        ({"selector": "app=web"}, True),
        ({"selector": "app!=web"}, False),
        ({"share": 0.0}, False),
    ],
)
def test_pods_are_hit_by_namespace_labels_and_share(aim: dict[str, Any], hit: bool) -> None:
    assert Crash(since=NOW, **aim).hits(pod()) is hit


def test_a_share_of_pods_is_drawn_for_each_and_by_the_seed() -> None:
    pods = [pod(uid=f"u{number}") for number in range(1000)]
    half = [Crash(since=NOW, share=0.5).hits(each) for each in pods]
    assert half == [Hang(since=NOW, share=0.5).hits(each) for each in pods], "the same seed hits the same pods"
    assert half != [Crash(since=NOW, share=0.5, seed=1).hits(each) for each in pods]
    assert 450 < sum(half) < 550


@pytest.mark.parametrize(("share", "number"), [(0.0, 0), (0.1, 1), (0.5, 5), (0.99, 10), (1.0, 10)])
def test_a_share_can_be_fitted_to_the_pods_there_are(share: float, number: int) -> None:
    pods = [pod(uid=f"u{index}") for index in range(10)] + [pod(uid="x", namespace="bank")]
    fitted = Crash(since=NOW, namespace="shop", share=share).fitted(pods)
    assert sum(fitted.hits(each) for each in pods) == number
    assert chaos.parse(chaos.written(fitted)) == fitted


def test_faults_are_found_by_pod_and_by_node() -> None:
    entries: dict[str, Fault] = {
        "a": Crash(since=NOW, namespace="shop"),
        "b": Hang(since=NOW, namespace="bank"),
        "c": NodeDown(since=NOW, nodes=("n1",)),
        "d": NodeGone(since=NOW, nodes=("n2",)),
    }
    found = faults(**entries)
    assert found.on(pod()) == (entries["a"],)
    assert found.of("n1") == (entries["c"],)
    assert found.of("n3") == ()


def faults(**entries: Fault) -> chaos.Faults:
    return chaos.faults_in(config_map({name: chaos.written(fault) for name, fault in entries.items()}))


def test_nodes_are_set_up_again_without_those_that_fell_with_them() -> None:
    both, one = NodeDown(since=NOW, nodes=("n1", "n2")), NodeGone(since=NOW, nodes=("n1",))
    found = chaos.up(faults(a=both, b=one, c=Crash(since=NOW)), ["n1"])
    assert found == {"data": {"a": chaos.written(NodeDown(since=NOW, nodes=("n2",))), "b": None}}


def test_faults_are_spent_an_hour_after_their_last_blow() -> None:
    hour = timedelta(hours=1)
    found = faults(
        blow=Crash(since=NOW),
        window=Crash(since=NOW, until=LATER),
        hang=Hang(since=NOW),
        ended=Hang(since=NOW, until=NOW),
    )
    assert chaos.spent(found, NOW + hour) == ("blow", "ended")
    assert chaos.spent(found, LATER + hour) == ("blow", "ended", "window")


def test_the_name_of_a_fault_says_what_it_is() -> None:
    assert chaos.name_of(NodeDown(since=NOW, nodes=("n1",))).startswith("node-down-")
    assert chaos.name_of(Crash(since=NOW)) != chaos.name_of(Crash(since=NOW, seed=1))


def test_patches_add_and_end_faults() -> None:
    crash = Crash(since=NOW)
    assert chaos.added("a", crash) == {"data": {"a": chaos.written(crash)}}
    assert chaos.ended(["a", "b"]) == {"data": {"a": None, "b": None}}
