"""Requests on an API server, with the test as Job controller, profiler and operator of deployments."""

from __future__ import annotations

import dataclasses
from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime
from typing import Any, TypeVar

import msgspec
import yaml

from holdfast.client.objects import Object
from holdfast.client.resources import CONFIG_MAPS, JOBS, NODES
from holdfast.kinds.nvidia import KINDS
from holdfast.meta import times
from holdfast.operators.deploymentrequest.requests import names
from holdfast.operators.deploymentrequest.requests.controller import CONTROLLERS
from holdfast.operators.deploymentrequest.requests.observe import GRAPHS, REQUESTS, World
from holdfast.operators.deploymentrequest.requests.stages import facts_of
from holdfast.operators.deploymentrequest.requests.transitions import TRANSITIONS, Phase
from holdfast.profiler.results import Engine, Point, Result
from holdfast.runtime.controllers import Controller
from holdfast.runtime.decisions import Decision
from holdfast.testing.clusters import Cluster, play

T = TypeVar("T")
Wire = dict[str, Any]

NAME = "qwen"
MODEL = "Qwen/Qwen3-0.6B"


def request(name: str = NAME, *, annotations: Mapping[str, str] | None = None, **spec: Any) -> Wire:
    metadata: Wire = {"name": name, "namespace": "default"}
    if annotations:
        metadata["annotations"] = dict(annotations)
    return {
        "apiVersion": "nvidia.com/v1beta1",
        "kind": "DynamoGraphDeploymentRequest",
        "metadata": metadata,
        "spec": {"model": MODEL, "backend": "vllm", **spec},
    }


def gpu_node(name: str = "node-1", *, product: str = "NVIDIA-H200", memory: int = 143771, gpus: int = 8) -> Wire:
    labels = {"nvidia.com/gpu.product": product, "nvidia.com/gpu.memory": str(memory), "nvidia.com/gpu.count": "8"}
    amounts = {"cpu": "32", "memory": "128Gi", "pods": "250", "nvidia.com/gpu": str(gpus)}
    return {"metadata": {"name": name, "labels": labels}, "status": {"capacity": amounts, "allocatable": amounts}}


class Phases:
    """The phases that requests went through; an edge that is not in the table raises."""

    def __init__(self) -> None:
        self.seen: dict[str, list[Phase | None]] = {}
        self.rows: list[str] = []
        """The rows of the table that were gone through, each once in a row."""

    def went(self, row: str) -> None:
        if self.rows[-1:] != [row]:
            self.rows.append(row)

    def changed(self, old: Object | None, new: Object | None) -> None:
        if new is None:
            return
        phase = (new.wire().get("status") or {}).get("phase")
        seen = self.seen.setdefault(new.uid, [None])
        if phase is not None and phase != seen[-1]:
            TRANSITIONS.check(seen[-1], phase)
            seen.append(phase)

    def of(self, name: str = NAME) -> list[Phase | None]:
        (only,) = self.seen.values()
        return only[1:]


def play_story(story: Callable[[Cluster, Phases], Awaitable[T]], *, nodes: int = 1) -> T:
    """Play a story with the controller of requests; every phase that follows another is checked."""
    phases = Phases()
    broken: list[Exception] = []

    def changed(old: Object | None, new: Object | None) -> None:
        try:
            phases.changed(old, new)
        except Exception as error:
            broken.append(error)

    async def watched(cluster: Cluster) -> T:
        for number in range(nodes):
            await cluster.create(NODES, gpu_node(f"node-{number + 1}"))
        cluster.manager.caches.subscribe(REQUESTS, changed)
        ended = await story(cluster, phases)
        await cluster.settle()
        assert not broken, broken
        return ended

    return play(watched, controllers=(recording(phases),), kinds=KINDS)


def recording(phases: Phases) -> Controller[Any]:
    """The controller of requests, which also records the rows of the table."""
    (controller,) = CONTROLLERS

    def decide(world: World, now: datetime) -> Decision:
        phases.went(facts_of(world, now).row)
        return controller.decide(world, now)

    return dataclasses.replace(controller, decide=decide)


# --- what others do


async def status_of(cluster: Cluster, name: str = NAME) -> Wire:
    await cluster.settle()
    status: Wire = (await cluster.get(REQUESTS, name)).get("status") or {}
    return status


def condition(status: Mapping[str, Any], type: str) -> Wire:
    return next((dict(each) for each in status.get("conditions", ()) if each["type"] == type), {})


def answer(status: Mapping[str, Any], type: str) -> tuple[str, str] | None:
    found = condition(status, type)
    return (found["status"], found["reason"]) if found else None


