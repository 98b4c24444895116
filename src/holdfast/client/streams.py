"""Streams of an API: bytes as they come, cut into lines, read as the events of a watch.

Knows what a watch event looks like, and nothing of requests.  The caller that opened
a stream closes it, also where it was never read.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from typing import Any, Final

import msgspec

from holdfast.client.objects import Object
from holdfast.client.protocols import Added, Bookmark, Deleted, Event, Modified, Unreachable
from holdfast.client.resources import Resource
from holdfast.meta.errors import from_status

_INITIAL_EVENTS_END: Final = "k8s.io/initial-events-end"

_CHANGES: Final[Mapping[str, type[Added | Modified | Deleted]]] = {
    "ADDED": Added,
    "MODIFIED": Modified,
    "DELETED": Deleted,
}


_STARTS: Final = tuple((f'{{"type":"{name}","object":'.encode(), change) for name, change in _CHANGES.items())


class _Line(msgspec.Struct, gc=False):
    type: str
    object: msgspec.Raw


_line = msgspec.json.Decoder(_Line)


async def events(resource: Resource, stream: AsyncIterator[bytes]) -> AsyncGenerator[Event, None]:
    """What a watch says, until its stream ends; raises what an error event carries."""
    async for line in lines(stream):
        try:
            event = event_of(resource, line)
        except msgspec.DecodeError as error:
            raise Unreachable(f"the watch of {resource} sent what is no event: {error}") from None
        if event is not None:
            yield event


def event_of(resource: Resource, line: bytes) -> Event | None:
    """One event; None where it is of a type from a later Kubernetes than ours."""
    for start, change in _STARTS:
        if line.startswith(start):
            try:
                # As all servers write it: what is left is the object, which is then not read twice.
                return change(Object(resource, line[len(start) : line.rfind(b"}")]))
            except msgspec.DecodeError:
                break
    read = _line.decode(line)
    raw = bytes(read.object)  # a copy: the slice would keep alive all that came with it
    if read.type in _CHANGES:
        return _CHANGES[read.type](Object(resource, raw))
    if read.type == "BOOKMARK":
        meta = Object(resource, raw).meta
        return Bookmark(meta.resource_version, initial=meta.annotations.get(_INITIAL_EVENTS_END) == "true")
    if read.type == "ERROR":
        status = msgspec.json.decode(raw, type=dict[str, Any])
        raise from_status(status, 500)
    return None


async def lines(stream: AsyncIterator[bytes]) -> AsyncGenerator[bytes, None]:
    """Whole lines, however the chunks fall; a stream that ends within one was broken off."""
    rest = b""
    async for chunk in stream:
        *whole, rest = (rest + chunk).split(b"\n")
        for line in whole:
            if line:
                yield line
    if rest:
        raise Unreachable("the stream broke off in the middle of a line")


async def close(stream: AsyncIterator[Any]) -> None:
    """Close a stream, where its kind can be closed."""
    aclose = getattr(stream, "aclose", None)
    if aclose is not None:
        await aclose()
