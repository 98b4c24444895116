"""Why a Tenant is not ready: its status names the server, the cause and what to do, and says nothing that is not so."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping
from typing import Any

import pytest
from tests.operators.tenant.stories import (
    IMAGE,
    NEWER,
    answer,
    condition,
    play_story,
    pool,
    reaches,
    servers,
    states,
    status_of,
    tenant,
    to_image,
)

from holdfast.client.objects import Object
from holdfast.client.protocols import Client
from holdfast.client.resources import CONFIG_MAPS, EVENTS, PODS, SECRETS, SERVICES, STATEFUL_SETS, Resource
from holdfast.cluster.simulation import chaos
from holdfast.meta.errors import Invalid
from holdfast.operators.tenant.controller import CONTROLLERS
from holdfast.operators.tenant.observe import TENANTS
from holdfast.operators.tenant.security import ACKNOWLEDGED
from holdfast.runtime.manager import Manager, Settings
from holdfast.testing.clusters import Cluster, connected
from holdfast.testing.faults import Fault, Faulty

BROKEN = "rustfs/rustfs:broken"
RUN = {ACKNOWLEDGED: BROKEN}


async def message(cluster: Cluster, type: str) -> str:
    found = condition(await status_of(cluster), type)
    assert found is not None
    return str(found["message"])


@pytest.mark.parametrize(
    ("made", "reason", "cause", "remedy"),
    [
        (tenant(image=BROKEN, annotations=RUN), "ImagePullFailed", "container rustfs: ", "correct the image"),
        (tenant(annotations={"sim.holdfast.dev/crash-after": "1s"}), "CrashLoop", "exit code 1", "kubectl logs"),
        (
            tenant(annotations={"sim.holdfast.dev/never-ready": "true"}),
            "ProbeFailing",
            "its readiness probe has not succeeded",
            "see its logs and its probes",
        ),
        (
            tenant("store", pool(nodeSelector={"disk": "fast"})),
            "Unschedulable",
            "cannot be scheduled: 0/4 nodes",
            "add capacity, or ask for less",
        ),
    ],
)
def test_a_server_that_cannot_become_ready_is_named_with_the_cause_and_what_to_do(
    made: dict[str, Any], reason: str, cause: str, remedy: str
) -> None:
    async def story(cluster: Cluster) -> None:
        await cluster.create(TENANTS, made)

        async def explained() -> bool:
            return answer(await status_of(cluster), "Ready") == ("False", reason)

        await cluster.until(explained, within=120)
        status = await status_of(cluster)
        assert answer(status, "PoolsReady") == ("False", "PoolDegraded")
        for type in ("Ready", "PoolsReady", "WorkloadsReady"):
            said = await message(cluster, type)
            assert re.search(r"; pod store-pool-0-\d( \(and \d more\))?: ", said), type
            assert remedy in said, type
            assert cause in said, type
        await cluster.settle()
        events = [each for each in await cluster.list(EVENTS) if each["involvedObject"]["kind"] == "Tenant"]
        assert [each["type"] for each in events if each["reason"] == reason] == ["Warning"]

    play_story(story)


def test_a_rollout_to_an_image_that_cannot_be_pulled_says_so_before_and_after_its_deadline() -> None:
    async def story(cluster: Cluster) -> None:
        await cluster.create(TENANTS, tenant("store", pool(progressDeadline="2m"), image=IMAGE, annotations=RUN))
        await reaches(cluster, "Ready")
        await to_image(cluster, BROKEN)

        async def pulls() -> bool:
            return answer(await status_of(cluster), "Ready") == ("False", "ImagePullFailed")

        await cluster.until(pulls, within=60)
        status = await status_of(cluster)
        assert status["currentState"] == "Reconciling"
        assert answer(status, "WorkloadsReady") == ("False", "RolloutInProgress")
        assert "pod store-pool-0-3: container rustfs: " in await message(cluster, "WorkloadsReady")
        status = await reaches(cluster, "Degraded", within=300)
        assert states(status) == ["PoolRolloutFailed"]
        assert answer(status, "Ready") == ("False", "ImagePullFailed")
        assert answer(status, "PoolsReady") == ("False", "RolloutFailed")
        said = await message(cluster, "PoolsReady")
        assert said.endswith("correct the image or its pull secret; if the new revision causes it, correct the spec")
        await cluster.settle()
        assert "RolloutFailed" in [each["reason"] for each in await cluster.list(EVENTS)]

    play_story(story)


def test_a_rollout_that_goes_on_gives_no_reason_of_a_single_server() -> None:
    async def story(cluster: Cluster) -> None:
        await cluster.create(TENANTS, tenant(image=IMAGE))
        await reaches(cluster, "Ready")
        seen: set[str] = set()
        await to_image(cluster, NEWER)

        async def ends() -> bool:
            status = await status_of(cluster)
            seen.add((condition(status, "Ready") or {"reason": ""})["reason"])
            return bool(status["currentState"] == "Ready" and status["observedGeneration"] == 2)

        await cluster.until(ends, step=0.05)
        assert seen <= {"ReconcileSucceeded", "RolloutInProgress", "PoolDegraded"}

    play_story(story)


# --- what is blocked


def test_a_new_tenant_that_is_blocked_does_not_say_that_a_rollout_is_in_progress() -> None:
    async def story(cluster: Cluster) -> None:
        await cluster.create(TENANTS, tenant(credsSecret={"name": "root"}))
        status = await reaches(cluster, "Blocked")
        assert answer(status, "WorkloadsReady") == ("False", "CredentialSecretNotFound")
        assert "0 of 4 servers ready, and none is created or replaced before this ends" in await message(
            cluster, "WorkloadsReady"
        )
        assert "RolloutInProgress" not in [each["reason"] for each in status["conditions"]]
        assert await cluster.list(STATEFUL_SETS) == []

    play_story(story)


def test_a_tenant_that_is_blocked_while_all_servers_are_ready_says_that_they_are() -> None:
    async def story(cluster: Cluster) -> None:
        await cluster.create(TENANTS, tenant(image=IMAGE))
        await reaches(cluster, "Ready")
        await cluster.patch(TENANTS, "store", {"spec": {"credsSecret": {"name": "root"}}})
        status = await reaches(cluster, "Blocked")
        assert answer(status, "WorkloadsReady") == ("True", "WorkloadsReady")

    play_story(story)


def test_a_rollout_does_not_fail_while_the_tenant_is_blocked() -> None:
    async def story(cluster: Cluster) -> None:
        keys = {"accesskey": "MDEyMzQ1Njc4OQ==", "secretkey": "YWJjZGVmZ2g="}
        root = {"metadata": {"name": "root"}, "type": "Opaque", "data": keys}
        await cluster.create(SECRETS, root)
        made = tenant("store", pool(progressDeadline="2m"), image=IMAGE, credsSecret={"name": "root"})
        await cluster.create(TENANTS, made)
        await reaches(cluster, "Ready")
        await to_image(cluster, NEWER, never_ready="true")
        await cluster.advance(30)
        await cluster.delete(SECRETS, "root")
        await reaches(cluster, "Blocked")
        await cluster.advance(600)
        status = await status_of(cluster)
        assert states(status) == ["PoolUpdating"]
        assert answer(status, "PoolsReady") == ("True", "PoolsReady")
        assert answer(status, "WorkloadsReady") == ("False", "CredentialSecretNotFound")
        await cluster.create(SECRETS, root)
        await cluster.advance(60)
        assert states(await status_of(cluster)) == ["PoolUpdating"], "its time starts over"
        status = await reaches(cluster, "Degraded", within=120)
        assert states(status) == ["PoolRolloutFailed"]

    play_story(story)


# --- nodes


def test_a_server_that_is_being_deleted_on_a_node_that_does_not_report_is_named() -> None:
    async def story(cluster: Cluster) -> None:
        await cluster.create(TENANTS, tenant("store", pool(servers=2)))
        await reaches(cluster, "Ready")
        victim = (await servers(cluster))[0]
        name, host = victim["metadata"]["name"], victim["spec"]["nodeName"]
        fault = chaos.NodeDown(since=cluster.now(), nodes=(host,))
        place = {"metadata": {"name": chaos.PLACE.name, "namespace": chaos.PLACE.namespace}}
        await cluster.create(CONFIG_MAPS, place | {"data": {"down": chaos.written(fault)}})

        async def lost() -> bool:
            return answer(await status_of(cluster), "Ready") == ("False", "NodeLost")

        await cluster.until(lost, within=120, step=5)
        assert f"pod {name}: its node {host} does not report" in await message(cluster, "Ready")
        await cluster.delete(PODS, name)
        await cluster.advance(60)
        assert await lost()
        for type in ("Ready", "WorkloadsReady"):
            said = await message(cluster, type)
            assert f"pod {name}: is being deleted since " in said
            assert f"and its node {host} does not report; bring the node back, or delete it once" in said

    play_story(story)


# --- what the API server refuses

TWO = {"exec": {"command": ["true"]}, "sleep": {"seconds": 1}}
SOURCES = {"secretKeyRef": {"name": "s", "key": "k"}, "configMapKeyRef": {"name": "c", "key": "k"}}


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({"pools": [pool(resources={"requests": {"cpu": "2"}, "limits": {"cpu": "1"}})]}, "resources.requests"),
        ({"pools": [pool(tolerations=[{"key": "a", "effect": "Never"}])]}, "effect"),
        ({"pools": [pool(nodeSelector={"disk": "very fast"})]}, "nodeSelector"),
        ({"env": [{"name": "A", "valueFrom": SOURCES}]}, "valueFrom"),
        ({"env": [{"name": "A=B", "value": "1"}]}, "env[4].name"),
        ({"lifecycle": {"preStop": TWO}}, "lifecycle.preStop"),
        ({"priorityClassName": "Not A Name"}, "priorityClassName"),
    ],
)
def test_a_value_that_no_pod_can_have_is_reported_and_costs_no_server(spec: dict[str, Any], field: str) -> None:
    async def story(cluster: Cluster) -> None:
        await cluster.create(TENANTS, tenant())
        await reaches(cluster, "Ready")
        before = {pod["metadata"]["uid"] for pod in await servers(cluster)}
        await cluster.patch(TENANTS, "store", {"spec": spec})
        status = await reaches(cluster, "Degraded")
        await cluster.advance(120)
        assert {pod["metadata"]["uid"] for pod in await servers(cluster)} == before
        assert answer(status, "WorkloadsReady") == ("False", "StatefulSetApplyFailed")
        said = await message(cluster, "Ready")
        assert "store-pool-0" in said or "pool pool-0" in said
        assert field in said
        assert said.endswith("; correct the spec")
        undone: dict[str, Any] = dict.fromkeys(spec) | ({"pools": [pool()]} if "pools" in spec else {})
        await cluster.patch(TENANTS, "store", {"spec": undone})
        await reaches(cluster, "Ready")

    play_story(story)


class RefusesService(Faulty):
    """A client whose server refuses one Service."""

    def __init__(self, client: Client, name: str) -> None:
        super().__init__(client, Fault())
        self._name = name

    async def apply(self, resource: Resource, manifest: Mapping[str, Any], **options: Any) -> Object:
        if resource == SERVICES and manifest["metadata"]["name"] == self._name:
            raise Invalid(f'Service "{self._name}" is invalid: spec.ports: Forbidden')
        return await super().apply(resource, manifest, **options)


def test_a_service_that_the_api_server_refuses_is_named_and_keeps_no_server_from_running() -> None:
    async def story(cluster: Cluster) -> None:
        client = RefusesService(connected(cluster.server), "store-console")
        manager = Manager(client, controllers=CONTROLLERS, now=cluster.now, settings=Settings(), seed=1)
        working = asyncio.create_task(manager.run())
        try:
            await cluster.create(TENANTS, tenant())
            await cluster.until(lambda: all_ready(cluster))
            status = await reaches(cluster, "Degraded")
            assert answer(status, "WorkloadsReady") == ("False", "StatefulSetApplyFailed")
            assert "Service default/store-console: " in await message(cluster, "Ready")
            assert "spec.ports: Forbidden" in await message(cluster, "Ready")
            assert await cluster.find(SERVICES, "store-io") is not None
            await cluster.delete(STATEFUL_SETS, "store-pool-0")
            await cluster.until(lambda: all_ready(cluster))
        finally:
            working.cancel()
            await asyncio.gather(working, return_exceptions=True)

    play_story(story, operated=False)


def test_a_service_of_another_owner_is_named_and_keeps_no_server_from_running() -> None:
    async def story(cluster: Cluster) -> None:
        await cluster.create(SERVICES, {"metadata": {"name": "store-io"}, "spec": {"ports": [{"port": 1}]}})
        await cluster.create(TENANTS, tenant())
        await cluster.until(lambda: all_ready(cluster))
        status = await reaches(cluster, "Blocked")
        assert answer(status, "Ready") == ("False", "ChildConflict")
        assert "Service default/store-io exists and no controller owns it" in await message(cluster, "Ready")

    play_story(story)


async def all_ready(cluster: Cluster) -> bool:
    found = await cluster.find(STATEFUL_SETS, "store-pool-0")
    return found is not None and (found.get("status") or {}).get("readyReplicas") == 4
