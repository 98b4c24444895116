"""A provider that is killed after any of its writes: the next one finishes what was begun, and nothing is left over."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest
from tests.providers.qemu import guest as tiny
from tests.providers.qemu.test_machines import abandon, inner, processes, succeeded
from tests.waiting import ended, eventually

from holdfast.providers.contract import (
    Change,
    Code,
    Disk,
    Image,
    Machine,
    ProviderError,
    Stage,
    Task,
    TaskState,
    Transfer,
)
from holdfast.providers.qemu import Qemu, launch, records, tasks
from holdfast.providers.qemu import guest as guests

pytestmark = pytest.mark.skipif(tiny.no_qemu() != "", reason=tiny.no_qemu())

EVERY = 1 if os.environ.get("HOLDFAST_EVERY_WRITE") else 5
"""After which writes the provider is killed: every fifth, or every one."""

WEB = Machine(name="web", memory_mib=64, image=Image(template="small"), disks=(Disk(name="data", size_gib=1),))


class Killed(BaseException):
    """The provider is no more."""


class Killer:
    """Ends the provider after a number of writes."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.writes = 0
        self.after: int | None = None
        self.dead = False
        for module in (tasks, guests):
            monkeypatch.setattr(module, "save", self.save)

    def save(self, path: Path, value: msgspec.Struct) -> None:
        if self.dead:
            raise Killed
        records.save(path, value)
        self.writes += 1
        if self.after is not None and self.writes >= self.after:
            self.dead = True
            raise Killed


