"""The plan of a VMSet's update: from the objects of a cluster, or from a manifest alone.  Pure.

Both are computed by the functions that the controller runs.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from holdfast import kinds
from holdfast.client.objects import Undecodable
from holdfast.kernel.limits import Amount
from holdfast.kernel.planning import RolloutStrategy, WorkloadSpec
from holdfast.kinds.virtrigaud import VMSet
from holdfast.kinds.virtrigaud.sets import RollingUpdateVMSetStrategy, VMSetUpdateStrategy, VMSetUpdateStrategyType
from holdfast.meta.objects import Key
from holdfast.operators.rollouts import OfflinePlanner, OfflineRollout, Refusal, Wire
from holdfast.operators.virtualmachine.resources import SETS
from holdfast.operators.virtualmachine.sets.observe import observe
from holdfast.operators.virtualmachine.sets.render import Template
from holdfast.operators.virtualmachine.sets.update import PROGRESS_DEADLINE, SHARE, assess, only_in_place
from holdfast.operators.virtualmachine.sets.validate import problems
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


# --- from a manifest alone


def described(manifest: Wire) -> OfflineRollout:
    """The rollout that the manifest of a VMSet describes; raises `kinds.DocumentError`.

    The manifest may not have passed an API server yet, so defaults are filled in here.
    """
    vm_set = kinds.decode(manifest)
    assert isinstance(vm_set, VMSet), "the manifest is of this kind"
    found = problems(vm_set)
    if found:
        raise kinds.DocumentError(*found)
    spec = vm_set.spec
    strategy = spec.update_strategy or VMSetUpdateStrategy()
    kind = strategy.type or VMSetUpdateStrategyType.ROLLING_UPDATE
    rolls = kind is VMSetUpdateStrategyType.ROLLING_UPDATE
    rolling = strategy.rolling_update or RollingUpdateVMSetStrategy()
    template = Template.of({"metadata": {}, **manifest})
    start = (spec.ordinals.start or 0) if spec.ordinals else 0
    seconds = spec.progress_deadline_seconds
    return OfflineRollout(
        spec=WorkloadSpec(
            replicas=1 if spec.replicas is None else spec.replicas,
            name=str(manifest["metadata"]["name"]),
            rollout=RolloutStrategy(
                strategy=kind.value,
                max_surge=_asked(rolling.max_surge) if rolls else 0,
                max_unavailable=_asked(rolling.max_unavailable) if rolls else "100%",
                min_available=spec.min_available,
                partition=max((rolling.partition or 0) - start, 0) if rolls else 0,
            ),
        ),
        revision=template.revision,
        paused=bool(spec.paused),
        min_ready=timedelta(seconds=spec.min_ready_seconds or 0),
        deadline=PROGRESS_DEADLINE if seconds is None else timedelta(seconds=seconds),
        count_terminating=True,
        replaced_by=template.kept,
        ordered=rolling.pod_management_policy != "Parallel" and kind is not VMSetUpdateStrategyType.RECREATE,
    )


def _asked(share: Amount | None) -> Amount:
    return SHARE if share is None else share


OFFLINE: Final = OfflinePlanner(
    rollout=described,
    minimal={
        "apiVersion": SETS.api_version,
        "kind": SETS.kind,
        "metadata": {"name": "fleet"},
        "spec": {
            "selector": {"matchLabels": {"app": "fleet"}},
            "template": {
                "metadata": {"labels": {"app": "fleet"}},
                "spec": {field: {"name": "any"} for field in ("providerRef", "classRef", "imageRef")},
            },
        },
    },
    only_with={"spec.updateStrategy.rollingUpdate": "RollingUpdate"},
)
