"""Watches: a stream of events from committed changes, with bookmarks and selectors."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from typing import Any, Final

from holdfast.apiserver.http.bodies import read_json
from holdfast.apiserver.http.options import ListOptions
from holdfast.apiserver.resources import ResourceType
from holdfast.apiserver.storage.store import Ahead, Ended, Entry, Event, Overflow, Store, Watch
from holdfast.apiserver.storage.store import Expired as StoreExpired
from holdfast.apiserver.verbs.reads import Filter
from holdfast.apiserver.verbs.versions import prepared, wire
from holdfast.meta.errors import Expired, StatusError
from holdfast.meta.exchange import encode

BOOKMARK_SECONDS: Final = 30.0
LONGEST_SECONDS: Final = 3600.0
INITIAL_EVENTS_END: Final = "k8s.io/initial-events-end"

Render = Callable[[Entry], bytes]
"""Converts an object to the requested form: itself, a table of one row, or its metadata."""


class Stream(AsyncIterator[bytes]):
    """The stream of a watch; it must be closed, even if it was never read."""

    def __init__(
        self,
        store: Store,
        kind: ResourceType,
        namespace: str | None,
        options: ListOptions,
        *,
        render: Render | None,
        clock: Callable[[], float],
    ) -> None:
        self.store = store
        self.kind = kind
        self.namespace = namespace
        self.options = options
        self.wanted = Filter(kind, options)
        self.plain = render is None
        self.render: Render = render or (lambda entry: wire(entry, kind))
        version = options.version
        self.initial = options.initial_events if options.initial_events is not None else version in (None, 0)
        self.first = store.list(kind.key, namespace) if self.initial else []
        self.since = version if version and not self.initial else store.revision
        self.watch: Watch | None = None
        self._awaited = False
        try:
            self.watch = store.watch(kind.key, namespace, since=self.since)
        except Ahead as error:
            # A version of another history: the client has to list again.
            self._chunks = _refusing(Expired(str(error)))
        except StoreExpired:
            self._chunks = _refusing(Expired.of(self.since, store.compacted))
        else:
            self._chunks = self._written(self.watch, clock)

    async def __anext__(self) -> bytes:
        self._awaited = True
        try:
            return await anext(self._chunks)
        finally:
            self._awaited = False

    async def aclose(self) -> None:
        # A generator that was never started does not run its ``finally``.
        if self.watch is not None:
            self.watch.close()
        # A generator that is being awaited cannot be closed from outside; it ends now that its watch has ended.
        if not self._awaited:
            await self._chunks.aclose()

    async def _written(self, watch: Watch, now: Callable[[], float]) -> AsyncGenerator[bytes, None]:
        """Events as they are committed, joined if several are waiting; ends after the timeout."""
        sent = now()
        ends = sent + (self.options.timeout if self.options.timeout else LONGEST_SECONDS)
        try:
            await prepared(self.first, self.kind)
            opening = b"".join(_line("ADDED", self.render(entry)) for entry in self.first if self.wanted(entry))
            self.first = []
            if self.initial and self.options.initial_events:
                opening += self._bookmark(self.since, end_of_initial=True)
            if opening:
                yield opening
            while (left := ends - now()) > 0:
                events = await watch.take(within=min(left, BOOKMARK_SECONDS))
                await self._prepare(events)
                chunk = b"".join(self._events(event) for event in events)
                # Also while there are many events that the selector does not match.
                if not chunk and self.options.bookmarks and (not events or now() - sent >= BOOKMARK_SECONDS):
                    chunk = self._bookmark(watch.revision)
                if chunk:
                    sent = now()
                    yield chunk
        except Overflow:
            yield _error(Expired.of(self.since, self.store.compacted))
        except StatusError as error:
            # An object cannot be converted; the client lists again.
            yield _error(error)
        except Ended:
            return
        finally:
            watch.close()

    async def _prepare(self, events: Sequence[Event]) -> None:
        """Convert the objects of events that are stored in another version."""
        if self.kind.convert is not None:
            entries = (each for event in events for each in (event.entry, event.previous) if each is not None)
            await prepared(entries, self.kind)

    def _events(self, event: Event) -> bytes:
        """The event that the client gets for a change: objects may begin or cease to match its selector."""
        entry, previous = event.entry, event.previous
        if self.wanted.everything:
            if not self.plain:
                return _line(event.type, self.render(entry))
            line = event.encoded.get(self.kind.api_version)
            if line is None:
                line = event.encoded[self.kind.api_version] = _line(event.type, wire(entry, self.kind))
            return line
        before = previous is not None and self.wanted(previous)
        after = event.type != "DELETED" and self.wanted(entry)
        if before and after:
            return _line("MODIFIED", self.render(entry))
        if after:
            return _line("ADDED", self.render(entry))
        if before and previous is not None:
            return _line("DELETED", self.render(entry if event.type == "DELETED" else _at(previous, entry.rv)))
        return b""

    def _bookmark(self, rv: int, *, end_of_initial: bool = False) -> bytes:
        meta: dict[str, Any] = {"resourceVersion": str(rv), "creationTimestamp": None}
        if end_of_initial:
            meta["annotations"] = {INITIAL_EVENTS_END: "true"}
        marker = encode({"kind": self.kind.kind, "apiVersion": self.kind.api_version, "metadata": meta})
        # A client that asked for another form decodes nothing else.
        shown = marker if self.plain else self.render(Entry(self.kind.key, "", "", rv, marker))
        return _line("BOOKMARK", shown)


def _at(entry: Entry, rv: int) -> Entry:
    """The last state that matched, at the version at which it stopped matching."""

    def at(value: bytes) -> bytes:
        obj = read_json(value)
        obj["metadata"]["resourceVersion"] = str(rv)
        return encode(obj)

    made = Entry(entry.resource, entry.namespace, entry.name, rv, at(entry.value))
    made.converted.update({version: at(value) for version, value in entry.converted.items()})
    return made


async def _refusing(error: Expired) -> AsyncGenerator[bytes, None]:
    """The stream of a watch that cannot start: its error is sent as an event."""
    yield _error(error)


def _error(error: StatusError) -> bytes:
    return _line("ERROR", encode(error.to_status()))


def _line(type_: str, value: bytes) -> bytes:
    return b'{"type":"' + type_.encode() + b'","object":' + value + b"}\n"
