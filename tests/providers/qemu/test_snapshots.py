"""Snapshots with memory of machines that were changed while they ran, and through the death of the provider.

The machines have no system: their firmware looks for one.  That is enough for memory, CPUs and devices.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import pytest
from tests.providers.qemu import guest as tiny
from tests.providers.qemu.test_machines import abandon, inner, processes, succeeded
from tests.waiting import ended

from holdfast.providers.contract import Change, Code, Disk, Machine, ProviderError
from holdfast.providers.qemu import Qemu, launch

pytestmark = pytest.mark.skipif(tiny.no_qemu() != "", reason=tiny.no_qemu())

DB = Machine(
    name="db",
    memory_mib=128,
    cpu_hot_add=True,
    memory_hot_add=True,
    disks=(Disk(name="root", size_gib=1), Disk(name="data", size_gib=1)),
)


@pytest.fixture(autouse=True)
def no_process_is_left(tmp_path: Path) -> Iterator[None]:
    yield
    left = processes(tmp_path)
    for number in left:
        os.kill(number, signal.SIGKILL)
    assert left == []


def played(tmp_path: Path, story: Callable[[Qemu, str], Awaitable[Qemu]]) -> None:
    async def whole() -> None:
        qemu = await Qemu.open(tmp_path, acceleration=launch.TCG)
        made = await qemu.create(DB)
        await succeeded(qemu, made.task)
        await succeeded(qemu, await qemu.power(made.id, "On"))
        qemu = await story(qemu, made.id)
        await succeeded(qemu, await qemu.delete(made.id))
        await qemu.close()

    asyncio.run(whole())


def test_a_machine_that_grew_while_it_ran_comes_back_as_it_was(tmp_path: Path) -> None:
    async def story(qemu: Qemu, id: str) -> Qemu:
        await succeeded(qemu, await qemu.reconfigure(id, Change(cpus=3, memory_mib=384)))
        taken = await qemu.snapshot(id, "grown", memory=True)
        await succeeded(qemu, taken.task)
        await succeeded(qemu, await qemu.reconfigure(id, Change(cpus=4, disks=(Disk(name="more", size_gib=1),))))
        await succeeded(qemu, await qemu.power(id, "Off"))

        # A cold start has everything from the start; the snapshot needs what was plugged in again.
        await succeeded(qemu, await qemu.power(id, "On"))
        assert inner(qemu, id).record.hardware.cpus == 4
        await succeeded(qemu, await qemu.revert(id, taken.id))
        there = await qemu.describe(id)
        assert (there.power, there.cpus, there.memory_mib, len(there.disks)) == ("On", 3, 384, 2)
        assert len(await inner(qemu, id).command("query-cpus-fast")) == 3
        summary = await inner(qemu, id).command("query-memory-size-summary")
        assert summary["base-memory"] + summary["plugged-memory"] == 384 << 20

        # It can grow again, and what it cannot do while it runs needs consent.
        await succeeded(qemu, await qemu.reconfigure(id, Change(cpus=4)))
        with pytest.raises(ProviderError, match="at most 512 MiB of memory until it is started again") as raised:
            await qemu.reconfigure(id, Change(memory_mib=1024))
        assert raised.value.code is Code.CONFLICT
        assert not (inner(qemu, id).folder / "more.qcow2").exists()
        return qemu

    played(tmp_path, story)


def test_a_snapshot_goes_on_while_its_provider_is_dead(tmp_path: Path) -> None:
    async def story(qemu: Qemu, id: str) -> Qemu:
        taken = await qemu.snapshot(id, "one", memory=True)
        assert taken.task is not None
        guest = inner(qemu, id)
        async with asyncio.timeout(20):
            while not guest.jobs:  # QEMU has been asked, or is about to be
                await asyncio.sleep(0)
        abandon(qemu)
        again = await Qemu.open(tmp_path, acceleration=launch.TCG)
        assert not (await ended(again, taken.task)).error
        assert (await again.disk(id, "data")).snapshots == (taken.id,)
        assert await inner(again, id).command("query-jobs") == []
        await succeeded(again, await again.delete_snapshot(id, taken.id))
        assert (await again.disk(id)).snapshots == ()
        return again

    played(tmp_path, story)
