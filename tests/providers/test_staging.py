"""The storage that disks pass through: folders for claims and NFS, and a local S3 server."""

from __future__ import annotations

import asyncio
from pathlib import Path

import msgspec
import pytest
from tests.providers import s3_server

from holdfast.providers.contract import Capabilities, Code, Image, Machine, ProviderError, Transfer
from holdfast.providers.simulated import INSTANT, Simulated
from holdfast.providers.staging import HostPolicy, Staging

CREDENTIALS = {"accessKeyID": s3_server.ACCESS, "secretAccessKey": s3_server.SECRET}


def in_s3(server: s3_server.S3, key: str = "a b/disk.qcow2") -> Transfer:
    options = msgspec.json.encode({"Endpoint": server.endpoint, "Region": "eu-1", "UsePathStyle": True}).decode()
    return Transfer(url=f"s3://bucket/{key}", credentials=CREDENTIALS, options_json=options)


@pytest.mark.parametrize("url", ["pvc://claim/moves/web/disk.qcow2", "nfs://server/export/disk.qcow2"])
def test_a_file_is_stored_fetched_and_removed_with_the_folders_that_it_leaves_empty(tmp_path: Path, url: str) -> None:
    async def story() -> None:
        staging = Staging(tmp_path / "storage")
        with pytest.raises(ProviderError, match="is not mounted here"):
            await staging.put(Transfer(url=url), tmp_path / "source")
        (tmp_path / "storage" / url.partition(":")[0] / url.split("/")[2]).mkdir(parents=True)
        (tmp_path / "source").write_bytes(b"disk" * 1000)
        transfer, seen = Transfer(url=url), list[int]()
        await staging.put(transfer, tmp_path / "source", seen.append)
        await staging.get(transfer, tmp_path / "target", seen.append)
        assert (tmp_path / "target").read_bytes() == b"disk" * 1000
        assert seen == [4000, 4000]
        await staging.remove(transfer)
        await staging.remove(transfer)
        assert not [path for path in (tmp_path / "storage").rglob("*") if path.is_file()]
        assert not (tmp_path / "storage" / "pvc" / "claim" / "moves").exists()
        with pytest.raises(ProviderError) as raised:
            await staging.get(transfer, tmp_path / "target")
        assert raised.value.code is Code.NOT_FOUND

    asyncio.run(story())


@pytest.mark.parametrize(
    ("url", "code"),
    [
        ("pvc://claim/../../etc/passwd", Code.INVALID),
        ("pvc://../x", Code.INVALID),
        ("pvc://claim", Code.INVALID),
        ("file:///etc/passwd", Code.INVALID),
        ("s3://bucket", Code.INVALID),
    ],
)
def test_urls_that_lead_elsewhere_are_refused(tmp_path: Path, url: str, code: Code) -> None:
    with pytest.raises(ProviderError) as raised:
        asyncio.run(Staging(tmp_path).get(Transfer(url=url), tmp_path / "x"))
    assert raised.value.code is code


def test_hosts_that_a_provider_may_not_connect_to_are_refused() -> None:
    for policy, url, allowed in (
        (HostPolicy(), "http://169.254.169.254/latest", False),
        (HostPolicy(), "http://[fe80::1]/", False),
        (HostPolicy(), "http://0.0.0.0/", False),
        (HostPolicy(), "https://images.example/", True),
        (HostPolicy(("*.example",)), "https://images.example/", True),
        (HostPolicy(("*.example",)), "https://images.example.com/", False),
    ):
        if allowed:
            policy.check(url)
        else:
            with pytest.raises(ProviderError) as raised:
                policy.check(url)
            assert raised.value.code is Code.INVALID


def test_a_claim_has_a_folder_of_its_own_where_it_is_mounted_elsewhere(tmp_path: Path) -> None:
    staging = Staging(claims={"stage": tmp_path / "mounted", "absent": tmp_path / "absent"})
    (tmp_path / "mounted").mkdir()
    assert staging.backends == ("pvc", "s3")
    assert staging.path(Transfer(url="pvc://stage/a/disk")) == tmp_path / "mounted/a/disk"
    for claim in ("absent", "unknown"):
        with pytest.raises(ProviderError, match=f"claim {claim} is not mounted here") as raised:
            staging.path(Transfer(url=f"pvc://{claim}/disk"))
        assert raised.value.code is Code.NOT_FOUND


