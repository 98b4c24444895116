"""A request whose deployment was generated: review, creation, readiness, loss and deletion.  Pure."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final

import msgspec

from holdfast.kernel.conditions import find
from holdfast.kernel.reasons import count
from holdfast.kinds.nvidia.requests import DeploymentInfo
from holdfast.meta import durations
from holdfast.operators.deploymentrequest.requests.facts import DEPLOYMENT_READY, Cause, Facts, Wait
from holdfast.operators.deploymentrequest.requests.observe import Graph, World
from holdfast.operators.deploymentrequest.requests.reasons import RequestReason

GRACE: Final = timedelta(seconds=60)
"""How long a deployment that was ready may have lost replicas before it counts as degraded."""

DEPLOYING: Final = timedelta(hours=1)
"""How long a deployment may take to become ready."""

_UPDATING: Final = ("updating", "rolling_update_in_progress")
"""The reasons of a deployment that is not ready because it is being updated."""


def deploying(world: World, facts: Facts, now: datetime) -> Facts:
    """How far the deployment is, and whether it is the request's own."""
    name, info = facts.dgd_name, facts.info
    seen = info is not None and info.uid is not None
    if not facts.applied and not seen:
        return replace(facts, row="T20" if info is None else "T22", info=None)
    creating = Wait(RequestReason.DEPLOYMENT_IN_PROGRESS, f"creating DynamoGraphDeployment {name}")
    if info is None:
        return replace(facts, row="T21", info=DeploymentInfo(), wait=creating)
    facts = replace(facts, applied=True)
    graph = world.graph
    own = graph is not None and graph.belongs_to(world.object.uid)
    if seen and (graph is None or graph.deleting or not own):
        deployed = info.serving_replicas is not None
        message = (
            f"DynamoGraphDeployment {name} was deleted, and is not created again; "
            f"to deploy it again: holdfast rollout retry dgdr/{world.name}"
        )
        gone = Cause(DEPLOYMENT_READY, RequestReason.DEPLOYMENT_DELETED, message)
        return replace(facts, row="T33" if deployed else "T30", cause=gone, dgd_name=None, info=None)
    if graph is None or (own and (graph.deleting or graph.attempt != facts.attempt)):
        return _overdue_deployment(world, replace(facts, row="T24", wait=creating), now)
    if not own:
        message = (
            f"DynamoGraphDeployment {name} exists and was not created for this request; delete it, or give this one "
            "another name with spec.overrides.dgd.metadata.name"
        )
        conflict = Cause(DEPLOYMENT_READY, RequestReason.DEPLOYMENT_NAME_CONFLICT, message)
        return replace(facts, row="T25", cause=conflict)
    return _deployed(world, facts, graph, now)


def _deployed(world: World, facts: Facts, graph: Graph, now: datetime) -> Facts:
    """The deployment is ours and exists."""
    before = facts.info or DeploymentInfo()
    counts = DeploymentInfo(
        replicas=graph.replicas,
        available_replicas=graph.available,
        serving_replicas=before.serving_replicas,
        uid=graph.metadata.uid,
    )
    name, said = graph.metadata.name, _said(graph)
    deployed = before.serving_replicas is not None
    if graph.whole:
        ready = Wait(RequestReason.DEPLOYMENT_READY, f"DynamoGraphDeployment {name} is ready{_replicas(graph)}")
        whole = msgspec.structs.replace(counts, serving_replicas=graph.available)
        return replace(facts, row="T31" if deployed else "T28", served=True, info=whole, wait=ready)
    if deployed:
        lost_since = _lost_since(before, graph, now)
        updating = Wait(RequestReason.UPDATING, f"DynamoGraphDeployment {name} serves, and changes{said}")
        if lost_since is None:
            return replace(facts, row="T31", served=True, info=counts, wait=updating)
        if now < lost_since + GRACE:
            due = (lost_since + GRACE, "a deployment that has lost replicas counts as degraded then")
            lost = Wait(RequestReason.REPLICAS_LOST, f"DynamoGraphDeployment {name} has lost replicas{said}")
            return replace(facts, row="T31", served=True, info=counts, wait=lost, due=due)
        lost = Wait(RequestReason.DEPLOYMENT_DEGRADED, f"DynamoGraphDeployment {name} has lost replicas{said}")
        return replace(
            facts, row="T32", info=msgspec.structs.replace(counts, serving_replicas=None), wait=lost
        )  # fmt: skip
    prior = find(world.conditions, DEPLOYMENT_READY)
    degraded = prior is not None and prior.reason == RequestReason.DEPLOYMENT_DEGRADED
    reason = RequestReason.DEPLOYMENT_DEGRADED if degraded else RequestReason.DEPLOYMENT_IN_PROGRESS
    facts = replace(
        facts, row="T29", info=counts, wait=Wait(reason, f"DynamoGraphDeployment {name} is not ready{said}")
    )
    return facts if degraded else _overdue_deployment(world, facts, now)


def _overdue_deployment(world: World, facts: Facts, now: datetime) -> Facts:
    prior = find(world.conditions, DEPLOYMENT_READY)
    since = prior.last_transition_time if prior is not None else None
    due = (since or now) + DEPLOYING
    if now < due:
        return replace(facts, due=(due, "the deadline of the deployment"))
    allowed = durations.format(DEPLOYING)
    waited = facts.wait.message if facts.wait is not None else ""
    message = (
        f"the deployment was not ready within {allowed}: {waited}; correct what it waits for, and then "
        f"holdfast rollout retry dgdr/{world.name}"
    )
    return replace(facts, row="D3", cause=Cause(DEPLOYMENT_READY, RequestReason.DEPLOYMENT_DEADLINE, message))


def _lost_since(before: DeploymentInfo, graph: Graph, now: datetime) -> datetime | None:
    """Since when fewer replicas are available than were, or than are wanted now; None where it changes or keeps them.

    An update and a scaling up lose nothing that served, however long they take.
    """
    update = graph.status.rolling_update
    under_way = update is not None and update.phase in ("Pending", "InProgress")
    reason = graph.ready.reason if graph.ready is not None else ""
    if under_way or not graph.current or reason in _UPDATING:
        return None
    if graph.status.state != "failed" and graph.available >= min(before.serving_replicas or 0, graph.replicas):
        return None
    since = graph.ready.last_transition_time if graph.ready is not None else None
    return since or now


def _said(graph: Graph) -> str:
    """What the deployment says of itself, and how many of its replicas are available."""
    message = graph.ready.message if graph.ready is not None else ""
    state = f"; its state is {graph.status.state}" if graph.status.state else ""
    return f"{_replicas(graph)}{state}" + (f": {message}" if message else "")


def _replicas(graph: Graph) -> str:
    return f": {graph.available} of {count(graph.replicas)} available" if graph.replicas else ""
