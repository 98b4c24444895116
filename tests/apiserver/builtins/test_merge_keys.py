"""Strategic merge patches of built-in kinds: which lists are merged, and by which key."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.apiserver.builtins import BUILTINS
from holdfast.meta.patches.strategic import Schema, apply


def schema_of(group: str, kind: str) -> Schema:
    newest = next(each for each in BUILTINS if (each.group, each.kind) == (group, kind))
    return Schema(newest.schema)


@pytest.mark.parametrize(
    ("group", "kind", "path", "merge_key"),
    [
        ("", "Pod", "spec.containers", "name"),
        ("", "Pod", "spec.initContainers", "name"),
        ("", "Pod", "spec.ephemeralContainers", "name"),
        ("", "Pod", "spec.containers.env", "name"),
        ("", "Pod", "spec.containers.ports", "containerPort"),
        ("", "Pod", "spec.containers.volumeMounts", "mountPath"),
        ("", "Pod", "spec.containers.volumeDevices", "devicePath"),
        ("", "Pod", "spec.volumes", "name"),
        ("", "Pod", "spec.imagePullSecrets", "name"),
        ("", "Pod", "spec.hostAliases", "ip"),
        ("", "Pod", "spec.topologySpreadConstraints", "topologyKey"),
        ("", "Pod", "spec.tolerations", None),
        ("", "Pod", "spec.containers.envFrom", None),
        ("", "Pod", "status.conditions", "type"),
        ("", "Pod", "status.containerStatuses", None),
        ("", "Pod", "metadata.ownerReferences", "uid"),
        ("", "Pod", "metadata.finalizers", ""),
        ("", "PodTemplate", "template.spec.containers", "name"),
        ("", "Service", "spec.ports", "port"),
        ("", "ServiceAccount", "secrets", "name"),
        ("", "ServiceAccount", "imagePullSecrets", None),
        ("", "Node", "status.addresses", "type"),
        ("", "Node", "spec.taints", None),
        ("", "PersistentVolumeClaim", "status.conditions", "type"),
        ("", "ConfigMap", "metadata.finalizers", ""),
        ("apps", "Deployment", "spec.template.spec.containers.env", "name"),
        ("apps", "ReplicaSet", "spec.template.spec.volumes", "name"),
        ("apps", "StatefulSet", "spec.template.metadata.finalizers", ""),
        ("apps", "StatefulSet", "spec.volumeClaimTemplates", None),
        ("apps", "DaemonSet", "status.conditions", "type"),
        ("batch", "Job", "spec.template.spec.initContainers", "name"),
        ("apps", "StatefulSet", "spec.volumeClaimTemplates.metadata.finalizers", ""),
        ("admissionregistration.k8s.io", "MutatingWebhookConfiguration", "webhooks", "name"),
        ("admissionregistration.k8s.io", "MutatingWebhookConfiguration", "webhooks.matchConditions", "name"),
        ("admissionregistration.k8s.io", "ValidatingWebhookConfiguration", "webhooks.matchConditions", "name"),
        ("admissionregistration.k8s.io", "ValidatingWebhookConfiguration", "webhooks.rules", None),
        ("apiextensions.k8s.io", "CustomResourceDefinition", "status.conditions", None),
        ("autoscaling", "HorizontalPodAutoscaler", "status.conditions", "type"),
        ("policy", "PodDisruptionBudget", "status.conditions", "type"),
        ("storage.k8s.io", "CSINode", "spec.drivers", "name"),
        ("storage.k8s.io", "CSINode", "spec.drivers.topologyKeys", None),
        ("batch", "CronJob", "spec.jobTemplate.spec.template.spec.containers", "name"),
    ],
)
def test_built_in_list_has_the_merge_key_of_the_api(group: str, kind: str, path: str, merge_key: str | None) -> None:
    schema = schema_of(group, kind)
    for name in path.split("."):
        schema = schema.child(name)
    assert schema.merge_key == merge_key


def test_match_conditions_of_a_webhook_are_merged_by_name() -> None:
    def configuration(*conditions: dict[str, Any]) -> dict[str, Any]:
        return {"webhooks": [{"name": "w.example.com", "matchConditions": list(conditions)}]}

    patched = apply(
        configuration({"name": "a", "expression": "true"}, {"name": "b", "expression": "true"}),
        configuration({"name": "b", "expression": "false"}),
        schema=schema_of("admissionregistration.k8s.io", "ValidatingWebhookConfiguration"),
    )
    assert patched == configuration({"name": "a", "expression": "true"}, {"name": "b", "expression": "false"})


def test_drivers_of_a_csi_node_are_merged_by_name() -> None:
    one, two = {"name": "one.example.com", "nodeID": "1"}, {"name": "two.example.com", "nodeID": "2"}
    schema = schema_of("storage.k8s.io", "CSINode")
    patched = apply({"spec": {"drivers": [one]}}, {"spec": {"drivers": [two]}}, schema=schema)
    assert patched == {"spec": {"drivers": [two, one]}}
    removal = {"spec": {"drivers": [{"$patch": "delete", "name": "one.example.com"}]}}
    assert apply(patched, removal, schema=schema) == {"spec": {"drivers": [two]}}


def test_the_selector_of_a_disruption_budget_is_replaced_and_that_of_a_deployment_is_merged() -> None:
    old, new = {"matchLabels": {"app": "a"}}, {"matchLabels": {"tier": "b"}}
    both = {"matchLabels": {"app": "a", "tier": "b"}}
    for group, kind, expected in (("policy", "PodDisruptionBudget", new), ("apps", "Deployment", both)):
        patched = apply({"spec": {"selector": old}}, {"spec": {"selector": new}}, schema=schema_of(group, kind))
        assert patched["spec"]["selector"] == expected, kind


@pytest.mark.parametrize(
    ("group", "kind", "path"),
    [
        ("", "Pod", "spec.volumes"),
        ("", "Pod", "spec.resourceClaims"),
        ("", "Pod", "status.resourceClaimStatuses"),
        ("apps", "Deployment", "spec.strategy"),
    ],
)
def test_members_that_exclude_one_another_are_listed_by_a_patch(group: str, kind: str, path: str) -> None:
    schema = schema_of(group, kind)
    for name in path.split("."):
        schema = schema.child(name)
    assert "retainKeys" in schema.openapi["x-kubernetes-patch-strategy"]
