"""The kinds of ``nvidia.com/v1alpha1``, which are served beside v1beta1 and converted (`conversion`).

Types of the fields that manifests have; an object of it is never operated on.
"""

from __future__ import annotations

from typing import Annotated, ClassVar, Final

from holdfast.kinds.model import (
    AGE,
    Column,
    Count,
    Model,
    Older,
    OpenObject,
    Resource,
    Rule,
    Status,
    api,
    unchanged,
)
from holdfast.kinds.nvidia import conversion
from holdfast.kinds.nvidia.deployments import (
    NO_RESTART_AT_FIRST,
    CheckpointStatus,
    GraphRestart,
    GraphRestartStatus,
    ModelReference,
    Multinode,
)
from holdfast.kinds.nvidia.runtimes import Backend, Semver


class Amounts(Model):
    """Amounts of resources."""

    cpu: Annotated[str, api("CPUs, such as 500m.")] | None = None
    memory: Annotated[str, api("Memory, such as 4Gi.")] | None = None
    gpu: Annotated[str, api("GPUs of one node.")] | None = None
    gpu_type: Annotated[str, api("The resource of the GPUs; nvidia.com/gpu when absent.")] | None = None
    custom: Annotated[dict[str, str], api("Other resources.")] = {}


class Resources(Model):
    """The resources of a service."""

    requests: Amounts | None = None
    limits: Amounts | None = None
    claims: Annotated[tuple[OpenObject, ...], api("Resource claims.")] = ()


class ServiceVolume(Model):
    """A claim that a service mounts."""

    name: Annotated[str, api("The PersistentVolumeClaim.")] | None = None
    mount_point: Annotated[str, api("Where it is mounted.")] | None = None
    use_as_compilation_cache: Annotated[bool, api("Whether it keeps compiled kernels.")] | None = None


class SharedMemory(Model):
    """The memory at /dev/shm."""

    disabled: Annotated[bool, api("Whether there is none.")] | None = None
    size: Annotated[str | int, api("Its size.")] | None = None


class ScalingAdapter(Model):
    """Whether the replicas of a service are left to an autoscaler."""

    enabled: Annotated[bool, api("Whether they are.")] | None = None


class ExtraPodMetadata(Model):
    """Labels and annotations of pods."""

    annotations: Annotated[dict[str, str], api("Annotations of the pods.")] = {}
    labels: Annotated[dict[str, str], api("Labels of the pods.")] = {}


class GraphService(Model):
    """A component, as v1alpha1 has it."""

    annotations: Annotated[dict[str, str], api("Annotations of its objects.")] = {}
    labels: Annotated[dict[str, str], api("Labels of its objects.")] = {}
    service_name: Annotated[str, api("Its name; the key of services counts.")] | None = None
    component_type: Annotated[str, api("Its role, such as frontend or worker.")] | None = None
    sub_component_type: Annotated[str, api("Its role among workers, such as prefill.")] | None = None
    dynamo_namespace: Annotated[str, api("No longer used.")] | None = None
    global_dynamo_namespace: Annotated[bool, api("As in v1beta1.")] | None = None
    resources: Resources | None = None
    autoscaling: Annotated[OpenObject, api("No longer used.")] | None = None
    envs: Annotated[tuple[OpenObject, ...], api("Environment variables.")] = ()
    env_from_secret: Annotated[str, api("A Secret whose keys become variables.")] | None = None
    volume_mounts: Annotated[tuple[ServiceVolume, ...], api("Claims that are mounted.")] = ()
    ingress: Annotated[OpenObject, api("No longer used.")] | None = None
    model_ref: ModelReference | None = None
    shared_memory: SharedMemory | None = None
    extra_pod_metadata: ExtraPodMetadata | None = None
    extra_pod_spec: Annotated[OpenObject, api("A pod spec; mainContainer is the container that serves.")] | None = None
    liveness_probe: Annotated[OpenObject, api("The liveness probe of the main container.")] | None = None
    readiness_probe: Annotated[OpenObject, api("The readiness probe of the main container.")] | None = None
    replicas: Annotated[Count, api("Replicas to run.")] | None = None
    min_available: Annotated[Count, api("As in v1beta1.")] | None = None
    multinode: Multinode | None = None
    scaling_adapter: ScalingAdapter | None = None
    epp_config: Annotated[OpenObject, api("As in v1beta1.")] | None = None
    checkpoint: Annotated[OpenObject, api("Previews whose form may change.")] | None = None
    topology_constraint: Annotated[OpenObject, api("As in v1beta1.")] | None = None
    runtime_version_override: Semver | None = None
    frontend_sidecar: Annotated[OpenObject, api("Previews whose form may change.")] | None = None
    gpu_memory_service: Annotated[OpenObject, api("Previews whose form may change.")] | None = None
    failover: Annotated[OpenObject, api("Previews whose form may change.")] | None = None
    experimental: Annotated[OpenObject, api("Previews whose form may change.")] | None = None


