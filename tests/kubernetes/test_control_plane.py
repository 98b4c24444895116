"""The control plane for contributors: where its binaries are, how they are built, and when it is skipped."""

from __future__ import annotations

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
