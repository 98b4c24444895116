"""What a machine waits for, errors of its provider, hooks, reverting, deletion, adoption, and what machines share."""

from __future__ import annotations

import base64
from typing import Any

import msgspec
import pytest
from tests.operators.virtualmachine.stories import (
    CLASSES,
    IMAGES,
    MACHINES,
    NETWORKS,
    PROVIDERS,
    SNAPSHOTS,
    Fault,
    Hypervisors,
    answer,
    because,
    condition,
    created,
    image,
    machine,
    play_story,
    prepare,
    provider,
    reaches,
    status_of,
    vm_class,
)

from holdfast.client.resources import EVENTS, SECRETS
from holdfast.meta.quantities import Quantity
from holdfast.operators.virtualmachine.reasons import NEXT, OF_CODE
from holdfast.providers.contract import Code, Machine, Made, ProviderError
from holdfast.providers.simulated import CAPABILITIES, Simulated
from holdfast.testing.clusters import Cluster


async def events(cluster: Cluster) -> dict[str, str]:
    return {each["reason"]: each["message"] for each in await cluster.list(EVENTS)}


def test_a_machine_says_which_objects_do_not_exist_and_goes_on_when_they_do() -> None:
    async def story(cluster: Cluster) -> None:
        card = {"name": "net", "networkRef": {"name": "lan"}}
        user = {"cloudInit": {"secretRef": {"name": "first-boot"}}}
        await cluster.create(MACHINES, machine(networks=[card], userData=user))
        status = await because(cluster, "WaitingForDependencies")
        assert status["message"] == (
            "Provider sim and VMClass small and VMImage ubuntu and VMNetworkAttachment lan and Secret first-boot "
            "do not exist"
        )
        assert status["phase"] == "Pending"
        await prepare(cluster)
        await cluster.create(NETWORKS, {"metadata": {"name": "lan"}, "spec": {"network": {"type": "nat"}}})
        await cluster.create(SECRETS, {"metadata": {"name": "first-boot"}, "stringData": {"other": "x"}})
        status = await because(cluster, "NoCloudInitKey")
        assert status["phase"] == "Failed"
        assert "has none of the keys userdata, user-data, cloud-init, cloud-config" in status["message"]
        data = base64.b64encode(b"#cloud-config\n").decode()
        await cluster.patch(SECRETS, "first-boot", {"data": {"userdata": data}})
        await reaches(cluster, "Running")

    play_story(story)


def test_an_error_of_each_code_has_a_reason_and_says_what_to_do() -> None:
    assert set(OF_CODE) == set(Code)
    assert all(reason in NEXT for reason in OF_CODE.values())


@pytest.mark.parametrize(
    ("code", "phase"),
    [(Code.QUOTA, "Pending"), (Code.INVALID, "Failed"), (Code.UNAUTHORIZED, "Pending"), (Code.CONFLICT, "Pending")],
)
def test_a_create_that_fails_is_reported_by_its_code_and_tried_again(code: Code, phase: str) -> None:
    hypervisors = Hypervisors(faults=(Fault(call="create", code=code, message="no room", times=2),))

    async def story(cluster: Cluster) -> None:
        await prepare(cluster)
        await cluster.create(MACHINES, machine())
        status = await because(cluster, OF_CODE[code].value)
        assert status["phase"] == phase
        assert status["operation"]["failures"] == 1
        assert status["message"] == f"creating the machine failed 1 times: no room; {NEXT[OF_CODE[code]]}"
        assert (await events(cluster))[OF_CODE[code].value] == status["message"]
        for _ in range(3):
            await cluster.advance(301)
        await reaches(cluster, "Running")

    play_story(story, hypervisors)


@pytest.mark.parametrize("code", [Code.INTERNAL, Code.NOT_FOUND])
def test_a_create_whose_task_fails_is_begun_again_and_leaves_one_machine(code: Code) -> None:
    hypervisors = Hypervisors(
        faults=(
            Fault(call="create", when="task", code=code, times=1),
            Fault(call="create", when="after", times=2),
        )
    )

    async def story(cluster: Cluster) -> None:
        await prepare(cluster)
        await created(cluster)
        assert len(await hypervisors.at().machines()) == 1

    play_story(story, hypervisors)


