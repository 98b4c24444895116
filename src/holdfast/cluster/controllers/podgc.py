"""The garbage collector of pods: those whose node is gone, those that never had one, and too many that ended.

- A node that does not exist is given a while to come back, and the server is asked
  whether it is really gone; then its pods are marked Failed and deleted by force.
- A pod that is being deleted and was never scheduled has no node that could end it.
- Of pods that have ended, only so many are kept: those that were evicted are deleted
  first, then the oldest.

`failed` and `excess` are pure; `PodCollector` asks and acts.
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, ClassVar, Final, TypeAlias, assert_never

from holdfast.client.objects import Object
from holdfast.client.pods import Pod
from holdfast.client.protocols import PatchType
from holdfast.client.resources import NODES, PODS
from holdfast.kernel.outcomes import Done, Outcome, until
from holdfast.meta import times
from holdfast.meta.errors import NotFound
from holdfast.meta.objects import Key
from holdfast.runtime.controllers import Environment
from holdfast.runtime.work.keyed_work import KeyedWork

NAME: Final = "pod-garbage-collector"
WORKERS: Final = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class PodSettings:
    """
    quarantine  how long a node may be missing before its pods are deleted
    kept        how many pods that have ended are kept
    """

    quarantine: timedelta = timedelta(seconds=40)
    kept: int = 12_500


# --- pure


def failed(now: datetime, *, orphaned: bool) -> dict[str, Any]:
    """The patch that ends a pod which no node will end; of an orphan its owner is to know that it did not fail."""
    status: dict[str, Any] = {"phase": "Failed"}
    if orphaned:
        disrupted = {
            "type": "DisruptionTarget",
            "status": "True",
            "reason": "DeletionByPodGC",
            "message": "PodGC: node no longer exists",
            "lastTransitionTime": times.format(now),
        }
        status["conditions"] = [disrupted]
    return {"status": status}


@dataclass(frozen=True, slots=True, order=True)
class Ended:
    """A pod that has ended, in the order of deletion."""

    stays: bool
    """Whether it ended by itself; those that were evicted go first."""
    created: str
    key: Key
    uid: str

    @classmethod
    def of(cls, pod: Pod) -> Ended:
        meta = pod.metadata
        evicted = pod.status.phase == "Failed" and pod.status.reason == "Evicted"
        return cls(not evicted, meta.creation_timestamp or "", Key(meta.namespace, meta.name), meta.uid)


def excess(ended: Mapping[Key, Ended], kept: int) -> list[Ended]:
    """Those to delete, so that no more than `kept` are left."""
    return heapq.nsmallest(max(len(ended) - kept, 0), ended.values())


# --- the component


@dataclass(frozen=True, slots=True)
class MissingNode:
    """Delete the pods of a node that may be gone."""

    name: str


@dataclass(frozen=True, slots=True)
class Unscheduled:
    """Delete a pod that is being deleted and has no node."""

    key: Key


@dataclass(frozen=True, slots=True)
class Excess:
    """Delete the ended pods above the limit."""


Task: TypeAlias = MissingNode | Unscheduled | Excess


@dataclass(frozen=True, slots=True)
class PodCollector:
    """A `Component`."""

    settings: PodSettings = field(default_factory=PodSettings)
    name: ClassVar = NAME
    reads: ClassVar = (PODS, NODES)

    async def run(self, environment: Environment) -> None:
        await _Collection(environment, self.settings).run()


class _Collection:
    """One run of the collector."""

    def __init__(self, environment: Environment, settings: PodSettings) -> None:
        self._stores = environment.stores
        self._client = environment.client
        self._now = environment.now
        self._settings = settings
        self._work: KeyedWork[Task] = KeyedWork(NAME, self._do, workers=WORKERS)
        self._placed: dict[str, dict[Key, None]] = {}
        """The pods of each node."""
        self._missed: dict[str, datetime] = {}
        """Since when nodes of pods are missing."""
        self._ended: dict[Key, Ended] = {}

    async def run(self) -> None:
        unsubscribe = (
            self._stores.subscribe(NODES, self._node_changed),
            self._stores.subscribe(PODS, self._pod_changed),
        )
        try:
            await self._stores.synced(NODES, PODS)
            for name in self._placed:
                self._miss(name)
            await self._work.run()
        finally:
            for stop in unsubscribe:
                stop()

    # --- what changes

    def _node_changed(self, old: Object | None, new: Object | None) -> None:
        if new is not None:
            self._missed.pop(new.meta.name, None)
        elif old is not None:
            self._miss(old.meta.name)

    def _pod_changed(self, old: Object | None, new: Object | None) -> None:
        if old is not None:
            self._forget(Pod.of(old), old.key)
        if new is None:
            return
        pod = Pod.of(new)
        node = pod.spec.node_name
        if node:
            self._placed.setdefault(node, {})[new.key] = None
            self._miss(node)
        elif pod.deleting:
            self._work.add(Unscheduled(new.key))
        if pod.finished and not pod.deleting:
            self._ended[new.key] = Ended.of(pod)
            if len(self._ended) > self._settings.kept:
                self._work.add(Excess())

    def _forget(self, pod: Pod, key: Key) -> None:
        self._ended.pop(key, None)
        placed = self._placed.get(pod.spec.node_name)
        if placed is not None:
            placed.pop(key, None)
            if not placed:
                del self._placed[pod.spec.node_name]

    def _miss(self, node: str) -> None:
        if node in self._placed and node not in self._missed and self._stores.get(NODES, Key("", node)) is None:
            self._missed[node] = self._now()
            self._work.add(MissingNode(node))

    # --- what is done

    async def _do(self, task: Task) -> Outcome:
        match task:
            case MissingNode(name=name):
                return await self._orphans(name)
            case Unscheduled(key=key):
                await self._end(key, orphaned=False)
            case Excess():
                for each in excess(self._ended, self._settings.kept):
                    await self._delete(each.key, each.uid)
            case never:
                assert_never(never)
        return Done()

    async def _orphans(self, name: str) -> Outcome:
        since = self._missed.get(name)
        if since is None:
            return Done()
        over, now = since + self._settings.quarantine, self._now()
        if now < over:
            return until(over, now=now, because=f"the node {name} may come back until then")
        try:
            await self._client.get(NODES, Key("", name))
        except NotFound:
            for key in tuple(self._placed.get(name, ())):
                await self._end(key, orphaned=True)
        self._missed.pop(name, None)
        return Done()

    async def _end(self, key: Key, *, orphaned: bool) -> None:
        obj = self._stores.get(PODS, key)
        if obj is None:
            return
        try:
            if not Pod.of(obj).finished:
                patch = failed(self._now(), orphaned=orphaned) | {"metadata": {"uid": obj.uid}}
                await self._client.patch(PODS, key, patch, type=PatchType.STRATEGIC, subresource="status")
        except NotFound:
            return
        await self._delete(key, obj.uid)

    async def _delete(self, key: Key, uid: str) -> None:
        try:
            await self._client.delete(PODS, key, uid=uid, grace_seconds=0)
        except NotFound:
            return
