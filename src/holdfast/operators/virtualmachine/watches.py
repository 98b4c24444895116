"""When what machines refer to is reconciled: as machines, and the Providers of these, change."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import timedelta
from typing import Final, TypeAlias

from holdfast.client.objects import Object
from holdfast.meta.objects import Key
from holdfast.operators.virtualmachine.machines.observe import REFERENCES, provider_matters, same_references
from holdfast.operators.virtualmachine.resources import MACHINES, PROVIDERS
from holdfast.runtime.controllers import View, Watch

KeysOf: TypeAlias = Callable[[Object, View], Iterable[Key]]
"""The objects that a machine refers to."""

SOON: Final = timedelta(seconds=1)
"""How long an image waits for more machines that need it; they wait for it."""

LATER: Final = timedelta(seconds=5)
"""How long a class or a network waits for more machines before it counts them."""


def watch_machines(keys_of: KeysOf, within: timedelta) -> Watch:
    """Look at what machines refer to when they come, go, or refer to another object; many at once cost one look."""
    return Watch(resource=MACHINES, keys=keys_of, matters=refers_to_others, within=within)


def watch_providers(keys_of: KeysOf) -> Watch:
    """Look at what machines refer to when their Provider becomes able to do other things."""
    return Watch(resource=PROVIDERS, keys=of_provider(keys_of), matters=provider_matters)


def of_provider(keys_of: KeysOf) -> KeysOf:
    """The objects that the machines of a Provider refer to."""

    def keys(provider: Object, view: View) -> Iterable[Key]:
        return {key for machine in REFERENCES.of(view, provider) for key in keys_of(machine, view)}

    return keys


def refers_to_others(old: Object, new: Object) -> bool:
    """Whether a change of a machine has it refer to other objects."""
    return not same_references(old, new)