class Strict(Simulated):
    """A hypervisor that refuses a second machine of a name, and whose first answer is lost."""

    async def create(self, machine: Machine) -> Made:
        if any(each.name == machine.name for each in await self.machines()):
            raise ProviderError(Code.CONFLICT, f"{machine.name} exists already")
        made = await super().create(machine)
        raise ProviderError(Code.RETRYABLE, f"the answer about {made.id} is lost")


def test_a_machine_whose_creation_was_not_answered_is_found_by_its_name() -> None:
    hypervisors = Hypervisors(make=Strict)

    async def story(cluster: Cluster) -> None:
        await prepare(cluster)
        await cluster.create(MACHINES, machine())
        await cluster.advance(5)
        status = await reaches(cluster, "Running")
        assert [each.id for each in await hypervisors.at().machines()] == [status["id"]]

    play_story(story, hypervisors)


def test_two_namespaces_have_machines_of_one_name_on_one_provider() -> None:
    hypervisors = Hypervisors()

    async def story(cluster: Cluster) -> None:
        await prepare(cluster)
        elsewhere: dict[str, Any] = {"namespace": "default"}
        other = machine(
            "web",
            providerRef={"name": "sim", **elsewhere},
            classRef={"name": "small", **elsewhere},
            imageRef={"name": "ubuntu", **elsewhere},
        )
        other["metadata"]["namespace"] = "kube-public"
        await cluster.create(MACHINES, other)
        await created(cluster)
        await cluster.advance(10)
        assert len({each.name for each in await hypervisors.at().machines()}) == 2

    play_story(story, hypervisors)


# --- drift


def test_a_machine_that_is_gone_is_created_again_or_only_reported() -> None:
    hypervisors = Hypervisors()

    async def story(cluster: Cluster) -> None:
        await prepare(cluster)
        ids = {}
        for name, policy in (("healed", "Heal"), ("reported", "Report")):
            ids[name] = (await created(cluster, name, driftPolicy=policy))["id"]
            await hypervisors.at().delete(ids[name])
        await cluster.advance(60)
        healed = await reaches(cluster, "Running", "healed")
        assert healed["id"] != ids["healed"]
        status = await status_of(cluster, "reported")
        assert (status["phase"], answer(status, "Drifted")) == ("Failed", ("True", "Drifted"))
        assert status["message"].startswith("the machine no longer exists on its provider")

    play_story(story, hypervisors)


# --- hooks


class WithAgent(Simulated):
    """A hypervisor whose guests run commands."""

    def __init__(self, *arguments: Any, **more: Any) -> None:
        super().__init__(*arguments, **more)
        self.ran: list[tuple[str, ...]] = []

    async def execute(self, id: str, command: tuple[str, ...], timeout_seconds: int = 60) -> None:
        self.ran.append((str((await self.describe(id)).power), *command))


def test_hooks_run_before_the_stop_and_after_the_start() -> None:
    hypervisors = Hypervisors(make=WithAgent)
    asked: list[str] = []

    async def fetch(url: str, seconds: float) -> int:
        asked.append(url)
        return 200 if len(asked) > 2 else 503

    async def story(cluster: Cluster) -> None:
        await prepare(cluster)
        hooks = {
            "preStop": {"exec": {"command": ["sync"]}},
            "postStart": {"httpGet": {"port": 8080, "path": "/warm"}},
        }
        await created(cluster, lifecycle=hooks)
        await cluster.advance(60)
        status = await status_of(cluster)
        assert asked == [f"http://{status['ips'][0]}:8080/warm"] * 3
        assert "operation" not in status
        await cluster.patch(MACHINES, "web", {"spec": {"powerState": "Off"}})
        await reaches(cluster, "Stopped")
        await cluster.patch(MACHINES, "web", {"spec": {"powerState": "On"}})
        await reaches(cluster, "Running")
        await cluster.delete(MACHINES, "web")
        await cluster.advance(10)
        assert await cluster.find(MACHINES, "web") is None
        found = hypervisors.at()
        assert isinstance(found, WithAgent)
        assert found.ran == [("On", "sync"), ("On", "sync")]

    play_story(story, hypervisors, fetch=fetch)


