"""The containers of a Workload: environment, ports, resources, volumes, probes and hooks."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

import msgspec

from holdfast.kinds.cloudless.security import ContainerSecurityContext
from holdfast.kinds.model import (
    Count,
    Duration,
    Label,
    Model,
    Name,
    PortNumber,
    Positive,
    Quantity,
    Rule,
    Spelling,
    Total,
    api,
    exactly_one,
)


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
    optional: Annotated[bool, api("Whether replicas start without the object.")] | None = None


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
    host_port: Annotated[Count, api("The port on the node; 0 means none is reserved.", le=65535)] | None = None
    protocol: (
        Annotated[Literal["TCP", "UDP", "SCTP"], api("The protocol that the port speaks.", default="TCP")] | None
    ) = None


class Resources(Model):
    """An amount of each resource, in Cloudless' units or as Kubernetes quantities."""

    RULES: ClassVar = tuple(
        Rule(
            rule=f"!(has(self.{cloudless}) && has(self.{kubernetes.replace('-', '__dash__')}))",
            message=f"{cloudless} and {kubernetes} are the same resource; give one of them",
        )
        for cloudless, kubernetes in (
            ("cpuMillicores", "cpu"),
            ("memoryBytes", "memory"),
            ("storageBytes", "ephemeral-storage"),
            ("gpuCount", "gpu"),
        )
    )

    cpu_millicores: Annotated[Total, api("Thousandths of a processor.")] | None = None
    memory_bytes: Annotated[Total, api("Memory, in bytes.")] | None = None
    storage_bytes: Annotated[Total, api("Local storage in bytes.")] | None = None
    bandwidth_bps: Annotated[Total, api("Network bandwidth in bits per second.")] | None = None
    gpu_count: Annotated[Count, api("GPUs, which are never shared.")] | None = None
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
    """The resource requests and limits of a replica."""

    requests: Annotated[Resources, api("What a replica needs; the scheduler goes by this.")] | None = None
    limits: Annotated[Resources, api("What a replica may use at most.")] | None = None


class Volume(Model):
    """A directory that is mounted into the container."""

    RULES: ClassVar = (
        Rule(
            rule="self.source != 'hostPath' || (has(self.options) && 'path' in self.options)",
            message="a hostPath volume needs options.path",
        ),
        Rule(
            rule=(
                "self.source in ['configMap', 'secret']"
                " || !(has(self.keys) || has(self.defaultMode) || has(self.optional))"
            ),
            message="keys, defaultMode and optional are only for the sources configMap and secret",
        ),
    )

    name: Annotated[str, api("The name of the volume.", min_length=1, max_length=63)]
    source: Annotated[
        Literal["emptyDir", "configMap", "secret", "hostPath", "persistentVolumeClaim"],
        api("Where the files come from."),
    ]
    mount_path: (
        Annotated[
            str,
            api(
                "Where the volume appears in the main container; absent where only other containers mount it.",
                pattern=r"^/",
                max_length=4096,
            ),
        ]
        | None
    ) = None
    read_only: Annotated[bool, api("Whether the container may only read it.")] | None = None
    options: Annotated[
        dict[str, Annotated[str, api(max_length=4096)]],
        api(
            "Details of the source: name (of the ConfigMap, Secret or claim; the volume's name when absent), "
            "path (hostPath), medium and sizeLimit (emptyDir), subPath.",
            max_length=16,
        ),
    ] = {}
    keys: Annotated[
        dict[str, str],
        api(
            "The key to take for each file of a ConfigMap or Secret, by the file's path; every key is a file when this "
            "is empty.",
            max_length=256,
        ),
    ] = {}
    default_mode: (
        Annotated[
            int,
            api("The permissions of the files of a ConfigMap or Secret, such as 0400.", ge=0, le=0o777, format="int32"),
        ]
        | None
    ) = None
    optional: Annotated[bool, api("Whether replicas start without the ConfigMap or Secret.")] | None = None
    part_of_revision: (
        Annotated[bool, api("Whether a change of the ConfigMap or Secret is a new revision.", default=True)] | None
    ) = None


class Mount(Model):
    """A volume of the Workload in another container than the main one."""

    name: Annotated[str, api("The name of the volume.", min_length=1, max_length=63)]
    mount_path: Annotated[str, api("Where the volume appears in the container.", pattern=r"^/", max_length=4096)]
    read_only: Annotated[bool, api("Whether the container may only read it.")] | None = None
    sub_path: Annotated[str, api("The part of the volume that is mounted.", max_length=4096)] | None = None


Mounts = Annotated[tuple[Mount, ...], api("Volumes of the Workload to mount.", max_length=64, keys=("mountPath",))]
"""The ``mounts`` of init containers and sidecars."""


class HTTPHeader(Model):
    """A header that a probe sends."""

    name: Annotated[str, api("The header's name.", min_length=1)]
    value: Annotated[str, api("The header's value.")]


class HTTPProbe(Model):
    """Healthy when a GET answers with a code from 200 to 399."""

    path: Annotated[str, api("The path of the request.", default="/")] | None = None
    port: Annotated[int | str, api("The number or name of the port.")]
    scheme: Annotated[Literal["HTTP", "HTTPS"], api("The scheme of the request.", default="HTTP")] | None = None
    headers: Annotated[tuple[HTTPHeader, ...], api("Headers of the request.")] = ()


class TCPProbe(Model):
    """Healthy when a connection can be opened."""

    port: Annotated[int | str, api("The number or name of the port.")]


class ExecProbe(Model):
    """Healthy when a command ends with exit code 0."""

    command: Annotated[tuple[str, ...], api("The command and its arguments.", min_length=1)]


