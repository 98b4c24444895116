"""Every row of the transition table, on an API server; and every kind of failure.

`play_story` raises where a phase follows another one that the table does not have.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import cache

import pytest
from tests.operators.deploymentrequest.requests.stories import (
    GRAPH,
    NAME,
    Cluster,
    Phases,
    answer,
    condition,
    final_config,
    graph_is,
    job_ends,
    job_runs,
    play_story,
    point,
    reports,
    request,
    status_of,
    succeeds,
    until_deployed,
)

from holdfast.client.protocols import Scope
from holdfast.client.resources import CLAIMS, CONFIG_MAPS, EVENTS, JOBS, NODES, PODS, Resource
from holdfast.kernel.phases import IllegalTransition
from holdfast.meta.errors import Invalid
from holdfast.meta.objects import Key
from holdfast.operators.deploymentrequest.requests import names
from holdfast.operators.deploymentrequest.requests.observe import GRAPHS, REQUESTS
from holdfast.operators.deploymentrequest.requests.reasons import TERMINAL, RequestReason
from holdfast.operators.deploymentrequest.requests.status import SUCCEEDED_BY_PHASE
from holdfast.operators.deploymentrequest.requests.transitions import PHASES, TABLE, TRANSITIONS, Phase
from holdfast.profiler.results import Result

Story = Callable[[Cluster, Phases], Awaitable[None]]
RETRY = {"metadata": {"annotations": {names.RETRY: "2026-01-01T00:00:00Z"}}}


async def events(cluster: Cluster) -> list[str]:
    found = await cluster.client.list(EVENTS, Scope(namespace="default"))
    return [each.wire()["reason"] for each in found.objects]


async def g1_and_g2(cluster: Cluster, phases: Phases) -> None:
    await cluster.create(REQUESTS, {**request(), "metadata": {"name": NAME, "finalizers": ["test/hold"]}})
    await cluster.settle()
    await cluster.delete(REQUESTS, NAME)
    await cluster.settle()
    before = await cluster.get(REQUESTS, NAME)
    await reports(cluster, phase="SweepingPrefill")
    assert await cluster.get(REQUESTS, NAME) == before
    await cluster.patch(REQUESTS, NAME, {"metadata": {"finalizers": None}})
    await cluster.settle()
    assert await cluster.find(REQUESTS, NAME) is None


async def g3_the_change_of_a_retry_is_ignored_at_work(cluster: Cluster, phases: Phases) -> None:
    await until_deployed(cluster)
    # The rules of the kind refuse a changed spec; a retry is an annotation, which nothing refuses.
    with pytest.raises(Invalid, match="spec cannot change while the request is at work"):
        await cluster.patch(REQUESTS, NAME, {"spec": {"model": "another"}})
    await cluster.patch(REQUESTS, NAME, RETRY)
    status = await status_of(cluster)
    assert answer(status, "Validation") == ("False", "SpecChangeRejected")
    assert (status["phase"], answer(status, "Succeeded")) == ("Deployed", ("True", "Deployed"))
    # The work goes on, and undoing the change ends the complaint.
    await graph_is(cluster, "successful", available=4, replicas=4)
    assert (await status_of(cluster))["deploymentInfo"]["availableReplicas"] == 4
    await cluster.patch(REQUESTS, NAME, {"metadata": {"annotations": {names.RETRY: None}}})
    assert answer(await status_of(cluster), "Validation") == ("True", "ValidationPassed")


async def t1_to_t5(cluster: Cluster, phases: Phases) -> None:
    await cluster.delete(NODES, "node-1")
    await cluster.create(REQUESTS, request())
    status = await status_of(cluster)
    assert (status["phase"], status["observedGeneration"]) == ("Pending", 1)
    assert answer(status, "Validation") == ("True", "ValidationPassed")
    assert answer(status, "Profiling") == ("False", "DiscoveringHardware")
    assert "no node has the resource nvidia.com/gpu" in condition(status, "Succeeded")["message"]
    assert await cluster.find(JOBS, names.job(NAME)) is None
    node = {"metadata": {"name": "late", "labels": {"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3"}}}
    await cluster.create(NODES, {**node, "status": {"allocatable": {"nvidia.com/gpu": "4"}}})
    status = await status_of(cluster)
    assert status["phase"] == "Profiling"
    assert status["hardware"] == {"gpuSku": "h100_sxm", "totalGpus": 4, "numGpusPerNode": 4}
    assert "hardware" not in (await cluster.get(REQUESTS, NAME))["spec"]
    assert phases.rows == ["T1", "T3", "T4", "T5", "T10"]
    assert {"Initialized", "ProfilingJobCreated"} <= set(await events(cluster))


async def t2_an_invalid_spec(cluster: Cluster, phases: Phases) -> None:
    foreign = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "x"}}
    await cluster.create(REQUESTS, request(overrides={"dgd": foreign}))
    status = await status_of(cluster)
    assert answer(status, "Succeeded") == ("False", "Failed")
    message = condition(status, "Validation")["message"]
    assert "spec.overrides.dgd.kind: it is 'Deployment'; write DynamoGraphDeployment" in message
    assert condition(status, "Succeeded")["message"] == f"Validation failed: {message}"
    assert await events(cluster) == ["ValidationFailed"]


async def t3_the_volume_of_the_model_is_awaited(cluster: Cluster, phases: Phases) -> None:
    await cluster.create(REQUESTS, request(modelCache={"pvcName": "cache"}))
    status = await status_of(cluster)
    assert (status["phase"], answer(status, "Validation")) == ("Pending", ("False", "ModelCacheNotFound"))
    assert "create it, or correct the name" in condition(status, "Succeeded")["message"]
    claim = {"spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}
    await cluster.create(CLAIMS, {"metadata": {"name": "cache"}, **claim})
    assert (await status_of(cluster))["phase"] == "Profiling"


async def t4_another_owner_of_the_jobs_name_is_waited_for(cluster: Cluster, phases: Phases) -> None:
    pod = {"restartPolicy": "Never", "containers": [{"name": "a", "image": "a"}]}
    await cluster.create(JOBS, {"metadata": {"name": names.job(NAME)}, "spec": {"template": {"spec": pod}}})
    await cluster.create(REQUESTS, request())
    status = await status_of(cluster)
    assert (status["phase"], answer(status, "Profiling")) == ("Pending", ("False", "JobNameConflict"))
    await cluster.delete(JOBS, names.job(NAME), propagation="Background")
    assert (await status_of(cluster))["phase"] == "Profiling"


async def t6_a_job_that_is_refused(cluster: Cluster, phases: Phases) -> None:
    await cluster.create(REQUESTS, request(overrides={"profilingJob": {"activeDeadlineSeconds": -5}}))
    status = await status_of(cluster)
    assert (status["phase"], answer(status, "Profiling")) == ("Failed", ("False", "JobCreationFailed"))
    assert answer(status, "Succeeded") == ("False", "Failed")
    assert "activeDeadlineSeconds" in condition(status, "Succeeded")["message"]


async def t7_to_t10(cluster: Cluster, phases: Phases) -> None:
    await cluster.create(REQUESTS, request())
    assert answer(await status_of(cluster), "Profiling") == ("False", "Initializing")
    await job_runs(cluster)
    assert answer(await status_of(cluster), "Profiling") == ("False", "ProfilingRunning")
    for phase in ("SweepingPrefill", "SweepingDecode", "SelectingConfig", "BuildingCurves", "GeneratingDGD"):
        await reports(cluster, phase=phase, message="working")
        status = await status_of(cluster)
        assert (status["profilingPhase"], answer(status, "Profiling")) == (phase, ("False", phase))
        assert answer(status, "Succeeded") == ("False", "Profiling")
    await reports(cluster, phase="Dreaming")
    status = await status_of(cluster)
    assert (status["phase"], status["profilingPhase"]) == ("Profiling", "GeneratingDGD")
    assert "'Dreaming'" in condition(status, "Profiling")["message"]
    assert phases.rows[-4:] == ["T10", "T9", "T7", "T8"]


async def t11_the_profiler_crashes(cluster: Cluster, phases: Phases) -> None:
    await cluster.create(REQUESTS, request())
    await job_runs(cluster)
    await reports(cluster, phase="SweepingDecode")
    await job_ends(cluster, "Failed", reason="BackoffLimitExceeded", message="Job has reached the backoff limit")
    assert (await status_of(cluster))["phase"] == "Profiling"
    await cluster.advance(6)
    status = await status_of(cluster)
    assert (status["phase"], answer(status, "Profiling")) == ("Failed", ("False", "SweepingDecodeFailed"))
    assert "Job has reached the backoff limit" in condition(status, "Succeeded")["message"]
    assert "profilingPhase" not in status
    assert "SweepingDecodeFailed" in await events(cluster)


async def t12_the_job_is_deleted(cluster: Cluster, phases: Phases) -> None:
    await cluster.create(REQUESTS, request())
    await job_runs(cluster)
    await cluster.delete(JOBS, names.job(NAME), propagation="Background")
    status = await status_of(cluster)
    assert (status["phase"], answer(status, "Profiling")) == ("Failed", ("False", "JobDeleted"))


async def t12_a_job_that_is_collected_after_its_result_is_no_failure(cluster: Cluster, phases: Phases) -> None:
    await cluster.create(REQUESTS, request(overrides={"profilingJob": {"ttlSecondsAfterFinished": 0}}))
    await job_runs(cluster)
    await cluster.stop()
    await cluster.client.patch(
        CONFIG_MAPS,
        Key("default", names.output(NAME)),
        {"data": {"phase": "Done", "profiler_status": "success", "final_config.yaml": final_config()}},
    )
    await cluster.delete(JOBS, names.job(NAME), propagation="Background")
    await cluster.restart()
    assert (await status_of(cluster))["phase"] == "Deploying"


async def t13_the_profiler_reports_its_failure(cluster: Cluster, phases: Phases) -> None:
    await cluster.create(REQUESTS, request(model="Qwen/Qwen3-0.7B"))
    await job_runs(cluster)
    await job_ends(cluster, "Failed", reason="BackoffLimitExceeded")
    error = "spec.model: there is no model 'Qwen/Qwen3-0.7B'; did you mean Qwen/Qwen3-0.6B?"
    await reports(cluster, phase="Initializing", profiler_status="failed", profiler_error=error)
    status = await status_of(cluster)
    assert (status["phase"], answer(status, "Profiling")) == ("Failed", ("False", "InitializingFailed"))
    assert condition(status, "Succeeded")["message"] == f"Profiling failed: {error}"


async def t13_nothing_meets_the_targets(cluster: Cluster, phases: Phases) -> None:
    await cluster.create(REQUESTS, request(sla={"itl": 8}))
    await job_runs(cluster)
    remedy = "itl 8 ms needs tp 8 or fp8; the best within 8 GPUs is 11.2 ms"
    await succeeds(
        cluster, Result(backend="vllm", chosen=None, closest=point(itl=11.2, met=False), remedy=remedy), config=""
    )
    status = await status_of(cluster)
    assert (status["phase"], answer(status, "Profiling")) == ("Failed", ("False", "NoConfigurationMeetsTargets"))
    assert answer(status, "SLASatisfied") == ("False", "TargetsNotMet")
    said = condition(status, "SLASatisfied")["message"]
    assert said == f"predicted: ttft 778 ms (asked 2,000 ms), itl 11.2 ms (asked 8 ms); {remedy}"
    assert status["profilingResults"]["slaMet"] is False
    assert await cluster.list(GRAPHS) == []


async def t14_and_t15_the_output_is_awaited(cluster: Cluster, phases: Phases) -> None:
    await cluster.create(REQUESTS, request())
    await job_runs(cluster)
    await job_ends(cluster)
    status = await status_of(cluster)
    assert (status["phase"], status["profilingPhase"]) == ("Profiling", "Done")
    await cluster.advance(30)
    await succeeds(cluster)
    assert (await status_of(cluster))["phase"] == "Deploying"


async def d2_the_output_never_comes(cluster: Cluster, phases: Phases) -> None:
    await cluster.create(REQUESTS, request())
    await job_runs(cluster)
    await job_ends(cluster)
    await cluster.advance(61)
    status = await status_of(cluster)
    assert (status["phase"], answer(status, "Profiling")) == ("Failed", ("False", "OutputMissing"))


async def d1_the_deadline_of_the_job(cluster: Cluster, phases: Phases) -> None:
    await cluster.create(REQUESTS, request())
    await job_runs(cluster)
    await job_ends(cluster, "Failed", reason="DeadlineExceeded", message="Job was active longer than allowed")
    await cluster.advance(6)
    status = await status_of(cluster)
    assert (status["phase"], answer(status, "Profiling")) == ("Failed", ("False", "ProfilingDeadlineExceeded"))
    assert "spec.overrides.profilingJob.activeDeadlineSeconds" in condition(status, "Profiling")["message"]


async def d1_a_job_that_nothing_runs(cluster: Cluster, phases: Phases) -> None:
    """No Job controller, and an image that cannot be pulled: the deadline ends it, and the message says why."""
    await cluster.create(REQUESTS, request())
    await cluster.settle()
    job = await cluster.get(JOBS, names.job(NAME))
    template = job["spec"]["template"]
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": names.job(NAME), "uid": job["metadata"]["uid"]}
    metadata = {**template["metadata"], "name": "profile-1", "ownerReferences": [{**owner, "controller": True}]}
    await cluster.create(PODS, {"metadata": metadata, "spec": {**template["spec"], "nodeName": "node-1"}})
    waiting = {"reason": "ImagePullBackOff", "message": "holdfast:1 not found"}
    reported = {"name": "profiler", "state": {"waiting": waiting}, "image": "", "imageID": "", "ready": False}
    status = {"phase": "Pending", "containerStatuses": [{**reported, "restartCount": 0}]}
    await cluster.patch(PODS, "profile-1", {"status": status}, subresource="status")
    found = await status_of(cluster)
    assert (found["phase"], answer(found, "Profiling")) == ("Profiling", ("False", "ProfilerNotStarted"))
    assert "holdfast:1 not found" in condition(found, "Profiling")["message"]
    assert (await events(cluster)).count("ProfilerNotStarted") == 1
    await cluster.advance(700)
    found = await status_of(cluster)
    assert answer(found, "Profiling") == ("False", "ProfilingDeadlineExceeded")
    assert "holdfast:1 not found" in condition(found, "Profiling")["message"]


async def t16_an_output_without_a_deployment(cluster: Cluster, phases: Phases) -> None:
    await cluster.create(REQUESTS, request())
    await job_runs(cluster)
    await succeeds(cluster, config="kind: ConfigMap\nmetadata: {name: x}\n")
    status = await status_of(cluster)
    assert (status["phase"], answer(status, "SpecGenerated")) == ("Failed", ("False", "GenerationFailed"))
    assert condition(status, "Succeeded")["message"].startswith("Spec generation failed: ConfigMap dgdr-output-qwen")
    assert "profilingPhase" not in status


async def t18_to_t29(cluster: Cluster, phases: Phases) -> None:
    await until_deployed(cluster)
    assert phases.of() == ["Pending", "Profiling", "Deploying", "Deployed"]
    assert [row for row in phases.rows if row in ("T18", "T24", "T28", "T31")][:3] == ["T18", "T24", "T28"]
    status = await status_of(cluster)
    results = status["profilingResults"]
    assert (results["predictedTtft"], results["predictedItl"], results["slaMet"]) == (778.0, 28.6, True)
    assert len(results["candidates"]) == 6
    assert len(results["pareto"]) == 2
    assert results["selectedConfig"]["metadata"]["name"] == "qwen-dgd"
    assert status["deploymentInfo"]["replicas"] == status["deploymentInfo"]["availableReplicas"] == 3
    assert answer(status, "SLASatisfied") == ("True", "TargetsMet")
    graph = await cluster.get(GRAPHS, "qwen-dgd")
    uid = (await cluster.get(REQUESTS, NAME))["metadata"]["uid"]
    assert graph["metadata"]["annotations"][names.REQUEST_UID] == uid
    assert graph["metadata"]["labels"][names.NAME] == NAME
    assert "ownerReferences" not in graph["metadata"]
    assert {"SpecGenerated", "DeploymentCreated", "DeploymentReady"} <= set(await events(cluster))
    # What the profiler was allowed is taken back.
    assert await cluster.list(Resource("rbac.authorization.k8s.io", "v1", "roles", "Role")) == []


async def t19_to_t22(cluster: Cluster, phases: Phases) -> None:
    await cluster.create(REQUESTS, request(autoApply=False))
    await job_runs(cluster)
    await succeeds(cluster)
    status = await status_of(cluster)
    assert (status["phase"], status["dgdName"]) == ("Ready", "qwen-dgd")
    assert answer(status, "Succeeded") == ("True", "SpecGenerated")
    assert await cluster.list(GRAPHS) == []
    await cluster.advance(60)
    await cluster.patch(REQUESTS, NAME, {"spec": {"autoApply": True, "runtimeVersionOverride": "1.2.3"}})
    status = await status_of(cluster)
    assert (status["phase"], status["observedGeneration"]) == ("Deploying", 2)
    graph = await cluster.get(GRAPHS, "qwen-dgd")
    assert [each["runtimeVersionOverride"] for each in graph["spec"]["components"]] == ["1.2.3", "1.2.3"]
    assert phases.of() == ["Pending", "Profiling", "Ready", "Deploying"]
    assert phases.rows[-5:] == ["T19", "T20", "T21", "T24", "T29"]


async def t25_a_foreign_deployment(cluster: Cluster, phases: Phases) -> None:
    await cluster.create(GRAPHS, {**GRAPH, "metadata": {"name": "qwen-dgd"}})
    await cluster.create(REQUESTS, request())
    await job_runs(cluster)
    await succeeds(cluster)
    status = await status_of(cluster)
    assert (status["phase"], answer(status, "DeploymentReady")) == ("Failed", ("False", "DeploymentNameConflict"))
    assert "spec.overrides.dgd.metadata.name" in condition(status, "Succeeded")["message"]
    assert names.REQUEST_UID not in (await cluster.get(GRAPHS, "qwen-dgd"))["metadata"].get("annotations", {})
    # Another name in the spec is another attempt.
    override = {"apiVersion": "nvidia.com/v1beta1", "kind": "DynamoGraphDeployment", "metadata": {"name": "mine"}}
    await cluster.patch(REQUESTS, NAME, {"spec": {"overrides": {"dgd": override}}})
    await job_runs(cluster)
    await succeeds(cluster)
    assert (await status_of(cluster))["dgdName"] == "mine"
    assert (await status_of(cluster))["phase"] == "Deploying"


async def t26_a_deployment_that_is_refused(cluster: Cluster, phases: Phases) -> None:
    await cluster.create(REQUESTS, request())
    await job_runs(cluster)
    await succeeds(cluster, config=final_config(graph={**GRAPH, "spec": {"components": [{"name": "a", "type": "?"}]}}))
    status = await status_of(cluster)
    assert (status["phase"], answer(status, "DeploymentReady")) == ("Failed", ("False", "DeploymentRejected"))


async def t30_a_deployment_that_is_deleted_while_it_starts(cluster: Cluster, phases: Phases) -> None:
    await cluster.create(REQUESTS, request())
    await job_runs(cluster)
    await succeeds(cluster)
    await graph_is(cluster, "pending")
    await cluster.delete(GRAPHS, "qwen-dgd")
    status = await status_of(cluster)
    assert (status["phase"], answer(status, "DeploymentReady")) == ("Failed", ("False", "DeploymentDeleted"))


async def t31_scaling_and_updates_are_no_degradation(cluster: Cluster, phases: Phases) -> None:
    await until_deployed(cluster)
    await graph_is(cluster, "pending", available=2, updating=True, reason="updating")
    await cluster.advance(600)
    status = await status_of(cluster)
    assert (status["phase"], answer(status, "DeploymentReady")) == ("Deployed", ("True", "Updating"))
    await graph_is(cluster, "successful")
    await graph_is(cluster, "pending", available=3, replicas=5, reason="insufficient_capacity")
    await cluster.advance(600)
    assert (await status_of(cluster))["phase"] == "Deployed"
    await graph_is(cluster, "pending", available=1, replicas=1)
    await cluster.advance(600)
    assert (await status_of(cluster))["phase"] == "Deployed"
    assert "DeploymentDegraded" not in await events(cluster)


async def t32_a_deployment_that_loses_replicas_is_degraded_after_a_while(cluster: Cluster, phases: Phases) -> None:
    await until_deployed(cluster)
    await graph_is(cluster, "pending", available=1, message="worker: 1 of 3 ready")
    await cluster.advance(30)
    status = await status_of(cluster)
    assert (status["phase"], answer(status, "DeploymentReady")) == ("Deployed", ("True", "ReplicasLost"))
    await cluster.advance(31)
    status = await status_of(cluster)
    assert (status["phase"], answer(status, "DeploymentReady")) == ("Deploying", ("False", "DeploymentDegraded"))
    assert answer(status, "Succeeded") == ("False", "Deploying")
    assert "worker: 1 of 3 ready" in condition(status, "Succeeded")["message"]
    assert (await events(cluster)).count("DeploymentDegraded") == 1
    # It is degraded for as long as it takes, and then it is deployed again.
    await cluster.advance(3 * 3600)
    assert (await status_of(cluster))["phase"] == "Deploying"
    await graph_is(cluster, "successful")
    assert (await status_of(cluster))["phase"] == "Deployed"


async def t33_t34_and_r1_a_deployment_that_is_deleted(cluster: Cluster, phases: Phases) -> None:
    await until_deployed(cluster)
    await cluster.delete(GRAPHS, "qwen-dgd")
    status = await status_of(cluster)
    assert (status["phase"], answer(status, "DeploymentReady")) == ("Failed", ("False", "DeploymentDeleted"))
    assert "dgdName" not in status
    assert "deploymentInfo" not in status
    await cluster.advance(600)
    assert await cluster.list(GRAPHS) == []
    assert await status_of(cluster) == status
    await cluster.patch(REQUESTS, NAME, RETRY)
    status = await status_of(cluster)
    assert (status["phase"], status["profilingPhase"]) == ("Profiling", "Initializing")
    assert {each["type"] for each in status["conditions"]} == {"Validation", "Profiling", "Succeeded"}
    await job_runs(cluster)
    await succeeds(cluster)
    await graph_is(cluster, "successful")
    assert (await status_of(cluster))["phase"] == "Deployed"
    assert "T34" in phases.rows
    assert "R1" in phases.rows


async def d3_a_deployment_that_is_never_ready(cluster: Cluster, phases: Phases) -> None:
    await cluster.create(REQUESTS, request())
    await job_runs(cluster)
    await succeeds(cluster)
    await graph_is(cluster, "failed", available=0, message="no room for 2 workers")
    await cluster.advance(3500)
    assert (await status_of(cluster))["phase"] == "Deploying"
    await cluster.advance(200)
    status = await status_of(cluster)
    assert (status["phase"], answer(status, "DeploymentReady")) == ("Failed", ("False", "DeploymentDeadlineExceeded"))
    assert "no room for 2 workers" in condition(status, "Succeeded")["message"]
    # A retry that finds the deployment of the earlier attempt updates it.
    uid = (await cluster.get(GRAPHS, "qwen-dgd"))["metadata"]["uid"]
    await cluster.patch(REQUESTS, NAME, RETRY)
    await job_runs(cluster)
    smaller = {**GRAPH, "spec": {**GRAPH["spec"], "components": GRAPH["spec"]["components"][:1]}}
    await succeeds(cluster, config=final_config(graph=smaller))
    graph = await cluster.get(GRAPHS, "qwen-dgd")
    assert (graph["metadata"]["uid"], len(graph["spec"]["components"])) == (uid, 1)
    await graph_is(cluster, "successful")
    assert (await status_of(cluster))["phase"] == "Deployed"


STORIES: dict[str, Story] = {
    name: story
    for name, story in globals().items()
    if callable(story) and name[:2].rstrip("_0123456789") in ("g", "t", "d", "r") and "_" in name and name[1].isdigit()
}

LEFT: dict[str, str] = {
    "T14": "an API that does not answer: the contract suite",
    "T17": "a write that meets a conflict: the contract suite",
    "T22": "the rules of the kind refuse to switch autoApply off: `test_facts.py`",
    "T23": "the name is part of the result here",
    "T27": "an API that refuses for a while: the contract suite",
    "T35": "the schema refuses other phases",
    "G1": "the controller is not called",
    "G2": "the controller decides nothing",
}
"""Rows that no story below names, and why."""


@cache
def rows_of(name: str) -> frozenset[str]:
    """Play a story; returns the rows that it goes through."""
    rows: set[str] = set()

    async def recorded(cluster: Cluster, phases: Phases) -> None:
        await STORIES[name](cluster, phases)
        rows.update(phases.rows)

    play_story(recorded)
    return frozenset(rows)


@pytest.mark.parametrize("name", STORIES)
def test_the_table_is_gone_through(name: str) -> None:
    assert rows_of(name)


def test_every_row_of_the_table_is_gone_through_by_a_story() -> None:
    rows = frozenset[str]().union(*map(rows_of, STORIES))
    # Rows that a failure of the API leads to are in the status alone.
    explained = {"T6", "T26", "G3"}
    assert rows | explained | LEFT.keys() == TABLE.keys()


def test_an_edge_that_is_not_in_the_table_raises() -> None:
    edges: list[tuple[Phase, Phase]] = [
        ("Failed", "Deployed"),
        ("Ready", "Deployed"),
        ("Pending", "Deploying"),
        ("Deployed", "Ready"),
    ]
    for old, new in edges:
        with pytest.raises(IllegalTransition):
            TRANSITIONS.check(old, new)
    with pytest.raises(IllegalTransition):
        TRANSITIONS.check(None, "Profiling")


def test_succeeded_follows_the_phase_as_the_table_says() -> None:
    assert {phase: (answered, str(reason)) for phase, (answered, reason) in SUCCEEDED_BY_PHASE.items()} == {
        "Pending": (False, "Pending"),
        "Profiling": (False, "Profiling"),
        "Ready": (True, "SpecGenerated"),
        "Deploying": (False, "Deploying"),
        "Deployed": (True, "Deployed"),
        "Failed": (False, "Failed"),
    }
    assert set(SUCCEEDED_BY_PHASE) == set(PHASES)
    assert set(RequestReason) > TERMINAL
