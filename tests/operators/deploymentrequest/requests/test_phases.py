"""The phases of a request, as a user sees them: from a model to a deployment that serves."""

from __future__ import annotations

from tests.operators.deploymentrequest.requests.stories import (
    Cluster,
    Phases,
    answer,
    condition,
    graph_is,
    job_runs,
    reports,
    request,
    status_of,
    succeeds,
    told,
)

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

    told(story)
