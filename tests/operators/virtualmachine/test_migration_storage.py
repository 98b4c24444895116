"""The storage of migrations: the claims and NFS exports that the processes of providers mount."""

from __future__ import annotations

from tests.operators.virtualmachine.migration_stories import NFS, OFF, RUNS, Pair, in_phase, migration, prepare
from tests.operators.virtualmachine.stories import (
    KINDS,
    MIGRATIONS,
    PROVIDERS,
    Wire,
    answer,
    created,
    is_ready,
    no_guest,
    play_story,
    provider,
    status_of,
)

from holdfast.client.resources import CLAIMS, DEPLOYMENTS, PODS
from holdfast.cluster.controllers.gc.collector import GarbageCollector
from holdfast.operators.virtualmachine.controller import controllers
from holdfast.operators.virtualmachine.settings import Settings
from holdfast.testing.clusters import Cluster, play


def claim(name: str) -> Wire:
    spec = {"accessModes": ["ReadWriteMany"], "resources": {"requests": {"storage": "1Gi"}}}
    labels = {"virtrigaud.io/component": "migration-storage"}
    return {"metadata": {"name": name, "labels": labels}, "spec": spec}


async def process(cluster: Cluster, name: str, *claims: str, nfs: tuple[str, ...] = ()) -> None:
    """A pod of the process of a Provider, as a node reports it, with the claims and NFS servers that it has mounted."""
    labels = {"app.kubernetes.io/name": "virtrigaud-provider", "app.kubernetes.io/instance": name}
    volumes = [{"name": f"storage-{n}", "persistentVolumeClaim": {"claimName": each}} for n, each in enumerate(claims)]
    volumes += [{"name": f"nfs-{n}", "nfs": {"server": each, "path": "/srv/vms"}} for n, each in enumerate(nfs)]
    if await cluster.find(PODS, name) is not None:
        await cluster.delete(PODS, name, grace_seconds=0)
    spec = {"containers": [{"name": "c", "image": "i"}], "volumes": volumes}
    await cluster.create(PODS, {"metadata": {"name": name, "labels": labels}, "spec": spec})
    status = {"phase": "Running", "podIP": name, "conditions": [{"type": "Ready", "status": "True"}]}
    await cluster.patch(PODS, name, {"status": status}, subresource="status")
    await cluster.until(lambda: is_ready(cluster, PROVIDERS, name))


async def prepare_processes(cluster: Cluster, *claims: str, nfs: tuple[str, ...] = ()) -> None:
    """Two providers that run as processes, with what these have mounted, and a machine."""
    await prepare(cluster)
    for name in ("sim", "far"):
        await cluster.patch(PROVIDERS, name, {"spec": {"endpoint": "https://vcenter.example.com/sdk"}})
        await process(cluster, name, *claims, nfs=nfs)
    await created(cluster)


async def mounts(cluster: Cluster, name: str) -> list[str]:
    deployment = await cluster.get(DEPLOYMENTS, f"virtrigaud-provider-default-{name}")
    container = deployment["spec"]["template"]["spec"]["containers"][0]
    return [each["mountPath"] for each in container["volumeMounts"] if "migration-storage" in each["mountPath"]]


