"""The controller that chooses hosts for the machines and clones of a Provider."""

from __future__ import annotations

from datetime import timedelta
from functools import partial
from typing import Any

from holdfast.client.resources import NAMESPACES, SECRETS
from holdfast.kernel.backoff import Backoff
from holdfast.operators.virtualmachine.clones.observe import CLONES_OF
from holdfast.operators.virtualmachine.connections import Connections
from holdfast.operators.virtualmachine.machines.observe import REFERENCES, SNAPSHOTS_OF, provider_matters
from holdfast.operators.virtualmachine.placement import choices, decide, observe
from holdfast.operators.virtualmachine.providers.status import INVALID
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
    """The controller, which makes all choices for a Provider in one pass, so that they do not collide."""
    return Controller(
        name="vmplacement",
        resource=PROVIDERS,
        matters=provider_matters,
        watches=(
            Watch(resource=MACHINES, keys=observe.of_machine, matters=observe.machine_matters),
            Watch(resource=CLONES, keys=observe.of_clone, matters=observe.clone_matters),
            Watch(resource=POLICIES, keys=observe.of_reference, matters=observe.spec_matters),
            Watch(resource=CLASSES, keys=observe.of_reference, matters=observe.spec_matters),
            Watch(resource=SNAPSHOTS, keys=observe.of_reference, matters=observe.spec_matters),
            Watch(resource=NAMESPACES, keys=observe.of_namespace, matters=observe.labels_matter),
        ),
        reads=(SECRETS, IMAGES, NETWORKS),
        writes=(MACHINES, CLONES),
        indexes=(
            REFERENCES.index,
            SNAPSHOTS_OF.index,
            CLONES_OF.index,
            observe.UNPLACED,
            observe.OPEN_CLONES,
        ),
        observe=observe.observe,
        survey=partial(choices.survey, connections=connections),
        decide=decide.decide,
        timeout=timedelta(minutes=5),
        invalid=INVALID,
        backoff=Backoff(),
    )
