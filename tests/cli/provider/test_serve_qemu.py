"""``holdfast provider serve qemu``: the provider is killed, its machine is not."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path

import pytest
from tests.cli.provider.test_serve import serving
from tests.providers.qemu import guest as tiny
from tests.providers.qemu.test_machines import processes
from tests.waiting import ended

from holdfast.providers.contract import Disk, Machine, Task
from holdfast.providers.wire.client import Remote

pytestmark = pytest.mark.skipif(tiny.no_qemu() != "", reason=tiny.no_qemu())

MACHINE = Machine(name="web", memory_mib=64, disks=(Disk(name="root", size_gib=1),))


async def succeeded(remote: Remote, task: Task | None) -> None:
    state = await ended(remote, task)
    assert not state.error, state.error


def test_a_machine_outlives_the_provider_that_is_killed_and_is_found_by_the_next(tmp_path: Path) -> None:
    async def start(address: str) -> str:
        remote = Remote(address, plaintext=True)
        made = await remote.create(MACHINE)
        await succeeded(remote, made.task)
        await succeeded(remote, await remote.power(made.id, "On"))
        await remote.close()
        return made.id

    async def end(address: str, id: str) -> None:
        remote = Remote(address, plaintext=True)
        there = await remote.describe(id)
        assert (there.power, there.host) == ("On", "b")
        assert (await remote.create(MACHINE)).id == id
        await succeeded(remote, await remote.power(id, "ShutdownGraceful", 1))
        await succeeded(remote, await remote.delete(id))
        assert await remote.machines() == ()
        await remote.close()

    arguments = ("qemu", "--plaintext", "--accel", "tcg", "--data", str(tmp_path), "--host", "b", "--host", "c")
    try:
        with serving(*arguments) as (address, provider):
            id = asyncio.run(start(address))
            provider.kill()
        (number,) = processes(tmp_path)
        with serving(*arguments) as (address, provider):
            assert processes(tmp_path) == [number]
            asyncio.run(end(address, id))
            provider.send_signal(signal.SIGTERM)
            assert provider.wait(10) == 0
        assert processes(tmp_path) == []
    finally:
        for number in processes(tmp_path):
            os.kill(number, signal.SIGKILL)
