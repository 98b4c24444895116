"""The simulated hypervisor: machines on a clock that the test moves."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import pytest

from holdfast.providers.contract import (
    Change,
    Code,
    Disk,
    Hypervisor,
    Image,
    Machine,
    Nic,
    Placement,
    ProviderError,
    Task,
    TaskState,
    Transfer,
)
from holdfast.providers.simulated import CAPABILITIES, INSTANT, Fault, Latencies, MemoryStore, Simulated, World

T = TypeVar("T")
IMAGE = Image(template="debian")
WEB = Machine(name="web", cpus=2, memory_mib=1024, image=IMAGE, cpu_hot_add=True, memory_hot_add=True)


class Clock:
    def __init__(self) -> None:
        self.time = 1_000_000.0

    def __call__(self) -> float:
        return self.time

    def advance(self, seconds: float) -> None:
        self.time += seconds


def run(doing: Coroutine[Any, Any, T]) -> T:
    return asyncio.run(doing)


async def ended(hypervisor: Hypervisor, clock: Clock, task: Task | None) -> TaskState:
    """Look at a task when it says so, until it is done."""
    while task is not None:
        state = await hypervisor.task(task)
        if state.done:
            return state
        assert state.again_after is not None
        clock.advance(state.again_after)
    return TaskState(done=True)


async def made(hypervisor: Hypervisor, clock: Clock, machine: Machine = WEB, *, on: bool = True) -> str:
    made = await hypervisor.create(machine)
    assert not (await ended(hypervisor, clock, made.task)).error
    if on:
        assert not (await ended(hypervisor, clock, await hypervisor.power(made.id, "On"))).error
    return made.id


def test_the_simulated_hypervisor_is_one() -> None:
    hypervisor: Hypervisor = Simulated()
    run(hypervisor.validate())
    assert run(hypervisor.capabilities()) == CAPABILITIES


def test_a_machine_is_made_off_started_and_gets_its_address_when_it_has_booted() -> None:
    clock = Clock()
    simulated = Simulated(clock=clock)

    async def story() -> None:
        one = await simulated.create(WEB)
        assert one.task is not None
        clock.advance(1)
        state = await simulated.task(one.task)
        assert (state.done, state.percentage, state.again_after) == (False, 50, 1.0)
        assert await simulated.machines() == ()
        clock.advance(1)
        assert (await simulated.task(one.task)).done
        assert (await simulated.describe(one.id)).power == "Off"
        await ended(simulated, clock, await simulated.power(one.id, "On"))
        there = await simulated.describe(one.id)
        assert (there.power, there.ips, there.guest_ready) == ("On", (), False)
        clock.advance(3)
        there = await simulated.describe(one.id)
        assert there.ips
        assert there.guest_ready
        assert there.host == "host-0"
        assert there.console_url.startswith("vnc://127.0.0.1:")
        assert await simulated.power(one.id, "On") is None
        listed = await simulated.machines()
        assert [(vm.name, vm.power, vm.cpus, vm.memory_mib) for vm in listed] == [("web", "On", 2, 1024)]

    run(story())


def test_what_is_asked_twice_is_done_once() -> None:
    clock = Clock()
    simulated = Simulated(clock=clock)

    async def story() -> None:
        first, second = await simulated.create(WEB), await simulated.create(WEB)
        assert first == second
        await ended(simulated, clock, first.task)
        assert (await simulated.create(WEB)) == msgspec.structs.replace(first, task=None)
        assert await simulated.power(first.id, "On") == await simulated.power(first.id, "On")
        taken = await simulated.snapshot(first.id, "before")
        assert await simulated.snapshot(first.id, "before") == taken
        await ended(simulated, clock, taken.task)
        assert (await simulated.snapshot(first.id, "before")).id == taken.id
        assert len((await simulated.disk(first.id)).snapshots) == 1
        await ended(simulated, clock, await simulated.delete(first.id))
        assert await simulated.delete(first.id) is None
        assert not (await simulated.describe(first.id)).exists
        assert simulated.leftovers() == ()

    run(story())


def test_calls_for_one_machine_are_done_in_the_order_in_which_they_came() -> None:
    clock = Clock()
    simulated = Simulated(clock=clock)

    async def story() -> None:
        one = await simulated.create(WEB)
        on = await simulated.power(one.id, "On")
        gone = await simulated.delete(one.id)
        assert on is not None
        assert gone is not None
        clock.advance(2.5)
        assert (await simulated.task(on)).percentage == 50
        assert (await simulated.task(gone)).percentage == 0
        clock.advance(1.5)
        assert (await simulated.task(gone)).done

    run(story())


def test_a_guest_that_ignores_the_request_is_switched_off_after_the_timeout() -> None:
    clock = Clock()
    world = msgspec.structs.replace(World.of(), stubborn=("web",))
    simulated = Simulated(world, clock=clock)

    async def story() -> None:
        id = await made(simulated, clock)
        before = clock.time
        await ended(simulated, clock, await simulated.power(id, "ShutdownGraceful", 30))
        assert clock.time - before == pytest.approx(30)
        assert (await simulated.describe(id)).power == "Off"

    run(story())


def test_resources_change_online_where_possible_and_else_only_with_consent() -> None:
    clock = Clock()
    simulated = Simulated(clock=clock)

    async def story() -> None:
        id = await made(simulated, clock)
        await ended(simulated, clock, await simulated.reconfigure(id, Change(cpus=4, memory_mib=2048)))
        there = await simulated.describe(id)
        assert (there.cpus, there.memory_mib) == (4, 2048)
        with pytest.raises(ProviderError, match="CPUs cannot be removed while it runs") as raised:
            await simulated.reconfigure(id, Change(cpus=1))
        assert raised.value.code is Code.CONFLICT
        await ended(simulated, clock, await simulated.reconfigure(id, Change(cpus=1, offline=True)))
        there = await simulated.describe(id)
        assert (there.cpus, there.power, there.guest_ready) == (1, "On", False)
        assert await simulated.reconfigure(id, Change(cpus=1)) is None

    run(story())


def test_disks_are_added_and_grown_but_never_shrunk() -> None:
    clock = Clock()
    simulated = Simulated(clock=clock)

    async def story() -> None:
        id = await made(simulated, clock)
        change = Change(disks=(Disk(name="root", size_gib=8), Disk(name="data", size_gib=3)))
        await ended(simulated, clock, await simulated.reconfigure(id, change))
        sizes = [disk.virtual_bytes >> 30 for disk in (await simulated.describe(id)).disks]
        assert sizes == [8, 3]
        with pytest.raises(ProviderError, match="cannot be shrunk to 2 GiB"):
            await simulated.reconfigure(id, Change(disks=(Disk(name="data", size_gib=2),)))

    run(story())


def test_hosts_and_datastores_that_are_full_refuse_by_quota() -> None:
    clock = Clock()
    simulated = Simulated(World.of(hosts=1, memory_gib=2, datastore_gib=1), clock=clock, latencies=INSTANT)

    async def story() -> None:
        await made(simulated, clock)
        inventory = await simulated.inventory()
        assert (inventory.hosts[0].memory_mib_used, inventory.hosts[0].cpus_used) == (1024, 2)
        assert inventory.datastores[0].free_bytes == (1 << 30) - (1 << 28)
        with pytest.raises(ProviderError, match="host-0 has 1024 MiB of memory left") as raised:
            await simulated.create(Machine(name="big", memory_mib=2048, image=IMAGE))
        assert raised.value.code is Code.QUOTA
        with pytest.raises(ProviderError, match=r"no datastore has 8\.0 GiB") as raised:
            await simulated.create(Machine(name="wide", image=IMAGE, disks=(Disk(name="data", size_gib=62),)))
        assert raised.value.code is Code.QUOTA
        with pytest.raises(ProviderError, match="host elsewhere does not exist"):
            await simulated.create(Machine(name="lost", image=IMAGE, placement=Placement(host="elsewhere")))

    run(story())


def test_a_snapshot_keeps_files_and_size_and_a_revert_brings_them_back() -> None:
    clock = Clock()
    simulated = Simulated(clock=clock)

    async def story() -> None:
        id = await made(simulated, clock)
        simulated.write_file(id, "/etc/version", "1")
        cold = await simulated.snapshot(id, "cold")
        await ended(simulated, clock, cold.task)
        warm = await simulated.snapshot(id, "warm", memory=True)
        assert warm.task is not None
        clock.advance(2.5)
        half = await simulated.task(warm.task)
        assert (half.percentage, half.total_bytes) == (50, 1 << 30)
        state = await ended(simulated, clock, warm.task)
        assert state.result["parent"] == cold.id
        assert int(state.result["size_bytes"]) > 1 << 30
        simulated.write_file(id, "/etc/version", "2")
        await ended(simulated, clock, await simulated.reconfigure(id, Change(cpus=4)))
        await ended(simulated, clock, await simulated.revert(id, warm.id))
        there = await simulated.describe(id)
        assert (there.power, there.cpus, there.guest_ready) == ("On", 2, True)
        assert simulated.read_file(id, "/etc/version") == "1"
        await ended(simulated, clock, await simulated.revert(id, cold.id))
        assert (await simulated.describe(id)).power == "Off"
        await ended(simulated, clock, await simulated.delete_snapshot(id, cold.id))
        assert await simulated.delete_snapshot(id, cold.id) is None
        assert (await simulated.disk(id)).snapshots == (warm.id,)

    run(story())


def test_clones_have_the_files_of_their_source_and_are_never_taken_by_name() -> None:
    clock = Clock()
    simulated = Simulated(clock=clock)

    async def story() -> None:
        id = await made(simulated, clock)
        simulated.write_file(id, "/data", "kept")
        linked = await simulated.clone(id, Machine(name="linked", image=IMAGE), linked=True)
        full = await simulated.clone(id, Machine(name="full", disks=(Disk(name="more", size_gib=1),)))
        await ended(simulated, clock, linked.task)
        assert full.task is not None
        assert (await simulated.task(full.task)).total_bytes == 2 << 30
        await ended(simulated, clock, full.task)
        assert simulated.read_file(full.id, "/data") == simulated.read_file(linked.id, "/data") == "kept"
        assert (await simulated.disk(linked.id)).backing_file
        assert [disk.virtual_bytes >> 30 for disk in (await simulated.describe(full.id)).disks] == [2, 1]
        assert (await simulated.clone(id, Machine(name="full"))).id == full.id
        instant = await simulated.clone(id, Machine(name="instant"), instant=True)
        await ended(simulated, clock, instant.task)
        assert (await simulated.describe(instant.id)).guest_ready
        other = await made(simulated, clock, Machine(name="other", image=IMAGE))
        with pytest.raises(ProviderError, match="exists and is no clone of web") as raised:
            await simulated.clone(id, Machine(name="other"))
        assert raised.value.code is Code.CONFLICT
        assert other

    run(story())


@pytest.mark.parametrize(
    "url", ["pvc://claim/a/disk.qcow2", "nfs://server/export/disk.qcow2", "s3://bucket/disk.qcow2"]
)
def test_a_disk_goes_through_a_store_to_another_hypervisor(url: str) -> None:
    clock, store = Clock(), MemoryStore()
    source = Simulated(clock=clock, store=store)
    target = Simulated(clock=clock, store=store, seed=1)

    async def story() -> None:
        id = await made(source, clock)
        source.write_file(id, "/data", "kept")
        exported = await source.export_disk(Transfer(url=url, machine=id))
        again = await source.export_disk(Transfer(url=url, machine=id))
        assert exported == again
        assert exported.size_bytes
        state = await ended(source, clock, exported.task)
        checksum = state.result["checksum"]
        assert state.done_bytes == state.total_bytes == exported.size_bytes

        wrong = Transfer(url=url, target_name="moved", verify_checksum=True, expected_checksum="0")
        refused = await target.import_disk(wrong)
        assert (await ended(target, clock, refused.task)).code is Code.INVALID
        assert target.leftovers() == ()
        right = msgspec.structs.replace(wrong, expected_checksum=checksum)
        imported = await target.import_disk(right)
        assert (await ended(target, clock, imported.task)).result["checksum"] == checksum
        assert (await target.import_disk(right)).id == imported.id
        moved = await made(target, clock, Machine(name="moved", imported_disk=imported.id))
        assert target.read_file(moved, "/data") == "kept"
        assert (await target.import_disk(right)).id == imported.id
        with pytest.raises(ProviderError, match="belongs to machine moved"):
            await target.delete_disk(imported.id)
        await source.delete_export(Transfer(url=url))
        assert store.files == {}

    run(story())


def test_an_export_and_an_import_that_are_deleted_are_cancelled_and_leave_nothing() -> None:
    clock, store = Clock(), MemoryStore()
    source, target = (Simulated(clock=clock, store=store) for _ in range(2))

    async def story() -> None:
        id, transfer = await made(source, clock), Transfer(url="pvc://a/b", target_name="moved")
        exported = await source.export_disk(Transfer(url="pvc://a/b", machine=id))
        assert exported.task is not None
        state = await source.task(exported.task)
        assert state.stage is not None
        assert (state.stage.name, state.stage.count) == ("exporting", 2)
        await source.delete_export(transfer)
        assert (await source.task(exported.task)).error == "cancelled"
        clock.advance(60)
        await source.validate()
        assert store.files == {}

        await ended(source, clock, (await source.export_disk(Transfer(url="pvc://a/b", machine=id))).task)
        imported = await target.import_disk(transfer)
        assert imported.task is not None
        # Its id may have been lost with an answer: the name that it was imported by tells it, too.
        await target.delete_disk("moved")
        assert (await target.task(imported.task)).error == "cancelled"
        assert target.leftovers() == ()
        await target.delete_disk("moved")

    run(story())


def test_a_disk_that_was_imported_is_kept_if_its_machine_cannot_be_made() -> None:
    clock, store = Clock(), MemoryStore()
    source = Simulated(clock=clock, store=store, latencies=INSTANT)
    target = Simulated(clock=clock, store=store, faults=[Fault(call="create", when="task", times=1)])

    async def story() -> None:
        id = await made(source, clock)
        await source.export_disk(Transfer(url="pvc://a/b", machine=id))
        imported = await target.import_disk(Transfer(url="pvc://a/b", target_name="moved"))
        await ended(target, clock, imported.task)
        machine = Machine(name="moved", imported_disk=imported.id)
        failed = await target.create(machine)
        assert (await ended(target, clock, failed.task)).code is Code.RETRYABLE
        assert target.leftovers() == (imported.id,)
        await made(target, clock, machine)

    run(story())


def test_images_are_prepared_once_and_again_when_their_source_changes() -> None:
    clock = Clock()
    simulated = Simulated(clock=clock)

    async def story() -> None:
        image = Image(url="https://images.example/debian.qcow2", checksum="abc")
        prepared = await simulated.prepare_image(image, "debian")
        assert await simulated.prepare_image(image, "debian") == prepared
        with pytest.raises(ProviderError, match="still being prepared"):
            await simulated.create(WEB)
        state = await ended(simulated, clock, prepared.task)
        assert state.result["path"] == prepared.path
        assert (await simulated.prepare_image(image, "debian")).task is None
        await made(simulated, clock)
        newer = await simulated.prepare_image(msgspec.structs.replace(image, checksum="def"), "debian")
        assert newer.id != prepared.id

    run(story())


def test_faults_are_chosen_by_call_name_rate_and_number_and_are_the_same_for_a_seed() -> None:
    async def failures(seed: int) -> list[int]:
        simulated = Simulated(seed=seed, faults=[Fault(call="describe", name="web-*", rate=0.1)], latencies=INSTANT)
        web = await simulated.create(Machine(name="web-0", image=IMAGE))
        db = await simulated.create(Machine(name="db-0", image=IMAGE))
        failed = []
        for attempt in range(500):
            await simulated.describe(db.id)
            try:
                await simulated.describe(web.id)
            except ProviderError as error:
                failed += [attempt] if error.transient else []
        return failed

    first, again, other = run(failures(1)), run(failures(1)), run(failures(2))
    assert first == again
    assert first != other
    assert 25 <= len(first) <= 75


def test_an_answer_that_is_lost_was_done() -> None:
    clock = Clock()
    simulated = Simulated(clock=clock, faults=[Fault(call="create", when="after", times=1, code=Code.INTERNAL)])

    async def story() -> None:
        with pytest.raises(ProviderError) as raised:
            await simulated.create(WEB)
        assert raised.value.code is Code.INTERNAL
        again = await simulated.create(WEB)
        await ended(simulated, clock, again.task)
        assert simulated.named("web") == again.id

    run(story())


def test_a_killed_hypervisor_goes_on_from_its_journal(tmp_path: Path) -> None:
    clock, path = Clock(), tmp_path / "journal"
    first = Simulated(clock=clock, journal=path)

    async def before() -> tuple[str, Task]:
        id = await made(first, clock)
        first.write_file(id, "/data", "kept")
        taken = await first.snapshot(id, "now", memory=True)
        await first.create(Machine(name="other", image=IMAGE, user_data=b"password"))
        assert taken.task is not None
        return id, taken.task

    id, task = run(before())
    assert b"password" not in path.read_bytes()
    with path.open("ab") as file:
        file.write(b'["machine","vm-99",{"id":"vm-')
    second = Simulated(clock=clock, journal=path)

    async def after() -> None:
        assert not (await second.task(task)).done
        assert not (await ended(second, clock, task)).error
        there = await second.describe(id)
        assert there.power == "On"
        assert there.ips
        assert second.read_file(id, "/data") == "kept"
        other = await second.create(Machine(name="other", image=IMAGE))
        assert other.task is None
        assert other.id != id

    run(after())


def test_changes_behind_the_back_are_seen() -> None:
    clock = Clock()
    simulated = Simulated(clock=clock, latencies=Latencies(boot=0))

    async def story() -> None:
        id = await made(simulated, clock, msgspec.structs.replace(WEB, nics=(Nic(name="a", static_ip="192.0.2.7"),)))
        assert (await simulated.describe(id)).ips == ("192.0.2.7",)
        simulated.set_resources(id, cpus=7)
        assert (await simulated.describe(id)).cpus == 7
        simulated.crash_guest(id)
        there = await simulated.describe(id)
        assert (there.power, there.raw["crashed"]) == ("Off", "true")
        simulated.remove(id)
        assert not (await simulated.describe(id)).exists
        with pytest.raises(ProviderError) as raised:
            await simulated.power(id, "On")
        assert raised.value.code is Code.NOT_FOUND

    run(story())


def test_a_task_that_is_cancelled_leaves_nothing() -> None:
    clock = Clock()
    simulated = Simulated(clock=clock)

    async def story() -> None:
        one = await simulated.create(WEB)
        assert one.task is not None
        await simulated.cancel(one.task)
        state = await simulated.task(one.task)
        assert (state.done, state.error) == (True, "cancelled")
        assert simulated.leftovers() == ()
        assert not state.lost
        assert (await simulated.task(Task(id="task-99"))).lost

    run(story())
