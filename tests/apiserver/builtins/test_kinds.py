"""The built-in kinds as a whole: their names, their types, and what becomes of new objects."""

from __future__ import annotations

import contextlib
import copy
import functools
import json
from collections.abc import Mapping
from typing import Any

import pytest
from tests.places import ROOT

from holdfast.apiserver.builtins import BUILTINS, CONVERSIONS, FIELD_VALUES
from holdfast.apiserver.builtins.types.library import TYPES
from holdfast.apiserver.resources import Object, Registry, ResourceType
from holdfast.meta.errors import BadRequest, FieldError
from holdfast.meta.objects import GVK
from holdfast.meta.schemas import walk

ORACLE = ROOT.parent / "shared" / "oracle" / "cases"
REGISTRY = Registry(BUILTINS)


def kind_of(name: str) -> ResourceType:
    """A built-in kind by name; of several versions, the stored one."""
    return next(each for each in BUILTINS if each.kind == name)


def schema_of(kind: ResourceType) -> walk.Schema:
    return _compiled(kind.gvk)


@functools.cache
def _compiled(gvk: GVK) -> walk.Schema:
    return walk.compile(next(kind.schema for kind in REGISTRY if kind.gvk == gvk))


def defaulted(kind: ResourceType, obj: Object) -> Object:
    schema_of(kind).default(obj)
    kind.settle(obj)
    kind.default(obj)
    return obj


def new(kind_name: str, **fields: Any) -> Object:
    """A new object as the server makes it of what a client sent."""
    return created(kind_of(kind_name), fields)


def created(kind: ResourceType, sent: Mapping[str, Any]) -> Object:
    obj = copy.deepcopy({"apiVersion": kind.api_version, "kind": kind.kind, **sent})
    obj.setdefault("metadata", {}).setdefault("name", "x")
    schema_of(kind).prune(obj)
    defaulted(kind, obj)
    obj["metadata"]["uid"] = "uid-1"
    kind.on_create(obj)
    return defaulted(kind, obj)


def problems(kind_name: str, **fields: Any) -> list[str]:
    """What is wrong with a new object, a line for each problem."""
    kind = kind_of(kind_name)
    return lines(kind.validate(created(kind, fields), None))


def change_problems(kind_name: str, old: Object, **changes: Any) -> list[str]:
    """What is wrong with a change of the fields of a stored object."""
    kind = kind_of(kind_name)
    obj = defaulted(kind, copy.deepcopy(old) | copy.deepcopy(changes))
    kind.on_update(obj, old)
    return lines(kind.validate(defaulted(kind, obj), old))


def lines(found: list[FieldError]) -> list[str]:
    return [str(problem) for problem in found]


CONTAINER = {"name": "main", "image": "nginx:1"}


def template(**spec: Any) -> Object:
    return {"metadata": {"labels": {"app": "x"}}, "spec": {"containers": [CONTAINER], **spec}}


def workload(**spec: Any) -> Object:
    return {"selector": {"matchLabels": {"app": "x"}}, "template": template(), **spec}


EXPECTED = """
v1: Namespace Node Pod PodTemplate Service Endpoints ConfigMap Secret ServiceAccount PersistentVolume
  PersistentVolumeClaim Event LimitRange ResourceQuota ReplicationController
apps/v1: Deployment ReplicaSet StatefulSet DaemonSet ControllerRevision
batch/v1: Job CronJob
autoscaling/v2: HorizontalPodAutoscaler
autoscaling/v1: HorizontalPodAutoscaler
policy/v1: PodDisruptionBudget
discovery.k8s.io/v1: EndpointSlice
events.k8s.io/v1: Event
networking.k8s.io/v1: Ingress IngressClass NetworkPolicy ServiceCIDR IPAddress
certificates.k8s.io/v1: CertificateSigningRequest
resource.k8s.io/v1: DeviceClass ResourceClaim ResourceClaimTemplate ResourceSlice
storage.k8s.io/v1: StorageClass VolumeAttributesClass CSIDriver CSINode CSIStorageCapacity VolumeAttachment
scheduling.k8s.io/v1: PriorityClass
node.k8s.io/v1: RuntimeClass
coordination.k8s.io/v1: Lease
rbac.authorization.k8s.io/v1: Role RoleBinding ClusterRole ClusterRoleBinding
apiextensions.k8s.io/v1: CustomResourceDefinition
apiregistration.k8s.io/v1: APIService
admissionregistration.k8s.io/v1: ValidatingWebhookConfiguration MutatingWebhookConfiguration
  ValidatingAdmissionPolicy ValidatingAdmissionPolicyBinding
authentication.k8s.io/v1: TokenReview SelfSubjectReview
authorization.k8s.io/v1: SubjectAccessReview SelfSubjectAccessReview SelfSubjectRulesReview LocalSubjectAccessReview
"""


