"""The operator of inference gangs: PodCliqueSets, and the PodCliques and scaling groups that they consist of.

    PodCliqueSet ──► PodClique ──► Pod
         │ └──► PodCliqueScalingGroup ──► PodClique ──► Pod
         └──► Service, autoscalers, identity

    PodGang: the pods of several PodCliques that are scheduled together

Each kind has a controller and a folder of its own.
"""

from __future__ import annotations

from typing import Final

from holdfast.kinds.grove.sets import KIND
from holdfast.operators.operator import Operator, StartOrder
from holdfast.operators.podcliqueset import labels
from holdfast.operators.podcliqueset.controller import CONTROLLERS
from holdfast.operators.podcliqueset.defaults import defaults
from holdfast.operators.podcliqueset.reasons import PodCliqueSetReason
from holdfast.operators.podcliqueset.templates import Layout
from holdfast.operators.podcliqueset.validate import problems
from holdfast.operators.podcliqueset.verbs import ROLLOUT

OPERATOR: Final = Operator(
    name="podcliqueset",
    summary="Inference gangs: sets of pods that are scheduled and updated together (grove.io PodCliqueSet).",
    controllers=CONTROLLERS,
    rollouts=(ROLLOUT,),
    reasons=(PodCliqueSetReason,),
    reviews={KIND: lambda pod_clique_set: problems(Layout(pod_clique_set))},
    defaulting={KIND: defaults},
    start_order=StartOrder(
        option="podcliques",
        group=labels.CLIQUE,
        scope=labels.GANG,
        pod_info="/var/grove/pod-info",
        file="podgangname",
    ),
)
