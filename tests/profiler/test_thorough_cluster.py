"""Candidates of a thorough search as objects of a cluster."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any

import pytest
from tests.waiting import eventually

from holdfast.apiserver.server import Server
from holdfast.client.protocols import Added, Client
from holdfast.client.resources import DEFINITIONS, SERVICES
from holdfast.cluster.controllers.gc.collector import GarbageCollector
from holdfast.kinds import crds
from holdfast.kinds.nvidia import deployments
from holdfast.kinds.nvidia.requests import DynamoGraphDeploymentRequestSpec
from holdfast.profiler.load.targets import COMPONENT_TYPE, GRAPH
from holdfast.profiler.request import Machines, Request, Traffic
from holdfast.profiler.results import Engine, Point
from holdfast.profiler.thorough import CANDIDATE_OF, GRAPHS, Bounds, Cluster, Owner, Skipped, Trial, request_reference
from holdfast.runtime.manager import Manager
from holdfast.testing.clusters import connected

BOUNDS = Bounds(ready_seconds=1, answer_seconds=1, gone_seconds=5)
REQUEST = Request(
    model="Qwen/Qwen3-8B", machines=Machines(sku="h200_sxm", gpus=1), traffic=Traffic(isl=100, osl=10, request_rate=1)
)
OWNER = Owner(
    name="chat",
    namespace="default",
    uid="u1",
    spec=DynamoGraphDeploymentRequestSpec(model="Qwen/Qwen3-8B"),
    reference=request_reference("chat", "u1"),
)
TRIAL = Trial(
    point=Point(
        engines=(Engine(role="worker", tensor_parallel=1, replicas=1, batch=8),),
        ttft_ms=10,
        itl_ms=5,
        requests_per_second=1,
        tokens_per_second=10,
        tokens_per_second_per_gpu=10,
        tokens_per_second_per_user=200,
        sla_met=True,
    ),
    speed=0.5,
    seconds=1,
    warmup=0,
)


@contextlib.asynccontextmanager
async def served(state: str, *, message: str = "") -> AsyncIterator[tuple[Client, Cluster, list[dict[str, Any]]]]:
    """A server that has graphs, and an operator that brings each into a state; with the graphs that it saw."""
    server = await Server.open()
    client = connected(server)
    await client.create(DEFINITIONS, crds.crd_of(deployments.KIND))
    seen: list[dict[str, Any]] = []

    async def operate() -> None:
        async with client.watch(GRAPHS, initial=True) as events:
            async for event in events:
                if not isinstance(event, Added):
                    continue
                seen.append(event.object.wire())
                name = event.object.key.name
                labels = {GRAPH: name, COMPONENT_TYPE: "frontend"}
                meta = {"name": f"{name}-frontend", "namespace": "default", "labels": labels}
                await client.create(SERVICES, {"metadata": meta, "spec": {"ports": [{"port": 8000}]}})
                ready = {"type": "Ready", "status": "False", "reason": "x", "message": message}
                condition = {**ready, "lastTransitionTime": "2026-01-01T00:00:00Z"}
                status = {"state": state, "observedGeneration": 1, "conditions": [condition]}
                await client.patch(GRAPHS, event.object.key, {"status": status}, subresource="status")

    manager = Manager(connected(server), controllers=[], components=[GarbageCollector()], now=server.now)
    collecting = asyncio.create_task(manager.run())
    operating = asyncio.create_task(operate())
    try:
        yield client, Cluster(client, OWNER, REQUEST, BOUNDS, mock=True), seen
    finally:
        operating.cancel()
        manager.stop()
        await asyncio.gather(operating, collecting, return_exceptions=True)
        await client.close()
        await server.close()


async def names(client: Client) -> list[str]:
    return [each.key.name for each in (await client.list(GRAPHS)).objects]


def test_a_candidate_is_deployed_reached_by_its_frontend_and_deleted() -> None:
    async def run() -> None:
        async with served("successful") as (client, cluster, seen):
            async with cluster.deployed(2, TRIAL) as url:
                assert await names(client) == ["chat-c2"]
                assert url.endswith(":8000")
            assert await names(client) == []
            (graph,) = seen
            assert graph["metadata"]["labels"] == {CANDIDATE_OF: "u1"}
            assert graph["metadata"]["ownerReferences"] == [OWNER.reference]
            worker = graph["spec"]["components"][1]["podTemplate"]["spec"]["containers"][0]
            assert worker["command"] == ["holdfast", "mocker", "serve"]
            assert worker["args"][-2:] == ["--speed", "0.500000"]

    asyncio.run(run())


@pytest.mark.parametrize(
    ("state", "said"),
    [
        ("failed", "it failed: no node has a GPU"),
        ("pending", "it was not ready within 1 s: no node has a GPU"),
    ],
)
def test_a_candidate_that_does_not_become_ready_is_skipped_with_the_reason_and_deleted(state: str, said: str) -> None:
    async def run() -> None:
        async with served(state, message="no node has a GPU") as (client, cluster, _):
            with pytest.raises(Skipped, match=said):
                async with cluster.deployed(0, TRIAL):
                    raise AssertionError("it is not ready")
            assert await names(client) == []

    asyncio.run(run())


def test_a_candidate_is_deleted_when_the_measurement_is_cancelled() -> None:
    async def run() -> None:
        async with served("successful") as (client, cluster, _):
            measuring = asyncio.Event()

            async def measure() -> None:
                async with cluster.deployed(0, TRIAL):
                    measuring.set()
                    await asyncio.get_running_loop().create_future()

            task = asyncio.create_task(measure())
            await measuring.wait()
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

            async def nothing() -> bool:
                return not await names(client)

            await eventually(nothing)

    asyncio.run(run())


def test_what_an_earlier_run_left_behind_is_deleted_and_nothing_else() -> None:
    async def run() -> None:
        async with served("successful") as (client, cluster, _):
            for name, labels in (("chat-c0", {CANDIDATE_OF: "u1"}), ("other-c0", {CANDIDATE_OF: "u2"}), ("own", {})):
                spec = {"components": [{"name": "worker", "type": "worker"}]}
                meta = {"name": name, "namespace": "default", "labels": labels}
                await client.create(GRAPHS, {"metadata": meta, "spec": spec})
            await cluster.clear()
            assert await names(client) == ["other-c0", "own"]

    asyncio.run(run())
