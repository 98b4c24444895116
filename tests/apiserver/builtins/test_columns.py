"""How objects are shown in one line."""

from __future__ import annotations

import contextlib
import copy
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.apiserver.builtins.test_decoding import RICH_POD
from tests.apiserver.builtins.test_kinds import CONTAINER, created, defaulted, kind_of, new, template, workload

from holdfast.apiserver.builtins import BUILTINS
from holdfast.apiserver.resources import Object, ResourceType
from holdfast.meta.ages import human_duration
from holdfast.meta.errors import BadRequest
from holdfast.meta.jsonpath import evaluate

NOW = 1_750_000_000.0
HOUR_AGO = "2025-06-15T14:06:40Z"


def cells(kind: ResourceType, obj: Object, *, wide: bool = False) -> dict[str, Any]:
    """The cells of an object's row by the names of their columns."""
    shown = {}
    for column in kind.columns:
        if wide or not column.priority:
            value = column.value
            shown[column.name] = (
                evaluate.compile(f"{{{value}}}").render(obj) if isinstance(value, str) else value(obj, NOW)
            )
    return shown


@pytest.mark.parametrize(
    ("elapsed", "text"),
    [
        (timedelta(seconds=-5), "<invalid>"),
        (timedelta(seconds=-1), "0s"),
        (timedelta(seconds=0), "0s"),
        (timedelta(seconds=119), "119s"),
        (timedelta(minutes=2), "2m"),
        (timedelta(minutes=9, seconds=5), "9m5s"),
        (timedelta(minutes=10, seconds=5), "10m"),
        (timedelta(minutes=179), "179m"),
        (timedelta(hours=3, minutes=5), "3h5m"),
        (timedelta(hours=8, minutes=5), "8h"),
        (timedelta(hours=47), "47h"),
        (timedelta(days=2, hours=3), "2d3h"),
        (timedelta(days=8, hours=3), "8d"),
        (timedelta(days=729), "729d"),
        (timedelta(days=731), "2y1d"),
        (timedelta(days=365 * 9), "9y"),
    ],
)
def test_ages_are_short(elapsed: timedelta, text: str) -> None:
    assert human_duration(elapsed.total_seconds()) == text


TABLE = """
Pod: Name Ready Status Restarts Age | IP Node Nominated_Node Readiness_Gates
Deployment: Name Ready Up-to-date Available Age | Containers Images Selector
ReplicaSet: Name Desired Current Ready Age | Containers Images Selector
ReplicationController: Name Desired Current Ready Age | Containers Images Selector
StatefulSet: Name Ready Age | Containers Images
DaemonSet: Name Desired Current Ready Up-to-date Available Node_Selector Age | Containers Images Selector
Job: Name Status Completions Duration Age | Containers Images Selector
CronJob: Name Schedule Timezone Suspend Active Last_Schedule Age | Containers Images Selector
Service: Name Type Cluster-IP External-IP Port(s) Age | Selector
Endpoints: Name Endpoints Age |
EndpointSlice: Name AddressType Ports Endpoints Age |
Ingress: Name Class Hosts Address Ports Age |
NetworkPolicy: Name Pod-Selector Age |
Node: Name Status Roles Age Version | Internal-IP External-IP OS-Image Kernel-Version Container-Runtime
Namespace: Name Status Age |
ConfigMap: Name Data Age |
Secret: Name Type Data Age |
ServiceAccount: Name Secrets Age |
PersistentVolume: Name Capacity Access_Modes Reclaim_Policy Status Claim StorageClass VolumeAttributesClass Reason
  Age | VolumeMode
PersistentVolumeClaim: Name Status Volume Capacity Access_Modes StorageClass VolumeAttributesClass Age | VolumeMode
Event: Last_Seen Type Reason Object Message | Subobject Source First_Seen Count Name
StorageClass: Name Provisioner ReclaimPolicy VolumeBindingMode AllowVolumeExpansion Age |
HorizontalPodAutoscaler: Name Reference Targets MinPods MaxPods Replicas Age |
PodDisruptionBudget: Name Min_Available Max_Unavailable Allowed_Disruptions Age |
Lease: Name Holder Age |
PriorityClass: Name Value Global-Default Age PreemptionPolicy |
Role: Name Created_At |
RoleBinding: Name Role Age | Users Groups ServiceAccounts
CustomResourceDefinition: Name Created_At |
ValidatingWebhookConfiguration: Name Webhooks Age |
ControllerRevision: Name Controller Revision Age |
ResourceQuota: Name Request Limit Age |
"""


