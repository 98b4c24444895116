"""A machine's life on a simulated hypervisor: phases, conditions and every field of the status."""

from __future__ import annotations

from typing import Any

from tests.operators.virtualmachine.stories import (
    HOT,
    MACHINES,
    Hypervisors,
    answer,
    condition,
    created,
    machine,
    play_story,
    prepare,
    reaches,
    status_of,
)

from holdfast.client.resources import EVENTS
from holdfast.providers.contract import Change
from holdfast.testing.clusters import Cluster


def test_a_machine_is_created_started_and_reported_in_full() -> None:
    hypervisors = Hypervisors()
    seen: list[str] = []

    async def story(cluster: Cluster) -> None:
        await prepare(cluster)
        await cluster.create(MACHINES, machine(disks=[{"name": "data", "sizeGiB": 10}]))
        for _ in range(40):
            seen.append((await status_of(cluster)).get("phase", ""))
            await cluster.advance(0.25)
        status = await status_of(cluster)
        found = await hypervisors.at().describe(status["id"])
        assert list(dict.fromkeys(filter(None, seen))) == ["Provisioning", "Running"]
        assert status["powerState"] == "On"
        assert tuple(status["ips"]) == found.ips
        assert status["consoleURL"] == found.console_url
        assert status["currentResources"] == {"cpu": 2, "memoryMiB": 4096}
        assert status["currentDisks"] == [{"name": "data", "sizeGiB": 10}]
        assert status["boundProvider"]["name"] == "sim"
        assert status["placement"]["host"] == found.host
        assert status["provider"]["name"] == found.raw["name"]
        assert status["lastTaskRef"]
        assert "operation" not in status
        assert [answer(status, type) for type in ("Ready", "Provisioning", "Reconfiguring", "Deleting", "Drifted")] == [
            ("True", "ReconcileSucceeded"),
            ("False", "Provisioned"),
            ("False", "NothingToChange"),
            ("False", "NotDeleting"),
            ("False", "NoDrift"),
        ]

    play_story(story, hypervisors)


def test_a_machine_that_is_deleted_goes_when_the_provider_has_confirmed_it() -> None:
    hypervisors = Hypervisors()

    async def story(cluster: Cluster) -> None:
        await prepare(cluster)
        await created(cluster)
        await cluster.delete(MACHINES, "web")
        await cluster.settle()
        status = await status_of(cluster)
        assert (status["phase"], status["operation"]["type"]) == ("Deleting", "Delete")
        assert answer(status, "Deleting") == ("True", "Deleting")
        await cluster.advance(2)
        assert await cluster.find(MACHINES, "web") is None
        assert await hypervisors.at().machines() == ()

    play_story(story, hypervisors)


def test_a_machine_is_stopped_and_started_again() -> None:
    async def story(cluster: Cluster) -> None:
        await prepare(cluster)
        await created(cluster)
        for power, phase in (("OffGraceful", "Stopped"), ("On", "Running"), ("Off", "Stopped")):
            await cluster.patch(MACHINES, "web", {"spec": {"powerState": power}})
            status = await reaches(cluster, phase)
            assert status["powerState"] == ("On" if power == "On" else "Off")

    play_story(story)


def test_a_machine_that_was_shut_down_gracefully_is_not_shut_down_again() -> None:
    hypervisors = Hypervisors()

    async def story(cluster: Cluster) -> None:
        await prepare(cluster)
        await created(cluster)
        await cluster.patch(MACHINES, "web", {"spec": {"powerState": "OffGraceful"}})
        await reaches(cluster, "Stopped")
        calls = hypervisors.at().calls.copy()
        await cluster.advance(600)
        later = hypervisors.at().calls[len(calls) :]
        assert "power" not in {call for call, _ in later}

    play_story(story, hypervisors)


def test_processors_and_memory_are_added_while_the_machine_runs() -> None:
    async def story(cluster: Cluster) -> None:
        await prepare(cluster, **HOT)
        await created(cluster)
        await cluster.patch(MACHINES, "web", {"spec": {"resources": {"cpu": 4, "memoryMiB": 8192}}})
        await cluster.settle()
        status = await status_of(cluster)
        assert (status["phase"], answer(status, "Reconfiguring")) == ("Reconfiguring", ("True", "Updating"))
        assert status["reconfigureTaskRef"] == status["operation"]["taskRef"]
        status = await reaches(cluster, "Running")
        assert status["currentResources"] == {"cpu": 4, "memoryMiB": 8192}
        assert status["lastReconfigureTime"]
        assert "reconfigureTaskRef" not in status

    play_story(story)


def test_a_change_that_needs_a_restart_waits_for_consent_and_says_so() -> None:
    hypervisors = Hypervisors()

    async def story(cluster: Cluster) -> None:
        await prepare(cluster)
        await created(cluster)
        await cluster.patch(MACHINES, "web", {"spec": {"resources": {"cpu": 4}}})
        status = await reaches(cluster, "Running")
        assert answer(status, "Reconfiguring") == ("False", "RestartRequired")
        assert status["currentResources"]["cpu"] == 2
        assert status["pendingChanges"][0].startswith("CPUs 2 -> 4: ")
        await cluster.patch(MACHINES, "web", {"spec": {"reconfigure": {"restart": "Always"}}})
        status = await reaches(cluster, "Running")
        assert status["currentResources"]["cpu"] == 4
        assert "pendingChanges" not in status

    play_story(story, hypervisors)


