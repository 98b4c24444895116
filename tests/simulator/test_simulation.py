"""The simulator: promises kept however replicas behave, an end to every wait, and the stories of known outages."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import msgspec
import pytest

from holdfast.kernel.fleet import Side
from holdfast.kernel.guard import guard
from holdfast.kernel.planning import RolloutStrategy, WorkloadSpec
from holdfast.kernel.reasons import Code
from holdfast.kernel.rollout import Blocked, Decision, Kind, OnFailure, Start, Stop, Verdict, Wait, decide
from holdfast.kernel.strategies import CanaryStep
from holdfast.simulator.frames import Actor, Ending, Frame, InvariantBroken, Run
from holdfast.simulator.logs import log, samples
from holdfast.simulator.replicas import Behaviour, fate
from holdfast.simulator.scenarios import Scenario
from holdfast.simulator.scripts import Command, ScriptError, Verb, parse, parse_all
from holdfast.simulator.simulation import Simulation, simulate

SECOND = timedelta(seconds=1)
CANARY = (CanaryStep(replicas=1, approval=True), CanaryStep(weight=40, pause=30 * SECOND))
UNRELIABLE = Behaviour(crash=0.15, slow=0.1)


def scenario(replicas: int = 5, *, script: str = "", rollout: dict[str, Any] | None = None, **fields: Any) -> Scenario:
    spec = WorkloadSpec(replicas=replicas, rollout=RolloutStrategy(**(rollout or {})))
    return Scenario(spec=spec, script=parse_all([script]), **fields)


def run(replicas: int = 5, *, seed: int = 7, **fields: Any) -> Run:
    return simulate(scenario(replicas, **fields), seed=seed)


def unguarded(decision: Decision, *_: object, **__: object) -> Decision:
    return decision


# Rollouts of every kind.

STRATEGIES: dict[str, dict[str, Any]] = {
    "rolling": {"rollout": {"max_surge": "25%", "max_unavailable": "25%"}},
    "in place": {"rollout": {"max_surge": 0, "max_unavailable": 1}},
    "in batches": {"rollout": {"max_unavailable": 2, "pause_duration": 10 * SECOND}},
    "settling": {"rollout": {"max_surge": 1}, "min_ready": 5 * SECOND},
    "one place each": {"rollout": {"max_surge": 1}, "count_terminating": True},
    "ordered": {"ordered": True},
    "recreate": {"rollout": {"strategy": "Recreate"}},
    "blue and green": {"rollout": {"strategy": "BlueGreen", "approval": True}, "promote_after": 5 * SECOND},
    "canary": {"rollout": {"strategy": "Canary", "max_surge": 1, "canary_steps": CANARY}, "promote_after": 5 * SECOND},
    "on delete": {"rollout": {"strategy": "OnDelete"}, "script": "at 10s delete 3; at 40s delete 100"},
}


@pytest.mark.parametrize("kind", STRATEGIES)
def test_every_strategy_completes_and_keeps_its_promises_in_a_unreliable_cluster(kind: str) -> None:
    for seed in range(20):
        ended = run(6, seed=seed, behaviour=UNRELIABLE, **STRATEGIES[kind])
        assert ended.outcome.ending is Ending.COMPLETED, f"seed {seed}"
        assert ended.frames[-1].fleet.new.available == 6, f"seed {seed}"


INTERRUPTIONS = (
    "at 8s pause; at 20s kill 1; at 60s resume",
    "at 9s scale 9; at 25s scale 2",
    "at 9s revision v3; at 19s revision v4",
    "at 12s abort",
    "at 70s undo",
    "at 6s crash 3; at 16s kill 2",
)


@pytest.mark.parametrize("script", INTERRUPTIONS)
@pytest.mark.parametrize("kind", [kind for kind in STRATEGIES if kind != "on delete"])
def test_whatever_is_asked_for_midway_the_promises_hold_and_there_is_an_end(kind: str, script: str) -> None:
    for seed in range(3):
        ended = run(5, seed=seed, behaviour=UNRELIABLE, script=script, **STRATEGIES[kind])
        assert ended.outcome.good, f"seed {seed}: {ended.outcome}"


def test_while_no_replica_fails_the_floor_is_never_left() -> None:
    for replicas in range(1, 9):
        for surge in (0, 1, 3):
            for missing in (0, 1, 3):
                ended = run(replicas, rollout={"max_surge": surge, "max_unavailable": missing})
                if isinstance(ended.frames[-1].decision, Blocked):
                    assert ended.outcome.because.code is Code.NO_DISRUPTION_BUDGET
                    continue
                assert ended.outcome.lowest_ready >= max(0, replicas - missing)
                assert ended.outcome.most_live <= replicas + surge
                assert ended.outcome.dips == 0


def test_a_thousand_replicas_are_rolled_out_in_a_unreliable_cluster() -> None:
    ended = run(1_000, rollout={"max_surge": "10%", "max_unavailable": "5%"}, behaviour=UNRELIABLE)
    assert ended.outcome.ending is Ending.COMPLETED
    assert ended.outcome.final_ready == 1_000
    assert ended.outcome.most_live <= 1_100
    assert ended.outcome.crashes > 100


# The simulator itself.


def test_the_same_seed_gives_the_same_run_and_another_seed_another_one() -> None:
    fields: dict[str, Any] = {"behaviour": UNRELIABLE}
    assert run(seed=3, **fields) == run(seed=3, **fields)
    assert run(seed=3, **fields).frames != run(seed=4, **fields).frames


def test_the_fate_of_a_replica_depends_on_its_own_name_alone() -> None:
    drawn = [fate(UNRELIABLE, f"v2-{number}", seed=7, attempt=0) for number in range(50)]
    assert drawn == [fate(UNRELIABLE, f"v2-{number}", seed=7, attempt=0) for number in range(50)]
    assert len({each.ready_after for each in drawn}) > 3


def test_every_frame_says_what_happened_and_why() -> None:
    frames = run(behaviour=UNRELIABLE).frames
    assert all(frame.what and frame.decision.because.message for frame in frames)
    assert [frame.at for frame in frames] == sorted(frame.at for frame in frames)
    assert {frame.actor for frame in frames} == set(Actor)


def test_a_rule_that_stops_too_much_is_caught_with_the_log_that_led_to_it() -> None:
    def greedy(*arguments: Any, **named: Any) -> Verdict:
        verdict = decide(*arguments, **named)
        if isinstance(verdict.decision, Stop) and verdict.decision.kind is Kind.READY:
            more = msgspec.structs.replace(verdict.decision, count=verdict.decision.count + 1)
            return msgspec.structs.replace(verdict, decision=more)
        return verdict

    with pytest.raises(InvariantBroken, match=r"P1: .* at least 4 must be") as caught:
        simulate(scenario(5, rollout={"max_surge": 1}), seed=7, decide=greedy, guard=unguarded)
    assert "start 1 new" in str(caught.value)
    assert caught.value.frames[-1].what.startswith("stop")
    guarded = simulate(scenario(5, rollout={"max_surge": 1}), seed=7, decide=greedy, guard=guard)
    assert guarded.outcome.lowest_ready >= 4, "the guard stands between a wrong rule and the fleet"


def test_a_rule_that_starts_too_much_is_caught() -> None:
    def eager(*arguments: Any, **named: Any) -> Verdict:
        verdict = decide(*arguments, **named)
        if isinstance(verdict.decision, Start):
            more = msgspec.structs.replace(verdict.decision, count=verdict.decision.count + 1)
            return msgspec.structs.replace(verdict, decision=more)
        return verdict

    with pytest.raises(InvariantBroken, match=r"P2: .* at most 6 may be"):
        simulate(scenario(5, rollout={"max_surge": 1}), seed=7, decide=eager, guard=unguarded)


def test_an_engine_that_turns_in_circles_is_stopped_and_named() -> None:
    def restless(*arguments: Any, **named: Any) -> Verdict:
        verdict = decide(*arguments, **named)
        fleet = arguments[1]
        again: Decision = (
            Stop(Side.NEW, Kind.UNREADY, 1, verdict.decision.because)
            if fleet.new.unready
            else Start(Side.NEW, 1, verdict.decision.because)
        )
        return msgspec.structs.replace(verdict, decision=again)

    ended = simulate(scenario(3, rollout={"max_surge": 1}), seed=7, decide=restless)
    assert ended.outcome.ending is Ending.SPINNING


def test_an_engine_that_waits_for_nothing_is_called_stuck() -> None:
    def lazy(*arguments: Any, **named: Any) -> Verdict:
        verdict = decide(*arguments, **named)
        return msgspec.structs.replace(verdict, decision=Wait(Side.NEW, 1, None, verdict.decision.because))

    assert simulate(scenario(3), seed=7, decide=lazy).outcome.ending is Ending.STUCK


def test_a_wait_without_end_is_out_of_time() -> None:
    ended = run(3, rollout={"max_surge": 1, "min_available": 3}, script="at 0s quota 3", limit=timedelta(hours=2))
    assert ended.outcome.ending is Ending.OUT_OF_TIME
    assert ended.outcome.because.code is Code.AT_CEILING


def test_a_step_that_is_not_promoted_ends_as_waiting_for_a_user() -> None:
    ended = run(5, rollout={"strategy": "Canary", "max_surge": 1, "canary_steps": CANARY})
    assert ended.outcome.ending is Ending.WAITING
    assert ended.outcome.because.code is Code.APPROVAL_NEEDED


def test_a_rollout_is_not_late_while_a_step_waits_for_approval() -> None:
    ended = run(
        5,
        rollout={"strategy": "Canary", "max_surge": 1, "canary_steps": CANARY},
        promote_after=timedelta(hours=1),
        deadline=60 * SECOND,
        on_failure=OnFailure.ROLL_BACK,
    )
    assert ended.outcome.ending is Ending.COMPLETED


def test_crashes_below_the_floor_are_told_apart_from_what_the_engine_did() -> None:
    ended = run(5, rollout={"max_surge": 1, "max_unavailable": 0}, script="at 5s crash 2")
    assert ended.outcome.dips == 1
    assert ended.outcome.below > timedelta()
    assert ended.outcome.lowest_ready == 3
    assert any("crashes or deletions took it below once" in line for line in log(ended, title="crashes"))


def test_a_command_that_is_added_while_it_runs_is_carried_out() -> None:
    simulation = Simulation(scenario(4, rollout={"max_surge": 1}), seed=7)
    for frame in simulation.frames():
        if frame.fleet.new.available == 2 and frame.target == "v2":
            simulation.order(Command(frame.at, Verb.ABORT))
    assert simulation.outcome().ending is Ending.WITHDRAWN
    assert {replica.revision for replica in frame.replicas} == {"v1"}


def test_an_outcome_is_only_given_at_the_end() -> None:
    with pytest.raises(RuntimeError, match="not over"):
        Simulation(scenario(), seed=7).outcome()


def test_samples_of_a_switched_rollout_count_only_the_revision_that_serves() -> None:
    ended = run(4, rollout={"strategy": "BlueGreen"})
    assert {sample.total for sample in samples(ended.frames)} == {4}


# Scripts.


@pytest.mark.parametrize(
    ("line", "command"),
    [
        ("at 30s pause", Command(30 * SECOND, Verb.PAUSE)),
        ("at 1m scale 8", Command(60 * SECOND, Verb.SCALE, number=8)),
        ("at 5s revision v3", Command(5 * SECOND, Verb.REVISION, name="v3")),
        ("at 5s drain node-2", Command(5 * SECOND, Verb.DRAIN, number=2, name="node-2")),
        ("at 5s drain 2", Command(5 * SECOND, Verb.DRAIN, number=2, name="node-2")),
    ],
)
def test_a_line_of_a_script_is_a_command(line: str, command: Command) -> None:
    assert parse(line) == command


@pytest.mark.parametrize(
    ("line", "hint"),
    [
        ("pause", "write 'at 30s ...'"),
        ("at 5s explode", "one of: pause, resume"),
        ("at 5 pause", "no unit after '5'"),
        ("at -5s pause", "begins at 0s"),
        ("at 5s scale", "write 'at 5s scale REPLICAS'"),
        ("at 5s pause now", "write 'at 5s pause'"),
        ("at 5s scale many", "a whole number"),
        ("at 5s scale 99999999", "at most 1,000,000"),
        ("at 5s scale -1", "a whole number"),
    ],
)
def test_a_line_that_is_no_command_is_refused_with_what_to_write(line: str, hint: str) -> None:
    with pytest.raises(ScriptError) as caught:
        parse(line)
    assert hint in str(caught.value)


def test_several_commands_may_stand_on_a_line_and_are_sorted_by_time() -> None:
    assert [str(command) for command in parse_all(["at 9s resume; at 5s pause", "at 7s scale 3"])] == [
        "pause",
        "scale 3",
        "resume",
    ]


# Known outages of others, as stories that end well here.


def test_kubernetes_67250_an_ordered_fleet_recovers_from_a_broken_revision_without_manual_deletes() -> None:
    ended = run(4, ordered=True, behaviour=Behaviour(broken=frozenset({"v2"})), script="at 60s revision v3", seed=1)
    assert ended.outcome.ending is Ending.COMPLETED
    assert ended.outcome.lowest_ready >= 3
    assert {replica.revision for replica in ended.frames[-1].replicas} == {"v3"}
    assert not any(frame.what.startswith("delete") for frame in ended.frames)


def test_argo_777_an_abort_never_stops_the_replicas_that_serve() -> None:
    for strategy in ("Canary", "BlueGreen", "RollingUpdate"):
        for moment in range(1, 60, 4):
            ended = run(
                5,
                rollout={"strategy": strategy, "max_surge": 1, "max_unavailable": 1, "canary_steps": CANARY},
                promote_after=5 * SECOND,
                script=f"at {moment}s abort",
            )
            assert ended.outcome.lowest_ready >= 4, f"{strategy}, aborted at {moment}s"


def test_argo_3284_surge_and_floor_hold_in_every_mode_and_not_only_in_the_usual_one() -> None:
    for kind, fields in STRATEGIES.items():
        ended = run(8, **fields)
        limits = scenario(8, **fields).rollout(8).limits
        if kind not in ("recreate", "on delete"):
            assert ended.outcome.lowest_ready >= limits.floor, kind
        assert ended.outcome.most_live <= (16 if kind == "blue and green" else limits.ceiling), kind


def test_kubernetes_72775_an_autoscaler_that_reads_our_count_does_not_run_away_with_the_surge() -> None:
    """An autoscaler that multiplies what it reads by one must not grow a fleet of 383 to 664."""
    simulation = Simulation(scenario(383, rollout={"max_surge": "25%", "max_unavailable": 0}), seed=7)
    asked, last = [383], timedelta()
    for frame in simulation.frames():
        if frame.at >= last + 5 * SECOND:
            last = frame.at
            asked.append(published_replicas(frame))
            simulation.order(Command(frame.at, Verb.SCALE, number=asked[-1]))
    assert set(asked) == {383}
    assert simulation.outcome().most_live <= 383 + 96
    assert simulation.outcome().final_ready == 383


def published_replicas(frame: Frame) -> int:
    """What status.replicas says: replicas that run, without those that are only surge."""
    return min(frame.fleet.live, frame.desired)


@pytest.mark.parametrize("unready", [1, 2, 3, 4, 5])
def test_lws_488_and_568_unready_old_replicas_neither_cause_downtime_nor_block(unready: int) -> None:
    for surge in (0, 1):
        ended = run(5, unready=unready, rollout={"max_surge": surge, "max_unavailable": 1})
        assert ended.outcome.ending is Ending.COMPLETED
        assert ended.outcome.lowest_ready >= min(4, 5 - unready)


@pytest.mark.parametrize(
    "rollout", [{"max_surge": 1}, {}, {"max_surge": 1, "max_unavailable": 0}, {"min_available": 1}]
)
def test_lws_779_a_single_replica_with_a_surge_of_one_is_replaced_without_a_gap(rollout: dict[str, Any]) -> None:
    ended = run(1, rollout=rollout)
    assert ended.outcome.ending is Ending.COMPLETED
    assert ended.outcome.lowest_ready == 1
    assert ended.outcome.most_live == 2


def test_kubernetes_98656_a_rollout_goes_on_when_the_quota_is_raised_and_not_when_a_backoff_ends() -> None:
    ended = run(4, rollout={"max_surge": 1, "max_unavailable": 0}, script="at 0s quota 4; at 20m quota 10")
    assert ended.outcome.ending is Ending.COMPLETED
    raised = next(index for index, frame in enumerate(ended.frames) if frame.what == "quota 10")
    after = ended.frames[raised + 1]
    assert after.what == "start 1 new"
    assert after.at == timedelta(minutes=20)