def test_a_hook_that_fails_does_not_keep_a_machine_running() -> None:
    hypervisors = Hypervisors(capabilities=msgspec.structs.replace(CAPABILITIES, guest_commands=False))

    async def story(cluster: Cluster) -> None:
        await prepare(cluster)
        await created(cluster, lifecycle={"preStop": {"exec": {"command": ["sync"]}}})
        await cluster.patch(MACHINES, "web", {"spec": {"powerState": "Off"}})
        await reaches(cluster, "Stopped")
        assert (await events(cluster))["HookFailed"] == (
            "spec.lifecycle.preStop: this provider does not support commands in guests"
        )

    play_story(story, hypervisors)


def test_a_snapshot_is_taken_before_the_stop() -> None:
    hypervisors = Hypervisors()

    async def story(cluster: Cluster) -> None:
        await prepare(cluster)
        id = (await created(cluster, lifecycle={"preStop": {"snapshot": {"name": "before"}}}))["id"]
        await cluster.patch(MACHINES, "web", {"spec": {"powerState": "Off"}})
        await reaches(cluster, "Stopped")
        assert (await hypervisors.at().describe(id)).disks[0].snapshots

    play_story(story, hypervisors)


# --- reverting


def test_a_machine_is_reverted_once_to_the_snapshot_that_its_spec_names() -> None:
    hypervisors = Hypervisors()

    async def story(cluster: Cluster) -> None:
        await prepare(cluster)
        await created(cluster)
        await cluster.patch(MACHINES, "web", {"spec": {"snapshot": {"revertToRef": {"name": "s"}}}})
        await because(cluster, "WaitingForSnapshot")
        made = await cluster.create(SNAPSHOTS, {"metadata": {"name": "s"}, "spec": {"vmRef": {"name": "web"}}})
        status = await reaches(cluster, "Running")
        assert status["revertedTo"] == made["metadata"]["uid"]
        taken = await status_of(cluster, "s", SNAPSHOTS)
        assert status["snapshots"] == [
            {
                "id": taken["snapshotID"],
                "name": "s",
                "creationTime": taken["creationTime"],
                "sizeBytes": Quantity.parse(taken["size"]).to_int(),
            }
        ]
        await cluster.advance(600)
        assert [call for call, _ in hypervisors.at().calls].count("revert") == 1
        await cluster.patch(MACHINES, "web", {"spec": {"snapshot": None}})
        assert "revertedTo" not in await reaches(cluster, "Running")

    play_story(story, hypervisors)


# --- deletion


def test_a_deletion_that_fails_keeps_the_finalizer_until_it_is_forced() -> None:
    hypervisors = Hypervisors(faults=(Fault(call="delete", code=Code.INTERNAL, message="locked"),))

    async def story(cluster: Cluster) -> None:
        await prepare(cluster)
        await created(cluster)
        await cluster.delete(MACHINES, "web")
        await cluster.advance(600)
        status = await status_of(cluster)
        assert status["phase"] == "Deleting"
        assert "locked" in condition(status, "Deleting")["message"]
        await cluster.patch(MACHINES, "web", {"metadata": {"annotations": {"virtrigaud.io/force-delete": "true"}}})
        await cluster.settle()
        assert await cluster.find(MACHINES, "web") is None
        assert "DeletionForced" in await events(cluster)

    play_story(story, hypervisors)


def test_a_deletion_whose_task_finds_nothing_to_delete_is_repeated_until_the_machine_is_gone() -> None:
    hypervisors = Hypervisors(faults=(Fault(call="delete", when="task", code=Code.NOT_FOUND, times=1),))

    async def story(cluster: Cluster) -> None:
        await prepare(cluster)
        await created(cluster)
        await cluster.delete(MACHINES, "web")
        await cluster.advance(600)
        assert await cluster.find(MACHINES, "web") is None
        assert hypervisors.at().leftovers() == ()

    play_story(story, hypervisors)


