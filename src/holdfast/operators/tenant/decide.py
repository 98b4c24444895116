"""What is done for a Tenant next: what is made, what is rolled out, what leaves, and what is said of it.

Findings come first: while there is one, nothing is touched.  Then pools that leave are followed (`lifecycle`),
pools that stay are rolled out (`rolling`), and servers that are stuck on dead nodes are let go (`stranded`).
This module only puts the answers together; `survey` and `act` are the two places where a store is spoken to.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from holdfast.kernel.children import PRUNE, Desired
from holdfast.kernel.outcomes import Again, Failure, soonest
from holdfast.kinds.rustfs.pools import Pool
from holdfast.operators.tenant import containers, lifecycle, names, render, rolling, stranded
from holdfast.operators.tenant.admin import AdminError, Connect, StorePool, Survey, Unavailable
from holdfast.operators.tenant.containers import STORE_PORT
from holdfast.operators.tenant.lifecycle import POLL, Call, Verb
from holdfast.operators.tenant.observe import World
from holdfast.operators.tenant.reasons import Why
from holdfast.operators.tenant.settings import Settings
from holdfast.operators.tenant.signing import Credentials
from holdfast.operators.tenant.status import report
from holdfast.operators.tenant.summaries import Facts
from holdfast.operators.tenant.validate import credentials, findings
from holdfast.runtime.decisions import Decision, Notice, Write


@dataclass(frozen=True, slots=True, kw_only=True)
class TenantDecision(Decision):
    """What one pass wants, of the API and of the store."""

    calls: tuple[Call, ...] = ()


def decide(world: World, now: datetime, *, settings: Settings) -> TenantDecision:
    """What to write, what to ask of the store, and what to say."""
    facts = _facts(world, settings, now=now)
    status, news = report(facts, now)
    if facts.findings:
        return TenantDecision(status=status, notices=news)
    clearance = stranded.clear(world.tenant.spec.pod_deletion_policy_when_node_is_down, world.stranded, now=now)
    left = tuple(lifecycle.removed(world))
    followed, rolled = facts.lifecycles.values(), facts.rollings.values()
    writes: tuple[Write, ...] = (
        *(each.removal for each in followed if each.removal is not None),
        *(removal for removal, _ in left),
        *(stop for each in rolled for stop in each.stops),
        *clearance.writes,
    )
    return TenantDecision(
        children=_children(world, facts, settings),
        writes=writes,
        calls=tuple(each.call for each in followed if each.call is not None),
        status=status,
        notices=(
            *_deeds(world, facts, settings),
            *(notice for each in followed for notice in each.notices),
            *(notice for _, notice in left),
            *clearance.notices,
            *news,
        ),
        outcome=soonest((*(each.outcome for each in followed), *(each.outcome for each in rolled), clearance.outcome)),
    )


def explain(world: World, failure: Failure, now: datetime, *, settings: Settings) -> dict[str, Any]:
    """What is said when it could not be carried out."""
    status, _ = report(replace(_facts(world, settings, now=now), failure=failure), now)
    return status


def _facts(world: World, settings: Settings, *, now: datetime) -> Facts:
    found = findings(world, settings)
    if any(each.reason is Why.INVALID_ROLLOUT for each in found):
        return Facts(world=world, findings=found, lifecycles=lifecycle.carried(world), rollings={})
    volumes = containers.volumes(world.tenant, namespace=world.namespace, settings=settings)
    lifecycles = lifecycle.carried(world) if found else lifecycle.follow(world, volumes, now=now)
    staying = {pool.name: pool for pool in world.tenant.spec.pools if lifecycles[pool.name].active}
    rollings = rolling.roll(world, staying, renewed=_renewed(world, staying.values(), settings), now=now)
    return Facts(world=world, findings=found, lifecycles=lifecycles, rollings=rollings)


def _renewed(world: World, pools: Iterable[Pool], settings: Settings) -> frozenset[str]:
    """The pools whose template is not the one that was applied last."""
    return frozenset(
        pool.name
        for pool in pools
        if (found := world.sets.get(pool.name)) is not None
        and found.metadata.annotations.get(render.TEMPLATE) != _template_hash(world, pool, settings)
    )


def _template_hash(world: World, pool: Pool, settings: Settings) -> str:
    return render.template_hash(render.template(world.tenant, pool, namespace=world.namespace, settings=settings))


# --- children


def _children(world: World, facts: Facts, settings: Settings) -> tuple[Desired, ...] | None:
    """The objects there should be; a StatefulSet is never removed because it is not among them."""
    wanted = tuple(_wanted(world, facts, settings))
    kept = {each.ref.key.name for each in wanted}
    bare = [
        found
        for found in world.sets.values()
        if found.metadata.name not in kept and found.metadata.annotations.get(PRUNE) != "never"
    ]
    return None if bare else wanted


def _wanted(world: World, facts: Facts, settings: Settings) -> Iterator[Desired]:
    tenant, namespace = world.tenant, world.namespace
    if tenant.spec.service_account_name is None and not world.foreign_account:
        # Servers of an older revision may need it after the spec has named another one.
        yield Desired(render.account(tenant, namespace=namespace), prune=False)
    for service in render.services(tenant, namespace=namespace):
        yield Desired(service)
    for pool in tenant.spec.pools:
        told = facts.rollings.get(pool.name)
        if told is not None and told.strategy is not None:
            manifest = render.stateful_set(tenant, pool, namespace=namespace, strategy=told.strategy, settings=settings)
            yield Desired(manifest, prune=False, wave=1)


def _deeds(world: World, facts: Facts, settings: Settings) -> Iterator[Notice]:
    """What is done in this pass, for people who read events."""
    for pool in world.tenant.spec.pools:
        told = facts.rollings.get(pool.name)
        if told is None or told.strategy is None:
            continue
        name = names.stateful_set(world.name, pool.name)
        if pool.name not in world.sets:
            yield Notice(reason="StatefulSetCreated", message=f"Making StatefulSet {name} of {pool.servers} servers")
        elif pool.name in _renewed(world, (pool,), settings):
            yield Notice(reason="StatefulSetUpdateStarted", message=f"StatefulSet {name} gets a new template")


# --- the store


async def survey(world: World, *, settings: Settings, connect: Connect) -> World:
    """The world with what the store says of its pools, where that matters."""
    if not lifecycle.needs_survey(world):
        return world
    keys = credentials(world)
    if not isinstance(keys, Credentials):
        message = "the store is asked with the root credentials; name their Secret in spec.credsSecret"
        return replace(world, survey=Unavailable("CredentialsMissing", message))
    volumes = containers.volumes(world.tenant, namespace=world.namespace, settings=settings)
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
    """Ask the store for what was decided; what it refuses is said, and asked again."""
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
    said = {"reason": error.reason, "message": f"it could not be asked to {call.verb}: {error.message}"}
    status["pools"] = [
        {**pool, "decommission": {**pool["decommission"], "lastError": said}} if pool["ssName"] == set_name else pool
        for pool in status["pools"]
    ]
    again = Again(POLL, "the store is asked again")
    return replace(decision, status=status, outcome=again)
