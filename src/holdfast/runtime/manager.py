"""Runs controllers and components together, on shared stores, until it is told to stop.

Everything lives in one task group: what fails for good takes the rest down with
it, and nothing outlives the manager.  Stopping is graceful: no key is taken any
more, what runs may end, and then the rest is cancelled.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from holdfast.client.objects import Object
from holdfast.client.protocols import Client
from holdfast.client.resources import Resource
from holdfast.runtime.caches import Caches
from holdfast.runtime.controllers import Component, Controller, Environment
from holdfast.runtime.decisions import Notice
from holdfast.runtime.drivers import Driver
from holdfast.runtime.events import Events
from holdfast.runtime.metrics import Backlog, Metrics
from holdfast.runtime.passes import Pass, Tell

GRACE: Final = 20.0
"""Seconds that running passes have to end when the manager stops."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """
    namespaces    the namespaces to work in; all, if none is named
    side_by_side  writes of one pass that may be under way together
    events        whether notices become Events
    """

    namespaces: tuple[str, ...] = ()
    side_by_side: int = 16
    events: bool = True


class Manager:
    """A set of controllers and components that work on one API."""

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
    ) -> None:
        self.settings = settings or Settings()
        self.metrics = metrics or Metrics()
        self._client = client
        self._now = now
        self._random = random.Random(seed)
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
        self._drivers = tuple(self._driver(controller) for controller in controllers)
        for driver in self._drivers:
            self.metrics.expect(driver.controller.name)
        self.metrics.ask(queues=self._backlogs)
        self._stop = asyncio.Event()
        self.working = asyncio.Event()
        """Set once everything was seen and work has begun."""

    async def run(self) -> None:
        """Work until `stop`."""
        async with asyncio.TaskGroup() as group:
            watching = group.create_task(self.caches.run())
            working = group.create_task(self.work())
            stopping = group.create_task(self._stop.wait())
            await asyncio.wait({watching, working, stopping}, return_when=asyncio.FIRST_COMPLETED)
            await self._wind_down(working)
            watching.cancel()
            stopping.cancel()

    async def work(self) -> None:
        """Run controllers and components on stores that somebody else runs, as a standby does before it leads."""
        environment = Environment(stores=self.caches, client=self._client, now=self._now)
        for driver in self._drivers:
            driver.listen()
        async with asyncio.TaskGroup() as group:
            for driver in self._drivers:
                group.create_task(driver.run(), name=driver.controller.name)
            components = [
                group.create_task(component.run(environment), name=component.name) for component in self._components
            ]
            await self.caches.synced()
            self.working.set()
            await self._stop.wait()
            for driver in self._drivers:
                driver.stop()
            for task in components:
                task.cancel()

    def stop(self) -> None:
        self._stop.set()

    @property
    def quiet(self) -> bool:
        """No controller has a key that is due."""
        return self.working.is_set() and all(driver.quiet for driver in self._drivers)

    @property
    def drivers(self) -> tuple[Driver[Any], ...]:
        return self._drivers

    def checks(self) -> Mapping[str, Callable[[], str | None]]:
        """What health is asked for: a name, and what is wrong with it, if anything is."""
        return {"stores": self._stores_trouble, "controllers": self._stuck}

    async def _wind_down(self, working: asyncio.Task[None]) -> None:
        with contextlib.suppress(TimeoutError, asyncio.CancelledError):
            await asyncio.wait_for(working, GRACE)

    def _driver(self, controller: Controller[Any]) -> Driver[Any]:
        passing = Pass(
            controller,
            self.caches,
            self._client,
            now=self._now,
            tell=self._tell(controller),
            side_by_side=self.settings.side_by_side,
        )
        return Driver(controller, self.caches, passing=passing, metrics=self.metrics, spread=self._random.random)

    def _tell(self, controller: Controller[Any]) -> Tell:
        if not self.settings.events:
            return _keep_quiet
        return Events(self._client, f"holdfast-{controller.name}", now=self._now, metrics=self.metrics).emit

    def _backlogs(self) -> Mapping[str, Backlog]:
        now = asyncio.get_running_loop().time()
        return {driver.controller.name: driver.backlog(now) for driver in self._drivers}

    def _stores_trouble(self) -> str | None:
        trouble = self.caches.trouble()
        return "; ".join(f"{resource}: {why}" for resource, why in trouble.items()) or None

    def _stuck(self) -> str | None:
        now = asyncio.get_running_loop().time()
        return next((stuck for driver in self._drivers if (stuck := driver.stuck(now))), None)


async def _keep_quiet(about: Object, notices: Sequence[Notice]) -> None:
    """Tell nobody."""


def _needed(controllers: Iterable[Controller[Any]], components: Iterable[Component]) -> tuple[Resource, ...]:
    of_controllers = (resource for controller in controllers for resource in controller.resources)
    of_components = (resource for component in components for resource in component.reads)
    return tuple(dict.fromkeys((*of_controllers, *of_components)))
