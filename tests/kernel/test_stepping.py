"""One step of a rollout: what a situation becomes, which replicas are meant, and when to look again."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import msgspec
import pytest

from holdfast.kernel import rollout as engine
from holdfast.kernel.decisions import Blocked, Hold, Kind, Stop
from holdfast.kernel.fleet import Replica, Side
from holdfast.kernel.limits import Limits, resolve
from holdfast.kernel.outcomes import Again, Done
from holdfast.kernel.reasons import Because, Code
from holdfast.kernel.rollout import OnFailure, Progress, Rollout, Shape, Verdict
from holdfast.kernel.stepping import AT_A_TIME, Situation, Step, indexed, progressed, step, step_together
from holdfast.testing.explore import NOW

MINUTE = timedelta(minutes=1)
HOUR = timedelta(hours=1)


def replica(name: str, revision: str = "v2", **fields: Any) -> Replica:
    return Replica(**{"id": name, "revision": revision, "created_at": NOW - HOUR, "ready_since": NOW - HOUR, **fields})


def fleet_of(*revisions: str, **fields: Any) -> tuple[Replica, ...]:
    """Ready replicas, one for each revision, with the position as id and as ordinal."""
    return tuple(replica(str(n), revision, ordinal=n, **fields) for n, revision in enumerate(revisions))


def situation(*replicas: Replica, rollout: dict[str, Any] | None = None, **fields: Any) -> Situation:
    asked: dict[str, Any] = {"limits": Limits(3, 2, 2, 0), "target": "v2", **(rollout or {})}
    return Situation(**{"rollout": Rollout(**asked), "replicas": replicas, "now": NOW, "stable": "v1", **fields})


def test_a_step_names_the_replicas_to_stop() -> None:
    made = step(situation(*fleet_of("v1", "v1", "v1")))
    assert made.decision == made.verdict.decision
    assert made.stops == ("2",)
    assert made.stops_ready
    assert (made.starts(Side.NEW), made.starts(Side.OLD)) == (0, 0)
    assert made.because.code is Code.STOPPING_OLD
    assert not made.complete


def test_a_step_counts_the_replicas_to_start_for_their_side_alone() -> None:
    made = step(situation(*fleet_of("v1", "v1")))
    assert (made.starts(Side.NEW), made.starts(Side.OLD)) == (1, 0)
    assert made.stops == ()
    assert not made.stops_ready


def test_unready_replicas_are_stopped_without_a_disruption_budget() -> None:
    made = step(situation(replica("a", "v1", ready_since=None), replica("b", "v1"), replica("c", "v1")))
    assert made.stops == ("a",)
    assert not made.stops_ready


def test_one_step_of_a_large_fleet_starts_and_stops_a_part_of_it() -> None:
    many = 4 * AT_A_TIME
    limits = Limits(many, 0, 0, 0)
    started = step(situation(rollout={"limits": limits}))
    assert started.starts(Side.NEW) == AT_A_TIME
    replicas = (replica(str(n), "v1") for n in range(many))
    assert len(step(situation(*replicas, rollout={"limits": limits})).stops) == AT_A_TIME


def test_a_step_that_is_complete_says_so() -> None:
    made = step(situation(*fleet_of("v2", "v2", "v2")))
    assert made.complete
    assert made.blocked is None
    assert made.outcome() == Done()


def test_ordinals_beyond_the_size_must_leave_whatever_their_revision() -> None:
    asked = {"ordered": True, "limits": Limits(2, 1, 1, 0)}
    made = step(situation(*fleet_of("v2", "v2", "v2"), rollout=asked, size=2))
    assert made.stops == ("2",)
    assert made.because.code is Code.SCALING_DOWN


def test_the_revision_without_traffic_is_not_counted_as_available() -> None:
    seen = situation(*fleet_of("v1", "v2"), serving="v1")
    assert (seen.fleet.traffic, seen.fleet.available) == (0, 1)


def test_replicas_are_available_once_they_are_ready_for_long_enough() -> None:
    young = replica("a", ready_since=NOW - MINUTE)
    assert situation(young, min_ready=HOUR).fleet.new.settling == 1
    assert situation(young, min_ready=MINUTE).fleet.new.available == 1


# Refusals: of the engine, of an operator.


def test_a_blocked_rollout_says_what_to_change_and_touches_nothing() -> None:
    made = step(situation(*fleet_of("v1", "v1", "v1"), rollout={"limits": resolve(3, min_available=3, max_surge=0)}))
    assert made.blocked is not None
    assert made.refusal == made.blocked
    assert "maxSurge" in made.blocked.remedy
    assert made.stops == ()


def test_while_an_operator_refuses_losses_are_replaced_and_the_refusal_is_the_reason() -> None:
    refusal = Blocked(Because(Code.AT_FLOOR, "the quota is used up"), "raise the quota")
    quiet = step(situation(*fleet_of("v1", "v1", "v1")), refusal=refusal)
    assert quiet.decision == refusal
    lost = step(situation(*fleet_of("v1", "v1")), refusal=refusal)
    assert lost.starts(Side.OLD) == 1
    assert lost.because is refusal.because
    assert lost.blocked == refusal


def test_a_decision_is_cut_to_what_the_floor_allows_before_replicas_are_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    everything = Stop(Side.OLD, Kind.READY, 3, Because(Code.STOPPING_OLD, "all of them"))
    verdict = Verdict(everything, Progress("v2"), Shape(new=3, old=0, floor=2, ceiling=3))
    monkeypatch.setattr(engine, "decide", lambda *_, **__: verdict)
    made = step(situation(*fleet_of("v1", "v1", "v1")))
    assert made.verdict.decision == everything
    assert made.stops == ("2",)
    below = step(situation(*fleet_of("v1", "v1")))
    assert below.blocked is not None
    assert below.stops == ()


def test_the_replicas_that_a_decision_stops_are_chosen_by_their_state() -> None:
    seen = situation(*fleet_of("v1", "v1", "v1"))
    assert seen.chosen(Stop(Side.OLD, Kind.READY, 1, Because(Code.STOPPING_OLD, "as decided"))) == ("2",)
    assert seen.chosen(Stop(Side.OLD, Kind.UNREADY, 1, Because(Code.REMOVING_UNREADY, "as decided"))) == ()


# When to look again.


def waiting(**fields: Any) -> Step:
    return step(situation(*fleet_of("v1", "v1"), replica("new", ready_since=None), **fields))


def test_without_a_deadline_only_a_change_is_waited_for() -> None:
    assert waiting().outcome() == Done()


def test_a_deadline_is_looked_at_when_it_is_due() -> None:
    made = waiting(rollout={"deadline": HOUR}, progressed_at=NOW - MINUTE)
    outcome = made.outcome()
    assert isinstance(outcome, Again)
    assert outcome.after == HOUR - MINUTE
    assert outcome.because == made.decision.because.message


def test_a_replica_that_settles_is_looked_at_when_it_is_available() -> None:
    made = step(
        situation(*fleet_of("v1", "v1"), replica("new", ready_since=NOW - MINUTE), min_ready=HOUR),
    )
    assert made.outcome() == Again(HOUR - MINUTE, made.decision.because.message)


def test_a_refusal_that_ends_by_itself_is_looked_at_then_though_something_is_started_meanwhile() -> None:
    refusal = Hold(NOW + MINUTE, Because(Code.PAUSED, "until the maintenance window opens"))
    made = step(situation(*fleet_of("v1", "v1")), refusal=refusal)
    assert made.starts(Side.OLD) == 1
    assert made.outcome() == Again(MINUTE, refusal.because.message)


def test_a_missed_deadline_blocks_the_rollout() -> None:
    late = waiting(rollout={"deadline": MINUTE, "on_failure": OnFailure.HOLD}, progressed_at=NOW - HOUR)
    assert late.blocked is not None
    assert late.because.code is Code.PROGRESS_DEADLINE_EXCEEDED


# Groups.


def test_roles_of_a_group_step_in_lockstep() -> None:
    roomy = {"limits": Limits(4, 3, 3, 1)}
    ahead = situation(*fleet_of("v1", "v1"), replica("x"), replica("y"), rollout=roomy)
    behind = situation(*fleet_of("v1", "v1", "v1", "v1"), rollout=roomy)
    alone, together = step(ahead), step_together({"ahead": ahead, "behind": behind}, now=NOW)
    assert alone.starts(Side.NEW) == 1
    assert together["ahead"].starts(Side.NEW) == 0
    assert together["behind"].starts(Side.NEW) == 1


def test_a_role_that_is_refused_holds_its_group() -> None:
    stuck = situation(*fleet_of("v1", "v1", "v1"), rollout={"limits": resolve(3, min_available=3, max_surge=0)})
    free = situation(*fleet_of("v1", "v1", "v1"))
    steps = step_together({"stuck": stuck, "free": free}, now=NOW)
    assert steps["stuck"].blocked is not None
    assert steps["free"].because.code is Code.WAITING_FOR_ROLES
    assert steps["free"].stops == ()


# When a rollout last got further.


def last_progress(*replicas: Replica, before: datetime | None = NOW - HOUR, old: int | None = 2) -> datetime:
    return progressed(situation(*replicas, min_ready=MINUTE), before=before, old_before=old)


def test_a_rollout_that_begins_has_just_got_further() -> None:
    assert last_progress(*fleet_of("v1", "v1"), before=None) == NOW


def test_an_old_replica_that_went_is_progress() -> None:
    assert last_progress(*fleet_of("v1")) == NOW
    assert last_progress(*fleet_of("v1", "v1")) == NOW - HOUR
    assert last_progress(*fleet_of("v1"), old=None) == NOW - HOUR


NEW: dict[str, tuple[dict[str, Any], timedelta]] = {
    "became available, and is seen now": ({"ready_since": NOW - 5 * MINUTE}, timedelta()),
    "becomes ready after now, by the clock of its node": ({"ready_since": NOW + HOUR}, HOUR),
    "is available at this very moment": ({"ready_since": NOW - MINUTE}, timedelta()),
    "is ready and not yet available": ({"ready_since": NOW - MINUTE / 2}, HOUR),
    "was available before": ({"ready_since": NOW - 2 * HOUR}, HOUR),
    "is not ready": ({"ready_since": None}, HOUR),
    "is available again after a restart": ({"ready_since": NOW - 5 * MINUTE, "restarts": 1}, HOUR),
    "is of another revision": ({"ready_since": NOW - 5 * MINUTE, "revision": "v1"}, HOUR),
}


@pytest.mark.parametrize("name", NEW)
def test_progress_of_a_replica_that(name: str) -> None:
    fields, ago = NEW[name]
    assert last_progress(*fleet_of("v1", "v1"), replica("new", **fields), old=None) == NOW - ago


def test_progress_that_is_still_to_come_counts_as_now() -> None:
    assert last_progress(*fleet_of("v1", "v1"), before=NOW + HOUR) == NOW


def test_progress_is_seen_once() -> None:
    new = replica("new", ready_since=NOW - 5 * MINUTE)
    seen = last_progress(*fleet_of("v1", "v1"), new)
    assert last_progress(*fleet_of("v1", "v1"), new, before=seen) == seen


@pytest.mark.parametrize(("since", "blocked"), [(NOW - HOUR, False), (None, True)])
def test_a_missed_deadline_stops_no_rollout_whose_new_replicas_are_all_available(
    since: datetime | None, blocked: bool
) -> None:
    seen = situation(
        *fleet_of("v1", "v1"),
        replica("new", ready_since=since),
        rollout={"deadline": MINUTE},
        progress=Progress("v2"),
    )
    late = step(seen.since(NOW - HOUR))
    assert (late.blocked is not None) is blocked
    assert bool(late.stops) is not blocked


def test_the_same_situation_is_judged_with_the_time_of_its_progress() -> None:
    seen = situation(*fleet_of("v1"), rollout={"deadline": HOUR}, progress=Progress("v2"))
    assert seen.fleet.progressed_at is None
    assert seen.since(NOW - HOUR).fleet.progressed_at == NOW - HOUR


# Replicas with indices.


def test_while_an_old_replica_lives_no_index_must_leave() -> None:
    replicas = indexed(fleet_of("v1", "v2", "v2", "v2"), "v2", size=3)
    assert [each.leaving for each in replicas] == [False] * 4
    assert {each.ordinal for each in replicas} == {None}


@pytest.mark.parametrize("end", [{"terminating": True}, {"dead": True}])
def test_without_old_replicas_the_indices_beyond_the_size_make_way(end: dict[str, bool]) -> None:
    replicas = (replica("gone", "v1", ordinal=0, **end), *fleet_of("v2", "v2", "v2", "v2")[1:])
    assert [each.leaving for each in indexed(replicas, "v2", size=3)] == [False, False, False, True]


def test_a_replica_that_must_leave_anyway_still_must() -> None:
    assert indexed(fleet_of("v1", leaving=True), "v2", size=3)[0].leaving


def test_an_index_is_no_reason_to_leave_while_another_replica_leaves() -> None:
    leaving, *others = fleet_of("v2", "v2", "v2", "v2")
    replicas = indexed((msgspec.structs.replace(leaving, leaving=True), *others), "v2", size=3)
    assert [each.leaving for each in replicas] == [True, False, False, False]
