"""DynamoGraphDeployment: the components that together serve a model.

This module must not know who asked for them, nor what objects they become.
"""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Final, Literal

import msgspec

from holdfast.kinds import core
from holdfast.kinds.model import (
    AGE,
    Column,
    Count,
    Model,
    OpenObject,
    Positive,
    Quantity,
    Resource,
    Rule,
    Status,
    Time,
    api,
    frozen,
)
from holdfast.kinds.nvidia.runtimes import GROUP, Backend, Semver

# --- what is asked -----------------------------------------------------------


class TopologyConstraint(Model):
    """Where a component's pods must be close together."""

    pack_domain: Annotated[str, api("The level of the topology to pack pods within, such as rack.", min_length=1)]


class SpecTopologyConstraint(Model):
    """Where the graph's pods must be close together."""

    cluster_topology_name: Annotated[str, api("The ClusterTopology that names the levels.", min_length=1)] | None = None
    pack_domain: Annotated[str, api("The level for components that say none.", min_length=1)] | None = None


class RestartStrategy(Model):
    """How components are restarted."""

    type: (
        Annotated[Literal["Sequential", "Parallel"], api("One after another, or all at once.", default="Sequential")]
        | None
    ) = None
    order: Annotated[tuple[str, ...], api("The order of components, for Sequential.", max_length=25)] = ()


class GraphRestart(Model):
    """A request to restart the graph."""

    id: Annotated[str, api("Any text; the graph is restarted when it changes.", min_length=1)]
    strategy: RestartStrategy | None = None


class Multinode(Model):
    """A component whose replicas each span several nodes."""

    node_count: Annotated[int, api("Nodes of one replica.", ge=2, default=2, format="int32")] | None = None


class ModelReference(Model):
    """The model that a component serves."""

    name: Annotated[str, api("The name of the model.", min_length=1)]
    revision: Annotated[str, api("The revision of the model.")] | None = None


class CompilationCache(Model):
    """A volume that keeps compiled kernels."""

    pvc_name: Annotated[str, api("The PersistentVolumeClaim, in the same namespace.", min_length=1)]
    mount_path: Annotated[str, api("Where it is mounted; the backend's place when absent.")] | None = None


class ScalingAdapter(Model):
    """Hands a component's replicas over to an autoscaler; it has no fields."""


class EndpointPicker(Model):
    """Configuration of an endpoint picker (epp)."""

    RULES: ClassVar = (
        Rule(rule="has(self.configMapRef) != has(self.config)", message="give either configMapRef or config"),
    )

    config_map_ref: Annotated[OpenObject, api("A key of a ConfigMap that holds it.")] | None = None
    config: Annotated[OpenObject, api("The configuration itself.")] | None = None


POD_TEMPLATE: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {
        "metadata": {
            "description": "Labels and annotations of the pods.",
            "type": "object",
            "properties": {
                name: {"type": "object", "additionalProperties": {"type": "string"}}
                for name in ("labels", "annotations")
            },
            "x-kubernetes-preserve-unknown-fields": True,
        },
        # A template without containers is refused by the operator, which names the component.
        "spec": {
            "description": "The spec of each pod.",
            **{name: value for name, value in core.schema("PodSpec").items() if name != "required"},
        },
    },
}
"""The schema of a pod template."""

PodTemplate = Annotated[OpenObject, api(**{**POD_TEMPLATE, "x-kubernetes-preserve-unknown-fields": None})]


class GraphComponent(Model):
    """One role of the graph and its replicas."""

    RULES: ClassVar = (
        frozen("minAvailable"),
        Rule(
            rule="!has(self.minAvailable) || !has(self.replicas) || self.minAvailable <= self.replicas",
            message="minAvailable must not be more than replicas",
        ),
        Rule(
            rule="!has(self.eppConfig) || (has(self.type) && self.type == 'epp')",
            message="eppConfig is for components of type epp alone",
        ),
    )

    name: Annotated[
        str,
        api(
            "The component's name, unique in the graph.",
            min_length=1,
            max_length=63,
            pattern=r"^[A-Za-z0-9]([-A-Za-z0-9]*[A-Za-z0-9])?$",
        ),
    ]
    type: (
        Annotated[Literal["frontend", "worker", "prefill", "decode", "planner", "epp"], api("The component's role.")]
        | None
    ) = None
    replicas: Annotated[Count, api("Replicas to run; the autoscaler's, where there is a scalingAdapter.")] | None = None
    min_available: Annotated[Positive, api("Replicas that are scheduled together or not at all.")] | None = None
    multinode: Multinode | None = None
    pod_template: Annotated[PodTemplate, api("The pods; the container main is completed by the operator.")] | None = (
        None
    )
    shared_memory_size: Annotated[Quantity, api("The size of /dev/shm; 8Gi when absent, and none when 0.")] | None = (
        None
    )
    model_ref: ModelReference | None = None
    scaling_adapter: ScalingAdapter | None = None
    epp_config: EndpointPicker | None = None
    frontend_sidecar: Annotated[str, api("The container of podTemplate that is a frontend.")] | None = None
    compilation_cache: CompilationCache | None = None
    topology_constraint: TopologyConstraint | None = None
    global_dynamo_namespace: Annotated[bool, api("Whether it is found by components of other graphs.")] | None = None
    runtime_version_override: Annotated[Semver, api("The runtime's version, when the image's tag is none.")] | None = (
        None
    )
    experimental: Annotated[OpenObject, api("Previews whose form may change.")] | None = None


