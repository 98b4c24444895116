"""Components of the mock engine, which run as processes where the cluster has them."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from holdfast.kinds.nvidia.deployments import DynamoGraphDeployment, GraphComponent
from holdfast.kinds.nvidia.requests import DynamoGraphDeploymentRequestSpec, Features, Mocker
from holdfast.operators.deploymentrequest.graphs.mocks import as_processes, is_mock
from holdfast.operators.deploymentrequest.graphs.render import pod_clique_set
from holdfast.profiler import manifests
from holdfast.profiler.request import Machines, Request, Traffic
from holdfast.profiler.search import search

SERVE = ["holdfast", "mocker", "serve"]
ARGS = ["--model", "Qwen/Qwen3-8B", "--tp", "1"]


def graph(*containers: dict[str, Any], env: tuple[dict[str, str], ...] = (), **spec: Any) -> DynamoGraphDeployment:
    template = {"metadata": {"labels": {"team": "a"}}, "spec": {"containers": list(containers), **spec}}
    wire = {
        "apiVersion": "nvidia.com/v1beta1",
        "kind": "DynamoGraphDeployment",
        "metadata": {"name": "chat", "namespace": "team"},
        "spec": {"env": list(env), "components": [{"name": "worker", "type": "worker", "podTemplate": template}]},
    }
    return msgspec.convert(wire, DynamoGraphDeployment)


def main(**fields: Any) -> dict[str, Any]:
    return {"name": "main", "image": "holdfast", "command": SERVE, "args": ARGS, **fields}


def component(of: DynamoGraphDeployment) -> GraphComponent:
    (found,) = of.spec.components
    return found


def test_a_mock_worker_runs_as_a_process_and_keeps_its_options() -> None:
    template = component(as_processes(graph(main()))).pod_template
    assert template is not None
    assert template["spec"] == {"runtimeClassName": "process", "containers": [main()]}
    assert template["metadata"] == {"labels": {"team": "a"}}


def test_what_the_profiler_writes_for_mock_workers_runs_as_processes_on_the_loopback() -> None:
    request = Request(
        model="Qwen/Qwen3-8B",
        machines=Machines(sku="h200_sxm", gpus=2),
        traffic=Traffic(isl=100, osl=10, request_rate=1),
    )
    spec = DynamoGraphDeploymentRequestSpec(model="Qwen/Qwen3-8B", features=Features(mocker=Mocker(enabled=True)))
    (made,) = manifests.deployment(request, search(request), name="chat", spec=spec, namespace="team")
    components = as_processes(msgspec.convert(made, DynamoGraphDeployment)).spec.components
    assert [each.name for each in components] == ["frontend", "worker"]
    for each in components:
        assert is_mock(each)
        assert each.pod_template is not None
        assert each.pod_template["spec"]["runtimeClassName"] == "process"
        assert "--allow-non-loopback" not in each.pod_template["spec"]["containers"][0]["args"]


def test_nothing_that_could_make_it_another_program_is_taken_over() -> None:
    evil = {"name": "PYTHONPATH", "value": "/tmp/evil"}
    given = graph(
        main(env=[evil], envFrom=[{"secretRef": {"name": "evil"}}], workingDir="/tmp", volumeMounts=[{"name": "v"}]),
        env=(evil,),
        initContainers=[{"name": "evil", "image": "x", "command": ["evil"]}],
        volumes=[{"name": "v", "emptyDir": {}}],
        hostNetwork=True,
    )
    made = pod_clique_set(as_processes(given), restarts={})
    (clique,) = made["spec"]["template"]["cliques"]
    spec = clique["spec"]["podSpec"]
    assert spec["runtimeClassName"] == "process"
    assert "evil" not in str(spec)
    assert "PYTHONPATH" not in str(spec)
    assert not {"initContainers", "hostNetwork"} & spec.keys()


@pytest.mark.parametrize(
    "given",
    [
        graph(main(command=["sh", "-c", "holdfast mocker serve"])),
        graph(main(command=["holdfast", "up"])),
        graph(main(command=[*SERVE, "--bind"])),
        graph(main(args=["--bind", "0.0.0.0"])),
        graph(main(args=["--model"])),
        graph(main(args=["--workers-file", "/etc/shadow"])),
        graph(main(), {"name": "other", "image": "x"}),
        graph(main(name="other")),
        graph(),
    ],
)
def test_what_is_not_the_mock_engine_alone_is_left_as_it_is(given: DynamoGraphDeployment) -> None:
    assert not is_mock(component(given))
    assert as_processes(given) == given


def test_a_template_with_a_runtime_class_is_left_as_it_is() -> None:
    given = graph(main(env=[{"name": "A", "value": "1"}]), runtimeClassName="process")
    assert as_processes(given) == given
