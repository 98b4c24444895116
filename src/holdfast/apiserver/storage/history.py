"""The history: a bounded window of recent committed events, shared by all watches.

A watch is a position in the events of one resource (or of one namespace of it), not a buffer: a slow
watch holds no events back, and ends when the window has moved past it.  Nothing here writes, blocks or
knows where events are kept; all of it belongs to the event loop's thread.

::

    Expired        a version older than the window was asked for: list again
    └── Ahead      a version that was never reached: the client knows another history
    Ended          the watch gives no more events
    └── Overflow   because it fell out of the window: list again
"""

from __future__ import annotations

import asyncio
from bisect import bisect_right
from collections import Counter, deque
from collections.abc import Iterable, Sequence
from itertools import islice
from operator import attrgetter
from typing import Final, TypeAlias

import msgspec

from holdfast.apiserver.storage.entries import Event

BATCH: Final = 256
"""The most events that a watch returns at once: a slow reader may keep these alive beyond the window."""

FORGOTTEN_AT_ONCE: Final = 1024
"""The most events that one commit removes, so that no commit is slow."""

WARM: Final = 256
"""The newest events may keep their encoded forms; a watch that is further behind encodes again."""


class Expired(Exception):
    def __init__(self, asked: int, compacted: int) -> None:
        self.asked = asked
        self.compacted = compacted
        super().__init__(self._sentence())

    def _sentence(self) -> str:
        return f"version {self.asked} is too old: history begins after {self.compacted}; list again"


class Ahead(Expired):
    def _sentence(self) -> str:
        return f"version {self.asked} was never reached here: it belongs to another history; list again"


class Ended(Exception):
    pass


class Overflow(Ended):
    def __init__(self) -> None:
        super().__init__("the watch fell behind the history that is kept; list again")


class Window(msgspec.Struct, frozen=True, kw_only=True):
    """The size of the window: an event is dropped as soon as one of these is exceeded."""

    events: int = 10_000
    octets: int = 32 * 1024 * 1024
    age: float = 600.0
    """In seconds; checked with each write, so that an idle store does nothing."""


_Topic: TypeAlias = tuple[str, str | None]
"""A resource, and a namespace or None for all."""


class _Stream:
    """The events of one topic in the window; ordinals do not change when older events are dropped."""

    __slots__ = ("dropped", "events", "watches")

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.dropped = 0
        # A dict for its order: watches are woken in the order in which they began to wait.
        self.watches: dict[Watch, None] = {}

    @property
    def end(self) -> int:
        return self.dropped + len(self.events)

    def after(self, rv: int) -> int:
        """The ordinal of the first event after a version."""
        return self.dropped + bisect_right(self.events, rv, key=attrgetter("rv"))

    def drop(self, count: int) -> None:
        del self.events[:count]
        self.dropped += count


class Watch:
    """Committed events of one topic, in order, none missed, none repeated.  For one reader, who must close it."""

    def __init__(self, history: History, stream: _Stream, topic: _Topic, *, position: int) -> None:
        self._history = history
        self._stream = stream
        self._topic = topic
        self._position = position
        self._waiter: asyncio.Future[None] | None = None
        self._closed = False

    @property
    def revision(self) -> int:
        """The newest version up to which all its events have been read: the version of a bookmark."""
        behind = self._position - self._stream.dropped
        pending = self._stream.events[max(behind, 0) :][:1]
        return pending[0].rv - 1 if pending else self._history.revision

    async def take(self, *, within: float | None = None) -> list[Event]:
        """The next events, as soon as there are some; none after that many seconds without an event.

        After `close` the remaining events are still returned, then `Ended` is raised.
        """
        if self._position == self._stream.end and not self._closed:
            await self._change(within)
        start = self._position - self._stream.dropped
        if start < 0:
            self.close()
            raise Overflow
        events = self._stream.events[start : start + BATCH]
        if not events and self._closed:
            raise Ended
        self._position += len(events)
        return events

    def __aiter__(self) -> Watch:
        return self

    async def __anext__(self) -> list[Event]:
        try:
            return await self.take()
        except Overflow:
            raise
        except Ended:
            raise StopAsyncIteration from None

    def close(self) -> None:
        self._closed = True
        self._history.leave(self, self._stream, self._topic)
        self.wake()

    def wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    async def _change(self, within: float | None) -> None:
        loop = asyncio.get_running_loop()
        self._waiter = loop.create_future()
        timer = None if within is None else loop.call_later(within, self.wake)
        try:
            await self._waiter
        finally:
            self._waiter = None
            if timer is not None:
                timer.cancel()


