"""Managers as processes on one server, on virtual time: terms, takeovers, stops, crashes and kinds that are missing."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from holdfast.apiserver.server import Server
from holdfast.client import streams
from holdfast.client.api import ApiClient
from holdfast.client.inprocess import InProcess
from holdfast.client.objects import Object
from holdfast.client.protocols import Unreachable
from holdfast.client.resources import CONFIG_MAPS, DEFINITIONS, LEASES, SECRETS, Resource
from holdfast.client.retries import READS
from holdfast.kernel.outcomes import Again, Failure
from holdfast.meta.errors import NotFound
from holdfast.meta.exchange import Request, Response
from holdfast.meta.objects import Key
from holdfast.runtime.controllers import Component, Controller, Environment, View, Watch
from holdfast.runtime.decisions import NOTHING, Create, Decision, Delete, Notice
from holdfast.runtime.hosting import LeaderElection, build_manager
from holdfast.runtime.leadership.leases import TERMS
from holdfast.runtime.manager import Manager, Settings
from holdfast.runtime.passes.catching_up import SETTLED
from holdfast.testing.loops import VirtualLoop, run

LEASE = Key("default", "holdfast")
WIDGETS = Resource("example.com", "v1", "widgets", "Widget")


# --- a controller: a Secret for every ConfigMap that asks for one


@dataclass(frozen=True)
class World:
    asked: Object
    made: Object | None


def observe(view: View, key: Key) -> World | None:
    asked = view.get(CONFIG_MAPS, key)
    return None if asked is None or not asked.meta.labels.get("secret") else World(asked, view.get(SECRETS, key))


def decide(world: World, now: datetime) -> Decision:
    if world.made is not None:
        return NOTHING
    key = world.asked.key
    manifest = {"metadata": {"namespace": key.namespace, "name": key.name}}
    create = Create(because="it is asked for", resource=SECRETS, manifest=manifest)
    return Decision(writes=(create,), notices=(Notice(reason="Made", message="A secret was made."),))


def secrets(**changes: Any) -> Controller[World]:
    usual = Controller(name="secrets", resource=CONFIG_MAPS, reads=(SECRETS,), observe=observe, decide=decide)
    return replace(usual, **changes)


def widgets() -> Controller[Any]:
    return Controller(
        name="widgets", resource=WIDGETS, observe=lambda view, key: None, decide=lambda world, now: NOTHING
    )


class Scripted(Component):
    """A component with a script, which counts how often it begins."""

    def __init__(self, live: Callable[[int], Awaitable[None]], *, name: str = "worker") -> None:
        self._live = live
        self._name = name
        self.begun = 0

    @property
    def name(self) -> str:
        return self._name

    @property
    def reads(self) -> tuple[Resource, ...]:
        return ()

    async def run(self, environment: Environment) -> None:
        self.begun += 1
        await self._live(self.begun)


async def forever(_: int = 0) -> None:
    await asyncio.Event().wait()


# --- processes


class Line:
    """The way from one process to the server, that can be cut, or lose the requests about leases, and remembers."""

    def __init__(self, server: Server, loop: VirtualLoop) -> None:
        self._inner = InProcess(server.handle, server.identity.admin_token)
        self._loop = loop
        self.cut = False
        self.silent_leases = False
        self.late = 0.0
        """Seconds by which the changes of watches come late."""
        self.slow_writes = 0.0
        """Seconds after which a write that was sent gets to the server, even if its process is gone by then."""
        self.written: list[tuple[float, str]] = []

    async def send(self, request: Request) -> Response:
        if self.silent_leases and "/leases/" in request.path:
            await asyncio.Event().wait()
        if self.cut:
            raise Unreachable("the line is cut")
        if request.method not in READS:
            self.written.append((self._loop.time(), request.path.rsplit("/", 2)[1 if request.method == "PATCH" else 2]))
            if self.slow_writes and "/leases" not in request.path:
                return await asyncio.shield(asyncio.create_task(self._slowly(request)))
        response = await self._inner.send(request)
        if response.stream is not None:
            response.stream = self._lately(response.stream)
        return response

    async def _slowly(self, request: Request) -> Response:
        await asyncio.sleep(self.slow_writes)
        return await self._inner.send(request)

    async def _lately(self, stream: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        try:
            async for chunk in stream:
                await asyncio.sleep(self.late)
                yield chunk
        finally:
            await streams.close(stream)

    async def close(self) -> None:
        await self._inner.close()


class Process:
    """A manager with a line and a clock of its own."""

    def __init__(
        self,
        site: Site,
        name: str = "",
        *,
        controllers: Sequence[Controller[Any]] | None = None,
        components: Sequence[Component] = (),
        settings: Settings | None = None,
    ) -> None:
        self.line = Line(site.server, site.loop)
        self.slept = 0.0
        """Seconds for which the machine slept: its clock went on, its timers did not."""
        self._loop = site.loop
        self.manager: Manager = build_manager(
            self.line,
            controllers=[secrets()] if controllers is None else controllers,
            components=components,
            now=site.loop.now,
            settings=settings,
            seed=1,
            election=LeaderElection(lease=LEASE, identity=name, monotonic=self.clock) if name else None,
        )
        self.task = asyncio.create_task(self.manager.run())

    def clock(self) -> float:
        return self._loop.time() + self.slept

    @property
    def works(self) -> bool:
        return self.manager.working.is_set()

    async def stop(self) -> None:
        self.manager.stop()
        await self.task

    async def kill(self) -> None:
        """End it without a word to the server."""
        self.line.cut = True
        self.task.cancel()
        await asyncio.wait({self.task})


class Site:
    """A server, and the processes that a test starts on it."""

    def __init__(self, server: Server, loop: VirtualLoop) -> None:
        self.server = server
        self.loop = loop
        self.api = ApiClient(InProcess(server.handle, server.identity.admin_token))
        self.processes: list[Process] = []

    def start(self, name: str = "", **options: Any) -> Process:
        self.processes.append(Process(self, name, **options))
        return self.processes[-1]

    async def ask(self, name: str) -> None:
        """Ask for a secret."""
        await self.api.create(
            CONFIG_MAPS, {"metadata": {"namespace": "default", "name": name, "labels": {"secret": "yes"}}}
        )

    async def has(self, name: str) -> bool:
        try:
            await self.api.get(SECRETS, Key("default", name))
        except NotFound:
            return False
        return True

    async def holder(self) -> str:
        holder: str = (await self.api.get(LEASES, LEASE)).wire()["spec"]["holderIdentity"]
        return holder


def on_a_site(test: Callable[[Site], Awaitable[None]]) -> None:
    async def inside(loop: VirtualLoop) -> None:
        server = await Server.open(None, now=loop.now)
        site = Site(server, loop)
        before = asyncio.all_tasks()
        try:
            await test(site)
        finally:
            for process in site.processes:
                await process.kill()
            await asyncio.sleep(0)
            left = asyncio.all_tasks() - before
            await server.close()
        assert not left, "tasks are left behind"

    run(inside)


# --- terms and takeovers


def test_of_two_one_works_and_the_other_stands_by_with_warm_stores() -> None:
    async def test(site: Site) -> None:
        first, second = site.start("first"), site.start("second")
        await asyncio.sleep(5)
        await site.ask("a")
        await asyncio.sleep(5)
        assert await site.has("a")
        leader, standby = (first, second) if first.works else (second, first)
        assert not standby.works
        assert standby.manager.drivers == ()
        assert {path for _, path in standby.line.written} <= {"leases"}
        assert standby.manager.caches.get(CONFIG_MAPS, Key("default", "a")) is not None
        assert standby.manager.ready["stores"]() is None, "who stands by is ready to"
        assert leader.manager.notes["leader"]() == "this process leads"
        assert standby.manager.notes["leader"]() == f"{await site.holder()} leads"
        assert "holdfast_leader 1.0" in leader.manager.metrics.render().decode()
        assert "holdfast_leader 0.0" in standby.manager.metrics.render().decode()

    on_a_site(test)


def test_after_a_leader_was_killed_the_other_waits_for_the_end_of_the_lease() -> None:
    async def test(site: Site) -> None:
        first = site.start("first")
        await first.manager.working.wait()
        second = site.start("second")
        await asyncio.sleep(5)
        killed = site.loop.time()
        await first.kill()
        await site.ask("a")
        await second.manager.working.wait()
        assert TERMS.deadline < site.loop.time() - killed < TERMS.duration + 2 * TERMS.retry
        await asyncio.sleep(1)
        assert await site.has("a")

    on_a_site(test)


def test_after_a_leader_was_stopped_the_other_takes_over_at_once() -> None:
    async def test(site: Site) -> None:
        first = site.start("first")
        await first.manager.working.wait()
        second = site.start("second")
        await asyncio.sleep(5)
        await first.stop()
        stopped = site.loop.time()
        await second.manager.working.wait()
        assert site.loop.time() - stopped < 2 * TERMS.retry
        assert await site.holder() == "second"

    on_a_site(test)


def test_a_leader_whose_renewals_get_lost_stops_before_another_begins() -> None:
    async def test(site: Site) -> None:
        first = site.start("first")
        await first.manager.working.wait()
        second = site.start("second")
        await asyncio.sleep(5)
        first.line.silent_leases = True
        lost = site.loop.time()
        while not second.works:
            await site.ask(f"at-{site.loop.time():.0f}")
            await asyncio.sleep(1)
        last = max(time for time, path in first.line.written if path != "leases")
        assert last - lost < TERMS.deadline
        began = min(time for time, path in second.line.written if path != "leases")
        assert began - last > TERMS.duration - TERMS.deadline - 1

    on_a_site(test)


# --- what a predecessor wrote last


def trimmer(pick: int, may: asyncio.Event | None = None) -> Controller[Any]:
    """Deletes one secret, if three are seen, as soon as it `may`; which of them, differs from process to process."""

    def trim(seen: tuple[Object, ...], now: datetime) -> Decision:
        if may is not None and not may.is_set():
            return Decision(outcome=Again(timedelta(seconds=0.1), "it may not yet"))
        if len(seen) < 3:
            return NOTHING
        chosen = seen[pick]
        deletion = Delete(because="three are too many", resource=SECRETS, key=chosen.key, uid=chosen.uid)
        return Decision(writes=(deletion,))

    return Controller(
        name="trim",
        resource=CONFIG_MAPS,
        watches=(Watch(resource=SECRETS, keys=lambda obj, view: [Key("default", "limit")]),),
        observe=lambda view, key: view.list(SECRETS) if key.name == "limit" else None,
        decide=trim,
    )


async def three_secrets(site: Site) -> None:
    for number in range(3):
        await site.api.create(SECRETS, {"metadata": {"namespace": "default", "name": f"s{number}"}})
    await site.api.create(CONFIG_MAPS, {"metadata": {"namespace": "default", "name": "limit"}})


async def left(site: Site) -> list[str]:
    return [each.meta.name for each in (await site.api.list(SECRETS)).objects]


def test_a_standby_whose_watches_are_late_takes_over_with_what_the_server_has() -> None:
    async def test(site: Site) -> None:
        may = asyncio.Event()
        first = site.start("first", controllers=[trimmer(0, may)])
        await first.manager.working.wait()
        second = site.start("second", controllers=[trimmer(-1)])
        await three_secrets(site)
        await asyncio.sleep(5)
        second.line.late = 8.0
        may.set()
        await asyncio.sleep(0.5)
        assert await left(site) == ["s1", "s2"]
        await first.stop()
        await asyncio.sleep(30)
        assert second.works
        assert await left(site) == ["s1", "s2"]

    on_a_site(test)


@pytest.mark.parametrize("name", ["", "first"])
def test_a_write_that_is_under_way_when_its_process_is_killed_is_not_overlooked_by_the_next(name: str) -> None:
    async def test(site: Site) -> None:
        first = site.start(name, controllers=[trimmer(0)])
        await first.manager.working.wait()
        first.line.slow_writes = 0.8
        await three_secrets(site)
        await asyncio.sleep(0.1)
        await first.kill()
        assert await left(site) == ["s0", "s1", "s2"], "its deletion is still under way"
        second = site.start(name and "second", controllers=[trimmer(-1)])
        await second.manager.working.wait()
        await asyncio.sleep(30)
        assert await left(site) == ["s1", "s2"]

    on_a_site(test)


def test_a_leader_that_slept_in_a_pass_writes_nothing_when_it_wakes() -> None:
    async def test(site: Site) -> None:
        looked, awake = asyncio.Event(), asyncio.Event()

        async def survey(world: World) -> World:
            looked.set()
            await awake.wait()
            return world

        sleeper = site.start("sleeper", controllers=[secrets(survey=survey)])
        await sleeper.manager.working.wait()
        await site.ask("a")
        await looked.wait()
        sleeper.slept += 60
        awake.set()
        for _ in range(100):  # no time passes, so the election does not know yet
            await asyncio.sleep(0)
        assert not [path for _, path in sleeper.line.written if path != "leases"]
        assert not await site.has("a")
        failures = 'holdfast_reconcile_errors_total{controller="secrets",reason="LeaseLost"}'
        assert failures in sleeper.manager.metrics.render().decode()

    on_a_site(test)


def test_a_lease_that_was_lost_and_won_again_begins_a_new_term_with_new_drivers() -> None:
    async def test(site: Site) -> None:
        worker = Scripted(forever)
        only = site.start("only", components=[worker])
        await only.manager.working.wait()
        (driver,) = only.manager.drivers
        only.line.cut = True
        await asyncio.sleep(TERMS.deadline + 1)
        assert not only.works
        assert only.manager.drivers == ()
        await site.ask("a")
        only.line.cut = False
        await only.manager.working.wait()
        await asyncio.sleep(1)
        assert await site.has("a")
        assert driver not in only.manager.drivers
        assert worker.begun == 2
        assert len(driver.queue) == 0, "the driver of the first term listens no longer"

    on_a_site(test)


def test_who_stands_by_stops_at_once_and_leaves_the_lease_alone() -> None:
    async def test(site: Site) -> None:
        first = site.start("first")
        await first.manager.working.wait()
        second = site.start("second")
        await asyncio.sleep(3)
        before = site.loop.time()
        await second.stop()
        assert site.loop.time() == before
        assert await site.holder() == "first"

    on_a_site(test)


# --- stopping


@pytest.mark.parametrize("name", ["", "elected"])
@pytest.mark.parametrize(
    ("takes", "made"), [pytest.param(15, True, id="in time"), pytest.param(25, False, id="too long")]
)
def test_a_pass_that_runs_when_it_stops_may_end_within_the_grace(name: str, takes: float, made: bool) -> None:
    async def test(site: Site) -> None:
        looked = asyncio.Event()

        async def survey(world: World) -> World:
            looked.set()
            await asyncio.sleep(takes)
            return world

        process = site.start(name, controllers=[secrets(survey=survey)], settings=Settings(grace=20))
        await process.manager.working.wait()
        await site.ask("a")
        await looked.wait()
        began = site.loop.time()
        process.manager.stop()
        await site.ask("b")
        await process.task
        assert site.loop.time() - began == pytest.approx(min(takes, 20))
        assert (await site.has("a"), await site.has("b")) == (made, False), "no key is taken any more"
        written = [path for _, path in process.line.written if path != "leases"]
        assert written == (["secrets", "events"] if made else []), "what is done is recorded"
        if name:
            assert process.line.written[-1][1] == "leases", "the lease is given up last"
            assert await site.holder() == ""

    on_a_site(test)


def test_components_end_after_the_passes_and_may_tidy_up() -> None:
    async def test(site: Site) -> None:
        ended: list[str] = []

        async def survey(world: World) -> World:
            await asyncio.sleep(5)
            ended.append("pass")
            return world

        async def live(_: int) -> None:
            try:
                await forever()
            finally:
                await asyncio.sleep(1)
                ended.append("component")

        process = site.start(controllers=[secrets(survey=survey)], components=[Scripted(live)])
        await process.manager.working.wait()
        await site.ask("a")
        await asyncio.sleep(1)
        await process.stop()
        assert ended == ["pass", "component"]

    on_a_site(test)


def test_another_manager_in_the_same_process_goes_on_and_nothing_of_the_first_is_left() -> None:
    async def test(site: Site) -> None:
        for name in ("a", "b", "c"):
            before = asyncio.all_tasks()
            process = site.start()
            await process.manager.working.wait()
            await site.ask(name)
            await asyncio.sleep(1)
            assert await site.has(name)
            await process.stop()
            assert asyncio.all_tasks() == before

    on_a_site(test)


def test_a_manager_that_was_stopped_before_it_began_ends_at_once_and_runs_only_once() -> None:
    async def test(site: Site) -> None:
        process = site.start()
        await process.stop()
        assert site.loop.time() == 0
        with pytest.raises(RuntimeError, match="make another one"):
            await process.manager.run()

    on_a_site(test)


# --- kinds that are missing


def test_a_kind_that_is_missing_keeps_only_its_own_controller_waiting() -> None:
    names = {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"}
    schema = {"openAPIV3Schema": {"type": "object"}}
    version = {"name": "v1", "served": True, "storage": True, "schema": schema}
    definition = {
        "metadata": {"name": "widgets.example.com"},
        "spec": {"group": "example.com", "scope": "Namespaced", "names": names, "versions": [version]},
    }

    async def test(site: Site) -> None:
        process = site.start(controllers=[widgets(), secrets()])
        await site.ask("a")
        await asyncio.sleep(10)
        assert await site.has("a")
        manager = process.manager
        assert manager.waiting == {"widgets": (WIDGETS,)}
        trouble = manager.ready["stores"]()
        assert trouble is not None
        assert trouble.startswith("Widget (example.com/v1): ")
        assert not manager.working.is_set()
        await site.api.create(DEFINITIONS, definition)
        await asyncio.wait_for(manager.working.wait(), 120)
        assert manager.waiting == {}
        assert manager.ready["stores"]() is None

    on_a_site(test)


def test_a_controller_that_waits_for_its_kind_does_not_hold_up_the_end() -> None:
    async def test(site: Site) -> None:
        process = site.start(controllers=[widgets()])
        await asyncio.sleep(10)
        before = site.loop.time()
        await process.stop()
        assert site.loop.time() == before

    on_a_site(test)


def test_before_anything_was_read_it_is_not_ready_and_says_what_it_waits_for() -> None:
    async def test(site: Site) -> None:
        process = site.start()
        assert process.manager.ready["stores"]() == "ConfigMap (v1): not read yet; Secret (v1): not read yet"
        await process.manager.working.wait()
        assert process.manager.ready["stores"]() is None
        text = process.manager.metrics.render().decode()
        assert 'holdfast_store_objects{resource="secrets"} 0.0' in text
        assert 'holdfast_api_requests_total{code="200",resource="secrets",verb="' in text

    on_a_site(test)


# --- crashes


async def crash(_: int) -> None:
    raise ZeroDivisionError("a defect")


async def give_up(_: int) -> None:
    raise Failure("Away", "the other side is away")


async def stray(_: int) -> None:
    inner = asyncio.create_task(forever())
    inner.cancel()
    await inner


@pytest.mark.parametrize(
    ("live", "error"), [(crash, "ZeroDivisionError"), (give_up, "Failure"), (stray, "CancelledError")]
)
def test_a_component_that_crashes_begins_again_later_each_time_while_others_work(
    live: Callable[[int], Awaitable[None]], error: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def test(site: Site) -> None:
        async def until_the_fourth(number: int) -> None:
            await (live if number < 4 else forever)(number)

        worker = Scripted(until_the_fourth)
        process = site.start(components=[worker])
        await site.ask("a")
        await asyncio.sleep(0.5)
        assert worker.begun == 1
        assert process.manager.ready["parts"]() == f"component worker crashed with {error}, 1 times in a row"
        await asyncio.sleep(0.5)
        assert worker.begun == 2
        await asyncio.sleep(2 + 4)
        assert worker.begun == 4
        assert await site.has("a")
        assert process.manager.ready["parts"]() is not None
        await asyncio.sleep(4)
        assert process.manager.ready["parts"]() is None, "it has run for as long as it had to wait"
        assert process.manager.alive["controllers"]() is None
        assert 'holdfast_crashes_total{part="component worker"} 3.0' in process.manager.metrics.render().decode()

    with caplog.at_level(logging.WARNING, logger="holdfast.runtime"):
        on_a_site(test)
    messages = [record for record in caplog.records if record.getMessage() in ("part crashed", "part gave up")]
    assert [record.__dict__["fields"]["crashes"] for record in messages] == [1, 2, 3]
    assert not any(record.exc_info for record in messages[1:]), "the same traceback is shown once"


def test_a_component_that_is_done_is_not_begun_again() -> None:
    async def test(site: Site) -> None:
        async def done(_: int) -> None:
            pass

        worker = Scripted(done)
        process = site.start(components=[worker])
        await asyncio.sleep(100)
        assert worker.begun == 1
        assert process.works

    on_a_site(test)


def test_a_defect_of_one_driver_takes_no_other_down_and_a_new_driver_goes_on() -> None:
    async def test(site: Site) -> None:
        defects = 1

        def broken(world: World, now: datetime) -> Decision:
            nonlocal defects
            if defects:
                defects -= 1
                raise Failure("Neither", "this is not how failures are raised, and no driver can tell what it means")
            return decide(world, now)

        copies = Controller(name="other", resource=CONFIG_MAPS, observe=observe, reads=(SECRETS,), decide=ignore)
        process = site.start(controllers=[secrets(decide=broken), copies])
        await process.manager.working.wait()
        before = process.manager.drivers
        await site.ask("a")
        await asyncio.sleep(0.5)
        assert not await site.has("a")
        await asyncio.sleep(1 + SETTLED)
        assert await site.has("a")
        after = process.manager.drivers
        assert [driver.controller.name for driver in after] == ["secrets", "other"]
        assert (after[0] is before[0], after[1] is before[1]) == (False, True)
        assert 'holdfast_crashes_total{part="controller secrets"} 1.0' in process.manager.metrics.render().decode()

    def ignore(world: World, now: datetime) -> Decision:
        return NOTHING

    on_a_site(test)


def test_two_of_one_name_are_refused() -> None:
    async def test(site: Site) -> None:
        with pytest.raises(ValueError, match="secrets stands twice"):
            site.start(controllers=[secrets(), secrets()])

    on_a_site(test)