class GRPCProbe(Model):
    """Healthy when the gRPC health service answers SERVING."""

    port: Annotated[PortNumber, api("The number of the port.")]
    service: Annotated[str, api("The service to ask for.")] | None = None


class Probe(Model):
    """A periodic check of a container."""

    RULES: ClassVar = (exactly_one("http", "tcp", "exec", "grpc"),)

    http: HTTPProbe | None = None
    tcp: TCPProbe | None = None
    exec: ExecProbe | None = None
    grpc: GRPCProbe | None = None
    initial_delay: Annotated[Duration, api("How long to wait before the first check.")] | None = None
    period: Annotated[Duration, api("How often to check; 10s when absent.")] | None = None
    timeout: Annotated[Duration, api("How long to wait for an answer; 1s when absent.")] | None = None
    success_threshold: Annotated[Positive, api("Successes in a row that make it healthy; 1 when absent.")] | None = None
    failure_threshold: Annotated[Positive, api("Failures in a row that make it unhealthy; 3 when absent.")] | None = (
        None
    )


class ExecAction(Model):
    """A command that is run in the container."""

    command: Annotated[tuple[str, ...], api("The command and its arguments.", min_length=1)]


class HTTPAction(Model):
    """A GET request to the container."""

    path: Annotated[str, api("The path of the request.", default="/")] | None = None
    port: Annotated[int | str, api("The number or name of the port.")]
    scheme: Annotated[Literal["HTTP", "HTTPS"], api("The scheme of the request.", default="HTTP")] | None = None
    headers: Annotated[tuple[HTTPHeader, ...], api("Headers of the request.")] = ()


class Hook(Model):
    """What is done when a container starts or stops."""

    RULES: ClassVar = (exactly_one("exec", "http", "sleep"),)

    exec: ExecAction | None = None
    http: HTTPAction | None = None
    sleep: Annotated[Duration, api("How long to wait; whole seconds, rounded up.")] | None = None


class Lifecycle(Model):
    """What is done when a container has started and before it stops."""

    post_start: Annotated[Hook, api("Done right after the container has started.")] | None = None
    pre_stop: (
        Annotated[Hook, api("Done before the container is stopped; terminationGracePeriod includes the time it takes.")]
        | None
    ) = None


class ProcessSpec(Model):
    """The fields of every container, also of one that runs to its end."""

    image: Annotated[str, api("The container image.", min_length=1)]
    image_pull_policy: (
        Annotated[Literal["Always", "IfNotPresent", "Never"], api("When the image is pulled.")] | None
    ) = None
    command: Annotated[tuple[str, ...], api("The entry point; the image's when empty.", list_type="atomic")] = ()
    args: Annotated[
        tuple[str, ...], api("Arguments of the entry point; the image's when empty.", list_type="atomic")
    ] = ()
    working_dir: Annotated[str, api("The working directory; the image's when absent.", max_length=4096)] | None = None
    env: Annotated[dict[str, str], api("Environment variables of the container.")] = {}
    env_from: Annotated[
        tuple[EnvSource, ...], api("ConfigMaps and Secrets to take variables from.", max_length=64, list_type="atomic")
    ] = ()
    resources: Annotated[ResourceRequirements, api("What the container needs and may use.")] | None = None


class ServerSpec(ProcessSpec):
    """The fields of a container that keeps running."""

    RULES: ClassVar = tuple(
        Rule(
            rule=f"!has(self.{probe}) || !has(self.{probe}.successThreshold) || self.{probe}.successThreshold == 1",
            message=f"{probe}.successThreshold must be 1: one success is enough for these probes",
        )
        for probe in ("livenessProbe", "startupProbe")
    )

    ports: Annotated[
        tuple[Port, ...], api("Ports that the container listens on.", max_length=64, keys=("containerPort", "protocol"))
    ] = ()
    liveness_probe: Annotated[Probe, api("Restarts the container when it fails.")] | None = None
    readiness_probe: Annotated[Probe, api("Takes the replica out of service while it fails.")] | None = None
    startup_probe: Annotated[Probe, api("Holds the other probes back until it has succeeded.")] | None = None
    lifecycle: Annotated[Lifecycle, api("What is done when the container has started and before it stops.")] | None = (
        None
    )


class InitContainer(ProcessSpec):
    """A container that runs to its end before the others start."""

    name: Annotated[Label, api("The name of the container; app is the main container.")]
    mounts: Mounts = ()
    security_context: Annotated[ContainerSecurityContext, api("The security settings of the container.")] | None = None


class Sidecar(ServerSpec):
    """A container beside the main one: it starts before it, is restarted when it ends, and stops after it."""

    name: Annotated[Label, api("The name of the container; app is the main container.")]
    mounts: Mounts = ()
    security_context: Annotated[ContainerSecurityContext, api("The security settings of the container.")] | None = None


class Restart(Spelling):
    """When a container that ended is restarted."""

    ALWAYS = "Always"
    ON_FAILURE = "OnFailure"
    NEVER = "Never"

    __spellings__ = {"ALWAYS": "Always", "ON_FAILURE": "OnFailure", "NEVER": "Never"}


class RestartPolicy(Model):
    """Whether a container that ended is restarted."""

    policy: Annotated[Restart, api("When the container is restarted.", default="Always")] | None = None
    max_retries: Annotated[Count, api("Restarts after which the replica has failed and is replaced.")] | None = None
    backoff: (
        Annotated[Duration, api("The age below which a replica that ended is not replaced yet; 10s when absent.")]
        | None
    ) = None
