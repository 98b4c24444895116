"""Recovery: what of a data directory is whole, and a new log made of that.

`survey` reads a copy of the files, so that it changes nothing.  `repair` moves the damaged files aside and writes a log
with the last whole state of every object.  Its versions go on after all versions that were ever acknowledged, so that
no client takes a new state for one that it has seen.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import sqlite3
import sys
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from holdfast.apiserver.storage import sqlite_log
from holdfast.apiserver.storage.entries import Entry, Key
from holdfast.apiserver.storage.sqlite_log import COLUMNS, FILE, CannotOpen, Corrupted, InUse, StorageError

WAL: Final = f"{FILE}-wal"

_REPAIRED: Final = "repaired.db"

_LOCKS: Final = (0x40000000, 512)
"""The bytes of the file that SQLite locks: offset and length."""


@dataclass(frozen=True, slots=True)
class Loss:
    """An object whose newest state is damaged; `kept` is the version of the newest one that is whole, or 0."""

    rv: int
    key: Key
    kept: int

    def __str__(self) -> str:
        resource, namespace, name = self.key
        what = f"{resource.strip('/')} {namespace}/{name}" if namespace else f"{resource.strip('/')} {name}"
        after = f"version {self.kept} is kept" if self.kept else "nothing of it is left"
        return f"{what}: version {self.rv} is damaged; {after}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Survey:
    """What a data directory holds.

    rows       how many rows are whole
    entries    the last whole state of every object
    revision   the newest version that is known to have existed
    losses     objects that are not as they were last written, as far as their rows can still be read
    problems   everything that is wrong, in sentences; empty if nothing is
    """

    rows: int
    entries: list[Entry]
    revision: int
    losses: tuple[Loss, ...] = ()
    problems: tuple[str, ...] = ()


@contextlib.contextmanager
def locked(directory: Path) -> Iterator[Path]:
    """The file of a data directory that no server has open, or will have before the block ends."""
    path = directory / FILE
    try:
        file = path.open("r+b")
    except FileNotFoundError:
        raise CannotOpen(f"{path}: there is no such file; name a data directory") from None
    except OSError as error:
        raise CannotOpen(f"{path}: {error.strerror}") from error
    with file:
        try:
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, _LOCKS[1], _LOCKS[0])
        except OSError:
            raise InUse(f"{path}: another process has it open; stop it first") from None
        yield path


def survey(directory: Path) -> Survey:
    """Check every row of a data directory; raises `CannotOpen` where there is none, `InUse` if a server has it."""
    with locked(directory) as path, TemporaryDirectory(prefix="holdfast-check-") as name:
        copy = Path(name) / FILE
        for each in (path, path.with_name(WAL)):
            with contextlib.suppress(FileNotFoundError):
                shutil.copyfile(each, copy.with_name(each.name))
        return _survey(copy, sqlite_log.last_acknowledged(directory))


def _survey(path: Path, acknowledged: int) -> Survey:
    problems: list[str] = []
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as connection:
        try:
            sqlite_log.prepare(connection, path)
        except Corrupted as error:
            problems.append(_problem(error, path))
        except sqlite3.Error as error:
            problems.append(f"{FILE}: {error}")
        compacted, rows = _read(connection, acknowledged, problems)
    heads, losses = _heads(rows, problems)
    whole = [row for row in rows if sqlite_log.is_whole(row)]
    last = max([compacted, *(row[0] for row in rows)])
    if acknowledged > last:
        problems.append(sqlite_log.missing_writes(last, acknowledged))
    if not problems:
        # Everything is read; what is left is whether the rows follow each other.
        try:
            sqlite_log.replay((row[:-1] for row in rows), compacted, path)
        except Corrupted as error:
            problems.append(_problem(error, path))
    return Survey(
        rows=len(whole),
        entries=list(heads.values()),
        revision=max(last, acknowledged),
        losses=losses,
        problems=tuple(dict.fromkeys(problems)),
    )


def _problem(error: Corrupted, path: Path) -> str:
    """What is wrong, without the path, which is that of the copy, and without the remedy."""
    return f"{FILE}: {str(error).removeprefix(f'{path}: ').partition('; restore')[0]}"


def _read(connection: sqlite3.Connection, acknowledged: int, problems: list[str]) -> tuple[int, list[Any]]:
    """The mark and all rows that can be read; where a page cannot be, each version is tried by itself."""
    compacted = 1
    try:
        (compacted,) = connection.execute("SELECT compacted FROM mark").fetchone()
    except (sqlite3.Error, TypeError) as error:
        problems.append(f"{FILE}: the version of its oldest state cannot be read: {error}")
    rows: list[Any] = []
    try:
        for row in connection.execute(sqlite_log.SELECT):
            rows.append(row)  # noqa: PERF402 -- those before the one that fails are kept
        return compacted, rows
    except sqlite3.Error as error:
        problems.append(f"{FILE}: not all of it can be read: {error}")
    known = {row[0] for row in rows}
    for rv in range(1, max(acknowledged, compacted, *known, 1) + 1):
        if rv not in known:
            with contextlib.suppress(sqlite3.Error):
                rows += connection.execute(f"SELECT {COLUMNS} FROM log WHERE rv = ?", (rv,)).fetchall()
    return compacted, sorted(rows, key=lambda row: int(row[0]))


def _heads(rows: Iterable[Any], problems: list[str]) -> tuple[dict[Key, Entry], tuple[Loss, ...]]:
    """The last whole state of every object, and the objects that have a damaged one after it."""
    heads: dict[Key, Entry] = {}
    damaged: dict[Key, int] = {}
    count = 0
    for row in rows:
        rv, _, resource, namespace, name, deleted, _, value, _ = row
        key = (str(resource), str(namespace), str(name))
        if not sqlite_log.is_whole(row):
            count += 1
            damaged[key] = rv
            continue
        damaged.pop(key, None)
        if deleted:
            heads.pop(key, None)
        else:
            heads[key] = Entry(sys.intern(resource), sys.intern(namespace), name, rv, value)
    if count:
        problems.append(f"{count} rows do not match their checksums")
    losses = (Loss(rv, key, heads[key].rv if key in heads else 0) for key, rv in sorted(damaged.items()))
    return heads, tuple(losses)


def repair(directory: Path, found: Survey) -> Path:
    """Replace a log by the whole part of it; returns the directory that has the damaged files."""
    with locked(directory) as path:
        aside = directory / f"damaged-{time.strftime('%Y%m%dT%H%M%S')}"
        aside.mkdir(mode=0o700)
        write(aside, found.entries, revision=found.revision, name=_REPAIRED)
        # The file is replaced in one step and last; its write-ahead log must not be applied to the new one.
        os.link(path, aside / FILE)
        with contextlib.suppress(FileNotFoundError):
            path.with_name(WAL).rename(aside / WAL)
        (aside / _REPAIRED).replace(path)
        sqlite_log.flush(aside)
        sqlite_log.flush(directory)
    return aside


def write(directory: Path, entries: Iterable[Entry], *, revision: int, name: str = FILE) -> None:
    """Write a log that holds these objects at a version, and no history."""
    path = directory / name
    sqlite_log.create(path)
    connection = sqlite3.connect(path, isolation_level=None)
    try:
        with contextlib.closing(connection):
            sqlite_log.prepare(connection, path)
            connection.execute("BEGIN IMMEDIATE")
            connection.executemany(sqlite_log.INSERT, (sqlite_log.row_of(entry, at=0) for entry in entries))
            connection.execute("UPDATE mark SET compacted = ?", (revision,))
            connection.execute("COMMIT")
    except sqlite3.Error as error:
        with contextlib.suppress(OSError):
            os.unlink(path)
        raise StorageError(f"{path}: {error}") from error
