"""Deployments and ReplicaSets as values: the fields that their controllers read, and the status that they write.

The template stays the mapping that it is on the wire: it is compared and copied, never interpreted.
This module must not know how a rollout proceeds, nor how many pods there are.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import timedelta
from typing import Any, Final

import msgspec

from holdfast.client.objects import Meta, Object, OwnerReference
from holdfast.client.resources import Resource
from holdfast.meta.objects import Key
from holdfast.meta.selectors import LabelSelector
from holdfast.runtime.controllers import View
from holdfast.runtime.status import wire

UNLIMITED: Final = 2**31 - 1
"""What Kubernetes takes for "no limit" where a field cannot be left out."""


def identity(resource: Resource, meta: Meta) -> dict[str, Any]:
    """The identity of an object: enough for an owner reference or an Event."""
    metadata = {"name": meta.name, "namespace": meta.namespace, "uid": meta.uid}
    if meta.deletion_timestamp is not None:
        metadata["deletionTimestamp"] = meta.deletion_timestamp
    return {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": metadata}


def controller_of(meta: Meta) -> OwnerReference | None:
    return next((owner for owner in meta.owner_references if owner.controller), None)


def candidates(view: View, resource: Resource, *, owner: Meta, selector: LabelSelector) -> Sequence[Object]:
    """The objects that an owner may own: those with its reference, and those it selects that have no controller."""
    owned = view.owned(resource, owner.uid)
    selected = view.list(resource, namespace=owner.namespace, labels=selector)
    orphans = [obj for obj in selected if obj.controller is None]
    if not orphans:
        return owned
    found = {obj.key: obj for obj in (*owned, *orphans)}
    return [found[key] for key in sorted(found)]


class Condition(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """A condition; one of a Deployment also says when it was looked at last: the clock of the progress deadline."""

    type: str
    status: str = ""
    last_update_time: str | None = None
    last_transition_time: str | None = None
    reason: str = ""
    message: str = ""


class _Named(msgspec.Struct, frozen=True, rename="camel"):
    """What every object says of itself."""

    metadata: Meta = Meta()

    @property
    def name(self) -> str:
        return self.metadata.name

    @property
    def uid(self) -> str:
        return self.metadata.uid

    @property
    def key(self) -> Key:
        return Key(self.metadata.namespace, self.metadata.name)

    @property
    def deleting(self) -> bool:
        return self.metadata.deletion_timestamp is not None


# --- ReplicaSets


class ReplicaSetSpec(msgspec.Struct, frozen=True, rename="camel"):
    replicas: int = 1
    min_ready_seconds: int = 0
    selector: dict[str, Any] | None = None
    template: dict[str, Any] = {}


class ReplicaSetStatus(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    replicas: int = 0
    fully_labeled_replicas: int = 0
    ready_replicas: int = 0
    available_replicas: int = 0
    terminating_replicas: int | None = None
    observed_generation: int = 0
    conditions: tuple[Condition, ...] = ()

    def wire(self) -> dict[str, Any]:
        """As Kubernetes writes it: what is zero is left out, but for the replicas."""
        return {"replicas": self.replicas, **wire(self)}


class ReplicaSet(_Named, frozen=True, rename="camel"):
    spec: ReplicaSetSpec = ReplicaSetSpec()
    status: ReplicaSetStatus = ReplicaSetStatus()

    @classmethod
    def of(cls, obj: Object) -> ReplicaSet:
        return obj.decode(cls)

    @property
    def active(self) -> bool:
        """It is to have pods."""
        return self.spec.replicas > 0

    @property
    def age(self) -> tuple[str, str]:
        """Sorts from the oldest to the newest."""
        return (self.metadata.creation_timestamp or "", self.metadata.name)

    @property
    def selector(self) -> LabelSelector:
        return LabelSelector.from_object(self.spec.selector, "spec.selector")

    @property
    def min_ready(self) -> timedelta:
        return timedelta(seconds=self.spec.min_ready_seconds)

    def number(self, annotation: str) -> int | None:
        """A number that is kept in an annotation, if there is one."""
        text = self.metadata.annotations.get(annotation, "")
        return int(text) if text.isascii() and text.isdecimal() else None

    def with_replicas(self, replicas: int) -> ReplicaSet:
        return msgspec.structs.replace(self, spec=msgspec.structs.replace(self.spec, replicas=replicas))


# --- Deployments


class Rolling(msgspec.Struct, frozen=True, rename="camel"):
    max_surge: int | str = "25%"
    max_unavailable: int | str = "25%"


class Strategy(msgspec.Struct, frozen=True, rename="camel"):
    type: str = "RollingUpdate"
    rolling_update: Rolling = Rolling()


class DeploymentSpec(msgspec.Struct, frozen=True, rename="camel"):
    replicas: int = 1
    min_ready_seconds: int = 0
    paused: bool = False
    revision_history_limit: int | None = None
    progress_deadline_seconds: int | None = None
    selector: dict[str, Any] | None = None
    strategy: Strategy = Strategy()
    template: dict[str, Any] = {}


class DeploymentStatus(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    observed_generation: int = 0
    replicas: int = 0
    updated_replicas: int = 0
    ready_replicas: int = 0
    available_replicas: int = 0
    unavailable_replicas: int = 0
    terminating_replicas: int | None = None
    collision_count: int | None = None
    conditions: tuple[Condition, ...] = ()

    def condition(self, type: str) -> Condition | None:
        return next((each for each in self.conditions if each.type == type), None)

    def wire(self) -> dict[str, Any]:
        """As Kubernetes writes it: what is zero is left out."""
        return wire(self)


class Deployment(_Named, frozen=True, rename="camel"):
    spec: DeploymentSpec = DeploymentSpec()
    status: DeploymentStatus = DeploymentStatus()

    @classmethod
    def of(cls, obj: Object) -> Deployment:
        return obj.decode(cls)

    @property
    def rolling(self) -> bool:
        return self.spec.strategy.type == "RollingUpdate"

    @property
    def selector(self) -> LabelSelector:
        return LabelSelector.from_object(self.spec.selector, "spec.selector")

    @property
    def progress_deadline(self) -> timedelta | None:
        """How long a rollout may make no progress; None: for ever."""
        seconds = self.spec.progress_deadline_seconds
        return None if seconds is None or seconds == UNLIMITED else timedelta(seconds=seconds)

    def with_conditions(self, conditions: Iterable[Condition]) -> Deployment:
        return msgspec.structs.replace(self, status=msgspec.structs.replace(self.status, conditions=tuple(conditions)))


class Fleet(msgspec.Struct, frozen=True):
    """The ReplicaSets of one Deployment: the one with its present template, if there is one, and all others."""

    new: ReplicaSet | None
    old: tuple[ReplicaSet, ...]

    @property
    def all(self) -> tuple[ReplicaSet, ...]:
        return self.old if self.new is None else (*self.old, self.new)

    @property
    def active_old(self) -> tuple[ReplicaSet, ...]:
        return tuple(each for each in self.old if each.active)

    def scaled(self, sizes: dict[str, int]) -> Fleet:
        """The same with other sizes, by name."""
        resized = [each.with_replicas(sizes.get(each.name, each.spec.replicas)) for each in self.all]
        return Fleet(new=None if self.new is None else resized.pop(), old=tuple(resized))