def test_a_change_that_needs_a_restart_is_made_when_the_machine_is_off() -> None:
    async def story(cluster: Cluster) -> None:
        await prepare(cluster)
        await created(cluster)
        await cluster.patch(MACHINES, "web", {"spec": {"resources": {"cpu": 1}}})
        await reaches(cluster, "Running")
        await cluster.patch(MACHINES, "web", {"spec": {"powerState": "Off"}})
        status = await reaches(cluster, "Stopped")
        assert status["currentResources"]["cpu"] == 1

    play_story(story)


def test_a_change_waits_for_a_maintenance_window() -> None:
    async def story(cluster: Cluster) -> None:
        await prepare(cluster)
        await created(cluster)
        window = {"start": "02:00", "duration": "1h"}
        policy = {"restart": "InWindow", "windows": [window]}
        await cluster.patch(MACHINES, "web", {"spec": {"resources": {"cpu": 4}, "reconfigure": policy}})
        status = await reaches(cluster, "Running")
        assert "2030-01-01T02:00:00Z" in status["message"]
        await cluster.advance(2 * 3600 + 10)
        status = await reaches(cluster, "Running")
        assert status["currentResources"]["cpu"] == 4
        assert status["lastReconfigureTime"].startswith("2030-01-01T02:00:0")

    play_story(story)


def test_disks_are_added_and_grown_and_never_shrunk() -> None:
    hypervisors = Hypervisors()

    def disks(*sizes: int) -> dict[str, Any]:
        wanted = [{"name": f"d{n}", "sizeGiB": size, "expandPolicy": "Online"} for n, size in enumerate(sizes)]
        return {"spec": {"disks": wanted}}

    async def story(cluster: Cluster) -> None:
        await prepare(cluster)
        await created(cluster, disks=disks(10)["spec"]["disks"])
        await cluster.patch(MACHINES, "web", disks(20, 5))
        status = await reaches(cluster, "Running")
        assert {each["name"]: each["sizeGiB"] for each in status["currentDisks"]} == {"d0": 20, "d1": 5}
        await cluster.patch(MACHINES, "web", disks(15, 5))
        await cluster.settle()
        status = await status_of(cluster)
        assert answer(status, "Ready") == ("False", "InvalidSpec")
        assert condition(status, "Ready")["message"].startswith(
            "spec.disks[0].sizeGiB: disk d0 has 20 GiB and cannot shrink to 15 GiB; write 20 or more"
        )
        assert status["phase"] == "Running"
        await cluster.patch(MACHINES, "web", disks(20))
        status = await reaches(cluster, "Running")
        assert status["pendingChanges"] == ["disk d1 of 5 GiB is no longer in spec.disks; it is kept with its data"]

    play_story(story, hypervisors)


def test_a_machine_is_rebooted_once_for_each_request() -> None:
    hypervisors = Hypervisors()

    async def story(cluster: Cluster) -> None:
        await prepare(cluster)
        await created(cluster, annotations={"virtrigaud.io/reboot": "zero"})
        for request in ("one", "two"):
            await cluster.patch(MACHINES, "web", {"metadata": {"annotations": {"virtrigaud.io/reboot": request}}})
            await cluster.advance(10)
            assert (await status_of(cluster))["rebootedFor"] == request
        await cluster.advance(120)
        assert [call for call, _ in hypervisors.at().calls].count("power") == 3

    play_story(story, hypervisors)


def test_a_machine_that_others_stopped_is_started_again_and_that_is_told() -> None:
    hypervisors = Hypervisors()

    async def story(cluster: Cluster) -> None:
        await prepare(cluster)
        id = (await created(cluster))["id"]
        await hypervisors.at().power(id, "Off")
        await cluster.advance(31)
        await reaches(cluster, "Running")
        assert (await hypervisors.at().describe(id)).power == "On"
        events = {each["reason"]: each["message"] for each in await cluster.list(EVENTS)}
        assert events["Healing"] == ("the machine is Off, and spec.powerState asks for On; it is changed back")

    play_story(story, hypervisors)


def test_drift_is_only_reported_where_the_policy_says_so() -> None:
    hypervisors = Hypervisors()

    async def story(cluster: Cluster) -> None:
        await prepare(cluster, **HOT)
        id = (await created(cluster, driftPolicy="Report"))["id"]
        await hypervisors.at().reconfigure(id, Change(cpus=8))
        await cluster.advance(65)
        status = await status_of(cluster)
        assert answer(status, "Drifted") == ("True", "Drifted")
        assert "the machine has 8 CPUs, 4096 MiB, and its spec asks for 2 CPUs, 4096 MiB" in status["message"]
        assert status["currentResources"]["cpu"] == 8
        await cluster.advance(600)
        assert (await hypervisors.at().describe(id)).cpus == 8
        await cluster.patch(MACHINES, "web", {"spec": {"resources": {"cpu": 8}}})
        assert answer(await reaches(cluster, "Running"), "Drifted") == ("False", "NoDrift")

    play_story(story, hypervisors)


def test_the_size_of_the_root_disk_may_be_written_as_v1alpha1_wrote_it() -> None:
    hypervisors = Hypervisors()

    async def story(cluster: Cluster) -> None:
        await prepare(cluster, diskDefaults={"type": "thin", "sizeGiB": 50})
        await created(cluster)
        found = await hypervisors.at().describe((await status_of(cluster))["id"])
        assert 50 * 2**30 in [disk.virtual_bytes for disk in found.disks]

    play_story(story, hypervisors)