def test_a_machine_whose_provider_is_gone_is_kept_and_says_how_to_let_it_go() -> None:
    async def story(cluster: Cluster) -> None:
        await prepare(cluster)
        await created(cluster)
        await cluster.delete(PROVIDERS, "sim")
        if await cluster.find(PROVIDERS, "sim") is not None:
            await cluster.patch(PROVIDERS, "sim", {"metadata": {"finalizers": None}})
        await cluster.delete(MACHINES, "web")
        await cluster.settle()
        message = (await status_of(cluster))["message"]
        assert message.startswith("Provider sim does not exist")
        assert "virtrigaud.io/force-delete=true" in message

    play_story(story)


def test_a_machine_that_never_was_is_gone_at_once() -> None:
    async def story(cluster: Cluster) -> None:
        await cluster.create(MACHINES, machine())
        await cluster.settle()
        await cluster.delete(MACHINES, "web")
        await cluster.settle()
        assert await cluster.find(MACHINES, "web") is None

    play_story(story)


def test_a_provider_stays_until_its_machines_are_gone() -> None:
    async def story(cluster: Cluster) -> None:
        await prepare(cluster)
        await created(cluster)
        await cluster.delete(PROVIDERS, "sim")
        await cluster.settle()
        status = await status_of(cluster, "sim", PROVIDERS)
        assert status["runtime"]["phase"] == "Stopping"
        assert status["runtime"]["message"] == "1 machine still refer to the Provider"
        await cluster.delete(MACHINES, "web")
        await cluster.advance(10)
        assert await cluster.find(MACHINES, "web") is None
        await cluster.advance(31)
        assert await cluster.find(PROVIDERS, "sim") is None

    play_story(story)


# --- adoption


def test_machines_that_were_there_are_adopted_by_a_filter_and_not_touched() -> None:
    hypervisors = Hypervisors()

    async def story(cluster: Cluster) -> None:
        there = hypervisors.at()
        for name, cpus in (("Old_DB.1", 4), ("old-web", 2), ("tiny", 1)):
            made = await there.create(Machine(name=name, cpus=cpus, memory_mib=2048))
            await cluster.advance(3)
            if name != "old-web":
                await there.power(made.id, "On")
        await cluster.advance(5)
        filters = {"virtrigaud.io/adopt-filter": '{"namePattern": "(?i)^old", "minCPU": 2}'}
        await cluster.create(PROVIDERS, provider(annotations={"virtrigaud.io/adopt-vms": "true", **filters}))
        await cluster.advance(10)
        found = {each["metadata"]["name"]: each for each in await cluster.list(MACHINES)}
        assert {name: each["status"]["phase"] for name, each in found.items()} == {
            "old-db-1": "Running",
            "old-web": "Stopped",
        }
        assert found["old-db-1"]["spec"]["classRef"] == {"name": "adopted-4cpu-2048mb"}
        assert {call for call, _ in there.calls} <= {
            "create", "power", "describe", "machines", "validate", "capabilities", "inventory"
        }  # fmt: skip
        assert [call for call, _ in there.calls].count("power") == 2
        adoption = (await status_of(cluster, "sim", PROVIDERS))["adoption"]
        assert (adoption["discoveredVMs"], adoption["adoptedVMs"]) == (3, 2)
        await cluster.patch(PROVIDERS, "sim", {"metadata": {"annotations": {"virtrigaud.io/adopt-filter": "{"}}})
        await cluster.advance(31)
        assert "correct the annotation" in (await status_of(cluster, "sim", PROVIDERS))["adoption"]["message"]

    play_story(story, hypervisors)


# --- classes, networks, images


def test_a_changed_class_says_what_it_will_do_before_it_does() -> None:
    async def story(cluster: Cluster) -> None:
        await prepare(cluster)
        await created(cluster, "on")
        await created(cluster, "off", powerState="Off")
        await created(cluster, "allowed", reconfigure={"restart": "Always"})
        await created(cluster, "own", resources={"cpu": 2, "memoryMiB": 4096})
        await cluster.patch(CLASSES, "small", {"spec": {"cpu": 4}})
        await cluster.settle()
        said = (await status_of(cluster, "small", CLASSES))["lastChange"]
        assert said == (
            "machines get 4 CPUs and 4096 MiB: 1 with a restart, 1 while they are off, "
            "1 wait for a restart that their spec does not allow now"
        )
        assert (await events(cluster))["ClassChanged"] == said
        await cluster.advance(30)
        found = {name: await status_of(cluster, name) for name in ("on", "off", "allowed", "own")}
        cpus = {name: each["currentResources"]["cpu"] for name, each in found.items()}
        assert cpus == {"on": 2, "off": 4, "allowed": 4, "own": 2}

    play_story(story)


