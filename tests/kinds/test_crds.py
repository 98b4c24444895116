"""From types to schemas and definitions."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from typing import Annotated, Any, ClassVar, Literal

import msgspec
import pytest
from tests.kinds.core_types import is_built_in
from tests.kinds.structural import crd_problems, is_open

from holdfast import kinds
from holdfast.kinds.crds import SchemaError, crd_of, schema_of
from holdfast.kinds.model import (
    AGE,
    Column,
    Conditions,
    Duration,
    IntOrPercent,
    Kind,
    Model,
    OpenObject,
    Quantity,
    Resource,
    Rule,
    Scale,
    Spelling,
    Time,
    api,
    immutable,
)


class Colour(Spelling):
    RED = "Red"
    BLUE = "Blue"

    __spellings__ = {"RED": "Red"}


class Inner(Model):
    """Something
    inside."""

    RULES: ClassVar = (Rule(rule="self.name != ''", message="name it"),)

    name: str
    size: int | None = None


class Everything(Model):
    """One field of each form."""

    text: Annotated[str, api("Some text.", min_length=1, max_length=9, pattern="^a")] | None = None
    number: Annotated[int, api(ge=1, lt=9, default=3, format="int32")] | None = None
    ratio: Annotated[float, api(gt=0)] | None = None
    flag: bool | None = None
    word: Annotated[Literal["b", "a"], api(default="a")] | None = None
    colour: Colour | None = None
    share: Annotated[IntOrPercent, api("How many.")] | None = None
    quantity: Quantity | None = None
    time: Time | None = None
    wait: Annotated[Duration, api(default="5s")] | None = None
    open: Annotated[OpenObject, api("Anything.")] | None = None
    anything: Any = None
    tags: Annotated[tuple[str, ...], api(list_type="set", max_length=4)] = ()
    inners: Annotated[tuple[Inner, ...], api(keys=("name",), min_length=1)] = ()
    named: Annotated[dict[str, Inner], api(max_length=7)] = {}
    labels: Annotated[dict[str, str], api(map_type="atomic")] = {}
    once: Annotated[Inner, api(rules=(immutable("once"),))] | None = None
    clearable: Annotated[str, api(nullable=True)] | None = None
    odd_name: str | None = msgspec.field(default=None, name="odd-name")
    many_words_here: str | None = None


INT_OR_STRING = {"anyOf": [{"type": "integer"}, {"type": "string"}], "x-kubernetes-int-or-string": True}
NAMED = {"rule": "self.name != ''", "message": "name it"}
INNER = {
    "description": "Something inside.",
    "type": "object",
    "properties": {"name": {"type": "string"}, "size": {"type": "integer"}},
    "required": ["name"],
    "x-kubernetes-validations": [NAMED],
}

FIELDS: dict[str, dict[str, Any]] = {
    "text": {"description": "Some text.", "type": "string", "minLength": 1, "maxLength": 9, "pattern": "^a"},
    "number": {
        "type": "integer",
        "format": "int32",
        "minimum": 1,
        "maximum": 9,
        "exclusiveMaximum": True,
        "default": 3,
    },
    "ratio": {"type": "number", "minimum": 0, "exclusiveMinimum": True},
    "flag": {"type": "boolean"},
    "word": {"type": "string", "enum": ["a", "b"], "default": "a"},
    "colour": {"type": "string", "enum": ["Red", "Blue", "RED"]},
    "share": {
        "description": "How many.",
        **INT_OR_STRING,
        "minimum": 0,
        "maximum": 2**31 - 1,
        "maxLength": 6,
        "pattern": r"^[0-9]+%$",
    },
    "quantity": {
        **INT_OR_STRING,
        "minimum": 0,
        "maxLength": 64,
        "pattern": r"^([0-9]+(\.[0-9]*)?|\.[0-9]+)([KMGTPE]i|[numkMGTPE]|[eE][+-]?[0-9]+)?$",
    },
    "time": {"type": "string", "format": "date-time"},
    "open": {"description": "Anything.", "type": "object", "x-kubernetes-preserve-unknown-fields": True},
    "anything": {"x-kubernetes-preserve-unknown-fields": True},
    "tags": {"type": "array", "items": {"type": "string"}, "maxItems": 4, "x-kubernetes-list-type": "set"},
    "inners": {
        "type": "array",
        "items": INNER,
        "minItems": 1,
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["name"],
    },
    "named": {"type": "object", "additionalProperties": INNER, "maxProperties": 7},
    "labels": {"type": "object", "additionalProperties": {"type": "string"}, "x-kubernetes-map-type": "atomic"},
    "once": {
        **INNER,
        "x-kubernetes-validations": [
            NAMED,
            {"rule": "self == oldSelf", "message": "once is immutable", "reason": "FieldValueForbidden"},
        ],
    },
    "clearable": {"type": "string", "nullable": True},
    "odd-name": {"type": "string"},
    "manyWordsHere": {"type": "string"},
}


@pytest.mark.parametrize("name", FIELDS)
def test_a_field_becomes_the_schema_that_its_annotation_says(name: str) -> None:
    assert schema_of(Everything)["properties"][name] == FIELDS[name]


def test_a_default_stands_beside_the_bounds_of_a_shared_annotation() -> None:
    wait = schema_of(Everything)["properties"]["wait"]
    assert (wait["type"], wait["default"]) == ("string", "5s")
    assert "pattern" in wait


def test_only_fields_without_a_python_default_are_required() -> None:
    assert "required" not in schema_of(Everything)
    assert schema_of(Inner)["required"] == ["name"]


def test_descriptions_come_first_so_that_a_definition_reads_from_the_top() -> None:
    assert all(next(iter(field)) == "description" for field in FIELDS.values() if "description" in field)
    for field in schema_of(Everything)["properties"].values():
        assert "description" not in field or next(iter(field)) == "description"


class Leaf(Model):
    tree: Tree | None = None


class Tree(Model):
    leaves: tuple[Leaf, ...] = ()


class ListInstead(Model):
    items: list[str] = []


class Mixed(Model):
    either: str | Inner | None = None


class MixedEnum(Model):
    which: Literal["a", 1] | None = None


@pytest.mark.parametrize(
    ("model", "said"),
    [
        (Tree, "Tree -> Leaf -> Tree: structural schemas cannot recurse; make the inner field an OpenObject"),
        (ListInstead, "lists are tuple[T, ...], maps dict[str, T]"),
        (Mixed, "Mixed: a union of string, object has no structural schema; use an OpenObject"),
        (MixedEnum, "mixes types; use strings alone"),
    ],
)
def test_what_no_schema_can_express_is_refused_with_the_remedy(model: type[Model], said: str) -> None:
    with pytest.raises(SchemaError) as refused:
        schema_of(model)
    assert said in str(refused.value)


class ToySpec(Model):
    replicas: int | None = None


class ToyStatus(Model):
    replicas: int | None = None
    selector: str | None = None
    conditions: Conditions = ()


class Toy(Resource):
    """A toy."""

    spec: ToySpec
    status: ToyStatus | None = None


TOY = Kind(
    model=Toy,
    group="toys.example.com",
    version="v1",
    plural="toys",
    short_names=("ty",),
    scale=Scale(selector=".status.selector"),
    columns=(Column(name="Wanted", path=".spec.replicas", type="integer", priority=1, description="Toys"), AGE),
)


def test_a_definition_says_how_the_kind_is_served() -> None:
    crd = crd_of(TOY)
    version = crd["spec"]["versions"][0]
    schema = version.pop("schema")["openAPIV3Schema"]
    assert crd == {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "toys.toys.example.com"},
        "spec": {
            "group": "toys.example.com",
            "names": {
                "kind": "Toy",
                "listKind": "ToyList",
                "plural": "toys",
                "singular": "toy",
                "shortNames": ["ty"],
                "categories": ["holdfast"],
            },
            "scope": "Namespaced",
            "versions": [version],
        },
    }
    assert version == {
        "name": "v1",
        "served": True,
        "storage": True,
        "subresources": {
            "status": {},
            "scale": {
                "specReplicasPath": ".spec.replicas",
                "statusReplicasPath": ".status.replicas",
                "labelSelectorPath": ".status.selector",
            },
        },
        "additionalPrinterColumns": [
            {
                "name": "Wanted",
                "type": "integer",
                "jsonPath": ".spec.replicas",
                "description": "Toys",
                "priority": 1,
            },
            {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
        ],
    }
    assert schema["properties"]["metadata"] == {"type": "object"}
    assert schema["required"] == ["spec"]


@pytest.mark.parametrize("kind", kinds.ALL, ids=lambda kind: kind.name)
def test_an_api_server_finds_nothing_to_refuse_in_the_definition_of(kind: Kind) -> None:
    assert crd_problems(crd_of(kind)) == []


@pytest.mark.parametrize("kind", [kind for kind in kinds.ALL if kind.older], ids=lambda kind: kind.name)
def test_an_older_version_is_served_where_objects_are_converted_and_is_well_defined(kind: Kind) -> None:
    assert [each["name"] for each in crd_of(kind)["spec"]["versions"]] == [kind.version]
    definition = crd_of(kind, conversion={"strategy": "None"})
    newest, older = definition["spec"]["versions"]
    assert (newest["storage"], older["storage"], older["deprecated"]) == (True, False, True)
    assert crd_problems(definition) == []


@pytest.mark.parametrize("kind", kinds.ALL, ids=lambda kind: kind.name)
def test_every_kind_has_a_status_of_its_own(kind: Kind) -> None:
    assert crd_of(kind)["spec"]["versions"][0]["subresources"]["status"] == {}


@pytest.mark.parametrize("kind", kinds.ALL, ids=lambda kind: kind.name)
def test_every_field_is_explained_by_a_sentence_unless_it_belongs_to_someone_else(kind: Kind) -> None:
    metadata = f"{kind.name}.metadata: "  # Kubernetes documents it, and allows no other text
    assert list(_unexplained(schema_of(kind.model), kind.name)) == [metadata]


def _unexplained(schema: dict[str, Any], path: str) -> Iterator[str]:
    """The fields of which ``kubectl explain`` would say nothing, or nothing that can be understood alone."""
    if is_open(schema) or is_built_in(schema):
        return
    for name, inner in schema.get("properties", {}).items():
        said = inner.get("description", "")
        if not (said.endswith(".") and len(said.split()) >= 3):
            yield f"{path}.{name}: {said}"
        yield from _unexplained(inner, f"{path}.{name}")
    for part, step in (("items", "[*]"), ("additionalProperties", ".*")):
        if part in schema:
            yield from _unexplained(schema[part], f"{path}{step}")


CLIENT_SIDE_APPLY_LIMIT = 256 * 1024
"""``kubectl apply`` keeps what it applied last as JSON in an annotation, and annotations take no more."""


@pytest.mark.parametrize("kind", kinds.ALL, ids=lambda kind: kind.name)
def test_a_definition_is_small_enough_for_kubectl_apply(kind: Kind) -> None:
    assert len(msgspec.json.encode(crd_of(kind))) < CLIENT_SIDE_APPLY_LIMIT


def test_the_same_types_give_the_same_text_in_every_process() -> None:
    script = (
        "import msgspec, sys; from holdfast import kinds; from holdfast.kinds.crds import crd_of; "
        "sys.stdout.buffer.write(msgspec.json.encode([crd_of(kind) for kind in kinds.ALL]))"
    )
    texts = {
        subprocess.run(
            [sys.executable, "-c", script],
            env={**os.environ, "PYTHONHASHSEED": seed},
            stdout=subprocess.PIPE,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(texts) == 1
