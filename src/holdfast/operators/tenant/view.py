"""The rollout of a Tenant as it is shown: how far it is, its pools, and their servers as a tree.

Pure.  The limits are those that the controller keeps.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any, Final

import msgspec

from holdfast.client.objects import Object
from holdfast.client.resources import PODS, STATEFUL_SETS
from holdfast.kernel.limits import InvalidLimits
from holdfast.kinds.model import FloorStatus
from holdfast.kinds.rustfs.pools import Pool, PoolState, PoolStatus
from holdfast.kinds.rustfs.tenants import Tenant, TenantStatus
from holdfast.meta import times
from holdfast.operators.rollouts import (
    Demo,
    Headline,
    Observed,
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
from holdfast.operators.tenant.pools import REVISION, UNDER_WAY, StatefulSet, state_of
from holdfast.operators.tenant.reasons import TenantReason
from holdfast.operators.tenant.render import RESTARTED_AT
from holdfast.operators.tenant.validate import deadline, limits, rollout_of
from holdfast.runtime.controllers import View
from holdfast.views.overview import Counted, FloorBar, floor_bar
from holdfast.views.rollouts import Floor, RolloutState, Standing, condition, floor_warnings, holds, moment, said
from holdfast.views.trees import NEW, OLD, OTHER, Branch, Pod, Tree, leaves

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


class _Templated(msgspec.Struct, frozen=True):
    """A StatefulSet, as far as its template is read."""

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
    def pools(self) -> tuple[str, ...]:
        """The pools of the spec, and then those that the spec no longer has and that still run."""
        wanted = [pool.name for pool in self.tenant.spec.pools]
        return (*wanted, *sorted(self.sets.keys() - set(wanted)))

    def spec(self, name: str) -> Pool | None:
        return next((pool for pool in self.tenant.spec.pools if pool.name == name), None)

    def reported(self, name: str) -> PoolStatus | None:
        """The status of a pool."""
        own = names.stateful_set(self.name, name)
        return next((each for each in self.status.pools if each.ss_name == own), None)

    def template(self, name: str) -> _Templated:
        found = self._objects.get(name)
        return _Templated() if found is None else found.decode(_Templated)

    def pods(self, name: str) -> tuple[Pod, ...]:
        found = self._objects.get(name)
        return () if found is None else tuple(each.decode(Pod) for each in self._view.owned(PODS, found.uid))

    @property
    def settled(self) -> bool:
        """Every StatefulSet has the image and the restart that the spec asks for, and has rolled out.

        The status alone does not show it: a pass reports pools as they were before it changed them.
        """
        image, restarted_at = self.tenant.spec.image, self.tenant.metadata.annotations.get(RESTARTED_AT)
        return all(
            pool.name in self.sets
            and state_of(self.sets[pool.name]) is PoolState.ROLLOUT_COMPLETE
            and (image is None or self.template(pool.name).image == image)
            and self.template(pool.name).restarted_at == restarted_at
            for pool in self.tenant.spec.pools
        )


def fresh(obj: Object) -> bool:
    status = obj.decode(Tenant).status
    return generation_seen(obj, None if status is None else status.observed_generation)


# --- its standing


def standing(observed: Observed) -> Standing:
    store = Store(observed)
    status, ready = store.status, condition(store.status, "Ready")
    paused = ready is not None and ready.reason == TenantReason.ROLLOUT_PAUSED
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
        progressed=max((moment for _, moment in _moving(store)), default=None),
        due=_due(store),
        warnings=floor_warnings(status),
        more={"pools": [_pool_json(store, name) for name in store.pools]},
    )
    return left_alone(observed.object, made)


def _revisions(store: Store) -> tuple[str, str]:
    """The current and the update revision of the StatefulSet; several pools have none in common."""
    if len(store.sets) != 1:
        return "", ""
    ((pool, found),) = store.sets.items()
    own = f"{names.stateful_set(store.name, pool)}-"
    return found.status.current_revision.removeprefix(own), found.status.update_revision.removeprefix(own)


def _state(store: Store) -> RolloutState:
    status, ready = store.status, condition(store.status, "Ready")
    if status.current_state == "Blocked":
        return RolloutState.BLOCKED
    if any(pool.state is PoolState.ROLLOUT_FAILED for pool in status.pools):
        return RolloutState.FAILED
    if ready is not None and ready.reason == TenantReason.ROLLOUT_PAUSED:
        return RolloutState.WAITING
    return RolloutState.COMPLETED if status.current_state == "Ready" and store.settled else RolloutState.UNDER_WAY


def _floors(store: Store) -> Iterator[Floor]:
    for pool in store.tenant.spec.pools:
        found, reported = store.sets.get(pool.name), store.reported(pool.name)
        floor = None if reported is None else reported.floor
        if floor is None:
            ready = 0 if found is None else found.status.ready_replicas
            floor = FloorStatus(required=_floor(store, pool), available=ready)
        yield Floor.reported(floor, desired=pool.servers, name=names.stateful_set(store.name, pool.name))


def _floor(store: Store, pool: Pool) -> int:
    """How many servers of a pool must stay ready; 0 where the limits are invalid, so that nothing is changed."""
    try:
        return limits(rollout_of(store.tenant), pool).floor
    except InvalidLimits:
        return 0


def _due(store: Store) -> datetime | None:
    """When the first pool is late; a pool that waits for another one is not late before that one."""
    moving = _moving(store)
    if not moving:
        return None
    return max(moment for _, moment in moving) + min(deadline(pool) for pool, _ in moving)


def _moving(store: Store) -> list[tuple[Pool, datetime]]:
    """The pools that are being rolled out, and when each last made progress."""
    pools = ((pool, store.reported(pool.name)) for pool in store.tenant.spec.pools)
    return [
        (pool, times.parse(each.last_progress_time))
        for pool, each in pools
        if each is not None and each.state in UNDER_WAY and each.last_progress_time
    ]


def _pool_json(store: Store, name: str) -> dict[str, Any]:
    reported, found = store.reported(name), store.sets.get(name)
    return {
        "name": name,
        "state": (PoolState.NOT_CREATED if reported is None else reported.state).value,
        "updateStrategy": None if found is None else found.spec.update_strategy.type,
        "readyReplicas": None if found is None else found.status.ready_replicas,
        "updatedReplicas": None if found is None else found.status.updated_replicas,
    }


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
    found, reported, pods = store.sets.get(name), store.reported(name), store.pods(name)
    state = state_of(found) if reported is None else reported.state
    old = [pod.images[0] for pod in pods if _index(found, pod) != NEW and pod.images]
    image = store.template(name).image
    return Branch(
        name=name,
        index=NEW if all(_index(found, pod) == NEW for pod in pods) else OLD,
        marks=(state.value.removeprefix("Pool"),),
        note=_note(store, name),
        images=tuple(dict.fromkeys((*old, image) if image else old)),
        prefix=f"{store.name}-",
        urgent=state is not PoolState.ROLLOUT_COMPLETE,
        children=leaves(pods, index=lambda pod: _index(found, pod), now=now),
    )


def _note(store: Store, name: str) -> str:
    pool, reported = store.spec(name), store.reported(name)
    notes = ["no longer in the spec" if pool is None else f"floor {_floor(store, pool)}"]
    if reported is not None and reported.lifecycle_state is not None:
        notes.append(reported.lifecycle_state.value)
    return ", ".join(notes)


def _index(found: StatefulSet | None, pod: Pod) -> int:
    revision = pod.metadata.labels.get(REVISION, "")
    if found is None or revision == found.status.update_revision:
        return NEW
    return OLD if revision == found.status.current_revision else OTHER


# --- in one line, and in the demo


def headline(wire: Wire) -> Headline:
    pools = status_of(wire).get("pools") or ()
    state = status_of(wire).get("currentState") or "New"
    done = bool(pools) and all(pool.get("state") == "PoolRolloutComplete" for pool in pools)
    said = message_of(wire, "Reconciling" if is_true(wire, "Reconciling") else "Ready")
    return Headline(state, said, is_current(wire) and done and state == "Ready")


def floors(wire: Wire) -> Iterator[FloorBar]:
    """The floors of the pools, from the status alone."""
    reported = {each.get("ssName"): each.get("floor") for each in status_of(wire).get("pools") or ()}
    for pool in wire["spec"].get("pools") or ():
        name = names.stateful_set(wire["metadata"]["name"], pool["name"])
        if reported.get(name):
            yield floor_bar(reported[name], desired=pool["servers"], name=pool["name"])


def counts(wire: Wire) -> Counted:
    pools = wire["spec"].get("pools") or ()
    return status_of(wire).get("availableReplicas"), sum(each.get("servers", 0) for each in pools), None


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
