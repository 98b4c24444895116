"""What is known of a pod's containers, and how news changes it.

Facts are values; `observed` gives the facts after one piece of news.  They are
begun from the status that a pod had when the node was started, so that a node
that restarts goes on where it was: what is reported as running has no process any
more, and is said to have ended with the node.  This module must not know what is
done about anything.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final, TypeAlias, assert_never

from holdfast.cluster.pod_status import ContainerStatus, Terminated
from holdfast.cluster.process.lifecycle import probes
from holdfast.cluster.process.lifecycle.pods import Pod
from holdfast.cluster.process.lifecycle.probes import Answer, Kind, Probing
from holdfast.meta import times

NODE_RESTARTED: Final = "The node was restarted; how the process ended is not known."
UNKNOWN_EXIT: Final = 255

SHORTEST_GRACE: Final = timedelta(seconds=2)
"""What a container is left of its grace, however long its hook or its neighbours took."""


class Hook(StrEnum):
    POST_START = "postStart"
    PRE_STOP = "preStop"


# --- how a container is


@dataclass(frozen=True, slots=True)
class Idle:
    """It has not been started yet."""


@dataclass(frozen=True, slots=True)
class Refused:
    """It cannot be started as things are."""

    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class Starting:
    """It is being started."""


class Stage(StrEnum):
    """How far the stopping of a container has come."""

    HOOK = "preStop"
    TERM = "SIGTERM"
    KILL = "SIGKILL"


@dataclass(frozen=True, slots=True, kw_only=True)
class Stopping:
    """Why a container is being stopped, how far that is, and when patience ends.

    asked  the deadline that was asked for; `deadline` may be later, after a hook that took too long
    begun  what the stage asks for has been done, and its effect is waited for
    """

    because: str
    stage: Stage
    asked: datetime
    deadline: datetime
    begun: bool = False

    @classmethod
    def by(cls, deadline: datetime, *, because: str, stage: Stage) -> Stopping:
        return cls(because=because, stage=stage, asked=deadline, deadline=deadline)

    def hurried(self, deadline: datetime) -> Stopping:
        """A deadline may come nearer, as when a pod is deleted again with less grace, and never moves away."""
        return self if deadline >= self.asked else replace(self, asked=deadline, deadline=deadline)

    def after(self, now: datetime) -> Stopping:
        """The next stage: a container that is asked to end is given a little time, however long its hook took."""
        if self.stage is Stage.HOOK:
            return replace(self, stage=Stage.TERM, deadline=max(self.deadline, now + SHORTEST_GRACE), begun=False)
        return replace(self, stage=Stage.KILL, begun=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Live:
    """Its process runs.

    hooked    its postStart hook has been done, or there is none
    hooking   the hook is being run
    """

    pid: int
    started_at: datetime
    probes: dict[Kind, Probing] = field(default_factory=dict)
    hooked: bool = True
    hooking: bool = False
    stopping: Stopping | None = None

    @property
    def started(self) -> bool:
        return self.hooked and probes.is_started(self.probes)

    @property
    def ready(self) -> bool:
        return self.hooked and probes.is_ready(self.probes)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """How a run ended."""

    exit_code: int
    reason: str
    finished_at: datetime
    started_at: datetime | None = None
    signal: int = 0
    message: str = ""
    pid: int = 0


Run: TypeAlias = Idle | Refused | Starting | Live | Ended


@dataclass(frozen=True, slots=True, kw_only=True)
class Container:
    """What is known of one container.

    last      how the run before this one ended
    restarts  how often it was started again
    crashes   how many starts in a row did not last, which decides how long the next one waits
    """

    run: Run = Idle()
    last: Ended | None = None
    restarts: int = 0
    crashes: int = 0

    @property
    def alive(self) -> bool:
        return isinstance(self.run, Live | Starting)


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What is known of one pod.

    began        when the node took it on
    initialized  its init containers have been through, once
    ended_at     since when it is being ended: it is deleted, or it may run no longer
    gone         the object no longer exists
    """

    began: datetime
    containers: Mapping[str, Container]
    initialized: bool = False
    ended_at: datetime | None = None
    gone: bool = False


# --- news


@dataclass(frozen=True, slots=True)
class Started:
    container: str
    pid: int
    at: datetime


@dataclass(frozen=True, slots=True)
class Exited:
    container: str
    ended: Ended


@dataclass(frozen=True, slots=True)
class Unstartable:
    container: str
    refused: Refused


@dataclass(frozen=True, slots=True)
class Probed:
    container: str
    pid: int
    kind: Kind
    answer: Answer
    at: datetime


