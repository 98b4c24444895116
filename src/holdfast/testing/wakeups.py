"""Whether controllers are woken by what they read: the objects without which a controller sees another world.

check_wakeups(SCENARIO)                               # with the objects that a story leaves
for each in dependencies(CONTROLLERS, objects):       # or with those of a test
    assert each.wakes, each
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from typing import Any

from holdfast.client.objects import Object
from holdfast.client.resources import Resource
from holdfast.meta.objects import Key
from holdfast.runtime.controllers import Controller
from holdfast.runtime.passes.sources import sources
from holdfast.testing.clusters import Cluster, play
from holdfast.testing.contract import Scenario
from holdfast.testing.snapshots import Snapshot


@dataclass(frozen=True, slots=True)
class Dependency:
    """An object of a controller whose world another object changes when it comes or goes.

    `worlds` are the views with the other object and without it.
    """

    controller: Controller[Any]
    own: Object
    other: Object
    worlds: tuple[Snapshot, Snapshot] = field(repr=False)

    def __str__(self) -> str:
        own, other = (f"{each.resource.plural}/{each.key.name}" for each in (self.own, self.other))
        return f"{self.controller.name}: {own} reads {other}"

    @property
    def wakes(self) -> bool:
        """Whether the object of the controller is reconciled when the other one comes, and when it goes."""
        return all(
            # Without a world there is nothing to do.
            self.controller.observe(view, self.own.key) is None
            or self.own.key in brought(self.controller, self.other, view)
            for view in self.worlds
        )


def check_wakeups(scenario: Scenario, *, but: Mapping[tuple[str, Resource], str] | None = None) -> None:
    """Fail for objects of a story that come or go without waking the objects of controllers that read them.

    `but` has what is read and need not wake: the name of a controller and a resource, with the reason.
    """
    objects: list[Object] = []

    async def story(cluster: Cluster) -> None:
        await scenario.story(cluster)
        for resource in dict.fromkeys(each for one in scenario.controllers for each in one.resources):
            objects.extend((await cluster.client.list(resource)).objects)

    play(story, controllers=scenario.controllers, components=scenario.components(), kinds=scenario.kinds)
    found = list(dependencies(scenario.controllers, objects))
    assert found, f"{scenario.name}: no object depends on another one"
    watched = (each for each in found if (each.controller.name, each.other.resource) not in (but or {}))
    missed = [str(each) for each in watched if not each.wakes]
    assert not missed, f"{scenario.name}: not woken by what it reads: {', '.join(missed)}"


def dependencies(controllers: Sequence[Controller[Any]], objects: Sequence[Object]) -> Iterator[Dependency]:
    """What the objects of controllers depend on, in a world of these objects."""
    whole = view_of(controllers, objects)
    for other in objects:
        less = view_of(controllers, (each for each in objects if each is not other))
        for controller in controllers:
            for own in (each for each in objects if each.resource == controller.resource and each is not other):
                if _plain(controller.observe(whole, own.key)) != _plain(controller.observe(less, own.key)):
                    yield Dependency(controller, own, other, (whole, less))


def brought(controller: Controller[Any], changed: Object, view: Snapshot) -> set[Key]:
    """The keys that an object brings when it comes or goes."""
    return {key for each in sources(controller).get(changed.resource, ()) for key in each.keys(changed, view)}


def view_of(controllers: Iterable[Controller[Any]], objects: Iterable[Object]) -> Snapshot:
    """A view of objects, with the indexes of controllers."""
    view = Snapshot(indexes=[index for each in controllers for index in each.indexes])
    for each in objects:
        view.insert(each)
    return view


def _plain(value: Any) -> Any:
    """A world with the objects in it, as a value that can be compared."""
    if isinstance(value, Object):
        return value.wire()
    if is_dataclass(value):
        return {each.name: _plain(getattr(value, each.name)) for each in fields(value)}
    if isinstance(value, Mapping):
        return {key: _plain(each) for key, each in value.items()}
    return [_plain(each) for each in value] if isinstance(value, tuple | list) else value