@pytest.mark.parametrize(
    ("url", "left"),
    [("pvc://claim/moves/web/disk", "pvc/claim"), ("nfs://server/export/stage/disk", "nfs/server/export/stage")],
)
def test_folders_of_a_claim_that_are_left_empty_are_removed_and_those_of_an_export_stay(
    tmp_path: Path, url: str, left: str
) -> None:
    (tmp_path / left).mkdir(parents=True)
    staging, transfer = Staging(tmp_path), Transfer(url=url)
    (tmp_path / "source").write_bytes(b"disk")
    asyncio.run(staging.put(transfer, tmp_path / "source"))
    asyncio.run(staging.remove(transfer))
    assert list((tmp_path / left).iterdir()) == []


def test_a_provider_can_use_nfs_if_it_has_a_folder_for_it(tmp_path: Path) -> None:
    with_claim = Staging(claims={"claim": tmp_path}).able(Capabilities())
    assert (with_claim.export_backends, with_claim.transfer_modes) == (("pvc", "s3"), ("relay",))
    with_folder = Staging(tmp_path).able(Capabilities(export_backends=("pvc",)))
    assert with_folder.export_backends == with_folder.import_backends == ("pvc", "nfs", "s3")
    assert with_folder.transfer_modes == ("relay", "direct")


def test_without_a_folder_there_is_only_s3() -> None:
    assert Staging().backends == ("s3",)
    with pytest.raises(ProviderError) as raised:
        Staging().path(Transfer(url="pvc://claim/x"))
    assert raised.value.code is Code.UNSUPPORTED


def test_an_upload_in_parts_goes_on_where_it_was_interrupted(tmp_path: Path) -> None:
    async def story() -> None:
        async with s3_server.serving() as server:
            staging, transfer = Staging(part_size=1000), in_s3(server)
            (tmp_path / "source").write_bytes(bytes(range(250)) * 20)
            server.fail_parts_after = 3
            with pytest.raises(ProviderError, match="Interrupted"):
                await staging.put(transfer, tmp_path / "source")
            server.fail_parts_after = None
            server.requests.clear()
            seen: list[int] = []
            await staging.put(transfer, tmp_path / "source", seen.append)
            assert len([path for method, path in server.requests if method == "PUT"]) == 2
            assert seen == [1000, 2000, 3000, 4000, 5000]
            assert server.objects["a b/disk.qcow2"] == bytes(range(250)) * 20

            # A download goes on after what there is.
            (tmp_path / "target").write_bytes((bytes(range(250)) * 20)[:2500])
            server.requests.clear()
            server.fail = 1
            await staging.get(transfer, tmp_path / "target")
            assert (tmp_path / "target").read_bytes() == bytes(range(250)) * 20
            assert len([path for method, path in server.requests if method == "GET"]) == 3

            server.fail_parts_after = 0
            with pytest.raises(ProviderError):
                await staging.put(in_s3(server, "other"), tmp_path / "source")
            assert server.uploads
            await staging.remove(in_s3(server, "other"))
            await staging.remove(transfer)
            assert not server.uploads
            assert not server.objects

    asyncio.run(story())


def test_wrong_keys_are_unauthorized_and_no_message_has_them(tmp_path: Path) -> None:
    async def story() -> None:
        async with s3_server.serving() as server:
            wrong = msgspec.structs.replace(in_s3(server), credentials={**CREDENTIALS, "secretAccessKey": "wrong-one"})
            with pytest.raises(ProviderError, match=r"refuses a b/disk\.qcow2") as raised:
                await Staging().get(wrong, tmp_path / "target")
            assert raised.value.code is Code.UNAUTHORIZED
            assert "wrong-one" not in str(raised.value)

    asyncio.run(story())


def test_a_simulated_disk_is_a_real_object_in_s3(tmp_path: Path) -> None:
    async def story() -> None:
        async with s3_server.serving() as server:
            source, target = (Simulated(latencies=INSTANT, store=Staging()) for _ in range(2))
            made = await source.create(Machine(name="web", image=Image(template="debian")))
            source.write_file(made.id, "/data", "kept")
            transfer = in_s3(server)
            exported = await source.export_disk(msgspec.structs.replace(transfer, machine=made.id))
            imported = await target.import_disk(
                msgspec.structs.replace(
                    transfer, target_name="moved", verify_checksum=True, expected_checksum=exported.checksum
                )
            )
            moved = await target.create(Machine(name="moved", imported_disk=imported.id))
            assert target.read_file(moved.id, "/data") == "kept"
            await target.delete_export(transfer)
            assert not server.objects

    asyncio.run(story())
