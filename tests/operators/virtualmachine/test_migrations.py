"""Migrations on simulated hypervisors: phases, progress, roll-back, retries, clean-up, and whose machine it is."""

from __future__ import annotations

import base64
from typing import Any

import msgspec
import pytest
from tests.operators.virtualmachine.migration_stories import (
    NFS,
    OFF,
    RUNS,
    S3,
    Diary,
    Pair,
    in_phase,
    left,
    migration,
    nothing_but,
    prepare,
)
from tests.operators.virtualmachine.snapshot_stories import taken
from tests.operators.virtualmachine.stories import (
    MACHINES,
    MIGRATIONS,
    PROVIDERS,
    SETS,
    Fault,
    Latencies,
    Wire,
    answer,
    created,
    is_ready,
    machine,
    play_story,
    provider,
    reaches,
    status_of,
)
from tests.operators.virtualmachine.test_fields import Seen, declared, status_schema

from holdfast.client.resources import CLAIMS, DEPLOYMENTS, EVENTS, SECRETS
from holdfast.operators.admission import Admission
from holdfast.operators.virtualmachine import OPERATOR
from holdfast.providers.contract import Code
from holdfast.providers.simulated import CAPABILITIES
from holdfast.providers.simulated.world import World
from holdfast.testing.clusters import Cluster

PHASES = [
    "Pending", "Validating", "Snapshotting", "Exporting", "Transferring", "Converting", "Importing", "Creating",
    "Validating-Target", "Ready",
]  # fmt: skip
CONDITIONS = ("Ready", "Validating", "Snapshotting", "Exporting", "Transferring", "Importing", "Failed")
SLOW = Latencies(bytes_per_second=16 << 20)


async def begun(cluster: Cluster, **spec: Any) -> None:
    """A machine that runs, and a migration of it."""
    await prepare(cluster)
    await created(cluster)
    await cluster.create(MIGRATIONS, migration(**spec))


async def gone(cluster: Cluster, resource: Any, name: str) -> None:
    async def holds() -> bool:
        return await cluster.find(resource, name) is None

    await cluster.until(holds, within=300, step=0.5)


async def events(cluster: Cluster) -> set[str]:
    return {each["reason"] for each in await cluster.list(EVENTS)}


# --- the way there


def test_a_machine_moves_through_all_phases_with_its_files() -> None:
    pair = Pair(latencies=SLOW)

    async def story(cluster: Cluster) -> None:
        await prepare(cluster)
        await created(cluster)
        pair.source.write_file((await status_of(cluster))["id"], "/etc/motd", "hello")
        diary = Diary(cluster)
        target = {"powerOn": True, "labels": {"app": "web"}, "annotations": {"note": "kept"}}
        options = {"diskFormat": "vmdk", "validationChecks": {"checkBoot": True, "checkConnectivity": True}}
        await cluster.create(MIGRATIONS, migration(target=target, options=options))
        status = await in_phase(cluster, "Ready")
        await cluster.advance(10)
        diary.close()
        assert diary.phases == PHASES
        shares = diary.progress("percentage")
        assert shares == sorted(shares)
        assert {0, 5, 15, 45, 60, 90, 95, 100} <= set(shares)
        assert any(20 < share < 45 for share in shares)
        assert any(65 < share < 85 for share in shares)
        assert any(16 << 20 <= rate <= 64 << 20 for rate in diary.progress("transferRate"))
        assert any(each.endswith("s") for each in diary.progress("eta"))
        assert any(0 < done < 256 << 20 for done in diary.progress("transferredBytes"))
        for type in CONDITIONS[1:-1]:
            assert "True" in {answer(each, type)[0] for each in diary.versions}, type
        assert all(each.get("taskRef") for each in diary.versions if each.get("phase") == "Converting")

        made = await cluster.get(MACHINES, "moved")
        assert made["status"]["phase"] == "Running"
        assert made["metadata"]["labels"] == {"app": "web"}
        assert made["metadata"]["annotations"]["note"] == "kept"
        assert made["metadata"]["annotations"]["virtrigaud.io/migrated-from"] == "web"
        assert made["metadata"]["annotations"]["virtrigaud.io/migration-completed-at"] == status["completionTime"]
        assert made["metadata"]["annotations"]["virtrigaud.io/disk-checksum"] == status["diskInfo"]["checksum"]
        assert pair.target.read_file(made["status"]["id"], "/etc/motd") == "hello"
        source = await reaches(cluster, "Stopped")
        assert source["powerState"] == "Off"
        assert "VMMigration move keeps it off" in source["message"]

        status = await status_of(cluster, "move", MIGRATIONS)
        assert [answer(status, type)[0] for type in CONDITIONS] == ["True", *["False"] * 6]
        assert status["targetVMRef"] == {"name": "moved"}
        assert status["targetVMID"] == made["status"]["id"]
        assert status["completionTime"] > status["startTime"]
        assert status["validationResults"] == {
            "diskSizeMatch": True, "checksumMatch": True, "bootSuccess": True, "connectivitySuccess": True,
        }  # fmt: skip
        info, stored = status["diskInfo"], status["storageInfo"]
        assert info["sourceChecksum"] == info["targetChecksum"] == info["checksum"]
        assert (info["sourceFormat"], info["targetFormat"]) == ("qcow2", "qcow2")
        assert info["sourceSize"] == info["targetSize"]
        assert {"sourceDiskID", "targetDiskID", "targetPath"} <= set(info)
        assert stored["url"] == "pvc://move-storage/vmmigrations/default/move/export.vmdk"
        assert (stored["cleanedUp"], stored["size"]) == (True, str(256 << 20))
        assert {"exportID", "importID", "snapshotRef", "storagePVCName", "progress"} <= set(status)
        assert await cluster.find(CLAIMS, "move-storage") is None
        assert left(pair) == nothing_but(1, 1)
        reasons = {"MigrationComplete", "Exporting", "Importing", "SourcePowerOff", "WritesNotMoved"}
        assert reasons <= await events(cluster)

    play_story(story, pair)


