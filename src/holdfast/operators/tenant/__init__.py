"""The operator of Tenants: object stores whose pools are StatefulSets, replaced one server at a time."""

from __future__ import annotations

from typing import Final

from holdfast.kernel.floors import FloorReason
from holdfast.kernel.pod_problems import PodReason
from holdfast.kinds.rustfs import tenants
from holdfast.operators.operator import Operator
from holdfast.operators.shown import ShownKind
from holdfast.operators.tenant.controller import CLUSTER_DOMAIN, CONTROLLERS, IMAGE, configure
from holdfast.operators.tenant.observe import TENANTS
from holdfast.operators.tenant.reasons import TenantReason
from holdfast.operators.tenant.validate import problems
from holdfast.operators.tenant.verbs import ROLLOUT
from holdfast.operators.tenant.view import counts, floors

OPERATOR: Final = Operator(
    name="tenant",
    summary="Object stores: pools of servers in StatefulSets (rustfs.com Tenant).",
    controllers=CONTROLLERS,
    rollouts=(ROLLOUT,),
    shown=(ShownKind(resource=TENANTS, floors=floors, counts=counts),),
    reasons=(TenantReason, FloorReason, PodReason),
    reviews={tenants.KIND: problems},
    settings=(IMAGE, CLUSTER_DOMAIN),
    configure=configure,
)
