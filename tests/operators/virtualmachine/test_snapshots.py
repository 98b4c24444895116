"""Snapshots on a simulated hypervisor: phases, conditions and fields of the status, retention, deletion."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from tests.operators.virtualmachine.snapshot_stories import gone, in_phase, reason, snapshot, taken
from tests.operators.virtualmachine.stories import (
    MACHINES,
    SNAPSHOTS,
    Fault,
    Hypervisors,
    created,
    play_story,
    prepare,
    reaches,
    status_of,
)

from holdfast.client.resources import EVENTS
from holdfast.meta import times
from holdfast.providers.contract import Capabilities, Code
from holdfast.providers.simulated import World
from holdfast.testing.clusters import Cluster


async def names_on(hypervisors: Hypervisors, cluster: Cluster) -> list[str]:
    """The snapshots of the machine on the hypervisor."""
    machine = await status_of(cluster)
    found = await hypervisors.at().describe(machine["id"])
    return list(found.disks[0].snapshots)


def test_a_snapshot_is_taken_with_its_memory_and_reported_in_full() -> None:
    hypervisors = Hypervisors()
    phases: list[str] = []
    shares: list[int] = []

    async def story(cluster: Cluster) -> None:
        await prepare(cluster)
        await created(cluster)
        await cluster.create(SNAPSHOTS, snapshot(snapshotConfig={"includeMemory": True, "description": "before"}))
        for _ in range(100):
            status = await status_of(cluster, "before", SNAPSHOTS)
            phases.append(status.get("phase", ""))
            if "progress" in status:
                shares.append(status["progress"]["percentage"])
                assert reason(status, "Creating") == ("True", "SnapshotCreating")
            await cluster.advance(0.25)
        assert list(dict.fromkeys(filter(None, phases))) == ["Creating", "Ready"]
        assert shares == sorted(shares)
        assert len(set(shares)) > 2, "4 GiB of memory take 16 s, and the progress is recorded every 5 s"
        status = await status_of(cluster, "before", SNAPSHOTS)
        assert status["snapshotID"] in await names_on(hypervisors, cluster)
        assert status["size"] == "4160Mi"
        assert status["virtualSize"] == "2Gi"
        assert status["completionTime"] > status["creationTime"]
        assert status["providerStatus"]["sim"]["available"] is True
        assert not {"taskRef", "progress", "parent", "children", "expiryTime", "failed"} & set(status)
        assert [reason(status, type) for type in ("Ready", "Creating", "Deleting", "Expired")] == [
            ("True", "SnapshotReady"),
            ("False", "NotCreating"),
            ("False", "NotDeleting"),
            ("False", "WithinRetention"),
        ]
        machine = await reaches(cluster, "Running")
        assert [(each["name"], each["hasMemory"]) for each in machine["snapshots"]] == [("before", True)]

    play_story(story, hypervisors)


def test_a_snapshot_as_v1alpha1_wrote_it_has_its_name_its_memory_and_its_description() -> None:
    async def story(cluster: Cluster) -> None:
        await prepare(cluster)
        await created(cluster)
        await taken(cluster, nameHint="weekly $(date)", memory=True, description="before the update")
        status = await reaches(cluster, "Running")
        found = [(each["hasMemory"], each["description"]) for each in status["snapshots"]]
        assert found == [(True, "before the update")]
        on = hypervisors.at()._known(status["id"]).snapshots
        assert [each.name.rpartition("-")[0] for each in on] == ["weekly-date"]

    hypervisors = Hypervisors()
    play_story(story, hypervisors)


def test_snapshots_say_which_builds_on_which() -> None:
    async def story(cluster: Cluster) -> None:
        await prepare(cluster)
        await created(cluster)
        for name in ("a", "b", "c"):
            await taken(cluster, name)
        await cluster.settle()
        a, b, c = [await status_of(cluster, name, SNAPSHOTS) for name in ("a", "b", "c")]
        assert [each["name"] for each in a["children"]] == ["b"]
        assert (b["parent"]["name"], c["parent"]["name"]) == ("a", "b")
        await cluster.delete(SNAPSHOTS, "b")
        await gone(cluster, "b")
        await cluster.settle()
        a, c = [await status_of(cluster, name, SNAPSHOTS) for name in ("a", "c")]
        assert ([each["name"] for each in a["children"]], c["parent"]["name"]) == (["c"], "a")

    play_story(story)


def test_a_snapshot_waits_for_its_machine() -> None:
    async def story(cluster: Cluster) -> None:
        await prepare(cluster)
        await cluster.create(SNAPSHOTS, snapshot())
        status = await in_phase(cluster, "Pending")
        assert reason(status) == ("False", "WaitingForMachine")
        assert "VirtualMachine web does not exist" in status["message"]
        await created(cluster)
        await in_phase(cluster, "Ready")

    play_story(story)


@pytest.mark.parametrize(
    ("able", "config", "phase", "why"),
    [
        (Capabilities(snapshots=False), {}, "Failed", "UnsupportedByProvider"),
        (Capabilities(snapshots=True), {"includeMemory": True}, "Failed", "UnsupportedByProvider"),
        (Capabilities(snapshots=True), {"type": "Application"}, "Failed", "UnsupportedByProvider"),
        (Capabilities(snapshots=True), {"encryption": {"enabled": True}}, "Failed", "UnsupportedByProvider"),
        (Capabilities(snapshots=True), {}, "Ready", "SnapshotReady"),
        (Capabilities(snapshots=True, memory_snapshots=True), {"includeMemory": True}, "Ready", "SnapshotReady"),
    ],
)
def test_what_a_provider_cannot_do_is_said_and_not_faked(able: Capabilities, config: Any, phase: str, why: str) -> None:
    hypervisors = Hypervisors(capabilities=able)

    async def story(cluster: Cluster) -> None:
        await prepare(cluster)
        await created(cluster)
        await cluster.create(SNAPSHOTS, snapshot(snapshotConfig=config))
        status = await in_phase(cluster, phase)
        assert reason(status)[1] == why
        events = {each["reason"] for each in await cluster.list(EVENTS)}
        assert phase == "Ready" or why in events
        assert phase == "Failed" or "NotQuiesced" in events
        assert bool(await names_on(hypervisors, cluster)) == (phase == "Ready")

    play_story(story, hypervisors)


def test_a_guest_without_an_agent_is_not_quiesced_unless_the_spec_gives_it_up() -> None:
    hypervisors = Hypervisors(world=World(**{**_world(), "no_agent": ("web-*",)}))

    async def story(cluster: Cluster) -> None:
        await prepare(cluster)
        await created(cluster)
        await cluster.create(SNAPSHOTS, snapshot())
        await cluster.advance(30)
        status = await status_of(cluster, "before", SNAPSHOTS)
        assert reason(status) == ("False", "ProviderConflict")
        assert "no guest agent" in status["message"]
        await cluster.patch(SNAPSHOTS, "before", {"spec": {"snapshotConfig": {"quiesce": False}}})
        await in_phase(cluster, "Ready", within=10)

    play_story(story, hypervisors)


def _world() -> dict[str, Any]:
    made = World.of(hosts=4, cpus=1024, memory_gib=16384)
    return {"hosts": made.hosts, "datastores": made.datastores}


def test_a_snapshot_that_fails_is_tried_again_and_says_how_often_and_why() -> None:
    hypervisors = Hypervisors(faults=(Fault(call="snapshot", times=2, code=Code.INTERNAL, when="task"),))

    async def story(cluster: Cluster) -> None:
        await prepare(cluster)
        await created(cluster)
        await cluster.create(SNAPSHOTS, snapshot())

        async def failing() -> bool:
            return "failed" in await status_of(cluster, "before", SNAPSHOTS)

        await cluster.until(failing, within=30, step=0.25)
        status = await status_of(cluster, "before", SNAPSHOTS)
        assert (status["failed"]["count"], status["failed"]["reason"]) == (1, "ProviderError")
        assert reason(status) == ("False", "ProviderError")
        status = await in_phase(cluster, "Ready", within=30)
        assert "failed" not in status
        assert len(await names_on(hypervisors, cluster)) == 1

    play_story(story, hypervisors)


def test_a_snapshot_goes_when_the_provider_has_confirmed_its_deletion() -> None:
    hypervisors = Hypervisors()

    async def story(cluster: Cluster) -> None:
        await prepare(cluster)
        await created(cluster)
        await taken(cluster)
        await cluster.delete(SNAPSHOTS, "before")
        await cluster.settle()
        status = await status_of(cluster, "before", SNAPSHOTS)
        assert (status["phase"], reason(status, "Deleting")) == ("Deleting", ("True", "SnapshotDeleting"))
        assert len(await names_on(hypervisors, cluster)) == 1
        await gone(cluster)
        assert await names_on(hypervisors, cluster) == []

    play_story(story, hypervisors)


def test_a_deletion_that_fails_keeps_the_finalizer() -> None:
    hypervisors = Hypervisors(faults=(Fault(call="delete_snapshot", times=3, code=Code.INTERNAL),))

    async def story(cluster: Cluster) -> None:
        await prepare(cluster)
        await created(cluster)
        await taken(cluster)
        await cluster.delete(SNAPSHOTS, "before")
        await cluster.advance(2)
        status = await status_of(cluster, "before", SNAPSHOTS)
        assert "deleting the snapshot failed" in status["message"]
        await gone(cluster)
        assert await names_on(hypervisors, cluster) == []

    play_story(story, hypervisors)


def test_a_deletion_whose_task_finds_no_snapshot_is_done() -> None:
    hypervisors = Hypervisors(faults=(Fault(call="delete_snapshot", when="task", code=Code.NOT_FOUND),))

    async def story(cluster: Cluster) -> None:
        await prepare(cluster)
        await created(cluster)
        await taken(cluster)
        await cluster.delete(SNAPSHOTS, "before")
        await gone(cluster)

    play_story(story, hypervisors)


def test_a_snapshot_goes_with_its_machine_unless_its_retention_says_otherwise() -> None:
    async def story(cluster: Cluster) -> None:
        await prepare(cluster)
        await created(cluster)
        await taken(cluster, "goes")
        await taken(cluster, "stays", retentionPolicy={"deleteOnVMDelete": False})
        await cluster.delete(MACHINES, "web")
        await gone(cluster, "goes")
        status = await in_phase(cluster, "Failed", "stays")
        assert reason(status) == ("False", "MachineDeleted")
        await created(cluster)
        await cluster.advance(60)
        status = await status_of(cluster, "stays", SNAPSHOTS)
        assert reason(status) == ("False", "MachineDeleted"), "another machine of the name is another machine"
        await cluster.delete(SNAPSHOTS, "stays")
        await gone(cluster, "stays")

    play_story(story)


# --- retention


def test_a_snapshot_expires_by_its_age_and_is_deleted_after_the_grace_period() -> None:
    hypervisors = Hypervisors()

    async def story(cluster: Cluster) -> None:
        await prepare(cluster)
        await created(cluster)
        await taken(cluster, retentionPolicy={"maxAge": "10m", "gracePeriod": "5m"})
        calls = len(hypervisors.at().calls)
        await cluster.advance(570)
        status = await status_of(cluster, "before", SNAPSHOTS)
        assert (status["phase"], status["expiryTime"]) == ("Ready", later(status["creationTime"], minutes=10))
        assert "snapshot" not in {call for call, _ in hypervisors.at().calls[calls:]}, "a deadline is not polled for"
        await cluster.advance(60)
        status = await status_of(cluster, "before", SNAPSHOTS)
        assert (status["phase"], reason(status, "Expired")) == ("Expired", ("True", "RetentionExpired"))
        assert "is deleted at" in status["message"]
        await cluster.advance(270)
        await gone(cluster, within=10)
        assert await names_on(hypervisors, cluster) == []

    play_story(story, hypervisors)


def later(time: str, **by: int) -> str:
    return times.format(times.parse(time) + timedelta(**by))


def test_a_snapshot_that_is_pinned_before_its_deletion_is_kept() -> None:
    async def story(cluster: Cluster) -> None:
        await prepare(cluster)
        await created(cluster)
        await taken(cluster, retentionPolicy={"maxAge": "1m", "gracePeriod": "5m"})
        await cluster.advance(90)
        await in_phase(cluster, "Expired", within=1)
        await cluster.patch(SNAPSHOTS, "before", {"spec": {"metadata": {"pinned": True}}})
        status = await in_phase(cluster, "Ready", within=5)
        assert reason(status, "Expired") == ("False", "Pinned")
        await cluster.advance(600)
        await in_phase(cluster, "Ready", within=5)

    play_story(story)


def test_the_oldest_snapshots_beyond_the_count_expire_and_pinned_ones_do_not_count() -> None:
    async def story(cluster: Cluster) -> None:
        await prepare(cluster)
        await created(cluster)
        policy = {"maxCount": 2, "gracePeriod": "1m"}
        await taken(cluster, "pinned", retentionPolicy=policy, metadata={"pinned": True})
        for name in ("a", "b", "c"):
            await taken(cluster, name, retentionPolicy=policy)
            await cluster.advance(2)
        await in_phase(cluster, "Expired", "a")
        await gone(cluster, "a", within=90)
        await cluster.advance(600)
        left = [each["metadata"]["name"] for each in await cluster.list(SNAPSHOTS)]
        assert sorted(left) == ["b", "c", "pinned"]

    play_story(story)


@pytest.mark.parametrize(
    ("spec", "path"),
    [
        ({"retentionPolicy": {"maxAge": "a month"}}, "spec.retentionPolicy.maxAge"),
        ({"retentionPolicy": {"maxAge": "-1h"}}, "spec.retentionPolicy.maxAge"),
        ({"retentionPolicy": {"gracePeriod": "1y"}}, "spec.retentionPolicy.gracePeriod"),
        ({"schedule": {"enabled": True, "cronSpec": "61 * * * *"}}, "spec.schedule.cronSpec"),
        ({"schedule": {"enabled": True, "cronSpec": "@daily", "timezone": "Mars/Base"}}, "spec.schedule.timezone"),
    ],
)
def test_a_spec_that_cannot_be_meant_says_where(spec: Any, path: str) -> None:
    async def story(cluster: Cluster) -> None:
        await cluster.create(SNAPSHOTS, snapshot(**spec))
        status = await in_phase(cluster, "Failed", within=10)
        assert reason(status) == ("False", "InvalidSpec")
        assert path in status["message"]

    play_story(story)