def test_a_machine_that_is_stopped_first_moves_with_all_that_it_wrote() -> None:
    pair = Pair(latencies=SLOW)

    async def story(cluster: Cluster) -> None:
        await begun(cluster, source={**OFF, "createSnapshot": False}, target=RUNS)
        diary = Diary(cluster)
        await in_phase(cluster, "Exporting")
        assert (await status_of(cluster))["powerState"] == "Off"
        pair.source.write_file((await status_of(cluster))["id"], "/last", "words")
        status = await in_phase(cluster, "Ready")
        diary.close()
        assert "Snapshotting" not in diary.phases
        assert pair.target.read_file(status["targetVMID"], "/last") == "words"
        assert "WritesNotMoved" not in await events(cluster)

    play_story(story, pair)


def test_a_machine_that_is_not_to_run_is_made_off_and_the_source_runs_on() -> None:
    async def story(cluster: Cluster) -> None:
        await begun(cluster)
        await in_phase(cluster, "Ready")
        assert (await reaches(cluster, "Stopped", "moved"))["powerState"] == "Off"
        assert (await status_of(cluster))["powerState"] == "On"

    play_story(story, Pair())


def test_the_source_is_deleted_at_the_end_if_the_spec_says_so() -> None:
    pair = Pair()

    async def story(cluster: Cluster) -> None:
        await begun(cluster, source={**OFF, "deleteAfterMigration": True}, target=RUNS)
        await in_phase(cluster, "Ready")
        await gone(cluster, MACHINES, "web")
        await reaches(cluster, "Running", "moved")
        await cluster.advance(30)
        assert left(pair) == nothing_but(0, 1)
        assert (await status_of(cluster, "move", MIGRATIONS))["phase"] == "Ready"

    play_story(story, pair)


def test_a_snapshot_that_the_spec_names_is_moved_and_kept() -> None:
    pair = Pair()

    async def story(cluster: Cluster) -> None:
        await prepare(cluster)
        await created(cluster)
        id = (await status_of(cluster))["id"]
        await cluster.create(MIGRATIONS, migration(source={"snapshotRef": {"name": "before"}}))
        status = await in_phase(cluster, "Pending")
        assert "VMSnapshot before does not exist" in status["message"]
        pair.source.write_file(id, "/state", "old")
        await taken(cluster)
        pair.source.write_file(id, "/state", "new")
        status = await in_phase(cluster, "Ready")
        assert status["snapshotRef"] == "before"
        assert pair.target.read_file(status["targetVMID"], "/state") == "old"
        assert len(left(pair)["source"]["snapshots"]) == 1

    play_story(story, pair)


@pytest.mark.parametrize("direct", [True, False])
def test_nfs_is_reached_directly_where_both_providers_can(direct: bool) -> None:
    modes = ("relay", "direct") if direct else ("relay",)
    pair = Pair(capabilities=msgspec.structs.replace(CAPABILITIES, transfer_modes=modes))

    async def story(cluster: Cluster) -> None:
        await begun(cluster, storage=NFS)
        status = await in_phase(cluster, "Ready")
        where = "nfs://files.example.com/srv/vms/stage/vmmigrations-default-move-export.qcow2"
        assert status["storageInfo"]["url"] == where
        assert {each.mode for each in pair.store.seen} == {"direct" if direct else "relay"}
        assert pair.store.seen[0].options_json == (
            '{"server":"files.example.com","export":"/srv/vms","path":"stage","uid":7}'
        )

    play_story(story, pair)


