"""Elections on a real API server, on virtual time, with contenders that are cut off, stalled or stopped."""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from datetime import timedelta
from itertools import pairwise
from typing import Any

import pytest

from holdfast.apiserver.server import Server
from holdfast.client.api import ApiClient
from holdfast.client.inprocess import InProcess
from holdfast.client.protocols import Unreachable
from holdfast.client.resources import CONFIG_MAPS, LEASES, NAMESPACES
from holdfast.client.retries import Policy
from holdfast.meta.exchange import Request, Response
from holdfast.meta.objects import Key
from holdfast.runtime.leadership.elections import Election, boot_seconds, unique_identity
from holdfast.runtime.leadership.fencing import FencedTransport, LeaseLost
from holdfast.testing.loops import VirtualLoop, run

KEY = Key("default", "holdfast")
DEADLINE = 10.0


class Line:
    """The way from one process to the server, that can be cut, hold requests back, or lose one answer."""

    def __init__(self, server: Server) -> None:
        self._inner = InProcess(server.handle, server.identity.admin_token)
        self.cut = False
        self.hangs = False
        self.answers = True
        self.requests = 0

    async def send(self, request: Request) -> Response:
        self.requests += 1
        if self.hangs:
            await asyncio.Event().wait()
        if self.cut:
            raise Unreachable("the line is cut")
        response = await self._inner.send(request)
        if not self.answers:
            self.answers = True
            await asyncio.Event().wait()
        return response

    async def close(self) -> None:
        await self._inner.close()


class Process:
    """A contender with a line and clocks of its own, and a journal of when it worked."""

    def __init__(self, name: str, cluster: Cluster, *, key: Key = KEY, ahead: timedelta = timedelta(0)) -> None:
        self.name = name
        self.cluster = cluster
        self.line = Line(cluster.server)
        self.slept = 0.0
        """Seconds for which the machine slept: its clock went on, its timers did not."""
        loop = cluster.loop
        self.election = Election(
            ApiClient(self.line, policy=Policy(attempts=1)),
            key,
            identity=name,
            now=lambda: loop.now() + ahead,
            monotonic=lambda: loop.time() + self.slept,
            spread=random.Random(name).random,
        )
        self.client = ApiClient(FencedTransport(self.line, self.election.held))
        self.working = asyncio.Event()
        self.idle = asyncio.Event()
        self.idle.set()
        self.task: asyncio.Task[None] | None = None

    def start(self, work: Callable[[], Coroutine[Any, Any, None]] | None = None) -> Process:
        self.task = asyncio.create_task(self.election.run(work or self.work))
        return self

    async def work(self) -> None:
        self.working.set()
        self.idle.clear()
        self.cluster.tell(f"{self.name} begins")
        try:
            await asyncio.Event().wait()
        finally:
            self.working.clear()
            self.idle.set()
            self.cluster.tell(f"{self.name} ends")

    async def stop(self) -> None:
        if self.task is not None:
            self.task.cancel()
            await asyncio.wait((self.task,))


class Cluster:
    """A server, its contenders, and what happened when."""

    def __init__(self, server: Server, loop: VirtualLoop) -> None:
        self.server = server
        self.loop = loop
        self.api = ApiClient(InProcess(server.handle, server.identity.admin_token))
        self.journal: list[tuple[float, str]] = []
        self.processes: list[Process] = []

    def process(self, name: str, **options: Any) -> Process:
        self.processes.append(Process(name, self, **options))
        return self.processes[-1]

    def tell(self, what: str) -> None:
        self.journal.append((self.loop.time(), what))

    def when(self, what: str) -> float:
        return next(time for time, event in self.journal if event == what)

    async def lease(self) -> dict[str, Any]:
        spec: dict[str, Any] = (await self.api.get(LEASES, KEY)).wire()["spec"]
        return spec


@asynccontextmanager
async def cluster(loop: VirtualLoop) -> AsyncIterator[Cluster]:
    server = await Server.open(None, now=loop.now)
    made = Cluster(server, loop)
    try:
        yield made
    finally:
        for process in made.processes:
            await process.stop()
        await server.close()


def on_a_cluster(test: Callable[[Cluster], Coroutine[Any, Any, None]]) -> Callable[[], None]:
    """Run a test on virtual time, with a cluster."""

    async def inside(loop: VirtualLoop) -> None:
        async with cluster(loop) as made:
            await test(made)

    def outside() -> None:
        run(inside)

    outside.__name__ = test.__name__
    return outside


