"""A `View` over objects that a test wrote: what `observe` reads, without stores, watches or a server.

view = Snapshot([(PODS, pod("a")), (NODES, node("n1"))])
assert decide(observe(view, Key("default", "a")), NOW) == Decision(...)
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from holdfast.client.objects import Object
from holdfast.client.resources import Resource
from holdfast.meta.objects import Key
from holdfast.meta.selectors import LabelSelector
from holdfast.runtime.controllers import Index


class Snapshot:
    """The world at one moment, as a test describes it."""

    def __init__(
        self, objects: Iterable[tuple[Resource, Mapping[str, Any]]] = (), *, indexes: Iterable[Index] = ()
    ) -> None:
        self._objects: dict[tuple[Resource, Key], Object] = {}
        self._indexes = {(index.resource, index.name): index for index in indexes}
        for resource, wire in objects:
            self.put(resource, wire)

    def put(self, resource: Resource, wire: Mapping[str, Any]) -> Object:
        """Add an object, or replace the one of its name."""
        return self.insert(Object.of(resource, dict(wire)))

    def insert(self, obj: Object) -> Object:
        """Add an object as it is, or replace the one of its name."""
        self._objects[obj.resource, obj.key] = obj
        return obj

    def get(self, resource: Resource, key: Key) -> Object | None:
        return self._objects.get((resource, key))

    def list(
        self, resource: Resource, *, namespace: str = "", labels: LabelSelector | None = None
    ) -> tuple[Object, ...]:
        return tuple(
            obj
            for obj in self._all(resource)
            if (not namespace or obj.meta.namespace == namespace)
            and (labels is None or labels.matches(obj.meta.labels))
        )

    def owned(self, resource: Resource, uid: str) -> tuple[Object, ...]:
        return tuple(obj for obj in self._all(resource) if any(owner.uid == uid for owner in obj.meta.owner_references))

    def indexed(self, resource: Resource, index: str, value: str) -> tuple[Object, ...]:
        values = self._indexes[resource, index].values
        return tuple(obj for obj in self._all(resource) if value in values(obj))

    def _all(self, resource: Resource) -> Iterable[Object]:
        return (obj for (of, _), obj in sorted(self._objects.items(), key=lambda item: item[0][1]) if of == resource)
