"""The profiling Job, what it may do, and what may be overridden of it; the deployment."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.operators.deploymentrequest.requests.stories import GRAPH, request

from holdfast.client.objects import Object
from holdfast.kinds.nvidia.requests import DynamoGraphDeploymentRequest, Hardware, ProfilingResults
from holdfast.operators.deploymentrequest.requests import names, render
from holdfast.operators.deploymentrequest.requests.generated import overlaid
from holdfast.operators.deploymentrequest.requests.observe import REQUESTS, World
from holdfast.operators.deploymentrequest.requests.overrides import ALLOWED
from holdfast.operators.deploymentrequest.requests.render import Settings

SETTINGS = Settings(image="holdfast:1")


def world(*, processes: bool = False, **spec: Any) -> World:
    wire = request(**spec)
    wire["metadata"]["uid"] = "0000"
    obj = Object.of(REQUESTS, wire)
    return World(object=obj, request=obj.decode(DynamoGraphDeploymentRequest), processes=processes)


def pod_of(made: dict[str, Any]) -> dict[str, Any]:
    pod: dict[str, Any] = made["spec"]["template"]["spec"]
    return pod


def test_the_job_runs_once_and_reports_by_itself() -> None:
    made = render.job(world(), "a1", SETTINGS)
    assert made["metadata"]["name"] == "profile-qwen"
    assert made["metadata"]["annotations"] == {names.ATTEMPT: "a1"}
    assert made["metadata"]["ownerReferences"][0]["controller"] is True
    assert (made["spec"]["backoffLimit"], made["spec"]["activeDeadlineSeconds"]) == (0, 600)
    pod = pod_of(made)
    assert (pod["restartPolicy"], pod["serviceAccountName"]) == ("Never", "profile-qwen")
    (container,) = pod["containers"]
    assert container["command"] == ["holdfast", "profile", "job"]
    assert container["args"] == [
        "--output",
        "default/dgdr-output-qwen",
        "--credentials",
        "/var/run/secrets/kubernetes.io/serviceaccount",
    ]
    assert container["image"] == "holdfast:1"
    assert "runtimeClassName" not in pod
    assert pod["securityContext"]["runAsNonRoot"]


def test_a_job_runs_as_a_process_where_the_cluster_offers_that() -> None:
    pod = pod_of(render.job(world(processes=True), "a1", SETTINGS))
    assert pod["runtimeClassName"] == "process"


def test_a_thorough_search_may_take_longer_and_deploy_candidates() -> None:
    assert render.job(world(searchStrategy="thorough"), "a1", SETTINGS)["spec"]["activeDeadlineSeconds"] == 4 * 3600
    account, role, binding = (each.manifest for each in render.identity(world(searchStrategy="thorough")))
    assert account["metadata"]["name"] == role["metadata"]["name"] == binding["roleRef"]["name"]
    assert {rule["resources"][0] for rule in role["rules"]} == {"configmaps", "dynamographdeployments", "pods"}


def test_a_profiler_may_only_report() -> None:
    _, role, _ = (each.manifest for each in render.identity(world()))
    assert role["rules"] == [
        {
            "apiGroups": [""],
            "resources": ["configmaps"],
            "resourceNames": ["dgdr-output-qwen"],
            "verbs": ["get", "patch"],
        }
    ]


def test_the_volume_of_the_model_is_mounted_read_only() -> None:
    cache = {"pvcName": "cache", "pvcMountPath": "/models", "pvcModelPath": "qwen/1"}
    pod = pod_of(render.job(world(modelCache=cache), "a1", SETTINGS))
    assert pod["volumes"][1] == {
        "name": "model-cache",
        "persistentVolumeClaim": {"claimName": "cache", "readOnly": True},
    }
    (container,) = pod["containers"]
    assert container["volumeMounts"][1] == {"name": "model-cache", "mountPath": "/models", "readOnly": True}
    assert container["args"][-2:] == ["--model-dir", "/models/qwen/1"]


def test_what_is_asked_is_in_the_output() -> None:
    made = render.output(world(), "a1", Hardware(gpu_sku="h200_sxm", total_gpus=8))
    asked = json.loads(made["data"]["request.json"])
    assert asked["spec"]["model"] == "Qwen/Qwen3-0.6B"
    assert asked["hardware"] == {"gpuSku": "h200_sxm", "totalGpus": 8}
    assert (asked["attempt"], asked["deployment"], asked["uid"]) == ("a1", "qwen-dgd", "0000")


# --- overrides

EVERYTHING: dict[str, Any] = {
    "backoffLimit": 2,
    "activeDeadlineSeconds": 60,
    "ttlSecondsAfterFinished": 5,
    "completions": 1,
    "parallelism": 1,
    "suspend": False,
    "selector": {"matchLabels": {"a": "b"}},
    "template": {
        "metadata": {"labels": {"team": "a", names.NAME: "another"}, "annotations": {"note": "x"}},
        "spec": {
            "tolerations": [{"key": "gpu", "operator": "Exists"}],
            "nodeSelector": {"disk": "ssd"},
            "affinity": {"nodeAffinity": {}},
            "priorityClassName": "high",
            "imagePullSecrets": [{"name": "pull"}],
            "serviceAccountName": "mine",
            "runtimeClassName": "gvisor",
            "dnsPolicy": "Default",
            "dnsConfig": {"nameservers": ["1.1.1.1"]},
            "securityContext": {"runAsUser": 2000},
            "terminationGracePeriodSeconds": 5,
            "topologySpreadConstraints": [{"maxSkew": 1}],
            "automountServiceAccountToken": True,
            "schedulerName": "kai",
            "hostNetwork": True,
            "restartPolicy": "OnFailure",
            "volumes": [{"name": "extra", "emptyDir": {}}, {"name": "api-access", "emptyDir": {}}],
            "initContainers": [{"name": "warm", "image": "warm:1"}],
            "containers": [
                {
                    "name": "profiler",
                    "image": "mine:1",
                    "imagePullPolicy": "Always",
                    "command": ["sh"],
                    "args": ["-c", "true"],
                    "resources": {"limits": {"cpu": "2"}},
                    "env": [{"name": "A", "value": "b"}],
                    "envFrom": [{"secretRef": {"name": "s"}}],
                    "volumeMounts": [{"name": "extra", "mountPath": "/extra"}],
                    "securityContext": {"readOnlyRootFilesystem": True},
                },
                {"name": "sidecar", "image": "other:1"},
            ],
        },
    },
}


def test_what_is_allowed_is_overridden_and_nothing_else() -> None:
    job = render.job(world(overrides={"profilingJob": EVERYTHING}), "a1", SETTINGS)["spec"]
    for field in ("backoffLimit", "activeDeadlineSeconds", "ttlSecondsAfterFinished", "completions", "parallelism"):
        assert job[field] == EVERYTHING[field]
    assert "selector" not in job
    assert job["template"]["metadata"]["labels"] == {
        names.NAME: "qwen",
        names.NAMESPACE: "default",
        names.MANAGED_BY: "holdfast",
        "team": "a",
    }
    pod, given = job["template"]["spec"], EVERYTHING["template"]["spec"]
    for field in ("tolerations", "nodeSelector", "priorityClassName", "serviceAccountName", "runtimeClassName"):
        assert pod[field] == given[field]
    assert pod["securityContext"]["runAsUser"] == 2000
    assert pod["securityContext"]["runAsNonRoot"]
    assert "hostNetwork" not in pod
    assert pod["restartPolicy"] == "Never"
    assert [each["name"] for each in pod["volumes"]] == ["api-access", "extra"]
    assert "projected" in pod["volumes"][0]
    (container,) = pod["containers"]
    assert (container["image"], container["command"]) == ("mine:1", ["holdfast", "profile", "job"])
    assert container["args"][0] == "--output"
    assert container["resources"] == {"requests": {"cpu": "100m", "memory": "128Mi"}, "limits": {"cpu": "2"}}
    assert [each["name"] for each in container["volumeMounts"]] == ["api-access", "extra"]


def test_a_process_is_no_other_program_whatever_is_overridden() -> None:
    job = render.job(world(processes=True, overrides={"profilingJob": EVERYTHING}), "a1", SETTINGS)["spec"]
    pod = job["template"]["spec"]
    assert job["activeDeadlineSeconds"] == 60
    assert (pod["runtimeClassName"], pod["serviceAccountName"]) == ("process", "profile-qwen")
    assert "initContainers" not in pod
    (container,) = pod["containers"]
    assert "env" not in container
    assert container["image"] == "holdfast:1"
    assert [each["name"] for each in pod["volumes"]] == ["api-access"]


@pytest.mark.parametrize("given", [{"template": 5}, {"template": {"spec": {"containers": "x"}}}, {"template": {}}])
def test_an_override_that_is_no_job_changes_nothing(given: dict[str, Any]) -> None:
    plain = render.job(world(), "a1", SETTINGS)
    assert render.job(world(overrides={"profilingJob": given}), "a1", SETTINGS) == plain


def test_every_allowed_field_is_in_the_test_above() -> None:
    spec = EVERYTHING["template"]["spec"]
    tested = {*EVERYTHING, *spec, *spec["containers"][0]}
    assert tested >= set(ALLOWED)


# --- the deployment


def test_the_deployment_proves_whose_it_is_and_its_parts_can_be_listed() -> None:
    made = render.deployment(world(), "a1", ProfilingResults(selected_config=GRAPH))
    assert made["metadata"]["annotations"] == {names.REQUEST_UID: "0000", names.ATTEMPT: "a1"}
    assert made["spec"]["labels"] == {names.NAME: "qwen"}
    assert made["spec"]["components"] == GRAPH["spec"]["components"]


def test_named_items_are_merged_by_their_names() -> None:
    base = {"components": [{"name": "a", "replicas": 1, "env": [{"name": "X", "value": "1"}]}, {"name": "b"}]}
    over = {"components": [{"name": "a", "replicas": 3, "env": [{"name": "Y", "value": "2"}]}, {"name": "c"}]}
    assert overlaid(base, over) == {
        "components": [
            {"name": "a", "replicas": 3, "env": [{"name": "X", "value": "1"}, {"name": "Y", "value": "2"}]},
            {"name": "b"},
            {"name": "c"},
        ]
    }
