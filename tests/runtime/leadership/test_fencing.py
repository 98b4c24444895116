"""What passes the fence when the lease is held, and when it is not."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from holdfast.apiserver.server import Server
from holdfast.client.api import ApiClient
from holdfast.client.inprocess import InProcess
from holdfast.client.protocols import Client
from holdfast.client.resources import CONFIG_MAPS, PODS
from holdfast.kernel.outcomes import Retry
from holdfast.meta.errors import TooManyRequests
from holdfast.meta.exchange import Request, Response
from holdfast.meta.objects import Key
from holdfast.runtime.leadership.fencing import FencedTransport, LeaseLost
from holdfast.testing.loops import VirtualLoop, run

KEY = Key("default", "one")
MANIFEST = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"namespace": "default", "name": "one"}}
PATH = CONFIG_MAPS.path("default", "one")


async def watched(client: Client) -> Any:
    async with client.watch(CONFIG_MAPS) as events:
        return await anext(events)


READS: dict[str, Callable[[Client], Awaitable[Any]]] = {
    "get": lambda client: client.get(CONFIG_MAPS, KEY),
    "list": lambda client: client.list(CONFIG_MAPS),
    "watch": watched,
    "raw": lambda client: client.raw(Request("GET", PATH)),
}
WRITES: dict[str, Callable[[Client], Awaitable[Any]]] = {
    "create": lambda client: client.create(CONFIG_MAPS, {"metadata": {"namespace": "default", "name": "two"}}),
    "apply": lambda client: client.apply(CONFIG_MAPS, {**MANIFEST, "data": {"a": "b"}}),
    "patch": lambda client: client.patch(CONFIG_MAPS, KEY, {"data": {"a": "b"}}),
    "delete": lambda client: client.delete(CONFIG_MAPS, KEY),
    "post": lambda client: client.post(PODS, Key("default", "web"), "eviction", {"metadata": {"name": "web"}}),
    "raw": lambda client: client.raw(Request("DELETE", PATH)),
}
POD = {"metadata": {"namespace": "default", "name": "web"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}


def fenced(story: Callable[[Client], Awaitable[None]], *, held: bool) -> None:
    async def inside(loop: VirtualLoop) -> None:
        server = await Server.open(None, now=loop.now)
        transport = InProcess(server.handle, server.identity.admin_token)
        client = ApiClient(transport)
        await client.create(CONFIG_MAPS, MANIFEST)
        await client.create(PODS, POD)
        await story(ApiClient(FencedTransport(transport, lambda: held)))
        await server.close()

    run(inside)


@pytest.mark.parametrize("read", READS)
def test_reads_pass_without_the_lease(read: str) -> None:
    async def story(client: Client) -> None:
        assert await READS[read](client)
        await client.close()

    fenced(story, held=False)


@pytest.mark.parametrize("write", WRITES)
def test_writes_are_not_sent_without_the_lease(write: str) -> None:
    async def story(client: Client) -> None:
        before = (await client.list(CONFIG_MAPS)).version
        with pytest.raises(LeaseLost):
            await WRITES[write](client)
        assert (await client.list(CONFIG_MAPS)).version == before

    fenced(story, held=False)


@pytest.mark.parametrize("write", WRITES)
def test_writes_pass_with_the_lease(write: str) -> None:
    async def story(client: Client) -> None:
        before = (await client.list(CONFIG_MAPS)).version
        await WRITES[write](client)
        assert (await client.list(CONFIG_MAPS)).version != before

    fenced(story, held=True)


def test_a_lost_lease_is_a_reason_to_try_again_and_says_so() -> None:
    lost = LeaseLost()
    assert isinstance(lost, Retry)
    assert (lost.reason, lost.after) == ("LeaseLost", None)


def test_what_a_client_sends_again_by_itself_is_asked_again() -> None:
    """A server that is busy asks to come back later, and by then the lease is lost."""
    sent = 0

    class Busy:
        async def send(self, request: Request) -> Response:
            nonlocal sent
            sent += 1
            return Response.of(TooManyRequests.of("busy", retry_after_seconds=12).to_status(), 429)

        async def close(self) -> None: ...

    async def story(loop: VirtualLoop) -> None:
        client = ApiClient(FencedTransport(Busy(), lambda: loop.time() < 10))
        with pytest.raises(LeaseLost):
            async with asyncio.timeout(60):
                await client.create(CONFIG_MAPS, MANIFEST)

    run(story)
    assert sent == 1
