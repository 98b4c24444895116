"""The node on which pods are real: commands of containers run as processes of this machine.

It serves the pods that are bound to it, each by a worker of its own, says that it is
there, and gives out logs.  What is not offered is refused by name (`specs`):
images, ``hostPath`` unless it is allowed, gRPC probes.  A token of a service account is a projected volume.
Processes run as the user who runs this one, see the machine's files but for the node's own
directory and those that are hidden, where the kernel offers that, and share its loopback;
limits of CPU and memory are not enforced, and security contexts are not applied.

Nothing survives: when this process ends, however it does, everything that it started
ends too (`supervisor`).
"""

from __future__ import annotations

import asyncio
import logging
import shutil
from collections.abc import AsyncIterator, Awaitable, Iterable, Mapping
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import aiohttp

from holdfast.client.objects import Object
from holdfast.client.protocols import Unreachable
from holdfast.client.resources import (
    CLAIMS,
    CONFIG_MAPS,
    LEASES,
    NODES,
    PODS,
    SECRETS,
    SERVICE_ACCOUNTS,
    SLICES,
    Resource,
)
from holdfast.cluster import start_orders
from holdfast.cluster.process.lifecycle.facts import Container, Ended, Gone
from holdfast.cluster.process.lifecycle.pods import Pod, Referred
from holdfast.cluster.process.lifecycle.state import is_final
from holdfast.cluster.process.lifecycle.status import waiting
from holdfast.cluster.process.machine import (
    HOST_IP,
    LEASE_NAMESPACE,
    Addresses,
    lease_manifest,
    measure,
    node_manifest,
    node_status,
)
from holdfast.cluster.process.running.env import Surroundings
from holdfast.cluster.process.running.logs import Options, read
from holdfast.cluster.process.storage.directories import Directories
from holdfast.cluster.process.storage.files import make_private
from holdfast.cluster.process.streams.forwarding import FORWARD_PROTOCOLS, forward
from holdfast.cluster.process.streams.sessions import EXEC_PROTOCOLS, ExecOptions, execute
from holdfast.cluster.process.workers import Site, Worker
from holdfast.meta.errors import AlreadyExists, BadRequest, NotFound, StatusError
from holdfast.meta.exchange import Request, Upgrade
from holdfast.meta.objects import Key
from holdfast.runtime.controllers import Environment
from holdfast.runtime.log_once import LogOnce
from holdfast.runtime.metrics import Metrics
from holdfast.runtime.passes.events import Events

NAME: Final = "local"
DEFAULT_CONTAINER: Final = "kubectl.kubernetes.io/default-container"

RENEWAL: Final = 10.0
"""Seconds between two signs of life."""

_log: Final = logging.getLogger("holdfast.cluster.process")


