"""The way to a server in the same process."""

from __future__ import annotations

import asyncio

import pytest
from tests.client.api_servers import Embedded, configmap, embedded

from holdfast.client.inprocess import InProcess
from holdfast.client.protocols import Event, Unsent
from holdfast.client.resources import CONFIG_MAPS
from holdfast.meta.errors import Forbidden
from holdfast.meta.objects import Key


def test_a_request_without_a_token_is_anonymous_as_anywhere() -> None:
    async def test(api: Embedded) -> None:
        with pytest.raises(Forbidden):
            await api.through(InProcess(api.server.handle)).get(CONFIG_MAPS, Key("default", "one"))

    embedded(test)


def test_closing_ends_the_streams_that_were_given_out() -> None:
    async def test(api: Embedded) -> None:
        transport = InProcess(api.server.handle, api.server.identity.admin_token)
        client = api.through(transport)
        async with client.watch(CONFIG_MAPS), client.watch(CONFIG_MAPS):
            assert api.server.limits.watches == 2
            await client.close()
            assert api.server.limits.watches == 0

    embedded(test)


def test_closing_ends_a_stream_that_is_being_read() -> None:
    async def test(api: Embedded) -> None:
        client = api.through(InProcess(api.server.handle, api.server.identity.admin_token))

        async def listen() -> list[Event]:
            async with client.watch(CONFIG_MAPS) as events:
                return [event async for event in events]

        listening = asyncio.create_task(listen())
        while not api.server.limits.watches:
            await asyncio.sleep(0)
        await asyncio.sleep(0)
        await client.close()
        assert await listening == []
        assert api.server.limits.watches == 0

    embedded(test)


def test_a_closed_client_sends_nothing() -> None:
    async def test(api: Embedded) -> None:
        await api.client.close()
        with pytest.raises(Unsent, match="closed"):
            await api.client.create(CONFIG_MAPS, configmap("one"))

    embedded(test)
