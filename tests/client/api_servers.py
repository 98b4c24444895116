"""Servers for clients to talk to: one in this process on virtual time, one on a socket with TLS, and bad ways to both.

`embedded` runs a test with a client of a server without a socket; `listening` serves on the loopback interface within
the same event loop.  `Chaos` is a transport that breaks as its script says; `Scripted` one that answers from a list.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from random import Random
from typing import Any, TypeVar

from holdfast.apiserver.http import listener as serve
from holdfast.apiserver.server import Server
from holdfast.client.api import ApiClient
from holdfast.client.http import Endpoint
from holdfast.client.inprocess import InProcess
from holdfast.client.protocols import Transport, Unreachable, Unsent
from holdfast.client.streams import close
from holdfast.meta.exchange import Request, Response
from holdfast.testing import loops

T = TypeVar("T")

NAMESPACE = "default"


def configmap(name: str, namespace: str = NAMESPACE, **rest: Any) -> dict[str, Any]:
    return {"metadata": {"name": name, "namespace": namespace} | rest.pop("metadata", {}), **rest}


def pod(name: str, **spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": name, "namespace": NAMESPACE}, "spec": {"containers": [CONTAINER], **spec}}


CONTAINER = {"name": "main", "image": "nginx:1"}


@dataclass
class Embedded:
    """A server in this process, and its admin's client."""

    server: Server
    client: ApiClient
    transport: InProcess
    seen: list[tuple[str, str, int]] = field(default_factory=list)
    """Verb, resource and code of every request."""

    def through(self, transport: Transport, **options: Any) -> ApiClient:
        """Another client, whose requests take another way."""
        return ApiClient(transport, random=Random(1), observed=self._observe, **options)

    def _observe(self, verb: str, resource: str, code: int, seconds: float) -> None:
        self.seen.append((verb, resource, code))


def embedded(test: Callable[[Embedded], Awaitable[T]]) -> T:
    """Run a test against a server of its own, on virtual time."""

    async def main(loop: loops.VirtualLoop) -> T:
        server = await Server.open(None, now=loop.now)
        transport = InProcess(server.handle, server.identity.admin_token)
        api = Embedded(server, ApiClient(transport), transport)
        api.client = api.through(transport)
        try:
            return await test(api)
        finally:
            await api.client.close()
            await server.close()

    return loops.run(main)


@dataclass(frozen=True)
class Listening:
    """A server on a socket of this machine, and what its clients need."""

    server: Server
    endpoint: Endpoint

    @property
    def token(self) -> str:
        return self.server.identity.admin_token


@asynccontextmanager
async def listening(
    handle: Callable[[Request], Awaitable[Response]] | None = None, **options: Any
) -> AsyncIterator[Listening]:
    """Serve within the running loop until the block ends; `handle` answers in place of the server, if given."""
    server = await Server.open(None, **options)

    async def receiving(request: Request) -> Response:
        return await (handle or server.handle)(await request.received())

    listener = await serve.listen(receiving, "127.0.0.1", tls=server.identity.tls())
    host, port = listener.address
    try:
        yield Listening(
            server, Endpoint(url=f"https://{host}:{port}", authority=server.identity.authority.certificate_pem)
        )
    finally:
        await listener.drain(1)
        await server.close()


class Chaos:
    """A transport that spoils requests as its script says, one word for each; afterwards all is well."""

    def __init__(self, beneath: Transport, *script: str) -> None:
        self._beneath = beneath
        self._script = list(script)
        self.requests: list[Request] = []

    async def send(self, request: Request) -> Response:
        self.requests.append(request)
        match self._script.pop(0) if self._script else "well":
            case "refused":
                raise Unsent("connection refused")
            case "lost":  # it arrives, and the answer does not
                response = await self._beneath.send(request)
                if response.stream is not None:
                    await close(response.stream)
                raise Unreachable("connection reset")
            case "cut":  # a stream that breaks within its first event
                response = await self._beneath.send(request)
                assert response.stream is not None
                response.stream = _cut(response.stream)
                return response
            case word:
                assert word == "well", word
                return await self._beneath.send(request)

    async def close(self) -> None:
        await self._beneath.close()


async def _cut(stream: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    try:
        async for chunk in stream:
            yield chunk[: len(chunk) // 2]
            raise Unreachable("connection reset")
    finally:
        await close(stream)


class Scripted:
    """A transport that answers with what it was given, in order, and remembers what it was asked."""

    def __init__(self, *answers: Response | Exception) -> None:
        self._answers = list(answers)
        self.requests: list[Request] = []

    async def send(self, request: Request) -> Response:
        self.requests.append(request)
        answer = self._answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def close(self) -> None:
        assert not self._answers, "not everything was asked"


def streamed(chunks: Iterable[bytes]) -> Response:
    """A watch that sends these chunks and ends."""

    async def stream() -> AsyncIterator[bytes]:
        for chunk in chunks:
            await asyncio.sleep(0)
            yield chunk

    return Response(200, stream=stream())
