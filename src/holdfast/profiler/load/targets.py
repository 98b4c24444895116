"""What a request of the cluster asks for and was promised, and where its deployment is reached.

The traffic and the targets are those of the spec of a DynamoGraphDeploymentRequest, with its defaults; the
predictions and the name of the deployment are in its status.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

import msgspec

from holdfast.client.objects import Object
from holdfast.client.protocols import Reader, Scope
from holdfast.client.resources import SERVICES
from holdfast.profiler.load.figures import Goals
from holdfast.profiler.request import Targets, Traffic

GRAPH: Final = "nvidia.com/dynamo-graph-deployment-name"
COMPONENT_TYPE: Final = "nvidia.com/dynamo-component-type"
"""Labels of what belongs to a DynamoGraphDeployment."""


class NotReady(Exception):
    """There is nothing to test yet; the message says what is missing, and what to do."""


class _Workload(msgspec.Struct, rename="camel"):
    isl: int | None = None
    osl: int | None = None
    concurrency: float | None = None
    request_rate: float | None = None


class _Sla(msgspec.Struct, rename="camel"):
    ttft: float | None = None
    itl: float | None = None
    e2e_latency: float | None = None


class _Spec(msgspec.Struct, rename="camel"):
    model: str = ""
    workload: _Workload | None = None
    sla: _Sla | None = None


class _Engine(msgspec.Struct, rename="camel"):
    role: str = ""
    replicas: int = 1
    batch: int = 1


class _Config(msgspec.Struct, rename="camel"):
    engines: tuple[_Engine, ...] = ()


class _Candidate(msgspec.Struct, rename="camel"):
    config: _Config | None = None


class _Results(msgspec.Struct, rename="camel"):
    predicted_ttft: float | None = None
    predicted_itl: float | None = None
    candidates: tuple[_Candidate, ...] = ()


class _Status(msgspec.Struct, rename="camel"):
    phase: str = ""
    dgd_name: str = ""
    profiling_results: _Results | None = None


class _Request(msgspec.Struct, rename="camel"):
    spec: _Spec = msgspec.field(default_factory=_Spec)
    status: _Status = msgspec.field(default_factory=_Status)


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """What a request says of a load test.

    graph        the name of its deployment
    concurrency  the requests in flight that it is predicted for, where no rate is asked for
    """

    model: str
    graph: str
    traffic: Traffic
    goals: Goals
    concurrency: int | None = None


def of_request(wire: Mapping[str, Any]) -> Asked:
    """What a DynamoGraphDeploymentRequest asks for; raises `NotReady` where it has no deployment yet."""
    request = msgspec.convert(wire, _Request)
    spec, status = request.spec, request.status
    name = (wire.get("metadata") or {}).get("name", "")
    if not status.dgd_name or status.phase not in ("Deploying", "Deployed"):
        state = status.phase or "not reconciled yet"
        raise NotReady(
            f"{name} is {state}; wait until it is Deployed: holdfast wait dgdr/{name} --for=condition=Succeeded"
        )
    load, sla = spec.workload or _Workload(), spec.sla or _Sla()
    usual, common = Traffic(), Targets()
    traffic = Traffic(
        isl=load.isl or usual.isl,
        osl=load.osl or usual.osl,
        concurrency=load.concurrency,
        request_rate=load.request_rate,
    )
    results = status.profiling_results or _Results()
    whole = sla.e2e_latency
    goals = Goals(
        ttft_ms=None if whole else sla.ttft or common.ttft_ms,
        itl_ms=None if whole else sla.itl or common.itl_ms,
        e2e_ms=whole,
        predicted_ttft_ms=results.predicted_ttft,
        predicted_itl_ms=results.predicted_itl,
    )
    return Asked(
        model=spec.model,
        graph=status.dgd_name,
        traffic=traffic,
        goals=goals,
        concurrency=round(load.concurrency) if load.concurrency else _in_flight(results.candidates),
    )


def _in_flight(candidates: Iterable[_Candidate]) -> int | None:
    """The sequences that the chosen configuration has room for."""
    chosen = next((each.config for each in candidates if each.config is not None), None)
    if chosen is None:
        return None
    return sum(each.batch * each.replicas for each in chosen.engines if each.role != "prefill") or None


async def endpoint(client: Reader, namespace: str, graph: str) -> str:
    """The URL of the frontend of a deployment; raises `NotReady`."""
    labels = f"{GRAPH}={graph},{COMPONENT_TYPE}=frontend"
    listing = await client.list(SERVICES, Scope(namespace=namespace, labels=labels))
    for service in listing.objects:
        url = _url(service)
        if url is not None:
            return url
    raise NotReady(
        f"the deployment {graph} has no Service for its frontend with a cluster IP; wait until it is ready, or name "
        "the URL of the server"
    )


def _url(service: Object) -> str | None:
    spec = service.wire().get("spec") or {}
    ip, ports = spec.get("clusterIP"), spec.get("ports") or ()
    if not ip or ip == "None" or not ports:
        return None
    host = f"[{ip}]" if ":" in ip else ip
    return f"http://{host}:{ports[0]['port']}"
