"""How pools leave a store: requested by the spec, drained by the store, then deleted without their volumes.

    Active -> Decommissioning -> Decommissioned         the StatefulSet is deleted, the volumes are kept
                              -> DecommissionCanceled   until the request is removed from the spec
                              -> DecommissionFailed     likewise, or until a request with another id

The status records a drain (`phase: Pending` with the id of the request) before the store is asked to start it, so
that a crash in between neither starts it twice nor loses it.  A result belongs to its request: only another
requestId starts another drain.  A StatefulSet is deleted only if the store still knows the pool by the recorded
number and volumes.  Pure.  This module must not know how a store is asked.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, Final

import msgspec

from holdfast.client.resources import STATEFUL_SETS
from holdfast.kernel.outcomes import Again, Done, Outcome
from holdfast.kinds.rustfs.pools import (
    CleanupState,
    DecommissionAction,
    DecommissionCleanup,
    DecommissionError,
    DecommissionPhase,
    DecommissionProgress,
    DecommissionRequest,
    DecommissionStatus,
    PoolLifecycleState,
)
from holdfast.meta import times
from holdfast.meta.objects import Key
from holdfast.operators.tenant.admin import Draining, StorePool, Unavailable
from holdfast.operators.tenant.observe import World
from holdfast.operators.tenant.validate import is_drained
from holdfast.runtime.decisions import Delete, Notice

POLL: Final = timedelta(seconds=30)
"""How often a store is asked about a drain, and how soon again when it could not be asked."""


class Verb(StrEnum):
    """A call to a store."""

    START = "start"
    CANCEL = "cancel"


@dataclass(frozen=True, slots=True)
class Call:
    """A call to a store about the pool that it knows by a number."""

    pool: str
    verb: Verb
    store_pool: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Lifecycle:
    """Where a pool is in its life, and what is done about it."""

    state: PoolLifecycleState = PoolLifecycleState.ACTIVE
    status: DecommissionStatus | None = None
    call: Call | None = None
    removal: Delete | None = None
    notices: tuple[Notice, ...] = ()
    outcome: Outcome = field(default_factory=Done)

    @property
    def active(self) -> bool:
        return self.state is PoolLifecycleState.ACTIVE


ACTIVE: Final = Lifecycle()


def requests(world: World) -> dict[str, DecommissionRequest]:
    asked = world.tenant.spec.pool_lifecycle
    return {} if asked is None else {each.pool_name: each for each in asked.decommission_requests}


def needs_survey(world: World) -> bool:
    """Whether the store must be asked about its pools."""
    wanted = {pool.name for pool in world.tenant.spec.pools}
    left = {pool for pool, before in world.before.items() if _is_over(before.decommission)}
    followed = {pool for pool, before in world.before.items() if before.decommission is not None}
    return bool((requests(world).keys() | followed) & wanted - left)


def _is_over(status: DecommissionStatus | None) -> bool:
    """Whether a pool has left, so that the store is not asked about it."""
    cleanup = None if status is None else status.cleanup
    return cleanup is not None and cleanup.state is CleanupState.PVC_RETAINED


def follow(world: World, volumes: Mapping[str, str], *, now: datetime) -> dict[str, Lifecycle]:
    """Where every pool of the spec is in its life; the store knows each by its `volumes`."""
    asked = requests(world)
    last = _takes_all(world, asked)
    return {
        pool.name: _Pool(world, pool.name, asked.get(pool.name), volumes[pool.name], last=last, now=now).step()
        for pool in world.tenant.spec.pools
    }


def carried(world: World) -> dict[str, Lifecycle]:
    """Where every pool was in its life as of the status, while nothing may be done."""
    return {
        pool.name: Lifecycle(state=before.lifecycle_state or PoolLifecycleState.ACTIVE, status=before.decommission)
        if (before := world.before.get(pool.name)) is not None
        else ACTIVE
        for pool in world.tenant.spec.pools
    }


def endpoint_hash(volumes: str) -> str:
    """The volumes of a pool as the status records them."""
    return hashlib.sha256(volumes.encode()).hexdigest()


def _takes_all(world: World, asked: Mapping[str, DecommissionRequest]) -> bool:
    """Whether no pool would be left that could take the data."""
    live = [pool.name for pool in world.tenant.spec.pools if not is_drained(world, pool.name)]
    return all(name in asked and asked[name].action is DecommissionAction.START for name in live)


class _Pool:
    """One pool: its request, its recorded status, and its volumes."""

    def __init__(
        self,
        world: World,
        name: str,
        request: DecommissionRequest | None,
        volumes: str,
        *,
        last: bool,
        now: datetime,
    ) -> None:
        before = world.before.get(name)
        self.world = world
        self.name = name
        self.request = request
        self.volumes = volumes
        self.last = last
        self.now = now
        self.state = (before.lifecycle_state if before is not None else None) or PoolLifecycleState.ACTIVE
        self.before = (before.decommission if before is not None else None) or DecommissionStatus()

    # --- the state machine

    def step(self) -> Lifecycle:
        if self.state is PoolLifecycleState.DECOMMISSIONED:
            return self._cleaned_up()
        if self.request is None:
            running = self.before.phase is DecommissionPhase.RUNNING
            return self._followed() if running else ACTIVE
        if not self.request.request_id.strip():
            return self._failed("InvalidRequest", "the request has no requestId; write one")
        if self.before.request_id == self.request.request_id and self.before.phase in _OVER and not self._canceling:
            return Lifecycle(state=self.state, status=self.before)
        if self.last and self.before.phase is not DecommissionPhase.RUNNING:
            message = "no pool would be left to take the data; add one first"
            return self._failed("LastPoolBlocked", message)
        return self._followed()

    @property
    def _canceling(self) -> bool:
        return self.request is not None and self.request.action is DecommissionAction.CANCEL

    def _followed(self) -> Lifecycle:
        """The state of the drain as the store reports it, and the next call."""
        found = self._mapped()
        if isinstance(found, Lifecycle):
            return found
        info = found.decommission_info
        if info is None or (info.over and not info.complete and not self._ours(info)):
            return self._idle(found)
        if info.canceled:
            return self._ended(found, info, PoolLifecycleState.DECOMMISSION_CANCELED, DecommissionPhase.CANCELED)
        if info.failed:
            failed = self._ended(found, info, PoolLifecycleState.DECOMMISSION_FAILED, DecommissionPhase.FAILED)
            return _erring(failed, "RustfsDecommissionFailed", "the store could not drain the pool")
        if info.complete:
            return self._ended(found, info, PoolLifecycleState.DECOMMISSIONED, DecommissionPhase.COMPLETE)
        if self._canceling:
            return self._running(found, info, Call(self.name, Verb.CANCEL, found.id))
        if self.request is not None and not self._ours(info):
            message = "the store drains the pool already by another request; wait for it to end, or cancel it there"
            return self._failed("RustfsDecommissionAlreadyRunning", message)
        return self._running(found, info, None)

    def _mapped(self) -> StorePool | Lifecycle:
        """The pool as the store reports it, or the state of ours where it does not."""
        survey = self.world.survey
        if survey is None or isinstance(survey, Unavailable):
            unasked = Unavailable("RustfsAdminUnavailable", "the store could not be asked yet")
            why = unasked if survey is None else survey
            return self._pending(why.reason, why.message)
        matches = [pool for pool in survey if pool.cmdline == self.volumes]
        if not matches:
            return self._failed("RustfsPoolMappingFailed", f"the store has no pool {self.volumes}")
        if len(matches) > 1:
            return self._failed("RustfsPoolMappingAmbiguous", f"the store has {len(matches)} pools {self.volumes}")
        return matches[0]

    def _ours(self, info: Draining) -> bool:
        """Whether the drain that the store reports was started for the request."""
        if self.request is None or self.request.request_id == self.before.request_id:
            if self.before.phase is not DecommissionPhase.PENDING:
                return True
            # Recorded and not known to be started: an older drain is another request's, or an earlier attempt.
            return _since(info, self.before.last_poll_time)
        return _since(info, self.request.requested_at)

    # --- the next state

    def _idle(self, found: StorePool) -> Lifecycle:
        """The store does not drain the pool."""
        if self.request is None or self._canceling:
            return ACTIVE
        pending = self.before.request_id == self.request.request_id and self.before.phase is DecommissionPhase.PENDING
        noted = pending and self._known(found)
        status = DecommissionStatus(
            request_id=self.request.request_id,
            phase=DecommissionPhase.PENDING,
            last_poll_time=self.before.last_poll_time if noted else times.format(self.now),
            **self._identity(found),
        )
        soon = Again(timedelta(seconds=1), f"the drain of pool {self.name} is about to start")
        return Lifecycle(
            state=PoolLifecycleState.DECOMMISSIONING,
            status=status,
            call=Call(self.name, Verb.START, found.id) if noted else None,
            outcome=soon,
        )

    def _running(self, found: StorePool, info: Draining, call: Call | None) -> Lifecycle:
        return Lifecycle(
            state=PoolLifecycleState.DECOMMISSIONING,
            status=self._polled(found, info, DecommissionPhase.RUNNING),
            call=call,
            outcome=Again(POLL, f"the store drains pool {self.name}"),
        )

    def _ended(
        self, found: StorePool, info: Draining, state: PoolLifecycleState, phase: DecommissionPhase
    ) -> Lifecycle:
        status = self._polled(found, info, phase)
        if state is PoolLifecycleState.DECOMMISSIONED:
            cleanup = DecommissionCleanup(state=CleanupState.PENDING, pvc_retention_policy="Retain")
            status = msgspec.structs.replace(status, completed_at=times.format(self.now), cleanup=cleanup)
        return Lifecycle(state=state, status=status)

    def _pending(self, reason: str, message: str) -> Lifecycle:
        """The store cannot be asked now: the recorded status is kept, and the store is asked again."""
        request_id = self.request.request_id if self.request is not None else self.before.request_id
        running = self.before.phase is DecommissionPhase.RUNNING
        status = msgspec.structs.replace(
            self.before,
            request_id=self.before.request_id if running else request_id,
            phase=DecommissionPhase.RUNNING if running else DecommissionPhase.PENDING,
            last_error=DecommissionError(reason=reason, message=message),
        )
        return Lifecycle(
            state=PoolLifecycleState.DECOMMISSIONING,
            status=status,
            outcome=Again(POLL, "the store is asked again"),
        )

    def _failed(self, reason: str, message: str) -> Lifecycle:
        request_id = self.request.request_id if self.request is not None else self.before.request_id
        status = DecommissionStatus(request_id=request_id, phase=DecommissionPhase.FAILED)
        return _erring(Lifecycle(state=PoolLifecycleState.DECOMMISSION_FAILED, status=status), reason, message)

    def _polled(self, found: StorePool, info: Draining, phase: DecommissionPhase) -> DecommissionStatus:
        """The report of the store; it is recorded again only after `POLL`, or when the phase changes."""
        request_id = self.request.request_id if self.request is not None else self.before.request_id
        if self.before.phase is phase and self.before.request_id == request_id and self.before.last_error is None:
            polled = times.read(self.before.last_poll_time)
            if info.over or (polled is not None and self.now < polled + POLL):
                return self.before
        return DecommissionStatus(
            request_id=request_id,
            phase=phase,
            started_at=self.before.started_at or info.start_time or times.format(self.now),
            last_poll_time=times.format(self.now),
            progress=DecommissionProgress(
                objects_migrated=info.objects_decommissioned,
                bytes_migrated=info.bytes_decommissioned,
                objects_failed=info.objects_decommissioned_failed,
                bytes_failed=info.bytes_decommissioned_failed,
            ),
            **self._identity(found),
        )

    def _identity(self, found: StorePool) -> dict[str, Any]:
        """The number and the volumes of the pool; the number that a drain began with is kept."""
        kept = self.before.rustfs_pool_id if self.before.phase is DecommissionPhase.RUNNING else None
        return {"rustfs_pool_id": kept or str(found.id), "endpoint_set_hash": endpoint_hash(self.volumes)}

    def _known(self, found: StorePool) -> bool:
        """Whether the store still knows the pool by the recorded number and volumes."""
        before = self.before
        return before.rustfs_pool_id == str(found.id) and before.endpoint_set_hash == endpoint_hash(self.volumes)

    # --- after the drain

    def _cleaned_up(self) -> Lifecycle:
        """Delete the StatefulSet once the store has confirmed the pool again; its volumes are kept."""
        cleanup = self.before.cleanup or DecommissionCleanup(state=CleanupState.PENDING)
        held = self.world.sets.get(self.name)
        if held is None:
            return self._retained(cleanup)
        if cleanup.state is CleanupState.STATEFUL_SET_DELETING:
            return self._drained(cleanup, removal=_removal(self.world, self.name))
        found = self._mapped()
        if isinstance(found, Lifecycle):
            error = found.status.last_error if found.status is not None else None
            return self._drained(cleanup, error=error, outcome=Again(POLL, "the store is asked again"))
        if not self._known(found):
            message = (
                f"the store has another number for the pool now, {found.id}; its StatefulSet is kept until they agree"
            )
            error = DecommissionError(reason="RustfsPoolIdentityChanged", message=message)
            return self._drained(cleanup, error=error, outcome=Again(POLL, "the store is asked again"))
        deleting = msgspec.structs.replace(cleanup, state=CleanupState.STATEFUL_SET_DELETING)
        return self._drained(deleting, removal=_removal(self.world, self.name))

    def _retained(self, cleanup: DecommissionCleanup) -> Lifecycle:
        if cleanup.state is CleanupState.PVC_RETAINED:
            return self._drained(cleanup)
        moment = times.format(self.now)
        retained = DecommissionCleanup(
            state=CleanupState.PVC_RETAINED, stateful_set_deleted_at=moment, pvc_retention_policy="Retain"
        )
        message = f"The servers of pool {self.name} are deleted; its volumes are kept"
        return self._drained(retained, notices=(Notice(reason="PvcRetained", message=message),))

    def _drained(
        self,
        cleanup: DecommissionCleanup,
        *,
        error: DecommissionError | None = None,
        removal: Delete | None = None,
        notices: tuple[Notice, ...] = (),
        outcome: Outcome | None = None,
    ) -> Lifecycle:
        return Lifecycle(
            state=PoolLifecycleState.DECOMMISSIONED,
            status=msgspec.structs.replace(self.before, cleanup=cleanup, last_error=error),
            removal=removal,
            notices=notices,
            outcome=outcome or Done(),
        )


_OVER: Final = frozenset({DecommissionPhase.CANCELED, DecommissionPhase.FAILED})


def _since(info: Draining, moment: str | None) -> bool:
    if info.start_time is None or moment is None:
        return False
    return times.parse(info.start_time) >= times.parse(moment)


def _erring(lifecycle: Lifecycle, reason: str, message: str) -> Lifecycle:
    assert lifecycle.status is not None, "a lifecycle that fails has a status"
    status = msgspec.structs.replace(lifecycle.status, last_error=DecommissionError(reason=reason, message=message))
    return Lifecycle(state=lifecycle.state, status=status, outcome=lifecycle.outcome)


# --- pools that the spec no longer has


def _removal(world: World, pool: str) -> Delete | None:
    meta = world.sets[pool].metadata
    if meta.deletion_timestamp is not None:
        return None
    return Delete(
        because=f"pool {pool} has been drained",
        resource=STATEFUL_SETS,
        key=Key(meta.namespace, meta.name),
        uid=meta.uid,
        propagation="Background",
    )


def removed(world: World) -> Iterator[tuple[Delete, Notice]]:
    """The StatefulSets of pools that were drained and removed from the spec."""
    wanted = {pool.name for pool in world.tenant.spec.pools}
    for pool in sorted(world.sets.keys() - wanted):
        removal = _removal(world, pool) if is_drained(world, pool) else None
        if removal is not None:
            message = f"Pool {pool} is removed; its volumes are kept"
            yield removal, Notice(reason="PoolRemoved", message=message)