@on_a_cluster
async def test_the_first_one_leads_at_once_and_keeps_the_lease(world: Cluster) -> None:
    one = world.process("one").start()
    await one.working.wait()
    assert world.loop.time() == 0
    assert await world.lease() == {
        "holderIdentity": "one",
        "leaseDurationSeconds": 15,
        "acquireTime": "2030-01-01T00:00:00.000000Z",
        "renewTime": "2030-01-01T00:00:00.000000Z",
        "leaseTransitions": 0,
    }
    await asyncio.sleep(3600)
    assert world.journal == [(0, "one begins")]
    spec = await world.lease()
    assert (spec["acquireTime"], spec["leaseTransitions"]) == ("2030-01-01T00:00:00.000000Z", 0)
    assert spec["renewTime"] > "2030-01-01T00:59:57"
    assert 3600 / 2.4 <= one.line.requests <= 3600 / 2 + 2, "one request a renewal"


@on_a_cluster
async def test_standbys_say_who_leads(world: Cluster) -> None:
    one = world.process("one").start()
    await one.working.wait()
    two = world.process("two").start()
    await asyncio.sleep(5)
    assert (one.election.held(), one.election.holder) == (True, "one")
    assert (two.election.held(), two.election.holder) == (False, "one")


@on_a_cluster
async def test_a_process_that_stops_gives_the_lease_up_and_the_next_takes_over_at_once(world: Cluster) -> None:
    one, two = world.process("one").start(), world.process("two")
    await one.working.wait()
    two.start()
    await asyncio.sleep(30)
    await one.stop()
    assert not one.election.held()
    assert (await world.lease())["holderIdentity"] == ""
    await two.working.wait()
    assert world.when("two begins") - world.when("one ends") <= 2.4
    spec = await world.lease()
    assert (spec["holderIdentity"], spec["leaseTransitions"], spec["leaseDurationSeconds"]) == ("two", 1, 15)


@on_a_cluster
async def test_a_lease_is_given_up_although_a_renewal_was_under_way(world: Cluster) -> None:
    one = world.process("one").start()
    await one.working.wait()
    before = await world.lease()
    one.line.answers = False
    await asyncio.sleep(2.5)
    assert (await world.lease())["renewTime"] > before["renewTime"], "done, and not answered"
    await one.stop()
    assert (await world.lease())["holderIdentity"] == ""


@on_a_cluster
async def test_work_that_takes_its_time_to_stop_keeps_the_lease_meanwhile(world: Cluster) -> None:
    one, two = world.process("one"), world.process("two")
    begun = asyncio.Event()

    async def work() -> None:
        try:
            begun.set()
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(60)
            world.tell(f"drained, {'held' if one.election.held() else 'lost'}")

    one.start(work)
    await begun.wait()
    two.start()
    await asyncio.sleep(5)
    await one.stop()
    assert world.journal == [(65, "drained, held")]
    await two.working.wait()


@on_a_cluster
async def test_who_is_cut_off_stops_before_another_takes_over(world: Cluster) -> None:
    one, two = world.process("one").start(), world.process("two")
    await one.working.wait()
    two.start()
    await asyncio.sleep(20)
    one.line.cut = True
    cut = world.loop.time()
    await two.working.wait()
    ended, begun = world.when("one ends"), world.when("two begins")
    assert cut + DEADLINE - 2.4 <= ended <= cut + DEADLINE
    assert begun - ended >= 4, "the rest of the lease, less a look"
    one.line.cut = False
    await asyncio.sleep(60)
    assert world.journal[-1][1] == "two begins", "who comes back stands by"


@on_a_cluster
async def test_a_server_that_does_not_answer_ends_the_work_at_the_deadline_to_the_second(world: Cluster) -> None:
    one = world.process("one").start()
    await one.working.wait()
    one.line.hangs = True
    await one.idle.wait()
    assert world.loop.time() == DEADLINE
    one.line.hangs = False
    await one.working.wait()
    assert world.loop.time() < DEADLINE + 5, "its own lease is taken up again without waiting"
    assert (await world.lease())["leaseTransitions"] == 0


@on_a_cluster
async def test_a_lease_in_anothers_name_ends_the_work_at_the_next_renewal(world: Cluster) -> None:
    one = world.process("one").start()
    await one.working.wait()
    await world.api.patch(LEASES, KEY, {"spec": {"holderIdentity": "another"}})
    await one.idle.wait()
    assert world.loop.time() <= 2.4
    assert one.election.holder == "another"
    await one.working.wait()
    assert world.loop.time() >= 15, "another's lease is honoured"


@on_a_cluster
async def test_a_lease_that_others_label_or_delete_is_kept(world: Cluster) -> None:
    one = world.process("one").start()
    await one.working.wait()
    await world.api.patch(LEASES, KEY, {"metadata": {"labels": {"a": "b"}}})
    await asyncio.sleep(30)
    await world.api.delete(LEASES, KEY)
    await asyncio.sleep(30)
    assert world.journal == [(0, "one begins")]
    assert (await world.lease())["holderIdentity"] == "one"


