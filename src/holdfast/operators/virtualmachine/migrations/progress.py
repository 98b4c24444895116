"""How far a migration is: percentages by bytes, the rate, and the time that is left.  Pure."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from holdfast.kinds.virtrigaud.migrations import MigrationPhase, MigrationProgress
from holdfast.meta import durations, times
from holdfast.meta.quantities import Quantity
from holdfast.operators.virtualmachine import estimates
from holdfast.operators.virtualmachine.migrations.observe import Stage, World
from holdfast.providers.contract import TaskState

_RECORDED: Final = timedelta(seconds=2)
"""How often the progress within a phase is recorded at most."""

_Phase = MigrationPhase

WEIGHTS: Final = {
    _Phase.PENDING: (0, 0),
    _Phase.VALIDATING: (5, 5),
    _Phase.SNAPSHOTTING: (15, 20),
    _Phase.EXPORTING: (20, 45),
    _Phase.TRANSFERRING: (45, 60),
    _Phase.CONVERTING: (60, 65),
    _Phase.IMPORTING: (65, 85),
    _Phase.CREATING: (90, 90),
    _Phase.VALIDATING_TARGET: (95, 95),
    _Phase.READY: (100, 100),
}
"""The percentage at which each phase begins and ends."""

_COPIES: Final = (_Phase.EXPORTING, _Phase.TRANSFERRING, _Phase.IMPORTING)
"""The phases in which the whole disk is read or written."""

_STAGES: Final = {
    Stage.SNAPSHOT: {},
    Stage.EXPORT: {"transferring": _Phase.TRANSFERRING},
    Stage.IMPORT: {"transferring": _Phase.TRANSFERRING, "converting": _Phase.CONVERTING},
}
"""The phases of the stages of tasks that are not the phase of the task itself."""

_TASKS: Final = {
    Stage.SNAPSHOT: _Phase.SNAPSHOTTING,
    Stage.EXPORT: _Phase.EXPORTING,
    Stage.IMPORT: _Phase.IMPORTING,
}


def phase_of(stage: Stage, state: TaskState) -> MigrationPhase:
    """The phase of a migration whose task is under way."""
    return _STAGES[stage].get(state.stage.name if state.stage else "", _TASKS[stage])


def at(world: World, phase: MigrationPhase, now: datetime, state: TaskState | None = None) -> MigrationProgress | None:
    """The progress in a phase; None once nothing is under way."""
    if phase is _Phase.FAILED:
        return None
    before = world.before.progress or MigrationProgress()
    same = before.current_phase is phase
    last = times.read(before.update_time)
    if same and last is not None and now < last + _RECORDED and (state is None or not state.done):
        return before
    began = (times.read(before.phase_start_time) if same else None) or now
    done, total = _bytes(world, state)
    percentage = _percentage(world, phase, state)
    if same:
        percentage = max(percentage, before.percentage or 0)
    if state is None and phase is not _Phase.READY:
        done = before.transferred_bytes if same else None
    rate = estimates.rate(began, now, done) if state is not None else None
    return MigrationProgress(
        current_phase=phase,
        percentage=percentage,
        total_bytes=total,
        transferred_bytes=done,
        transfer_rate=rate,
        eta=_eta(phase, done, total, rate),
        phase_start_time=times.format(began),
        update_time=times.format(now) if not same or state is not None else before.update_time,
    )


def _bytes(world: World, state: TaskState | None) -> tuple[int | None, int | None]:
    known = world.before.progress.total_bytes if world.before.progress else None
    if world.stored.size is not None:
        # What is in the storage may be more than what the disk itself has, which may share an image with others.
        known = Quantity.parse(world.stored.size).to_int()
    if state is None:
        return known, known
    total = known or (state.total_bytes if state.stage is None else None)
    return None if total is None else int(total * _share(state)), total


def _percentage(world: World, phase: MigrationPhase, state: TaskState | None) -> int:
    begins, ends = WEIGHTS[phase]
    if phase is _Phase.TRANSFERRING:
        # Half of it is the way into the storage, and half the way out of it.
        middle = (begins + ends) // 2
        begins, ends = (begins, middle) if world.stage is Stage.EXPORT else (middle, ends)
    return begins + int((ends - begins) * _share(state))


def _share(state: TaskState | None) -> float:
    if state is None:
        return 0.0
    part = state.stage or state
    if part.done_bytes is not None and part.total_bytes:
        return min(1.0, part.done_bytes / part.total_bytes)
    return (state.percentage or 0) / 100 if state.stage is None else 0.0


def _eta(phase: MigrationPhase, done: int | None, total: int | None, rate: int | None) -> str | None:
    """The time for the rest of the phase, and for the copies that follow, at the same rate."""
    if not rate or total is None:
        return None
    later = [each for each in _COPIES if WEIGHTS[each] > WEIGHTS[phase]]
    left = max(total - (done or 0), 0) + total * len(later)
    return durations.format(timedelta(seconds=round(left / rate)))
