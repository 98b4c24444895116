"""Real machines: a tiny guest boots, gets its address, is changed, snapshotted, moved, killed around, and deleted."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path

import pytest
from tests.providers.qemu import guest as tiny
from tests.waiting import ended, eventually

from holdfast.providers.contract import (
    Change,
    Code,
    Disk,
    Image,
    Machine,
    ProviderError,
    Task,
    Transfer,
)
from holdfast.providers.qemu import Qemu
from holdfast.providers.qemu.guest import Guest

pytestmark = pytest.mark.skipif(bool(tiny.missing()), reason=tiny.missing())

WEB = Machine(
    name="web",
    cpus=1,
    memory_mib=256,
    image=Image(template="tiny"),
    disks=(Disk(name="root", size_gib=1),),
    user_data=b"#cloud-config of web\n",
    cpu_hot_add=True,
    memory_hot_add=True,
)


@pytest.fixture(scope="session")
def image(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("images")
    tiny.build(folder / "tiny")
    return folder


async def succeeded(qemu: Qemu, task: Task | None) -> dict[str, str]:
    state = await ended(qemu, task)
    assert not state.error, state.error
    return state.result


async def ready(qemu: Qemu, id: str, seconds: float = 120.0) -> tuple[str, ...]:
    """Wait until the guest has its address."""

    async def ips() -> tuple[str, ...]:
        return (await qemu.describe(id)).ips

    return await eventually(ips, within=seconds)


async def becomes(qemu: Qemu, id: str, question: str, answer: object) -> None:
    """Ask the guest until it has seen a change."""

    async def answered() -> bool:
        return bool(await inner(qemu, id).agent(question, 5) == answer)

    await eventually(answered)


def inner(qemu: Qemu, id: str) -> Guest:
    return qemu._guest(id)


def processes(folder: Path) -> list[int]:
    """The QEMU processes with files below a folder."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                line = (entry / "cmdline").read_bytes()
            except OSError:
                continue
            if line.startswith(b"qemu-system") and str(folder).encode() in line:
                found.append(int(entry.name))
    return found


def abandon(qemu: Qemu) -> None:
    """What kill -9 leaves: no task is finished, no file is written, the lock is free."""
    lock, qemu._lock = qemu._lock, -1
    os.close(lock)
    for running in qemu._running.values():
        running.cancel()
    for guest in qemu._guests.values():
        if guest.qmp is not None:
            guest._shut_down = True
            guest.qmp._writer.transport.abort()


