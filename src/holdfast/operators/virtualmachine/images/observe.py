"""The world of one VMImage: the providers whose machines need it, and how far each is with it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from holdfast.client.objects import Object, Undecodable
from holdfast.kinds.virtrigaud import Provider, VMImage
from holdfast.kinds.virtrigaud.images import VMImageStatus
from holdfast.meta.objects import Key
from holdfast.operators.virtualmachine import usage
from holdfast.operators.virtualmachine.connections import Connections, Target, address_of, target_of
from holdfast.operators.virtualmachine.images.validate import unreadable
from holdfast.operators.virtualmachine.machines.observe import REFERENCES, is_true
from holdfast.operators.virtualmachine.resources import IMAGES
from holdfast.providers.contract import ProviderError, Task, TaskState
from holdfast.runtime.controllers import View


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A provider that needs the image.

    target  how it is reached; None while it is not ready
    task    how far the task is that prepares the image there
    error   why the provider could not be asked
    """

    object: Object
    provider: Provider
    target: Target | None = None
    task: TaskState | None = None
    error: ProviderError | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """
    object  the VMImage as it came
    image   the same, typed
    places  the providers that need it, by name
    """

    object: Object
    image: VMImage
    places: Mapping[str, Place] = field(default_factory=dict)

    @property
    def before(self) -> VMImageStatus:
        return self.image.status or VMImageStatus()


def observe(view: View, key: Key) -> World | None:
    obj = view.get(IMAGES, key)
    if obj is None or obj.deleting:
        return None
    image = obj.decode(VMImage)
    if problems := unreadable(image):
        raise Undecodable(obj.ref, "; ".join(map(str, problems)))
    found = usage.providers(view, key.namespace, REFERENCES.of(view, obj))
    places = {
        label: Place(
            object=each,
            provider=provider,
            target=target_of(view, each.key, provider, address_of(provider)) if is_true(each, "Ready") else None,
        )
        for label, (each, provider) in found.items()
    }
    return World(object=obj, image=image, places=places)


async def survey(world: World, *, connections: Connections) -> World:
    """The world with how far the tasks are that prepare the image."""
    places = dict(world.places)
    for label, place in world.places.items():
        on = world.before.provider_status.get(label)
        if place.target is None or on is None or not on.task_ref:
            continue
        try:
            task = await connections.to(place.target).task(Task(id=on.task_ref))
            places[label] = replace(place, task=task)
        except ProviderError as error:
            places[label] = replace(place, error=error)
    return replace(world, places=places)
