"""A new operator is a folder, its kinds and one line in a list; the command line shows and steers it without a change.

The operator is `tests.operators.toy`.  Each command runs in a process of its own, as a user
runs it.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import pytest
import yaml
from tests.places import ROOT

HOLDFAST = [sys.executable, "-m", "tests.operators.toy"]
ENVIRONMENT = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "src")])}


@dataclass(frozen=True)
class Up:
    """A cluster with the toy operator: its kubeconfig, and what `holdfast up` prints."""

    kubeconfig: str
    printed: IO[str]

    def __call__(self, *arguments: str, given: str | None = None) -> str:
        environment = {**ENVIRONMENT, "KUBECONFIG": self.kubeconfig}
        run = subprocess.run([*HOLDFAST, *arguments], env=environment, capture_output=True, text=True, input=given)
        assert run.returncode == 0, run.stdout + run.stderr
        return run.stdout


@pytest.fixture(scope="module")
def up() -> Iterator[Up]:
    command = [*HOLDFAST, "up", "--ephemeral", "--nodes", "1"]
    with subprocess.Popen(command, env=ENVIRONMENT, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        # A test that waits for a line that never comes fails instead of hanging.
        limit = threading.Timer(120, process.terminate)
        limit.start()
        found = re.search(r"KUBECONFIG=(\S+)", process.stdout.readline())
        assert found
        yield Up(found[1], process.stdout)
        limit.cancel()
        process.terminate()


def beacon(image: str) -> str:
    return yaml.safe_dump(
        {
            "apiVersion": "toy.example.com/v1",
            "kind": "Beacon",
            "metadata": {"name": "north"},
            "spec": {"image": image, "replicas": 2},
        }
    )


def test_a_new_operator_is_run_shown_and_steered(up: Up) -> None:
    up("apply", "-f", "-", given=beacon("light:1"))
    status = up("rollout", "status", "beacon/north", "--timeout=60s")
    assert status.splitlines()[-1] == "north: revision light.1 is rolled out: 2 of 2 replicas ready"

    assert up("rollout", "pause", "beacon/north") == "beacon.toy.example.com/north paused\n"
    up("apply", "-f", "-", "--force-conflicts", given=beacon("light:2"))
    up("wait", "beacon/north", "--for=jsonpath={.status.phase}=Paused", "--timeout=60s")
    assert any(line.startswith("  beacon/default/north  Paused: ") for line in up.printed)
    assert up("rollout", "resume", "beacon/north") == "beacon.toy.example.com/north resumed\n"
    up("rollout", "status", "beacon/north", "--timeout=60s")
    ended = json.loads(up("rollout", "status", "beacon/north", "--watch=false", "-o", "json"))
    assert (ended["state"], ended["updateRevision"], ended["updatedReplicas"]) == ("Completed", "light.2", 2)
    assert re.search(r"^Images:\n  IMAGE +AGE\n  light:2 ", up("describe", "beacon", "north"), re.MULTILINE)


def test_a_new_operator_is_listed_and_deployed(up: Up) -> None:
    assert re.search(r"^beacon +Beacon \(toy.example.com/v1\) +pods$", up("operator", "list"), re.MULTILINE)
    assert "beacons/status" in up("operator", "manifests", "--controllers", "beacon")


def test_a_manifest_of_a_new_operator_is_planned_without_a_cluster(up: Up, tmp_path: Path) -> None:
    (tmp_path / "beacon.yaml").write_text(beacon("light:1"))
    planned = up("plan", "-f", str(tmp_path / "beacon.yaml"), "--replicas", "3")
    assert planned.startswith("north: RollingUpdate, 3 replicas, new revision\nfloor 2, lowest ready 2")
    assert "seed" in up("simulate", "-f", str(tmp_path / "beacon.yaml"))
