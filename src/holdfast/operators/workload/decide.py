"""What is done for a Workload next: which replicas start, which stop, and why.

The course is set by revisions: the one that is wanted, and the stable one, which was
the last to be rolled out completely.  A wanted revision that was rejected is not
rolled out; the stable one is, until the spec asks for something else.

How the fleet gets there is the engine's matter (`kernel.rollout`), and every start
and stop passes its guard.  This module turns replicas into the engine's terms and its
decisions into writes; it must not know how many may be down.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, assert_never

import msgspec

from holdfast.client.pods import Pod
from holdfast.client.resources import CONTROLLER_REVISIONS, PODS, SERVICES
from holdfast.kernel import fleet as fleets
from holdfast.kernel import rollout as engine
from holdfast.kernel.fleet import Fleet, Replica, Side, State
from holdfast.kernel.guard import guard
from holdfast.kernel.limits import Limits, resolve
from holdfast.kernel.outcomes import Outcome, Permanent, soonest, until
from holdfast.kernel.planning import WorkloadSpec, rollout_of
from holdfast.kernel.rollout import (
    Blocked,
    Done,
    Hold,
    Kind,
    OnFailure,
    Progress,
    RollBack,
    Rollout,
    Start,
    Stop,
    Switch,
    Wait,
)
from holdfast.kinds import InvalidDocument
from holdfast.kinds.cloudless.rollouts import Rollout as Wish
from holdfast.kinds.cloudless.rollouts import RolloutStatus
from holdfast.meta import amounts, times
from holdfast.meta.objects import Key
from holdfast.operators.workload import render
from holdfast.operators.workload.observe import WORKLOADS, Record, World, service_name, switches
from holdfast.operators.workload.render import REVISION, Template
from holdfast.operators.workload.status import Facts, report
from holdfast.operators.workload.validate import duration, rollout_spec
from holdfast.runtime.decisions import Create, Decision, Delete, Patch, Write

REJECTED: Final = "holdfast.dev/rejected-revision"
"""The annotation with the revision that was undone or failed; it is refused until the spec asks for another."""

PROMOTED: Final = "holdfast.dev/promoted"
"""The annotation ``<revision>:<steps>``: how many steps of a rollout somebody has approved."""

PROGRESS_DEADLINE: Final = "10m"
HISTORY: Final = 10
AT_A_TIME: Final = 250
"""Replicas that are started or stopped in one pass, so that a large fleet reports on its way."""

_STATES: Final = {
    Kind.DEAD: frozenset({State.DEAD}),
    Kind.UNREADY: frozenset({State.UNREADY}),
    Kind.READY: frozenset({State.SETTLING, State.AVAILABLE}),
}


def decide(world: World, now: datetime) -> Decision:
    """What to write, and what to say."""
    try:
        asked = rollout_spec(world.workload)
    except InvalidDocument as error:
        raise Permanent("InvalidSpec", str(error)) from error
    course = _course(world)
    rollout = _rollout(world, asked, course)
    situation = _situation(world, rollout, course, now)
    verdict = engine.decide(rollout, situation.fleet, progress=_progress(world, course), now=now)
    step = guard(verdict.decision, situation.fleet, shape=verdict.shape)
    facts = Facts(
        world=world,
        rollout=rollout,
        fleet=situation.fleet,
        verdict=verdict,
        decision=step,
        wanted=course.wanted,
        target=course.target.revision,
        stable=course.stable.revision if course.stable is not None else "",
    )
    status, notices = report(facts, now)
    return Decision(
        writes=(*_records(world, course), *_service(world, course), *_steps(world, course, situation, step, now)),
        status=status,
        notices=notices,
        outcome=_outcome(step, verdict.refusal, now),
    )


# --- the course: which revision is rolled out, and where there is to return to


@dataclass(frozen=True, slots=True, kw_only=True)
class Course:
    """
    wanted  the revision that the spec asks for
    target  what is rolled out: the wanted revision, or the stable one if that was rejected
    stable  what replicas of the other side are started from, if it is known
    """

    wanted: str
    target: Template
    stable: Template | None = None

    @property
    def rejected(self) -> bool:
        return self.target.revision != self.wanted


def _course(world: World) -> Course:
    asked = Template.of(world.workload, world.configs)
    missing = [name for name, fingerprint in world.configs.items() if not fingerprint]
    if missing and not world.records:
        # Nothing runs yet and nothing could: pods of this template wait for their configuration by themselves.
        return Course(wanted=asked.revision, target=asked)
    status = world.workload.status
    complete = world.records.get(status.current_revision or "") if status is not None else None
    stable = None if complete is None else complete.template
    wanted = asked
    if missing and stable is not None:
        # A configuration that vanished is no new revision: what runs keeps what it has.
        wanted = stable
    refused = world.object.meta.annotations.get(REJECTED) == wanted.revision
    if refused and stable is not None and stable.revision != wanted.revision:
        return Course(wanted=wanted.revision, target=stable)
    distinct = stable if stable is not None and stable.revision != wanted.revision else None
    return Course(wanted=wanted.revision, target=wanted, stable=distinct)


def _rollout(world: World, asked: WorkloadSpec, course: Course) -> Rollout:
    """What the engine is asked for."""
    wish = world.workload.spec.rollout or Wish()
    return msgspec.structs.replace(
        rollout_of(asked),
        limits=_limits(world, asked, rollout_of(asked).limits),
        target=course.target.revision,
        count_terminating=wish.replacement == "onTermination",
        deadline=duration(wish.progress_deadline or PROGRESS_DEADLINE),
        on_failure=OnFailure(wish.on_failure or "hold"),
        paused=bool(wish.paused) and not course.rejected,
        approved=_approved(world, course),
    )


def _limits(world: World, asked: WorkloadSpec, limits: Limits) -> Limits:
    """The limits, with what disruption budgets ask for on top."""
    floors = tuple(_floor_of(budget.min_available, budget.max_unavailable, asked.replicas) for budget in world.budgets)
    if not floors:
        return limits
    wish = asked.rollout
    stricter = resolve(
        asked.replicas,
        max_surge=wish.max_surge,
        max_unavailable=wish.max_unavailable,
        min_available=wish.min_available,
        other_floors=floors,
    )
    extra = tuple(warning for warning in limits.warnings if warning not in stricter.warnings)
    return msgspec.structs.replace(stricter, warnings=(*stricter.warnings, *extra))


def _floor_of(min_available: int | str | None, max_unavailable: int | str | None, replicas: int) -> int:
    """How many replicas a disruption budget keeps; both of its percentages round up, as Kubernetes' do."""
    if min_available is not None:
        return amounts.resolve(min_available, replicas, round="up")
    if max_unavailable is not None:
        return max(replicas - amounts.resolve(max_unavailable, replicas, round="up"), 0)
    return 0


