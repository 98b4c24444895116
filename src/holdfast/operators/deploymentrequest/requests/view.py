"""A request as it is shown: how far it is, its Job, and its deployment with the components and their pods as a tree.

Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from typing import Any, Final

from holdfast.client.objects import Object
from holdfast.client.resources import JOBS, PODS
from holdfast.kinds.nvidia.requests import (
    DynamoGraphDeploymentRequest,
    DynamoGraphDeploymentRequestStatus,
    ProfilingResults,
)
from holdfast.operators.deploymentrequest.graphs import view as graphs
from holdfast.operators.deploymentrequest.requests import names
from holdfast.operators.deploymentrequest.requests.facts import SUCCEEDED, targets
from holdfast.operators.deploymentrequest.requests.observe import GRAPHS, Job
from holdfast.operators.deploymentrequest.requests.stages import attempt_of
from holdfast.operators.rollouts import (
    Headline,
    Observed,
    Wire,
    is_current,
    left_alone,
    message_of,
    status_of,
)
from holdfast.views.descriptions import StatusTable
from holdfast.views.overview import Counted
from holdfast.views.pages.sections import Chart, Point
from holdfast.views.rollouts import RolloutState, Standing, condition, holds, moment, said
from holdfast.views.trees import NEW, Branch, Pod, Tree, leaves

_STATES: Final = {
    "Ready": RolloutState.WAITING,
    "Deployed": RolloutState.COMPLETED,
    "Failed": RolloutState.FAILED,
}
_VERBS: Final = {"Ready": "promote", "Failed": "retry"}


class Shown:
    """A request, and what belongs to it."""

    def __init__(self, observed: Observed) -> None:
        self.object = observed.object
        self.request = observed.object.decode(DynamoGraphDeploymentRequest)
        self.view = observed.view

    @property
    def name(self) -> str:
        return self.object.key.name

    @property
    def status(self) -> DynamoGraphDeploymentRequestStatus:
        return self.request.status or DynamoGraphDeploymentRequestStatus()

    @property
    def job(self) -> Object | None:
        found = self.view.list(JOBS, namespace=self.object.key.namespace)
        return next((each for each in found if each.is_controlled_by(self.object.uid)), None)

    @property
    def graph(self) -> Object | None:
        """The deployment, where it was created for the request."""
        found = self.view.list(GRAPHS, namespace=self.object.key.namespace)
        return next((each for each in found if each.meta.annotations.get(names.REQUEST_UID) == self.object.uid), None)

    @property
    def endpoints(self) -> tuple[str, ...]:
        """The addresses at which the deployment answers."""
        graph = self.graph
        return () if graph is None else tuple(graphs.Graph(Observed(graph, self.view)).endpoints())


def fresh(obj: Object) -> bool:
    """Whether the operator has seen the spec, and the retry, that there are now."""
    request = obj.decode(DynamoGraphDeploymentRequest)
    status = request.status
    if status is None or status.observed_generation != obj.meta.generation:
        return False
    return status.phase != "Failed" or status.attempt == attempt_of(request)


# --- its state


def standing(observed: Observed) -> Standing:
    shown = Shown(observed)
    status, info = shown.status, shown.status.deployment_info
    phase = status.phase or "New"
    ready = holds(status, "DeploymentReady")
    made = Standing(
        name=shown.name,
        strategy=shown.request.spec.search_strategy or "rapid",
        state=_STATES.get(phase, RolloutState.UNDER_WAY) if fresh(observed.object) else RolloutState.UNSEEN,
        phase=phase,
        because=said(condition(status, SUCCEEDED)),
        verb=_VERBS.get(phase, ""),
        desired=(info.replicas if info is not None else None) or 0,
        ready=(info.available_replicas if info is not None else None) or 0,
        available=(info.available_replicas if info is not None else None) or 0,
        updated=(info.available_replicas if info is not None else None) or 0,
        started=moment(shown.object.meta.creation_timestamp),
        ended=None if ready is None else moment(ready.last_transition_time),
        warnings=tuple(_warnings(shown)),
        facts=tuple(_facts(shown)),
        more={
            "model": shown.request.spec.model,
            "profilingPhase": status.profiling_phase,
            "deployment": status.dgd_name,
            "endpoints": list(shown.endpoints),
            "predictedTtft": status.profiling_results.predicted_ttft if status.profiling_results else None,
            "predictedItl": status.profiling_results.predicted_itl if status.profiling_results else None,
        },
    )
    return left_alone(observed.object, made)


def _facts(shown: Shown) -> Iterator[str]:
    hardware, results = shown.status.hardware, shown.status.profiling_results
    yield shown.request.spec.model
    if hardware is not None and hardware.gpu_sku is not None:
        yield f"up to {hardware.total_gpus} x {hardware.gpu_sku}"
    if results is not None and results.predicted_ttft is not None:
        yield figures(shown.request, results)


def figures(request: DynamoGraphDeploymentRequest, results: ProfilingResults) -> str:
    """What is predicted, or was measured, of the choice."""
    how = "measured" if results.measured else "estimated" if results.estimated else "predicted"
    asked = targets(request)
    ttft = f"ttft {results.predicted_ttft:,.4g} ms" + (f" of {asked['ttft']:,.4g}" if "ttft" in asked else "")
    itl = f"itl {results.predicted_itl or 0:,.4g} ms" + (f" of {asked['itl']:,.4g}" if "itl" in asked else "")
    return f"{how} {ttft}, {itl}"


def _warnings(shown: Shown) -> Iterator[str]:
    for type in ("Validation", "SLASatisfied"):
        found = condition(shown.status, type)
        if found is not None and found.status == "False" and shown.status.phase != "Failed":
            yield found.message or type


# --- the tree


def tree(observed: Observed, now: datetime) -> Tree:
    """The Job, and the deployment with its components."""
    shown = Shown(observed)
    graph = shown.graph
    of_graph = None if graph is None else graphs.tree(Observed(graph, observed.view), now)
    branches = (
        *_job(shown, now),
        *(() if graph is None or of_graph is None else (_graph(graph, of_graph),)),
    )
    size = 0 if of_graph is None else of_graph.size
    return Tree(standing=standing(observed), branches=branches, now=now, size=size)


def _job(shown: Shown, now: datetime) -> Iterator[Branch]:
    found = shown.job
    if found is None:
        return
    job, status = found.decode(Job), shown.status
    done, failed = job.completed is not None, job.failed is not None
    phase = status.profiling_phase or ("Done" if done else "Failed" if failed else "Initializing")
    progress = status.profiling_progress
    pods = [each.decode(Pod) for each in shown.view.owned(PODS, found.uid)]
    yield Branch(
        name=found.key.name,
        index=NEW,
        marks=("Job", phase),
        note=f"{progress.done} of {progress.total}" if progress is not None else "",
        urgent=not done,
        # A pod that has ended well is no part of what runs.
        children=() if done else leaves(pods, index=lambda pod: NEW, now=now),
    )


def _graph(graph: Object, of_graph: Tree) -> Branch:
    return Branch(
        name=graph.key.name,
        index=NEW,
        marks=("DynamoGraphDeployment", of_graph.standing.phase),
        note="  ".join(of_graph.standing.facts),
        why="" if of_graph.standing.state is RolloutState.COMPLETED else of_graph.standing.because.message,
        urgent=of_graph.standing.state is not RolloutState.COMPLETED,
        children=of_graph.branches,
    )


# --- in one line, and as a table


def headline(wire: Wire) -> Headline:
    phase = str(status_of(wire).get("phase") or "New")
    return Headline(phase, message_of(wire, SUCCEEDED), is_current(wire) and phase in ("Deployed", "Ready"))


def counts(wire: Wire) -> Counted:
    info = status_of(wire).get("deploymentInfo") or {}
    return info.get("availableReplicas"), info.get("replicas"), None


def chart(wire: Wire) -> Chart | None:
    """The front of configurations that profiling found, with the one that was chosen."""
    results = status_of(wire).get("profilingResults") or {}
    candidates = [each for each in results.get("candidates") or () if isinstance(each, Mapping)]
    chosen = candidates[:1] if results.get("selectedConfig") else []
    front = (each for each in results.get("pareto") or () if isinstance(each, Mapping))
    points: dict[tuple[float, float], Mapping[str, Any]] = {}
    for each in (*candidates, *front, *chosen):
        x, y = each.get("tokensPerSecondPerUser"), each.get("tokensPerSecondPerGpu")
        if isinstance(x, int | float) and isinstance(y, int | float):
            points[x, y] = each
    if not points:
        return None
    return Chart(
        title="Configurations",
        x="tokens a second for a user",
        y="tokens a second for a GPU",
        points=tuple(
            Point(
                x=x,
                y=y,
                label=_label(each),
                chosen=each in chosen,
                good=each.get("slaMet") is not False,
                # No other is better for users and for GPUs.
                front=not any((a >= x and b > y) or (a > x and b >= y) for a, b in points),
            )
            for (x, y), each in sorted(points.items(), key=lambda item: item[0])
        ),
        note=str(results.get("why") or results.get("remedy") or ""),
    )


def _label(candidate: Mapping[str, Any]) -> str:
    """``4 x prefill tp 1, batch 8; 12 GPUs, ttft 210 ms, itl 9.8 ms``."""
    engines = " + ".join(map(_engine, (candidate.get("config") or {}).get("engines") or ()))
    figures = [
        f"{candidate.get('totalGpus', '?')} GPUs",
        f"ttft {_amount(candidate.get('predictedTtft'), ' ms')}",
        f"itl {_amount(candidate.get('predictedItl'), ' ms')}",
    ]
    return "; ".join(each for each in (engines, ", ".join(figures)) if each)


def _rows(obj: Mapping[str, Any], age: Callable[[str | None], str]) -> Iterator[list[str]]:
    """The candidates, best first, below the titles; the first is the one that was chosen, or that comes nearest."""
    yield ["CONFIGURATION", "GPUS", "TTFT", "ITL", "TOKENS/S/GPU", "MEETS TARGETS"]
    results = (obj.get("status") or {}).get("profilingResults") or {}
    for each in results.get("candidates") or ():
        engines = (each.get("config") or {}).get("engines") or ()
        yield [
            " + ".join(map(_engine, engines)) or "<none>",
            str(each.get("totalGpus", "<none>")),
            *(_amount(each.get(field), " ms") for field in ("predictedTtft", "predictedItl")),
            _amount(each.get("tokensPerSecondPerGpu"), ""),
            "yes" if each.get("slaMet") else "no",
        ]


def _engine(engine: Mapping[str, Any]) -> str:
    """``4 x prefill tp 1, batch 8``."""
    known = [f"{engine.get('replicas')} x {engine.get('role')} tp {engine.get('tensorParallel')}"]
    return ", ".join((*known, f"batch {engine.get('batch')}"))


def _amount(value: Any, unit: str) -> str:
    return f"{value:,.4g}{unit}" if isinstance(value, int | float) else "<none>"


CANDIDATES: Final = StatusTable(title="Candidates", field="profilingResults", rows=_rows)
