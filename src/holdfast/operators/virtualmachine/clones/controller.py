"""The controller of VMClones."""

from __future__ import annotations

from typing import Any

from holdfast.client.resources import SECRETS
from holdfast.operators.virtualmachine import names
from holdfast.operators.virtualmachine.clones import calls, observe
from holdfast.operators.virtualmachine.connections import Connections
from holdfast.operators.virtualmachine.machines import observe as machines
from holdfast.operators.virtualmachine.machines.observe import REFERENCES, SNAPSHOTS_OF
from holdfast.operators.virtualmachine.passes import passes
from holdfast.operators.virtualmachine.resources import (
    CLASSES,
    CLONES,
    IMAGES,
    MACHINES,
    NETWORKS,
    POLICIES,
    PROVIDERS,
    SNAPSHOTS,
)
from holdfast.runtime.controllers import Controller, Watch


def controller(connections: Connections) -> Controller[Any]:
    """The controller, which does one step with providers in each pass."""
    return Controller(
        name="vmclone",
        resource=CLONES,
        watches=(
            Watch(resource=MACHINES, keys=observe.of_machine, matters=observe.machine_matters),
            *observe.CLONES_OF.watches(SNAPSHOTS, matters=machines.snapshot_matters),
            *observe.CLONES_OF.watches(POLICIES, matters=machines.policy_matters),
            Watch(resource=PROVIDERS, keys=observe.of_reference, matters=machines.provider_matters),
            Watch(resource=CLASSES, keys=observe.of_reference, matters=machines.class_matters),
            Watch(resource=NETWORKS, keys=observe.of_reference, matters=machines.network_matters),
            Watch(resource=SECRETS, keys=observe.of_reference),
        ),
        reads=(IMAGES,),
        writes=(MACHINES,),
        indexes=(REFERENCES.index, SNAPSHOTS_OF.index, observe.CLONES_OF.index),
        finalizer=names.CLONE_FINALIZER,
        invalid=calls.INVALID,
        **passes(observe, calls, connections),
    )
