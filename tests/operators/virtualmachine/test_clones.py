"""Clones on a simulated hypervisor: sources, types, phases, customization, retries, and whose machine it is."""

from __future__ import annotations

import os
from typing import Any

import pytest
from tests.operators.virtualmachine.snapshot_stories import taken
from tests.operators.virtualmachine.stories import (
    CLASSES,
    CLONES,
    IMAGES,
    KINDS,
    MACHINES,
    Fault,
    Hypervisors,
    Latencies,
    Wire,
    answer,
    created,
    machine,
    operator,
    play_story,
    prepare,
    reaches,
    status_of,
    vm_class,
)

from holdfast.cluster.controllers.gc.collector import GarbageCollector
from holdfast.meta.objects import Key
from holdfast.providers.contract import Capabilities, Code
from holdfast.testing.clusters import Cluster
from holdfast.testing.contract import FAULTS, Scenario, check, check_deletion, check_second_look

WHOLE = bool(os.environ.get("HOLDFAST_WHOLE_CONTRACT"))
EVERY = 1 if WHOLE else 13


def clone(name: str = "copying", *, source: Wire | None = None, target: Wire | None = None, **spec: Any) -> Wire:
    return {
        "metadata": {"name": name},
        "spec": {"source": source or {"vmRef": {"name": "web"}}, "target": {"name": "copy", **(target or {})}, **spec},
    }


async def in_phase(cluster: Cluster, phase: str, name: str = "copying", *, within: float = 900) -> Wire:
    async def holds() -> bool:
        return (await status_of(cluster, name, CLONES)).get("phase") == phase

    await cluster.until(holds, within=within, step=0.25)
    return await status_of(cluster, name, CLONES)


async def id_of(cluster: Cluster, name: str) -> str:
    return str((await status_of(cluster, name))["id"])


def test_a_full_clone_is_made_customized_started_and_reported() -> None:
    hypervisors = Hypervisors(latencies=Latencies(call=0.2))
    phases: list[str] = []
    shares: list[int] = []

    async def story(cluster: Cluster) -> None:
        await prepare(cluster)
        await created(cluster, disks=[{"name": "data", "sizeGiB": 10}])
        hypervisors.at().write_file(await id_of(cluster, "web"), "/etc/motd", "hello")
        custom = {
            "hostname": "copy-1",
            "tags": ["copied"],
            "userData": {"cloudInit": {"inline": "#cloud-config\n"}},
            "guestCommands": [{"command": "touch", "arguments": ["/done"]}],
        }
        options = {"powerOn": True}
        await cluster.create(CLONES, clone(options=options, customization=custom, target={"labels": {"tier": "test"}}))
        for _ in range(600):
            status = await status_of(cluster, "copying", CLONES)
            phases.append(status.get("phase", ""))
            share = (status.get("progress") or {}).get("overallPercentage")
            shares.extend([share] if share is not None else [])
            await cluster.advance(0.25)
        seen = list(dict.fromkeys(filter(None, phases)))
        assert (seen[:2], seen[-1]) == (["Preparing", "Cloning"], "Ready")
        assert set(seen[2:-1]) == {"Customizing", "Powering-On"}
        assert shares == sorted(shares)
        assert len(set(shares)) > 3
        status = await status_of(cluster, "copying", CLONES)
        assert [answer(status, type)[0] for type in ("Ready", "Cloning", "Customizing", "Failed")] == [
            "True", "False", "False", "False",
        ]  # fmt: skip
        assert (status["actualCloneType"], status["targetRef"]) == ("FullClone", {"name": "copy"})
        steps = status["customizationStatus"]["completedSteps"]
        assert steps == ["hostname", "userData", "tags", "guestCommands[0]"]
        assert status["completionTime"] > status["startTime"]
        made = await cluster.get(MACHINES, "copy")
        assert made["metadata"]["labels"]["tier"] == "test"
        assert made["metadata"]["annotations"]["virtrigaud.io/cloned-from"] == "VirtualMachine/web"
        assert (made["status"]["phase"], made["status"]["id"]) == ("Running", status["targetVMID"])
        assert hypervisors.at().read_file(status["targetVMID"], "/etc/motd") == "hello"
        assert [command for _, command in hypervisors.at().commands] == [("touch", "/done")]
        await cluster.delete(CLONES, "copying")
        await cluster.advance(30)
        assert await cluster.find(CLONES, "copying") is None
        assert (await status_of(cluster, "copy"))["phase"] == "Running", "the machine stays"

    play_story(story, hypervisors)


