"""``kubectl drain`` against a whole cluster: the node with all replicas is emptied, and every floor holds."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from tests.clusters import up

from holdfast.client import waiting
from holdfast.client.api import ApiClient
from holdfast.client.kubeconfig import connect
from holdfast.client.objects import Object
from holdfast.client.pods import Pod
from holdfast.client.protocols import Bookmark, Deleted
from holdfast.client.resources import NODES, PODS
from holdfast.meta.objects import Key
from holdfast.operators.workload.observe import WORKLOADS
from holdfast.operators.workload.render import WORKLOAD

KUBECTL = shutil.which("kubectl")
PATIENCE = 60.0

FLOORS = {
    "some": ({"minAvailable": 5}, 5),
    "surging": ({"minAvailable": 6}, 6),
    "strict": ({"minAvailable": 6, "maxSurge": 0}, 5),
}
"""Workloads by name: the rollout, and how many of six replicas must stay ready."""


class Lowest:
    """The fewest ready replicas of each Workload, pod event by pod event, since `begin`."""

    def __init__(self) -> None:
        self._pods: dict[Key, Object] = {}
        self.seen: dict[str, int] = {}

    def begin(self) -> None:
        self.seen = self._ready()

    async def watch(self, client: ApiClient) -> None:
        async with client.watch(PODS, initial=True) as events:
            async for event in events:
                if isinstance(event, Bookmark):
                    continue
                if isinstance(event, Deleted):
                    self._pods.pop(event.object.key, None)
                else:
                    self._pods[event.object.key] = event.object
                for name, ready in self._ready().items():
                    self.seen[name] = min(self.seen.get(name, 0), ready)

    def _ready(self) -> dict[str, int]:
        serving = [
            pod.meta.labels.get(WORKLOAD) for pod in self._pods.values() if not pod.deleting and Pod.of(pod).ready
        ]
        return {name: serving.count(name) for name in FLOORS}


def completed(obj: Object | None) -> bool:
    status: dict[str, Any] = {} if obj is None else obj.wire().get("status", {})
    return bool(status.get("phase") == "Completed")


@pytest.mark.skipif(KUBECTL is None, reason="kubectl is not installed")
def test_kubectl_drain_keeps_every_floor_and_ends() -> None:
    async def story(client: ApiClient, kubeconfig: Path) -> None:
        lowest = Lowest()
        watching = asyncio.create_task(lowest.watch(client))
        await client.patch(NODES, Key("", "node-2"), {"spec": {"unschedulable": True}})
        for name, (rollout, _) in FLOORS.items():
            manifest = {
                "metadata": {"name": name, "namespace": "default"},
                "spec": {"image": "shop:1", "replicas": 6, "rollout": rollout},
            }
            await client.create(WORKLOADS, manifest)
        for name in FLOORS:
            await waiting.until(client, WORKLOADS, Key("default", name), completed, timeout=PATIENCE)
        await client.patch(NODES, Key("", "node-2"), {"spec": {"unschedulable": False}})
        lowest.begin()
        assert set(lowest.seen.values()) == {6}
        assert KUBECTL is not None
        drain = await asyncio.create_subprocess_exec(
            KUBECTL,
            *("drain", "node-1", "--timeout=120s"),
            env={**os.environ, "KUBECONFIG": str(kubeconfig)},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        output, _ = await drain.communicate()
        assert drain.returncode == 0, output.decode()
        for name in FLOORS:
            await waiting.until(client, WORKLOADS, Key("default", name), completed, timeout=PATIENCE)
        assert {name: floor <= lowest.seen[name] for name, (_, floor) in FLOORS.items()} == dict.fromkeys(FLOORS, True)
        watching.cancel()
        with suppress(asyncio.CancelledError):
            await watching
        assert {Pod.of(pod).spec.node_name for pod in (await client.list(PODS)).objects} == {"node-2"}

    async def played(kubeconfig: Path) -> None:
        client = connect(kubeconfig).client
        try:
            await story(client, kubeconfig)
        finally:
            await client.close()

    with up("--nodes", "2") as kubeconfig:
        asyncio.run(played(kubeconfig))
