"""Restarts of a graph: which components are restarted now, and how far the restart is.

A component is restarted by an annotation of its pods with the `restart.id`; the PodCliqueSet rolls it out like any
other change of a template.  What was restarted already is read from the PodCliqueSet, so an interrupted restart goes
on where it was.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from holdfast.kinds.nvidia.deployments import DynamoGraphDeployment, GraphComponent, GraphRestartStatus
from holdfast.operators.deploymentrequest.graphs import names
from holdfast.operators.deploymentrequest.graphs.components import clique_name, is_group
from holdfast.operators.deploymentrequest.graphs.observe import Gang


@dataclass(frozen=True, slots=True, kw_only=True)
class Restarts:
    """
    ids      the `restart.id` that the pods of each component should have
    status   how far the restart is; None where none was asked for
    """

    ids: Mapping[str, str] = field(default_factory=dict)
    status: GraphRestartStatus | None = None


def restarts(graph: DynamoGraphDeployment, gang: Gang | None, settled: Mapping[str, bool]) -> Restarts:
    """The restarts of the components; `settled` says which are updated and ready."""
    asked = graph.spec.restart
    have = {each.name: _seen(gang, each) for each in graph.spec.components}
    if asked is None:
        # Its pods keep the restart that they have seen: to remove the request restarts nothing.
        return Restarts(ids=have)
    if gang is None:
        return Restarts(ids=dict.fromkeys(have, asked.id), status=_status(asked.id, "Completed"))
    parallel = asked.strategy is not None and asked.strategy.type == "Parallel"
    ids, in_progress = dict(have), list[str]()
    for name in _order(graph):
        if have[name] == asked.id and settled.get(name, False):
            continue
        ids[name] = asked.id
        in_progress.append(name)
        if not parallel:
            break
    status = _status(asked.id, "Restarting" if in_progress else "Completed", *in_progress)
    return Restarts(ids=ids, status=status)


def _status(id: str, phase: Literal["Restarting", "Completed"], *in_progress: str) -> GraphRestartStatus:
    return GraphRestartStatus(observed_id=id, phase=phase, in_progress=tuple(in_progress))


def _order(graph: DynamoGraphDeployment) -> tuple[str, ...]:
    """The components that the order names, then the others in the order of the spec."""
    asked = graph.spec.restart
    named = asked.strategy.order if asked is not None and asked.strategy is not None else ()
    known = [component.name for component in graph.spec.components]
    return tuple(dict.fromkeys((*(name for name in named if name in known), *known)))


def _seen(gang: Gang | None, component: GraphComponent) -> str:
    """The `restart.id` that the pods of a component are given now."""
    if gang is None:
        return ""
    name = clique_name(component)
    return gang.restarts.get(names.leader(name) if is_group(component) else name, "")
