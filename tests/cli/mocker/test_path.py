"""The whole path on one machine: a request, its profiling, its deployment as processes, and a load test of it."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

HOLDFAST = [sys.executable, "-m", "holdfast"]

REQUEST = """
apiVersion: nvidia.com/v1beta1
kind: DynamoGraphDeploymentRequest
metadata: {name: chat}
spec:
  model: Qwen/Qwen3-32B
  hardware: {gpuSku: h200_sxm, totalGpus: 4, numGpusPerNode: 8}
  workload: {isl: 1000, osl: 32, requestRate: 4}
  sla: {ttft: 1000, itl: 40}
  features: {mocker: {enabled: true}}
"""


@contextmanager
def up(kubeconfig: Path) -> Iterator[None]:
    command = [*HOLDFAST, "up", "--ephemeral", "--nodes", "1", "--kubeconfig", str(kubeconfig)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            assert re.match(r"ready: https://", line), line
            yield
        finally:
            process.terminate()
            process.communicate(timeout=30)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has all of 127.0.0.0/8")
def test_a_request_for_mock_workers_is_deployed_answers_and_does_what_its_status_predicted(tmp_path: Path) -> None:
    kubeconfig, manifest = tmp_path / "kubeconfig", tmp_path / "request.yaml"
    manifest.write_text(REQUEST)

    def run(*arguments: str) -> str:
        environment = {**os.environ, "KUBECONFIG": str(kubeconfig)}
        done = subprocess.run([*HOLDFAST, *arguments], env=environment, capture_output=True, text=True, timeout=90)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    with up(kubeconfig):
        run("apply", "-f", str(manifest))
        run("wait", "dgdr/chat", "--for=jsonpath={.status.phase}=Deployed", "--timeout=60s")
        # The median of a handful of requests: a machine that is busy for a moment delays one of them.
        found = json.loads(run("load", "--request", "dgdr/chat", "--duration", "4s", "--by", "p50", "-o", "json"))
    assert found["slaMet"] is True
    assert found["figures"]["completed"] == found["figures"]["requests"] >= 5
    ttft, itl, _ = found["comparisons"]
    assert (ttft["name"], itl["name"]) == ("ttft", "itl")
    assert ttft["error"] == pytest.approx(0, abs=0.15)
    assert itl["error"] == pytest.approx(0, abs=0.15)
