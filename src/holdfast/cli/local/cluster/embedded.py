"""A cluster in this process, for as long as a command runs: API server, controllers, nodes, operators."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any, Final

from holdfast import kinds
from holdfast.apiserver.admission.service_addresses import NETWORK
from holdfast.apiserver.auth.tokens import LONGEST, Reference
from holdfast.apiserver.server import Server
from holdfast.apiserver.verbs.subresources import Connector, Connectors, LogSource
from holdfast.cli.local.apiserver import serving
from holdfast.cli.local.apiserver.serving import Serving, Settings
from holdfast.cli.operator import installing, selection
from holdfast.cli.process import running
from holdfast.cli.process.garbage import collect_rarely
from holdfast.client.api import ApiClient
from holdfast.client.inprocess import InProcess
from holdfast.client.resources import Resource
from holdfast.cluster.assembly import Cluster
from holdfast.cluster.controllers.signing import Authority
from holdfast.cluster.controllers.token_secrets import Bound
from holdfast.cluster.nodes.suspension import Suspension
from holdfast.cluster.process import services
from holdfast.cluster.process.machine import OWN_ADDRESSES
from holdfast.cluster.process.node import ProcessNode
from holdfast.cluster.simulation.nodes import Fleet
from holdfast.meta.errors import AlreadyExists, BadRequest
from holdfast.meta.exchange import Request, Upgrade
from holdfast.operators.admission import Admission
from holdfast.operators.metrics import RolloutMetrics
from holdfast.operators.operator import Operator
from holdfast.runtime.manager import Manager
from holdfast.runtime.metrics import Metrics

IN_PROCESS: Final = {"strategy": "None"}
"""How definitions say that versions are converted: by the server itself, which knows how (`kinds.conversion`)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterOptions:
    """How to run an embedded cluster.

    settings   where the server stores its state, and its address
    nodes      the number of simulated nodes
    fleets     what these nodes have; without any, each has GPUs
    seed       the seed of the random behaviour of simulated pods
    ready      how long simulated pods take to become ready, from and to; None: less than a second
    operators  the operators to run
    values     the settings of operators that are not the defaults
    home       the directory of the cluster; pods that run as processes reach only their own part of it
    """

    settings: Settings
    nodes: int
    fleets: tuple[Fleet, ...] = ()
    seed: int
    ready: tuple[timedelta, timedelta] | None = None
    operators: tuple[Operator, ...] = field(default_factory=selection.operators)
    values: Mapping[str, str] = field(default_factory=dict)
    home: Path


@dataclass(frozen=True, slots=True)
class Embedded:
    """A running cluster.

    url         its address
    kubeconfig  the kubeconfig of its admin
    ended       the task that ends when the manager fails
    client_of   another client, for the user of a token; without one, for the admin
    """

    url: str
    kubeconfig: Mapping[str, Any]
    client: ApiClient
    manager: Manager
    ended: asyncio.Task[None]
    client_of: Callable[[str], ApiClient]


@contextlib.asynccontextmanager
async def embedded(options: ClusterOptions) -> AsyncIterator[Embedded]:
    """Run a cluster until the end of the block."""
    hidden = (options.home, options.settings.kubeconfig)
    processes = ProcessNode(options.home / "node", hidden=hidden) if options.nodes else None
    # Where pods have addresses of their own on the loopback, Services have them too, and can be reached there.
    network = services.network(options.home) if processes is not None and OWN_ADDRESSES else NETWORK
    log_source = _log_source(processes)
    admission = Admission(options.operators)
    async with serving.serving(
        options.settings,
        log_source=log_source,
        connectors=_connectors(processes),
        service_network=network,
        admission=admission,
    ) as served:
        with running.announced(options.settings.data_dir) if options.settings.data_dir else contextlib.nullcontext():
            async with _managed(served, options, processes) as cluster:
                collect_rarely()
                yield cluster


