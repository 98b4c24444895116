"""The clusters that controllers are measured on: a new server of ours, or a Kubernetes that runs already.

Programs of `operating` work on a cluster, each in a process of its own; pods run on simulated nodes.
"""

from __future__ import annotations

import contextlib
import os
import random
from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from benchmarks import operating, processes, targets
from benchmarks.processes import Running
from holdfast.client import waiting
from holdfast.client.kubeconfig import connect
from holdfast.client.objects import Object
from holdfast.client.protocols import Client
from holdfast.client.resources import CONFIG_MAPS, DEFINITIONS, NAMESPACES, NODES, Resource
from holdfast.cluster.simulation import nodes
from holdfast.meta.errors import AlreadyExists, NotFound
from holdfast.meta.objects import Key

PER_NODE: Final = 250
"""Pods that a node has room for."""

PATIENCE_SECONDS: Final = 120.0
_MANAGER: Final = "kube-controller-manager"


@dataclass(slots=True)
class Cluster:
    """A cluster, and what a benchmark has created in it."""

    client: Client
    kubeconfig: Path
    prefix: str = ""
    """What the names of its namespaces begin with."""
    scheduler: bool = False
    """Whether it has a scheduler and the built-in controllers."""
    manager: Running | None = None
    """The process of its built-in controllers, if that is known."""
    namespaces: list[str] = field(default_factory=list)
    definitions: list[str] = field(default_factory=list)
    nodes: list[str] = field(default_factory=list)
    started: set[str] = field(default_factory=set)

    @contextlib.contextmanager
    def start(self, program: str) -> Iterator[Running]:
        """Start a program of `operating` for the duration of the block, unless the cluster has it."""
        if self.scheduler and program == "deployments":
            yield self.manager or Running()
            return
        self.started.add(program)
        actual = "kubelets" if self.scheduler and program == "nodes" else program
        with processes.started(operating.command(actual), KUBECONFIG=str(self.kubeconfig)) as process:
            yield process

    async def namespace(self, name: str) -> str:
        """Create a namespace; returns its full name."""
        full = f"{self.prefix}{name}"
        await self.client.create(NAMESPACES, {"metadata": {"name": full}})
        self.namespaces.append(full)
        return full

    async def define(self, definition: Mapping[str, Any]) -> None:
        """Create a CustomResourceDefinition if it is not there, and wait until it is served."""
        name = definition["metadata"]["name"]
        with contextlib.suppress(AlreadyExists):
            await self.client.create(DEFINITIONS, definition)
            self.definitions.append(name)
        await waiting.until(self.client, DEFINITIONS, Key("", name), _is_established, timeout=PATIENCE_SECONDS)

    async def collects(self, resource: Resource, owner: Mapping[str, Any]) -> None:
        """Wait until Kubernetes' garbage collector works for a kind, of which `owner` is an object.

        It looks for new kinds every 30 seconds.  Until then it leaves what owners of that kind leave behind, and tries
        those again after ever longer times; and a rollout is not over before they are gone.
        """
        if not self.scheduler:
            return
        created = await self.client.create(resource, owner)
        reference = {"apiVersion": resource.api_version, "kind": resource.kind, "uid": created.meta.uid}
        names = {"name": created.meta.name, "namespace": created.meta.namespace}
        dependent = {"metadata": names | {"ownerReferences": [reference | {"name": created.meta.name}]}}
        await self.client.create(CONFIG_MAPS, dependent)
        await self.client.delete(resource, created.key)
        await waiting.until(self.client, CONFIG_MAPS, created.key, lambda it: it is None, timeout=PATIENCE_SECONDS)

    async def create_nodes(self, *, count: int) -> None:
        """Create nodes that stay ready; none of them has a heartbeat, so they cost nothing."""
        fleet = nodes.Fleet(count=count, first=random.randrange(10_000, 60_000), pods=PER_NODE)
        for name in fleet.names:
            await self.client.create(NODES, nodes.manifest(fleet, name, datetime.now(UTC)))
            self.nodes.append(name)
            if self.scheduler:
                # Kubernetes taints a new node as not ready, until a controller sees its kubelet.
                await self.client.patch(NODES, Key("", name), {"spec": {"taints": None}})

    async def remove(self) -> None:
        """Delete what was created, while operators and kubelets run, which finalizers and pods wait for."""
        with contextlib.ExitStack() as stack:
            for program in self.started:
                stack.enter_context(self.start(program))
            for name in self.namespaces:
                await self.client.delete(NAMESPACES, Key("", name))
            for name in self.namespaces:
                key = Key("", name)
                await waiting.until(self.client, NAMESPACES, key, lambda it: it is None, timeout=PATIENCE_SECONDS)
        for resource, names in ((DEFINITIONS, self.definitions), (NODES, self.nodes)):
            for name in names:
                with contextlib.suppress(NotFound):
                    await self.client.delete(resource, Key("", name))
            for name in names:
                key = Key("", name)
                await waiting.until(self.client, resource, key, lambda it: it is None, timeout=PATIENCE_SECONDS)


@contextlib.asynccontextmanager
async def ours() -> AsyncIterator[Cluster]:
    """A new server, with nothing else."""
    with TemporaryDirectory(prefix="holdfast-bench-") as directory:
        home = Path(directory)
        async with targets.ours(home, "cluster"):
            kubeconfig = home / "cluster" / "kubeconfig"
            client = connect(kubeconfig).client
            try:
                yield Cluster(client, kubeconfig)
            finally:
                await client.close()


@contextlib.asynccontextmanager
async def given(kubeconfig: Path) -> AsyncIterator[Cluster]:
    """A Kubernetes that runs already; what is created in it is deleted at the end of the block."""
    client = connect(kubeconfig).client
    pid = targets.pid_of(kubeconfig, _MANAGER)
    manager = Running(pid) if pid else None
    prefix = f"holdfast-bench-{os.getpid()}-{random.randrange(10_000)}-"
    cluster = Cluster(client, kubeconfig, prefix=prefix, scheduler=True, manager=manager)
    try:
        try:
            yield cluster
        finally:
            await cluster.remove()
    finally:
        await client.close()


def _is_established(definition: Object | None) -> bool:
    status = {} if definition is None else definition.wire().get("status", {})
    conditions = {each["type"]: each["status"] for each in status.get("conditions") or ()}
    return conditions.get("Established") == "True"
