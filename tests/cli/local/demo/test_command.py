"""``holdfast demo`` as a process: it ends by itself with a summary, and no floor was broken."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from holdfast.cli.errors import ExitCode


def test_the_demo_ends_by_itself_and_no_floor_was_broken(tmp_path: Path) -> None:
    ended = subprocess.run(
        [sys.executable, "-m", "holdfast", "demo"], cwd=tmp_path, capture_output=True, text=True, timeout=240
    )
    assert (ended.returncode, ended.stderr) == (ExitCode.OK, ""), ended.stdout + ended.stderr
    assert ended.stdout.startswith("starting a cluster")
    systems = (
        "workload shop",
        "clique llm-0-engine",
        "clique llm-1-frontend",
        "pool media/pool-0",
        "machines builders",
    )
    for kept in systems:
        assert f"floor kept: {kept}: " in ended.stdout
    assert "5 objects changed, one of them broken on purpose" in ended.stdout
    assert "BROKEN" not in ended.stdout
    assert "try next:" in ended.stdout
    assert "KUBECONFIG=" not in ended.stdout, "of a cluster that is gone there is nothing to export"


def test_a_directory_with_something_else_in_it_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x.yaml").write_text("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n")
    ended = subprocess.run(
        [sys.executable, "-m", "holdfast", "demo", str(tmp_path)], capture_output=True, text=True, timeout=60
    )
    assert ended.returncode == ExitCode.BAD_INPUT
    assert "the demo knows Workload" in ended.stderr
