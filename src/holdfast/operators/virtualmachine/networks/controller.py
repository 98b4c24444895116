"""The controller of VMNetworkAttachments, which counts the machines that use them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from holdfast.client.objects import Object
from holdfast.kinds.virtrigaud.machines import VirtualMachine
from holdfast.meta.objects import Key
from holdfast.operators.virtualmachine.machines.observe import REFERENCES, key_of
from holdfast.operators.virtualmachine.networks import decide, observe
from holdfast.operators.virtualmachine.resources import NETWORKS
from holdfast.operators.virtualmachine.watches import LATER, watch_machines, watch_providers
from holdfast.runtime.controllers import Controller, View
from holdfast.runtime.status import Invalid


def _networks_of(obj: Object, view: View) -> Iterable[Key]:
    cards = obj.decode(VirtualMachine).spec.networks
    return {key_of(card.network_ref, obj.key) for card in cards if card.network_ref is not None}


CONTROLLER: Final[Controller[Any]] = Controller(
    name="vmnetworkattachment",
    resource=NETWORKS,
    watches=(watch_machines(_networks_of, LATER), watch_providers(_networks_of)),
    indexes=(REFERENCES.index,),
    observe=observe.observe,
    decide=decide.decide,
    invalid=Invalid(conditions={"Ready": False, "Validated": False}, fields={"phase": "Failed"}),
)
