"""Stores: what an object costs to keep, and what a change costs among few and among many."""

from __future__ import annotations

import gc
import os
import random
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from typing import Any, Final

import msgspec

from benchmarks import processes
from benchmarks.kernel import POD_TEMPLATE
from benchmarks.sizes import sized
from benchmarks.tables import Line, show
from holdfast.client.objects import Object
from holdfast.client.resources import PODS
from holdfast.cluster.nodes.evictions import BY_NODE
from holdfast.runtime.caching.stores import Store, Writer

FEW: Final = sized(100, 10)
MANY: Final = sized(100_000, 200)
CHANGES: Final = sized(5_000, 50)

_UID: Final = "01234567-89ab-cdef-0123-456789{:06x}"


@dataclass(frozen=True, slots=True)
class Figures:
    """Of a store with a number of pods."""

    wire_bytes: float
    kept_bytes: float
    change_seconds: float
    """For one change, from the bytes that came to the end of whoever was told."""


LINES: Final[Sequence[Line[Figures]]] = (
    Line("a pod on the wire", "KB", lambda it: it.wire_bytes / 1e3),
    Line("a pod in the store, with its share of indexes", "KB", lambda it: it.kept_bytes / 1e3, "<= 12 KB"),
    Line("one change", "µs", lambda it: it.change_seconds * 1e6, "~ 1x"),
)


def report() -> None:
    # A process for each, so that none finds memory that another has left.
    with ProcessPoolExecutor(1, mp_context=get_context("spawn"), max_tasks_per_child=1) as pool:
        many, few = pool.map(measured, (MANY, FEW))
    show("stores of pods", LINES, {f"{MANY:,} pods": many, f"{FEW:,} pods": few})


def measured(number: int) -> Figures:
    store = Store(PODS, indexes=(BY_NODE,))
    writer = Writer(store)
    before = processes.usage(os.getpid()).memory_bytes
    for n in range(number):
        writer.put(Object(PODS, _pod(n, version=n)))
    gc.collect()
    grown = processes.usage(os.getpid()).memory_bytes - before
    # Of a few, nothing can be said: memory grows in steps that are larger than all of them.
    kept = grown / number if number > CHANGES else 0.0
    return Figures(len(_pod(0, version=0)), kept, _change(store, writer, number))


def _change(store: Store, writer: Writer, number: int) -> float:
    told: list[str] = []
    store.subscribe(lambda old, new: told.append(new.version if new else ""))
    chosen = random.Random(1)
    changes = [_pod(chosen.randrange(number), version=number + n) for n in range(CHANGES)]
    begin = time.perf_counter()
    for raw in changes:
        writer.put(Object(PODS, raw))
    return (time.perf_counter() - begin) / CHANGES


def _pod(number: int, *, version: int) -> bytes:
    """A pod of four kilobytes, as a server sends it."""
    name, app = f"web-{number // 50}-{number:07}", f"app-{number // 50}"
    spec = {**POD_TEMPLATE["spec"], "nodeName": f"node-{number % 1_000}", "serviceAccountName": "default"}
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": app, "uid": _UID.format(number // 50)}
    stamp = "2030-01-01T00:00:00Z"
    pod: dict[str, Any] = {
        "metadata": {
            "name": name,
            "namespace": f"team-{number // 5_000}",
            "uid": _UID.format(number),
            "resourceVersion": str(version + 1),
            "creationTimestamp": stamp,
            "labels": {"app": app, "tier": "backend", "pod-template-hash": f"{number // 50:010x}"},
            "ownerReferences": [{**owner, "controller": True, "blockOwnerDeletion": True}],
        },
        "spec": spec,
        "status": {
            "phase": "Running",
            "podIP": f"10.0.{number // 250 % 250}.{number % 250}",
            "startTime": stamp,
            "conditions": [
                {"type": type, "status": "True", "lastTransitionTime": stamp}
                for type in ("PodScheduled", "Initialized", "ContainersReady", "Ready")
            ],
            "containerStatuses": [
                {"name": each["name"], "ready": True, "restartCount": 0, "state": {"running": {"startedAt": stamp}}}
                for each in spec["containers"]
            ],
        },
    }
    return msgspec.json.encode(pod)