def test_every_kind_that_clients_expect_is_there_and_no_other() -> None:
    wanted = set()
    for line in EXPECTED.replace("\n  ", " ").strip().splitlines():
        version, _, kinds = line.partition(": ")
        wanted |= {(version, kind) for kind in kinds.split()}
    assert {(each.api_version, each.kind) for each in BUILTINS} == wanted


def test_no_two_kinds_of_a_group_share_a_name() -> None:
    for group in {each.group for each in BUILTINS}:
        called = [
            name
            for each in {each.kind: each for each in BUILTINS if each.group == group}.values()
            for name in {each.plural, each.singular, *each.short_names}
        ]
        assert len(called) == len(set(called)), group


@pytest.mark.parametrize(
    ("kind", "plural"),
    [
        ("Endpoints", "endpoints"),
        ("Ingress", "ingresses"),
        ("NetworkPolicy", "networkpolicies"),
        ("StorageClass", "storageclasses"),
        ("PriorityClass", "priorityclasses"),
        ("SelfSubjectAccessReview", "selfsubjectaccessreviews"),
    ],
)
def test_plurals_are_english(kind: str, plural: str) -> None:
    assert kind_of(kind).plural == plural


@pytest.mark.parametrize("kind", BUILTINS, ids=lambda kind: f"{kind.group}/{kind.version}/{kind.kind}")
def test_every_schema_compiles_and_knows_the_fields_of_all_objects(kind: ResourceType) -> None:
    assert {"apiVersion", "kind", "metadata"} <= kind.schema["properties"].keys()
    assert kind.schema["description"].endswith(".")
    schema_of(kind)


@pytest.mark.parametrize("kind", BUILTINS, ids=lambda kind: f"{kind.group}/{kind.version}/{kind.kind}")
def test_every_kind_stands_an_empty_object_and_shows_it(kind: ResourceType) -> None:
    obj = created(kind, {})
    kind.validate(obj, None)
    for column in kind.columns:
        if callable(column.value):
            column.value(obj, 0.0)
    assert defaulted(kind, copy.deepcopy(obj)) == obj


@pytest.mark.parametrize("kind", BUILTINS, ids=lambda kind: f"{kind.group}/{kind.version}/{kind.kind}")
def test_no_kind_fails_on_junk_in_any_field(kind: ResourceType) -> None:
    for junk in (5, "x", True, [], [5], {"a": 5}, [{"a": []}], {"a": {"b": "c"}}):
        for name, schema in kind.schema["properties"].items():
            if name in ("apiVersion", "kind", "metadata"):
                continue
            for path in [(name,), *((name, inner) for inner in schema.get("properties", ()))]:
                sent = functools.reduce(lambda value, part: {part: value}, reversed(path), junk)
                with contextlib.suppress(BadRequest):
                    kind.validate(created(kind, sent), None)


def test_a_type_is_one_mapping_wherever_it_is_used() -> None:
    pod_spec = TYPES.schema("PodSpec")["properties"]
    deployment = kind_of("Deployment").schema["properties"]["spec"]["properties"]["template"]
    assert deployment["properties"]["spec"]["properties"] is pod_spec
    assert kind_of("Pod").schema["properties"]["spec"]["properties"] is pod_spec


