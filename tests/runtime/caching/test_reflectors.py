"""Reflectors: whatever happens to the connection, the store ends up like the server, and every deletion is notified."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.runtime.sources import CUT, FakeSource

from holdfast.client.objects import Object
from holdfast.client.resources import PODS
from holdfast.meta.errors import Expired, Forbidden, InternalError, NotFound, ServiceUnavailable
from holdfast.meta.objects import Key
from holdfast.runtime.caching.reflectors import SILENCE, Reflector
from holdfast.runtime.caching.stores import Store, Writer
from holdfast.testing.loops import VirtualLoop, run


@dataclass
class Replay:
    """The objects as a listener knows them from its calls."""

    known: dict[Key, Object] = field(default_factory=dict)
    added: set[str] = field(default_factory=set)
    removed: set[str] = field(default_factory=set)

    def __call__(self, old: Object | None, new: Object | None) -> None:
        if old is not None:
            assert self.known.pop(old.key) is old, "the old object is the one of the last call"
        if new is not None:
            assert new.key not in self.known, "a new object was not there"
            assert old is None or old.uid == new.uid, "another object under the same name makes two calls"
            self.known[new.key] = new
            self.added.add(new.uid)
        elif old is not None:
            self.removed.add(old.uid)


@dataclass
class Story:
    """A server, a store that follows it, and what was seen of both."""

    loop: VirtualLoop
    source: FakeSource
    store: Store
    replay: Replay
    reflector: Reflector
    restarts: Counter[str]
    lists: list[float]

    async def settle(self, seconds: float = 0.0) -> None:
        """Let time pass, and all tasks run."""
        await asyncio.sleep(seconds)
        for _ in range(50):
            await asyncio.sleep(0)

    def same(self) -> bool:
        held = {each.key: each.version for each in self.store.list()}
        return held == {key: each.version for key, each in self.source.objects.items()}


def tell(story: Callable[[Story], Awaitable[None]], *, collects: bool = True, seed: int = 1) -> None:
    async def main(loop: VirtualLoop) -> None:
        source, store, replay = FakeSource(collects=collects), Store(PODS), Replay()
        restarts: Counter[str] = Counter()
        lists: list[float] = []
        store.subscribe(replay)
        reflector = Reflector(
            source,
            PODS,
            writer=Writer(store),
            random=Random(seed).random,
            synced=lambda: lists.append(loop.time()),
            restarted=lambda resource, reason: restarts.update([reason]),
        )
        task = loop.create_task(reflector.run())
        try:
            await story(Story(loop, source, store, replay, reflector, restarts, lists))
        finally:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
        assert source.open == 0, "a stream was left open"

    run(main)


@pytest.mark.parametrize("collects", [True, False], ids=["streaming lists", "plain lists"])
def test_a_store_follows_the_server(collects: bool) -> None:
    async def story(it: Story) -> None:
        it.source.put("a")
        await it.settle()
        assert it.lists == [0.0]
        it.source.put("b")
        it.source.put("a")
        it.source.delete("b")
        await it.settle()
        assert it.same()
        assert it.store.version == it.source.version
        assert it.source.asked == (["collect"] if collects else ["collect", "list", "watch 2"])

    tell(story, collects=collects)


@pytest.mark.parametrize("collects", [True, False], ids=["streaming lists", "plain lists"])
def test_a_list_that_is_older_than_what_was_seen_is_refused_until_the_server_insists(collects: bool) -> None:
    async def story(it: Story) -> None:
        for name in ("a", "b", "c"):
            it.source.put(name)
        it.source.delete("c")
        await it.settle()
        past = it.source.objects.copy()
        it.source.delete("b")
        await it.settle()
        # Another replica of the server answers, which has not heard of the last deletion.
        now, it.source.objects, it.source.version = it.source.version, past, it.source.version - 1
        it.source.compact()
        it.source.end_streams(Expired.of(1, 2))
        await it.settle(0.2)
        assert it.restarts["outdated"] == 1
        assert [each.key.name for each in it.store.list()] == ["a"], "what is gone does not come back"
        assert it.store.version == now
        await it.settle(30)
        assert it.restarts["outdated"] == 4
        assert it.same(), "the server was restored from a backup"

    tell(story, collects=collects)


def test_a_server_without_streaming_lists_is_asked_for_one_only_once() -> None:
    async def story(it: Story) -> None:
        await it.settle()
        it.source.put("a")
        it.source.compact()
        it.source.end_streams(CUT)
        await it.settle(60)
        assert it.source.asked[:2] == ["collect", "list"]
        assert it.source.asked.count("collect") == 1
        assert it.source.asked.count("list") == 2
        assert it.same()

    tell(story, collects=False)


def test_a_stream_that_ends_goes_on_from_the_last_version_without_another_list() -> None:
    async def story(it: Story) -> None:
        it.source.put("a")
        await it.settle()
        it.source.version = 40
        it.source.bookmark()
        await it.settle(50)
        it.source.end_streams()
        it.source.put("b")
        await it.settle()
        assert it.source.asked == ["collect", "watch 40"]
        assert it.restarts == Counter(ended=1)
        assert len(it.lists) == 1
        assert it.same()

    tell(story)


def test_deletions_behind_a_forgotten_version_are_notified() -> None:
    async def story(it: Story) -> None:
        gone, kept, remade = it.source.put("gone"), it.source.put("kept"), it.source.put("remade")
        await it.settle()
        it.source.end_streams(CUT)
        it.source.delete("gone")
        it.source.delete("remade")
        it.source.put("remade")
        it.source.compact()
        await it.settle(60)
        assert it.restarts["expired"] == 1
        assert it.same()
        assert it.replay.removed == {gone.uid, remade.uid}
        assert kept.uid in it.replay.added
        assert it.replay.known == {each.key: each for each in it.store.list()}

    tell(story)


def test_an_error_event_that_says_expired_lists_again() -> None:
    async def story(it: Story) -> None:
        it.source.put("a")
        await it.settle()
        it.source.delete("a")
        it.source.end_streams(Expired.of(2, 3))
        await it.settle()
        assert it.source.asked == ["collect", "collect"]
        assert it.replay.known == {}

    tell(story)


def test_silence_is_the_end_of_a_stream_and_bookmarks_are_not_silence() -> None:
    async def story(it: Story) -> None:
        await it.settle()
        for _ in range(10):
            await it.settle(SILENCE - 10)
            it.source.bookmark()
        await it.settle()
        assert it.restarts == Counter()
        await it.settle(SILENCE + 10)
        assert it.restarts == Counter(silent=1)
        assert it.source.asked == ["collect", "watch 1"]

    tell(story)


def test_a_kind_that_is_not_there_yet_is_asked_for_slowly_and_found_in_the_end(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO, "holdfast.runtime")

    async def story(it: Story) -> None:
        it.source.refusals = [NotFound("the server could not find the requested resource")] * 20
        await it.settle(30)
        assert it.reflector.trouble == "missing: the server could not find the requested resource"
        assert 2 <= len(it.source.asked) < 8
        assert it.lists == []
        it.source.refusals.clear()
        it.source.put("a")
        await it.settle(60)
        assert it.reflector.trouble == ""
        assert it.same()

    tell(story)
    assert caplog.messages == ["watch in trouble", "watch recovered"]


def test_a_watch_that_is_forbidden_keeps_what_was_listed_and_says_so() -> None:
    async def story(it: Story) -> None:
        it.source.put("a")
        await it.settle()
        it.source.refusals = [Forbidden("pods is forbidden: no rule for watch")] * 100
        it.source.end_streams()
        await it.settle(300)
        assert it.reflector.trouble == "forbidden: pods is forbidden: no rule for watch"
        assert len(it.store) == 1
        assert it.restarts["forbidden"] < 15

    tell(story)


def test_a_defect_in_what_came_begins_the_one_watch_again(caplog: pytest.LogCaptureFixture) -> None:
    async def story(it: Story) -> None:
        await it.settle()
        it.source.end_streams(ZeroDivisionError("a defect"))
        it.source.put("a")
        await it.settle(5)
        assert it.restarts["broken"] == 1
        assert it.same()

    tell(story)
    assert "watch broke" in caplog.messages


def test_a_list_and_a_watch_that_fail_for_ever_are_no_hot_loop() -> None:
    async def story(it: Story) -> None:
        it.source.refusals = [InternalError("ouch")] * 10_000
        await it.settle(3600)
        assert 100 < len(it.source.asked) < 300

    tell(story)


def test_a_stream_that_breaks_is_resumed_without_a_word(caplog: pytest.LogCaptureFixture) -> None:
    async def story(it: Story) -> None:
        await it.settle()
        it.source.end_streams(CUT)
        it.source.put("a")
        await it.settle()
        assert it.same()

    with caplog.at_level(logging.INFO, logger="holdfast.runtime"):
        tell(story)
    assert not caplog.records


def test_the_same_defect_is_told_once(caplog: pytest.LogCaptureFixture) -> None:
    async def story(it: Story) -> None:
        it.source.refusals += [KeyError("oops")] * 20
        await it.settle(300)

    tell(story)
    assert [record.message for record in caplog.records] == ["watch broke"]


def test_a_long_stream_leaves_room_for_others() -> None:
    async def story(it: Story) -> None:
        await it.settle()
        for i in range(1000):
            it.source.put(f"p{i % 7}")
        turns = 0
        while it.store.version < it.source.version:
            await asyncio.sleep(0)
            turns += 1
        assert turns > 5

    tell(story)


# --- whatever happens

DISTURBANCES: dict[str, Callable[[Story], Any]] = {
    "end": lambda it: it.source.end_streams(),
    "cut": lambda it: it.source.end_streams(CUT),
    "expire": lambda it: it.source.end_streams(Expired.of(1, 2)),
    "forget": lambda it: it.source.compact(),
    "forget and cut": lambda it: (it.source.compact(), it.source.end_streams(CUT)),
    "refuse": lambda it: it.source.refusals.append(ServiceUnavailable("starting")),
    "be away": lambda it: (it.source.refusals.extend([CUT] * 3), it.source.end_streams(CUT)),
    "bookmark": lambda it: it.source.bookmark(),
}

happenings = st.one_of(
    st.tuples(st.just("put"), st.sampled_from("abc")),
    st.tuples(st.just("delete"), st.sampled_from("abc")),
    st.tuples(st.just("disturb"), st.sampled_from(sorted(DISTURBANCES))),
    st.tuples(st.just("pass"), st.sampled_from([0.0, 0.0, 0.1, 1.0, 40.0])),
)


@settings(max_examples=300, deadline=None)
@given(history=st.lists(happenings, max_size=40), collects=st.booleans(), seed=st.integers(0, 3))
def test_whatever_happens_the_store_becomes_like_the_server_and_every_deletion_is_notified(
    history: list[tuple[str, Any]], collects: bool, seed: int
) -> None:
    async def story(it: Story) -> None:
        seen: list[str] = []
        written: list[str] = []
        for what, which in history:
            match what:
                case "put":
                    made = it.source.put(which)
                    written.append(made.version)
                    it.store.when_seen(made.key, made.version, lambda version=made.version: seen.append(version))
                case "delete":
                    it.source.delete(which)
                case "disturb":
                    DISTURBANCES[which](it)
                case _:
                    await (it.settle(which) if which else asyncio.sleep(0))
        it.source.refusals.clear()
        await it.settle(600)
        assert it.same()
        assert it.replay.known == {each.key: each for each in it.store.list()}
        assert it.replay.removed == it.replay.added - {each.uid for each in it.store.list()}
        assert it.reflector.trouble == ""
        assert seen == written, "each write was seen once, in order"

    tell(story, collects=collects, seed=seed)
