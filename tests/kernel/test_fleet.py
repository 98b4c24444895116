"""Observing a fleet as counts, and choosing replicas for a decision."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.kernel.fleet import Fleet, Pool, Replica, Side, State, choose, observe, sort_out
from holdfast.testing.explore import NOW

READY = frozenset({State.SETTLING, State.AVAILABLE})
MINUTE = timedelta(minutes=1)


def replica(name: str, revision: str = "v2", **fields: Any) -> Replica:
    created: datetime = fields.pop("created_at", NOW - timedelta(hours=1))
    return Replica(id=name, revision=revision, created_at=created, **fields)


def ready(name: str, revision: str = "v2", **fields: Any) -> Replica:
    return replica(name, revision, **{"ready_since": NOW - timedelta(minutes=30), **fields})


def test_replicas_are_counted_by_side_and_state() -> None:
    fleet = observe(
        [
            ready("a"),
            ready("b", ready_since=NOW - timedelta(seconds=5)),
            replica("c"),
            ready("d", "v1"),
            ready("e", "v1", terminating=True),
            replica("f", "v1", dead=True),
            ready("g", "v0"),
        ],
        "v2",
        now=NOW,
        min_ready=MINUTE,
    )
    assert fleet.new == Pool(unready=1, settling=1, available=1)
    assert fleet.old == Pool(available=2, terminating=1, dead=1)


def test_a_leaving_replica_of_the_wanted_revision_makes_way() -> None:
    fleet = observe([ready("a", leaving=True), ready("b")], "v2", now=NOW)
    assert (fleet.old.available, fleet.new.available) == (1, 1)


def test_the_next_moment_that_time_alone_changes_is_known() -> None:
    since = NOW - timedelta(seconds=20)
    fleet = observe([ready("a", ready_since=since), ready("b")], "v2", now=NOW, min_ready=MINUTE)
    assert fleet.settles_at == since + MINUTE
    assert fleet.settled_at == NOW - timedelta(minutes=29)


@pytest.mark.parametrize(("ordinals", "gaps"), [([0, 1, 2], 0), ([0, 2], 1), ([3], 3), ([], 0)])
def test_gaps_are_the_ordinals_missing_below_the_highest(ordinals: list[int], gaps: int) -> None:
    fleet = observe([ready(str(n), ordinal=n) for n in ordinals], "v2", now=NOW)
    assert fleet.gaps == gaps


def test_replicas_of_a_third_revision_that_get_no_traffic_give_nothing() -> None:
    replicas = [ready("blue", "v1"), ready("green", "v2"), ready("next", "v3")]
    fleet = observe(replicas, "v3", now=NOW, serving="v2")
    assert fleet.old == Pool(unready=1, available=1)
    assert fleet.traffic == 0
    assert observe(replicas[:2], "v2", now=NOW, serving="v2").traffic == 100


def test_when_serving_replicas_must_leave_both_sides_serve_and_older_sets_give_nothing() -> None:
    replicas = [ready("blue", "v1"), ready("stays"), ready("drained", leaving=True)]
    fleet = observe(replicas, "v2", now=NOW, serving="v2")
    assert fleet.traffic is None
    assert fleet.available == 2
    assert fleet.old == Pool(unready=1, available=1)
    first = choose(replicas, "v2", side=Side.OLD, states=frozenset({State.UNREADY}), count=1, now=NOW, serving="v2")
    assert first == ("blue",)


def test_a_new_replica_that_must_leave_before_the_switch_does_not_pass_for_a_serving_one() -> None:
    replicas = [ready("blue", "v1"), ready("green"), ready("drained", leaving=True)]
    fleet = observe(replicas, "v2", now=NOW, serving="v1")
    assert fleet.old == Pool(unready=1, available=1)
    assert fleet.available == 1
    first = choose(replicas, "v2", side=Side.OLD, states=frozenset({State.UNREADY}), count=1, now=NOW, serving="v1")
    assert first == ("drained",)


def test_only_the_side_with_traffic_serves() -> None:
    old, new = Pool(available=3), Pool(available=2)
    assert Fleet(old, new).available == 5
    assert Fleet(old, new, traffic=0).available == 3
    assert Fleet(old, new, traffic=100).available == 2


def test_an_ordered_fleet_shrinks_from_its_end_whatever_the_revisions() -> None:
    # An update from the highest ordinal down has reached 3; then the fleet is scaled from 5 to 3.
    replicas = [ready(str(n), "v2" if n > 2 else "v1", ordinal=n) for n in range(5)]
    fleet = observe(replicas, "v2", now=NOW, size=3)
    assert (fleet.old.available, fleet.new.available) == (5, 0)
    first = choose(replicas, "v2", side=Side.OLD, states=READY, count=2, now=NOW, size=3, stable="v1")
    assert first == ("4", "3")
    assert observe(replicas, "v2", now=NOW, size=5).new.available == 2


def test_serving_replicas_beyond_the_size_still_serve() -> None:
    fleet = observe([ready(str(n), ordinal=n) for n in range(3)], "v2", now=NOW, size=1, serving="v2")
    assert fleet.available == 3


def test_replicas_that_must_leave_go_first() -> None:
    replicas = [ready("midway", "v2"), ready("drained", "v1", leaving=True)]
    assert chosen(replicas, 1, stable="v1") == ("drained",)


def chosen(replicas: list[Replica], count: int, **more: Any) -> tuple[str, ...]:
    return choose(replicas, "v3", side=Side.OLD, states=READY, count=count, now=NOW, **more)


def test_superseded_revisions_go_before_the_stable_one() -> None:
    replicas = [ready("stable", "v1"), ready("midway", "v2")]
    assert chosen(replicas, 1, stable="v1") == ("midway",)


def test_settling_replicas_go_before_available_ones() -> None:
    replicas = [ready("old", "v1"), ready("fresh", "v1", ready_since=NOW)]
    assert chosen(replicas, 1, min_ready=MINUTE) == ("fresh",)


def test_cheaper_replicas_go_first_then_higher_ordinals_then_younger_ones() -> None:
    assert chosen([ready("a", "v1", cost=5), ready("b", "v1", cost=1)], 1) == ("b",)
    assert chosen([ready("a", "v1", ordinal=0), ready("b", "v1", ordinal=1)], 1) == ("b",)
    assert chosen([ready("a", "v1"), ready("b", "v1", created_at=NOW)], 1) == ("b",)


@given(st.permutations([ready(name, "v1") for name in "abcdef"]), st.integers(0, 7))
def test_the_choice_does_not_depend_on_the_order_of_observation(replicas: list[Replica], count: int) -> None:
    assert chosen(replicas, count) == tuple("abcdef")[:count]


def test_among_replicas_of_one_age_the_one_that_shares_its_node_with_most_live_ones_goes_first() -> None:
    replicas = [
        ready("a", "v1", node="n1"),
        ready("b", "v1", node="n2"),
        ready("c", "v2", node="n2"),
        ready("d", "v2", node="n1", terminating=True),
        replica("e", "v2", node="n1", dead=True),
    ]
    assert choose(replicas, "v2", side=Side.OLD, states=READY, count=1, now=NOW) == ("b",)


@given(
    revision=st.sampled_from(["v1", "v2"]),
    since=st.none() | st.integers(0, 90).map(lambda seconds: NOW - timedelta(seconds=seconds)),
    flags=st.tuples(st.booleans(), st.booleans(), st.booleans()),
    ordinal=st.none() | st.integers(0, 3),
    size=st.none() | st.just(2),
    min_ready=st.sampled_from([timedelta(), MINUTE]),
)
def test_a_replica_is_sorted_by_its_own_side_and_state(
    revision: str,
    since: datetime | None,
    flags: tuple[bool, bool, bool],
    ordinal: int | None,
    size: int | None,
    min_ready: timedelta,
) -> None:
    terminating, dead, leaving = flags
    one = replica(
        "a", revision, ready_since=since, terminating=terminating, dead=dead, leaving=leaving, ordinal=ordinal
    )
    found = sort_out([one], "v2", now=NOW, min_ready=min_ready, size=size)
    assert found.by_state[one.side("v2", size=size)][one.state(min_ready=min_ready, now=NOW)] == [one]
