"""The conditions of a Workload: whether each is true, and why, from the facts of one reconciliation."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Final

import msgspec

from holdfast.kernel import floors
from holdfast.kernel.conditions import Verdict
from holdfast.kernel.decisions import RollBack
from holdfast.kernel.fleet import Fleet, Side
from holdfast.kernel.floors import Floor
from holdfast.kernel.limits import Limits
from holdfast.kernel.outcomes import Failure
from holdfast.kernel.planning import WorkloadSpec
from holdfast.kernel.reasons import Because, Code, Reason, count
from holdfast.kernel.stepping import Step
from holdfast.kinds.cloudless.rollouts import RolloutStatus
from holdfast.kinds.cloudless.workloads import WorkloadStatus
from holdfast.operators.workload.observe import World
from holdfast.operators.workload.problems import Problems
from holdfast.operators.workload.reasons import WorkloadReason
from holdfast.operators.workload.replicas import Replicas
from holdfast.operators.workload.revisions import Revisions, rejected_revision, rejection, returned_to

_PAUSES: Final = frozenset({Code.PAUSED, Code.BATCH_PAUSE, Code.STEP_PAUSE, Code.APPROVAL_NEEDED, Code.DELETION_NEEDED})


@dataclass(frozen=True, kw_only=True)
class Facts:
    """What one reconciliation observed and decided.

    asked        what the spec asks of the engine
    problems     why replicas are not ready
    step         the engine's decision
    limits       the limits of the step, with every warning about them
    drain_floor  how many replicas stay available while nodes are drained: the floor, or an announced exception
    """

    world: World
    asked: WorkloadSpec
    revisions: Revisions
    replicas: Replicas
    problems: Problems
    step: Step
    limits: Limits
    drain_floor: int

    @property
    def fleet(self) -> Fleet:
        return self.step.fleet

    @property
    def before(self) -> WorkloadStatus:
        """The status as it was."""
        return self.world.workload.status or WorkloadStatus()

    @property
    def target(self) -> str:
        return self.revisions.target.revision

    @property
    def kept(self) -> RolloutStatus:
        """The facts of this rollout from the status as it was; empty when the rollout has just begun."""
        same = self.before.update_revision == self.target
        return (self.before.rollout if same else None) or RolloutStatus()

    @property
    def first(self) -> bool:
        """No revision was ever rolled out completely."""
        return self.revisions.stable is None and not self.revisions.settled

    @property
    def floor(self) -> Floor:
        """The floor, with the most and the fewest replicas that were available.

        A step without a floor, such as Recreate's first, stops replicas on purpose: what it stops is not lost.
        """
        required, before = self.step.verdict.shape.floor, self.before.rollout or RolloutStatus()
        known = Floor(most=before.most_available or 0, lowest=before.lowest_ready)
        resized = self.before.limits is not None and self.before.limits.floor != required
        return floors.observed(
            known if required or not self.limits.floor else None,
            limits=msgspec.structs.replace(self.limits, floor=min(required, self.drain_floor)),
            available=self.fleet.available,
            afresh=self.before.update_revision != self.target or (resized and self.revisions.settled),
        )

    @property
    def rejection(self) -> Because:
        """Why the revision of the spec is not rolled out, where it is rejected."""
        return Because(
            WorkloadReason.REJECTED,
            f"revision {self.revisions.wanted} of the spec was rejected{self._cause}, so revision {self.target} "
            "is kept; change the spec, or retry the rollout",
        )

    @property
    def because(self) -> Because:
        """Why the rollout does what it does, or what it waits for."""
        if self.step.complete and self.revisions.rejected:
            return self.rejection
        because, worst = self.step.because, self.problems.worst
        if self.restores:
            because = Because(because.code, self.named(because.message))
        if worst is None or self.step.complete:
            return because
        # What is wrong with a replica explains more than the counts.
        return Because(because.code, f"{because.message}; {worst}")

    @property
    def restores(self) -> bool:
        """Whether the target is the revision that an abort, a rollback or an undo returns to."""
        return self.revisions.rejected or self.target == returned_to(self.world.object)

    def called(self, side: Side) -> str:
        """A side of the rollout, by role and name: what is restored is not new, and what was rejected is not old."""
        if side is Side.NEW:
            return f"the {self._role(side)} revision {self.target}"
        names = self._others
        return f"the {self._role(side)} revision {names[0]}" if len(names) == 1 else "other revisions"

    def named(self, message: str) -> str:
        """A message of the engine, with its two revisions by role and name."""
        for side in Side:
            message = message.replace(f"the {side} revision", self.called(side))
            message = message.replace(f"; {side}: ", f"; {self._role(side)}: ")
        return message

    def _role(self, side: Side) -> str:
        if side is Side.NEW:
            return "restored" if self.restores else "stable" if self.revisions.settled else "new"
        return "rejected" if self._others == [rejected_revision(self.world.object)] else "old"

    @cached_property
    def _others(self) -> list[str]:
        """The revisions of the old side: those of its replicas, or the one that they would be started from."""
        running = {each.revision for each in self.replicas.all if not each.terminating} - {self.target, ""}
        other = self.revisions.other or self.revisions.stable
        return sorted(running) or ([] if other is None else [other.revision])

    @property
    def _cause(self) -> str:
        why = rejection(self.world.object)
        return "" if why is None else f" at {why.time} ({why.reason}: {why.message})"

    @property
    def reason(self) -> Reason:
        """The most important reason: the problem of a replica, or else that of the rollout."""
        worst = None if self.step.complete else self.problems.worst
        return self.because.code if worst is None else worst.reason


def verdicts(facts: Facts, failure: Failure | None = None) -> dict[str, Verdict]:
    """The conditions, in their order; `failure` is the request that the API server refused, if it did."""
    found = {
        "Available": _available(facts),
        "Progressing": _progressing(facts),
        "Completed": _completed(facts),
        "Paused": _paused(facts),
        "Blocked": _blocked(facts),
        "Degraded": _degraded(facts),
        **floors.verdicts(facts.floor, facts.limits),
    }
    if failure is not None:
        found["Progressing"] = Verdict.false(WorkloadReason.REQUEST_REFUSED, failure.message)
        found["Blocked"] = Verdict.true(WorkloadReason.REQUEST_REFUSED, failure.message)
    return found


def _available(facts: Facts) -> Verdict:
    if facts.fleet.available >= facts.limits.floor:
        return Verdict.true(WorkloadReason.ENOUGH_AVAILABLE, _against_floor(facts))
    return Verdict.false(WorkloadReason.TOO_FEW_AVAILABLE, _against_floor(facts) + _worst(facts))


def _worst(facts: Facts) -> str:
    return "" if facts.problems.worst is None else f"; {facts.problems.worst}"


def _against_floor(facts: Facts) -> str:
    limits = facts.limits
    return f"{facts.fleet.available:,} of {count(limits.replicas)} available, the floor is {limits.floor:,}"


def _progressing(facts: Facts) -> Verdict:
    because = facts.because
    if facts.step.complete:
        reason = WorkloadReason.REJECTED if facts.revisions.rejected else WorkloadReason.ROLLED_OUT
        return Verdict.false(reason, because.message)
    if facts.step.refusal is not None:
        return Verdict.false(because.code, because.message)
    return Verdict.true(because.code, because.message)


def _completed(facts: Facts) -> Verdict:
    message = facts.because.message
    if facts.revisions.rejected:
        return Verdict.false(WorkloadReason.REJECTED, message)
    if facts.step.complete:
        return Verdict.true(WorkloadReason.ROLLED_OUT, message)
    return Verdict.false(WorkloadReason.SCALING if facts.revisions.settled else WorkloadReason.ROLLING_OUT, message)


def _paused(facts: Facts) -> Verdict:
    because = facts.because
    if because.code in _PAUSES:
        return Verdict.true(because.code, because.message)
    return Verdict.false(WorkloadReason.NOT_PAUSED, "the rollout is not paused and no step waits")


def _blocked(facts: Facts) -> Verdict:
    blocked, because = facts.step.blocked, facts.because
    if blocked is not None:
        return Verdict.true(because.code, f"{because.message}; {blocked.remedy}")
    if because.code is Code.AT_FLOOR:
        return Verdict.true(because.code, because.message)
    return Verdict.false(WorkloadReason.NOT_BLOCKED, "nothing prevents the rollout from continuing")


def _degraded(facts: Facts) -> Verdict:
    refusal, missing = facts.step.refusal, facts.revisions.missing
    if isinstance(refusal, RollBack) or (refusal and refusal.because.code is Code.PROGRESS_DEADLINE_EXCEEDED):
        return Verdict.true(Code.PROGRESS_DEADLINE_EXCEEDED, refusal.because.message + _worst(facts))
    if facts.floor.broken:
        return Verdict.true(WorkloadReason.TOO_FEW_AVAILABLE, _against_floor(facts) + _worst(facts))
    if missing:
        return Verdict.true(WorkloadReason.CONFIGURATION_MISSING, f"{', '.join(missing)} not found")
    if facts.problems.worst is not None:
        return Verdict.true(facts.problems.worst.reason, str(facts.problems.worst))
    if facts.replicas.broken:
        message = f"{count(facts.replicas.broken)} not ready any more, or failed"
        return Verdict.true(WorkloadReason.BROKEN_REPLICAS, message)
    return Verdict.false(WorkloadReason.HEALTHY, "every replica that should serve does")