def test_a_spec_that_was_stored_without_a_review_says_what_is_wrong_and_holds_up_no_machine_that_runs() -> None:
    card = {"name": "a", "ipAddress": "10.0.0.5", "prefix": 24, "gateway": "10.9.9.9"}

    async def story(cluster: Cluster) -> None:
        await prepare(cluster)
        await cluster.create(MACHINES, machine("bad", networks=[card]))
        status = await because(cluster, "InvalidSpec", "bad")
        assert status["phase"] == "Failed"
        assert "spec.networks[0].gateway: 10.9.9.9 is not in 10.0.0.0/24" in status["message"]
        await created(cluster)
        await cluster.patch(MACHINES, "web", {"spec": {"networks": [card], "powerState": "Off"}})
        await reaches(cluster, "Stopped")
        await cluster.patch(MACHINES, "web", {"spec": {"lifecycle": {"gracefulShutdownTimeout": "9999999h"}}})
        status = await because(cluster, "InvalidSpec")
        assert (status["phase"], "9999999h" in status["message"]) == ("Stopped", True)
        await cluster.delete(MACHINES, "web")
        await cluster.advance(30)
        assert await cluster.find(MACHINES, "web") is None

    play_story(story)


def test_a_class_that_contradicts_itself_is_refused_with_the_path() -> None:
    async def story(cluster: Cluster) -> None:
        await cluster.create(CLASSES, vm_class(securityProfile={"secureBoot": True}))
        await cluster.settle()
        ready = condition(await status_of(cluster, "small", CLASSES), "Ready")
        assert (ready["reason"], ready["message"]) == (
            "ClassInvalid",
            "spec.securityProfile.secureBoot: secure boot needs spec.firmware UEFI; correct the class",
        )
        await cluster.create(PROVIDERS, provider())
        await cluster.create(IMAGES, image())
        await cluster.create(MACHINES, machine())
        status = await because(cluster, "WaitingForDependencies")
        assert status["message"] == "VMClass small is not valid; see its conditions"
        await cluster.patch(CLASSES, "small", {"spec": {"firmware": "UEFI"}})
        await reaches(cluster, "Running")

    play_story(story)


def test_a_network_counts_its_machines_and_finds_addresses_that_collide() -> None:
    async def story(cluster: Cluster) -> None:
        await prepare(cluster)
        await cluster.create(NETWORKS, {"metadata": {"name": "lan"}, "spec": {"network": {"type": "nat"}}})
        for name in ("a", "b"):
            card = {"name": "net", "networkRef": {"name": "lan"}, "ipAddress": "10.0.0.5", "prefix": 24}
            await created(cluster, name, networks=[card])
        await cluster.advance(10)
        status = await status_of(cluster, "lan", NETWORKS)
        assert (status["connectedVMs"], status["availableOn"], status["phase"]) == (2, ["sim"], "Failed")
        assert condition(status, "Validated")["message"].startswith("a and b have the same address 10.0.0.5")
        assert [each["vm"] for each in status["ipAllocations"]] == ["a", "b"]
        assert (await status_of(cluster, "a"))["ips"] == ["10.0.0.5"]
        await cluster.delete(MACHINES, "b")
        await cluster.advance(10)
        assert (await status_of(cluster, "lan", NETWORKS))["phase"] == "Ready"

    play_story(story)


URL = {"http": {"url": "https://images.example.com/u.qcow2"}}


