"""The way over a socket: TLS, credentials, silence, and every way in which it can break."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import aiohttp
import pytest
from aiohttp import client_exceptions, http_exceptions
from tests.client.api_servers import NAMESPACE, configmap, listening

from holdfast.client import http
from holdfast.client.api import ApiClient
from holdfast.client.credentials import Fixed, KeyPair, Proof, basic, bearer
from holdfast.client.http import Endpoint, Http, Timeouts
from holdfast.client.protocols import Bookmark, Unreachable, Unsent, Untrusted
from holdfast.client.resources import CONFIG_MAPS
from holdfast.client.streams import close
from holdfast.meta.errors import StatusError
from holdfast.meta.exchange import Request, Response
from holdfast.meta.objects import Key


def shows(token: str) -> Fixed:
    return Fixed(Proof(authorization=bearer(token)))


def heard(answer: Callable[[Request], Response] = lambda _: Response.of({})) -> tuple[list[Request], Any]:
    """A handler that remembers what it was asked."""
    requests: list[Request] = []

    async def handle(request: Request) -> Response:
        requests.append(request)
        return answer(request)

    return requests, handle


async def exchanged(transport: Http, request: Request) -> Response:
    try:
        return await transport.send(request)
    finally:
        await transport.close()


def test_all_verbs_work_over_a_real_socket() -> None:
    async def test() -> None:
        async with listening() as api:
            client = ApiClient(Http(api.endpoint, shows(api.token)))
            for number in range(3):
                await client.create(CONFIG_MAPS, configmap(f"m{number}"))
            await client.apply(CONFIG_MAPS, configmap("m0", data={"k": "v" * 200_000}))  # its list is compressed
            listing = await client.list(CONFIG_MAPS)
            assert len(listing.objects) == 3
            assert len(listing.objects[0].wire()["data"]["k"]) == 200_000
            async with client.watch(CONFIG_MAPS, initial=True) as events:
                found = [await anext(events) for _ in range(4)]
                assert found[-1] == Bookmark(listing.version, initial=True)
            assert await client.delete(CONFIG_MAPS, Key(NAMESPACE, "m0")) is None
            await client.close()

    asyncio.run(test())


def test_a_request_arrives_as_it_was_meant() -> None:
    async def test() -> None:
        requests, handle = heard()
        async with listening(handle) as api:
            endpoint = Endpoint(
                url=f"{api.endpoint.url}/prefix/",
                authority=api.endpoint.authority,
                headers=(("Impersonate-User", "jane"), ("Impersonate-Group", "a"), ("Impersonate-Group", "b")),
            )
            request = Request("PATCH", "/a/b:c d", {"q": ("x y", "&=")}, {"content-type": "text/x"}, b"body")
            await exchanged(Http(endpoint, Fixed(Proof(authorization=basic("u", "p")))), request)
        (arrived,) = requests
        assert (arrived.method, arrived.path, arrived.query) == ("PATCH", "/prefix/a/b:c d", {"q": ("x y", "&=")})
        assert arrived.body == b"body"
        sent = {name: arrived.headers[name] for name in ("content-type", "impersonate-user", "impersonate-group")}
        assert sent == {"content-type": "text/x", "impersonate-user": "jane", "impersonate-group": "a\nb"}
        assert arrived.headers["authorization"] == "Basic dTpw"
        assert arrived.headers["accept-encoding"] == "gzip"
        assert arrived.headers["user-agent"] == "holdfast"

    asyncio.run(test())


def test_warnings_and_heads_come_back_as_they_were_meant() -> None:
    async def test() -> None:
        given = Response.of({}, warnings=('say "no" \\ more',))
        given.headers["Retry-After"] = "5"
        _, handle = heard(lambda _: given)
        async with listening(handle) as api:
            response = await exchanged(Http(api.endpoint), Request("GET", "/"))
        assert response.warnings == ('say "no" \\ more',)
        assert response.headers["retry-after"] == "5"

    asyncio.run(test())


def test_redirects_are_answers_and_are_not_followed() -> None:
    async def test() -> None:
        requests, handle = heard(lambda _: Response(302, headers={"Location": "/elsewhere"}))
        async with listening(handle) as api:
            client = ApiClient(Http(api.endpoint))
            with pytest.raises(StatusError) as caught:
                await client.get(CONFIG_MAPS, Key(NAMESPACE, "one"))
            await client.close()
        assert (caught.value.code, len(requests)) == (302, 1)

    asyncio.run(test())


# Trust.


def test_a_server_without_a_trusted_certificate_is_refused() -> None:
    async def test() -> None:
        requests, handle = heard()
        async with listening(handle) as api:
            for endpoint in (
                Endpoint(url=api.endpoint.url),
                Endpoint(url=api.endpoint.url, authority=api.endpoint.authority, server_name="elsewhere.example.com"),
            ):
                with pytest.raises(Untrusted, match=r"is not trusted: [\w ,'.-]+\w'?; check cert"):
                    await exchanged(Http(endpoint), Request("GET", "/"))
        assert not requests

    asyncio.run(test())


def test_a_server_is_talked_to_by_the_name_in_its_certificate_or_without_any_trust() -> None:
    async def test() -> None:
        _, handle = heard()
        async with listening(handle) as api:
            for endpoint in (
                Endpoint(url=api.endpoint.url, authority=api.endpoint.authority, server_name="localhost"),
                Endpoint(url=api.endpoint.url, insecure=True),
            ):
                assert (await exchanged(Http(endpoint), Request("GET", "/"))).status == 200

    asyncio.run(test())


def test_what_is_no_certificate_is_refused_before_anything_is_sent() -> None:
    with pytest.raises(ValueError, match="certificate authority"):
        Http(Endpoint(url="https://127.0.0.1", authority=b"no PEM"))
    with pytest.raises(ValueError, match="client certificate"):
        http.tls_context(Endpoint(url="https://127.0.0.1"), KeyPair(b"no", b"PEM"))


class Renewed:
    """Credentials that have another token once the first was refused."""

    def __init__(self, *tokens: str) -> None:
        self._tokens = list(tokens)

    async def proof(self) -> Proof:
        return Proof(authorization=bearer(self._tokens[0]))

    def refused(self, proof: Proof) -> bool:
        self._tokens.pop(0)
        return bool(self._tokens)


@pytest.mark.parametrize(("tokens", "code", "sent"), [(("old", "new"), 200, 2), (("old",), 401, 1)])
def test_a_refused_token_is_renewed_once(tokens: tuple[str, ...], code: int, sent: int) -> None:
    async def test() -> None:
        requests, handle = heard(
            lambda request: Response(200 if request.headers["authorization"] == "Bearer new" else 401)
        )
        async with listening(handle) as api:
            response = await exchanged(Http(api.endpoint, Renewed(*tokens)), Request("POST", "/", body=b"{}"))
        assert (response.status, len(requests)) == (code, sent)

    asyncio.run(test())


# Silence and breaks.


@contextlib.asynccontextmanager
async def speaking(
    says: Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]], **timeouts: float
) -> AsyncIterator[Http]:
    """The way to a server on plain TCP that speaks, or does not, as it likes."""
    connections: set[asyncio.Task[None]] = set()

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            await says(reader, writer)
        writer.close()
        with contextlib.suppress(ConnectionError):
            await writer.wait_closed()

    server = await asyncio.start_server(
        lambda reader, writer: connections.add(asyncio.create_task(connected(reader, writer))), "127.0.0.1", 0
    )
    port = server.sockets[0].getsockname()[1]
    transport = Http(Endpoint(url=f"http://127.0.0.1:{port}"), timeouts=Timeouts(**timeouts))
    try:
        yield transport
    finally:
        await transport.close()
        server.close()
        await asyncio.gather(*connections)


HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"


async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Begin an answer, and say no more."""
    await reader.readuntil(b"\r\n\r\n")
    writer.write(HEAD + b"3\r\nabc\r\n")
    await reader.read()


