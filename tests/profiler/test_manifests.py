"""Manifests: the deployment of a point, for each engine, with overrides, a planner, or mock workers."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from holdfast.kinds import checks
from holdfast.kinds.nvidia.deployments import KIND
from holdfast.kinds.nvidia.requests import DynamoGraphDeploymentRequestSpec
from holdfast.profiler import manifests
from holdfast.profiler.request import Machines, Request, Unanswerable
from holdfast.profiler.results import Engine, Point, Result

MODEL = "Qwen/Qwen3-32B"
REQUEST = Request(model=MODEL, machines=Machines(sku="h200_sxm", gpus=8))


def point(*engines: Engine) -> Point:
    return Point(
        engines=engines,
        ttft_ms=100,
        itl_ms=10,
        requests_per_second=1,
        tokens_per_second=1000,
        tokens_per_second_per_gpu=125,
        tokens_per_second_per_user=100,
        sla_met=True,
    )


AGGREGATED = point(Engine(role="worker", tensor_parallel=4, replicas=2, batch=64))
DISAGGREGATED = point(
    Engine(role="prefill", tensor_parallel=1, replicas=3, batch=1),
    Engine(role="decode", tensor_parallel=4, replicas=1, batch=160),
)


def made(chosen: Point | None, backend: str = "vllm", **spec: Any) -> list[dict[str, Any]]:
    result = msgspec.convert({"backend": backend, "chosen": None, "remedy": "ask for itl: 12"}, Result)
    given = msgspec.convert({"model": MODEL, **spec}, DynamoGraphDeploymentRequestSpec)
    return manifests.deployment(
        REQUEST, msgspec.structs.replace(result, chosen=chosen), name=manifests.name_of("qwen", given), spec=given
    )


def component(graph: dict[str, Any], name: str) -> dict[str, Any]:
    return next(part for part in graph["spec"]["components"] if part["name"] == name)


def main(graph: dict[str, Any], name: str) -> dict[str, Any]:
    container: dict[str, Any] = component(graph, name)["podTemplate"]["spec"]["containers"][0]
    return container


def option(container: dict[str, Any], name: str) -> str | None:
    args = container["args"]
    return args[args.index(name) + 1] if name in args else None


@pytest.mark.parametrize("backend", ["vllm", "sglang", "trtllm"])
@pytest.mark.parametrize("chosen", [AGGREGATED, DISAGGREGATED], ids=["aggregated", "disaggregated"])
def test_a_deployment_is_valid_and_has_a_frontend_and_the_engines(backend: str, chosen: Point) -> None:
    (graph,) = made(chosen, backend)
    assert not checks.problems(KIND, graph)
    assert graph["metadata"]["name"] == "qwen-dgd"
    assert graph["spec"]["backendFramework"] == backend
    assert [part["name"] for part in graph["spec"]["components"]] == [
        "frontend",
        *(engine.role for engine in chosen.engines),
    ]
    for engine in chosen.engines:
        assert component(graph, engine.role)["replicas"] == engine.replicas
        container = main(graph, engine.role)
        assert container["resources"]["limits"] == {"nvidia.com/gpu": str(engine.tensor_parallel)}
        assert container["command"][-1] == f"dynamo.{backend}"
        assert option(container, "--served-model-name") == MODEL
        limit = {"vllm": "--max-num-seqs", "sglang": "--max-running-requests", "trtllm": "--max-batch-size"}[backend]
        assert option(container, limit) == (None if engine.role == "prefill" else str(engine.batch))
        mode = None if engine.role == "worker" else engine.role
        assert option(container, "--disaggregation-mode") == mode


def test_the_runtime_is_beside_the_profiler_and_of_its_version() -> None:
    (graph,) = made(AGGREGATED, image="registry.example.com:5000/ai/dynamo-planner:1.2.3")
    assert main(graph, "worker")["image"] == "registry.example.com:5000/ai/vllm-runtime:1.2.3"
    (graph,) = made(
        AGGREGATED, "trtllm", image="registry.example.com/ai/planner:nightly", runtimeVersionOverride="2.0.1"
    )
    assert main(graph, "worker")["image"] == "registry.example.com/ai/tensorrtllm-runtime:2.0.1"


def test_a_model_cache_is_mounted_where_the_engine_looks_for_the_model() -> None:
    cache = {"pvcName": "cache", "pvcMountPath": "/models/", "pvcModelPath": "hub/qwen"}
    (graph,) = made(AGGREGATED, modelCache=cache)
    container = main(graph, "worker")
    assert container["volumeMounts"] == [{"name": "model-cache", "mountPath": "/models/"}]
    assert option(container, "--model") == "/models/hub/qwen"
    assert option(container, "--served-model-name") == MODEL
    volumes = component(graph, "worker")["podTemplate"]["spec"]["volumes"]
    assert volumes == [{"name": "model-cache", "persistentVolumeClaim": {"claimName": "cache"}}]
    assert "volumes" not in component(graph, "frontend")["podTemplate"]["spec"]


def test_an_engine_over_several_nodes_takes_its_share_of_gpus_from_each() -> None:
    (graph,) = made(point(Engine(role="worker", tensor_parallel=16, replicas=1, batch=8, nodes=2)))
    assert component(graph, "worker")["multinode"] == {"nodeCount": 2}
    assert main(graph, "worker")["resources"]["limits"] == {"nvidia.com/gpu": "8"}


def test_fp8_is_asked_of_the_engine_where_the_model_is_published_in_bf16() -> None:
    (graph,) = made(point(Engine(role="worker", tensor_parallel=1, replicas=1, batch=8, precision="fp8")))
    assert option(main(graph, "worker"), "--quantization") == "fp8"


def test_mock_workers_need_no_gpu() -> None:
    (graph,) = made(DISAGGREGATED, features={"mocker": {"enabled": True}})
    for role in ("frontend", "prefill", "decode"):
        container = main(graph, role)
        assert container["command"][:2] == ["holdfast", "mocker"]
        assert "resources" not in container
    assert option(main(graph, "decode"), "--tp") == "4"
    assert option(main(graph, "decode"), "--role") == "decode"


def test_a_planner_gets_its_configuration_and_the_curves() -> None:
    planner = {"mode": "disagg", "ttft": 400}
    config, data, graph = made(DISAGGREGATED, features={"planner": planner}, sla={"ttft": 500, "itl": 20})
    settings = json.loads(config["data"]["planner_config.json"])
    assert settings["ttft"] == 400
    assert settings["itl"] == 20
    assert (settings["prefill_engine_num_gpu"], settings["decode_engine_num_gpu"]) == (1, 4)
    prefill = json.loads(data["data"]["prefill_raw_data.json"])
    assert prefill["ttft_ms"] == sorted(prefill["ttft_ms"])
    assert len(prefill["isl"]) == 16
    assert json.loads(data["data"]["decode_raw_data.json"])["max_kv_tokens"] > 100_000
    volumes = component(graph, "planner")["podTemplate"]["spec"]["volumes"]
    assert [volume["configMap"]["name"] for volume in volumes] == [
        config["metadata"]["name"],
        data["metadata"]["name"],
    ]
    assert component(graph, "decode")["scalingAdapter"] == {}
    assert "scalingAdapter" not in component(graph, "frontend")


def test_overrides_are_merged_by_the_names_of_components_and_containers() -> None:
    dgd = {
        "apiVersion": "nvidia.com/v1beta1",
        "kind": "DynamoGraphDeployment",
        "metadata": {"name": "mine", "annotations": {"team": "search"}},
        "spec": {
            "env": [{"name": "A", "value": "1"}],
            "components": [
                {
                    "name": "worker",
                    "sharedMemorySize": "16Gi",
                    "podTemplate": {
                        "spec": {
                            "tolerations": [{"operator": "Exists"}],
                            "containers": [{"name": "main", "image": "mine:1.0.0", "envFrom": None}],
                        }
                    },
                }
            ],
        },
    }
    (graph,) = made(AGGREGATED, overrides={"dgd": dgd})
    assert graph["metadata"] == {"name": "mine", "annotations": {"team": "search"}}
    assert graph["spec"]["env"] == [{"name": "A", "value": "1"}]
    worker = component(graph, "worker")
    assert (worker["replicas"], worker["sharedMemorySize"]) == (2, "16Gi")
    container = main(graph, "worker")
    assert container["image"] == "mine:1.0.0"
    assert option(container, "--tensor-parallel-size") == "4"
    assert "envFrom" not in container
    assert component(graph, "frontend")["replicas"] == 1


def test_overrides_of_the_older_version_are_converted_and_find_the_components_by_their_roles() -> None:
    services = {
        "Frontend": {"replicas": 2},
        "VllmPrefillWorker": {"extraPodSpec": {"mainContainer": {"image": "mine:1.0.0"}}},
        "VllmDecodeWorker": {"replicas": 5},
    }
    dgd = {"apiVersion": "nvidia.com/v1alpha1", "kind": "DynamoGraphDeployment", "spec": {"services": services}}
    (graph,) = made(DISAGGREGATED, overrides={"dgd": dgd})
    assert [part["name"] for part in graph["spec"]["components"]] == ["frontend", "prefill", "decode"]
    assert component(graph, "frontend")["replicas"] == 2
    assert component(graph, "decode")["replicas"] == 5
    assert main(graph, "prefill")["image"] == "mine:1.0.0"
    assert option(main(graph, "prefill"), "--tensor-parallel-size") == "1"


@pytest.mark.parametrize(
    ("dgd", "complaint"),
    [
        ({"apiVersion": "apps/v1", "kind": "Deployment"}, "write a DynamoGraphDeployment"),
        (
            {"apiVersion": "nvidia.com/v1beta1", "kind": "DynamoGraphDeployment", "spec": {"components": 1}},
            "components",
        ),
    ],
)
def test_overrides_that_make_no_deployment_are_refused(dgd: dict[str, Any], complaint: str) -> None:
    with pytest.raises(Unanswerable, match=complaint) as refused:
        made(AGGREGATED, overrides={"dgd": dgd})
    assert refused.value.field == "spec.overrides.dgd"


def test_names_that_are_too_long_together_are_refused() -> None:
    name = "a-name-that-is-much-too-long-for-this-kind"
    dgd = {"apiVersion": "nvidia.com/v1beta1", "kind": "DynamoGraphDeployment", "metadata": {"name": name}}
    with pytest.raises(Unanswerable, match="may have 45"):
        made(AGGREGATED, overrides={"dgd": dgd})


def test_where_nothing_meets_the_targets_there_is_no_deployment_but_the_remedy() -> None:
    with pytest.raises(Unanswerable, match="ask for itl: 12"):
        made(None)
