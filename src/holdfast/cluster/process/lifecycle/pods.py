"""Pods as the process runtime reads them: what is to be run, and what was last reported of it.

Pure types, decoded from the wire; the defaults are those that the API server
fills in, so that a pod in a test may leave them out.  Nothing here knows how a
command is run.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import timedelta
from typing import Final, TypeAlias

import msgspec

from holdfast.client.objects import Meta, Object
from holdfast.client.pods import ReadinessGate
from holdfast.cluster.pod_status import PodStatus

RUNTIME_CLASS: Final = "process"
"""The ``runtimeClassName`` of pods whose commands are run on this machine."""

TERMINATION_LOG: Final = "/dev/termination-log"


class _Part(msgspec.Struct, frozen=True, rename="camel", gc=False):
    """A part of a pod."""


# --- environment


class FieldRef(_Part, frozen=True):
    field_path: str = ""


class ResourceRef(_Part, frozen=True):
    resource: str = ""
    container_name: str = ""
    divisor: str | int = "1"


class KeyRef(_Part, frozen=True):
    """One key of a ConfigMap or Secret."""

    name: str = ""
    key: str = ""
    optional: bool | None = None


class ValueFrom(_Part, frozen=True):
    field_ref: FieldRef | None = None
    resource_field_ref: ResourceRef | None = None
    config_map_key_ref: KeyRef | None = None
    secret_key_ref: KeyRef | None = None


class EnvVar(_Part, frozen=True):
    name: str = ""
    value: str | None = None
    value_from: ValueFrom | None = None


class NameRef(_Part, frozen=True):
    """A whole ConfigMap or Secret."""

    name: str = ""
    optional: bool | None = None


class EnvFrom(_Part, frozen=True):
    prefix: str = ""
    config_map_ref: NameRef | None = None
    secret_ref: NameRef | None = None


# --- probes and hooks


class Exec(_Part, frozen=True):
    command: tuple[str, ...] = ()


class Header(_Part, frozen=True):
    name: str = ""
    value: str = ""


class HttpGet(_Part, frozen=True):
    path: str = "/"
    port: int | str = 0
    host: str = ""
    scheme: str = "HTTP"
    http_headers: tuple[Header, ...] = ()


class TcpSocket(_Part, frozen=True):
    port: int | str = 0
    host: str = ""


class Grpc(_Part, frozen=True):
    port: int = 0


class Sleep(_Part, frozen=True):
    seconds: int = 0


class Probe(_Part, frozen=True):
    exec: Exec | None = None
    http_get: HttpGet | None = None
    tcp_socket: TcpSocket | None = None
    grpc: Grpc | None = None
    initial_delay_seconds: int = 0
    timeout_seconds: int = 1
    period_seconds: int = 10
    success_threshold: int = 1
    failure_threshold: int = 3
    termination_grace_period_seconds: int | None = None


class Handler(_Part, frozen=True):
    exec: Exec | None = None
    http_get: HttpGet | None = None
    tcp_socket: TcpSocket | None = None
    sleep: Sleep | None = None


class Lifecycle(_Part, frozen=True):
    post_start: Handler | None = None
    pre_stop: Handler | None = None


# --- containers


class Mount(_Part, frozen=True):
    name: str = ""
    mount_path: str = ""
    sub_path: str = ""
    sub_path_expr: str = ""


class Port(_Part, frozen=True):
    name: str = ""
    container_port: int = 0


class Resources(_Part, frozen=True):
    limits: dict[str, str | int] = {}
    requests: dict[str, str | int] = {}


class Container(_Part, frozen=True):
    name: str = ""
    image: str = ""
    command: tuple[str, ...] = ()
    args: tuple[str, ...] = ()
    working_dir: str = ""
    env: tuple[EnvVar, ...] = ()
    env_from: tuple[EnvFrom, ...] = ()
    ports: tuple[Port, ...] = ()
    resources: Resources = Resources()
    volume_mounts: tuple[Mount, ...] = ()
    startup_probe: Probe | None = None
    liveness_probe: Probe | None = None
    readiness_probe: Probe | None = None
    lifecycle: Lifecycle = Lifecycle()
    restart_policy: str | None = None
    termination_message_path: str = TERMINATION_LOG
    termination_message_policy: str = "File"


# --- volumes


class Item(_Part, frozen=True):
    key: str = ""
    path: str = ""
    mode: int | None = None


class ConfigMapSource(_Part, frozen=True):
    name: str = ""
    items: tuple[Item, ...] = ()
    default_mode: int | None = None
    optional: bool | None = None


class SecretSource(_Part, frozen=True):
    secret_name: str = ""
    name: str = ""  # which is how a projected volume names it
    items: tuple[Item, ...] = ()
    default_mode: int | None = None
    optional: bool | None = None


class DownwardItem(_Part, frozen=True):
    path: str = ""
    field_ref: FieldRef | None = None
    resource_field_ref: ResourceRef | None = None
    mode: int | None = None


class DownwardSource(_Part, frozen=True):
    items: tuple[DownwardItem, ...] = ()
    default_mode: int | None = None


class TokenSource(_Part, frozen=True):
    """A token of the pod's service account."""

    path: str = ""
    audience: str = ""
    expiration_seconds: int = 3600


class Projection(_Part, frozen=True):
    service_account_token: TokenSource | None = None
    config_map: ConfigMapSource | None = None
    secret: SecretSource | None = None
    downward_api: DownwardSource | None = msgspec.field(default=None, name="downwardAPI")


