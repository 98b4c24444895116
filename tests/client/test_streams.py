"""Streams: however their bytes fall, the same events come out."""

from __future__ import annotations

from collections.abc import AsyncIterator
from itertools import pairwise

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.client import streams
from holdfast.client.protocols import Added, Bookmark, Deleted, Event, Modified, Unreachable
from holdfast.client.resources import PODS
from holdfast.meta.errors import Expired, Gone
from holdfast.testing import loops


def line(type: str, **object: object) -> bytes:
    return msgspec.json.encode({"type": type, "object": object}) + b"\n"


META = {"name": "p", "namespace": "default", "resourceVersion": "7"}
END = {"k8s.io/initial-events-end": "true"}
WIRE = b"".join(
    [
        line("ADDED", metadata=META, spec={"text": "a\nb"}),
        line("MODIFIED", metadata=META),
        line("BOOKMARK", metadata={"resourceVersion": "8"}),
        line("BOOKMARK", metadata={"resourceVersion": "9", "annotations": END}),
        line("LATER", metadata=META),
        b"\n",
        line("DELETED", metadata=META),
    ]
)


async def chunked(wire: bytes, cuts: list[int]) -> AsyncIterator[bytes]:
    places = [0, *sorted(cuts), len(wire)]
    for start, end in pairwise(places):
        yield wire[start:end]


def read(wire: bytes, cuts: list[int]) -> list[Event]:
    async def test(loop: loops.VirtualLoop) -> list[Event]:
        return [event async for event in streams.events(PODS, chunked(wire, cuts))]

    return loops.run(test)


@given(st.lists(st.integers(0, len(WIRE)), max_size=20))
def test_events_do_not_depend_on_how_chunks_fall(cuts: list[int]) -> None:
    added, modified, bookmark, end, deleted = read(WIRE, cuts)
    assert [type(each) for each in (added, modified, deleted)] == [Added, Modified, Deleted]
    assert (bookmark, end) == (Bookmark("8"), Bookmark("9", initial=True))


def test_an_error_event_raises_what_it_carries() -> None:
    with pytest.raises(Expired):
        read(line("ERROR", **Expired.of(1, 5).to_status()), [])
    with pytest.raises(Gone):
        read(line("ERROR", kind="Status", code=410), [])


@pytest.mark.parametrize("wire", [WIRE[:-1], b'{"type":"ADD', b"<html>\n", b"{}\n", b'{"type":"ADDED","object":5}\n'])
def test_what_is_no_whole_event_is_unreachable(wire: bytes) -> None:
    with pytest.raises(Unreachable):
        read(wire, [])


@pytest.mark.parametrize(
    "wire",
    [
        b'{"type":"ADDED","object":{"metadata":{"name":"p"}}}\n',
        b'{"type":"ADDED","object":{"metadata":{"name":"p"}}} \n',
        b'{ "type": "ADDED", "object": {"metadata":{"name":"p"}} }\n',
        b'{"object":{"metadata":{"name":"p"}},"type":"ADDED"}\n',
        b'{"type":"ADDED","object":{"metadata":{"name":"p"}},"later":{"than":"ours"}}\n',
    ],
)
def test_an_event_is_read_however_its_line_is_written(wire: bytes) -> None:
    (event,) = read(wire, [])
    assert isinstance(event, Added)
    assert event.object.wire()["metadata"] == {"name": "p"}


@pytest.mark.parametrize(
    "wire", [b'{"type":"ADDED","object":\n', b'{"type":"ADDED","object":}\n', b'{"type":"ADDED"}\n']
)
def test_a_line_that_is_no_event_ends_the_watch(wire: bytes) -> None:
    with pytest.raises(Unreachable, match="no event"):
        read(wire, [])