def secret(**data: str) -> Wire:
    encoded = {name: base64.b64encode(value.encode()).decode() for name, value in data.items()}
    return {"metadata": {"name": "bucket"}, "data": encoded}


def test_s3_needs_credentials_which_no_status_shows() -> None:
    pair = Pair()

    async def story(cluster: Cluster) -> None:
        await begun(cluster, storage={"type": "s3", "s3": S3})
        status = await in_phase(cluster, "Pending")
        assert "Secret bucket does not exist" in status["message"]
        await cluster.create(SECRETS, secret(accessKeyID="me"))
        status = await in_phase(cluster, "Failed")
        assert "Secret bucket has no secretAccessKey" in status["message"]
        await cluster.patch(SECRETS, "bucket", secret(accessKeyID="me", secretAccessKey="hush-hush"))
        status = await in_phase(cluster, "Ready")
        assert status["storageInfo"]["url"] == "s3://moves/team/vmmigrations/default/move/export.qcow2"
        assert "storagePVCName" not in status
        assert pair.store.seen[0].credentials == {"accessKeyID": "me", "secretAccessKey": "hush-hush"}
        assert "hush-hush" not in str(await cluster.get(MIGRATIONS, "move"))

    play_story(story, pair)


# --- what goes wrong


def test_what_the_migration_needs_is_waited_for() -> None:
    async def story(cluster: Cluster) -> None:
        await prepare(cluster)
        await cluster.delete(PROVIDERS, "far")
        await cluster.create(MIGRATIONS, migration())
        status = await in_phase(cluster, "Pending")
        assert answer(status, "Ready") == ("False", "SourceVMNotReady")
        await created(cluster)
        await cluster.advance(5)
        status = await status_of(cluster, "move", MIGRATIONS)
        assert answer(status, "Ready") == ("False", "TargetProviderNotReady")
        await cluster.create(PROVIDERS, provider("far"))
        await in_phase(cluster, "Ready")

    play_story(story, Pair())


@pytest.mark.parametrize(
    ("call", "code", "times", "phase"),
    [
        ("snapshot", Code.INTERNAL, 2, "Ready"),
        ("export_disk", Code.INTERNAL, 3, "Failed"),
        ("import_disk", Code.QUOTA, 2, "Ready"),
        ("import_disk", Code.INVALID, 2, "Ready"),
    ],
)
def test_an_attempt_that_fails_is_repeated_as_the_policy_says_and_rolled_back_in_the_end(
    call: str, code: Code, times: int, phase: str
) -> None:
    policy = {"maxRetries": 2, "retryDelay": "10s", "backoffMultiplier": 3}
    pair = Pair(faults=(Fault(call=call, times=times, code=code, when="task"),))

    async def story(cluster: Cluster) -> None:
        await begun(cluster, source=OFF, target=RUNS, options={"retryPolicy": policy})
        while "failed" not in (status := await status_of(cluster, "move", MIGRATIONS)):
            await cluster.advance(0.5)
        began = cluster.now()
        assert (status["phase"], answer(status, "Failed")) == ("Pending", ("False", "Retrying"))
        while (await status_of(cluster, "move", MIGRATIONS)).get("retryCount") != 1:
            await cluster.advance(0.5)
        assert (cluster.now() - began).total_seconds() >= 9, "the first retry waits, too"
        status = await in_phase(cluster, phase)
        assert status["retryCount"] == 2
        assert "lastRetryTime" in status
        await cluster.advance(60)
        if phase == "Ready":
            assert (await status_of(cluster, "moved"))["phase"] == "Running"
            assert left(pair) == nothing_but(1, 1)
            return
        await is_rolled_back(cluster, pair)

    play_story(story, pair)


async def is_rolled_back(cluster: Cluster, pair: Pair) -> None:
    status = await status_of(cluster, "move", MIGRATIONS)
    assert answer(status, "Failed")[0] == "True"
    assert "the source, VirtualMachine web on provider sim, is Running" in status["message"]
    assert "nothing is left of the target" in status["message"]
    assert (await status_of(cluster))["powerState"] == "On"
    assert await cluster.find(MACHINES, "moved") is None
    # By the default policy the disk in the storage is kept when the migration fails.
    assert {**left(pair), "files": []} == nothing_but(1, 0)
    await cluster.delete(MIGRATIONS, "move")
    await gone(cluster, MIGRATIONS, "move")
    assert left(pair) == nothing_but(1, 0)


