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
from holdfast.meta import hashing
from holdfast.meta.objects import owner_reference
from holdfast.operators.workload import containers, placement

WORKLOAD: Final = "cloudless.io/workload"
REVISION: Final = "cloudless.io/revision"
"""The labels by which replicas are found, and told apart."""

RESTARTED_AT: Final = "holdfast.dev/restarted-at"
"""The annotation that makes a new revision of the same spec."""

SIMULATION: Final = "sim.holdfast.dev/"
"""Annotations that simulated nodes read; they go to the replicas as they are."""

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
        (kind,) = KINDS
        spec = checks.defaulted(kind, msgspec.to_builtins(workload))["spec"]
        return cls(
            spec={field: value for field, value in spec.items() if field not in _NOT_PART_OF_REVISION},
            configs=dict(sorted((configs or {}).items())),
            restarted_at=workload.metadata.annotations.get(RESTARTED_AT, ""),
        )

    @property
    def revision(self) -> str:
        """Its name.  What is absent is left out, so that a field that comes later renames nothing."""
        extra = {"configs": self.configs, "restartedAt": self.restarted_at}
        return hashing.short_hash(self.spec | {name: value for name, value in extra.items() if value})


def revision(workload: Workload) -> str:
    """The name of what a Workload's replicas are made from, where no configuration is looked at."""
    return Template.of(workload).revision


def labels(name: str, revision: str = "") -> dict[str, str]:
    """The labels of the replicas, of one revision or of all."""
    return {WORKLOAD: name} | ({REVISION: revision} if revision else {})


def pod(owner: Mapping[str, Any], template: Template) -> dict[str, Any]:
    """One replica."""
    metadata, revision = owner["metadata"], template.revision
    spec = msgspec.convert(template.spec, WorkloadSpec)
    annotations = {
        name: value for name, value in (metadata.get("annotations") or {}).items() if name.startswith(SIMULATION)
    }
    annotations |= containers.bandwidth(spec)
    made: dict[str, Any] = {
        "generateName": f"{metadata['name']}-{revision}-",
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
            "name": f"{metadata['name']}-{template.revision}",
            "namespace": metadata["namespace"],
            "labels": labels(metadata["name"], template.revision),
            "ownerReferences": [owner_reference(owner)],
        },
        "data": msgspec.to_builtins(template),
        "revision": number,
    }


def service(owner: Mapping[str, Any], template: Template, *, name: str, serving: str) -> dict[str, Any]:
    """The Service of a BlueGreen Workload, which sends all traffic to one revision."""
    metadata = owner["metadata"]
    ports = [
        {"name": port.name or f"port-{port.container_port}", "port": port.container_port, "protocol": port.protocol}
        for port in msgspec.convert(template.spec, WorkloadSpec).ports
    ]
    spec: dict[str, Any] = {"selector": labels(metadata["name"], serving)}
    # A Service needs a port; without one it has no address either, and is found by its endpoints.
    spec |= {"ports": ports} if ports else {"clusterIP": "None"}
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {
            "name": name,
            "namespace": metadata["namespace"],
            "labels": labels(metadata["name"]),
            "ownerReferences": [owner_reference(owner)],
        },
        "spec": spec,
    }