@pytest.mark.parametrize("type", ["LinkedClone", "InstantClone"])
@pytest.mark.parametrize("able", [True, False])
def test_linked_and_instant_clones_are_made_where_the_provider_can_and_refused_where_not(type: str, able: bool) -> None:
    answers = Capabilities(snapshots=True, linked_clones=able, instant_clones=able)
    hypervisors = Hypervisors(capabilities=answers)

    async def story(cluster: Cluster) -> None:
        await prepare(cluster)
        await created(cluster)
        await cluster.create(CLONES, clone(options={"type": type, "powerOn": True}))
        status = await in_phase(cluster, "Ready" if able else "Failed")
        if able:
            assert status["actualCloneType"] == type
            return
        assert answer(status, "Ready") == ("False", f"{type}Unsupported")
        assert await cluster.find(MACHINES, "copy") is None
        assert len(await hypervisors.at().machines()) == 1

    play_story(story, hypervisors)


def test_a_snapshot_is_cloned_as_it_was_taken() -> None:
    hypervisors = Hypervisors()

    async def story(cluster: Cluster) -> None:
        await prepare(cluster)
        await created(cluster)
        await cluster.create(CLONES, clone(source={"snapshotRef": {"name": "before"}}))
        status = await in_phase(cluster, "Pending")
        assert "VMSnapshot before does not exist" in status["message"]
        hypervisors.at().write_file(await id_of(cluster, "web"), "/state", "old")
        await taken(cluster)
        hypervisors.at().write_file(await id_of(cluster, "web"), "/state", "new")
        status = await in_phase(cluster, "Ready")
        assert hypervisors.at().read_file(status["targetVMID"], "/state") == "old"
        assert (await reaches(cluster, "Stopped", "copy"))["powerState"] == "Off"

    play_story(story, hypervisors)


def test_a_clone_waits_for_the_class_and_networks_of_its_machine_and_not_for_its_image() -> None:
    async def story(cluster: Cluster) -> None:
        await prepare(cluster)
        await created(cluster)
        await cluster.client.delete(IMAGES, Key("default", "ubuntu"))
        card = {"name": "net", "networkRef": {"name": "lan"}}
        await cluster.create(CLONES, clone(target={"classRef": {"name": "large"}, "networks": [card]}))
        assert "VMClass large does not exist" in (await in_phase(cluster, "Pending"))["message"]
        await cluster.create(CLASSES, vm_class("large"))

        async def asks_for_the_network() -> bool:
            return "VMNetworkAttachment lan does not exist" in (await status_of(cluster, "copying", CLONES))["message"]

        await cluster.until(asks_for_the_network, within=60)

    play_story(story)


@pytest.mark.parametrize("field", ["imageRef", "templateRef"])
def test_a_machine_is_made_from_an_image_or_a_template(field: str) -> None:
    async def story(cluster: Cluster) -> None:
        await prepare(cluster)
        target = {"providerRef": {"name": "sim"}, "classRef": {"name": "small"}}
        source = {field: {"name": "ubuntu"}}
        await cluster.create(CLONES, clone(source=source, target=target, options={"powerOn": True}))
        await in_phase(cluster, "Ready")
        await reaches(cluster, "Running", "copy")

    play_story(story)


def test_a_machine_of_the_name_that_the_clone_has_not_made_is_never_adopted() -> None:
    hypervisors = Hypervisors()

    async def story(cluster: Cluster) -> None:
        await prepare(cluster)
        await created(cluster)
        await created(cluster, "copy")
        own = await id_of(cluster, "copy")
        await cluster.create(CLONES, clone())
        status = await in_phase(cluster, "Failed")
        assert answer(status, "Failed") == ("True", "TargetExists")
        assert await id_of(cluster, "copy") == own
        assert len(await hypervisors.at().machines()) == 2
        await cluster.delete(MACHINES, "copy")
        await in_phase(cluster, "Ready")

    play_story(story, hypervisors)


def test_a_machine_that_takes_the_name_meanwhile_keeps_it_and_the_clone_is_removed() -> None:
    hypervisors = Hypervisors()

    async def story(cluster: Cluster) -> None:
        await prepare(cluster)
        await created(cluster)
        await cluster.create(CLONES, clone())
        await in_phase(cluster, "Cloning")
        await cluster.advance(1)
        await cluster.create(MACHINES, machine("copy"))
        await reaches(cluster, "Running", "copy")
        await cluster.advance(30)
        status = await in_phase(cluster, "Failed")
        assert answer(status, "Failed") == ("True", "TargetExists")
        assert len(await hypervisors.at().machines()) == 2

    play_story(story, hypervisors)


def test_a_clone_that_is_deleted_before_it_is_a_machine_leaves_nothing() -> None:
    hypervisors = Hypervisors()

    async def story(cluster: Cluster) -> None:
        await prepare(cluster)
        await created(cluster)
        await cluster.create(CLONES, clone())
        await in_phase(cluster, "Cloning")
        await cluster.advance(1)
        await cluster.delete(CLONES, "copying")
        await cluster.advance(30)
        assert await cluster.find(CLONES, "copying") is None
        assert await cluster.find(MACHINES, "copy") is None
        assert len(await hypervisors.at().machines()) == 1

    play_story(story, hypervisors)


