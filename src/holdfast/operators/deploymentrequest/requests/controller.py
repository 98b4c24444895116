"""The controller of DynamoGraphDeploymentRequests."""

from __future__ import annotations

from typing import Any, Final

from holdfast.client.resources import Resource
from holdfast.kernel.reasons import Reason
from holdfast.kinds.nvidia import KINDS
from holdfast.operators.rollouts import RolloutKind
from holdfast.runtime.controllers import Controller
from holdfast.runtime.decisions import NOTHING

REQUESTS: Final = Resource.of(KINDS[0])

CONTROLLERS: Final[tuple[Controller[Any], ...]] = (
    Controller(
        name="deploymentrequest",
        resource=REQUESTS,
        observe=lambda view, key: None,
        decide=lambda world, now: NOTHING,
    ),
)
ROLLOUTS: Final[tuple[RolloutKind, ...]] = ()
REASONS: Final[tuple[type[Reason], ...]] = ()
