"""Whatever happens in whatever order, the phase goes only where the table leads, and Succeeded follows it."""

from __future__ import annotations

import random
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any

import msgspec
import pytest
from tests.operators.deploymentrequest.requests.stories import RESULT, condition, final_config, request

from holdfast.client.objects import Meta, Object
from holdfast.client.resources import JOBS
from holdfast.kernel.conditions import Condition, Status
from holdfast.kernel.outcomes import Permanent, Retry
from holdfast.kinds.nvidia.requests import DynamoGraphDeploymentRequest
from holdfast.meta import times
from holdfast.operators.deploymentrequest.requests import names
from holdfast.operators.deploymentrequest.requests.controller import DEFAULTS
from holdfast.operators.deploymentrequest.requests.decide import decide, explain
from holdfast.operators.deploymentrequest.requests.facts import LADDER
from holdfast.operators.deploymentrequest.requests.hardware import GpuNode
from holdfast.operators.deploymentrequest.requests.observe import REQUESTS, Graph, Job, Output, World
from holdfast.operators.deploymentrequest.requests.stages import attempt_of, facts_of
from holdfast.operators.deploymentrequest.requests.status import SUCCEEDED_BY_PHASE
from holdfast.operators.deploymentrequest.requests.transitions import TABLE, TRANSITIONS
from holdfast.runtime.decisions import Create, Decision, Delete
from holdfast.runtime.status import prior_conditions

NODE = msgspec.convert(
    {
        "metadata": {"labels": {"nvidia.com/gpu.product": "NVIDIA-H200"}},
        "status": {"allocatable": {"nvidia.com/gpu": "8"}},
    },
    GpuNode,
)
START = datetime(2026, 1, 1, tzinfo=UTC)


def world(status: dict[str, Any] | None = None, *, retry: str = "", **spec: Any) -> World:
    wire = request(annotations={names.RETRY: retry} if retry else None, **spec)
    wire["metadata"] |= {"uid": "0000", "generation": 1}
    if status is not None:
        wire["status"] = status
    obj = Object.of(REQUESTS, wire)
    read = obj.decode(DynamoGraphDeploymentRequest)
    return World(object=obj, request=read, conditions=prior_conditions(obj), nodes=(NODE,))


def decided(seen: World, now: datetime) -> Decision:
    return decide(seen, now, settings=DEFAULTS)


class Play:
    """Others, who do what they like: the Job controller, the profiler, the operator of deployments, and users."""

    def __init__(self, seed: int) -> None:
        self.draw = random.Random(seed)
        self.now = START
        self.status: dict[str, Any] | None = None
        self.retry = ""
        self.auto_apply = True
        self.job: Job | None = None
        self.output: Output | None = None
        self.graph: Graph | None = None
        self.nodes: tuple[GpuNode, ...] = (NODE,)

    def world(self) -> World:
        seen = world(self.status, retry=self.retry, autoApply=self.auto_apply)
        return replace(seen, job=self.job, output=self.output, graph=self.graph, nodes=self.nodes)

    def step(self) -> None:
        """The controller makes a pass, and others act."""
        seen = self.world()
        facts = facts_of(seen, self.now)
        made = decided(seen, self.now)
        assert made.status is not None
        before, after = (self.status or {}).get("phase"), made.status["phase"]
        row = TABLE[facts.row]
        TRANSITIONS.check(before, after)
        assert row.target in (None, after), facts.row
        succeeded, reason = SUCCEEDED_BY_PHASE[after]
        found = condition(made.status, "Succeeded")
        assert (found["status"], found["reason"]) == (str(succeeded), str(reason))
        assert found["message"]
        assert (after == "Profiling") == ("profilingPhase" in made.status)
        self.status = made.status
        for write in made.writes:
            if isinstance(write, Create):
                self.create(dict(write.manifest))
            elif isinstance(write, Delete) and write.resource == JOBS:
                self.job = None
            elif isinstance(write, Delete):
                self.output = None
        self.act()
        self.now += timedelta(seconds=self.draw.choice((0, 1, 1, 1, 3, 3, 10, 70, 700, 4000)))

    def create(self, manifest: dict[str, Any]) -> None:
        manifest["metadata"] = {**manifest["metadata"], "uid": str(self.draw.random()), "resourceVersion": "1"}
        manifest["metadata"]["creationTimestamp"] = times.format(self.now)
        match manifest["kind"]:
            case "Job":
                self.job = msgspec.convert(manifest, Job)
            case "ConfigMap" if manifest["metadata"]["name"].startswith("dgdr-output"):
                self.output = msgspec.convert(manifest, Output)
            case "DynamoGraphDeployment":
                self.graph = msgspec.convert({"metadata": manifest["metadata"]}, Graph)

    def act(self) -> None:
        acts = (self.job_moves, self.profiler_reports, self.graph_moves, self.user_acts)
        for _ in range(self.draw.randint(0, 2)):
            self.draw.choice(acts)()

    def job_moves(self) -> None:
        if self.job is None:
            return
        kind = self.draw.choice(("Complete", "Failed", "active", "active", "delete"))
        if kind == "delete":
            self.job = None
            return
        status: dict[str, Any] = {"active": 1}
        if kind != "active":
            now = times.format(self.now)
            reason = self.draw.choice(("DeadlineExceeded", "BackoffLimitExceeded"))
            done = {"type": kind, "status": "True", "reason": reason, "lastTransitionTime": now}
            status = {"conditions": [done], "completionTime": now}
        self.job = msgspec.structs.replace(self.job, status=msgspec.convert(status, type(self.job.status)))

    def profiler_reports(self) -> None:
        if self.output is None:
            return
        reports: tuple[dict[str, str], ...] = (
            {"phase": "SweepingPrefill", "progress": "1 of 2"},
            {"phase": "?"},
            {"profiler_status": "failed", "profiler_error": "no"},
            {"profiler_status": "success", "final_config.yaml": "{"},
            {"profiler_status": "success", "final_config.yaml": final_config(), "result.json": "?"},
            *(
                {
                    "profiler_status": "success",
                    "final_config.yaml": final_config(),
                    "result.json": msgspec.json.encode(RESULT).decode(),
                }
                for _ in range(4)
            ),
            {"profiler_status": "unknown"},
        )
        data = {**self.output.data, **self.draw.choice(reports)}
        self.output = None if self.draw.random() < 0.05 else msgspec.structs.replace(self.output, data=data)

    def graph_moves(self) -> None:
        if self.graph is None:
            if self.draw.random() < 0.05:
                self.graph = Graph(metadata=Meta(name="qwen-dgd", uid="foreign"))
            return
        if self.draw.random() < 0.1:
            self.graph = None
            return
        state = self.draw.choice(("pending", "successful", "successful", "failed"))
        available = 3 if state == "successful" else self.draw.randint(0, 3)
        reason = self.draw.choice(("updating", "pods_not_ready"))
        ready = Condition(
            type="Ready",
            status=Status.TRUE if state == "successful" else Status.FALSE,
            reason=reason,
            last_transition_time=self.now,
        )
        status = {"state": state, "components": {"worker": {"replicas": 3, "readyReplicas": available}}}
        reported = msgspec.convert(status, type(self.graph.status))
        self.graph = msgspec.structs.replace(self.graph, status=reported, ready=ready)

    def user_acts(self) -> None:
        phase = (self.status or {}).get("phase")
        match self.draw.choice(("retry", "retry", "autoApply", "nodes")):
            case "retry" if phase == "Failed" or self.draw.random() < 0.1:
                self.retry = str(self.draw.random())
            case "autoApply":
                self.auto_apply = not self.auto_apply
            case "nodes":
                self.nodes = () if self.nodes and self.draw.random() < 0.3 else (NODE,)