@pytest.fixture(scope="module")
def images(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("small")
    subprocess.run(["qemu-img", "create", "-q", "-f", "qcow2", folder / "small.qcow2", "4M"], check=True)
    return folder


@pytest.fixture(autouse=True)
def no_process_is_left(tmp_path: Path) -> Iterator[None]:
    yield
    left = processes(tmp_path)
    for number in left:
        os.kill(number, signal.SIGKILL)
    assert left == []


async def opened(tmp_path: Path, images: Path) -> Qemu:
    (tmp_path / "storage" / "nfs" / "server").mkdir(parents=True, exist_ok=True)
    return await Qemu.open(
        tmp_path / "data", image_folders=(images,), storage=tmp_path / "storage", acceleration=launch.TCG
    )


async def story(qemu: Qemu, killer: Killer) -> None:
    """Everything that can be done to machines that are off; every step may be repeated."""

    async def done(task: Task | None) -> None:
        async def state() -> TaskState | None:
            if killer.dead:
                raise Killed
            found = await qemu.task(task) if task is not None else TaskState(done=True)
            return found if found.done else None

        found = await eventually(state)
        assert not found.error or found.lost, found.error

    url = "nfs://server/export/web.raw"
    web = await qemu.create(WEB)
    await done(web.task)
    taken = await qemu.snapshot(web.id, "before")
    await done(taken.task)
    await done(await qemu.reconfigure(web.id, Change(cpus=2, memory_mib=96, disks=(Disk(name="data", size_gib=2),))))
    copy = await qemu.clone(web.id, Machine(name="copy", memory_mib=64), linked=True, snapshot=taken.id)
    await done(copy.task)
    exported = await qemu.export_disk(Transfer(url=url, machine=copy.id, format="raw"))
    await done(exported.task)
    imported = await qemu.import_disk(Transfer(url=url, format="raw", target_name="moved"))
    await done(imported.task)
    moved = await qemu.create(Machine(name="moved", memory_mib=64, imported_disk=imported.id))
    await done(moved.task)
    assert len((await qemu.describe(web.id)).disks) == 2
    assert (await qemu.disk(copy.id)).backing_file.startswith("image-")
    assert (await qemu.disk(moved.id)).backing_file == ""
    assert await qemu.reconfigure(web.id, Change(cpus=2, memory_mib=96)) is None
    assert [one.name for one in await qemu.machines()].count("web") == 1
    assert (await qemu.disk(web.id, "data")).snapshots == (taken.id,)


async def emptied(qemu: Qemu) -> None:
    for listed in await qemu.machines():
        await succeeded(qemu, await qemu.delete(listed.id))
    await qemu.delete_export(Transfer(url="nfs://server/export/web.raw"))


def files(tmp_path: Path) -> set[str]:
    return {path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*") if path.is_file()}


def test_a_provider_that_is_killed_after_any_write_ends_where_an_undisturbed_one_does(
    tmp_path: Path, images: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    killer = Killer(monkeypatch)

    async def undisturbed() -> int:
        qemu = await opened(tmp_path / "0", images)
        await story(qemu, killer)
        writes = killer.writes
        await emptied(qemu)
        await qemu.close()
        return writes

    async def disturbed(folder: Path, after: int) -> None:
        asyncio.get_running_loop().set_exception_handler(lambda loop, context: None)
        killer.writes, killer.after, killer.dead = 0, after, False
        qemu = await opened(folder, images)
        with pytest.raises(Killed):
            await story(qemu, killer)
        abandon(qemu)
        await asyncio.wait([asyncio.ensure_future(asyncio.sleep(0)), *qemu._running.values()])
        killer.after, killer.dead = None, False
        qemu = await opened(folder, images)
        await story(qemu, killer)
        await emptied(qemu)
        await qemu.close()
        qemu = await opened(folder, images)
        assert await qemu.machines() == ()
        await qemu.close()

    writes = asyncio.run(undisturbed())
    expected = files(tmp_path / "0")
    assert expected == {"data/books.json", "data/lock", "data/images/image-1.qcow2"}
    assert writes > 20
    for after in range(1, writes + 1, EVERY):
        folder = tmp_path / str(after)
        asyncio.run(disturbed(folder, after))
        left = files(folder)
        assert {name for name in left if not name.startswith("data/images/")} == {"data/books.json", "data/lock"}, after
        assert len(left) == 3, (after, left)


def test_a_guest_that_does_not_listen_is_ended_after_the_timeout_and_a_killed_one_is_seen(
    tmp_path: Path, images: Path
) -> None:
    async def body() -> None:
        qemu = await opened(tmp_path, images)
        made = await qemu.create(WEB)
        await succeeded(qemu, made.task)
        await succeeded(qemu, await qemu.power(made.id, "On"))
        with pytest.raises(ProviderError, match="guest agent of machine web does not answer") as raised:
            await qemu.snapshot(made.id, "quiet", quiesce=True)
        assert raised.value.code is Code.CONFLICT

        (number,) = processes(tmp_path)
        os.kill(number, signal.SIGKILL)

        async def off() -> dict[str, str] | None:
            there = await qemu.describe(made.id)
            return None if there.power == "On" else there.raw

        assert (await eventually(off))["crashed"] == "QEMU ended unexpectedly"

        await succeeded(qemu, await qemu.power(made.id, "On"))
        assert "crashed" not in (await qemu.describe(made.id)).raw
        began = asyncio.get_running_loop().time()
        await succeeded(qemu, await qemu.power(made.id, "ShutdownGraceful", 1))
        assert asyncio.get_running_loop().time() - began >= 1
        assert (await qemu.describe(made.id)).power == "Off"

        # A machine that runs is deleted with its process.
        await succeeded(qemu, await qemu.power(made.id, "On"))
        await succeeded(qemu, await qemu.delete(made.id))
        assert processes(tmp_path) == []
        await qemu.close()

    asyncio.run(body())


def test_a_provider_that_is_killed_while_it_starts_a_machine_does_not_start_a_second_one(
    tmp_path: Path, images: Path
) -> None:
    async def body() -> None:
        qemu = await opened(tmp_path, images)
        made = await qemu.create(WEB)
        await succeeded(qemu, made.task)
        task = await qemu.power(made.id, "On")
        assert task is not None
        await eventually(lambda: inner(qemu, made.id).alive())  # the process is being started
        abandon(qemu)
        again = await opened(tmp_path, images)
        await succeeded(again, task)
        assert (await again.describe(made.id)).power == "On"
        assert len(processes(tmp_path)) == 1
        await succeeded(again, await again.delete(made.id))
        await again.close()

    asyncio.run(body())


def test_a_process_that_hangs_is_neither_on_nor_off_and_holds_up_no_other_machine(
    tmp_path: Path, images: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def body() -> None:
        qemu = await opened(tmp_path, images)
        made = await qemu.create(WEB)
        await succeeded(qemu, made.task)
        await succeeded(qemu, await qemu.power(made.id, "On"))
        await qemu.close()
        (number,) = processes(tmp_path)
        os.kill(number, signal.SIGSTOP)
        monkeypatch.setattr(guests, "SETTLING", 1.0)
        qemu = await opened(tmp_path, images)
        assert (await qemu.describe(made.id)).power == "Unknown"
        assert (await ended(qemu, await qemu.power(made.id, "On"))).code is Code.INTERNAL
        os.kill(number, signal.SIGCONT)
        await succeeded(qemu, await qemu.power(made.id, "On"))
        assert (await qemu.describe(made.id)).power == "On"
        assert processes(tmp_path) == [number]
        await succeeded(qemu, await qemu.delete(made.id))
        await qemu.close()

    asyncio.run(body())


@pytest.mark.parametrize(
    ("machine", "code", "words"),
    [
        (Machine(name="a"), Code.INVALID, "has no image, no imported disk and no disk root"),
        (Machine(name="a", image=Image(template="absent")), Code.NOT_FOUND, "no image or template absent"),
        (Machine(name="a", image=Image(path="/etc/passwd")), Code.NOT_FOUND, "in the folders of images"),
        (Machine(name="a", image=Image(path="../small.qcow2")), Code.NOT_FOUND, "in the folders of images"),
        (
            Machine(name="a", image=Image(url="http://169.254.169.254/i")),
            Code.INVALID,
            "does not connect to the address",
        ),
        (Machine(name="a", image=Image(url="file:///etc/passwd")), Code.INVALID, "not at a URL of http or https"),
        (Machine(name="a", disks=(Disk(name="../b", size_gib=1),)), Code.INVALID, "is not a name"),
        (Machine(name="a", image=Image(template="small"), tpm=True), Code.UNSUPPORTED, "no TPM"),
        (Machine(name="a", imported_disk="disk-9"), Code.NOT_FOUND, "disk disk-9 does not exist"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_machines_that_cannot_be_made_are_refused(
    tmp_path: Path, images: Path, machine: Machine, code: Code, words: str
) -> None:
    async def body() -> None:
        qemu = await opened(tmp_path, images)
        with pytest.raises(ProviderError, match=words) as raised:
            await qemu.create(machine)
        assert raised.value.code is code
        assert await qemu.machines() == ()
        await qemu.close()

    asyncio.run(body())


def test_an_image_with_a_wrong_checksum_or_a_reference_to_another_file_is_refused(tmp_path: Path, images: Path) -> None:
    async def body() -> None:
        qemu = await opened(tmp_path, images)
        prepared = await qemu.prepare_image(Image(path="small.qcow2", checksum="0" * 64), "bad")
        state = await ended(qemu, prepared.task)
        assert (state.code, "has the checksum" in state.error) == (Code.INVALID, True)
        referring = qemu._data / "images" / "evil.qcow2"
        command = ["qemu-img", "create", "-q", "-f", "qcow2", "-u", "-b", "/etc/passwd", "-F", "raw", referring, "1M"]
        subprocess.run(command, check=True)
        prepared = await qemu.prepare_image(Image(path="evil.qcow2"), "evil")
        state = await ended(qemu, prepared.task)
        assert (state.code, "refers to another file" in state.error) == (Code.INVALID, True)
        good = await qemu.prepare_image(Image(path="small.qcow2"), "good")
        assert (await succeeded(qemu, good.task))["size_bytes"] == str(4 << 20)
        assert (await qemu.prepare_image(Image(path="small.qcow2"), "good")).task is None
        await qemu.close()

    asyncio.run(body())


def test_an_image_is_converted_and_then_compressed_and_its_task_names_the_stage(
    tmp_path: Path, images: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stages: list[tuple[str, int, int]] = []

    async def body() -> None:
        qemu = await opened(tmp_path, images)
        began = qemu._stage

        def noted(task: str, stage: Stage, report: Callable[[float], None]) -> Callable[[float], None]:
            stages.append((stage.name, stage.number, stage.count))
            return began(task, stage, report)

        monkeypatch.setattr(qemu, "_stage", noted)
        prepared = await qemu.prepare_image(Image(path="small.qcow2", compress=True), "packed")
        assert (await succeeded(qemu, prepared.task))["size_bytes"] == str(4 << 20)
        assert [path.name for path in (qemu._data / "images").iterdir()] == [prepared.path]
        await qemu.close()

    asyncio.run(body())
    assert stages == [("converting", 1, 2), ("optimizing", 2, 2)]
