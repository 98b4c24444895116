"""The rollout of a Workload from its manifest alone, for `holdfast plan` and `holdfast simulate`.

Pure.  The manifest may not have passed an API server yet, so defaults are filled in here.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from holdfast import kinds
from holdfast.kernel.rollout import OnFailure
from holdfast.kinds.cloudless import Workload
from holdfast.kinds.cloudless.rollouts import Rollout
from holdfast.meta import durations
from holdfast.operators.rollouts import OfflinePlanner, OfflineRollout, Wire
from holdfast.operators.workload.render import revision
from holdfast.operators.workload.validate import PROGRESS_DEADLINE, rollout_spec

SETTINGS: Final = {
    "image": "spec.image",
    "replicas": "spec.replicas",
    "strategy": "spec.rollout.strategy",
    "maxSurge": "spec.rollout.maxSurge",
    "maxUnavailable": "spec.rollout.maxUnavailable",
    "minAvailable": "spec.rollout.minAvailable",
    "pauseDuration": "spec.rollout.pauseDuration",
}


def described(manifest: Wire) -> OfflineRollout:
    """The rollout that the manifest of a Workload describes; raises `kinds.DocumentError`."""
    workload = kinds.decode(manifest)
    assert isinstance(workload, Workload), "the manifest is of this kind"
    spec, rollout = rollout_spec(workload), workload.spec.rollout or Rollout()
    return OfflineRollout(
        spec=spec,
        revision=revision(workload),
        paused=bool(rollout.paused),
        min_ready=timedelta(seconds=rollout.min_ready_seconds or 0),
        deadline=durations.parse(rollout.progress_deadline or PROGRESS_DEADLINE),
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