SEEDS = range(50)


@cache
def played(seed: int) -> frozenset[tuple[str, str]]:
    """Play on; returns the rows that were gone through, each with its phase."""
    play, seen = Play(seed), set()
    for _ in range(40):
        facts = facts_of(play.world(), play.now)
        seen.add((facts.row, LADDER.phase(facts)))
        play.step()
    return frozenset(seen)


@pytest.mark.parametrize("seed", SEEDS)
def test_every_edge_is_in_the_table_whatever_happens(seed: int) -> None:
    assert played(seed)


def test_the_plays_reach_every_phase_and_nearly_every_row() -> None:
    seen = frozenset[tuple[str, str]]().union(*map(played, SEEDS))
    rows, phases = {row for row, _ in seen}, {phase for _, phase in seen}
    assert phases == {"Pending", "Profiling", "Ready", "Deploying", "Deployed", "Failed"}
    # These need another spec, an API that refuses, or have no pass of their own.
    assert TABLE.keys() - rows <= {"G1", "G2", "G3", "T2", "T6", "T17", "T23", "T26", "T27", "T35"}


# --- failures of the API


def pending() -> World:
    """A request whose Job is to be created."""
    first = decided(world(), START).status
    return world(first)


def test_an_api_that_does_not_answer_is_no_failure_of_the_request() -> None:
    seen = pending()
    status = explain(seen, Retry("Unreachable", "connection refused"), START)
    assert status["phase"] == "Pending"
    assert condition(status, "Profiling")["message"] == "creating Job profile-qwen; retried: connection refused"


def test_what_the_api_refuses_for_good_ends_the_attempt() -> None:
    status = explain(pending(), Permanent("Invalid", "spec.template: no"), START)
    assert status["phase"] == "Failed"
    assert condition(status, "Profiling")["reason"] == "JobCreationFailed"
    assert condition(status, "Succeeded")["message"] == "Profiling failed: spec.template: no"
    # It stays so until the spec is changed, or the request is retried.
    assert decided(world(status), START).status == status
    again = decided(world(status, retry="1"), START).status
    assert again is not None
    assert again["phase"] == "Pending"


def test_auto_apply_that_is_switched_off_before_anything_was_created_stops_at_ready() -> None:
    status: dict[str, Any] = {
        "phase": "Deploying",
        "attempt": attempt_of(world().request),
        "profilingJobName": "profile-qwen",
        "dgdName": "qwen-dgd",
        "deploymentInfo": {},
        "profilingResults": {"selectedConfig": {"metadata": {"name": "qwen-dgd"}, "spec": {}}},
    }
    seen = world(status, autoApply=False)
    assert facts_of(seen, START).row == "T22"
    made = decided(seen, START)
    assert made.status is not None
    assert (made.status["phase"], made.writes) == ("Ready", ())
