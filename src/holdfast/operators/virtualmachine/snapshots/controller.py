"""The controller of VMSnapshots."""

from __future__ import annotations

from typing import Any

from holdfast.client.resources import SECRETS
from holdfast.operators.virtualmachine import names
from holdfast.operators.virtualmachine.connections import Connections
from holdfast.operators.virtualmachine.machines.observe import REFERENCES, SNAPSHOTS_OF, provider_matters
from holdfast.operators.virtualmachine.passes import passes
from holdfast.operators.virtualmachine.resources import MACHINES, PROVIDERS, SNAPSHOTS
from holdfast.operators.virtualmachine.snapshots import calls, observe
from holdfast.runtime.controllers import Controller, Watch


def controller(connections: Connections) -> Controller[Any]:
    """The controller, which does one step with providers in each pass."""
    return Controller(
        name="vmsnapshot",
        resource=SNAPSHOTS,
        watches=(
            *SNAPSHOTS_OF.watches(MACHINES, matters=observe.machine_matters),
            Watch(resource=PROVIDERS, keys=observe.of_provider, matters=provider_matters),
            Watch(resource=SNAPSHOTS, keys=observe.siblings_of, matters=observe.sibling_matters),
        ),
        reads=(SECRETS,),
        indexes=(REFERENCES.index, SNAPSHOTS_OF.index),
        finalizer=names.SNAPSHOT_FINALIZER,
        invalid=calls.INVALID,
        **passes(observe, calls, connections),
    )