class Claim(Model):
    """A PersistentVolumeClaim that services may mount."""

    create: Annotated[bool, api("Whether it was to be created; claims are created by their users.")] | None = None
    name: Annotated[str, api("Its name.")] | None = None
    storage_class: Annotated[str, api("Its StorageClass.")] | None = None
    size: Annotated[str | int, api("Its size.")] | None = None
    volume_access_mode: Annotated[str, api("Its access mode.")] | None = None


class GraphSpec(Model):
    """The services of a graph and what they share."""

    RULES: ClassVar = (NO_RESTART_AT_FIRST,)

    annotations: Annotated[dict[str, str], api("Annotations of everything that is created.")] = {}
    labels: Annotated[dict[str, str], api("Labels of everything that is created.")] = {}
    priority_class_name: Annotated[str, api("The PriorityClass of the pods.")] | None = None
    pvcs: Annotated[tuple[Claim, ...], api("Claims that services may mount.", max_length=100)] = ()
    services: Annotated[dict[str, GraphService | None], api("The services, by name.", max_length=25)] = {}
    envs: Annotated[tuple[OpenObject, ...], api("Environment variables of every service.")] = ()
    backend_framework: Annotated[Backend, api("The engine that runs the model.")] | None = None
    restart: GraphRestart | None = None
    topology_constraint: Annotated[OpenObject, api("As in v1beta1, with topologyProfile.")] | None = None
    provider_override: Annotated[OpenObject, api("As in v1beta1.")] | None = None
    experimental: Annotated[OpenObject, api("Previews whose form may change.")] | None = None


class GraphStatus(Status):
    """What is observed of a graph."""

    state: Annotated[str, api("State of the deployment.")] | None = None
    services: Annotated[dict[str, OpenObject], api("The services, by name.")] = {}
    restart: GraphRestartStatus | None = None
    rolling_update: Annotated[OpenObject, api("Progress of a rolling update.")] | None = None
    checkpoints: Annotated[dict[str, CheckpointStatus], api("The checkpoints, by service.")] = {}
    placement: Annotated[OpenObject, api("What the scheduler says of the placement.")] | None = None


class DynamoGraphDeployment(Resource):
    """A graph of services that together serve a model."""

    spec: GraphSpec
    status: GraphStatus | None = None


# --- requests


class ConfigMapKey(Model):
    """A key of a ConfigMap."""

    name: Annotated[str, api("The ConfigMap.")]
    key: Annotated[str, api("The key.")] | None = None