async def job_runs(cluster: Cluster, name: str = NAME) -> None:
    """The Job controller has started the pod."""
    await cluster.settle()
    await cluster.patch(JOBS, names.job(name), {"status": {"active": 1}}, subresource="status")
    await cluster.settle()


async def job_ends(
    cluster: Cluster, type: str = "Complete", *, name: str = NAME, reason: str = "", message: str = ""
) -> None:
    await cluster.settle()
    now = times.format(cluster.now())
    done = {"type": type, "status": "True", "reason": reason, "message": message, "lastTransitionTime": now}
    status: Wire = {"conditions": [done], "active": 0}
    if type == "Complete":
        first = {**done, "type": "SuccessCriteriaMet"}
        status |= {"startTime": now, "completionTime": now, "succeeded": 1, "conditions": [first, done]}
    else:
        status |= {"startTime": now, "failed": 1, "conditions": [{**done, "type": "FailureTarget"}, done]}
    await cluster.patch(JOBS, names.job(name), {"status": status}, subresource="status")
    await cluster.settle()


async def reports(cluster: Cluster, name: str = NAME, **data: str) -> None:
    """The profiler writes its output."""
    await cluster.settle()
    renamed = {"final_config": "final_config.yaml", "result": "result.json"}
    written = {renamed.get(key, key): value for key, value in data.items()}
    await cluster.patch(CONFIG_MAPS, names.output(name), {"data": written})
    await cluster.settle()


def point(ttft: float = 778.0, itl: float = 28.6, *, met: bool = True, replicas: int = 2) -> Point:
    return Point(
        engines=(Engine(role="worker", tensor_parallel=1, replicas=replicas, batch=96),),
        ttft_ms=ttft,
        itl_ms=itl,
        requests_per_second=7.2,
        tokens_per_second=7200.0,
        tokens_per_second_per_gpu=900.0,
        tokens_per_second_per_user=1000 / itl,
        sla_met=met,
    )


RESULT = Result(
    backend="vllm",
    chosen=point(),
    runners_up=tuple(point(itl=29.0 + number / 10) for number in range(7)),
    pareto=(point(), point(ttft=900.0, itl=12.0)),
    why="tp 1 with 2 replicas gives the most tokens a second for a GPU",
    considered=280,
)

GRAPH: Wire = {
    "apiVersion": "nvidia.com/v1beta1",
    "kind": "DynamoGraphDeployment",
    "metadata": {"name": "anything"},
    "spec": {
        "backendFramework": "vllm",
        "components": [
            {"name": "frontend", "type": "frontend", "replicas": 1},
            {
                "name": "worker",
                "type": "worker",
                "replicas": 2,
                "podTemplate": {"spec": {"containers": [{"name": "main", "image": "vllm:1.0.0"}]}},
            },
        ],
    },
}


def final_config(*others: Wire, graph: Wire | None = None) -> str:
    return yaml.safe_dump_all([*others, graph or GRAPH])


async def succeeds(cluster: Cluster, result: Result = RESULT, *, name: str = NAME, config: str | None = None) -> None:
    """The profiler writes its result, and the Job ends."""
    await reports(
        cluster,
        name,
        phase="Done",
        profiler_status="success",
        final_config=final_config() if config is None else config,
        result=msgspec.json.encode(result).decode(),
    )
    await job_ends(cluster, name=name)


async def graph_is(
    cluster: Cluster,
    state: str,
    *,
    available: int = 3,
    replicas: int = 3,
    reason: str = "",
    message: str = "",
    updating: bool = False,
    name: str = f"{NAME}-dgd",
) -> None:
    """The operator of deployments reports."""
    await cluster.settle()
    found = await cluster.get(GRAPHS, name)
    ready = "True" if state == "successful" else "False"
    before = condition(found.get("status") or {}, "Ready")
    since = before["lastTransitionTime"] if before.get("status") == ready else times.format(cluster.now())
    status: Wire = {
        "state": state,
        "observedGeneration": found["metadata"]["generation"],
        "components": {
            "worker": {"componentKind": "PodClique", "replicas": replicas, "readyReplicas": available},
        },
        "conditions": [
            {
                "type": "Ready",
                "status": ready,
                "reason": reason or ("all_resources_are_ready" if ready == "True" else "pods_not_ready"),
                "message": message,
                "lastTransitionTime": since,
            }
        ],
        "rollingUpdate": {"phase": "InProgress"} if updating else None,
    }
    await cluster.patch(GRAPHS, name, {"status": status}, subresource="status")
    await cluster.settle()


async def until_deployed(cluster: Cluster) -> None:
    """Create a request, and have everything succeed."""
    await cluster.create(REQUESTS, request())
    await job_runs(cluster)
    await succeeds(cluster)
    await graph_is(cluster, "successful")
    assert (await status_of(cluster))["phase"] == "Deployed"
