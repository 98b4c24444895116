"""The Workload kind: its spec, its status, and the columns of `kubectl get`."""

from __future__ import annotations

from typing import Annotated, ClassVar, Final, Literal

from holdfast.kinds.cloudless.containers import InitContainer, RestartPolicy, ServerSpec, Sidecar, Volume
from holdfast.kinds.cloudless.placement import Placement
from holdfast.kinds.cloudless.rollouts import EffectiveLimits, Rejection, Rollout, RolloutStatus
from holdfast.kinds.cloudless.security import SecurityContext
from holdfast.kinds.model import AGE, Column, Count, Duration, Kind, Name, Resource, Rule, Scale, Status, api


class WorkloadSpec(ServerSpec):
    """The containers, the replicas, their scheduling, and how changes are rolled out."""

    RULES: ClassVar = (
        *ServerSpec.RULES,
        *(
            Rule(
                rule=f"!has(self.podLabels) || !('{label}' in self.podLabels)",
                message=f"the controller sets the label {label} of the pods",
                field_path=".podLabels",
            )
            for label in ("cloudless.io/workload", "cloudless.io/revision")
        ),
    )

    image_pull_secrets: Annotated[
        tuple[Name, ...], api("Secrets that give access to the image's registry.", list_type="set")
    ] = ()
    volumes: Annotated[
        tuple[Volume, ...], api("Directories that are mounted into the containers.", max_length=64, keys=("name",))
    ] = ()
    init_containers: Annotated[
        tuple[InitContainer, ...],
        api("Containers that run one after another, to their ends, before the others.", max_length=16, keys=("name",)),
    ] = ()
    sidecars: Annotated[
        tuple[Sidecar, ...],
        api(
            "Containers that run beside the main one; they start after the init containers.",
            max_length=16,
            keys=("name",),
        ),
    ] = ()
    security_context: Annotated[SecurityContext, api("Users, groups, capabilities and profiles.")] | None = None
    service_account_name: Annotated[Name, api("The ServiceAccount of the replicas; default when absent.")] | None = None
    automount_service_account_token: (
        Annotated[bool, api("Whether a token of the ServiceAccount is mounted; as it says itself when absent.")] | None
    ) = None
    runtime_class_name: (
        Annotated[Name, api("The RuntimeClass that runs the containers, such as gvisor; the default when absent.")]
        | None
    ) = None
    termination_grace_period: (
        Annotated[
            Duration,
            api("How long a replica may take to stop before it is killed; whole seconds, rounded up; 30s when absent."),
        ]
        | None
    ) = None
    pod_labels: Annotated[
        dict[str, str], api("More labels of the pods; they win over labels of the Workload.", max_length=64)
    ] = {}
    pod_annotations: Annotated[dict[str, str], api("Annotations of the pods.", max_length=64)] = {}
    restart_policy: RestartPolicy | None = None
    placement: Placement | None = None
    replicas: Annotated[Count, api("How many replicas to run.", le=1_000_000, default=1)] | None = None
    rollout: Rollout | None = None


class WorkloadStatus(Status):
    """The observed state of a Workload."""

    phase: (
        Annotated[
            Literal["Initializing", "ScalingUp", "Updating", "ScalingDown", "Paused", "Completed", "Failed"],
            api("What the rollout does."),
        ]
        | None
    ) = None
    reason: (
        Annotated[str, api("The problem of a replica, a refused request, or else why the rollout does what it does.")]
        | None
    ) = None
    replicas: Annotated[Count, api("Replicas that run, without those that are only surge.")] | None = None
    ready_replicas: Annotated[Count, api("Replicas that are ready.")] | None = None
    available_replicas: Annotated[Count, api("Replicas that have been ready for minReadySeconds.")] | None = None
    unavailable_replicas: Annotated[Count, api("Desired replicas that are not available.")] | None = None
    updated_replicas: Annotated[Count, api("Replicas of the newest revision.")] | None = None
    old_replicas: Annotated[Count, api("Replicas of older revisions.")] | None = None
    selector: Annotated[str, api("The label selector of the replicas, for autoscalers.")] | None = None
    limits: EffectiveLimits | None = None
    current_revision: Annotated[str, api("The last revision that was rolled out completely.")] | None = None
    update_revision: Annotated[str, api("The revision that is rolled out.")] | None = None
    serving_revision: (
        Annotated[str, api("The revision that receives the traffic, where a BlueGreen rollout switches it.")] | None
    ) = None
    rejected_revision: (
        Annotated[
            str, api("The revision of the spec, if it was rejected; it is not rolled out until the spec changes.")
        ]
        | None
    ) = None
    rejection: Rejection | None = None
    rollout: RolloutStatus | None = None


class Workload(Resource):
    """An application: replicas of one container that keep serving while they change."""

    spec: WorkloadSpec
    status: WorkloadStatus | None = None


KIND: Final = Kind(
    model=Workload,
    group="cloudless.io",
    version="v1",
    plural="workloads",
    short_names=("wl",),
    scale=Scale(selector=".status.selector"),
    columns=(
        Column(name="Desired", path=".spec.replicas", type="integer", description="Desired replicas"),
        Column(name="Ready", path=".status.readyReplicas", type="integer", description="Ready replicas"),
        Column(
            name="Floor", path=".status.limits.floor", type="integer", description="Replicas that must stay available"
        ),
        Column(
            name="Updated",
            path=".status.updatedReplicas",
            type="integer",
            description="Replicas of the newest revision",
        ),
        Column(name="Phase", path=".status.phase"),
        Column(
            name="Reason",
            path=".status.reason",
            description="Why replicas are not ready, or what the rollout does or waits for",
        ),
        AGE,
        Column(name="Strategy", path=".spec.rollout.strategy", priority=1),
        Column(name="Revision", path=".status.updateRevision", priority=1),
        Column(name="Image", path=".spec.image", priority=1),
        Column(name="Message", path=".status.rollout.because.message", priority=1),
    ),
)
