"""Conversion between v1alpha1 and v1beta1 of ``nvidia.com``: without loss both ways, and live fields win."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.kinds.conversion import KEPT, Conversion
from holdfast.kinds.nvidia.adapters import CONVERSION as ADAPTERS
from holdfast.kinds.nvidia.conversion import GRAPHS, REQUESTS

Wire = dict[str, Any]

names = st.sampled_from(["main", "a", "b", "prefill", "decode"])
texts = st.sampled_from(["", "x", "1Gi", "0", "h200_sxm", "worker", "prefill", "frontend", "main"])
amounts = st.sampled_from(["1", "500m", "4Gi"])
scalars = st.one_of(texts, st.integers(-1, 3), st.booleans(), st.none())


def optional(**fields: st.SearchStrategy[Any]) -> st.SearchStrategy[Wire]:
    return st.fixed_dictionaries({}, optional=dict(fields))


def named(**fields: st.SearchStrategy[Any]) -> st.SearchStrategy[list[Wire]]:
    item = st.fixed_dictionaries({"name": names}, optional=dict(fields))
    return st.lists(item, max_size=3, unique_by=lambda each: each["name"])


maps = st.dictionaries(names, texts, max_size=2)
resources = optional(
    requests=optional(cpu=amounts, memory=amounts, gpu=amounts, gpuType=texts, custom=maps),
    limits=optional(cpu=amounts, memory=amounts, gpu=amounts),
    claims=named(),
)
container = optional(
    name=names,
    image=texts,
    args=st.lists(texts, max_size=2),
    env=named(value=texts),
    envFrom=st.lists(optional(secretRef=maps), max_size=1),
    resources=optional(limits=maps, requests=maps, claims=named()),
    volumeMounts=named(mountPath=texts),
    livenessProbe=maps,
)
services = st.dictionaries(
    names,
    st.one_of(
        st.none(),
        optional(
            componentType=texts,
            subComponentType=texts,
            serviceName=texts,
            dynamoNamespace=texts,
            globalDynamoNamespace=st.booleans(),
            replicas=st.integers(0, 3),
            annotations=maps,
            labels=maps,
            resources=resources,
            envs=named(value=texts),
            envFromSecret=texts,
            volumeMounts=named(mountPoint=texts, useAsCompilationCache=st.booleans()),
            ingress=optional(enabled=st.booleans(), host=texts),
            sharedMemory=optional(disabled=st.booleans(), size=texts),
            extraPodMetadata=optional(annotations=maps, labels=maps),
            extraPodSpec=optional(
                mainContainer=container, containers=st.lists(container, max_size=2), volumes=named(), nodeName=texts
            ),
            livenessProbe=maps,
            scalingAdapter=st.one_of(st.none(), optional(enabled=st.booleans())),
            multinode=optional(nodeCount=st.integers(2, 4)),
            checkpoint=maps,
        ),
    ),
    max_size=3,
)
old_graphs = st.fixed_dictionaries(
    {
        "spec": optional(
            services=services,
            pvcs=named(size=amounts, create=st.booleans()),
            envs=named(value=texts),
            backendFramework=texts,
            topologyConstraint=optional(topologyProfile=texts, packDomain=texts),
        )
    },
    optional={
        "status": optional(
            state=texts,
            services=st.dictionaries(names, optional(componentName=texts, componentNames=st.lists(texts, max_size=2))),
            rollingUpdate=optional(phase=texts, updatedServices=st.lists(texts, max_size=2)),
        )
    },
)
components = named(
    type=texts,
    replicas=st.integers(0, 3),
    podTemplate=optional(
        metadata=optional(labels=maps, name=texts),
        spec=optional(
            containers=st.one_of(named(image=texts, env=named()), st.lists(container, max_size=2)), volumes=named()
        ),
    ),
    scalingAdapter=st.just({}),
    sharedMemorySize=st.one_of(texts, st.integers(0, 1)),
    compilationCache=optional(pvcName=texts, mountPath=texts),
    experimental=maps,
    frontendSidecar=texts,
)
new_graphs = st.fixed_dictionaries(
    {
        "spec": optional(
            components=components,
            env=named(value=texts),
            topologyConstraint=optional(clusterTopologyName=texts, packDomain=texts),
        )
    },
    optional={
        "status": optional(
            state=texts,
            components=st.dictionaries(
                names, optional(componentNames=st.lists(texts, max_size=2), replicas=st.integers())
            ),
        )
    },
)
old_requests = st.fixed_dictionaries(
    {
        "spec": optional(
            model=texts,
            backend=texts,
            useMocker=st.booleans(),
            autoApply=st.booleans(),
            profilingConfig=optional(
                profilerImage=texts,
                outputPVC=texts,
                configMapRef=maps,
                config=optional(
                    sla=optional(ttft=scalars, itl=scalars, isl=scalars, osl=scalars, extra=scalars),
                    hardware=optional(num_gpus_per_node=scalars, min_num_gpus_per_engine=scalars),
                    sweep=optional(aic_system=scalars, use_ai_configurator=scalars),
                ),
                resources=optional(limits=maps),
                tolerations=st.lists(maps, max_size=2),
            ),
            deploymentOverrides=optional(name=texts, namespace=texts, labels=maps, workersImage=texts),
        )
    },
    optional={
        "status": optional(
            state=st.sampled_from(["", "Initializing", "Ready", "DeploymentDeleted", "Failed", "Deploying"]),
            backend=texts,
            profilingResults=texts,
            generatedDeployment=maps,
            deployment=optional(name=texts, created=st.booleans(), state=texts),
        )
    },
)
new_requests = st.fixed_dictionaries(
    {
        "spec": optional(
            model=texts,
            image=texts,
            autoApply=st.booleans(),
            hardware=optional(gpuSku=texts, totalGpus=st.integers(1, 9), numGpusPerNode=st.integers(1, 9)),
            workload=optional(isl=st.integers(1, 9), requestRate=st.floats(1, 9)),
            sla=optional(ttft=st.floats(1, 9), e2eLatency=st.floats(1, 9)),
            features=optional(mocker=optional(enabled=st.booleans()), planner=maps),
            overrides=optional(
                profilingJob=optional(backoffLimit=st.integers(), template=optional(spec=optional(containers=named()))),
                dgd=optional(metadata=optional(name=texts, labels=maps), spec=maps),
            ),
            searchStrategy=texts,
        )
    },
    optional={
        "status": optional(
            phase=st.sampled_from(["Pending", "Ready", "Deployed", "Failed"]),
            dgdName=texts,
            profilingResults=optional(selectedConfig=maps, slaMet=st.booleans()),
        )
    },
)

old_adapters = optional(
    spec=optional(replicas=st.integers(0, 3), dgdRef=optional(name=texts, serviceName=texts, x=texts))
)
new_adapters = optional(
    spec=optional(dgdRef=st.one_of(texts, optional(name=texts, componentName=texts, serviceName=texts)))
)


def as_object(content: Wire, version: str) -> Wire:
    metadata = {"name": "x", "annotations": {"mine": "kept"}}
    return {"apiVersion": f"nvidia.com/{version}", "kind": "Any", "metadata": metadata, **content}


def bare(obj: Wire) -> Wire:
    """An object without what a conversion keeps in annotations."""
    made = copy.deepcopy(obj)
    annotations = made["metadata"].get("annotations") or {}
    made["metadata"]["annotations"] = {name: text for name, text in annotations.items() if not name.startswith(KEPT)}
    return made


CASES = [
    pytest.param(GRAPHS, old_graphs, "v1alpha1", id="graph-v1alpha1"),
    pytest.param(GRAPHS, new_graphs, "v1beta1", id="graph-v1beta1"),
    pytest.param(REQUESTS, old_requests, "v1alpha1", id="request-v1alpha1"),
    pytest.param(REQUESTS, new_requests, "v1beta1", id="request-v1beta1"),
    pytest.param(ADAPTERS, old_adapters, "v1alpha1", id="adapter-v1alpha1"),
    pytest.param(ADAPTERS, new_adapters, "v1beta1", id="adapter-v1beta1"),
]


def other(version: str) -> str:
    return "v1beta1" if version == "v1alpha1" else "v1alpha1"


@pytest.mark.parametrize(("conversion", "contents", "version"), CASES)
def test_an_object_that_is_converted_and_back_is_the_same(
    conversion: Conversion, contents: st.SearchStrategy[Wire], version: str
) -> None:
    @given(contents)
    def holds(content: Wire) -> None:
        obj = as_object(content, version)
        before = copy.deepcopy(obj)
        there = conversion.convert(obj, other(version))
        assert obj == before, "the argument was changed"
        assert there["apiVersion"] == f"nvidia.com/{other(version)}"
        assert conversion.convert(json.loads(json.dumps(there)), version) == obj

    holds()


@pytest.mark.parametrize(("conversion", "contents", "version"), CASES)
def test_what_a_client_writes_wins_over_what_was_kept(
    conversion: Conversion, contents: st.SearchStrategy[Wire], version: str
) -> None:
    later = next(case.values[1] for case in CASES if case.values[0] is conversion and case.values[2] == other(version))

    @given(contents, later)
    def holds(content: Wire, changed: Wire) -> None:
        kept = conversion.convert(as_object(content, version), other(version))
        # A client writes something else into the converted object, and leaves the annotation as it is.
        written = {**kept, **changed}
        back = conversion.convert(written, version)
        assert bare(conversion.convert(back, other(version))) == bare(written)

    holds()


OLD: Wire = {
    "apiVersion": "nvidia.com/v1alpha1",
    "kind": "DynamoGraphDeployment",
    "metadata": {"name": "vllm-disagg"},
    "spec": {
        "pvcs": [{"name": "cache", "create": False}],
        "services": {
            "Frontend": {
                "dynamoNamespace": "vllm-disagg",
                "componentType": "frontend",
                "replicas": 1,
                "extraPodSpec": {"mainContainer": {"image": "runtime:1"}},
            },
            "Decode": {
                "componentType": "worker",
                "subComponentType": "decode",
                "replicas": 2,
                "envFromSecret": "hf-token-secret",
                "resources": {"limits": {"gpu": "1"}},
                "sharedMemory": {"size": "20Gi"},
                "volumeMounts": [{"name": "cache", "mountPoint": "/models"}],
                "extraPodSpec": {
                    "mainContainer": {"image": "runtime:1", "command": ["python3"], "args": ["-m", "dynamo.vllm"]}
                },
            },
        },
    },
}


def test_a_service_of_v1alpha1_becomes_a_component_with_a_pod_template() -> None:
    made = GRAPHS.convert(OLD, "v1beta1")
    decode, frontend = made["spec"]["components"]
    assert (frontend["name"], frontend["type"]) == ("Frontend", "frontend")
    assert decode == {
        "name": "Decode",
        "type": "decode",
        "replicas": 2,
        "sharedMemorySize": "20Gi",
        "podTemplate": {
            "spec": {
                "containers": [
                    {
                        "name": "main",
                        "image": "runtime:1",
                        "command": ["python3"],
                        "args": ["-m", "dynamo.vllm"],
                        "envFrom": [{"secretRef": {"name": "hf-token-secret"}}],
                        "volumeMounts": [{"name": "cache", "mountPath": "/models"}],
                        "resources": {"limits": {"nvidia.com/gpu": "1"}},
                    }
                ],
                "volumes": [{"name": "cache", "persistentVolumeClaim": {"claimName": "cache"}}],
            }
        },
    }


def test_a_changed_image_keeps_the_spelling_of_everything_else() -> None:
    made = GRAPHS.convert(OLD, "v1beta1")
    for each in made["spec"]["components"]:
        each["podTemplate"]["spec"]["containers"][0]["image"] = "runtime:2"
    back = GRAPHS.convert(made, "v1alpha1")
    wanted = copy.deepcopy(OLD)
    for each in wanted["spec"]["services"].values():
        each["extraPodSpec"]["mainContainer"]["image"] = "runtime:2"
    assert bare(back)["spec"] == wanted["spec"]


def test_a_component_that_is_removed_takes_what_was_kept_of_it_along() -> None:
    made = GRAPHS.convert(OLD, "v1beta1")
    made["spec"]["components"] = made["spec"]["components"][1:]
    back = GRAPHS.convert(made, "v1alpha1")
    assert list(back["spec"]["services"]) == ["Frontend"]
    assert back["spec"]["services"]["Frontend"]["dynamoNamespace"] == "vllm-disagg"


def test_a_request_of_v1alpha1_does_not_deploy_by_itself_unless_it_says_so() -> None:
    old = {
        "apiVersion": "nvidia.com/v1alpha1",
        "kind": "DynamoGraphDeploymentRequest",
        "metadata": {"name": "sla"},
        "spec": {
            "model": "Qwen/Qwen3-32B",
            "backend": "vllm",
            "profilingConfig": {
                "profilerImage": "runtime:1",
                "config": {
                    "sla": {"isl": 3000, "osl": 150, "ttft": 200.0, "itl": 20.0},
                    "sweep": {"use_ai_configurator": True, "aic_system": "h200_sxm"},
                },
            },
        },
    }
    made = REQUESTS.convert(old, "v1beta1")["spec"]
    assert made == {
        "model": "Qwen/Qwen3-32B",
        "backend": "vllm",
        "autoApply": False,
        "image": "runtime:1",
        "workload": {"isl": 3000, "osl": 150},
        "sla": {"ttft": 200.0, "itl": 20.0},
        "hardware": {"gpuSku": "h200_sxm"},
    }


def test_an_annotation_that_is_not_ours_to_read_is_ignored() -> None:
    obj = {**OLD, "metadata": {"name": "x", "annotations": {f"{KEPT}v1beta1": "{", f"{KEPT}v1alpha1": "[]"}}}
    made = GRAPHS.convert(obj, "v1beta1")
    assert bare(GRAPHS.convert(made, "v1alpha1"))["spec"] == OLD["spec"]


def test_another_version_is_refused() -> None:
    with pytest.raises(ValueError, match="cannot be converted"):
        GRAPHS.convert(OLD, "v2")
