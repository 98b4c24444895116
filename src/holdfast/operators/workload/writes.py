"""The decision of one reconciliation as writes: ControllerRevisions, Services, the disruption budget, replicas."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import msgspec

from holdfast.client.objects import Object
from holdfast.client.resources import CONTROLLER_REVISIONS, PODS, SERVICES
from holdfast.kernel.decisions import RollBack, Switch
from holdfast.kernel.fleet import Side
from holdfast.kinds.cloudless.rollouts import Rejection
from holdfast.meta import times
from holdfast.meta.objects import Key
from holdfast.operators.workload import render
from holdfast.operators.workload.conditions import Facts
from holdfast.operators.workload.observe import WORKLOADS, Record, World, is_taken, service_name, switches
from holdfast.operators.workload.render import REVISION
from holdfast.operators.workload.revisions import (
    PROMOTED,
    REJECTED,
    REJECTION,
    Revisions,
    cause,
    rejected_revision,
    selector_of,
)
from holdfast.runtime import disruption
from holdfast.runtime.decisions import Create, Delete, Patch, Rehearsal, Write

HISTORY: Final = 10


def all_of(facts: Facts) -> Iterator[Write]:
    """Every write; those of the step come in a second wave, when what they need exists."""
    yield from facts.world.claims
    yield from _records(facts.world, facts.revisions)
    yield from _services(facts.world, facts.revisions)
    yield from _budget(facts)
    yield from _step(facts)


def rehearsals(facts: Facts) -> Iterator[Rehearsal]:
    """The pod of a revision of which no replica exists, before the first ready replica is stopped for it."""
    if facts.step.replaces_first:
        target = facts.revisions.target
        manifest = render.pod(facts.world.object.wire(), target)
        yield Rehearsal(about=f"the pod template of revision {target.revision}", resource=PODS, manifest=manifest)


def _records(world: World, revisions: Revisions) -> Iterator[Write]:
    """Record the target, give it the highest number, and delete records beyond the history limit."""
    newest = max((record.number for record in world.records.values()), default=0)
    target = world.records.get(revisions.target.revision)
    if target is None:
        manifest = render.controller_revision(world.object.wire(), revisions.target, number=newest + 1)
        yield Create(because="the revision is new", resource=CONTROLLER_REVISIONS, manifest=manifest)
    elif target.number < newest and not revisions.rejected:
        yield Patch(
            because="an earlier revision is wanted again",
            resource=CONTROLLER_REVISIONS,
            key=Key(world.object.key.namespace, target.name),
            patch={"revision": newest + 1},
            uid=target.uid,
        )
    for record in _beyond_history(world, revisions):
        yield Delete(
            because="the history is longer than its limit",
            resource=CONTROLLER_REVISIONS,
            key=Key(world.object.key.namespace, record.name),
            uid=record.uid,
        )


def _beyond_history(world: World, revisions: Revisions) -> tuple[Record, ...]:
    asked = world.rollout.revision_history_limit
    limit = HISTORY if asked is None else asked
    if len(world.records) <= limit:
        return ()
    templates = (revisions.target, revisions.stable, revisions.other)
    needed = {each.replica.revision for each in world.members} | {
        revisions.wanted,
        revisions.serving,
        rejected_revision(world.object),
    }
    needed |= {template.revision for template in templates if template is not None}
    past = sorted(
        (record for name, record in world.records.items() if name not in needed), key=lambda each: each.number
    )
    return tuple(past[: max(len(past) - limit, 0)])


def _services(world: World, revisions: Revisions) -> Iterator[Write]:
    """Have the Service of a BlueGreen Workload select one revision; release Services that are not switched any more."""
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
    assert revisions.serving is not None, "one revision serves where traffic is switched"
    if world.service is None:
        owner, name = world.object.wire(), service_name(world.workload)
        manifest = render.service(owner, revisions.target, name=name, serving=revisions.serving)
        yield Create(because="a BlueGreen rollout needs a Service to switch", resource=SERVICES, manifest=manifest)
    elif REVISION not in selector_of(world):
        yield Patch(
            because="only the serving revision receives traffic before the switch",
            resource=SERVICES,
            key=world.service.key,
            patch=render.pin(world.object.key.name, revisions.serving),
            uid=world.service.uid,
        )


def _budget(facts: Facts) -> Iterator[Write]:
    """The disruption budget.  Where a Service selects one revision, only the replicas of that one serve and count."""
    world, name = facts.world, facts.world.object.key.name
    return disruption.budget_writes(
        world.object,
        world.budget,
        name=render.budget_name(name),
        selector=render.labels(name, facts.revisions.serving or ""),
        limits=msgspec.structs.replace(facts.limits, floor=facts.drain_floor),
        wanted=world.keeps_budget,
    )


def _step(facts: Facts) -> Iterator[Write]:
    world, revisions, step = facts.world, facts.revisions, facts.step
    because = step.decision.because.message
    for side, template in ((Side.NEW, revisions.target), (Side.OLD, revisions.other)):
        starts = step.starts(side)
        if starts:
            assert template is not None, "the engine starts no replica of a revision that is not known"
            manifest = render.pod(world.object.wire(), template)
            yield from (Create(because=because, resource=PODS, manifest=manifest, wave=1) for _ in range(starts))
    if step.stops:
        chosen, evict = set(step.stops), _evicts(facts)
        metas = {each.replica.id: each.meta for each in world.members if each.replica.id in chosen}
        yield from (disruption.stop(metas[name], because, evict=evict, wave=1) for name in step.stops)
    if isinstance(step.decision, Switch) and world.service is not None:
        # A Service that this reconciliation creates is switched by the next one.
        yield _switch(world, revisions, world.service, because=because)
    if isinstance(step.decision, RollBack):
        yield Patch(
            because=because,
            resource=WORKLOADS,
            key=world.object.key,
            patch={"metadata": {"annotations": _rejected(facts, step.decision)}},
            uid=world.object.uid,
            wave=1,
        )


def _rejected(facts: Facts, decision: RollBack) -> dict[str, str | None]:
    """The annotations of a revision that failed: it is refused, with the cause, and its approvals are void."""
    worst, message = facts.problems.worst, facts.step.because.message
    why = Rejection(
        revision=facts.target,
        reason=(decision.because.code if worst is None else worst.reason).value,
        message=message if worst is None else f"{message}; {worst}",
        pod=None if worst is None else worst.pod,
        time=times.format(facts.step.situation.now),
    )
    return {REJECTED: facts.target, REJECTION: cause(why), PROMOTED: None}


def _evicts(facts: Facts) -> bool:
    """Whether replicas are stopped by eviction: while a node is drained, one budget decides for drain and rollout.

    A step without a floor stops replicas whatever a budget keeps, and the API server refuses to evict a pod that two
    budgets select.
    """
    step = facts.step
    keeps_floor = step.stops_ready and step.verdict.shape.floor > 0
    return keeps_floor and bool(facts.world.cordoned) and len(facts.world.budgets) < 2


def _switch(world: World, revisions: Revisions, service: Object, *, because: str) -> Patch:
    patch = render.pin(world.object.key.name, revisions.target.revision)
    ports = render.service_ports(revisions.target)
    if ports and service.is_controlled_by(world.object.uid):
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
