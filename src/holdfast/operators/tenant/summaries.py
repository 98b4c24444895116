"""What a Tenant comes to: one verdict on all that a pass saw, and why.

`CHECKS` are asked in order, the first that has something to say is heard: what keeps it from doing anything, what
could not be carried out, then pools that leave, fail, are ill, are on their way.  Pure.  This module must not
know conditions, nor how anything is shown.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Final, TypeAlias

from holdfast.kernel.conditions import Status
from holdfast.kernel.outcomes import Failure, Permanent
from holdfast.kernel.reasons import Code, count
from holdfast.kinds.rustfs.pools import CleanupState, PoolLifecycleState, PoolState
from holdfast.operators.tenant.lifecycle import ACTIVE, Lifecycle
from holdfast.operators.tenant.observe import World
from holdfast.operators.tenant.pools import state_of
from holdfast.operators.tenant.reasons import Why, advised
from holdfast.operators.tenant.rolling import Rolling
from holdfast.operators.tenant.validate import Finding, not_supported

PROVISIONING: Final = ("spec.policies", "spec.users", "spec.buckets")
"""What is asked for inside the store."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What one pass saw and decided.

    findings    what keeps it from doing anything
    lifecycles  where each pool of the spec stands
    rollings    what happens to each pool that stays
    failure     what went wrong when it was carried out
    """

    world: World
    findings: tuple[Finding, ...] = ()
    lifecycles: Mapping[str, Lifecycle]
    rollings: Mapping[str, Rolling]
    failure: Failure | None = None

    def pools(self) -> tuple[str, ...]:
        """The pools of the spec, and then those that run although the spec no longer has them."""
        wanted = [pool.name for pool in self.world.tenant.spec.pools]
        return (*dict.fromkeys(wanted), *sorted(self.world.sets.keys() - set(wanted)))

    def lifecycle(self, pool: str) -> Lifecycle:
        before = self.world.before.get(pool)
        if pool in self.lifecycles:
            return self.lifecycles[pool]
        if before is None or before.lifecycle_state is None:
            return ACTIVE
        return Lifecycle(state=before.lifecycle_state, status=before.decommission)

    def state(self, pool: str) -> PoolState:
        rolling = self.rollings.get(pool)
        return state_of(self.world.sets.get(pool)) if rolling is None else rolling.state

    def staying(self) -> tuple[str, ...]:
        """The pools that count: those that have not been drained."""
        drained = PoolLifecycleState.DECOMMISSIONED
        return tuple(pool for pool in self.pools() if self.lifecycle(pool).state is not drained)

    def among(self, *states: PoolState) -> tuple[str, ...]:
        return tuple(pool for pool in self.staying() if self.state(pool) in states)

    def ready(self, pool: str) -> int:
        found = self.world.sets.get(pool)
        return 0 if found is None else found.status.ready_replicas

    def standing(self, *states: PoolLifecycleState) -> tuple[str, ...]:
        return tuple(pool for pool in self.pools() if self.lifecycle(pool).state in states)


# --- the verdict


class Kind(Enum):
    """What a summary means: (Ready, Reconciling, Degraded)."""

    READY = (Status.TRUE, Status.FALSE, Status.FALSE)
    RECONCILING = (Status.FALSE, Status.TRUE, Status.FALSE)
    DEGRADED = (Status.FALSE, Status.FALSE, Status.TRUE)
    UNCERTAIN = (Status.UNKNOWN, Status.TRUE, Status.FALSE)


@dataclass(frozen=True, slots=True)
class Summary:
    """What is to be said first."""

    kind: Kind
    reason: Why
    message: str


Check: TypeAlias = Callable[[Facts], Summary | None]


def summarize(facts: Facts) -> Summary:
    """The first of what is to be said, in the order of its weight."""
    return next(summary for check in CHECKS if (summary := check(facts)) is not None)


def _said(kind: Kind, reason: Why, message: str) -> Summary:
    return Summary(kind, reason, advised(reason, message))


def blocked(facts: Facts) -> Summary | None:
    if not facts.findings:
        return None
    first = facts.findings[0]
    return _said(Kind.DEGRADED, first.reason, first.message)


def not_carried_out(facts: Facts) -> Summary | None:
    failure = facts.failure
    if failure is None:
        return None
    if not isinstance(failure, Permanent):
        return _said(Kind.UNCERTAIN, Why.API_ERROR, failure.message)
    reason = Why.CHILD_CONFLICT if failure.reason == Why.CHILD_CONFLICT else Why.APPLY_FAILED
    return _said(Kind.DEGRADED, reason, failure.message)


def not_drained(facts: Facts) -> Summary | None:
    for state, reason, word in (
        (PoolLifecycleState.DECOMMISSION_FAILED, Why.DECOMMISSION_FAILED, "could not be drained"),
        (PoolLifecycleState.DECOMMISSION_CANCELED, Why.DECOMMISSION_CANCELED, "is no longer being drained"),
    ):
        pools = facts.standing(state)
        if pools:
            return _said(Kind.DEGRADED, reason, f"{_named(pools)} {word}{_error(facts, pools[0])}")
    return None


def leaving(facts: Facts) -> Summary | None:
    drained = facts.standing(PoolLifecycleState.DECOMMISSIONED)
    gone = [pool for pool in drained if pool not in facts.lifecycles]
    if gone:
        return _said(Kind.RECONCILING, Why.DECOMMISSIONING, f"{_named(gone)} is being removed; its volumes are kept")
    draining = facts.standing(PoolLifecycleState.DECOMMISSIONING)
    if draining:
        return _said(
            Kind.RECONCILING, Why.DECOMMISSIONING, f"{_named(draining)} is being drained{_error(facts, draining[0])}"
        )
    if drained:
        left = [pool for pool in drained if not _cleaned_up(facts.lifecycle(pool))]
        rest = f"{_error(facts, left[0])}" if left else ""
        return _said(Kind.RECONCILING, Why.DECOMMISSIONED, f"{_named(drained)} has been drained{rest}")
    return None


def _cleaned_up(lifecycle: Lifecycle) -> bool:
    cleanup = None if lifecycle.status is None else lifecycle.status.cleanup
    return cleanup is not None and cleanup.state is CleanupState.PVC_RETAINED


def _error(facts: Facts, pool: str) -> str:
    status = facts.lifecycle(pool).status
    error = None if status is None else status.last_error
    return "" if error is None else f": {error.message} ({error.reason})"


def failed(facts: Facts) -> Summary | None:
    pools = facts.among(PoolState.ROLLOUT_FAILED)
    if not pools:
        return None
    return _said(
        Kind.DEGRADED,
        Why.ROLLOUT_FAILED,
        f"the rollout of {_named(pools)} does not get further{_why(facts, pools)}{_ill(facts, pools)}",
    )


def degraded(facts: Facts) -> Summary | None:
    pools = facts.among(PoolState.DEGRADED)
    if not pools:
        return None
    return _said(Kind.DEGRADED, Why.POOL_DEGRADED, f"{_named(pools)}: {counts(facts, pools)}{_ill(facts, pools)}")


_MOVING: Final = (PoolState.UPDATING, PoolState.CREATED, PoolState.NOT_CREATED)


def rolling(facts: Facts) -> Summary | None:
    pools = facts.among(*_MOVING)
    if not pools:
        return None
    blocked = next((each.blocked for pool in pools if (each := facts.rollings.get(pool)) and each.blocked), None)
    if blocked is not None and blocked.because.code is Code.NO_DISRUPTION_BUDGET:
        return _said(Kind.DEGRADED, Why.ROLLOUT_BLOCKED, f"{blocked.because.message}; {blocked.remedy}")
    wish = facts.world.tenant.spec.rollout
    if wish is not None and wish.paused and facts.among(PoolState.UPDATING):
        return _said(Kind.RECONCILING, Why.ROLLOUT_PAUSED, f"the rollout of {_named(pools)} is paused")
    return _said(
        Kind.RECONCILING, Why.ROLLOUT_IN_PROGRESS, f"{_named(pools)}: {counts(facts, pools)}{_why(facts, pools)}"
    )


def not_ready(facts: Facts) -> Summary | None:
    pools = tuple(pool for pool in facts.staying() if facts.state(pool) is not PoolState.ROLLOUT_COMPLETE)
    if not pools:
        return None
    return _said(Kind.RECONCILING, Why.PODS_NOT_READY, f"{_named(pools)}: {counts(facts, pools)}")


def not_provisioned(facts: Facts) -> Summary | None:
    asked = [field for field in not_supported(facts.world.tenant) if field in PROVISIONING]
    if not asked:
        return None
    return _said(Kind.DEGRADED, Why.NOT_SUPPORTED_YET, f"{', '.join(asked)} asked for, and nothing is made of it yet")


def well(facts: Facts) -> Summary | None:
    return Summary(Kind.READY, Why.SUCCEEDED, counts(facts, facts.staying()))


CHECKS: Final[tuple[Check, ...]] = (
    blocked,
    not_carried_out,
    not_drained,
    leaving,
    failed,
    degraded,
    rolling,
    not_ready,
    not_provisioned,
    well,
)


def _named(pools: tuple[str, ...] | list[str]) -> str:
    return f"pool {pools[0]}" if len(pools) == 1 else f"pools {', '.join(pools)}"


def counts(facts: Facts, pools: tuple[str, ...]) -> str:
    wanted = {pool.name: pool.servers for pool in facts.world.tenant.spec.pools}
    ready = sum(facts.ready(pool) for pool in pools)
    return f"{ready:,} of {count(sum(wanted.get(pool, 0) for pool in pools), 'server')} ready"


def _ill(facts: Facts, pools: tuple[str, ...]) -> str:
    """What the first server says that is not ready: that it has no place, or whatever its node says."""
    for pod in (pod for pool in pools for pod in facts.world.pods.get(pool, ()) if not pod.ready):
        for told in (pod.condition("PodScheduled"), pod.condition("Ready")):
            if told is not None and told.status == "False" and told.message:
                return f"; {pod.metadata.name}: {told.message}"
    return ""


def _why(facts: Facts, pools: tuple[str, ...]) -> str:
    """Why the first of the pools that has a reason does what it does."""
    reasons = (each.because.message for pool in pools if (each := facts.rollings.get(pool)) and each.because)
    reason = next(reasons, "")
    return f": {reason}" if reason else ""
