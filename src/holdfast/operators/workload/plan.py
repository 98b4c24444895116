"""The outlook of a Workload: its rollout from here, as the operator itself would judge it.

Pure.  The world is read by the operator's own eyes and judged by its own rules, so that
the plan that is shown is the plan that runs.
"""

from __future__ import annotations

from datetime import datetime

import msgspec

from holdfast.kernel.decisions import Blocked
from holdfast.kernel.fleet import Fleet
from holdfast.kernel.planning import WorkloadSpec
from holdfast.kernel.preview import EPOCH
from holdfast.kernel.reasons import Code
from holdfast.kernel.rollout import Progress, Rollout
from holdfast.kinds import InvalidDocument
from holdfast.meta.objects import Key
from holdfast.operators.rollouts import Refusal
from holdfast.operators.workload.course import plot
from holdfast.operators.workload.decide import judge
from holdfast.operators.workload.observe import Unreadable, observe
from holdfast.operators.workload.replicas import situation
from holdfast.operators.workload.validate import rollout_spec
from holdfast.runtime.controllers import View
from holdfast.views.plans import Beginning, PlanView, plan_view


def outlook(view: View, key: Key, now: datetime) -> PlanView | Refusal:
    """The plan of a Workload from here, or why there is none."""
    world = observe(view, key)
    if world is None:
        return Refusal("it is being deleted", "apply it again once it is gone")
    if isinstance(world, Unreadable):
        return Refusal(f"it cannot be read: {world.problem}", "correct the field and apply it again")
    try:
        asked = rollout_spec(world.workload)
    except InvalidDocument as error:
        return Refusal(str(error), "correct the field and apply it again")
    there = situation(world, plot(world), now)
    judged = judge(world, asked, there)
    refusal = judged.verdict.refusal
    if isinstance(refusal, Blocked) and not isinstance(refusal.because.code, Code):
        return Refusal(f"{refusal.because.message} ({refusal.because.code})", refusal.remedy)
    return planned(
        asked,
        judged.rollout,
        judged.fleet,
        progress=judged.verdict.progress,
        settled=there.course.settled,
        now=now,
    )


def planned(
    spec: WorkloadSpec, rollout: Rollout, fleet: Fleet, *, progress: Progress, settled: bool, now: datetime
) -> PlanView:
    """The plan from a fleet as it is at a moment; `settled`: its revision was rolled out before."""
    shift = EPOCH - now

    def moved(moment: datetime | None) -> datetime | None:
        return None if moment is None else moment + shift

    # A preview has a clock of its own, and nothing in it is late.
    beginning = Beginning(
        msgspec.structs.replace(rollout, paused=False),
        msgspec.structs.replace(
            fleet, settled_at=moved(fleet.settled_at), settles_at=moved(fleet.settles_at), progressed_at=None
        ),
        msgspec.structs.replace(progress, reached_at=moved(progress.reached_at)),
    )
    return plan_view(
        msgspec.structs.replace(spec, replicas=rollout.limits.replicas),
        current=fleet.live,
        scaling_only=settled and not fleet.old.live,
        paused=rollout.paused,
        start=beginning,
    )
