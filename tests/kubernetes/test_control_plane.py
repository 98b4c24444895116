"""The control plane for contributors: where its binaries are, how they are built, and when it is skipped."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.kubernetes import control_plane


def test_binaries_are_cached_by_version_unless_a_directory_is_named() -> None:
    cached = control_plane.binaries({"XDG_CACHE_HOME": "/cache"})
    assert cached.parent == Path("/cache/holdfast-kubernetes")
    assert control_plane.KUBERNETES in cached.name
    assert control_plane.binaries({"HOLDFAST_KUBERNETES_BIN": "/opt/bin"}) == Path("/opt/bin")


def test_libraries_of_the_repository_of_kubernetes_are_replaced_by_published_ones() -> None:
    published = {
        "Go": "1.24.0",
        "Replace": [
            {"Old": {"Path": "k8s.io/api"}, "New": {"Path": "./staging/src/k8s.io/api"}},
            {"Old": {"Path": "example.com/a"}, "New": {"Path": "example.com/b"}},
        ],
    }
    written = control_plane.module_of_kubernetes(published).splitlines()
    assert f"require k8s.io/kubernetes v{control_plane.KUBERNETES}" in written
    assert f"replace k8s.io/api => k8s.io/api v0{control_plane.KUBERNETES.removeprefix('1')}" in written
    assert not any("example.com" in line for line in written)


def test_without_go_and_without_binaries_it_is_skipped_with_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("HOLDFAST_KUBERNETES_BIN", str(tmp_path / "bin"))
    assert control_plane.main(["start", str(tmp_path / "state")]) == 0
    assert "skipped: " in (said := capsys.readouterr().err)
    assert "install Go" in said
    assert not (tmp_path / "state").exists()


def test_processes_of_an_earlier_start_that_were_killed_are_not_taken_for_new_ones(tmp_path: Path) -> None:
    programs, state = tmp_path / "bin", tmp_path / "state"
    programs.mkdir()
    state.mkdir()
    for name in control_plane.BINARIES:
        (programs / name).write_text(f"#!/bin/sh\necho {name} cannot start here\nexit 1\n")
        (programs / name).chmod(0o755)
    (state / "kube-scheduler.pid").write_text("4194304\n")  # no process can have it
    command = [sys.executable, "-m", "tests.kubernetes.control_plane", "start", str(state)]
    environment = {**os.environ, "HOLDFAST_KUBERNETES_BIN": str(programs)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)
    assert done.returncode == 1
    assert "cannot start here" in done.stderr
    assert "kube-scheduler" not in done.stderr
    assert not list(state.glob("*.pid"))
