"""The world of one VMClass: the machines of the class, and their providers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from holdfast.client.objects import Object
from holdfast.kinds.virtrigaud import Provider, VMClass
from holdfast.kinds.virtrigaud.classes import VMClassStatus
from holdfast.meta.objects import Key
from holdfast.operators.virtualmachine import usage
from holdfast.operators.virtualmachine.machines.observe import REFERENCES
from holdfast.operators.virtualmachine.resources import CLASSES
from holdfast.runtime.controllers import View


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """
    object     the VMClass as it came
    vm_class   the same, typed
    machines   the VirtualMachines of the class
    providers  their Providers, by name
    """

    object: Object
    vm_class: VMClass
    machines: tuple[Object, ...] = ()
    providers: Mapping[str, tuple[Object, Provider]] = field(default_factory=dict)

    @property
    def before(self) -> VMClassStatus:
        return self.vm_class.status or VMClassStatus()


def observe(view: View, key: Key) -> World | None:
    obj = view.get(CLASSES, key)
    if obj is None or obj.deleting:
        return None
    machines = REFERENCES.of(view, obj)
    return World(
        object=obj,
        vm_class=obj.decode(VMClass),
        machines=machines,
        providers=usage.providers(view, key.namespace, machines),
    )
