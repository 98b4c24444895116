"""Inference deployments: the kinds of ``nvidia.com/v1beta1``.

A DynamoGraphDeploymentRequest says which model is to be served and how well; a
DynamoGraphDeployment says by which components.  Field names, enums, defaults
and columns are upstream's.  This module declares the API; profiling and
deploying are the operators' matter.
"""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

import msgspec

from holdfast.kinds.model import (
    AGE,
    Column,
    Conditions,
    Kind,
    Model,
    OpenObject,
    Quantity,
    Resource,
    Rule,
    Time,
    api,
)

Count = Annotated[int, api(ge=0, format="int32")]
Positive = Annotated[int, api(ge=1, format="int32")]
Milliseconds = Annotated[float, api(gt=0)]
Backend = Literal["sglang", "trtllm", "vllm"]
Semver = Annotated[str, api(pattern=r"^(0|[1-9][0-9]{0,3})\.(0|[1-9][0-9]{0,3})\.(0|[1-9][0-9]{0,3})$")]
"""``MAJOR.MINOR.PATCH``, of at most four digits each."""

EmbeddedObject = Annotated[OpenObject, api(**{"x-kubernetes-embedded-resource": True})]
"""A whole object of another kind, with its apiVersion and kind."""


# --- DynamoGraphDeploymentRequest: what is asked -----------------------------


class ModelCache(Model):
    """A volume that holds the model's weights already."""

    pvc_name: Annotated[str, api("The PersistentVolumeClaim, in the request's namespace.", min_length=1)] | None = None
    pvc_model_path: Annotated[str, api("Where on the volume the model is.")] | None = None
    pvc_mount_path: Annotated[str, api("Where the volume is mounted.", default="/opt/model-cache")] | None = None


class Hardware(Model):
    """The GPUs to plan for; what is absent is discovered."""

    gpu_sku: (
        Annotated[
            Literal[
                "gb200_sxm",
                "gb10",
                "b200_sxm",
                "h200_sxm",
                "h100_sxm",
                "h100_pcie",
                "a100_sxm",
                "a100_pcie",
                "a30",
                "l40s",
                "l40",
                "l4",
                "v100_sxm",
                "v100_pcie",
                "t4",
                "mi200",
                "mi300",
            ],
            api("The model of the GPUs."),
        ]
        | None
    ) = None
    vram_mb: Annotated[float, api("Memory of one GPU in MiB.", gt=0)] | None = None
    total_gpus: Annotated[Positive, api("GPUs that may be used in all.")] | None = None
    num_gpus_per_node: Annotated[Positive, api("GPUs in one node.")] | None = None
    interconnect: Annotated[str, api("What links the GPUs of a node, such as nvlink or pcie.")] | None = None
    rdma: Annotated[bool, api("Whether nodes reach each other's memory; unknown when absent.")] | None = None


class WorkloadShape(Model):
    """The traffic to plan for."""

    RULES: ClassVar = (
        Rule(
            rule="!(has(self.concurrency) && has(self.requestRate))",
            message="give the load as concurrency or as requestRate, not both",
        ),
    )

    isl: Annotated[Positive, api("Input length in tokens.", default=4000)] | None = None
    osl: Annotated[Positive, api("Output length in tokens.", default=1000)] | None = None
    concurrency: Annotated[float, api("Requests in flight at once.", gt=0)] | None = None
    request_rate: Annotated[float, api("Requests per second.", gt=0)] | None = None


class ServiceLevel(Model):
    """How fast answers must be."""

    RULES: ClassVar = (
        Rule(
            rule="!has(self.e2eLatency) || (!has(self.ttft) && !has(self.itl))",
            message="give e2eLatency, or ttft and itl, not both",
        ),
    )

    ttft: Annotated[Milliseconds, api("Time to the first token, in milliseconds; 2000 when absent.")] | None = None
    itl: Annotated[Milliseconds, api("Time between tokens, in milliseconds; 30 when absent.")] | None = None
    e2e_latency: Annotated[Milliseconds, api("Time for a whole answer, in milliseconds.")] | None = None
    optimization_type: (
        Annotated[Literal["latency", "throughput"], api("What to favour when several deployments meet the targets.")]
        | None
    ) = None


