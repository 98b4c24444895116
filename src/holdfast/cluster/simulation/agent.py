"""Simulated nodes' pods: they get addresses, start, become ready, crash and end, and nothing runs.

One controller over pods that are bound to simulated nodes.  Everything follows from
the pod, its last status, the faults there are and the time, so a restart changes
nothing but the fraction of the second in which a deletion was asked for.  A pod takes
one write to be Running and Ready, or two if it is probed or asks for a time of its own.
Pods of the process runtime are left to it.

How pods behave is in `behaviours`, what they go through in `lifetimes`, what they
report in `status`; the nodes themselves are in `nodes`.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import lru_cache, partial
from typing import Any, Final

import msgspec

from holdfast.client.objects import Object
from holdfast.client.pods import FINISHED
from holdfast.client.resources import CONFIG_MAPS, NODES, PODS
from holdfast.cluster import start_orders
from holdfast.cluster.nodes.evictions import BY_NODE
from holdfast.cluster.simulation import chaos
from holdfast.cluster.simulation.behaviours import Behaviour, Defaults, behaviour
from holdfast.cluster.simulation.chaos import NodeFault, PodFault, Slow
from holdfast.cluster.simulation.lifetimes import Life, live
from holdfast.cluster.simulation.pods import Container, Idle, Live, Over, Pod, reported
from holdfast.cluster.simulation.status import Host, backing_off, phase, says, status
from holdfast.kernel.outcomes import Done, Outcome, until
from holdfast.meta import times
from holdfast.meta.objects import Key
from holdfast.runtime.controllers import Controller, View, Watch
from holdfast.runtime.decisions import NOTHING, Decision, Delete, Notice

NODE_LABEL: Final = "sim.holdfast.dev/node"
"""The label of nodes whose pods are simulated."""

_PROCESS: Final = "process"
"""The runtime class of pods that run for real."""

_TERMINATED: Final = 143
_REMEMBERED: Final = 10_000
"""How many deletions are remembered."""

_WORTH_REPORTING: Final = timedelta(seconds=1)
"""A pod that takes longer to end says meanwhile that it is not ready."""


@dataclass(frozen=True, slots=True)
class World:
    """A pod, its node, and the faults that concern it."""

    object: Object
    pod: Pod
    host: Host
    faults: tuple[PodFault, ...] = ()
    outages: tuple[NodeFault, ...] = ()
    held: bool = False
    """It starts after others, and they are not ready."""


# --- observe


def observe(view: View, key: Key) -> World | None:
    obj = view.get(PODS, key)
    pod = None if obj is None else obj.decode(Pod)
    if obj is None or pod is None or not pod.spec.node_name or pod.spec.runtime_class_name == _PROCESS:
        return None
    node = view.get(NODES, Key("", pod.spec.node_name))
    if node is None or NODE_LABEL not in node.meta.labels:
        return None
    faults = chaos.faults_in(view.get(CONFIG_MAPS, chaos.PLACE))
    host, held = _host(node.meta.name, node.raw), start_orders.is_held(view, obj)
    return World(obj, pod, host, faults.on(pod.metadata), faults.of(node.meta.name), held)


class _NodeStatus(msgspec.Struct, frozen=True):
    addresses: tuple[dict[str, str], ...] = ()


class _Node(msgspec.Struct, frozen=True):
    status: _NodeStatus = _NodeStatus()


@lru_cache(maxsize=1024)
def _host(name: str, raw: bytes) -> Host:
    addresses = msgspec.json.decode(raw, type=_Node).status.addresses
    return Host(name, next((each["address"] for each in addresses if each["type"] == "InternalIP"), ""))


def _pods_on(node: Object, view: View) -> Iterable[Key]:
    """A node that appears, or has another address, concerns its pods; its heartbeats are elsewhere."""
    return (pod.key for pod in view.indexed(PODS, BY_NODE.name, node.meta.name))


def _all_pods(config_map: Object, view: View) -> Iterable[Key]:
    """A change of faults concerns all pods; other ConfigMaps none."""
    return (pod.key for pod in view.list(PODS)) if config_map.key == chaos.PLACE else ()


class Deletions:
    """When deletions were first seen.

    Timestamps are cut to whole seconds: measured from those, most pods would stop at once, and clients that wait
    for the deletion of a pod whose successor has the same name could miss it.
    """

    def __init__(self) -> None:
        self._seen: OrderedDict[str, datetime] = OrderedDict()

    def asked(self, uid: str, timestamp: datetime, now: datetime) -> datetime:
        """When the deletion of a pod was asked for, by the whole second of it and the time at which it is seen."""
        seen = self._seen.setdefault(uid, now)
        if len(self._seen) > _REMEMBERED:
            self._seen.popitem(last=False)
        return min(max(seen, timestamp), timestamp + timedelta(seconds=1))


# --- decide


def decide(world: World, now: datetime, *, defaults: Defaults, deletions: Deletions) -> Decision:
    pod = world.pod
    if any(outage.holds(now) for outage in world.outages):
        return Decision(outcome=_edge(world.outages, now))
    acts = _slowed(behaviour(pod.metadata, defaults=defaults, job=pod.job), world.faults, now)
    if pod.metadata.deletion_timestamp is not None:
        return _leave(world, acts, now, deletions)
    if pod.status.phase in FINISHED:
        return NOTHING
    life = live(pod, acts, world.faults, now, held=world.held)
    deadlines = [life.deadline] if life.deadline is not None else []
    deadlines += [edge for outage in world.outages for edge in outage.edges(now)]
    outcome: Outcome = until(min(deadlines), now=now, because="something happens to it then") if deadlines else Done()
    if not life.started:
        return Decision(outcome=outcome)
    before = reported((*pod.status.init_container_statuses, *pod.status.container_statuses))
    if before == {**life.inits, **life.containers} and pod.status.phase == phase(life) and says(pod, life):
        return Decision(outcome=outcome)
    return Decision(
        status=_status(world, life, now), notices=tuple(_notices(pod, life, acts, before, now)), outcome=outcome
    )


def _slowed(acts: Behaviour, faults: Iterable[PodFault], now: datetime) -> Behaviour:
    for fault in faults:
        if isinstance(fault, Slow) and fault.holds(now):
            acts = acts.slowed(fault.factor)
    return acts


def _edge(outages: Iterable[NodeFault], now: datetime) -> Outcome:
    edges = [edge for outage in outages for edge in outage.edges(now)]
    return until(min(edges), now=now, because="its node is down until then") if edges else Done()


def _status(world: World, life: Life, now: datetime) -> Mapping[str, Any]:
    before = world.object.wire().get("status") or {}
    return status(world.pod, life, before, now, host=world.host)


def _notices(pod: Pod, life: Life, acts: Behaviour, before: Mapping[str, Container], now: datetime) -> Iterator[Notice]:
    if not pod.status.start_time:
        for problem in acts.problems:
            yield Notice(type="Warning", reason="InvalidAnnotation", message=f"{problem}; it is not obeyed")
    for spec in pod.spec.containers:
        container = life.containers[spec.name]
        if container == before.get(spec.name):
            continue
        if isinstance(container.run, Idle) and container.run.reason in ("ErrImagePull", "ImagePullBackOff"):
            yield Notice(type="Warning", reason="Failed", message=f"Error: {container.run.reason}")
        elif backing_off(pod, spec, container, now) is not None:
            message = f"Back-off restarting failed container {spec.name} in pod {pod.name}"
            yield Notice(type="Warning", reason="BackOff", message=message)


# --- the end


def _leave(world: World, acts: Behaviour, now: datetime, deletions: Deletions) -> Decision:
    """A pod that is being deleted stops within its grace period, and is then removed."""
    pod, meta = world.pod, world.pod.metadata
    assert meta.deletion_timestamp is not None, "it is being deleted"
    grace = timedelta(seconds=meta.deletion_grace_period_seconds or 0)
    asked = deletions.asked(meta.uid, times.parse(meta.deletion_timestamp) - grace, now)
    # A pod that has not begun has nothing to stop.
    end = asked + min(grace, acts.stop) if pod.status.start_time and pod.status.phase not in FINISHED else asked
    if now < end:
        outcome = until(end, now=now, because="its containers are stopping")
        reported = acts.stop >= _WORTH_REPORTING and _is_ready(pod)
        return Decision(status=_status(world, _unready(pod), now) if reported else None, outcome=outcome)
    if meta.finalizers and pod.status.start_time and pod.status.phase not in FINISHED:
        # A finalizer holds it, so its end is reported.
        return Decision(status=_status(world, _stopped(pod, now), now))
    if meta.finalizers and meta.deletion_grace_period_seconds == 0:
        return NOTHING
    gone = Delete(resource=PODS, key=world.object.key, uid=meta.uid, grace_seconds=0, because="its containers are gone")
    return Decision(writes=(gone,))


def _is_ready(pod: Pod) -> bool:
    return any(condition.type == "Ready" and condition.status == "True" for condition in pod.status.conditions)


def _unready(pod: Pod) -> Life:
    containers = reported(pod.status.container_statuses)
    unready = {
        name: replace(each, run=replace(each.run, ready=False)) if isinstance(each.run, Live) else each
        for name, each in containers.items()
    }
    inits = reported(pod.status.init_container_statuses)
    return Life(containers=unready, inits=inits, started=True, initialized=True, over=False)


def _stopped(pod: Pod, now: datetime) -> Life:
    def stopped(containers: Mapping[str, Container]) -> dict[str, Container]:
        return {
            name: replace(each, run=Over.ended(each.run, now, _TERMINATED)) if isinstance(each.run, Live) else each
            for name, each in containers.items()
        }

    containers = stopped(reported(pod.status.container_statuses))
    inits = stopped(reported(pod.status.init_container_statuses))
    return Life(containers=containers, inits=inits, started=True, initialized=True, over=True)


def controller(defaults: Defaults | None = None) -> Controller[World]:
    return Controller(
        name="simulated-pods",
        resource=PODS,
        watches=(
            Watch(resource=NODES, keys=_pods_on),
            Watch(resource=CONFIG_MAPS, keys=_all_pods),
            Watch(resource=PODS, keys=start_orders.those_who_wait),
        ),
        indexes=(BY_NODE, start_orders.BY_CLIQUE),
        observe=observe,
        decide=partial(decide, defaults=defaults or Defaults(), deletions=Deletions()),
        workers=64,
    )
