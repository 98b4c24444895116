"""Scenarios: what is rolled out, which replicas run before, how replicas behave, and what users do meanwhile."""

from __future__ import annotations

from datetime import timedelta

import msgspec

from holdfast.kernel.limits import resolve
from holdfast.kernel.planning import WorkloadSpec, rollout_of
from holdfast.kernel.rollout import OnFailure, Rollout
from holdfast.simulator.replicas import Behaviour
from holdfast.simulator.scripts import Command


class Scenario(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that a simulation needs to know.

    current        how many replicas of the revision `before` run; None: as many as are desired
    unready        how many of those are not ready and never will be
    promote_after  how long after a step waits for approval a user promotes it; None: never
    limit          how much virtual time is simulated at most
    most_frames    how many frames are simulated at most; None: any number
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
    behaviour: Behaviour = Behaviour()
    script: tuple[Command, ...] = ()
    promote_after: timedelta | None = None
    limit: timedelta = timedelta(hours=24)
    most_frames: int | None = None

    def rollout(self, replicas: int) -> Rollout:
        """The rollout for so many replicas."""
        asked = self.spec.rollout
        rollout = rollout_of(msgspec.structs.replace(self.spec, replicas=replicas))
        if self.ordered:
            fixed = resolve(
                replicas,
                max_unavailable=asked.max_unavailable,
                min_available=asked.min_available,
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
