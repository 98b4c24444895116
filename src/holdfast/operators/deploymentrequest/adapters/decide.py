"""What is reported of a DynamoGraphDeploymentScalingAdapter; the controller of the graph sets the size."""

from __future__ import annotations

from datetime import datetime

from holdfast.kernel.conditions import Verdict
from holdfast.kernel.reasons import count
from holdfast.kinds.nvidia.adapters import ScalingAdapterStatus
from holdfast.meta import times
from holdfast.operators.deploymentrequest.adapters.observe import World
from holdfast.operators.deploymentrequest.adapters.reasons import AdapterReason
from holdfast.operators.deploymentrequest.graphs.observe import Clique, Part
from holdfast.runtime import status
from holdfast.runtime.decisions import Decision


def decide(world: World, now: datetime) -> Decision:
    part, before = world.part, world.adapter.status or ScalingAdapterStatus()
    replicas = None if part is None else part.spec.replicas
    changed = replicas is not None and replicas != before.replicas
    fields = {
        "replicas": replicas,
        "selector": None if part is None else _selector(part),
        "lastScaleTime": times.format(now) if changed else before.last_scale_time,
    }
    reported, notices = status.report(world.object, {"Ready": _ready(world)}, now=now, fields=fields)
    return Decision(status=reported, notices=notices)


def _selector(part: Part) -> str | None:
    return part.status.hpa_pod_selector if isinstance(part, Clique) else part.status.selector


def _ready(world: World) -> Verdict:
    reference, part, wanted = world.adapter.spec.dgd_ref, world.part, world.adapter.spec.replicas
    if part is None:
        message = f"the DynamoGraphDeployment {reference.name} has no component {reference.component_name} yet"
        return Verdict.false(AdapterReason.NO_COMPONENT, message)
    message = f"{part.ready} of {count(part.spec.replicas)} ready, {wanted} asked for"
    if part.ready == part.spec.replicas == wanted:
        return Verdict.true(AdapterReason.SCALED, message)
    return Verdict.false(AdapterReason.SCALING, message)
