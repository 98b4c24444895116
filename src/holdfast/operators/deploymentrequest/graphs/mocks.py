"""Components of the mock engine: where the cluster runs pods as processes, theirs run so, and answer.

A component is of the mock engine where its only container runs ``holdfast mocker serve`` or ``holdfast mocker
frontend`` with options that change nothing but what is modelled.  Of its pod template nothing else is taken over: the
right to create a graph is not the right to run commands on the machine.  A template that names a runtime class itself
is left as it is: the API server has checked that its author may use that class.  Pure.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from holdfast.kinds.nvidia.deployments import DynamoGraphDeployment, GraphComponent
from holdfast.operators.deploymentrequest.graphs.components import MAIN, pod_spec

PROCESS: Final = "process"
"""The RuntimeClass of pods that run as processes of the machine of their node."""

_COMMANDS: Final = (["holdfast", "mocker", "serve"], ["holdfast", "mocker", "frontend"])
_REACHABLE: Final = "--allow-non-loopback"
_OPTIONS: Final = frozenset(
    {
        "--model", "--name", "--gpu", "--tp", "--precision", "--batch", "--step-tokens", "--kv-tokens", "--role",
        "--speed",
    }
)  # fmt: skip


def is_mock(component: GraphComponent) -> bool:
    """Whether a component runs the mock engine and nothing else."""
    containers = pod_spec(component).get("containers")
    if not isinstance(containers, Sequence) or len(containers) != 1 or not isinstance(containers[0], Mapping):
        return False
    main = containers[0]
    return main.get("name") == MAIN and main.get("command") in _COMMANDS and _is_modelled(main.get("args") or [])


def _is_modelled(args: Any) -> bool:
    """Whether arguments are pairs of options of the mock engine and their values."""
    if not isinstance(args, Sequence) or not all(isinstance(each, str) for each in args):
        return False
    pairs = _pairs(args)
    return len(pairs) % 2 == 0 and set(pairs[::2]) <= _OPTIONS


def _pairs(args: Sequence[str]) -> list[str]:
    """The arguments but the one that lets other machines reach a server: a process stays on the loopback."""
    return [each for each in args if each != _REACHABLE]


def as_processes(graph: DynamoGraphDeployment) -> DynamoGraphDeployment:
    """The graph, with the components of the mock engine as processes."""
    components = tuple(_as_process(each) if is_mock(each) else each for each in graph.spec.components)
    return msgspec.structs.replace(graph, spec=msgspec.structs.replace(graph.spec, components=components))


def _as_process(component: GraphComponent) -> GraphComponent:
    spec = pod_spec(component)
    if spec.get("runtimeClassName"):
        return component
    (main,) = spec["containers"]
    kept = {field: main[field] for field in ("name", "image", "command") if field in main}
    kept["args"] = _pairs(main.get("args") or ())
    template = {"spec": {"runtimeClassName": PROCESS, "containers": [kept]}}
    metadata = (component.pod_template or {}).get("metadata")
    if metadata is not None:
        template["metadata"] = metadata
    return msgspec.structs.replace(component, pod_template=template)
