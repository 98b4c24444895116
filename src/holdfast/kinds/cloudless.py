"""Applications: the ``Workload`` kind of ``cloudless.io/v1``.

A Workload runs replicas of one container and rolls it out under a floor of
replicas that must keep serving.  Field names are those of Cloudless' manifests.
This module declares the API; what is done with it is the operator's matter.
"""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

import msgspec

from holdfast.kinds.model import (
    AGE,
    Column,
    Conditions,
    Duration,
    IntOrPercent,
    Kind,
    Model,
    Quantity,
    Resource,
    Rule,
    Scale,
    Spelling,
    Time,
    api,
)

Share = Annotated[IntOrPercent, api(minimum=0)]
"""A number of replicas, plain or as a percentage of ``spec.replicas``."""

PortNumber = Annotated[int, api(ge=1, le=65535, format="int32")]
Count = Annotated[int, api(ge=0, format="int32")]
Name = Annotated[str, api(min_length=1, max_length=253)]


# --- the container -----------------------------------------------------------


class EnvSource(Model):
    """A ConfigMap or Secret that environment variables are taken from."""

    RULES: ClassVar = (
        Rule(
            rule="has(self.configMapRef) != has(self.secretRef)",
            message="name either a configMapRef or a secretRef",
        ),
    )

    config_map_ref: Annotated[ConfigReference, api("The ConfigMap to take variables from.")] | None = None
    secret_ref: Annotated[ConfigReference, api("The Secret to take variables from.")] | None = None
    prefix: Annotated[str, api("What to put before each key to form the variable's name.", max_length=253)] | None = (
        None
    )
    keys: Annotated[
        dict[str, str],
        api("The key to take for each variable, by the variable's name; every key is taken when this is empty."),
    ] = {}
    part_of_revision: (
        Annotated[bool, api("Whether a change of the referenced data is a new revision.", default=True)] | None
    ) = None


class ConfigReference(Model):
    """A ConfigMap or Secret in the Workload's namespace."""

    name: Annotated[Name, api("The name of the object.")]
    optional: Annotated[bool, api("Whether replicas start without it.")] | None = None


