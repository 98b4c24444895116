"""What was listed from a server, as operators see the world: a `View`, at one moment.

Nothing is asked here but lists; what they mean is not known.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping

from holdfast.client.objects import Object
from holdfast.client.protocols import Reader, Scope
from holdfast.client.resources import Resource
from holdfast.meta.objects import Key
from holdfast.meta.selectors import LabelSelector
from holdfast.runtime.caching.stores import Store, Writer
from holdfast.runtime.controllers import Index


class Listed:
    """A `View` of what was listed."""

    def __init__(self, stores: Mapping[Resource, Store]) -> None:
        self._stores = stores

    def get(self, resource: Resource, key: Key) -> Object | None:
        return self._stores[resource].get(key)

    def list(
        self, resource: Resource, *, namespace: str = "", labels: LabelSelector | None = None
    ) -> tuple[Object, ...]:
        return self._stores[resource].list(namespace=namespace, labels=labels)

    def owned(self, resource: Resource, uid: str) -> tuple[Object, ...]:
        return self._stores[resource].owned(uid)

    def indexed(self, resource: Resource, index: str, value: str) -> tuple[Object, ...]:
        return self._stores[resource].indexed(index, value)


async def listed(
    reader: Reader, obj: Object, scopes: Mapping[Resource, Scope], *, indexes: Iterable[Index] = ()
) -> Listed:
    """An object as it is, or would be, and everything beside it."""
    known = tuple(indexes)

    def empty(resource: Resource) -> Store:
        return Store(resource, indexes=(each for each in known if each.resource == resource))

    async def filled(resource: Resource, scope: Scope) -> Store:
        listing, store = await reader.list(resource, scope), empty(resource)
        Writer(store).replace(listing.objects, listing.version)
        return store

    beside = {resource: scope for resource, scope in scopes.items() if resource != obj.resource}
    stores = await asyncio.gather(*(filled(resource, scope) for resource, scope in beside.items()))
    own = empty(obj.resource)
    Writer(own).put(obj)
    return Listed({**dict(zip(beside, stores, strict=True)), obj.resource: own})