class Overrides(Model):
    """Changes to what the request generates."""

    profiling_job: Annotated[OpenObject, api("A partial JobSpec, merged into that of the profiling Job.")] | None = None
    dgd: (
        Annotated[
            EmbeddedObject,
            api("A partial DynamoGraphDeployment, merged into the generated one; its metadata.name names it."),
        ]
        | None
    ) = None


class Mocker(Model):
    """Simulated workers instead of real ones."""

    enabled: Annotated[bool, api("Whether workers are simulated.", default=False)] | None = None


class Features(Model):
    """Optional parts of the deployment."""

    planner: Annotated[OpenObject, api("The planner's configuration; its presence adds a planner.")] | None = None
    mocker: Mocker | None = None


class DynamoGraphDeploymentRequestSpec(Model):
    """The model to serve, on what, and how well."""

    RULES: ClassVar = (
        Rule(
            rule=(
                "!(has(self.searchStrategy) && self.searchStrategy == 'thorough')"
                " || (has(self.backend) && self.backend != 'auto')"
            ),
            message="a thorough search deploys real workers; name the backend instead of auto",
        ),
    )

    model: Annotated[str, api("The model, as its registry names it, such as Qwen/Qwen3-32B.", min_length=1)]
    backend: Annotated[Literal["auto", "sglang", "trtllm", "vllm"], api("The engine.", default="auto")] | None = None
    image: Annotated[str, api("The profiler's image.")] | None = None
    runtime_version_override: (
        Annotated[Semver, api("The runtime's version; needed when the image's tag is not a version.")] | None
    ) = None
    model_cache: ModelCache | None = None
    hardware: Hardware | None = None
    workload: WorkloadShape | None = None
    sla: ServiceLevel | None = None
    overrides: Overrides | None = None
    features: Features | None = None
    search_strategy: (
        Annotated[
            Literal["rapid", "thorough"],
            api("Whether configurations are estimated (rapid) or measured (thorough).", default="rapid"),
        ]
        | None
    ) = None
    auto_apply: (
        Annotated[bool, api("Whether the generated deployment is created without review.", default=True)] | None
    ) = None


# --- DynamoGraphDeploymentRequest: what is observed --------------------------


class ProfilingCandidate(Model):
    """A configuration that was considered, and what is expected of it."""

    config: Annotated[OpenObject, api("The configuration.")] | None = None
    predicted_ttft: Annotated[float, api("Expected time to the first token, in milliseconds.")] | None = None
    predicted_itl: Annotated[float, api("Expected time between tokens, in milliseconds.")] | None = None
    total_gpus: Annotated[Count, api("GPUs that it uses.")] | None = None
    sla_met: Annotated[bool, api("Whether it meets the targets.")] | None = None


class ProfilingResults(Model):
    """What profiling found."""

    selected_config: Annotated[EmbeddedObject, api("The DynamoGraphDeployment that was chosen, whole.")] | None = None
    pareto: Annotated[tuple[OpenObject, ...], api("Kept for older clients; no longer written.")] = ()
    predicted_ttft: Annotated[float, api("Time to the first token expected of the choice, in milliseconds.")] | None = (
        None
    )
    predicted_itl: Annotated[float, api("Time between tokens expected of the choice, in milliseconds.")] | None = None
    sla_met: Annotated[bool, api("Whether the choice meets the targets.")] | None = None
    candidates: Annotated[
        tuple[ProfilingCandidate, ...], api("The best configurations, best first.", max_length=16, list_type="atomic")
    ] = ()


class DeploymentInfo(Model):
    """The replicas of the deployment, over all its components."""

    replicas: Annotated[Count, api("Replicas wanted.")] | None = None
    available_replicas: Annotated[Count, api("Replicas available.")] | None = None


class DynamoGraphDeploymentRequestStatus(Model):
    """How far the request has come."""

    phase: (
        Annotated[
            Literal["Pending", "Profiling", "Ready", "Deploying", "Deployed", "Failed"],
            api("Where the request stands."),
        ]
        | None
    ) = None
    profiling_phase: (
        Annotated[
            Literal[
                "Initializing",
                "SweepingPrefill",
                "SweepingDecode",
                "SelectingConfig",
                "BuildingCurves",
                "GeneratingDGD",
                "Done",
            ],
            api("Where profiling stands, or stood when it failed."),
        ]
        | None
    ) = None
    profiling_job_name: Annotated[str, api("The profiling Job.")] | None = None
    dgd_name: Annotated[str, api("The deployment that was generated, whether created or not.")] | None = None
    hardware: Annotated[Hardware, api("The hardware as given and discovered.")] | None = None
    profiling_results: ProfilingResults | None = None
    deployment_info: DeploymentInfo | None = None
    conditions: Conditions = ()
    observed_generation: Annotated[int, api("The generation that this describes.", ge=0, format="int64")] | None = None


