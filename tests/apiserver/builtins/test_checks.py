"""What is refused, where, and in which words."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from tests.apiserver.builtins.test_kinds import CONTAINER, change_problems, new, problems, template, workload

from holdfast.apiserver.builtins.common import schedules
from holdfast.apiserver.resources import Object


def pod_problems(**spec: Any) -> list[str]:
    return problems("Pod", spec={"containers": [CONTAINER], **spec})


def container_problems(**fields: Any) -> list[str]:
    volumes = [{"name": "v", "emptyDir": {}}]
    return pod_problems(containers=[{**CONTAINER, **fields}], volumes=volumes)


@pytest.mark.parametrize(
    ("spec", "problem"),
    [
        ({"containers": []}, "spec.containers: Required value"),
        ({"containers": [{"image": "x"}]}, "spec.containers[0].name: Required value"),
        ({"containers": [{"name": "a"}]}, "spec.containers[0].image: Required value"),
        (
            {"containers": [{"name": "A_", "image": "x"}]},
            'spec.containers[0].name: Invalid value: "A_": a lowercase RFC 1123',
        ),
        ({"containers": [CONTAINER, CONTAINER]}, 'spec.containers[1].name: Duplicate value: "main"'),
        ({"initContainers": [CONTAINER]}, 'spec.initContainers[0].name: Duplicate value: "main"'),
        (
            {"restartPolicy": "Perhaps"},
            'spec.restartPolicy: Unsupported value: "Perhaps": supported values: "Always", "OnFailure", "Never"',
        ),
        ({"dnsPolicy": "X"}, 'spec.dnsPolicy: Unsupported value: "X"'),
        ({"dnsPolicy": "None"}, "spec.dnsConfig.nameservers: Required value: must provide at least one DNS nameserver"),
        (
            {"activeDeadlineSeconds": 0},
            "spec.activeDeadlineSeconds: Invalid value: 0: must be between 1 and 2147483647, inclusive",
        ),
        (
            {"terminationGracePeriodSeconds": -1},
            "spec.terminationGracePeriodSeconds: Invalid value: -1: must be greater than or equal to 0",
        ),
        ({"hostname": "A"}, 'spec.hostname: Invalid value: "A": a lowercase RFC 1123 label'),
        ({"volumes": [{"name": "v"}, {"name": "v"}]}, 'spec.volumes[1].name: Duplicate value: "v"'),
        ({"volumes": [{"name": "v", "configMap": {}}]}, "spec.volumes[0].configMap.name: Required value"),
        (
            {"volumes": [{"name": "v", "emptyDir": {}, "secret": {"secretName": "s"}}]},
            "spec.volumes[0].secret: Forbidden: may not specify more than 1 volume type",
        ),
        (
            {"volumes": [{"name": "v", "secret": {"secretName": "s", "defaultMode": 512}}]},
            "spec.volumes[0].secret.defaultMode: Invalid value: 512: must be a number between 0 and 0777",
        ),
        (
            {"tolerations": [{"operator": "Equal", "key": "k", "tolerationSeconds": 5}]},
            "spec.tolerations[0].effect: Invalid value: \"\": effect must be 'NoExecute'",
        ),
        ({"tolerations": [{"key": "k", "operator": "X"}]}, 'spec.tolerations[0].operator: Unsupported value: "X"'),
        (
            {"topologySpreadConstraints": [{"maxSkew": 0, "topologyKey": "k", "whenUnsatisfiable": "DoNotSchedule"}]},
            "spec.topologySpreadConstraints[0].maxSkew: Invalid value: 0: must be greater than 0",
        ),
        (
            {"affinity": {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{}]}}},
            "spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution[0].topologyKey: Required",
        ),
        (
            {"nodeSelector": {"bad key!": "x"}},
            'spec.nodeSelector: Invalid value: "bad key!": name part must consist of',
        ),
    ],
)
def test_pods_that_cannot_run_are_refused(spec: Object, problem: str) -> None:
    found = pod_problems(**spec)
    assert len(found) == 1, found
    assert found[0].startswith(problem)


@pytest.mark.parametrize(
    ("term", "problem"),
    [
        ({"matchExpressions": [{"key": "a", "operator": "In", "values": ["b"]}]}, None),
        ({"matchExpressions": [{"key": "a", "operator": "Gt", "values": ["1"]}]}, None),
        ({"matchExpressions": [{"key": "a", "operator": "DoesNotExist"}]}, None),
        ({"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n"]}]}, None),
        ({"matchExpressions": [{"key": "a", "operator": "In"}]}, "matchExpressions[0].values: Required value"),
        (
            {"matchExpressions": [{"key": "a", "operator": "Exists", "values": ["b"]}]},
            "matchExpressions[0].values: Forbidden: may not be specified",
        ),
        (
            {"matchExpressions": [{"key": "a", "operator": "Lt", "values": []}]},
            "matchExpressions[0].values: Required value: must be specified single value",
        ),
        (
            {"matchExpressions": [{"key": "a", "operator": "Never"}]},
            'matchExpressions[0].operator: Invalid value: "Never": not a valid selector operator',
        ),
        (
            {"matchExpressions": [{"key": "bad key!", "operator": "Exists"}]},
            'matchExpressions[0].key: Invalid value: "bad key!": name part must consist of',
        ),
        (
            {"matchFields": [{"key": "metadata.name", "operator": "Exists"}]},
            'matchFields[0].operator: Invalid value: "Exists": not a valid selector operator',
        ),
        (
            {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["a", "b"]}]},
            "matchFields[0].values: Required value: must be only one value",
        ),
        (
            {"matchFields": [{"key": "metadata.uid", "operator": "In", "values": ["a"]}]},
            'matchFields[0].key: Invalid value: "metadata.uid": not a valid field selector key',
        ),
    ],
)
def test_what_nodes_cannot_be_chosen_by_is_refused(term: Object, problem: str | None) -> None:
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
    preferred = {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "preference": term}]}
    for rules, place in (
        (required, "requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0]"),
        (preferred, "preferredDuringSchedulingIgnoredDuringExecution[0].preference"),
    ):
        found = pod_problems(affinity={"nodeAffinity": rules})
        assert len(found) == (problem is not None), found
        assert all(each.startswith(f"spec.affinity.nodeAffinity.{place}.{problem}") for each in found)


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        (
            {"ports": [{"containerPort": 70000}]},
            "ports[0].containerPort: Invalid value: 70000: must be between 1 and 65535, inclusive",
        ),
        ({"ports": [{}]}, "ports[0].containerPort: Required value"),
        (
            {"ports": [{"containerPort": 1, "protocol": "X"}]},
            'ports[0].protocol: Unsupported value: "X": supported values: "SCTP", "TCP", "UDP"',
        ),
        (
            {"ports": [{"containerPort": 1, "name": "UPPER"}]},
            'ports[0].name: Invalid value: "UPPER": must contain only alpha-numeric',
        ),
        ({"env": [{"name": ""}]}, "env[0].name: Required value"),
        ({"env": [{"name": "a=b"}]}, 'env[0].name: Invalid value: "a=b": a valid environment variable name'),
        (
            {"env": [{"name": "A", "valueFrom": {}}]},
            'env[0].valueFrom: Invalid value: "": must specify one of: `fieldRef`',
        ),
        (
            {"env": [{"name": "A", "value": "x", "valueFrom": {"fieldRef": {"fieldPath": "x"}}}]},
            'env[0].valueFrom: Invalid value: "": may not be specified when `value` is not empty',
        ),
        ({"volumeMounts": [{"name": "w", "mountPath": "/w"}]}, 'volumeMounts[0].name: Not found: "w"'),
        ({"volumeMounts": [{"name": "v"}]}, "volumeMounts[0].mountPath: Required value"),
        (
            {"volumeMounts": [{"name": "v", "mountPath": "/a"}, {"name": "v", "mountPath": "/a"}]},
            'volumeMounts[1].mountPath: Invalid value: "/a": must be unique',
        ),
        (
            {"volumeMounts": [{"name": "v", "mountPath": "/a", "subPath": "../x"}]},
            "volumeMounts[0].subPath: Invalid value: \"../x\": must not contain '..'",
        ),
        (
            {"resources": {"limits": {"cpu": 1}, "requests": {"cpu": 2}}},
            'resources.requests: Invalid value: "2": must be less than or equal to cpu limit of 1',
        ),
        (
            {"resources": {"limits": {"cpu": "-1"}, "requests": {"cpu": 0}}},
            'resources.limits[cpu]: Invalid value: "-1": must be greater than or equal to 0',
        ),
        (
            {"resources": {"requests": {"nvidia.com/gpu": 1}}},
            "resources.limits: Required value: Limit must be set for non overcommitable resources",
        ),
        (
            {"resources": {"limits": {"gpus": 1}}},
            'resources.limits: Invalid value: "gpus": must be a standard resource type or fully qualified',
        ),
        ({"livenessProbe": {}}, "livenessProbe: Required value: must specify a handler type"),
        (
            {"livenessProbe": {"exec": {"command": ["x"]}, "tcpSocket": {"port": 1}}},
            "livenessProbe.tcpSocket: Forbidden: may not specify more than 1 handler type",
        ),
        (
            {"livenessProbe": {"tcpSocket": {"port": 0}}},
            "livenessProbe.tcpSocket.port: Invalid value: 0: must be between 1 and 65535",
        ),
        (
            {"livenessProbe": {"exec": {"command": ["x"]}, "successThreshold": 2}},
            "livenessProbe.successThreshold: Invalid value: 2: must be 1",
        ),
        (
            {"livenessProbe": {"exec": {"command": ["x"]}, "periodSeconds": -1}},
            "livenessProbe.periodSeconds: Invalid value: -1: must be greater than or equal to 0",
        ),
        (
            {"imagePullPolicy": "Sometimes"},
            'imagePullPolicy: Unsupported value: "Sometimes": supported values: "Always", "IfNotPresent", "Never"',
        ),
        ({"image": " x"}, 'image: Invalid value: " x": must not have leading or trailing whitespace'),
    ],
)
def test_containers_that_cannot_run_are_refused(fields: Object, problem: str) -> None:
    found = container_problems(**fields)
    assert found
    assert found[0].startswith(f"spec.containers[0].{problem}")


@pytest.mark.parametrize(
    "fields",
    [
        {"ports": [{"containerPort": 80, "name": "http"}], "livenessProbe": {"httpGet": {"port": "http"}}},
        {"env": [{"name": "my.env-name", "value": ""}], "envFrom": [{"prefix": "A", "secretRef": {"name": "s"}}]},
        {"resources": {"limits": {"nvidia.com/gpu": 1, "hugepages-2Mi": "4Mi"}, "requests": {"cpu": "100m"}}},
        {"readinessProbe": {"grpc": {"port": 5}, "successThreshold": 2}},
        {"volumeMounts": [{"name": "v", "mountPath": "/v", "subPath": "a/b"}]},
        {"lifecycle": {"preStop": {"sleep": {"seconds": 5}}}},
    ],
)
def test_containers_that_can_run_are_accepted(fields: Object) -> None:
    assert container_problems(**fields) == []


POD = new("Pod", spec={"containers": [CONTAINER], "activeDeadlineSeconds": 50})
FORBIDDEN = "spec: Forbidden: pod updates may not change fields other than `spec.containers[*].image`"


def changed_pod(**changes: Any) -> list[str]:
    return change_problems("Pod", POD, spec={**POD["spec"], **changes})


@pytest.mark.parametrize(
    "changes",
    [
        {"containers": [{**POD["spec"]["containers"][0], "image": "nginx:2"}]},
        {"activeDeadlineSeconds": 40},
        {"tolerations": [*POD["spec"]["tolerations"], {"key": "k", "operator": "Exists"}]},
    ],
)
def test_the_little_that_may_change_of_a_pod_may(changes: Object) -> None:
    assert changed_pod(**changes) == []


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"restartPolicy": "Never"}, FORBIDDEN),
        ({"nodeName": "n"}, FORBIDDEN),
        ({"ephemeralContainers": [{"name": "e", "image": "x"}]}, FORBIDDEN),
        ({"containers": [{**POD["spec"]["containers"][0], "command": ["x"]}]}, FORBIDDEN),
        (
            {"containers": [*POD["spec"]["containers"], {"name": "b", "image": "x"}]},
            "spec.containers: Forbidden: pod updates may not add",
        ),
        (
            {"activeDeadlineSeconds": 60},
            "spec.activeDeadlineSeconds: Invalid value: 60: must be less than or equal to previous value",
        ),
        (
            {"activeDeadlineSeconds": None},
            "spec.activeDeadlineSeconds: Invalid value: null: must not update from a positive integer",
        ),
        ({"tolerations": []}, "spec.tolerations: Forbidden: existing toleration can not be modified"),
        ({"schedulingGates": [{"name": "g"}]}, "spec.schedulingGates: Forbidden: only deletion is allowed"),
    ],
)
def test_the_rest_of_a_pod_stays(changes: Object, problem: str) -> None:
    found = changed_pod(**changes)
    assert len(found) == 1
    assert found[0].startswith(problem)


def test_a_forbidden_change_of_a_pod_is_named() -> None:
    (found,) = changed_pod(restartPolicy="Never", containers=[{**POD["spec"]["containers"][0], "tty": True}])
    assert found.endswith("changed: spec.containers[0].tty, spec.restartPolicy")


MISMATCH = 'spec.template.metadata.labels: Invalid value: {"app":"x"}: `selector` does not match template `labels`'


@pytest.mark.parametrize(
    ("kind", "spec", "problem"),
    [
        ("Deployment", {"selector": None}, "spec.selector: Required value"),
        ("Deployment", {"selector": {}}, "spec.selector: Invalid value: {}: empty selector is invalid for deployment"),
        ("Deployment", {"selector": {"matchLabels": {"app": "y"}}}, MISMATCH),
        ("StatefulSet", {"selector": {"matchLabels": {"app": "y"}}}, MISMATCH),
        ("ReplicaSet", {"selector": {"matchLabels": {"app": "y"}}}, MISMATCH),
        ("DaemonSet", {"selector": {"matchLabels": {"app": "y"}}}, MISMATCH),
        (
            "Deployment",
            {"selector": {"matchExpressions": [{"key": "app", "operator": "In"}]}},
            "spec.selector.matchExpressions[0].values: Required value: must be specified when `operator`",
        ),
        ("Deployment", {"replicas": -1}, "spec.replicas: Invalid value: -1: must be greater than or equal to 0"),
        (
            "Deployment",
            {"template": template(restartPolicy="Never")},
            'spec.template.spec.restartPolicy: Unsupported value: "Never": supported values: "Always"',
        ),
        (
            "Deployment",
            {"strategy": {"type": "Recreate", "rollingUpdate": {}}},
            "spec.strategy.rollingUpdate: Forbidden: may not be specified when strategy `type` is 'Recreate'",
        ),
        ("Deployment", {"strategy": {"type": "Odd"}}, 'spec.strategy.type: Unsupported value: "Odd"'),
        (
            "Deployment",
            {"strategy": {"rollingUpdate": {"maxSurge": 0, "maxUnavailable": 0}}},
            "spec.strategy.rollingUpdate.maxUnavailable: Invalid value: 0: may not be 0 when `maxSurge` is 0",
        ),
        (
            "Deployment",
            {"strategy": {"rollingUpdate": {"maxSurge": "x"}}},
            'spec.strategy.rollingUpdate.maxSurge: Invalid value: "x": a valid percent string',
        ),
        (
            "Deployment",
            {"strategy": {"rollingUpdate": {"maxUnavailable": "101%"}}},
            'spec.strategy.rollingUpdate.maxUnavailable: Invalid value: "101%": must not be greater than 100%',
        ),
        (
            "Deployment",
            {"progressDeadlineSeconds": 5, "minReadySeconds": 5},
            "spec.progressDeadlineSeconds: Invalid value: 5: must be greater than minReadySeconds",
        ),
        ("StatefulSet", {"podManagementPolicy": "X"}, 'spec.podManagementPolicy: Unsupported value: "X"'),
        (
            "StatefulSet",
            {"updateStrategy": {"rollingUpdate": {"partition": -1}}},
            "spec.updateStrategy.rollingUpdate.partition: Invalid value: -1",
        ),
        (
            "StatefulSet",
            {"volumeClaimTemplates": [{"spec": {"accessModes": ["ReadWriteOnce"]}}]},
            "spec.volumeClaimTemplates[0].spec.resources[storage]: Required value",
        ),
        ("DaemonSet", {"updateStrategy": {"type": "X"}}, 'spec.updateStrategy.type: Unsupported value: "X"'),
        (
            "Deployment",
            {"template": {"metadata": {"labels": {"app": "x"}}, "spec": {"containers": [{"name": "a"}]}}},
            "spec.template.spec.containers[0].image: Required value",
        ),
    ],
)
def test_workloads_that_cannot_work_are_refused(kind: str, spec: Object, problem: str) -> None:
    found = problems(kind, spec=workload(**spec))
    assert len(found) == 1, found
    assert found[0].startswith(problem)


def test_containers_of_a_stateful_set_mount_what_its_pods_claim() -> None:
    mount = {"name": "data", "mountPath": "/data"}
    pods = {"containers": [{"name": "a", "image": "a", "volumeMounts": [mount]}]}
    template = {"metadata": {"labels": {"app": "x"}}, "spec": pods}
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}

    def claiming(name: str) -> Object:
        return workload(template=template, volumeClaimTemplates=[{"metadata": {"name": name}, "spec": claim}])

    assert problems("StatefulSet", spec=claiming("data")) == []
    assert problems("StatefulSet", spec=claiming("other")) == [
        'spec.template.spec.containers[0].volumeMounts[0].name: Not found: "data"'
    ]


@pytest.mark.parametrize("kind", ["Deployment", "ReplicaSet", "DaemonSet"])
def test_selectors_are_for_ever(kind: str) -> None:
    stored = new(kind, spec=workload())
    labels = {"matchLabels": {"app": "z"}}
    found = change_problems(kind, stored, spec={**stored["spec"], "selector": labels})
    assert found[0] == MISMATCH
    assert found[1] == 'spec.selector: Invalid value: {"matchLabels":{"app":"z"}}: field is immutable'


@pytest.mark.parametrize(
    ("changes", "allowed"),
    [
        ({"replicas": 5}, True),
        ({"updateStrategy": {"type": "OnDelete"}}, True),
        ({"minReadySeconds": 5}, True),
        ({"revisionHistoryLimit": 5}, True),
        ({"serviceName": "other"}, False),
        ({"podManagementPolicy": "Parallel"}, False),
        (
            {
                "volumeClaimTemplates": [
                    {"spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": 1}}}}
                ]
            },
            False,
        ),
    ],
)
def test_of_a_stateful_set_a_few_fields_may_change(changes: Object, allowed: bool) -> None:
    stored = new("StatefulSet", spec=workload(serviceName="s"))
    found = change_problems("StatefulSet", stored, spec={**stored["spec"], **changes})
    (field,) = changes
    assert [(line.partition(":")[0], line.rpartition(": ")[2]) for line in found] == (
        [] if allowed else [(f"spec.{field}", "field is immutable")]
    )


JOB = new("Job", spec={"template": template(restartPolicy="Never")})


@pytest.mark.parametrize(
    ("changes", "paths"),
    [
        ({"parallelism": 5, "suspend": True, "activeDeadlineSeconds": 5, "backoffLimit": 1}, []),
        ({"completions": 5}, ["spec.completions"]),
        ({"completionMode": "Indexed"}, ["spec.completionMode"]),
    ],
)
def test_of_a_job_little_may_change(changes: Object, paths: list[str]) -> None:
    found = change_problems("Job", JOB, spec={**JOB["spec"], **changes})
    assert [line.partition(": ")[0] for line in found] == paths
    assert all(line.endswith("field is immutable") for line in found)


def test_the_template_of_a_job_is_fixed_unless_it_is_suspended_and_then_only_its_placement_is_not() -> None:
    def placed(job: Object, **spec: Any) -> list[str]:
        changed = copy.deepcopy(job["spec"])
        changed["template"]["spec"] |= spec
        return change_problems("Job", job, spec=changed)

    suspended = new("Job", spec={"suspend": True, "template": template(restartPolicy="Never")})
    assert placed(JOB, nodeSelector={"a": "b"})[0].startswith("spec.template: Invalid value")
    assert placed(suspended, nodeSelector={"a": "b"}) == []
    assert placed(suspended, hostNetwork=True)[0].startswith("spec.template: Invalid value")


@pytest.mark.parametrize(
    ("kind", "fields", "problem"),
    [
        (
            "Job",
            {"spec": {"template": template()}},
            'spec.template.spec.restartPolicy: Required value: valid values: "OnFailure", "Never"',
        ),
        (
            "Job",
            {"spec": {"template": template(restartPolicy="Never"), "backoffLimit": -1}},
            "spec.backoffLimit: Invalid value: -1",
        ),
        (
            "Job",
            {"spec": {"template": template(restartPolicy="Never"), "completionMode": "Indexed", "parallelism": 1}},
            "spec.completions: Required value: when completion mode is Indexed",
        ),
        ("Secret", {"data": {"a b": ""}}, 'data[a b]: Invalid value: "a b": a valid config key'),
        ("Secret", {"type": "kubernetes.io/tls", "data": {"tls.crt": ""}}, "data[tls.key]: Required value"),
        ("Secret", {"type": "kubernetes.io/dockerconfigjson"}, "data[.dockerconfigjson]: Required value"),
        (
            "Secret",
            {"type": "kubernetes.io/service-account-token"},
            "metadata.annotations[kubernetes.io/service-account.name]: Required value",
        ),
        ("ConfigMap", {"data": {"..": ""}}, "data[..]: Invalid value: \"..\": must not be '..'"),
        ("ConfigMap", {"data": {"k": "x" * (1024 * 1024 + 1)}}, ": Too long: may not be more than 1048576 bytes"),
        (
            "ConfigMap",
            {"data": {"k": ""}, "binaryData": {"k": ""}},
            'data[k]: Invalid value: "k": duplicate of key present in binaryData',
        ),
        ("Service", {"spec": {}}, "spec.ports: Required value"),
        (
            "Service",
            {"spec": {"ports": [{"port": 0, "targetPort": 80}]}},
            "spec.ports[0].port: Invalid value: 0: must be between 1 and 65535",
        ),
        ("Service", {"spec": {"ports": [{"port": 1}, {"port": 2, "name": "b"}]}}, "spec.ports[0].name: Required value"),
        (
            "Service",
            {"spec": {"ports": [{"port": 1}], "type": "Odd"}},
            'spec.type: Unsupported value: "Odd": supported values: "ClusterIP", "ExternalName"',
        ),
        ("Service", {"spec": {"type": "ExternalName"}}, "spec.externalName: Required value"),
        (
            "Service",
            {"spec": {"ports": [{"port": 1, "nodePort": 30000}]}},
            "spec.ports[0].nodePort: Forbidden: may not be used when `type` is 'ClusterIP'",
        ),
        (
            "Service",
            {"spec": {"ports": [{"port": 1}], "clusterIP": "x"}},
            'spec.clusterIPs[0]: Invalid value: "x": must be a valid IP address',
        ),
        (
            "PersistentVolumeClaim",
            {"spec": {"resources": {"requests": {"storage": "1Gi"}}}},
            "spec.accessModes: Required value: at least 1 access mode is required",
        ),
        (
            "PersistentVolumeClaim",
            {"spec": {"accessModes": ["ReadWriteOnce"]}},
            "spec.resources[storage]: Required value",
        ),
        (
            "PersistentVolumeClaim",
            {"spec": {"accessModes": ["X"], "resources": {"requests": {"storage": "1Gi"}}}},
            'spec.accessModes: Unsupported value: "X"',
        ),
        (
            "PersistentVolume",
            {"spec": {"accessModes": ["ReadWriteOnce"], "capacity": {"storage": 1}}},
            "spec: Required value: must specify a volume type",
        ),
        ("StorageClass", {}, "provisioner: Required value"),
        ("VolumeAttributesClass", {"parameters": {"a": "b"}}, "driverName: Required value"),
        (
            "VolumeAttributesClass",
            {"driverName": "d.example.com"},
            "parameters: Required value: must contain at least one key/value pair",
        ),
        (
            "CSIStorageCapacity",
            {"storageClassName": "fast", "capacity": "-1"},
            'capacity: Invalid value: "-1": must be greater than or equal to 0',
        ),
        ("ServiceCIDR", {"spec": {}}, "spec.cidrs: Required value: at least one CIDR required"),
        (
            "ServiceCIDR",
            {"spec": {"cidrs": ["10.97.0.1/24"]}},
            'spec.cidrs[0]: Invalid value: "10.97.0.1/24": must not have bits set beyond the prefix length',
        ),
        (
            "ServiceCIDR",
            {"spec": {"cidrs": ["x"]}},
            'spec.cidrs[0]: Invalid value: "x": must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)',
        ),
        (
            "ServiceCIDR",
            {"spec": {"cidrs": ["10.1.0.0/16", "10.2.0.0/16"]}},
            'spec.cidrs: Invalid value: ["10.1.0.0/16","10.2.0.0/16"]: may specify no more than one IP for each IP',
        ),
        (
            "IPAddress",
            {"metadata": {"name": "x"}, "spec": {"parentRef": {"resource": "services", "name": "s"}}},
            'metadata.name: Invalid value: "x": must be a valid IP address',
        ),
        ("IPAddress", {"metadata": {"name": "10.0.0.1"}, "spec": {}}, "spec.parentRef: Required value"),
        (
            "Lease",
            {"spec": {"leaseDurationSeconds": -1}},
            "spec.leaseDurationSeconds: Invalid value: -1: must be greater than 0",
        ),
        (
            "Lease",
            {"spec": {"leaseTransitions": -1}},
            "spec.leaseTransitions: Invalid value: -1: must be greater than or equal to 0",
        ),
        (
            "PodDisruptionBudget",
            {"spec": {"minAvailable": 1, "maxUnavailable": 1}},
            'spec: Invalid value: {"minAvailable":1,"maxUnavailable":1}: minAvailable and maxUnavailable',
        ),
        (
            "PodDisruptionBudget",
            {"spec": {"minAvailable": "101%"}},
            'spec.minAvailable: Invalid value: "101%": must not be greater than 100%',
        ),
        (
            "PodDisruptionBudget",
            {"spec": {"minAvailable": 2**40}},
            "spec.minAvailable: Invalid value: 1099511627776: must be no more than 2147483647",
        ),
        ("RoleBinding", {"roleRef": {"kind": "Role"}}, "roleRef.name: Required value"),
        (
            "ClusterRoleBinding",
            {"roleRef": {"kind": "Role", "name": "r"}},
            'roleRef.kind: Unsupported value: "Role": supported values: "ClusterRole"',
        ),
        (
            "ClusterRoleBinding",
            {"roleRef": {"kind": "ClusterRole", "name": "r"}, "subjects": [{"kind": "ServiceAccount", "name": "s"}]},
            "subjects[0].namespace: Required value",
        ),
        (
            "Role",
            {"rules": [{"verbs": ["get"], "apiGroups": [""]}]},
            "rules[0].resources: Required value: resource rules must supply at least one resource",
        ),
        (
            "Role",
            {"rules": [{"verbs": ["get"], "nonResourceURLs": ["/x"]}]},
            'rules[0].nonResourceURLs: Invalid value: ["/x"]: namespaced rules cannot apply',
        ),
        (
            "PriorityClass",
            {"value": 2_000_000_000},
            "value: Forbidden: maximum allowed value of a user defined priority is 1000000000",
        ),
        ("NetworkPolicy", {"spec": {"policyTypes": ["X"]}}, 'spec.policyTypes[0]: Unsupported value: "X"'),
        ("Ingress", {}, "spec: Invalid value: []: either `defaultBackend` or `rules` must be specified"),
        (
            "Ingress",
            {
                "spec": {
                    "rules": [
                        {
                            "http": {
                                "paths": [
                                    {
                                        "pathType": "Prefix",
                                        "path": "x",
                                        "backend": {"service": {"name": "s", "port": {"number": 1}}},
                                    }
                                ]
                            }
                        }
                    ]
                }
            },
            'spec.rules[0].http.paths[0].path: Invalid value: "x": must be an absolute path',
        ),
        ("Node", {"spec": {"taints": [{"key": "k", "effect": "X"}]}}, 'spec.taints[0].effect: Unsupported value: "X"'),
        ("EndpointSlice", {"addressType": "X"}, 'addressType: Unsupported value: "X"'),
        ("ControllerRevision", {}, "data: Required value: data is mandatory"),
        (
            "Event",
            {"metadata": {"namespace": "a"}, "involvedObject": {"namespace": "b"}},
            'involvedObject.namespace: Invalid value: "b": does not match event.namespace',
        ),
        (
            "HorizontalPodAutoscaler",
            {"spec": {"maxReplicas": 0, "scaleTargetRef": {"kind": "k", "name": "n"}}},
            "spec.maxReplicas: Invalid value: 0: must be greater than 0",
        ),
        (
            "HorizontalPodAutoscaler",
            {"spec": {"maxReplicas": 1, "minReplicas": 2, "scaleTargetRef": {"kind": "k", "name": "n"}}},
            "spec.maxReplicas: Invalid value: 1: must be greater than or equal to `minReplicas`",
        ),
        (
            "HorizontalPodAutoscaler",
            {"spec": {"maxReplicas": 1, "scaleTargetRef": {"name": "n"}}},
            "spec.scaleTargetRef.kind: Required value",
        ),
        (
            "HorizontalPodAutoscaler",
            {"spec": {"maxReplicas": 1, "scaleTargetRef": {"kind": "k", "name": "n"}, "metrics": [{"type": "Pods"}]}},
            "spec.metrics[0].pods: Required value: must populate information",
        ),
    ],
)
def test_objects_that_make_no_sense_are_refused(kind: str, fields: Object, problem: str) -> None:
    found = problems(kind, **fields)
    assert len(found) == 1, found
    assert found[0].startswith(problem)


CRON = {"schedule": "*/5 * * * *", "jobTemplate": {"spec": {"template": template(restartPolicy="Never")}}}


@pytest.mark.parametrize(
    ("spec", "problem"),
    [
        ({}, None),
        ({"timeZone": "Etc/UTC"}, None),
        ({"schedule": ""}, "spec.schedule: Required value"),
        (
            {"schedule": "* * * *"},
            'spec.schedule: Invalid value: "* * * *": expected exactly 5 fields, found 4: [* * * *]',
        ),
        ({"concurrencyPolicy": "X"}, 'spec.concurrencyPolicy: Unsupported value: "X"'),
        ({"timeZone": "Nowhere/At-All"}, 'spec.timeZone: Invalid value: "Nowhere/At-All": unknown time zone'),
        ({"timeZone": "Local"}, 'spec.timeZone: Invalid value: "Local"'),
    ],
)
def test_cron_jobs_are_checked(spec: Object, problem: str | None) -> None:
    found = problems("CronJob", spec={**CRON, **spec})
    assert len(found) == (problem is not None), found
    assert not found or found[0].startswith(str(problem))


def test_the_name_of_a_cron_job_leaves_room_for_its_jobs() -> None:
    (found,) = problems("CronJob", metadata={"name": "x" * 53}, spec=CRON)
    assert found.endswith("must be no more than 52 characters")


@pytest.mark.parametrize("schedule", ["0 0 1 jan *", "*/5 0-5,7 ? * MON-fri", "@daily", "@every 1h30m", "1 2 3 4 5"])
def test_schedules_that_fire(schedule: str) -> None:
    assert schedules.problem(schedule) == ""


@pytest.mark.parametrize(
    ("schedule", "problem"),
    [
        ("60 * * * *", "end of range (60) above maximum (59): 60"),
        ("* * 0 * *", "beginning of range (0) below minimum (1): 0"),
        ("5-1 * * * *", "beginning of range (5) beyond end of range (1): 5-1"),
        ("*/0 * * * *", "step of range should be a positive number: */0"),
        ("1-2-3 * * * *", "too many hyphens: 1-2-3"),
        ("1/2/3 * * * *", "too many slashes: 1/2/3"),
        ("x * * * *", "failed to parse int from x: write a whole number or a name such as 'mon' or 'jan'"),
        ("*/x * * * *", "failed to parse int from x: write a whole number"),
        ("@sometimes", "unrecognized descriptor: @sometimes"),
        ("@every now", "failed to parse duration @every now: write a duration such as '@every 1h30m'"),
        ("TZ=UTC * * * * *", "cannot use TZ or CRON_TZ in schedule, use timeZone field instead"),
    ],
)
def test_schedules_that_do_not(schedule: str, problem: str) -> None:
    assert schedules.problem(schedule) == problem


CLAIM_SPEC = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
BOUND: Object = new("PersistentVolumeClaim", spec={**CLAIM_SPEC, "volumeName": "v"}) | {"status": {"phase": "Bound"}}
WEBHOOK = {
    "name": "a.b.c",
    "sideEffects": "None",
    "admissionReviewVersions": ["v1"],
    "clientConfig": {"url": "https://localhost/x"},
}


@pytest.mark.parametrize(
    ("kind", "stored", "changes", "problem"),
    [
        (
            "ConfigMap",
            {"immutable": True, "data": {"a": "1"}},
            {"data": {"a": "2"}},
            "data: Forbidden: field is immutable when `immutable` is set",
        ),
        (
            "ConfigMap",
            {"immutable": True, "data": {"a": "1"}},
            {"immutable": False},
            "immutable: Forbidden: field is immutable when `immutable` is set",
        ),
        ("ConfigMap", {"data": {"a": "1"}}, {"data": {"a": "2"}, "immutable": True}, None),
        ("Secret", {}, {"type": "other"}, 'type: Invalid value: "other": field is immutable'),
        (
            "Secret",
            {"immutable": True},
            {"stringData": {"a": "2"}},
            "data: Forbidden: field is immutable when `immutable` is set",
        ),
        (
            "PersistentVolumeClaim",
            BOUND,
            {"spec": {**BOUND["spec"], "accessModes": ["ReadWriteMany"]}},
            "spec: Forbidden: spec is immutable after creation except resources.requests",
        ),
        (
            "PersistentVolumeClaim",
            BOUND,
            {"spec": {**BOUND["spec"], "resources": {"requests": {"storage": "2Gi"}}}},
            None,
        ),
        (
            "PersistentVolumeClaim",
            BOUND,
            {"spec": {**BOUND["spec"], "resources": {"requests": {"storage": "1Mi"}}}},
            "spec.resources.requests.storage: Forbidden: field can not be less than",
        ),
        ("PersistentVolumeClaim", {"spec": CLAIM_SPEC}, {"spec": {**CLAIM_SPEC, "volumeName": "v"}}, None),
        ("PersistentVolumeClaim", {"spec": CLAIM_SPEC}, {"spec": {**CLAIM_SPEC, "storageClassName": "fast"}}, None),
        (
            "PersistentVolumeClaim",
            {"spec": {**CLAIM_SPEC, "storageClassName": ""}},
            {"spec": {**CLAIM_SPEC, "storageClassName": "fast"}},
            "spec: Forbidden: spec is immutable after creation except resources.requests",
        ),
        (
            "Service",
            {"spec": {"ports": [{"port": 1}], "clusterIP": "10.0.0.1"}},
            {"spec": {"ports": [{"port": 1}], "clusterIP": "10.0.0.2"}},
            'spec.clusterIPs[0]: Invalid value: ["10.0.0.2"]: may not change once set',
        ),
        (
            "StorageClass",
            {"provisioner": "a"},
            {"provisioner": "b"},
            "provisioner: Forbidden: updates to provisioner are forbidden.",
        ),
        (
            "StorageClass",
            {"provisioner": "a"},
            {"volumeBindingMode": "WaitForFirstConsumer"},
            'volumeBindingMode: Invalid value: "WaitForFirstConsumer": field is immutable',
        ),
        (
            "VolumeAttributesClass",
            {"driverName": "d.example.com", "parameters": {"iops": "1"}},
            {"parameters": {"iops": "2"}},
            "parameters: Forbidden: updates to parameters are forbidden.",
        ),
        (
            "CSIStorageCapacity",
            {"storageClassName": "fast"},
            {"storageClassName": "slow"},
            'storageClassName: Invalid value: "slow": field is immutable',
        ),
        (
            "ServiceCIDR",
            {"spec": {"cidrs": ["10.97.0.0/24"]}},
            {"spec": {"cidrs": ["10.98.0.0/24"]}},
            'spec.cidrs[0]: Invalid value: "10.98.0.0/24": field is immutable',
        ),
        ("ServiceCIDR", {"spec": {"cidrs": ["10.1.0.0/16"]}}, {"spec": {"cidrs": ["10.1.0.0/16", "fd00::/64"]}}, None),
        (
            "RoleBinding",
            {"roleRef": {"kind": "Role", "name": "r"}},
            {"roleRef": {"kind": "Role", "name": "q"}},
            'roleRef: Invalid value: {"kind":"Role","name":"q","apiGroup":"rbac.authorization.k8s.io"}: cannot',
        ),
        ("PriorityClass", {"value": 1}, {"value": 2}, "value: Forbidden: may not be changed in an update."),
        ("RuntimeClass", {"handler": "a"}, {"handler": "b"}, 'handler: Invalid value: "b": field is immutable'),
        (
            "Node",
            {"spec": {"providerID": "a"}},
            {"spec": {"providerID": "b"}},
            "spec.providerID: Forbidden: node updates may not change providerID",
        ),
        (
            "ControllerRevision",
            {"data": {"a": 1}, "revision": 1},
            {"data": {"a": 2}},
            'data: Invalid value: {"a":2}: field is immutable',
        ),
        (
            "EndpointSlice",
            {"addressType": "IPv4"},
            {"addressType": "IPv6"},
            'addressType: Invalid value: "IPv6": field is immutable',
        ),
    ],
)
def test_what_may_not_change_does_not(kind: str, stored: Object, changes: Object, problem: str | None) -> None:
    old = stored if "kind" in stored else new(kind, **stored)
    found = change_problems(kind, old, **changes)
    assert len(found) == (problem is not None), found
    assert not found or found[0].startswith(str(problem))


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({}, None),
        (
            {"name": "short"},
            'webhooks[0].name: Invalid value: "short": should be a domain with at least three segments',
        ),
        (
            {"sideEffects": "Some"},
            'webhooks[0].sideEffects: Unsupported value: "Some": supported values: "None", "NoneOnDryRun"',
        ),
        ({"sideEffects": None}, "webhooks[0].sideEffects: Required value"),
        (
            {"admissionReviewVersions": ["v2"]},
            'webhooks[0].admissionReviewVersions: Invalid value: ["v2"]: must include at least one of v1, v1beta1',
        ),
        (
            {"timeoutSeconds": 31},
            "webhooks[0].timeoutSeconds: Invalid value: 31: the timeout value must be between 1 and 30 seconds",
        ),
        ({"clientConfig": {}}, "webhooks[0].clientConfig: Required value: exactly one of url or service is required"),
        (
            {"clientConfig": {"url": "http://x"}},
            'webhooks[0].clientConfig.url: Invalid value: "http://x": "https" is the only allowed URL scheme',
        ),
        ({"clientConfig": {"service": {"name": "s"}}}, "webhooks[0].clientConfig.service.namespace: Required value"),
        (
            {"rules": [{"operations": ["X"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"]}]},
            'webhooks[0].rules[0].operations[0]: Unsupported value: "X"',
        ),
    ],
)
@pytest.mark.parametrize("kind", ["ValidatingWebhookConfiguration", "MutatingWebhookConfiguration"])
def test_webhooks_are_checked(kind: str, changes: Object, problem: str | None) -> None:
    found = problems(kind, webhooks=[{**WEBHOOK, **changes}])
    assert len(found) == (problem is not None), found
    assert not found or found[0].startswith(str(problem))
