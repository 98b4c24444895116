"""The client: reads, writes and watches as requests, over any transport.

Builds requests and reads answers: objects stay bytes with their metadata, lists
come in pages that the caller does not see, and refusals raise their `StatusError`.
`retries` decides which request is sent again.  The transport knows how requests travel,
and with which credentials.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterator, Mapping
from random import Random
from typing import Any, Final

import msgspec

from holdfast.client import retries, streams
from holdfast.client.objects import Meta, Object
from holdfast.client.protocols import (
    EVERYTHING,
    MANAGER,
    Event,
    Listing,
    PatchType,
    Propagation,
    Scope,
    Transport,
    Unreachable,
)
from holdfast.client.resources import Resource
from holdfast.meta.errors import Gone, StatusError, from_status
from holdfast.meta.exchange import JSON, Request, Response, encode
from holdfast.meta.objects import Key

Observed = Callable[[str, str, int, float], None]
"""Called for every request: its verb, its resource (``deployments.apps``), the code (0: no answer), seconds."""

PAGE: Final = 500
"""How many objects are asked for at a time."""

WATCH_SECONDS: Final = (300, 600)
"""How long a watch may last; each differs, so that watches begun together do not end together."""

_METADATA: Final = f"{JSON};as=PartialObjectMetadata;g=meta.k8s.io;v=v1,{JSON}"
_METADATA_LIST: Final = f"{JSON};as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,{JSON}"

Query = Mapping[str, tuple[str, ...]]


class _Page(msgspec.Struct, frozen=True, rename="camel", gc=False):
    resource_version: str = ""
    continue_: str = msgspec.field(name="continue", default="")


class _Items(msgspec.Struct, gc=False):
    metadata: _Page = _Page()
    items: list[msgspec.Raw] | None = None


class _Answer(msgspec.Struct, rename="camel", gc=False):
    """What is read of the answer to a write."""

    kind: str = ""
    api_version: str = ""
    metadata: Meta = Meta()


_items = msgspec.json.Decoder(_Items)
_answer = msgspec.json.Decoder(_Answer)


class ApiClient:
    """A `protocols.Client` over a transport, which it closes with itself."""

    def __init__(
        self,
        transport: Transport,
        *,
        policy: retries.Policy | None = None,
        random: Random | None = None,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        observed: Observed | None = None,
    ) -> None:
        self._transport = transport
        self._policy = policy or retries.Policy()
        self._random = random or Random()
        self._sleep = sleep
        self._observe = observed or _unobserved

    async def close(self) -> None:
        await self._transport.close()

    # Reading.

    async def get(self, resource: Resource, key: Key) -> Object:
        path = _path(resource, key)
        return _object(resource, await self._ask("get", resource, Request("GET", path, headers=_accept(JSON))))

    async def list(self, resource: Resource, scope: Scope = EVERYTHING, *, metadata_only: bool = False) -> Listing:
        accept = _METADATA_LIST if metadata_only else JSON
        try:
            return await self._pages(resource, scope, accept=accept, limit=PAGE)
        except Gone:
            # The version of the first page was forgotten before the last was read: all at once cannot expire.
            return await self._pages(resource, scope, accept=accept, limit=0)

    async def _pages(self, resource: Resource, scope: Scope, *, accept: str, limit: int) -> Listing:
        objects: list[Object] = []
        page = _Page()
        while True:
            query = _query(**_selectors(scope), limit=str(limit or ""), **{"continue": page.continue_})
            request = Request("GET", _collection(resource, scope.namespace), query, _accept(accept))
            response = await self._ask("list", resource, request)
            with _readable(resource):
                listed = _items.decode(response.body)
                # Copies: a slice would keep the whole page alive.
                objects += [Object(resource, bytes(raw)) for raw in listed.items or ()]
            page = listed.metadata
            if not page.continue_:
                return Listing(tuple(objects), page.resource_version)

    @contextlib.asynccontextmanager
    async def watch(
        self,
        resource: Resource,
        scope: Scope = EVERYTHING,
        *,
        since: str = "",
        initial: bool = False,
        metadata_only: bool = False,
    ) -> AsyncGenerator[AsyncIterator[Event], None]:
        query = _query(
            **_selectors(scope),
            watch="true",
            allowWatchBookmarks="true",
            resourceVersion=since,
            sendInitialEvents="true" if initial else "",
            resourceVersionMatch="NotOlderThan" if initial else "",
            timeoutSeconds=str(self._random.randint(*WATCH_SECONDS)),
        )
        accept = _accept(_METADATA if metadata_only else JSON)
        response = await self._ask(
            "watch", resource, Request("GET", _collection(resource, scope.namespace), query, accept)
        )
        if response.stream is None:
            raise Unreachable(f"the watch of {resource} was answered without a stream; is this a Kubernetes API?")
        events = streams.events(resource, response.stream)
        try:
            yield events
        finally:
            await events.aclose()
            await streams.close(response.stream)

    # Writing.

    async def create(self, resource: Resource, manifest: Mapping[str, Any], *, dry_run: bool = False) -> Object:
        namespace = (manifest.get("metadata") or {}).get("namespace") or ""
        dry = "All" if dry_run else ""
        request = _write("POST", _collection(resource, namespace), _typed(resource, manifest), dryRun=dry)
        return _written(resource, await self._ask("create", resource, request))

    async def apply(
        self, resource: Resource, manifest: Mapping[str, Any], *, force: bool = True, subresource: str = ""
    ) -> Object:
        path = _path(resource, Key.of(manifest), subresource)
        request = _write(
            "PATCH", path, _typed(resource, manifest), type=PatchType.APPLY.value, force="true" if force else "false"
        )
        return _written(resource, await self._ask("apply", resource, request))

    async def patch(
        self,
        resource: Resource,
        key: Key,
        patch: Any,
        *,
        type: PatchType = PatchType.MERGE,
        subresource: str = "",
    ) -> Object:
        request = _write("PATCH", _path(resource, key, subresource), patch, type=type.value)
        return _written(resource, await self._ask("patch", resource, request))

    async def delete(
        self,
        resource: Resource,
        key: Key,
        *,
        uid: str = "",
        version: str = "",
        propagation: Propagation | None = None,
        grace_seconds: int | None = None,
    ) -> Object | None:
        preconditions = {"uid": uid or None, "resourceVersion": version or None}
        options = {
            "kind": "DeleteOptions",
            "apiVersion": "v1",
            "preconditions": _given(preconditions) or None,
            "propagationPolicy": propagation,
            "gracePeriodSeconds": grace_seconds,
        }
        headers = _accept(JSON) | {"content-type": JSON}
        request = Request("DELETE", _path(resource, key), {}, headers, encode(_given(options)))
        response = await self._ask("delete", resource, request)
        with _readable(resource):
            said = _answer.decode(response.body)
        if (said.kind, said.api_version) == ("Status", "v1"):
            return None
        left = Object(resource, response.body, said.metadata)
        return left if _lives_on(left, grace_seconds) else None

    async def post(self, resource: Resource, key: Key, subresource: str, body: Mapping[str, Any]) -> bytes:
        response = await self._ask("create", resource, _write("POST", _path(resource, key, subresource), body))
        return response.body

    async def raw(self, request: Request) -> Response:
        return await self._ask(request.method.lower(), None, request)

    # Sending.

    async def _ask(self, verb: str, resource: Resource | None, request: Request) -> Response:
        """The answer to a request that was not refused; waits and sends it again, where that is safe."""
        for attempt in itertools.count(1):
            try:
                return await self._send(verb, resource.group_resource if resource else "", request)
            except (StatusError, Unreachable) as error:
                spread = self._random.random()
                seconds = retries.wait(error, attempt, method=request.method, policy=self._policy, spread=spread)
                if seconds is None:
                    raise
            await self._sleep(seconds)
        raise AssertionError("counting does not end")

    async def _send(self, verb: str, resource: str, request: Request) -> Response:
        clock = asyncio.get_running_loop().time
        started = clock()
        try:
            response = await self._transport.send(request)
        except Unreachable:
            self._observe(verb, resource, 0, clock() - started)
            raise
        self._observe(verb, resource, response.status, clock() - started)
        if response.status < 300:
            return response
        raise await refusal(response)


def _unobserved(verb: str, resource: str, code: int, seconds: float) -> None:
    """Count nothing."""


async def refusal(response: Response) -> StatusError:
    """The error that an answer stands for, with the time to wait that its head asks for."""
    body = response.body
    if response.stream is not None:
        body = b"".join([chunk async for chunk in response.stream])
        await streams.close(response.stream)
    try:
        status = msgspec.json.decode(body, type=dict[str, Any])
    except msgspec.DecodeError:
        status = {"message": body[:300].decode(errors="replace").strip()}  # a proxy may answer for the server
    seconds = retries.retry_after(response.headers)
    details = status.get("details")
    if seconds and not (isinstance(details, dict) and details.get("retryAfterSeconds")):
        status["details"] = {**(details if isinstance(details, dict) else {}), "retryAfterSeconds": seconds}
    return from_status(status, response.status)


# Requests.


def _path(resource: Resource, key: Key, subresource: str = "") -> str:
    return resource.plain_path(key.namespace, key.name, subresource)


def _collection(resource: Resource, namespace: str) -> str:
    return resource.plain_path(namespace)


def _accept(types: str) -> dict[str, str]:
    return {"accept": types}


def _query(**parameters: str) -> Query:
    """Parameters that say something."""
    return {name: (value,) for name, value in parameters.items() if value}


def _selectors(scope: Scope) -> dict[str, str]:
    return {"labelSelector": scope.labels, "fieldSelector": scope.fields}


def _write(method: str, path: str, body: Any, *, type: str = JSON, **parameters: str) -> Request:
    query = _query(fieldManager=MANAGER, **parameters)
    return Request(method, path, query, _accept(JSON) | {"content-type": type}, encode(body))


def _typed(resource: Resource, manifest: Mapping[str, Any]) -> dict[str, Any]:
    """A manifest that says what it is, as a body must."""
    return {"apiVersion": resource.api_version, "kind": resource.kind, **manifest}


def _given(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}


# Answers.


def _object(resource: Resource, response: Response) -> Object:
    with _readable(resource):
        return Object(resource, response.body)


def _written(resource: Resource, response: Response) -> Object:
    """The object that a write left, of which mostly the metadata is read."""
    with _readable(resource):
        return Object(resource, response.body, _answer.decode(response.body).metadata)


@contextlib.contextmanager
def _readable(resource: Resource) -> Iterator[None]:
    """An answer that cannot be read is not from an API server, so what became of the request is unknown."""
    try:
        yield
    except msgspec.DecodeError as error:
        what = f"the answer about {resource} cannot be read ({error})"
        raise Unreachable(f"{what}; is there something between here and the API server?") from None


def _lives_on(left: Object, asked: int | None) -> bool:
    """Whether an object that a deletion shows is still there, where `asked` seconds of grace were asked for.

    Some kinds show what has just gone.  What stays is marked, and waits for finalizers, for its grace period, or,
    as a namespace without any, for what is in it.
    """
    grace = left.meta.deletion_grace_period_seconds
    return left.deleting and (bool(left.meta.finalizers) or grace is None or (grace > 0 and asked != 0))
