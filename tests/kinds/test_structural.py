"""Each rule of structural schemas, broken once."""

from __future__ import annotations

from typing import Any

import pytest
from tests.kinds.structural import crd_problems, structural_problems

ENTRY = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}


def rule(text: str, **more: Any) -> dict[str, Any]:
    return {"x-kubernetes-validations": [{"rule": text, "message": "no", **more}]}


def keyed(items: dict[str, Any], *keys: str) -> dict[str, Any]:
    return {
        "type": "array",
        "items": items,
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": list(keys),
    }


SOUND: dict[str, dict[str, Any]] = {
    "a scalar with a default": {"type": "string", "default": "a", "enum": ["a", "b"]},
    "int-or-string": {"anyOf": [{"type": "integer"}, {"type": "string"}], "x-kubernetes-int-or-string": True},
    "a free-form object": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
    "a value of any type": {"x-kubernetes-preserve-unknown-fields": True},
    "a map": {"type": "object", "additionalProperties": {"type": "string"}},
    "a keyed list": keyed(ENTRY, "name"),
    "a list keyed by a field with a default": keyed(
        {"type": "object", "properties": {"protocol": {"type": "string", "default": "TCP"}}}, "protocol"
    ),
    "a set": {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"},
    "a transition rule below a keyed list": keyed({**ENTRY, **rule("self.name == oldSelf.name")}, "name"),
    "a rule below a plain list": {"type": "array", "items": {**ENTRY, **rule("self.name != ''")}},
    "a rule about a field whose name is escaped": {
        "type": "object",
        "properties": {"a-b": {"type": "string"}},
        **rule("self.a__dash__b.size() > 1"),
    },
    "a rule about the entries of a map": {
        "type": "object",
        "additionalProperties": ENTRY,
        **rule("self.all(key, self[key].name != '')"),
    },
    "validations inside a logical operator": {
        **ENTRY,
        "anyOf": [{"properties": {"name": {"enum": ["a"]}}}, {"required": ["name"]}],
    },
    "an embedded resource": {
        "type": "object",
        "x-kubernetes-embedded-resource": True,
        "x-kubernetes-preserve-unknown-fields": True,
    },
}

BROKEN: dict[str, tuple[dict[str, Any], str]] = {
    "no type": ({}, "$.spec: a type is required"),
    "a type of its own": ({"type": "text"}, "$.spec: 'text' is not a type"),
    "a reference": ({"type": "object", "$ref": "#/x"}, "$.spec: $ref is forbidden"),
    "unique items": (
        {"type": "array", "items": {"type": "string"}, "uniqueItems": True},
        "$.spec: uniqueItems is forbidden; make it a list of type set",
    ),
    "an array of anything": ({"type": "array"}, "$.spec: an array must say its items, as one schema"),
    "a closed object": (
        {"type": "object", "additionalProperties": False},
        "$.spec: additionalProperties must not be false",
    ),
    "properties and a map": (
        {**ENTRY, "additionalProperties": {"type": "string"}},
        "$.spec: properties and additionalProperties exclude each other",
    ),
    "a required field that is not there": (
        {**ENTRY, "required": ["nmae"]},
        "$.spec: required field nmae is not among the properties",
    ),
    "an empty enum": ({"type": "string", "enum": []}, "$.spec: the enum is empty"),
    "look-ahead": (
        {"type": "string", "pattern": "^(?!x)"},
        "$.spec: the pattern ^(?!x) is not RE2 (no look-around, no back-references)",
    ),
    "int-or-string with a type": (
        {"type": "string", "x-kubernetes-int-or-string": True},
        "$.spec: int-or-string must not have a type",
    ),
    "int-or-string that preserves": (
        {"x-kubernetes-preserve-unknown-fields": True, "x-kubernetes-int-or-string": True},
        "$.spec: int-or-string cannot preserve unknown fields",
    ),
    "an embedded string": (
        {"type": "string", "x-kubernetes-embedded-resource": True},
        "$.spec: an embedded resource is an object with properties or unknown fields",
    ),
    "a type inside anyOf": (
        {"type": "string", "anyOf": [{"type": "string"}]},
        "$.spec.anyOf[0]: type is forbidden inside a logical operator",
    ),
    "an extension inside not": (
        {"type": "object", "not": {"x-kubernetes-preserve-unknown-fields": True}},
        "$.spec.not: x-kubernetes-preserve-unknown-fields is forbidden inside a logical operator",
    ),
    "a field that only anyOf knows": (
        {**ENTRY, "anyOf": [{"properties": {"size": {"minimum": 1}}}]},
        "$.spec.anyOf[0]: size is not declared outside the logical operator",
    ),
    "nested operators": (
        {"type": "string", "allOf": [{"anyOf": [{"default": "a"}]}]},
        "$.spec.allOf[0].anyOf[0]: default is forbidden inside a logical operator",
    ),
    "a default of the wrong type": (
        {"type": "integer", "default": "3"},
        "the default of $.spec: must be an integer, not a string; write 3, without quotes",
    ),
    "a default outside the enum": (
        {"type": "string", "enum": ["a"], "default": "b"},
        "the default of $.spec: must be one of a, not 'b'",
    ),
    "a default with unknown fields": (
        {**ENTRY, "default": {"name": "a", "size": 1}},
        "the default of $.spec.size: unknown field; known here: name",
    ),
    "a list type on an object": (
        {"type": "object", "x-kubernetes-list-type": "set"},
        "$.spec: x-kubernetes-list-type is for arrays only",
    ),
    "an unknown list type": (
        {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "bag"},
        "$.spec: x-kubernetes-list-type is atomic, set or map, not 'bag'",
    ),
    "a map type on an array": (
        {"type": "array", "items": {"type": "string"}, "x-kubernetes-map-type": "atomic"},
        "$.spec: x-kubernetes-map-type is granular or atomic, and for objects only",
    ),
    "a set of objects": (
        {"type": "array", "items": ENTRY, "x-kubernetes-list-type": "set"},
        "$.spec: the items of a set must be scalar or atomic",
    ),
    "a set of nullable items": (
        {"type": "array", "items": {"type": "string", "nullable": True}, "x-kubernetes-list-type": "set"},
        "$.spec: the items of a set must not be nullable",
    ),
    "a map without keys": (
        {"type": "array", "items": ENTRY, "x-kubernetes-list-type": "map"},
        "$.spec: x-kubernetes-list-map-keys and the list type map need each other",
    ),
    "a map of strings": (keyed({"type": "string"}, "name"), "$.spec: the items of a map must be objects"),
    "a key that is no field": (keyed(ENTRY, "id"), "$.spec: the key id is not a field of the items"),
    "a key that is an object": (
        keyed({"type": "object", "properties": {"name": {"type": "object"}}, "required": ["name"]}, "name"),
        "$.spec: the key name must be scalar",
    ),
    "a key that is optional": (
        keyed({"type": "object", "properties": {"name": {"type": "string"}}}, "name"),
        "$.spec: the key name must be required or have a default",
    ),
    "a transition rule below a plain list": (
        {"type": "array", "items": {"type": "string", **rule("self == oldSelf")}},
        "$.spec[*]: 'self == oldSelf' uses oldSelf below a list without keys, where none is found",
    ),
    "a transition rule below an atomic map": (
        {
            "type": "object",
            "additionalProperties": {"type": "string", **rule("self == oldSelf")},
            "x-kubernetes-map-type": "atomic",
        },
        "$.spec.*: 'self == oldSelf' uses oldSelf below a list without keys, where none is found",
    ),
    "optionalOldSelf for nothing": (
        {"type": "string", **rule("self != ''", optionalOldSelf=True)},
        "$.spec: \"self != ''\" has optionalOldSelf but no oldSelf",
    ),
    "an empty rule": ({"type": "string", **rule(" ")}, "$.spec: a rule is empty"),
    "a message of two lines": (
        {"type": "string", **rule("true", message="a\nb")},
        "$.spec: a rule's message must be one line",
    ),
    "a rule without a message": ({"type": "string", **rule("true", message="")}, "$.spec: 'true' has no message"),
    "a rule about a field that is not there": (
        {**ENTRY, **rule("self.name != '' && has(self.nmae)")},
        "$.spec: \"self.name != '' && has(self.nmae)\" speaks of self.nmae, which is not in the schema",
    ),
    "a fieldPath to nowhere": (
        {**ENTRY, **rule("true", fieldPath=".nmae")},
        "$.spec: fieldPath .nmae leads nowhere",
    ),
}


def root(spec: dict[str, Any], **properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": {"metadata": {"type": "object"}, "spec": spec, **properties}}


@pytest.mark.parametrize("name", SOUND)
def test_sound(name: str) -> None:
    assert structural_problems(root(SOUND[name])) == []


@pytest.mark.parametrize("name", BROKEN)
def test_broken_by(name: str) -> None:
    schema, said = BROKEN[name]
    assert said in structural_problems(root(schema))


@pytest.mark.parametrize(
    ("schema", "said"),
    [
        ({"type": "array", "items": {"type": "string"}}, "$: the root must be of type object"),
        (root({"type": "string"}, kind={"type": "integer"}), "$.kind: must be of type string"),
        (root({"type": "string"}, metadata={"type": "string"}), "$.metadata: must be of type object"),
        (
            root({"type": "string"}, metadata={"type": "object", "properties": {"labels": {"type": "object"}}}),
            "$.metadata: may restrict name and generateName only, not labels",
        ),
        (
            root({"type": "string"}, metadata={"type": "object", "default": {}}),
            "$.metadata: metadata takes no defaults",
        ),
    ],
)
def test_the_root_and_its_metadata_have_rules_of_their_own(schema: dict[str, Any], said: str) -> None:
    assert said in structural_problems(schema)


def test_a_rule_of_the_root_may_speak_of_the_name() -> None:
    assert structural_problems({**root(ENTRY), **rule("self.metadata.name == self.spec.name")}) == []


def definition(**version: Any) -> dict[str, Any]:
    schema = root(ENTRY, status={"type": "object", "properties": {"replicas": {"type": "integer"}}})
    return {
        "metadata": {"name": "toys.example.com"},
        "spec": {
            "group": "example.com",
            "names": {"plural": "toys"},
            "versions": [
                {
                    "name": "v1",
                    "storage": True,
                    "schema": {"openAPIV3Schema": schema},
                    "subresources": {"status": {}},
                    **version,
                }
            ],
        },
    }


@pytest.mark.parametrize(
    ("version", "said"),
    [
        ({}, []),
        ({"storage": False}, ["spec.versions: exactly one version must be the storage version"]),
        ({"subresources": {}}, ["v1: a status field and the status subresource must come together"]),
        (
            {"subresources": {"status": {}, "scale": {"specReplicasPath": ".spec.name"}}},
            ["v1: subresources.scale.specReplicasPath: .spec.name must lead to integer values"],
        ),
        (
            {"additionalPrinterColumns": [{"name": "Size", "jsonPath": ".spec.size"}]},
            ["v1: column Size: .spec.size leads nowhere in the schema"],
        ),
        ({"additionalPrinterColumns": [{"name": "Name", "jsonPath": ".spec.name"}]}, []),
        ({"additionalPrinterColumns": [{"name": "Age", "jsonPath": ".metadata.creationTimestamp"}]}, []),
    ],
)
def test_a_definition_leads_nowhere_wrong(version: dict[str, Any], said: list[str]) -> None:
    assert crd_problems(definition(**version)) == said


def test_a_definition_is_named_after_its_plural_and_a_group_with_a_dot() -> None:
    crd = definition()
    crd["spec"]["group"] = "example"
    assert crd_problems(crd) == [
        "metadata.name must be toys.example",
        "spec.group: 'example' must be a domain name, with a dot",
    ]
