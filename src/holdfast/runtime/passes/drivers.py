"""A driver runs one controller: changes in, passes out, one at a time for each key.

A change of an object becomes keys (the object's own, its owner's, or those that a
`Watch` says); keys are queued; a pass runs; and one switch turns the way it ended
into a queue call, a metric and a log line.

After a pass has written, its key is withheld until the stores have seen each of
the writes, so no decision is made on a view without them.  Where the outcome of a
write is unknown, it is withheld until the stores show what the server has (`catching_up`).
A driver that takes over from another one withholds all keys that long.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable
from datetime import timedelta
from functools import partial
from time import perf_counter
from typing import Final, Generic, TypeVar, assert_never

from holdfast.client.objects import Object, Undecodable
from holdfast.client.resources import Resource
from holdfast.kernel.outcomes import Again, Done, Failure, Permanent, Retry
from holdfast.meta.objects import Key
from holdfast.runtime.controllers import Controller, Stores, Urgent
from holdfast.runtime.log_once import LogOnce
from holdfast.runtime.metrics import Backlog, Metrics
from holdfast.runtime.passes.catching_up import CatchingUp
from holdfast.runtime.passes.execution import Written
from holdfast.runtime.passes.failures import Away, Refused, Stale
from holdfast.runtime.passes.reconcile import Ending, Pass, Paused
from holdfast.runtime.passes.sources import Keys, Matters, Source, sources
from holdfast.runtime.recent import Recent
from holdfast.runtime.work.queues import Priority, Queue
from holdfast.runtime.work.worker_pool import WorkerPool

W = TypeVar("W")
_log: Final = logging.getLogger("holdfast.runtime")

_TIMEOUT: Final = "Timeout"
_DEFECT: Final = "InternalError"

_AWAY: Final = timedelta(seconds=15)
"""The longest wait for a server that does not answer."""

_REFUSED: Final = 600.0
"""Seconds after which a request is tried again that the API refused as it was."""

_ODD: Final = 8
"""From which failure in a row a stale view is logged; a few in a row are normal."""

_REMEMBERED: Final = 8192
"""How many of our own writes are remembered, to tell their echo from a change by another client."""


class Driver(Generic[W]):
    """The queue and the workers of one controller."""

    def __init__(
        self,
        controller: Controller[W],
        stores: Stores,
        *,
        passing: Pass[W],
        metrics: Metrics,
        spread: Callable[[], float],
        takes_over: Iterable[str] = (),
    ) -> None:
        """`takes_over` are the namespaces in which another driver may have written just now; "" is all of them."""
        self.controller = controller
        self.queue: Queue[Key] = Queue()
        self._stores = stores
        self._pass = passing
        self._metrics = metrics
        self._spread = spread
        self._catching_up = CatchingUp(stores, spread=spread)
        self._takes_over = tuple(takes_over)
        self._pool = WorkerPool(self.queue, self._work, limit=controller.workers)
        self._own: Recent[tuple[Resource, str], None] = Recent(_REMEMBERED)
        self._echoes: dict[Key, list[tuple[Resource, str]]] = {}
        self._synced = False
        self.begun = asyncio.Event()
        """Set when it takes keys, or has ended."""
        self._started: dict[Key, float] = {}
        self._logged: LogOnce[Key] = LogOnce()
        self._is_away = False
        """Whether no answer has come since a write was answered; that is logged once, whatever failed."""
        self._unsubscribe: list[Callable[[], None]] = []

    # --- changes in

    def listen(self) -> None:
        """Begin to queue what changes; what there is already counts as changed."""
        controller = self.controller
        found = sources(controller)
        for resource in controller.resources:
            change = partial(self._changed, resource, tuple(found.get(resource, ())))
            self._unsubscribe.append(self._stores.subscribe(resource, change))
        if controller.signals is not None:
            self._unsubscribe.append(controller.signals.subscribe(self._signalled))

    def _signalled(self, key: Key) -> None:
        self.queue.changed(key, asyncio.get_running_loop().time())
        self._pool.wake()

    def _changed(self, resource: Resource, sources: tuple[Source, ...], old: Object | None, new: Object | None) -> None:
        keys: dict[Key, float] = {}
        for source in sources:
            if source.matters is None or self._matters(source.matters, old, new):
                within = 0.0 if source.within and self._is_urgent(source.urgent, old, new) else source.within
                for each in (old, new):
                    for key in self._keys(source.keys, each):
                        keys[key] = min(keys.get(key, within), within)
        if not keys:
            return
        now = asyncio.get_running_loop().time()
        stamp = (resource, new.version if new is not None else "")
        news = False
        for key, within in keys.items():
            if not self._synced:
                news |= self.queue.add(key, now, priority=Priority.LOOKED_AT)
            elif within:
                news |= self.queue.add(key, now, at=now + within)
            elif key in self._started:
                # Whether it is the echo of what this very run writes is known when the run has ended.
                self._echoes.setdefault(key, []).append(stamp)
            elif stamp in self._own:
                news |= self.queue.touched(key, now)
            else:
                news |= self.queue.changed(key, now)
        if news:
            self._pool.wake()

    def _matters(self, matters: Matters, old: Object | None, new: Object | None) -> bool:
        """Whether a change is worth a pass: that of an object that comes, goes or cannot be decoded always is."""
        try:
            return old is None or new is None or matters(old, new)
        except Undecodable:
            return True

    def _is_urgent(self, urgent: Urgent | None, old: Object | None, new: Object | None) -> bool:
        """Whether a change cannot wait: that of an object that cannot be decoded cannot."""
        try:
            return urgent is not None and urgent(old, new, self._stores)
        except Undecodable:
            return True

    def _keys(self, keys: Keys, obj: Object | None) -> Iterable[Key]:
        """The keys that a change of an object brings; none where it cannot be decoded, which its controller reports."""
        if obj is None:
            return ()
        try:
            return tuple(keys(obj, self._stores))
        except Undecodable as unreadable:
            if unreadable.ref != obj.ref:
                # A keys function that decodes other objects loses keys where one of them is unreadable: use an index.
                said = {"controller": self.controller.name, "object": str(obj.ref), "error": str(unreadable)}
                _log.warning("change not followed", extra={"fields": said})
            return ()

    # --- passes out

    async def run(self) -> None:
        """Work until cancelled, or until `stop` and the end of what was running then."""
        try:
            await self._stores.synced(*self.controller.resources)
            await self._catching_up.all(self.controller.resources, self._takes_over)
            self._synced = True
            self.begun.set()
            await self._pool.run()
        finally:
            self.begun.set()
            self._catching_up.close()
            for unsubscribe in self._unsubscribe:
                unsubscribe()

    def stop(self) -> None:
        """Take no more keys."""
        self._pool.stop()

    @property
    def quiet(self) -> bool:
        """No key is due; those that run may wait for something."""
        return self._synced and self.queue.next_due() > asyncio.get_running_loop().time()

    def backlog(self, now: float) -> Backlog:
        return Backlog(self.queue.depth(now), tuple(now - since for since in self._started.values()))

    def stuck(self, now: float) -> str | None:
        """Which key has been running for much longer than it may, if one has."""
        limit = 2 * self.controller.timeout.total_seconds()
        late = [key for key, since in self._started.items() if now - since > limit]
        return f"{self.controller.name} {late[0]} has not ended" if late else None

    async def _work(self, key: Key) -> None:
        loop = asyncio.get_running_loop()
        name, began = self.controller.name, perf_counter()
        self._metrics.taken(name, waited=self.queue.waited(key, loop.time()))
        self._started[key] = loop.time()
        written: list[Written] = []
        try:
            ending = await self._isolated(key, written)
        finally:
            del self._started[key]
        for each in written:
            self._remember(key, each)
        result = self._conclude(key, ending, loop.time(), wrote=not all(each.unknown for each in written))
        self._metrics.passed(name, result, seconds=perf_counter() - began)
        for stamp in self._echoes.pop(key, ()):
            (self.queue.touched if stamp in self._own else self.queue.changed)(key, loop.time())

    async def _isolated(self, key: Key, written: list[Written]) -> Ending:
        """Run a pass to its end: one that hangs is cancelled, and an unexpected exception ends only this pass."""
        timeout = self.controller.timeout
        try:
            async with asyncio.timeout(timeout.total_seconds()):
                return await self._pass.run(key, written)
        except TimeoutError:
            return Retry(_TIMEOUT, f"the pass was cut off after {timeout.total_seconds():g} s")
        except Exception as defect:
            failure = Retry(_DEFECT, f"{type(defect).__name__}: {defect}")
            failure.__cause__ = defect
            return failure

    def _conclude(self, key: Key, ending: Ending, now: float, *, wrote: bool) -> str:
        """The one switch: from how a pass ended to the queue, the log and the name of the result."""
        failures = self.queue.done(key, failed=isinstance(ending, Retry))
        if not isinstance(ending, Failure):
            self._logged.clear(key)
            self._is_away = self._is_away and not wrote
        match ending:
            case Done():
                return "done"
            case Again(after=after):
                self.queue.add(key, now, at=now + after.total_seconds(), priority=Priority.LOOKED_AT)
                return "again"
            case Paused():
                return "paused"
            case Permanent():
                if isinstance(ending, Refused):
                    self.queue.add(key, now, at=now + _REFUSED, priority=Priority.LOOKED_AT)
                self._fail(key, ending)
                return "permanent"
            case Retry():
                delay = self._delay(ending, failures)
                self.queue.add(key, now, at=now + delay.total_seconds(), priority=Priority.LOOKED_AT)
                if isinstance(ending, Stale):
                    if failures == _ODD:
                        self._fail(key, ending)
                    return "stale"
                self._fail(key, ending)
                return {_TIMEOUT: "timeout", _DEFECT: "panic"}.get(ending.reason, "retry")
            case Failure():
                raise TypeError(f"raise Retry or Permanent, not {type(ending).__name__}")
            case _:
                assert_never(ending)

    def _delay(self, failure: Retry, failures: int) -> timedelta:
        """How long a key waits after so many failures in a row; a server that is away may be back any moment."""
        delay = failure.after or self.controller.backoff.delay(failures, spread=self._spread())
        return min(delay, _AWAY) if isinstance(failure, Away) else delay

    # --- our own writes

    def _remember(self, key: Key, written: Written) -> None:
        """Withhold the key until the stores show what came of the write, and know its echo when it comes."""
        if not written.unknown:
            self._metrics.wrote(self.controller.name, written.verb)
        stamp = (written.resource, written.version)
        if written.version:
            self._own.put(stamp, None)
        if written.resource not in self.controller.resources:
            return
        self.queue.hold(key)
        release = partial(self._release, key)
        if written.unknown:
            self._catching_up.then(written.resource, written.key.namespace, release)
        elif written.version:
            self._stores.when_seen(written.resource, written.key, version=written.version, callback=release)
        else:
            self._stores.when_gone(written.resource, written.key, uid=written.uid, callback=release)

    def _release(self, key: Key) -> None:
        if self.queue.release(key):
            self._pool.wake()

    # --- the log

    def _fail(self, key: Key, failure: Failure) -> None:
        """Count a failure, and log it unless it is the same as before."""
        self._metrics.failed(self.controller.name, failure.reason)
        if isinstance(failure, Away):
            is_new, self._is_away = not self._is_away, True
        else:
            is_new = self._logged.is_new(key, failure.reason, failure.message)
        fields = {"controller": self.controller.name, "key": str(key), "reason": failure.reason}
        said = {"fields": fields | {"error": failure.message}}
        if failure.reason != _DEFECT:
            _log.log(logging.WARNING if is_new else logging.DEBUG, "pass failed", extra=said)
        elif is_new:
            _log.error("pass crashed", exc_info=failure.__cause__, extra=said)