def test_processes_mount_the_claim_before_anything_is_exported() -> None:
    pair = Pair()

    async def story(cluster: Cluster) -> None:
        await prepare_processes(cluster)
        await cluster.create(MIGRATIONS, migration(source=OFF, target=RUNS))
        status = await in_phase(cluster, "Validating")
        await cluster.advance(5)
        status = await status_of(cluster, "move", MIGRATIONS)
        assert answer(status, "Validating") == ("True", "WaitingForStorageMount")
        assert "provider sim and provider far must mount the claim move-storage" in status["message"]
        assert await mounts(cluster, "sim") == ["/mnt/migration-storage/move-storage"]
        await process(cluster, "sim", "move-storage")
        await cluster.advance(5)
        status = await status_of(cluster, "move", MIGRATIONS)
        assert "provider far must mount" in status["message"]
        assert (await status_of(cluster))["powerState"] == "On", "it is not stopped before the way is free"
        await process(cluster, "far", "move-storage")
        await in_phase(cluster, "Ready")
        await cluster.advance(10)
        assert await mounts(cluster, "sim") == []

        # A claim that both have mounted is used, and one that is never mounted is not waited for without end.
        for name in ("sim", "far"):
            await process(cluster, name, "shared")
        await created(cluster, "other")
        await cluster.create(MIGRATIONS, migration("second", source={"vmRef": {"name": "other"}}, target={"name": "x"}))
        assert (await in_phase(cluster, "Ready", "second"))["storagePVCName"] == "shared"
        named = {"source": {"vmRef": {"name": "other"}}, "storage": {"pvc": {"name": "absent"}}}
        await cluster.create(MIGRATIONS, migration("third", target={"name": "y"}, **named))
        await cluster.advance(330)
        status = await in_phase(cluster, "Failed", "third")
        assert answer(status, "Failed") == ("True", "StorageNotMounted")
        assert "claim absent, which does not exist in namespace default" in status["message"]

    play_story(story, pair)


def test_an_nfs_server_is_waited_for_while_processes_have_mounted_another_one() -> None:
    async def story(cluster: Cluster) -> None:
        await prepare_processes(cluster, nfs=("other.example.com",))
        assert (await status_of(cluster, "sim", PROVIDERS))["mountedExports"] == ["other.example.com:/srv/vms"]
        await cluster.create(MIGRATIONS, migration(source=OFF, target=RUNS, storage=NFS))
        await in_phase(cluster, "Validating")
        await cluster.advance(5)
        status = await status_of(cluster, "move", MIGRATIONS)
        assert answer(status, "Validating") == ("True", "WaitingForStorageMount")
        must = "must mount the NFS export files.example.com:/srv/vms"
        assert f"provider sim and provider far {must}" in status["message"]
        await process(cluster, "sim", nfs=("files.example.com", "other.example.com"))
        await cluster.advance(5)
        assert f"provider far {must}" in (await status_of(cluster, "move", MIGRATIONS))["message"]
        assert (await status_of(cluster))["powerState"] == "On", "it is not stopped before the way is free"
        await process(cluster, "far", nfs=("files.example.com",))
        await in_phase(cluster, "Ready")

    play_story(story, Pair())


def test_whether_providers_use_nfs_directly_is_asked_when_they_have_mounted_it() -> None:
    relay = {"transfer_modes": ("relay",)}
    pair = Pair(abilities={"sim:9443": relay, "far:9443": relay})

    async def story(cluster: Cluster) -> None:
        await prepare_processes(cluster)
        direct = {**NFS, "transferMode": "direct"}
        await cluster.create(MIGRATIONS, migration(source=OFF, target=RUNS, storage=direct))
        await cluster.advance(5)
        status = await status_of(cluster, "move", MIGRATIONS)
        assert answer(status, "Validating") == ("True", "WaitingForStorageMount")
        for name in ("sim", "far"):
            await process(cluster, name, nfs=("files.example.com",))
        status = await in_phase(cluster, "Failed")
        assert "spec.storage.transferMode: direct needs both providers, sim and far" in status["message"]

    play_story(story, pair)


def test_an_nfs_server_that_is_never_mounted_fails_the_migration() -> None:
    async def story(cluster: Cluster) -> None:
        await prepare_processes(cluster)
        await cluster.create(MIGRATIONS, migration(source=OFF, target=RUNS, storage=NFS))
        await cluster.advance(330)
        status = await in_phase(cluster, "Failed")
        assert answer(status, "Failed") == ("True", "StorageNotMounted")
        assert "did not mount the NFS export files.example.com:/srv/vms within 5m" in status["message"]

    play_story(story, Pair())


