"""The log on disk: every event of the window and the last state of every object, in one SQLite table.

A row is needed as long as it is some object's state at the oldest version that can be asked for, or is newer.  So
when an event leaves the window, the row that it superseded goes, and the event's own if it was a deletion; what is
left, replayed in order, is the store.  No pointer table and no second index are needed, for lookups are answered
from memory, and the cost of forgetting is in proportion to the cost of writing.

Durability: WAL with ``synchronous=FULL``.  A commit returns only after its frames are flushed to the device, so an
acknowledged write survives both the death of the process and the loss of power.  One connection holds the file
exclusively.  This module must not know objects' content, watches or the event loop.

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
import os
import sqlite3
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from holdfast.apiserver.storage.entries import Entry, Event, Key

FILE: Final = "objects.db"

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
)
"""Each migrates the schema from its index to the next version; released ones are never edited."""

# Rows of 2 KB fill pages of 4 KB badly.
_PAGE_SIZE: Final = 8192

_INSERT: Final = (
    "INSERT INTO log (rv, at, resource, namespace, name, deleted, previous, value) VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
)
_SELECT: Final = "SELECT rv, at, resource, namespace, name, deleted, previous, value FROM log ORDER BY rv"


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


class SqliteLog:
    """The log of one data directory, held until `close`.  Every method blocks; one thread at a time."""

    def __init__(self, connection: sqlite3.Connection, path: Path) -> None:
        self._connection = connection
        self._path = path

    @classmethod
    def open(cls, directory: Path, *, quota: int | None = None) -> SqliteLog:
        """Open or create the log; `quota` bounds its size in bytes."""
        path = directory / FILE
        try:
            _create(path)
        except OSError as error:
            raise CannotOpen(f"{path}: {error.strerror}; choose a data directory that can be written") from error
        connection = sqlite3.connect(path, timeout=0, isolation_level=None, check_same_thread=False)
        try:
            with _opening(path):
                _prepare(connection, path, quota=quota)
        except BaseException:
            connection.close()
            raise
        return cls(connection, path)

    def load(self) -> Loaded:
        """Replay the log and check its integrity."""
        with _opening(self._path):
            (compacted,) = self._connection.execute("SELECT compacted FROM mark").fetchone()
            rows = self._connection.execute(_SELECT)
            return _replay(rows, compacted, self._path)

    def append(self, events: Sequence[Event], forgotten: Sequence[Event]) -> None:
        """Add events and remove rows that are no longer needed, durably and in one transaction."""
        try:
            self._connection.execute("BEGIN IMMEDIATE")
            # First the deletions, so that their pages can be reused even on a full disk.
            if forgotten:
                self._connection.executemany("DELETE FROM log WHERE rv = ?", _superseded(forgotten))
                self._connection.execute("UPDATE mark SET compacted = ?", (forgotten[-1].rv,))
            self._connection.executemany(_INSERT, map(_row, events))
            self._connection.execute("COMMIT")
        except sqlite3.Error as error:
            with contextlib.suppress(sqlite3.Error):
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
            if _code(error) == sqlite3.SQLITE_FULL:
                raise Full(f"{self._path}: no space left; free disk space or raise the quota") from error
            raise WriteFailed(f"{self._path}: {error}; writes fail until the server is restarted") from error

    def close(self) -> None:
        self._connection.close()


def _create(path: Path) -> None:
    """Create the file and its directory, readable by the owner only, durably."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    # Never open a file that exists: closing it would drop the locks that this process may hold on it.
    with contextlib.suppress(FileExistsError):
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
    path.chmod(0o600)
    _flush(path.parent)
    # The parent directory may not be readable; then this process did not create this one.
    with contextlib.suppress(PermissionError):
        _flush(path.parent.parent)


def _flush(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _prepare(connection: sqlite3.Connection, path: Path, *, quota: int | None) -> None:
    """Take the lock, set up durability, check the file and bring its schema up to date."""
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
    if quota is not None:
        connection.execute(f"PRAGMA max_page_count = {max(1, quota // _pragma(connection, 'page_size'))}")
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


def _replay(rows: Iterator[Any], compacted: int, path: Path) -> Loaded:
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


def _row(event: Event) -> tuple[int, int, str, str, str, bool, int, bytes]:
    entry = event.entry
    previous = event.previous.rv if event.previous else 0
    gone = event.type == "DELETED"
    return entry.rv, event.at, entry.resource, entry.namespace, entry.name, gone, previous, entry.value


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
    return Corrupted(f"{path}: {problem}; restore a backup, or move the file away to begin anew")
