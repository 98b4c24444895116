"""The controller of VMSets, which writes VirtualMachines and never calls providers."""

from __future__ import annotations

from typing import Any, Final

from holdfast.client.resources import CONTROLLER_REVISIONS
from holdfast.operators.virtualmachine.resources import MACHINES, SETS
from holdfast.operators.virtualmachine.sets import decide, observe, status
from holdfast.runtime.controllers import Controller, Watch

CONTROLLER: Final[Controller[Any]] = Controller(
    name="vmset",
    resource=SETS,
    owns=(MACHINES, CONTROLLER_REVISIONS),
    watches=(Watch(resource=MACHINES, keys=observe.named_like),),
    observe=observe.observe,
    decide=decide.decide,
    explain=decide.explain,
    invalid=status.INVALID,
)
