"""What new objects are given that say nothing themselves."""

from __future__ import annotations

from typing import Any

import pytest
from tests.apiserver.builtins.test_kinds import (
    CONTAINER,
    change_problems,
    created,
    defaulted,
    kind_of,
    new,
    template,
    workload,
)

from holdfast.apiserver.builtins import CONVERSIONS
from holdfast.apiserver.builtins.pods.defaults import pull_policy, qos_class
from holdfast.apiserver.resources import Object
from holdfast.meta.objects import GVK


def at(value: Any, *path: str | int) -> Any:
    for part in path:
        value = value[part]
    return value


def pod(**spec: Any) -> Object:
    return new("Pod", spec={"containers": [CONTAINER], **spec})


def container(**fields: Any) -> Object:
    found: Object = pod(containers=[{**CONTAINER, **fields}])["spec"]["containers"][0]
    return found


def test_a_bare_pod_is_given_what_a_cluster_gives() -> None:
    made = new("Pod", spec={"containers": [{"name": "main", "image": "busybox"}]})
    troubles = [
        {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}
        for key in ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
    ]
    assert made["spec"] == {
        "containers": [
            {
                "name": "main",
                "image": "busybox",
                "resources": {},
                "terminationMessagePath": "/dev/termination-log",
                "terminationMessagePolicy": "File",
                "imagePullPolicy": "Always",
            }
        ],
        "restartPolicy": "Always",
        "terminationGracePeriodSeconds": 30,
        "dnsPolicy": "ClusterFirst",
        "serviceAccountName": "default",
        "serviceAccount": "default",
        "securityContext": {},
        "schedulerName": "default-scheduler",
        "tolerations": troubles,
        "priority": 0,
        "enableServiceLinks": True,
        "preemptionPolicy": "PreemptLowerPriority",
    }
    assert made["status"] == {"phase": "Pending", "qosClass": "BestEffort"}


@pytest.mark.parametrize(
    ("image", "policy"),
    [
        ("nginx", "Always"),
        ("nginx:latest", "Always"),
        ("nginx:1.2", "IfNotPresent"),
        ("registry:5000/nginx", "Always"),
        ("registry:5000/nginx:1", "IfNotPresent"),
        ("nginx@sha256:00", "IfNotPresent"),
        ("nginx:latest@sha256:00", "Always"),
        ("nginx:1@sha256:00", "IfNotPresent"),
        ("", "IfNotPresent"),
    ],
)
def test_images_whose_tag_moves_are_pulled_again(image: str, policy: str) -> None:
    assert pull_policy(image) == policy


@pytest.mark.parametrize(
    ("given", "path", "value"),
    [
        ({"ports": [{"containerPort": 80}]}, ("ports", 0, "protocol"), "TCP"),
        ({"livenessProbe": {"exec": {"command": ["x"]}}}, ("livenessProbe", "periodSeconds"), 10),
        ({"livenessProbe": {"exec": {"command": ["x"]}}}, ("livenessProbe", "failureThreshold"), 3),
        ({"livenessProbe": {"exec": {"command": ["x"]}}}, ("livenessProbe", "timeoutSeconds"), 1),
        ({"livenessProbe": {"periodSeconds": 0, "grpc": {"port": 1}}}, ("livenessProbe", "periodSeconds"), 10),
        ({"livenessProbe": {"grpc": {"port": 1}}}, ("livenessProbe", "grpc", "service"), ""),
        (
            {"livenessProbe": {"httpGet": {"port": 1}}},
            ("livenessProbe", "httpGet"),
            {"port": 1, "path": "/", "scheme": "HTTP"},
        ),
        (
            {"env": [{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "x"}}}]},
            ("env", 0, "valueFrom", "fieldRef", "apiVersion"),
            "v1",
        ),
        (
            {"env": [{"name": "A", "valueFrom": {"resourceFieldRef": {"resource": "x"}}}]},
            ("env", 0, "valueFrom", "resourceFieldRef", "divisor"),
            "0",
        ),
        ({"resources": {"limits": {"cpu": 1}}}, ("resources",), {"limits": {"cpu": "1"}, "requests": {"cpu": "1"}}),
        (
            {"resources": {"limits": {"cpu": 1, "memory": "1Gi"}, "requests": {"cpu": "0.5"}}},
            ("resources", "requests"),
            {"cpu": "500m", "memory": "1Gi"},
        ),
    ],
)
def test_containers_are_completed(given: Object, path: tuple[str | int, ...], value: Any) -> None:
    assert at(container(**given), *path) == value


