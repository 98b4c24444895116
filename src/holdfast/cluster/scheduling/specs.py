"""A pod's spec, as far as a scheduler reads it.

Types of the wire and nothing else; what they ask for is found in `needs`.
"""

from __future__ import annotations

from typing import Any

import msgspec

from holdfast.meta.nodes import Toleration


class _Wire(msgspec.Struct, frozen=True, rename="camel", gc=False):
    pass


class Resources(_Wire, frozen=True):
    requests: dict[str, str | int | float] = {}


class ContainerPort(_Wire, frozen=True):
    host_port: int = 0
    protocol: str = "TCP"
    host_ip: str = msgspec.field(default="", name="hostIP")


class Container(_Wire, frozen=True):
    resources: Resources = Resources()
    ports: tuple[ContainerPort, ...] = ()
    restart_policy: str = ""


class NodeSelectorTerm(_Wire, frozen=True):
    match_expressions: tuple[dict[str, Any], ...] = ()
    match_fields: tuple[dict[str, Any], ...] = ()


class NodeSelector(_Wire, frozen=True):
    node_selector_terms: tuple[NodeSelectorTerm, ...] = ()


class PreferredNode(_Wire, frozen=True):
    weight: int = 1
    preference: NodeSelectorTerm = NodeSelectorTerm()


class NodeAffinity(_Wire, frozen=True):
    required: NodeSelector | None = msgspec.field(default=None, name="requiredDuringSchedulingIgnoredDuringExecution")
    preferred: tuple[PreferredNode, ...] = msgspec.field(
        default=(), name="preferredDuringSchedulingIgnoredDuringExecution"
    )


class PodAffinityTerm(_Wire, frozen=True):
    topology_key: str = ""
    label_selector: dict[str, Any] | None = None
    namespaces: tuple[str, ...] = ()
    namespace_selector: dict[str, Any] | None = None
    match_label_keys: tuple[str, ...] = ()
    mismatch_label_keys: tuple[str, ...] = ()


class PreferredPod(_Wire, frozen=True):
    weight: int = 1
    pod_affinity_term: PodAffinityTerm = PodAffinityTerm()


class PodAffinity(_Wire, frozen=True):
    required: tuple[PodAffinityTerm, ...] = msgspec.field(
        default=(), name="requiredDuringSchedulingIgnoredDuringExecution"
    )
    preferred: tuple[PreferredPod, ...] = msgspec.field(
        default=(), name="preferredDuringSchedulingIgnoredDuringExecution"
    )


class Affinity(_Wire, frozen=True):
    node_affinity: NodeAffinity = NodeAffinity()
    pod_affinity: PodAffinity = PodAffinity()
    pod_anti_affinity: PodAffinity = PodAffinity()


class SpreadConstraint(_Wire, frozen=True):
    topology_key: str = ""
    max_skew: int = 1
    when_unsatisfiable: str = "DoNotSchedule"
    label_selector: dict[str, Any] | None = None
    min_domains: int = 1
    match_label_keys: tuple[str, ...] = ()
    node_affinity_policy: str = "Honor"
    node_taints_policy: str = "Ignore"


class Spec(_Wire, frozen=True):
    node_name: str = ""
    scheduler_name: str = ""
    runtime_class_name: str = ""
    scheduling_gates: tuple[dict[str, str], ...] = ()
    priority: int = 0
    containers: tuple[Container, ...] = ()
    init_containers: tuple[Container, ...] = ()
    overhead: dict[str, str | int | float] = {}
    resources: Resources = Resources()
    tolerations: tuple[Toleration, ...] = ()
    node_selector: dict[str, str] = {}
    affinity: Affinity = Affinity()
    topology_spread_constraints: tuple[SpreadConstraint, ...] = ()


class _Status(_Wire, frozen=True):
    phase: str = ""


class Parts(_Wire, frozen=True):
    spec: msgspec.Raw = msgspec.Raw(b"{}")
    status: _Status = _Status()