class ProcessNode:
    """A `Component`: this machine as a node.

    directory   where pods keep their files and logs, and claims their data
    name        of the node
    host_paths  whether pods may reach directories of the machine by ``hostPath``
    hidden      files and directories of the machine that pods cannot reach, beside those of other pods
    """

    reads: tuple[Resource, ...] = (PODS, CONFIG_MAPS, SECRETS, CLAIMS, SERVICE_ACCOUNTS, SLICES, NODES)

    def __init__(
        self, directory: Path, *, name: str = NAME, host_paths: bool = False, hidden: Iterable[Path] = ()
    ) -> None:
        self.name = name
        self._hidden = (directory.absolute(), *hidden)
        self._places = Directories(root=directory.absolute(), host_paths=host_paths)
        self._workers: dict[str, Worker] = {}
        self._warned: LogOnce[str] = LogOnce()
        self._waiting: dict[tuple[str, Referred], set[str]] = {}
        """Pods by what they refer to, with its namespace."""

    async def run(self, environment: Environment) -> None:
        make_private(self._places.pods)
        self._machine = await asyncio.to_thread(measure, self._places.root)
        hiding = self._machine.hiding
        if not hiding.means:
            _log.warning("pods can read the data directory", extra={"fields": {"reason": hiding.problem}})
        self._addresses = Addresses(self._machine, self._places.root)
        await environment.stores.synced(*self.reads)
        async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(force_close=True)) as http:
            site = Site(
                directories=self._places,
                lookup=environment.stores.get,
                view=environment.stores,
                client=environment.client,
                events=Events(environment.client, "holdfast-node", now=environment.now, metrics=Metrics()),
                http=http,
                machine=self._machine.variables,
                means=hiding.means,
                hidden=self._hidden if hiding.means else (),
                now=environment.now,
            )
            await self._serve(environment, site)

    async def _serve(self, environment: Environment, site: Site) -> None:
        unhealthy = asyncio.Event()
        unhealthy.set()
        stores = environment.stores
        async with asyncio.TaskGroup() as group:
            with ExitStack() as subscribed:
                self._sweep(stores.list(PODS))
                for resource, change in (
                    (PODS, lambda old, new: self._pod_changed(old, new, site, group)),
                    (CONFIG_MAPS, self._source_changed),
                    (SECRETS, self._source_changed),
                    (SERVICE_ACCOUNTS, self._source_changed),
                    (CLAIMS, self._claim_changed),
                    (NODES, lambda _, new: unhealthy.set() if self._is_unwell(new) else None),
                ):
                    subscribed.callback(stores.subscribe(resource, change))
                group.create_task(self._renew(environment))
                await self._present(environment, unhealthy)

    # --- pods

    def _pod_changed(self, old: Object | None, new: Object | None, site: Site, group: asyncio.TaskGroup) -> None:
        if old is not None and (new is None or new.uid != old.uid) and old.uid in self._workers:
            self._workers[old.uid].tell(Gone())
        self._start_those_after(new or old)
        if new is None:
            return
        worker = self._workers.get(new.uid)
        if worker is not None:
            worker.update(new)
        elif Pod.of(new).spec.node_name == self.name:
            group.create_task(self._run(self._worker(new, site)), name=f"pod {new.key}")

    def _start_those_after(self, changed: Object | None) -> None:
        """Try pods again that start after the PodClique of a pod that changed."""
        clique = None if changed is None else changed.meta.labels.get(start_orders.LABEL)
        if changed is None or clique is None:
            return
        for worker in self._workers.values():
            waits = not worker.facts.initialized and clique in worker.starts_after
            if waits and worker.pod.metadata.namespace == changed.meta.namespace:
                worker.reconsider()

    def _worker(self, obj: Object, site: Site) -> Worker:
        pod = Pod.of(obj)
        taken = [worker.ip for worker in self._workers.values()]
        ip = HOST_IP if pod.spec.host_network else self._addresses.free(taken, wanted=pod.status.pod_ip)
        around = Surroundings(ip=ip, host_ip=HOST_IP, capacity=self._machine.capacity)
        worker = self._workers[pod.uid] = Worker(obj, site, around=around)
        for reference in worker.refers:
            self._waiting.setdefault((pod.metadata.namespace, reference), set()).add(pod.uid)
        return worker

    async def _run(self, worker: Worker) -> None:
        pod = worker.pod
        try:
            await worker.run()
        except Exception:
            # A defect takes down one pod, and not the node with all the others.
            fields = {"pod": f"{pod.metadata.namespace}/{pod.metadata.name}"}
            _log.exception("pod worker crashed", extra={"fields": fields})
        finally:
            del self._workers[pod.uid]
            for reference in worker.refers:
                self._waiting[pod.metadata.namespace, reference].discard(pod.uid)

    def _sweep(self, pods: tuple[Object, ...]) -> None:
        """Remove the directories of pods that were deleted while the node did not run."""
        known = {pod.uid for pod in pods}
        for directory in self._places.pods.iterdir():
            if directory.name not in known:
                shutil.rmtree(directory, ignore_errors=True)

    # --- what pods refer to

    def _source_changed(self, old: Object | None, new: Object | None) -> None:
        changed = new or old
        assert changed is not None, "a change is of something"
        reference = (changed.meta.namespace, (changed.resource.kind, changed.meta.name))
        for uid in tuple(self._waiting.get(reference, ())):
            self._workers[uid].reconsider()

    def _claim_changed(self, old: Object | None, new: Object | None) -> None:
        self._source_changed(old, new)
        if old is not None and (new is None or new.uid != old.uid):
            shutil.rmtree(self._places.claim(old.meta.namespace, old.uid), ignore_errors=True)

    # --- the node itself

    async def _present(self, environment: Environment, unhealthy: asyncio.Event) -> None:
        """Report that the node is ready, now and whenever its conditions say otherwise."""
        client, manifest = environment.client, node_manifest(self.name, self._machine)
        while True:
            await unhealthy.wait()
            unhealthy.clear()
            try:
                try:
                    await client.create(NODES, manifest)
                except AlreadyExists:
                    await client.patch(
                        NODES, Key("", self.name), {"metadata": {"labels": manifest["metadata"]["labels"]}}
                    )
                status = node_status(self.name, self._machine, environment.now())
                await client.patch(NODES, Key("", self.name), {"status": status}, subresource="status")
            except (StatusError, Unreachable) as error:
                self._warn("node not reported", str(error))
                await asyncio.sleep(1)
                unhealthy.set()
            else:
                self._warned.clear("node not reported")

    def _is_unwell(self, node: Object | None) -> bool:
        """Whether the API says of this node that it is not ready, which cannot be true."""
        if node is None or node.meta.name != self.name:
            return False
        conditions = node.wire().get("status", {}).get("conditions", ())
        return not any(each.get("type") == "Ready" and each.get("status") == "True" for each in conditions)

    async def _renew(self, environment: Environment) -> None:
        """Give signs of life."""
        client, key = environment.client, Key(LEASE_NAMESPACE, self.name)
        while True:
            lease = lease_manifest(self.name, environment.now())
            try:
                try:
                    await client.patch(LEASES, key, {"spec": lease["spec"]})
                except NotFound:
                    await client.create(LEASES, lease)
            except (StatusError, Unreachable) as error:
                self._warn("lease not renewed", str(error))
            else:
                self._warned.clear("lease not renewed")
            await asyncio.sleep(RENEWAL)

    def _warn(self, what: str, error: str) -> None:
        if self._warned.is_new(what, error):
            _log.warning(what, extra={"fields": {"node": self.name, "error": error}})

    # --- logs

    def logs(self, pod: Mapping[str, Any], request: Request) -> AsyncIterator[bytes] | None:
        """The log of a container, as the ``log`` subresource asks for it; None where the pod is not of this node."""
        if (pod.get("spec") or {}).get("nodeName") != self.name:
            return None
        # Logs are stamped by other processes, so that it is the machine's own clock that counts.
        now = datetime.now(UTC)
        options = Options.of(request, now)
        name = options.container or _default_container(pod)
        worker = self._workers.get(pod["metadata"]["uid"])
        container = worker.facts.containers.get(name) if worker is not None else None
        if worker is None or container is None:
            raise _not_yet(pod, name, "ContainerCreating")
        number = container.restarts
        if options.previous and not _waits(worker.pod, name, container):
            number -= 1
        path = self._places.log(worker.pod.uid, name, number)
        if not path.exists():
            if options.previous:
                raise BadRequest(f'previous terminated container "{name}" in pod "{_name(pod)}" not found')
            waits = waiting(worker.pod, worker.pod.container(name), worker.facts, now=now) or {}
            raise _not_yet(pod, name, waits.get("message") or waits.get("reason", "it has left no log"))

        def growing() -> bool:
            current = worker.facts.containers[name]
            return current.restarts == number and current.alive

        return read(path, options, growing=growing)

    # --- commands of clients

    def execute(self, pod: Mapping[str, Any], request: Request) -> Upgrade | None:
        """A command in a container, as the ``exec`` subresource asks for it; None: the pod is not of this node."""
        if (pod.get("spec") or {}).get("nodeName") != self.name:
            return None
        options = ExecOptions.of(request)
        name = options.container or _default_container(pod)
        if name not in [each["name"] for each in pod["spec"]["containers"]]:
            raise BadRequest(f"container {name} is not valid for pod {_name(pod)}")
        worker = self._workers.get(pod["metadata"]["uid"])
        running = None if worker is None else worker.running(name)
        if running is None:
            raise BadRequest(f'container "{name}" in pod "{_name(pod)}" does not run, so no command can run in it')
        run, launch = running
        argv = launch.command(options.command)
        return Upgrade(EXEC_PROTOCOLS, lambda duplex: execute(duplex, run, argv, options))

    def forward(self, pod: Mapping[str, Any], request: Request) -> Upgrade | None:
        """Connections to the ports of a pod, at its own address; None: the pod is not of this node."""
        if (pod.get("spec") or {}).get("nodeName") != self.name:
            return None
        worker = self._workers.get(pod["metadata"]["uid"])
        if worker is None or not worker.is_running:
            raise BadRequest(f"pod {_name(pod)} does not run, so its ports cannot be reached")

        def connect(port: int) -> Awaitable[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
            return asyncio.open_connection(worker.ip, port)

        return Upgrade(FORWARD_PROTOCOLS, lambda duplex: forward(duplex, connect, pod=_name(pod)))


def _waits(pod: Pod, name: str, container: Container) -> bool:
    """Whether a container has ended and waits to be started again: its last run is then the previous one already."""
    return isinstance(container.run, Ended) and not is_final(pod, pod.container(name), container)


def _default_container(pod: Mapping[str, Any]) -> str:
    chosen = (pod["metadata"].get("annotations") or {}).get(DEFAULT_CONTAINER)
    return str(chosen or pod["spec"]["containers"][0]["name"])


def _not_yet(pod: Mapping[str, Any], container: str, why: str) -> BadRequest:
    return BadRequest(f'container "{container}" in pod "{_name(pod)}" is waiting to start: {why}')


def _name(pod: Mapping[str, Any]) -> str:
    return str(pod["metadata"]["name"])
