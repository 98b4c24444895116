"""The rollout of a Tenant: where it stands, its pools and their servers as a tree, and what can be asked of it.

Pure.  The world is read by the operator's own eyes, and the limits are those that it keeps to.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any, Final

import msgspec

from holdfast.client.objects import Object
from holdfast.client.resources import PODS, STATEFUL_SETS
from holdfast.kernel.limits import InvalidLimits
from holdfast.kinds.rustfs.pools import Pool, PoolState, PoolStatus
from holdfast.kinds.rustfs.tenants import Rollout, Tenant, TenantStatus
from holdfast.meta import times
from holdfast.operators.rollouts import (
    Already,
    Answer,
    Case,
    Change,
    Demo,
    Headline,
    Observed,
    Refusal,
    RolloutKind,
    Wire,
    generation_seen,
    is_current,
    is_true,
    left_alone,
    message_of,
    status_of,
    with_version,
)
from holdfast.operators.tenant import names
from holdfast.operators.tenant.observe import TENANTS
from holdfast.operators.tenant.pools import StatefulSet, state_of
from holdfast.operators.tenant.reasons import Why
from holdfast.operators.tenant.render import RESTARTED_AT
from holdfast.operators.tenant.rolling import REVISION
from holdfast.operators.tenant.validate import deadline, limits
from holdfast.runtime.controllers import View
from holdfast.views.descriptions import StatusTable
from holdfast.views.pools import pool_rows
from holdfast.views.rollouts import Floor, RolloutState, Standing, condition, floor_warnings, holds, moment, said
from holdfast.views.trees import NEW, OLD, OTHER, Branch, Pod, Tree, leaves

_UNDER_WAY: Final = frozenset({PoolState.UPDATING, PoolState.ROLLOUT_FAILED})


# --- reading


class _Container(msgspec.Struct, frozen=True):
    image: str = ""


class _PodSpec(msgspec.Struct, frozen=True):
    containers: tuple[_Container, ...] = ()


class _PodMeta(msgspec.Struct, frozen=True):
    annotations: dict[str, str] = {}


class _Template(msgspec.Struct, frozen=True):
    metadata: _PodMeta = _PodMeta()
    spec: _PodSpec = _PodSpec()


class _SetSpec(msgspec.Struct, frozen=True):
    template: _Template = _Template()


class _Made(msgspec.Struct, frozen=True):
    """What the servers of a pool are made from."""

    spec: _SetSpec = _SetSpec()

    @property
    def image(self) -> str:
        return next((each.image for each in self.spec.template.spec.containers), "")

    @property
    def restarted_at(self) -> str | None:
        return self.spec.template.metadata.annotations.get(RESTARTED_AT)


class Store:
    """A Tenant and the StatefulSets of its pools, by the names of the pools."""

    def __init__(self, observed: Observed) -> None:
        self.tenant = observed.object.decode(Tenant)
        self.name = observed.object.key.name
        self._view = observed.view
        self._objects = {
            each.meta.labels.get(names.POOL, ""): each
            for each in observed.view.owned(STATEFUL_SETS, observed.object.uid)
        }
        self.sets = {pool: each.decode(StatefulSet) for pool, each in self._objects.items()}

    @property
    def status(self) -> TenantStatus:
        return self.tenant.status or TenantStatus()

    @property
    def wish(self) -> Rollout:
        return self.tenant.spec.rollout or Rollout()

    @property
    def pools(self) -> tuple[str, ...]:
        """The pools of the spec, and then those that run although the spec no longer has them."""
        wanted = [pool.name for pool in self.tenant.spec.pools]
        return (*wanted, *sorted(self.sets.keys() - set(wanted)))

    def asked(self, name: str) -> Pool | None:
        return next((pool for pool in self.tenant.spec.pools if pool.name == name), None)

    def told(self, name: str) -> PoolStatus | None:
        """What the status says of a pool."""
        own = names.stateful_set(self.name, name)
        return next((each for each in self.status.pools if each.ss_name == own), None)

    def made(self, name: str) -> _Made:
        found = self._objects.get(name)
        return _Made() if found is None else found.decode(_Made)

    def pods(self, name: str) -> tuple[Pod, ...]:
        found = self._objects.get(name)
        return () if found is None else tuple(each.decode(Pod) for each in self._view.owned(PODS, found.uid))

    @property
    def settled(self) -> bool:
        """Every StatefulSet is made from what is asked for now, as far as that can be seen, and has rolled out.

        A Tenant speaks of its pools as they were when it began a pass, in which it may have changed them.
        """
        image, restarted_at = self.tenant.spec.image, self.tenant.metadata.annotations.get(RESTARTED_AT)
        return all(
            pool.name in self.sets
            and state_of(self.sets[pool.name]) is PoolState.ROLLOUT_COMPLETE
            and (image is None or self.made(pool.name).image == image)
            and self.made(pool.name).restarted_at == restarted_at
            for pool in self.tenant.spec.pools
        )


def fresh(obj: Object) -> bool:
    status = obj.decode(Tenant).status
    return generation_seen(obj, None if status is None else status.observed_generation)


# --- where it stands


def standing(observed: Observed) -> Standing:
    store = Store(observed)
    status, ready = store.status, condition(store.status, "Ready")
    paused = ready is not None and ready.reason == Why.ROLLOUT_PAUSED
    since = holds(status, "Ready")
    before, after = _revisions(store)
    made = Standing(
        name=store.name,
        unit="server",
        strategy="RollingUpdate",
        state=_state(store) if fresh(observed.object) else RolloutState.UNSEEN,
        phase=status.current_state or "New",
        because=said(ready),
        verb="resume" if paused else "",
        desired=sum(pool.servers for pool in store.tenant.spec.pools),
        ready=sum(each.status.ready_replicas for each in store.sets.values()),
        available=status.available_replicas or 0,
        updated=sum(each.status.updated_replicas for each in store.sets.values()),
        floors=tuple(_floors(store)),
        current=before,
        target=after,
        ended=None if since is None else moment(since.last_transition_time),
        due=_due(store),
        warnings=floor_warnings(status),
        more={"pools": [_pool_json(store, name) for name in store.pools]},
    )
    return left_alone(observed.object, made)


def _revisions(store: Store) -> tuple[str, str]:
    """The revision that a rollout leaves, and the one that it reaches; several pools have none in common."""
    if len(store.sets) != 1:
        return "", ""
    ((pool, found),) = store.sets.items()
    own = f"{names.stateful_set(store.name, pool)}-"
    return found.status.current_revision.removeprefix(own), found.status.update_revision.removeprefix(own)


def _state(store: Store) -> RolloutState:
    status, ready = store.status, condition(store.status, "Ready")
    if status.current_state == "Blocked":
        return RolloutState.BLOCKED
    if ready is not None and ready.reason == Why.ROLLOUT_FAILED:
        return RolloutState.FAILED
    if ready is not None and ready.reason == Why.ROLLOUT_PAUSED:
        return RolloutState.WAITING
    return RolloutState.COMPLETED if status.current_state == "Ready" and store.settled else RolloutState.UNDER_WAY


def _floors(store: Store) -> Iterator[Floor]:
    for pool in store.tenant.spec.pools:
        found = store.sets.get(pool.name)
        yield Floor(
            name=names.stateful_set(store.name, pool.name),
            ready=0 if found is None else found.status.ready_replicas,
            desired=pool.servers,
            floor=_floor(store, pool),
        )


def _floor(store: Store, pool: Pool) -> int:
    """How many servers of a pool must stay ready; none, where the limits cannot be had and nothing is touched."""
    try:
        return limits(store.wish, pool).floor
    except InvalidLimits:
        return 0


def _due(store: Store) -> datetime | None:
    """When the first pool is late: those that wait for another are not before it is."""
    moving = [
        (pool, told)
        for pool in store.tenant.spec.pools
        if (told := store.told(pool.name)) is not None and told.state in _UNDER_WAY and told.last_progress_time
    ]
    if not moving:
        return None
    latest = max(times.parse(told.last_progress_time or "") for _, told in moving)
    return latest + min(deadline(pool) for pool, _ in moving)


def _pool_json(store: Store, name: str) -> dict[str, Any]:
    told, found = store.told(name), store.sets.get(name)
    return {
        "name": name,
        "state": (PoolState.NOT_CREATED if told is None else told.state).value,
        "partition": None if found is None else _partition(found),
        "readyReplicas": None if found is None else found.status.ready_replicas,
        "updatedReplicas": None if found is None else found.status.updated_replicas,
    }


def _partition(found: StatefulSet) -> int | None:
    """From which server on the new revision is let through; None: none is withheld, or deletions decide."""
    strategy = found.spec.update_strategy
    return strategy.rolling_update.partition if strategy.type == "RollingUpdate" else None


# --- the tree


def tree(observed: Observed, now: datetime) -> Tree:
    """The pools, in the order of the spec, and their servers."""
    store = Store(observed)
    branches = tuple(_branch(store, name, now) for name in store.pools)
    images = tuple(dict.fromkeys(image for branch in branches for image in branch.images))
    return Tree(
        standing=standing(observed),
        branches=branches,
        now=now,
        images=images,
        size=sum(pool.servers for pool in store.tenant.spec.pools),
    )


def _branch(store: Store, name: str, now: datetime) -> Branch:
    found, told, pods = store.sets.get(name), store.told(name), store.pods(name)
    state = state_of(found) if told is None else told.state
    old = [pod.images[0] for pod in pods if _index(found, pod) != NEW and pod.images]
    image = store.made(name).image
    return Branch(
        name=name,
        index=NEW if all(_index(found, pod) == NEW for pod in pods) else OLD,
        marks=(state.value.removeprefix("Pool"),),
        note=_note(store, name, found, state),
        images=tuple(dict.fromkeys((*old, image) if image else old)),
        prefix=f"{store.name}-",
        urgent=state is not PoolState.ROLLOUT_COMPLETE,
        children=leaves(pods, index=lambda pod: _index(found, pod), now=now),
    )


def _note(store: Store, name: str, found: StatefulSet | None, state: PoolState) -> str:
    pool, told = store.asked(name), store.told(name)
    notes = ["no longer asked for" if pool is None else f"floor {_floor(store, pool)}"]
    if told is not None and told.lifecycle_state is not None:
        notes.append(told.lifecycle_state.value)
    if found is not None and state in _UNDER_WAY:
        partition = _partition(found)
        notes.append("one by one, as they fall" if partition is None else f"partition {partition}")
    return ", ".join(notes)


def _index(found: StatefulSet | None, pod: Pod) -> int:
    revision = pod.metadata.labels.get(REVISION, "")
    if found is None or revision == found.status.update_revision:
        return NEW
    return OLD if revision == found.status.current_revision else OTHER


# --- verbs


def _is_paused(obj: Object) -> bool:
    rollout = obj.decode(Tenant).spec.rollout
    return rollout is not None and bool(rollout.paused)


def pause(case: Case) -> Answer:
    if _is_paused(case.object):
        return Already("already paused")
    status = case.object.decode(Tenant).status
    idle = status is not None and all(pool.state not in _UNDER_WAY for pool in status.pools)
    notes = ("nothing is under way; the next change will wait until it is resumed",) if idle else ()
    return Change({"spec": {"rollout": {"paused": True}}}, "paused", notes)


def resume(case: Case) -> Answer:
    if not _is_paused(case.object):
        return Already("not paused")
    return Change({"spec": {"rollout": {"paused": None}}}, "resumed")


def restart(case: Case) -> Answer:
    now = times.format(case.now)
    if case.object.meta.annotations.get(RESTARTED_AT) == now:
        return Already("already restarted this second")
    notes = ("it is paused, so nothing happens before it is resumed",) if _is_paused(case.object) else ()
    return Change({"metadata": {"annotations": {RESTARTED_AT: now}}}, "restarted", notes)


_AGAIN: Final = (
    "apply the manifest from before: servers that were not reached yet stay as they are, and those of a broken "
    "revision are replaced at once"
)

# --- in one line, and in the demo


def headline(wire: Wire) -> Headline:
    pools = status_of(wire).get("pools") or ()
    state = status_of(wire).get("currentState") or "New"
    done = bool(pools) and all(pool.get("state") == "PoolRolloutComplete" for pool in pools)
    said = message_of(wire, "Reconciling" if is_true(wire, "Reconciling") else "Ready")
    return Headline(state, said, is_current(wire) and done and state == "Ready")


def _pod_group(name: str, labels: Mapping[str, str]) -> str | None:
    return f"pool {name}/{labels[names.POOL]}" if labels.get(names.TENANT) == name else None


def _pool_floors(wire: Wire, view: View) -> dict[str, tuple[int, int]]:
    away = (wire["spec"].get("rollout") or {}).get("maxUnavailable", 1)
    name, pools = wire["metadata"]["name"], wire["spec"]["pools"]
    return {f"pool {name}/{pool['name']}": (pool["servers"] - away, pool["servers"]) for pool in pools}


DEMO: Final = Demo(
    group=_pod_group,
    floors=_pool_floors,
    # Its images have versions of their own: the next one of those that are known to work.
    change=lambda manifest, version: {"spec": {"image": with_version(manifest["spec"]["image"], "1.0.0-beta.11")}},
)


ROLLOUT: Final = RolloutKind(
    resource=TENANTS,
    parts=(PODS, STATEFUL_SETS),
    selector=lambda obj: f"{names.TENANT}={obj.key.name}",
    fresh=fresh,
    standing=standing,
    tree=tree,
    headline=headline,
    tables=(StatusTable(title="Pools", field="pools", rows=pool_rows),),
    demo=DEMO,
    verbs={"pause": pause, "resume": resume, "restart": restart},
    unsupported={
        "promote": Refusal(
            "a rollout of a Tenant has no steps that wait for anybody: one server follows the other",
            "'pause' holds it before the next server",
        ),
        "abort": Refusal("a Tenant keeps no earlier spec that could return", _AGAIN),
        "retry": Refusal(
            "no revision of a Tenant is ever rejected; one that failed goes on once its servers get ready",
            "'status' says what they wait for; 'restart' replaces all of them",
        ),
        "undo": Refusal("a Tenant keeps no earlier spec that could return", _AGAIN),
        "history": Refusal(
            "a Tenant keeps no earlier specs; its StatefulSets keep theirs, from which no Tenant can be made",
            "see them with 'holdfast get controllerrevisions -l rustfs.tenant=NAME'",
        ),
        "plan": Refusal(
            "a Tenant cannot be planned yet: its StatefulSets do the replacing, one server at a time",
            "'holdfast plan --replicas 4 --max-surge 0 --max-unavailable 1' shows what comes of such limits",
        ),
    },
)
