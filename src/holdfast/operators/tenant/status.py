"""What a Tenant's status says: each pool, the conditions, and one word for all of it.

Everything is derived from the facts of one pass.  Each condition has checks of its own, in order, the first of
which that objects is what it says; `currentState` is derived from the conditions, last.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from typing import Any, Final

import msgspec

from holdfast.kernel import conditions
from holdfast.kernel.conditions import Condition, Status, Verdict, evaluate
from holdfast.kernel.outcomes import Failure, Permanent
from holdfast.kernel.reasons import Code, count
from holdfast.kinds.rustfs.pools import CleanupState, PoolLifecycleState, PoolState, PoolStatus
from holdfast.kinds.rustfs.tenants import TenantStatus
from holdfast.meta import times
from holdfast.operators.tenant import names
from holdfast.operators.tenant.lifecycle import ACTIVE, Lifecycle
from holdfast.operators.tenant.observe import World
from holdfast.operators.tenant.pools import state_of
from holdfast.operators.tenant.reasons import BLOCKED, Why, advised
from holdfast.operators.tenant.rolling import Rolling
from holdfast.operators.tenant.validate import Finding, not_supported
from holdfast.runtime.decisions import Notice


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

    def standing(self, *states: PoolLifecycleState) -> tuple[str, ...]:
        return tuple(pool for pool in self.pools() if self.lifecycle(pool).state in states)


def report(facts: Facts, now: datetime) -> tuple[dict[str, Any], tuple[Notice, ...]]:
    """The whole status, and what is worth telling about how it changed."""
    world = facts.world
    before = world.tenant.status or TenantStatus()
    generation = world.object.meta.generation
    old = tuple(Condition.from_wire(msgspec.to_builtins(each)) for each in before.conditions)
    summary = _summary(facts)
    new = conditions.merge(old, _verdicts(facts, summary), generation=generation, now=now, unnamed="drop")
    status = {
        "observedGeneration": generation,
        "currentState": current_state(new, generation=generation),
        "availableReplicas": sum(_ready(facts, pool) for pool in facts.staying()),
        "pools": [_entry(facts, pool, now) for pool in facts.pools()],
        "conditions": [condition.to_wire() for condition in new],
    }
    return status, tuple(_news(old, new, summary))


# --- pools


def _ready(facts: Facts, pool: str) -> int:
    found = facts.world.sets.get(pool)
    return 0 if found is None else found.status.ready_replicas


def _entry(facts: Facts, pool: str, now: datetime) -> dict[str, Any]:
    """What is said of one pool; the time of it moves only when something else does."""
    world, rolling, lifecycle = facts.world, facts.rollings.get(pool), facts.lifecycle(pool)
    entry: dict[str, Any] = {"ssName": names.stateful_set(world.name, pool), "state": facts.state(pool).value}
    if not lifecycle.active or lifecycle.status is not None:
        entry["lifecycleState"] = lifecycle.state.value
        entry["decommission"] = msgspec.to_builtins(lifecycle.status)
    found = world.sets.get(pool)
    if found is not None and found.reported:
        counted = found.status
        entry |= {
            "replicas": counted.replicas,
            "readyReplicas": counted.ready_replicas,
            "currentReplicas": counted.current_replicas,
            "updatedReplicas": counted.updated_replicas,
            "currentRevision": counted.current_revision,
            "updateRevision": counted.update_revision,
        }
    if rolling is not None and rolling.progressed_at is not None:
        entry["lastProgressTime"] = times.format(rolling.progressed_at)
    return entry | {"lastUpdateTime": _updated_at(entry, world.before.get(pool), now)}


def _updated_at(entry: Mapping[str, Any], before: PoolStatus | None, now: datetime) -> str:
    if before is None or before.last_update_time is None:
        return times.format(now)
    said = msgspec.to_builtins(before)
    said.pop("lastUpdateTime")
    return before.last_update_time if said == entry else times.format(now)


# --- the summary: one verdict on everything, from which Ready, Reconciling and Degraded follow


class Kind(Enum):
    """What a summary means: (Ready, Reconciling, Degraded)."""

    READY = (Status.TRUE, Status.FALSE, Status.FALSE)
    RECONCILING = (Status.FALSE, Status.TRUE, Status.FALSE)
    DEGRADED = (Status.FALSE, Status.FALSE, Status.TRUE)
    UNCERTAIN = (Status.UNKNOWN, Status.TRUE, Status.FALSE)


@dataclass(frozen=True, slots=True)
class Summary:
    kind: Kind
    reason: Why
    message: str


def _summary(facts: Facts) -> Summary:
    """The first of what is to be said, in the order of its weight."""
    return next(summary for check in _CHECKS if (summary := check(facts)) is not None)


def _said(kind: Kind, reason: Why, message: str) -> Summary:
    return Summary(kind, reason, advised(reason, message))


def _blocked(facts: Facts) -> Summary | None:
    if not facts.findings:
        return None
    first = facts.findings[0]
    return _said(Kind.DEGRADED, first.reason, first.message)


def _not_carried_out(facts: Facts) -> Summary | None:
    failure = facts.failure
    if failure is None:
        return None
    if not isinstance(failure, Permanent):
        return _said(Kind.UNCERTAIN, Why.API_ERROR, failure.message)
    reason = Why.CHILD_CONFLICT if failure.reason == Why.CHILD_CONFLICT else Why.APPLY_FAILED
    return _said(Kind.DEGRADED, reason, failure.message)


def _not_drained(facts: Facts) -> Summary | None:
    for state, reason, word in (
        (PoolLifecycleState.DECOMMISSION_FAILED, Why.DECOMMISSION_FAILED, "could not be drained"),
        (PoolLifecycleState.DECOMMISSION_CANCELED, Why.DECOMMISSION_CANCELED, "is no longer being drained"),
    ):
        pools = facts.standing(state)
        if pools:
            return _said(Kind.DEGRADED, reason, f"{_named(pools)} {word}{_error(facts, pools[0])}")
    return None


def _leaving(facts: Facts) -> Summary | None:
    gone = sorted(facts.world.sets.keys() - {pool.name for pool in facts.world.tenant.spec.pools})
    if gone:
        return _said(Kind.RECONCILING, Why.DECOMMISSIONING, f"{_named(gone)} is being removed; its volumes are kept")
    draining = facts.standing(PoolLifecycleState.DECOMMISSIONING)
    if draining:
        return _said(
            Kind.RECONCILING, Why.DECOMMISSIONING, f"{_named(draining)} is being drained{_error(facts, draining[0])}"
        )
    drained = facts.standing(PoolLifecycleState.DECOMMISSIONED)
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


def _failed(facts: Facts) -> Summary | None:
    pools = facts.among(PoolState.ROLLOUT_FAILED)
    if not pools:
        return None
    return _said(
        Kind.DEGRADED,
        Why.ROLLOUT_FAILED,
        f"the rollout of {_named(pools)} does not get further{_why(facts, pools)}{_ill(facts, pools)}",
    )


def _degraded(facts: Facts) -> Summary | None:
    pools = facts.among(PoolState.DEGRADED)
    if not pools:
        return None
    return _said(Kind.DEGRADED, Why.POOL_DEGRADED, f"{_named(pools)}: {_counts(facts, pools)}{_ill(facts, pools)}")


_MOVING: Final = (PoolState.UPDATING, PoolState.CREATED, PoolState.NOT_CREATED)


def _rolling(facts: Facts) -> Summary | None:
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
        Kind.RECONCILING, Why.ROLLOUT_IN_PROGRESS, f"{_named(pools)}: {_counts(facts, pools)}{_why(facts, pools)}"
    )


def _not_ready(facts: Facts) -> Summary | None:
    pools = tuple(pool for pool in facts.staying() if facts.state(pool) is not PoolState.ROLLOUT_COMPLETE)
    if not pools:
        return None
    return _said(Kind.RECONCILING, Why.PODS_NOT_READY, f"{_named(pools)}: {_counts(facts, pools)}")


def _not_provisioned(facts: Facts) -> Summary | None:
    asked = [field for field in not_supported(facts.world.tenant) if field in _PROVISIONING]
    if not asked:
        return None
    return _said(Kind.DEGRADED, Why.NOT_SUPPORTED_YET, f"{', '.join(asked)} asked for, and nothing is made of it yet")


def _well(facts: Facts) -> Summary | None:
    return Summary(Kind.READY, Why.SUCCEEDED, _counts(facts, facts.staying()))


_CHECKS: Final = (
    _blocked,
    _not_carried_out,
    _not_drained,
    _leaving,
    _failed,
    _degraded,
    _rolling,
    _not_ready,
    _not_provisioned,
    _well,
)


def _named(pools: tuple[str, ...] | list[str]) -> str:
    return f"pool {pools[0]}" if len(pools) == 1 else f"pools {', '.join(pools)}"


def _counts(facts: Facts, pools: tuple[str, ...]) -> str:
    wanted = {pool.name: pool.servers for pool in facts.world.tenant.spec.pools}
    ready = sum(_ready(facts, pool) for pool in pools)
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


# --- conditions

_PROVISIONING: Final = ("spec.policies", "spec.users", "spec.buckets")


def _verdicts(facts: Facts, summary: Summary) -> dict[str, Verdict]:
    """The conditions in the order in which they are shown; those of sections that nobody asked for are left out."""
    ready, reconciling, degraded = summary.kind.value
    spec, unsupported = facts.world.tenant.spec, not_supported(facts.world.tenant)
    verdicts = {
        "Ready": Verdict(ready, summary.reason, summary.message),
        "Reconciling": _apart(reconciling, summary, Why.NOT_RECONCILING, "nothing is under way"),
        "Degraded": _apart(degraded, summary, Why.HEALTHY, "nothing is wrong"),
        "SpecValid": _found(facts, "SpecValid", Verdict.true(Why.VALID, "the spec is in order")),
        "CredentialsReady": _found(facts, "CredentialsReady", _credentials(facts)),
    }
    if spec.rpc_secret is not None:
        good = Verdict.true(Why.VALID, f"Secret {spec.rpc_secret.name} has what servers know each other by")
        verdicts["RpcAuthReady"] = _found(facts, "RpcAuthReady", good)
    for type, field in (("KmsReady", "spec.encryption"), ("TlsReady", "spec.tls")):
        if field in unsupported:
            verdicts[type] = _found(facts, type, Verdict.true(Why.VALID, ""))
    verdicts["PoolsReady"] = evaluate(
        (_verdict_of(_not_drained), _verdict_of(_failed), _verdict_of(_degraded)),
        facts,
        otherwise=Verdict.true(Why.POOLS_READY, "no pool has failed, is degraded, or could not be drained"),
    )
    verdicts["WorkloadsReady"] = _found(facts, "WorkloadsReady", _workloads(facts))
    if any(field in unsupported for field in _PROVISIONING):
        verdicts["ProvisioningReady"] = evaluate(
            (_verdict_of(_not_provisioned),), facts, otherwise=Verdict.true(Why.VALID, "")
        )
    if unsupported:
        message = f"{', '.join(unsupported)}: accepted, and not done by this version yet"
        verdicts["NotSupportedYet"] = Verdict.true(Why.NOT_SUPPORTED_YET, advised(Why.NOT_SUPPORTED_YET, message))
    return verdicts


def _apart(status: Status, summary: Summary, otherwise: Why, message: str) -> Verdict:
    """A condition that is bad news when True: why it is, or that it is not."""
    if status is Status.TRUE:
        return Verdict.true(summary.reason, summary.message)
    return Verdict.false(otherwise, message)


def _found(facts: Facts, type: str, otherwise: Verdict) -> Verdict:
    finding = next((each for each in facts.findings if each.condition == type), None)
    if finding is None:
        return otherwise
    return Verdict.false(finding.reason, advised(finding.reason, finding.message))


def _credentials(facts: Facts) -> Verdict:
    reference = facts.world.tenant.spec.creds_secret
    if reference is None:
        message = "spec.credsSecret is not set, so the servers have the image's own credentials, which everybody knows"
        return Verdict.true(Why.DEFAULT_CREDENTIALS, message)
    return Verdict.true(Why.VALID, f"Secret {reference.name} has the root credentials")


def _workloads(facts: Facts) -> Verdict:
    checks = (_not_carried_out, _leaving, _failed, _rolling, _not_ready)
    return evaluate(
        tuple(map(_verdict_of, checks)),
        facts,
        otherwise=Verdict.true(Why.WORKLOADS_READY, _counts(facts, facts.staying())),
    )


def _verdict_of(check: Any) -> conditions.Check[Facts]:
    """A check of the summary as one of a condition that is good news when True."""

    def judged(facts: Facts) -> Verdict | None:
        summary = check(facts)
        if summary is None:
            return None
        status = Status.UNKNOWN if summary.kind is Kind.UNCERTAIN else Status.FALSE
        return Verdict(status, summary.reason, summary.message)

    return judged


def current_state(said: tuple[Condition, ...], *, generation: int) -> str:
    """One word for all conditions."""
    answers = {condition.type: condition.status for condition in said}
    if answers.get("Ready") is Status.TRUE and not {answers.get("Degraded"), answers.get("Reconciling")} & {
        Status.TRUE
    }:
        return "Ready"
    if any(_blocks(condition, generation) for condition in said):
        return "Blocked"
    if answers.get("Reconciling") is Status.TRUE:
        return "Reconciling"
    if answers.get("Degraded") is Status.TRUE:
        return "Degraded"
    return "NotReady" if answers.get("Ready") is Status.FALSE else "Unknown"


def _blocks(condition: Condition, generation: int) -> bool:
    held = condition.status is Status.FALSE and condition.reason in BLOCKED
    return held and condition.observed_generation in (None, generation)


# --- news


def _news(old: tuple[Condition, ...], new: tuple[Condition, ...], summary: Summary) -> Iterator[Notice]:
    """What is told when Ready turns, or is not so for another reason."""
    if not any(transition.type == "Ready" for transition in conditions.changed(old, new)):
        return
    bad = summary.kind in (Kind.DEGRADED, Kind.UNCERTAIN)
    yield Notice(type="Warning" if bad else "Normal", reason=summary.reason.value, message=summary.message)
