"""Requests on `holdfast up`, with the profiling Job as a real process."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Iterator
from typing import Any

import pytest
import yaml
from tests import clusters
from tests.clusters import ENVIRONMENT, HOLDFAST
from tests.operators.deploymentrequest.requests.stories import answer, condition, request
from tests.places import ROOT

MANIFESTS = ROOT / "examples" / "deploymentrequests"
PATIENCE = 120.0
COMMANDS = 40
"""A model that is known is deployed in the time of at most so many commands."""


class Up:
    """A cluster that was started with `holdfast up`."""

    def __init__(self, kubeconfig: str) -> None:
        self.environment = {**ENVIRONMENT, "KUBECONFIG": kubeconfig}

    def __call__(self, *arguments: str, given: str | None = None) -> str:
        command = [*HOLDFAST, *arguments]
        run = subprocess.run(command, env=self.environment, capture_output=True, text=True, input=given)
        assert run.returncode == 0, run.stdout + run.stderr
        return run.stdout

    def apply(self, *objects: dict[str, Any]) -> None:
        self("apply", "-f", "-", given=yaml.safe_dump_all(objects))

    def reaches(self, name: str, phase: str) -> dict[str, Any]:
        self("wait", f"dgdr/{name}", f"--for=jsonpath={{.status.phase}}={phase}", f"--timeout={PATIENCE:.0f}s")
        status: dict[str, Any] = json.loads(self("get", "dgdr", name, "-o", "json"))["status"]
        return status


@pytest.fixture(scope="module")
def up() -> Iterator[Up]:
    with clusters.up("--operators", "deploymentrequest,podcliqueset") as kubeconfig:
        yield Up(str(kubeconfig))


def test_a_model_is_profiled_and_deployed_in_the_time_of_some_commands(up: Up) -> None:
    started = time.monotonic()
    up("get", "nodes")
    began = time.monotonic()
    up("apply", "-f", str(MANIFESTS / "minimal.yaml"))
    status = up.reaches("qwen-small", "Deployed")
    took, command = time.monotonic() - began, began - started
    assert took < COMMANDS * command, f"{took:.1f} s, where a command takes {command:.1f} s"
    assert status["hardware"] == {"gpuSku": "h200_sxm", "numGpusPerNode": 8, "totalGpus": 32, "vramMb": 143771}
    assert answer(status, "SLASatisfied") == ("True", "TargetsMet")
    results = status["profilingResults"]
    assert len(results["candidates"]) == 6
    assert results["predictedItl"] <= 30
    assert results["pareto"]
    shown = up("rollout", "status", "dgdr/qwen-small", "--watch=false")
    assert shown.startswith("qwen-small: rolled out: ")
    assert "profile-qwen-small" in up("get", "pods,jobs,dgd", "-l", "dgdr.nvidia.com/name=qwen-small")
    # The account of the profiler is gone with its work.
    assert "profile-qwen-small" not in up("get", "serviceaccounts,roles,rolebindings", "-o", "name")


def test_what_the_profiler_cannot_do_is_said_with_what_to_write(up: Up) -> None:
    up.apply(
        request("unknown", model="Qwen/Qwen3-0.7B"),
        request("fast", model="meta-llama/Llama-3.1-70B", hardware={"totalGpus": 8}, sla={"itl": 0.5}),
    )
    status = up.reaches("unknown", "Failed")
    assert answer(status, "Succeeded") == ("False", "Failed")
    message = condition(status, "Profiling")["message"]
    assert message.startswith("spec.model: ")
    assert "Qwen/Qwen3-0.6B" in message

    status = up.reaches("fast", "Failed")
    assert answer(status, "Profiling") == ("False", "NoConfigurationMeetsTargets")
    assert answer(status, "SLASatisfied") == ("False", "TargetsNotMet")
    assert status["profilingResults"]["slaMet"] is False
    assert status["profilingResults"]["remedy"]


def test_a_reviewed_request_with_a_model_from_a_volume_is_promoted(up: Up) -> None:
    up("delete", "dgd", "qwen-small-dgd", "--wait=false")
    claim = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "model-cache", "namespace": "default"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
    }
    cache = {"pvcName": "model-cache", "pvcMountPath": "/home/dynamo/.cache", "pvcModelPath": "hub/qwen"}
    up.apply(claim, request("reviewed", autoApply=False, modelCache=cache, hardware={"totalGpus": 2}))
    status = up.reaches("reviewed", "Ready")
    components = status["profilingResults"]["selectedConfig"]["spec"]["components"]
    # The path is the container's, and not where the process found the volume.
    assert "/home/dynamo/.cache/hub/qwen" in json.dumps(components)
    up("rollout", "promote", "dgdr/reviewed")
    up.reaches("reviewed", "Deployed")
    assert answer(up.reaches("qwen-small", "Failed"), "DeploymentReady") == ("False", "DeploymentDeleted")
