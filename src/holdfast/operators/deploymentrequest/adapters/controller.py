"""The controller of DynamoGraphDeploymentScalingAdapters."""

from __future__ import annotations

from typing import Any, Final

from holdfast.kernel.reasons import Reason
from holdfast.operators.deploymentrequest.adapters.decide import decide
from holdfast.operators.deploymentrequest.adapters.observe import INDEXES, WATCHES, observe
from holdfast.operators.deploymentrequest.adapters.reasons import AdapterReason
from holdfast.operators.deploymentrequest.graphs.resources import ADAPTERS, SETS
from holdfast.runtime.controllers import Controller

CONTROLLERS: Final[tuple[Controller[Any], ...]] = (
    Controller(
        name="scalingadapter",
        resource=ADAPTERS,
        watches=WATCHES,
        reads=(SETS,),
        indexes=INDEXES,
        observe=observe,
        decide=decide,
    ),
)
REASONS: Final[tuple[type[Reason], ...]] = (AdapterReason,)
