"""What is done for a Tenant next: objects, rollouts, pools that leave, and its status.

Findings come first: while there is one, nothing is changed.  Then the pools that leave are followed (`lifecycle`),
the others are rolled out (`rolling`), and servers on nodes that are down are deleted (`down_nodes`).  `survey` and
`act` are the two functions that speak to a store.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from holdfast.client.resources import BUDGETS, PODS
from holdfast.kernel import floors
from holdfast.kernel.children import PRUNE, Desired, differences
from holdfast.kernel.conditions import find
from holdfast.kernel.floors import FLOOR_LOWERED, Floor
from holdfast.kernel.limits import Limits
from holdfast.kernel.outcomes import Again, Done, Failure, soonest
from holdfast.kinds.rustfs.pools import Pool, PoolLifecycleState
from holdfast.meta.objects import Ref
from holdfast.meta.signatures import Credentials
from holdfast.operators.tenant import down_nodes, lifecycle, names, render, rolling
from holdfast.operators.tenant.admin import AdminError, Connect, StorePool, Survey, Unavailable
from holdfast.operators.tenant.lifecycle import POLL, Call, Lifecycle, Verb
from holdfast.operators.tenant.observe import World
from holdfast.operators.tenant.reasons import TenantReason
from holdfast.operators.tenant.render import STORE_PORT, Settings
from holdfast.operators.tenant.status import Facts, floor_before, floor_verdicts, report
from holdfast.operators.tenant.validate import credentials, findings, limits, rollout_of
from holdfast.runtime.decisions import Decision, Delete, Notice, Rehearsal, Write
from holdfast.runtime.disruption import budget_writes
from holdfast.runtime.passes.rehearsals import pod_of_stateful_set
from holdfast.runtime.status import prior_conditions


@dataclass(frozen=True, slots=True, kw_only=True)
class TenantDecision(Decision):
    """What one pass does through the API, and the calls to the store."""

    calls: tuple[Call, ...] = ()


def decide(world: World, now: datetime, *, settings: Settings) -> TenantDecision:
    """What to write, what to ask of the store, and the status."""
    facts = _facts(world, settings, now=now)
    status, changes = report(facts, now)
    if facts.findings:
        return TenantDecision(status=status, notices=changes)
    forced = down_nodes.deletions(world.tenant.spec.pod_deletion_policy_when_node_is_down, world.on_down_nodes, now=now)
    removed = tuple(lifecycle.removed(world))
    followed, rolled = facts.lifecycles.values(), facts.rollings.values()
    announcing = _announces_lowered_floor(world, facts)
    writes: tuple[Write, ...] = (
        *_budgets(world, facts),
        *(each.removal for each in followed if each.removal is not None),
        *(removal for removal, _ in removed),
        *(stop for each in rolled for stop in each.stops if not announcing),
        *forced.writes,
    )
    notices = (
        *_started(world, facts, settings),
        *(notice for each in followed for notice in each.notices),
        *(notice for _, notice in removed),
        *forced.notices,
        *changes,
    )
    return TenantDecision(
        rehearse=tuple(_rehearsals(world, facts, settings)),
        children=_children(world, facts, settings),
        writes=writes,
        calls=tuple(each.call for each in followed if each.call is not None),
        status=status,
        notices=tuple(dict.fromkeys(notices)),
        outcome=soonest(
            (
                *(each.outcome for each in followed),
                *(each.outcome for each in rolled),
                forced.outcome,
                Again(timedelta(seconds=1), "servers are stopped once the status has FloorLowered")
                if announcing
                else Done(),
            )
        ),
    )


def explain(world: World, failure: Failure, now: datetime, *, settings: Settings) -> dict[str, Any]:
    """The status of a pass whose decision could not be carried out."""
    status, _ = report(replace(_facts(world, settings, now=now), failure=failure), now)
    return status


def _facts(world: World, settings: Settings, *, now: datetime) -> Facts:
    found = findings(world, settings)
    if any(each.reason is TenantReason.INVALID_ROLLOUT for each in found):
        return Facts(world=world, findings=found, lifecycles=lifecycle.carried(world))
    volumes = render.volumes(world.tenant, namespace=world.namespace, settings=settings)
    lifecycles = lifecycle.carried(world) if found else lifecycle.follow(world, volumes, now=now)
    staying = {pool.name: pool for pool in world.tenant.spec.pools if lifecycles[pool.name].active}
    renewed = _renewed(world, staying.values(), settings)
    return Facts(
        world=world,
        findings=found,
        lifecycles=lifecycles,
        rollings=rolling.roll(world, staying, renewed=renewed, now=now, blocked=bool(found)),
        floors={
            pool.name: _floor(world, pool, renewed=pool.name in renewed)
            for pool in world.tenant.spec.pools
            if _holds_data(lifecycles[pool.name])
        },
    )


def _holds_data(followed: Lifecycle) -> bool:
    return followed.state is not PoolLifecycleState.DECOMMISSIONED


def _floor(world: World, pool: Pool, *, renewed: bool) -> tuple[Floor, Limits]:
    bounds = limits(rollout_of(world.tenant), pool)
    available = sum(pod.ready and pod.active for pod in rolling.servers(world, pool))
    before = floor_before(world, pool.name)
    return floors.observed(before, limits=bounds, available=available, afresh=renewed), bounds


def _renewed(world: World, pools: Iterable[Pool], settings: Settings) -> frozenset[str]:
    """The pools whose StatefulSet has another template than the one that the spec asks for."""
    return frozenset(
        pool.name
        for pool in pools
        if (found := world.sets.get(pool.name)) is not None
        and _is_other(found.metadata.annotations, found.spec.template, _template(world, pool, settings))
    )


def _template(world: World, pool: Pool, settings: Settings) -> dict[str, Any]:
    return render.template(world.tenant, pool, namespace=world.namespace, settings=settings)


def _is_other(annotations: dict[str, str], applied: dict[str, Any], wanted: dict[str, Any]) -> bool:
    """Whether a template was rendered from another spec, or was edited since it was applied."""
    rendered = annotations.get(render.TEMPLATE) == render.template_hash(wanted)
    return not rendered or any(differences(applied, wanted))


def _announces_lowered_floor(world: World, facts: Facts) -> bool:
    """Whether this pass is the first that reports FloorLowered: no server is stopped before it is reported."""
    return FLOOR_LOWERED in floor_verdicts(facts) and find(prior_conditions(world.object), FLOOR_LOWERED) is None


# --- objects


def _children(world: World, facts: Facts, settings: Settings) -> tuple[Desired, ...] | None:
    """The objects that should exist; a StatefulSet is never deleted because it is not among them."""
    wanted = tuple(_wanted(world, facts, settings))
    kept = {each.ref.key.name for each in wanted}
    unprotected = [
        found
        for found in world.sets.values()
        if found.metadata.name not in kept and found.metadata.annotations.get(PRUNE) != "never"
    ]
    return None if unprotected else wanted


def _wanted(world: World, facts: Facts, settings: Settings) -> Iterator[Desired]:
    tenant, namespace = world.tenant, world.namespace
    if tenant.spec.service_account_name is None and not world.foreign_account:
        # Servers of an older revision may need it after the spec has named another one.
        yield Desired(render.account(tenant, namespace=namespace), prune=False)
    for service in render.services(tenant, namespace=namespace):
        yield Desired(service)
    for pool, strategy in _applied(world, facts):
        manifest = render.stateful_set(tenant, pool, namespace=namespace, strategy=strategy, settings=settings)
        yield Desired(manifest, prune=False, wave=1)


def _rehearsals(world: World, facts: Facts, settings: Settings) -> Iterator[Rehearsal]:
    """A server of each new template, before a StatefulSet gets it and before a server is stopped for it."""
    for pool, strategy in _applied(world, facts):
        if pool.name in world.sets and (facts.rollings[pool.name].stops or _renewed(world, (pool,), settings)):
            manifest = render.stateful_set(
                world.tenant, pool, namespace=world.namespace, strategy=strategy, settings=settings
            )
            yield Rehearsal(
                about=f"the pod template of pool {pool.name}",
                resource=PODS,
                manifest=pod_of_stateful_set(manifest),
                holds=(Ref.of(manifest),),
            )


def _applied(world: World, facts: Facts) -> Iterator[tuple[Pool, Any]]:
    """The pools whose StatefulSet is applied, each with its update strategy."""
    for pool in world.tenant.spec.pools:
        rolled = facts.rollings.get(pool.name)
        if rolled is not None and rolled.strategy is not None:
            yield pool, rolled.strategy


def _started(world: World, facts: Facts, settings: Settings) -> Iterator[Notice]:
    """Events of what begins with this pass; where a rollout takes a pool below minAvailable, that is announced."""
    for pool, _ in _applied(world, facts):
        name = names.stateful_set(world.name, pool.name)
        if pool.name not in world.sets:
            yield Notice(reason="StatefulSetCreated", message=f"Creating StatefulSet {name} of {pool.servers} servers")
        elif pool.name in _renewed(world, (pool,), settings):
            yield Notice(reason="StatefulSetUpdateStarted", message=f"StatefulSet {name} gets a new template")
            lowered = floor_verdicts(facts).get(FLOOR_LOWERED)
            if lowered is not None:
                yield Notice(type="Warning", reason=str(lowered.reason), message=lowered.message)


def _budgets(world: World, facts: Facts) -> Iterator[Write]:
    """A PodDisruptionBudget for each pool that holds data, unless it is Unmanaged or another one selects its pods."""
    managed = rollout_of(world.tenant).disruption_budget != "Unmanaged"
    for pool, (_, bounds) in facts.floors.items():
        yield from budget_writes(
            world.object,
            world.budgets.get(pool),
            name=names.stateful_set(world.name, pool),
            selector=names.selector(world.name, pool),
            limits=bounds,
            wanted=managed and pool not in world.other_budgets,
        )
    for pool in sorted(world.budgets.keys() - facts.floors.keys()):
        budget = world.budgets[pool]
        if budget.is_controlled_by(world.object.uid) and not budget.deleting:
            yield Delete(because=f"pool {pool} has been drained", resource=BUDGETS, key=budget.key, uid=budget.uid)


# --- the store


async def survey(world: World, *, settings: Settings, connect: Connect) -> World:
    """The world with what the store reports of its pools, where that is needed."""
    if not lifecycle.needs_survey(world):
        return world
    keys = credentials(world)
    if not isinstance(keys, Credentials):
        message = "the store is asked with the root credentials; name their Secret in spec.credsSecret"
        return replace(world, survey=Unavailable("CredentialsMissing", message))
    volumes = render.volumes(world.tenant, namespace=world.namespace, settings=settings)
    return replace(world, survey=await _asked(world, keys, set(volumes.values()), settings, connect))


async def _asked(world: World, keys: Credentials, known: set[str], settings: Settings, connect: Connect) -> Survey:
    admin = connect(store_url(world, settings), keys)
    try:
        pools: list[StorePool] = []
        for pool in await admin.pools():
            bare = pool.decommission_info is None and pool.cmdline in known
            pools.append(await admin.pool(pool.id) if bare else pool)
    except AdminError as error:
        return Unavailable(error.reason, error.message)
    return tuple(pools)


def store_url(world: World, settings: Settings) -> str:
    host = f"{names.store(world.name)}.{world.namespace}.svc.{settings.cluster_domain}"
    return f"http://{host}:{STORE_PORT}"


async def act(world: World, decision: Decision, *, settings: Settings, connect: Connect) -> Decision:
    """Make the calls to the store; one that it refuses is reported and retried."""
    calls = decision.calls if isinstance(decision, TenantDecision) else ()
    keys = credentials(world)
    if not calls or not isinstance(keys, Credentials):
        return decision
    admin = connect(store_url(world, settings), keys)
    for call in calls:
        try:
            await (admin.start(call.store_pool) if call.verb is Verb.START else admin.cancel(call.store_pool))
        except AdminError as error:
            decision = _refused(world, decision, call, error)
    return decision


def _refused(world: World, decision: Decision, call: Call, error: AdminError) -> Decision:
    status = dict(decision.status or {})
    set_name = names.stateful_set(world.name, call.pool)
    message = f"the store refused to {call.verb} the drain: {error.message}"
    status["pools"] = [
        {**pool, "decommission": {**pool["decommission"], "lastError": {"reason": error.reason, "message": message}}}
        if pool["ssName"] == set_name
        else pool
        for pool in status["pools"]
    ]
    return replace(decision, status=status, outcome=Again(POLL, "the store is asked again"))
