"""The contract: whatever fails once on the way, a request ends the same."""

from __future__ import annotations

import dataclasses
import os
from typing import Any

import msgspec
import pytest
from tests.operators.deploymentrequest.requests.stories import NAME, RESULT, Cluster, final_config, gpu_node, request

from holdfast.client.resources import CONFIG_MAPS, JOBS, NODES
from holdfast.cluster.controllers.gc.collector import GarbageCollector
from holdfast.kinds.nvidia import KINDS
from holdfast.meta import times
from holdfast.operators.deploymentrequest.requests import names
from holdfast.operators.deploymentrequest.requests.controller import CONTROLLERS
from holdfast.operators.deploymentrequest.requests.observe import GRAPHS, REQUESTS
from holdfast.testing.clusters import play
from holdfast.testing.contract import FAULTS, Scenario, check, check_deletion, check_second_look
from holdfast.testing.wakeups import check_wakeups


async def phase(cluster: Cluster) -> str:
    status: dict[str, Any] = (await cluster.get(REQUESTS, NAME)).get("status") or {}
    return str(status.get("phase"))


async def planned(cluster: Cluster) -> None:
    """A request is profiled and deployed, with a ConfigMap that goes with its deployment."""
    planner = {"kind": "ConfigMap", "metadata": {"name": "planner"}, "data": {"a": "1"}}
    await story(cluster, planner)
    await cluster.until(lambda: cluster.find(CONFIG_MAPS, "planner"), step=1)


async def story(cluster: Cluster, *others: dict[str, Any]) -> None:
    """A request is profiled and deployed."""
    await cluster.create(NODES, gpu_node())
    await cluster.create(REQUESTS, request())

    async def profiled() -> bool:
        return await phase(cluster) == "Profiling" and await cluster.find(CONFIG_MAPS, names.output(NAME)) is not None

    await cluster.until(profiled, step=1)
    output = {
        "phase": "Done",
        "profiler_status": "success",
        "final_config.yaml": final_config(*others),
        "result.json": msgspec.json.encode(RESULT).decode(),
    }
    await cluster.patch(CONFIG_MAPS, names.output(NAME), {"data": output})
    now = times.format(cluster.now())
    done = {"type": "Complete", "status": "True", "lastTransitionTime": now}
    status = {"startTime": now, "completionTime": now, "conditions": [{**done, "type": "SuccessCriteriaMet"}, done]}
    await cluster.patch(JOBS, names.job(NAME), {"status": status}, subresource="status")

    async def created() -> bool:
        return await cluster.find(GRAPHS, f"{NAME}-dgd") is not None

    await cluster.until(created, step=1)
    component = {"componentKind": "PodClique", "replicas": 3, "readyReplicas": 3}
    await cluster.patch(
        GRAPHS,
        f"{NAME}-dgd",
        {"status": {"state": "successful", "observedGeneration": 1, "components": {"worker": component}}},
        subresource="status",
    )

    async def deployed() -> bool:
        return await phase(cluster) == "Deployed"

    await cluster.until(deployed, step=1)


SCENARIO = Scenario(
    name="a request that is deployed",
    controllers=CONTROLLERS,
    story=planned,
    kinds=KINDS,
    patience=30,
    # The label and the annotation of the deployment have the identity of the request.
    ignored=frozenset({names.REQUEST_UID, "request.json"}),
)


EVERY = {} if os.environ.get("HOLDFAST_WHOLE_CONTRACT") else {"losing any change": 3, "any write refused": 2}
"""Of these faults only one in so many is tried; HOLDFAST_WHOLE_CONTRACT=1 tries all."""


@pytest.mark.parametrize("faults", FAULTS)
def test_the_contract_holds(faults: str) -> None:
    check(SCENARIO, faults, every=EVERY.get(faults, 1))


def test_a_second_look_writes_nothing() -> None:
    check_second_look(SCENARIO)


def test_a_request_that_is_deleted_leaves_its_deployment_and_nothing_else() -> None:
    without_planner = dataclasses.replace(SCENARIO, story=story, deleted=(REQUESTS, NAME))
    check_deletion(without_planner, components=lambda: (GarbageCollector(),))


def test_what_a_request_reads_wakes_it() -> None:
    check_wakeups(SCENARIO)


def test_a_config_map_of_the_deployment_that_is_deleted_is_created_again() -> None:
    async def restored(cluster: Cluster) -> None:
        await planned(cluster)
        await cluster.delete(CONFIG_MAPS, "planner")
        await cluster.settle()
        assert await cluster.find(CONFIG_MAPS, "planner") is not None

    play(restored, controllers=CONTROLLERS, kinds=KINDS)
