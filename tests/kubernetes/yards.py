"""Simulated nodes beside a server, processes of the operator, and a count of the pods that serve.

A yard belongs to one story: its nodes, its namespace and its processes are removed in the end.  On a server of our own
the embedded cluster schedules pods and runs their controllers; on a given one its own scheduler and controller manager
do, and only nodes and volumes are simulated.
"""

from __future__ import annotations

import asyncio
import random
import shutil
import subprocess
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime
from functools import partial
from typing import Any

from tests.cli.operator.test_commands import Operator
from tests.kubernetes.sites import PATIENCE, Site

from holdfast import kinds
from holdfast.cli.local.demo.subjects import Subject, subject_of
from holdfast.cli.operator import installing
from holdfast.client import waiting
from holdfast.client.kubeconfig import connect
from holdfast.client.objects import Object
from holdfast.client.resources import CLAIMS, LEASES, NAMESPACES, NODES, PODS, VOLUMES, Resource
from holdfast.cluster import simulation
from holdfast.cluster.assembly import Cluster
from holdfast.cluster.nodes.lifecycle import LEASE_NAMESPACE
from holdfast.cluster.simulation.nodes import Fleet, SimulatedNodes
from holdfast.meta.errors import AlreadyExists, NotFound
from holdfast.meta.objects import Key
from holdfast.operators.rollouts import RolloutKind
from holdfast.runtime.controllers import Component, Environment
from holdfast.runtime.hosting import build_manager
from holdfast.runtime.manager import Settings
from holdfast.views.floors import Ledger, is_ready

KUBECTL = shutil.which("kubectl")
NOT_READY = "node.kubernetes.io/not-ready"
Wire = dict[str, Any]


class Watch:
    """A component that counts, at every change of a pod, the pods of each subject that serve."""

    name = "floors"

    def __init__(self, subjects: Sequence[Subject]) -> None:
        self._subjects = subjects
        self.ledger = Ledger()
        self.counting = asyncio.Event()

    @property
    def reads(self) -> tuple[Resource, ...]:
        parts = (part for subject in self._subjects for part in (subject.resource, *subject.kind.parts))
        return tuple({PODS: None, **dict.fromkeys(parts)})

    async def run(self, environment: Environment) -> None:
        stores = environment.stores

        def count(old: Object | None, new: Object | None) -> None:
            pod = new or old
            assert pod is not None
            for subject in self._subjects:
                self.ledger.expect(subject.floors(stores))
                ready = new is not None and is_ready(new.wire())
                self.ledger.see(subject.group(pod), pod.uid, ready=ready)

        stop = stores.subscribe(PODS, count)
        try:
            await stores.synced(*self.reads)
            for pod in stores.list(PODS):
                count(None, pod)
            self.counting.set()
            await asyncio.Event().wait()
        finally:
            stop()


class Volumes:
    """A component that makes a volume for every claim of a namespace, as a provisioner does."""

    name = "volumes"
    reads = (CLAIMS,)

    def __init__(self, label: str) -> None:
        self._label = label

    async def run(self, environment: Environment) -> None:
        claims: asyncio.Queue[Object] = asyncio.Queue()
        stop = environment.stores.subscribe(CLAIMS, lambda old, new: new and claims.put_nowait(new))
        try:
            while True:
                with suppress(AlreadyExists):
                    await environment.client.create(VOLUMES, self._volume((await claims.get()).wire()))
        finally:
            stop()

    def _volume(self, claim: Wire) -> Wire:
        metadata, spec = claim["metadata"], claim["spec"]
        return {
            "metadata": {"name": f"holdfast-test-{metadata['uid']}", "labels": {self._label: "true"}},
            "spec": {
                "capacity": {"storage": spec["resources"]["requests"]["storage"]},
                "accessModes": spec["accessModes"],
                "storageClassName": spec.get("storageClassName") or "",
                "persistentVolumeReclaimPolicy": "Retain",
                "claimRef": {"namespace": metadata["namespace"], "name": metadata["name"], "uid": metadata["uid"]},
                "hostPath": {"path": "/nowhere"},
            },
        }


async def kubectl(site: Site, *arguments: str, input: str = "") -> subprocess.CompletedProcess[str]:
    command = [str(KUBECTL), "--kubeconfig", str(site.kubeconfig), *arguments]
    return await asyncio.to_thread(
        subprocess.run, command, input=input, capture_output=True, text=True, timeout=PATIENCE
    )


