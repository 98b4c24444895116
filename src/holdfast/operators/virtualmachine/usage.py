"""Who uses a class, an image or a network: the providers of the machines that refer to it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from holdfast.client.objects import Object
from holdfast.kinds.virtrigaud import Provider, VirtualMachine
from holdfast.meta.objects import Key
from holdfast.operators.virtualmachine.machines.observe import provider_label
from holdfast.operators.virtualmachine.resources import PROVIDERS
from holdfast.runtime.controllers import View


def providers(view: View, namespace: str, machines: Sequence[Object]) -> Mapping[str, tuple[Object, Provider]]:
    """The Providers of machines, by how an object in a namespace names them; those that do not exist are missing."""
    references = ((each.meta.namespace, each.decode(VirtualMachine).spec.provider_ref) for each in machines)
    found: dict[str, tuple[Object, Provider]] = {}
    for place, name in sorted({(each.namespace or of, each.name) for of, each in references}):
        key = Key(place, name)
        obj = view.get(PROVIDERS, key)
        if obj is not None:
            found[provider_label(namespace, key)] = (obj, obj.decode(Provider))
    return found
