"""Golden simulations: whole rollouts as logs that can be read, one for each strategy and turn of events.

A log changes when the engine's behaviour or its words do.  Read the difference;
if it is meant, write the files again with ``HOLDFAST_UPDATE_GOLDEN=1`` set, and
commit them with the change.
"""

from __future__ import annotations

import difflib
import os
from datetime import timedelta
from pathlib import Path

import pytest
from tests.places import ROOT

from holdfast.kernel.planning import RolloutStrategy, WorkloadSpec
from holdfast.kernel.rollout import OnFailure
from holdfast.kernel.strategies import CanaryStep
from holdfast.simulator.logs import log
from holdfast.simulator.replicas import Behaviour
from holdfast.simulator.scenarios import Scenario
from holdfast.simulator.scripts import parse_all
from holdfast.simulator.simulation import simulate

GOLDEN = Path(__file__).parent.parent / "golden"
UPDATE = "HOLDFAST_UPDATE_GOLDEN"
SEED = 7

SECOND = timedelta(seconds=1)
BROKEN = Behaviour(broken=frozenset({"v2"}))
SURGE = RolloutStrategy(max_surge=2, max_unavailable=0)
IN_PLACE = RolloutStrategy(max_surge=0, max_unavailable=1)
CANARY = RolloutStrategy(
    strategy="Canary",
    max_surge=1,
    max_unavailable=0,
    canary_steps=(CanaryStep(replicas=1, approval=True), CanaryStep(weight=50, pause=30 * SECOND)),
)
BLUE_GREEN = RolloutStrategy(strategy="BlueGreen", approval=True, scale_down_delay=20 * SECOND)

