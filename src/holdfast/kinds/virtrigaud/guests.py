"""What happens inside a machine: first-boot data and lifecycle hooks.

This module must not know the machine's hardware.
"""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from holdfast.kinds.model import Duration, Model, PortNumber, api, exactly_one
from holdfast.kinds.virtrigaud.references import LocalObjectReference


class CloudInit(Model):
    """Cloud-init user data. Inline text and a Secret may be given together; both parts then reach the guest."""

    inline: Annotated[str, api("The user data itself.")] | None = None
    secret_ref: (
        Annotated[
            LocalObjectReference,
            api("A Secret with the user data under userdata, user-data, cloud-init or cloud-config."),
        ]
        | None
    ) = None


class CloudInitMetaData(Model):
    """Cloud-init meta data. Inline text and a Secret may be given together."""

    inline: Annotated[str, api("The meta data itself, as YAML.")] | None = None
    secret_ref: (
        Annotated[LocalObjectReference, api("A Secret with the meta data under metadata, meta-data or meta_data.")]
        | None
    ) = None


class Ignition(Model):
    """An Ignition configuration, for Fedora CoreOS and its relatives."""

    inline: Annotated[str, api("The configuration itself, as JSON.")] | None = None
    secret_ref: Annotated[LocalObjectReference, api("A Secret with the configuration.")] | None = None


class UserData(Model):
    """What the guest configures itself from at first boot."""

    cloud_init: Annotated[CloudInit, api("User data for cloud-init.")] | None = None
    ignition: Annotated[Ignition, api("Configuration for Ignition.")] | None = None


class MetaData(Model):
    """The metadata that the guest receives about itself."""

    cloud_init: Annotated[CloudInitMetaData, api("Meta data for cloud-init.")] | None = None


class ExecAction(Model):
    """A command to run in the guest."""

    command: Annotated[tuple[str, ...], api("The program and its arguments.", min_length=1)]


class HTTPGetAction(Model):
    """An HTTP GET request to the guest."""

    path: Annotated[str, api("Path of the request.")] | None = None
    port: Annotated[PortNumber, api("Port of the request.")]
    host: Annotated[str, api("Host of the request; the machine's first address when unset.")] | None = None
    scheme: Annotated[Literal["HTTP", "HTTPS"], api("Scheme of the request.", default="HTTP")] | None = None


class SnapshotAction(Model):
    """A snapshot to take."""

    name: Annotated[str, api("Name to give the snapshot; the provider may change it.")]
    include_memory: Annotated[bool, api("Whether to keep the memory's content too.")] | None = None
    description: Annotated[str, api("What the snapshot is for.")] | None = None


class LifecycleHandler(Model):
    """One action at one point of a machine's life."""

    RULES: ClassVar = (exactly_one("exec", "httpGet", "snapshot"),)

    exec: Annotated[ExecAction, api("Run a command in the guest.")] | None = None
    http_get: Annotated[HTTPGetAction, api("Send a request to the guest.")] | None = None
    snapshot: Annotated[SnapshotAction, api("Take a snapshot of the machine.")] | None = None


class VirtualMachineLifecycle(Model):
    """What to do around starts and stops."""

    pre_stop: Annotated[LifecycleHandler, api("What to do before the machine is stopped.")] | None = None
    post_start: Annotated[LifecycleHandler, api("What to do after the machine was started.")] | None = None
    graceful_shutdown_timeout: (
        Annotated[Duration, api("How long the guest may take to shut down before its power is cut.", default="60s")]
        | None
    ) = None
