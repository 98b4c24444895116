"""``holdfast kubectl``: whatever is written goes to kubectl, with the right kubeconfig."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A directory with a kubectl that says how it was called."""
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "kubectl").write_text('#!/bin/sh\necho "KUBECONFIG=$KUBECONFIG"\nprintf "<%s>\\n" "$@"\nexit 7\n')
    (programs / "kubectl").chmod(0o755)
    return tmp_path


def run(home: Path, *words: str, directory: Path | None = None, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "holdfast", "kubectl", *words],
        capture_output=True,
        text=True,
        check=False,
        cwd=directory or home,
        env={**os.environ, "KUBECONFIG": "", "HOME": str(home), "PATH": f"{home}/bin:/usr/bin:/bin", **environment},
    )


def test_every_word_and_the_exit_code_are_passed_on(home: Path) -> None:
    done = run(home, "get", "-o=json", "--help", "--", "a b", "-h")
    assert done.returncode == 7
    assert done.stdout == "KUBECONFIG=\n<get>\n<-o=json>\n<--help>\n<-->\n<a b>\n<-h>\n"


def test_help_right_after_the_word_is_kubectls(home: Path) -> None:
    assert "<--help>" in run(home, "--help").stdout


def test_the_kubeconfig_that_up_wrote_is_used(home: Path) -> None:
    own = home / ".holdfast" / "kubeconfig"
    own.parent.mkdir()
    own.touch()
    deep = home / "deep"
    deep.mkdir()
    assert run(home, directory=deep).stdout.startswith(f"KUBECONFIG={own}\n")
    assert run(home, directory=deep, KUBECONFIG="/other").stdout.startswith("KUBECONFIG=/other\n")


def test_without_kubectl_the_own_commands_are_named(home: Path) -> None:
    done = run(home, "get", "pods", PATH=f"{home}/none")
    assert done.returncode == 1
    assert done.stderr == (
        "error: kubectl is not installed, or not on the PATH\n"
        "hint: holdfast get, describe, wait, apply and delete work without it\n"
    )