class ProjectedSource(_Part, frozen=True):
    sources: tuple[Projection, ...] = ()
    default_mode: int | None = None


class HostPath(_Part, frozen=True):
    path: str = ""


class ClaimSource(_Part, frozen=True):
    claim_name: str = ""


class Volume(_Part, frozen=True):
    name: str = ""
    empty_dir: dict[str, object] | None = None
    config_map: ConfigMapSource | None = None
    secret: SecretSource | None = None
    downward_api: DownwardSource | None = msgspec.field(default=None, name="downwardAPI")
    projected: ProjectedSource | None = None
    host_path: HostPath | None = None
    persistent_volume_claim: ClaimSource | None = None


# --- the pod


class Spec(_Part, frozen=True):
    node_name: str = ""
    service_account_name: str = ""
    runtime_class_name: str | None = None
    hostname: str = ""
    host_network: bool = False
    restart_policy: str = "Always"
    termination_grace_period_seconds: int = 30
    active_deadline_seconds: int | None = None
    init_containers: tuple[Container, ...] = ()
    containers: tuple[Container, ...] = ()
    volumes: tuple[Volume, ...] = ()
    readiness_gates: tuple[ReadinessGate, ...] = ()


Referred: TypeAlias = tuple[str, str]
"""What a pod refers to: a ConfigMap, Secret, PersistentVolumeClaim or ServiceAccount, by kind and name."""


class Pod(_Part, frozen=True):
    metadata: Meta = Meta()
    spec: Spec = Spec()
    status: PodStatus = PodStatus()

    @classmethod
    def of(cls, obj: Object) -> Pod:
        return obj.decode(cls)

    @property
    def uid(self) -> str:
        return self.metadata.uid

    @property
    def deleting(self) -> bool:
        return self.metadata.deletion_timestamp is not None

    @property
    def grace(self) -> timedelta:
        """How long its containers may take to end: what the deletion gives, or else what the pod asks for."""
        given = self.metadata.deletion_grace_period_seconds
        return timedelta(seconds=self.spec.termination_grace_period_seconds if given is None else given)

    @property
    def containers(self) -> tuple[Container, ...]:
        """All of them, in the order in which they are first started."""
        return (*self.spec.init_containers, *self.spec.containers)

    @property
    def sidecars(self) -> tuple[Container, ...]:
        """Init containers that run beside the others for as long as these do."""
        return tuple(each for each in self.spec.init_containers if is_sidecar(each))

    def container(self, name: str) -> Container:
        return next(each for each in self.containers if each.name == name)

    def volume(self, name: str) -> Volume | None:
        return next((each for each in self.spec.volumes if each.name == name), None)


def is_sidecar(container: Container) -> bool:
    return container.restart_policy == "Always"


def port_number(container: Container, port: int | str) -> int | None:
    """A port by its number or its name; None where the container names no such port."""
    if isinstance(port, int) or port.isdecimal():
        return int(port)
    return next((each.container_port for each in container.ports if each.name == port), None)


# --- what a pod needs of other objects


class ConfigMap(_Part, frozen=True):
    data: dict[str, str] = {}
    binary_data: dict[str, bytes] = {}

    @property
    def entries(self) -> Mapping[str, bytes]:
        return {**{key: value.encode() for key, value in self.data.items()}, **self.binary_data}


class Secret(_Part, frozen=True):
    data: dict[str, bytes] = {}

    @property
    def entries(self) -> Mapping[str, bytes]:
        return self.data


def account_of(pod: Pod) -> str:
    """The service account of a pod."""
    return pod.spec.service_account_name or "default"


def token_sources(pod: Pod, mounted: Collection[str]) -> tuple[TokenSource, ...]:
    """The tokens that the volumes of these names have."""
    projected = (each.projected for each in pod.spec.volumes if each.name in mounted and each.projected is not None)
    sources = (source.service_account_token for each in projected for source in each.sources)
    return tuple(each for each in sources if each is not None)


def referred(pod: Pod) -> frozenset[Referred]:
    """Every object whose change may let a container start, or may change a file that it reads."""
    found: set[Referred] = set()
    for container in pod.containers:
        for source in container.env_from:
            found |= _named(config_map=source.config_map_ref, secret=source.secret_ref)
        for variable in container.env:
            if variable.value_from is not None:
                source_of = variable.value_from
                found |= _named(config_map=source_of.config_map_key_ref, secret=source_of.secret_key_ref)
    for volume in pod.spec.volumes:
        parts = volume.projected.sources if volume.projected is not None else (volume,)
        for part in parts:
            found |= _named(config_map=part.config_map)
            if part.secret is not None:
                found.add(("Secret", part.secret.secret_name or part.secret.name))
            if isinstance(part, Projection) and part.service_account_token is not None:
                found.add(("ServiceAccount", account_of(pod)))
        if volume.persistent_volume_claim is not None:
            found.add(("PersistentVolumeClaim", volume.persistent_volume_claim.claim_name))
    return frozenset(found)


def _named(
    *, config_map: NameRef | KeyRef | ConfigMapSource | None = None, secret: NameRef | KeyRef | None = None
) -> set[Referred]:
    kinds = (("ConfigMap", config_map), ("Secret", secret))
    return {(kind, ref.name) for kind, ref in kinds if ref is not None}