def test_the_life_of_a_machine(tmp_path: Path, image: Path) -> None:
    async def story() -> None:
        data, storage = tmp_path / "data", tmp_path / "storage"
        (storage / "pvc" / "claim").mkdir(parents=True)
        qemu = await Qemu.open(data, image_folders=(image,), storage=storage)
        await qemu.validate()
        made = await qemu.create(WEB)
        assert await qemu.create(WEB) == made
        await succeeded(qemu, made.task)
        id = made.id
        assert (await qemu.describe(id)).power == "Off"
        await succeeded(qemu, await qemu.power(id, "On"))
        assert await qemu.power(id, "On") is None

        # It boots and gets its address; cloud-init's disk can be read; the console is on loopback.
        assert await ready(qemu, id) == ("10.0.2.15",)
        there = await qemu.describe(id)
        assert (there.power, there.guest_ready) == ("On", True)
        assert there.console_url.startswith("vnc://127.0.0.1:")
        assert await inner(qemu, id).agent("test-seed") == "#cloud-config of web"

        # A command in the guest.
        await qemu.execute(id, ("/bin/true",))
        with pytest.raises(ProviderError, match=r"/bin/false in machine web ended with status 1"):
            await qemu.execute(id, ("/bin/false",))

        # kill -9 of the provider: the machine runs on and is found again.
        await inner(qemu, id).agent("test-write", value="one")
        before = processes(data)
        abandon(qemu)
        qemu = await Qemu.open(data, image_folders=(image,), storage=storage)
        assert processes(data) == before
        assert (await qemu.describe(id)).ips == ("10.0.2.15",)
        with pytest.raises(ProviderError, match="another provider serves the folder"):
            await Qemu.open(data)

        # A snapshot with memory, quiesced; another without.
        taken = await qemu.snapshot(id, "warm", memory=True, quiesce=True)
        assert await qemu.snapshot(id, "warm", memory=True) == taken
        result = await succeeded(qemu, taken.task)
        assert int(result["size_bytes"]) > 1 << 20
        await inner(qemu, id).agent("test-write", value="two")
        cold = await qemu.snapshot(id, "cold")
        assert (await succeeded(qemu, cold.task))["parent"] == taken.id

        # CPUs, memory and disks are added while it runs; a disk is never shrunk, CPUs are not removed without consent.
        change = Change(cpus=2, memory_mib=384, disks=(Disk(name="root", size_gib=2), Disk(name="data", size_gib=1)))
        await succeeded(qemu, await qemu.reconfigure(id, change))
        there = await qemu.describe(id)
        assert (there.cpus, there.memory_mib) == (2, 384)
        assert [disk.virtual_bytes >> 30 for disk in there.disks] == [2, 1]
        await becomes(qemu, id, "test-cpus", 2)
        await becomes(qemu, id, "test-size", 2 << 21)
        assert await qemu.reconfigure(id, change) is None
        with pytest.raises(ProviderError, match="cannot be shrunk to 1 GiB"):
            await qemu.reconfigure(id, Change(disks=(Disk(name="root", size_gib=1),)))
        with pytest.raises(ProviderError, match="CPUs cannot be removed while it runs") as raised:
            await qemu.reconfigure(id, Change(cpus=1))
        assert raised.value.code is Code.CONFLICT

        # An export of the running machine, and a revert to the memory of before, with the file of before.
        url = "pvc://claim/moves/web.qcow2"
        exported = await qemu.export_disk(Transfer(url=url, machine=id, compress=True))
        checksum = (await succeeded(qemu, exported.task))["checksum"]
        await succeeded(qemu, await qemu.revert(id, taken.id))
        assert await inner(qemu, id).agent("test-memory", 20) == "one"
        assert await inner(qemu, id).agent("test-read") == "one"
        there = await qemu.describe(id)
        assert (there.power, there.cpus, there.memory_mib) == ("On", 1, 256)
        assert [disk.virtual_bytes >> 30 for disk in there.disks] == [1]

        # It shuts down when it is asked to.
        await succeeded(qemu, await qemu.power(id, "ShutdownGraceful", 60))
        there = await qemu.describe(id)
        assert (there.power, there.raw.get("crashed"), there.ips) == ("Off", None, ())
        assert processes(data) == []
        assert "reboot: Power down" in (inner(qemu, id).folder / "serial.log").read_text()

        # The disk goes to another provider, where the file is that of the export.
        other = await Qemu.open(tmp_path / "other", image_folders=(image,), storage=storage)
        wrong = Transfer(url=url, target_name="moved", verify_checksum=True, expected_checksum="0" * 64)
        state = await ended(other, (await other.import_disk(wrong)).task)
        assert state.code is Code.INVALID
        right = Transfer(url=url, target_name="moved", verify_checksum=True, expected_checksum=checksum)
        imported = await other.import_disk(right)
        await succeeded(other, imported.task)
        moved = await other.create(Machine(name="moved", memory_mib=256, imported_disk=imported.id))
        await succeeded(other, moved.task)
        inner(other, moved.id).record.kernel = str(image / "tiny")
        await succeeded(other, await other.power(moved.id, "On"))
        await ready(other, moved.id)
        assert await inner(other, moved.id).agent("test-read") == "two"

        # Nothing is left: no process, no file.
        await qemu.delete_export(Transfer(url=url))
        for provider, machine in ((qemu, id), (other, moved.id)):
            await succeeded(provider, await provider.delete(machine))
            assert await provider.delete(machine) is None
            assert not (await provider.describe(machine)).exists
            await provider.close()
        assert processes(tmp_path) == []
        left = {path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*") if path.is_file()}
        assert left == {f"{folder}/{name}" for folder in ("data", "other") for name in ("books.json", "lock")}

    try:
        asyncio.run(story())
    finally:
        for number in processes(tmp_path):
            os.kill(number, signal.SIGKILL)
