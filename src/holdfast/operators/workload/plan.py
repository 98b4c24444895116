"""The planner of Workloads: the rollout from here, computed by the functions that the controller runs.  Pure."""

from __future__ import annotations

from datetime import datetime

import msgspec

from holdfast.client.objects import Undecodable
from holdfast.kernel.outcomes import Permanent
from holdfast.kernel.preview import EPOCH
from holdfast.kernel.reasons import Code
from holdfast.meta.objects import Key
from holdfast.operators.rollouts import Refusal
from holdfast.operators.workload.conditions import Facts
from holdfast.operators.workload.decide import assess
from holdfast.operators.workload.observe import observe
from holdfast.runtime.controllers import View
from holdfast.views.plans import Beginning, PlanView, plan_view


def outlook(view: View, key: Key, now: datetime) -> PlanView | Refusal:
    """The plan of a Workload from here, or why there is none."""
    try:
        world = observe(view, key)
        if world is None:
            return Refusal("it is being deleted", "apply it again when it is gone")
        facts = assess(world, now)
    except Undecodable as error:
        return Refusal(f"it cannot be read: {error.problem}", "correct the field and apply it again")
    except Permanent as error:
        return Refusal(error.message, "correct the field and apply it again")
    blocked = facts.step.blocked if facts.step.refusal is not None else None
    if blocked is not None and not isinstance(blocked.because.code, Code):
        return Refusal(f"{blocked.because.message} ({blocked.because.code})", blocked.remedy)
    return _planned(facts, now)


def _planned(facts: Facts, now: datetime) -> PlanView:
    rollout, fleet, progress = facts.step.rollout, facts.fleet, facts.step.verdict.progress
    shift = EPOCH - now

    def moved(moment: datetime | None) -> datetime | None:
        return None if moment is None else moment + shift

    # A preview has a clock of its own, and no deadline passes in it.
    beginning = Beginning(
        msgspec.structs.replace(rollout, limits=facts.limits, paused=False),
        msgspec.structs.replace(
            fleet, settled_at=moved(fleet.settled_at), settles_at=moved(fleet.settles_at), progressed_at=None
        ),
        msgspec.structs.replace(progress, reached_at=moved(progress.reached_at)),
    )
    return plan_view(
        msgspec.structs.replace(facts.asked, replicas=facts.limits.replicas),
        current=fleet.live,
        scaling_only=facts.revisions.settled and not fleet.old.live,
        paused=rollout.paused,
        start=beginning,
    )