def test_a_process_of_the_node_without_a_folder_for_nfs_is_refused_at_once() -> None:
    settings = Settings(processes=True, command=("holdfast",), local=frozenset({"simulated"}))
    lacking = {"export_backends": ("pvc", "s3"), "import_backends": ("pvc", "s3")}
    pair = Pair(abilities={"sim:9443": lacking, "far:9443": lacking})

    async def story(cluster: Cluster) -> None:
        await prepare_processes(cluster, "virtrigaud-migration-storage")
        await cluster.create(MIGRATIONS, migration(source=OFF, target=RUNS, storage=NFS))
        status = await in_phase(cluster, "Failed", within=30)
        assert "spec.storage.type: provider sim has pvc, s3, and not nfs" in status["message"]
        assert "mountedExports" not in await status_of(cluster, "sim", PROVIDERS)

    play(story, controllers=controllers(settings, connect=pair, fetch=no_guest), kinds=KINDS)


def test_claims_and_nfs_servers_are_mounted_as_long_as_they_are_used() -> None:
    async def story(cluster: Cluster) -> None:
        await cluster.create(PROVIDERS, provider("sim", endpoint="https://vcenter.example.com/sdk"))
        await cluster.create(CLAIMS, claim("stage"))
        await cluster.create(MIGRATIONS, migration(target={"providerRef": {"name": "sim"}}, storage=NFS))
        await cluster.settle()
        assert await mounts(cluster, "sim") == [
            "/mnt/migration-storage/stage", "/mnt/migration-storage/nfs/files.example.com/srv/vms",
        ]  # fmt: skip
        await cluster.delete(CLAIMS, "stage")
        await cluster.delete(MIGRATIONS, "move")
        await cluster.advance(1)
        assert await mounts(cluster, "sim") == []

    play_story(story, Pair())


def test_providers_that_run_as_processes_share_a_claim_that_goes_with_the_last_of_them() -> None:
    settings = Settings(processes=True, command=("holdfast",), local=frozenset({"simulated"}))

    async def story(cluster: Cluster) -> None:
        for name in ("sim", "far"):
            await cluster.create(PROVIDERS, provider(name, endpoint="https://vcenter.example.com/sdk"))
        await cluster.advance(5)
        deployment = await cluster.get(DEPLOYMENTS, "virtrigaud-provider-default-sim")
        command = deployment["spec"]["template"]["spec"]["containers"][0]["command"]
        shared = "virtrigaud-migration-storage"
        assert command[command.index("--claim") + 1] == f"{shared}=/mnt/migration-storage/{shared}"
        owners = (await cluster.get(CLAIMS, shared))["metadata"]["ownerReferences"]
        assert sorted(each["name"] for each in owners) == ["far", "sim"]
        await cluster.create(CLAIMS, claim("later"))
        await cluster.settle()
        assert await mounts(cluster, "sim") == [f"/mnt/migration-storage/{shared}"], "machines would end with a restart"
        for name in ("sim", "far"):
            await cluster.delete(PROVIDERS, name)
        await cluster.advance(30)
        assert await cluster.find(CLAIMS, shared) is None

    found = controllers(settings, connect=Pair(), fetch=no_guest)
    play(story, controllers=found, components=(GarbageCollector(),), kinds=KINDS)


def test_a_claim_is_not_shared_between_namespaces() -> None:
    async def story(cluster: Cluster) -> None:
        await prepare(cluster)
        await created(cluster)
        await cluster.create(PROVIDERS, {**provider("off"), "metadata": {"name": "off", "namespace": "kube-public"}})
        await cluster.advance(5)
        reference = {"name": "off", "namespace": "kube-public"}
        await cluster.create(MIGRATIONS, migration(target={"providerRef": reference}))
        status = await in_phase(cluster, "Failed")
        assert "the providers are in the namespaces default and kube-public" in status["message"]

    play_story(story, Pair())