def _frozen_but(*exceptions: str) -> str:
    """That every field of the spec but these is as it was: absent before and now, or equal."""
    fields = (name for name in DynamoGraphDeploymentRequestSpec.__struct_encode_fields__ if name not in exceptions)
    return " && ".join(
        f"has(self.spec.{field}) == has(oldSelf.spec.{field})"
        f" && (!has(self.spec.{field}) || self.spec.{field} == oldSelf.spec.{field})"
        for field in fields
    )


class DynamoGraphDeploymentRequest(Resource):
    """A request to serve a model: it is profiled, a deployment is generated and, unless reviewed first, created."""

    # A request that is at work keeps its spec. While its result is for review (autoApply false),
    # the runtime version may still be set, and once it is Ready autoApply may be switched on.
    RULES: ClassVar = (
        Rule(
            rule=(
                "!has(oldSelf.status) || !has(oldSelf.status.phase)"
                " || !(oldSelf.status.phase in ['Profiling', 'Ready', 'Deploying', 'Deployed'])"
                " || self.spec == oldSelf.spec"
                " || (has(oldSelf.spec.autoApply) && !oldSelf.spec.autoApply"
                " && (oldSelf.status.phase == 'Ready' || (oldSelf.status.phase == 'Profiling'"
                " && has(self.spec.autoApply) && !self.spec.autoApply))"
                f" && {_frozen_but('runtimeVersionOverride', 'autoApply')})"
            ),
            message=(
                "spec cannot change while the request is at work; create another request, or, where autoApply is"
                " false, change runtimeVersionOverride, or autoApply once it is Ready"
            ),
            reason="FieldValueForbidden",
            field_path=".spec",
        ),
    )

    spec: DynamoGraphDeploymentRequestSpec
    status: DynamoGraphDeploymentRequestStatus | None = None


# --- DynamoGraphDeployment: what is asked ------------------------------------


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

    name: Annotated[str, api("The model.", min_length=1)]
    revision: Annotated[str, api("Its revision.")] | None = None


class CompilationCache(Model):
    """A volume that keeps compiled kernels."""

    pvc_name: Annotated[str, api("The PersistentVolumeClaim, in the same namespace.", min_length=1)]
    mount_path: Annotated[str, api("Where it is mounted; the backend's place when absent.")] | None = None


class ScalingAdapter(Model):
    """Hands a component's replicas over to an autoscaler; its presence is all it says."""


class EndpointPicker(Model):
    """Configuration of an endpoint picker (epp)."""

    RULES: ClassVar = (
        Rule(rule="has(self.configMapRef) != has(self.config)", message="give either configMapRef or config"),
    )

    config_map_ref: Annotated[OpenObject, api("A key of a ConfigMap that holds it.")] | None = None
    config: Annotated[OpenObject, api("The configuration itself.")] | None = None


