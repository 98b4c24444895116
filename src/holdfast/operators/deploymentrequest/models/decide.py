"""What is reported of a DynamoModel: the pods that serve it.  Nothing else is written."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from holdfast.kernel.conditions import Verdict
from holdfast.kernel.reasons import count
from holdfast.operators.deploymentrequest.models.observe import World
from holdfast.operators.deploymentrequest.models.reasons import ModelReason
from holdfast.runtime import status
from holdfast.runtime.decisions import Decision


def decide(world: World, now: datetime) -> Decision:
    ready = sum(each.ready for each in world.endpoints)
    fields = {
        "endpoints": [status.wire(each) for each in world.endpoints] or None,
        "readyEndpoints": ready,
        "totalEndpoints": len(world.endpoints),
    }
    reported, notices = status.report(world.object, _verdicts(world, ready), now=now, fields=fields)
    return Decision(status=reported, notices=notices)


def _verdicts(world: World, ready: int) -> Mapping[str, Verdict]:
    base, total = world.model.spec.base_model_name, len(world.endpoints)
    if not world.services:
        message = (
            f"no component of a DynamoGraphDeployment in this namespace has modelRef.name {base}; set it on the "
            "components that serve the model"
        )
        return {
            "ServicesFound": Verdict.false(ModelReason.NO_SERVICES, message),
            "EndpointsReady": Verdict.false(ModelReason.NOT_READY, "there are no endpoints"),
        }
    message, whole = f"{ready} of {count(total, 'endpoint')} ready", 0 < total == ready
    return {
        "ServicesFound": Verdict.true(ModelReason.SERVICES_FOUND, f"{base} is served by {', '.join(world.services)}"),
        "EndpointsReady": (
            Verdict.true(ModelReason.ALL_READY, message) if whole else Verdict.false(ModelReason.NOT_READY, message)
        ),
    }