@dataclass(frozen=True, slots=True)
class Hooked:
    """A hook is over; `failure` says why it failed, if it did."""

    container: str
    pid: int
    hook: Hook
    at: datetime
    failure: str = ""


@dataclass(frozen=True, slots=True)
class SourcesChanged:
    """What the pod refers to has changed, so that what was refused may be tried again."""


@dataclass(frozen=True, slots=True)
class Gone:
    """The object is no more."""


News: TypeAlias = Started | Exited | Unstartable | Probed | Hooked | SourcesChanged | Gone


def observed(pod: Pod, facts: Facts, news: News) -> Facts:
    """The facts after one piece of news.  News of a run that is over changes nothing."""
    match news:
        case Gone():
            return replace(facts, gone=True)
        case SourcesChanged():
            return replace(
                facts,
                containers={
                    name: replace(each, run=Idle()) if isinstance(each.run, Refused) else each
                    for name, each in facts.containers.items()
                },
            )
        case Started(name, pid, at):
            spec = pod.container(name)
            live = Live(
                pid=pid,
                started_at=at,
                probes=probes.begin(spec, at),
                hooked=spec.lifecycle.post_start is None,
            )
            return _with(facts, name, live)
        case Exited(name, ended):
            return _with(facts, name, ended)
        case Unstartable(name, refused):
            return _with(facts, name, refused)
        case Probed(name, pid, kind, answer, at):
            live_now = _live(facts, name, pid)
            if live_now is None:
                return facts
            probing = live_now.probes[kind].answer(answer, now=at)
            return _with(facts, name, replace(live_now, probes={**live_now.probes, kind: probing}))
        case Hooked(name, pid, hook, at, failure):
            live_now = _live(facts, name, pid)
            if live_now is None:
                return facts
            if hook is Hook.PRE_STOP:
                stopping = live_now.stopping
                if stopping is None or stopping.stage is not Stage.HOOK:
                    return facts
                return _with(facts, name, replace(live_now, stopping=stopping.after(at)))
            if failure:
                return _with(facts, name, replace(live_now, hooking=False, stopping=_failed_hook(pod, failure, at)))
            begun = probes.begin(pod.container(name), live_now.started_at)
            return _with(facts, name, replace(live_now, hooking=False, hooked=True, probes=begun))
        case _:
            assert_never(news)


def _failed_hook(pod: Pod, failure: str, now: datetime) -> Stopping:
    return Stopping.by(now + pod.grace, because=f"its postStart hook failed: {failure}", stage=Stage.TERM)


def _live(facts: Facts, name: str, pid: int) -> Live | None:
    run = facts.containers[name].run
    return run if isinstance(run, Live) and run.pid == pid else None


def _with(facts: Facts, name: str, run: Run) -> Facts:
    return replace(facts, containers={**facts.containers, name: replace(facts.containers[name], run=run)})


# --- the beginning


def begun(pod: Pod, now: datetime) -> Facts:
    """What is known of a pod when the node takes it on: nothing, or what was reported before the node restarted."""
    reported = {each.name: each for each in (*pod.status.init_container_statuses, *pod.status.container_statuses)}
    return Facts(
        began=times.parse(pod.status.start_time) if pod.status.start_time else now,
        containers={spec.name: _recalled(reported.get(spec.name), now) for spec in pod.containers},
    )


def _recalled(reported: ContainerStatus | None, now: datetime) -> Container:
    if reported is None:
        return Container()
    state, last = reported.state, reported.last_state.terminated
    before = _ended(last, now) if last is not None else None
    run: Run = Idle()
    if state.terminated is not None:
        run = _ended(state.terminated, now)
    elif state.running is not None:
        started = state.running.started_at
        run = Ended(
            exit_code=UNKNOWN_EXIT,
            reason="Unknown",
            message=NODE_RESTARTED,
            started_at=times.parse(started) if started else None,
            finished_at=now,
            pid=_pid(reported.container_id),
        )
    elif before is not None:
        # It was waiting to be started again.
        return Container(run=before, restarts=reported.restart_count)
    return Container(run=run, last=before, restarts=reported.restart_count)


def _ended(reported: Terminated, now: datetime) -> Ended:
    return Ended(
        exit_code=reported.exit_code,
        signal=reported.signal,
        reason=reported.reason,
        message=reported.message,
        started_at=times.parse(reported.started_at) if reported.started_at else None,
        finished_at=times.parse(reported.finished_at) if reported.finished_at else now,
        pid=_pid(reported.container_id),
    )


def container_id(pid: int) -> str:
    """How a process is named in a status."""
    return f"process://{pid}" if pid else ""


def _pid(container_id: str) -> int:
    digits = container_id.removeprefix("process://")
    return int(digits) if digits.isdecimal() else 0