@pytest.mark.parametrize("code", [Code.UNSUPPORTED, Code.NOT_FOUND])
def test_what_only_a_user_can_correct_is_not_repeated(code: Code) -> None:
    pair = Pair(faults=(Fault(call="export_disk", code=code, when="task"),))

    async def story(cluster: Cluster) -> None:
        await begun(cluster, source=OFF, target=RUNS, options={"retryPolicy": {"maxRetries": 9}})
        await in_phase(cluster, "Failed")
        await cluster.advance(30)
        await is_rolled_back(cluster, pair)

    play_story(story, pair)


def test_a_migration_that_stored_nothing_is_deleted_although_its_storage_does_not_exist() -> None:
    faults = (
        Fault(call="export_disk", code=Code.NOT_FOUND, when="task"),
        Fault(call="delete_export", code=Code.NOT_FOUND),
    )
    pair = Pair(faults=faults)

    async def story(cluster: Cluster) -> None:
        await begun(cluster, source=OFF, target=RUNS, options={"cleanupPolicy": "Always"})
        await in_phase(cluster, "Failed")
        await cluster.advance(30)
        assert (await status_of(cluster))["powerState"] == "On"
        await cluster.delete(MIGRATIONS, "move")
        await gone(cluster, MIGRATIONS, "move")

    play_story(story, pair)


def test_an_export_that_cannot_be_deleted_keeps_its_migration() -> None:
    pair = Pair(faults=(Fault(call="delete_export", code=Code.NOT_FOUND, message="not mounted"),))

    async def story(cluster: Cluster) -> None:
        await begun(cluster)
        await in_phase(cluster, "Ready")
        await cluster.delete(MIGRATIONS, "move")
        await cluster.advance(60)
        status = await status_of(cluster, "move", MIGRATIONS)
        assert "Export" in status["artifacts"]
        assert "not mounted" in status["message"]

    play_story(story, pair)


def test_a_migration_that_takes_too_long_is_cancelled_and_rolled_back() -> None:
    pair = Pair(latencies=Latencies(bytes_per_second=1 << 20))

    async def story(cluster: Cluster) -> None:
        options = {"timeout": "30s", "cleanupPolicy": "Always", "retryPolicy": {"maxRetries": 5}}
        await begun(cluster, source=OFF, target=RUNS, options=options)
        status = await in_phase(cluster, "Failed", within=120)
        assert answer(status, "Failed") == ("True", "MigrationTimedOut")
        await reaches(cluster, "Running", within=60)
        await cluster.advance(30)
        assert left(pair) == nothing_but(1, 0)
        assert "taskRef" not in await status_of(cluster, "move", MIGRATIONS)

        await cluster.patch(MIGRATIONS, "move", {"spec": {"options": {"timeout": "1h"}}})
        await cluster.advance(1200)
        await in_phase(cluster, "Ready")
        assert (await status_of(cluster, "moved"))["phase"] == "Running"
        assert left(pair) == nothing_but(1, 1)

    play_story(story, pair)


def test_a_target_that_does_not_boot_is_removed_and_the_source_runs_again() -> None:
    pair = Pair(world=msgspec.structs.replace(World.of(), no_agent=("moved-*",)))

    async def story(cluster: Cluster) -> None:
        options = {"validationChecks": {"checkConnectivity": True}}
        await begun(cluster, source=OFF, target=RUNS, options=options)
        status = await in_phase(cluster, "Validating-Target")
        assert "its guest reports no address" in status["message"]
        await cluster.advance(700)
        status = await in_phase(cluster, "Failed")
        assert answer(status, "Failed") == ("True", "ValidationFailed")
        assert status["validationResults"]["connectivitySuccess"] is False
        assert status["validationResults"]["validationErrors"] == ["its guest reports no address"]
        await reaches(cluster, "Running")
        assert await cluster.find(MACHINES, "moved") is None

    play_story(story, pair)


def test_a_disk_that_changed_on_the_way_is_exported_anew() -> None:
    pair = Pair(latencies=SLOW)

    async def story(cluster: Cluster) -> None:
        await begun(cluster, options={"retryPolicy": {"maxRetries": 1, "retryDelay": "5s"}})
        while not pair.store.files:
            await cluster.advance(0.25)
        (url,) = pair.store.files
        pair.store.files[url] = pair.store.files[url].replace(b"virtual", b"virtual", 1) + b" "
        status = await in_phase(cluster, "Pending")
        assert status["failed"]["reason"] == "ChecksumMismatch"
        status = await in_phase(cluster, "Ready")
        await cluster.advance(10)
        assert status["validationResults"]["checksumMatch"] is True
        assert sum(call == "export_disk" for call, _ in pair.source.calls) >= 2
        assert left(pair) == nothing_but(1, 1)

    play_story(story, pair)