def test_an_image_is_imported_once_for_each_provider_that_needs_it() -> None:
    hypervisors = Hypervisors()

    async def story(cluster: Cluster) -> None:
        await cluster.create(PROVIDERS, provider())
        await cluster.create(PROVIDERS, provider("other"))
        await cluster.create(CLASSES, vm_class())
        await cluster.create(IMAGES, image(source=URL))
        await cluster.settle()
        assert answer(await status_of(cluster, "ubuntu", IMAGES), "Ready") == ("False", "NotUsed")
        for name in ("a", "b"):
            await cluster.create(MACHINES, machine(name))
        await cluster.advance(2)
        status = await status_of(cluster, "ubuntu", IMAGES)
        assert status["phase"] == "Downloading"
        assert [answer(status, type)[0] for type in ("Downloading", "Importing")] == ["True", "True"]
        assert status["importProgress"]["totalBytes"]
        assert answer(await status_of(cluster, "a"), "Ready") == ("False", "WaitingForImage")
        for name in ("a", "b"):
            await reaches(cluster, "Running", name)
        await created(cluster, "c", providerRef={"name": "other"})
        status = await status_of(cluster, "ubuntu", IMAGES)
        assert (status["phase"], status["availableOn"], status["ready"]) == ("Ready", ["other", "sim"], True)
        for address in ("sim:9443", "other:9443"):
            assert [call for call, _ in hypervisors.at(address).calls].count("prepare_image") == 1

    play_story(story, hypervisors)


def test_the_phase_of_an_image_follows_the_stage_of_its_import() -> None:
    phases: list[tuple[str, str]] = []

    async def story(cluster: Cluster) -> None:
        await cluster.create(PROVIDERS, provider())
        await cluster.create(CLASSES, vm_class())
        await cluster.create(IMAGES, image(source=URL, prepare={"optimization": {"enableCompression": True}}))
        await cluster.create(MACHINES, machine())
        for _ in range(60):
            status = await status_of(cluster, "ubuntu", IMAGES)
            phases.append((status.get("phase", ""), answer(status, "Downloading")[0]))
            await cluster.advance(0.25)

    play_story(story)
    assert list(dict.fromkeys(phases)) == [
        ("", ""), ("Downloading", "True"), ("Importing", "False"), ("Converting", "False"), ("Optimizing", "False"),
        ("Ready", "False"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("missing", "phase", "reason"), [("Fail", "Failed", "MissingOnProvider"), ("Wait", "Pending", "WaitingForImage")]
)
def test_an_image_that_is_missing_is_not_imported_where_the_spec_says_so(missing: str, phase: str, reason: str) -> None:
    hypervisors = Hypervisors()

    async def story(cluster: Cluster) -> None:
        await cluster.create(PROVIDERS, provider())
        await cluster.create(CLASSES, vm_class())
        await cluster.create(IMAGES, image(source=URL, prepare={"onMissing": missing}))
        await cluster.create(MACHINES, machine())
        status = await because(cluster, reason)
        assert status["phase"] == phase
        await cluster.advance(60)
        assert "prepare_image" not in {call for call, _ in hypervisors.at().calls}

    play_story(story, hypervisors)


@pytest.mark.parametrize("code", [Code.INTERNAL, Code.NOT_FOUND])
def test_an_import_that_fails_is_tried_again_and_one_that_takes_too_long_is_cancelled(code: Code) -> None:
    hypervisors = Hypervisors(faults=(Fault(call="prepare_image", when="task", code=code, times=1),))

    async def story(cluster: Cluster) -> None:
        await cluster.create(PROVIDERS, provider())
        await cluster.create(CLASSES, vm_class())
        await cluster.create(IMAGES, image(source=URL))
        await cluster.create(MACHINES, machine())

        async def failed() -> bool:
            return (await status_of(cluster, "ubuntu", IMAGES)).get("phase") == "Failed"

        await cluster.until(failed)
        await reaches(cluster, "Running")
        await cluster.create(IMAGES, image("slow", source=URL, prepare={"timeout": "3s"}))
        await cluster.create(MACHINES, machine("late", imageRef={"name": "slow"}))

        async def timed_out() -> bool:
            return answer(await status_of(cluster, "slow", IMAGES), "Ready")[1] == "ImportTimedOut"

        await cluster.until(timed_out)
        assert "cancel" in {call for call, _ in hypervisors.at().calls}

    play_story(story, hypervisors)
