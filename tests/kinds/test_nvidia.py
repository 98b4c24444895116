"""The deployment request and the graph deployment, as upstream's users know them."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from holdfast.kinds import checks
from holdfast.kinds.crds import crd_of, schema_of
from holdfast.kinds.nvidia import KINDS, DynamoGraphDeployment, DynamoGraphDeploymentRequest

GPU_SKUS = """
    gb200_sxm gb10 b200_sxm h200_sxm h100_sxm h100_pcie a100_sxm a100_pcie a30 l40s l40 l4 v100_sxm v100_pcie t4
    mi200 mi300
"""

REQUEST, GRAPH, *_ = KINDS
REQUEST_SCHEMA = schema_of(DynamoGraphDeploymentRequest)
GRAPH_SCHEMA = schema_of(DynamoGraphDeployment)


def at(schema: dict[str, Any], path: str) -> dict[str, Any]:
    for step in path.split("."):
        schema = schema["properties"][step]
        schema = schema.get("items", schema)
    return schema


def request(**spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "nvidia.com/v1beta1",
        "kind": "DynamoGraphDeploymentRequest",
        "metadata": {"name": "qwen"},
        "spec": {"model": "Qwen/Qwen3-32B", **spec},
    }


def graph(**spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "nvidia.com/v1beta1",
        "kind": "DynamoGraphDeployment",
        "metadata": {"name": "qwen"},
        "spec": spec,
    }


def test_only_the_model_is_required_of_a_request() -> None:
    assert at(REQUEST_SCHEMA, "spec")["required"] == ["model"]


def test_a_request_is_defaulted_as_upstream_defaults_it() -> None:
    spec = checks.defaulted(REQUEST, request(modelCache={"pvcName": "cache"}, workload={}, features={"mocker": {}}))[
        "spec"
    ]
    assert spec == {
        "model": "Qwen/Qwen3-32B",
        "backend": "auto",
        "searchStrategy": "rapid",
        "autoApply": True,
        "modelCache": {"pvcName": "cache", "pvcMountPath": "/opt/model-cache"},
        "workload": {"isl": 4000, "osl": 1000},
        "features": {"mocker": {"enabled": False}},
    }


@pytest.mark.parametrize(
    ("path", "values"),
    [
        ("spec.backend", "auto sglang trtllm vllm"),
        ("spec.searchStrategy", "rapid thorough"),
        ("spec.sla.optimizationType", "latency throughput"),
        (
            "spec.hardware.gpuSku",
            GPU_SKUS,
        ),
        ("status.phase", "Pending Profiling Ready Deploying Deployed Failed"),
        (
            "status.profilingPhase",
            "Initializing SweepingPrefill SweepingDecode SelectingConfig BuildingCurves GeneratingDGD Done",
        ),
    ],
)
def test_the_enums_of_a_request_are_upstreams(path: str, values: str) -> None:
    assert set(at(REQUEST_SCHEMA, path)["enum"]) == set(values.split())


@pytest.mark.parametrize(
    ("path", "values"),
    [
        ("spec.backendFramework", ["sglang", "trtllm", "vllm"]),
        ("spec.components.type", ["decode", "epp", "frontend", "planner", "prefill", "worker"]),
        ("status.state", ["failed", "initializing", "pending", "successful"]),
        ("status.rollingUpdate.phase", ["", "Completed", "Failed", "InProgress", "Pending"]),
    ],
)
def test_the_enums_of_a_graph_are_upstreams(path: str, values: list[str]) -> None:
    assert sorted(at(GRAPH_SCHEMA, path)["enum"]) == values


def test_kubectl_get_shows_what_upstream_shows() -> None:
    assert [column.name for column in REQUEST.columns] == [
        "Model",
        "Backend",
        "Phase",
        "Profiling",
        "Reason",
        "Message",
        "DGD",
        "Age",
    ]
    assert [column.name for column in GRAPH.columns if not column.priority] == ["Ready", "Backend", "Age"]
    assert (REQUEST.short_names, GRAPH.short_names) == (("dgdr",), ("dgd",))
    reason = crd_of(REQUEST)["spec"]["versions"][0]["additionalPrinterColumns"][4]
    assert reason["jsonPath"] == '.status.conditions[?(@.type=="Succeeded")].reason'


def test_a_request_at_work_keeps_every_field_of_its_spec_but_the_two_that_a_review_may_change() -> None:
    (rule,) = REQUEST_SCHEMA["x-kubernetes-validations"]
    for phase in ("Profiling", "Ready", "Deploying", "Deployed"):
        assert f"'{phase}'" in rule["rule"]
    compared = {
        name for name in at(REQUEST_SCHEMA, "spec")["properties"] if f"self.spec.{name} == oldSelf" in rule["rule"]
    }
    assert set(at(REQUEST_SCHEMA, "spec")["properties"]) - compared == {"runtimeVersionOverride", "autoApply"}


def test_what_upstreams_profiler_finds_out_in_a_pod_is_refused_before() -> None:
    def messages(path: str) -> list[str]:
        return [rule["message"] for rule in at(REQUEST_SCHEMA, path)["x-kubernetes-validations"]]

    assert messages("spec.workload") == ["give the load as concurrency or as requestRate, not both"]
    assert messages("spec.sla") == ["give e2eLatency, or ttft and itl, not both"]
    assert messages("spec") == ["a thorough search deploys real workers; name the backend instead of auto"]


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ({"model": ""}, "spec.model: must not be empty"),
        ({"sla": {"ttft": 0}}, "spec.sla.ttft: must be more than 0, is 0"),
        ({"hardware": {"totalGpus": 0}}, "spec.hardware.totalGpus: must be at least 1, is 0"),
        (
            {"backend": "vlm"},
            "spec.backend: must be one of auto, sglang, trtllm, vllm, not 'vlm'; did you mean vllm?",
        ),
        ({"runtimeVersionOverride": "1.2"}, "spec.runtimeVersionOverride: '1.2' is not in the expected form"),
        ({"overrides": {"dgd": {"kind": "X"}}}, "spec.overrides.dgd.apiVersion: is required"),
    ],
)
def test_a_wrong_request_is_told_what_to_write(spec: dict[str, Any], said: str) -> None:
    (problem,) = checks.problems(REQUEST, request(**spec))
    assert str(problem).startswith(said)


def test_a_version_has_at_most_four_digits_in_each_part() -> None:
    assert checks.problems(REQUEST, request(runtimeVersionOverride="1.10.2000")) == ()
    assert len(checks.problems(REQUEST, request(runtimeVersionOverride="1.10.20000"))) == 1


def test_an_empty_scaling_adapter_is_a_choice_and_survives() -> None:
    doc = graph(components=[{"name": "decode", "scalingAdapter": {}}, {"name": "prefill"}])
    decoded = checks.decode(GRAPH, doc)
    assert isinstance(decoded, DynamoGraphDeployment)
    assert [component.scaling_adapter is not None for component in decoded.spec.components] == [True, False]
    assert msgspec.to_builtins(decoded)["spec"]["components"][0] == {"name": "decode", "scalingAdapter": {}}


def test_a_pod_template_is_kept_whole() -> None:
    container = {"name": "main", "image": "a:1", "resources": {"limits": {"nvidia.com/gpu": "1"}}, "tty": False}
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [container], "nodeSelector": {}}}
    decoded = checks.decode(GRAPH, graph(components=[{"name": "decode", "podTemplate": template}]))
    assert msgspec.to_builtins(decoded)["spec"]["components"][0]["podTemplate"] == template


def test_a_field_that_no_pod_has_is_refused_with_its_path() -> None:
    template = {"spec": {"containers": [{"name": "main", "imagePullPolicies": "Always"}]}}
    with pytest.raises(checks.InvalidDocument) as refusal:
        checks.decode(GRAPH, graph(components=[{"name": "decode", "podTemplate": template}]))
    assert "spec.components[0].podTemplate.spec.containers[0].imagePullPolicies: unknown field" in str(refusal.value)


def test_minavailable_of_a_component_cannot_change() -> None:
    rules = at(GRAPH_SCHEMA, "spec.components")["x-kubernetes-validations"]
    assert [rule["message"] for rule in rules] == [
        "minAvailable is immutable",
        "minAvailable must not be more than replicas",
        "eppConfig is for components of type epp alone",
    ]


def test_at_most_25_components_of_different_names() -> None:
    components = GRAPH_SCHEMA["properties"]["spec"]["properties"]["components"]
    assert components["maxItems"] == 25
    assert components["x-kubernetes-list-map-keys"] == ["name"]


def test_a_restart_is_acknowledged_under_upstreams_name() -> None:
    assert set(at(GRAPH_SCHEMA, "status.restart")["properties"]) == {"observedID", "phase", "inProgress"}
