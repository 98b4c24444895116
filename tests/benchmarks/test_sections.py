"""Every section of the benchmarks runs, in a tiny size; its figures mean nothing then."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from benchmarks.__main__ import SECTIONS
from tests.places import ROOT


def benchmark(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "benchmarks", *arguments]
    return subprocess.run(
        command, cwd=ROOT, env={**os.environ, **environment}, capture_output=True, text=True, timeout=300
    )


@pytest.mark.parametrize("section", SECTIONS)
def test_a_section_prints_its_figures(section: str) -> None:
    run = benchmark("--tiny", section)
    assert run.returncode == 0, run.stdout + run.stderr
    assert run.stderr == ""
    assert len(re.findall(r"\d\.\d\d|\d,\d\d\d|\d µs", run.stdout)) >= 2, run.stdout


def test_the_api_server_is_compared_with_another_one_that_a_kubeconfig_names(tmp_path: Path) -> None:
    kubeconfig = tmp_path / "kubeconfig"
    command = [sys.executable, "-m", "holdfast", "apiserver", "--ephemeral", "--kubeconfig", str(kubeconfig)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as other:
        try:
            assert other.stdout is not None
            assert other.stdout.readline().startswith("ready: ")
            run = benchmark("--tiny", "apiserver", HOLDFAST_BENCH_KUBECONFIG=str(kubeconfig))
        finally:
            other.terminate()
    assert run.returncode == 0, run.stdout + run.stderr
    created = next(line for line in run.stdout.splitlines() if line.startswith("create,"))
    assert re.findall(r"[\d,.]+ /s", created)[-1:] != []
    assert not created.rstrip().endswith("-")


def test_a_section_that_is_not_there_is_refused_with_those_there_are() -> None:
    run = benchmark("speed")
    assert run.returncode == 2
    assert "there is no section speed; there are kernel, " in run.stderr