class History:
    """The window: every event after `compacted` up to `revision`."""

    def __init__(self, window: Window, *, compacted: int, events: Iterable[Event] = ()) -> None:
        self.window = window
        self.compacted = compacted
        self.revision = compacted
        self._events: deque[Event] = deque()
        self._octets = 0
        self._streams: dict[_Topic, _Stream] = {}
        self.append(events)

    def append(self, events: Iterable[Event]) -> None:
        """Add newly committed events and wake the watches that wait for them."""
        touched: dict[_Stream, None] = {}
        for event in events:
            self._events.append(event)
            self._octets += len(event.entry.value)
            self.revision = event.rv
            if len(self._events) > WARM:
                self._events[-WARM - 1].encoded.clear()
            for topic in _topics(event):
                stream = self._stream(topic)
                stream.events.append(event)
                touched[stream] = None
        for stream in touched:
            for watch in stream.watches:
                watch.wake()

    def overdue(self, incoming: Sequence[Event] = (), *, now: float, floor: int) -> list[Event]:
        """The oldest events to drop once `incoming` is added: beyond the window, or not after `floor`."""
        surplus = len(self._events) + len(incoming) - self.window.events
        octets = self._octets + sum(len(event.entry.value) for event in incoming) - self.window.octets
        overdue = []
        for event in islice(self._events, FORGOTTEN_AT_ONCE):
            if surplus <= 0 and octets <= 0 and event.rv > floor and event.at >= now - self.window.age:
                break
            surplus -= 1
            octets -= len(event.entry.value)
            overdue.append(event)
        return overdue

    def forget(self, count: int) -> None:
        """Drop the oldest events; a watch that has not read them all ends."""
        dropped: Counter[_Topic] = Counter()
        for _ in range(count):
            event = self._events.popleft()
            self._octets -= len(event.entry.value)
            self.compacted = event.rv
            dropped.update(_topics(event))
        for topic, number in dropped.items():
            stream = self._streams[topic]
            stream.drop(number)
            self._discard_if_unused(topic, stream)

    def since(self, resource: str, namespace: str | None, *, rv: int) -> Sequence[Event]:
        """The events after a version; raises `Expired` if some of them were dropped."""
        self._check(rv)
        stream = self._streams.get((resource, namespace))
        return stream.events[stream.after(rv) - stream.dropped :] if stream else ()

    def watch(self, resource: str, namespace: str | None, *, since: int) -> Watch:
        """Follow the events after a version; raises `Expired` if some of them were dropped."""
        self._check(since)
        topic = resource, namespace
        stream = self._stream(topic)
        watch = Watch(self, stream, topic, position=stream.after(since))
        stream.watches[watch] = None
        return watch

    def leave(self, watch: Watch, stream: _Stream, topic: _Topic) -> None:
        stream.watches.pop(watch, None)
        self._discard_if_unused(topic, stream)

    def close(self) -> None:
        """End every watch once it has returned its remaining events."""
        for watch in [watch for stream in self._streams.values() for watch in stream.watches]:
            watch.close()

    def _check(self, rv: int) -> None:
        if rv < self.compacted:
            raise Expired(rv, self.compacted)
        if rv > self.revision:
            raise Ahead(rv, self.compacted)

    def _stream(self, topic: _Topic) -> _Stream:
        stream = self._streams.get(topic)
        if stream is None:
            stream = self._streams[topic] = _Stream()
        return stream

    def _discard_if_unused(self, topic: _Topic, stream: _Stream) -> None:
        if not stream.events and not stream.watches:
            self._streams.pop(topic, None)


def _topics(event: Event) -> tuple[_Topic, _Topic]:
    resource, namespace, _ = event.entry.key
    return (resource, namespace), (resource, None)
