"""What can be asked of an API: to read, to write, to watch.

Three protocols and not one, so that a signature says what its function may do.
Whatever carries the requests (a socket, or a call in the same process) stands
behind them; failures are the `StatusError` types of `meta.errors`, and
`Unreachable` where no answer came at all.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from enum import Enum
from typing import Any, Literal, Protocol, TypeAlias

import msgspec

from holdfast.client.objects import Object
from holdfast.client.resources import Resource
from holdfast.meta.exchange import Request, Response
from holdfast.meta.objects import Key

MANAGER = "holdfast"
"""The field manager under which everything is written."""


class Unreachable(Exception):
    """No answer came: the server is away, or the connection broke.  A write may have been done or not."""


class Unsent(Unreachable):
    """No connection came about, so the request never left: a write surely did nothing."""


class Untrusted(Unsent):
    """The two ends do not trust each other's certificates, which no second attempt will change."""


class PatchType(Enum):
    """How a patch is to be read."""

    MERGE = "application/merge-patch+json"
    JSON = "application/json-patch+json"
    STRATEGIC = "application/strategic-merge-patch+json"
    APPLY = "application/apply-patch+yaml"


Propagation = Literal["Background", "Foreground", "Orphan"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """Which objects of a resource are meant: all, or those of a namespace, or those that selectors match."""

    namespace: str = ""
    labels: str = ""
    fields: str = ""


EVERYTHING = Scope()


@dataclass(frozen=True, slots=True)
class Listing:
    """The objects there were at one version."""

    objects: tuple[Object, ...]
    version: str


class Added(msgspec.Struct, frozen=True):
    """The object exists, and did not before; or the watch begins with it."""

    object: Object


class Modified(msgspec.Struct, frozen=True):
    object: Object


class Deleted(msgspec.Struct, frozen=True):
    """The object is gone, or no longer in scope; it is shown as it was last, with the version at which it went."""

    object: Object


class Bookmark(msgspec.Struct, frozen=True):
    """Everything up to this version has been sent; `initial` ends what a streaming list began with."""

    version: str
    initial: bool = False


Event: TypeAlias = Added | Modified | Deleted | Bookmark
"""What a watch yields.  An error event raises the `StatusError` that it carries."""


class Reader(Protocol):
    async def get(self, resource: Resource, key: Key) -> Object:
        """One object; raises `NotFound`."""
        ...

    async def list(self, resource: Resource, scope: Scope = EVERYTHING, *, metadata_only: bool = False) -> Listing:
        """All objects in scope, paged behind the scenes, at one version."""
        ...


class Watcher(Protocol):
    def watch(
        self,
        resource: Resource,
        scope: Scope = EVERYTHING,
        *,
        since: str = "",
        initial: bool = False,
        metadata_only: bool = False,
    ) -> AbstractAsyncContextManager[AsyncIterator[Event]]:
        """Changes after version `since`, until the server ends the stream, which is no error.

        `initial` asks for a streaming list: the objects there are as `Added`, then a `Bookmark` that says so.
        """
        ...


class Writer(Protocol):
    async def create(self, resource: Resource, manifest: Mapping[str, Any], *, dry_run: bool = False) -> Object:
        """Raises `AlreadyExists`; the namespace is the manifest's.  A dry run checks everything and stores nothing."""
        ...

    async def apply(
        self, resource: Resource, manifest: Mapping[str, Any], *, force: bool = True, subresource: str = ""
    ) -> Object:
        """Server-side apply under `MANAGER`; a ``metadata.uid`` in the manifest is a precondition."""
        ...

    async def patch(
        self,
        resource: Resource,
        key: Key,
        patch: Any,
        *,
        type: PatchType = PatchType.MERGE,
        subresource: str = "",
    ) -> Object:
        """A ``metadata.resourceVersion`` in a merge patch is a precondition, and so is a ``metadata.uid``."""
        ...

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
        """Raises `NotFound`; the object if it lives on for its grace or finalizers, None if it is gone."""
        ...

    async def post(self, resource: Resource, key: Key, subresource: str, body: Mapping[str, Any]) -> bytes:
        """Ask for a subresource that is created, such as ``eviction`` or ``binding``; its answer as it came."""
        ...


class Transport(Protocol):
    """Carries one request; raises `Unreachable` where no answer comes.  It knows nothing of what is asked."""

    async def send(self, request: Request) -> Response: ...

    async def close(self) -> None: ...


class Client(Reader, Writer, Watcher, Protocol):
    """All three at once, for composition roots."""

    async def raw(self, request: Request) -> Response:
        """Any request as it is: discovery, logs; refusals raise as everywhere."""
        ...

    async def close(self) -> None: ...
