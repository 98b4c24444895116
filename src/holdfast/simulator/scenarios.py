"""Scenarios: what is rolled out, from where, among which neighbours, and what people do meanwhile."""

from __future__ import annotations

from datetime import timedelta

import msgspec

from holdfast.kernel.limits import resolve
from holdfast.kernel.planning import WorkloadSpec, rollout_of
from holdfast.kernel.rollout import OnFailure, Rollout
from holdfast.simulator.neighbours import Neighbours
from holdfast.simulator.scripts import Command


class Scenario(msgspec.Struct, frozen=True, kw_only=True):
    """What is asked for, what there is, and who lives next door.

    current        how many replicas of the revision `before` run; None: as many as are desired
    unready        how many of those are not ready and never will be
    promote_after  how long somebody takes to promote a step; None: nobody does
    limit          the longest that is simulated
    """

    spec: WorkloadSpec
    before: str = "v1"
    target: str = "v2"
    current: int | None = None
    unready: int = 0
    ordered: bool = False
    count_terminating: bool = False
    min_ready: timedelta = timedelta()
    deadline: timedelta | None = None
    on_failure: OnFailure = OnFailure.HOLD
    neighbours: Neighbours = Neighbours()
    script: tuple[Command, ...] = ()
    promote_after: timedelta | None = None
    limit: timedelta = timedelta(hours=24)

    def rollout(self, replicas: int) -> Rollout:
        """What the engine is asked for at a size."""
        wish = self.spec.rollout
        rollout = rollout_of(msgspec.structs.replace(self.spec, replicas=replicas))
        if self.ordered:
            fixed = resolve(
                replicas,
                max_unavailable=wish.max_unavailable,
                min_available=wish.min_available,
                can_surge=False,
            )
            rollout = msgspec.structs.replace(rollout, limits=fixed)
        return msgspec.structs.replace(
            rollout,
            ordered=self.ordered,
            count_terminating=self.count_terminating,
            deadline=self.deadline,
            on_failure=self.on_failure,
        )
