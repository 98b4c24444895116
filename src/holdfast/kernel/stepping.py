"""One step of a rollout: from the observed replicas to those that are started and stopped.

    replicas -> fleet -> decide -> guard -> choose

Every operator uses the engine through this module.  It describes the rollout and the
replicas that it sees (`Situation`), and carries out the `Step` that it gets; floor,
ceiling and the choice of replicas are decided here alone.  The module must not know
what a replica is made of, nor how one is started or stopped.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import cached_property
from typing import Final

import msgspec

from holdfast.kernel import fleet as fleets
from holdfast.kernel import rollout as engine
from holdfast.kernel.decisions import Blocked, Decision, Done, Hold, Kind, Refusal, Start, Stop, Wait
from holdfast.kernel.fleet import Fleet, Replica, Side, Sorted
from holdfast.kernel.groups import Role, decide_group
from holdfast.kernel.guard import guard
from holdfast.kernel.outcomes import Outcome, soonest, until
from holdfast.kernel.reasons import Because
from holdfast.kernel.rollout import Progress, Rollout, Verdict

AT_A_TIME: Final = 250
"""Replicas that one step starts or stops, so that the status of a large fleet is written on the way."""


@dataclass(frozen=True, kw_only=True)
class Situation:
    """What is asked for, and the observed replicas.

    progress       the facts of the rollout that are kept with the object
    progressed_at  when the rollout last made progress (`progressed`); None: no rollout
    min_ready      how long a replica must be ready to be available
    size           of an ordered fleet: ordinals from this one on must leave
    stable         the revision from which old replicas can be started again, if one is known
    serving        the revision that receives the traffic, where only one does
    """

    rollout: Rollout
    replicas: tuple[Replica, ...]
    now: datetime
    progress: Progress = field(default_factory=Progress)
    progressed_at: datetime | None = None
    min_ready: timedelta = timedelta()
    size: int | None = None
    stable: str | None = None
    serving: str | None = None

    @property
    def target(self) -> str:
        return self.rollout.target

    @cached_property
    def sorted(self) -> Sorted:
        """The replicas, by side and state."""
        return fleets.sort_out(
            self.replicas,
            self.target,
            now=self.now,
            min_ready=self.min_ready,
            size=self.size,
            serving=self.serving,
        )

    @cached_property
    def fleet(self) -> Fleet:
        """The replicas, counted."""
        return self.sorted.fleet(stable=self.stable is not None, progressed_at=self.progressed_at)

    def since(self, progressed_at: datetime | None) -> Situation:
        """The same situation, with the time when its rollout last made progress."""
        made = replace(self, progressed_at=progressed_at)
        # The replicas are the same, and are not sorted and counted again.
        vars(made)["sorted"] = self.sorted
        vars(made)["fleet"] = msgspec.structs.replace(self.fleet, progressed_at=progressed_at)
        return made

    def chosen(self, stop: Stop) -> tuple[str, ...]:
        """The replicas that a decision stops, by id."""
        count = min(stop.count, AT_A_TIME)
        return self.sorted.first(count, side=stop.side, states=stop.kind.states, stable=self.stable)


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """What to do next, and why.

    verdict   what the engine decided, with the facts to keep
    decision  what its guard left of that: the one to carry out
    stops     the replicas to stop, by id
    """

    situation: Situation
    verdict: Verdict
    decision: Decision
    stops: tuple[str, ...] = ()

    @property
    def fleet(self) -> Fleet:
        return self.situation.fleet

    @property
    def rollout(self) -> Rollout:
        return self.situation.rollout

    @property
    def refusal(self) -> Refusal | None:
        """Why the rollout must not go on, though replicas may still be started or stopped."""
        return self.verdict.refusal

    @property
    def because(self) -> Because:
        """Why: a refusal explains more than what is done meanwhile."""
        return (self.refusal or self.decision).because

    @property
    def blocked(self) -> Blocked | None:
        """Why the rollout cannot go on unless something is changed."""
        said = self.refusal or self.decision
        return said if isinstance(said, Blocked) else None

    @property
    def complete(self) -> bool:
        return isinstance(self.verdict.decision, Done)

    def starts(self, side: Side) -> int:
        """How many replicas of a side to start."""
        decision = self.decision
        return min(decision.count, AT_A_TIME) if isinstance(decision, Start) and decision.side is side else 0

    @property
    def stops_ready(self) -> bool:
        """Whether the replicas to stop are ready: their loss must be agreed with disruption budgets."""
        return isinstance(self.decision, Stop) and self.decision.kind is Kind.READY

    @property
    def replaces_first(self) -> bool:
        """Whether ready replicas are stopped for a revision of which none exists yet, so none has been accepted."""
        return self.stops_ready and not self.fleet.new.live and self.rollout.limits.replicas > 0

    def outcome(self) -> Outcome:
        """When to look again though nothing changes."""
        now = self.situation.now
        waits = (each for each in (self.decision, self.refusal) if isinstance(each, Hold | Wait))
        return soonest(until(each.until, now=now, because=each.because.message) for each in waits if each.until)


def step(situation: Situation, *, refusal: Refusal | None = None) -> Step:
    """The next step; with a `refusal` of the operator, the rollout holds and only lost replicas are replaced."""
    rollout, fleet = situation.rollout, situation.fleet
    if refusal is None:
        verdict = engine.decide(rollout, fleet, progress=situation.progress, now=situation.now)
    else:
        verdict = engine.hold(rollout, fleet, refusal, progress=situation.progress, now=situation.now)
    return _guarded(situation, verdict)


def step_together(situations: Mapping[str, Situation], *, now: datetime) -> dict[str, Step]:
    """The next step of each role of a group, in lockstep."""
    roles = {name: Role(each.rollout, each.fleet, each.progress) for name, each in situations.items()}
    verdicts = decide_group(roles, now=now)
    return {name: _guarded(each, verdicts[name]) for name, each in situations.items()}


def _guarded(situation: Situation, verdict: Verdict) -> Step:
    decision = guard(verdict.decision, situation.fleet, shape=verdict.shape)
    stops = situation.chosen(decision) if isinstance(decision, Stop) else ()
    return Step(situation=situation, verdict=verdict, decision=decision, stops=stops)


def progressed(situation: Situation, *, before: datetime | None, old_before: int | None) -> datetime:
    """When a rollout last made progress: it began, an old replica is gone, a new one became available.

    `before` is the last progress that the status knows, and `old_before` how many old replicas there were then.
    A replica that is available again after a restart is no progress: otherwise a replica that crashes again and
    again would keep the deadline from ever being missed.

    Progress counts from when it is seen, by the clock of the operator: nodes have clocks of their own.  A time
    that is still to come was written before that clock was set back, and counts as now.
    """
    now = situation.now
    if before is None or (old_before is not None and situation.fleet.old.live < old_before):
        return now
    before = min(before, now)
    target, min_ready = situation.target, situation.min_ready
    ready_since = [
        each.ready_since
        for each in situation.replicas
        if each.revision == target and each.ready_since is not None and not each.restarts
    ]
    available_at = (since + min_ready for since in ready_since) if min_ready else ready_since
    return now if any(before < moment <= now for moment in available_at) else before


def indexed(replicas: Iterable[Replica], target: str, *, size: int) -> tuple[Replica, ...]:
    """Replicas with indices, where replicas of the surge have the indices from `size` on.

    While an old replica is left, no replica must leave for its index.  After that, those from `size` on leave, so
    that in the end the indices are 0 to `size - 1` again.
    """
    replicas = tuple(replicas)
    outdated = any(
        (each.revision != target or each.leaving) and not each.terminating and not each.dead for each in replicas
    )
    return tuple(
        msgspec.structs.replace(
            each,
            ordinal=None,
            leaving=each.leaving or (not outdated and each.ordinal is not None and each.ordinal >= size),
        )
        for each in replicas
    )