SCENARIOS = {
    "rolling-update-with-surge": (
        "RollingUpdate of 6 replicas with a surge of 2: never fewer than 6 ready",
        Scenario(spec=WorkloadSpec(replicas=6, rollout=SURGE)),
    ),
    "rolling-update-in-place": (
        "RollingUpdate of 4 replicas without surge: one may be missing, and each settles for 5s",
        Scenario(spec=WorkloadSpec(replicas=4, rollout=IN_PLACE), min_ready=5 * SECOND),
    ),
    "rolling-update-in-batches": (
        "RollingUpdate of 6 replicas, 2 at a time, with a pause of 20s between batches",
        Scenario(
            spec=WorkloadSpec(
                replicas=6, rollout=RolloutStrategy(max_surge=0, max_unavailable=2, pause_duration=20 * SECOND)
            )
        ),
    ),
    "partition": (
        "RollingUpdate of 5 replicas with a partition: 2 stay at the old revision",
        Scenario(spec=WorkloadSpec(replicas=5, rollout=RolloutStrategy(max_surge=1, partition=2))),
    ),
    "ordered": (
        "RollingUpdate of 4 ordered replicas: one ordinal after another",
        Scenario(spec=WorkloadSpec(replicas=4, rollout=RolloutStrategy()), ordered=True),
    ),
    "recreate": (
        "Recreate of 4 replicas: all go before the first new one starts, which no floor survives",
        Scenario(spec=WorkloadSpec(replicas=4, rollout=RolloutStrategy(strategy="Recreate"))),
    ),
    "blue-green": (
        "BlueGreen of 4 replicas: a second set, an approval, the switch, a delay for second thoughts",
        Scenario(spec=WorkloadSpec(replicas=4, rollout=BLUE_GREEN), promote_after=15 * SECOND),
    ),
    "blue-green-aborted-after-the-switch": (
        "BlueGreen of 3 replicas, aborted after the switch: traffic returns to a set that still runs",
        Scenario(
            spec=WorkloadSpec(replicas=3, rollout=BLUE_GREEN),
            promote_after=5 * SECOND,
            script=parse_all(["at 25s abort"]),
        ),
    ),
    "canary": (
        "Canary of 6 replicas: one until it is promoted, half for 30s, then all",
        Scenario(spec=WorkloadSpec(replicas=6, rollout=CANARY), promote_after=20 * SECOND),
    ),
    "on-delete": (
        "OnDelete of 3 replicas: only what a user deletes is replaced",
        Scenario(
            spec=WorkloadSpec(replicas=3, rollout=RolloutStrategy(strategy="OnDelete")),
            script=parse_all(["at 5s delete 1; at 30s delete 2"]),
        ),
    ),
    "held-at-the-deadline": (
        "A revision that never becomes ready: held after a minute without progress",
        Scenario(spec=WorkloadSpec(replicas=4, rollout=SURGE), behaviour=BROKEN, deadline=60 * SECOND),
    ),
    "aborted-at-the-deadline": (
        "A revision that never becomes ready: withdrawn after a minute, and what made way comes back",
        Scenario(
            spec=WorkloadSpec(replicas=4, rollout=IN_PLACE),
            behaviour=BROKEN,
            deadline=60 * SECOND,
            on_failure=OnFailure.ABORT,
        ),
    ),
    "rolled-back-at-the-deadline": (
        "A canary that never becomes ready: rolled back after a minute, and rejected",
        Scenario(
            spec=WorkloadSpec(replicas=6, rollout=CANARY),
            behaviour=BROKEN,
            deadline=60 * SECOND,
            on_failure=OnFailure.ROLL_BACK,
        ),
    ),
    "third-revision-midway": (
        "A third revision arrives midway: the second makes way first",
        Scenario(
            spec=WorkloadSpec(replicas=5, rollout=RolloutStrategy(max_surge=2, max_unavailable=1)),
            script=parse_all(["at 10s revision v3"]),
        ),
    ),
    "scaled-midway": (
        "Scaled from 4 to 6 and down to 3 in the middle of an update",
        Scenario(
            spec=WorkloadSpec(replicas=4, rollout=RolloutStrategy(max_surge=1, max_unavailable=0)),
            script=parse_all(["at 12s scale 6; at 40s scale 3"]),
        ),
    ),
    "paused-and-resumed": (
        "Paused midway: lost replicas are replaced all the same, and the update goes on when it is resumed",
        Scenario(
            spec=WorkloadSpec(replicas=4, rollout=RolloutStrategy(max_surge=1, max_unavailable=0)),
            script=parse_all(["at 12s pause; at 30s kill 2; at 60s resume"]),
        ),
    ),
    "undone-after-completion": (
        "Undone after it was complete: the earlier revision is rolled out as carefully",
        Scenario(
            spec=WorkloadSpec(replicas=3, rollout=RolloutStrategy(max_surge=1, max_unavailable=0)),
            script=parse_all(["at 60s undo"]),
        ),
    ),
    "node-drained": (
        "A node is drained while nothing else happens: its replicas are replaced before they stop",
        Scenario(
            spec=WorkloadSpec(replicas=6, rollout=SURGE),
            before="v1",
            target="v1",
            behaviour=Behaviour(nodes=3),
            script=parse_all(["at 5s drain node-2"]),
        ),
    ),
    "blue-green-drained": (
        "BlueGreen, and a node is drained after the switch: what serves is replaced above the floor",
        Scenario(
            spec=WorkloadSpec(replicas=4, rollout=RolloutStrategy(strategy="BlueGreen", min_available=3)),
            behaviour=Behaviour(nodes=3),
            script=parse_all(["at 100s drain node-1"]),
        ),
    ),
    "blocked": (
        "Everything must stay and nothing may be added: refused before anything is touched",
        Scenario(spec=WorkloadSpec(replicas=3, rollout=RolloutStrategy(max_surge=0, min_available=3))),
    ),
    "crashes": (
        "RollingUpdate of 10 replicas in an unreliable cluster: crashes, deaths, slow starts",
        Scenario(
            spec=WorkloadSpec(replicas=10, rollout=RolloutStrategy(max_surge="20%", min_available=8)),
            behaviour=Behaviour(crash=0.25, slow=0.15),
        ),
    ),
    "first-rollout": (
        "The first rollout of 4 replicas: there is nothing to protect, so all start at once",
        Scenario(spec=WorkloadSpec(replicas=4), current=0, target="v1"),
    ),
}


@pytest.mark.parametrize("name", SCENARIOS)
def test_the_rollout_goes_as_its_golden_log_says(name: str) -> None:
    title, scenario = SCENARIOS[name]
    run = simulate(scenario, seed=SEED)
    text = "\n".join(log(run, title=title)) + "\n"
    path = GOLDEN / f"{name}.log"
    if os.environ.get(UPDATE):
        path.write_text(text, encoding="utf-8")
    golden = path.read_text(encoding="utf-8") if path.exists() else ""
    if text != golden:
        difference = difflib.unified_diff(golden.splitlines(), text.splitlines(), str(path.name), "now", lineterm="")
        command = f"{UPDATE}=1 python -m pytest {Path(__file__).relative_to(ROOT)}"
        pytest.fail("\n".join([*difference, "", f"if this is meant: {command}"]), pytrace=False)


def test_every_golden_log_belongs_to_a_scenario() -> None:
    assert {path.stem for path in GOLDEN.glob("*.log")} == set(SCENARIOS)


def test_a_log_is_the_same_however_often_it_is_made() -> None:
    title, scenario = SCENARIOS["crashes"]
    first, second = (list(log(simulate(scenario, seed=SEED), title=title)) for _ in range(2))
    assert first == second
