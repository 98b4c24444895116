"""What is decided as writes: records of revisions, Services, replicas.

This module must not know why something is decided, nor how many replicas may be down.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, assert_never

from holdfast.client.objects import Object
from holdfast.client.resources import CONTROLLER_REVISIONS, PODS, SERVICES
from holdfast.kernel import decisions as engine
from holdfast.kernel.decisions import Blocked, Done, Hold, RollBack, Start, Stop, Switch, Wait
from holdfast.kernel.fleet import Side
from holdfast.meta.objects import Key
from holdfast.operators.workload import render
from holdfast.operators.workload.course import REJECTED, Course, selector_of
from holdfast.operators.workload.observe import (
    WORKLOADS,
    Record,
    World,
    is_controlled_by,
    is_taken,
    service_name,
    switches,
)
from holdfast.operators.workload.render import REVISION
from holdfast.operators.workload.replicas import Situation, revision_of
from holdfast.runtime.decisions import Create, Delete, Patch, Write

HISTORY: Final = 10
AT_A_TIME: Final = 250
"""Replicas that are started or stopped in one pass, so that a large fleet reports on its way."""


def records(world: World, course: Course) -> Iterator[Write]:
    """Record what is rolled out before anything is made from it, newest number last; forget what is long past."""
    newest = max((record.number for record in world.records.values()), default=0)
    target = world.records.get(course.target.revision)
    if target is None:
        manifest = render.controller_revision(world.object.wire(), course.target, number=newest + 1)
        yield Create(because="the revision is new", resource=CONTROLLER_REVISIONS, manifest=manifest)
    elif target.number < newest and not course.rejected:
        yield Patch(
            because="an earlier revision is wanted again",
            resource=CONTROLLER_REVISIONS,
            key=Key(world.object.key.namespace, target.name),
            patch={"revision": newest + 1},
            uid=target.uid,
        )
    for record in _forgotten(world, course):
        yield Delete(
            because="the history is long enough",
            resource=CONTROLLER_REVISIONS,
            key=Key(world.object.key.namespace, record.name),
            uid=record.uid,
        )


def _forgotten(world: World, course: Course) -> tuple[Record, ...]:
    wish = world.workload.spec.rollout
    limit = wish.revision_history_limit if wish is not None else None
    needed = {revision_of(pod) for pod in world.pods} | {course.wanted, course.serving}
    needed |= {template.revision for template in (course.target, course.stable, course.other) if template is not None}
    past = sorted(
        (record for name, record in world.records.items() if name not in needed), key=lambda each: each.number
    )
    return tuple(past[: max(len(past) - (HISTORY if limit is None else limit), 0)])


def services(world: World, course: Course) -> Iterator[Write]:
    """Have one revision get the traffic where only one should, and all of them where that is no longer so."""
    for service in world.released:
        yield Patch(
            because="its traffic is not switched any more",
            resource=SERVICES,
            key=service.key,
            patch=render.unpin(),
            uid=service.uid,
        )
    if not switches(world.workload) or is_taken(world):
        return
    assert course.serving is not None, "one revision serves where traffic is switched"
    if world.service is None:
        owner, name = world.object.wire(), service_name(world.workload)
        manifest = render.service(owner, course.target, name=name, serving=course.serving)
        yield Create(because="a BlueGreen rollout needs a Service to switch", resource=SERVICES, manifest=manifest)
    elif REVISION not in selector_of(world):
        yield Patch(
            because="until traffic is switched, the revision that serves must be the only one",
            resource=SERVICES,
            key=world.service.key,
            patch=render.pin(world.object.key.name, course.serving),
            uid=world.service.uid,
        )


def steps(world: World, course: Course, situation: Situation, *, step: engine.Decision) -> Iterator[Write]:
    """A decision of the engine; its writes follow those of records and Services."""
    match step:
        case Start(side=side, count=count, because=because):
            template = course.target if side is Side.NEW else course.other
            assert template is not None, "the engine starts nothing from a revision that is not known"
            manifest = render.pod(world.object.wire(), template)
            for _ in range(min(count, AT_A_TIME)):
                yield Create(because=because.message, resource=PODS, manifest=manifest, wave=1)
        case Stop(side=side, kind=kind, count=count, because=because):
            for pod in situation.choose(min(count, AT_A_TIME), side=side, kind=kind):
                key = Key(pod.metadata.namespace, pod.metadata.name)
                yield Delete(because=because.message, resource=PODS, key=key, uid=pod.metadata.uid, wave=1)
        case Switch(because=because):
            # A Service that is only just made is switched when it is there.
            if world.service is not None:
                yield _switch(world, course, world.service, because=because.message)
        case RollBack(because=because):
            yield Patch(
                because=because.message,
                resource=WORKLOADS,
                key=world.object.key,
                patch={"metadata": {"annotations": {REJECTED: course.target.revision}}},
                uid=world.object.uid,
                wave=1,
            )
        case Hold() | Wait() | Blocked() | Done():
            return
        case _:
            assert_never(step)


def _switch(world: World, course: Course, service: Object, *, because: str) -> Patch:
    patch = render.pin(world.object.key.name, course.target.revision)
    ports = render.service_ports(course.target)
    if ports and is_controlled_by(service, world.object):
        patch["spec"]["ports"] = ports
    return Patch(
        because=because,
        resource=SERVICES,
        key=service.key,
        patch=patch,
        uid=service.uid,
        version=service.version,
        wave=1,
    )
