"""Which process runs in a directory, and what becomes of directories that nobody cleaned up."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from holdfast.cli.process import running


def test_a_process_says_that_it_runs_for_as_long_as_it_does(tmp_path: Path) -> None:
    assert running.process_in(tmp_path) is None
    with running.announced(tmp_path):
        assert running.process_in(tmp_path) == os.getpid()
    assert running.process_in(tmp_path) is None
    assert list(tmp_path.iterdir()) == []


def test_a_number_that_was_left_behind_misleads_nobody(tmp_path: Path) -> None:
    (tmp_path / "up.pid").write_text(f"{os.getpid()}\n")
    assert running.process_in(tmp_path) is None
    with running.announced(tmp_path):
        assert running.process_in(tmp_path) == os.getpid()


def killed_in(place: Path) -> Path:
    """The directory of a process that was killed."""
    script = (
        "import os, pathlib, sys\nfrom holdfast.cli.process import running\n"
        "with running.for_now(pathlib.Path(sys.argv[1])) as home:\n"
        "    print(home, flush=True)\n    os.kill(os.getpid(), 9)\n"
    )
    ran = subprocess.run([sys.executable, "-c", script, str(place)], capture_output=True, text=True)
    return Path(ran.stdout.strip())


def test_what_killed_processes_left_behind_is_removed_by_the_next_one(tmp_path: Path) -> None:
    left = killed_in(tmp_path)
    (left / "objects.db").touch()
    others, kept = tmp_path / "holdfast-of-others", tmp_path / "holdfast-kept"
    others.mkdir()
    kept.mkdir()
    for name in ("objects.db", "up.pid"):  # a cluster of --data-dir that was killed
        (kept / name).write_text("4194305\n")
    with running.for_now(tmp_path) as first:
        assert not left.exists()
        with running.for_now(tmp_path) as second:
            assert sorted(tmp_path.iterdir()) == sorted([first, second, others, kept])
            assert running.process_in(first) == os.getpid()
    assert sorted(tmp_path.iterdir()) == sorted([others, kept])
    assert sorted(each.name for each in kept.iterdir()) == ["objects.db", "up.pid"]