def test_a_machine_of_the_name_that_the_migration_has_not_made_is_never_touched() -> None:
    pair = Pair()

    async def story(cluster: Cluster) -> None:
        await prepare(cluster)
        await created(cluster)
        await created(cluster, "moved")
        own = await status_of(cluster, "moved")
        await cluster.create(MIGRATIONS, migration())
        status = await in_phase(cluster, "Failed")
        assert answer(status, "Failed") == ("True", "TargetExists")
        assert (await status_of(cluster, "moved"))["id"] == own["id"]
        await cluster.delete(MACHINES, "moved")
        await in_phase(cluster, "Ready")

    play_story(story, pair)


def test_a_machine_that_takes_the_name_meanwhile_keeps_it() -> None:
    pair = Pair(latencies=SLOW)

    async def story(cluster: Cluster) -> None:
        await begun(cluster, source=OFF, target=RUNS)
        await in_phase(cluster, "Exporting")
        await cluster.create(MACHINES, machine("moved"))
        status = await in_phase(cluster, "Failed")
        assert answer(status, "Failed") == ("True", "TargetExists")
        await reaches(cluster, "Running", "moved")
        await reaches(cluster, "Running")
        await cluster.advance(60)
        assert left(pair) == nothing_but(2, 0)

    play_story(story, pair)


@pytest.mark.parametrize("phase", ["Snapshotting", "Importing", "Creating"])
def test_a_migration_that_is_deleted_on_the_way_leaves_the_source_running_and_nothing_else(phase: str) -> None:
    pair = Pair(latencies=SLOW)

    async def story(cluster: Cluster) -> None:
        await begun(cluster, source=OFF, target=RUNS)
        await in_phase(cluster, phase)
        await cluster.delete(MIGRATIONS, "move")
        await gone(cluster, MIGRATIONS, "move")
        await reaches(cluster, "Running")
        await cluster.advance(60)
        assert await cluster.find(MACHINES, "moved") is None
        assert await cluster.find(CLAIMS, "move-storage") is None
        assert left(pair) == nothing_but(1, 0)

    play_story(story, pair)


def test_a_migration_that_is_deleted_when_it_is_complete_leaves_its_target() -> None:
    pair = Pair()

    async def story(cluster: Cluster) -> None:
        await begun(cluster, source=OFF, target=RUNS)
        await in_phase(cluster, "Ready")
        await cluster.delete(MIGRATIONS, "move")
        await gone(cluster, MIGRATIONS, "move")
        await cluster.advance(60)
        assert (await status_of(cluster, "moved"))["phase"] == "Running"
        assert (await reaches(cluster, "Stopped"))["powerState"] == "Off", "the two never run at the same time"
        assert left(pair) == nothing_but(1, 1)

    play_story(story, pair)


@pytest.mark.parametrize(("policy", "succeeds"), [("Never", True), ("Never", False), ("Always", False)])
def test_what_is_staged_is_removed_as_the_policy_says(policy: str, succeeds: bool) -> None:
    fault = Fault(call="import_disk", code=Code.QUOTA, when="task")
    pair = Pair(faults=() if succeeds else (fault,))

    async def story(cluster: Cluster) -> None:
        await begun(cluster, options={"cleanupPolicy": policy})
        await in_phase(cluster, "Ready" if succeeds else "Failed")
        await cluster.advance(60)
        status = await status_of(cluster, "move", MIGRATIONS)
        removed = policy == "Always" or (policy == "OnSuccess" and succeeds)
        assert bool(pair.store.files) is not removed
        assert status["storageInfo"].get("cleanedUp", False) is removed
        assert bool(left(pair)["source"]["snapshots"]) is (policy == "Never")
        assert ("is kept at" in status["message"]) is (not succeeds and not removed)
        assert (await cluster.find(CLAIMS, "move-storage") is None) is removed

    play_story(story, pair)


def test_two_migrations_of_one_machine_do_not_both_stop_it() -> None:
    pair = Pair(latencies=SLOW)

    async def story(cluster: Cluster) -> None:
        await begun(cluster, source=OFF, target=RUNS)
        await in_phase(cluster, "Exporting")
        await cluster.create(MIGRATIONS, migration("second", source=OFF, target={"name": "other", **RUNS}))
        status = await in_phase(cluster, "Pending", "second")
        assert answer(status, "Ready") == ("False", "SourceHeld")
        assert "VMMigration move" in status["message"]
        await in_phase(cluster, "Ready")
        assert (await status_of(cluster, "second", MIGRATIONS))["phase"] == "Pending"

    play_story(story, pair)