@pytest.mark.parametrize(
    ("volume", "whole"),
    [
        ({}, {"emptyDir": {}}),
        ({"configMap": {"name": "c"}}, {"configMap": {"name": "c", "defaultMode": 420}}),
        ({"secret": {"secretName": "c", "defaultMode": 0}}, {"secret": {"secretName": "c", "defaultMode": 0}}),
        ({"projected": {"sources": []}}, {"projected": {"defaultMode": 420}}),
        ({"hostPath": {"path": "/x"}}, {"hostPath": {"path": "/x", "type": ""}}),
        (
            {"projected": {"sources": [{"serviceAccountToken": {"path": "t"}}]}},
            {
                "projected": {
                    "sources": [{"serviceAccountToken": {"path": "t", "expirationSeconds": 3600}}],
                    "defaultMode": 420,
                }
            },
        ),
        ({"image": {"reference": "x:1"}}, {"image": {"reference": "x:1", "pullPolicy": "IfNotPresent"}}),
    ],
)
def test_volumes_are_completed(volume: Object, whole: Object) -> None:
    assert pod(volumes=[{"name": "v", **volume}])["spec"]["volumes"] == [{"name": "v", **whole}]


def test_ports_of_pods_on_the_host_network_are_the_hosts_own() -> None:
    with_ports = {**CONTAINER, "ports": [{"containerPort": 80}]}
    made = pod(hostNetwork=True, containers=[with_ports])
    assert made["spec"]["containers"][0]["ports"][0]["hostPort"] == 80
    inside = new("Deployment", spec=workload(template=template(hostNetwork=True, containers=[with_ports])))
    assert "hostPort" not in inside["spec"]["template"]["spec"]["containers"][0]["ports"][0]


def test_templates_get_less_than_pods() -> None:
    inside = new("Deployment", spec=workload())["spec"]["template"]["spec"]
    assert inside["restartPolicy"] == "Always"
    assert not {"enableServiceLinks", "serviceAccountName", "tolerations", "priority"} & inside.keys()


def test_either_name_of_the_account_means_both() -> None:
    assert pod(serviceAccount="robot")["spec"]["serviceAccountName"] == "robot"
    assert pod(serviceAccountName="robot")["spec"]["serviceAccount"] == "robot"


def test_tolerations_that_were_given_are_kept() -> None:
    bears_all = [{"operator": "Exists"}]
    assert pod(tolerations=bears_all)["spec"]["tolerations"] == bears_all


