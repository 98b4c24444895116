"""Watches: committed events in order, none missed, none repeated, at no cost while nothing happens."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from holdfast.apiserver.storage.history import BATCH, WARM
from holdfast.apiserver.storage.store import (
    Ahead,
    Draft,
    Ended,
    Event,
    Expired,
    Overflow,
    Put,
    Remove,
    Store,
    Watch,
    Window,
)

PODS = "/pods"


def put(name: str, namespace: str = "default", *, resource: str = PODS) -> Put:
    return Put(resource, namespace, name, Draft.of({"metadata": {"name": name}}))


def run(play: Callable[[Store], Awaitable[None]], path: Path | None = None, **options: Any) -> None:
    async def whole() -> None:
        store = Store.open(str(path) if path else None, **options)
        try:
            await play(store)
        finally:
            await store.close()

    asyncio.run(whole())


def shown(events: list[Event]) -> list[str]:
    return [f"{event.type} {event.entry.namespace}/{event.entry.name} {event.rv}" for event in events]


def test_a_watch_gives_what_comes_as_it_comes() -> None:
    async def play(store: Store) -> None:
        watch = store.watch(PODS, since=store.revision)
        await store.write(put("a"))
        assert shown(await anext(watch)) == ["ADDED default/a 2"]
        taking = asyncio.create_task(watch.take())
        await asyncio.sleep(0)
        await store.write(put("a"), Remove(PODS, "default", "a"))
        modified, deleted = await taking
        assert shown([modified, deleted]) == ["MODIFIED default/a 3", "DELETED default/a 4"]
        assert modified.previous is not None
        assert (modified.previous.rv, deleted.previous) == (2, modified.entry)
        assert b'"resourceVersion":"4"' in deleted.entry.value

    run(play)


def test_a_watch_gives_only_its_resource_and_namespace() -> None:
    async def play(store: Store) -> None:
        everywhere = store.watch(PODS, since=1)
        there = store.watch(PODS, "there", since=1)
        await store.write(put("a", "here"), put("b", "there"), put("c", "there", resource="apps/sets"))
        assert shown(await everywhere.take()) == ["ADDED here/a 2", "ADDED there/b 3"]
        assert shown(await there.take()) == ["ADDED there/b 3"]
        assert await there.take(within=0) == []

    run(play)


def test_many_watches_among_many_writers_each_see_every_event_once_and_in_order(tmp_path: Path) -> None:
    choice = random.Random(1)
    total = 400

    async def follow(store: Store, since: int) -> None:
        watch = store.watch(PODS, since=since)
        seen = since
        while seen <= total:
            for event in await watch.take():
                assert event.rv == seen + 1
                seen = event.rv
        watch.close()

    async def write(store: Store, count: int) -> None:
        for _ in range(count):
            await store.write(put(f"pod-{choice.randrange(20)}"))

    async def play(store: Store) -> None:
        writers = [asyncio.create_task(write(store, total // 8)) for _ in range(8)]
        followers = []
        while not all(writer.done() for writer in writers):
            since = choice.randrange(1, store.revision + 1)
            followers.append(asyncio.create_task(follow(store, since)))
            await store.write()
        await asyncio.gather(*writers, *followers)
        assert len(followers) > 10

    run(play, tmp_path)


def test_a_watch_resumes_across_a_restart(tmp_path: Path) -> None:
    async def before(store: Store) -> None:
        await store.write(put("a"), put("b"))
        await store.write(Remove(PODS, "default", "a"))

    async def after(store: Store) -> None:
        watch = store.watch(PODS, since=2)
        await store.write(put("c"))
        assert shown(await watch.take()) == ["ADDED default/b 3", "DELETED default/a 4", "ADDED default/c 5"]

    run(before, tmp_path)
    run(after, tmp_path)


def test_versions_outside_the_history_are_refused() -> None:
    async def play(store: Store) -> None:
        await store.write(put("a"), put("b"), put("c"))
        await store.compact(keep=1)
        with pytest.raises(Expired, match="version 2 is too old: history begins after 3; list again") as expired:
            store.watch(PODS, since=2)
        assert (expired.value.asked, expired.value.compacted) == (2, 3)
        with pytest.raises(Ahead, match="version 5 was never reached here"):
            store.watch(PODS, since=5)
        assert shown(await store.watch(PODS, since=3).take()) == ["ADDED default/c 4"]

    run(play)


def test_a_watch_that_falls_behind_is_cut_and_others_go_on() -> None:
    async def play(store: Store) -> None:
        slow = store.watch(PODS, since=1)
        fast = store.watch(PODS, since=1)
        idle = store.watch(PODS, "elsewhere", since=1)
        for number in range(8):
            await store.write(put("a"))
            assert [event.rv for event in await fast.take()] == [number + 2]
        with pytest.raises(Overflow, match="list again"):
            await slow.take()
        with pytest.raises(Ended):
            await slow.take()
        with pytest.raises(Overflow):
            await anext(slow)
        assert await idle.take(within=0) == []
        assert idle.revision == store.revision

    run(play, window=Window(events=4))


@pytest.mark.parametrize("late", [False, True])
def test_a_watch_is_cut_by_the_first_event_that_it_can_no_longer_get(late: bool) -> None:
    async def play(store: Store) -> None:
        watch = store.watch(PODS, since=1)
        for _ in range(4 + late):
            await store.write(put("a"))
        if late:
            with pytest.raises(Overflow):
                await watch.take()
        else:
            assert [event.rv for event in await watch.take()] == [2, 3, 4, 5]

    run(play, window=Window(events=4))


def test_a_watch_far_behind_gets_its_events_in_pieces() -> None:
    async def play(store: Store) -> None:
        await store.write(*(put(f"pod-{number}") for number in range(BATCH + 10)))
        watch = store.watch(PODS, since=1)
        assert [len(await watch.take()) for _ in range(2)] == [BATCH, 10]

    run(play)


def test_a_bookmark_may_say_what_was_taken_and_what_did_not_concern_the_watch() -> None:
    async def play(store: Store) -> None:
        watch = store.watch(PODS, "here", since=1)
        await store.write(put("a", "there"), put("b", "there"))
        assert watch.revision == 3
        await store.write(put("c", "there"), put("d", "here"), put("e", "there"))
        assert watch.revision == 4
        assert shown(await watch.take()) == ["ADDED here/d 5"]
        assert watch.revision == 6

    run(play)


def test_a_closed_watch_ends_after_what_is_left() -> None:
    async def follow(watch: Watch) -> list[str]:
        return [line async for batch in watch for line in shown(batch)]

    async def main() -> None:
        store = Store.open(None)
        following = asyncio.create_task(follow(store.watch(PODS, since=1)))
        late = store.watch(PODS, since=1)
        await asyncio.sleep(0)
        await store.write(put("a"))
        await store.close()
        assert await following == ["ADDED default/a 2"]
        assert await follow(late) == ["ADDED default/a 2"]

    asyncio.run(main())


def test_a_reader_that_is_cancelled_loses_nothing() -> None:
    async def play(store: Store) -> None:
        watch = store.watch(PODS, since=1)
        taking = asyncio.create_task(watch.take())
        await asyncio.sleep(0)
        taking.cancel()
        await store.write(put("a"))
        with pytest.raises(asyncio.CancelledError):
            await taking
        assert shown(await watch.take()) == ["ADDED default/a 2"]

    run(play)


def test_an_event_keeps_its_encoded_forms_for_all_watches_while_it_is_new() -> None:
    async def play(store: Store) -> None:
        first, second = store.watch(PODS, since=1), store.watch(PODS, since=1)
        await store.write(put("a"))
        (event,) = await first.take()
        event.encoded["v1"] = b"line"
        (same,) = await second.take()
        assert same.encoded == {"v1": b"line"}
        await store.write(*(put("b") for _ in range(WARM)))
        assert same.encoded == {}

    run(play)
