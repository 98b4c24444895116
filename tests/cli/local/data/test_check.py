"""``holdfast check``: damage is said, and what is whole can be kept."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.apiserver.storage.test_store import put, run

from holdfast.apiserver.storage.store import Store
from holdfast.cli.errors import ExitCode


def checked(*args: object) -> tuple[int, str]:
    command = [sys.executable, "-m", "holdfast", "check", *map(str, args)]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    return ended.returncode, ended.stdout + ended.stderr


def filled(directory: Path) -> None:
    async def write(store: Store) -> None:
        await store.write(put("a", note="a MARKER"), put("b"))

    run(directory, write)


def test_a_directory_that_is_whole(tmp_path: Path) -> None:
    filled(tmp_path)
    assert checked(tmp_path) == (ExitCode.OK, f"{tmp_path} is whole: 2 objects, version 3\n")


def test_damage_is_said_and_repaired_on_demand(tmp_path: Path) -> None:
    filled(tmp_path)
    path = tmp_path / "objects.db"
    path.write_bytes(path.read_bytes().replace(b"MARKER", b"marker"))
    damage = (
        "damaged: 1 rows do not match their checksums\n  pods default/a: version 2 is damaged; nothing of it is left\n"
    )
    ways = (
        "restore a backup with: holdfast restore FILE DIR\n"
        f"or keep the 1 objects, version 3, with: holdfast check {tmp_path} --repair\n"
    )
    assert checked(tmp_path) == (ExitCode.BLOCKED, damage + ways)
    code, text = checked(tmp_path, "--repair")
    (aside,) = tmp_path.glob("damaged-*")
    assert (code, text) == (
        ExitCode.OK,
        f"{damage}repaired: 1 objects, version 3; the damaged files are in {aside}\n",
    )
    assert checked(tmp_path) == (ExitCode.OK, f"{tmp_path} is whole: 1 objects, version 3\n")


def test_a_directory_without_data_or_in_use_is_refused(tmp_path: Path) -> None:
    assert checked(tmp_path) == (
        ExitCode.BAD_INPUT,
        f"error: {tmp_path}/objects.db: there is no such file; name a data directory\n",
    )

    async def play(store: Store) -> None:
        assert checked(tmp_path) == (
            ExitCode.BLOCKED,
            f"error: {tmp_path}/objects.db: another process has it open; stop it first\n",
        )

    run(tmp_path, play)
