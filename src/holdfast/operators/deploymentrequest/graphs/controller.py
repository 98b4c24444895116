"""The controller of DynamoGraphDeployments."""

from __future__ import annotations

from typing import Any, Final

from holdfast.client.resources import CONFIG_MAPS, PODS, SERVICES
from holdfast.kernel.reasons import Reason
from holdfast.operators.deploymentrequest.graphs import status
from holdfast.operators.deploymentrequest.graphs.decide import decide, explain
from holdfast.operators.deploymentrequest.graphs.observe import (
    BY_LABEL,
    REFERENCES,
    RUNTIME_CLASSES,
    label_of,
    observe,
    owner_of_adapter,
    owner_of_part,
    owner_of_worker,
)
from holdfast.operators.deploymentrequest.graphs.reasons import GraphReason
from holdfast.operators.deploymentrequest.graphs.resources import ADAPTERS, CLIQUES, GRAPHS, GROUPS, SETS
from holdfast.operators.deploymentrequest.graphs.verbs import ROLLOUT
from holdfast.operators.rollouts import RolloutKind
from holdfast.runtime.controllers import Controller, Index, Watch

OWNED: Final = (SERVICES, CONFIG_MAPS, SETS)

CONTROLLERS: Final[tuple[Controller[Any], ...]] = (
    Controller(
        name="graphdeployment",
        resource=GRAPHS,
        owns=OWNED,
        watches=(
            Watch(resource=CLIQUES, keys=owner_of_part),
            Watch(resource=GROUPS, keys=owner_of_part),
            Watch(resource=PODS, keys=owner_of_worker),
            Watch(resource=ADAPTERS, keys=owner_of_adapter),
            *REFERENCES.watches(*OWNED),
        ),
        reads=(RUNTIME_CLASSES,),
        writes=(CLIQUES, GROUPS, ADAPTERS),
        indexes=(Index(resource=GRAPHS, name=BY_LABEL, values=label_of), REFERENCES.index),
        observe=observe,
        decide=decide,
        explain=explain,
        invalid=status.INVALID,
    ),
)
ROLLOUTS: Final[tuple[RolloutKind, ...]] = (ROLLOUT,)
REASONS: Final[tuple[type[Reason], ...]] = (GraphReason,)
