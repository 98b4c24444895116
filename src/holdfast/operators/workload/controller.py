"""The operator of Workloads: applications that keep serving while they are changed."""

from __future__ import annotations

from typing import Any, Final

from holdfast.client.resources import (
    BUDGETS,
    CONFIG_MAPS,
    CONTROLLER_REVISIONS,
    NODES,
    PODS,
    SECRETS,
    SERVICES,
)
from holdfast.operators.workload.decide import decide, explain
from holdfast.operators.workload.observe import INDEXES, WORKLOADS, beside, mentioned, observe, on_node
from holdfast.operators.workload.render import revision
from holdfast.operators.workload.validate import rollout_spec
from holdfast.runtime.controllers import Controller, Watch

__all__ = ["CONTROLLERS", "revision", "rollout_spec"]

CONTROLLERS: Final[tuple[Controller[Any], ...]] = (
    Controller(
        name="workload",
        resource=WORKLOADS,
        owns=(PODS, CONTROLLER_REVISIONS),
        watches=(
            Watch(resource=CONFIG_MAPS, keys=mentioned),
            Watch(resource=SECRETS, keys=mentioned),
            Watch(resource=SERVICES, keys=mentioned),
            Watch(resource=NODES, keys=on_node),
            Watch(resource=BUDGETS, keys=beside),
        ),
        writes=(SERVICES,),
        indexes=INDEXES,
        observe=observe,
        decide=decide,
        explain=explain,
    ),
)
