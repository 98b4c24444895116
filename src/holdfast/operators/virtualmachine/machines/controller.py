"""The controller of VirtualMachines, which has them made, changed and deleted by providers."""

from __future__ import annotations

from functools import partial
from typing import Any

from holdfast.client.resources import SECRETS
from holdfast.kernel.backoff import Backoff
from holdfast.operators.virtualmachine import names
from holdfast.operators.virtualmachine.connections import Connections
from holdfast.operators.virtualmachine.machines import calls, observe, status
from holdfast.operators.virtualmachine.machines.calls import Fetch
from holdfast.operators.virtualmachine.resources import (
    CLASSES,
    IMAGES,
    MACHINES,
    NETWORKS,
    POLICIES,
    PROVIDERS,
    SNAPSHOTS,
)
from holdfast.runtime.controllers import Controller, Signals, Watch


def controller(connections: Connections, signals: Signals, fetch: Fetch) -> Controller[Any]:
    """The controller; `fetch` asks guests over HTTP."""
    return Controller(
        name="virtualmachine",
        resource=MACHINES,
        watches=(
            *observe.REFERENCES.watches(PROVIDERS, matters=observe.provider_matters),
            *observe.REFERENCES.watches(CLASSES, matters=observe.class_matters),
            *observe.REFERENCES.watches(IMAGES, matters=observe.image_matters),
            *observe.REFERENCES.watches(NETWORKS, matters=observe.network_matters),
            *observe.REFERENCES.watches(POLICIES, matters=observe.policy_matters),
            *observe.REFERENCES.watches(SECRETS),
            *observe.REFERENCES.watches(SNAPSHOTS, matters=observe.snapshot_matters),
            Watch(resource=SNAPSHOTS, keys=observe.of_snapshot, matters=observe.snapshot_matters),
        ),
        signals=signals,
        indexes=(observe.REFERENCES.index, observe.SNAPSHOTS_OF.index),
        observe=observe.observe,
        survey=partial(observe.survey, connections=connections),
        decide=calls.decide,
        cleanup=calls.cleanup,
        finalizer=names.FINALIZER,
        act=partial(calls.act, connections=connections, fetch=fetch),
        explain=calls.explain,
        invalid=status.INVALID,
        backoff=Backoff(),
    )
