"""A cluster that is a dictionary, and a dashboard of it in a thread, for tests that need no operators."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator
from typing import Any, TypeVar

import msgspec

from holdfast.client.objects import Object
from holdfast.client.protocols import EVERYTHING, Added, Bookmark, Deleted, Event, Listing, Modified, Scope
from holdfast.client.resources import PODS, Resource
from holdfast.dashboard.server import Dashboard, kinds_of
from holdfast.dashboard.settings import Settings
from holdfast.dashboard.worlds import Worlds
from holdfast.kinds import cloudless
from holdfast.kinds.virtrigaud import machines, migrations
from holdfast.meta.errors import NotFound, Unauthorized
from holdfast.meta.exchange import Request, Response
from holdfast.meta.objects import Key
from holdfast.operators.operator import load

WORKLOADS = Resource.of(cloudless.KINDS[0])
MACHINES = Resource.of(machines.KIND)
MIGRATIONS = Resource.of(migrations.KIND)
SERVED = (WORKLOADS, MACHINES, MIGRATIONS, PODS)
TOKEN = "viewer"

T = TypeVar("T")


class Cluster:
    """Implements as much of a client as the dashboard uses to look on."""

    def __init__(self) -> None:
        self.objects: dict[tuple[Resource, Key], Object] = {}
        self.version = 1
        self.watchers: list[tuple[Resource, Scope, asyncio.Queue[Event | None]]] = []
        self.lists = 0
        self.away = False

    def put(self, resource: Resource, wire: dict[str, Any]) -> Object:
        self.version += 1
        meta = {
            "namespace": "default",
            "uid": f"uid-{wire['metadata']['name']}",
            "creationTimestamp": "2025-01-01T00:00:00Z",
        }
        meta |= wire["metadata"] | {"resourceVersion": str(self.version)}
        known_as = {"apiVersion": resource.api_version, "kind": resource.kind}
        obj = Object.of(resource, {**known_as, **wire, "metadata": meta})
        known = (resource, obj.key) in self.objects
        self.objects[resource, obj.key] = obj
        self._tell(resource, obj, Modified(obj) if known else Added(obj))
        return obj

    def delete(self, resource: Resource, name: str, namespace: str = "default") -> None:
        self.version += 1
        obj = self.objects.pop((resource, Key(namespace, name)))
        wire = obj.wire()
        wire["metadata"]["resourceVersion"] = str(self.version)
        self._tell(resource, obj, Deleted(Object.of(resource, wire)))

    def _tell(self, resource: Resource, obj: Object, event: Event) -> None:
        for watched, scope, queue in self.watchers:
            if watched == resource and _matches(scope, obj):
                queue.put_nowait(event)

    # What a client does.

    async def list(self, resource: Resource, scope: Scope = EVERYTHING, *, metadata_only: bool = False) -> Listing:
        self.lists += 1
        found = (obj for (kind, _), obj in self.objects.items() if kind == resource and _matches(scope, obj))
        return Listing(tuple(found), str(self.version))

    async def get(self, resource: Resource, key: Key) -> Object:
        found = self.objects.get((resource, key))
        if found is None:
            raise NotFound(f'{resource} "{key.name}" not found')
        return found

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
        queue: asyncio.Queue[Event | None] = asyncio.Queue()
        entry = (resource, scope, queue)
        self.watchers.append(entry)
        listed = await self.list(resource, scope) if initial else Listing((), "")

        async def events() -> AsyncIterator[Event]:
            for obj in listed.objects:
                yield Added(obj)
            if initial:
                yield Bookmark(listed.version, initial=True)
            while (event := await queue.get()) is not None:
                yield event

        try:
            yield events()
        finally:
            self.watchers.remove(entry)

    async def raw(self, request: Request) -> Response:
        if request.path == "/api":
            return Response.of(_discovery(each for each in SERVED if not each.group))
        if request.path == "/apis":
            return Response.of(_discovery(each for each in SERVED if each.group))
        if request.path.endswith("selfsubjectreviews"):
            return Response.of({"status": {"userInfo": {"username": "viewer@example.com"}}})
        raise NotFound(request.path)

    async def close(self) -> None:
        pass


def _matches(scope: Scope, obj: Object) -> bool:
    if scope.namespace and scope.namespace != obj.key.namespace:
        return False
    name = scope.fields.removeprefix("metadata.name=")
    return not scope.fields.startswith("metadata.name=") or name == obj.key.name


def _discovery(resources: Iterator[Resource]) -> dict[str, Any]:
    groups: dict[tuple[str, str], list[Resource]] = {}
    for each in resources:
        groups.setdefault((each.group, each.version), []).append(each)
    items = [
        {
            "metadata": {"name": group},
            "versions": [
                {
                    "version": version,
                    "resources": [
                        {
                            "resource": each.plural,
                            "responseKind": {"group": each.group, "version": each.version, "kind": each.kind},
                            "scope": "Namespaced",
                            "verbs": ["list", "watch"],
                        }
                        for each in found
                    ],
                }
            ],
        }
        for (group, version), found in groups.items()
    ]
    return {"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "items": items}


def workload(
    name: str, *, ready: int = 3, phase: str = "Completed", message: str = "", **metadata: Any
) -> dict[str, Any]:
    """A Workload with three replicas, of which so many are ready."""
    because = {"code": "Completed", "message": message or f"{ready} replicas available"}
    return {
        "metadata": {"name": name, "generation": 1, **metadata},
        "spec": {"image": "web:1", "replicas": 3},
        "status": {
            "observedGeneration": 1,
            "phase": phase,
            "readyReplicas": ready,
            "availableReplicas": ready,
            "updatedReplicas": 3,
            "limits": {"floor": 2, "maxLive": 4},
            "rollout": {"because": because, "lowestReady": min(2, ready), "startedAt": "2025-01-01T00:00:00Z"},
        },
    }


class Running:
    """A dashboard in a thread of its own."""

    def __init__(
        self, cluster: Cluster, *, changes: bool = False, hosts: tuple[str, ...] = (), links: bool = True
    ) -> None:
        self.cluster = cluster
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        settings = Settings(server="https://cluster.example.com", changes=changes, hosts=hosts, links=links)
        self.settings = settings
        self.port = self.wait(self._start, 0)

    async def _start(self, port: int) -> int:
        def client(token: str) -> Any:
            if token not in ("", TOKEN):
                raise Unauthorized("the token is not known")
            return self.cluster

        self.worlds = Worlds(client, kinds_of(load()))
        self.dashboard = Dashboard(self.worlds, self.settings)
        return (await self.dashboard.serve("127.0.0.1", port))[1]

    @property
    def base(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def link(self) -> str:
        return f"{self.base}/#link={self.dashboard.link()}"

    def wait(self, work: Callable[..., Any], *arguments: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(work(*arguments), self._loop).result(60)

    def do(self, act: Callable[[], T]) -> T:
        """Call a function in the thread of the dashboard."""

        async def called() -> T:
            return act()

        found: T = self.wait(called)
        return found

    def restart(self) -> None:
        """Stop, and start again at the same port; sessions are lost."""
        self.stop()
        self.wait(self._start, self.port)

    def stop(self) -> None:
        self.wait(self.dashboard.close)

    def close(self) -> None:
        self.stop()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()


def decoded(body: bytes) -> Any:
    return msgspec.json.decode(body)
