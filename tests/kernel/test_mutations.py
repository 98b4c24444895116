"""Break a rule on purpose: the proof must notice, or it proves nothing."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import msgspec
import pytest

from holdfast.kernel import rollout as engine
from holdfast.kernel.fleet import Fleet, Side
from holdfast.kernel.limits import Limits
from holdfast.kernel.reasons import Because, Code
from holdfast.kernel.rollout import Done, Kind, Rollout, Stop, Verdict, Wait, decide
from holdfast.kernel.strategies import CanaryStep, Step, blue_green, canary, recreate, rolling_update
from holdfast.testing.explore import Breach, Exploration, explore

SECOND = timedelta(seconds=1)
Mutation = Callable[[pytest.MonkeyPatch], None]


def first_breach(
    steps: tuple[Step, ...] = rolling_update(), *, unready_at_a_time: int | None = None, **walk: Any
) -> Breach | None:
    for replicas, surge in itertools.product(range(1, 4), range(2)):
        for floor in range(replicas + 1):
            limits = Limits(replicas, floor, floor, surge)
            rollout = Rollout(limits=limits, steps=steps, unready_at_a_time=unready_at_a_time)
            report = explore(Exploration(rollouts=(rollout,), old=replicas, **walk), most=1)
            if report.breaches:
                return report.breaches[0]
    return None


def patched(monkeypatch: pytest.MonkeyPatch, name: str, change: Callable[..., Any]) -> None:
    """Wrap one of the engine's functions: `change` gets its result and its arguments."""
    original = getattr(engine, name)
    monkeypatch.setattr(engine, name, lambda *args, **kwargs: change(original(*args, **kwargs), *args, **kwargs))


def floor_is_one_too_low(monkeypatch: pytest.MonkeyPatch) -> None:
    patched(monkeypatch, "_shape", lambda shape, *_: msgspec.structs.replace(shape, floor=max(0, shape.floor - 1)))


def ceiling_is_one_too_high(monkeypatch: pytest.MonkeyPatch) -> None:
    patched(monkeypatch, "_shape", lambda shape, *_: msgspec.structs.replace(shape, ceiling=shape.ceiling + 1))


def a_batch_is_at_least_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """The seed's own second invariant."""

    def change(stop: Stop | None, rollout: Rollout, fleet: Fleet, shape: engine.Shape, *_: object) -> object:
        if stop is None and fleet.old.ready and fleet.old.live > shape.old:
            return Stop(Side.OLD, Kind.READY, 1, Because(Code.STOPPING_OLD, "at least one"))
        return stop

    patched(monkeypatch, "_stop_surplus", change)


def unready_replicas_count_as_available(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Fleet, "available", property(lambda fleet: fleet.live))


def unready_old_replicas_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "_remove_useless", lambda *_: None)


def infeasible_rollouts_are_not_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "_refusal", lambda *_: None)


def old_replicas_are_never_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "_stop_surplus", lambda *_: None)


def nothing_is_started(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "_start_missing", lambda *_: None)


def waits_are_skipped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "_wait", lambda *_: None)


MUTATIONS: dict[Mutation, str] = {
    floor_is_one_too_low: "P1",
    ceiling_is_one_too_high: "P2",
    a_batch_is_at_least_one: "P1",
    unready_replicas_count_as_available: "P1",
    unready_old_replicas_stay: "P3",
    infeasible_rollouts_are_not_refused: "P3",
    old_replicas_are_never_stopped: "P3",
    nothing_is_started: "P3",
    waits_are_skipped: "P4",
}


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: str(mutation.__name__))
def test_a_weakened_rule_is_caught(mutation: Mutation, monkeypatch: pytest.MonkeyPatch) -> None:
    assert first_breach() is None
    mutation(monkeypatch)
    breach = first_breach()
    assert breach is not None
    assert breach.promise == MUTATIONS[mutation]


def test_a_switch_that_does_not_wait_for_the_new_set_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    steps = blue_green(pause=SECOND, delay=SECOND)
    assert first_breach(steps, traffic=0) is None
    monkeypatch.setattr(Fleet, "active", property(lambda fleet: None))
    patched(monkeypatch, "_shape", lambda shape, *_: msgspec.structs.replace(shape, floor=0))
    assert first_breach(steps, traffic=0) is not None


def test_a_canary_that_turns_back_its_new_replicas_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    steps = canary((CanaryStep(weight=30, approval=True),))
    assert first_breach(steps) is None
    patched(monkeypatch, "_shape", lambda shape, *_: msgspec.structs.replace(shape, new=0))
    assert first_breach(steps) is not None


def test_a_recreate_that_does_not_wait_until_none_is_alive_is_not_done(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "_gate", lambda *_: None)
    monkeypatch.setattr(engine, "_stop_surplus", lambda *_: None)
    assert first_breach(recreate()) is not None


def test_an_engine_that_says_two_things_of_one_fleet_is_caught() -> None:
    asked = itertools.count()

    def moody(*args: Any, **kwargs: Any) -> Verdict:
        verdict = decide(*args, **kwargs)
        because = Because(Code.WAITING_FOR_READY, f"asked {next(asked)} times")
        return msgspec.structs.replace(verdict, decision=msgspec.structs.replace(verdict.decision, because=because))

    breach = first_breach(decide=moody)
    assert breach is not None
    assert breach.promise == "P6"


def test_an_engine_that_is_done_too_early_is_caught() -> None:
    def hasty(*args: Any, **kwargs: Any) -> Verdict:
        verdict = decide(*args, **kwargs)
        if isinstance(verdict.decision, Wait):
            return msgspec.structs.replace(verdict, decision=Done(Because(Code.COMPLETED, "surely")))
        return verdict

    breach = first_breach(decide=hasty)
    assert breach is not None
    assert breach.promise == "P4"


def test_a_fleet_whose_unready_replicas_are_all_replaced_at_once_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    assert first_breach(unready_at_a_time=1) is None
    original = engine._remove_useless

    def greedy(rollout: Rollout, fleet: Fleet, shape: engine.Shape) -> Stop | None:
        return original(msgspec.structs.replace(rollout, unready_at_a_time=None), fleet, shape)

    monkeypatch.setattr(engine, "_remove_useless", greedy)
    breach = first_breach(unready_at_a_time=1)
    assert breach is not None
    assert breach.promise == "P13"
