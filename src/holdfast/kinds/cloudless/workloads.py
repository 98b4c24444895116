"""The Workload kind: its spec, its status, and the columns of `kubectl get`."""

from __future__ import annotations

from typing import Annotated, ClassVar, Final, Literal

from holdfast.kinds.cloudless.containers import EnvSource, Port, Probe, ResourceRequirements, RestartPolicy, Volume
from holdfast.kinds.cloudless.placement import Placement
from holdfast.kinds.cloudless.rollouts import EffectiveLimits, Rollout, RolloutStatus
from holdfast.kinds.model import AGE, Column, Count, Kind, Model, Name, Resource, Rule, Scale, Status, api


class WorkloadSpec(Model):
    """The container, the replicas, their scheduling, and how changes are rolled out."""

    RULES: ClassVar = tuple(
        Rule(
            rule=f"!has(self.{probe}) || !has(self.{probe}.successThreshold) || self.{probe}.successThreshold == 1",
            message=f"{probe}.successThreshold must be 1: one success is enough for these probes",
        )
        for probe in ("livenessProbe", "startupProbe")
    )

    image: Annotated[str, api("The container image.", min_length=1)]
    image_pull_policy: (
        Annotated[Literal["Always", "IfNotPresent", "Never"], api("When the image is pulled.")] | None
    ) = None
    image_pull_secrets: Annotated[
        tuple[Name, ...], api("Secrets that give access to the image's registry.", list_type="set")
    ] = ()
    command: Annotated[tuple[str, ...], api("The entry point; the image's when empty.", list_type="atomic")] = ()
    args: Annotated[
        tuple[str, ...], api("Arguments of the entry point; the image's when empty.", list_type="atomic")
    ] = ()
    env: Annotated[dict[str, str], api("Environment variables of the container.")] = {}
    env_from: Annotated[
        tuple[EnvSource, ...], api("ConfigMaps and Secrets to take variables from.", max_length=64, list_type="atomic")
    ] = ()
    ports: Annotated[
        tuple[Port, ...], api("Ports that the container listens on.", max_length=64, keys=("containerPort", "protocol"))
    ] = ()
    resources: Annotated[ResourceRequirements, api("What a replica needs and may use.")] | None = None
    volumes: Annotated[
        tuple[Volume, ...], api("Directories that are mounted into the container.", max_length=64, keys=("name",))
    ] = ()
    liveness_probe: Annotated[Probe, api("Restarts the container when it fails.")] | None = None
    readiness_probe: Annotated[Probe, api("Takes the replica out of service while it fails.")] | None = None
    startup_probe: Annotated[Probe, api("Holds the other probes back until it has succeeded.")] | None = None
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
    rejected_revision: (
        Annotated[
            str, api("The revision of the spec, if it was rejected; it is not rolled out until the spec changes.")
        ]
        | None
    ) = None
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
