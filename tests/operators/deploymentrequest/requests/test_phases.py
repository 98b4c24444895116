"""The phases of a request, as a user sees them: from a model to a deployment that serves."""

from __future__ import annotations

from typing import Any

import pytest
from tests.operators.deploymentrequest.requests.stories import (
    Cluster,
    Phases,
    answer,
    condition,
    graph_is,
    job_runs,
    play_story,
    reports,
    request,
    status_of,
    succeeds,
)

from holdfast.client.resources import CONFIG_MAPS
from holdfast.meta import times
from holdfast.meta.errors import Invalid
from holdfast.operators.deploymentrequest.requests import names
from holdfast.operators.deploymentrequest.requests.observe import REQUESTS


def test_a_request_is_profiled_and_deployed() -> None:
    async def story(cluster: Cluster, phases: Phases) -> None:
        await cluster.create(REQUESTS, request())
        status = await status_of(cluster)
        assert status["phase"] == "Profiling"
        assert (status["profilingJobName"], status["profilingPhase"]) == ("profile-qwen", "Initializing")
        await job_runs(cluster)
        await reports(cluster, phase="SweepingPrefill", message="evaluating tp 1", progress="3 of 7")
        status = await status_of(cluster)
        assert status["profilingPhase"] == "SweepingPrefill"
        assert status["profilingProgress"] == {"done": 3, "total": 7}
        assert condition(status, "Profiling")["message"] == "evaluating tp 1 (3 of 7)"
        await succeeds(cluster)
        status = await status_of(cluster)
        assert status["phase"] == "Deploying"
        assert "profilingPhase" not in status
        assert status["dgdName"] == "qwen-dgd"
        await graph_is(cluster, "pending", available=1)
        assert (await status_of(cluster))["phase"] == "Deploying"
        await graph_is(cluster, "successful")
        status = await status_of(cluster)
        assert answer(status, "Succeeded") == ("True", "Deployed")
        assert phases.of() == ["Pending", "Profiling", "Deploying", "Deployed"]

    play_story(story)


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({"sla": {"ttft": -1}}, "spec.sla.ttft"),
        ({"sla": {"ttft": 10, "e2eLatency": 10}}, "give e2eLatency, or ttft and itl, not both"),
        ({"workload": {"concurrency": 1, "requestRate": 1}}, "give the load as concurrency or as requestRate"),
        ({"workload": {"isl": 0}}, "spec.workload.isl"),
        ({"hardware": {"gpuSku": "h2000"}}, "spec.hardware.gpuSku"),
        ({"hardware": {"totalGpus": -8}}, "spec.hardware.totalGpus"),
        ({"model": ""}, "spec.model"),
        ({"backend": "auto", "searchStrategy": "thorough"}, "name the backend instead of auto"),
    ],
)
def test_bad_input_is_refused_when_it_is_applied(spec: dict[str, Any], message: str) -> None:
    async def story(cluster: Cluster, phases: Phases) -> None:
        with pytest.raises(Invalid) as refused:
            await cluster.create(REQUESTS, request(**spec))
        assert message in str(refused.value)

    play_story(story)


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({"modelCache": {"pvcModelPath": "a"}}, "spec.modelCache.pvcName: name the PersistentVolumeClaim"),
        ({"modelCache": {"pvcName": "a", "pvcMountPath": "b"}}, "spec.modelCache.pvcMountPath: 'b' is not absolute"),
        (
            {"modelCache": {"pvcName": "a", "pvcModelPath": "../b"}},
            "spec.modelCache.pvcModelPath: it leaves",
        ),
    ],
)
def test_what_the_schema_cannot_say_is_said_by_the_validation(spec: dict[str, Any], message: str) -> None:
    async def story(cluster: Cluster, phases: Phases) -> None:
        await cluster.create(REQUESTS, request(**spec))
        status = await status_of(cluster)
        assert (status["phase"], answer(status, "Validation")) == ("Failed", ("False", "ValidationFailed"))
        assert message in condition(status, "Validation")["message"]
        # A correction is another attempt.
        await cluster.patch(REQUESTS, "qwen", {"spec": {"modelCache": None}})
        assert (await status_of(cluster))["phase"] == "Profiling"

    play_story(story)


def test_a_name_that_is_too_long_for_a_job_is_said() -> None:
    async def story(cluster: Cluster, phases: Phases) -> None:
        await cluster.create(REQUESTS, request("q" * 60))
        status = await status_of(cluster, "q" * 60)
        assert "metadata.name: it has 60 characters" in condition(status, "Validation")["message"]

    play_story(story)


def test_a_profiler_that_falls_silent_is_said() -> None:
    async def story(cluster: Cluster, phases: Phases) -> None:
        await cluster.create(REQUESTS, request())
        await job_runs(cluster)
        await reports(cluster, phase="SweepingPrefill", heartbeat=times.format(cluster.now()))
        await cluster.advance(100)
        assert "has not reported" not in condition(await status_of(cluster), "Profiling")["message"]
        await cluster.advance(30)
        assert "the profiler has not reported since" in condition(await status_of(cluster), "Profiling")["message"]
        await reports(cluster, phase="SweepingPrefill", heartbeat=times.format(cluster.now()))
        assert "has not reported" not in condition(await status_of(cluster), "Profiling")["message"]

    play_story(story)


def test_an_output_that_is_deleted_is_made_again() -> None:
    async def story(cluster: Cluster, phases: Phases) -> None:
        await cluster.create(REQUESTS, request())
        await job_runs(cluster)
        before = await cluster.get(CONFIG_MAPS, names.output("qwen"))
        await cluster.delete(CONFIG_MAPS, names.output("qwen"))
        await cluster.settle()
        again = await cluster.get(CONFIG_MAPS, names.output("qwen"))
        assert again["metadata"]["uid"] != before["metadata"]["uid"]
        assert again["data"] == before["data"]

    play_story(story)
