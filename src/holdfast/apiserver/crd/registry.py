"""The registry of custom kinds: updates the served resource types on every write of a definition.

The names of a definition are accepted or not, and its resource types are added or removed, before the write is
answered.  The deletion of a definition deletes its objects, and completes when the last one is gone.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from dataclasses import replace
from typing import Final

from holdfast.apiserver.admission.webhooks.calls import Calls
from holdfast.apiserver.crd import resource_types
from holdfast.apiserver.crd.conversion import OwnConversions, converter, no_conversion
from holdfast.apiserver.http.options import DeleteOptions
from holdfast.apiserver.resources import Object, ResourceType
from holdfast.apiserver.storage.store import Overflow
from holdfast.apiserver.verbs.handlers import Handlers
from holdfast.apiserver.verbs.versions import shown
from holdfast.meta.errors import NotFound

_log: Final = logging.getLogger("holdfast.apiserver")

DEFINITIONS: Final = "apiextensions.k8s.io/customresourcedefinitions"


class Definitions:
    """Keeps the registry up to date with the stored definitions."""

    def __init__(self, handlers: Handlers, calls: Calls, own: OwnConversions = no_conversion) -> None:
        self.handlers = handlers
        self._calls = calls
        self._own = own
        self._cleanups: dict[str, asyncio.Task[None]] = {}

    @property
    def kind(self) -> ResourceType:
        kind = self.handlers.registry.get("apiextensions.k8s.io", "v1", "customresourcedefinitions")
        assert kind is not None, "definitions are built in"
        return kind

    def load(self) -> None:
        """Serve the definitions in the store, and continue with those that are being deleted."""
        for entry in self.handlers.store.list(DEFINITIONS):
            definition = shown(entry, self.kind)
            self._serve(definition)
            if "deletionTimestamp" in definition["metadata"]:
                self._clean_up(definition)

    async def written(self, name: str) -> None:
        """Update status and resource types after a write of the definition `name`."""
        entry = self.handlers.store.get(DEFINITIONS, "", name)
        if entry is None:
            return
        definition = shown(entry, self.kind)
        if "deletionTimestamp" in definition["metadata"]:
            self._clean_up(definition)
            return
        others = [each for each in self._all() if each["metadata"]["name"] != name]
        status = resource_types.accept(definition, others, now=self.handlers.now())
        if status != definition.get("status"):
            writing = self.handlers.writing_by_server(self.kind, "", subresource="status")
            await self.handlers.writer.update(writing, name, lambda old: {**old, "status": status})
        self._serve({**definition, "status": status})

    def _all(self) -> list[Object]:
        return [shown(entry, self.kind) for entry in self.handlers.store.list(DEFINITIONS)]

    def _serve(self, definition: Object) -> None:
        spec, registry = definition["spec"], self.handlers.registry
        registry.remove(spec["group"], spec["names"]["plural"])
        going = "deletionTimestamp" in definition["metadata"]
        if resource_types.is_established(definition):
            convert = converter(definition, self._calls, self._own)
            for each in resource_types.types_of(definition, convert):
                registry.add(replace(each, terminating=going))

    def _clean_up(self, definition: Object) -> None:
        name = definition["metadata"]["name"]
        if name not in self._cleanups or self._cleanups[name].done():
            self._serve(definition)
            self._cleanups[name] = asyncio.create_task(self._end(definition))
            self._cleanups[name].add_done_callback(_tell_failure)

    async def _end(self, definition: Object) -> None:
        """Delete every object of a definition, then the definition; a definition that waits for its names gets them."""
        spec, name = definition["spec"], definition["metadata"]["name"]
        types = resource_types.types_of(definition, converter(definition, self._calls, self._own))
        kind = next((each for each in types if each.version == each.storage_version), types[0] if types else None)
        if kind is not None:
            await self._remove_objects(kind)
        self.handlers.registry.remove(spec["group"], spec["names"]["plural"])
        writing = self.handlers.writing_by_server(self.kind, "", subresource="finalize")
        await self.handlers.writer.update(writing, name, _without_cleanup)
        for other in self._all():
            if other["spec"]["group"] == spec["group"] and not resource_types.is_established(other):
                await self.written(other["metadata"]["name"])

    async def _remove_objects(self, kind: ResourceType) -> None:
        """Delete every object of a kind and wait for those with finalizers."""
        store = self.handlers.store
        await store.write()  # after pending creations; new ones are refused already
        while store.count(kind.key):
            with contextlib.closing(store.watch(kind.key, since=store.revision)) as changes:
                for entry in store.list(kind.key):
                    if not entry.deleting:
                        await self._remove(kind, entry.namespace, entry.name)
                if store.count(kind.key):
                    with contextlib.suppress(Overflow):  # the watch fell behind: list again
                        await changes.take()

    async def _remove(self, kind: ResourceType, namespace: str, name: str) -> None:
        with contextlib.suppress(NotFound):
            await self.handlers.remove(kind, namespace, name, DeleteOptions(propagation="Background"))

    async def close(self) -> None:
        for task in self._cleanups.values():
            task.cancel()
        await asyncio.gather(*self._cleanups.values(), return_exceptions=True)


def _tell_failure(task: asyncio.Task[None]) -> None:
    """Log a failed deletion; the next start continues it."""
    if not task.cancelled() and task.exception() is not None:
        _log.error("cleanup of a definition failed", exc_info=task.exception())


def _without_cleanup(definition: Object) -> Object:
    meta = dict(definition["metadata"])
    meta["finalizers"] = [name for name in meta.get("finalizers") or [] if name != resource_types.FINALIZER]
    return {**definition, "metadata": meta}
