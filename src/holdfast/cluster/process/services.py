"""Services of pods that run as processes: what connects to their cluster IPs is led to a pod.

On Linux the cluster IPs of `holdfast up` are loopback addresses, so that they can be reached from the machine as they
can be from inside any cluster.  For each port of a Service with a ready pod there, this listens at the cluster IP and
passes connections to the pod with the fewest.  Services without such pods cost nothing.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from hashlib import blake2b
from ipaddress import IPv4Network, ip_address
from pathlib import Path
from typing import Any, Final

from holdfast.client.objects import Object
from holdfast.client.resources import SERVICES, SLICES, Resource
from holdfast.cluster.controllers.backends import Service
from holdfast.cluster.controllers.slices import SERVICE, Slice
from holdfast.meta.objects import Key
from holdfast.meta.selectors import LabelSelector
from holdfast.runtime.controllers import Environment, View

Address = tuple[str, int]
"""A host and a port."""

_CHUNK: Final = 64 * 1024
_CONNECT_SECONDS: Final = 2.0

_log: Final = logging.getLogger("holdfast.cluster.process")


def network(directory: Path) -> IPv4Network:
    """The cluster IPs of the cluster in a directory; two clusters on one machine have different ones as a rule.

    They are none of the addresses that pods have (`machine.Addresses`).
    """
    digest = int.from_bytes(blake2b(str(directory.absolute()).encode(), digest_size=4).digest(), "big")
    high, low = divmod(digest % (62 * 16), 16)
    return IPv4Network(f"127.{192 + high}.{low * 16}.0/20")


def routes(service: Service, slices: Iterable[Slice]) -> dict[Address, tuple[Address, ...]]:
    """Where to listen for a Service, and the ready pods of this machine behind each port."""
    found: dict[Address, tuple[Address, ...]] = {}
    if service.headless or not _is_loopback(service.spec.cluster_ip):
        return found
    listed = tuple(slices)
    for port in service.spec.ports:
        targets = tuple(sorted({target for each in listed for target in _targets(each, port.name)}))
        if port.protocol == "TCP" and targets:
            found[service.spec.cluster_ip, port.port] = targets
    return found


def _targets(slice: Slice, port: str) -> Iterator[Address]:
    numbers = [each.get("port") for each in slice.ports or () if (each.get("name") or "") == port]
    for endpoint in slice.endpoints or ():
        if (endpoint.get("conditions") or {}).get("ready") is False:
            continue
        for address in endpoint.get("addresses") or ():
            if _is_loopback(address):
                yield from ((address, number) for number in numbers if isinstance(number, int))


def _is_loopback(text: str) -> bool:
    try:
        return ip_address(text).is_loopback
    except ValueError:
        return False


@dataclass(slots=True)
class _Port:
    """One port of a Service: its socket, and the connections to each pod behind it."""

    server: asyncio.Server
    targets: tuple[Address, ...]
    connections: dict[Address, int] = field(default_factory=dict)
    tasks: set[asyncio.Task[Any]] = field(default_factory=set)

    def close(self) -> None:
        self.server.close()
        for task in self.tasks:
            task.cancel()


class ServiceProxy:
    """A `Component`: keeps the ports of Services open."""

    name = "service-proxy"
    reads: tuple[Resource, ...] = (SERVICES, SLICES)

    def __init__(self) -> None:
        self._ports: dict[Key, dict[Address, _Port]] = {}

    async def run(self, environment: Environment) -> None:
        stores, changed, due = environment.stores, asyncio.Event(), set[Key]()

        def mark(key: Key) -> None:
            due.add(key)
            changed.set()

        def slice_changed(old: Object | None, new: Object | None) -> None:
            for each in (old, new):
                if each is not None and SERVICE in each.meta.labels:
                    mark(Key(each.meta.namespace, each.meta.labels[SERVICE]))

        def service_changed(old: Object | None, new: Object | None) -> None:
            for each in (old, new):
                if each is not None:
                    mark(each.key)

        await stores.synced(*self.reads)
        try:
            with ExitStack() as subscribed:
                subscribed.callback(stores.subscribe(SERVICES, service_changed))
                subscribed.callback(stores.subscribe(SLICES, slice_changed))
                while True:
                    await changed.wait()
                    changed.clear()
                    while due:
                        await self._settle(stores, due.pop())
        finally:
            for ports in self._ports.values():
                for port in ports.values():
                    port.close()

    async def _settle(self, view: View, key: Key) -> None:
        """Open and close the ports of a Service as its pods are."""
        wanted = _wanted(view, key)
        ports = self._ports.setdefault(key, {})
        for address in [each for each in ports if each not in wanted]:
            ports.pop(address).close()
        for address, targets in wanted.items():
            if address in ports:
                ports[address].targets = targets
            else:
                with contextlib.suppress(OSError):
                    ports[address] = await self._open(key, address, targets)
        if not ports:
            del self._ports[key]

    async def _open(self, key: Key, address: Address, targets: tuple[Address, ...]) -> _Port:
        async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            task = asyncio.current_task()
            assert task is not None, "this is called in a task"
            port.tasks.add(task)
            try:
                await _pass_on(port, reader, writer)
            except asyncio.CancelledError:
                writer.transport.abort()  # the port is closed, and with it its connections
            finally:
                port.tasks.discard(task)

        try:
            server = await asyncio.start_server(connected, *address)
        except OSError as error:
            fields = {"service": str(key), "address": f"{address[0]}:{address[1]}", "error": error.strerror}
            # Of a port below 1024 that is what to expect, such as that of the Service of the API itself.
            level = logging.INFO if isinstance(error, PermissionError) else logging.WARNING
            _log.log(level, "the port of a service cannot be opened", extra={"fields": fields})
            raise
        port = _Port(server, targets)
        return port


def _wanted(view: View, key: Key) -> Mapping[Address, tuple[Address, ...]]:
    found = view.get(SERVICES, key)
    if found is None:
        return {}
    labels = LabelSelector.from_object({"matchLabels": {SERVICE: key.name}}, "labels")
    slices = (each.decode(Slice) for each in view.list(SLICES, namespace=key.namespace, labels=labels))
    return routes(Service.of(found), slices)


async def _pass_on(port: _Port, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Lead a connection to the pod with the fewest; one that does not answer is passed over."""
    for target in sorted(port.targets, key=lambda each: port.connections.get(each, 0)):
        try:
            async with asyncio.timeout(_CONNECT_SECONDS):
                inner, outer = await asyncio.open_connection(*target)
        except (OSError, TimeoutError):
            continue
        port.connections[target] = port.connections.get(target, 0) + 1
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(_copy(reader, outer))
                group.create_task(_copy(inner, writer))
        finally:
            port.connections[target] -= 1
            for each in (outer, writer):
                each.close()
        return
    writer.close()


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Copy until the sender has ended, and pass its end on."""
    with contextlib.suppress(OSError):
        while data := await reader.read(_CHUNK):
            writer.write(data)
            await writer.drain()
        if writer.can_write_eof():
            writer.write_eof()
