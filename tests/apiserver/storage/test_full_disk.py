"""A full disk: writes are refused with a reason, deletions work, reads work, and nothing is lost."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.apiserver.storage import full_disk
from tests.apiserver.storage.test_store import PODS, put, remove, run

from holdfast.apiserver.storage import recovery
from holdfast.apiserver.storage.store import Full, Store

QUOTA = 512 * 1024


async def fill(store: Store) -> int:
    """Write objects until there is no room for another; how many there are."""
    for number in range(1000):
        try:
            await store.write(put(f"p{number:03}", filler="x" * 4000))
        except Full:
            assert store.count(PODS) == number
            return number
    raise AssertionError("the disk has room for everything")


def meta(name: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "namespace": "default", **more}


def test_deletions_work_on_a_full_disk_and_make_room(tmp_path: Path) -> None:
    async def play(store: Store) -> None:
        count = await fill(store)
        with pytest.raises(Full):
            await store.write(put("one more", filler="x" * 9000))
        assert store.trouble
        # Also the steps of a deletion that waits for finalizers.
        deleting = meta("p000", deletionTimestamp="2030-01-01T00:00:00Z", finalizers=["a.b/c"])
        await store.write(put("p000", metadata=deleting))
        with pytest.raises(Full):
            await store.write(put("one more", filler="x" * 9000))
        for number in range(count // 2):
            await store.write(remove(f"p{number:03}"))
        await store.write(put("after"))
        assert store.trouble == ""

    run(tmp_path, play, quota=QUOTA)
    assert recovery.survey(tmp_path).problems == ()


def test_writes_that_wait_together_are_told_apart(tmp_path: Path) -> None:
    async def play(store: Store) -> None:
        await fill(store)
        large = put("large", filler="x" * 100_000)
        ended = await asyncio.gather(
            store.write(large), store.write(remove("p001")), store.write(large), return_exceptions=True
        )
        assert [type(each) for each in ended] == [Full, tuple, Full]
        assert store.get(PODS, "default", "p001") is None

    run(tmp_path, play, quota=QUOTA)


def test_history_is_given_up_before_a_write_is_refused_for_long(tmp_path: Path) -> None:
    async def play(store: Store) -> None:
        refused = 0
        for _ in range(1000):
            try:
                await store.write(put("a", filler="x" * 4000))
            except Full:
                refused += 1
        assert 0 < refused < 50, "one object fits at all times"

    run(tmp_path, play, quota=QUOTA)


def test_failing_writes_are_logged_once_a_minute(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    now = 0.0

    async def play(store: Store) -> None:
        nonlocal now
        count = await fill(store)
        for second in range(150):
            now = float(second)
            with pytest.raises(Full):
                await store.write(put(f"more{second}", filler="x" * 4000))
        assert store.count(PODS) == count

    with caplog.at_level(logging.INFO, logger="holdfast.apiserver.storage"):
        run(tmp_path, play, quota=QUOTA, clock=lambda: now)
    counts = [record.__dict__["fields"]["count"] for record in caplog.records]
    assert counts == [1, 61, 60]
    assert all(record.exc_info is None for record in caplog.records)


def test_a_server_on_a_full_disk(tmp_path: Path) -> None:
    """On a small disk of its own, if this machine lets a test mount one."""
    disk = tmp_path / "disk"
    disk.mkdir()
    program = [sys.executable, full_disk.__file__, str(disk)]
    mount = 'mount -t tmpfs -o size=12m none "$0" || exit 77; exec "$@"'
    if shutil.which("unshare") is None:
        pytest.skip("there is no unshare")
    ended = subprocess.run(
        ["unshare", "-Urm", "sh", "-c", mount, str(disk), *program],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        check=False,
    )
    if ended.returncode in (1, 77) and not ended.stdout:
        pytest.skip(f"no disk can be mounted here: {ended.stderr.strip()}")
    assert ended.returncode == 0, ended.stderr
    full, log, deletions, restarted, after, again = map(json.loads, ended.stdout.splitlines())
    assert set(full["codes"]) <= {201, 507}
    status = full["status"]
    assert (status["code"], status["reason"]) == (507, "InsufficientStorage")
    assert "the disk of the server is full" in status["message"]
    assert str(disk) not in json.dumps(full)
    assert full["health"] == [500, "[-]storage failed: reason withheld"]
    assert log["lines"] == ["holdfast.apiserver.storage: writes failed"]
    assert (deletions["deleted"], deletions["finished"]) == ([200], [200])
    assert restarted["restarted"] == deletions["left"]
    assert after == {"created": 201, "health": 200}
    assert again == {"deleted": 200}
