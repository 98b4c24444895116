"""Applications: the ``Workload`` kind of ``cloudless.io/v1``.

A Workload runs replicas of one container.  A rollout replaces them and keeps at least the floor of them available.
Field names are those of Cloudless' manifests.  The package declares the API: the container in `containers`, its
scheduling in `placement`, its rollout in `rollouts`.
"""

from __future__ import annotations

from typing import Final

from holdfast.kinds.cloudless import workloads
from holdfast.kinds.cloudless.containers import Restart
from holdfast.kinds.cloudless.placement import AffinityTarget
from holdfast.kinds.cloudless.rollouts import Rollout, Strategy
from holdfast.kinds.cloudless.workloads import Workload, WorkloadSpec, WorkloadStatus
from holdfast.kinds.model import Kind

KINDS: Final[tuple[Kind, ...]] = (workloads.KIND,)

__all__ = ["KINDS", "AffinityTarget", "Restart", "Rollout", "Strategy", "Workload", "WorkloadSpec", "WorkloadStatus"]