def test_lists_say_how_they_are_merged() -> None:
    pod = TYPES.schema("PodSpec")["properties"]
    assert pod["containers"] | {"items": 0} == {
        "type": "array",
        "items": 0,
        "description": "Containers of the pod; at least one.",
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["name"],
        "x-kubernetes-patch-strategy": "merge",
        "x-kubernetes-patch-merge-key": "name",
    }
    assert pod["tolerations"]["x-kubernetes-list-type"] == "atomic"
    assert pod["nodeSelector"]["x-kubernetes-map-type"] == "atomic"
    assert pod["volumes"]["x-kubernetes-patch-strategy"] == "merge,retainKeys"
    ports = TYPES.schema("Container")["properties"]["ports"]
    assert ports["x-kubernetes-list-map-keys"] == ["containerPort", "protocol"]
    assert ports["x-kubernetes-patch-merge-key"] == "containerPort"
    assert TYPES.schema("LabelSelector")["x-kubernetes-map-type"] == "atomic"


def test_the_official_client_knows_no_field_that_is_missing() -> None:
    client = pytest.importorskip("kubernetes")
    if int(client.__version__.partition(".")[0]) != 36:
        pytest.skip("the client is of another version of the API than this server")
    models = client.client.models
    renamed = {
        "EventsV1Event": "NewEvent",
        "CoreV1Event": "Event",
        "EventsV1EventSeries": "NewEventSeries",
        "CoreV1EventSeries": "EventSeries",
        "DiscoveryV1EndpointPort": "EndpointSlicePort",
        "CoreV1EndpointPort": "EndpointPort",
        "RbacV1Subject": "Subject",
        "V1HorizontalPodAutoscalerSpec": "HorizontalPodAutoscalerSpecV1",
        "V2HorizontalPodAutoscalerSpec": "HorizontalPodAutoscalerSpec",
        "V1HorizontalPodAutoscalerStatus": "HorizontalPodAutoscalerStatusV1",
        "V2HorizontalPodAutoscalerStatus": "HorizontalPodAutoscalerStatus",
    }
    not_served = {"shardInfo", "ignoreStoreReadErrorWithClusterBreakingPotential"}  # sharded lists, unreadable objects
    ours = {name: TYPES.schema(name) for name in TYPES}
    for model in [*renamed, *(f"V1{name}" for name in ours), *(f"V2{name}" for name in ours)]:
        cls = getattr(models, model, None)
        name = renamed.get(model, model[2:])
        if cls is not None and name in ours:
            known = ours[name]["properties"].keys() | {"metadata"}
            assert set(cls.attribute_map.values()) - not_served <= known, model


@pytest.mark.parametrize(
    ("asked", "obj"),
    [
        (
            GVK("events.k8s.io", "v1", "Event"),
            {
                "regarding": {"kind": "Pod", "name": "p"},
                "note": "n",
                "reportingController": "c",
                "deprecatedCount": 3,
                "eventTime": None,
                "deprecatedFirstTimestamp": None,
                "deprecatedLastTimestamp": None,
                "deprecatedSource": {},
                "reportingInstance": "i",
                "series": {"count": 0, "lastObservedTime": "2025-01-15T10:00:00.000000Z"},
            },
        ),
        (
            GVK("autoscaling", "v1", "HorizontalPodAutoscaler"),
            {
                "spec": {"maxReplicas": 3, "targetCPUUtilizationPercentage": 70},
                "status": {"currentReplicas": 0, "currentCPUUtilizationPercentage": 50},
            },
        ),
    ],
)
def test_what_is_kept_in_another_version_comes_back_as_it_was(asked: GVK, obj: Object) -> None:
    conversion = CONVERSIONS[asked]
    whole = {"apiVersion": asked.api_version, "kind": asked.kind, "metadata": {"name": "x"}, **obj}
    stored = conversion.to_stored(copy.deepcopy(whole))
    assert stored["apiVersion"] == conversion.stored_as.api_version
    assert schema_of(kind_of(asked.kind)).unknown(stored) == []
    assert conversion.from_stored(stored) == whole
    settled = copy.deepcopy(stored)
    kind_of(asked.kind).settle(settled)
    assert settled == stored, "an update of the stored version takes what stays the same as it is"


