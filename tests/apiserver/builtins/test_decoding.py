"""The notation of types, and the form that objects take by being decoded."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from holdfast.apiserver.builtins.types.decoding import Decoder, Mistyped
from holdfast.apiserver.builtins.types.library import DECODER
from holdfast.apiserver.builtins.types.notation import NotationError, Types

TEXT = """
Thing kind -- A thing; for tests.
  spec Spec -- What it is.

Spec
  name! string; count int32; limit *int32 = 3 -- Several; in one line.
  mode string = "Fast"; parts [id,kind]Part ~id; tags [set]string ~; inner *Inner = {}; amounts {}quantity atomic
  seen time; ended *time; data {}bytes; any any; port *intstr; plain []string; levels []string = ["Low"]
# A comment; it may stand anywhere.
  pods *Inner ~!

Part
  id! string; kind string = "A"

Inner atomic
  value! int64; self *Inner

ObjectMeta
  name string
"""
TYPES = Types(TEXT)


def settled(value: dict[str, Any]) -> dict[str, Any]:
    Decoder(TYPES).settle("Spec", value)
    return value


def test_a_type_becomes_a_schema() -> None:
    schema = TYPES.schema("Thing")
    assert schema["description"] == "A thing; for tests."
    assert list(schema["properties"]) == ["apiVersion", "kind", "metadata", "spec"]
    spec = schema["properties"]["spec"]
    assert spec["default"] == {}
    assert spec["required"] == ["name"]
    assert spec["properties"]["limit"] == {
        "type": "integer",
        "format": "int32",
        "default": 3,
        "description": "Several; in one line.",
    }


@pytest.mark.parametrize(
    ("field", "part"),
    [
        ("name", {"default": ""}),
        ("parts", {"x-kubernetes-list-map-keys": ["id", "kind"], "x-kubernetes-patch-merge-key": "id"}),
        ("tags", {"x-kubernetes-list-type": "set", "x-kubernetes-patch-strategy": "merge"}),
        ("pods", {"x-kubernetes-patch-strategy": "replace", "type": "object"}),
        ("plain", {"x-kubernetes-list-type": "atomic", "items": {"type": "string"}}),
        ("amounts", {"x-kubernetes-map-type": "atomic", "type": "object"}),
        ("seen", {"format": "date-time", "nullable": True}),
        ("port", {"x-kubernetes-int-or-string": True}),
        ("any", {"x-kubernetes-preserve-unknown-fields": True}),
        ("inner", {"x-kubernetes-map-type": "atomic", "default": {}}),
    ],
)
def test_what_is_said_of_a_field_is_in_its_schema(field: str, part: dict[str, Any]) -> None:
    schema = TYPES.schema("Spec")["properties"][field]
    assert schema | part == schema


def test_types_may_refer_to_themselves() -> None:
    inner = TYPES.schema("Inner")
    assert inner["properties"]["self"] is inner


@pytest.mark.parametrize("text", ["Spec\n  name\n", "9 - x\n  name string\n", "Spec what\n  name string\n", "A\n\nA\n"])
def test_what_is_not_in_the_notation_is_refused(text: str) -> None:
    with pytest.raises(NotationError):
        list(Types(text))


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ({"count": 0}, {}),
        ({"count": 5}, {"count": 5}),
        ({"limit": 0}, {"limit": 0}),
        ({"limit": None}, {"limit": 3}),
        ({"mode": ""}, {"mode": "Fast"}),
        ({"name": ""}, {"name": ""}),
        ({"plain": []}, {}),
        ({"plain": None}, {}),
        ({"plain": [""]}, {"plain": [""]}),
        ({"amounts": {}}, {}),
        ({"amounts": {"cpu": 0.5, "memory": "1024Mi"}}, {"amounts": {"cpu": "500m", "memory": "1Gi"}}),
        ({"inner": {}}, {"inner": {}}),
        ({"inner": None}, {"inner": {"value": 0}}),
        ({"inner": {"self": None}}, {"inner": {}}),
        ({"parts": [None]}, {"parts": [{"id": "", "kind": "A"}]}),
        ({"levels": []}, {"levels": ["Low"]}),
        ({"levels": ["High"]}, {"levels": ["High"]}),
        ({"ended": "2025-01-15T11:00:00+01:00"}, {"ended": "2025-01-15T10:00:00Z"}),
        ({"data": {"k": "dg=="}}, {"data": {"k": "dg=="}}),
        ({"port": 80}, {"port": 80}),
        ({"port": "http"}, {"port": "http"}),
        ({"unknown": None}, {"unknown": None}),
    ],
)
def test_objects_take_the_form_that_typed_servers_keep(before: dict[str, Any], after: dict[str, Any]) -> None:
    assert settled(before) == after | {"seen": None}


def test_settling_twice_changes_nothing() -> None:
    once = settled({"count": 0, "amounts": {"cpu": "0.1"}, "seen": "2025-01-15T10:00:00Z", "parts": [{"id": "a"}]})
    assert settled(copy.deepcopy(once)) == once


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        ({"name": 5}, "json: cannot unmarshal number into Go struct field Spec.name of type string"),
        ({"count": "5"}, "json: cannot unmarshal string into Go struct field Spec.count of type int32"),
        ({"count": True}, "json: cannot unmarshal bool into Go struct field Spec.count of type int32"),
        ({"count": 1.5}, "json: cannot unmarshal number 1.5 into Go struct field Spec.count of type int32"),
        ({"count": 2**31}, "json: cannot unmarshal number 2147483648 into Go struct field Spec.count of type int32"),
        ({"plain": "x"}, "json: cannot unmarshal string into Go struct field Spec.plain of type []string"),
        ({"plain": [{}]}, "json: cannot unmarshal object into Go struct field Spec.plain of type string"),
        ({"parts": [{"id": []}]}, "json: cannot unmarshal array into Go struct field Part.parts.id of type string"),
        ({"inner": []}, "json: cannot unmarshal array into Go struct field Spec.inner of type v1.Inner"),
        ({"inner": {"self": {"value": ""}}}, "field Inner.inner.self.value of type int64"),
        ({"data": []}, "json: cannot unmarshal array into Go struct field Spec.data of type map[string][]uint8"),
        ({"data": {"k": "%"}}, "illegal base64 data; write the bytes in base64"),
        ({"amounts": {"cpu": "x"}}, "quantities must match the regular expression"),
        ({"ended": "yesterday"}, 'parsing time "yesterday" as "2006-01-02T15:04:05Z07:00"'),
        ({"port": 1.5}, "json: cannot unmarshal number into Go struct field Spec.port of type string"),
        ({"any": []}, "Go struct field Spec.any of type map[string]interface {}"),
    ],
)
def test_a_value_of_the_wrong_type_is_refused_with_the_way_to_it(value: dict[str, Any], problem: str) -> None:
    with pytest.raises(Mistyped) as refusal:
        settled(value)
    assert problem in str(refusal.value)


RICH_POD: dict[str, Any] = {
    "metadata": {"name": "p", "labels": {"a": "b"}, "ownerReferences": [{"uid": "u"}]},
    "spec": {
        "containers": [
            {
                "name": "main",
                "image": "nginx",
                "command": ["sleep"],
                "ports": [{"name": "http", "containerPort": 80, "hostPort": 80}],
                "env": [{"name": "A", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}],
                "resources": {"limits": {"cpu": "1"}, "requests": {"cpu": "1"}},
                "livenessProbe": {"httpGet": {"port": "http", "path": "/"}, "periodSeconds": 3},
                "volumeMounts": [{"name": "v", "mountPath": "/v", "subPath": "x"}],
                "lifecycle": {"preStop": {"exec": {"command": ["x"]}}},
            }
        ],
        "volumes": [{"name": "v", "projected": {"sources": [{"secret": {"name": "s", "items": [{"key": "k"}]}}]}}],
        "tolerations": [{"key": "k", "operator": "Exists"}],
        "affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": "h"}]}},
        "topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": "h", "whenUnsatisfiable": "DoNotSchedule"}],
    },
    "status": {
        "conditions": [{"type": "Ready", "status": "True"}],
        "containerStatuses": [{"name": "main", "state": {"terminated": {"exitCode": 1, "finishedAt": None}}}],
    },
}


def test_what_is_right_is_left_as_it_is() -> None:
    pod = copy.deepcopy(RICH_POD)
    DECODER.settle("Pod", pod)
    del pod["status"], pod["metadata"]
    assert pod == {"spec": RICH_POD["spec"]}