@pytest.mark.parametrize("line", TABLE.replace("\n  ", " ").strip().splitlines())
def test_the_columns_are_those_that_kubectl_users_know(line: str) -> None:
    kind, _, named = line.partition(": ")
    narrow, wide = (part.split() for part in named.split("|"))
    columns = kind_of(kind).columns
    assert [each.name.replace(" ", "_") for each in columns if not each.priority] == narrow
    assert [each.name.replace(" ", "_") for each in columns if each.priority] == wide


def pod(status: Object, **spec: Any) -> Object:
    made = new("Pod", spec={"containers": [CONTAINER], **spec})
    made["metadata"]["creationTimestamp"] = HOUR_AGO
    made["status"] = {"phase": "Pending"} | status
    return made


def state(name: str = "main", **fields: Any) -> Object:
    return {"name": name, "restartCount": 0, "ready": False, **fields}


RUNNING = {"running": {"startedAt": HOUR_AGO}}
INIT = [{"name": "setup", "image": "x"}, {"name": "side", "image": "x", "restartPolicy": "Always"}]
DONE = state("setup", state={"terminated": {"exitCode": 0, "reason": "Completed"}})


@pytest.mark.parametrize(
    ("status", "spec", "word", "ready"),
    [
        ({}, {}, "Pending", "0/1"),
        ({"reason": "Evicted", "phase": "Failed"}, {}, "Evicted", "0/1"),
        ({"phase": "Running", "containerStatuses": [state(ready=True, state=RUNNING)]}, {}, "Running", "1/1"),
        (
            {"phase": "Running", "containerStatuses": [state(state={"waiting": {"reason": "CrashLoopBackOff"}})]},
            {},
            "CrashLoopBackOff",
            "0/1",
        ),
        (
            {"containerStatuses": [state(state={"waiting": {"reason": "ContainerCreating"}})]},
            {},
            "ContainerCreating",
            "0/1",
        ),
        (
            {
                "phase": "Succeeded",
                "containerStatuses": [state(state={"terminated": {"exitCode": 0, "reason": "Completed"}})],
            },
            {},
            "Completed",
            "0/1",
        ),
        (
            {"phase": "Failed", "containerStatuses": [state(state={"terminated": {"exitCode": 3}})]},
            {},
            "ExitCode:3",
            "0/1",
        ),
        (
            {"phase": "Failed", "containerStatuses": [state(state={"terminated": {"signal": 9, "exitCode": 137}})]},
            {},
            "Signal:9",
            "0/1",
        ),
        (
            {
                "phase": "Running",
                "conditions": [{"type": "Ready", "status": "False"}],
                "containerStatuses": [
                    state(state={"terminated": {"exitCode": 0, "reason": "Completed"}}),
                    state("b", ready=True, state=RUNNING),
                ],
            },
            {},
            "NotReady",
            "1/1",
        ),
        (
            {"conditions": [{"type": "PodScheduled", "status": "False", "reason": "SchedulingGated"}]},
            {},
            "SchedulingGated",
            "0/1",
        ),
        ({"initContainerStatuses": [state("setup", state=RUNNING)]}, {"initContainers": INIT}, "Init:0/2", "0/2"),
        (
            {"initContainerStatuses": [DONE, state("side", state={"waiting": {"reason": "PodInitializing"}})]},
            {"initContainers": INIT},
            "Init:1/2",
            "0/2",
        ),
        (
            {"initContainerStatuses": [state("setup", state={"waiting": {"reason": "ErrImagePull"}})]},
            {"initContainers": INIT},
            "Init:ErrImagePull",
            "0/2",
        ),
        (
            {"initContainerStatuses": [state("setup", state={"terminated": {"exitCode": 1, "reason": "Error"}})]},
            {"initContainers": INIT},
            "Init:Error",
            "0/2",
        ),
        (
            {
                "phase": "Running",
                "initContainerStatuses": [DONE, state("side", ready=True, started=True, state=RUNNING)],
                "containerStatuses": [state(ready=True, state=RUNNING)],
            },
            {"initContainers": INIT},
            "Running",
            "2/2",
        ),
    ],
)
def test_a_pod_is_told_by_what_matters_most(status: Object, spec: Object, word: str, ready: str) -> None:
    shown = cells(kind_of("Pod"), pod(status, **spec))
    assert (shown["Status"], shown["Ready"], shown["Age"]) == (word, ready, "60m")


