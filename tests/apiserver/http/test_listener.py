"""The server on a socket: spoken to as bad, slow and ordinary clients speak."""

from __future__ import annotations

import asyncio
import contextlib
import json
import ssl
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from tests.certificates import client_certificate

from holdfast.apiserver.auth import certificates
from holdfast.apiserver.auth.identity import Identity, write_private
from holdfast.apiserver.http.gate import PEER
from holdfast.apiserver.http.listener import Bounds, Listener, listen
from holdfast.meta.errors import NotFound, TooManyRequests
from holdfast.meta.exchange import Request, Response

NOW = datetime.now(UTC)
IDENTITY = Identity.ephemeral("127.0.0.1", now=NOW)
TLS = IDENTITY.tls()
PATIENT = Bounds()


@dataclass
class Answer:
    status: int
    headers: list[tuple[str, str]]
    body: bytes

    def header(self, name: str) -> str:
        return ", ".join(value for key, value in self.headers if key.lower() == name.lower())

    def json(self) -> Any:
        return json.loads(self.body)


@dataclass
class Client:
    """A connection that sends the given bytes, and reads one response at a time."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    async def send(self, content: bytes) -> None:
        self.writer.write(content)
        await self.writer.drain()

    async def ask(self, method: str, target: str, *, headers: str = "", body: bytes = b"") -> Answer:
        length = f"Content-Length: {len(body)}\r\n" if body else ""
        await self.send(f"{method} {target} HTTP/1.1\r\nHost: x\r\n{length}{headers}\r\n".encode() + body)
        return await self.answer(head=method == "HEAD")

    async def answer(self, *, head: bool = False) -> Answer:
        status, headers = await self.answer_head()
        names = {key.lower(): value for key, value in headers}
        if head:
            body = b""
        elif names.get("transfer-encoding") == "chunked":
            body = b"".join([chunk async for chunk in self.chunks()])
        else:
            body = await self.reader.readexactly(int(names["content-length"]))
        return Answer(status, headers, body)

    async def answer_head(self) -> tuple[int, list[tuple[str, str]]]:
        lines = (await self.reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        pairs = [line.split(": ", 1) for line in lines[1:] if line]
        return int(lines[0].split()[1]), [(key, value) for key, value in pairs]

    async def chunks(self) -> AsyncIterator[bytes]:
        while size := int(await self.reader.readline(), 16):
            yield await self.reader.readexactly(size)
            await self.reader.readexactly(2)
        await self.reader.readexactly(2)

    def stop_reading(self) -> None:
        transport = self.writer.transport
        assert isinstance(transport, asyncio.Transport)
        transport.pause_reading()

    async def is_cut(self) -> bool:
        with contextlib.suppress(ConnectionError):
            return await self.reader.read() == b""
        return True


@dataclass
class Bench:
    """A listener over a handler, and ways to reach it."""

    listener: Listener
    writers: list[asyncio.StreamWriter] = field(default_factory=list)

    async def connect(self, context: ssl.SSLContext | None = None) -> Client:
        host, port = self.listener.address
        reader, writer = await asyncio.open_connection(host, port, ssl=context or client_context(), limit=1 << 24)
        self.writers.append(writer)
        return Client(reader, writer)


def client_context() -> ssl.SSLContext:
    context = ssl.create_default_context(cadata=IDENTITY.authority.certificate_pem.decode())
    context.set_alpn_protocols(["h2", "http/1.1"])
    return context


Handler = Callable[[Request], Awaitable[Response]]


def receiving(handler: Handler) -> Handler:
    """The handler, with the body of its request."""

    async def handle(request: Request) -> Response:
        return await handler(await request.received())

    return handle


def served(
    handler: Handler, scenario: Callable[[Bench], Coroutine[Any, Any, None]], *, bounds: Bounds = PATIENT
) -> None:
    """Run a scenario against a handler on a real socket."""

    async def run() -> None:
        bench = Bench(await listen(receiving(handler), "127.0.0.1", tls=TLS, bounds=bounds))
        try:
            async with asyncio.timeout(10):
                await scenario(bench)
        finally:
            for writer in bench.writers:
                writer.transport.abort()
            await bench.listener.drain(0.5)

    asyncio.run(run())


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(5):
        while not holds():
            await asyncio.sleep(0)


async def echo(request: Request) -> Response:
    return Response.of(
        {
            "method": request.method,
            "path": request.path,
            "query": request.query,
            "headers": request.headers,
            "body": request.body.decode(errors="replace"),
            "user": request.user.name,
            "groups": request.user.groups,
        }
    )


def test_a_request_arrives_as_it_was_sent_and_the_answer_goes_back() -> None:
    async def scenario(bench: Bench) -> None:
        client = await bench.connect()
        answer = await client.ask(
            "POST", "/api/v1/a%20b?x=1&x=%2C&y=", headers="X-Thing: a\r\nX-Thing: b\r\n", body=b"{}"
        )
        seen = answer.json()
        assert answer.status == 200
        assert answer.header("content-type") == "application/json"
        assert answer.header("cache-control") == "no-cache, private"
        assert (seen["method"], seen["path"], seen["body"]) == ("POST", "/api/v1/a b", "{}")
        assert seen["query"] == {"x": ["1", ","], "y": [""]}
        assert seen["headers"]["x-thing"] == "a, b"
        assert seen["headers"][PEER] == "127.0.0.1"
        assert seen["user"] == "system:anonymous"

    served(echo, scenario)


def test_a_connection_is_used_again_and_requests_may_be_sent_ahead() -> None:
    async def scenario(bench: Bench) -> None:
        client = await bench.connect()
        for number in range(3):
            assert (await client.ask("GET", f"/{number}")).json()["path"] == f"/{number}"
        await client.send(b"GET /a HTTP/1.1\r\nHost: x\r\n\r\nGET /b HTTP/1.1\r\nHost: x\r\n\r\n")
        assert [(await client.answer()).json()["path"] for _ in range(2)] == ["/a", "/b"]

    served(echo, scenario)


def test_impersonation_headers_keep_each_value_apart() -> None:
    async def scenario(bench: Bench) -> None:
        client = await bench.connect()
        answer = await client.ask("GET", "/", headers="Impersonate-Group: a, b\r\nImpersonate-Group: c\r\n")
        assert answer.json()["headers"]["impersonate-group"] == "a, b\nc"

    served(echo, scenario)


def test_a_client_certificate_names_the_user(tmp_path: Any) -> None:
    pair = client_certificate(IDENTITY.authority, "jane", groups=["dev", "ops"], now=NOW)
    path = tmp_path / "client.pem"
    write_private(path, pair.certificate_pem + pair.key_pem)

    async def scenario(bench: Bench) -> None:
        context = client_context()
        context.load_cert_chain(path)
        seen = (await (await bench.connect(context)).ask("GET", "/")).json()
        assert (seen["user"], seen["groups"]) == ("jane", ["dev", "ops", "system:authenticated"])

    served(echo, scenario)


@pytest.mark.parametrize("signer", ["another authority", "a serving certificate"])
def test_a_certificate_that_is_not_for_clients_of_ours_gets_no_connection(tmp_path: Any, signer: str) -> None:
    if signer == "another authority":
        pair = client_certificate(certificates.new_authority(NOW), "jane", now=NOW)
    else:
        pair = IDENTITY.serving
    path = tmp_path / "client.pem"
    write_private(path, pair.certificate_pem + pair.key_pem)

    async def scenario(bench: Bench) -> None:
        context = client_context()
        context.load_cert_chain(path)
        with pytest.raises((ssl.SSLError, ConnectionError, asyncio.IncompleteReadError)):
            await (await bench.connect(context)).ask("GET", "/")

    served(echo, scenario)


def test_a_certificate_that_ends_while_its_connection_lasts_is_refused(tmp_path: Any) -> None:
    pair = client_certificate(IDENTITY.authority, "jane", now=NOW)
    path = tmp_path / "client.pem"
    write_private(path, pair.certificate_pem + pair.key_pem)

    async def run() -> None:
        later = datetime.now(UTC) + timedelta(days=400)
        listener = await listen(receiving(echo), "127.0.0.1", tls=TLS, now=lambda: later)
        bench = Bench(listener)
        context = client_context()
        context.load_cert_chain(path)
        assert (await (await bench.connect(context)).ask("GET", "/")).status == 401
        await listener.drain(0.1)

    asyncio.run(run())


def test_warnings_are_one_line_headers() -> None:
    async def handler(request: Request) -> Response:
        return Response.of({}, warnings=('unknown field "spec.x"', "two\r\nlines"))

    async def scenario(bench: Bench) -> None:
        answer = await (await bench.connect()).ask("GET", "/")
        found = [value for key, value in answer.headers if key == "Warning"]
        assert found == ['299 - "unknown field \\"spec.x\\""', '299 - "two lines"']

    served(handler, scenario)


def test_no_value_of_a_header_makes_another_header() -> None:
    async def handler(request: Request) -> Response:
        return Response(200, b"{}", headers={"Audit-Id": "a\r\nSet-Cookie: b"})

    async def scenario(bench: Bench) -> None:
        answer = await (await bench.connect()).ask("GET", "/")
        assert (answer.status, answer.body) == (200, b"{}")
        assert answer.header("audit-id") == "a  Set-Cookie: b"
        assert answer.header("date").endswith("GMT")

    served(handler, scenario)


def test_refusals_are_statuses_with_the_time_to_wait() -> None:
    async def handler(request: Request) -> Response:
        if request.path == "/busy":
            raise TooManyRequests.of("busy", retry_after_seconds=1)
        if request.path == "/bug":
            raise RuntimeError("secret")
        raise NotFound.of_path()

    async def scenario(bench: Bench) -> None:
        client = await bench.connect()
        assert (await client.ask("GET", "/none")).json()["reason"] == "NotFound"
        busy = await client.ask("GET", "/busy")
        assert (busy.status, busy.header("retry-after")) == (429, "1")
        bug = await client.ask("GET", "/bug")
        assert bug.json()["reason"] == "InternalError"
        assert b"secret" not in bug.body

    served(handler, scenario)


def test_head_has_the_headers_alone() -> None:
    async def scenario(bench: Bench) -> None:
        client = await bench.connect()
        answer = await client.ask("HEAD", "/version")
        assert answer.status == 200
        assert int(answer.header("content-length")) > 0
        assert (await client.ask("GET", "/after")).json()["path"] == "/after"

    served(echo, scenario)


@pytest.mark.parametrize(
    ("accepts", "size", "compressed"),
    [
        ("gzip", 200_000, True),
        ("br, gzip;q=0.5", 200_000, True),
        ("gzip;q=0", 200_000, False),
        ("identity", 200_000, False),
        ("gzip", 1_000, False),
    ],
)
def test_large_bodies_are_compressed_where_asked(accepts: str, size: int, compressed: bool) -> None:
    async def handler(request: Request) -> Response:
        return Response(200, b"x" * size)

    async def scenario(bench: Bench) -> None:
        answer = await (await bench.connect()).ask("GET", "/", headers=f"Accept-Encoding: {accepts}\r\n")
        assert (answer.header("content-encoding") == "gzip") is compressed
        body = zlib.decompress(answer.body, wbits=31) if compressed else answer.body
        assert body == b"x" * size

    served(handler, scenario)


@pytest.mark.parametrize("size", [256 * 1024, 256 * 1024 + 1, 2_000_000])
def test_a_body_of_any_size_arrives_whole_and_the_connection_goes_on(size: int) -> None:
    body = bytes(range(256)) * (size // 256 + 1)

    async def handler(request: Request) -> Response:
        return Response(200, body[:size])

    async def scenario(bench: Bench) -> None:
        client = await bench.connect()
        head = await client.ask("HEAD", "/")
        answer = await client.ask("GET", "/")
        again = await client.ask("GET", "/")
        assert head.header("content-length") == answer.header("content-length") == str(size)
        assert answer.body == again.body == body[:size]

    served(handler, scenario)


def test_a_body_beyond_the_limit_is_413_whether_it_says_its_length_or_not() -> None:
    async def scenario(bench: Bench) -> None:
        said = await (await bench.connect()).ask("POST", "/", body=b"x" * 1001)
        assert said.json()["message"] == "Request entity too large: limit is 1000"
        assert said.json()["code"] == said.status == 413
        client = await bench.connect()
        head = b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
        await client.send(head + b"3e9\r\n" + b"x" * 1001 + b"\r\n0\r\n\r\n")
        assert (await client.answer()).status == 413
        assert (await (await bench.connect()).ask("POST", "/", body=b"x" * 1000)).status == 200

    served(echo, scenario, bounds=Bounds(body=1000))


def test_a_client_that_asks_first_is_told_to_go_on() -> None:
    async def scenario(bench: Bench) -> None:
        client = await bench.connect()
        await client.send(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n")
        assert await client.reader.readuntil(b"\r\n\r\n") == b"HTTP/1.1 100 Continue\r\n\r\n"
        await client.send(b"ok")
        assert (await client.answer()).json()["body"] == "ok"

    served(echo, scenario)


MALFORMED = {
    "not HTTP at all": (b"hello\r\n\r\n", 400),
    "TLS inside TLS": (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 400),
    "a header without a colon": (b"GET / HTTP/1.1\r\nHost: x\r\nbad header\r\n\r\n", 400),
    "a bad length": (b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n", 400),
    "two ways to end a body": (
        b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        400,
    ),
    "a bad chunk": (b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", 400),
    "a target that is no path": (b"GET x HTTP/1.1\r\nHost: x\r\n\r\n", 400),
    "too many parameters": (b"GET /?" + b"a=1&" * 300 + b" HTTP/1.1\r\nHost: x\r\n\r\n", 400),
    "too many headers": (b"GET / HTTP/1.1\r\nHost: x\r\n" + b"A: b\r\n" * 200 + b"\r\n", 431),
    "absurdly many headers": (b"GET / HTTP/1.1\r\nHost: x\r\n" + b"A: b\r\n" * 2000 + b"\r\n", 400),
    "a header too large": (b"GET / HTTP/1.1\r\nHost: x\r\nA: " + b"b" * 20_000 + b"\r\n\r\n", 431),
    "a URL too long": (b"GET /" + b"a" * 40_000 + b" HTTP/1.1\r\nHost: x\r\n\r\n", 414),
}


@pytest.mark.parametrize("what", MALFORMED)
def test_what_is_malformed_is_refused_with_a_status(what: str, caplog: pytest.LogCaptureFixture) -> None:
    content, code = MALFORMED[what]

    async def scenario(bench: Bench) -> None:
        client = await bench.connect()
        await client.send(content)
        answer = await client.answer()
        assert answer.status == answer.json()["code"] == code
        assert answer.json()["kind"] == "Status"
        assert answer.header("Server") == "holdfast"
        if answer.header("Connection") != "close":
            assert (await client.ask("GET", "/")).status == 200
        assert (await (await bench.connect()).ask("GET", "/")).status == 200

    served(echo, scenario)
    assert "Traceback" not in caplog.text


def test_bytes_that_are_no_text_become_text_that_can_be_written() -> None:
    async def scenario(bench: Bench) -> None:
        client = await bench.connect()
        await client.send(b"GET /%ff/\xff?a=%ff HTTP/1.1\r\nHost: x\r\nUser-Agent: \xff\xfe\r\n\r\n")
        answer = await client.answer()
        assert answer.status in (200, 400)
        seen = (await (await bench.connect()).ask("GET", "/%ff?%ff=%ff", headers="User-Agent: \xe9\r\n")).json()
        assert seen["path"] == "/�"
        assert seen["query"] == {"�": ["�"]}

    served(echo, scenario)


def test_a_head_that_takes_too_long_is_cut_off() -> None:
    async def scenario(bench: Bench) -> None:
        silent, slow, again = await bench.connect(), await bench.connect(), await bench.connect()
        await slow.send(b"GET / HTTP/1.1\r\nHo")
        await again.ask("GET", "/")
        await again.send(b"GET / HTT")
        assert [await client.is_cut() for client in (silent, slow, again)] == [True, True, True]

    served(echo, scenario, bounds=Bounds(head_seconds=0.05))


def test_an_idle_connection_is_closed_after_its_time() -> None:
    async def scenario(bench: Bench) -> None:
        client = await bench.connect()
        assert (await client.ask("GET", "/")).status == 200
        assert await client.is_cut()

    served(echo, scenario, bounds=Bounds(idle_seconds=0.05))


def test_a_body_that_takes_too_long_is_refused() -> None:
    async def scenario(bench: Bench) -> None:
        client = await bench.connect()
        await client.send(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nhalf")
        answer = await client.answer()
        assert answer.status == 408
        assert answer.json()["reason"] == "Timeout"

    served(echo, scenario, bounds=Bounds(body_seconds=0.05))


@dataclass
class Ticker(AsyncIterator[bytes]):
    """A stream that gives what it is fed, and knows when it was closed."""

    chunks: asyncio.Queue[bytes | None] = field(default_factory=asyncio.Queue)
    closed: asyncio.Event = field(default_factory=asyncio.Event)

    async def __anext__(self) -> bytes:
        chunk = await self.chunks.get()
        if chunk is None:
            raise StopAsyncIteration
        return chunk

    async def aclose(self) -> None:
        self.closed.set()

    async def handle(self, request: Request) -> Response:
        return Response(200, stream=self)


def test_a_stream_is_sent_chunk_by_chunk_and_its_head_at_once() -> None:
    async def run() -> None:
        ticker = Ticker()
        bench = Bench(await listen(ticker.handle, "127.0.0.1", tls=TLS))
        client = await bench.connect()
        await client.send(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        status, _ = await client.answer_head()
        assert status == 200
        chunks = client.chunks()
        for content in (b"one", b"two" * 100_000):
            ticker.chunks.put_nowait(content)
            assert await anext(chunks) == content
        ticker.chunks.put_nowait(None)
        assert [chunk async for chunk in chunks] == []
        assert ticker.closed.is_set()
        await bench.listener.drain(0.1)

    asyncio.run(run())


def test_a_client_that_goes_away_closes_its_stream() -> None:
    async def run() -> None:
        ticker = Ticker()
        bench = Bench(await listen(ticker.handle, "127.0.0.1", tls=TLS))
        client = await bench.connect()
        await client.send(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        await client.answer_head()
        client.writer.transport.abort()
        await asyncio.wait_for(ticker.closed.wait(), 5)
        await bench.listener.drain(0.1)

    asyncio.run(run())


def test_a_client_that_does_not_read_its_stream_is_cut_off() -> None:
    async def run() -> None:
        ticker = Ticker()
        bench = Bench(await listen(ticker.handle, "127.0.0.1", tls=TLS, bounds=Bounds(write_seconds=0.1)))
        client = await bench.connect()
        client.stop_reading()
        await client.send(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        for _ in range(64):
            ticker.chunks.put_nowait(b"x" * 1_000_000)
        await asyncio.wait_for(ticker.closed.wait(), 5)
        assert ticker.chunks.qsize() > 0
        client.writer.transport.abort()
        await bench.listener.drain(0.1)

    asyncio.run(run())


def test_a_client_that_does_not_read_its_answer_is_cut_off() -> None:
    began = asyncio.Event()

    async def handler(request: Request) -> Response:
        began.set()
        return Response(200, b"x" * 16_000_000)

    async def scenario(bench: Bench) -> None:
        client = await bench.connect()
        client.stop_reading()
        await client.send(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        await began.wait()
        await until(lambda: bench.listener.under_way == 0)
        client.writer.transport.abort()

    served(handler, scenario, bounds=Bounds(write_seconds=0.1))


def test_a_stream_that_fails_is_not_ended_in_order() -> None:
    async def failing() -> AsyncIterator[bytes]:
        yield b"first"
        raise RuntimeError("broken")

    async def handler(request: Request) -> Response:
        return Response(200, stream=failing())

    async def scenario(bench: Bench) -> None:
        client = await bench.connect()
        with pytest.raises((asyncio.IncompleteReadError, ConnectionError, ValueError)):
            await client.ask("GET", "/")

    served(handler, scenario)


def test_draining_ends_streams_in_order_and_lets_work_finish() -> None:
    async def run() -> None:
        ticker, release = Ticker(), asyncio.Event()

        async def handler(request: Request) -> Response:
            if request.path == "/watch":
                return await ticker.handle(request)
            if request.path == "/slow":
                await release.wait()
            return Response.of({"path": request.path})

        bench = Bench(await listen(receiving(handler), "127.0.0.1", tls=TLS))
        watcher, worker, other = [await bench.connect() for _ in range(3)]
        await other.ask("GET", "/")
        await watcher.send(b"GET /watch HTTP/1.1\r\nHost: x\r\n\r\n")
        await watcher.answer_head()
        await worker.send(b"GET /slow HTTP/1.1\r\nHost: x\r\n\r\n")
        await until(lambda: bench.listener.under_way == 2)
        draining = asyncio.ensure_future(bench.listener.drain(5))
        assert [chunk async for chunk in watcher.chunks()] == []
        last = await other.ask("GET", "/readyz")
        assert (last.status, last.header("connection")) == (200, "close")
        with pytest.raises(OSError, match=r".*"):
            await bench.connect()
        release.set()
        answer = await worker.answer()
        assert (answer.status, answer.header("connection")) == (200, "close")
        await draining

    asyncio.run(run())


def test_draining_does_not_wait_for_ever() -> None:
    async def handler(request: Request) -> Response:
        await asyncio.Event().wait()
        raise AssertionError

    async def scenario(bench: Bench) -> None:
        client = await bench.connect()
        await client.send(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        await until(lambda: bench.listener.under_way == 1)
        await bench.listener.drain(0.05)
        assert await client.is_cut()

    served(handler, scenario)


def test_a_body_is_not_read_before_the_handler_asks_for_it() -> None:
    async def refuse(request: Request) -> Response:
        assert request.body == b""
        return Response.of({"seen": request.headers["content-length"]}, 403)

    async def scenario() -> None:
        listener = await listen(refuse, "127.0.0.1", tls=TLS)
        bench = Bench(listener)
        try:
            for _ in range(2):
                client = await bench.connect()
                await client.send(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 3000000\r\n\r\n" + b"x" * 1000)
                assert (await client.answer()).status == 403
        finally:
            for writer in bench.writers:
                writer.transport.abort()
            await listener.drain(0.5)

    asyncio.run(scenario())


def test_a_connection_goes_on_after_a_body_that_was_not_read() -> None:
    async def refuse(request: Request) -> Response:
        return Response.of({"path": request.path}, 403)

    async def scenario() -> None:
        listener = await listen(refuse, "127.0.0.1", tls=TLS)
        bench = Bench(listener)
        try:
            client = await bench.connect()
            for path in ("/a", "/b"):
                answer = await client.ask("POST", path, body=b"x" * 500_000)
                assert (answer.status, answer.json()) == (403, {"path": path})
        finally:
            for writer in bench.writers:
                writer.transport.abort()
            await listener.drain(0.5)

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("given", "sent"),
    [
        (["x" * 4000], [4000]),
        (["x" * 5000], [256]),
        (["x" * 100] * 40, [100] * 40),
        (["x" * 300] * 100, [256] * 16),
    ],
)
def test_warnings_are_cut_where_they_are_too_long_together(given: list[str], sent: list[int]) -> None:
    async def warn(request: Request) -> Response:
        return Response.of({}, warnings=tuple(given))

    async def scenario(bench: Bench) -> None:
        answer = await (await bench.connect()).ask("GET", "/")
        found = [value for name, value in answer.headers if name.lower() == "warning"]
        assert [len(value) - len('299 - ""') for value in found] == sent

    served(warn, scenario)
