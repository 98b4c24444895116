"""The objects of a PodCliqueSet, rendered from its template.

PodCliques and PodCliqueScalingGroups are created with the replicas of the template; from
then on each is scaled by itself, so `without_replicas` leaves that field out.  Owner
references are added where objects are written.  Pure.  This module must not know what
exists.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from holdfast.client.resources import (
    AUTOSCALERS,
    PODS,
    ROLE_BINDINGS,
    ROLES,
    SECRETS,
    SERVICE_ACCOUNTS,
    SERVICES,
    Resource,
)
from holdfast.kinds.grove.components import AutoScalingConfig
from holdfast.kinds.grove.templates import CliqueTemplate, ScalingGroupTemplate
from holdfast.operators.podcliqueset import labels, names, startup
from holdfast.operators.podcliqueset.labels import Component
from holdfast.operators.podcliqueset.resources import CLIQUES, GANGS, GROUPS
from holdfast.operators.podcliqueset.templates import Layout, replicas
from holdfast.runtime.controllers import Grant
from holdfast.runtime.status import wire

Manifest = dict[str, Any]


def manifest(resource: Resource, layout: Layout, name: str, marks: Mapping[str, str], **content: Any) -> Manifest:
    metadata = {"name": name, "namespace": layout.namespace, "labels": dict(marks)}
    return {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": metadata, **content}


_SEE: Final = ("get", "list", "watch")
GRANTS: Final = (Grant(resource=PODS, verbs=_SEE), Grant(resource=PODS, verbs=_SEE, part="status"))
"""The rights of the pods of a set: to read the pods that they start after."""


# --- once for a set, and once for each replica


def identity(layout: Layout) -> Iterator[Manifest]:
    """The ServiceAccount of the pods of a set, with the right to read the pods that they start after."""
    name, role = layout.name, names.role(layout.name)
    yield manifest(SERVICE_ACCOUNTS, layout, name, labels.common(name, name, Component.SERVICE_ACCOUNT))
    rules = [{"apiGroups": [GRANTS[0].resource.group], "resources": [each.name for each in GRANTS], "verbs": [*_SEE]}]
    yield manifest(ROLES, layout, role, labels.common(name, _plain(role), Component.ROLE), rules=rules)
    yield manifest(
        ROLE_BINDINGS,
        layout,
        role,
        labels.common(name, _plain(role), Component.ROLE_BINDING),
        roleRef={"apiGroup": ROLES.group, "kind": ROLES.kind, "name": role},
        subjects=[{"kind": SERVICE_ACCOUNTS.kind, "name": name, "namespace": layout.namespace}],
    )
    secret = names.token_secret(name)
    made = manifest(
        SECRETS,
        layout,
        secret,
        labels.common(name, secret, Component.TOKEN_SECRET),
        type="kubernetes.io/service-account-token",
    )
    made["metadata"]["annotations"] = {"kubernetes.io/service-account.name": name}
    yield made


def _plain(name: str) -> str:
    """A name as the value of a label, which must not have colons."""
    return name.replace(":", "-")


def service(layout: Layout, index: int) -> Manifest:
    """The headless Service of a replica, which gives its pods DNS names."""
    name = names.replica(layout.name, index)
    marks = labels.common(layout.name, name, Component.SERVICE) | {labels.SET_INDEX: str(index)}
    spec = {
        "clusterIP": "None",
        "selector": labels.of_replica(layout.name, index),
        "publishNotReadyAddresses": layout.publishes_not_ready,
    }
    return manifest(SERVICES, layout, name, marks, spec=spec)


# --- PodCliques and scaling groups


def clique(layout: Layout, template: CliqueTemplate, index: int, *, template_hash: str) -> Manifest:
    """A standalone PodClique, in replica `index`."""
    name = names.clique(layout.name, index, template.name)
    marks = {
        **template.labels,
        **labels.common(layout.name, name, Component.CLIQUE),
        labels.SET_INDEX: str(index),
        labels.GANG: names.replica(layout.name, index),
        labels.TEMPLATE: template.name,
        labels.TEMPLATE_HASH: template_hash,
    }
    after = startup.starts_after(layout, template.name, index=index)
    return _clique(layout, template, name, marks, after)


def member(
    layout: Layout,
    group: ScalingGroupTemplate,
    template: CliqueTemplate,
    *,
    index: int,
    group_index: int,
    template_hash: str,
) -> Manifest:
    """A PodClique of replica `group_index` of a scaling group, in replica `index`."""
    group_name, base = names.group(layout.name, index, group.name), names.replica(layout.name, index)
    name = names.member(group_name, group_index, template.name)
    scaled = group_index >= layout.minimum(group)
    gang = names.scaled_gang(group_name, group_index, minimum=layout.minimum(group)) if scaled else base
    marks = {
        **template.labels,
        **labels.common(layout.name, name, Component.MEMBER),
        labels.SET_INDEX: str(index),
        labels.GROUP: group_name,
        labels.GROUP_INDEX: str(group_index),
        labels.GANG: gang,
        **({labels.BASE_GANG: base} if scaled else {}),
        labels.TEMPLATE: template.name,
        labels.TEMPLATE_HASH: template_hash,
    }
    after = startup.starts_after(layout, template.name, index=index, group_index=group_index)
    return _clique(layout, template, name, marks, after)


def _clique(
    layout: Layout,
    template: CliqueTemplate,
    name: str,
    marks: Mapping[str, str],
    after: tuple[startup.Parent, ...],
) -> Manifest:
    pod_spec = dict(template.spec.pod_spec)
    if layout.template.priority_class_name:
        pod_spec["priorityClassName"] = layout.template.priority_class_name
    spec: Manifest = {
        "roleName": template.spec.role_name,
        "podSpec": pod_spec,
        "replicas": replicas(template),
        "minAvailable": layout.minimum(template),
    }
    if after:
        spec["startsAfter"] = [parent.clique for parent in after]
    if template.spec.auto_scaling_config is not None:
        spec["autoScalingConfig"] = wire(template.spec.auto_scaling_config)
    made = manifest(CLIQUES, layout, name, marks, spec=spec)
    if template.annotations:
        made["metadata"]["annotations"] = dict(template.annotations)
    return made


def group(layout: Layout, template: ScalingGroupTemplate, index: int) -> Manifest:
    """A PodCliqueScalingGroup, in replica `index`."""
    name = names.group(layout.name, index, template.name)
    marks = {
        **labels.common(layout.name, name, Component.GROUP),
        labels.SET_INDEX: str(index),
        labels.TEMPLATE: template.name,
    }
    spec = {
        "replicas": replicas(template),
        "minAvailable": layout.minimum(template),
        "cliqueNames": list(template.clique_names),
    }
    made = manifest(GROUPS, layout, name, marks, spec=spec)
    if template.annotations:
        made["metadata"]["annotations"] = dict(template.annotations)
    return made


def without_replicas(made: Manifest) -> Manifest:
    """A PodClique or scaling group that exists: users and autoscalers set `spec.replicas`."""
    return {**made, "spec": {field: value for field, value in made["spec"].items() if field != "replicas"}}


# --- PodGangs


def base_gang(layout: Layout, index: int) -> Manifest:
    """The base PodGang of a replica: everything up to minAvailable."""
    return _gang(layout, names.replica(layout.name, index), index, {})


def scaled_gang(layout: Layout, template: ScalingGroupTemplate, *, index: int, group_index: int) -> Manifest:
    """The PodGang of a replica of a scaling group beyond minAvailable."""
    group_name = names.group(layout.name, index, template.name)
    name = names.scaled_gang(group_name, group_index, minimum=layout.minimum(template))
    marks = {
        labels.BASE_GANG: names.replica(layout.name, index),
        labels.GROUP: group_name,
        labels.GROUP_INDEX: str(group_index),
    }
    return _gang(layout, name, index, marks)


def _gang(layout: Layout, name: str, index: int, marks: Mapping[str, str]) -> Manifest:
    metadata = layout.set.metadata
    own = {key: value for key, value in metadata.labels.items() if not key.startswith(labels.DOMAIN)}
    every = {
        **own,
        **labels.common(layout.name, name, Component.GANG),
        labels.SET_INDEX: str(index),
        **({labels.SCHEDULER: scheduler} if (scheduler := _scheduler(layout)) else {}),
        **marks,
    }
    priority = layout.template.priority_class_name
    return manifest(GANGS, layout, name, every, spec={"priorityClassName": priority} if priority else {})


def _scheduler(layout: Layout) -> str:
    """The `schedulerName` that all cliques have; empty where none is set."""
    named = (str(clique.spec.pod_spec.get("schedulerName") or "") for clique in layout.cliques)
    return next(filter(None, named), "")


# --- autoscalers


def autoscalers(layout: Layout, index: int) -> Iterator[Manifest]:
    """A HorizontalPodAutoscaler for each clique and scaling group of a replica that has a configuration for one."""
    for template in layout.standalone:
        if template.spec.auto_scaling_config is not None:
            name = names.clique(layout.name, index, template.name)
            yield _autoscaler(layout, CLIQUES, name, template.spec.auto_scaling_config, index, replicas(template))
    for each in layout.groups:
        if each.scale_config is not None:
            name = names.group(layout.name, index, each.name)
            yield _autoscaler(layout, GROUPS, name, each.scale_config, index, replicas(each))


def _autoscaler(
    layout: Layout, target: Resource, name: str, config: AutoScalingConfig, index: int, begins_with: int
) -> Manifest:
    marks = labels.common(layout.name, name, Component.AUTOSCALER) | {labels.SET_INDEX: str(index)}
    spec: Manifest = {
        "scaleTargetRef": {"apiVersion": target.api_version, "kind": target.kind, "name": name},
        "minReplicas": config.min_replicas or begins_with,
        "maxReplicas": config.max_replicas,
    }
    if config.metrics:
        spec["metrics"] = list(config.metrics)
    return manifest(AUTOSCALERS, layout, name, marks, spec=spec)
