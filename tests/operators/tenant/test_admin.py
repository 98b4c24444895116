"""Speaking to a store: signatures, what is asked, and what becomes of every way to fail."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta

import pytest

from holdfast.meta.exchange import Request, Response
from holdfast.meta.signatures import Credentials, signed
from holdfast.operators.tenant.admin import AdminError, Store, StorePool, connect, send_over_http
from holdfast.testing.rustfs import RustFS

NOW = datetime(2030, 1, 1, tzinfo=UTC)
KEYS = Credentials("rootroot", "secretsecret")


def store(*volumes: str) -> RustFS:
    return RustFS(volumes or ("a", "b"), access_key="rootroot", secret_key="secretsecret", now=lambda: NOW)


def admin(server: RustFS, keys: Credentials = KEYS, *, now: datetime = NOW) -> Store:
    return Store("http://store:9000", keys, send=server.send, now=lambda: now)


@pytest.mark.parametrize(
    ("query", "signature"),
    [
        ({"lifecycle": ("",)}, "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543"),
        ({"max-keys": ("2",), "prefix": ("J",)}, "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7"),
    ],
)
def test_requests_are_signed_as_the_published_examples_are(query: dict[str, tuple[str, ...]], signature: str) -> None:
    keys = Credentials("AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY")
    headers = signed(
        Request("GET", "/", query),
        keys,
        host="examplebucket.s3.amazonaws.com",
        now=datetime(2013, 5, 24, tzinfo=UTC),
    )
    assert headers["authorization"].endswith(f"Signature={signature}")


def test_the_secret_does_not_show_itself() -> None:
    assert "secretsecret" not in repr(KEYS)


def test_a_store_lists_its_pools_and_says_how_draining_goes() -> None:
    async def story() -> None:
        server = store()
        assert await admin(server).pools() == (StorePool(0, "a"), StorePool(1, "b"))
        await admin(server).start(1)
        server.now = lambda: NOW + timedelta(minutes=1)
        info = (await admin(server).pool(1)).decommission_info
        assert info is not None
        assert (info.start_time, info.objects_decommissioned, info.over) == ("2030-01-01T00:00:00Z", 200, False)
        await admin(server).cancel(1)
        info = (await admin(server).pool(1)).decommission_info
        assert info is not None
        assert info.canceled
        assert server.asked == ["list", "decommission 1", "status 1", "cancel 1", "status 1"]

    asyncio.run(story())


@pytest.mark.parametrize(
    ("keys", "now"),
    [
        (Credentials("rootroot", "another one"), NOW),
        (Credentials("somebody", "secretsecret"), NOW),
        (KEYS, NOW + timedelta(hours=1)),
    ],
)
def test_a_store_refuses_who_cannot_sign(keys: Credentials, now: datetime) -> None:
    with pytest.raises(AdminError) as refused:
        asyncio.run(admin(store(), keys, now=now).pools())
    assert refused.value.reason == "RustfsAccessDenied"
    assert keys.secret_key not in str(refused.value)


async def nonsense(url: str, request: Request) -> Response:
    return Response(200, b'{"id": "no list"}')


async def busy(url: str, request: Request) -> Response:
    return Response(503)


@pytest.mark.parametrize("send", [nonsense, busy])
def test_an_answer_that_is_none_is_an_error_with_a_reason(
    send: Callable[[str, Request], Awaitable[Response]],
) -> None:
    with pytest.raises(AdminError) as failed:
        asyncio.run(Store("http://store:9000", KEYS, send=send, now=lambda: NOW).pools())
    assert failed.value.reason == "RustfsAdminFailed"


def test_a_store_is_spoken_to_over_http() -> None:
    async def story() -> None:
        server = RustFS(("a", "b"), access_key=KEYS.access_key, secret_key=KEYS.secret_key, now=clock)
        async with server.served() as url:
            pools = await connect(url, KEYS).pools()
            await connect(url, KEYS).start(0)
        assert [pool.cmdline for pool in pools] == ["a", "b"]
        assert server.pools[0].began is not None
        with pytest.raises(AdminError) as unreachable:
            await send_over_http(url, Request("GET", "/"))
        assert unreachable.value.reason == "RustfsUnreachable"

    asyncio.run(story())


def clock() -> datetime:
    return datetime.now(UTC)
