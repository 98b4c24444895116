"""Worlds: what one identity sees of a cluster, shared by all its viewers.

All viewers of one identity share one watch for each kind, and one for each object whose
page is open.  A world without viewers is closed after a while.  This module must not know
how identities are proven, nor how anything travels to viewers.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable
from random import Random
from typing import Any, Final

import msgspec

from holdfast.client.discovery import discover
from holdfast.client.protocols import Client, Unreachable
from holdfast.client.resources import PODS
from holdfast.dashboard.boards import Board
from holdfast.dashboard.following import POD, Following, follow
from holdfast.meta.errors import NotFound, StatusError
from holdfast.meta.exchange import JSON, Request
from holdfast.meta.objects import Key
from holdfast.operators.rollouts import RolloutKind
from holdfast.operators.shown import ShownKind
from holdfast.runtime.caching.caches import Caches

IDLE_SECONDS: Final = 120.0
"""How long a world without viewers is kept."""

PAGE_SECONDS: Final = 10.0
"""How long a page without viewers is kept: a viewer that reloads it finds it there."""

MOST_TROUBLES: Final = 3
"""How many kinds that cannot be watched are named."""

FIRST_SECONDS: Final = 0.5
"""How long to wait for the first list of each kind; rows that come later are changes."""


class World:
    """What one identity sees."""

    def __init__(self, client: Client, kinds: Iterable[ShownKind], *, namespaces: Iterable[str] = ()) -> None:
        self.client = client
        self._known = {each.name: each for each in kinds}
        self._caches = Caches(client, random=Random().random, namespaces=namespaces)
        self.board = Board(self._caches.subscribe)
        self._tasks: set[asyncio.Task[None]] = set()
        self._pages: dict[str, _Shared] = {}
        self._started: asyncio.Task[None] | None = None
        self.viewers = 0

    async def ready(self) -> None:
        """Return when every kind that the server has was listed once; raises what the server says instead."""
        if self._started is None or (self._started.done() and self._started.exception() is not None):
            self._started = asyncio.ensure_future(self._start())
        await asyncio.shield(self._started)
        await self._look_for_kinds()

    async def _start(self) -> None:
        await self._look_for_kinds()
        self._spawn(self._caches.run())
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(FIRST_SECONDS):
                await self._caches.synced()

    async def _look_for_kinds(self) -> None:
        """Follow the kinds that the server has by now."""
        missing = [each for each in self._known.values() if each.resource not in self.board.kinds]
        if not missing:
            return
        served = {each.resource.gvk for each in (await discover(self.client)).served}
        self.board.follow(each for each in missing if each.resource.gvk in served)

    def kind(self, name: str) -> ShownKind | None:
        """The kind of a page."""
        return POD if name == PODS.group_resource else self._known.get(name)

    @property
    def loading(self) -> bool:
        """Whether some kind was not listed yet, and may still be."""
        troubled = self._caches.trouble()
        return any(each not in troubled for each in self._caches.unseen())

    @property
    def trouble(self) -> str:
        """Why rows may be outdated or missing; empty while they are not."""
        if self._caches.is_disconnected:
            return "the API server does not answer; what is shown may be outdated"
        found = self._caches.trouble()
        named = [f"cannot watch {resource}: {why}" for resource, why in found.items()]
        if len(named) <= MOST_TROUBLES:
            return "; ".join(named)
        hint = "sign in with a namespace if you may see only that"
        return f"{named[0]}; and {len(named) - 1} more kinds; {hint}"

    @contextlib.asynccontextmanager
    async def page(self, kind: ShownKind, key: Key) -> AsyncIterator[Following]:
        """Follow an object until the block ends; raises `NotFound`."""
        name = f"{kind.name}/{key}"
        shared = self._pages.get(name)
        if shared is None or shared.task.done() or shared.is_gone:
            shared = _Shared(*await follow(self.client, self.board, kind, key, spawn=self._spawn))
            self._pages[name] = shared
        shared.viewers += 1
        try:
            yield shared.following
        finally:
            shared.viewers -= 1
            if not shared.viewers:
                asyncio.get_running_loop().call_later(PAGE_SECONDS, self._release, name, shared)

    def _release(self, name: str, shared: _Shared) -> None:
        if not shared.viewers:
            shared.task.cancel()
            if self._pages.get(name) is shared:
                del self._pages[name]

    def _spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def close(self) -> None:
        if self._started is not None:
            self._started.cancel()
        for task in tuple(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self.board.close()
        await self.client.close()


class _Shared:
    """A page, and how many look at it."""

    def __init__(self, following: Following, task: asyncio.Task[None]) -> None:
        self.following = following
        self.task = task
        self.viewers = 0

    @property
    def is_gone(self) -> bool:
        """Whether the object was deleted; another one of its name may exist by now."""
        return "gone" in self.following.sections


class Worlds:
    """The worlds of all identities that look on now.

    client  a client for an identity: the token of a viewer, or an empty one for the user of the kubeconfig
    """

    def __init__(
        self, client: Callable[[str], Client], kinds: Iterable[ShownKind], *, namespaces: Iterable[str] = ()
    ) -> None:
        self._client = client
        self._kinds = tuple(kinds)
        self._namespaces = tuple(namespaces)
        self._worlds: dict[tuple[str, str], World] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def kinds(self) -> tuple[ShownKind, ...]:
        return self._kinds

    @property
    def rollouts(self) -> tuple[RolloutKind, ...]:
        """The kinds among them that roll out."""
        return tuple(each.rollout for each in self._kinds if each.rollout is not None)

    @contextlib.asynccontextmanager
    async def of(self, token: str, namespace: str = "") -> AsyncIterator[World]:
        """The world of an identity, perhaps in one namespace alone, until the block ends."""
        place = (token, namespace)
        world = self._worlds.get(place)
        if world is None:
            namespaces = (namespace,) if namespace else self._namespaces
            world = self._worlds[place] = World(self._client(token), self._kinds, namespaces=namespaces)
        world.viewers += 1
        try:
            await world.ready()
            yield world
        finally:
            world.viewers -= 1
            if not world.viewers:
                asyncio.get_running_loop().call_later(IDLE_SECONDS, self._release, place, world)

    def prepare(self, token: str, namespace: str = "") -> None:
        """Begin to look on for a viewer who signs in, and whose page asks for rows next."""

        async def visit() -> None:
            with contextlib.suppress(StatusError, Unreachable):  # the viewer is answered so
                async with self.of(token, namespace):
                    pass

        self._spawn(visit())

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def watch(self) -> None:
        """Keep the world of the user of the kubeconfig, until cancelled."""
        async with self.of(""):
            await asyncio.get_running_loop().create_future()

    async def user(self, token: str) -> str:
        """The name of the user whom the server sees; raises `StatusError` or `Unreachable`."""
        client = self._client(token)
        try:
            body = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
            path, headers = "/apis/authentication.k8s.io/v1/selfsubjectreviews", {"accept": JSON, "content-type": JSON}
            try:
                answer = await client.raw(Request("POST", path, {}, headers, msgspec.json.encode(body)))
            except NotFound:
                return ""  # servers before Kubernetes 1.28
            return msgspec.json.decode(answer.body, type=_Review).status.user_info.username
        finally:
            await client.close()

    def _release(self, place: tuple[str, str], world: World) -> None:
        if not world.viewers and self._worlds.get(place) is world:
            del self._worlds[place]
            self._spawn(world.close())

    async def close(self) -> None:
        worlds, self._worlds = self._worlds, {}
        for world in worlds.values():
            await world.close()
        await asyncio.gather(*self._tasks, return_exceptions=True)


class _User(msgspec.Struct, frozen=True):
    username: str = ""


class _ReviewStatus(msgspec.Struct, frozen=True, rename="camel"):
    user_info: _User = _User()


class _Review(msgspec.Struct):
    status: _ReviewStatus = _ReviewStatus()
