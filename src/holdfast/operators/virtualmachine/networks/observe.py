"""The world of one VMNetworkAttachment: the machines that join it, and their providers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from holdfast.client.objects import Object
from holdfast.kinds.virtrigaud import Provider, VMNetworkAttachment
from holdfast.kinds.virtrigaud.networks import VMNetworkAttachmentStatus
from holdfast.meta.objects import Key
from holdfast.operators.virtualmachine import usage
from holdfast.operators.virtualmachine.machines.observe import REFERENCES
from holdfast.operators.virtualmachine.resources import NETWORKS
from holdfast.runtime.controllers import View


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """
    object     the VMNetworkAttachment as it came
    network    the same, typed
    machines   the VirtualMachines that join it
    providers  their Providers, by name
    """

    object: Object
    network: VMNetworkAttachment
    machines: tuple[Object, ...] = ()
    providers: Mapping[str, tuple[Object, Provider]] = field(default_factory=dict)

    @property
    def before(self) -> VMNetworkAttachmentStatus:
        return self.network.status or VMNetworkAttachmentStatus()


def observe(view: View, key: Key) -> World | None:
    obj = view.get(NETWORKS, key)
    if obj is None or obj.deleting:
        return None
    machines = REFERENCES.of(view, obj)
    return World(
        object=obj,
        network=obj.decode(VMNetworkAttachment),
        machines=machines,
        providers=usage.providers(view, key.namespace, machines),
    )
