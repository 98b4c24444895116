"""Streams of changes: the rows of the overview, or the sections of one object's page, as server-sent events.

A viewer that was disconnected goes on after the last change that it has seen.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import msgspec
from aiohttp import web

from holdfast.dashboard.answers import FAILURES, RETRY_SECONDS, Problem, key_of, problem_of
from holdfast.dashboard.boards import Board, Delta
from holdfast.dashboard.sessions import Session
from holdfast.dashboard.worlds import World, Worlds

SLOW_SECONDS: Final = 20.0
"""Seconds after which a viewer that does not read is disconnected; it connects again by itself."""

PULSE_SECONDS: Final = 15.0
"""Seconds between signs of life on a stream."""

PACE: Final = 0.1
"""The least time between two messages of a stream: a burst of changes is one message."""

CHUNK: Final = 1_000
"""How many rows a message has at most, so that the first are shown while others are on their way."""

MOST_STREAMS: Final = 32
"""How many streams one session may have."""

_BOOLEANS: Final = (b"false", b"true")

MOST_DIGITS: Final = 20
"""How long the number of a change may be."""


class Streams:
    """The streams of all viewers, each of which ends with its session."""

    def __init__(self, worlds: Worlds) -> None:
        self._worlds = worlds
        self._streams: dict[asyncio.Task[Any], Session] = {}

    def end(self, session: Session) -> None:
        """End the streams of a session."""
        for task, viewer in tuple(self._streams.items()):
            if viewer is session:
                task.cancel()

    def close(self) -> None:
        """End all streams."""
        for task in tuple(self._streams):
            task.cancel()

    async def serve(self, request: web.Request, session: Session) -> web.StreamResponse:
        if session.streams >= MOST_STREAMS:
            problem = f"this session has {session.streams} streams already"
            raise Problem(429, problem, "close other tabs of it", retry=RETRY_SECONDS)
        task = asyncio.current_task()
        assert task is not None, "a handler runs in a task"
        response = web.StreamResponse(
            headers={"Content-Type": "text/event-stream", "Cache-Control": "no-store", "X-Accel-Buffering": "no"}
        )

        async def write(data: bytes) -> None:
            # Prepared with the first message: until then a failure is an answer with its own status.
            if not response.prepared:
                await response.prepare(request)
            await response.write(data)

        session.streams += 1
        self._streams[task] = session
        try:
            async with self._worlds.of(session.token, session.namespace) as world:
                await send(_messages(world, request), write)
        finally:
            session.streams -= 1
            del self._streams[task]
        return response


def _messages(world: World, request: web.Request) -> AsyncGenerator[Message]:
    if request.query.get("resource"):
        return page(world, request.query)
    return overview(world, request.headers.get("Last-Event-ID") or request.query.get("since", ""))


async def overview(world: World, since: str) -> AsyncGenerator[Message]:
    """All rows, or those that changed since; then each change."""
    epoch, _, number = since.partition(".")
    is_number = number.isascii() and number.isdigit() and len(number) < MOST_DIGITS
    seen = int(number) if epoch == world.board.epoch and is_number else 0
    sent: tuple[str, bool] | None = None
    while True:
        delta = world.board.since(seen)
        if delta.reset or delta.rows or delta.gone or seen == 0:
            for message in _rows(world.board, delta):
                yield message
        seen = delta.number
        state = (world.trouble, world.loading)
        if state != sent:
            sent = state
            yield Message("state", msgspec.json.encode({"trouble": state[0], "loading": state[1]}))
        await asyncio.sleep(PACE)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(PULSE_SECONDS / 5):
                await world.board.change(seen)


def _rows(board: Board, delta: Delta) -> Iterator[Message]:
    """A change of rows; only its last message has an id, after which a viewer has seen all of it."""
    rows = delta.rows
    for start in range(0, max(len(rows), 1), CHUNK):
        last = start + CHUNK >= len(rows)
        yield Message(
            "rows",
            b'{"reset":%s,"more":%s,"rows":[%s],"gone":%s,"counts":%s}'
            % (
                _BOOLEANS[delta.reset and start == 0],
                _BOOLEANS[not last],
                b",".join(rows[start : start + CHUNK]),
                msgspec.json.encode(delta.gone if last else []),
                msgspec.json.encode(board.counts),
            ),
            f"{board.epoch}.{delta.number}" if last else "",
        )


async def page(world: World, query: Mapping[str, str]) -> AsyncGenerator[Message]:
    """The sections of a page, and then those that change."""
    kind = world.kind(query["resource"])
    if kind is None:
        raise Problem(404, f"there are no pages of {query['resource']}")
    key = key_of(kind.resource, query.get("namespace", ""), query.get("name", ""))
    async with world.page(kind, key) as following:
        sent: dict[str, bytes] = {}
        seen, counts = 0, None
        while True:
            await following.change(seen)
            seen, sections = following.number, following.sections
            changed = {name: body for name, body in sections.items() if sent.get(name) != body}
            sent = dict(sections)
            latest = world.board.counts
            if latest != counts:
                counts = latest
                changed["counts"] = msgspec.json.encode(counts)
            if changed:
                joined = b",".join(b'"%s":%s' % (name.encode(), body) for name, body in changed.items())
                yield Message("page", b"{%s}" % joined)


@dataclass(frozen=True, slots=True)
class Message:
    """A server-sent event; `id` is where a viewer goes on that was disconnected after it."""

    event: str
    data: bytes
    id: str = ""

    @property
    def encoded(self) -> bytes:
        # JSON of msgspec has no line breaks outside of strings, and escapes those inside.
        id = b"id: %s\n" % self.id.encode() if self.id else b""
        return b"event: %s\n%sdata: %s\n\n" % (self.event.encode(), id, self.data)


async def send(messages: AsyncGenerator[Message], write: Callable[[bytes], Awaitable[None]]) -> None:
    """Write messages until they end or fail, the viewer is gone, or the viewer does not read."""

    async def written(data: bytes) -> None:
        async with asyncio.timeout(SLOW_SECONDS):
            await write(data)

    waiting = asyncio.ensure_future(anext(messages))
    try:
        while True:
            done, _ = await asyncio.wait({waiting}, timeout=PULSE_SECONDS)
            if not done:
                await written(b": still here\n\n")
                continue
            try:
                message = waiting.result()
            except StopAsyncIteration:
                return
            except (*FAILURES, Problem) as error:
                # A browser does not show the status of a stream to its page, so a failure is a message.
                problem = problem_of(error)
                body = {"status": problem.status, "error": problem.message, "hint": problem.hint}
                await written(Message("failed", msgspec.json.encode(body)).encoded)
                return
            await written(message.encoded)
            waiting = asyncio.ensure_future(anext(messages))
    except (ConnectionError, TimeoutError):
        return
    finally:
        waiting.cancel()
        with contextlib.suppress(asyncio.CancelledError, Exception):
            await waiting
        await messages.aclose()
