"""How one pool is doing: its state, from what its StatefulSet reports, and nothing else.

    NotCreated       there is no StatefulSet, or it wants no pods
    Created          it exists, and its controller has not reported on it yet
    Updating         the report is of an older generation, names two revisions, or lacks updated pods
    RolloutFailed    the same, for longer than the pool's progress deadline without getting further
    RolloutComplete  all pods are ready and updated
    Degraded         no rollout runs, and some pods are not ready
    Initialized      more pods are ready or updated than are wanted, as while it shrinks

Pure.  This module must not know who rolls out, nor what the Tenant as a whole says.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from holdfast.client.objects import Meta
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
"""The annotation with the number of servers that a StatefulSet was made with."""

# --- what is read of a StatefulSet


class RollingUpdate(msgspec.Struct, frozen=True):
    partition: int = 0


class UpdateStrategy(msgspec.Struct, frozen=True, rename="camel"):
    type: str = "RollingUpdate"
    rolling_update: RollingUpdate = RollingUpdate()


class SetSpec(msgspec.Struct, frozen=True, rename="camel"):
    replicas: int | None = None
    service_name: str = ""
    pod_management_policy: str = "OrderedReady"
    selector: dict[str, Any] = {}
    update_strategy: UpdateStrategy = UpdateStrategy()
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
    """What is read of a pool's StatefulSet."""

    metadata: Meta = Meta()
    spec: SetSpec = SetSpec()
    status: SetStatus = SetStatus()

    @property
    def desired(self) -> int:
        return self.status.replicas if self.spec.replicas is None else self.spec.replicas

    @property
    def servers(self) -> int:
        """How many it was made with, whatever somebody scaled it to since."""
        applied = self.metadata.annotations.get(SERVERS, "")
        return int(applied) if applied.isdigit() else self.desired

    @property
    def reported(self) -> bool:
        """Its controller has said anything at all."""
        return self.status.observed_generation > 0

    @property
    def current(self) -> bool:
        """Its controller speaks of what is asked for now."""
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
    """Whether its counts cannot be taken for those of one revision, the one that is wanted now."""
    return not found.current or found.status.current_revision != found.status.update_revision


def _counted(found: StatefulSet) -> PoolState:
    desired, status = found.desired, found.status
    if status.ready_replicas == desired and status.updated_replicas == desired:
        return PoolState.ROLLOUT_COMPLETE
    if status.updated_replicas < desired or status.current_replicas < desired:
        return PoolState.UPDATING
    if status.ready_replicas < desired:
        return PoolState.DEGRADED
    return PoolState.INITIALIZED
