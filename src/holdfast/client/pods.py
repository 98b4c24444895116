"""Pods as their owners read them: whether one is active, ready, available, and since when.

Pure.  The types hold the few fields that owners read, so that decoding a pod
costs little.  This module must not know who owns a pod, nor which one is stopped first.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from functools import cached_property
from typing import Any, Final, Self

import msgspec

from holdfast.client.objects import Meta, Object, decode_at_once
from holdfast.client.resources import PODS
from holdfast.meta import times
from holdfast.meta.objects import owner_reference

FINISHED: Final = frozenset({"Succeeded", "Failed"})


class Condition(msgspec.Struct, frozen=True, rename="camel", gc=False):
    type: str
    status: str = "Unknown"
    reason: str = ""
    message: str = ""
    last_transition_time: str | None = None


class ReadinessGate(msgspec.Struct, frozen=True, rename="camel", gc=False):
    """A condition that must be true before the pod is ready."""

    condition_type: str = ""


class ContainerStatus(msgspec.Struct, frozen=True, rename="camel", gc=False):
    name: str = ""
    ready: bool = False
    restart_count: int = 0


class PodSpec(msgspec.Struct, frozen=True, rename="camel", gc=False):
    node_name: str = ""
    hostname: str = ""
    subdomain: str = ""


class PodStatus(msgspec.Struct, frozen=True, rename="camel", gc=False):
    phase: str = "Pending"
    reason: str = ""
    message: str = ""
    conditions: tuple[Condition, ...] = ()
    container_statuses: tuple[ContainerStatus, ...] = ()
    pod_ip: str = msgspec.field(default="", name="podIP")


class Pod(msgspec.Struct, frozen=True, rename="camel", dict=True):
    """What an owner reads of a pod.

    An object keeps its decoded pod, and owners ask it again in each pass, so what takes a search is kept in turn.
    """

    metadata: Meta = Meta()
    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()

    @classmethod
    def of(cls, obj: Object) -> Self:
        return obj.decode(cls)

    @property
    def deleting(self) -> bool:
        return self.metadata.deletion_timestamp is not None

    @property
    def finished(self) -> bool:
        """Its containers have ended for good."""
        return self.status.phase in FINISHED

    @property
    def active(self) -> bool:
        """It runs or will: neither finished nor being deleted."""
        return not self.finished and not self.deleting

    @cached_property
    def ready(self) -> bool:
        condition = self.condition("Ready")
        return condition is not None and condition.status == "True"

    @cached_property
    def restarts(self) -> int:
        """Of the container that restarted most."""
        return max((container.restart_count for container in self.status.container_statuses), default=0)

    def condition(self, type: str) -> Condition | None:
        return next((each for each in self.status.conditions if each.type == type), None)

    def ready_since(self) -> datetime | None:
        return self._ready_since

    @cached_property
    def _ready_since(self) -> datetime | None:
        condition = self.condition("Ready")
        if condition is None or condition.status != "True" or not condition.last_transition_time:
            return None
        return times.parse(condition.last_transition_time)

    def available_at(self, min_ready: timedelta) -> datetime | None:
        """When it counts as available, if it stays ready; None while it is not ready."""
        since = self.ready_since()
        return None if since is None else since + min_ready

    def available(self, min_ready: timedelta, now: datetime) -> bool:
        """Ready, and for long enough."""
        if not min_ready:
            return self.ready
        at = self.available_at(min_ready)
        return at is not None and at <= now


decode_at_once(PODS, Pod)


def from_template(
    template: Mapping[str, Any], owner: Mapping[str, Any], *, name: str = "", labels: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """The pod that `owner` makes from its template: by `name`, or else by a name that the server generates."""
    metadata = template.get("metadata") or {}
    made: dict[str, Any] = {"namespace": owner["metadata"].get("namespace", "default")}
    if name:
        made["name"] = name
    else:
        made["generateName"] = f"{owner['metadata']['name']}-"
    marks = {**(metadata.get("labels") or {}), **(labels or {})}
    if marks:
        made["labels"] = marks
    for field in ("annotations", "finalizers"):
        if metadata.get(field):
            made[field] = metadata[field]
    made["ownerReferences"] = [owner_reference(owner)]
    return {"apiVersion": "v1", "kind": "Pod", "metadata": made, "spec": dict(template.get("spec") or {})}
