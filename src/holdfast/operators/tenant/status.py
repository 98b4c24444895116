"""The status of a Tenant: its pools, its conditions, and `currentState`.

Everything is derived from the facts of one pass.  A condition has checks in order, of which the first that objects
is reported; Ready asks all of them.  `currentState` is derived from the conditions, last.  Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

import msgspec

from holdfast.kernel import floors, pod_problems
from holdfast.kernel.conditions import Check, Status, Verdict, evaluate
from holdfast.kernel.floors import FLOOR_HELD, FLOOR_LOWERED, Floor
from holdfast.kernel.limits import Limits
from holdfast.kernel.outcomes import Failure, Permanent
from holdfast.kernel.pod_problems import Diagnosis, PodReason
from holdfast.kernel.reasons import Code, count
from holdfast.kinds.rustfs.pools import CleanupState, PoolLifecycleState, PoolState, PoolStatus
from holdfast.meta import times
from holdfast.operators.tenant import names
from holdfast.operators.tenant.lifecycle import ACTIVE, Lifecycle
from holdfast.operators.tenant.observe import World
from holdfast.operators.tenant.pools import state_of
from holdfast.operators.tenant.reasons import BLOCKED, NEXT, RECONCILING, TenantReason, advised, false
from holdfast.operators.tenant.rolling import Rolling
from holdfast.operators.tenant.validate import Finding, not_supported, rollout_of
from holdfast.runtime import status as statuses
from holdfast.runtime.decisions import Notice

PROVISIONING: Final = ("spec.policies", "spec.users", "spec.buckets")
"""The fields that ask for something inside the store."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What one pass observed and decided.

    findings    what must be corrected before anything is done
    lifecycles  where each pool of the spec is in its life
    rollings    what happens to each pool that does not leave
    floors      the floor of each pool that holds data, and its limits
    failure     what went wrong when the decision was carried out
    """

    world: World
    findings: tuple[Finding, ...] = ()
    lifecycles: Mapping[str, Lifecycle]
    rollings: Mapping[str, Rolling] = field(default_factory=dict)
    floors: Mapping[str, tuple[Floor, Limits]] = field(default_factory=dict)
    failure: Failure | None = None

    def pools(self) -> tuple[str, ...]:
        """The pools of the spec, and then those that the spec no longer has and that still run."""
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
        """The pools that have not been drained."""
        drained = PoolLifecycleState.DECOMMISSIONED
        return tuple(pool for pool in self.pools() if self.lifecycle(pool).state is not drained)

    def among(self, *states: PoolState) -> tuple[str, ...]:
        return tuple(pool for pool in self.staying() if self.state(pool) in states)

    def ready(self, pool: str) -> int:
        found = self.world.sets.get(pool)
        return 0 if found is None else found.status.ready_replicas

    def living(self, *states: PoolLifecycleState) -> tuple[str, ...]:
        return tuple(pool for pool in self.pools() if self.lifecycle(pool).state in states)


def report(facts: Facts, now: datetime) -> tuple[dict[str, Any], tuple[Notice, ...]]:
    """The whole status, and the Events that follow from what changed in it."""
    verdicts = _verdicts(facts)
    ready = verdicts["Ready"]
    warns = (
        verdicts["Degraded"].status is Status.TRUE
        or ready.status is Status.UNKNOWN
        or ready.reason in frozenset(PodReason)
    )
    status, notices = statuses.report(
        facts.world.object,
        verdicts,
        now=now,
        fields={
            "currentState": current_state(verdicts),
            "availableReplicas": sum(facts.ready(pool) for pool in facts.staying()),
            "pools": [_entry(facts, pool, now) for pool in facts.pools()],
        },
        announced={
            ("Ready", ready.status.value): "Warning" if warns else "Normal",
            ("PoolsReady", Status.FALSE.value): "Warning",
            (FLOOR_LOWERED, Status.TRUE.value): "Warning",
        },
    )
    return status, (*notices, *_broken_floors(facts))


def _broken_floors(facts: Facts) -> Iterator[Notice]:
    """An Event for each pool whose floor was not broken before."""
    for pool, (floor, limits) in facts.floors.items():
        before = floor_before(facts.world, pool)
        if floor.broken and not (before is not None and before.broken):
            held = floors.verdicts(floor, limits)[FLOOR_HELD]
            yield Notice(type="Warning", reason=str(held.reason), message=f"pool {pool}: {held.message}")


def floor_before(world: World, pool: str) -> Floor | None:
    """The floor of a pool as the status has it."""
    before = world.before.get(pool)
    return None if before is None or before.floor is None else msgspec.convert(statuses.wire(before.floor), Floor)


# --- pools


def _entry(facts: Facts, pool: str, now: datetime) -> dict[str, Any]:
    """The status of one pool; its lastUpdateTime changes only together with something else."""
    world, rolling, lifecycle = facts.world, facts.rollings.get(pool), facts.lifecycle(pool)
    before = world.before.get(pool)
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
    if pool in facts.floors:
        entry["floor"] = msgspec.to_builtins(facts.floors[pool][0])
    elif facts.findings and before is not None and before.floor is not None:
        entry["floor"] = msgspec.to_builtins(before.floor)
    if rolling is not None and rolling.progressed_at is not None:
        entry["lastProgressTime"] = times.format(rolling.progressed_at)
    return entry | {"lastUpdateTime": _updated_at(entry, before, now)}


def _updated_at(entry: Mapping[str, Any], before: PoolStatus | None, now: datetime) -> str:
    if before is None or before.last_update_time is None:
        return times.format(now)
    said = msgspec.to_builtins(before)
    said.pop("lastUpdateTime")
    return before.last_update_time if said == entry else times.format(now)


# --- conditions


def _verdicts(facts: Facts) -> dict[str, Verdict]:
    """The conditions in the order in which they are shown, without those of sections that the spec does not have."""
    stands = evaluate(_READY, facts, otherwise=Verdict.true(TenantReason.SUCCEEDED, counts(facts, facts.staying())))
    spec, unsupported = facts.world.tenant.spec, not_supported(facts.world.tenant)
    reconciling = stands.reason in RECONCILING
    degraded = stands.status is Status.FALSE and not reconciling
    ready = _explained(facts, stands)
    verdicts = {
        "Ready": ready,
        "Reconciling": _negative(reconciling, ready, TenantReason.NOT_RECONCILING, "nothing is being changed"),
        "Degraded": _negative(degraded, ready, TenantReason.HEALTHY, "no problem is known"),
        "SpecValid": _found(facts, "SpecValid", Verdict.true(TenantReason.VALID, "the spec is valid")),
        "CredentialsReady": _found(facts, "CredentialsReady", _credentials(facts)),
    }
    if spec.rpc_secret is not None:
        good = Verdict.true(TenantReason.VALID, f"Secret {spec.rpc_secret.name} has the RPC secret of the servers")
        verdicts["RpcAuthReady"] = _found(facts, "RpcAuthReady", good)
    for type, section in (("KmsReady", "spec.encryption"), ("TlsReady", "spec.tls")):
        if section in unsupported:
            verdicts[type] = _found(facts, type, Verdict.true(TenantReason.VALID, ""))
    good = Verdict.true(TenantReason.POOLS_READY, "no pool has failed, is degraded, or could not be drained")
    verdicts["PoolsReady"] = evaluate((_not_drained, _failed, _degraded), facts, otherwise=good)
    checks = (_not_carried_out, _leaving, _failed, _rolling, _not_ready)
    good = Verdict.true(TenantReason.WORKLOADS_READY, counts(facts, facts.staying()))
    verdicts["WorkloadsReady"] = _found(facts, "WorkloadsReady", evaluate(checks, facts, otherwise=good))
    if any(section in unsupported for section in PROVISIONING):
        verdicts["ProvisioningReady"] = evaluate(
            (_not_provisioned,), facts, otherwise=Verdict.true(TenantReason.VALID, "")
        )
    verdicts |= floor_verdicts(facts)
    if unsupported:
        message = f"{', '.join(unsupported)}: accepted, and not implemented by this version yet"
        verdicts["NotSupportedYet"] = Verdict.true(
            TenantReason.NOT_SUPPORTED_YET, advised(TenantReason.NOT_SUPPORTED_YET, message)
        )
    return verdicts


_OF_SERVERS: Final = frozenset(
    {
        TenantReason.ROLLOUT_FAILED,
        TenantReason.POOL_DEGRADED,
        TenantReason.ROLLOUT_IN_PROGRESS,
        TenantReason.PODS_NOT_READY,
    }
)
"""Reasons that a problem of a server may explain."""


def _explained(facts: Facts, stands: Verdict) -> Verdict:
    """Ready with the reason of the server that keeps the Tenant from it, which a list of Tenants then shows."""
    found = _diagnosis(facts) if stands.reason in _OF_SERVERS else None
    if found is None:
        return stands
    # In a rollout that goes on, each new server runs for a while before its probe succeeds.
    early = found.reason is PodReason.PROBE_FAILING and stands.reason == TenantReason.ROLLOUT_IN_PROGRESS
    return stands if early else Verdict(stands.status, found.reason, stands.message)


def _negative(holds: bool, ready: Verdict, otherwise: TenantReason, message: str) -> Verdict:
    """A condition that is bad news when True; then it has the reason of Ready."""
    return Verdict.true(ready.reason, ready.message) if holds else Verdict.false(otherwise, message)


def _found(facts: Facts, type: str, otherwise: Verdict) -> Verdict:
    finding = next((each for each in facts.findings if each.condition == type), None)
    return otherwise if finding is None else false(finding.reason, finding.message)


def _credentials(facts: Facts) -> Verdict:
    reference = facts.world.tenant.spec.creds_secret
    if reference is None:
        message = "spec.credsSecret is not set, so the servers use the image's own credentials, which are public"
        return Verdict.true(TenantReason.DEFAULT_CREDENTIALS, message)
    return Verdict.true(TenantReason.VALID, f"Secret {reference.name} has the root credentials")


def floor_verdicts(facts: Facts) -> dict[str, Verdict]:
    """FloorHeld of the pool that is worst off, and FloorLowered of the first pool whose limits lower the floor."""
    said: dict[str, Verdict] = {}
    for pool, (floor, limits) in sorted(facts.floors.items(), key=lambda each: _shortage(each[1][0])):
        for type, verdict in floors.verdicts(floor, limits).items():
            said.setdefault(type, Verdict(verdict.status, verdict.reason, f"pool {pool}: {verdict.message}"))
    return said


def _shortage(floor: Floor) -> tuple[bool, int]:
    return not floor.broken, floor.available - floor.required


def current_state(verdicts: Mapping[str, Verdict]) -> str:
    """One word for all conditions."""
    answers = {type: verdict.status for type, verdict in verdicts.items()}
    true = {type for type, status in answers.items() if status is Status.TRUE}
    if "Ready" in true and not true & {"Degraded", "Reconciling"}:
        return "Ready"
    if any(each.status is Status.FALSE and each.reason in BLOCKED for each in verdicts.values()):
        return "Blocked"
    if "Reconciling" in true:
        return "Reconciling"
    if "Degraded" in true:
        return "Degraded"
    return "NotReady" if answers.get("Ready") is Status.FALSE else "Unknown"


# --- checks


def _blocked(facts: Facts) -> Verdict | None:
    first = next(iter(facts.findings), None)
    return None if first is None else false(first.reason, first.message)


def _not_carried_out(facts: Facts) -> Verdict | None:
    failure = facts.failure
    if failure is None:
        return None
    if not isinstance(failure, Permanent):
        return Verdict.unknown(TenantReason.API_ERROR, advised(TenantReason.API_ERROR, failure.message))
    conflict = failure.reason == TenantReason.CHILD_CONFLICT
    return false(TenantReason.CHILD_CONFLICT if conflict else TenantReason.APPLY_FAILED, failure.message)


def _not_drained(facts: Facts) -> Verdict | None:
    for state, reason, what in (
        (PoolLifecycleState.DECOMMISSION_FAILED, TenantReason.DECOMMISSION_FAILED, "could not be drained"),
        (PoolLifecycleState.DECOMMISSION_CANCELED, TenantReason.DECOMMISSION_CANCELED, "is no longer being drained"),
    ):
        pools = facts.living(state)
        if pools:
            return false(reason, f"{_named(pools)} {what}{_error(facts, pools[0])}")
    return None


def _leaving(facts: Facts) -> Verdict | None:
    drained = facts.living(PoolLifecycleState.DECOMMISSIONED)
    removed = [pool for pool in drained if pool not in facts.lifecycles]
    if removed:
        return false(TenantReason.DECOMMISSIONING, f"{_named(removed)} is being deleted; its volumes are kept")
    draining = facts.living(PoolLifecycleState.DECOMMISSIONING)
    if draining:
        return false(TenantReason.DECOMMISSIONING, f"{_named(draining)} is being drained{_error(facts, draining[0])}")
    if drained:
        left = [pool for pool in drained if not _cleaned_up(facts.lifecycle(pool))]
        rest = _error(facts, left[0]) if left else ""
        return false(TenantReason.DECOMMISSIONED, f"{_named(drained)} has been drained{rest}")
    return None


def _cleaned_up(lifecycle: Lifecycle) -> bool:
    cleanup = None if lifecycle.status is None else lifecycle.status.cleanup
    return cleanup is not None and cleanup.state is CleanupState.PVC_RETAINED


def _error(facts: Facts, pool: str) -> str:
    status = facts.lifecycle(pool).status
    error = None if status is None else status.last_error
    return "" if error is None else f": {error.message} ({error.reason})"


def _failed(facts: Facts) -> Verdict | None:
    pools = facts.among(PoolState.ROLLOUT_FAILED)
    if not pools:
        return None
    message = f"the rollout of {_named(pools)} makes no progress{_why(facts, pools)}"
    return _unready(facts, TenantReason.ROLLOUT_FAILED, message, then="if the new revision causes it, correct the spec")


def _degraded(facts: Facts) -> Verdict | None:
    pools = facts.among(PoolState.DEGRADED)
    if not pools:
        return None
    return _unready(facts, TenantReason.POOL_DEGRADED, f"{_named(pools)}: {counts(facts, pools)}")


def _rolling(facts: Facts) -> Verdict | None:
    pools = facts.among(PoolState.UPDATING, PoolState.CREATED, PoolState.NOT_CREATED)
    if not pools:
        return None
    standing = f"{_named(pools)}: {counts(facts, pools)}"
    if facts.findings:
        first = facts.findings[0]
        return false(first.reason, f"{standing}, and none is created or replaced before this ends: {first.message}")
    blocked = next(
        (each.step.blocked for pool in pools if (each := facts.rollings.get(pool)) and each.step and each.step.blocked),
        None,
    )
    if blocked is not None and blocked.because.code is Code.NO_DISRUPTION_BUDGET:
        return false(TenantReason.ROLLOUT_BLOCKED, f"{blocked.because.message}; {blocked.remedy}")
    if rollout_of(facts.world.tenant).paused and facts.among(PoolState.UPDATING):
        return _unready(
            facts,
            TenantReason.ROLLOUT_PAUSED,
            f"the rollout of {_named(pools)} is paused",
            then=NEXT[TenantReason.ROLLOUT_PAUSED],
        )
    return _unready(facts, TenantReason.ROLLOUT_IN_PROGRESS, f"{standing}{_why(facts, pools)}")


def _not_ready(facts: Facts) -> Verdict | None:
    pools = tuple(pool for pool in facts.staying() if facts.state(pool) is not PoolState.ROLLOUT_COMPLETE)
    return _unready(facts, TenantReason.PODS_NOT_READY, f"{_named(pools)}: {counts(facts, pools)}") if pools else None


def _not_provisioned(facts: Facts) -> Verdict | None:
    asked = [section for section in not_supported(facts.world.tenant) if section in PROVISIONING]
    if not asked:
        return None
    return false(TenantReason.NOT_SUPPORTED_YET, f"{', '.join(asked)}: nothing is created in the store yet")


_READY: Final[tuple[Check[Facts], ...]] = (
    _blocked, _not_carried_out, _not_drained, _leaving, _failed, _degraded, _rolling, _not_ready, _not_provisioned,
)  # fmt: skip
"""The checks of Ready, the gravest first."""


# --- messages


def _named(pools: Iterable[str]) -> str:
    first, *others = pools
    return f"pools {', '.join((first, *others))}" if others else f"pool {first}"


def counts(facts: Facts, pools: Iterable[str]) -> str:
    pools = tuple(pools)
    wanted = {pool.name: pool.servers for pool in facts.world.tenant.spec.pools}
    ready = sum(facts.ready(pool) for pool in pools)
    return f"{ready:,} of {count(sum(wanted.get(pool, 0) for pool in pools), 'server')} ready"


def _diagnosis(facts: Facts) -> Diagnosis | None:
    """The gravest problem of the servers that are not ready, unless it passes by itself."""
    pods = (pod for pool in facts.staying() for pod in facts.world.not_ready.get(pool, ()))
    found = pod_problems.diagnose(pods, lost=facts.world.lost_nodes)
    return None if found is None or found.problem.passes else found


def _unready(facts: Facts, reason: TenantReason, message: str, *, then: str = "") -> Verdict:
    """A condition that is False, with the server that causes it and what to do about that server, if one does."""
    found = _diagnosis(facts)
    if found is None:
        return false(reason, message)
    return Verdict.false(reason, "; ".join(filter(None, (message, str(found), then))))


def _why(facts: Facts, pools: Iterable[str]) -> str:
    """What the rollout of the first pool that has one does or waits for."""
    steps = (each.step for pool in pools if (each := facts.rollings.get(pool)) and each.step)
    step = next(steps, None)
    return "" if step is None else f": {step.because.message}"
