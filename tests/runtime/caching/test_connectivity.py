"""Connectivity: a server that does not answer is logged once, and the first watch with an answer wakes the others."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from random import Random
from typing import Any

import pytest
from tests.runtime.sources import CUT, FakeSource

from holdfast.client.protocols import Event, Unreachable
from holdfast.client.resources import CONFIG_MAPS, NODES, PODS, SECRETS, SERVICES, Resource
from holdfast.meta.errors import InternalError
from holdfast.runtime.caching.caches import Caches
from holdfast.runtime.caching.connectivity import Connectivity
from holdfast.runtime.caching.reflectors import Reflector
from holdfast.runtime.caching.stores import Store, Writer
from holdfast.testing.loops import VirtualLoop, run

RESOURCES = (PODS, NODES, SECRETS, SERVICES, CONFIG_MAPS)


class Server(FakeSource):
    """One that can be away."""

    away = False

    async def _answer(self) -> None:
        if self.away:
            raise Unreachable("no answer")
        await super()._answer()

    def leave(self) -> None:
        self.away = True
        self.end_streams(CUT)


def test_an_absence_is_told_once_and_its_end_is_noticed_by_all_as_soon_as_by_one(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def story(loop: VirtualLoop) -> None:
        server = Server()
        caches = Caches(server, random=Random(1).random)
        for resource in RESOURCES:
            caches.require(resource)
        running = loop.create_task(caches.run())
        await caches.synced()
        server.leave()
        await asyncio.sleep(600)
        assert len(caches.trouble()) == len(RESOURCES)
        server.away = False
        while len(caches.trouble()) == len(RESOURCES):
            await asyncio.sleep(0.1)
        await asyncio.sleep(1)
        assert not caches.trouble()
        running.cancel()
        with suppress(asyncio.CancelledError):
            await running

    with caplog.at_level(logging.INFO, logger="holdfast.runtime"):
        run(story)
    assert [(record.levelname, record.message) for record in caplog.records] == [
        ("WARNING", "server away"),
        ("INFO", "server back"),
    ]


def test_one_who_asks_no_more_is_not_waited_for(caplog: pytest.LogCaptureFixture) -> None:
    async def story(loop: VirtualLoop) -> None:
        connectivity = Connectivity()
        connectivity.lost("a", "why")
        connectivity.lost("b", "why")
        waiting = loop.create_task(connectivity.wait(60))
        await asyncio.sleep(1)
        connectivity.found("c")
        await asyncio.sleep(1)
        assert not waiting.done(), "who had an answer all the time says nothing new"
        connectivity.found("a")
        assert await waiting
        assert not await connectivity.wait(60)
        connectivity.found("b")

    with caplog.at_level(logging.INFO, logger="holdfast.runtime"):
        run(story)
    assert [record.message for record in caplog.records] == ["server away", "server back"]


class Unstreamed(FakeSource):
    """One that accepts a streaming list and then sends an error in the stream, as kube-apiserver with etcd 3.4 does."""

    @asynccontextmanager
    async def watch(self, resource: Resource, *args: Any, **options: Any) -> AsyncIterator[AsyncIterator[Event]]:
        async def failing() -> AsyncIterator[Event]:
            raise InternalError("a watch stream was requested, and RequestWatchProgress is disabled")
            yield

        if options.get("initial"):
            self.asked.append("collect")
            yield failing()
        else:
            async with super().watch(resource, *args, **options) as events:
                yield events


def test_a_server_without_streaming_lists_is_remembered_for_every_watch_that_begins_later(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def story(loop: VirtualLoop) -> None:
        server = Unstreamed()
        server.put("a")
        connectivity = Connectivity()

        async def follow(resource: Resource) -> None:
            synced = asyncio.Event()
            reflector = Reflector(
                server,
                resource,
                writer=Writer(Store(resource)),
                random=Random(1).random,
                synced=synced.set,
                connectivity=connectivity,
            )
            running = loop.create_task(reflector.run())
            await synced.wait()
            running.cancel()
            with suppress(asyncio.CancelledError):
                await running

        await follow(PODS)
        await follow(NODES)
        assert [asked for asked in server.asked if not asked.startswith("watch")] == ["collect", "list", "list"]

    with caplog.at_level(logging.INFO, logger="holdfast.runtime"):
        run(story)
    assert [record.message for record in caplog.records] == ["server without streaming lists"]
