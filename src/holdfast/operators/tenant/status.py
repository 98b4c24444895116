"""What a Tenant's status says: each pool, the conditions, and one word for all of it.

Everything is derived from the facts of one pass.  Each condition has checks of its own, in order, the first of
which that objects is what it says; `currentState` is derived from the conditions, last.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

import msgspec

from holdfast.kernel import conditions
from holdfast.kernel.conditions import Condition, Status, Verdict, evaluate
from holdfast.kinds.rustfs.pools import PoolStatus
from holdfast.kinds.rustfs.tenants import TenantStatus
from holdfast.meta import times
from holdfast.operators.tenant import names, summaries
from holdfast.operators.tenant.reasons import BLOCKED, Why, advised
from holdfast.operators.tenant.summaries import PROVISIONING, Check, Facts, Kind, Summary, counts, summarize
from holdfast.operators.tenant.validate import not_supported
from holdfast.runtime.decisions import Notice


def report(facts: Facts, now: datetime) -> tuple[dict[str, Any], tuple[Notice, ...]]:
    """The whole status, and what is worth telling about how it changed."""
    world = facts.world
    before = world.tenant.status or TenantStatus()
    generation = world.object.meta.generation
    old = tuple(Condition.from_wire(msgspec.to_builtins(each)) for each in before.conditions)
    summary = summarize(facts)
    new = conditions.merge(old, _verdicts(facts, summary), generation=generation, now=now, unnamed="drop")
    status = {
        "observedGeneration": generation,
        "currentState": current_state(new, generation=generation),
        "availableReplicas": sum(facts.ready(pool) for pool in facts.staying()),
        "pools": [_entry(facts, pool, now) for pool in facts.pools()],
        "conditions": [condition.to_wire() for condition in new],
    }
    return status, tuple(_news(old, new, summary))


# --- pools


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


# --- conditions


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
        tuple(map(_verdict_of, (summaries.not_drained, summaries.failed, summaries.degraded))),
        facts,
        otherwise=Verdict.true(Why.POOLS_READY, "no pool has failed, is degraded, or could not be drained"),
    )
    verdicts["WorkloadsReady"] = _found(facts, "WorkloadsReady", _workloads(facts))
    if any(field in unsupported for field in PROVISIONING):
        verdicts["ProvisioningReady"] = evaluate(
            (_verdict_of(summaries.not_provisioned),), facts, otherwise=Verdict.true(Why.VALID, "")
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
    checks = (
        summaries.not_carried_out,
        summaries.leaving,
        summaries.failed,
        summaries.rolling,
        summaries.not_ready,
    )
    return evaluate(
        tuple(map(_verdict_of, checks)),
        facts,
        otherwise=Verdict.true(Why.WORKLOADS_READY, counts(facts, facts.staying())),
    )


def _verdict_of(check: Check) -> conditions.Check[Facts]:
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
