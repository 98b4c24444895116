"""Waiting until something holds, whatever interrupts."""

from __future__ import annotations

import asyncio

import pytest
from tests.client.api_servers import NAMESPACE, Chaos, Embedded, configmap, embedded

from holdfast.client.inprocess import InProcess
from holdfast.client.objects import Object
from holdfast.client.resources import CONFIG_MAPS
from holdfast.client.waiting import until
from holdfast.meta.errors import Forbidden
from holdfast.meta.exchange import Request, Response
from holdfast.meta.objects import Key

ONE = Key(NAMESPACE, "one")


def is_done(found: Object | None) -> bool:
    return found is not None and found.wire().get("data") == {"done": "yes"}


def is_gone(found: Object | None) -> bool:
    return found is None


def test_what_holds_already_is_not_waited_for() -> None:
    async def test(api: Embedded) -> None:
        assert await until(api.client, CONFIG_MAPS, ONE, is_gone, timeout=0) is None
        assert [verb for verb, _, _ in api.seen] == ["list"]

    embedded(test)


@pytest.mark.parametrize(
    "script",
    [(), ("lost", "lost"), ("well", "lost"), ("well", "cut"), ("refused", "well", "cut", "lost", "lost")],
)
def test_a_change_is_seen_whatever_happens_on_the_way(script: tuple[str, ...]) -> None:
    async def test(api: Embedded) -> None:
        client = api.through(Chaos(api.transport, *script))
        await api.client.create(CONFIG_MAPS, configmap("one"))
        await api.client.create(CONFIG_MAPS, configmap("another", data={"done": "yes"}))
        waiting = asyncio.create_task(until(client, CONFIG_MAPS, ONE, is_done, timeout=60))
        await asyncio.sleep(0.01)  # Virtual time, in which it begins to wait.
        await api.client.patch(CONFIG_MAPS, ONE, {"data": {"done": "no"}})
        await asyncio.sleep(20)
        await api.client.patch(CONFIG_MAPS, ONE, {"data": {"done": "yes"}})
        found = await waiting
        assert found is not None
        assert found.key == ONE
        waiting = asyncio.create_task(until(client, CONFIG_MAPS, ONE, is_gone, timeout=60))
        await asyncio.sleep(20)
        await api.client.delete(CONFIG_MAPS, ONE)
        assert await waiting is None
        assert api.server.limits.watches == 0

    embedded(test)


def test_who_waits_too_long_is_told_for_what() -> None:
    async def test(api: Embedded) -> None:
        with pytest.raises(TimeoutError, match="30 seconds waiting for configmaps default/one"):
            await until(api.client, CONFIG_MAPS, ONE, is_done, timeout=30)
        assert api.server.limits.watches == 0

    embedded(test)


def test_a_watch_that_ends_in_its_time_is_begun_again() -> None:
    async def test(api: Embedded) -> None:
        with pytest.raises(TimeoutError):
            await until(api.client, CONFIG_MAPS, ONE, is_done, timeout=3600)
        assert 6 <= sum(verb == "watch" for verb, _, _ in api.seen) <= 12

    embedded(test)


def test_a_refusal_is_not_waited_out() -> None:
    async def test(api: Embedded) -> None:
        with pytest.raises(Forbidden):
            await until(api.through(InProcess(api.server.handle)), CONFIG_MAPS, ONE, is_done, timeout=30)

    embedded(test)


def test_what_holds_already_is_seen_though_the_answer_takes_longer_than_the_time_there_is() -> None:
    async def test(api: Embedded) -> None:
        class Slow(InProcess):
            async def send(self, request: Request) -> Response:
                await asyncio.sleep(5)
                return await super().send(request)

        client = api.through(Slow(api.server.handle, api.server.identity.admin_token))
        assert await until(client, CONFIG_MAPS, ONE, is_gone, timeout=0.1) is None
        with pytest.raises(TimeoutError):
            await until(client, CONFIG_MAPS, ONE, is_done, timeout=0.1)

    embedded(test)
