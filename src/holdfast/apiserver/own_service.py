"""The Service ``kubernetes`` in ``default``, by which programs in the cluster find the server.

The server creates it and its EndpointSlice when it begins to listen, and again whenever they are changed or deleted.
"""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
from typing import Any, Final

from holdfast.apiserver.resources import Object, ResourceType
from holdfast.apiserver.storage.store import Ended, Expired, Overflow, StorageError
from holdfast.apiserver.verbs.handlers import Handlers
from holdfast.apiserver.verbs.versions import shown
from holdfast.meta.errors import StatusError

NAME: Final = "kubernetes"
NAMESPACE: Final = "default"
PORT: Final = 443
RETRY_SECONDS: Final = 10.0

_LABELS: Final = {"component": "apiserver", "provider": NAME}


class OwnService:
    """Keeps the Service and the EndpointSlice of a server that listens at an address."""

    def __init__(self, handlers: Handlers) -> None:
        self._handlers = handlers
        self._tasks: list[asyncio.Task[None]] = []

    async def start(self, host: str, port: int) -> None:
        """Create both, and keep them; an address that no other program can use, such as a name, is left out."""
        for wanted in (_service(port), _slice(host, port)):
            if wanted is not None:
                kind = self._kind(wanted)
                await self._ensure(kind, wanted)
                self._tasks.append(asyncio.create_task(self._keep(kind, wanted), name=f"keep {kind.plural} {NAME}"))

    async def stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _kind(self, obj: Object) -> ResourceType:
        group, _, version = obj["apiVersion"].rpartition("/")
        kind = self._handlers.registry.get(group, version, f"{obj['kind'].lower()}s")
        assert kind is not None, "Services and EndpointSlices are built in"
        return kind

    async def _keep(self, kind: ResourceType, wanted: Object) -> None:
        store = self._handlers.store
        while True:
            try:
                watch = store.watch(kind.key, NAMESPACE, since=store.revision)
                await self._ensure(kind, wanted)
                async for events in watch:
                    if any(event.entry.name == NAME for event in events):
                        await self._ensure(kind, wanted)
                return  # the store is closed
            except (Overflow, Expired):
                continue
            except (Ended, StorageError):
                await asyncio.sleep(RETRY_SECONDS)

    async def _ensure(self, kind: ResourceType, wanted: Object) -> None:
        """Write what differs from `wanted`; a Service keeps its address and what else was set on it."""
        writer, entry = self._handlers.writer, self._handlers.store.get(kind.key, NAMESPACE, NAME)
        writing = self._handlers.writing_by_server(kind, NAMESPACE)
        # The next change of it, or the next start, is the next attempt.
        with contextlib.suppress(StatusError, StorageError):
            if entry is None:
                await writer.create(writing, _copied(wanted))
            elif _merged(shown(entry, kind), wanted) != shown(entry, kind):
                await writer.update(writing, NAME, lambda old: _merged(old, wanted))


def _service(port: int) -> Object:
    ports = [{"name": "https", "port": PORT, "protocol": "TCP", "targetPort": port}]
    spec: dict[str, Any] = {"ports": ports, "sessionAffinity": "None", "type": "ClusterIP"}
    return _object("Service", "v1", {**_LABELS}, spec=spec)


def _slice(host: str, port: int) -> Object | None:
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return None
    labels = {"kubernetes.io/service-name": NAME}
    return _object(
        "EndpointSlice",
        "discovery.k8s.io/v1",
        labels,
        addressType=f"IPv{address.version}",
        endpoints=[{"addresses": [host], "conditions": {"ready": True}}],
        ports=[{"name": "https", "port": port, "protocol": "TCP"}],
    )


def _object(kind: str, version: str, labels: dict[str, str], **fields: Any) -> Object:
    return {"kind": kind, "apiVersion": version, "metadata": {"name": NAME, "labels": labels}, **fields}


def _merged(old: Any, wanted: Any) -> Any:
    if not (isinstance(old, dict) and isinstance(wanted, dict)):
        return _copied(wanted)
    return old | {name: _merged(old.get(name), value) for name, value in wanted.items()}


def _copied(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _copied(item) for name, item in value.items()}
    return [_copied(item) for item in value] if isinstance(value, list) else value
