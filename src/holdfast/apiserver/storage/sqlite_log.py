"""The log on disk: every event of the window and the last state of every object, in one SQLite table.

A row is needed as long as it is some object's state at the oldest version that can be asked for, or is newer.  So
when an event leaves the window, the row that it superseded goes, and the event's own if it was a deletion; what is
left, replayed in order, is the store.  No pointer table and no second index are needed, for lookups are answered
from memory, and the cost of forgetting is in proportion to the cost of writing.

Durability: WAL with ``synchronous=FULL``.  A commit returns only after its frames are flushed to the device, so an
acknowledged write survives both the death of the process and the loss of power.  One connection holds the file
exclusively.  This module must not know objects' content, watches or the event loop.

Damage: every row has a checksum.  SQLite ignores the end of a write-ahead log that is damaged or missing, as if it
had never been written; so the last acknowledged version also stands in a file of its own (`LAST`), and a log that
ends before it has lost writes.  That file is written after each commit and never flushed, so it may be behind after a
loss of power, and is never ahead.

Full disk: a file of `RESERVE` bytes takes up space on the disk (`RESERVED`).  A write that frees space in the end may
use that space; then other writes are refused until it can be taken up again, or until the file has as much
room within.

::

    StorageError
    ├── CannotOpen       nothing was changed
    │   ├── InUse        another process has it
    │   ├── TooNew       written by a newer release
    │   └── Corrupted    it cannot be trusted
    └── WriteFailed      nothing of the write is visible
        └── Full         there may be room again later
"""

from __future__ import annotations

import contextlib
import errno
import os
import sqlite3
import struct
import sys
import time
import zlib
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, Final, NamedTuple

from holdfast.apiserver.storage.entries import Entry, Event, Key

FILE: Final = "objects.db"
LAST: Final = "objects.last"
"""The file with the last acknowledged version."""

RESERVED: Final = "objects.reserve"
RESERVE: Final = 2 * 1024 * 1024
"""Bytes that are kept for deletions."""

_SCARCE: Final = 256 * 1024
"""With less than this left on the disk, a start gives up the reserve, for the small files that every start writes."""

_MANY_PAGES: Final = 1000
_FEW_PAGES: Final = 16
"""The pages in the write-ahead log after which they are moved to the file: usually, and without a reserve."""

_LOOK_AGAIN: Final = 1.0
"""Seconds between two attempts to take up the reserve again."""

_APPLICATION: Final = 0x486F6C64
"""The application_id of the file: 'Hold'."""

MIGRATIONS: Final = (
    """
    CREATE TABLE log (
        rv        INTEGER PRIMARY KEY,
        at        INTEGER NOT NULL,  -- seconds since the epoch
        resource  TEXT NOT NULL,
        namespace TEXT NOT NULL,
        name      TEXT NOT NULL,
        deleted   INTEGER NOT NULL,
        previous  INTEGER NOT NULL,  -- version that this one replaced, or 0
        value     BLOB NOT NULL
    );
    CREATE TABLE mark (compacted INTEGER NOT NULL);
    -- Versions begin after 1: to clients, 0 means "any".
    INSERT INTO mark VALUES (1);
    """,
    """
    ALTER TABLE log ADD COLUMN checksum INTEGER NOT NULL DEFAULT 0;
    UPDATE log SET checksum = row_checksum(rv, at, resource, namespace, name, deleted, previous, value);
    """,
)
"""Each migrates the schema from its index to the next version; released ones are never edited."""

# Rows of 2 KB fill pages of 4 KB badly.
_PAGE_SIZE: Final = 8192

COLUMNS: Final = "rv, at, resource, namespace, name, deleted, previous, value, checksum"
_ROW: Final = "(?, ?, ?, ?, ?, ?, ?, ?, ?)"
INSERT: Final = f"INSERT INTO log ({COLUMNS}) VALUES {_ROW}"
_INSERTS: Final = {many: f"{INSERT}{f', {_ROW}' * (many - 1)}" for many in (64, *range(32, 0, -1))}
"""Statements that insert several rows: most batches are one statement, which is a transaction by itself.

The thread gives up the interpreter around every statement, and gets it back only when the event loop can spare it.
"""
SELECT: Final = f"SELECT {COLUMNS} FROM log ORDER BY rv"
_LAST: Final = struct.Struct(">QI")

MOST_NAMED: Final = 10
"""The most damaged rows that an error names."""


class StorageError(Exception):
    pass


class CannotOpen(StorageError):
    pass


class InUse(CannotOpen):
    pass


class TooNew(CannotOpen):
    pass


class Corrupted(CannotOpen):
    pass


class WriteFailed(StorageError):
    pass