@pytest.mark.parametrize(("phase", "word"), [("Running", "Terminating"), ("Succeeded", "Succeeded")])
def test_a_pod_that_goes_is_terminating_unless_it_is_done(phase: str, word: str) -> None:
    going = pod({"phase": phase})
    going["metadata"]["deletionTimestamp"] = HOUR_AGO
    assert cells(kind_of("Pod"), going)["Status"] == word


def test_restarts_are_counted_and_dated() -> None:
    ended = {"terminated": {"exitCode": 1, "finishedAt": HOUR_AGO}}
    shown = cells(kind_of("Pod"), pod({"containerStatuses": [state(restartCount=3, lastState=ended, state=RUNNING)]}))
    assert shown["Restarts"] == "3 (60m ago)"


def test_a_wide_row_of_a_pod_says_where_it_is() -> None:
    status = {"podIP": "10.1.1.1", "conditions": [{"type": "g", "status": "True"}]}
    shown = cells(kind_of("Pod"), pod(status, nodeName="n", readinessGates=[{"conditionType": "g"}]), wide=True)
    assert [shown[name] for name in ("IP", "Node", "Nominated Node", "Readiness Gates")] == [
        "10.1.1.1",
        "n",
        "<none>",
        "1/1",
    ]


@pytest.mark.parametrize(
    ("kind", "fields", "shown"),
    [
        (
            "Deployment",
            {"spec": workload(replicas=3), "status": {"readyReplicas": 1, "updatedReplicas": 2}},
            {"Ready": "1/3", "Up-to-date": 2, "Available": 0, "Images": "nginx:1", "Selector": "app=x"},
        ),
        ("StatefulSet", {"spec": workload()}, {"Ready": "0/1", "Containers": "main"}),
        (
            "DaemonSet",
            {"spec": workload(template=template(nodeSelector={"a": "b"}))},
            {"Node Selector": "a=b", "Desired": 0},
        ),
        (
            "Job",
            {"spec": {"completions": 3, "template": template()}, "status": {"succeeded": 1, "startTime": HOUR_AGO}},
            {"Completions": "1/3", "Duration": "60m", "Status": "Running"},
        ),
        (
            "Job",
            {
                "status": {
                    "startTime": HOUR_AGO,
                    "completionTime": "2025-06-15T14:06:45Z",
                    "conditions": [{"type": "Complete", "status": "True"}],
                }
            },
            {"Duration": "5s", "Status": "Complete"},
        ),
        ("Job", {"spec": {"parallelism": 3}}, {"Completions": "0/1 of 3"}),
        (
            "CronJob",
            {"spec": {"schedule": "@daily"}, "status": {"active": [{}], "lastScheduleTime": HOUR_AGO}},
            {"Suspend": "False", "Active": 1, "Last Schedule": "60m", "Timezone": "<none>"},
        ),
        (
            "Service",
            {
                "spec": {
                    "clusterIP": "10.0.0.1",
                    "ports": [{"port": 80, "nodePort": 30080}],
                    "type": "NodePort",
                    "selector": {"a": "b"},
                }
            },
            {"Cluster-IP": "10.0.0.1", "External-IP": "<none>", "Port(s)": "80:30080/TCP", "Selector": "a=b"},
        ),
        ("Service", {"spec": {"type": "LoadBalancer"}}, {"External-IP": "<pending>", "Port(s)": "<none>"}),
        (
            "Service",
            {"spec": {"type": "LoadBalancer"}, "status": {"loadBalancer": {"ingress": [{"ip": "1.2.3.4"}]}}},
            {"External-IP": "1.2.3.4"},
        ),
        (
            "Service",
            {"spec": {"type": "ExternalName", "externalName": "a.b"}},
            {"External-IP": "a.b", "Cluster-IP": "<none>"},
        ),
        (
            "Endpoints",
            {"subsets": [{"addresses": [{"ip": f"10.0.0.{n}"} for n in range(5)], "ports": [{"port": 1}]}]},
            {"Endpoints": "10.0.0.0:1,10.0.0.1:1,10.0.0.2:1 + 2 more..."},
        ),
        (
            "EndpointSlice",
            {"endpoints": [{"addresses": ["a"]}], "ports": [{"port": 80}]},
            {"Ports": "80", "Endpoints": "a"},
        ),
        (
            "Ingress",
            {"spec": {"rules": [{"host": "a.b"}], "tls": [{}]}},
            {"Hosts": "a.b", "Ports": "80, 443", "Class": "<none>"},
        ),
        (
            "Node",
            {
                "spec": {"unschedulable": True},
                "status": {
                    "conditions": [{"type": "Ready", "status": "True"}],
                    "addresses": [{"type": "InternalIP", "address": "1.1.1.1"}],
                },
                "metadata": {"labels": {"node-role.kubernetes.io/worker": ""}},
            },
            {
                "Status": "Ready,SchedulingDisabled",
                "Roles": "worker",
                "Internal-IP": "1.1.1.1",
                "External-IP": "<none>",
            },
        ),
        (
            "Node",
            {"status": {"conditions": [{"type": "Ready", "status": "False"}]}},
            {"Status": "NotReady", "Roles": "<none>"},
        ),
        ("Node", {"status": {"conditions": [{"type": "Ready", "status": "Unknown"}]}}, {"Status": "NotReady"}),
        ("Node", {}, {"Status": "Unknown"}),
        ("ConfigMap", {"data": {"a": "", "b": ""}, "binaryData": {"c": ""}}, {"Data": 3}),
        ("Secret", {"stringData": {"a": ""}}, {"Data": 1, "Type": "Opaque"}),
        (
            "PersistentVolumeClaim",
            {
                "spec": {"volumeName": "v", "storageClassName": "fast"},
                "status": {
                    "phase": "Bound",
                    "capacity": {"storage": "1Gi"},
                    "accessModes": ["ReadWriteOnce", "ReadWriteMany"],
                },
            },
            {
                "Status": "Bound",
                "Capacity": "1Gi",
                "Access Modes": "RWO,RWX",
                "StorageClass": "fast",
                "VolumeAttributesClass": "<unset>",
            },
        ),
        (
            "PersistentVolume",
            {"spec": {"capacity": {"storage": "1Gi"}, "claimRef": {"namespace": "a", "name": "b"}}},
            {"Claim": "a/b", "Status": "Pending", "Capacity": "1Gi"},
        ),
        (
            "Event",
            {
                "involvedObject": {"kind": "Pod", "name": "p"},
                "message": " hi\n",
                "lastTimestamp": HOUR_AGO,
                "source": {"component": "kubelet", "host": "n"},
            },
            {
                "Last Seen": "60m",
                "Object": "pod/p",
                "Message": "hi",
                "Source": "kubelet, n",
                "Count": 1,
                "First Seen": "<unknown>",
            },
        ),
        (
            "HorizontalPodAutoscaler",
            {"spec": {"scaleTargetRef": {"kind": "Deployment", "name": "d"}, "maxReplicas": 3}},
            {"Reference": "Deployment/d", "Targets": "cpu: <unknown>/80%", "MinPods": 1, "MaxPods": 3, "Replicas": 0},
        ),
        (
            "PodDisruptionBudget",
            {"spec": {"minAvailable": "50%"}},
            {"Min Available": "50%", "Max Unavailable": "N/A", "Allowed Disruptions": 0},
        ),
        (
            "StorageClass",
            {"metadata": {"name": "s", "annotations": {"storageclass.kubernetes.io/is-default-class": "true"}}},
            {"Name": "s (default)", "AllowVolumeExpansion": False},
        ),
        (
            "RoleBinding",
            {
                "roleRef": {"kind": "Role", "name": "r"},
                "subjects": [{"kind": "ServiceAccount", "namespace": "n", "name": "s"}, {"kind": "User", "name": "u"}],
            },
            {"Role": "Role/r", "Users": "u", "Groups": "", "ServiceAccounts": "n/s"},
        ),
        (
            "ResourceQuota",
            {"status": {"hard": {"pods": 3, "limits.cpu": 2}, "used": {"pods": 1}}},
            {"Request": "pods: 1/3", "Limit": "limits.cpu: 0/2"},
        ),
        (
            "ControllerRevision",
            {
                "metadata": {
                    "ownerReferences": [
                        {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "s", "uid": "u", "controller": True}
                    ]
                },
                "revision": 3,
            },
            {"Controller": "statefulset.apps/s", "Revision": 3},
        ),
        (
            "APIService",
            {
                "spec": {"service": {"namespace": "a", "name": "b"}},
                "status": {"conditions": [{"type": "Available", "status": "False", "reason": "X"}]},
            },
            {"Service": "a/b", "Available": "False (X)"},
        ),
        ("NetworkPolicy", {}, {"Pod-Selector": "<none>"}),
        (
            "VolumeAttachment",
            {"spec": {"attacher": "a", "nodeName": "n", "source": {"persistentVolumeName": "v"}}},
            {"PV": "v", "Attached": False},
        ),
    ],
)
def test_rows_tell_what_is_worth_telling(kind: str, fields: Object, shown: Object) -> None:
    obj = created(kind_of(kind), fields) | {"status": fields["status"]} if "status" in fields else new(kind, **fields)
    row = cells(kind_of(kind), obj, wide=True)
    assert {name: row[name] for name in shown} == shown


@given(st.data())
def test_nothing_that_decodes_makes_a_pod_unshowable(data: st.DataObject) -> None:
    junk = st.sampled_from([None, 0, -1, "", "x", True, [], {}, [{}], [None], {"a": None}, "2025-01-01T00:00:00Z"])
    broken = copy.deepcopy(RICH_POD)
    value: Any = broken[data.draw(st.sampled_from(["spec", "status"]))]
    while True:
        key = data.draw(st.sampled_from(list(value) if isinstance(value, dict) else list(range(len(value)))))
        if not value[key] or not isinstance(value[key], dict | list) or data.draw(st.booleans()):
            break
        value = value[key]
    value[key] = data.draw(junk)
    kind = kind_of("Pod")
    with contextlib.suppress(BadRequest):
        made = created(kind, broken)
        kind.validate(made, None)
        cells(kind, defaulted(kind, made | {"status": broken["status"]}), wide=True)


def test_every_kind_that_is_kept_has_columns() -> None:
    assert [each.kind for each in BUILTINS if not each.columns and "list" in each.verbs] == []
