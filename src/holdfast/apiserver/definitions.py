"""Custom resource definitions at work: what is served follows what is defined.

Each write of a definition is answered at once: its names are accepted or not,
its resource types appear in the registry or go.  A definition that is deleted
takes its objects with it, and stays until the last one has gone.
"""

from __future__ import annotations

import asyncio
from typing import Final

from holdfast.apiserver import crds
from holdfast.apiserver.handlers import Handlers
from holdfast.apiserver.options import DeleteOptions
from holdfast.apiserver.resources import Object, ResourceType
from holdfast.apiserver.versions import shown
from holdfast.meta.errors import NotFound

KEY: Final = "apiextensions.k8s.io/customresourcedefinitions"


class Definitions:
    """Keeps the registry true to the stored definitions."""

    def __init__(self, handlers: Handlers) -> None:
        self.handlers = handlers
        self._cleanups: dict[str, asyncio.Task[None]] = {}

    @property
    def kind(self) -> ResourceType:
        kind = self.handlers.registry.get("apiextensions.k8s.io", "v1", "customresourcedefinitions")
        assert kind is not None, "definitions are built in"
        return kind

    def load(self) -> None:
        """Serve what was defined before the server was started, and go on with what was being deleted."""
        for entry in self.handlers.store.list(KEY):
            definition = shown(entry, self.kind)
            self._serve(definition)
            if "deletionTimestamp" in definition["metadata"]:
                self._clean_up(definition)

    async def written(self, name: str) -> None:
        """Answer a write of the definition `name`."""
        entry = self.handlers.store.get(KEY, "", name)
        if entry is None:
            return
        definition = shown(entry, self.kind)
        if "deletionTimestamp" in definition["metadata"]:
            self._clean_up(definition)
            return
        others = [shown(each, self.kind) for each in self.handlers.store.list(KEY) if each.name != name]
        status = crds.accept(definition, others, now=self.handlers.now())
        if status != definition.get("status"):
            writing = self.handlers.writing_by_server(self.kind, "", subresource="status")
            await self.handlers.writer.update(writing, name, lambda old: {**old, "status": status})
        self._serve({**definition, "status": status})

    def _serve(self, definition: Object) -> None:
        spec, registry = definition["spec"], self.handlers.registry
        registry.remove(spec["group"], spec["names"]["plural"])
        if crds.is_established(definition):
            for each in crds.types_of(definition):
                registry.add(each)

    def _clean_up(self, definition: Object) -> None:
        name = definition["metadata"]["name"]
        if name not in self._cleanups or self._cleanups[name].done():
            self._cleanups[name] = asyncio.create_task(self._remove_objects(definition))

    async def _remove_objects(self, definition: Object) -> None:
        """Delete every object of a definition, wait for those with finalizers, then let the definition go."""
        store, spec = self.handlers.store, definition["spec"]
        types = crds.types_of(definition)
        kind = next((each for each in types if each.version == each.storage_version), types[0] if types else None)
        if kind is not None:
            with_changes = store.watch(kind.key, since=store.revision)
            try:
                while entries := store.list(kind.key):
                    for entry in entries:
                        if not entry.deleting:
                            await self._remove(kind, entry.namespace, entry.name)
                    if store.count(kind.key):
                        await with_changes.take()
            finally:
                with_changes.close()
        self.handlers.registry.remove(spec["group"], spec["names"]["plural"])
        writing = self.handlers.writing_by_server(self.kind, "", subresource="finalize")
        await self.handlers.writer.update(writing, definition["metadata"]["name"], _without_cleanup)

    async def _remove(self, kind: ResourceType, namespace: str, name: str) -> None:
        try:
            await self.handlers.remove(kind, namespace, name, DeleteOptions(propagation="Background"))
        except NotFound:
            return

    async def close(self) -> None:
        for task in self._cleanups.values():
            task.cancel()
        await asyncio.gather(*self._cleanups.values(), return_exceptions=True)


def _without_cleanup(definition: Object) -> Object:
    meta = dict(definition["metadata"])
    meta["finalizers"] = [name for name in meta.get("finalizers") or [] if name != crds.FINALIZER]
    return {**definition, "metadata": meta}
