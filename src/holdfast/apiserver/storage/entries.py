"""The values of the store: committed objects, changes that are asked for, events that follow from them.

An object travels as JSON bytes; of its content only the metadata is ever looked into, late and once.  Nothing here
does I/O or knows a clock: `outcome` decides what a change does to the object it finds.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from functools import cached_property
from typing import Any, Literal, TypeAlias

import msgspec

from holdfast.meta.exchange import encode

Key: TypeAlias = tuple[str, str, str]
"""Resource, namespace, name."""

EventType: TypeAlias = Literal["ADDED", "MODIFIED", "DELETED"]


class Owner(msgspec.Struct, frozen=True, gc=False):
    uid: str = ""


class Metadata(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """The part of an object's metadata that lists, selectors and garbage collection use."""

    uid: str = ""
    labels: dict[str, str] | None = None
    deletion_timestamp: str | None = None
    owner_references: tuple[Owner, ...] | None = None


class _Partial(msgspec.Struct, frozen=True, gc=False):
    metadata: Metadata


_decode_partial = msgspec.json.Decoder(_Partial).decode
_decode = msgspec.json.Decoder(dict[str, Any]).decode


class Entry(msgspec.Struct, frozen=True, dict=True):
    """One committed version of an object.

    resource    `ResourceType.key`, such as ``apps/deployments``
    namespace   empty where the kind is cluster scoped
    rv          the resourceVersion of that write
    value       the whole object in JSON, its resourceVersion included
    """

    resource: str
    namespace: str
    name: str
    rv: int
    value: bytes

    @property
    def key(self) -> Key:
        return self.resource, self.namespace, self.name

    @cached_property
    def metadata(self) -> Metadata:
        return _decode_partial(self.value).metadata

    @cached_property
    def converted(self) -> dict[str, bytes]:
        """The object in versions that it was converted to, by apiVersion; see `verbs.versions`."""
        return {}

    @property
    def uid(self) -> str:
        return self.metadata.uid

    @property
    def labels(self) -> dict[str, str]:
        """Its labels; not to be changed."""
        return self.metadata.labels or {}

    @property
    def deleting(self) -> bool:
        """Whether it has a deletionTimestamp."""
        return self.metadata.deletion_timestamp is not None

    @property
    def owners(self) -> tuple[str, ...]:
        """The UIDs of its owners."""
        return tuple(owner.uid for owner in self.metadata.owner_references or ())


class Draft(msgspec.Struct, frozen=True, gc=False):
    """An encoded object whose resourceVersion is not known yet: it belongs between `head` and `tail`."""

    head: bytes
    tail: bytes

    @classmethod
    def of(cls, obj: Mapping[str, Any]) -> Draft:
        """Encode an object without its resourceVersion.

        The place is found by structure, never by searching the text, because objects may contain any text.
        """
        head, tail = _around(obj, "metadata")
        inner_head, inner_tail = _around(obj.get("metadata") or {}, "resourceVersion")
        return cls(head + inner_head + b'"', b'"' + inner_tail + tail)

    @property
    def is_deleting(self) -> bool:
        """Whether the object has a deletionTimestamp."""
        return _decode_partial(self.at(0)).metadata.deletion_timestamp is not None

    def at(self, rv: int) -> bytes:
        return b"%b%d%b" % (self.head, rv, self.tail)


def _around(obj: Mapping[str, Any], name: str) -> tuple[bytes, bytes]:
    """The JSON of `obj` before and after the value of one field, which keeps its place or else comes last."""
    if name not in obj:
        return encode(obj)[:-1] + (b"," if obj else b"") + encode(name) + b":", b"}"
    before: dict[str, Any] = {}
    after: dict[str, Any] = {}
    side = before
    for field, value in obj.items():
        if field == name:
            side = after
        else:
            side[field] = value
    head = encode(before)[:-1] + (b"," if before else b"") + encode(name) + b":"
    return head, b"," + encode(after)[1:] if after else b"}"


class Put(msgspec.Struct, frozen=True, gc=False):
    """Write an object.  `expect`: 0, it must not exist; n, it must be at that version; None, whatever there is."""

    resource: str
    namespace: str
    name: str
    draft: Draft
    expect: int | None = None


class Remove(msgspec.Struct, frozen=True, gc=False):
    """Remove an object, which must exist, at version `expect` unless that is None.

    `draft` is what its DELETED event shows; without one, that is the last state.
    """

    resource: str
    namespace: str
    name: str
    expect: int | None = None
    draft: Draft | None = None


Change: TypeAlias = Put | Remove


class Stale(Exception):
    """A change expected another version than it found, so its whole write was not done."""

    def __init__(self, change: Change, found: Entry | None) -> None:
        self.change = change
        self.found = found
        wanted = {None: "expected it to exist", 0: "expected no such object"}.get(
            change.expect, f"expected version {change.expect}"
        )
        there = f"version {found.rv}" if found else "nothing"
        super().__init__(f"{change.resource} {change.namespace}/{change.name}: {wanted}, found {there}")


class Event(msgspec.Struct, frozen=True, gc=False):
    """One committed change.

    entry      the object after it; for DELETED its final state, at the version of the deletion
    previous   the object before it
    at         when it was staged, in whole seconds since the epoch
    encoded    its bytes by form, so that it is encoded once for all watches
    """

    type: EventType
    entry: Entry
    previous: Entry | None
    at: int
    encoded: dict[str, bytes] = {}

    @property
    def rv(self) -> int:
        return self.entry.rv


def outcome(change: Change, found: Entry | None, *, rv: int, at: int) -> Event:
    """What a change does to the object that it finds; `Stale` if that is not the one it expects."""
    missing = found is None and isinstance(change, Remove)
    if missing or change.expect not in (None, found.rv if found else 0):
        raise Stale(change, found)
    draft = change.draft or Draft.of(_decode(found.value) if found else {})
    entry = Entry(
        # Thousands of entries share these two; one copy of each is enough.
        sys.intern(change.resource),
        sys.intern(change.namespace),
        change.name,
        rv,
        draft.at(rv),
    )
    if isinstance(change, Remove):
        return Event("DELETED", entry, found, at)
    return Event("MODIFIED" if found else "ADDED", entry, found, at)
