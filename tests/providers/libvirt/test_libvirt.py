"""The libvirt provider against libvirt's own test driver, where the binding is installed."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from tests.waiting import ended

from holdfast.providers.contract import (
    Change,
    Code,
    Disk,
    Hypervisor,
    Image,
    Machine,
    Nic,
    ProviderError,
    Transfer,
)

pytest.importorskip("libvirt")

import libvirt

from holdfast.providers.libvirt import xml
from holdfast.providers.libvirt.hypervisor import Libvirt

WEB = Machine(
    name="web",
    cpus=2,
    memory_mib=512,
    cpu_hot_add=True,
    memory_hot_add=True,
    disks=(Disk(name="root", size_gib=1), Disk(name="data", size_gib=2)),
    # The operator gives every machine its name.
    meta_data=b"local-hostname: web",
)


def played(story: Callable[[Hypervisor], Awaitable[None]]) -> None:
    async def whole() -> None:
        provider = Libvirt("test:///default")
        try:
            await story(provider)
        finally:
            await provider.close()

    asyncio.run(whole())


def test_the_life_of_a_domain() -> None:
    async def story(provider: Hypervisor) -> None:
        await provider.validate()
        before = await provider.machines()
        assert [one.name for one in before] == ["test"]
        made = await provider.create(WEB)
        assert await provider.create(WEB) == made
        there = await provider.describe(made.id)
        assert (there.power, there.cpus, there.memory_mib) == ("Off", 2, 512)
        assert [disk.virtual_bytes >> 30 for disk in there.disks] == [1, 2]
        assert await provider.power(made.id, "On") is None
        there = await provider.describe(made.id)
        assert there.power == "On"
        assert there.ips
        taken = await provider.snapshot(made.id, "one", memory=True)
        assert not (await ended(provider, taken.task)).error
        assert (await provider.snapshot(made.id, "one")).task is None
        assert (await provider.disk(made.id, "data")).snapshots == ("one",)
        assert not (await ended(provider, await provider.revert(made.id, "one"))).error
        assert not (await ended(provider, await provider.delete_snapshot(made.id, "one"))).error
        assert not (await ended(provider, await provider.power(made.id, "ShutdownGraceful", 5))).error
        assert (await provider.describe(made.id)).power == "Off"
        assert await provider.delete(made.id) is None
        assert await provider.delete(made.id) is None
        assert not (await provider.describe(made.id)).exists
        assert [one.name for one in await provider.machines()] == ["test"]
        with pytest.raises(ProviderError) as raised:
            await provider.power(made.id, "On")
        assert raised.value.code is Code.NOT_FOUND

    played(story)


def test_clones_share_or_copy_the_volumes_of_their_source() -> None:
    async def story(provider: Hypervisor) -> None:
        made = await provider.create(WEB)
        full = await provider.clone(made.id, Machine(name="full", memory_mib=512))
        linked = await provider.clone(made.id, Machine(name="linked", memory_mib=512), linked=True)
        assert (await provider.disk(full.id)).path.endswith("full-root.qcow2")
        assert (await provider.disk(linked.id)).backing_file.endswith("web-root.qcow2")
        assert (await provider.clone(made.id, Machine(name="full"))).id == full.id
        with pytest.raises(ProviderError, match="is no clone of web"):
            await provider.clone(made.id, Machine(name="test"))
        from_image = await provider.create(Machine(name="child", image=Image(template="web-root")))
        assert (await provider.disk(from_image.id)).backing_file.endswith("web-root.qcow2")
        prepared = await provider.prepare_image(Image(template="web-root"), "image")
        assert prepared.path.endswith("web-root.qcow2")

    played(story)


@pytest.mark.parametrize(
    "image",
    [
        Image(template="web-root"),
        Image(path="web-root"),
        Image(path="web-root.qcow2"),
        Image(path="/default-pool/web-root.qcow2"),
        Image(template="elsewhere", path="/default-pool/web-root.qcow2"),
    ],
)
def test_an_image_is_a_volume_by_its_name_or_its_path(image: Image) -> None:
    async def story(provider: Hypervisor) -> None:
        await provider.create(WEB)
        assert (await provider.prepare_image(image, "image")).path == "/default-pool/web-root.qcow2"

    played(story)


@pytest.mark.parametrize("image", [Image(template="none"), Image(path="none"), Image(path="/default-pool/none")])
def test_an_image_without_a_volume_is_not_found(image: Image) -> None:
    async def story(provider: Hypervisor) -> None:
        with pytest.raises(ProviderError, match=r"there is no volume .*none") as raised:
            await provider.prepare_image(image, "image")
        assert raised.value.code is Code.NOT_FOUND

    played(story)


def test_what_it_cannot_do_is_said_and_not_offered() -> None:
    async def story(provider: Hypervisor) -> None:
        can = await provider.capabilities()
        assert (can.disk_export, can.disk_import, can.instant_clones, can.quiesce, can.image_import) == (False,) * 5
        for refused in (
            provider.export_disk(Transfer(url="pvc://a/b")),
            provider.import_disk(Transfer(url="pvc://a/b")),
            provider.prepare_image(Image(url="https://example.com/a"), "a"),
            provider.create(Machine(name="a", tpm=True)),
            provider.create(Machine(name="a", user_data=b"#cloud-config")),
        ):
            with pytest.raises(ProviderError) as raised:
                await refused
            assert raised.value.code is Code.UNSUPPORTED

    played(story)


def test_an_inventory_has_the_host_and_its_pools() -> None:
    async def story(provider: Hypervisor) -> None:
        inventory = await provider.inventory()
        (host,) = inventory.hosts
        assert host.cpus == 16
        assert host.cpus_used == 2
        assert [store.name for store in inventory.datastores] == ["default-pool"]

    played(story)


def test_a_host_that_cannot_be_reached_is_an_error_with_a_code() -> None:
    async def story() -> None:
        provider = Libvirt("qemu+unix:///system?socket=/nowhere")
        with pytest.raises(ProviderError) as raised:
            await provider.validate()
        assert raised.value.code in (Code.RETRYABLE, Code.INTERNAL)
        await provider.close()

    asyncio.run(story())


def test_a_reconfiguration_is_online_where_possible_and_else_needs_consent() -> None:
    async def story(provider: Hypervisor) -> None:
        made = await provider.create(WEB)
        await provider.reconfigure(made.id, Change(cpus=4))
        assert (await provider.describe(made.id)).cpus == 4
        await provider.power(made.id, "On")
        with pytest.raises(ProviderError, match="must be off to be changed"):
            await provider.reconfigure(made.id, Change(cpus=1))
        with pytest.raises(ProviderError, match="cannot be shrunk"):
            await provider.reconfigure(made.id, Change(disks=(Disk(name="data", size_gib=1),)))

    played(story)


def test_calls_at_once_share_one_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    opened = []
    open_connection = libvirt.open

    def counted(uri: str) -> Any:
        opened.append(uri)
        return open_connection(uri)

    async def story(provider: Hypervisor) -> None:
        await asyncio.gather(*(provider.machines() for _ in range(8)))
        assert opened == ["test:///default"]

    monkeypatch.setattr(libvirt, "open", counted)
    played(story)


def test_tasks_that_are_done_are_forgotten_after_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    async def story(provider: Hypervisor) -> None:
        (machine,) = await provider.machines()
        tasks = []
        for _ in range(5):
            tasks.append(await provider.delete_snapshot(machine.id, "none"))
            await ended(provider, tasks[-1])
        states = [await provider.task(each) for each in tasks if each is not None]
        assert [each.lost for each in states] == [True, True, False, False, False]

    monkeypatch.setattr("holdfast.providers.libvirt.tasks.TASKS_KEPT", 2)
    played(story)


def test_the_xml_of_a_domain_escapes_what_users_write() -> None:
    written = xml.domain(
        Machine(name="a<b>&", nics=(Nic(name="n", bridge="br'0", vlan=7),), firmware="UEFI"), "kvm", [("/p", "raw")]
    )
    read = xml.read_domain(written)
    assert (read.cpus, read.memory_mib) == (1, 512)
    assert read.disks == (xml.DomainDisk(path="/p", target="vda", format="raw"),)
    assert 'firmware="efi"' in written


def test_the_xml_of_a_disk_escapes_its_path() -> None:
    device = xml.disk("/pool/it's <a> & b", "vdb")
    whole = f"<domain><devices>{device}</devices></domain>"
    assert xml.read_domain(whole).disks == (xml.DomainDisk(path="/pool/it's <a> & b", target="vdb", format="qcow2"),)