class Full(WriteFailed):
    pass


class Loaded(NamedTuple):
    """What a log holds: the objects that exist, and the events after `compacted`."""

    compacted: int
    entries: list[Entry]
    events: list[Event]

    @property
    def revision(self) -> int:
        return self.compacted + len(self.events)


class SqliteLog:
    """The log of one data directory, held until `close`.  Every method blocks; one thread at a time."""

    def __init__(self, connection: sqlite3.Connection, path: Path, *, quota: int | None = None) -> None:
        self._connection = connection
        self._path = path
        self._quota = quota
        self._reserve = RESERVE if quota is None else min(RESERVE, quota // 8)
        self._tried = -_LOOK_AGAIN
        self._holds_reserve = False
        self._hold_reserve()
        self._last: int | None = None
        # A full disk may have no room for it.
        with contextlib.suppress(OSError):
            self._last = os.open(path.with_name(LAST), os.O_RDWR | os.O_CREAT, 0o600)

    @classmethod
    def open(cls, directory: Path, *, quota: int | None = None) -> SqliteLog:
        """Open or create the log; `quota` bounds its size in bytes."""
        path = directory / FILE
        try:
            create(path)
        except OSError as error:
            raise CannotOpen(f"{path}: {error.strerror}; choose a data directory that can be written") from error
        connection = sqlite3.connect(path, timeout=0, isolation_level=None, check_same_thread=False)
        try:
            with _opening(path):
                prepare(connection, path)
        except BaseException:
            connection.close()
            raise
        return cls(connection, path, quota=quota)

    def load(self) -> Loaded:
        """Replay the log and check its integrity."""
        with _opening(self._path):
            (compacted,) = self._connection.execute("SELECT compacted FROM mark").fetchone()
            rows = self._connection.execute(SELECT)
            loaded = replay(_whole(rows, self._path), compacted, self._path)
        last, acknowledged = loaded.revision, last_acknowledged(self._path.parent)
        if acknowledged > last:
            raise _corrupted(self._path, missing_writes(last, acknowledged))
        self._acknowledge(last)
        return loaded

    def append(self, events: Sequence[Event], forgotten: Sequence[Event], *, reserved: bool = False) -> None:
        """Add events and remove rows that are no longer needed, durably and in one transaction.

        `reserved`: it frees space in the end, and may use the space that is reserved for that.
        """
        if not reserved and not self._has_room():
            raise self._full()
        for make_room in (self._shrink_wal, *([self._release_reserve] if reserved else ())):
            try:
                self._insert(events, forgotten)
                break
            except Full:
                make_room()
        else:
            self._insert(events, forgotten)
        if events:
            self._acknowledge(events[-1].rv)

    def _insert(self, events: Sequence[Event], forgotten: Sequence[Event]) -> None:
        inserts = [*_inserted([*map(_row, events)])]
        several = bool(forgotten) or len(inserts) > 1
        try:
            if several:
                self._connection.execute("BEGIN IMMEDIATE")
            # First the deletions, so that their pages can be reused even on a full disk.
            if forgotten:
                self._connection.executemany("DELETE FROM log WHERE rv = ?", _superseded(forgotten))
                self._connection.execute("UPDATE mark SET compacted = ?", (forgotten[-1].rv,))
            for many, values in inserts:
                self._connection.execute(_INSERTS[many], values)
            if several:
                self._connection.execute("COMMIT")
        except sqlite3.Error as error:
            with contextlib.suppress(sqlite3.Error):
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
            if _code(error) == sqlite3.SQLITE_FULL:
                raise self._full() from error
            raise WriteFailed(f"{self._path}: {error}; writes fail until the server is restarted") from error

    def _full(self) -> Full:
        return Full(f"{self._path}: no space left; free disk space or raise the quota, or delete objects")

    def _shrink_wal(self) -> None:
        """Move what is in the write-ahead log to the file, as far as that has room, and free its space on the disk."""
        with contextlib.suppress(sqlite3.Error):
            self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()

    # The reserve.

    def _has_room(self) -> bool:
        """Whether writes may go on that do not free space."""
        if not self._holds_reserve and time.monotonic() - self._tried >= _LOOK_AGAIN:
            self._hold_reserve()
        return self._holds_reserve or self._pages("freelist_count") >= self._reserve // 2

    def _hold_reserve(self) -> None:
        self._tried = time.monotonic()
        if self._quota is not None:
            bound = self._quota - self._reserve
            self._holds_reserve = self._pages("page_count") <= bound
            self._set_bound(bound if self._holds_reserve else self._quota)
            return
        self._holds_reserve = _took_up(self._path.with_name(RESERVED), self._reserve)
        self._checkpoint_after(_MANY_PAGES if self._holds_reserve else _FEW_PAGES)

    def _release_reserve(self) -> None:
        self._holds_reserve = False
        if self._quota is not None:
            self._set_bound(self._quota)
        else:
            self._path.with_name(RESERVED).unlink(missing_ok=True)
        # Now the file has room for it, and from now on often, before there is none left.
        self._shrink_wal()
        self._checkpoint_after(_FEW_PAGES)

    def _checkpoint_after(self, pages: int) -> None:
        self._connection.execute(f"PRAGMA wal_autocheckpoint = {pages}")

    def _set_bound(self, octets: int) -> None:
        self._connection.execute(f"PRAGMA max_page_count = {max(1, octets // _pragma(self._connection, 'page_size'))}")

    def _pages(self, name: str) -> int:
        """A number of pages, in bytes."""
        return _pragma(self._connection, name) * _pragma(self._connection, "page_size")

    def _acknowledge(self, rv: int) -> None:
        # A device that cannot be written fails the next commit.
        if self._last is not None:
            with contextlib.suppress(OSError):
                os.pwrite(self._last, pack_last(rv), 0)

    def close(self) -> None:
        self._connection.close()
        if self._last is not None:
            os.close(self._last)


def _took_up(path: Path, octets: int) -> bool:
    """Whether the disk has room for a file of that size beside what a start needs; it is there then."""
    disk = os.statvfs(path.parent)
    there = path.stat().st_blocks * 512 if path.exists() else 0
    if disk.f_bavail * disk.f_frsize >= _SCARCE + max(octets - there, 0):
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
            try:
                _allocate(descriptor, octets)
            finally:
                os.close(descriptor)
            return True
        except OSError as error:
            if error.errno not in (errno.ENOSPC, errno.EDQUOT):
                return True  # this disk cannot reserve space, and is not full
    path.unlink(missing_ok=True)
    return False


def _allocate(descriptor: int, octets: int) -> None:
    if sys.platform == "linux":
        os.posix_fallocate(descriptor, 0, octets)
    else:
        os.pwrite(descriptor, bytes(octets), 0)


def create(path: Path) -> None:
    """Create the file and its directory, readable by the owner only, durably."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    # Never open a file that exists: closing it would drop the locks that this process may hold on it.
    with contextlib.suppress(FileExistsError):
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
    path.chmod(0o600)
    flush(path.parent)
    # The parent directory may not be readable; then this process did not create this one.
    with contextlib.suppress(PermissionError):
        flush(path.parent.parent)


def flush(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def prepare(connection: sqlite3.Connection, path: Path) -> None:
    """Take the lock, set up durability, check the file and bring its schema up to date."""
    connection.create_function("row_checksum", 8, checksum, deterministic=True)
    for setting in (
        f"page_size = {_PAGE_SIZE}",
        "locking_mode = EXCLUSIVE",
        "journal_mode = WAL",
        "synchronous = FULL",
        # On systems where a plain flush stops at the cache of the drive.
        "fullfsync = ON",
        f"journal_size_limit = {64 * 1024 * 1024}",
    ):
        connection.execute(f"PRAGMA {setting}")
    connection.execute("BEGIN EXCLUSIVE")
    connection.execute("COMMIT")
    fresh = _pragma(connection, "schema_version") == 0
    if not fresh and _pragma(connection, "application_id") != _APPLICATION:
        raise Corrupted(f"{path}: is not a Holdfast store; choose another data directory")
    version = _pragma(connection, "user_version")
    if version > len(MIGRATIONS):
        raise TooNew(f"{path}: has schema {version}, but this release supports {len(MIGRATIONS)}; run a newer release")
    report = [text for (text,) in connection.execute("PRAGMA quick_check")]
    if report != ["ok"]:
        raise _corrupted(path, "; ".join(report))
    for target, script in enumerate(MIGRATIONS[version:], start=version + 1):
        connection.executescript(
            f"BEGIN; {script}; PRAGMA application_id = {_APPLICATION}; PRAGMA user_version = {target}; COMMIT"
        )


def checksum(
    rv: int, at: int, resource: str, namespace: str, name: str, deleted: int, previous: int, value: bytes
) -> int:
    """The checksum of a row: CRC-32 of its columns, with lengths so that no two of them can be confused."""
    texts = [text.encode() for text in (resource, namespace, name)]
    head = struct.pack(">QqQQQQQ", rv, at, *map(len, texts), deleted, previous)
    return zlib.crc32(value, zlib.crc32(b"".join((head, *texts))))


def is_whole(row: Sequence[Any]) -> bool:
    """Whether a row of the log is as it was written."""
    try:
        return bool(checksum(*row[:-1]) == row[-1])
    except (TypeError, AttributeError, struct.error):  # damage may change the type of a column
        return False


def _whole(rows: Iterable[Any], path: Path) -> Iterator[Any]:
    """The rows, if all of them are as they were written."""
    damaged: list[str] = []
    for row in rows:
        if not is_whole(row):
            damaged.append(f"version {row[0]} of {row[2]} {row[3]}/{row[4]}")
        elif not damaged:
            yield row[:-1]
    if damaged:
        named = ", ".join(damaged[:MOST_NAMED]) + (", …" if len(damaged) > MOST_NAMED else "")
        raise _corrupted(path, f"{len(damaged)} rows do not match their checksums: {named}")


def missing_writes(last: int, acknowledged: int) -> str:
    return (
        f"the last {acknowledged - last} writes are missing: version {acknowledged} was acknowledged, and the log ends "
        f"with version {last}; {FILE}-wal was damaged or removed, or {FILE} is an older copy"
    )


def last_acknowledged(directory: Path) -> int:
    """The last version that was acknowledged, as far as is known; 0 if it is not."""
    try:
        content = (directory / LAST).read_bytes()
    except OSError:
        return 0
    rv = int.from_bytes(content[:8], "big")
    return rv if content == pack_last(rv) else 0


def pack_last(rv: int) -> bytes:
    return _LAST.pack(rv, zlib.crc32(rv.to_bytes(8, "big")))


def replay(rows: Iterable[Any], compacted: int, path: Path) -> Loaded:
    heads: dict[Key, Entry] = {}
    events: list[Event] = []
    for rv, at, resource, namespace, name, deleted, previous, value in rows:
        entry = Entry(sys.intern(resource), sys.intern(namespace), name, rv, value)
        found = heads.get(entry.key)
        if rv > compacted:
            if rv != compacted + len(events) + 1 or previous != (found.rv if found else 0):
                raise _corrupted(path, f"version {rv} of {resource} {namespace}/{name} does not follow what is there")
            events.append(Event("DELETED" if deleted else "MODIFIED" if found else "ADDED", entry, found, at))
        elif deleted or found:
            raise _corrupted(path, f"version {rv} of {resource} {namespace}/{name} should have been compacted")
        if deleted:
            heads.pop(entry.key, None)
        else:
            heads[entry.key] = entry
    return Loaded(compacted, list(heads.values()), events)


def _row(event: Event) -> tuple[int, int, str, str, str, int, int, bytes, int]:
    previous = event.previous.rv if event.previous else 0
    return row_of(event.entry, at=event.at, deleted=event.type == "DELETED", previous=previous)


def row_of(
    entry: Entry, *, at: int, deleted: bool = False, previous: int = 0
) -> tuple[int, int, str, str, str, int, int, bytes, int]:
    row = entry.rv, at, entry.resource, entry.namespace, entry.name, int(deleted), previous, entry.value
    return *row, checksum(*row)


def _inserted(rows: Sequence[tuple[Any, ...]]) -> Iterator[tuple[int, list[Any]]]:
    """Rows in groups that have a statement: the size of each, and its values."""
    at = 0
    while at < len(rows):
        many = next(many for many in _INSERTS if many <= len(rows) - at)
        yield many, [*chain.from_iterable(rows[at : at + many])]
        at += many


def _superseded(forgotten: Sequence[Event]) -> Iterator[tuple[int]]:
    for event in forgotten:
        if event.previous is not None:
            yield (event.previous.rv,)
        if event.type == "DELETED":
            yield (event.rv,)


def _pragma(connection: sqlite3.Connection, name: str) -> int:
    (value,) = connection.execute(f"PRAGMA {name}").fetchone()
    return int(value)


def _code(error: sqlite3.Error) -> int:
    """SQLite's primary result code; errors of the Python module itself have none."""
    return getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF


@contextlib.contextmanager
def _opening(path: Path) -> Iterator[None]:
    """The error for a file that cannot be opened."""
    try:
        yield
    except sqlite3.Error as error:
        match _code(error):
            case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED:
                raise InUse(
                    f"{path}: another process has it open; stop it, or choose another data directory"
                ) from error
            case sqlite3.SQLITE_CORRUPT | sqlite3.SQLITE_NOTADB:
                raise _corrupted(path, str(error)) from error
            case _:
                raise CannotOpen(f"{path}: {error}") from error


def _corrupted(path: Path, problem: str) -> Corrupted:
    remedy = f"restore a backup with `holdfast restore`, or see what can be kept with `holdfast check {path.parent}`"
    return Corrupted(f"{path}: {problem}; {remedy}")
