"""Who uses a class, an image or a network: the machines that refer to it, and their providers.

Machines come and go in numbers, so they are counted at most every `PACE`: a count costs one write, however many
machines were created meanwhile.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from holdfast.client.objects import Object
from holdfast.kernel.outcomes import Done, Outcome, until
from holdfast.kinds.virtrigaud import Provider, VirtualMachine
from holdfast.meta import times
from holdfast.meta.objects import Key
from holdfast.operators.virtualmachine.machines.observe import provider_label
from holdfast.operators.virtualmachine.resources import PROVIDERS
from holdfast.runtime.controllers import View

PACE: Final = timedelta(seconds=10)


@dataclass(frozen=True, slots=True)
class Count:
    """How many there are, by the last count, and when the next one is due."""

    number: int
    at: str | None
    outcome: Outcome


def count(number: int, before: int | None, last: str | None, now: datetime) -> Count:
    """A count: the new one where it changed and the last one is old enough, or else the last one."""
    counted = times.read(last)
    if before is not None and number == before:
        return Count(number, last, Done())
    if before is None or counted is None or now >= counted + PACE:
        return Count(number, times.format(now), Done())
    return Count(before, last, until(counted + PACE, now=now, because="machines are counted again"))


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
