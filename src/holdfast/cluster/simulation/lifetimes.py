"""The life of a simulated pod: what its containers do, and when something happens next.

    Pending ──► init containers, one after the other ──► containers run ──► ready
                                                            │  ▲
                                            crash, or an end │  │ begun again, after a wait that grows
                                                            ▼  │
                                                           over ──► Succeeded or Failed, if for good

Pure: the pod with its last status, how it behaves, the faults that hit it and the
time in; its containers and the next deadline out.  A pod that asks for nothing
special starts and is ready at the same time, so that one write says both.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Final

from holdfast.client.pods import FINISHED
from holdfast.cluster.simulation.behaviours import Behaviour, is_broken
from holdfast.cluster.simulation.chaos import Crash, Hang, PodFault
from holdfast.cluster.simulation.pods import Container, ContainerSpec, Idle, Live, Over, Pod, reported
from holdfast.kernel.backoff import Backoff
from holdfast.meta import times

BACKOFF: Final = Backoff(base=timedelta(seconds=10), cap=timedelta(minutes=5), jitter=0)
"""The wait before a container is begun again; there is none before the first time."""

SETTLED: Final = timedelta(minutes=10)
"""A run of this length makes up for the crashes before it."""

PULLING: Final = timedelta(seconds=10)
"""How long an image that cannot be pulled is said to be tried before it is said to be waited for."""

CRASHING: Final = timedelta(seconds=1)
"""How long a container lasts while it is made to crash again and again."""

KILLED: Final = 137
CRASHED: Final = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Life:
    """What the containers of a pod do now, and when that changes by itself.

    started  there is something to report
    over     nothing runs, and nothing will
    expired  the pod was active for longer than it may be
    """

    containers: Mapping[str, Container]
    inits: Mapping[str, Container]
    started: bool
    initialized: bool
    over: bool
    expired: bool = False
    deadline: datetime | None = None


def live(pod: Pod, behaviour: Behaviour, faults: Iterable[PodFault], now: datetime, *, held: bool = False) -> Life:
    """The life of a pod, up to now; one that is `held` does not get past its init containers."""
    return _Living(pod, behaviour, tuple(faults), now, held).life()


def restart_at(container: Container) -> datetime | None:
    """When a container whose run is over is begun again, if it is to be."""
    run = container.run
    if not isinstance(run, Over):
        return None
    return run.at if run.at - run.since >= SETTLED else run.at + BACKOFF.delay(container.restarts)


def restarts(run: Over, policy: str) -> bool:
    """Whether a run that is over is followed by another."""
    return policy == "Always" or (policy == "OnFailure" and run.code != 0)


def scheduled_at(pod: Pod, now: datetime) -> datetime:
    """When the pod came to its node."""
    conditions = {each.type: each for each in pod.status.conditions}
    scheduled = conditions.get("PodScheduled")
    if scheduled is not None and scheduled.status == "True" and scheduled.last_transition_time:
        return times.parse(scheduled.last_transition_time)
    created = pod.metadata.creation_timestamp
    return times.parse(created) if created else now


@dataclass(slots=True)
class _Living:
    """One look at a pod; deadlines are gathered on the way."""

    pod: Pod
    behaviour: Behaviour
    faults: tuple[PodFault, ...]
    now: datetime
    held: bool = False
    _deadlines: list[datetime] = field(default_factory=list)

    def life(self) -> Life:
        pod, now = self.pod, self.now
        status = pod.status
        before = reported((*status.init_container_statuses, *status.container_statuses))
        for fault in self.faults:
            self._deadlines += fault.edges(now)
        inits, initialized = self._initialized(before)
        containers = {spec.name: before.get(spec.name, Container()) for spec in pod.spec.containers}
        if initialized:
            containers = {spec.name: self._moved(spec, containers[spec.name]) for spec in pod.spec.containers}
        else:
            containers = {name: _waits_for_inits(container) for name, container in containers.items()}
        expired = self._expired()
        if expired:
            containers = {name: _killed(container, now) for name, container in containers.items()}
        over = expired or (initialized and all(map(self._is_final, containers.values())))
        if over:
            inits = {name: _stopped(container, now) for name, container in inits.items()}
        everything = (*inits.values(), *containers.values())
        return Life(
            containers=containers,
            inits=inits,
            started=bool(status.start_time) or any(container.run != Idle() for container in everything),
            initialized=initialized,
            over=over,
            expired=expired,
            deadline=None if over else min((each for each in self._deadlines if each > now), default=None),
        )

    # --- init containers

    def _initialized(self, before: Mapping[str, Container]) -> tuple[dict[str, Container], bool]:
        """Each begins when the one before it is done, or, if that is a sidecar, runs."""
        inits: dict[str, Container] = {}
        passed, last = True, self.pod.spec.init_containers[-1:]
        for spec in self.pod.spec.init_containers:
            container = before.get(spec.name, Container())
            if passed:
                stays = self.held and spec in last
                container = self._sidecar(spec, container) if spec.sidecar else self._init(spec, container, stays=stays)
            else:
                container = _waits_for_inits(container)
            inits[spec.name] = container
            run = container.run
            passed = passed and (isinstance(run, Live) if spec.sidecar else isinstance(run, Over))
        return inits, passed and (bool(last) or not self.held)

    def _init(self, spec: ContainerSpec, container: Container, *, stays: bool) -> Container:
        run = container.run
        if isinstance(run, Idle):
            run = self._begun(spec, run, self.now)
        if isinstance(run, Live) and not stays:
            end = run.since + self.behaviour.init
            run = Over.ended(run, end, 0) if end <= self.now else run
            self._deadlines.append(end)
        return replace(container, run=run)

    def _sidecar(self, spec: ContainerSpec, container: Container) -> Container:
        run = container.run
        begun = self._begun(spec, run, self.now) if isinstance(run, Idle) else run
        return replace(container, run=replace(begun, ready=True) if isinstance(begun, Live) else begun)

    # --- containers

    def _moved(self, spec: ContainerSpec, container: Container) -> Container:
        """As far as it comes by now.  It ends, for a second run in a row must wait before it begins."""
        match container.run:
            case Idle() as idle:
                run = self._begun(spec, idle, self._start_at(spec))
                return (
                    self._moved(spec, replace(container, run=run))
                    if isinstance(run, Live)
                    else replace(container, run=run)
                )
            case Live(image=image) as run if image != spec.image:
                # As a kubelet does: the container is begun again with the image that is asked for now.
                return self._again(spec, replace(container, run=Over.ended(run, self.now, 0)))
            case Live() as run:
                end, code = self._end(run)
                if end is not None and end <= self.now:
                    return self._moved(spec, replace(container, run=Over.ended(run, end, code)))
                return replace(container, run=replace(run, ready=self._is_ready(run)))
            case Over() as run:
                at = restart_at(container)
                if self.pod.status.phase in FINISHED or at is None or not restarts(run, self.pod.spec.restart_policy):
                    return container
                if at > self.now:
                    self._deadlines.append(at)
                    return container
                return self._again(spec, container)

    def _begun(self, spec: ContainerSpec, idle: Idle, at: datetime) -> Idle | Live:
        """Begun at a time, unless it cannot be."""
        if is_broken(spec.image):
            return self._unpulled(spec)
        if at > self.now:
            self._deadlines.append(at)
            return idle if idle.reason == "ContainerCreating" else Idle()
        return Live(self.now, spec.image, ready=not self._staged)

    def _again(self, spec: ContainerSpec, container: Container) -> Container:
        over = container.run
        assert isinstance(over, Over), "only what is over is begun again"
        run = self._begun(spec, Idle(), self.now)
        if isinstance(run, Idle):
            return Container(run, container.restarts, over)
        run = replace(run, ready=False)
        return self._moved(spec, Container(run, container.restarts + 1, over))

    def _unpulled(self, spec: ContainerSpec) -> Idle:
        """An image that cannot be pulled: tried for a while, then waited for."""
        began = times.parse(self.pod.status.start_time) if self.pod.status.start_time else self.now
        if self.now < began + PULLING:
            self._deadlines.append(began + PULLING)
            return Idle("ErrImagePull", f'failed to pull image "{spec.image}": not found')
        return Idle("ImagePullBackOff", f'Back-off pulling image "{spec.image}"')

    @property
    def _staged(self) -> bool:
        """Whether running and being ready are two moments: the pod says when, is probed, or has begun already."""
        spec = self.pod.spec
        return self.behaviour.asked or bool(spec.init_containers) or any(each.probed for each in spec.containers)

    def _start_at(self, spec: ContainerSpec) -> datetime:
        return self.now if self._staged else scheduled_at(self.pod, self.now) + self.behaviour.warm_up

    def _end(self, run: Live) -> tuple[datetime | None, int]:
        """When a run ends, and with which code."""
        ends: list[tuple[datetime, int]] = []
        if self.behaviour.ending is not None:
            ends.append((run.since + self.behaviour.ending.after, self.behaviour.ending.code))
        ends += ((at, CRASHED) for at in self._crashes(run))
        if not ends:
            return None, 0
        end = min(ends)
        self._deadlines.append(end[0])
        return end

    def _crashes(self, run: Live) -> Iterator[datetime]:
        for fault in self.faults:
            if not isinstance(fault, Crash):
                continue
            if run.since < fault.since:
                yield fault.since
            elif fault.until is not None and run.since + CRASHING < fault.until:
                yield run.since + CRASHING

    def _is_ready(self, run: Live) -> bool:
        if not self.behaviour.ready or any(isinstance(each, Hang) and each.holds(self.now) for each in self.faults):
            return False
        at = run.since + self.behaviour.warm_up
        if run.ready or at <= self.now:
            return True
        self._deadlines.append(at)
        return False

    # --- the end

    def _is_final(self, container: Container) -> bool:
        run = container.run
        return isinstance(run, Over) and not restarts(run, self.pod.spec.restart_policy)

    def _expired(self) -> bool:
        seconds, began = self.pod.spec.active_deadline_seconds, self.pod.status.start_time
        if seconds is None:
            return False
        end = (times.parse(began) if began else self.now) + timedelta(seconds=seconds)
        self._deadlines.append(end)
        return end <= self.now


def _waits_for_inits(container: Container) -> Container:
    return replace(container, run=Idle("PodInitializing")) if isinstance(container.run, Idle) else container


def _killed(container: Container, now: datetime) -> Container:
    run = container.run
    return replace(container, run=Over.ended(run, now, KILLED)) if isinstance(run, Live) else container


def _stopped(container: Container, now: datetime) -> Container:
    run = container.run
    return replace(container, run=Over.ended(run, now, 0)) if isinstance(run, Live) else container
