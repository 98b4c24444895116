"""The assembly of the embedded cluster: the controllers and components that it runs.

Without nodes it runs those of a control plane only, and no pod is scheduled.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any, Final

from cryptography.hazmat.primitives.serialization import Encoding

from holdfast.client.resources import Resource
from holdfast.cluster import simulation
from holdfast.cluster.controllers import (
    accounts,
    budgets,
    claim_types,
    claims,
    deployments,
    endpoints,
    jobs,
    replicasets,
    root_certificates,
    signing,
    signing_cleanup,
    slices,
    statefulsets,
    token_secrets,
)
from holdfast.cluster.controllers.gc.collector import GarbageCollector
from holdfast.cluster.controllers.namespaces import NamespaceTerminator
from holdfast.cluster.controllers.podgc import PodCollector
from holdfast.cluster.controllers.token_secrets import Tokens
from holdfast.cluster.nodes import evictions, lifecycle
from holdfast.cluster.nodes.lifecycle import NodeSettings
from holdfast.cluster.nodes.suspension import Suspension
from holdfast.cluster.process.lifecycle.pods import RUNTIME_CLASS
from holdfast.cluster.process.node import ProcessNode
from holdfast.cluster.process.services import ServiceProxy
from holdfast.cluster.scheduling import gang_status
from holdfast.cluster.scheduling.scheduler import Scheduler
from holdfast.cluster.simulation.behaviours import Defaults
from holdfast.cluster.simulation.nodes import Fleet, SimulatedNodes
from holdfast.kinds.model import Kind
from holdfast.runtime.controllers import Component, Controller

RUNTIME_CLASSES: Final = Resource("node.k8s.io", "v1", "runtimeclasses", "RuntimeClass", namespaced=False)
PROCESS_CLASS: Final = {"metadata": {"name": RUNTIME_CLASS}, "handler": RUNTIME_CLASS}
"""The RuntimeClass of pods that run as processes; users need the verb ``use`` on it to create them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """
    nodes      how many simulated nodes there are; with none, nothing moves a pod
    fleets     what these nodes are; without any, all are alike
    processes  the node that runs pods as processes, if there is one
    seed       by which simulated pods draw their fates
    ready      how long simulated pods take to become ready, from and to; None: as `Defaults` has it
    scalable   kinds of ours that disruption budgets may go by
    lost       when nodes count as lost
    suspension  since when this process has listened to them
    authority  signs approved certificate requests, and is published in every namespace; None: neither is done
    issue      makes the tokens of Secrets for service accounts; None: they stay empty
    """

    nodes: int = 4
    fleets: tuple[Fleet, ...] = ()
    processes: ProcessNode | None = None
    seed: int = 0
    ready: tuple[timedelta, timedelta] | None = None
    scalable: tuple[Kind, ...] = ()
    lost: NodeSettings = field(default_factory=NodeSettings)
    suspension: Suspension = field(default_factory=Suspension)
    authority: signing.Authority | None = None
    issue: token_secrets.Issue | None = None

    def controllers(self) -> tuple[Controller[Any], ...]:
        return (
            deployments.CONTROLLER,
            replicasets.CONTROLLER,
            statefulsets.CONTROLLER,
            jobs.CONTROLLER,
            budgets.controller(self.scalable),
            endpoints.CONTROLLER,
            slices.CONTROLLER,
            accounts.CONTROLLER,
            signing_cleanup.CONTROLLER,
            *(self._of_authority(self.authority) if self.authority is not None else ()),
            *(self._node_controllers() if self.nodes else ()),
        )

    def _of_authority(self, authority: signing.Authority) -> tuple[Controller[Any], ...]:
        published = authority.certificate.public_bytes(Encoding.PEM)
        tokens = () if self.issue is None else (token_secrets.controller(Tokens(self.issue, published)),)
        return signing.controller(authority), root_certificates.controller(published.decode()), *tokens

    def components(self) -> tuple[Component, ...]:
        plane: Iterable[Component] = (GarbageCollector(), NamespaceTerminator())
        return (*plane, *(self._node_components() if self.nodes else ()))

    def default_objects(self) -> tuple[tuple[Resource, Mapping[str, Any]], ...]:
        """What every cluster has from the start, and its users may change."""
        if not self.nodes:
            return ()
        processes = ((RUNTIME_CLASSES, PROCESS_CLASS),) if self.processes is not None else ()
        return ((claim_types.CLASSES, claim_types.STANDARD), *processes)

    def _node_controllers(self) -> Iterable[Controller[Any]]:
        usual = Defaults(seed=self.seed)
        yield simulation.controller(usual if self.ready is None else replace(usual, ready=self.ready))
        yield lifecycle.controller(self.lost, self.suspension)
        yield evictions.controller(self.lost)
        yield gang_status.CONTROLLER
        yield from claims.controllers()

    def _node_components(self) -> Iterable[Component]:
        yield self.suspension
        yield Scheduler()
        yield PodCollector()
        for number, fleet in enumerate(self.fleets or (Fleet(count=self.nodes),)):
            yield SimulatedNodes(fleet, name=f"simulated-nodes-{number}" if number else "simulated-nodes")
        if self.processes is not None:
            yield self.processes
            yield ServiceProxy()