def test_the_target_that_a_user_deletes_ends_the_migration_and_the_source_runs_again() -> None:
    pair = Pair(latencies=Latencies(create=60))

    async def story(cluster: Cluster) -> None:
        await begun(cluster, source=OFF, target=RUNS)
        await in_phase(cluster, "Creating")
        await cluster.advance(5)
        await cluster.delete(MACHINES, "moved")
        status = await in_phase(cluster, "Failed")
        assert answer(status, "Failed") == ("True", "TargetDeleted")
        await reaches(cluster, "Running")

    play_story(story, pair)


def test_the_disk_in_the_storage_is_kept_when_the_source_is_gone() -> None:
    pair = Pair(latencies=SLOW)

    async def story(cluster: Cluster) -> None:
        await begun(cluster, options={"cleanupPolicy": "Always"})
        await in_phase(cluster, "Importing")
        await cluster.delete(MACHINES, "web")
        status = await in_phase(cluster, "Failed")
        assert answer(status, "Failed") == ("True", "SourceDeleted")
        await cluster.advance(60)
        assert len(pair.store.files) == 1, "it is the only copy"
        status = await status_of(cluster, "move", MIGRATIONS)
        assert "VirtualMachine web of the source no longer exists" in status["message"]

    play_story(story, pair)


def test_a_machine_with_more_disks_moves_only_if_the_target_gets_its_own() -> None:
    async def story(cluster: Cluster) -> None:
        await prepare(cluster)
        await created(cluster, disks=[{"name": "data", "sizeGiB": 10}])
        await cluster.create(MIGRATIONS, migration())
        status = await in_phase(cluster, "Failed")
        assert "has 1 disks beside its root disk" in status["message"]
        await cluster.patch(MIGRATIONS, "move", {"spec": {"target": {"disks": [{"name": "data", "sizeGiB": 20}]}}})
        await in_phase(cluster, "Ready")
        assert (await status_of(cluster, "moved"))["currentDisks"] == [{"name": "data", "sizeGiB": 20}]

    play_story(story, Pair())


def test_a_provider_that_does_not_answer_is_waited_for() -> None:
    pair = Pair(faults=(Fault(call="import_disk", times=5),))

    async def story(cluster: Cluster) -> None:
        await begun(cluster, source=OFF, target=RUNS)
        status = await in_phase(cluster, "Ready")
        assert "failed" not in status
        assert await is_ready(cluster, MACHINES, "moved")

    play_story(story, pair)


ABILITIES: dict[str, tuple[Wire, Wire, str]] = {
    "a": ({"disk_import": False}, {}, "provider a cannot import disks"),
    "b": ({"import_backends": ("s3",)}, {}, "spec.storage.type: provider b has s3, and not pvc"),
    "c": ({"import_formats": ("raw",)}, {"options": {"diskFormat": "vmdk"}}, "spec.options.diskFormat"),
    "d": ({"transfer_modes": ("relay",)}, {"storage": {**NFS, "transferMode": "direct"}}, "spec.storage.transferMode"),
}
FROM: dict[str, tuple[Wire, Wire, str]] = {
    "e": ({"disk_export": False}, {}, "provider e cannot export disks"),
    "f": ({"export_compression": False}, {"options": {"compress": True}}, "spec.options.compress"),
    "g": ({"snapshots": False}, {}, "spec.source.createSnapshot"),
}


def test_what_a_provider_cannot_do_is_refused_before_anything_is_done() -> None:
    both = {**ABILITIES, **FROM}
    pair = Pair(abilities={f"{name}:9443": ability for name, (ability, _, _) in both.items()})

    async def story(cluster: Cluster) -> None:
        await prepare(cluster)
        for name in both:
            await cluster.create(PROVIDERS, provider(name))
            await cluster.until(lambda name=name: is_ready(cluster, PROVIDERS, name))
        for name in FROM:
            await created(cluster, f"on-{name}", providerRef={"name": name})
        await created(cluster)
        for name, (_, spec, _) in both.items():
            source = {"vmRef": {"name": f"on-{name}" if name in FROM else "web"}}
            target = {"name": f"to-{name}", "providerRef": {"name": "far" if name in FROM else name}}
            await cluster.create(MIGRATIONS, migration(name, source=source, target=target, **spec))
        for name, (_, _, said) in both.items():
            status = await in_phase(cluster, "Failed", name)
            assert said in status["message"]
            assert answer(status, "Failed") in (("True", "UnsupportedByProvider"), ("True", "InvalidSpec"))
        assert not any(call in ("snapshot", "export_disk") for call, _ in pair.source.calls)

    play_story(story, pair)


