"""Sources: which changes bring passes of a controller, over which of its objects, and how soon.  Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any, NamedTuple

from holdfast.client.objects import Object
from holdfast.client.resources import Resource
from holdfast.meta.objects import Key
from holdfast.runtime.controllers import SOON, Controller, Urgent, View, is_paused

Keys = Callable[[Object, View], Iterable[Key]]
Matters = Callable[[Object, Object], bool]


class Source(NamedTuple):
    """Changes of one resource that bring passes.

    keys     over which objects of the controller
    matters  (old, new) -> whether a change is worth a pass; without it, every change is
    within   how many seconds the pass may wait, so that many changes cost one
    urgent   which changes bring a pass at once all the same
    """

    keys: Keys
    matters: Matters | None = None
    within: float = 0.0
    urgent: Urgent | None = None


def sources(controller: Controller[Any]) -> Mapping[Resource, list[Source]]:
    """The sources of a controller: its own objects, those that they own, and what it watches."""
    own = None if controller.matters is None else partial(_matters_or_resumes, controller.matters)
    found: dict[Resource, list[Source]] = {controller.resource: [Source(_itself, own)]}
    within = 0.0 if controller.urgent is None else SOON.total_seconds()
    for owned in controller.owns:
        source = Source(partial(_owner, controller.resource), None, within, controller.urgent)
        found.setdefault(owned, []).append(source)
    for watch in controller.watches:
        source = Source(watch.keys, watch.matters, watch.within.total_seconds(), watch.urgent)
        found.setdefault(watch.resource, []).append(source)
    return found


def _matters_or_resumes(matters: Matters, old: Object, new: Object) -> bool:
    """Whether a change of an object is worth a pass of its own; what changed while it was paused had none."""
    return is_paused(old) != is_paused(new) or matters(old, new)


def _itself(obj: Object, view: View) -> Iterable[Key]:
    return (obj.key,)


def _owner(resource: Resource, obj: Object, view: View) -> Iterable[Key]:
    """The key of the owner that manages an object, if it is of this resource and known.

    One that is not known yet comes with a change of its own; one that is gone needs no pass for each object it leaves.
    """
    owner = obj.controller
    if owner is None or owner.kind != resource.kind or owner.group != resource.group:
        return ()
    key = Key(obj.meta.namespace if resource.namespaced else "", owner.name)
    return () if view.get(resource, key) is None else (key,)
