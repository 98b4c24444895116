"""The status of a graph: its state, its components, the rolling update and the restart, and why it is not ready.

Everything is derived from the statuses of the PodCliqueSet and its parts, each of which must be about the current
generation of its object.  Of the status before, only the moments of an update are carried over.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any, Final

import msgspec

from holdfast.kernel.conditions import Verdict
from holdfast.kernel.floors import FLOOR_LOWERED
from holdfast.kernel.outcomes import Failure
from holdfast.kernel.reasons import count
from holdfast.kinds.nvidia.deployments import ComponentStatus, GraphRestartStatus, GraphRollingUpdate
from holdfast.meta import times
from holdfast.operators.deploymentrequest.graphs import names
from holdfast.operators.deploymentrequest.graphs.components import clique_name, is_group
from holdfast.operators.deploymentrequest.graphs.environment import runtime_namespace
from holdfast.operators.deploymentrequest.graphs.facts import ComponentFacts, Facts
from holdfast.operators.deploymentrequest.graphs.observe import Clique, condition, is_fresh
from holdfast.operators.deploymentrequest.graphs.reasons import GraphReason
from holdfast.runtime import status
from holdfast.runtime.decisions import Notice
from holdfast.runtime.status import Announced, Invalid

READY: Final = "Ready"
AVAILABLE: Final = "Available"
TOPOLOGY: Final = "TopologyLevelsAvailable"

ANNOUNCED: Final[Announced] = {(READY, "True"): "Normal", (FLOOR_LOWERED, "True"): "Warning"}

INVALID: Final = Invalid(conditions={READY: False}, fields={"state": "failed"})
"""What the status says of a graph that cannot be read or carried out."""

_RUNNING: Final = ("Pending", "InProgress")


def report(facts: Facts, now: datetime, *, failure: Failure | None = None) -> tuple[dict[str, Any], tuple[Notice, ...]]:
    """The whole status, and the Events of what changed."""
    rolling = _rolling_update(facts, now)
    ready, problem = _ready(facts, rolling), _failed(facts, failure)
    verdicts = {READY: problem or ready, AVAILABLE: _available(facts)}
    lowered = None if facts.current is None else condition(facts.current.status, FLOOR_LOWERED)
    if lowered is not None and lowered.status == "True":
        verdicts[FLOOR_LOWERED] = Verdict.true(lowered.reason, lowered.message)
    topology = None if facts.current is None else condition(facts.current.status, "TopologyLevelsUnavailable")
    if topology is not None:
        verdicts[TOPOLOGY] = Verdict.unknown(GraphReason.TOPOLOGY_UNKNOWN, topology.message)
    fields = {
        "state": _state(facts, problem, ready),
        "components": {each.name: status.wire(_component(facts, each)) for each in facts.components},
        "rollingUpdate": None if rolling is None else status.wire(rolling),
        "restart": None if facts.restarts.status is None else status.wire(facts.restarts.status),
    }
    reported, notices = status.report(facts.world.object, verdicts, now=now, fields=fields, announced=ANNOUNCED)
    return reported, (*notices, *_notices(facts, rolling))


# --- the state, and why


def _state(facts: Facts, problem: Verdict | None, ready: Verdict) -> str:
    if problem is not None:
        return "failed"
    if facts.current is None and not facts.outgoing:
        return "initializing"
    return "successful" if ready.status == "True" else "pending"


def _failed(facts: Facts, failure: Failure | None) -> Verdict | None:
    """Why the graph cannot be carried out: a refusal of the API, or a PodCliqueSet that is not valid."""
    if failure is not None:
        return Verdict.false(GraphReason.FAILED, failure.message)
    blocked = None if facts.current is None else condition(facts.current.status, "Blocked")
    if facts.current is None or blocked is None or (blocked.status, blocked.reason) != ("True", GraphReason.INVALID):
        return None
    return Verdict.false(GraphReason.FAILED, f"PodCliqueSet {facts.current.name}: {blocked.message}")


def _ready(facts: Facts, rolling: GraphRollingUpdate | None) -> Verdict:
    if facts.settled and (rolling is None or rolling.phase not in _RUNNING):
        return Verdict.true(GraphReason.ALL_READY, "all replicas of all components are updated and ready")
    late = [each for each in facts.components if not each.settled]
    found = {each.name: _why(each) for each in late}
    message = "; ".join(_sentence(each, *found[each.name]) for each in late)
    if rolling is not None and rolling.phase in _RUNNING:
        return Verdict.false(GraphReason.ROLLING_UPDATE, _rolling_message(facts, message))
    reasons = {reason for reason, _ in found.values()}
    if not reasons:
        return Verdict.false(GraphReason.UPDATING, "the PodCliqueSet is being changed")
    return Verdict.false(reasons.pop() if len(reasons) == 1 else GraphReason.MIXED, message)


def _rolling_message(facts: Facts, late: str) -> str:
    if not facts.outgoing:
        return late or "the new template is passed to the PodCliqueSet"
    old = ", ".join(gang.name for gang in facts.outgoing)
    name = facts.manifest["metadata"]["name"]
    about = f"PodCliqueSet {name} has the components of the spec and replaces {old}, which is deleted once it is ready"
    return f"{about}: {late}" if late else about


def _why(each: ComponentFacts) -> tuple[GraphReason, str]:
    """Why a component is not ready: capacity first, then the update, then its pods."""
    part = each.part
    if part is None:
        return GraphReason.NOT_READY, ""
    about = condition(part.status, "PodsReady")
    said = "" if about is None or about.status != "False" else about.message
    if part.status.last_errors:
        return GraphReason.PODS_NOT_READY, part.status.last_errors[-1].description
    if is_fresh(part) and part.has_unscheduled:
        return GraphReason.NO_CAPACITY, said
    if not each.updated or part.spec.replicas != each.wanted or (part.status.updated_replicas or 0) != each.wanted:
        return GraphReason.UPDATING, said
    return GraphReason.PODS_NOT_READY, said


def _sentence(each: ComponentFacts, reason: GraphReason, said: str) -> str:
    """``decode: 1 of 2 replicas ready, insufficient_capacity: …``."""
    if each.part is None:
        return f"{each.name}: it is being created"
    counted = f"{each.name}: {each.ready} of {count(each.wanted)} ready, {reason.value}"
    return f"{counted}: {said}" if said else counted


def _available(facts: Facts) -> Verdict:
    short = [each for each in facts.components if facts.available(each) < each.floor]
    if not short:
        return Verdict.true(GraphReason.SERVING, "every component has minAvailable available replicas")
    listed = (f"{each.name} has {facts.available(each)} available, minAvailable is {each.floor}" for each in short)
    return Verdict.false(GraphReason.NOT_SERVING, "; ".join(listed))


# --- components


def _component(facts: Facts, each: ComponentFacts) -> ComponentStatus:
    part = each.part
    gangs = (*((facts.current,) if facts.current is not None else ()), *facts.outgoing)
    name = clique_name(each.component)
    made = ComponentStatus(
        component_kind="PodCliqueScalingGroup" if is_group(each.component) else "PodClique",
        component_names=tuple(names.part(gang.name, name) for gang in gangs if each.name in gang.parts),
        runtime_namespace=runtime_namespace(facts.world.graph, each.component),
        replicas=0,
        updated_replicas=0,
    )
    if part is None:
        return made
    counted = msgspec.structs.replace(
        made,
        replicas=part.status.replicas or 0,
        # Until its status is about the template that it has, nothing is known to be updated.
        updated_replicas=(part.status.updated_replicas or 0) if is_fresh(part) else 0,
        available_replicas=part.available,
        scheduled_replicas=part.status.scheduled_replicas,
    )
    return msgspec.structs.replace(counted, ready_replicas=part.ready) if isinstance(part, Clique) else counted


# --- the rolling update


def _rolling_update(facts: Facts, now: datetime) -> GraphRollingUpdate | None:
    """The rolling update that runs, or the last one; None before the first."""
    before = facts.world.before.rolling_update
    running = before if before is not None and before.phase in _RUNNING else None
    moment = times.format(now)
    updated = tuple(each.name for each in facts.components if each.updated and facts.applied)
    if facts.outgoing:
        began = moment if running is None else running.start_time
        return GraphRollingUpdate(phase="InProgress", start_time=began, updated_components=updated)
    gang = facts.current
    if gang is None:
        return before
    if facts.template_changes:
        return GraphRollingUpdate(phase="Pending", start_time=moment if running is None else running.start_time)
    progress = gang.status.rolling_update_progress
    if progress is not None and progress.update_ended_at is None and gang.fresh:
        began = progress.update_started_at if running is None else running.start_time
        return GraphRollingUpdate(phase="InProgress", start_time=began, updated_components=updated)
    if running is None or not (facts.applied and gang.fresh and all(each.updated for each in facts.components)):
        return before
    return GraphRollingUpdate(
        phase="Completed", start_time=running.start_time, end_time=moment, updated_components=updated
    )


# --- Events


def _notices(facts: Facts, rolling: GraphRollingUpdate | None) -> Iterator[Notice]:
    before, after = _phase(facts.world.before.rolling_update), _phase(rolling)
    if after in _RUNNING and before not in _RUNNING:
        yield Notice(reason=GraphReason.UPDATE_STARTED.value, message="The rollout of a changed template began")
    if after == "Completed" and before in _RUNNING:
        yield Notice(reason=GraphReason.UPDATE_COMPLETED.value, message="The changed template is rolled out")
    was, now = facts.world.before.restart, facts.restarts.status
    if now is not None and now.phase == "Restarting" and _restart(was) != ("Restarting", now.observed_id):
        message = f"The components are restarted for restart.id {now.observed_id}"
        yield Notice(reason=GraphReason.RESTART_STARTED.value, message=message)
    if now is not None and now.phase == "Completed" and _restart(was) == ("Restarting", now.observed_id):
        message = f"All components were restarted for restart.id {now.observed_id}"
        yield Notice(reason=GraphReason.RESTART_COMPLETED.value, message=message)
    if facts.complete:
        for gang in facts.outgoing:
            message = f"PodCliqueSet {gang.name} is deleted: {facts.manifest['metadata']['name']} is ready"
            yield Notice(reason=GraphReason.SET_REPLACED.value, message=message)


def _phase(update: GraphRollingUpdate | None) -> str:
    return "" if update is None else update.phase or ""


def _restart(restart: GraphRestartStatus | None) -> tuple[str | None, str | None]:
    return (None, None) if restart is None else (restart.phase, restart.observed_id)
