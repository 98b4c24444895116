"""DynamoGraphDeploymentRequest: a model to serve, on what hardware, and how well.

This module must not know how configurations are searched, nor what a deployment
is made of.
"""

from __future__ import annotations

from typing import Annotated, ClassVar, Final, Literal, TypeAlias

from holdfast.kinds.model import (
    Column,
    Count,
    Model,
    OpenObject,
    Positive,
    Resource,
    Rule,
    Status,
    api,
    unchanged,
)
from holdfast.kinds.nvidia.runtimes import GROUP, Semver

Milliseconds = Annotated[float, api(gt=0)]

EmbeddedObject = Annotated[OpenObject, api(**{"x-kubernetes-embedded-resource": True})]
"""A whole object of another kind, with its apiVersion and kind."""


Sku: TypeAlias = Literal[
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
]
"""The models of GPUs."""


# --- what is asked -----------------------------------------------------------


class ModelCache(Model):
    """A volume that holds the model's weights already."""

    pvc_name: Annotated[str, api("The PersistentVolumeClaim, in the request's namespace.", min_length=1)] | None = None
    pvc_model_path: Annotated[str, api("Where on the volume the model is.")] | None = None
    pvc_mount_path: Annotated[str, api("Where the volume is mounted.", default="/opt/model-cache")] | None = None


class Hardware(Model):
    """The GPUs to plan for; what is absent is discovered."""

    gpu_sku: (
        Annotated[
            Sku,
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
    backend: (
        Annotated[
            Literal["auto", "sglang", "trtllm", "vllm"],
            api("The engine that runs the model; auto chooses one.", default="auto"),
        ]
        | None
    ) = None
    image: Annotated[str, api("The image that the profiler runs from.")] | None = None
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


# --- what is observed --------------------------------------------------------


class ProfilingCandidate(Model):
    """A configuration that was considered, and what is expected of it."""

    config: Annotated[OpenObject, api("The configuration that was considered.")] | None = None
    predicted_ttft: Annotated[float, api("Expected time to the first token, in milliseconds.")] | None = None
    predicted_itl: Annotated[float, api("Expected time between tokens, in milliseconds.")] | None = None
    total_gpus: Annotated[Count, api("GPUs that the configuration uses.")] | None = None
    tokens_per_second_per_gpu: Annotated[float, api("Expected output tokens a second, for one GPU.")] | None = None
    tokens_per_second_per_user: Annotated[float, api("Expected output tokens a second, for one reader.")] | None = None
    sla_met: Annotated[bool, api("Whether it meets the targets.")] | None = None


class ProfilingResults(Model):
    """What profiling found."""

    selected_config: Annotated[EmbeddedObject, api("The DynamoGraphDeployment that was chosen, whole.")] | None = None
    pareto: Annotated[
        tuple[OpenObject, ...],
        api("The configurations of which none is better for readers and for GPUs than another.", list_type="atomic"),
    ] = ()
    predicted_ttft: Annotated[float, api("Time to the first token expected of the choice, in milliseconds.")] | None = (
        None
    )
    predicted_itl: Annotated[float, api("Time between tokens expected of the choice, in milliseconds.")] | None = None
    sla_met: Annotated[bool, api("Whether the choice meets the targets.")] | None = None
    why: Annotated[str, api("Why this configuration was chosen.")] | None = None
    remedy: Annotated[str, api("What would have to change where no configuration meets the targets.")] | None = None
    estimated: Annotated[bool, api("Whether the figures of the GPUs are estimates and not measurements.")] | None = None
    measured: Annotated[bool, api("Whether the figures were measured on a deployment.")] | None = None
    considered: Annotated[Count, api("Configurations that were considered.")] | None = None
    candidates: Annotated[
        tuple[ProfilingCandidate, ...], api("The best configurations, best first.", max_length=16, list_type="atomic")
    ] = ()


class ProfilingProgress(Model):
    """How far a phase of the profiling is."""

    done: Annotated[Count, api("Candidates that are done.")] | None = None
    total: Annotated[Count, api("Candidates there are.")] | None = None


class DeploymentInfo(Model):
    """The replicas of the deployment, over all its components."""

    replicas: Annotated[Count, api("Replicas that are wanted.")] | None = None
    available_replicas: Annotated[Count, api("Replicas that are available.")] | None = None
    serving_replicas: (
        Annotated[Count, api("Replicas that were available when the deployment was last ready as a whole.")] | None
    ) = None
    uid: Annotated[str, api("The UID of the deployment.")] | None = None


class DynamoGraphDeploymentRequestStatus(Status):
    """Progress of the request."""

    phase: (
        Annotated[
            Literal["Pending", "Profiling", "Ready", "Deploying", "Deployed", "Failed"],
            api("Phase of the request."),
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
            api("Phase of the profiling, while it runs."),
        ]
        | None
    ) = None
    profiling_progress: ProfilingProgress | None = None
    profiling_job_name: Annotated[str, api("The name of the profiling Job.")] | None = None
    attempt: Annotated[str, api("The hash of the spec, and of the retry, that this status describes.")] | None = None
    dgd_name: Annotated[str, api("The deployment that was generated, whether created or not.")] | None = None
    hardware: Annotated[Hardware, api("The hardware as given and discovered.")] | None = None
    profiling_results: ProfilingResults | None = None
    deployment_info: DeploymentInfo | None = None


def _frozen_but(*exceptions: str) -> str:
    """That every field of the spec but these is as it was: absent before and now, or equal."""
    fields = (name for name in DynamoGraphDeploymentRequestSpec.__struct_encode_fields__ if name not in exceptions)
    return " && ".join(unchanged(f"spec.{field}") for field in fields)


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


KIND: Final = GROUP.kind(
    DynamoGraphDeploymentRequest,
    "dynamographdeploymentrequests",
    Column("Model", ".spec.model"),
    Column("Backend", ".spec.backend"),
    Column("Phase", ".status.phase"),
    Column("Profiling", ".status.profilingPhase"),
    Column("Reason", '.status.conditions[?(@.type=="Succeeded")].reason'),
    Column("Message", '.status.conditions[?(@.type=="Succeeded")].message'),
    Column("DGD", ".status.dgdName"),
    short="dgdr",
)