PROBLEMS: list[tuple[Wire, str]] = [
    ({"target": {"namespace": "other"}}, "spec.target.namespace"),
    ({"target": {"name": "web"}}, "spec.target.name"),
    ({"source": {"providerRef": {"name": "far"}}}, "spec.target.providerRef"),
    ({"options": {"validationChecks": {"checkBoot": True}}}, "spec.options.validationChecks.checkBoot"),
    ({"options": {"validationChecks": {"checkConnectivity": True}}}, "spec.options.validationChecks.checkConnectivity"),
    (
        {"options": {"verifyChecksums": False, "validationChecks": {"checkChecksum": True}}},
        "spec.options.validationChecks.checkChecksum",
    ),
    (
        {"storage": {"type": "nfs", "nfs": {"server": "a", "export": "/b", "readOnly": True}}},
        "spec.storage.nfs.readOnly",
    ),
    ({"storage": {"type": "nfs", "nfs": {"server": "a", "export": "/b/../c"}}}, "spec.storage.nfs.export"),
    ({"storage": {"pvc": {"name": "a", "accessMode": "ReadOnlyMany"}}}, "spec.storage.pvc.accessMode"),
    ({"storage": {"type": "s3", "s3": {**S3, "endpoint": "http://169.254.169.254"}}}, "spec.storage.s3.endpoint"),
    (
        {"storage": {"type": "s3", "s3": {**S3, "credentialsSecretRef": {"name": "a", "namespace": "b"}}}},
        "spec.storage.s3.credentialsSecretRef.namespace",
    ),
]


@pytest.mark.parametrize(("spec", "path"), PROBLEMS, ids=[path for _, path in PROBLEMS])
def test_what_no_migration_can_do_is_refused_before_it_is_stored(spec: Wire, path: str) -> None:
    wire = migration(**spec)
    wire = {"apiVersion": MIGRATIONS.api_version, "kind": MIGRATIONS.kind, **wire}
    found = Admission((OPERATOR,)).problems(wire)
    assert [each.path for each in found] == [path]
    assert all(each.hint for each in found)


def test_a_spec_that_was_stored_with_a_problem_says_so_in_its_status() -> None:
    async def story(cluster: Cluster) -> None:
        await begun(cluster, target={"providerRef": {"name": "sim"}})
        status = await in_phase(cluster, "Failed", within=10)
        assert answer(status, "Failed") == ("True", "InvalidSpec")
        assert "spec.target.providerRef" in status["message"]

    play_story(story, Pair())


# --- the source


def test_a_machine_that_is_off_already_is_confirmed_to_be_off() -> None:
    pair = Pair()

    async def story(cluster: Cluster) -> None:
        await prepare(cluster)
        await created(cluster, powerState="Off")
        await cluster.create(MIGRATIONS, migration(source=OFF, target=RUNS))
        status = await in_phase(cluster, "Ready")
        source = await status_of(cluster)
        assert source["heldFor"] == status["sourceHold"]
        # It stays off whatever its spec asks for, until the annotation is removed.
        await cluster.patch(MACHINES, "web", {"spec": {"powerState": "On"}})
        await cluster.patch(MACHINES, "web", {"metadata": {"annotations": {"virtrigaud.io/reboot": "now"}}})
        await cluster.advance(60)
        source = await status_of(cluster)
        assert (source["phase"], source["powerState"]) == ("Stopped", "Off")
        assert (answer(source, "Ready")[0], answer(source, "Drifted")[0]) == ("True", "False")
        await cluster.patch(MACHINES, "moved", {"spec": {"powerState": "Off"}})
        await reaches(cluster, "Stopped", "moved")
        await cluster.patch(MACHINES, "web", {"metadata": {"annotations": {"virtrigaud.io/migration-hold": None}}})
        source = await reaches(cluster, "Running")
        assert "heldFor" not in source

    play_story(story, pair)


def test_a_disk_is_exported_once_and_imported_once() -> None:
    pair = Pair()

    async def story(cluster: Cluster) -> None:
        await begun(cluster)
        await in_phase(cluster, "Ready")
        for hypervisor, call in ((pair.source, "export_disk"), (pair.target, "import_disk")):
            assert [name for name, _ in hypervisor.calls].count(call) == 1

    play_story(story, pair)


