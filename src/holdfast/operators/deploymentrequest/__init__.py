"""The operator of model deployments: from a model and a service level to inference gangs.

    DynamoGraphDeploymentRequest ──► Job (the profiler) ──► ConfigMap (its output)
         └──► DynamoGraphDeployment ──► PodCliqueSet, Services

Each kind has a controller and a folder of its own: `requests`, `graphs`, `adapters` (the sizes of components) and
`models` (the pods that serve a model).
"""

from __future__ import annotations

from typing import Final

from holdfast.kinds import Problem
from holdfast.kinds.nvidia.deployments import KIND as GRAPH
from holdfast.kinds.nvidia.requests import KIND as REQUEST
from holdfast.operators.deploymentrequest.adapters import controller as adapters
from holdfast.operators.deploymentrequest.graphs import controller as graphs
from holdfast.operators.deploymentrequest.graphs.validate import problems
from holdfast.operators.deploymentrequest.models import controller as models
from holdfast.operators.deploymentrequest.requests import controller as requests
from holdfast.operators.deploymentrequest.requests.validate import findings
from holdfast.operators.deploymentrequest.shown import SHOWN
from holdfast.operators.operator import Operator

OPERATOR: Final = Operator(
    name="deploymentrequest",
    summary="Model deployments: from a model and a service level to inference gangs (nvidia.com).",
    controllers=(*requests.CONTROLLERS, *graphs.CONTROLLERS, *models.CONTROLLERS, *adapters.CONTROLLERS),
    rollouts=(*requests.ROLLOUTS, *graphs.ROLLOUTS),
    shown=SHOWN,
    reasons=(*requests.REASONS, *graphs.REASONS, *models.REASONS, *adapters.REASONS),
    reviews={
        REQUEST: lambda request: (Problem(each.field, each.message) for each in findings(request)),
        GRAPH: problems,
    },
    settings=requests.SETTINGS,
    configure=lambda values: (
        *requests.configure(values),
        *graphs.CONTROLLERS,
        *models.CONTROLLERS,
        *adapters.CONTROLLERS,
    ),
)
