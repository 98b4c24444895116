"""The operator of Tenants: object stores whose pools are StatefulSets, rolled out one server at a time."""

from __future__ import annotations

from typing import Final

from holdfast.operators.operator import Operator
from holdfast.operators.tenant.controller import CONTROLLERS
from holdfast.operators.tenant.reasons import Why
from holdfast.operators.tenant.view import ROLLOUT

OPERATOR: Final = Operator(
    name="tenant",
    summary="Object stores: pools of servers in StatefulSets (rustfs.com Tenant).",
    controllers=CONTROLLERS,
    rollouts=(ROLLOUT,),
    reasons=(Why,),
)
