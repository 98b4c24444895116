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
from tests.clusters import HOLDFAST

from holdfast.profiler.load.figures import figures as load_figures
from holdfast.profiler.mocker import modelled
from holdfast.profiler.mocker.simulation import simulate
from holdfast.profiler.request import Machines, Request, Targets, Traffic
from holdfast.profiler.results import Point
from holdfast.profiler.search import search

REQUEST = """
apiVersion: nvidia.com/v1beta1
kind: DynamoGraphDeploymentRequest
metadata: {name: chat}
spec:
  model: Qwen/Qwen3-32B
  hardware: {gpuSku: h200_sxm, totalGpus: 4, numGpusPerNode: 8}
  workload: {isl: 1000, osl: 32, requestRate: 2}
  sla: {ttft: 1000, itl: 40}
  features: {mocker: {enabled: true}}
"""

ASKED = Request(
    model="Qwen/Qwen3-32B",
    machines=Machines(sku="h200_sxm", gpus=4),
    traffic=Traffic(isl=1000, osl=32, request_rate=2),
    targets=Targets(ttft_ms=1000, itl_ms=40),
)
"""The same, as the profiler is asked."""


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
        found = json.loads(run("load", "--request", "dgdr/chat", "--duration", "5s", "-o", "json"))
    figures, (ttft, itl, _) = found["figures"], found["comparisons"]
    assert found["slaMet"] is True
    assert figures["completed"] == figures["requests"] >= 5
    point = chosen()
    assert ttft["predicted"] == pytest.approx(point.ttft_ms, rel=0.01)
    assert itl["predicted"] == pytest.approx(point.itl_ms, rel=0.01)
    # A handful of requests is not the mean, so they are compared with the same handful in virtual time.  The median,
    # because a machine that is busy for a moment delays one of them.
    traffic = modelled.traffic(ASKED, point, requests=figures["requests"])
    expected = load_figures(simulate(modelled.deployment(point, ASKED), traffic))
    assert expected.ttft_ms is not None
    assert expected.itl_ms is not None
    assert figures["ttftMs"]["p50"] == pytest.approx(expected.ttft_ms.p50, rel=0.15)
    assert figures["itlMs"]["p50"] == pytest.approx(expected.itl_ms.p50, rel=0.15)


def chosen() -> Point:
    found = search(ASKED).chosen
    assert found is not None
    return found
