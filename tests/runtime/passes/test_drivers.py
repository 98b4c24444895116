"""A controller run by the runtime on the real server: changes in, passes out, and what failures do."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import pytest

from holdfast.apiserver.server import Server
from holdfast.client.objects import Object
from holdfast.client.protocols import Event, Unreachable, Unsent
from holdfast.client.resources import CONFIG_MAPS, EVENTS, PODS, SECRETS, SERVICE_ACCOUNTS, Resource
from holdfast.kernel.children import Desired
from holdfast.kernel.outcomes import Again, Permanent, Retry
from holdfast.meta.errors import InternalError, Invalid, Timeout
from holdfast.meta.objects import Key
from holdfast.runtime.controllers import PAUSED, Controller, Signals, View, Watch
from holdfast.runtime.decisions import NOTHING, Create, Decision, Delete, Notice
from holdfast.runtime.manager import Manager, Settings
from holdfast.runtime.passes.failures import failure_of
from holdfast.testing.clusters import Cluster, connected, opened, play
from holdfast.testing.faults import Fault, Faulty, Lag
from holdfast.testing.loops import VirtualLoop, run


@dataclass(frozen=True)
class World:
    owner: Object
    copies: tuple[Object, ...]


Act = Callable[[World, Decision], Awaitable[Decision]]


def observe(view: View, key: Key) -> World | None:
    owner = view.get(CONFIG_MAPS, key)
    if owner is None or "copies" not in owner.wire().get("data", {}):
        return None
    return World(owner, view.owned(SECRETS, owner.uid))


def secret(name: str) -> dict[str, Any]:
    metadata = {"name": name, "namespace": "default"}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": {}}


def copies(world: World, now: datetime) -> Decision:
    """As many Secrets as the ConfigMap says."""
    wanted = int(world.owner.wire()["data"]["copies"])
    return Decision(children=tuple(Desired(secret(f"{world.owner.key.name}-{n}")) for n in range(wanted)))


def controller(**changes: Any) -> Controller[World]:
    given = {"name": "copies", "resource": CONFIG_MAPS, "observe": observe, "decide": copies, "owns": (SECRETS,)}
    return Controller(**(given | changes))


def config(name: str = "a", **data: str) -> dict[str, Any]:
    return {"metadata": {"name": name}, "data": data}


async def names(cluster: Cluster, resource: Resource) -> list[str]:
    return [obj["metadata"]["name"] for obj in await cluster.list(resource)]


def test_children_follow_their_owner_and_come_back_when_they_are_deleted() -> None:
    async def story(cluster: Cluster) -> None:
        await cluster.create(CONFIG_MAPS, config(copies="2"))
        await cluster.settle()
        assert await names(cluster, SECRETS) == ["a-0", "a-1"]
        await cluster.delete(SECRETS, "a-1")
        await cluster.settle()
        assert await names(cluster, SECRETS) == ["a-0", "a-1"]
        await cluster.patch(CONFIG_MAPS, "a", {"data": {"copies": "1"}})
        await cluster.settle()
        assert await names(cluster, SECRETS) == ["a-0"]

    play(story, controllers=[controller()])


def test_what_was_there_before_the_start_is_looked_at() -> None:
    async def story(cluster: Cluster) -> None:
        await cluster.create(CONFIG_MAPS, config(copies="1"))
        await cluster.restart()
        await cluster.settle()
        assert await names(cluster, SECRETS) == ["a-0"]

    play(story, controllers=[controller()])


def one_without_a_name(world: World, now: datetime) -> Decision:
    """A Secret whose name the server chooses: a second one would be made, if the first had not been seen."""
    if world.copies:
        return NOTHING
    owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": world.owner.key.name, "uid": world.owner.uid}
    metadata = {"generateName": "x-", "namespace": "default", "ownerReferences": [owner | {"controller": True}]}
    return Decision(
        writes=(Create(because="none there", resource=SECRETS, manifest=secret("x") | {"metadata": metadata}),)
    )


def test_nothing_is_decided_before_the_pass_sees_what_it_wrote() -> None:
    seen: list[int] = []

    def decide(world: World, now: datetime) -> Decision:
        seen.append(len(world.copies))
        return one_without_a_name(world, now)

    async def story(cluster: Cluster) -> None:
        await cluster.create(CONFIG_MAPS, config(copies="1"))
        for n in range(20):
            await cluster.patch(CONFIG_MAPS, "a", {"data": {"touched": str(n)}})
        await cluster.settle()
        assert len(await names(cluster, SECRETS)) == 1
        assert seen.count(0) == 1

    play(story, controllers=[controller(decide=decide)])


async def crash(world: World, decision: Decision) -> Decision:
    raise ZeroDivisionError


async def hang(world: World, decision: Decision) -> Decision:
    await asyncio.sleep(3600)
    return decision


@pytest.mark.parametrize("act", [crash, hang])
def test_a_pass_that_broke_off_is_held_to_what_it_wrote(act: Act) -> None:
    async def played(loop: VirtualLoop) -> None:
        broken = controller(decide=one_without_a_name, act=act, timeout=timedelta(milliseconds=100))

        def employ(server: Server) -> Manager:
            client = Faulty(connected(server), Lag())
            return Manager(client, controllers=[broken], now=loop.now, settings=Settings(events=False), seed=1)

        async with opened(loop, employ=employ) as cluster:
            await cluster.create(CONFIG_MAPS, config(copies="1"))
            await cluster.advance(30)
            assert len(await names(cluster, SECRETS)) == 1

    run(played)


class Unheard(Fault):
    """The first write of a Secret is committed and not answered; changes are delivered 5 s late.

    `away` is for how long no list is answered after that.
    """

    def __init__(self, error: Exception | None, *, away: float = 0.0) -> None:
        super().__init__()
        self._error = error
        self._away = away
        self._lost = False
        self.back = 0.0

    async def after_write(self, resource: Resource) -> None:
        if resource == SECRETS and not self._lost:
            self._lost = True
            self.back = asyncio.get_running_loop().time() + self._away
            if self._error is not None:
                raise self._error
            await asyncio.sleep(3600)

    async def alive(self) -> None:
        if asyncio.get_running_loop().time() < self.back:
            raise Unreachable("away")

    async def changed(self, resource: Resource, events: AsyncIterator[Event]) -> AsyncIterator[Event]:
        async for event in events:
            if resource == SECRETS:
                await asyncio.sleep(5)
            yield event


LOST = {
    "connection broken": Unreachable("connection reset"),
    "proxy timeout": Timeout("upstream request timeout"),
    "server error": InternalError("etcdserver: request timed out"),
    "pass cut off": None,
}


def unheard(decide: Any, fault: Fault, story: Callable[[Cluster], Awaitable[None]]) -> None:
    """Play a story with a controller that has a fault; a pass may take 100 ms."""

    async def played(loop: VirtualLoop) -> None:
        of = controller(decide=decide, timeout=timedelta(milliseconds=100))

        def employ(server: Server) -> Manager:
            client = Faulty(connected(server), fault)
            return Manager(client, controllers=[of], now=loop.now, settings=Settings(events=False), seed=1)

        async with opened(loop, employ=employ) as cluster:
            await story(cluster)

    run(played)


@pytest.mark.parametrize("error", LOST.values(), ids=LOST)
def test_a_write_whose_reply_is_lost_is_not_repeated_before_the_stores_show_what_came_of_it(
    error: Exception | None,
) -> None:
    async def story(cluster: Cluster) -> None:
        await cluster.create(CONFIG_MAPS, config(copies="1"))
        for n in range(20):
            await cluster.advance(1)
            await cluster.patch(CONFIG_MAPS, "a", {"data": {"touched": str(n)}})
        assert len(await names(cluster, SECRETS)) == 1

    unheard(one_without_a_name, Unheard(error), story)


@pytest.mark.parametrize("error", LOST.values(), ids=LOST)
def test_a_deletion_whose_reply_is_lost_counts_when_the_next_one_is_decided(error: Exception | None) -> None:
    """Of three, two must stay; which one goes depends on what the owner says now."""

    def decide(world: World, now: datetime) -> Decision:
        if len(world.copies) < 3:
            return NOTHING
        goes = world.copies[int(world.owner.wire()["data"]["goes"])]
        return Decision(writes=(Delete(because="one too many", resource=SECRETS, key=goes.key, uid=goes.uid),))

    async def story(cluster: Cluster) -> None:
        owner = await cluster.create(CONFIG_MAPS, config(copies="3", goes="0"))
        reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": "a", "uid": owner["metadata"]["uid"]}
        for name in ("x", "y", "z"):
            made = secret(name)
            made["metadata"]["ownerReferences"] = [reference | {"controller": True}]
            await cluster.create(SECRETS, made)
        for n in range(20):
            await cluster.advance(1)
            await cluster.patch(CONFIG_MAPS, "a", {"data": {"goes": str(n % 3)}})
        assert len(await names(cluster, SECRETS)) == 2

    unheard(decide, Unheard(error), story)


def test_while_the_server_is_away_the_outcome_stays_unknown_and_then_the_key_runs_again() -> None:
    async def story(cluster: Cluster) -> None:
        await cluster.create(CONFIG_MAPS, config(copies="1"))
        await cluster.advance(40)
        (first,) = await names(cluster, SECRETS)
        await cluster.delete(SECRETS, first)
        await cluster.advance(60)
        assert len(await names(cluster, SECRETS)) == 1, "the key is not held for ever"

    unheard(one_without_a_name, Unheard(Unreachable("connection reset"), away=30), story)


def test_a_write_that_was_never_sent_holds_nothing() -> None:
    async def story(cluster: Cluster) -> None:
        await cluster.create(CONFIG_MAPS, config(copies="1"))
        await cluster.advance(0.9)
        assert len(await names(cluster, SECRETS)) == 1

    class Refused(Fault):
        tried = False

        async def before_write(self, resource: Resource) -> None:
            if not self.tried:
                self.tried = True
                raise Unsent("connection refused")

    unheard(one_without_a_name, Refused(), story)


@pytest.mark.parametrize("matters", [None, lambda old, new: False])
def test_a_paused_object_is_left_alone_until_it_is_resumed(matters: Any) -> None:
    async def story(cluster: Cluster) -> None:
        await cluster.create(
            CONFIG_MAPS, {"metadata": {"name": "a", "annotations": {PAUSED: "true"}}, "data": {"copies": "1"}}
        )
        await cluster.settle()
        assert await names(cluster, SECRETS) == []
        await cluster.patch(CONFIG_MAPS, "a", {"metadata": {"annotations": {PAUSED: None}}})
        await cluster.settle()
        assert await names(cluster, SECRETS) == ["a-0"]

    play(story, controllers=[controller(matters=matters)])


def test_a_finalizer_is_there_before_anything_is_done_and_goes_when_the_cleanup_is_done() -> None:
    left = {"work": 2}

    def cleanup(world: World, now: datetime) -> Decision:
        left["work"] -= 1
        if left["work"]:
            return Decision(outcome=Again(timedelta(seconds=5), "the other side is slow"))
        return Decision(finalized=True)

    async def story(cluster: Cluster) -> None:
        await cluster.create(CONFIG_MAPS, config(copies="1"))
        await cluster.settle()
        held = await cluster.get(CONFIG_MAPS, "a")
        assert held["metadata"]["finalizers"] == ["test/copies"]
        assert await names(cluster, SECRETS) == ["a-0"]
        await cluster.delete(CONFIG_MAPS, "a")
        await cluster.settle()
        assert await cluster.find(CONFIG_MAPS, "a") is not None
        await cluster.advance(5)
        assert await cluster.find(CONFIG_MAPS, "a") is None

    play(story, controllers=[controller(finalizer="test/copies", cleanup=cleanup)])


@pytest.mark.parametrize(
    ("failure", "passes"),
    [
        (Retry("Away", "the other side is away"), 5),
        (Retry("Away", "the other side is away", after=timedelta(seconds=10)), 2),
        (Permanent("Wrong", "change it"), 1),
        (ZeroDivisionError("a defect"), 5),
    ],
)
def test_failures_are_tried_again_as_their_type_says(failure: Exception, passes: int) -> None:
    tried: list[float] = []

    async def story(cluster: Cluster) -> None:
        def decide(world: World, now: datetime) -> Decision:
            tried.append(cluster.loop.time())
            raise failure

        nonlocal chosen
        chosen = decide
        await cluster.create(CONFIG_MAPS, config(copies="1"))
        # 50 ms, doubling, with up to a tenth less.
        await cluster.advance(1.2)
        if isinstance(failure, Retry) and failure.after:
            await cluster.advance(10)
        assert len(tried) == passes

    chosen: Any = None
    play(story, controllers=[controller(decide=lambda world, now: chosen(world, now))])


@pytest.mark.parametrize(
    ("failure", "level"),
    [
        (Retry("Away", "the other side is away"), "WARNING"),
        (ZeroDivisionError("a defect"), "ERROR"),
    ],
)
def test_what_fails_in_the_same_way_is_logged_once(
    failure: Exception, level: str, caplog: pytest.LogCaptureFixture
) -> None:
    broken = True

    def decide(world: World, now: datetime) -> Decision:
        if broken:
            raise failure
        return NOTHING

    async def story(cluster: Cluster) -> None:
        nonlocal broken
        await cluster.create(CONFIG_MAPS, config(copies="1"))
        await cluster.advance(60)
        assert [record.levelname for record in caplog.records] == [level]
        broken = False
        await cluster.advance(60)
        broken = True
        await cluster.patch(CONFIG_MAPS, "a", {"data": {"copies": "2"}})
        await cluster.advance(60)
        assert len(caplog.records) == 2, "after it went well, a failure is news again"

    play(story, controllers=[controller(decide=decide)])


class Absence(Fault):
    """The server does not answer writes for a while."""

    away = False

    async def before_write(self, resource: Resource) -> None:
        if self.away:
            raise Unreachable("no answer came")


def test_a_server_that_is_away_is_logged_once_and_asked_again_soon(caplog: pytest.LogCaptureFixture) -> None:
    async def played(loop: VirtualLoop) -> None:
        absence = Absence()

        def employ(server: Server) -> Manager:
            client = Faulty(connected(server), absence)
            return Manager(client, controllers=[controller()], now=loop.now, settings=Settings(events=False), seed=1)

        async with opened(loop, employ=employ) as cluster:
            absence.away = True
            for number in range(20):
                await cluster.create(CONFIG_MAPS, config(f"c{number}", copies="1"))
            await cluster.advance(3600)
            assert await names(cluster, SECRETS) == []
            absence.away = False
            await cluster.advance(15)
            assert len(await names(cluster, SECRETS)) == 20

    run(played)
    assert [record.__dict__["fields"]["reason"] for record in caplog.records] == ["Unreachable"]


def test_a_view_that_stays_behind_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    def decide(world: World, now: datetime) -> Decision:
        return Decision(writes=(Create(because="not seen", resource=SERVICE_ACCOUNTS, manifest=account),))

    account = {"metadata": {"name": "there", "namespace": "default"}}

    async def story(cluster: Cluster) -> None:
        await cluster.create(SERVICE_ACCOUNTS, account)
        await cluster.create(CONFIG_MAPS, config(copies="1"))
        await cluster.advance(1)
        assert not caplog.records, "it happens"
        await cluster.advance(120)
        (record,) = caplog.records
        assert getattr(record, "fields", {})["reason"] == "AlreadyExists"

    play(story, controllers=[controller(decide=decide)])


def test_a_permanent_failure_is_reported_and_tried_again_after_a_change() -> None:
    def decide(world: World, now: datetime) -> Decision:
        if world.owner.wire()["data"]["copies"] == "many":
            raise Permanent("NotANumber", "data.copies: write a number")
        return copies(world, now)

    async def story(cluster: Cluster) -> None:
        await cluster.create(CONFIG_MAPS, config(copies="many"))
        await cluster.settle()
        (event,) = await cluster.list(EVENTS)
        assert (event["type"], event["reason"], event["message"]) == (
            "Warning",
            "NotANumber",
            "data.copies: write a number",
        )
        await cluster.patch(CONFIG_MAPS, "a", {"data": {"copies": "1"}})
        await cluster.settle()
        assert await names(cluster, SECRETS) == ["a-0"]

    play(story, controllers=[controller(decide=decide)])


def test_what_the_api_refuses_is_tried_again_after_ten_minutes_since_the_api_may_change() -> None:
    passes = 0

    def decide(world: World, now: datetime) -> Decision:
        nonlocal passes
        passes += 1
        if passes == 1:
            raise failure_of(Invalid.of("secrets", "a-0", problems=[]), "creating Secret default/a-0")
        return copies(world, now)

    async def story(cluster: Cluster) -> None:
        await cluster.create(CONFIG_MAPS, config(copies="1"))
        await cluster.advance(590)
        assert (passes, await names(cluster, SECRETS)) == (1, [])
        await cluster.advance(20)
        assert await names(cluster, SECRETS) == ["a-0"]

    play(story, controllers=[controller(decide=decide)])


def test_a_pass_that_hangs_is_cut_off_and_others_go_on_meanwhile() -> None:
    async def hang(world: World) -> World:
        if world.owner.key.name == "stuck":
            await asyncio.sleep(3600)
        return world

    async def story(cluster: Cluster) -> None:
        await cluster.create(CONFIG_MAPS, config("stuck", copies="1"))
        await cluster.create(CONFIG_MAPS, config("other", copies="1"))
        await cluster.advance(1)
        assert await names(cluster, SECRETS) == ["other-0"]
        await cluster.advance(60)
        text = cluster.manager.metrics.render().decode()
        assert 'holdfast_reconcile_total{controller="copies",result="timeout"} 1.0' in text

    play(story, controllers=[controller(survey=hang)])


def test_a_watch_brings_the_keys_it_says_for_what_was_and_what_is() -> None:
    def named(obj: Object, view: View) -> list[Key]:
        target = obj.meta.annotations.get("for")
        return [Key(obj.meta.namespace, target)] if target else []

    looked: list[str] = []

    def decide(world: World, now: datetime) -> Decision:
        looked.append(world.owner.key.name)
        return NOTHING

    async def story(cluster: Cluster) -> None:
        for name in ("a", "b"):
            await cluster.create(CONFIG_MAPS, config(name, copies="0"))
        await cluster.create(SERVICE_ACCOUNTS, {"metadata": {"name": "s", "annotations": {"for": "a"}}})
        await cluster.settle()
        looked.clear()
        await cluster.patch(SERVICE_ACCOUNTS, "s", {"metadata": {"annotations": {"for": "b"}}})
        await cluster.settle()
        assert sorted(looked) == ["a", "b"]

    play(story, controllers=[controller(decide=decide, watches=(Watch(resource=SERVICE_ACCOUNTS, keys=named),))])


def test_a_status_is_written_once_and_notices_are_recorded_after_it() -> None:
    def observe_pod(view: View, key: Key) -> Object | None:
        return view.get(PODS, key)

    def decide(pod: Object, now: datetime) -> Decision:
        return Decision(
            status={"phase": "Running", "message": "seen"}, notices=(Notice(reason="Seen", message="It was seen."),)
        )

    async def story(cluster: Cluster) -> None:
        spec = {"containers": [{"name": "c", "image": "i"}]}
        await cluster.create(PODS, {"metadata": {"name": "p"}, "spec": spec})
        await cluster.settle()
        pod = await cluster.get(PODS, "p")
        assert pod["status"] == {"phase": "Running", "message": "seen"}
        text = cluster.manager.metrics.render().decode()
        assert 'holdfast_writes_total{controller="seen",verb="patch"} 1.0' in text
        assert [event["reason"] for event in await cluster.list(EVENTS)] == ["Seen"]

    seen = Controller(name="seen", resource=PODS, observe=observe_pod, decide=decide)
    play(story, controllers=[seen])


def test_while_a_child_is_refused_what_is_missing_is_created_and_nothing_is_deleted() -> None:
    def decide(world: World, now: datetime) -> Decision:
        (extra,) = world.copies
        wrong = secret("wrong") | {"data": {"not/a/key": ""}}
        account = {"metadata": {"name": "made", "namespace": "default"}}
        late = {"metadata": {"name": "late", "namespace": "default"}}
        return Decision(
            children=(Desired(wrong),),
            writes=(
                Create(because="missing", resource=SERVICE_ACCOUNTS, manifest=account),
                Delete(because="replaced", resource=SECRETS, key=extra.key, uid=extra.uid),
                Create(because="after the deletion", resource=SERVICE_ACCOUNTS, manifest=late, wave=1),
            ),
        )

    async def story(cluster: Cluster) -> None:
        owner = await cluster.create(CONFIG_MAPS, config())
        reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": "a", "uid": owner["metadata"]["uid"]}
        extra = secret("extra")
        extra["metadata"]["ownerReferences"] = [reference | {"controller": True}]
        await cluster.create(SECRETS, extra)
        await cluster.patch(CONFIG_MAPS, "a", {"data": {"copies": "1"}})
        await cluster.settle()
        assert await names(cluster, SECRETS) == ["extra"]
        assert await names(cluster, SERVICE_ACCOUNTS) == ["made"]
        messages = [event["message"] for event in await cluster.list(EVENTS) if event["reason"] == "Invalid"]
        assert any(message.startswith("creating Secret default/wrong: ") for message in messages)

    play(story, controllers=[controller(decide=decide)])


def test_a_signal_from_outside_the_api_brings_a_key() -> None:
    passes: list[Key] = []
    signals = Signals()

    def decide(world: World, now: datetime) -> Decision:
        passes.append(world.owner.key)
        return NOTHING

    async def story(cluster: Cluster) -> None:
        await cluster.create(CONFIG_MAPS, config(copies="0"))
        await cluster.settle()
        before = len(passes)
        signals.send(Key("default", "a"))
        await cluster.settle()
        assert passes[before:] == [Key("default", "a")]

    play(story, controllers=[controller(decide=decide, signals=signals)])


def test_a_watch_passes_over_changes_that_do_not_matter() -> None:
    passes: list[Key] = []

    def decide(world: World, now: datetime) -> Decision:
        passes.append(world.owner.key)
        return NOTHING

    def matters(old: Object, new: Object) -> bool:
        return old.meta.labels != new.meta.labels

    watch = Watch(resource=SERVICE_ACCOUNTS, keys=lambda obj, view: (Key("default", "a"),), matters=matters)

    async def story(cluster: Cluster) -> None:
        await cluster.create(CONFIG_MAPS, config(copies="0"))
        await cluster.create(SERVICE_ACCOUNTS, {"metadata": {"name": "x"}})
        await cluster.settle()
        before = len(passes)
        await cluster.patch(SERVICE_ACCOUNTS, "x", {"metadata": {"annotations": {"of": "no interest"}}})
        await cluster.settle()
        assert len(passes) == before
        await cluster.patch(SERVICE_ACCOUNTS, "x", {"metadata": {"labels": {"of": "interest"}}})
        await cluster.settle()
        assert len(passes) == before + 1
        await cluster.delete(SERVICE_ACCOUNTS, "x")
        await cluster.settle()
        assert len(passes) == before + 2

    play(story, controllers=[controller(decide=decide, watches=(watch,))])


def test_a_controller_passes_over_changes_of_its_own_objects_that_do_not_matter() -> None:
    passes: list[Key] = []

    def decide(world: World, now: datetime) -> Decision:
        passes.append(world.owner.key)
        return NOTHING

    def matters(old: Object, new: Object) -> bool:
        return old.meta.labels != new.meta.labels

    async def story(cluster: Cluster) -> None:
        await cluster.create(CONFIG_MAPS, config(copies="0"))
        await cluster.settle()
        before = len(passes)
        await cluster.patch(CONFIG_MAPS, "a", {"metadata": {"annotations": {"of": "no interest"}}})
        await cluster.settle()
        assert len(passes) == before
        await cluster.patch(CONFIG_MAPS, "a", {"metadata": {"labels": {"of": "interest"}}})
        await cluster.settle()
        assert len(passes) == before + 1

    play(story, controllers=[controller(decide=decide, matters=matters)])


def test_a_watch_may_let_many_changes_cost_one_pass() -> None:
    passes: list[Key] = []

    def decide(world: World, now: datetime) -> Decision:
        passes.append(world.owner.key)
        return NOTHING

    def keys(obj: Object, view: View) -> tuple[Key, ...]:
        return (Key("default", "a"),)

    watch = Watch(resource=SERVICE_ACCOUNTS, keys=keys, within=timedelta(seconds=5))

    async def story(cluster: Cluster) -> None:
        await cluster.create(CONFIG_MAPS, config(copies="0"))
        await cluster.settle()
        before = len(passes)
        for number in range(10):
            await cluster.create(SERVICE_ACCOUNTS, {"metadata": {"name": f"x{number}"}})
            await cluster.settle()
        assert len(passes) == before
        await cluster.advance(5)
        assert len(passes) == before + 1
        await cluster.patch(CONFIG_MAPS, "a", {"data": {"more": "1"}})
        await cluster.settle()
        assert len(passes) == before + 2

    play(story, controllers=[controller(decide=decide, watches=(watch,))])


def test_changes_of_owned_objects_that_are_not_urgent_cost_one_pass_soon() -> None:
    passes: list[str] = []

    def decide(world: World, now: datetime) -> Decision:
        passes.append(world.owner.version)
        return copies(world, now)

    def urgent(old: Object | None, new: Object | None, view: View) -> bool:
        return old is None or new is None or old.meta.labels != new.meta.labels

    async def story(cluster: Cluster) -> None:
        await cluster.create(CONFIG_MAPS, config(copies="2"))
        await cluster.settle()
        await cluster.advance(2)
        before = len(passes)
        for number in range(5):
            await cluster.patch(SECRETS, "a-0", {"metadata": {"annotations": {"number": str(number)}}})
            await cluster.settle()
        assert len(passes) == before
        await cluster.advance(1)
        assert len(passes) == before + 1
        await cluster.patch(SECRETS, "a-0", {"metadata": {"annotations": {"number": "6"}}})
        await cluster.patch(SECRETS, "a-0", {"metadata": {"labels": {"urgent": "yes"}}})
        await cluster.settle()
        assert len(passes) == before + 2
        await cluster.advance(5)
        assert len(passes) == before + 2
        await cluster.delete(SECRETS, "a-1")
        await cluster.settle()
        assert await names(cluster, SECRETS) == ["a-0", "a-1"]

    play(story, controllers=[controller(decide=decide, urgent=urgent)])


def test_objects_whose_owner_is_gone_bring_no_pass() -> None:
    looked: list[Key] = []

    def seen(view: View, key: Key) -> World | None:
        looked.append(key)
        return observe(view, key)

    async def story(cluster: Cluster) -> None:
        await cluster.create(CONFIG_MAPS, config(copies="0"))
        await cluster.settle()
        owner = await cluster.get(CONFIG_MAPS, "a")
        reference = {"apiVersion": "v1", "kind": "ConfigMap", "controller": True, "uid": owner["metadata"]["uid"]}
        await cluster.delete(CONFIG_MAPS, "a")
        await cluster.settle()
        looked.clear()
        child = secret("left")
        child["metadata"]["ownerReferences"] = [{**reference, "name": "a"}]
        await cluster.create(SECRETS, child)
        await cluster.settle()
        assert looked == []

    play(story, controllers=[controller(observe=seen)])
