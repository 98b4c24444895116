"""The plan of a Workload's rollout: from the objects of a cluster, or from a manifest alone.  Pure.

Both are computed by the functions that the controller runs.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final

import msgspec

from holdfast import kinds
from holdfast.client.objects import Undecodable
from holdfast.kernel.outcomes import Permanent
from holdfast.kernel.reasons import Code
from holdfast.kernel.rollout import OnFailure
from holdfast.kinds.cloudless import Workload
from holdfast.kinds.cloudless.rollouts import Rollout
from holdfast.meta.objects import Key
from holdfast.operators.rollouts import OfflinePlanner, OfflineRollout, Refusal, Wire
from holdfast.operators.workload.conditions import Facts
from holdfast.operators.workload.decide import assess
from holdfast.operators.workload.observe import observe
from holdfast.operators.workload.render import revision
from holdfast.operators.workload.validate import PROGRESS_DEADLINE, duration, rollout_spec
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
    fleet = facts.fleet
    rollout = msgspec.structs.replace(facts.step.rollout, limits=facts.limits)
    made = plan_view(
        msgspec.structs.replace(facts.asked, replicas=facts.limits.replicas),
        current=fleet.live,
        scaling_only=facts.revisions.settled and not fleet.old.live,
        paused=rollout.paused,
        start=Beginning.at(now, rollout, fleet, facts.step.verdict.progress),
    )
    return replace(made, warnings=(*made.warnings, facts.rejection)) if facts.revisions.rejected else made


# --- from a manifest alone

SETTINGS: Final = {
    "image": "spec.image",
    "replicas": "spec.replicas",
    "strategy": "spec.rollout.strategy",
    "maxSurge": "spec.rollout.maxSurge",
    "maxUnavailable": "spec.rollout.maxUnavailable",
    "minAvailable": "spec.rollout.minAvailable",
    "pauseDuration": "spec.rollout.pauseDuration",
}
"""The fields that options of `holdfast plan` and `holdfast simulate` set."""


def described(manifest: Wire) -> OfflineRollout:
    """The rollout that the manifest of a Workload describes; raises `kinds.DocumentError`.

    The manifest may not have passed an API server yet, so defaults are filled in here.
    """
    workload = kinds.decode(manifest)
    assert isinstance(workload, Workload), "the manifest is of this kind"
    rollout = workload.spec.rollout or Rollout()
    return OfflineRollout(
        spec=rollout_spec(workload),
        revision=revision(workload),
        paused=bool(rollout.paused),
        min_ready=timedelta(seconds=rollout.min_ready_seconds or 0),
        deadline=duration(rollout.progress_deadline or PROGRESS_DEADLINE),
        on_failure=OnFailure(rollout.on_failure or OnFailure.HOLD),
        count_terminating=rollout.replacement == "onTermination",
    )


OFFLINE: Final = OfflinePlanner(
    rollout=described,
    minimal={
        "apiVersion": "cloudless.io/v1",
        "kind": "Workload",
        "metadata": {"name": "fleet"},
        "spec": {"image": "any"},
    },
    only_with={
        "spec.rollout.canary": "Canary",
        "spec.rollout.blueGreen": "BlueGreen",
        "spec.rollout.partition": "RollingUpdate",
    },
)
