"""References by name: which objects of a resource name a ConfigMap, a Secret or a Service.

An object that names another is reconciled when that one changes.  This module must not
know any kind, nor why an object is named.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TypeAlias

from holdfast.client.objects import Object
from holdfast.client.resources import Resource
from holdfast.meta.objects import Key
from holdfast.runtime.controllers import Index, View, Watch

Mentions: TypeAlias = Callable[[Object], Iterable[tuple[Resource, str | Key]]]
"""What an object refers to: resources, and names in its own namespace or keys."""


@dataclass(frozen=True, slots=True)
class References:
    """The references of one resource; `name` tells several sets of references of one resource apart."""

    resource: Resource
    mentions: Mentions
    name: str = "mentions"

    @property
    def index(self) -> Index:
        return Index(resource=self.resource, name=self.name, values=self._values)

    def watches(
        self, *resources: Resource, matters: Callable[[Object, Object], bool] | None = None
    ) -> tuple[Watch, ...]:
        """Reconcile those that mention an object of these resources whenever it changes."""
        return tuple(Watch(resource=each, keys=self._keys, matters=matters) for each in resources)

    def of(self, view: View, obj: Object) -> tuple[Object, ...]:
        """The objects that mention an object, in the order of their keys."""
        return self.named(view, obj.resource, obj.key)

    def named(self, view: View, resource: Resource, key: Key) -> tuple[Object, ...]:
        """The objects that mention a key of a resource, whether or not that exists, in the order of their keys."""
        return view.indexed(self.resource, self.name, _value(resource, key.namespace, key.name))

    def _values(self, obj: Object) -> Iterable[str]:
        return {
            _value(resource, name.namespace, name.name)
            if isinstance(name, Key)
            else _value(resource, obj.key.namespace, name)
            for resource, name in self.mentions(obj)
        }

    def _keys(self, obj: Object, view: View) -> Iterable[Key]:
        return [each.key for each in self.of(view, obj)]


def _value(resource: Resource, namespace: str, name: str) -> str:
    return f"{resource.group_resource}/{namespace}/{name}"
