"""The controller of VMMigrations."""

from __future__ import annotations

from typing import Any

from holdfast.client.resources import CLAIMS, SECRETS
from holdfast.operators.virtualmachine import names
from holdfast.operators.virtualmachine.connections import Connections
from holdfast.operators.virtualmachine.machines import observe as machines
from holdfast.operators.virtualmachine.machines.observe import REFERENCES, SNAPSHOTS_OF
from holdfast.operators.virtualmachine.migrations import calls, observe, status
from holdfast.operators.virtualmachine.passes import passes
from holdfast.operators.virtualmachine.resources import (
    CLASSES,
    IMAGES,
    MACHINES,
    MIGRATIONS,
    NETWORKS,
    POLICIES,
    PROVIDERS,
    SNAPSHOTS,
)
from holdfast.runtime.controllers import Controller, Watch


def controller(connections: Connections) -> Controller[Any]:
    """The controller, which does one step with providers in each pass."""
    return Controller(
        name="vmmigration",
        resource=MIGRATIONS,
        watches=(
            *observe.MIGRATIONS_OF.watches(MACHINES, matters=observe.machine_matters),
            *observe.MIGRATIONS_OF.watches(SNAPSHOTS, matters=machines.snapshot_matters),
            *observe.MIGRATIONS_OF.watches(CLAIMS),
            Watch(
                resource=PROVIDERS,
                keys=observe.of_reference,
                matters=observe.provider_matters,
            ),
            Watch(resource=CLASSES, keys=observe.of_reference, matters=machines.class_matters),
            Watch(resource=NETWORKS, keys=observe.of_reference, matters=machines.network_matters),
            Watch(resource=SECRETS, keys=observe.of_reference),
        ),
        reads=(IMAGES, POLICIES),
        writes=(MACHINES, CLAIMS),
        indexes=(REFERENCES.index, SNAPSHOTS_OF.index, observe.MIGRATIONS_OF.index),
        finalizer=names.MIGRATION_FINALIZER,
        invalid=status.INVALID,
        **passes(observe, calls, connections),
    )
