"""The controller of VMImages, which has providers prepare them."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Any

from holdfast.client.objects import Object
from holdfast.client.resources import SECRETS
from holdfast.kinds.virtrigaud.machines import VirtualMachine
from holdfast.meta.objects import Key
from holdfast.operators.virtualmachine.connections import Connections
from holdfast.operators.virtualmachine.images import decide, observe
from holdfast.operators.virtualmachine.machines.observe import REFERENCES, key_of
from holdfast.operators.virtualmachine.resources import IMAGES
from holdfast.operators.virtualmachine.watches import SOON, watch_machines, watch_providers
from holdfast.runtime.controllers import Controller, View
from holdfast.runtime.status import Invalid


def controller(connections: Connections) -> Controller[Any]:
    """The controller, which looks at an image when machines need it and when providers can do other things."""
    return Controller(
        name="vmimage",
        resource=IMAGES,
        watches=(watch_machines(_image_of, SOON), watch_providers(_image_of)),
        reads=(SECRETS,),
        indexes=(REFERENCES.index,),
        observe=observe.observe,
        survey=partial(observe.survey, connections=connections),
        decide=decide.decide,
        act=partial(decide.act, connections=connections),
        invalid=Invalid(conditions={"Ready": False, "Validated": False}, fields={"phase": "Failed"}),
    )


def _image_of(obj: Object, view: View) -> Iterable[Key]:
    reference = obj.decode(VirtualMachine).spec.image_ref
    return () if reference is None else (key_of(reference, obj.key),)