def _approved(world: World, course: Course) -> int:
    revision, _, steps = world.object.meta.annotations.get(PROMOTED, "").partition(":")
    return int(steps) if revision == course.target.revision and steps.isdigit() else 0


# --- the situation: replicas in the engine's terms


@dataclass(frozen=True, slots=True, kw_only=True)
class Situation:
    """The replicas, how they are counted, and the counts."""

    replicas: tuple[Replica, ...]
    pods: dict[str, Pod]
    fleet: Fleet
    min_ready: timedelta
    serving: str | None


def _situation(world: World, rollout: Rollout, course: Course, now: datetime) -> Situation:
    wish = world.workload.spec.rollout or Wish()
    min_ready = timedelta(seconds=wish.min_ready_seconds or 0)
    crowd = Counter(pod.spec.node_name for pod in world.pods if pod.active)
    replicas = tuple(_replica(world, pod, crowding=crowd[pod.spec.node_name]) for pod in world.pods)
    serving = _serving(world, course)
    counted = fleets.observe(
        replicas, rollout.target, now=now, min_ready=min_ready, stable=course.stable is not None, serving=serving
    )
    fleet = msgspec.structs.replace(counted, progressed_at=_progressed_at(world, rollout, counted, now))
    return Situation(
        replicas=replicas,
        pods={pod.metadata.name: pod for pod in world.pods},
        fleet=fleet,
        min_ready=min_ready,
        serving=serving,
    )


def _replica(world: World, pod: Pod, *, crowding: int) -> Replica:
    policy = world.workload.spec.restart_policy
    given_up = policy is not None and policy.max_retries is not None and pod.restarts > policy.max_retries
    return Replica(
        id=pod.metadata.name,
        revision=pod.metadata.labels.get(REVISION, ""),
        created_at=times.parse(pod.metadata.creation_timestamp or ""),
        ready_since=pod.ready_since(),
        terminating=pod.deleting,
        dead=pod.finished or given_up,
        leaving=pod.spec.node_name in world.draining,
        crowding=crowding,
    )


