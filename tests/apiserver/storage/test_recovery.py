"""Damage of the files is noticed at the start, and what is whole can be kept."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
from tests.apiserver.storage.test_store import PODS, names, put, remove, run

from holdfast.apiserver.storage import recovery, sqlite_log
from holdfast.apiserver.storage.store import CannotOpen, Corrupted, InUse, Store

KILLED = """
import asyncio, os, signal, sys
from tests.apiserver.storage.test_store import put
from holdfast.apiserver.storage.store import Store

async def main():
    store = Store.open(sys.argv[1])
    for number in range(20):
        await store.write(put(f"pod-{number:02}", filler="x" * 2000))
    os.kill(os.getpid(), signal.SIGKILL)

asyncio.run(main())
"""


def killed(directory: Path) -> Path:
    """The write-ahead log of a store that was killed after versions 2 to 21."""
    subprocess.run([sys.executable, "-c", KILLED, directory], check=False)
    wal = directory / recovery.WAL
    assert wal.stat().st_size > 40_000
    return wal


def refusal(directory: Path) -> str:
    with pytest.raises(Corrupted) as caught:
        Store.open(str(directory))
    message = str(caught.value)
    assert message.startswith(f"{directory}/objects.db: ")
    assert message.endswith(
        f"; restore a backup with `holdfast restore`, or see what can be kept with `holdfast check {directory}`"
    )
    return message


def whole(directory: Path) -> list[str]:
    """The objects of a store that can be opened."""
    found: list[str] = []

    async def read(store: Store) -> None:
        found.extend(names(store.list(PODS)))
        (entry,) = await store.write(put("new"))
        assert entry.rv > 21, "no acknowledged version is given again"

    run(directory, read)
    return found


def test_a_kill_loses_nothing(tmp_path: Path) -> None:
    killed(tmp_path)
    assert recovery.survey(tmp_path).problems == ()
    assert len(whole(tmp_path)) == 20


def test_a_write_ahead_log_that_was_removed_is_noticed(tmp_path: Path) -> None:
    wal = killed(tmp_path)
    size = wal.stat().st_size
    wal.unlink()
    assert size
    message = refusal(tmp_path)
    assert "the last 20 writes are missing: version 21 was acknowledged, and the log ends with version 1" in message
    assert "objects.db-wal was damaged or removed" in message


@pytest.mark.parametrize("part", [0.3, 0.6, 0.9])
def test_a_flipped_bit_in_the_write_ahead_log_is_noticed(tmp_path: Path, part: float) -> None:
    wal = killed(tmp_path)
    content = bytearray(wal.read_bytes())
    content[int(len(content) * part)] ^= 1
    wal.write_bytes(content)
    assert "writes are missing: version 21 was acknowledged" in refusal(tmp_path)
    found = recovery.survey(tmp_path)
    assert 0 < len(found.entries) < 20
    recovery.repair(tmp_path, found)
    assert whole(tmp_path) == [f"default/pod-{number:02}" for number in range(len(found.entries))]


def test_an_older_copy_of_the_file_is_noticed(tmp_path: Path) -> None:
    async def write(store: Store) -> None:
        await store.write(put("a"), put("b"))

    run(tmp_path, write)
    copy = (tmp_path / "objects.db").read_bytes()
    run(tmp_path, write)
    (tmp_path / "objects.db").write_bytes(copy)
    assert "the last 2 writes are missing: version 5 was acknowledged" in refusal(tmp_path)
    (tmp_path / "objects.db").unlink()
    assert "the last 4 writes are missing" in refusal(tmp_path)


def test_a_last_version_that_is_damaged_or_missing_says_nothing(tmp_path: Path) -> None:
    killed(tmp_path)
    (tmp_path / "objects.last").write_bytes(b"\xff" * 12)
    assert sqlite_log.last_acknowledged(tmp_path) == 0
    assert len(whole(tmp_path)) == 20
    (tmp_path / "objects.last").unlink()
    assert len(whole(tmp_path)) == 21


@pytest.mark.parametrize("bit", [1, 128])
def test_a_flipped_bit_in_a_row_is_noticed_and_said(tmp_path: Path, bit: int) -> None:
    async def write(store: Store) -> None:
        await store.write(put("old", note="first state"))
        await store.write(put("old", note="MARKER ONE"))
        await store.write(put("other"), put("gone", note="MARKER TWO"))

    run(tmp_path, write)
    path = tmp_path / "objects.db"
    content = bytearray(path.read_bytes())
    for marker in (b"MARKER ONE", b"MARKER TWO"):
        content[content.rindex(marker)] ^= bit
    path.write_bytes(content)
    expected = "2 rows do not match their checksums: version 3 of /pods default/old, version 5 of /pods default/gone"
    assert expected in refusal(tmp_path)
    found = recovery.survey(tmp_path)
    assert found.problems == ("2 rows do not match their checksums",)
    assert [str(loss) for loss in found.losses] == [
        "pods default/gone: version 5 is damaged; nothing of it is left",
        "pods default/old: version 3 is damaged; version 2 is kept",
    ]
    aside = recovery.repair(tmp_path, found)
    assert (aside / "objects.db").read_bytes() == bytes(content)
    kept: list[tuple[str, int]] = []

    async def read(store: Store) -> None:
        kept.extend((entry.name, entry.rv) for entry in store.list(PODS))
        assert store.revision == store.compacted == 5
        (entry,) = await store.write(put("new"))
        assert entry.rv == 6

    run(tmp_path, read)
    assert kept == [("old", 2), ("other", 4)]
    assert recovery.survey(tmp_path).problems == ()


def test_a_damaged_page_loses_only_what_was_on_it(tmp_path: Path) -> None:
    async def write(store: Store) -> None:
        for number in range(50):
            await store.write(put(f"pod-{number:02}", filler="x" * 2000))
        await store.write(remove("pod-00"))

    run(tmp_path, write)
    path = tmp_path / "objects.db"
    content = bytearray(path.read_bytes())
    content[6 * 8192 : 7 * 8192] = b"\xff" * 8192
    path.write_bytes(content)
    refusal(tmp_path)
    found = recovery.survey(tmp_path)
    assert found.problems
    recovery.repair(tmp_path, found)
    assert 40 <= len(whole(tmp_path)) < 49


def test_rows_of_an_older_release_get_their_checksums(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "objects.db"
    sqlite_log.create(path)
    connection = sqlite3.connect(path, isolation_level=None)
    with monkeypatch.context() as patch:
        patch.setattr(sqlite_log, "MIGRATIONS", sqlite_log.MIGRATIONS[:1])
        sqlite_log.prepare(connection, path)
    value = b'{"kind":"Pod","metadata":{"name":"a","namespace":"default","resourceVersion":"2"}}'
    connection.execute("INSERT INTO log VALUES (2, 0, '/pods', 'default', 'a', 0, 0, ?)", (value,))
    connection.close()
    assert recovery.survey(tmp_path).problems == ()

    async def read(store: Store) -> None:
        assert names(store.list(PODS)) == ["default/a"]

    run(tmp_path, read)
    assert recovery.survey(tmp_path).rows == 1


def test_the_check_of_a_directory_that_is_in_use_or_empty_is_refused(tmp_path: Path) -> None:
    program = (
        "import pathlib, sys\nfrom holdfast.apiserver.storage import recovery\n"
        "recovery.survey(pathlib.Path(sys.argv[1]))\n"
    )

    async def play(store: Store) -> None:
        await store.write(put("a"))
        # In another process: SQLite's locks are of the process.
        other = subprocess.run([sys.executable, "-c", program, tmp_path], capture_output=True, text=True, check=False)
        assert "InUse" in other.stderr

    run(tmp_path, play)
    with recovery.locked(tmp_path):
        other = subprocess.run([sys.executable, "-c", program, tmp_path], capture_output=True, text=True, check=False)
        assert InUse.__name__ in other.stderr
    with pytest.raises(CannotOpen, match="name a data directory"):
        recovery.survey(tmp_path / "nothing")


def test_a_file_that_is_no_store_is_not_repaired(tmp_path: Path) -> None:
    (tmp_path / "objects.db").write_bytes(b"not a database" * 1000)
    found = recovery.survey(tmp_path)
    assert found.rows == 0
    assert found.problems[0] == "objects.db: file is not a database"
