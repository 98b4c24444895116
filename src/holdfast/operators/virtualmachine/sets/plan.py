"""The plan of a VMSet's update, from the objects of a cluster, by the functions that the controller runs.  Pure."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from holdfast.client.objects import Undecodable
from holdfast.kernel.planning import RolloutStrategy, WorkloadSpec
from holdfast.meta.objects import Key
from holdfast.operators.rollouts import Refusal
from holdfast.operators.virtualmachine.sets.observe import observe
from holdfast.operators.virtualmachine.sets.update import assess, only_in_place
from holdfast.runtime.controllers import View
from holdfast.views.plans import Beginning, PlanSummary, PlanView, plan_view

SETTINGS: Final = {
    "replicas": "spec.replicas",
    "strategy": "spec.updateStrategy.type",
    "maxSurge": "spec.updateStrategy.rollingUpdate.maxSurge",
    "maxUnavailable": "spec.updateStrategy.rollingUpdate.maxUnavailable",
    "minAvailable": "spec.minAvailable",
}
"""The fields that options of `holdfast rollout plan` set, and that fixes name."""


def outlook(view: View, key: Key, now: datetime) -> PlanView | PlanSummary | Refusal:
    """The plan of a VMSet from here, or why there is none."""
    try:
        world = observe(view, key)
        if world is None:
            return Refusal("it is being deleted", "apply it again when it is gone")
        facts = assess(world, now)
    except Undecodable as error:
        return Refusal(f"it cannot be read: {error.problem}", "correct the field and apply it again")
    limits, fleet = facts.limits, facts.fleet
    strategy = RolloutStrategy(
        strategy=world.strategy.value, max_surge=limits.surge, max_unavailable=limits.max_unavailable
    )
    plan = plan_view(
        WorkloadSpec(replicas=limits.replicas, name=key.name, rollout=strategy),
        current=fleet.live,
        scaling_only=facts.settled,
        paused=facts.step.rollout.paused,
        start=Beginning.at(now, facts.step.rollout, fleet, facts.step.verdict.progress),
    )
    if not only_in_place(world, facts.target):
        return plan
    note = "machines are changed in place: each that is stopped here becomes the new one that is started"
    return PlanSummary(name=key.name, notes=(note,), parts=(plan,))
