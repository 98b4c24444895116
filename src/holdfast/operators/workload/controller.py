"""The controller of Workloads."""

from __future__ import annotations

from typing import Any, Final

from holdfast.client.resources import BUDGETS, CONFIG_MAPS, CONTROLLER_REVISIONS, PODS, SECRETS, SERVICES
from holdfast.operators.workload.decide import decide, explain
from holdfast.operators.workload.observe import (
    INDEXES,
    REFERENCES,
    WITHOUT_CONTROLLER,
    WORKLOADS,
    is_urgent,
    observe,
    sight,
)
from holdfast.operators.workload.status import INVALID
from holdfast.runtime.controllers import Controller
from holdfast.runtime.disruption import in_namespace_of_budget, on_changed_node

CONTROLLERS: Final[tuple[Controller[Any], ...]] = (
    Controller(
        name="workload",
        resource=WORKLOADS,
        owns=(PODS, CONTROLLER_REVISIONS, BUDGETS),
        urgent=is_urgent,
        watches=(
            WITHOUT_CONTROLLER,
            *REFERENCES.watches(CONFIG_MAPS, SECRETS, SERVICES),
            on_changed_node(WORKLOADS),
            in_namespace_of_budget(WORKLOADS),
        ),
        writes=(SERVICES,),
        indexes=INDEXES,
        observe=observe,
        sight=sight,
        decide=decide,
        explain=explain,
        invalid=INVALID,
    ),
)