class GraphComponent(Model):
    """One role of the graph and its replicas."""

    RULES: ClassVar = (
        Rule(
            rule=(
                "has(self.minAvailable) == has(oldSelf.minAvailable)"
                " && (!has(self.minAvailable) || self.minAvailable == oldSelf.minAvailable)"
            ),
            message="minAvailable is immutable",
            reason="FieldValueForbidden",
        ),
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
    pod_template: Annotated[OpenObject, api("The pods; the container main is completed by the operator.")] | None = None
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


class DynamoGraphDeploymentSpec(Model):
    """The components of a graph and what they share."""

    RULES: ClassVar = (
        Rule(
            rule="oldSelf.hasValue() || !has(self.restart)",
            message="restart must be absent when a graph is created; set restart.id later to restart it",
            optional_old_self=True,
        ),
    )

    annotations: Annotated[dict[str, str], api("Annotations of everything that is created.")] = {}
    labels: Annotated[dict[str, str], api("Labels of everything that is created.")] = {}
    priority_class_name: Annotated[str, api("The PriorityClass of the pods.")] | None = None
    components: Annotated[
        tuple[GraphComponent, ...],
        api(
            "The components.",
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
    backend_framework: Annotated[Backend, api("The engine.")] | None = None
    restart: GraphRestart | None = None
    topology_constraint: SpecTopologyConstraint | None = None
    provider_override: (
        Annotated[OpenObject, api("Settings of the object that the workload provider makes of the graph.")] | None
    ) = None
    experimental: Annotated[OpenObject, api("Previews whose form may change.")] | None = None


class EnvironmentVariable(Model):
    """An environment variable, as containers have it."""

    name: Annotated[str, api("The variable's name.", min_length=1)]
    value: Annotated[str, api("Its value.")] | None = None
    value_from: Annotated[OpenObject, api("Where its value comes from.")] | None = None


# --- DynamoGraphDeployment: what is observed ---------------------------------


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
    """How far a rolling update has come."""

    phase: (
        Annotated[Literal["", "Pending", "InProgress", "Completed", "Failed"], api("Where the update stands.")] | None
    ) = None
    start_time: Annotated[Time, api("When it began.")] | None = None
    end_time: Annotated[Time, api("When it ended.")] | None = None
    updated_components: Annotated[tuple[str, ...], api("Components that are done.", list_type="set")] = ()


class GraphRestartStatus(Model):
    """How far a restart has come."""

    observed_id: Annotated[str, api("The restart.id that this describes.")] | None = msgspec.field(
        default=None, name="observedID"
    )
    phase: (
        Annotated[
            Literal["Pending", "Restarting", "Completed", "Failed", "Superseded"], api("Where the restart stands.")
        ]
        | None
    ) = None
    in_progress: Annotated[tuple[str, ...], api("Components that are restarting.", list_type="set")] = ()


class CheckpointStatus(Model):
    """The checkpoint of one component."""

    checkpoint_name: Annotated[str, api("The checkpoint's name.")] | None = None
    identity_hash: Annotated[str, api("The hash of what the checkpoint depends on.")] | None = None
    ready: Annotated[bool, api("Whether it can be restored from.")] | None = None


class DynamoGraphDeploymentStatus(Model):
    """What is observed of a graph."""

    observed_generation: Annotated[int, api("The generation that this describes.", ge=0, format="int64")] | None = None
    state: (
        Annotated[
            Literal["initializing", "pending", "successful", "failed"],
            api("Where the deployment stands.", default="initializing"),
        ]
        | None
    ) = None
    conditions: Conditions = ()
    components: Annotated[dict[str, ComponentStatus], api("The components, by name.")] = {}
    restart: GraphRestartStatus | None = None
    rolling_update: GraphRollingUpdate | None = None
    checkpoints: Annotated[dict[str, CheckpointStatus], api("The checkpoints, by component.")] = {}
    placement: Annotated[OpenObject, api("What the scheduler says of the placement.")] | None = None


class DynamoGraphDeployment(Resource):
    """A graph of components that together serve a model."""

    spec: DynamoGraphDeploymentSpec
    status: DynamoGraphDeploymentStatus | None = None


# --- the kinds ---------------------------------------------------------------

KINDS: tuple[Kind, ...] = (
    Kind(
        model=DynamoGraphDeploymentRequest,
        group="nvidia.com",
        version="v1beta1",
        plural="dynamographdeploymentrequests",
        short_names=("dgdr",),
        columns=(
            Column(name="Model", path=".spec.model"),
            Column(name="Backend", path=".spec.backend"),
            Column(name="Phase", path=".status.phase"),
            Column(name="Profiling", path=".status.profilingPhase"),
            Column(name="Reason", path='.status.conditions[?(@.type=="Succeeded")].reason'),
            Column(name="Message", path='.status.conditions[?(@.type=="Succeeded")].message'),
            Column(name="DGD", path=".status.dgdName"),
            AGE,
        ),
    ),
    Kind(
        model=DynamoGraphDeployment,
        group="nvidia.com",
        version="v1beta1",
        plural="dynamographdeployments",
        short_names=("dgd",),
        columns=(
            Column(name="Ready", path='.status.conditions[?(@.type=="Ready")].status'),
            Column(name="Backend", path=".spec.backendFramework"),
            AGE,
            Column(name="State", path=".status.state", priority=1),
            Column(name="Reason", path='.status.conditions[?(@.type=="Ready")].reason', priority=1),
        ),
    ),
)
