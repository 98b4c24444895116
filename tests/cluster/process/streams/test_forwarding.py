"""Ports of pods for clients: the framing of SPDY, and connections inside it."""

from __future__ import annotations

import asyncio
import struct
import zlib
from collections.abc import Awaitable, Callable

import pytest
from tests.cluster.processes import PATIENCE

from holdfast.cluster.process.streams.forwarding import forward
from holdfast.cluster.process.streams.spdy import DICTIONARY, MOST, Answer, Data, Framing, Opened, Reset, SpdyError


class Peer:
    """The side of a client: makes frames, and reads those of the server."""

    protocol = "SPDY/3.1+portforward.k8s.io"

    def __init__(self) -> None:
        self._deflate = zlib.compressobj(zdict=DICTIONARY)
        self._sent: asyncio.Queue[bytes | None] = asyncio.Queue()
        self.replied: list[int] = []
        self.data: dict[int, bytes] = {}
        self.ended: set[int] = set()
        self.changed = asyncio.Event()

    def opened(self, stream: int, **headers: str) -> bytes:
        pairs = [(name.encode(), value.encode()) for name, value in headers.items()]
        block = struct.pack(">I", len(pairs))
        for pair in pairs:
            block += b"".join(struct.pack(">I", len(part)) + part for part in pair)
        packed = self._deflate.compress(block) + self._deflate.flush(zlib.Z_SYNC_FLUSH)
        body = struct.pack(">IIH", stream, 0, 0) + packed
        return struct.pack(">II", 1 << 31 | 3 << 16 | 1, len(body)) + body

    def connection(self, number: int, port: int) -> bytes:
        """The streams of one connection: 2n+1 for errors, and 2n+3 for data."""
        first, second = 4 * number + 1, 4 * number + 3
        common = {"port": str(port), "requestid": str(number)}
        return self.opened(first, streamtype="error", **common) + self.opened(second, streamtype="data", **common)

    @staticmethod
    def frame(stream: int, data: bytes, *, ended: bool = False) -> bytes:
        return struct.pack(">II", stream, (ended << 24) | len(data)) + data

    # What the server calls.

    async def receive(self) -> bytes | None:
        return await self._sent.get()

    async def send(self, message: bytes) -> None:
        first, second = struct.unpack_from(">II", message)
        body = message[8 : 8 + (second & 0xFFFFFF)]
        if first >> 31:
            if first & 0xFFFF == 2:
                self.replied.append(struct.unpack_from(">I", body)[0])
        else:
            self.data[first] = self.data.get(first, b"") + body
            if second >> 24:
                self.ended.add(first)
        self.changed.set()

    async def close(self) -> None:
        self.say(None)

    def say(self, message: bytes | None) -> None:
        self._sent.put_nowait(message)

    async def until(self, holds: Callable[[], bool]) -> None:
        async with asyncio.timeout(PATIENCE):
            while not holds():
                self.changed.clear()
                await self.changed.wait()


def play(story: Callable[[Peer, int], Awaitable[None]]) -> None:
    """Run a story beside a server that answers each connection with what it got, in capitals."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write((await reader.read()).upper())
        writer.close()

    async def run() -> None:
        server = await asyncio.start_server(answer, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        peer = Peer()

        def connect(number: int) -> Awaitable[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
            return asyncio.open_connection("127.0.0.1", number)

        session = asyncio.ensure_future(forward(peer, connect, pod="web-0"))
        try:
            await story(peer, port)
            peer.say(None)
            async with asyncio.timeout(PATIENCE):
                await session
        finally:
            session.cancel()
            server.close()

    asyncio.run(run())


def test_connections_carry_bytes_both_ways_and_end() -> None:
    async def story(peer: Peer, port: int) -> None:
        for number in range(3):
            peer.say(peer.connection(number, port))
            peer.say(peer.frame(4 * number + 3, b"hello " * 1000))
            peer.say(peer.frame(4 * number + 3, b"bye", ended=True))
        await peer.until(lambda: {3, 7, 11, 1, 5, 9} <= peer.ended)
        assert set(peer.replied) == {1, 3, 5, 7, 9, 11}
        assert all(peer.data[stream] == b"HELLO " * 1000 + b"BYE" for stream in (3, 7, 11))
        assert all(peer.data[stream] == b"" for stream in (1, 5, 9))

    play(story)


def test_frames_may_come_in_any_pieces() -> None:
    async def story(peer: Peer, port: int) -> None:
        whole = peer.connection(0, port) + peer.frame(3, b"hello", ended=True)
        for at in range(len(whole)):
            peer.say(whole[at : at + 1])
        await peer.until(lambda: 3 in peer.ended)
        assert peer.data[3] == b"HELLO"

    play(story)


def test_a_port_on_which_nothing_listens_is_an_error_of_that_connection_alone() -> None:
    async def story(peer: Peer, port: int) -> None:
        peer.say(peer.connection(0, 1))
        await peer.until(lambda: {1, 3} <= peer.ended)
        assert peer.data[1].startswith(b"error forwarding port 1 to pod web-0: ")
        peer.say(peer.connection(1, port) + peer.frame(7, b"x", ended=True))
        await peer.until(lambda: 7 in peer.ended)
        assert peer.data[7] == b"X"

    play(story)


def test_a_client_that_goes_or_talks_nonsense_ends_the_session() -> None:
    async def story(peer: Peer, port: int) -> None:
        peer.say(peer.connection(0, port))
        await peer.until(lambda: 3 in peer.replied)
        peer.say(struct.pack(">II", 1 << 31 | 2 << 16 | 1, 0))

    play(story)


def test_the_dictionary_is_that_of_the_protocol() -> None:
    assert zlib.adler32(DICTIONARY) == 0xE3C6A7C2


def test_pings_are_answered_and_resets_and_unknown_frames_are_understood() -> None:
    framing = Framing()
    ping = struct.pack(">III", 1 << 31 | 3 << 16 | 6, 4, 7)
    reset = struct.pack(">IIII", 1 << 31 | 3 << 16 | 3, 8, 5, 1)
    settings = struct.pack(">II", 1 << 31 | 3 << 16 | 4, 4) + bytes(4)
    assert list(framing.feed(ping + reset + settings)) == [Answer(ping), Reset(5)]
    assert list(framing.feed(framing.data(9, b"abc", ended=True))) == [Data(9, b"abc", True)]


def test_headers_are_read_whatever_case_they_have() -> None:
    frame = Peer().opened(3, StreamType="data", Port="80")
    assert list(Framing().feed(frame)) == [Opened(3, {"streamtype": "data", "port": "80"}, False)]


@pytest.mark.parametrize(
    "frame",
    [
        struct.pack(">II", 3, MOST + 1),
        struct.pack(">II", 1 << 31 | 3 << 16 | 1, 20) + bytes(20),
        struct.pack(">II", 1 << 31 | 9 << 16 | 1, 0),
    ],
    ids=["too large", "headers that are none", "another version"],
)
def test_what_is_not_the_protocol_is_refused(frame: bytes) -> None:
    with pytest.raises(SpdyError):
        list(Framing().feed(frame))
