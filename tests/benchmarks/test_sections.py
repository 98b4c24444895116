"""Every section of the benchmarks runs, in a tiny size; its figures mean nothing then."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from benchmarks.__main__ import SECTIONS
from tests.places import ROOT


def benchmark(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "benchmarks", *arguments]
    return subprocess.run(
        command, cwd=ROOT, env={**os.environ, **environment}, capture_output=True, text=True, timeout=300
    )


@pytest.mark.parametrize("section", [each for each in SECTIONS if each != "kubernetes"])
def test_a_section_prints_its_figures(section: str) -> None:
    run = benchmark("--tiny", section)
    assert run.returncode == 0, run.stdout + run.stderr
    assert run.stderr == ""
    assert len(re.findall(r"\d\.\d\d|\d,\d\d\d|\d µs", run.stdout)) >= 2, run.stdout


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Path]:
    """The kubeconfig of a cluster with a scheduler and the built-in controllers, and without operators."""
    kubeconfig = tmp_path / "kubeconfig"
    options = ["--ephemeral", "--nodes", "1", "--operators", "none", "--kubeconfig", str(kubeconfig)]
    command = [sys.executable, "-m", "holdfast", "up", *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as running:
        try:
            assert running.stdout is not None
            assert any(line.startswith("ready") for line in running.stdout)
            yield kubeconfig
        finally:
            running.terminate()


def test_holdfast_is_compared_with_a_kubernetes_that_a_kubeconfig_names(cluster: Path) -> None:
    there = names_in(cluster)
    run = benchmark("--tiny", "kubernetes", HOLDFAST_BENCH_KUBECONFIG=str(cluster))
    assert run.returncode == 0, run.stdout + run.stderr
    table = [[cell.strip() for cell in row.strip("|").split("|")] for row in run.stdout.splitlines() if "|" in row]
    rows = {row[0]: row[2:] for row in table}
    for name in ("create, 1.5 KB", "get, 1.5 KB", "until the last replica is new and ready", "memory"):
        ours, beside, ratio = rows[name]
        assert re.match(r"[\d,.]+ ", ours), (name, ours)
        assert re.match(r"[\d,.]+ ", beside), (name, beside)
        assert ratio.endswith("x"), (name, ratio)
    assert float(rows["ready at the worst moment"][0]) == 20
    assert names_in(cluster) == there


def names_in(cluster: Path) -> str:
    kinds = "namespaces,nodes,customresourcedefinitions"
    command = [sys.executable, "-m", "holdfast", "kubectl", "--kubeconfig", str(cluster), "get", kinds, "-o", "name"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def test_without_a_kubernetes_the_section_says_how_to_name_one() -> None:
    run = benchmark("--tiny", "kubernetes", HOLDFAST_BENCH_KUBECONFIG="")
    assert run.returncode == 0
    assert "HOLDFAST_BENCH_KUBECONFIG" in run.stdout


def test_a_section_that_is_not_there_is_refused_with_those_there_are() -> None:
    run = benchmark("speed")
    assert run.returncode == 2
    assert "there is no section speed; there are kernel, " in run.stderr
