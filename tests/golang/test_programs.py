"""Programs in Go use the embedded cluster as any other: client-go, and an operator made with controller-runtime.

The tests in this folder's module are compiled and run against ``holdfast up``.  They are skipped without Go, and where
its modules are not in the cache or not compiled yet, because that takes minutes; ``HOLDFAST_GO_TESTS=1`` gets and
compiles them first.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.cli.local.cluster.test_up import up

MODULE = Path(__file__).parent
GO = shutil.which("go") or shutil.which("/usr/local/go/bin/go")
ALWAYS = os.environ.get("HOLDFAST_GO_TESTS") == "1"
COMPILED_WITHIN = None if ALWAYS else 60.0
"""Seconds after which compiling is given up; what was compiled is kept for the next time."""

PATIENCE = 120.0
SWITCH = "set HOLDFAST_GO_TESTS=1 to get and compile them"


def go(*args: str, within: float | None) -> subprocess.CompletedProcess[str]:
    assert GO is not None
    # Without the switch nothing is downloaded: neither modules nor another version of Go.
    settings = {"GOFLAGS": "-mod=readonly"} | ({} if ALWAYS else {"GOPROXY": "off", "GOTOOLCHAIN": "local"})
    return subprocess.run(
        [GO, *args], cwd=MODULE, env=os.environ | settings, capture_output=True, text=True, timeout=within, check=False
    )


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The compiled tests."""
    if GO is None:
        pytest.skip("Go is not installed")
    path = tmp_path_factory.mktemp("go") / "tests"
    try:
        compiled = go("test", "-c", "-o", str(path), ".", within=COMPILED_WITHIN)
    except subprocess.TimeoutExpired:
        pytest.skip(f"the Go modules are not compiled yet; run this again, or {SWITCH}")
    missing = re.search(r"module lookup disabled|requires go >= \S+|toolchain not available", compiled.stderr)
    if missing and not ALWAYS:
        pytest.skip(f"the Go modules are not here ({missing[0]}); {SWITCH}")
    assert compiled.returncode == 0, compiled.stderr
    return path


@pytest.fixture(scope="module")
def kubeconfig() -> Iterator[Path]:
    with up("--ephemeral", "--nodes", "1", "--operators", "none") as (_, path):
        yield path


def test_programs_in_go_work_with_the_cluster(program: Path, kubeconfig: Path) -> None:
    ended = subprocess.run(
        [program, "-test.timeout", f"{PATIENCE:.0f}s", "-test.v"],
        cwd=MODULE,
        env=os.environ | {"KUBECONFIG": str(kubeconfig)},
        capture_output=True,
        text=True,
        timeout=PATIENCE + 10,
        check=False,
    )
    assert ended.returncode == 0, ended.stdout[-10_000:] + ended.stderr[-2_000:]
    written = {
        name for path in MODULE.glob("*_test.go") for name in re.findall(r"^func (Test\w+)\(t ", path.read_text(), re.M)
    }
    passed = set(re.findall(r"^--- PASS: (\w+)", ended.stdout, re.MULTILINE))
    assert passed == written
