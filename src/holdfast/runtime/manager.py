"""Runs controllers and components together, on shared stores, until it is stopped.

Stores are followed all the time; work is done in terms.  Without an election there
is one term.  With one, a term begins when the lease is ours and is cut off when it
is lost, and in between the process keeps its stores up to date.  Nothing of a term
but what the server has survives it: every term begins with new queues.

Stopping is graceful, in this order: no key is taken any more; passes that run may
end, and record their Events; components are cancelled; the lease is given
up; and the watches end last.

A controller waits for its own resources only, so a kind that the server does not
have keeps no other controller from working.  A part that crashes is started again
(`supervision`).
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any, Final

from holdfast.client.objects import Object
from holdfast.client.protocols import Client
from holdfast.client.resources import Resource
from holdfast.runtime.caching.caches import Caches
from holdfast.runtime.controllers import Component, Controller, Environment
from holdfast.runtime.decisions import Notice
from holdfast.runtime.health import Check, Checks, Notes
from holdfast.runtime.leadership.elections import Election
from holdfast.runtime.metrics import Backlog, Metrics
from holdfast.runtime.passes.drivers import Driver
from holdfast.runtime.passes.events import Events
from holdfast.runtime.passes.pruning import Refusals
from holdfast.runtime.passes.reconcile import EmitEvents, Pass
from holdfast.runtime.supervision import Part

_log: Final = logging.getLogger("holdfast.runtime")

GRACE: Final = 20.0
"""Seconds that running passes have to end when the manager stops."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """
    namespaces    the namespaces to work in; all, if none is named
    side_by_side  writes of one pass that may be under way together
    events        whether notices become Events
    grace         seconds that running passes have to end when the manager stops
    """

    namespaces: tuple[str, ...] = ()
    side_by_side: int = 16
    events: bool = True
    grace: float = GRACE


class Manager:
    """A set of controllers and components that work on one API.

    client      what everything is read and written with; where there is an election, its writes must be fenced
                by it (`fencing`), as those of `hosting` are
    election    whose lease must be held to work; without one, there is always work
    takes_over  whether another process may have worked on the API just now, whose last writes may not be done yet
    """

    def __init__(
        self,
        client: Client,
        *,
        controllers: Sequence[Controller[Any]],
        components: Sequence[Component] = (),
        now: Callable[[], datetime],
        settings: Settings | None = None,
        metrics: Metrics | None = None,
        seed: int | None = None,
        election: Election | None = None,
        takes_over: bool = False,
    ) -> None:
        _check_names([controller.name for controller in controllers])
        _check_names([component.name for component in components])
        self.settings = settings or Settings()
        self.metrics = metrics or Metrics()
        self.election = election
        self._client = client
        self._now = now
        self._random = random.Random(seed)
        self._controllers = tuple(controllers)
        self._components = tuple(components)
        self.caches = Caches(
            client,
            random=self._random.random,
            namespaces=self.settings.namespaces,
            restarted=lambda resource, reason: self.metrics.watch_restarted(str(resource), reason),
        )
        for resource in _needed(controllers, components):
            indexes = tuple(
                index for controller in controllers for index in controller.indexes if index.resource == resource
            )
            self.caches.require(resource, indexes=indexes)
        # Events are counted from term to term, so that the same one is not created again.
        self._emitters = {controller.name: self._emitter(controller) for controller in controllers}
        self._after_another = {controller.name for controller in controllers} if takes_over else set()
        """The controllers that another process, or a driver of this one, may have run before."""
        self.refusals = Refusals()
        """What cannot be operated on this server."""
        self._drivers: dict[str, Driver[Any]] = {}
        """By controller, those that run."""
        self._parts: tuple[Part, ...] = ()
        self._term: asyncio.Task[Any] | None = None
        self._stop = asyncio.Event()
        self._ran = False
        self.working = asyncio.Event()
        """Set while work is done, from when all that it reads has been seen; `waiting` says what is missing."""
        for controller in controllers:
            self.metrics.expect(controller.name)
        self.metrics.ask(
            queues=self._backlogs,
            stores=lambda: {str(resource): size for resource, size in self.caches.sizes().items()},
            leader=None if election is None else election.held,
        )

    async def run(self) -> None:
        """Work until `stop`, once."""
        if self._ran:
            raise RuntimeError("a manager runs once, for its stores show the past when it has ended; make another one")
        self._ran = True
        async with asyncio.TaskGroup() as group:
            watching = group.create_task(self.caches.run(), name="stores")
            work = self._work() if self.election is None else self.election.run(self._work)
            leading = group.create_task(work, name="work")
            stopping = group.create_task(_until(self._stop), name="until stopped")
            await asyncio.wait({leading, stopping}, return_when=asyncio.FIRST_COMPLETED)
            await self._end(leading)
            watching.cancel()
            stopping.cancel()

    def stop(self) -> None:
        """End `run`: what is under way is finished, and nothing else is begun."""
        self._stop.set()

    @property
    def quiet(self) -> bool:
        """No controller has a key that is due."""
        return self.working.is_set() and all(driver.quiet for driver in self._drivers.values())

    @property
    def drivers(self) -> tuple[Driver[Any], ...]:
        """Those of this term, in the order of their controllers; none while another process leads."""
        found = (self._drivers.get(controller.name) for controller in self._controllers)
        return tuple(driver for driver in found if driver is not None)

    @property
    def waiting(self) -> Mapping[str, tuple[Resource, ...]]:
        """The controllers that cannot work yet, and the resources they wait to see."""
        unseen = frozenset(self.caches.unseen())
        missing = {each.name: tuple(filter(unseen.__contains__, each.resources)) for each in self._controllers}
        return {name: resources for name, resources in missing.items() if resources}

    # --- health

    @property
    def alive(self) -> Checks:
        """What only a new process can mend."""
        return {"controllers": self._timed(self._stuck)}

    @property
    def ready(self) -> Checks:
        """What it takes to do all the work, now or as soon as this process leads."""
        return {"stores": self._unread, "parts": self._timed(self._crashed)}

    @property
    def notes(self) -> Notes:
        return {"leader": self._leader}

    # --- terms

    async def _work(self) -> None:
        """One term: until `stop`, or until it is cut off."""
        self._term = asyncio.current_task()
        driving = {each.name: self._part(f"controller {each.name}", self._drive, each) for each in self._controllers}
        others = [self._part(f"component {each.name}", self._live, each) for each in self._components]
        self._parts = (*driving.values(), *others)
        try:
            async with asyncio.TaskGroup() as group:
                drivers = {name: group.create_task(part.keep(), name=part.name) for name, part in driving.items()}
                components = [group.create_task(part.keep(), name=part.name) for part in others]
                begun = group.create_task(self._begun(), name="begun")
                await self._stop.wait()
                await self._drain(drivers)
                for task in (*drivers.values(), *components, begun):
                    task.cancel()
        finally:
            self.working.clear()
            self._parts = ()
            self._term = None

    async def _end(self, leading: asyncio.Task[None]) -> None:
        """A term that is under way ends by itself, and the lease after it; who is not in one waits for nothing."""
        term = self._term
        if term is not None:
            await asyncio.wait({term})
        if term is None or term.cancelled():
            leading.cancel()
        await asyncio.wait({leading})

    async def _drain(self, tasks: Mapping[str, asyncio.Task[None]]) -> None:
        """Have no key taken any more, and wait for passes that run, but not for ever."""
        for driver in self._drivers.values():
            driver.stop()
        busy = {tasks[name] for name, driver in self._drivers.items() if driver.queue.running}
        if not busy:
            return
        _, late = await asyncio.wait(busy, timeout=self.settings.grace)
        for task in late:
            _log.warning("passes cut off", extra={"fields": {"part": task.get_name(), "grace": self.settings.grace}})

    async def _begun(self) -> None:
        await self.caches.synced(*_needed(self._controllers, self._components))
        for driver in self.drivers:
            await driver.begun.wait()
        self.working.set()

    async def _drive(self, controller: Controller[Any]) -> None:
        if self._stop.is_set():
            return
        driver = self._drivers[controller.name] = self._driver(controller)
        try:
            driver.listen()
            await driver.run()
        finally:
            del self._drivers[controller.name]

    async def _live(self, component: Component) -> None:
        await component.run(Environment(stores=self.caches, client=self._client, now=self._now))

    def _part(self, name: str, run: Callable[..., Any], what: Controller[Any] | Component) -> Part:
        return Part(name, partial(run, what), metrics=self.metrics, spread=self._random.random)

    def _driver(self, controller: Controller[Any]) -> Driver[Any]:
        passing = Pass(
            controller,
            self.caches,
            self._client,
            now=self._now,
            emit=self._emitters[controller.name],
            side_by_side=self.settings.side_by_side,
            refusals=self.refusals,
        )
        takes_over = controller.name in self._after_another
        self._after_another.add(controller.name)
        return Driver(
            controller,
            self.caches,
            passing=passing,
            metrics=self.metrics,
            spread=self._random.random,
            takes_over=(self.settings.namespaces or ("",)) if takes_over else (),
        )

    def _emitter(self, controller: Controller[Any]) -> EmitEvents:
        if not self.settings.events:
            return _keep_quiet
        return Events(self._client, f"holdfast-{controller.name}", now=self._now, metrics=self.metrics).emit

    # --- what is asked for

    def _backlogs(self) -> Mapping[str, Backlog]:
        now = asyncio.get_running_loop().time()
        return {name: driver.backlog(now) for name, driver in self._drivers.items()}

    def _unread(self) -> str | None:
        unread = {**dict.fromkeys(self.caches.unseen(), "not read yet"), **self.caches.trouble()}
        return "; ".join(f"{each.kind} ({each.api_version}): {why}" for each, why in unread.items()) or None

    def _stuck(self, now: float) -> str | None:
        return next((stuck for driver in self._drivers.values() if (stuck := driver.stuck(now))), None)

    def _crashed(self, now: float) -> str | None:
        return "; ".join(trouble for part in self._parts if (trouble := part.trouble(now))) or None

    def _leader(self) -> str:
        if self.election is None:
            return "no election: this process always works"
        if self.election.held():
            return "this process leads"
        return f"{self.election.holder} leads" if self.election.holder else "no process leads"

    @staticmethod
    def _timed(check: Callable[[float], str | None]) -> Check:
        return lambda: check(asyncio.get_running_loop().time())


async def _until(event: asyncio.Event) -> None:
    await event.wait()


async def _keep_quiet(about: Object, notices: Sequence[Notice]) -> None:
    """Record no Events."""


def _needed(controllers: Iterable[Controller[Any]], components: Iterable[Component]) -> tuple[Resource, ...]:
    of_controllers = (resource for controller in controllers for resource in controller.resources)
    of_components = (resource for component in components for resource in component.reads)
    return tuple(dict.fromkeys((*of_controllers, *of_components)))


def _check_names(names: Iterable[str]) -> None:
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise ValueError(f"{twice[0]} stands twice among what is to run; queues and numbers are kept by name")
