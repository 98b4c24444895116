"""From the failure of a pod to its replacement: server, controllers and the pods' node are processes of their own.

The time runs from before the node reports the failure until somebody who watches sees the new pod, so it holds two
writes and two events, each over TLS and kept on disk.
"""

from __future__ import annotations

import asyncio
import statistics
import time
from collections.abc import AsyncIterator, Sequence
from typing import Any, Final

from benchmarks import clusters
from benchmarks.sizes import sized
from benchmarks.tables import Line, show
from holdfast.client.protocols import Added, Client, Event, Scope
from holdfast.client.resources import PODS, REPLICA_SETS

PODS_KEPT: Final = sized(20, 3)
FAILURES: Final = sized(200, 5)
PATIENCE_SECONDS: Final = 30.0

_LABELS: Final = {"app": "replaced"}
_REPLICA_SET: Final[dict[str, Any]] = {
    "metadata": {"name": "replaced", "namespace": "default"},
    "spec": {
        "replicas": PODS_KEPT,
        "selector": {"matchLabels": _LABELS},
        "template": {
            "metadata": {"labels": _LABELS},
            "spec": {"containers": [{"name": "main", "image": "registry.example.com/team/server:v1"}]},
        },
    },
}

LINES: Final[Sequence[Line[Sequence[float]]]] = (
    Line("p50", "ms", lambda it: statistics.median(it) * 1_000),
    Line("p99", "ms", lambda it: statistics.quantiles(it, n=100)[98] * 1_000, "< 100 ms"),
)


def report() -> None:
    show("failure of a pod until its replacement", LINES, {"holdfast": asyncio.run(measured())})


async def measured() -> list[float]:
    """Seconds of each failure, one after the other."""
    async with clusters.ours() as cluster, asyncio.timeout(PATIENCE_SECONDS):
        client = cluster.client
        since = (await client.list(PODS)).version
        with cluster.start("deployments"):
            await client.create(REPLICA_SETS, _REPLICA_SET)
            async with client.watch(PODS, Scope(namespace="default"), since=since) as events:
                living = [await _new(events) for _ in range(PODS_KEPT)]
                return [await _replaced(client, events, living) for _ in range(FAILURES)]


async def _replaced(client: Client, events: AsyncIterator[Event], living: list[Added]) -> float:
    key = living.pop(0).object.key
    begin = time.perf_counter()
    await client.patch(PODS, key, {"status": {"phase": "Failed"}}, subresource="status")
    living.append(await _new(events))
    return time.perf_counter() - begin


async def _new(events: AsyncIterator[Event]) -> Added:
    async for event in events:
        if isinstance(event, Added):
            return event
    raise RuntimeError("the watch ended before the pod came")