WATCH = Request("GET", "/watch", {"watch": ("true",)})


def test_a_watch_that_is_silent_for_too_long_is_dead() -> None:
    async def test() -> None:
        async with speaking(silent, stall=0.05) as transport:
            response = await transport.send(WATCH)
            assert response.stream is not None
            assert await anext(response.stream) == b"abc"
            with pytest.raises(Unreachable):
                await anext(response.stream)

    asyncio.run(test())


def test_a_log_that_is_followed_may_be_silent() -> None:
    async def test() -> None:
        async with speaking(silent, stall=0.05, answer=0.05) as transport:
            response = await transport.send(Request("GET", "/log", {"follow": ("true",)}))
            assert response.stream is not None
            assert await anext(response.stream) == b"abc"
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(anext(response.stream), 0.2)
            await close(response.stream)

    asyncio.run(test())


@pytest.mark.parametrize(
    "said",
    [
        b"",
        b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf",
        HEAD + b"zz\r\n",
        b"SSH-2.0-server\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 4\r\n\r\nnope",
    ],
)
def test_answers_that_break_off_or_are_not_http_are_unreachable_and_sent_once(said: bytes) -> None:
    connections = []

    async def broken(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connections.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(said)

    async def test() -> None:
        async with speaking(broken) as transport:
            with pytest.raises(Unreachable) as caught:
                await transport.send(Request("DELETE", "/"))
        assert not isinstance(caught.value, Unsent)
        assert len(connections) == 1

    asyncio.run(test())


def test_a_deletion_on_a_kept_connection_that_breaks_is_not_sent_twice() -> None:
    seen: list[bytes] = []

    async def once(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        seen.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")
        seen.append(await reader.readuntil(b"\r\n\r\n"))

    async def test() -> None:
        async with speaking(once) as transport:
            await transport.send(Request("GET", "/"))
            with pytest.raises(Unreachable):
                await transport.send(Request("DELETE", "/"))
        assert [each.split()[0] for each in seen] == [b"GET", b"DELETE"]

    asyncio.run(test())


def test_a_server_that_never_answers_is_given_up() -> None:
    async def never(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()

    async def test() -> None:
        async with speaking(never, answer=0.05) as transport:
            with pytest.raises(Unreachable) as caught:
                await transport.send(Request("POST", "/"))
        assert not isinstance(caught.value, Unsent)

    asyncio.run(test())


def test_a_request_that_finds_no_server_surely_did_nothing() -> None:
    async def test() -> None:
        with pytest.raises(Unsent, match="cannot be reached: Connection refused; is the server running"):
            await exchanged(Http(Endpoint(url="http://127.0.0.1:1")), Request("POST", "/"))

    asyncio.run(test())


def test_a_closed_transport_sends_nothing() -> None:
    async def test() -> None:
        transport = Http(Endpoint(url="http://127.0.0.1:1"))
        await transport.close()
        with pytest.raises(Unsent, match="closed"):
            await transport.send(Request("GET", "/"))

    asyncio.run(test())


# The table.

BASES = {client_exceptions.ClientError}
"""Classes that are never raised; only their children say what happened."""

NOT_OURS = {client_exceptions.WSMessageTypeError}
"""Of WebSockets, which are not spoken here."""


def exceptions_of(module: Any) -> list[type[Exception]]:
    return [
        each
        for each in vars(module).values()
        if isinstance(each, type) and issubclass(each, Exception) and each.__module__ == module.__name__
    ]


@pytest.mark.parametrize(
    "error", [*exceptions_of(client_exceptions), *exceptions_of(http_exceptions)], ids=lambda error: error.__name__
)
def test_every_failure_of_the_library_is_caught_and_has_a_translation(error: type[Exception]) -> None:
    if error in NOT_OURS:
        return
    assert issubclass(error, http.FAILURES)
    assert error in BASES or any(each in http.TRANSLATIONS for each in error.__mro__)


@pytest.mark.parametrize(
    ("error", "fate"),
    [
        (client_exceptions.ClientConnectorDNSError, Unsent),
        (client_exceptions.ClientProxyConnectionError, Unsent),
        (client_exceptions.ClientConnectorSSLError, Unsent),
        (client_exceptions.ClientConnectorCertificateError, Untrusted),
        (client_exceptions.ConnectionTimeoutError, Unsent),
        (client_exceptions.SocketTimeoutError, Unreachable),
        (client_exceptions.ServerDisconnectedError, Unreachable),
        (client_exceptions.ClientOSError, Unreachable),
        (client_exceptions.ClientHttpProxyError, Unsent),
        (aiohttp.ClientError, Unreachable),
        (ConnectionResetError, Unreachable),
        (BrokenPipeError, Unreachable),
        (ssl.SSLError, Unreachable),
        (TimeoutError, Unreachable),
    ],
    ids=lambda value: value.__name__,
)
def test_a_failure_tells_whether_the_request_can_have_arrived(error: type[Exception], fate: type[Unreachable]) -> None:
    assert http.fate(error) is fate


def test_no_secret_is_in_a_representation() -> None:
    values = (
        Proof(authorization=bearer("SECRET"), pair=KeyPair(b"SECRET", b"SECRET")),
        shows("SECRET"),
        Endpoint(url="https://x", proxy="http://user:SECRET@proxy"),
    )
    assert "SECRET" not in repr(values)
