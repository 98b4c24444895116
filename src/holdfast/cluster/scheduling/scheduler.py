"""The scheduler of the embedded cluster: binds pods to nodes, and reports why a pod is unschedulable.

It serves pods that ask for Kubernetes' own scheduler and those that ask for one of
the gang schedulers of inference stacks, since there is no other here; a scheduler
of the user can serve the rest.  There is no preemption.

A binding is one write, and many are on their way together.  That a pod was bound is
its condition ``PodScheduled``; there is no Event for it, since it would double the
writes.  What is decided, and in what order, is in `backlog`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, assert_never

from holdfast.client.objects import Object
from holdfast.client.pods import Pod
from holdfast.client.protocols import PatchType, Unreachable
from holdfast.client.resources import DEFINITIONS, NAMESPACES, NODES, PODS, Resource
from holdfast.cluster.scheduling.backlog import UNSCHEDULABLE, Backlog, Bind, Refuse, Step
from holdfast.cluster.scheduling.gangs import POD_GANGS
from holdfast.cluster.scheduling.needs import DEFAULT_SCHEDULER, Claim
from holdfast.cluster.scheduling.occupancy import Cluster, Node
from holdfast.meta import times
from holdfast.meta.errors import StatusError
from holdfast.meta.objects import Key
from holdfast.runtime.controllers import Environment
from holdfast.runtime.decisions import Notice
from holdfast.runtime.metrics import Metrics
from holdfast.runtime.passes.events import Events

_log: Final = logging.getLogger("holdfast.cluster.scheduler")

SERVED: Final = frozenset({DEFAULT_SCHEDULER, "kai-scheduler", "lpx-scheduler", "volcano", "grove-scheduler"})
"""The names of schedulers whose pods are served."""

_AT_ONCE: Final = 128
"""Units that are tried before other tasks get a turn, and writes that are under way together."""


@dataclass(frozen=True, slots=True)
class Scheduler:
    """A component; `serves` are the values of ``schedulerName`` that it answers to."""

    serves: frozenset[str] = SERVED
    name: str = "scheduler"

    @property
    def reads(self) -> tuple[Resource, ...]:
        return (PODS, NODES, NAMESPACES)

    async def run(self, environment: Environment) -> None:
        backlog = Backlog(Cluster(), self.serves)
        changed = asyncio.Event()
        unsubscribe = _follow(environment, backlog, changed)
        try:
            await environment.stores.synced(*self.reads, DEFINITIONS)
            await _Loop(environment, backlog, changed).run()
        finally:
            unsubscribe()


def _follow(environment: Environment, backlog: Backlog, changed: asyncio.Event) -> Callable[[], None]:
    """Keep the backlog up to date with every change; returns a function that ends this."""
    stores, cluster = environment.stores, backlog.cluster
    stops: dict[Resource, Callable[[], None]] = {}

    def calling(see: Callable[[Key, Object | None], None]) -> Callable[[Object | None, Object | None], None]:
        def change(old: Object | None, new: Object | None) -> None:
            seen = new or old
            assert seen is not None, "a change is of something"
            see(seen.key, new)
            changed.set()

        return change

    def see_node(key: Key, node: Object | None) -> None:
        if node is None or node.deleting:
            cluster.drop_node(key.name)
        else:
            cluster.put_node(Node.of(node))

    def see_namespace(key: Key, namespace: Object | None) -> None:
        cluster.put_namespace(key.name, None if namespace is None else namespace.meta.labels)

    def see_definition(key: Key, definition: Object | None) -> None:
        """Gangs are followed while their definition exists."""
        if key.name != POD_GANGS.group_resource:
            return
        exists = definition is not None and not definition.deleting
        if exists and POD_GANGS not in stops:
            stops[POD_GANGS] = stores.subscribe(POD_GANGS, calling(backlog.see_gang))
        elif not exists and POD_GANGS in stops:
            stops.pop(POD_GANGS)()
        backlog.see_gangs_exist(exists)

    # Definitions first: whether a pod belongs to a gang is to be known when it is seen.
    stops[DEFINITIONS] = stores.subscribe(DEFINITIONS, calling(see_definition), metadata_only=True)
    stops[NAMESPACES] = stores.subscribe(NAMESPACES, calling(see_namespace))
    stops[NODES] = stores.subscribe(NODES, calling(see_node))
    stops[PODS] = stores.subscribe(PODS, calling(backlog.see_pod))

    def stop() -> None:
        for unsubscribe in stops.values():
            unsubscribe()

    return stop


class _Loop:
    """Takes from the backlog and writes."""

    def __init__(self, environment: Environment, backlog: Backlog, changed: asyncio.Event) -> None:
        self._client = environment.client
        self._now = environment.now
        self._backlog = backlog
        self._changed = changed
        self._free = asyncio.Semaphore(_AT_ONCE)
        self._events = Events(environment.client, DEFAULT_SCHEDULER, now=environment.now, metrics=Metrics())

    async def run(self) -> None:
        async with asyncio.TaskGroup() as writes:
            while True:
                self._changed.clear()
                steps = self._backlog.take(self._now(), most=_AT_ONCE)
                for step in steps:
                    await self._free.acquire()
                    writes.create_task(self._carry_out(step))
                if self._backlog.idle:
                    await self._until_changed()
                else:
                    await asyncio.sleep(0)

    async def _until_changed(self) -> None:
        due = self._backlog.due()
        wait = None if due is None else max(0.0, (due - self._now()).total_seconds())
        try:
            async with asyncio.timeout(wait):
                await self._changed.wait()
        except TimeoutError:
            pass  # A unit is due again.

    async def _carry_out(self, step: Step) -> None:
        try:
            match step:
                case Bind(claim=claim, node=node):
                    await self._bind(claim, node)
                case Refuse():
                    await self._refuse(step)
                case _:
                    assert_never(step)
        finally:
            self._free.release()

    async def _bind(self, claim: Claim, node: str) -> None:
        try:
            await self._client.post(PODS, claim.key, "binding", binding(claim, node))
        except (StatusError, Unreachable) as error:
            # It is bound or gone, which we shall see; or it is tried again.
            _log.info("binding failed", extra={"fields": {"pod": str(claim.key), "node": node, "error": str(error)}})
            self._backlog.failed(claim, self._now())
            self._changed.set()

    async def _refuse(self, refusal: Refuse) -> None:
        pod = refusal.pod
        patch = unscheduled(refusal, self._now())
        try:
            await self._client.patch(PODS, pod.key, patch, type=PatchType.STRATEGIC, subresource="status")
        except (StatusError, Unreachable) as error:
            _log.info("condition not written", extra={"fields": {"pod": str(pod.key), "error": str(error)}})
            self._backlog.not_reported(refusal, self._now())
            self._changed.set()
            return
        if refusal.reason == UNSCHEDULABLE:
            notice = Notice(type="Warning", reason="FailedScheduling", message=refusal.message)
            await self._events.emit(pod, (notice,))


def binding(claim: Claim, node: str) -> dict[str, Any]:
    """What is posted to bind a pod; its UID keeps another of its name from being bound."""
    return {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"name": claim.key.name, "namespace": claim.namespace, "uid": claim.uid},
        "target": {"apiVersion": "v1", "kind": "Node", "name": node},
    }


def unscheduled(refusal: Refuse, now: datetime) -> dict[str, Any]:
    """The patch by which a pod says why it waits; it has waited since it said so first."""
    condition = {"type": "PodScheduled", "status": "False", "reason": refusal.reason, "message": refusal.message}
    before = Pod.of(refusal.pod).condition("PodScheduled")
    if before is None or before.status != "False":
        condition["lastTransitionTime"] = times.format(now)
    return {"metadata": {"uid": refusal.pod.uid}, "status": {"conditions": [condition]}}
