"""The operator of Tenants: object stores whose pools are StatefulSets, rolled out one server at a time."""

from __future__ import annotations

from functools import partial
from typing import Any, Final

from holdfast.client.resources import NODES, PODS, SECRETS, SERVICE_ACCOUNTS, SERVICES, STATEFUL_SETS
from holdfast.operators.tenant import admin
from holdfast.operators.tenant.admin import Connect
from holdfast.operators.tenant.decide import act, decide, explain, survey
from holdfast.operators.tenant.observe import INDEXES, TENANTS, in_the_way, mentioned, observe, on_node, tenant_of
from holdfast.operators.tenant.settings import DEFAULTS, Settings
from holdfast.runtime.controllers import Controller, Watch

__all__ = ["CONTROLLERS", "Settings", "controllers"]

OWNED: Final = (SERVICE_ACCOUNTS, SERVICES, STATEFUL_SETS)


def controllers(settings: Settings = DEFAULTS, *, connect: Connect = admin.connect) -> tuple[Controller[Any], ...]:
    """The operator, with the settings of an installation and the way to its stores."""
    return (
        Controller(
            name="tenant",
            resource=TENANTS,
            owns=OWNED,
            watches=(
                Watch(resource=PODS, keys=tenant_of),
                Watch(resource=SECRETS, keys=mentioned),
                Watch(resource=NODES, keys=on_node),
                *(Watch(resource=each, keys=in_the_way) for each in OWNED),
            ),
            writes=(PODS,),
            indexes=INDEXES,
            observe=observe,
            decide=partial(decide, settings=settings),
            survey=partial(survey, settings=settings, connect=connect),
            act=partial(act, settings=settings, connect=connect),
            explain=partial(explain, settings=settings),
        ),
    )


CONTROLLERS: Final = controllers()
