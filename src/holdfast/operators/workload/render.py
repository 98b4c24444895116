"""The objects that the controller creates for a Workload: pods, ControllerRevisions, the Service.  Pure.

A `Template` holds everything that a pod is created from.  A revision is the hash of a template: specs that differ only
in spelling, order or defaults have the same revision.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property, lru_cache
from typing import Any, Final

import msgspec

from holdfast.kinds import checks
from holdfast.kinds.cloudless import KINDS, Workload, WorkloadSpec
from holdfast.meta import hashing, names
from holdfast.meta.objects import owner_reference
from holdfast.operators.workload import containers, placement

WORKLOAD: Final = "cloudless.io/workload"
REVISION: Final = "cloudless.io/revision"
"""The labels of the pods: the Workload, and the revision."""

RESTARTED_AT: Final = "holdfast.dev/restarted-at"
"""The annotation with the time of a restart; a new time makes a new revision of the same spec."""

SWITCHED_FOR: Final = "holdfast.dev/switched-for"
"""The annotation of a Service whose selector names one revision of a Workload: the name of that Workload."""

SIMULATION: Final = "sim.holdfast.dev/"
"""The prefix of annotations that simulated nodes read; the controller copies them to the pods."""

_GENERATED: Final = names.LABEL_MAX - 6
"""How long a name may be before the API server adds a dash and five characters."""

_NOT_PART_OF_REVISION: Final = ("replicas", "rollout")


class Template(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True, dict=True):
    """What the pods of a revision are created from, as a ControllerRevision keeps it.

    spec          the spec of the Workload, without replicas and rollout, with defaults
    configs       fingerprints of the ConfigMaps and Secrets that are part of the revision
    restarted_at  the time of the last restart; empty: none
    """

    spec: dict[str, Any]
    configs: dict[str, str] = {}
    restarted_at: str = ""

    @classmethod
    def of(cls, workload: Workload, configs: Mapping[str, str] | None = None) -> Template:
        restarted_at = workload.metadata.annotations.get(RESTARTED_AT, "")
        return _template(msgspec.json.encode(workload.spec), tuple(sorted((configs or {}).items())), restarted_at)

    def defaulted(self) -> Template:
        """The same template with the defaults of this release."""
        (kind,) = KINDS
        spec = checks.defaulted(kind, {"spec": self.spec})["spec"]
        kept = {field: value for field, value in spec.items() if field not in _NOT_PART_OF_REVISION}
        return msgspec.structs.replace(self, spec=kept)

    @cached_property
    def revision(self) -> str:
        """The hash; kept, because a pass asks for it often.

        Absent fields are left out, so that a field that a later release adds changes no revision.
        """
        extra = {"configs": self.configs, "restartedAt": self.restarted_at}
        return hashing.short_hash(self.spec | {name: value for name, value in extra.items() if value})


@lru_cache(maxsize=512)  # a Workload is read in each pass, and its spec seldom changes
def _template(written: bytes, configs: tuple[tuple[str, str], ...], restarted_at: str) -> Template:
    spec = msgspec.json.decode(written)
    kept = {field: value for field, value in spec.items() if field not in _NOT_PART_OF_REVISION}
    return Template(spec=kept, configs=dict(configs), restarted_at=restarted_at).defaulted()


def revision(workload: Workload) -> str:
    """The revision of a Workload, without ConfigMaps and Secrets."""
    return Template.of(workload).revision


def labels(name: str, revision: str = "") -> dict[str, str]:
    """The labels of the pods of one revision, or of all; a name that is too long for a label is shortened."""
    if len(name) > names.LABEL_MAX:
        mark = names.hash_suffix(name)
        name = f"{name[: names.LABEL_MAX - len(mark) - 1].rstrip('-.')}-{mark}"
    return {WORKLOAD: name} | ({REVISION: revision} if revision else {})


def budget_name(name: str) -> str:
    """The name of the disruption budget; one of the Workload's own name is often the user's."""
    return names.make_name(name, "floor")


def _prefix(name: str, revision: str) -> str:
    """The prefix of the names of the objects of a revision."""
    return f"{names.make_name(name, revision, max=_GENERATED)}-"


def pod(owner: Mapping[str, Any], template: Template) -> dict[str, Any]:
    """One pod."""
    metadata, revision = owner["metadata"], template.revision
    spec = msgspec.convert(template.spec, WorkloadSpec)
    annotations = {
        name: value for name, value in (metadata.get("annotations") or {}).items() if name.startswith(SIMULATION)
    }
    annotations |= containers.bandwidth(spec) | spec.pod_annotations
    made: dict[str, Any] = {
        "generateName": _prefix(metadata["name"], revision),
        "namespace": metadata["namespace"],
        "labels": {**(metadata.get("labels") or {}), **spec.pod_labels, **labels(metadata["name"], revision)},
        "ownerReferences": [owner_reference(owner)],
    }
    if annotations:
        made["annotations"] = annotations
    return {"apiVersion": "v1", "kind": "Pod", "metadata": made, "spec": dict(_pod_spec(spec, metadata["name"]))}


def _pod_spec(spec: WorkloadSpec, name: str) -> Iterator[tuple[str, Any]]:
    yield "containers", [containers.container(spec)]
    others = list(containers.other_containers(spec))
    if others:
        yield "initContainers", others
    volumes = list(containers.volumes(spec))
    if volumes:
        yield "volumes", volumes
    if spec.image_pull_secrets:
        yield "imagePullSecrets", [{"name": secret} for secret in spec.image_pull_secrets]
    security = containers.pod_security(spec)
    if security:
        yield "securityContext", security
    if spec.service_account_name:
        yield "serviceAccountName", spec.service_account_name
    if spec.automount_service_account_token is not None:
        yield "automountServiceAccountToken", spec.automount_service_account_token
    if spec.runtime_class_name:
        yield "runtimeClassName", spec.runtime_class_name
    if spec.termination_grace_period is not None:
        yield "terminationGracePeriodSeconds", containers.seconds(spec.termination_grace_period)
    if spec.restart_policy is not None and spec.restart_policy.policy is not None:
        yield "restartPolicy", spec.restart_policy.policy.value
    if spec.placement is not None:
        yield from placement.scheduling(spec.placement, labels(name))


def controller_revision(owner: Mapping[str, Any], template: Template, *, number: int) -> dict[str, Any]:
    """The ControllerRevision of a template."""
    metadata = owner["metadata"]
    return {
        "apiVersion": "apps/v1",
        "kind": "ControllerRevision",
        "metadata": {
            # A generated name does not collide with one that an earlier Workload of this name left behind.
            "generateName": _prefix(metadata["name"], template.revision),
            "namespace": metadata["namespace"],
            "labels": labels(metadata["name"], template.revision),
            "ownerReferences": [owner_reference(owner)],
        },
        "data": msgspec.to_builtins(template),
        "revision": number,
    }


def service(owner: Mapping[str, Any], template: Template, *, name: str, serving: str) -> dict[str, Any]:
    """The Service of a BlueGreen Workload, which selects one revision."""
    metadata, pinned = owner["metadata"], pin(owner["metadata"]["name"], serving)
    ports = service_ports(template)
    # A Service without ports must be headless.
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
    """The ports of the containers as ports of a Service, each with a name, which several ports need."""
    spec = msgspec.convert(template.spec, WorkloadSpec)
    made: dict[tuple[int, str], dict[str, Any]] = {}
    for port in (port for each in (spec, *spec.sidecars) for port in each.ports):
        protocol = port.protocol or "TCP"
        taken = {each["name"] for each in made.values()}
        name = port.name if port.name and port.name not in taken else f"{protocol.lower()}-{port.container_port}"
        served = {"name": name, "port": port.container_port, "protocol": protocol}
        made.setdefault((port.container_port, protocol), served)
    return list(made.values())


def pin(name: str, revision: str) -> dict[str, Any]:
    """The patch that makes a Service select one revision."""
    return {"metadata": {"annotations": {SWITCHED_FOR: name}}, "spec": {"selector": labels(name, revision)}}


def unpin() -> dict[str, Any]:
    """The patch that makes such a Service select all revisions again."""
    return {"metadata": {"annotations": {SWITCHED_FOR: None}}, "spec": {"selector": {REVISION: None}}}
