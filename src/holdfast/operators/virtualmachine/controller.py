"""The controllers of virtual machines, with the settings of an installation and the way to reach providers."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any, Final

from holdfast.operators.virtualmachine import outside
from holdfast.operators.virtualmachine.classes import controller as classes
from holdfast.operators.virtualmachine.clones import controller as clones
from holdfast.operators.virtualmachine.connections import Connect, Connections
from holdfast.operators.virtualmachine.images import controller as images
from holdfast.operators.virtualmachine.machines import controller as machines
from holdfast.operators.virtualmachine.machines.calls import Fetch
from holdfast.operators.virtualmachine.migrations import controller as migrations
from holdfast.operators.virtualmachine.networks import controller as networks
from holdfast.operators.virtualmachine.placement import controller as placement
from holdfast.operators.virtualmachine.policies import controller as policies
from holdfast.operators.virtualmachine.providers import controller as providers
from holdfast.operators.virtualmachine.sets import controller as sets
from holdfast.operators.virtualmachine.settings import (
    DEFAULTS,
    IMAGES_FOLDER,
    NO_FOLDER,
    PROCESSES,
    RUNTIME,
    STORAGE_FOLDER,
    Settings,
    local_types,
)
from holdfast.operators.virtualmachine.snapshots import controller as snapshots
from holdfast.runtime.controllers import Controller, Signals


def controllers(
    settings: Settings = DEFAULTS,
    *,
    connect: Connect = outside.connect,
    fetch: Fetch = outside.fetch,
    clock: Callable[[], datetime] = lambda: datetime.now(UTC),
) -> tuple[Controller[Any], ...]:
    """The controllers, with the settings of an installation and the way to reach providers and guests."""
    connections, signals = Connections(connect), Signals()
    return (
        providers.controller(settings, connections, signals, clock),
        machines.controller(connections, signals, fetch),
        placement.controller(connections),
        snapshots.controller(connections),
        clones.controller(connections),
        migrations.controller(connections),
        images.controller(connections),
        classes.CONTROLLER,
        networks.CONTROLLER,
        policies.CONTROLLER,
        sets.CONTROLLER,
    )


CONTROLLERS: Final = controllers()


def configure(values: Mapping[str, str]) -> tuple[Controller[Any], ...]:
    """The controllers with the settings of an installation."""
    if values.get(RUNTIME.name, RUNTIME.default) != PROCESSES:
        return CONTROLLERS
    path = os.environ.get("PYTHONPATH")
    return controllers(
        Settings(
            processes=True,
            command=(sys.executable, "-m", "holdfast"),
            env={"PYTHONPATH": path} if path else {},
            images=values.get(IMAGES_FOLDER.name, NO_FOLDER).removeprefix(NO_FOLDER),
            storage=values.get(STORAGE_FOLDER.name, NO_FOLDER).removeprefix(NO_FOLDER),
            local=local_types(),
        )
    )
