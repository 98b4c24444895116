"""Schedules of snapshots: when they run, what is kept of them, and what happens to runs that meet or were missed."""

from __future__ import annotations

from typing import Any

from tests.operators.virtualmachine.snapshot_stories import in_phase, reason, snapshot
from tests.operators.virtualmachine.stories import (
    MACHINES,
    SNAPSHOTS,
    Fault,
    Hypervisors,
    Latencies,
    created,
    machine,
    play_story,
    prepare,
    status_of,
)

from holdfast.client.resources import EVENTS
from holdfast.providers.contract import Code
from holdfast.testing.clusters import Cluster

EVERY = {"enabled": True, "cronSpec": "@every 1m"}


async def runs(cluster: Cluster) -> list[dict[str, Any]]:
    """The snapshots that the schedule made, oldest first."""
    found = [each for each in await cluster.list(SNAPSHOTS) if each["metadata"]["name"] != "nightly"]
    return sorted(found, key=lambda each: each["metadata"]["annotations"]["virtrigaud.io/scheduled-at"])


def test_a_schedule_takes_snapshots_on_time_and_keeps_as_many_as_its_limit_says() -> None:
    hypervisors = Hypervisors()

    async def story(cluster: Cluster) -> None:
        await prepare(cluster)
        await created(cluster)
        await cluster.create(SNAPSHOTS, snapshot("nightly", schedule={**EVERY, "successfulJobsHistoryLimit": 2}))
        status = await in_phase(cluster, "Ready", "nightly")
        assert reason(status) == ("True", "Scheduled")
        assert "snapshotID" not in status, "the schedule itself takes none"
        assert status["nextScheduleTime"] in status["message"]
        await cluster.advance(130)
        assert len(await runs(cluster)) == 2
        await cluster.advance(120)
        made = await runs(cluster)
        assert [each["status"]["phase"] for each in made] == ["Ready", "Ready"]
        assert {each["metadata"]["labels"]["virtrigaud.io/schedule"] for each in made} == {"nightly"}
        assert all("schedule" not in each["spec"] for each in made)
        status = await status_of(cluster, "nightly", SNAPSHOTS)
        assert status["lastScheduleTime"] == made[-1]["metadata"]["annotations"]["virtrigaud.io/scheduled-at"]
        found = await hypervisors.at().describe((await status_of(cluster))["id"])
        assert len(found.disks[0].snapshots) == 2
        await cluster.patch(SNAPSHOTS, "nightly", {"spec": {"schedule": {"suspend": True}}})
        await cluster.advance(200)
        assert await runs(cluster) == made
        assert reason(await status_of(cluster, "nightly", SNAPSHOTS)) == ("True", "ScheduleSuspended")
        await cluster.patch(SNAPSHOTS, "nightly", {"spec": {"schedule": {"enabled": False}}})
        await cluster.advance(60)
        assert await runs(cluster) == made
        assert "snapshotID" not in await status_of(cluster, "nightly", SNAPSHOTS)

    play_story(story, hypervisors)


def test_missed_runs_are_made_up_for_once() -> None:
    async def story(cluster: Cluster) -> None:
        await prepare(cluster)
        await cluster.create(SNAPSHOTS, snapshot("nightly", schedule=EVERY))
        await cluster.advance(270)
        status = await status_of(cluster, "nightly", SNAPSHOTS)
        assert reason(status) == ("False", "WaitingForMachine")
        await cluster.create(MACHINES, machine())
        await cluster.advance(20)
        assert len(await runs(cluster)) == 1
        said = [each["message"] for each in await cluster.list(EVENTS) if each["reason"] == "MissedRuns"]
        assert said
        assert said[0].startswith("3 times")

    play_story(story)


def test_a_run_that_meets_the_last_one_waits_or_takes_its_place_or_goes_beside_it() -> None:
    for policy, expected in (("Forbid", 1), ("Allow", 2), ("Replace", 1)):
        slow = Hypervisors(latencies=Latencies(snapshot=90))

        async def story(cluster: Cluster, policy: str = policy, expected: int = expected) -> None:
            await prepare(cluster)
            await created(cluster)
            await cluster.create(SNAPSHOTS, snapshot("nightly", schedule={**EVERY, "concurrencyPolicy": policy}))
            await cluster.advance(65)
            first = (await runs(cluster))[0]["metadata"]["uid"]
            await cluster.advance(60)
            found = [each for each in await runs(cluster) if "deletionTimestamp" not in each["metadata"]]
            assert len(found) == expected, policy
            assert (first in {each["metadata"]["uid"] for each in found}) == (policy != "Replace")
            if policy == "Forbid":
                status = await status_of(cluster, "nightly", SNAPSHOTS)
                assert reason(status) == ("True", "PreviousRunActive")
                await cluster.advance(40)
                assert len(await runs(cluster)) == 2, "it begins when the last one has ended"

        play_story(story, slow)


def test_runs_that_failed_are_not_tried_again_and_kept_as_the_limit_says() -> None:
    hypervisors = Hypervisors(faults=(Fault(call="snapshot", code=Code.INVALID),))

    async def story(cluster: Cluster) -> None:
        await prepare(cluster)
        await created(cluster)
        await cluster.create(SNAPSHOTS, snapshot("nightly", schedule={**EVERY, "failedJobsHistoryLimit": 1}))
        await cluster.advance(200)
        made = await runs(cluster)
        assert [each["status"]["phase"] for each in made] == ["Failed"]
        assert "nextTime" not in made[0]["status"]["failed"]

    play_story(story, hypervisors)


def test_snapshots_stay_when_their_schedule_is_deleted() -> None:
    async def story(cluster: Cluster) -> None:
        await prepare(cluster)
        await created(cluster)
        await cluster.create(SNAPSHOTS, snapshot("nightly", schedule=EVERY))
        await cluster.advance(70)
        await cluster.delete(SNAPSHOTS, "nightly")
        await cluster.advance(10)
        assert [each["status"]["phase"] for each in await cluster.list(SNAPSHOTS)] == ["Ready"]

    play_story(story)
