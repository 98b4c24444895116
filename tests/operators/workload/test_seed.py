"""The seed's 29 cases (CLD-REQ-023), and the 6 further ones of its workload suite, each driven through the operator.

The seed writes 0 for "not set"; absent means the same here.  Where the seed contradicts
itself, its first invariant wins: in every phase, ready minus stopped is at least the minimum.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import pytest
from tests.operators.workload.stages import Wire, Witness, change, images, operated, reaches, workload

from holdfast.client.resources import EVENTS, PODS, SERVICES
from holdfast.kinds.cloudless import KINDS
from holdfast.meta.errors import Invalid
from holdfast.operators.workload.controller import CONTROLLERS
from holdfast.operators.workload.observe import WORKLOADS
from holdfast.testing.clusters import Cluster, play


@dataclass(frozen=True, kw_only=True)
class Run:
    """How a change went: the status at the end, what a witness saw, what runs, and what was reported."""

    status: Wire
    witness: Witness
    images: list[str]
    reported: list[str]

    @property
    def minimum(self) -> int:
        return int(self.status["limits"]["minAvailable"])

    def stopped(self, reason: str) -> list[int]:
        """How many were stopped at a time for a reason."""
        found = [re.match(rf"{reason}: Stopping (\d+) ", each) for each in self.reported]
        return [int(match[1]) for match in found if match is not None]


def rollout_of(**rollout: Any) -> Wire:
    """The rollout that a case asks for; None is not set."""
    return {name: value for name, value in rollout.items() if value is not None}


def changed(current: int, desired: int, **rollout: Any) -> Run:
    """From `current` replicas of one image to `desired` of the next, or from nothing."""

    async def story(cluster: Cluster) -> Run:
        async with Witness(cluster, floor=0).watching() as witness:
            if current:
                await cluster.create(WORKLOADS, workload(replicas=current, rollout=rollout_of(**rollout)))
                await reaches(cluster, "Completed")
            before = cluster.server.store.revision
            witness.begin()
            if current:
                await change(cluster, image="web:2", replicas=desired)
            else:
                await cluster.create(WORKLOADS, workload("web:2", replicas=desired, rollout=rollout_of(**rollout)))
            status = await reaches(cluster, "Completed")
            reported = await _reported(cluster, since=before)
            return Run(status=status, witness=witness, images=await images(cluster), reported=reported)

    return operated(story)


async def _reported(cluster: Cluster, *, since: int) -> list[str]:
    """What was reported of the Workload since then, in the order in which it was reported last."""
    events = [event for event in await cluster.list(EVENTS) if event["involvedObject"]["kind"] == "Workload"]
    events.sort(key=lambda event: int(event["metadata"]["resourceVersion"]))
    return [
        f"{event['reason']}: {event['message']}"
        for event in events
        if int(event["metadata"]["resourceVersion"]) > since
    ]


# TC-001: enforcement. (RollingUpdate, surge 1, pause 1 s)

ENFORCEMENT = {
    # name: current, desired, min, maxUnavailable, resolved minimum, largest batch
    "1 enforce_min_available_3_of_5": (5, 5, 3, 2, 3, 2),
    "2 min_available_equals_replicas": (3, 3, 3, 2, 3, 1),
    "3 min_available_zero_no_constraint": (5, 5, 0, 3, 2, 3),
    "4 min_available_1_default": (4, 4, 1, 2, 1, 2),
    "5 max_unavailable_limited_by_min_available": (5, 5, 4, 3, 4, 1),
    "6 scale_down_with_min_available": (5, 3, 2, 2, 2, 2),
    "7 min_available_exceeds_replicas_clamped": (3, 3, 5, 1, 3, 1),
}


@pytest.mark.parametrize("name", ENFORCEMENT)
def test_enforcement(name: str) -> None:
    current, desired, minimum, unavailable, resolved, batch = ENFORCEMENT[name]
    run = changed(current, desired, minAvailable=minimum, maxUnavailable=unavailable, maxSurge=1, pauseDuration="1s")
    assert run.minimum == resolved
    assert run.witness.lowest >= min(resolved, current)
    assert run.witness.highest <= max(current, desired + 1)
    batches = run.stopped("StoppingOld")
    assert batches
    assert max(batches) <= batch
    assert run.images == ["web:2"] * desired


@pytest.mark.parametrize(("replicas", "minimum"), [(3, 3), (3, 5)], ids=["2", "7"])
def test_a_fleet_at_its_minimum_is_blocked_when_surge_is_zero(replicas: int, minimum: int) -> None:
    async def story(cluster: Cluster) -> None:
        rollout = {"minAvailable": minimum, "maxUnavailable": 1, "maxSurge": 0}
        await cluster.create(WORKLOADS, workload(replicas=replicas, rollout=rollout))
        await reaches(cluster, "Completed")
        await change(cluster, image="web:2")
        status = await reaches(cluster, "Paused")
        blocked = next(each for each in status["conditions"] if each["type"] == "Blocked")
        assert (blocked["status"], blocked["reason"]) == ("True", "NoDisruptionBudget")
        assert "set maxSurge to 1 or more" in blocked["message"]
        assert await images(cluster) == ["web:1"] * replicas

    operated(story)


# TC-002: validation.

VALIDATION = {
    # name: total, ready, min, whether that is enough
    "8 sufficient_ready_replicas": (5, 4, 3, True),
    "9 exactly_min_available": (5, 3, 3, True),
    "10 insufficient_ready_replicas": (5, 2, 3, False),
    "11 zero_min_available_no_constraint": (5, 0, 0, True),
    "12 all_replicas_ready": (3, 3, 2, True),
}


async def fleet(cluster: Cluster, total: int, ready: int, *, minimum: int, **rollout: Any) -> list[str]:
    """A complete Workload, of which only some replicas are still ready; gives their names."""
    asked = {"minAvailable": minimum, "maxUnavailable": total, **rollout}
    await cluster.create(WORKLOADS, workload(replicas=total, rollout=asked))
    await cluster.settle()
    await cluster.report_all()
    await reaches(cluster, "Completed")
    names = [pod["metadata"]["name"] for pod in await cluster.list(PODS)]
    for name in names[ready:]:
        await cluster.report(name, ready=False)
    await cluster.settle()
    return names[:ready]


@pytest.mark.parametrize("name", VALIDATION)
def test_validation(name: str) -> None:
    total, ready, minimum, valid = VALIDATION[name]

    async def story(cluster: Cluster) -> None:
        await fleet(cluster, total, ready, minimum=minimum)
        conditions = (await cluster.get(WORKLOADS, "web"))["status"]["conditions"]
        found = {each["type"]: each for each in conditions}
        assert found["Available"]["status"] == str(valid)
        assert found["FloorHeld"]["status"] == str(valid)
        assert found["Available"]["message"] == f"{ready} of {total} replicas available, the floor is {minimum}"

    play(story, controllers=CONTROLLERS, kinds=KINDS)


# TC-003: how many can be stopped.

STOPPABLE = {
    # name: total, ready, min, how many
    "13 can_stop_two_replicas": (5, 5, 3, 2),
    "14 can_stop_zero_at_min": (3, 3, 3, 0),
    "15 can_stop_all_no_constraint": (5, 5, 0, 5),
    "16 negative_result_clamped_to_zero": (5, 2, 3, 0),
    "17 can_stop_one_replica": (4, 4, 3, 1),
    "18 partial_ready_replicas": (5, 4, 3, 1),
}


@pytest.mark.parametrize("name", STOPPABLE)
def test_max_replicas_to_stop(name: str) -> None:
    total, ready, minimum, stoppable = STOPPABLE[name]

    async def story(cluster: Cluster) -> None:
        serving = await fleet(cluster, total, ready, minimum=minimum, maxSurge=0)
        await change(cluster, image="web:2")
        await cluster.settle()
        left = {pod["metadata"]["name"] for pod in await cluster.list(PODS)}
        assert len(left.intersection(serving)) == ready - stoppable

    play(story, controllers=CONTROLLERS, kinds=KINDS)


# TC-004 and TC-005: Recreate and BlueGreen.


@pytest.mark.parametrize(
    "minimum", [2, None], ids=["19 recreate_with_min_available_warning", "20 recreate_with_zero_min_available"]
)
def test_recreate_stops_all_first_and_warns(minimum: int | None) -> None:
    run = changed(3, 3, strategy="Recreate", minAvailable=minimum, pauseDuration="1s")
    assert run.minimum == 2
    assert run.stopped("StoppingOld") == [3]
    assert (run.witness.lowest, run.witness.highest) == (0, 3)
    warned = next(each for each in run.status["conditions"] if each["type"] == "FloorNotGuaranteed")
    assert "Recreate strategy cannot guarantee minAvailable" in warned["message"]
    assert run.images == ["web:2"] * 3


def test_the_warning_of_recreate_is_also_told() -> None:
    run = changed(0, 1, strategy="Recreate")
    assert [each for each in run.reported if each.startswith("FloorNotGuaranteed: Recreate strategy cannot guarantee")]


@pytest.mark.parametrize(
    ("current", "desired"), [(3, 3), (2, 5)], ids=["21 bluegreen_maintains_availability", "22 bluegreen_scale_up"]
)
def test_blue_green_starts_a_whole_set_before_it_stops_one(current: int, desired: int) -> None:
    run = changed(current, desired, strategy="BlueGreen", minAvailable=2, pauseDuration="5s")
    assert run.witness.lowest >= current
    assert run.witness.highest == current + desired
    reasons = [each.partition(":")[0] for each in run.reported]
    assert reasons.index("StartingUpdated") < reasons.index("SwitchingTraffic") < reasons.index("Draining")
    assert run.stopped("Draining") == [current]
    assert run.images == ["web:2"] * desired


# TC-006: defaults. (nothing runs yet, surge 1)

DEFAULTS = {
    # name: desired, maxUnavailable, min, resolved minimum
    "23 default_from_max_unavailable": (5, 2, 0, 3),
    "24 default_when_both_zero": (5, None, 0, 4),
    "25 explicit_min_available_used": (5, 2, 4, 4),
    "26 min_available_clamped_to_replicas": (3, 1, 10, 3),
}


@pytest.mark.parametrize("name", DEFAULTS)
def test_default_minimum(name: str) -> None:
    desired, unavailable, minimum, expected = DEFAULTS[name]
    run = changed(0, desired, maxUnavailable=unavailable, minAvailable=minimum, maxSurge=1)
    assert run.minimum == expected
    # The seed's plan stops at one replica; a rollout ends at the desired size.
    assert run.images == ["web:2"] * desired


# TC-007: scaling. (RollingUpdate, maxUnavailable 2, pause 1 s)


@pytest.mark.parametrize(
    ("current", "desired", "surge", "started"),
    [
        pytest.param(2, 5, 2, 5, id="27 scale_up_with_min_available"),
        # Survivors alone are updated: the seed starts five replicas to keep two.
        pytest.param(5, 2, 1, 2, id="28 scale_down_with_min_available"),
        pytest.param(3, 3, 1, 3, id="29 no_scale_same_replicas"),
    ],
)
def test_scaling(current: int, desired: int, surge: int, started: int) -> None:
    run = changed(current, desired, minAvailable=2, maxUnavailable=2, maxSurge=surge, pauseDuration="1s")
    assert run.minimum == 2
    assert run.witness.lowest >= 2
    assert run.witness.highest <= max(current, desired + surge)
    assert bool(run.stopped("ScalingDown")) == (desired < current)
    assert run.images == ["web:2"] * desired
    assert run.witness.started == started


# The six further cases of the workload suite.


def test_rolling_update_respects_min_available() -> None:
    run = changed(3, 3, maxSurge=1, maxUnavailable=1, minAvailable=2)
    assert run.witness.lowest >= 2
    assert run.images == ["web:2"] * 3


def test_scale_up_with_max_surge() -> None:
    run = changed(2, 5, maxSurge=2, minAvailable=2)
    assert run.witness.highest <= 7
    assert run.images == ["web:2"] * 5


@pytest.mark.parametrize("strategy", ["RollingUpdate", "Recreate", "BlueGreen", "ROLLING_UPDATE", "BLUE_GREEN"])
def test_each_strategy_ends_at_the_desired_size(strategy: str) -> None:
    assert changed(3, 3, strategy=strategy, maxSurge=1, maxUnavailable=1).images == ["web:2"] * 3


def test_full_workload_spec_from_nothing() -> None:
    async def story(cluster: Cluster) -> None:
        full = workload(
            replicas=2,
            rollout={"strategy": "BlueGreen", "minAvailable": 1},
            command=["/app"],
            args=["--port=80"],
            env={"LEVEL": "info"},
            ports=[{"name": "http", "containerPort": 80}],
            resources={"requests": {"cpuMillicores": 100, "memoryBytes": 1 << 20}, "limits": {"cpu": 1}},
            volumes=[{"name": "tmp", "source": "emptyDir", "mountPath": "/tmp"}],
            readinessProbe={"http": {"path": "/ready", "port": 80}, "period": "1s"},
            restartPolicy={"policy": "ON_FAILURE", "maxRetries": 3, "backoff": "5s"},
            placement={"spreadTopology": "zone", "tolerations": [{"operator": "Exists"}]},
            metadata={"labels": {"app": "web"}},
        )
        await cluster.create(WORKLOADS, full)
        await reaches(cluster, "Completed")
        assert await images(cluster) == ["web:1"] * 2
        assert (await cluster.get(SERVICES, "web"))["spec"]["ports"][0]["name"] == "http"

    operated(story)


def test_an_unknown_strategy_is_refused_with_the_known_ones() -> None:
    async def story(cluster: Cluster) -> None:
        with pytest.raises(Invalid, match=r"spec\.rollout\.strategy.*RollingUpdate"):
            await cluster.create(WORKLOADS, workload(rollout={"strategy": "rolling"}))

    operated(story)
