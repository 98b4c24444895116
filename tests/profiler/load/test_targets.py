"""What a load test takes from a request of the cluster."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from holdfast.apiserver.server import Server
from holdfast.client.resources import SERVICES
from holdfast.profiler.load.figures import Goals
from holdfast.profiler.load.targets import COMPONENT_TYPE, GRAPH, NotReady, endpoint, of_request
from holdfast.profiler.request import Traffic
from holdfast.testing.clusters import connected

RESULTS = {
    "predictedTtft": 117.9,
    "predictedItl": 20.4,
    "candidates": [{"config": {"engines": [{"role": "worker", "replicas": 2, "batch": 8, "tensorParallel": 1}]}}],
}


def request(phase: str = "Deployed", results: dict[str, Any] | None = None, **spec: Any) -> dict[str, Any]:
    return {
        "metadata": {"name": "chat"},
        "spec": {"model": "Qwen/Qwen3-32B", **spec},
        "status": {"phase": phase, "dgdName": "chat-dgd", "profilingResults": RESULTS if results is None else results},
    }


def test_traffic_targets_and_predictions_are_those_of_the_request() -> None:
    asked = of_request(request(workload={"isl": 1000, "osl": 100, "requestRate": 2}, sla={"ttft": 500, "itl": 40}))
    assert asked.graph == "chat-dgd"
    assert asked.traffic == Traffic(isl=1000, osl=100, request_rate=2)
    assert asked.goals == Goals(ttft_ms=500, itl_ms=40, predicted_ttft_ms=117.9, predicted_itl_ms=20.4)


def test_what_a_request_leaves_out_has_the_defaults_of_the_profiler() -> None:
    asked = of_request(request())
    assert asked.traffic == Traffic()
    assert (asked.goals.ttft_ms, asked.goals.itl_ms, asked.goals.e2e_ms) == (2000, 30, None)
    assert asked.concurrency == 16, "what the chosen configuration has room for"


def test_a_target_for_the_whole_answer_stands_alone() -> None:
    goals = of_request(request(sla={"e2eLatency": 3000})).goals
    assert (goals.ttft_ms, goals.itl_ms, goals.e2e_ms) == (None, None, 3000)


def test_without_candidates_the_concurrency_is_the_request_s_own() -> None:
    assert of_request(request(results={})).concurrency is None
    assert of_request(request(results={}, workload={"concurrency": 5})).concurrency == 5


@pytest.mark.parametrize("phase", ["", "Pending", "Profiling", "Ready", "Failed"])
def test_a_request_without_a_deployment_cannot_be_tested(phase: str) -> None:
    with pytest.raises(NotReady, match="wait until it is Deployed"):
        of_request(request(phase))


def test_the_endpoint_is_the_service_of_the_frontend() -> None:
    def service(name: str, type: str, **spec: Any) -> dict[str, Any]:
        labels = {GRAPH: "chat-dgd", COMPONENT_TYPE: type}
        ports = [{"name": "http", "port": 8000}]
        return {
            "metadata": {"name": name, "namespace": "default", "labels": labels},
            "spec": {"ports": ports, **spec},
        }

    async def run() -> None:
        server = await Server.open()
        client = connected(server)
        with pytest.raises(NotReady, match="has no Service for its frontend"):
            await endpoint(client, "default", "chat-dgd")
        await client.create(SERVICES, service("worker", "worker", clusterIP="None"))
        made = await client.create(SERVICES, service("frontend", "frontend"))
        assert await endpoint(client, "default", "chat-dgd") == f"http://{made.wire()['spec']['clusterIP']}:8000"
        await client.close()
        await server.close()

    asyncio.run(run())
