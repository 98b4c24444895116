"""The state machine of a pod: which containers to start, to probe and to stop, and when to look again.

`step` is pure: the pod, the facts and the time in; the facts with what has been
begun, and the actions that begin it, out.  What was begun is in the facts at once,
so that no action is asked for twice.

First it is decided what is wanted of each container (`goals`), then how that one
container gets there (`_moved`).  This module must not know processes, files or
the status that is reported.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final, TypeAlias, assert_never

from holdfast.cluster.process.lifecycle import probes
from holdfast.cluster.process.lifecycle.facts import (
    SHORTEST_GRACE,
    Container,
    Ended,
    Facts,
    Hook,
    Idle,
    Live,
    Refused,
    Stage,
    Starting,
    Stopping,
)
from holdfast.cluster.process.lifecycle.pods import Container as Spec
from holdfast.cluster.process.lifecycle.pods import Pod, is_sidecar
from holdfast.cluster.process.lifecycle.probes import Kind
from holdfast.kernel.backoff import Backoff

BACKOFF: Final = Backoff(base=timedelta(seconds=10), cap=timedelta(minutes=5), jitter=0)
"""The wait before a container is started again; there is none before the first time."""

SETTLED: Final = timedelta(minutes=10)
"""A run of this length makes up for the crashes before it."""


# --- actions


@dataclass(frozen=True, slots=True)
class Start:
    """Start the process; `run` counts the starts before it."""

    container: str
    run: int


@dataclass(frozen=True, slots=True)
class Ask:
    """Ask a probe once."""

    container: str
    pid: int
    kind: Kind


@dataclass(frozen=True, slots=True)
class RunHook:
    """Run a hook; it may take until `timeout`, if that is given."""

    container: str
    pid: int
    hook: Hook
    timeout: timedelta | None = None


@dataclass(frozen=True, slots=True)
class Terminate:
    """Ask the process to end."""

    container: str
    because: str


@dataclass(frozen=True, slots=True)
class Kill:
    """End the process."""

    container: str


Action: TypeAlias = Start | Ask | RunHook | Terminate | Kill


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """
    facts    with everything that `actions` begin
    actions  to be carried out now
    wake     when to look again if there is no news; None where only news can change anything
    over     nothing runs and nothing will: the pod may be removed, if that was asked for
    """

    facts: Facts
    actions: tuple[Action, ...] = ()
    wake: datetime | None = None
    over: bool = False


# --- what is wanted


@dataclass(frozen=True, slots=True)
class Wanted:
    """It is to run."""


@dataclass(frozen=True, slots=True)
class Left:
    """If it runs, let it run; if not, do not start it."""


@dataclass(frozen=True, slots=True)
class Unwanted:
    """It is to end, by the deadline."""

    because: str
    deadline: datetime


Goal: TypeAlias = Wanted | Left | Unwanted


def step(pod: Pod, facts: Facts, now: datetime) -> Step:
    """One look at a pod."""
    facts = _marked(pod, facts, now)
    wanted = goals(pod, facts, now)
    moves = {
        spec.name: _moved(pod, spec, facts.containers[spec.name], goal=wanted[spec.name], now=now)
        for spec in pod.containers
    }
    return Step(
        facts=replace(facts, containers={name: move.container for name, move in moves.items()}),
        actions=tuple(action for move in moves.values() for action in move.actions),
        wake=_earliest((*(move.wake for move in moves.values()), _expiry(pod, facts))),
        over=is_ending(facts) and not any(move.container.alive for move in moves.values()),
    )


def _marked(pod: Pod, facts: Facts, now: datetime) -> Facts:
    """The facts with what happened once and for all."""
    if facts.ended_at is None and (pod.deleting or facts.gone or is_expired(pod, facts, now)):
        facts = replace(facts, ended_at=now)
    if not facts.initialized and _next_init(pod, facts) is None:
        facts = replace(facts, initialized=True)
    return facts


def is_ending(facts: Facts) -> bool:
    return facts.ended_at is not None


def is_expired(pod: Pod, facts: Facts, now: datetime) -> bool:
    """It has been active for as long as it may."""
    limit = pod.spec.active_deadline_seconds
    return limit is not None and now >= facts.began + timedelta(seconds=limit)


def _expiry(pod: Pod, facts: Facts) -> datetime | None:
    limit = pod.spec.active_deadline_seconds
    return None if limit is None or is_ending(facts) else facts.began + timedelta(seconds=limit)


def is_final(pod: Pod, spec: Spec, container: Container) -> bool:
    """Whether a container has ended and is not to be started again."""
    if not isinstance(container.run, Ended) or is_sidecar(spec):
        return False
    succeeded = container.run.exit_code == 0
    match pod.spec.restart_policy:
        case "Never":
            return True
        case "OnFailure":
            return succeeded
        case _:
            return succeeded and spec in pod.spec.init_containers


def is_finished(pod: Pod, facts: Facts) -> bool:
    """Whether the pod has succeeded or failed: every container has ended for good, or an init container has failed."""
    if all(is_final(pod, spec, facts.containers[spec.name]) for spec in pod.spec.containers):
        return True
    waiting = _next_init(pod, facts) if not facts.initialized else None
    return waiting is not None and is_final(pod, waiting, facts.containers[waiting.name])


def _next_init(pod: Pod, facts: Facts) -> Spec | None:
    """The init container that all after it wait for; None where none is waited for."""
    inits = pod.spec.init_containers
    return next((spec for spec in inits if not has_passed(spec, facts.containers[spec.name])), None)


def has_passed(spec: Spec, container: Container) -> bool:
    """Whether the next container may start after an init container: it is done, or it is a sidecar and has started."""
    run = container.run
    if is_sidecar(spec):
        return isinstance(run, Live) and run.started
    return isinstance(run, Ended) and run.exit_code == 0


def goals(pod: Pod, facts: Facts, now: datetime) -> dict[str, Goal]:
    """What is wanted of each container, by name."""
    if facts.ended_at is not None:
        grace = SHORTEST_GRACE if facts.gone else pod.grace
        why = "the pod is deleted" if pod.deleting or facts.gone else "the pod has been active for as long as it may"
        return _stopped(pod, facts, because=why, deadline=facts.ended_at + grace, now=now)
    if is_finished(pod, facts):
        ends = [each.run.finished_at for each in facts.containers.values() if isinstance(each.run, Ended)]
        return _stopped(pod, facts, because="the pod's containers have ended", deadline=max(ends) + pod.grace, now=now)
    waited = None if facts.initialized else _next_init(pod, facts)
    names = [spec.name for spec in pod.containers]
    allowed = len(names) if waited is None else names.index(waited.name) + 1
    return {name: Wanted() if place < allowed else Left() for place, name in enumerate(names)}


def _stopped(pod: Pod, facts: Facts, *, because: str, deadline: datetime, now: datetime) -> dict[str, Goal]:
    """Containers first, all at once; then the sidecars, the last one first, each when those after it have ended."""
    end = Unwanted(because, deadline)
    wanted: dict[str, Goal] = {spec.name: end for spec in pod.containers if not is_sidecar(spec)}
    served = any(facts.containers[name].alive for name in wanted)
    # However long the others took, a sidecar is given a moment.
    late = Unwanted(because, max(deadline, now + SHORTEST_GRACE))
    for spec in reversed(pod.sidecars):
        wanted[spec.name] = Left() if served else late
        served = served or facts.containers[spec.name].alive
    return wanted


# --- how one container gets there


@dataclass(frozen=True, slots=True, kw_only=True)
class _Move:
    container: Container
    actions: tuple[Action, ...] = ()
    wake: datetime | None = None


def _moved(pod: Pod, spec: Spec, container: Container, *, goal: Goal, now: datetime) -> _Move:
    run = container.run
    match run:
        case Starting() | Refused():
            return _Move(container=container)
        case Idle():
            if not isinstance(goal, Wanted):
                return _Move(container=container)
            return _Move(container=replace(container, run=Starting()), actions=(Start(spec.name, container.restarts),))
        case Ended():
            if not isinstance(goal, Wanted) or is_final(pod, spec, container):
                return _Move(container=container)
            return _restarted(spec, container, run, now=now)
        case Live():
            stopping = run.stopping
            if isinstance(goal, Unwanted):
                stopping = stopping.hurried(goal.deadline) if stopping is not None else _stopping(spec, goal)
            if stopping is not None:
                return _ending(spec, container, run, stopping=stopping, now=now)
            return _served(pod, spec, container, run=run, now=now)
        case _:
            assert_never(run)


def restart_at(container: Container, ended: Ended) -> datetime:
    """When a container that has ended may be started again."""
    return ended.finished_at + BACKOFF.delay(_crashes(container, ended))


def _crashes(container: Container, ended: Ended) -> int:
    lasted = ended.started_at is not None and ended.finished_at - ended.started_at >= SETTLED
    return 0 if lasted else container.crashes


def _restarted(spec: Spec, container: Container, ended: Ended, *, now: datetime) -> _Move:
    at = restart_at(container, ended)
    if now < at:
        return _Move(container=container, wake=at)
    again = Container(
        run=Starting(),
        last=ended,
        restarts=container.restarts + 1,
        crashes=_crashes(container, ended) + 1,
    )
    return _Move(container=again, actions=(Start(spec.name, again.restarts),))


def _served(pod: Pod, spec: Spec, container: Container, *, run: Live, now: datetime) -> _Move:
    """A container that runs and is to run: its hook, then its probes."""
    if not run.hooked:
        if run.hooking:
            return _Move(container=container)
        hooking = replace(container, run=replace(run, hooking=True))
        return _Move(container=hooking, actions=(RunHook(spec.name, run.pid, Hook.POST_START),))
    failed = probes.failure(run.probes)
    if failed is not None:
        kind, probing = failed
        given = probing.probe.termination_grace_period_seconds
        grace = pod.grace if given is None else timedelta(seconds=given)
        unwell = Unwanted(f"it failed its {kind.lower()} probe", now + grace)
        return _ending(spec, container, run, stopping=_stopping(spec, unwell), now=now)
    return _asked(spec, container, run, now=now)


def _asked(spec: Spec, container: Container, run: Live, *, now: datetime) -> _Move:
    turn = probes.in_turn(run.probes, ending=run.stopping is not None)
    due = tuple(kind for kind in turn if not run.probes[kind].asked and run.probes[kind].due <= now)
    asked = {kind: probing.ask() if kind in due else probing for kind, probing in run.probes.items()}
    return _Move(
        container=replace(container, run=replace(run, probes=asked)),
        actions=tuple(Ask(spec.name, run.pid, kind) for kind in due),
        wake=_earliest(asked[kind].due for kind in turn if not asked[kind].asked),
    )


def _stopping(spec: Spec, goal: Unwanted) -> Stopping:
    first = Stage.TERM if spec.lifecycle.pre_stop is None else Stage.HOOK
    return Stopping.by(goal.deadline, because=goal.because, stage=first)


def _ending(spec: Spec, container: Container, run: Live, *, stopping: Stopping, now: datetime) -> _Move:
    """A container that is being stopped: its hook, then SIGTERM, then SIGKILL."""
    if stopping.begun and stopping.stage is not Stage.KILL and now >= stopping.deadline:
        stopping = stopping.after(now)
    actions = () if stopping.begun else (_begin(spec, run, stopping, now=now),)
    stopping = replace(stopping, begun=True)
    served = _asked(spec, container, replace(run, stopping=stopping), now=now)
    patience = None if stopping.stage is Stage.KILL else stopping.deadline
    return replace(served, actions=(*actions, *served.actions), wake=_earliest((served.wake, patience)))


def _begin(spec: Spec, run: Live, stopping: Stopping, *, now: datetime) -> Action:
    match stopping.stage:
        case Stage.HOOK:
            return RunHook(spec.name, run.pid, Hook.PRE_STOP, timeout=stopping.deadline - now)
        case Stage.TERM:
            return Terminate(spec.name, stopping.because)
        case Stage.KILL:
            return Kill(spec.name)
        case _:
            assert_never(stopping.stage)


def _earliest(moments: Iterable[datetime | None]) -> datetime | None:
    return min((moment for moment in moments if moment is not None), default=None)
