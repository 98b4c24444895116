"""What a Workload asks of the engine, and what makes its revision."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import msgspec
import pytest
import yaml
from tests.places import ROOT

from holdfast import kinds
from holdfast.kernel.planning import RolloutStrategy, WorkloadSpec
from holdfast.kernel.strategies import CanaryStep
from holdfast.kinds.cloudless import Workload
from holdfast.operators.workload.render import revision
from holdfast.operators.workload.validate import rollout_spec


def workload(rollout: dict[str, Any] | None = None, **spec: Any) -> Workload:
    found = kinds.decode(
        {
            "apiVersion": "cloudless.io/v1",
            "kind": "Workload",
            "metadata": {"name": "web"},
            "spec": {"image": "web:1", **({} if rollout is None else {"rollout": rollout}), **spec},
        }
    )
    assert isinstance(found, Workload)
    return found


def test_the_least_workload_is_one_replica_rolled_with_nothing_said() -> None:
    assert rollout_spec(workload()) == WorkloadSpec(name="web", replicas=1, rollout=RolloutStrategy())


@pytest.mark.parametrize(
    ("rollout", "asked"),
    [
        ({"strategy": "ROLLING_UPDATE", "maxSurge": 0}, RolloutStrategy(max_surge=0)),
        (
            {"maxSurge": "25%", "maxUnavailable": 1, "minAvailable": "80%", "pauseDuration": "1m30s"},
            RolloutStrategy(
                max_surge="25%", max_unavailable=1, min_available="80%", pause_duration=timedelta(seconds=90)
            ),
        ),
        ({"partition": 4}, RolloutStrategy(partition=4)),
        ({"partition": "33%"}, RolloutStrategy(partition=4)),
        ({"strategy": "Recreate"}, RolloutStrategy(strategy="Recreate")),
        ({"strategy": "OnDelete"}, RolloutStrategy(strategy="OnDelete")),
        ({"strategy": "BlueGreen"}, RolloutStrategy(strategy="BlueGreen", scale_down_delay=timedelta(seconds=30))),
        (
            {"strategy": "BlueGreen", "blueGreen": {"autoPromote": False, "scaleDownDelay": "0s"}},
            RolloutStrategy(strategy="BlueGreen", approval=True),
        ),
        (
            {
                "strategy": "Canary",
                "canary": {"steps": [{"replicas": 1, "manual": True}, {"weight": 50, "pauseDuration": "10m"}]},
            },
            RolloutStrategy(
                strategy="Canary",
                canary_steps=(
                    CanaryStep(replicas=1, approval=True),
                    CanaryStep(weight=50, pause=timedelta(minutes=10)),
                ),
            ),
        ),
    ],
)
def test_every_field_of_a_rollout_reaches_the_engine(rollout: dict[str, Any], asked: RolloutStrategy) -> None:
    assert rollout_spec(workload(rollout, replicas=10)).rollout == asked


@pytest.mark.parametrize(
    ("rollout", "path"),
    [
        ({"maxSurge": 0, "maxUnavailable": 0}, "spec.rollout.maxSurge"),
        ({"maxSurge": "0%", "maxUnavailable": "00%"}, "spec.rollout.maxSurge"),
        ({"minAvailable": "150%"}, "spec.rollout.minAvailable"),
        ({"maxUnavailable": "101%"}, "spec.rollout.maxUnavailable"),
        ({"strategy": "Canary"}, "spec.rollout.canary"),
        ({"canary": {"steps": [{"weight": 5}]}}, "spec.rollout.canary"),
        ({"strategy": "Recreate", "partition": 1}, "spec.rollout.partition"),
        ({"strategy": "Canary", "canary": {"steps": [{}]}}, "spec.rollout.canary.steps[0]"),
        (
            {"strategy": "Canary", "canary": {"steps": [{"weight": 1}, {"weight": 5, "replicas": 1}]}},
            "spec.rollout.canary.steps[1]",
        ),
        (
            {"strategy": "Canary", "canary": {"steps": [{"weight": 5, "manual": True, "pauseDuration": "1s"}]}},
            "spec.rollout.canary.steps[0]",
        ),
        ({"strategy": "BlueGreen", "partition": 1}, "spec.rollout.partition"),
        ({"blueGreen": {"service": "web"}}, "spec.rollout.blueGreen"),
        ({"pauseDuration": "99999999999h"}, "spec.rollout.pauseDuration"),
        ({"progressDeadline": "99999999999h"}, "spec.rollout.progressDeadline"),
        (
            {"strategy": "BlueGreen", "blueGreen": {"scaleDownDelay": "99999999999h"}},
            "spec.rollout.blueGreen.scaleDownDelay",
        ),
        (
            {"strategy": "Canary", "canary": {"steps": [{"weight": 5, "pauseDuration": "99999999999h"}]}},
            "spec.rollout.canary.steps[0].pauseDuration",
        ),
    ],
)
def test_what_no_fleet_can_have_is_refused_with_its_path(rollout: dict[str, Any], path: str) -> None:
    with pytest.raises(kinds.InvalidDocument) as refused:
        rollout_spec(workload(rollout))
    assert [problem.path for problem in refused.value.problems] == [path]


@pytest.mark.parametrize("name", ["a" * 64, "web.shop", "1st"])
def test_a_name_that_no_service_can_have_is_refused_where_one_would_be_made(name: str) -> None:
    made = workload({"strategy": "BlueGreen"})
    named = msgspec.structs.replace(made, metadata=msgspec.structs.replace(made.metadata, name=name))
    with pytest.raises(kinds.InvalidDocument, match=r"spec\.rollout\.blueGreen\.service: .*name a Service"):
        rollout_spec(named)
    made = workload({"strategy": "BlueGreen", "blueGreen": {"service": "web"}})
    named = msgspec.structs.replace(made, metadata=msgspec.structs.replace(made.metadata, name=name))
    assert rollout_spec(named).rollout.strategy == "BlueGreen"


def test_a_surge_may_be_more_than_all_replicas() -> None:
    assert rollout_spec(workload({"maxSurge": "150%"})).rollout.max_surge == "150%"


@pytest.mark.parametrize(
    "other",
    [
        workload(replicas=7),
        workload({"strategy": "Recreate"}),
        workload(env={}, ports=[]),
    ],
)
def test_replicas_and_rollout_make_no_new_revision(other: Workload) -> None:
    assert revision(other) == revision(workload())


def test_a_default_that_is_written_down_makes_no_new_revision() -> None:
    port = {"containerPort": 80}
    assert revision(workload(ports=[port])) == revision(workload(ports=[{**port, "protocol": "TCP"}]))


@pytest.mark.parametrize("other", [workload(image="web:2"), workload(env={"A": "1"}), workload(args=["x"])])
def test_what_replicas_are_made_from_makes_a_revision(other: Workload) -> None:
    assert revision(other) != revision(workload())


@pytest.mark.parametrize(
    ("spec", "path"),
    [
        ({"podLabels": {"cloudless.io/workload": "other"}}, "spec.podLabels"),
        ({"podLabels": {"team": "not a label"}}, "spec.podLabels"),
        ({"podLabels": {"a/b/c": "x"}}, "spec.podLabels"),
        ({"podAnnotations": {"a/b/c": "x"}}, "spec.podAnnotations"),
        ({"sidecars": [{"name": "app", "image": "a"}]}, "spec.sidecars[0].name"),
        (
            {"initContainers": [{"name": "a", "image": "a"}], "sidecars": [{"name": "a", "image": "a"}]},
            "spec.sidecars[0].name",
        ),
        (
            {"initContainers": [{"name": "a", "image": "a", "mounts": [{"name": "data", "mountPath": "/a"}]}]},
            "spec.initContainers[0].mounts[0].name",
        ),
        ({"securityContext": {"seccompProfile": {"type": "Localhost"}}}, "spec.securityContext.seccompProfile"),
        (
            {"sidecars": [{"name": "a", "image": "a", "securityContext": {"runAsNonRoot": True, "runAsUser": 0}}]},
            "spec.sidecars[0].securityContext.runAsUser",
        ),
        (
            {"securityContext": {"privileged": True, "allowPrivilegeEscalation": False}},
            "spec.securityContext.allowPrivilegeEscalation",
        ),
        ({"lifecycle": {"preStop": {}}}, "spec.lifecycle.preStop"),
        ({"lifecycle": {"preStop": {"sleep": "99999999999h"}}}, "spec.lifecycle.preStop.sleep"),
        ({"terminationGracePeriod": "99999999999h"}, "spec.terminationGracePeriod"),
    ],
)
def test_a_pod_that_could_not_be_created_or_started_is_refused_with_its_path(spec: dict[str, Any], path: str) -> None:
    with pytest.raises(kinds.InvalidDocument) as refused:
        rollout_spec(workload(**spec))
    assert [problem.path for problem in refused.value.problems] == [path]


@pytest.mark.parametrize(
    ("example", "name"),
    [
        ("minimal", "b75xmvwndl"),
        ("web", "bfcftkkm4r"),
        ("web-ha", "brh492789z"),
        ("canary", "bsff5qm6lj"),
        ("blue-green", "b67hktqcdr"),
    ],
)
def test_a_release_that_adds_fields_changes_no_revision(example: str, name: str) -> None:
    documents = yaml.safe_load_all((ROOT / "examples" / "workloads" / f"{example}.yaml").read_text())
    found = kinds.decode(next(each for each in documents if each["kind"] == "Workload"))
    assert isinstance(found, Workload)
    assert revision(found) == name
