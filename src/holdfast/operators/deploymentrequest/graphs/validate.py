"""Problems of a DynamoGraphDeployment that the API server does not find."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from holdfast.kinds import Problem
from holdfast.kinds.nvidia.deployments import DynamoGraphDeployment, GraphComponent
from holdfast.operators.deploymentrequest.graphs.components import MAIN, clique_name, pod_spec
from holdfast.operators.deploymentrequest.graphs.limits import LimitsError, rolling_update, update_strategy


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


def _pods(component: GraphComponent, at: str) -> Iterator[Problem]:
    spec = pod_spec(component)
    path = f"{at}.podTemplate.spec.containers"
    listed = spec.get("containers")
    if not isinstance(listed, list | None) or not all(isinstance(each, Mapping) for each in listed or ()):
        yield Problem(path, "it must be a list of containers", "write each as an object with name and image")
        return
    containers = {str(each.get("name")): each for each in listed or ()}
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
