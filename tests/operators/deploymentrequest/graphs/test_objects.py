"""What a DynamoGraphDeployment becomes: a PodCliqueSet, Services, and the environment of its pods."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from tests.operators.deploymentrequest.graphs.stories import component, disaggregated, graph

from holdfast.kinds.nvidia.deployments import DynamoGraphDeployment
from holdfast.operators.deploymentrequest.graphs import render
from holdfast.operators.deploymentrequest.graphs.validate import problems


def read(manifest: dict[str, Any]) -> DynamoGraphDeployment:
    metadata = {"namespace": "ml", **manifest["metadata"]}
    wire = {"apiVersion": "nvidia.com/v1beta1", "kind": "DynamoGraphDeployment", **manifest, "metadata": metadata}
    return msgspec.json.decode(json.dumps(wire).encode(), type=DynamoGraphDeployment)


def rendered(manifest: dict[str, Any], **restarts: str) -> dict[str, Any]:
    return render.pod_clique_set(read(manifest), restarts=restarts)


def cliques(manifest: dict[str, Any], **restarts: str) -> dict[str, Any]:
    return {each["name"]: each for each in rendered(manifest, **restarts)["spec"]["template"]["cliques"]}


def main(clique: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = next(each for each in clique["spec"]["podSpec"]["containers"] if each["name"] == "main")
    return found


def variables(clique: dict[str, Any]) -> dict[str, str]:
    return {each["name"]: each.get("value", "") for each in main(clique)["env"]}


def test_each_component_on_one_node_is_a_clique() -> None:
    made = cliques(disaggregated())
    sizes = {name: (each["spec"]["replicas"], each["spec"]["minAvailable"]) for name, each in made.items()}
    assert sizes == {"frontend": (1, 1), "prefill": (2, 1), "decode": (3, 2)}
    assert "podCliqueScalingGroups" not in rendered(disaggregated())["spec"]["template"]


def test_a_component_on_several_nodes_is_a_scaling_group_of_a_leader_and_its_workers() -> None:
    manifest = graph(component("decode", "decode", 2, multinode={"nodeCount": 4}))
    (group,) = rendered(manifest)["spec"]["template"]["podCliqueScalingGroups"]
    assert group == {"name": "decode", "cliqueNames": ["decode-ldr", "decode-wkr"], "replicas": 2, "minAvailable": 1}
    made = cliques(manifest)
    assert {name: each["spec"]["replicas"] for name, each in made.items()} == {"decode-ldr": 1, "decode-wkr": 3}
    assert made["decode-wkr"]["spec"]["minAvailable"] == 3
    leader = "$(GROVE_PCSG_NAME)-$(GROVE_PCSG_INDEX)-decode-ldr-0.$(GROVE_HEADLESS_SERVICE)"
    assert variables(made["decode-wkr"])["DYNAMO_LEADER_ADDRESS"] == leader
    assert variables(made["decode-ldr"])["DYNAMO_RANK"] == "0"


def test_names_that_are_too_long_are_shortened_and_stay_apart() -> None:
    long = graph(
        component("VllmPrefillWorkerWithLongName", multinode={"nodeCount": 2}),
        component("VllmPrefillWorkerWithLongerName", multinode={"nodeCount": 2}),
        name="a-deployment-whose-name-alone-is-nearly-as-long-as-allowed",
    )
    made = rendered(long)
    for group in made["spec"]["template"]["podCliqueScalingGroups"]:
        for clique in group["cliqueNames"]:
            assert len(made["metadata"]["name"]) + len(group["name"]) + len(clique) <= 45
    assert len({group["name"] for group in made["spec"]["template"]["podCliqueScalingGroups"]}) == 2


def test_a_component_of_no_replicas_is_created_with_its_minimum_and_scaled_afterwards() -> None:
    assert cliques(graph(component("decode", replicas=0)))["decode"]["spec"]["replicas"] == 1


def test_frontends_have_a_service_and_workers_a_headless_one() -> None:
    manifest = graph(
        component("Frontend", "frontend"),
        component("decode", "decode", modelRef={"name": "Qwen/Qwen3-32B"}),
        component("helper", None),
    )
    services = {each["metadata"]["name"]: each for each in render.services(read(manifest))}
    assert services.keys() == {"chat-frontend", "chat-decode"}
    assert services["chat-frontend"]["spec"]["ports"] == [
        {"name": "http", "port": 8000, "targetPort": 8000, "protocol": "TCP"}
    ]
    assert services["chat-decode"]["spec"]["clusterIP"] == "None"
    assert services["chat-decode"]["metadata"]["annotations"]["nvidia.com/dynamo-base-model"] == "Qwen/Qwen3-32B"
    selected = services["chat-decode"]["spec"]["selector"]
    assert selected.items() <= cliques(manifest)["decode"]["labels"].items()


def test_pods_are_told_what_they_are_and_what_the_manifest_says_wins() -> None:
    own = component("decode", "decode", main={"env": [{"name": "DYN_NAMESPACE", "value": "mine"}]})
    found = variables(cliques(graph(own, env=[{"name": "HF_HOME", "value": "/models"}]))["decode"])
    assert found["DYN_NAMESPACE"] == "mine"
    assert found["HF_HOME"] == "/models"
    assert (found["DYN_COMPONENT"], found["DYN_SYSTEM_PORT"]) == ("decode", "9090")
    assert found["DYN_PARENT_DGD_K8S_NAME"] == "chat"


def test_a_frontend_is_told_the_services_of_the_workers_and_as_a_process_their_addresses_in_a_file() -> None:
    found = variables(cliques(disaggregated())["frontend"])
    assert found["HOLDFAST_WORKERS"] == "prefill=chat-prefill.ml.svc:9090,decode=chat-decode.ml.svc:9090"
    assert "HOLDFAST_WORKERS_FILE" not in found
    process = graph(component("Frontend", "frontend", spec={"runtimeClassName": "process"}), component("decode"))
    clique = cliques(process)["frontend"]
    assert variables(clique)["HOLDFAST_WORKERS_FILE"] == "/etc/holdfast/workers/workers.json"
    assert {"name": "workers", "configMap": {"name": "chat-workers"}} in clique["spec"]["podSpec"]["volumes"]
    config = render.workers(read(process), {"decode": ("127.8.0.3", "127.8.0.4")})
    assert [each["address"] for each in json.loads(config["data"]["workers.json"])["workers"]] == [
        "127.8.0.3:9090",
        "127.8.0.4:9090",
    ]


@pytest.mark.parametrize(
    ("asked", "size"), [({}, "8Gi"), ({"sharedMemorySize": "16Gi"}, "16Gi"), ({"sharedMemorySize": "0"}, None)]
)
def test_shared_memory_is_mounted_unless_its_size_is_0(asked: dict[str, Any], size: str | None) -> None:
    clique = cliques(graph(component("decode", **asked)))["decode"]
    sizes = [each["emptyDir"]["sizeLimit"] for each in clique["spec"]["podSpec"].get("volumes", ())]
    assert sizes == ([] if size is None else [size])
    mounts = [each["mountPath"] for each in main(clique).get("volumeMounts", ())]
    assert mounts == ([] if size is None else ["/dev/shm"])


def test_probes_lead_to_the_port_that_the_container_declares() -> None:
    own = component("Frontend", "frontend", main={"ports": [{"name": "http", "containerPort": 9999}]})
    found = main(cliques(graph(own))["frontend"])
    assert found["readinessProbe"]["httpGet"]["port"] == 9999
    assert found["ports"] == [{"name": "http", "containerPort": 9999}]
    (service,) = render.services(read(graph(own)))
    assert service["spec"]["ports"][0] == {"name": "http", "port": 8000, "targetPort": 9999, "protocol": "TCP"}


def test_labels_and_annotations_of_the_graph_are_on_everything_and_those_of_a_component_win() -> None:
    manifest = graph(component("decode"), labels={"team": "a"}, annotations={"seen": "yes"})
    manifest["spec"]["annotations"] = {"seen": "yes"}
    made = rendered(manifest)
    assert made["metadata"]["labels"]["team"] == "a"
    assert cliques(manifest)["decode"]["labels"]["team"] == "a"
    assert cliques(manifest)["decode"]["annotations"]["seen"] == "yes"


def test_the_limits_of_updates_come_from_annotations() -> None:
    slow = {
        "nvidia.com/deployment-rolling-update-max-surge": "0",
        "nvidia.com/deployment-rolling-update-max-unavailable": "1",
    }
    strategy = rendered(graph(component("decode"), annotations=slow))["spec"]["updateStrategy"]
    assert strategy["rollingUpdate"] == {"maxSurge": 0, "maxUnavailable": 1}
    default = rendered(graph(component("decode")))["spec"]["updateStrategy"]
    assert default["rollingUpdate"] == {"maxSurge": "25%", "maxUnavailable": "25%"}


def test_the_layout_changes_with_components_and_not_with_sizes_or_images() -> None:
    def layout(*components: dict[str, Any]) -> Any:
        return render.layout(rendered(graph(*components))["spec"])

    one = component("decode", "decode", 2)
    assert layout(one) == layout(component("decode", "decode", 5, main={"image": "other:2"}))
    assert layout(one) != layout(one, component("prefill", "prefill"))
    assert layout(one) != layout(component("decode", "decode", 2, multinode={"nodeCount": 2}))


@pytest.mark.parametrize(
    ("manifest", "said"),
    [
        (graph(), "spec.components: a graph needs a component"),
        (
            graph({"name": "decode"}),
            "spec.components[decode].podTemplate.spec.containers: it has no container main",
        ),
        (
            graph({"name": "decode", "podTemplate": {"spec": {"containers": [{"name": "main"}]}}}),
            "spec.components[decode].podTemplate.spec.containers[main].image: is required",
        ),
        (
            graph(component("decode"), restart={"id": "1", "strategy": {"order": ["prefill"]}}),
            "spec.restart.strategy.order: there is no component prefill",
        ),
        (
            graph(component("decode"), annotations={"nvidia.com/grove-update-strategy": "Never"}),
            "metadata.annotations[nvidia.com/grove-update-strategy]: 'Never' is no update strategy",
        ),
        (
            graph(component("decode"), annotations={"nvidia.com/deployment-rolling-update-max-surge": "some"}),
            "metadata.annotations[nvidia.com/deployment-rolling-update-max-surge]: 'some' is no amount",
        ),
        (graph(component("decode", frontendSidecar="x")), "spec.components[decode].frontendSidecar: no container"),
    ],
)
def test_a_spec_that_cannot_be_carried_out_is_refused_with_the_field(manifest: dict[str, Any], said: str) -> None:
    found = "; ".join(map(str, problems(read(manifest))))
    assert said in found


def command(backend: str | None, role: str, *words: str, shell: bool = False) -> list[str]:
    """The whole command of a pod of a component on two nodes."""
    own = {"command": ["/bin/sh", "-c"], "args": [" ".join(words)]} if shell else {"command": list(words)}
    manifest = graph(component("decode", "decode", multinode={"nodeCount": 2}, main=own))
    if backend:
        manifest["spec"]["backendFramework"] = backend
    made = main(cliques(manifest)[f"decode-{role}"])
    return [*made.get("command", ()), *made.get("args", ())]


VLLM = ("python3", "-m", "dynamo.vllm", "--model", "a b")
LEADER = "$(DYNAMO_LEADER_ADDRESS)"
RANK = "$((GROVE_PCLQ_POD_INDEX + 1))"


def test_engines_on_several_nodes_are_told_their_leader_and_their_ranks() -> None:
    group = ["--nnodes", "2", "--node-rank", "0", "--master-addr", LEADER, "--master-port", "29500"]
    executor = ["--distributed-executor-backend", "mp"]
    assert command("vllm", "ldr", *VLLM) == [*VLLM[:3], *executor, *group, *VLLM[3:]]
    shell, option, script, name, *words = command("vllm", "wkr", *VLLM)
    assert (shell, option, name, words) == ("/bin/sh", "-c", "sh", list(VLLM))
    assert script.startswith('exec "$@" --distributed-executor-backend mp --nnodes 2')
    assert f"--node-rank {RANK}" in script
    assert script.endswith("--headless")
    sglang = command("sglang", "wkr", "python3", "-m", "dynamo.sglang", "--tp", "16", shell=True)
    flags = f"--dist-init-addr {LEADER}:29500 --nnodes 2 --node-rank {RANK}"
    assert sglang == ["/bin/sh", "-c", f"python3 -m dynamo.sglang {flags} --tp 16"]


@pytest.mark.parametrize(
    ("backend", "words"),
    [
        (None, VLLM),
        ("trtllm", ("python3", "-m", "dynamo.trtllm")),
        ("vllm", ("start-engine",)),
        ("vllm", (*VLLM, "--nnodes", "2")),
    ],
)
def test_a_command_that_is_not_known_or_complete_is_left_as_it_is(backend: str | None, words: tuple[str, ...]) -> None:
    assert command(backend, "wkr", *words) == list(words)
