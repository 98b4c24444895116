"""Whole rollouts in virtual time: the real engine decides, simulated replicas obey and fail.

    >>> from holdfast.kernel.planning import WorkloadSpec
    >>> run = simulate(Scenario(spec=WorkloadSpec(replicas=3)), seed=7)
    >>> run.outcome.ending, run.outcome.lowest_ready
    (<Ending.COMPLETED: 'completed'>, 2)

The loop is that of an operator: observe, decide, guard, choose, act; then wait
for the next event.  After every action the promises are checked on the replicas
themselves, and a broken one ends the simulation at once.  The result follows
from the scenario and the seed alone.  The simulation never waits for what
cannot happen: it ends, and the `Ending` says why.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime, timedelta

import msgspec

from holdfast.kernel.backoff import Backoff
from holdfast.kernel.fleet import Fleet, Replica, Side, choose, observe
from holdfast.kernel.guard import guard
from holdfast.kernel.preview import phase_of
from holdfast.kernel.reasons import Because, Code, count
from holdfast.kernel.rollout import (
    Blocked,
    Decision,
    Done,
    Hold,
    Kind,
    Progress,
    RollBack,
    Start,
    Stop,
    Switch,
    Verdict,
    Wait,
    decide,
)
from holdfast.kernel.strategies import Old, Switched
from holdfast.simulator.frames import BEGIN, Actor, Ending, Frame, InvariantBroken, Outcome, Run, Tally
from holdfast.simulator.replicas import Event, Happening, World
from holdfast.simulator.scenarios import Scenario
from holdfast.simulator.scripts import Command, Verb

REFUSALS = Backoff(base=timedelta(seconds=10), cap=timedelta(minutes=16), jitter=0.0)
"""When a start that the cluster refused is tried again, if nothing changes before."""

Decide = Callable[..., Verdict]
Guard = Callable[..., Decision]


def simulate(scenario: Scenario, *, seed: int, decide: Decide = decide, guard: Guard = guard) -> Run:
    """Run a scenario to its end."""
    simulation = Simulation(scenario, seed=seed, decide=decide, guard=guard)
    frames = tuple(simulation.frames())
    return Run(frames, simulation.outcome())


class Simulation:
    """A scenario that runs: iterate `frames`, and `order` commands meanwhile."""

    def __init__(self, scenario: Scenario, *, seed: int, decide: Decide = decide, guard: Guard = guard) -> None:
        self.scenario = scenario
        self.seed = seed
        self._decide, self._guard = decide, guard
        self._script = sorted(scenario.script, key=lambda command: command.at)
        self._replicas = scenario.spec.replicas
        self._asked = scenario.rollout(self._replicas)
        current = self._replicas if scenario.current is None else scenario.current
        # The target, the revisions that were complete, and the one that gets the traffic where only one does.
        self._target = scenario.target
        self._history = [scenario.before] if current else []
        self._revisions = list(dict.fromkeys([*self._history, self._target]))
        switches = any(isinstance(step.gate, Switched) for step in self._asked.steps)
        self._serving = scenario.before if switches and current else None
        self._rejected: list[str] = []
        self._withdrawn = False
        # The facts that an operator keeps with the object.
        self._progress = Progress()
        self._progressed_at: datetime | None = BEGIN
        self._furthest: tuple[int, int] | None = None
        self._promotion_at: datetime | None = None
        # What the cluster allows.
        self._quota: int | None = None
        self._refusals = 0
        self._world = World(scenario.behaviour, seed=seed, now=BEGIN)
        self._world.found(scenario.before, current, ordered=scenario.ordered, broken=scenario.unready)
        self._seen: tuple[tuple[Replica, ...], object, Fleet] | None = None
        self._frames: list[Frame] = []
        self._tally = Tally(self._observe())
        self._ending: Ending | None = None
        self._verdict = self._judge()
        self._decision = self._verdict.decision

    # The loop.

    def frames(self) -> Iterator[Frame]:
        """Every change, until nothing can change any more."""
        before = f"{self._stable} → " if self._stable not in (None, self._target) else ""
        yield self._frame(Actor.USER, f"{before}{self._target}, {count(self._replicas)}")
        while self._ending is None:
            yield from self._settle()
            self._ending = self._ending or self._hopeless()
            if self._ending is None:
                yield from self._pass_time()

    def order(self, command: Command) -> None:
        """Add a command; if its moment has passed, it is carried out next."""
        self._script = sorted([*self._script, command], key=lambda other: other.at)

    def outcome(self) -> Outcome:
        if self._ending is None:
            raise RuntimeError("the simulation is not over; iterate its frames to their end")
        tally, limits, fleet = self._tally, self._asked.limits, self._observe()
        return Outcome(
            ending=self._ending,
            because=self._decision.because,
            remedy=self._decision.remedy if isinstance(self._decision, Blocked) else "",
            warnings=limits.warnings,
            seed=self.seed,
            revision=self._target,
            rejected=tuple(self._rejected),
            duration=self._at,
            replicas=limits.replicas,
            floor=limits.floor,
            guaranteed=all(step.floor for step in self._asked.steps),
            ceiling=tally.ceiling,
            lowest_ready=tally.lowest_ready,
            most_live=tally.most_live,
            final_ready=fleet.ready,
            starts=tally.starts,
            stops=tally.stops,
            crashes=tally.crashes,
            deaths=tally.deaths,
            dips=tally.dips,
            below=tally.below,
            waits=tally.waits,
        )

    def _settle(self) -> Iterator[Frame]:
        """Decide and act until the engine waits; more rounds than the replicas can need end the simulation."""
        said: Because | None = self._frames[-1].decision.because if len(self._frames) > 1 else None
        for _ in range(10 * (len(self._world.replicas) + self._replicas) + 100):
            self._verdict = self._judge()
            further, self._progress = self._verdict.progress != self._progress, self._verdict.progress
            decision = self._guard(self._verdict.decision, self._observe(), shape=self._verdict.shape)
            self._decision = self._admitted(decision)
            self._tally.decided(self._decision)
            if self._act(self._decision):
                yield self._frame(Actor.ENGINE, self._words(self._decision))
                continue
            if further:
                # A change of the kept facts is an event like any other: the operator reconciles again.
                continue
            if self._decision.because != said:
                yield self._frame(Actor.ENGINE, self._words(self._decision))
            self._call_for_promotion()
            return
        self._ending = Ending.SPINNING

    def _hopeless(self) -> Ending | None:
        """The end, when no event that is still to come can change the decision."""
        if self._script or self._promotion_at is not None:
            return None
        match self._decision:
            case Done():
                going = any(replica.terminating for replica in self._world.replicas)
                good = Ending.WITHDRAWN if self._withdrawn else Ending.COMPLETED
                return None if going else good
            case Blocked() if not self._world.hopeful:
                return Ending.BLOCKED
            case Hold(until=None) if not self._world.hopeful:
                return Ending.WAITING
            case _:
                return None

    def _pass_time(self) -> Iterator[Frame]:
        """Advance to the next event, deadline or command."""
        until = self._decision.until if isinstance(self._decision, Wait | Hold) else None
        ordered = BEGIN + self._script[0].at if self._script else None
        moments = (until, ordered, self._promotion_at, self._world.next_at)
        moment = min((each for each in moments if each is not None), default=None)
        most = self.scenario.most_frames
        if moment is None or moment > BEGIN + self.scenario.limit or (most is not None and len(self._frames) >= most):
            self._ending = Ending.STUCK if moment is None else Ending.OUT_OF_TIME
            return
        moment = max(moment, self._world.now)
        self._tally.passed(moment - self._world.now, self._decision)
        if isinstance(self._decision, Hold):
            # A rollout that is held is not late.
            self._progressed_at = moment
        before = self._observe()
        happened = self._world.advance(moment)
        if happened:
            yield self._aftermath(happened, before, Actor.CLUSTER, _summary(happened))
        if self._promotion_at is not None and self._promotion_at <= moment:
            self.order(Command(self._at, Verb.PROMOTE))
            self._promotion_at = None
        while self._script and BEGIN + self._script[0].at <= moment:
            yield self._obey(self._script.pop(0))

    # Observe, decide.

    @property
    def _at(self) -> timedelta:
        return self._world.now - BEGIN

    @property
    def _stable(self) -> str | None:
        return self._history[-1] if self._history else None

    @property
    def _base(self) -> str | None:
        """The revision that old replicas are started from: the one that serves, or was last complete."""
        base = self._serving if self._serving not in (None, self._target) else self._stable
        return None if base == self._target else base

    @property
    def _size(self) -> int | None:
        """Where an ordered fleet ends; others have no end."""
        return self._replicas if self.scenario.ordered else None

    def _observe(self) -> Fleet:
        replicas = self._world.replicas
        point = (self._target, self._base, self._serving, self._size, self._world.now)
        if self._seen is None or self._seen[0] is not replicas or self._seen[1] != point:
            fleet = observe(
                replicas,
                self._target,
                now=self._world.now,
                min_ready=self.scenario.min_ready,
                size=self._size,
                stable=self._base is not None,
                serving=self._serving,
            )
            self._seen = replicas, point, fleet
        return self._seen[2]

    def _judge(self) -> Verdict:
        fleet = self._observe()
        furthest = self._furthest or (fleet.new.available, fleet.old.live)
        further = fleet.new.available > furthest[0] or fleet.old.live < furthest[1]
        if further and self._progressed_at is not None:
            self._progressed_at = self._world.now
        self._furthest = max(furthest[0], fleet.new.available), min(furthest[1], fleet.old.live)
        fleet = msgspec.structs.replace(fleet, progressed_at=self._progressed_at)
        asked = msgspec.structs.replace(self._asked, target=self._target)
        return self._decide(asked, fleet, progress=self._progress, now=self._world.now)

    def _admitted(self, decision: Decision) -> Decision:
        """The part of a decision that the quota of the cluster admits; a refused start is tried again later."""
        if not isinstance(decision, Start) or self._quota is None:
            return decision
        room = self._quota - sum(not replica.dead for replica in self._world.replicas)
        if room > 0:
            self._refusals = 0
            return msgspec.structs.replace(decision, count=min(room, decision.count))
        self._refusals += 1
        again = REFUSALS.next_attempt_at(self._world.now, self._refusals)
        because = Because(Code.AT_CEILING, f"the cluster's quota of {count(self._quota)} is used up")
        return Wait(decision.side, decision.count, again, because)

    def _call_for_promotion(self) -> None:
        """Schedule the promotion of a step that waits for approval."""
        after = self.scenario.promote_after
        if self._decision.because.code is not Code.APPROVAL_NEEDED:
            self._promotion_at = None
        elif after is not None and self._promotion_at is None:
            self._promotion_at = self._world.now + after

    # Act.

    def _act(self, decision: Decision) -> bool:
        """Carry a decision out; whether there was anything to do."""
        match decision:
            case Start(side=side, count=number):
                revision = self._target if side is Side.NEW else self._base
                if revision is None:
                    raise self._broken("P2", "starts replicas of an old revision, and there is none")
                self._world.start(revision, number, ordered=self.scenario.ordered)
                self._check_ceiling(decision)
            case Stop():
                self._stop(decision)
            case Switch():
                self._serving = self._target
            case RollBack(final=final):
                if final:
                    self._rejected.append(self._target)
                self._go_back()
            case Done():
                self._finish()
                return False
            case Hold() | Wait() | Blocked():
                return False
        return True

    def _stop(self, decision: Stop) -> None:
        before = self._ready()
        chosen = choose(
            self._world.replicas,
            self._target,
            side=decision.side,
            states=decision.kind.states,
            count=decision.count,
            now=self._world.now,
            min_ready=self.scenario.min_ready,
            size=self._size,
            stable=self._base,
            serving=self._serving,
        )
        self._world.stop(chosen)
        step = self._asked.steps[self._progress.step]
        least = min(before, self._asked.limits.floor if step.floor else 0)
        if self._ready() < least:
            raise self._broken("P1", f"{decision} leaves {self._ready()} ready, at least {least} must be")
        if len(chosen) != decision.count or not chosen:
            raise self._broken("P1", f"{decision} stops what is not there; there are {len(chosen)}")

    def _go_back(self) -> None:
        """Withdraw the wanted revision: the base takes its place, through open gates and in every partition."""
        base = self._base
        if base is None:
            return
        steps = tuple(msgspec.structs.replace(step, hold=0) for step in self._asked.steps)
        self._asked = msgspec.structs.replace(self._asked, steps=steps, approved=len(steps))
        self._withdrawn = True
        self._aim(base)

    def _aim(self, target: str) -> None:
        if target not in self._revisions:
            self._revisions.append(target)
        self._target = target
        self._begin()

    def _begin(self) -> None:
        """The deadline counts from here."""
        self._progressed_at, self._furthest = self._world.now, None

    def _finish(self) -> None:
        self._progressed_at = None
        if self._target != self._stable and not self._observe().old.live:
            self._history.append(self._target)

    def _obey(self, command: Command) -> Frame:
        """Carry out a command."""
        number, before = command.number or 0, self._observe()
        happened: tuple[Happening, ...] = ()
        match command.verb:
            case Verb.PAUSE | Verb.RESUME:
                self._asked = msgspec.structs.replace(self._asked, paused=command.verb is Verb.PAUSE)
                self._begin()
            case Verb.PROMOTE:
                self._asked = msgspec.structs.replace(self._asked, approved=self._progress.step + 1)
            case Verb.ABORT:
                self._go_back()
            case Verb.UNDO:
                self._undo()
            case Verb.SCALE:
                self._asked = msgspec.structs.replace(self._asked, limits=self.scenario.rollout(number).limits)
                self._replicas = number
                self._begin()
            case Verb.REVISION:
                paused = self._asked.paused
                self._asked = msgspec.structs.replace(self.scenario.rollout(self._replicas), paused=paused)
                self._withdrawn = False
                self._aim(command.name)
            case Verb.DRAIN:
                self._world.drain(number)
                self._begin()
            case Verb.QUOTA:
                self._quota, self._refusals = number, 0
            case Verb.DELETE:
                self._world.stop(self._oldest(number))
            case Verb.CRASH | Verb.KILL:
                happened = self._world.crash(self._oldest(number), dies=command.verb is Verb.KILL)
        return self._aftermath(happened, before, Actor.USER, str(command))

    def _undo(self) -> None:
        """Back to what was complete before: a rollout under way is withdrawn, a finished one is followed by another."""
        if self._target != self._stable:
            self._go_back()
        elif len(self._history) > 1:
            self._asked = self.scenario.rollout(self._replicas)
            self._aim(self._history[-2])

    def _oldest(self, number: int) -> list[str]:
        """The first `number` live replicas, old ones first."""
        live = [replica for replica in self._world.replicas if not replica.terminating and not replica.dead]
        return [replica.id for replica in sorted(live, key=lambda r: r.side(self._target) is Side.NEW)[:number]]

    # Check.

    def _ready(self) -> int:
        """Ready replicas that serve, counted without the engine's help."""
        return sum(
            replica.ready_since is not None
            and not replica.terminating
            and not replica.dead
            and self._serving in (None, replica.revision)
            for replica in self._world.replicas
        )

    def _check_ceiling(self, decision: Start) -> None:
        limits, step = self._asked.limits, self._asked.steps[self._progress.step]
        most = 2 * limits.replicas if step.old is Old.SERVE else limits.replicas + limits.surge
        going = self._asked.count_terminating or self._asked.ordered
        live = sum(not replica.dead and (going or not replica.terminating) for replica in self._world.replicas)
        if live > most:
            raise self._broken("P2", f"{decision} makes {live} live, at most {most} may be")

    def _broken(self, promise: str, why: str) -> InvariantBroken:
        self._frame(Actor.ENGINE, self._words(self._decision))
        return InvariantBroken(promise, why, seed=self.seed, frames=self._frames)

    # Record.

    def _aftermath(self, happened: Iterable[Happening], before: Fleet, actor: Actor, what: str) -> Frame:
        self._tally.happened(happened, before=before, after=self._observe(), floor=self._verdict.shape.floor)
        return self._frame(actor, what)

    def _frame(self, actor: Actor, what: str) -> Frame:
        fleet = self._observe()
        self._tally.seen(fleet, self._verdict.shape)
        frame = Frame(
            at=self._at,
            actor=actor,
            what=what,
            decision=self._decision,
            phase=phase_of(self._verdict, fleet, rollout=self._asked),
            shape=self._verdict.shape,
            fleet=fleet,
            replicas=self._world.replicas,
            revisions=tuple(self._revisions),
            target=self._target,
            serving=self._serving,
            desired=self._replicas,
            min_ready=self.scenario.min_ready,
        )
        self._frames.append(frame)
        return frame

    def _words(self, decision: Decision) -> str:
        """A decision in a few words; the reason is a column of its own."""
        match decision:
            case Start(side=side, count=number):
                return f"start {number} {side}"
            case Stop(side=side, kind=kind, count=number):
                return f"stop {number} {side}" if kind is Kind.READY else f"remove {number} {kind}"
            case Switch():
                return f"switch to {self._target}"
            case RollBack():
                return f"go back to {self._target}"
            case Wait() | Hold():
                return "wait"
            case Blocked():
                return "blocked"
            case Done():
                return "done"


def _summary(happened: Iterable[Happening]) -> str:
    """``2 ready, 1 gone``."""
    events = Counter(happening.event for happening in happened)
    return ", ".join(f"{events[event]} {event}" for event in Event if events[event])