def test_a_clone_that_fails_is_tried_again_as_its_policy_says() -> None:
    policy = {"maxRetries": 1, "retryDelay": "10s", "backoffMultiplier": 2}
    for times, phase in ((1, "Ready"), (2, "Failed")):
        faulty = Hypervisors(faults=(Fault(call="clone", times=times, code=Code.INTERNAL, when="task"),))

        async def story(cluster: Cluster, phase: str = phase, faulty: Hypervisors = faulty) -> None:
            await prepare(cluster)
            await created(cluster)
            await cluster.create(CLONES, clone(options={"retryPolicy": policy}))
            status = await in_phase(cluster, "Pending", within=60)
            assert (status["failed"]["count"], "nextTime" in status["failed"]) == (1, True)
            status = await in_phase(cluster, phase)
            assert status["retryCount"] == 1
            assert len(await faulty.at().machines()) == (2 if phase == "Ready" else 1)

        play_story(story, faulty)


def test_a_clone_that_takes_too_long_is_cancelled() -> None:
    hypervisors = Hypervisors(latencies=Latencies(bytes_per_second=1 << 20))

    async def story(cluster: Cluster) -> None:
        await prepare(cluster)
        await created(cluster)
        await cluster.create(CLONES, clone(options={"timeout": "30s", "retryPolicy": {"maxRetries": 0}}))
        status = await in_phase(cluster, "Failed", within=60)
        assert answer(status, "Failed") == ("True", "CloneTimedOut")
        assert len(await hypervisors.at().machines()) == 1

    play_story(story, hypervisors)


@pytest.mark.parametrize(
    ("spec", "path"),
    [
        ({"target": {"namespace": "other"}}, "spec.target.namespace"),
        ({"target": {"providerRef": {"name": "elsewhere"}}}, "spec.target.providerRef"),
        ({"options": {"includeSnapshots": True}}, "spec.options.includeSnapshots"),
        ({"customization": {"sysprep": {"enabled": True}}}, "spec.customization.sysprep"),
        ({"customization": {"networks": [{"name": "lan", "subnetMask": "255.0.255.0"}]}}, "networks[0].subnetMask"),
        ({"customization": {"guestCommands": [{"command": "ls"}]}}, "spec.options.powerOn"),
    ],
)
def test_what_a_clone_cannot_do_is_refused_with_its_path(spec: Any, path: str) -> None:
    async def story(cluster: Cluster) -> None:
        await prepare(cluster)
        await created(cluster)
        await cluster.create(CLONES, clone(**spec))
        status = await in_phase(cluster, "Failed", within=10)
        assert answer(status, "Failed") == ("True", "InvalidSpec")
        assert path in status["message"]

    play_story(story)


# --- the contract


async def contract(cluster: Cluster) -> None:
    await prepare(cluster)
    await created(cluster)
    await cluster.create(CLONES, clone(options={"powerOn": True, "retryPolicy": {"maxRetries": 9, "retryDelay": "1s"}}))
    await in_phase(cluster, "Ready")
    await reaches(cluster, "Running", "copy")


IGNORED = frozenset(
    {"lastTaskRef", "id", "ips", "consoleURL", "name", "targetVMID", "retryCount", "virtrigaud.io/adopt-id", "eta"}
)

SCENARIO = Scenario(
    name="a machine that is cloned",
    controllers=operator(Hypervisors()),
    story=contract,
    kinds=KINDS,
    deleted=(CLONES, "copying"),
    patience=50,
    ignored=IGNORED,
)

FLAKY = Scenario(
    name="the same, on a provider that fails a tenth of all calls",
    controllers=operator(
        Hypervisors(
            seed=5,
            faults=tuple(
                Fault(call=call, rate=rate, when=when)
                for call in ("create", "power", "clone", "describe", "task")
                for when, rate in (("before", 0.05), ("after", 0.05), ("task", 0.1))
            ),
        )
    ),
    story=contract,
    kinds=KINDS,
    deleted=(CLONES, "copying"),
    patience=400,
    ignored=IGNORED | {"lastRetryTime"},
)


@pytest.mark.parametrize("faults", FAULTS)
def test_the_contract_holds(faults: str) -> None:
    check(SCENARIO, faults, every=EVERY if faults.startswith(("dying", "losing", "any")) else 1 if WHOLE else 6)


def test_the_contract_holds_on_a_provider_that_fails_a_tenth_of_all_calls() -> None:
    check(FLAKY, "dying with any write", every=EVERY)


def test_a_second_look_writes_nothing() -> None:
    check_second_look(SCENARIO)


def test_nothing_is_left_of_a_clone_that_is_deleted_but_its_machine() -> None:
    check_deletion(SCENARIO, components=lambda: (GarbageCollector(),))
