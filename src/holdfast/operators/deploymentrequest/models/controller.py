"""The controller of DynamoModels."""

from __future__ import annotations

from typing import Any, Final

from holdfast.kernel.reasons import Reason
from holdfast.operators.deploymentrequest.models.decide import decide
from holdfast.operators.deploymentrequest.models.observe import INDEXES, MODELS, WATCHES, observe
from holdfast.operators.deploymentrequest.models.reasons import ModelReason
from holdfast.runtime.controllers import Controller
from holdfast.runtime.status import Invalid

CONTROLLERS: Final[tuple[Controller[Any], ...]] = (
    Controller(
        name="dynamomodel",
        resource=MODELS,
        watches=WATCHES,
        indexes=INDEXES,
        observe=observe,
        decide=decide,
        invalid=Invalid(conditions={"EndpointsReady": False}),
    ),
)
REASONS: Final[tuple[type[Reason], ...]] = (ModelReason,)