@on_a_cluster
async def test_a_machine_that_slept_does_not_write_when_it_wakes(world: Cluster) -> None:
    one = world.process("one").start()
    await one.working.wait()
    await one.client.create(CONFIG_MAPS, {"metadata": {"namespace": "default", "name": "before"}})
    one.slept += DEADLINE
    assert not one.election.held()
    with pytest.raises(LeaseLost):
        await one.client.create(CONFIG_MAPS, {"metadata": {"namespace": "default", "name": "after"}})
    await one.idle.wait()
    assert world.loop.time() <= 2.4


@on_a_cluster
async def test_clocks_that_differ_by_hours_change_nothing(world: Cluster) -> None:
    behind = world.process("behind", ahead=timedelta(hours=-5)).start()
    await behind.working.wait()
    fast = world.process("fast", ahead=timedelta(hours=5)).start()
    await asyncio.sleep(600)
    assert world.journal == [(0, "behind begins")]
    await behind.stop()
    await fast.working.wait()
    slow = world.process("slow", ahead=timedelta(hours=-9)).start()
    await asyncio.sleep(600)
    assert world.journal[-1][1] == "fast begins"
    assert slow.election.holder == "fast"


@on_a_cluster
async def test_work_that_ends_ends_the_election_and_gives_the_lease_up(world: Cluster) -> None:
    async def work() -> None:
        await asyncio.sleep(30)

    one = world.process("one")
    await one.election.run(work)
    assert world.loop.time() == 30
    assert (await world.lease())["holderIdentity"] == ""
    await one.election.run(work)
    assert (await world.lease())["leaseTransitions"] == 1


@on_a_cluster
async def test_work_that_fails_says_so_and_gives_the_lease_up(world: Cluster) -> None:
    async def work() -> None:
        raise RuntimeError("broken")

    with pytest.raises(RuntimeError, match="broken"):
        await world.process("one").election.run(work)
    assert (await world.lease())["holderIdentity"] == ""


@on_a_cluster
async def test_work_that_fails_while_it_is_ended_says_so(world: Cluster) -> None:
    begun = asyncio.Event()

    async def work() -> None:
        try:
            begun.set()
            await asyncio.Event().wait()
        finally:
            raise RuntimeError("broken")

    one = world.process("one").start(work)
    await begun.wait()
    await one.stop()
    assert one.task is not None
    assert isinstance(one.task.exception(), RuntimeError)
    assert (await world.lease())["holderIdentity"] == ""


@on_a_cluster
async def test_who_is_refused_asks_again_without_haste(world: Cluster) -> None:
    one = world.process("one", key=Key("missing", "holdfast")).start()
    await asyncio.sleep(60)
    assert one.line.requests <= 62, "a look and a write every two seconds"
    await world.api.create(NAMESPACES, {"metadata": {"name": "missing"}})
    await one.working.wait()


def test_what_keeps_a_lease_from_being_had_is_told_once(caplog: pytest.LogCaptureFixture) -> None:
    @on_a_cluster
    async def story(world: Cluster) -> None:
        world.process("one", key=Key("missing", "holdfast")).start()
        await asyncio.sleep(60)

    story()
    (record,) = [record for record in caplog.records if record.message == "lease request failed"]
    assert record.__dict__["fields"]["verb"] == "write"


@pytest.mark.parametrize("seed", range(6))
def test_writes_of_two_leaders_never_mix_whatever_the_lines_do(seed: int) -> None:
    chance = random.Random(seed)
    writes: list[tuple[float, str]] = []

    def writing(process: Process) -> Callable[[], Coroutine[Any, Any, None]]:
        async def work() -> None:
            while True:
                with contextlib.suppress(Unreachable, LeaseLost, TimeoutError):
                    async with asyncio.timeout(3):
                        await process.client.patch(
                            CONFIG_MAPS, Key("default", "shared"), {"data": {"by": process.name}}
                        )
                        writes.append((process.cluster.loop.time(), process.name))
                await asyncio.sleep(0.5)

        return work

    @on_a_cluster
    async def race(world: Cluster) -> None:
        await world.api.create(CONFIG_MAPS, {"metadata": {"namespace": "default", "name": "shared"}})
        ahead = [timedelta(minutes=chance.randint(-90, 90)) for _ in range(3)]
        racers = [world.process(f"p{number}", ahead=each) for number, each in enumerate(ahead)]
        for racer in racers:
            racer.start(writing(racer))
        for _ in range(60):
            line = chance.choice(racers).line
            line.cut, line.hangs = chance.choice([(True, False), (False, True), (False, False), (False, False)])
            await asyncio.sleep(chance.uniform(1, 25))

    race()
    handovers = [later - sooner for (sooner, one), (later, other) in pairwise(writes) if one != other]
    assert len(handovers) >= 3, "the race was too quiet to show anything"
    assert min(handovers) > 2, "a new leader wrote before the old one had surely stopped"


def test_no_two_processes_are_the_same() -> None:
    assert unique_identity() != unique_identity()


def test_the_clock_goes_forward() -> None:
    assert boot_seconds() <= boot_seconds()