@contextlib.asynccontextmanager
async def _managed(served: Serving, options: ClusterOptions, processes: ProcessNode | None) -> AsyncIterator[Embedded]:
    metrics = Metrics()
    client = ApiClient(InProcess(served.server.handle, served.server.identity.admin_token), observed=metrics.called)
    controllers = tuple(
        controller for each in options.operators for controller in each.configured({**each.embedded, **options.values})
    )
    # A kind without an operator here may be defined by the operator of another project.
    own = kinds.ALL if options.operators == selection.operators() else selection.kinds_of(controllers)
    cluster = _cluster(served.server, options, processes, scalable=own)
    read = selection.kinds_of(cluster.controllers())
    installed = await installing.install(
        client,
        (*own, *(kind for kind in read if kind not in own)),
        created=selection.created(controllers),
        conversion=IN_PROCESS,
    )
    for resource, manifest in (*cluster.default_objects(), *_defaults(options)):
        with contextlib.suppress(AlreadyExists):
            await client.create(resource, manifest)
    manager = Manager(
        client,
        controllers=(*cluster.controllers(), *controllers),
        components=cluster.components(),
        now=lambda: datetime.now(UTC),
        metrics=metrics,
    )
    installing.refuse(installed.unfit, controllers, manager.refusals)
    rolled = [kind for each in options.operators for kind in each.rollouts]
    metrics.extend(RolloutMetrics(rolled, manager.caches, lambda: datetime.now(UTC)))
    ended = asyncio.create_task(manager.run())
    begun = asyncio.create_task(manager.working.wait())
    try:
        await asyncio.wait({begun, ended}, return_when=asyncio.FIRST_COMPLETED)
        yield Embedded(served.url, served.kubeconfig, client, manager, ended, partial(_client_of, served.server))
    finally:
        begun.cancel()
        manager.stop()
        await ended
        await client.close()


def _cluster(
    server: Server, options: ClusterOptions, processes: ProcessNode | None, *, scalable: tuple[kinds.Kind, ...]
) -> Cluster:
    """The controllers, the scheduler and the nodes of a server."""
    authority = server.identity.authority
    return Cluster(
        nodes=options.nodes,
        fleets=options.fleets or (Fleet(count=options.nodes).with_gpus(),),
        processes=processes,
        seed=options.seed,
        ready=options.ready,
        scalable=scalable,
        suspension=Suspension(datetime.now(UTC)),
        authority=Authority(authority.certificate, authority.key),
        issue=partial(_issue, server),
    )


def _client_of(server: Server, token: str) -> ApiClient:
    return ApiClient(InProcess(server.handle, token or server.identity.admin_token))


def _defaults(options: ClusterOptions) -> Iterator[tuple[Resource, Mapping[str, Any]]]:
    """What the operators offer from the start, where there are nodes to run it on."""
    if options.nodes:
        for each in options.operators:
            yield from each.defaults()


def _issue(server: Server, account: Bound, secret: Bound, now: datetime) -> str:
    """A token for a Secret; it lasts as long as the Secret and the account."""
    bound = ("Secret", Reference(secret.key.name, secret.uid))
    namespace, name = account.key.namespace, account.key.name
    issuer = server.authenticator.issuer
    return issuer.issue(namespace, name, uid=account.uid, now=now, lifetime=LONGEST, bound=bound).token


def _log_source(processes: ProcessNode | None) -> LogSource:
    """The logs of processes; of a simulated container, one line that says so."""

    def logs_of(pod: Mapping[str, Any], request: Request) -> AsyncIterator[bytes] | None:
        written = processes.logs(pod, request) if processes is not None else None
        if written is None and (pod.get("status") or {}).get("phase") in ("Running", "Succeeded", "Failed"):
            return _simulated()
        return written

    return logs_of


def _connectors(processes: ProcessNode | None) -> Connectors:
    """Connect clients with pods that are processes; in simulated pods nothing runs."""

    def connector(connect: Callable[[Mapping[str, Any], Request], Upgrade | None], problem: str) -> Connector:
        def connected(pod: Mapping[str, Any], request: Request) -> Upgrade:
            found = connect(pod, request)
            if found is None:
                name = pod["metadata"]["name"]
                raise BadRequest(f"pod {name} is simulated, so {problem}; pods with runtimeClassName: process are real")
            return found

        return connected

    if processes is None:
        return {}
    return {
        "exec": connector(processes.execute, "no command can run in it"),
        "portforward": connector(processes.forward, "it listens on no port"),
    }


async def _simulated() -> AsyncIterator[bytes]:
    yield b"This container is simulated, so it has no log.\n"
