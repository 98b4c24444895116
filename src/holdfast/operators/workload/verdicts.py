"""What is true of a Workload, and why: one verdict for each of its conditions, from the facts of one pass.

This module must not know the rest of the status, nor how long something has been true.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from holdfast.kernel.conditions import Verdict
from holdfast.kernel.fleet import Fleet
from holdfast.kernel.reasons import Because, Code, count
from holdfast.kernel.rollout import Blocked, Decision, Done, RollBack, Rollout
from holdfast.kernel.rollout import Verdict as Ruling
from holdfast.kinds.cloudless.workloads import WorkloadStatus
from holdfast.operators.workload.course import Course
from holdfast.operators.workload.observe import World
from holdfast.operators.workload.reasons import Why

_PAUSES: Final = frozenset({Code.PAUSED, Code.BATCH_PAUSE, Code.STEP_PAUSE, Code.APPROVAL_NEEDED, Code.DELETION_NEEDED})


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What one pass saw and decided.

    broken    replicas that should serve and do not
    verdict   what the engine said
    decision  what its guard left of that
    """

    world: World
    course: Course
    rollout: Rollout
    fleet: Fleet
    broken: int
    verdict: Ruling
    decision: Decision

    @property
    def before(self) -> WorkloadStatus:
        return self.world.workload.status or WorkloadStatus()

    @property
    def target(self) -> str:
        return self.course.target.revision

    @property
    def stable(self) -> str | None:
        return None if self.course.stable is None else self.course.stable.revision

    @property
    def first(self) -> bool:
        """Nothing was ever rolled out completely: there is nothing to protect yet."""
        return self.course.stable is None and not self.course.settled

    @property
    def most_available(self) -> int:
        """The most that were available at once: what a fleet that grows has not reached yet, it has not lost."""
        before = self.before.rollout.most_available if self.before.rollout is not None else None
        return min(max(before or 0, self.fleet.available), self.rollout.limits.replicas)

    @property
    def below_floor(self) -> bool:
        """Fewer are available than the floor needs, and once enough were."""
        return self.fleet.available < min(self.verdict.shape.floor, self.most_available)

    @property
    def complete(self) -> bool:
        return isinstance(self.verdict.decision, Done)

    @property
    def ready(self) -> int:
        return self.fleet.old.ready + self.fleet.new.ready

    @property
    def because(self) -> Because:
        """Why it does what it does: a refusal says more than what is done meanwhile."""
        if self.complete and self.course.rejected:
            return Because(
                Why.REJECTED,
                f"revision {self.course.wanted} was rejected, so {self.target} is kept; "
                "change the spec, or retry the rollout to have it after all",
            )
        return (self.verdict.refusal or self.decision).because


def verdicts(facts: Facts) -> dict[str, Verdict]:
    """The conditions, in their order."""
    found = {
        "Available": _available(facts),
        "Progressing": _progressing(facts),
        "Completed": _completed(facts),
        "Paused": _paused(facts),
        "Blocked": _blocked(facts),
        "Degraded": _degraded(facts),
        "FloorHeld": _floor_held(facts),
    }
    warning = next((each for each in facts.rollout.limits.warnings if each.code is Code.FLOOR_NOT_GUARANTEED), None)
    if warning is not None:
        found["FloorNotGuaranteed"] = Verdict.true(warning.code, warning.message)
    return found


def _available(facts: Facts) -> Verdict:
    if facts.fleet.available >= facts.rollout.limits.floor:
        return Verdict.true(Why.ENOUGH_AVAILABLE, _against_floor(facts))
    return Verdict.false(Why.TOO_FEW_AVAILABLE, _against_floor(facts))


def _against_floor(facts: Facts) -> str:
    limits = facts.rollout.limits
    return f"{facts.fleet.available:,} of {count(limits.replicas)} available, the floor is {limits.floor:,}"


def _progressing(facts: Facts) -> Verdict:
    because = facts.because
    if facts.complete:
        return Verdict.false(Why.REJECTED if facts.course.rejected else Why.ROLLED_OUT, because.message)
    if facts.verdict.refusal is not None:
        return Verdict.false(because.code, because.message)
    return Verdict.true(because.code, because.message)


def _completed(facts: Facts) -> Verdict:
    message = facts.because.message
    if facts.course.rejected:
        return Verdict.false(Why.REJECTED, message)
    if facts.complete:
        return Verdict.true(Why.ROLLED_OUT, message)
    return Verdict.false(Why.SCALING if facts.course.settled else Why.ROLLING_OUT, message)


def _paused(facts: Facts) -> Verdict:
    because = facts.because
    if because.code in _PAUSES:
        return Verdict.true(because.code, because.message)
    return Verdict.false(Why.NOT_PAUSED, "nobody paused the rollout and no step waits")


def _blocked(facts: Facts) -> Verdict:
    said = facts.verdict.refusal or facts.decision
    if isinstance(said, Blocked):
        return Verdict.true(said.because.code, f"{said.because.message}; {said.remedy}")
    if said.because.code is Code.AT_FLOOR:
        return Verdict.true(said.because.code, said.because.message)
    return Verdict.false(Why.NOT_BLOCKED, "nothing keeps the rollout from going on")


def _degraded(facts: Facts) -> Verdict:
    refusal = facts.verdict.refusal
    if isinstance(refusal, RollBack) or (refusal and refusal.because.code is Code.PROGRESS_DEADLINE_EXCEEDED):
        return Verdict.true(Code.PROGRESS_DEADLINE_EXCEEDED, refusal.because.message)
    if facts.below_floor:
        return Verdict.true(Why.TOO_FEW_AVAILABLE, _against_floor(facts))
    if facts.course.missing:
        return Verdict.true(Why.CONFIGURATION_MISSING, f"{', '.join(facts.course.missing)} not found")
    if facts.broken:
        return Verdict.true(Why.BROKEN_REPLICAS, f"{count(facts.broken)} not ready any more, or failed for good")
    return Verdict.false(Why.HEALTHY, "no replica that should serve is broken")


def _floor_held(facts: Facts) -> Verdict:
    floor, available = facts.verdict.shape.floor, facts.fleet.available
    said = f"{available:,} available, the floor is {floor:,}"
    if facts.below_floor:
        return Verdict.false(Why.BELOW_FLOOR, f"{said}; none that is ready is stopped")
    if available < floor:
        return Verdict.true(Why.STILL_GROWING, f"{said} when the fleet has grown")
    return Verdict.true(Why.FLOOR_HELD, said)
