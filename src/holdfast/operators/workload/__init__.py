"""The operator of Workloads: applications that keep serving while they change."""

from __future__ import annotations

from typing import Final

from holdfast.kernel.floors import FloorReason
from holdfast.kernel.pod_problems import PodReason
from holdfast.kinds import cloudless
from holdfast.operators.operator import Operator
from holdfast.operators.shown import ShownKind
from holdfast.operators.workload.controller import CONTROLLERS
from holdfast.operators.workload.observe import WORKLOADS
from holdfast.operators.workload.reasons import WorkloadReason
from holdfast.operators.workload.validate import problems
from holdfast.operators.workload.verbs import ROLLOUT
from holdfast.operators.workload.view import glance

OPERATOR: Final = Operator(
    name="workload",
    summary="Applications: replicas of one container that keep serving while they change (cloudless.io Workload).",
    controllers=CONTROLLERS,
    rollouts=(ROLLOUT,),
    shown=(ShownKind(resource=WORKLOADS, glance=glance),),
    reasons=(WorkloadReason, FloorReason, PodReason),
    reviews={cloudless.KINDS[0]: problems},
)
