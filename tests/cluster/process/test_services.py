"""Services that lead to processes of the machine."""

from __future__ import annotations

import asyncio
import contextlib
import sys
from collections.abc import AsyncIterator
from ipaddress import IPv4Address
from pathlib import Path
from typing import Any

import pytest
from tests.waiting import eventually

from holdfast.apiserver.server import Server
from holdfast.client.protocols import Client
from holdfast.client.resources import SERVICES, SLICES
from holdfast.cluster.controllers.backends import Service, ServicePort, ServiceSpec
from holdfast.cluster.controllers.slices import SERVICE, Slice
from holdfast.cluster.process.services import ServiceProxy, network, routes
from holdfast.meta.objects import Key
from holdfast.runtime.manager import Manager
from holdfast.testing.clusters import connected

linux = pytest.mark.skipif(sys.platform != "linux", reason="only Linux has all of 127.0.0.0/8")

HTTP = ServicePort(name="http", port=80, target_port=8080)


def service(ip: str = "127.200.0.1", *ports: ServicePort) -> Service:
    return Service(spec=ServiceSpec(selector={"app": "web"}, cluster_ip=ip, ports=ports or (HTTP,)))


def listed(*addresses: str, ready: bool = True, name: str = "http") -> Slice:
    endpoints = [{"addresses": [each], "conditions": {"ready": ready}} for each in addresses]
    return Slice(address_type="IPv4", endpoints=endpoints, ports=[{"name": name, "port": 8080, "protocol": "TCP"}])


@pytest.mark.parametrize(
    ("of", "slices", "expected"),
    [
        (service(), [listed("127.64.0.2", "127.64.0.1")], {80: ["127.64.0.1", "127.64.0.2"]}),
        (service(), [listed("127.64.0.1"), listed("127.64.0.2")], {80: ["127.64.0.1", "127.64.0.2"]}),
        (service(), [listed("127.64.0.1", ready=False)], {}),
        (service(), [listed("10.1.0.1")], {}),
        (service(), [listed("127.64.0.1", name="metrics")], {}),
        (service("10.96.0.1"), [listed("127.64.0.1")], {}),
        (service("None"), [listed("127.64.0.1")], {}),
        (service("127.200.0.1", ServicePort(name="http", port=80, protocol="UDP")), [listed("127.64.0.1")], {}),
        (service(), [], {}),
    ],
)
def test_a_service_leads_to_the_ready_processes_behind_each_port(
    of: Service, slices: list[Slice], expected: dict[int, list[str]]
) -> None:
    found = {port: [host for host, _ in targets] for (_, port), targets in routes(of, slices).items()}
    assert found == expected


def test_the_cluster_ips_of_two_directories_are_on_the_loopback_and_differ() -> None:
    one, two = network(Path("/a")), network(Path("/b"))
    assert one != two
    assert one[0].is_loopback
    assert all(IPv4Address("127.192.0.0") <= each[0] <= IPv4Address("127.254.0.0") for each in (one, two))


@contextlib.asynccontextmanager
async def proxied() -> AsyncIterator[Client]:
    """A cluster that has nothing but Services."""
    server = await Server.open(service_network=network(Path("/tests") / str(id(object()))))
    client = connected(server)
    manager = Manager(client, controllers=[], components=[ServiceProxy()], now=server.now)
    working = asyncio.create_task(manager.run())
    try:
        await manager.working.wait()
        yield client
    finally:
        manager.stop()
        await working
        await client.close()
        await server.close()


@contextlib.asynccontextmanager
async def echo(word: bytes) -> AsyncIterator[tuple[str, int]]:
    """A pod that answers each line with a word and the line."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while line := await reader.readline():
            writer.write(word + b" " + line)
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[:2]
    finally:
        server.close()


def slice_of(*targets: tuple[str, int]) -> dict[str, Any]:
    return {
        "metadata": {"name": "web-1", "namespace": "default", "labels": {SERVICE: "web"}},
        "addressType": "IPv4",
        "endpoints": [{"addresses": [host], "conditions": {"ready": True}} for host, _ in targets],
        "ports": [{"name": "http", "port": targets[0][1], "protocol": "TCP"}],
    }


async def ask(ip: str, port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter, bytes]:
    """A connection, and the answer to its first line; tries until the port is open."""

    async def answered() -> tuple[asyncio.StreamReader, asyncio.StreamWriter, bytes] | None:
        with contextlib.suppress(ConnectionError):
            reader, writer = await asyncio.open_connection(ip, port)
            writer.write(b"hello\n")
            if answer := await reader.readline():
                return reader, writer, answer
            writer.close()
        return None

    return await eventually(answered)


@linux
def test_a_connection_to_the_cluster_ip_reaches_a_pod_and_ends_with_the_service() -> None:
    async def run() -> None:
        async with proxied() as client, echo(b"pod") as target:
            spec = {"ports": [{"name": "http", "port": 8000}]}
            made = await client.create(SERVICES, {"metadata": {"name": "web", "namespace": "default"}, "spec": spec})
            ip = made.wire()["spec"]["clusterIP"]
            with pytest.raises(ConnectionRefusedError):
                await asyncio.open_connection(ip, 8000)
            await client.create(SLICES, slice_of(target))
            reader, writer, answer = await ask(ip, 8000)
            assert answer == b"pod hello\n"
            writer.write_eof()
            assert await reader.read() == b"", "the end of one side is passed on to the other"
            writer.close()
            reader, writer, _ = await ask(ip, 8000)
            await client.delete(SERVICES, Key("default", "web"))
            with contextlib.suppress(ConnectionResetError):
                assert await reader.read() == b""
            writer.close()

            async def refused() -> bool:
                try:
                    _, writer = await asyncio.open_connection(ip, 8000)
                except ConnectionRefusedError:
                    return True
                writer.close()
                return False

            await eventually(refused)

    asyncio.run(run())


@linux
def test_a_pod_that_does_not_listen_is_passed_over() -> None:
    async def run() -> None:
        async with proxied() as client, echo(b"pod") as target:
            spec = {"ports": [{"name": "http", "port": 8000}]}
            made = await client.create(SERVICES, {"metadata": {"name": "web", "namespace": "default"}, "spec": spec})
            await client.create(SLICES, slice_of(target, ("127.0.0.9", target[1])))
            for _ in range(3):
                _, writer, answer = await ask(made.wire()["spec"]["clusterIP"], 8000)
                assert answer == b"pod hello\n"
                writer.close()

    asyncio.run(run())