@pytest.mark.parametrize(
    ("resources", "name"),
    [
        ([{}], "BestEffort"),
        ([{"limits": {"nvidia.com/gpu": "1"}, "requests": {"nvidia.com/gpu": "1"}}], "BestEffort"),
        ([{"requests": {"cpu": "1"}}], "Burstable"),
        ([{"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "1000m", "memory": "1024Mi"}}], "Guaranteed"),
        ([{"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "1", "memory": "1Gi"}}, {}], "Burstable"),
        ([{"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "1", "memory": "1Mi"}}], "Burstable"),
    ],
)
def test_the_class_of_service_follows_from_the_resources(resources: list[Object], name: str) -> None:
    assert qos_class({"containers": [{"resources": each} for each in resources]}) == name


@pytest.mark.parametrize(
    ("kind", "spec", "path", "value"),
    [
        (
            "Deployment",
            {},
            ("spec", "strategy"),
            {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "25%", "maxUnavailable": "25%"}},
        ),
        ("Deployment", {"strategy": {"type": "Recreate"}}, ("spec", "strategy"), {"type": "Recreate"}),
        (
            "Deployment",
            {"strategy": {"rollingUpdate": {"maxSurge": 0}}},
            ("spec", "strategy", "rollingUpdate"),
            {"maxSurge": 0, "maxUnavailable": "25%"},
        ),
        ("Deployment", {"replicas": 0}, ("spec", "replicas"), 0),
        ("Deployment", {}, ("status",), {}),
        ("ReplicaSet", {}, ("status",), {"replicas": 0}),
        ("StatefulSet", {}, ("status",), {"replicas": 0, "availableReplicas": 0}),
        ("StatefulSet", {}, ("spec", "updateStrategy"), {"type": "RollingUpdate", "rollingUpdate": {"partition": 0}}),
        ("StatefulSet", {"updateStrategy": {"type": "OnDelete"}}, ("spec", "updateStrategy"), {"type": "OnDelete"}),
        (
            "StatefulSet",
            {},
            ("spec", "persistentVolumeClaimRetentionPolicy"),
            {"whenDeleted": "Retain", "whenScaled": "Retain"},
        ),
        (
            "StatefulSet",
            {"volumeClaimTemplates": [{"metadata": {"name": "v"}, "spec": {"accessModes": ["ReadWriteOnce"]}}]},
            ("spec", "volumeClaimTemplates", 0),
            {
                "apiVersion": "v1",
                "kind": "PersistentVolumeClaim",
                "metadata": {"name": "v"},
                "spec": {"accessModes": ["ReadWriteOnce"], "resources": {}, "volumeMode": "Filesystem"},
                "status": {"phase": "Pending"},
            },
        ),
        (
            "DaemonSet",
            {},
            ("spec", "updateStrategy"),
            {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}},
        ),
    ],
)
def test_workloads_are_completed(kind: str, spec: Object, path: tuple[str | int, ...], value: Any) -> None:
    assert at(new(kind, spec=workload(**spec)), *path) == value


def test_a_job_selects_its_own_pods_by_its_uid() -> None:
    made = new("Job", spec={"template": template(restartPolicy="Never")})
    spec = made["spec"]
    assert spec["selector"] == {"matchLabels": {"batch.kubernetes.io/controller-uid": "uid-1"}}
    assert spec["template"]["metadata"]["labels"] == {
        "app": "x",
        "batch.kubernetes.io/controller-uid": "uid-1",
        "batch.kubernetes.io/job-name": "x",
        "controller-uid": "uid-1",
        "job-name": "x",
    }
    assert {name: spec[name] for name in ("parallelism", "completions", "backoffLimit", "suspend")} == {
        "parallelism": 1,
        "completions": 1,
        "backoffLimit": 6,
        "suspend": False,
    }
    assert (spec["completionMode"], spec["podReplacementPolicy"]) == ("NonIndexed", "TerminatingOrFailed")


def test_a_job_with_a_selector_of_its_own_keeps_it() -> None:
    chosen = {"manualSelector": True, "selector": {"matchLabels": {"app": "x"}}}
    made = new("Job", spec={"template": template(restartPolicy="Never"), "parallelism": 2, **chosen})
    assert made["spec"]["selector"] == {"matchLabels": {"app": "x"}}
    assert "completions" not in made["spec"]


@pytest.mark.parametrize(
    ("kind", "fields", "path", "value"),
    [
        ("Namespace", {}, ("spec", "finalizers"), ["kubernetes"]),
        ("Namespace", {}, ("status",), {"phase": "Active"}),
        ("Namespace", {}, ("metadata", "labels"), {"kubernetes.io/metadata.name": "x"}),
        (
            "Secret",
            {"stringData": {"k": "v"}, "data": {"k": "AA==", "l": "AA=="}},
            ("data",),
            {"k": "dg==", "l": "AA=="},
        ),
        ("Secret", {}, ("type",), "Opaque"),
        ("PersistentVolumeClaim", {}, ("spec", "volumeMode"), "Filesystem"),
        ("PersistentVolumeClaim", {"spec": {"storageClassName": ""}}, ("spec", "storageClassName"), ""),
        ("PersistentVolumeClaim", {}, ("status", "phase"), "Pending"),
        ("PersistentVolume", {}, ("spec", "persistentVolumeReclaimPolicy"), "Retain"),
        ("StorageClass", {}, ("reclaimPolicy",), "Delete"),
        ("StorageClass", {}, ("volumeBindingMode",), "Immediate"),
        ("CronJob", {}, ("spec", "concurrencyPolicy"), "Allow"),
        ("CronJob", {}, ("spec", "successfulJobsHistoryLimit"), 3),
        ("CronJob", {}, ("spec", "jobTemplate", "spec", "backoffLimit"), 6),
        (
            "PodDisruptionBudget",
            {},
            ("status",),
            {"currentHealthy": 0, "desiredHealthy": 0, "disruptionsAllowed": 0, "expectedPods": 0},
        ),
        ("PriorityClass", {}, ("preemptionPolicy",), "PreemptLowerPriority"),
        (
            "RoleBinding",
            {"roleRef": {"kind": "Role", "name": "r"}},
            ("roleRef", "apiGroup"),
            "rbac.authorization.k8s.io",
        ),
        (
            "RoleBinding",
            {"subjects": [{"kind": "User", "name": "u"}]},
            ("subjects", 0, "apiGroup"),
            "rbac.authorization.k8s.io",
        ),
        ("NetworkPolicy", {"spec": {"podSelector": {}}}, ("spec", "policyTypes"), ["Ingress"]),
        ("NetworkPolicy", {"spec": {"egress": [{}]}}, ("spec", "policyTypes"), ["Ingress", "Egress"]),
        ("HorizontalPodAutoscaler", {}, ("spec", "minReplicas"), 1),
        (
            "HorizontalPodAutoscaler",
            {},
            ("spec", "metrics", 0),
            {
                "type": "Resource",
                "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80}},
            },
        ),
        (
            "HorizontalPodAutoscaler",
            {"spec": {"behavior": {}}},
            ("spec", "behavior", "scaleUp", "stabilizationWindowSeconds"),
            0,
        ),
        ("ValidatingWebhookConfiguration", {"webhooks": [{}]}, ("webhooks", 0, "timeoutSeconds"), 10),
        ("ValidatingWebhookConfiguration", {"webhooks": [{}]}, ("webhooks", 0, "namespaceSelector"), {}),
        ("MutatingWebhookConfiguration", {"webhooks": [{}]}, ("webhooks", 0, "reinvocationPolicy"), "Never"),
        ("CustomResourceDefinition", {"spec": {"names": {"kind": "Foo"}}}, ("spec", "names", "listKind"), "FooList"),
        ("CustomResourceDefinition", {}, ("spec", "conversion"), {"strategy": "None"}),
        ("Node", {"status": {"capacity": {"cpu": 4}}}, ("status", "allocatable"), {"cpu": "4"}),
        ("Event", {}, ("reportingComponent",), ""),
        ("Event", {}, ("eventTime",), None),
        ("Lease", {"spec": {"leaseTransitions": 0}}, ("spec", "leaseTransitions"), 0),
    ],
)
def test_other_kinds_are_completed(kind: str, fields: Object, path: tuple[str | int, ...], value: Any) -> None:
    assert at(new(kind, **fields), *path) == value


@pytest.mark.parametrize(
    ("spec", "whole"),
    [
        (
            {"ports": [{"port": 80}]},
            {
                "ports": [{"port": 80, "protocol": "TCP", "targetPort": 80}],
                "type": "ClusterIP",
                "sessionAffinity": "None",
                "internalTrafficPolicy": "Cluster",
                "ipFamilies": ["IPv4"],
                "ipFamilyPolicy": "SingleStack",
            },
        ),
        (
            {"type": "ExternalName", "externalName": "a.b"},
            {"type": "ExternalName", "externalName": "a.b", "sessionAffinity": "None"},
        ),
    ],
)
def test_services_are_completed(spec: Object, whole: Object) -> None:
    assert new("Service", spec=spec)["spec"] == whole


@pytest.mark.parametrize(
    ("spec", "name", "value"),
    [
        ({"type": "NodePort"}, "externalTrafficPolicy", "Cluster"),
        ({"type": "LoadBalancer"}, "allocateLoadBalancerNodePorts", True),
        ({"sessionAffinity": "ClientIP"}, "sessionAffinityConfig", {"clientIP": {"timeoutSeconds": 10800}}),
        ({"clusterIP": "10.0.0.1"}, "clusterIPs", ["10.0.0.1"]),
        ({"clusterIP": "fd00::1"}, "ipFamilies", ["IPv6"]),
        ({"clusterIP": "None"}, "clusterIPs", ["None"]),
    ],
)
def test_what_a_service_is_given_follows_from_its_type(spec: Object, name: str, value: Any) -> None:
    assert new("Service", spec=spec)["spec"][name] == value


def test_an_update_of_a_service_keeps_the_address_it_does_not_name() -> None:
    stored = new(
        "Service", spec={"ports": [{"port": 80, "nodePort": 30080}], "type": "NodePort", "clusterIP": "10.0.0.1"}
    )
    assert change_problems("Service", stored, spec={"ports": [{"port": 80}], "type": "NodePort"}) == []
    changed = defaulted(kind_of("Service"), {**stored, "spec": {"ports": [{"port": 80}], "type": "NodePort"}})
    kind_of("Service").on_update(changed, stored)
    assert changed["spec"]["clusterIP"] == "10.0.0.1"
    assert changed["spec"]["ports"][0]["nodePort"] == 30080


def test_the_old_autoscaler_becomes_a_new_one() -> None:
    asked = GVK("autoscaling", "v1", "HorizontalPodAutoscaler")
    old = {"metadata": {"name": "x"}, "spec": {"maxReplicas": 3, "targetCPUUtilizationPercentage": 50}}
    stored = created(kind_of("HorizontalPodAutoscaler"), CONVERSIONS[asked].to_stored(old))
    assert stored["spec"]["metrics"][0]["resource"]["target"]["averageUtilization"] == 50
