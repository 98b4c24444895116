"""Whole fleets of named replicas under random scripts: what counting, choosing and acting do together.

The simulator counts the promises after every act by itself; here is checked
how each run ends.  A failure names the seed that replays it.
"""

from __future__ import annotations

from datetime import timedelta
from random import Random

import pytest

from holdfast.kernel.planning import RolloutStrategy, WorkloadSpec
from holdfast.kernel.rollout import OnFailure
from holdfast.kernel.strategies import CanaryStep, Strategy
from holdfast.simulator.frames import Ending, Run
from holdfast.simulator.replicas import Behaviour
from holdfast.simulator.scenarios import Scenario
from holdfast.simulator.scripts import Command, Verb
from holdfast.simulator.simulation import simulate

SECOND = timedelta(seconds=1)
STEPS = (CanaryStep(weight=20, pause=30 * SECOND), CanaryStep(weight=60, approval=True))


def any_command(random: Random) -> Command:
    verb = random.choice([verb for verb in Verb if verb is not Verb.QUOTA])
    at = random.choice([random.randint(0, 150), random.randint(150, 600)]) * SECOND
    match verb:
        case Verb.REVISION:
            return Command(at, verb, name=random.choice(["v1", "v2", "v3", "v4"]))
        case Verb.SCALE:
            return Command(at, verb, random.choice([0, 1, 2, 4, 7, 15]))
        case Verb.DRAIN | Verb.DELETE | Verb.CRASH | Verb.KILL:
            return Command(at, verb, random.randint(1, 4))
        case _:
            return Command(at, verb)


def any_scenario(random: Random) -> Scenario:
    replicas, strategy = random.choice([1, 2, 3, 5, 8, 12]), random.choice(list(Strategy))
    rollout = RolloutStrategy(
        strategy=strategy,
        max_surge=random.choice([None, 0, 1, 2, "50%"]),
        max_unavailable=random.choice([None, 0, 1, 2, "50%"]),
        min_available=random.choice([None, None, 0, 1, replicas]),
        pause_duration=random.choice([0, 0, 20]) * SECOND,
        partition=random.choice([0, 0, 2]) if strategy is Strategy.ROLLING_UPDATE else 0,
        canary_steps=STEPS,
        approval=random.random() < 0.3,
        scale_down_delay=random.choice([0, 40]) * SECOND,
    )
    script = [any_command(random) for _ in range(random.randint(0, 6))]
    return Scenario(
        spec=WorkloadSpec(replicas=replicas, rollout=rollout),
        current=random.choice([None, None, 0, replicas // 2, replicas + 3]),
        ordered=random.random() < 0.25 and strategy is not Strategy.BLUE_GREEN,
        count_terminating=random.random() < 0.3,
        min_ready=random.choice([0, 0, 10]) * SECOND,
        deadline=random.choice([None, None, 60 * SECOND, 600 * SECOND]),
        on_failure=random.choice(list(OnFailure)),
        behaviour=Behaviour(
            crash=random.choice([0, 0, 0.1]),
            slow=random.choice([0, 0.1]),
            broken=frozenset(random.choice([[], [], ["v2"], ["v3"]])),
        ),
        script=(*script, Command(900 * SECOND, Verb.RESUME)),
        promote_after=random.choice([None, 10 * SECOND]),
        limit=timedelta(hours=3),
    )


def check(scenario: Scenario, run: Run) -> None:
    ending, last = run.outcome.ending, run.frames[-1]
    assert ending not in (Ending.SPINNING, Ending.OUT_OF_TIME), run.outcome.because
    assert ending is not Ending.STUCK or scenario.behaviour.broken, run.outcome.because
    if ending not in (Ending.COMPLETED, Ending.WITHDRAWN):
        return
    live = [replica for replica in last.replicas if not replica.terminating and not replica.dead]
    assert len(live) == last.desired
    if scenario.ordered:
        assert sorted(replica.ordinal or 0 for replica in live) == list(range(last.desired))


@pytest.mark.parametrize("start", range(0, 2_000, 500))
def test_whatever_people_do_the_promises_hold_and_it_ends(start: int) -> None:
    for seed in range(start, start + 500):
        scenario = any_scenario(Random(seed))
        try:
            check(scenario, simulate(scenario, seed=seed))
        except AssertionError as error:
            raise AssertionError(f"seed {seed}: {error}") from error