def nulls(schema: Mapping[str, Any], depth: int = 4) -> Object:
    """An object with a null or nothing in each field, and one null in each list of objects."""
    return {name: _null(each, depth) for name, each in schema.get("properties", {}).items() if depth}


def _null(schema: Mapping[str, Any], depth: int) -> Any:
    if schema.get("type") == "array":
        return [None] if "properties" in schema["items"] else []
    return nulls(schema, depth - 1) if schema.get("type") == "object" else None


@pytest.mark.parametrize("kind", BUILTINS, ids=lambda kind: str(kind.gvk))
def test_what_is_in_its_stored_form_is_left_as_it_is(kind: ResourceType) -> None:
    obj: Object = nulls(kind.schema) | {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": {"name": "x"}}
    schema_of(kind).default(obj)
    kind.settle(obj)
    once = copy.deepcopy(obj)
    schema_of(kind).default(obj)
    kind.settle(obj)
    assert obj == once


@pytest.mark.parametrize(
    ("key", "field", "obj", "value"),
    [
        ("/nodes", "spec.unschedulable", {"spec": {}}, "false"),
        ("/nodes", "spec.unschedulable", {"spec": {"unschedulable": True}}, "true"),
        ("/pods", "spec.hostNetwork", {}, "false"),
        ("batch/jobs", "status.successful", {"status": {"succeeded": 2}}, "2"),
        ("batch/jobs", "status.successful", {"status": {}}, "0"),
        ("/events", "source", {"source": {}, "reportingComponent": "kubelet"}, "kubelet"),
    ],
)
def test_field_selectors_that_are_more_than_a_field(key: str, field: str, obj: Object, value: str) -> None:
    assert FIELD_VALUES[key, field](obj) == value


def _oracle_creates() -> list[Any]:
    """The creations of built-in objects that a real server was seen to answer."""
    found = []
    for name in ("builtin", "controllers", "crud", "patches", "gc", "lists") if ORACLE.exists() else ():
        for scenario in json.loads((ORACLE / f"{name}.json").read_text()):
            for index, step in enumerate(scenario["steps"]):
                request = step["request"]
                kind = _kind_at(request["path"])
                refused = step["answer"]["code"] != 201 and name != "builtin"  # for metadata or options, not by a kind
                if request["method"] == "POST" and kind and isinstance(request.get("body"), dict) and not refused:
                    found.append(pytest.param(kind, step, id=f"{name}/{scenario['name']}/{index}"))
    return found


def _kind_at(path: str) -> ResourceType | None:
    parts = path.partition("?")[0].strip("/").split("/")
    group, rest = ("", parts[1:]) if parts[0] == "api" else (parts[1], parts[2:])
    version, names = rest[0], rest[3:] if rest[1] == "namespaces" and len(rest) > 3 else rest[1:]
    return REGISTRY.get(group, version, names[0]) if len(names) == 1 else None


def _at(value: Any, path: str) -> Any:
    for part in path.split("."):
        match value:
            case list():
                value = value[int(part)]
            case dict():
                value = value.get(part)
            case _:
                return None
    return value


@pytest.mark.skipif(not ORACLE.exists(), reason="the recorded answers of a real server are not here")
@pytest.mark.parametrize(("kind", "step"), _oracle_creates())
def test_new_objects_look_as_a_real_server_makes_them(kind: ResourceType, step: dict[str, Any]) -> None:
    code, body = step["answer"]["code"], step["answer"]["body"]
    if code != 201:
        assert kind.validate(created(kind, step["request"]["body"]), None)
        return
    obj = created(kind, step["request"]["body"])
    assert kind.validate(obj, None) == []
    skipped = {"metadata.generation", *step.get("ignore", ())}
    if "select" in step:
        seen = {path: _at(obj, path) for path in body if path not in skipped}
        assert seen == {path: value for path, value in body.items() if path not in skipped}
    else:
        seen = {name: value for name, value in obj.items() if name != "metadata"}
        assert seen == {name: value for name, value in body.items() if name != "metadata"}
