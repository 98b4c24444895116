"""Run controller-runtime's own test suites against the embedded API server, and print how many tests pass.

python -m tests.golang.controller_runtime [--version v0.25.2] [SUITE ...]

Needs Go and its module proxy.  Each suite gets a server of its own without controllers, as its authors run it (with
envtest), because several count the objects that they find.  The first run compiles for some minutes.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

MODULE = "sigs.k8s.io/controller-runtime"
VERSION = "v0.25.2"
SUITES = (
    "builder",
    "cache",
    "client",
    "cluster",
    "controller",
    "controller/controllerutil",
    "handler",
    "internal/recorder",
    "manager",
    "metrics/filters",
    "reconcile",
    "source",
    "webhook",
)
_TALLY = re.compile(r"(\d+) Passed.*?(\d+) Failed.*?(\d+) Pending")
_FAILED = re.compile(r"^\s*\[FAIL\] (.*)$", re.MULTILINE)
_COLOR = re.compile(r"\x1b\[[\d;]*m")


def main() -> int:
    parser = argparse.ArgumentParser(description="Run controller-runtime's own tests against the embedded API server.")
    parser.add_argument("--version", default=VERSION)
    parser.add_argument("suites", nargs="*", default=SUITES, metavar="SUITE")
    options = parser.parse_args()
    go = shutil.which("go") or "/usr/local/go/bin/go"
    found = subprocess.run(
        [go, "mod", "download", "-json", f"{MODULE}@{options.version}"], capture_output=True, text=True, check=True
    )
    with tempfile.TemporaryDirectory() as directory:
        # The cache of modules cannot be written to.
        source = Path(directory) / "source"
        subprocess.run(["cp", "-r", "--no-preserve=mode", json.loads(found.stdout)["Dir"], source], check=True)
        return sum([not passed(go, source / "pkg" / suite, suite, Path(directory)) for suite in options.suites])


def passed(go: str, package: Path, suite: str, directory: Path) -> bool:
    """Whether all tests of a suite pass; prints how many do."""
    kubeconfig = directory / f"{suite.replace('/', '-')}.kubeconfig"
    command = [sys.executable, "-m", "holdfast", "apiserver", "--ephemeral", "--kubeconfig", str(kubeconfig)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as server:
        try:
            assert server.stdout is not None
            assert "ready: " in server.stdout.readline()
            settings = {"USE_EXISTING_CLUSTER": "true", "KUBECONFIG": str(kubeconfig)}
            ended = subprocess.run(
                [go, "test", "-count=1", "-v", "."],
                cwd=package,
                env=os.environ | settings,
                capture_output=True,
                text=True,
                check=False,
            )
        finally:
            server.terminate()
    output = _COLOR.sub("", ended.stdout)
    tallies = [tuple(map(int, each)) for each in _TALLY.findall(output)]
    good, bad, pending = map(sum, zip(*tallies, strict=True)) if tallies else (0, 0, 0)
    print(f"{suite:28} {good:4} of {good + bad:4} pass, {pending} are switched off by their authors", flush=True)
    for name in _FAILED.findall(output):
        print(f"    {name}")
    if ended.returncode and not bad:
        print(output[-2_000:], ended.stderr[-2_000:])
    return ended.returncode == 0


if __name__ == "__main__":
    raise SystemExit(main())
