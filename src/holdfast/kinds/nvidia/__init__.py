"""Inference deployments: the kinds of ``nvidia.com/v1beta1``.

A DynamoGraphDeploymentRequest (`requests`) says which model is to be served and
how well; a DynamoGraphDeployment (`deployments`) says by which components.
Field names, enums, defaults and columns are upstream's.  The package declares
the API; profiling and deploying are the operators' matter.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from holdfast.kinds.model import Kind
from holdfast.kinds.nvidia import adapters, alpha, deployments, models, requests
from holdfast.kinds.nvidia.deployments import DynamoGraphDeployment
from holdfast.kinds.nvidia.models import DynamoModel
from holdfast.kinds.nvidia.requests import DynamoGraphDeploymentRequest

REQUESTS: Final = replace(requests.KIND, older=alpha.REQUESTS)
GRAPHS: Final = replace(deployments.KIND, older=alpha.GRAPHS)

KINDS: Final[tuple[Kind, ...]] = (REQUESTS, GRAPHS, models.KIND, adapters.KIND)

__all__ = ["GRAPHS", "KINDS", "REQUESTS", "DynamoGraphDeployment", "DynamoGraphDeploymentRequest", "DynamoModel"]
