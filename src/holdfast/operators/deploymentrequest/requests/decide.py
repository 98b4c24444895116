"""What is done for a request next: its Job, its output, its deployment, and its status.

    Pending     what the profiler needs and the Job are created
    Profiling   the output is kept in existence; otherwise the controller waits
    Deploying   the deployment is created, or updated to the new result, and then its ConfigMaps
    otherwise   nothing: what the profiler was allowed is taken back

The phase is no input: what is done follows from the row of the facts.  Pure.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime
from typing import Any

from holdfast.client.protocols import PatchType
from holdfast.client.resources import CONFIG_MAPS, JOBS
from holdfast.kernel.outcomes import Done, Failure, Permanent, until
from holdfast.meta.objects import Key
from holdfast.operators.deploymentrequest.requests import generated, names, render
from holdfast.operators.deploymentrequest.requests.facts import (
    DEPLOYMENT_READY,
    PROFILING,
    Cause,
    Facts,
    Wait,
)
from holdfast.operators.deploymentrequest.requests.observe import GRAPHS, World
from holdfast.operators.deploymentrequest.requests.profiling import read_output
from holdfast.operators.deploymentrequest.requests.reasons import RequestReason
from holdfast.operators.deploymentrequest.requests.render import Settings
from holdfast.operators.deploymentrequest.requests.stages import facts_of
from holdfast.operators.deploymentrequest.requests.status import status_of
from holdfast.runtime.decisions import Create, Decision, Delete, Patch, Write


def decide(world: World, now: datetime, *, settings: Settings) -> Decision:
    """What to write, and the status."""
    facts = facts_of(world, now)
    status, notices = status_of(world, facts, now)
    return Decision(
        children=tuple(render.identity(world)) if _needs_identity(facts) else (),
        writes=tuple(_writes(world, facts, settings)),
        status=status,
        notices=notices,
        outcome=Done() if facts.due is None else until(facts.due[0], now=now, because=facts.due[1]),
    )


def explain(world: World, failure: Failure, now: datetime) -> dict[str, Any]:
    """The status of a pass whose decision could not be carried out.

    What the API refuses for good ends the attempt; everything else is retried, and the condition says what fails.
    """
    facts = facts_of(world, now)
    if facts.cause is not None:
        return status_of(world, facts, now)[0]
    deploying = facts.dgd_name is not None
    if isinstance(failure, Permanent) and facts.row in ("T4", "T24"):
        cause = (
            Cause(DEPLOYMENT_READY, RequestReason.DEPLOYMENT_REJECTED, failure.message)
            if deploying
            else Cause(PROFILING, RequestReason.JOB_CREATION_FAILED, failure.message)
        )
        return status_of(world, replace(facts, row="T26" if deploying else "T6", cause=cause), now)[0]
    if facts.wait is not None:
        facts = replace(facts, wait=Wait(facts.wait.reason, f"{facts.wait.message}; retried: {failure.message}"))
    return status_of(world, facts, now)[0]


def _needs_identity(facts: Facts) -> bool:
    """Whether the profiler has to be able to report: from before its Job is created until it has a result."""
    return facts.cause is None and facts.dgd_name is None and (facts.job or facts.row == "T4")


def _writes(world: World, facts: Facts, settings: Settings) -> Iterator[Write]:
    if facts.cause is not None:
        return
    if facts.row == "T4":
        yield from _profiler(world, facts, settings)
    elif facts.dgd_name is None and facts.job and world.output is None and facts.hardware is not None:
        yield _output(world, facts)
    elif facts.row == "T24":
        yield from _deployment(world, facts)
    elif facts.info is not None and facts.info.uid is not None:
        yield from _config_maps(world, facts)


# --- the profiler


def _profiler(world: World, facts: Facts, settings: Settings) -> Iterator[Write]:
    """The output and the Job of the attempt; those of an earlier attempt are deleted first."""
    of_output = world.output is not None and world.output.attempt == facts.attempt
    earlier = (
        (JOBS, world.job, names.job(world.name)),
        (CONFIG_MAPS, None if of_output else world.output, names.output(world.name)),
    )
    outdated = [(resource, found, name) for resource, found, name in earlier if found is not None]
    for resource, found, name in outdated:
        if found.metadata.deletion_timestamp is None:
            yield Delete(
                resource=resource,
                key=Key(world.namespace, name),
                uid=found.metadata.uid,
                propagation="Background",
                because="it belongs to an earlier attempt",
            )
    if outdated:
        return
    if not of_output:
        yield _output(world, facts)
    manifest = render.job(world, facts.attempt, settings)
    yield Create(resource=JOBS, manifest=manifest, because="the request is profiled", wave=1)


def _output(world: World, facts: Facts) -> Create:
    assert facts.hardware is not None, "it is known before the Job is created"
    manifest = render.output(world, facts.attempt, facts.hardware)
    return Create(resource=CONFIG_MAPS, manifest=manifest, because="the profiler reads and reports there")


# --- the deployment


def _deployment(world: World, facts: Facts) -> Iterator[Write]:
    assert facts.results is not None, "a deployment has a name because it was generated"
    manifest, graph = render.deployment(world, facts.attempt, facts.results), world.graph
    if graph is None:
        yield Create(resource=GRAPHS, manifest=manifest, because="it was generated for the request")
    elif not graph.deleting:
        metadata = manifest["metadata"]
        changes = {"labels": metadata["labels"], "annotations": metadata["annotations"]}
        operations = [
            *(
                {"op": "add", "path": f"/metadata/{field}/{_escaped(key)}", "value": value}
                for field, values in changes.items()
                for key, value in values.items()
            ),
            {"op": "replace", "path": "/spec", "value": manifest["spec"]},
        ]
        yield Patch(
            resource=GRAPHS,
            key=Key(world.namespace, graph.metadata.name),
            patch=operations,
            uid=graph.metadata.uid,
            type=PatchType.JSON,
            because="a later attempt generated another one",
        )


def _escaped(key: str) -> str:
    return key.replace("~", "~0").replace("/", "~1")


def _config_maps(world: World, facts: Facts) -> Iterator[Write]:
    """The ConfigMaps of the deployment that do not exist yet."""
    for manifest in generated.config_maps(read_output(world, facts.attempt)):
        if manifest["metadata"]["name"] not in world.maps:
            made = render.config_map(world, manifest)
            yield Create(resource=CONFIG_MAPS, manifest=made, because="the deployment reads it")
