"""One pass of a controller over one key: observe, decide, write, report.

The order is the same for all: observe, survey, decide, rehearse, children, writes,
act, status, notices.  The status is written once, at the end, also after a failure,
unless the failure is that the view was old.

A finalizer reduces to two questions, whether the object is being deleted and
whether it has the finalizer:

    not deleting, without   the finalizer is added, and nothing else is done before it is there
    not deleting, with      decide
    deleting, with          cleanup; the finalizer goes when the cleanup says that all is done
    deleting, without       nothing: other controllers' finalizers hold the object

This module must not know queues, workers or retries: it ends with an outcome or raises.
"""

from __future__ import annotations

import contextlib
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, Generic, TypeAlias, TypeVar

from holdfast.client.objects import Object, Undecodable
from holdfast.client.protocols import Writer
from holdfast.kernel.outcomes import Again, Done, Failure, Outcome, Permanent, Retry, soonest
from holdfast.meta.objects import Key
from holdfast.runtime.controllers import Controller, View, is_paused
from holdfast.runtime.decisions import Decision, Notice, without_deletions
from holdfast.runtime.passes.execution import Executor, Settled, Written
from holdfast.runtime.passes.failures import Away, Stale, combined
from holdfast.runtime.passes.pruning import Kept, Pruned, Refusals
from holdfast.runtime.passes.rehearsals import Rehearsals
from holdfast.runtime.passes.sightings import Sightings
from holdfast.runtime.status import INVALID_SPEC

W = TypeVar("W")

_BUDGET_DELAY: Final = timedelta(seconds=2)
"""After which an eviction is tried again that a disruption budget refused, if nothing changes before."""

EmitEvents = Callable[[Object, Sequence[Notice]], Awaitable[None]]
"""Records notices about an object as Events; never fails."""


@dataclass(frozen=True, slots=True)
class Paused:
    """Nothing was done, because the object says so."""


Ending: TypeAlias = Outcome | Paused | Failure
"""How a pass can end."""