def _serving(world: World, course: Course) -> str | None:
    """The revision that gets the traffic, where only one does."""
    if not switches(world.workload):
        return None
    selected = _selector(world).get(REVISION, "")
    if selected:
        return selected
    return course.target.revision if course.stable is None else course.stable.revision


def _selector(world: World) -> dict[str, str]:
    if world.service is None:
        return {}
    selector: dict[str, str] = (world.service.wire().get("spec") or {}).get("selector") or {}
    return selector


def _kept(world: World) -> RolloutStatus:
    """The facts of the rollout that were kept with the object."""
    status = world.workload.status
    return status.rollout if status is not None and status.rollout is not None else RolloutStatus()


def _progress(world: World, course: Course) -> Progress:
    status, kept = world.workload.status, _kept(world)
    if status is None or status.update_revision != course.target.revision:
        return Progress(course.target.revision)
    reached_at = times.parse(kept.reached_at) if kept.reached_at else None
    return Progress(course.target.revision, max((kept.step or 1) - 1, 0), reached_at)


def _progressed_at(world: World, rollout: Rollout, fleet: Fleet, now: datetime) -> datetime | None:
    """When the rollout last got further: a new replica became available, an old one went, or it began."""
    status, kept = world.workload.status, _kept(world)
    if rollout.paused:
        return None
    if status is None or status.update_revision != rollout.target or kept.progressed_at is None:
        return now
    if status.old_replicas is not None and fleet.old.live < status.old_replicas:
        return now
    before = times.parse(kept.progressed_at)
    return before if fleet.settled_at is None else max(before, fleet.settled_at)


# --- writes


def _records(world: World, course: Course) -> Iterator[Write]:
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
    wish = world.workload.spec.rollout or Wish()
    limit = HISTORY if wish.revision_history_limit is None else wish.revision_history_limit
    live = {pod.metadata.labels.get(REVISION, "") for pod in world.pods}
    needed = live | {course.target.revision, course.stable.revision if course.stable is not None else ""}
    past = sorted(
        (record for name, record in world.records.items() if name not in needed), key=lambda each: each.number
    )
    return tuple(past[: max(len(past) - limit, 0)])


def _service(world: World, course: Course) -> Iterator[Write]:
    if not switches(world.workload) or world.service is not None:
        return
    serving = course.target.revision if course.stable is None else course.stable.revision
    manifest = render.service(world.object.wire(), course.target, name=service_name(world.workload), serving=serving)
    yield Create(because="a BlueGreen rollout needs a Service to switch", resource=SERVICES, manifest=manifest)


def _steps(world: World, course: Course, situation: Situation, step: engine.Decision, now: datetime) -> Iterator[Write]:
    """A decision of the engine as writes; they follow the records."""
    match step:
        case Start(side=side, count=count, because=because):
            template = course.target if side is Side.NEW else course.stable
            assert template is not None, "the engine starts nothing from a revision that is not known"
            manifest = render.pod(world.object.wire(), template)
            for _ in range(min(count, AT_A_TIME)):
                yield Create(because=because.message, resource=PODS, manifest=manifest, wave=1)
        case Stop(side=side, kind=kind, count=count, because=because):
            for name in _chosen(course, situation, side=side, kind=kind, count=min(count, AT_A_TIME), now=now):
                pod = situation.pods[name]
                yield Delete(
                    because=because.message,
                    resource=PODS,
                    key=Key(pod.metadata.namespace, name),
                    uid=pod.metadata.uid,
                    wave=1,
                )
        case Switch(because=because):
            assert world.service is not None, "there is traffic to switch only where there is a Service"
            selector = render.labels(world.object.key.name, course.target.revision)
            yield Patch(
                because=because.message,
                resource=SERVICES,
                key=world.service.key,
                patch={"spec": {"selector": selector}},
                uid=world.service.uid,
                version=world.service.version,
                wave=1,
            )
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


def _chosen(
    course: Course, situation: Situation, *, side: Side, kind: Kind, count: int, now: datetime
) -> tuple[str, ...]:
    return fleets.choose(
        situation.replicas,
        course.target.revision,
        side=side,
        states=_STATES[kind],
        count=count,
        now=now,
        min_ready=situation.min_ready,
        stable=course.stable.revision if course.stable is not None else None,
        serving=situation.serving,
    )


def _outcome(step: engine.Decision, refusal: engine.Refusal | None, now: datetime) -> Outcome:
    """When to look again if nothing happens; what was written will be seen."""
    return soonest(
        until(each.until, now=now, because=each.because.message)
        for each in (step, refusal)
        if isinstance(each, Hold | Wait) and each.until is not None
    )