class Yard:
    """What a story plays with."""

    def __init__(self, site: Site, subjects: Sequence[Subject], nodes: tuple[str, ...]) -> None:
        self.site = site
        self.subjects = subjects
        self.nodes = nodes
        self.watch = Watch(subjects)
        self._operators: list[Operator] = []

    async def operate(self, *options: str, waits: str = "operator working") -> Operator:
        """Start a process of the operator that works in the namespace of the story."""
        running = Operator(self.site.kubeconfig, "--namespace", self.site.namespace, *options)
        self._operators.append(running)
        if waits:
            await asyncio.to_thread(running.wait_for, waits)
        return running

    async def apply(self) -> None:
        """Create the subjects, wait until they run, and watch their floors from there on."""
        for subject in self.subjects:
            await self.site.client.apply(subject.resource, subject.manifest)
        await self.at_rest()
        await self.look()
        floors = {name: group.floor for name, group in self.watch.ledger.groups.items()}
        assert floors
        assert all(floors.values()), floors

    async def look(self) -> None:
        """From now on, no floor may be broken."""
        await asyncio.wait_for(self.watch.counting.wait(), PATIENCE)
        self.watch.ledger.look()

    async def change(self, version: str = "2") -> None:
        for subject in self.subjects:
            await self.site.client.patch(subject.resource, subject.key, subject.change(version))

    async def at_rest(self) -> None:
        """Wait until every subject has all that its spec asks for."""
        for subject in self.subjects:
            await self.until(subject.resource, subject.key.name, resting(subject.kind))

    async def until(self, resource: Resource, name: str, holds: Callable[[Wire], bool]) -> None:
        seen: list[Wire] = []

        def found(obj: Object | None) -> bool:
            seen[:] = [] if obj is None else [obj.wire()]
            return bool(seen) and holds(seen[0])

        try:
            await waiting.until(self.site.client, resource, Key(self.site.namespace, name), found, timeout=PATIENCE)
        except TimeoutError as error:
            raise AssertionError(f"{error}: {(seen[0] if seen else {}).get('status')}") from None

    def kept(self) -> bool:
        groups = self.watch.ledger.groups
        assert self.watch.ledger.changes
        assert self.watch.ledger.kept, {name: (group.lowest, group.floor) for name, group in groups.items()}
        return True

    async def pods(self) -> list[Wire]:
        listed = await self.site.client.list(PODS, self.site.scope)
        return [each.wire() for each in listed.objects]

    async def images(self) -> set[str]:
        pods = [pod for pod in await self.pods() if is_ready(pod)]
        return {container["image"] for pod in pods for container in pod["spec"]["containers"]}

    async def kubectl(self, *arguments: str, input: str = "") -> subprocess.CompletedProcess[str]:
        return await kubectl(self.site, *arguments, input=input)

    def close(self) -> None:
        for each in self._operators:
            each.close()


def resting(kind: RolloutKind) -> Callable[[Wire], bool]:
    return lambda wire: kind.headline(wire).at_rest


@asynccontextmanager
async def yard(site: Site, *manifests: Mapping[str, Any], own: bool, count: int = 3) -> AsyncIterator[Yard]:
    """Nodes for a story, and a count of the pods of its subjects; `own` says that the server has no controllers."""
    placed = [{**each, "metadata": {**each["metadata"], "namespace": site.namespace}} for each in manifests]
    fleet = Fleet(count=count, first=random.randrange(10_000, 60_000))
    made = Yard(site, [subject_of(each) for each in placed], fleet.names)
    label = f"{site.namespace}.holdfast.dev/test"
    cluster = Cluster(nodes=count, fleets=(fleet,))
    components: tuple[Component, ...] = (SimulatedNodes(fleet), Volumes(label), made.watch)
    # What is watched must be served; the operator installs the rest.
    read = {each.group_resource for each in made.watch.reads}
    await installing.install(site.client, [kind for kind in kinds.ALL if kind.crd_name in read])
    connection = connect(site.kubeconfig)
    manager = build_manager(
        connection.transport,
        controllers=cluster.controllers() if own else (simulation.controller(),),
        components=(*cluster.components(), made.watch) if own else components,
        now=lambda: datetime.now(UTC),
        settings=Settings() if own else Settings(namespaces=(site.namespace, LEASE_NAMESPACE)),
    )
    running = asyncio.create_task(manager.run())
    try:
        for resource, manifest in cluster.default_objects() if own else ():
            await site.client.apply(resource, manifest)
        for name in fleet.names:
            await site.eventually(partial(_usable, site, name), f"the node {name} is there")
        yield made
    finally:
        try:
            if not own:
                await _removed(site, fleet, label)
        finally:
            made.close()
            manager.stop()
            await asyncio.wait({running}, timeout=PATIENCE)
            await connection.client.close()


async def _usable(site: Site, name: str) -> bool:
    """Whether a node is there; the taint that it has until a node controller sees it is removed."""
    try:
        node = (await site.client.get(NODES, Key("", name))).wire()
    except NotFound:
        return False
    taints = node["spec"].get("taints") or []
    if any(taint["key"] == NOT_READY for taint in taints):
        rest = [taint for taint in taints if taint["key"] != NOT_READY]
        await site.client.patch(NODES, Key("", name), {"spec": {"taints": rest}})
    return True


async def _removed(site: Site, fleet: Fleet, label: str) -> None:
    """Delete the namespace while operators and nodes are there to let go of what is in it, then nodes and volumes."""
    key = Key("", site.namespace)
    try:
        await site.client.delete(NAMESPACES, key)
        await waiting.until(site.client, NAMESPACES, key, lambda found: found is None, timeout=PATIENCE)
    finally:
        for volume in (await site.client.list(VOLUMES)).objects:
            if label in volume.meta.labels:
                await site.client.delete(VOLUMES, volume.key)
        for name in fleet.names:
            for resource, node in ((NODES, Key("", name)), (LEASES, Key(LEASE_NAMESPACE, name))):
                with suppress(NotFound):
                    await site.client.delete(resource, node)
