"""What the replicas of a Workload are made from, and the objects that are made for it.

A `Template` is everything that makes one replica; a revision is the name of a
template, the same for the same meaning however it was written.  All functions are
pure.  This module must not know how many replicas there are, nor why one is started.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec

from holdfast.kinds import checks
from holdfast.kinds.cloudless import KINDS, Workload, WorkloadSpec
from holdfast.meta import hashing, names
from holdfast.meta.objects import owner_reference
from holdfast.operators.workload import containers, placement

WORKLOAD: Final = "cloudless.io/workload"
REVISION: Final = "cloudless.io/revision"
"""The labels by which replicas are found, and told apart."""

RESTARTED_AT: Final = "holdfast.dev/restarted-at"
"""The annotation that makes a new revision of the same spec."""

SWITCHED_FOR: Final = "holdfast.dev/switched-for"
"""The annotation of a Service whose selector names one revision of a Workload, with the Workload's name."""

SIMULATION: Final = "sim.holdfast.dev/"
"""Annotations that simulated nodes read; they go to the replicas as they are."""

_GENERATED: Final = names.LABEL_MAX - 6
"""What a server leaves of a name before the dash and the five characters that it adds."""

_NOT_PART_OF_REVISION: Final = ("replicas", "rollout")


class Template(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """What each replica of a revision is made from, as a ControllerRevision keeps it.

    spec          the Workload's, without size and rollout, with the API's defaults
    configs       fingerprints of the ConfigMaps and Secrets whose content is part of it
    restarted_at  when a restart of the same spec was asked for
    """

    spec: dict[str, Any]
    configs: dict[str, str] = {}
    restarted_at: str = ""

    @classmethod
    def of(cls, workload: Workload, configs: Mapping[str, str] | None = None) -> Template:
        spec = msgspec.to_builtins(workload.spec)
        return cls(
            spec={field: value for field, value in spec.items() if field not in _NOT_PART_OF_REVISION},
            configs=dict(sorted((configs or {}).items())),
            restarted_at=workload.metadata.annotations.get(RESTARTED_AT, ""),
        ).defaulted()

    def defaulted(self) -> Template:
        """The same, with the defaults that the API knows now."""
        (kind,) = KINDS
        spec = checks.defaulted(kind, {"spec": self.spec})["spec"]
        kept = {field: value for field, value in spec.items() if field not in _NOT_PART_OF_REVISION}
        return msgspec.structs.replace(self, spec=kept)

    @property
    def revision(self) -> str:
        """Its name.  What is absent is left out, so that a field that comes later renames nothing."""
        extra = {"configs": self.configs, "restartedAt": self.restarted_at}
        return hashing.short_hash(self.spec | {name: value for name, value in extra.items() if value})


def revision(workload: Workload) -> str:
    """The name of what a Workload's replicas are made from, where no configuration is looked at."""
    return Template.of(workload).revision


def labels(name: str, revision: str = "") -> dict[str, str]:
    """The labels of the replicas, of one revision or of all; a name that is too long for a label is shortened."""
    if len(name) > names.LABEL_MAX:
        mark = names.hash_suffix(name)
        name = f"{name[: names.LABEL_MAX - len(mark) - 1].rstrip('-.')}-{mark}"
    return {WORKLOAD: name} | ({REVISION: revision} if revision else {})


def budget_name(name: str) -> str:
    """The name of the disruption budget; one of the Workload's own name is often the user's."""
    return names.make_name(name, "floor")


def _prefix(name: str, revision: str) -> str:
    """How names begin of what is made for a revision."""
    return f"{names.make_name(name, revision, max=_GENERATED)}-"


def pod(owner: Mapping[str, Any], template: Template) -> dict[str, Any]:
    """One replica."""
    metadata, revision = owner["metadata"], template.revision
    spec = msgspec.convert(template.spec, WorkloadSpec)
    annotations = {
        name: value for name, value in (metadata.get("annotations") or {}).items() if name.startswith(SIMULATION)
    }
    annotations |= containers.bandwidth(spec)
    made: dict[str, Any] = {
        "generateName": _prefix(metadata["name"], revision),
        "namespace": metadata["namespace"],
        "labels": {**(metadata.get("labels") or {}), **labels(metadata["name"], revision)},
        "ownerReferences": [owner_reference(owner)],
    }
    if annotations:
        made["annotations"] = annotations
    return {"apiVersion": "v1", "kind": "Pod", "metadata": made, "spec": dict(_pod_spec(spec, metadata["name"]))}


def _pod_spec(spec: WorkloadSpec, name: str) -> Iterator[tuple[str, Any]]:
    yield "containers", [containers.container(spec)]
    volumes = list(containers.volumes(spec))
    if volumes:
        yield "volumes", volumes
    if spec.image_pull_secrets:
        yield "imagePullSecrets", [{"name": secret} for secret in spec.image_pull_secrets]
    if spec.restart_policy is not None and spec.restart_policy.policy is not None:
        yield "restartPolicy", spec.restart_policy.policy.value
    if spec.placement is not None:
        yield from placement.scheduling(spec.placement, labels(name))


def controller_revision(owner: Mapping[str, Any], template: Template, *, number: int) -> dict[str, Any]:
    """The record of a template, from which its replicas can be made again."""
    metadata = owner["metadata"]
    return {
        "apiVersion": "apps/v1",
        "kind": "ControllerRevision",
        "metadata": {
            # What a Workload of the same name left behind must not be in the way; that there are two does no harm.
            "generateName": _prefix(metadata["name"], template.revision),
            "namespace": metadata["namespace"],
            "labels": labels(metadata["name"], template.revision),
            "ownerReferences": [owner_reference(owner)],
        },
        "data": msgspec.to_builtins(template),
        "revision": number,
    }


def service(owner: Mapping[str, Any], template: Template, *, name: str, serving: str) -> dict[str, Any]:
    """The Service of a BlueGreen Workload, which sends all traffic to one revision."""
    metadata, pinned = owner["metadata"], pin(owner["metadata"]["name"], serving)
    ports = service_ports(template)
    # A Service needs a port; without one it has no address either, and is found by its endpoints.
    spec = pinned["spec"] | ({"ports": ports} if ports else {"clusterIP": "None"})
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {
            **pinned["metadata"],
            "name": name,
            "namespace": metadata["namespace"],
            "labels": labels(metadata["name"]),
            "ownerReferences": [owner_reference(owner)],
        },
        "spec": spec,
    }


def service_ports(template: Template) -> list[dict[str, Any]]:
    """The container's ports as those of a Service, each under a name, which Services with several need."""
    made = []
    for port in msgspec.convert(template.spec, WorkloadSpec).ports:
        protocol = port.protocol or "TCP"
        name = port.name or f"{protocol.lower()}-{port.container_port}"
        made.append({"name": name, "port": port.container_port, "protocol": protocol})
    return made


def pin(name: str, revision: str) -> dict[str, Any]:
    """What makes a Service send all traffic to one revision, as a patch."""
    return {"metadata": {"annotations": {SWITCHED_FOR: name}}, "spec": {"selector": labels(name, revision)}}


def unpin() -> dict[str, Any]:
    """What makes such a Service send traffic to all revisions again, as a patch."""
    return {"metadata": {"annotations": {SWITCHED_FOR: None}}, "spec": {"selector": {REVISION: None}}}
