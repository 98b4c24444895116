"""Problems of a DynamoGraphDeployment that the API server does not find."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Final

from holdfast.kinds import Problem
from holdfast.kinds.nvidia.deployments import POD_TEMPLATE, DynamoGraphDeployment, GraphComponent
from holdfast.meta.schemas import walk
from holdfast.operators.deploymentrequest.graphs.components import MAIN, clique_name, pod_spec
from holdfast.operators.deploymentrequest.graphs.limits import LimitsError, rolling_update, update_strategy

_MOST_SHOWN: Final = 3


def problems(graph: DynamoGraphDeployment) -> tuple[Problem, ...]:
    """All problems of a spec."""
    return (*_components(graph), *_restart(graph), *_annotations(graph))


def _components(graph: DynamoGraphDeployment) -> Iterator[Problem]:
    if not graph.spec.components:
        yield Problem("spec.components", "a graph needs a component", "write at least one, with a podTemplate")
    seen: dict[str, str] = {}
    for component in graph.spec.components:
        at = f"spec.components[{component.name}]"
        yield from _pods(component, at)
        short = clique_name(component)
        if short in seen:
            yield Problem(at, f"its name is shortened to {short}, as that of {seen[short]}", "give it a shorter name")
        seen[short] = component.name


@cache
def _pod_template() -> walk.Schema:
    return walk.compile(POD_TEMPLATE, resource=False)


def _pods(component: GraphComponent, at: str) -> Iterator[Problem]:
    # A graph may have been stored without the schema of the CRD.
    wrong = _pod_template().check_values(component.pod_template or {}, path=f"{at}.podTemplate")
    if wrong:
        yield from (Problem(each.field, each.message) for each in wrong[:_MOST_SHOWN])
        return
    path = f"{at}.podTemplate.spec.containers"
    containers = {str(each.get("name")): each for each in pod_spec(component).get("containers") or ()}
    if MAIN not in containers:
        yield Problem(path, f"it has no container {MAIN}", f"name the container that serves {MAIN}")
    elif not containers[MAIN].get("image"):
        yield Problem(f"{path}[{MAIN}].image", "is required", "write the image that the component runs from")
    sidecar = component.frontend_sidecar
    if sidecar and sidecar not in containers:
        yield Problem(f"{at}.frontendSidecar", f"no container is called {sidecar}", "name a container of podTemplate")


def _restart(graph: DynamoGraphDeployment) -> Iterator[Problem]:
    restart = graph.spec.restart
    order = restart.strategy.order if restart is not None and restart.strategy is not None else ()
    known = {component.name for component in graph.spec.components}
    for name in order:
        if name not in known:
            yield Problem(
                "spec.restart.strategy.order", f"there is no component {name}", "name components of the graph"
            )


def _annotations(graph: DynamoGraphDeployment) -> Iterator[Problem]:
    for reading in (update_strategy, rolling_update):
        try:
            reading(graph.metadata.annotations | graph.spec.annotations)
        except LimitsError as error:
            yield error.problem
