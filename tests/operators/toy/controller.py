"""The controller of Beacons: the engine decides, and the controller creates and deletes pods."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from tests.operators.toy.beacons import KINDS, Beacon

from holdfast.client.objects import Object
from holdfast.client.pods import Pod, from_template
from holdfast.client.resources import PODS, Resource
from holdfast.kernel import limits, stepping
from holdfast.kernel.conditions import Verdict
from holdfast.kernel.fleet import Replica, Side
from holdfast.kernel.rollout import Rollout
from holdfast.kernel.stepping import Situation, Step
from holdfast.meta import times
from holdfast.meta.objects import Key
from holdfast.runtime import status
from holdfast.runtime.controllers import Controller, View
from holdfast.runtime.decisions import Create, Decision, Delete

BEACONS: Final = Resource.of(KINDS[0])
BEACON: Final = "toy.example.com/beacon"
IMAGE: Final = "toy.example.com/image"


@dataclass(frozen=True, slots=True)
class World:
    """A Beacon and its pods."""

    object: Object
    beacon: Beacon
    pods: tuple[Object, ...]


def observe(view: View, key: Key) -> World | None:
    obj = view.get(BEACONS, key)
    return None if obj is None else World(obj, obj.decode(Beacon), view.owned(PODS, obj.uid))


def rollout(beacon: Beacon) -> Rollout:
    spec = beacon.spec
    bounds = limits.resolve(spec.replicas, max_unavailable=1)
    return Rollout(limits=bounds, target=revision(spec.image), paused=bool(spec.paused))


def decide(world: World, now: datetime) -> Decision:
    replicas = tuple(map(_replica, world.pods))
    step = stepping.step(Situation(rollout=rollout(world.beacon), replicas=replicas, now=now))
    named = {pod.key.name: pod for pod in world.pods}
    reason = step.because.message
    stops = tuple(
        Delete(because=reason, resource=PODS, key=named[name].key, uid=named[name].uid) for name in step.stops
    )
    starts = tuple(Create(because=reason, resource=PODS, manifest=_pod(world)) for _ in range(step.starts(Side.NEW)))
    return Decision(writes=(*stops, *starts), status=_status(world, step, now), outcome=step.outcome())


def _status(world: World, step: Step, now: datetime) -> dict[str, Any]:
    phase = "Ready" if step.complete else "Paused" if world.beacon.spec.paused else "Updating"
    fields = {
        "phase": phase,
        "message": step.because.message,
        "ready": step.fleet.ready,
        "updated": step.fleet.new.live,
    }
    ready = (Verdict.true if step.complete else Verdict.false)(str(step.because.code), step.because.message)
    made, _ = status.report(world.object, {"Ready": ready}, now=now, fields=fields)
    return made


def revision(image: str) -> str:
    return image.replace(":", ".")


def _replica(obj: Object) -> Replica:
    pod = Pod.of(obj)
    return Replica(
        id=obj.key.name,
        revision=obj.meta.labels[IMAGE],
        created_at=times.parse(obj.meta.creation_timestamp or ""),
        ready_since=pod.ready_since(),
        terminating=pod.deleting,
        dead=pod.finished,
    )


def _pod(world: World) -> dict[str, Any]:
    image = world.beacon.spec.image
    labels = {BEACON: world.object.key.name, IMAGE: revision(image)}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "main", "image": image}]}}
    return from_template(template, world.object.wire())


CONTROLLERS: Final[tuple[Controller[Any], ...]] = (
    Controller(name="beacon", resource=BEACONS, owns=(PODS,), observe=observe, decide=decide),
)
