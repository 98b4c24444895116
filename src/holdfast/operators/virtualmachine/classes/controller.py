"""The controller of VMClasses, which counts the machines that use them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from holdfast.client.objects import Object
from holdfast.kinds.virtrigaud.machines import VirtualMachine
from holdfast.meta.objects import Key
from holdfast.operators.virtualmachine.classes import decide, observe
from holdfast.operators.virtualmachine.machines.observe import REFERENCES, key_of
from holdfast.operators.virtualmachine.resources import CLASSES
from holdfast.operators.virtualmachine.watches import LATER, watch_machines, watch_providers
from holdfast.runtime.controllers import Controller, View
from holdfast.runtime.status import Invalid


def _class_of(obj: Object, view: View) -> Iterable[Key]:
    return (key_of(obj.decode(VirtualMachine).spec.class_ref, obj.key),)


CONTROLLER: Final[Controller[Any]] = Controller(
    name="vmclass",
    resource=CLASSES,
    watches=(watch_machines(_class_of, LATER), watch_providers(_class_of)),
    indexes=(REFERENCES.index,),
    observe=observe.observe,
    decide=decide.decide,
    invalid=Invalid(conditions={"Ready": False, "Validated": False}),
)
