"""The state of one pool, from what its StatefulSet reports.

    NotCreated       there is no StatefulSet, or it has no replicas
    Created          it exists, and its controller has written no status yet
    Updating         its status is of an older generation, has two revisions, or too few updated pods
    RolloutFailed    the same, for longer than the pool's progress deadline without progress
    RolloutComplete  all pods are ready and updated
    Degraded         no rollout is under way, and some pods are not ready
    Initialized      more pods are ready or updated than desired, as while it scales down

Pure.  This module must not know how pools are rolled out, nor the status of the Tenant.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from holdfast.client.objects import Meta
from holdfast.client.pods import Pod
from holdfast.kernel.phases import Transitions
from holdfast.kinds.rustfs.pools import PoolState

TRANSITIONS: Final = Transitions(
    {
        PoolState.NOT_CREATED.value: ("PoolCreated", "PoolUpdating", "PoolDegraded", "PoolRolloutComplete"),
        PoolState.CREATED.value: (
            "PoolNotCreated", "PoolUpdating", "PoolDegraded", "PoolRolloutComplete", "PoolInitialized",
        ),
        PoolState.UPDATING.value: (
            "PoolNotCreated", "PoolCreated", "PoolRolloutFailed", "PoolRolloutComplete", "PoolDegraded",
            "PoolInitialized",
        ),
        PoolState.ROLLOUT_FAILED.value: (
            "PoolNotCreated", "PoolCreated", "PoolUpdating", "PoolRolloutComplete", "PoolDegraded", "PoolInitialized",
        ),
        PoolState.ROLLOUT_COMPLETE.value: (
            "PoolNotCreated", "PoolCreated", "PoolUpdating", "PoolDegraded", "PoolInitialized",
        ),
        PoolState.DEGRADED.value: (
            "PoolNotCreated", "PoolCreated", "PoolUpdating", "PoolRolloutComplete", "PoolInitialized",
        ),
        PoolState.INITIALIZED.value: (
            "PoolNotCreated", "PoolCreated", "PoolUpdating", "PoolRolloutComplete", "PoolDegraded",
        ),
    },
    start=(PoolState.NOT_CREATED.value,),
)  # fmt: skip
"""Which state may follow which.  RolloutFailed follows Updating alone: a deadline is that of a rollout."""


SERVERS: Final = "holdfast.dev/servers"
"""The annotation with the number of servers that a StatefulSet was created with."""

ON_DELETE: Final = "OnDelete"
"""The update strategy with which the controller of a StatefulSet replaces no pod by itself."""

UNDER_WAY: Final = frozenset({PoolState.UPDATING, PoolState.ROLLOUT_FAILED})
"""The states in which a rollout is not complete."""

REVISION: Final = "controller-revision-hash"


def revision_of(pod: Pod) -> str:
    """The revision of the StatefulSet that a pod was created from."""
    return pod.metadata.labels.get(REVISION, "")


# --- what is read of a StatefulSet


class UpdateStrategy(msgspec.Struct, frozen=True):
    type: str = "RollingUpdate"


class SetSpec(msgspec.Struct, frozen=True, rename="camel"):
    replicas: int | None = None
    service_name: str = ""
    pod_management_policy: str = "OrderedReady"
    selector: dict[str, Any] = {}
    update_strategy: UpdateStrategy = UpdateStrategy()
    template: dict[str, Any] = {}
    volume_claim_templates: list[dict[str, Any]] = []


class SetStatus(msgspec.Struct, frozen=True, rename="camel"):
    observed_generation: int = 0
    replicas: int = 0
    ready_replicas: int = 0
    current_replicas: int = 0
    updated_replicas: int = 0
    current_revision: str = ""
    update_revision: str = ""


class StatefulSet(msgspec.Struct, frozen=True):
    """The StatefulSet of a pool, as far as it is read."""

    metadata: Meta = Meta()
    spec: SetSpec = SetSpec()
    status: SetStatus = SetStatus()

    @property
    def desired(self) -> int:
        return self.status.replicas if self.spec.replicas is None else self.spec.replicas

    @property
    def servers(self) -> int:
        """How many it was created with, however it was scaled since."""
        applied = self.metadata.annotations.get(SERVERS, "")
        return int(applied) if applied.isdigit() else self.desired

    @property
    def reported(self) -> bool:
        """Its controller has written a status."""
        return self.status.observed_generation > 0

    @property
    def observed(self) -> bool:
        """Its controller has observed the spec that it has now."""
        return self.reported and self.status.observed_generation >= self.metadata.generation


# --- the state


def state_of(found: StatefulSet | None, *, overdue: bool = False) -> PoolState:
    """The state of a pool; `overdue` says that its progress deadline has passed."""
    if found is None or found.desired == 0:
        return PoolState.NOT_CREATED
    if not found.reported:
        return PoolState.CREATED
    state = PoolState.UPDATING if _stale(found) else _counted(found)
    return PoolState.ROLLOUT_FAILED if state is PoolState.UPDATING and overdue else state


def _stale(found: StatefulSet) -> bool:
    """Whether its counts are not those of one revision, the update revision."""
    return not found.observed or found.status.current_revision != found.status.update_revision


def _counted(found: StatefulSet) -> PoolState:
    desired, status = found.desired, found.status
    if status.ready_replicas == desired and status.updated_replicas == desired:
        return PoolState.ROLLOUT_COMPLETE
    if status.updated_replicas < desired or status.current_replicas < desired:
        return PoolState.UPDATING
    if status.ready_replicas < desired:
        return PoolState.DEGRADED
    return PoolState.INITIALIZED