class Pass(Generic[W]):
    """Runs passes of one controller."""

    def __init__(
        self,
        controller: Controller[W],
        view: View,
        writer: Writer,
        *,
        now: Callable[[], datetime],
        emit: EmitEvents,
        side_by_side: int = 16,
        refusals: Refusals | None = None,
    ) -> None:
        self._controller = controller
        self._refusals = Refusals() if refusals is None else refusals
        self._kept = Kept()
        self._settled = Settled()
        self._view = view
        self._writer = writer
        self._now = now
        self._emit = emit
        self._side_by_side = side_by_side
        self._rehearsals = Rehearsals(writer)
        self._sightings = Sightings()

    async def run(self, key: Key, written: list[Written]) -> Ending:
        """One pass.  Failures that a controller or an API may have are an ending; anything else is a defect.

        What is written is added to `written` at once, so that it is known however the pass ends.
        """
        controller = self._controller
        primary = self._view.get(controller.resource, key)
        if primary is not None and is_paused(primary):
            return Paused()
        # What is being deleted is cleaned up also where the kind cannot be operated.
        kept = None if primary is not None and primary.deleting else self._kept
        executor = Executor(self._writer, written, side_by_side=self._side_by_side, kept=kept, settled=self._settled)
        if kept is not None and (refusal := self._refusals.of(controller)) is not None:
            return await self._refused(primary, refusal, Executor(self._writer, written))
        try:
            world = controller.observe(self._view, key)
            if world is None:
                return Done()
            if controller.sight is not None:
                world = controller.sight(world, self._sightings.at(self._now()))
            outcome = await self._finalized(primary, world, executor)
        except Undecodable as unreadable:
            return await self._unreadable(primary, unreadable, executor)
        except Pruned as pruned:
            self._refusals.add(controller.resource, pruned)
            return await self._refused(primary, pruned, Executor(self._writer, written))
        except Failure as failure:
            return failure
        except Exception as defect:
            await self._broken(primary, defect, executor)
            raise
        if executor.not_evicted:
            return soonest((outcome, Again(_BUDGET_DELAY, f"a disruption budget: {executor.not_evicted[0]}")))
        return outcome

    async def _unreadable(self, primary: Object | None, unreadable: Undecodable, executor: Executor) -> Failure:
        """Report an object that cannot be decoded, and where; the pass is not repeated before something changes.

        Where it is the object itself, its status says so too, and the Event is recorded when the status changes.
        """
        own = primary is not None and unreadable.ref == primary.ref
        failure = Permanent(INVALID_SPEC, unreadable.problem if own else str(unreadable))
        if own or primary is None:
            return await self._refused(primary, failure, executor)
        await self._warn(primary, failure)
        return failure

    async def _refused(self, primary: Object | None, failure: Permanent, executor: Executor) -> Failure:
        """Say in the status why nothing is done; the Event is recorded when the status changes."""
        if primary is None:
            return failure
        try:
            is_new = await executor.status(primary, self._controller.invalid.status(primary, failure, self._now()))
        except Failure as unwritten:
            return unwritten
        if is_new:
            await self._warn(primary, failure)
        return failure

    async def _warn(self, primary: Object, failure: Failure) -> None:
        await self._emit(primary, (Notice(type="Warning", reason=failure.reason, message=failure.message),))

    async def _broken(self, primary: Object | None, defect: Exception, executor: Executor) -> None:
        """Report a defect in the status too, so that an object that is not reconciled says why."""
        if primary is None:
            return
        message = f"the controller {self._controller.name} failed with {type(defect).__name__}; its log says where"
        with contextlib.suppress(Exception):
            failure = Retry("InternalError", message)
            await executor.status(primary, self._controller.invalid.status(primary, failure, self._now()))

    async def _finalized(self, primary: Object | None, world: W, executor: Executor) -> Outcome:
        controller, decide = self._controller, self._controller.decide
        if not controller.finalizer or primary is None:
            return await self._decided(primary, world, executor, decide=decide)
        kept = primary.meta.finalizers
        match primary.deleting, controller.finalizer in kept:
            case False, False:
                await executor.finalizers(primary, (*kept, controller.finalizer))
                return Done()
            case False, True:
                return await self._decided(primary, world, executor, decide=decide)
            case True, True:
                assert controller.cleanup is not None, "a finalizer comes with a cleanup"
                return await self._decided(primary, world, executor, decide=controller.cleanup)
            case _:
                return Done()

    async def _decided(
        self, primary: Object | None, world: W, executor: Executor, *, decide: Callable[[W, datetime], Decision]
    ) -> Outcome:
        controller = self._controller
        decision = Decision()
        try:
            if controller.survey is not None:
                world = await controller.survey(world)
            decision = decide(world, self._now())
            await self._carry_out(primary, decision, executor)
            if controller.act is not None:
                decision = await controller.act(world, decision)
        except Stale:
            raise
        except Failure as failure:
            await self._explained(primary, world, executor, decision=decision, failure=failure)
            raise
        if primary is None:
            return decision.outcome
        if decision.finalized:
            kept = tuple(each for each in primary.meta.finalizers if each != controller.finalizer)
            await executor.finalizers(primary, kept)
        elif decision.status is not None:
            await executor.status(primary, decision.status)
        if decision.notices:
            await self._emit(primary, decision.notices)
        return decision.outcome

    async def _carry_out(self, primary: Object | None, decision: Decision, executor: Executor) -> None:
        """Rehearse, write the children, then the rest.

        Where something is refused, what adds to the world is written all the same, nothing is deleted, and the
        refusals are raised in the end.
        """
        failures, held = await self._rehearsals.refused(decision, self._now())
        if decision.children is not None and primary is not None:
            try:
                await executor.settle(
                    decision.children,
                    owner=primary,
                    owned=self._controller.owns,
                    view=self._view,
                    held=held,
                    deletes=not failures,
                )
            except (Stale, Away):
                raise
            except Failure as refusal:
                failures.append(refusal)
        if not failures:
            await executor.carry_out(decision.writes)
            return
        try:
            await executor.carry_out(without_deletions(decision.writes))
        except Failure as failure:
            failures.append(failure)
        raise combined(failures)

    async def _explained(
        self, primary: Object | None, world: W, executor: Executor, *, decision: Decision, failure: Failure
    ) -> None:
        """Say in the status, and in an Event, what failed."""
        if primary is None:
            return
        explain = self._controller.explain
        status = decision.status if explain is None else explain(world, failure, self._now())
        if status is not None:
            await executor.status(primary, status)
        if isinstance(failure, Permanent):
            notice = Notice(type="Warning", reason=failure.reason, message=failure.message)
            await self._emit(primary, (*decision.notices, notice))
