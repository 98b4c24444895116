"""Backups: all objects of a store at one version, as lines of JSON.

    {"format": "holdfast-backup/v1", "revision": n, "objects": count}      first
    [resource, namespace, name, version, object]                           one for each object

A backup is read as a whole or not at all.  This module must not know where the lines come from or go to.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple

import msgspec

from holdfast.apiserver.storage.entries import Entry
from holdfast.meta.exchange import encode

FORMAT: Final = "holdfast-backup/v1"

SKIPPED: Final = 1_000_000
"""How many versions a restored store leaves out, so that it gives none again that clients saw after the backup."""


class BackupError(Exception):
    """The lines are not a whole backup."""


class Backup(NamedTuple):
    revision: int
    entries: list[Entry]


class _Head(msgspec.Struct, frozen=True):
    format: str
    revision: int
    objects: int


class _Line(msgspec.Struct, frozen=True, array_like=True):
    resource: str
    namespace: str
    name: str
    rv: int
    value: msgspec.Raw


_head = msgspec.json.Decoder(_Head).decode
_line = msgspec.json.Decoder(_Line).decode


def lines(revision: int, entries: Sequence[Entry]) -> Iterator[bytes]:
    """The lines of a backup."""
    yield encode(_Head(FORMAT, revision, len(entries))) + b"\n"
    for each in entries:
        yield encode(_Line(each.resource, each.namespace, each.name, each.rv, msgspec.Raw(each.value))) + b"\n"


def read(given: Iterable[bytes]) -> Backup:
    """The backup that lines hold; raises `BackupError` if they are not whole."""
    remaining = iter(given)
    try:
        head = _head(next(remaining, b""))
        if head.format != FORMAT:
            raise BackupError(f"its format is {head.format!r}, and this release reads {FORMAT!r}")
        entries = [_entry(line) for line in remaining]
    except msgspec.MsgspecError as error:
        raise BackupError(f"it is not a backup: {error}") from error
    if len(entries) != head.objects:
        raise BackupError(f"it is not whole: it has {len(entries)} of {head.objects} objects")
    return Backup(head.revision, entries)


def _entry(line: bytes) -> Entry:
    read = _line(line)
    return Entry(sys.intern(read.resource), sys.intern(read.namespace), read.name, read.rv, bytes(read.value))