class ProfilingConfig(Model):
    """How the model is profiled."""

    config: Annotated[OpenObject, api("Settings of the profiler, such as sla, hardware and sweep.")] | None = None
    config_map_ref: ConfigMapKey | None = None
    profiler_image: Annotated[str, api("The image of the profiler.")] | None = None
    output_pvc: Annotated[str, api("A claim for the output.")] | None = None
    resources: Annotated[OpenObject, api("The resources of the profiler.")] | None = None
    tolerations: Annotated[tuple[OpenObject, ...], api("Tolerations of the profiler.")] = ()
    node_selector: Annotated[dict[str, str], api("The nodes of the profiler.")] = {}


class DeploymentOverrides(Model):
    """Metadata of the deployment that is created."""

    name: Annotated[str, api("Its name.")] | None = None
    namespace: Annotated[str, api("No longer used.")] | None = None
    labels: Annotated[dict[str, str], api("Its labels.")] = {}
    annotations: Annotated[dict[str, str], api("Its annotations.")] = {}
    workers_image: Annotated[str, api("The image of its workers.")] | None = None


class RequestSpec(Model):
    """The model to serve, and how it is profiled."""

    model: Annotated[str, api("The model, as its registry names it.", min_length=1)]
    backend: Annotated[Backend, api("The engine that runs the model.")]
    use_mocker: Annotated[bool, api("Whether workers are simulated.")] | None = None
    profiling_config: ProfilingConfig | None = None
    enable_gpu_discovery: Annotated[bool, api("No longer used.")] | None = None
    auto_apply: Annotated[bool, api("Whether the generated deployment is created; false when absent.")] | None = None
    runtime_version_override: Semver | None = None
    deployment_overrides: DeploymentOverrides | None = None


class RequestStatus(Status):
    """Progress of the request."""

    state: Annotated[str, api("State of the request.")] | None = None
    backend: Annotated[str, api("The engine.")] | None = None
    profiling_results: Annotated[str, api("Where the results are.")] | None = None
    generated_deployment: Annotated[OpenObject, api("The deployment that was chosen, whole.")] | None = None
    deployment: Annotated[OpenObject, api("The deployment that was created.")] | None = None


_FIXED: Final = " && ".join(
    unchanged(f"spec.{field}")
    for field in RequestSpec.__struct_encode_fields__
    if field not in ("autoApply", "runtimeVersionOverride")
)


class DynamoGraphDeploymentRequest(Resource):
    """A request to serve a model."""

    RULES: ClassVar = (
        Rule(
            rule=(
                "!has(oldSelf.status) || !has(oldSelf.status.state)"
                " || !(oldSelf.status.state in ['Profiling', 'Ready', 'Deploying']) || self.spec == oldSelf.spec"
                f" || ((!has(oldSelf.spec.autoApply) || !oldSelf.spec.autoApply) && {_FIXED})"
            ),
            message=(
                "spec cannot change while the request is at work; create another request, or, where autoApply is"
                " false, change runtimeVersionOverride or autoApply"
            ),
            reason="FieldValueForbidden",
            field_path=".spec",
        ),
    )

    spec: RequestSpec
    status: RequestStatus | None = None


def _deprecated(kind: str) -> str:
    return f"nvidia.com/v1alpha1 {kind} is deprecated; use nvidia.com/v1beta1 {kind}"


GRAPHS: Final = Older(
    version=conversion.OLDER,
    model=DynamoGraphDeployment,
    conversion=conversion.GRAPHS,
    columns=(
        Column("Ready", '.status.conditions[?(@.type=="Ready")].status'),
        Column("Backend", ".spec.backendFramework"),
        AGE,
    ),
    deprecation=_deprecated("DynamoGraphDeployment"),
)
REQUESTS: Final = Older(
    version=conversion.OLDER,
    model=DynamoGraphDeploymentRequest,
    conversion=conversion.REQUESTS,
    columns=(
        Column("Model", ".spec.model"),
        Column("Backend", ".spec.backend"),
        Column("State", ".status.state"),
        Column("DGD", ".status.deployment.name"),
        AGE,
    ),
    deprecation=_deprecated("DynamoGraphDeploymentRequest"),
)
