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

Mentions: TypeAlias = Callable[[Object], Iterable[tuple[Resource, str]]]
"""What an object refers to in its own namespace: resources and names."""


@dataclass(frozen=True, slots=True)
class References:
    """The references of one resource; `name` tells several sets of references of one resource apart."""

    resource: Resource
    mentions: Mentions
    name: str = "mentions"

    @property
    def index(self) -> Index:
        return Index(resource=self.resource, name=self.name, values=self._values)

    def watches(self, *resources: Resource) -> tuple[Watch, ...]:
        """Reconcile those that mention an object of these resources whenever it changes."""
        return tuple(Watch(resource=each, keys=self._keys) for each in resources)

    def _values(self, obj: Object) -> Iterable[str]:
        return {_value(resource, obj.key.namespace, name) for resource, name in self.mentions(obj)}

    def _keys(self, obj: Object, view: View) -> Iterable[Key]:
        value = _value(obj.resource, obj.key.namespace, obj.key.name)
        return [each.key for each in view.indexed(self.resource, self.name, value)]


def _value(resource: Resource, namespace: str, name: str) -> str:
    return f"{resource.group_resource}/{namespace}/{name}"