def test_a_provider_that_starts_on_demand_starts_for_a_machine_that_is_on_its_way() -> None:
    async def story(cluster: Cluster) -> None:
        lazy = provider("lazy", annotations={"virtrigaud.io/start-on-demand": "true"}, endpoint="https://a.example.com")
        await cluster.create(PROVIDERS, lazy)
        await cluster.settle()
        assert await cluster.find(DEPLOYMENTS, "virtrigaud-provider-default-lazy") is None
        await cluster.create(MIGRATIONS, migration(target={"providerRef": {"name": "lazy"}}))
        await cluster.settle()
        assert await cluster.find(DEPLOYMENTS, "virtrigaud-provider-default-lazy") is not None

    play_story(story, Pair())


def test_a_provider_is_kept_until_the_disk_of_a_migration_is_deleted_through_it() -> None:
    pair = Pair(latencies=SLOW)

    async def story(cluster: Cluster) -> None:
        await begun(cluster, source=OFF, target=RUNS)
        await in_phase(cluster, "Importing")
        await cluster.delete(PROVIDERS, "far")
        await cluster.advance(1)
        assert await cluster.find(PROVIDERS, "far") is not None
        await cluster.delete(MIGRATIONS, "move")
        await gone(cluster, MIGRATIONS, "move")
        await gone(cluster, PROVIDERS, "far")
        assert left(pair) == nothing_but(1, 0)

    play_story(story, pair)


def test_a_machine_of_a_set_that_is_kept_off_is_not_available() -> None:
    pair = Pair(latencies=SLOW)

    async def story(cluster: Cluster) -> None:
        await prepare(cluster)
        labels = {"app": "farm"}
        template = {"metadata": {"labels": labels}, "spec": machine("x")["spec"]}
        spec = {"replicas": 2, "selector": {"matchLabels": labels}, "template": template}
        await cluster.create(SETS, {"metadata": {"name": "farm"}, "spec": spec})
        await cluster.until(lambda: cluster.find(MACHINES, "farm-1"))
        await reaches(cluster, "Running", "farm-1")
        await cluster.create(MIGRATIONS, migration(source={"vmRef": {"name": "farm-1"}, **OFF}, target=RUNS))
        await in_phase(cluster, "Exporting")
        await cluster.advance(1)
        assert (await status_of(cluster, "farm", SETS))["readyReplicas"] == 1
        await in_phase(cluster, "Ready")
        made = await cluster.get(MACHINES, "moved")
        assert "ownerReferences" not in made["metadata"], "the target belongs to no set"
        assert (await cluster.get(MACHINES, "farm-1"))["status"]["powerState"] == "Off"

    play_story(story, pair)


# --- every field


SEED = (
    "phase message targetVMRef snapshotRef snapshotID exportID importID taskRef targetVMID startTime completionTime "
    "progress.currentPhase progress.percentage diskInfo storageInfo storagePVCName retryCount lastRetryTime "
    "validationResults observedGeneration conditions"
)


def test_every_field_phase_and_condition_is_seen() -> None:
    """As the schema has them, and as VirtRigaud promises them."""
    faults = (Fault(call="snapshot", name="frail-*", times=1, code=Code.INTERNAL, when="task"),)
    pair = Pair(latencies=SLOW, faults=faults, world=msgspec.structs.replace(World.of(), no_agent=("mute-moved-*",)))
    found = Seen(status_schema(MIGRATIONS))

    async def story(cluster: Cluster) -> None:
        await prepare(cluster)
        diary = Diary(cluster)
        for name in ("web", "frail", "mute"):
            await created(cluster, name)
            checks = {"checkBoot": True, "checkConnectivity": True}
            options = {"diskFormat": "vmdk", "validationChecks": checks, "retryPolicy": {"retryDelay": "5s"}}
            target = {"name": f"{name}-moved", **RUNS}
            await cluster.create(
                MIGRATIONS, migration(name, source={"vmRef": {"name": name}}, target=target, options=options)
            )
        for name, phase in (("web", "Ready"), ("frail", "Ready"), ("mute", "Validating-Target")):
            await in_phase(cluster, phase, name)
        await cluster.advance(700)
        await in_phase(cluster, "Failed", "mute")
        diary.close()
        for each in diary.versions:
            found.add(each)

    play_story(story, pair)
    assert sorted(set(declared(found.schema)) - found.fields) == []
    assert set(SEED.split()) - found.fields == set()
    assert found.phases == {*PHASES, "Failed"}
    assert {(each, status) for each in CONDITIONS for status in ("True", "False")} - found.conditions == set()