class Port(Model):
    """A port that the container listens on."""

    name: (
        Annotated[
            str,
            api("A name that probes and Services can use.", max_length=15, pattern=r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"),
        ]
        | None
    ) = None
    container_port: Annotated[PortNumber, api("The port inside the container.")]
    host_port: (
        Annotated[int, api("The port on the node; 0 means none is reserved.", ge=0, le=65535, format="int32")] | None
    ) = None
    protocol: Annotated[Literal["TCP", "UDP", "SCTP"], api("The protocol.", default="TCP")] | None = None


class Resources(Model):
    """An amount of each resource, in Cloudless' units or as Kubernetes quantities."""

    RULES: ClassVar = tuple(
        Rule(
            rule=f"!(has(self.{cloudless}) && has(self.{kubernetes.replace('-', '__dash__')}))",
            message=f"{cloudless} and {kubernetes} say the same thing; give one of them",
        )
        for cloudless, kubernetes in (
            ("cpuMillicores", "cpu"),
            ("memoryBytes", "memory"),
            ("storageBytes", "ephemeral-storage"),
            ("gpuCount", "gpu"),
        )
    )

    cpu_millicores: Annotated[int, api("Thousandths of a processor.", ge=0, format="int64")] | None = None
    memory_bytes: Annotated[int, api("Memory in bytes.", ge=0, format="int64")] | None = None
    storage_bytes: Annotated[int, api("Local storage in bytes.", ge=0, format="int64")] | None = None
    bandwidth_bps: Annotated[int, api("Network bandwidth in bits per second.", ge=0, format="int64")] | None = None
    gpu_count: Annotated[Count, api("Whole GPUs.")] | None = None
    cpu: Annotated[Quantity, api("Processors as a quantity, such as 500m.")] | None = None
    memory: Annotated[Quantity, api("Memory as a quantity, such as 1Gi.")] | None = None
    ephemeral_storage: Annotated[Quantity, api("Local storage as a quantity, such as 5Gi.")] | None = msgspec.field(
        default=None, name="ephemeral-storage"
    )
    gpu: Annotated[Quantity, api("GPUs as a quantity.")] | None = None
    extended: Annotated[
        dict[str, Quantity], api("Other resources by their Kubernetes name, such as nvidia.com/gpu.")
    ] = {}


class ResourceRequirements(Model):
    """What a replica is given at least and at most."""

    requests: Annotated[Resources, api("What a replica is given at least; it is scheduled by this.")] | None = None
    limits: Annotated[Resources, api("What a replica may use at most.")] | None = None


class Volume(Model):
    """A directory that is mounted into the container."""

    RULES: ClassVar = (
        Rule(
            rule="self.source != 'hostPath' || (has(self.options) && 'path' in self.options)",
            message="a hostPath volume needs options.path",
        ),
    )

    name: Annotated[str, api("The name of the volume.", min_length=1, max_length=63)]
    source: Annotated[
        Literal["emptyDir", "configMap", "secret", "hostPath", "persistentVolumeClaim"],
        api("Where the files come from."),
    ]
    mount_path: Annotated[str, api("Where the volume appears in the container.", pattern=r"^/", max_length=4096)]
    read_only: Annotated[bool, api("Whether the container may only read it.")] | None = None
    options: Annotated[
        dict[str, Annotated[str, api(max_length=4096)]],
        api(
            "Details of the source: name (of the ConfigMap, Secret or claim; the volume's name when absent), "
            "path (hostPath), medium and sizeLimit (emptyDir), subPath.",
            max_length=16,
        ),
    ] = {}
    part_of_revision: (
        Annotated[bool, api("Whether a change of the ConfigMap or Secret is a new revision.", default=True)] | None
    ) = None


class HTTPHeader(Model):
    """A header that a probe sends."""

    name: Annotated[str, api("The header's name.", min_length=1)]
    value: Annotated[str, api("The header's value.")]


class HTTPProbe(Model):
    """Healthy when a GET answers with a code from 200 to 399."""

    path: Annotated[str, api("The path to get.", default="/")] | None = None
    port: Annotated[int | str, api("The number or name of the port.")]
    scheme: Annotated[Literal["HTTP", "HTTPS"], api("The scheme.", default="HTTP")] | None = None
    headers: Annotated[tuple[HTTPHeader, ...], api("Headers to send.")] = ()


class TCPProbe(Model):
    """Healthy when a connection can be opened."""

    port: Annotated[int | str, api("The number or name of the port.")]


class ExecProbe(Model):
    """Healthy when a command ends with exit code 0."""

    command: Annotated[tuple[str, ...], api("The command and its arguments.", min_length=1)]


class GRPCProbe(Model):
    """Healthy when the gRPC health service says SERVING."""

    port: Annotated[PortNumber, api("The number of the port.")]
    service: Annotated[str, api("The service to ask for.")] | None = None


class Probe(Model):
    """A question that is put to each replica again and again."""

    RULES: ClassVar = (
        Rule(
            rule="[has(self.http), has(self.tcp), has(self.exec), has(self.grpc)].exists_one(given, given)",
            message="give exactly one of http, tcp, exec and grpc",
        ),
    )

    http: HTTPProbe | None = None
    tcp: TCPProbe | None = None
    exec: ExecProbe | None = None
    grpc: GRPCProbe | None = None
    initial_delay: Annotated[Duration, api("How long to wait before the first question.")] | None = None
    period: Annotated[Duration, api("How often to ask; 10s when absent.")] | None = None
    timeout: Annotated[Duration, api("How long to wait for an answer; 1s when absent.")] | None = None
    success_threshold: (
        Annotated[int, api("Successes in a row that make it healthy; 1 when absent.", ge=1, format="int32")] | None
    ) = None
    failure_threshold: (
        Annotated[int, api("Failures in a row that make it unhealthy; 3 when absent.", ge=1, format="int32")] | None
    ) = None


class Restart(Spelling):
    """When a container that ended is started again."""

    ALWAYS = "Always"
    ON_FAILURE = "OnFailure"
    NEVER = "Never"

    __spellings__ = {"ALWAYS": "Always", "ON_FAILURE": "OnFailure", "NEVER": "Never"}


class RestartPolicy(Model):
    """What happens when the container ends."""

    policy: Annotated[Restart, api("When it is started again.", default="Always")] | None = None
    max_retries: Annotated[Count, api("Restarts after which the replica counts as failed.")] | None = None
    backoff: Annotated[Duration, api("How long to wait between restarts.")] | None = None


# --- placement ---------------------------------------------------------------


class AffinityTarget(Spelling):
    """What the labels of an affinity belong to."""

    WORKLOAD = "Workload"
    NODE = "Node"

    __spellings__ = {"WORKLOAD": "Workload", "NODE": "Node"}


class Affinity(Model):
    """Something that replicas should be near to, or away from."""

    type: Annotated[AffinityTarget, api("Whether the labels are those of nodes or of workloads.")]
    match_labels: Annotated[dict[str, str], api("The labels to look for.", min_length=1)]
    topology_key: (
        Annotated[str, api("The node label whose values are the places; kubernetes.io/hostname when absent.")] | None
    ) = None
    required: Annotated[bool, api("Whether a replica stays unscheduled rather than break this.")] | None = None
    weight: Annotated[int, api("How much it is wished, when not required.", ge=1, le=100, format="int32")] | None = None


class Toleration(Model):
    """A taint that replicas accept on a node."""

    key: Annotated[str, api("The taint's key; every key when absent.")] | None = None
    value: Annotated[str, api("The taint's value.")] | None = None
    operator: Annotated[Literal["Equal", "Exists"], api("How key and value are compared.")] | None = None
    effect: (
        Annotated[
            Literal["NoSchedule", "PreferNoSchedule", "NoExecute"], api("The taint's effect; every effect when absent.")
        ]
        | None
    ) = None
    toleration_seconds: Annotated[int, api("How long NoExecute is tolerated.", format="int64")] | None = None


class Placement(Model):
    """Where replicas may and should run."""

    regions: Annotated[tuple[str, ...], api("Regions to run in; any when empty.", list_type="set")] = ()
    zones: Annotated[tuple[str, ...], api("Zones to run in; any when empty.", list_type="set")] = ()
    node_selector: Annotated[dict[str, str], api("Labels that a node must have.")] = {}
    affinity: Annotated[tuple[Affinity, ...], api("What to be near to.")] = ()
    anti_affinity: Annotated[tuple[Affinity, ...], api("What to be away from.")] = ()
    tolerations: Annotated[tuple[Toleration, ...], api("Taints that are accepted.")] = ()
    spread_topology: (
        Annotated[
            str,
            api("Spread replicas evenly over zone, region, node, or the values of any other node label.", min_length=1),
        ]
        | None
    ) = None


# --- rollout -----------------------------------------------------------------


class Strategy(Spelling):
    """How a new revision replaces the old one."""

    ROLLING_UPDATE = "RollingUpdate"
    RECREATE = "Recreate"
    BLUE_GREEN = "BlueGreen"
    CANARY = "Canary"
    ON_DELETE = "OnDelete"

    __spellings__ = {
        "ROLLING_UPDATE": "RollingUpdate",
        "RECREATE": "Recreate",
        "BLUE_GREEN": "BlueGreen",
        "CANARY": "Canary",
        "ON_DELETE": "OnDelete",
    }


class CanaryStep(Model):
    """How far the new revision goes before the next gate."""

    RULES: ClassVar = (
        Rule(
            rule="has(self.weight) != has(self.replicas)",
            message="give either the weight or the replicas of a step",
        ),
        Rule(
            rule="!(has(self.pauseDuration) && has(self.manual) && self.manual)",
            message="a step ends by time or by approval: give pauseDuration or manual, not both",
        ),
    )

    weight: Annotated[int, api("The share of replicas in percent.", ge=0, le=100, format="int32")] | None = None
    replicas: Annotated[Count, api("The number of replicas.")] | None = None
    pause_duration: Annotated[Duration, api("How long the step lasts once its replicas are ready.")] | None = None
    manual: Annotated[bool, api("Whether the step lasts until it is promoted by hand.")] | None = None


class Canary(Model):
    """The steps by which a canary grows; after the last one it is everywhere."""

    steps: Annotated[
        tuple[CanaryStep, ...], api("The steps, in order.", min_length=1, max_length=64, list_type="atomic")
    ]


class BlueGreen(Model):
    """How traffic goes over to a complete second set of replicas."""

    service: (
        Annotated[Name, api("The Service whose selector is switched; that of the Workload's name when absent.")] | None
    ) = None
    auto_promote: (
        Annotated[bool, api("Whether to switch without approval once the new set is ready.", default=True)] | None
    ) = None
    scale_down_delay: (
        Annotated[Duration, api("How long the old set is kept after the switch, for an instant undo.", default="30s")]
        | None
    ) = None


def _only_with(field: str, strategy: Strategy) -> Rule:
    spellings = [strategy.value, *(other for other, value in Strategy.__spellings__.items() if value == strategy.value)]
    return Rule(
        rule=f"!has(self.{field}) || (has(self.strategy) && self.strategy in {spellings})",
        message=f"{field} is for the strategy {strategy.value} alone",
    )


class Rollout(Model):
    """How changes reach the replicas, and what must hold meanwhile."""

    RULES: ClassVar = (
        _only_with("canary", Strategy.CANARY),
        _only_with("blueGreen", Strategy.BLUE_GREEN),
        _only_with("partition", Strategy.ROLLING_UPDATE),
        Rule(
            rule="!has(self.strategy) || !(self.strategy in ['Canary', 'CANARY']) || has(self.canary)",
            message="the strategy Canary needs canary.steps",
        ),
        Rule(
            rule=(
                "(has(self.strategy) && !(self.strategy in ['RollingUpdate', 'ROLLING_UPDATE']))"
                " || !has(self.maxSurge) || !has(self.maxUnavailable)"
                " || !(string(self.maxSurge) in ['0', '0%'] && string(self.maxUnavailable) in ['0', '0%'])"
            ),
            message="maxSurge and maxUnavailable cannot both be 0: no replica could ever be replaced",
        ),
    )

    strategy: Annotated[Strategy, api("How a new revision replaces the old one.", default="RollingUpdate")] | None = (
        None
    )
    max_surge: Annotated[Share, api("Replicas that may run beyond spec.replicas; percentages round up.")] | None = None
    max_unavailable: Annotated[Share, api("Replicas that may be missing; percentages round down.")] | None = None
    min_available: (
        Annotated[
            Share,
            api("Replicas that must keep serving, whatever maxUnavailable says; percentages round up."),
        ]
        | None
    ) = None
    pause_duration: Annotated[Duration, api("How long to wait between batches.")] | None = None
    min_ready_seconds: Annotated[Count, api("How long a replica must be ready to count as available.")] | None = None
    progress_deadline: (
        Annotated[
            Duration, api("How long a rollout may go without progress before it counts as failed.", default="10m")
        ]
        | None
    ) = None
    on_failure: (
        Annotated[
            Literal["hold", "abort", "rollBack"],
            api(
                "What a failed rollout does: hold where it is, abort (the new replicas go, the old ones come back), "
                "or rollBack (the last complete revision is rolled out again).",
                default="hold",
            ),
        ]
        | None
    ) = None
    canary: Canary | None = None
    blue_green: BlueGreen | None = None
    partition: Annotated[Share, api("Replicas that stay on the old revision.")] | None = None
    paused: Annotated[bool, api("Whether the rollout stands still.")] | None = None
    replacement: (
        Annotated[
            Literal["immediately", "onTermination"],
            api(
                "When a replica that is shutting down is replaced: immediately, or only once it has terminated.",
                default="immediately",
            ),
        ]
        | None
    ) = None
    revision_history_limit: Annotated[Count, api("Old revisions to keep for undo.", default=10)] | None = None


# --- the kind ----------------------------------------------------------------


class WorkloadSpec(Model):
    """What to run, how many of it, where, and how to change it."""

    RULES: ClassVar = tuple(
        Rule(
            rule=f"!has(self.{probe}) || !has(self.{probe}.successThreshold) || self.{probe}.successThreshold == 1",
            message=f"{probe}.successThreshold must be 1: a container is restarted by its first run of failures",
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
    env: Annotated[dict[str, str], api("Environment variables.")] = {}
    env_from: Annotated[
        tuple[EnvSource, ...], api("ConfigMaps and Secrets to take variables from.", max_length=64, list_type="atomic")
    ] = ()
    ports: Annotated[
        tuple[Port, ...], api("Ports that the container listens on.", max_length=64, keys=("containerPort", "protocol"))
    ] = ()
    resources: Annotated[ResourceRequirements, api("What a replica needs and may use.")] | None = None
    volumes: Annotated[tuple[Volume, ...], api("Directories to mount.", max_length=64, keys=("name",))] = ()
    liveness_probe: Annotated[Probe, api("Restarts the container when it fails.")] | None = None
    readiness_probe: Annotated[Probe, api("Takes the replica out of service while it fails.")] | None = None
    startup_probe: Annotated[Probe, api("Holds the other probes back until it has succeeded.")] | None = None
    restart_policy: RestartPolicy | None = None
    placement: Placement | None = None
    replicas: Annotated[int, api("How many replicas to run.", ge=0, le=1_000_000, default=1, format="int32")] | None = (
        None
    )
    rollout: Rollout | None = None


class Because(Model):
    """Why something happens, or does not."""

    code: Annotated[str, api("One word for machines.")]
    message: Annotated[str, api("A sentence for people.")]


class EffectiveLimits(Model):
    """The limits in replicas, after percentages, defaults and clamping."""

    min_available: Annotated[Count, api("Replicas that must keep serving.")] | None = None
    max_surge: Annotated[Count, api("Replicas that may run beyond spec.replicas.")] | None = None
    max_unavailable: Annotated[Count, api("Replicas that may be missing.")] | None = None
    floor: Annotated[Count, api("Ready replicas below which nothing is stopped.")] | None = None
    max_live: Annotated[Count, api("Replicas above which nothing is started.")] | None = None
    warnings: Annotated[tuple[Because, ...], api("What was adjusted, and why.", list_type="atomic")] = ()


class RolloutStatus(Model):
    """Where the rollout stands."""

    step: Annotated[Count, api("The step that is being taken, from 1.")] | None = None
    steps: Annotated[Count, api("How many steps there are.")] | None = None
    started_at: Annotated[Time, api("When the rollout began.")] | None = None
    step_started_at: Annotated[Time, api("When the step began.")] | None = None
    last_batch_at: Annotated[Time, api("When replicas were last started or stopped for it.")] | None = None
    progressed_at: Annotated[Time, api("When it last made progress; the deadline counts from here.")] | None = None
    estimated_end: Annotated[Time, api("When it will end if replicas become ready as fast as so far.")] | None = None
    paused_until: Annotated[Time, api("When a timed pause ends.")] | None = None
    lowest_ready: Annotated[Count, api("The fewest ready replicas seen since it began.")] | None = None
    because: Annotated[Because, api("Why it does what it does, or what it waits for.")] | None = None
    plan: Annotated[str, api("The rest of the plan in one line.")] | None = None


class WorkloadStatus(Model):
    """What is observed of a Workload."""

    observed_generation: Annotated[int, api("The generation that this describes.", ge=0, format="int64")] | None = None
    phase: (
        Annotated[
            Literal["Initializing", "ScalingUp", "Updating", "ScalingDown", "Paused", "Completed", "Failed"],
            api("What the rollout is doing."),
        ]
        | None
    ) = None
    replicas: Annotated[Count, api("Replicas that run, without those that are only surge.")] | None = None
    ready_replicas: Annotated[Count, api("Replicas that are ready.")] | None = None
    available_replicas: Annotated[Count, api("Replicas that have been ready for minReadySeconds.")] | None = None
    unavailable_replicas: Annotated[Count, api("Replicas that are wanted and not available.")] | None = None
    updated_replicas: Annotated[Count, api("Replicas of the newest revision.")] | None = None
    old_replicas: Annotated[Count, api("Replicas of older revisions.")] | None = None
    selector: Annotated[str, api("The label selector of the replicas, for autoscalers.")] | None = None
    limits: EffectiveLimits | None = None
    current_revision: Annotated[str, api("The last revision that was rolled out completely.")] | None = None
    update_revision: Annotated[str, api("The revision that the spec asks for.")] | None = None
    rejected_revision: (
        Annotated[str, api("A revision that was undone; it is not rolled out again until the spec changes.")] | None
    ) = None
    rollout: RolloutStatus | None = None
    conditions: Conditions = ()


class Workload(Resource):
    """An application: replicas of one container, rolled out without going below their floor."""

    spec: WorkloadSpec
    status: WorkloadStatus | None = None


KINDS: tuple[Kind, ...] = (
    Kind(
        model=Workload,
        group="cloudless.io",
        version="v1",
        plural="workloads",
        short_names=("wl",),
        scale=Scale(selector=".status.selector"),
        columns=(
            Column(name="Desired", path=".spec.replicas", type="integer", description="Replicas wanted"),
            Column(name="Ready", path=".status.readyReplicas", type="integer", description="Replicas ready"),
            Column(
                name="Floor", path=".status.limits.floor", type="integer", description="Ready replicas that must stay"
            ),
            Column(
                name="Updated",
                path=".status.updatedReplicas",
                type="integer",
                description="Replicas of the newest revision",
            ),
            Column(name="Phase", path=".status.phase"),
            Column(name="Because", path=".status.rollout.because.code", description="Why it does what it does"),
            AGE,
            Column(name="Strategy", path=".spec.rollout.strategy", priority=1),
            Column(name="Revision", path=".status.updateRevision", priority=1),
            Column(name="Image", path=".spec.image", priority=1),
            Column(name="Message", path=".status.rollout.because.message", priority=1),
        ),
    ),
)
