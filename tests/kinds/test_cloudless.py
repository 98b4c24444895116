"""The Workload kind, as manifests and operators meet it."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from holdfast.kinds import checks
from holdfast.kinds.cloudless import KINDS, AffinityTarget, Restart, Strategy, Workload
from holdfast.kinds.crds import crd_of, schema_of

(WORKLOAD,) = KINDS
SCHEMA = schema_of(Workload)["properties"]


def decoded(spec: dict[str, Any]) -> Workload:
    doc = {"apiVersion": "cloudless.io/v1", "kind": "Workload", "metadata": {"name": "web"}}
    web = checks.decode(WORKLOAD, {**doc, "spec": {"image": "nginx", **spec}})
    assert isinstance(web, Workload)
    return web


def fields(*path: str) -> set[str]:
    """The names of the fields below a path of the schema."""
    node: dict[str, Any] = {"properties": SCHEMA}
    for step in path:
        node = node["properties"][step]
        node = node.get("items", node)
    return set(node["properties"])


@pytest.mark.parametrize(
    ("spelling", "strategy"),
    [
        ("RollingUpdate", Strategy.ROLLING_UPDATE),
        ("ROLLING_UPDATE", Strategy.ROLLING_UPDATE),
        ("Recreate", Strategy.RECREATE),
        ("RECREATE", Strategy.RECREATE),
        ("BlueGreen", Strategy.BLUE_GREEN),
        ("BLUE_GREEN", Strategy.BLUE_GREEN),
        ("Canary", Strategy.CANARY),
        ("CANARY", Strategy.CANARY),
        ("OnDelete", Strategy.ON_DELETE),
        ("ON_DELETE", Strategy.ON_DELETE),
    ],
)
def test_a_strategy_is_read_in_both_spellings_and_written_in_one(spelling: str, strategy: Strategy) -> None:
    web = decoded({"rollout": {"strategy": spelling}})
    assert web.spec.rollout is not None
    assert web.spec.rollout.strategy is strategy
    assert msgspec.to_builtins(web)["spec"]["rollout"]["strategy"] == strategy.value


def test_the_other_enums_of_cloudless_are_read_in_both_spellings_too() -> None:
    web = decoded(
        {
            "restartPolicy": {"policy": "ON_FAILURE", "maxRetries": 3, "backoff": "60s"},
            "placement": {"antiAffinity": [{"type": "WORKLOAD", "matchLabels": {"app": "web"}}]},
        }
    )
    assert web.spec.restart_policy is not None
    assert web.spec.restart_policy.policy is Restart.ON_FAILURE
    assert web.spec.placement is not None
    assert web.spec.placement.anti_affinity[0].type is AffinityTarget.WORKLOAD


def test_unset_and_zero_are_different_limits() -> None:
    web = decoded({"rollout": {"maxSurge": 0, "minAvailable": "80%"}})
    assert web.spec.rollout is not None
    limits = (web.spec.rollout.max_surge, web.spec.rollout.max_unavailable, web.spec.rollout.min_available)
    assert limits == (0, None, "80%")


def test_resources_are_read_in_cloudless_units_and_as_kubernetes_quantities() -> None:
    web = decoded(
        {
            "resources": {
                "requests": {"cpuMillicores": 500, "memoryBytes": 1073741824, "bandwidthBps": 104857600, "gpuCount": 1},
                "limits": {"cpu": "2", "memory": "2Gi", "ephemeral-storage": "5Gi", "extended": {"example.com/x": 1}},
            }
        }
    )
    resources = web.spec.resources
    assert resources is not None
    assert resources.requests is not None
    assert resources.limits is not None
    assert (resources.requests.cpu_millicores, resources.requests.gpu_count) == (500, 1)
    assert (resources.limits.cpu, resources.limits.ephemeral_storage) == ("2", "5Gi")
    assert resources.limits.extended == {"example.com/x": 1}


def test_the_rollout_can_say_everything_that_the_engine_can_do() -> None:
    assert fields("spec", "rollout") == {
        "strategy",
        "maxSurge",
        "maxUnavailable",
        "minAvailable",
        "pauseDuration",
        "minReadySeconds",
        "progressDeadline",
        "onFailure",
        "canary",
        "blueGreen",
        "partition",
        "paused",
        "replacement",
        "disruptionBudget",
        "revisionHistoryLimit",
    }
    assert fields("spec", "rollout", "canary", "steps") == {"weight", "replicas", "pauseDuration", "manual"}
    assert fields("spec", "rollout", "blueGreen") == {"service", "autoPromote", "scaleDownDelay"}


def test_the_status_says_what_is_happening_and_why_and_under_which_limits() -> None:
    assert fields("status") >= {
        "phase",
        "replicas",
        "readyReplicas",
        "updatedReplicas",
        "oldReplicas",
        "availableReplicas",
        "unavailableReplicas",
        "limits",
        "currentRevision",
        "updateRevision",
        "rollout",
        "conditions",
        "selector",
    }
    assert fields("status", "limits") >= {"minAvailable", "maxSurge", "maxUnavailable", "floor", "warnings"}
    assert fields("status", "rollout") >= {
        "step",
        "steps",
        "startedAt",
        "estimatedEnd",
        "lowestReady",
        "pausedUntil",
        "because",
        "plan",
    }
    assert fields("status", "rollout", "because") == {"code", "message"}


def test_the_phases_are_the_seven_of_a_rollout() -> None:
    assert set(SCHEMA["status"]["properties"]["phase"]["enum"]) == {
        "Initializing",
        "ScalingUp",
        "Updating",
        "ScalingDown",
        "Paused",
        "Completed",
        "Failed",
    }


def test_an_autoscaler_finds_its_numbers_and_its_pods() -> None:
    assert crd_of(WORKLOAD)["spec"]["versions"][0]["subresources"]["scale"] == {
        "specReplicasPath": ".spec.replicas",
        "statusReplicasPath": ".status.replicas",
        "labelSelectorPath": ".status.selector",
    }


def test_kubectl_get_shows_the_floor_beside_the_ready_replicas() -> None:
    columns = [column.name for column in WORKLOAD.columns if not column.priority]
    assert columns == ["Desired", "Ready", "Floor", "Updated", "Phase", "Reason", "Age"]


@pytest.mark.parametrize(
    ("path", "messages"),
    [
        (
            ("rollout",),
            {
                "canary is only for the strategy Canary",
                "blueGreen is only for the strategy BlueGreen",
                "partition is only for the strategy RollingUpdate",
                "the strategy Canary needs canary.steps",
                "maxSurge and maxUnavailable cannot both be 0: no replica could ever be replaced",
            },
        ),
        (
            ("rollout", "canary", "steps"),
            {
                "give either the weight or the replicas of a step",
                "a step ends after a time or by approval: give pauseDuration or manual, not both",
            },
        ),
        (("readinessProbe",), {"give exactly one of http, tcp, exec and grpc"}),
        (
            ("volumes",),
            {
                "a hostPath volume needs options.path",
                "keys, defaultMode and optional are only for the sources configMap and secret",
            },
        ),
        (("lifecycle", "preStop"), {"give exactly one of exec, http and sleep"}),
        (
            ("securityContext",),
            {
                "a privileged container can always escalate: allowPrivilegeEscalation cannot be false",
                "runAsUser 0 is root, and runAsNonRoot refuses root: no container could start",
            },
        ),
        (
            ("securityContext", "seccompProfile"),
            {"localhostProfile is needed for the type Localhost, and only there"},
        ),
        (("envFrom",), {"name either a configMapRef or a secretRef"}),
    ],
)
def test_what_cannot_work_is_refused_by_a_rule(path: tuple[str, ...], messages: set[str]) -> None:
    node = SCHEMA["spec"]
    for step in path:
        node = node["properties"][step]
        node = node.get("items", node)
    assert {rule["message"] for rule in node["x-kubernetes-validations"]} == messages