class EnvironmentVariable(Model):
    """An environment variable, as containers have it."""

    name: Annotated[str, api("The variable's name.", min_length=1)]
    value: Annotated[str, api("The value of the variable.")] | None = None
    value_from: Annotated[OpenObject, api("Where its value comes from.")] | None = None


NO_RESTART_AT_FIRST: Final = Rule(
    rule="oldSelf.hasValue() || !has(self.restart)",
    message="restart must be absent when a graph is created; set restart.id later to restart it",
    optional_old_self=True,
)


class DynamoGraphDeploymentSpec(Model):
    """The components of a graph and what they share."""

    RULES: ClassVar = (NO_RESTART_AT_FIRST,)

    annotations: Annotated[dict[str, str], api("Annotations of everything that is created.")] = {}
    labels: Annotated[dict[str, str], api("Labels of everything that is created.")] = {}
    priority_class_name: Annotated[str, api("The PriorityClass of the pods.")] | None = None
    components: Annotated[
        tuple[GraphComponent, ...],
        api(
            "The components of the graph.",
            keys=("name",),
            max_length=25,
            rules=(
                Rule(
                    rule="self.filter(c, has(c.type) && c.type == 'epp').size() <= 1",
                    message="at most one component may be of type epp",
                ),
                Rule(
                    rule="self.all(a, self.exists_one(b, b.name.lowerAscii() == a.name.lowerAscii()))",
                    message="names of components must differ by more than upper and lower case",
                ),
            ),
        ),
    ] = ()
    env: Annotated[
        tuple[EnvironmentVariable, ...], api("Environment variables of every component.", keys=("name",))
    ] = ()
    backend_framework: Annotated[Backend, api("The engine that runs the model.")] | None = None
    restart: GraphRestart | None = None
    topology_constraint: SpecTopologyConstraint | None = None
    provider_override: (
        Annotated[OpenObject, api("Settings of the object that the workload provider makes of the graph.")] | None
    ) = None
    experimental: Annotated[OpenObject, api("Previews whose form may change.")] | None = None


# --- what is observed --------------------------------------------------------


class ComponentStatus(Model):
    """The replicas of one component; a count that is absent was not reported."""

    component_kind: Annotated[
        Literal["PodClique", "PodCliqueScalingGroup", "Deployment", "LeaderWorkerSet"],
        api("The kind of the objects that run it."),
    ]
    component_names: Annotated[tuple[str, ...], api("The names of the objects that run it.")] = ()
    runtime_namespace: Annotated[str, api("The namespace in which its workers find each other.")] | None = None
    replicas: Annotated[Count, api("Replicas that exist.")] | None = None
    updated_replicas: Annotated[Count, api("Replicas of the newest revision.")] | None = None
    ready_replicas: Annotated[Count, api("Replicas that are ready.")] | None = None
    available_replicas: Annotated[Count, api("Replicas that are available.")] | None = None
    scheduled_replicas: Annotated[Count, api("Replicas that are scheduled.")] | None = None


class GraphRollingUpdate(Model):
    """Progress of a rolling update."""

    phase: (
        Annotated[Literal["", "Pending", "InProgress", "Completed", "Failed"], api("Phase of the update.")] | None
    ) = None
    start_time: Annotated[Time, api("When the update began.")] | None = None
    end_time: Annotated[Time, api("When the update ended.")] | None = None
    updated_components: Annotated[tuple[str, ...], api("Components that are done.", list_type="set")] = ()


class GraphRestartStatus(Model):
    """Progress of a restart."""

    observed_id: Annotated[str, api("The restart.id that this describes.")] | None = msgspec.field(
        default=None, name="observedID"
    )
    phase: (
        Annotated[Literal["Pending", "Restarting", "Completed", "Failed", "Superseded"], api("Phase of the restart.")]
        | None
    ) = None
    in_progress: Annotated[tuple[str, ...], api("Components that are restarting.", list_type="set")] = ()


class CheckpointStatus(Model):
    """The checkpoint of one component."""

    checkpoint_name: Annotated[str, api("The checkpoint's name.")] | None = None
    identity_hash: Annotated[str, api("The hash of what the checkpoint depends on.")] | None = None
    ready: Annotated[bool, api("Whether it can be restored from.")] | None = None


class DynamoGraphDeploymentStatus(Status):
    """What is observed of a graph."""

    state: (
        Annotated[
            Literal["initializing", "pending", "successful", "failed"],
            api("State of the deployment.", default="initializing"),
        ]
        | None
    ) = None
    components: Annotated[dict[str, ComponentStatus], api("The components, by name.")] = {}
    restart: GraphRestartStatus | None = None
    rolling_update: GraphRollingUpdate | None = None
    checkpoints: Annotated[dict[str, CheckpointStatus], api("The checkpoints, by component.")] = {}
    placement: Annotated[OpenObject, api("What the scheduler says of the placement.")] | None = None


class DynamoGraphDeployment(Resource):
    """A graph of components that together serve a model."""

    spec: DynamoGraphDeploymentSpec
    status: DynamoGraphDeploymentStatus | None = None


KIND: Final = GROUP.kind(
    DynamoGraphDeployment,
    "dynamographdeployments",
    Column("Ready", '.status.conditions[?(@.type=="Ready")].status'),
    Column("Backend", ".spec.backendFramework"),
    AGE,
    Column("State", ".status.state", priority=1),
    Column("Reason", '.status.conditions[?(@.type=="Ready")].reason', priority=1),
    short="dgd",
)
