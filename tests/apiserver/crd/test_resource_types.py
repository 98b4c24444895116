"""Definitions: what is refused of them, what becomes of them, and what their types say of objects."""

from __future__ import annotations

import contextlib
import copy
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.places import ROOT

from holdfast import kinds
from holdfast.apiserver.builtins.extensions import DEFINITION
from holdfast.apiserver.crd import compiling, resource_types
from holdfast.apiserver.http.refusals import Undecodable
from holdfast.apiserver.resources import Column, ResourceType, Scale
from holdfast.cli.manifests.documents import read
from holdfast.kinds.crds import crd_of
from holdfast.meta.errors import Invalid
from holdfast.meta.patches.json import apply as json_patched
from holdfast.meta.patches.merge import apply as merged
from holdfast.meta.schemas import walk

ORACLE = ROOT.parent / "shared" / "oracle" / "cases" / "crds.json"
NOW = datetime(2026, 1, 31, 12, tzinfo=UTC)
LATER = datetime(2026, 1, 31, 13, tzinfo=UTC)


def definition(**changes: Any) -> dict[str, Any]:
    """A sound definition; `changes` are values by dotted path, in which numbers are indices and None removes."""
    crd: dict[str, Any] = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"plural": "widgets", "kind": "Widget", "shortNames": ["wd"], "categories": ["all"]},
            "versions": [
                {
                    "name": "v1",
                    "served": True,
                    "storage": True,
                    "schema": {
                        "openAPIV3Schema": {
                            "type": "object",
                            "properties": {
                                "spec": {
                                    "type": "object",
                                    "properties": {"size": {"type": "integer"}, "colour": {"type": "string"}},
                                },
                                "status": {"type": "object", "properties": {"ready": {"type": "integer"}}},
                            },
                        }
                    },
                    "subresources": {
                        "status": {},
                        "scale": {"specReplicasPath": ".spec.size", "statusReplicasPath": ".status.ready"},
                    },
                }
            ],
        },
    }
    for path, value in changes.items():
        place: Any = crd
        *steps, last = path.split("__")
        for step in steps:
            place = place[int(step)] if step.isdigit() else place.setdefault(step, {})
        key = int(last) if last.isdigit() else last
        if value is None:
            del place[key]
        else:
            place[key] = value
    # The checks must also work on a definition without required fields or with values of wrong types.
    with contextlib.suppress(Undecodable, KeyError):
        DEFINITION.settle(crd)
        DEFINITION.default(crd)
    return crd


def with_status(crd: dict[str, Any], *others: dict[str, Any], now: datetime = NOW) -> dict[str, Any]:
    return {**crd, "status": resource_types.accept(crd, others, now=now)}


def second_version(**words: Any) -> list[dict[str, Any]]:
    first = definition()["spec"]["versions"][0]
    return [first, {**copy.deepcopy(first), "name": "v2", "storage": False, **words}]


# --- definitions -------------------------------------------------------------


def test_what_the_author_left_out_is_filled_in() -> None:
    spec = definition()["spec"]
    assert (spec["names"]["singular"], spec["names"]["listKind"]) == ("widget", "WidgetList")
    assert spec["conversion"] == {"strategy": "None"}


VERSION = "spec__versions__0"
PROBLEMS: list[tuple[dict[str, Any], list[str]]] = [
    ({}, []),
    (
        {"metadata__name": "wrong.example.com"},
        ['metadata.name: Invalid value: "wrong.example.com": must be spec.names.plural+"."+spec.group'],
    ),
    ({"spec__scope": None}, ["spec.scope: Required value"]),
    (
        {"spec__scope": "Galaxy"},
        ['spec.scope: Unsupported value: "Galaxy": supported values: "Cluster", "Namespaced"'],
    ),
    (
        {"spec__group": "example", "metadata__name": "widgets.example"},
        ['spec.group: Invalid value: "example": should be a domain with at least one dot'],
    ),
    (
        {"spec__names__kind": None},
        [f"spec.names.{name}: Required value" for name in ("kind", "listKind", "singular")],
    ),
    (
        {"spec__names__listKind": "Widget"},
        ['spec.names.listKind: Invalid value: "Widget": kind and listKind may not be the same'],
    ),
    ({f"{VERSION}__schema": None}, ["spec.versions[0].schema.openAPIV3Schema: Required value: schemas are required"]),
    (
        {f"{VERSION}__storage": False},
        ["spec.versions: Invalid value: must have exactly one version marked as storage version"],
    ),
    ({f"{VERSION}__served": None}, ["spec.versions[0].served: Required value"]),
    (
        {f"{VERSION}__schema__openAPIV3Schema": {"properties": {}}},
        ["spec.validation.openAPIV3Schema.type: Required value: must not be empty at the root"],
    ),
    (
        {"spec__versions": second_version(schema={"openAPIV3Schema": {"type": "string"}})},
        ['spec.versions[1].schema.openAPIV3Schema.type: Invalid value: "string": must be object at the root'],
    ),
    (
        {"spec__versions": second_version(name="v1")},
        ["spec.versions: Invalid value: must contain unique version names"],
    ),
    (
        {f"{VERSION}__subresources__scale__specReplicasPath": ".status.size"},
        [
            (
                'spec.subresources.scale.specReplicasPath: Invalid value: ".status.size": '
                "should be a json path under .spec"
            )
        ],
    ),
    (
        {f"{VERSION}__additionalPrinterColumns": [{"name": "A", "type": "text", "jsonPath": "spec.a"}]},
        [
            (
                'spec.additionalPrinterColumns[0].type: Invalid value: "text": '
                "must be one of boolean,date,integer,number,string"
            ),
            (
                'spec.additionalPrinterColumns[0].JSONPath: Invalid value: "spec.a": '
                "must be a simple json path starting with ."
            ),
        ],
    ),
    (
        {f"{VERSION}__selectableFields": [{"jsonPath": ".spec.nope"}, {"jsonPath": ".spec"}]},
        [
            (
                'spec.selectableFields[0].jsonPath: Invalid value: ".spec.nope": '
                "is an invalid path: does not refer to a valid field"
            ),
            (
                'spec.selectableFields[1].jsonPath: Invalid value: ".spec": must point to a field of type string, '
                "boolean or integer. Enum string fields and strings with formats are allowed."
            ),
        ],
    ),
    (
        {"spec__conversion": {"strategy": "Webhook", "webhook": {}}},
        [
            "spec.conversion.webhook.clientConfig: Required value: required when strategy is set to Webhook",
            "spec.conversion.webhook.conversionReviewVersions: Required value",
        ],
    ),
    (
        {
            "spec__conversion": {
                "strategy": "Webhook",
                "webhook": {
                    "clientConfig": {"url": "https://a/", "service": {"name": "a", "namespace": "b"}},
                    "conversionReviewVersions": ["v9"],
                },
            }
        },
        [
            "spec.conversion.webhook.clientConfig: Required value: exactly one of url or service is required",
            (
                'spec.conversion.webhook.conversionReviewVersions: Invalid value: ["v9"]: '
                "must include at least one of v1, v1beta1"
            ),
        ],
    ),
    (
        {f"{VERSION}__deprecationWarning": "old"},
        ['spec.versions[0].deprecationWarning: Invalid value: "old": can only be set for deprecated versions'],
    ),
    (
        {"spec__names__shortNames": ["W"]},
        [
            (
                'spec.names.shortNames[0]: Invalid value: "W": a DNS-1035 label must consist of lower case '
                "alphanumeric characters or '-', start with an alphabetic character, "
                "and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', "
                "regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')"
            )
        ],
    ),
    (
        {"spec__versions": "v1"},
        ['spec.versions: Invalid value: "string": spec.versions in body must be of type array: "string"'],
    ),
]


@pytest.mark.parametrize(("changes", "problems"), PROBLEMS)
def test_a_definition_is_refused_in_the_words_of_kubernetes(changes: dict[str, Any], problems: list[str]) -> None:
    assert sorted(str(problem) for problem in resource_types.problems(definition(**changes), None)) == sorted(problems)


def test_unknown_fields_are_kept_by_schemas_and_not_by_definitions() -> None:
    (problem,) = resource_types.problems(definition(spec__preserveUnknownFields=True), None)
    assert problem.field == "spec.preserveUnknownFields"


def test_groups_of_kubernetes_own_name_need_an_approval() -> None:
    names = {"spec__group": "my.k8s.io", "metadata__name": "widgets.my.k8s.io"}
    (problem,) = resource_types.problems(definition(**names), None)
    assert problem.field == "metadata.annotations[api-approved.kubernetes.io]"
    approved = {"metadata__annotations": {"api-approved.kubernetes.io": "https://example.com/1"}}
    assert resource_types.problems(definition(**names, **approved), None) == []


UPDATES: list[tuple[dict[str, Any], bool, list[str]]] = [
    ({"spec__scope": "Cluster"}, True, ['spec.scope: Invalid value: "Cluster": field is immutable']),
    ({"spec__scope": "Cluster"}, False, []),
    ({"spec__names__kind": "Gadget"}, True, ['spec.names.kind: Invalid value: "Gadget": field is immutable']),
    (
        {"spec__names__plural": "gadgets", "metadata__name": "gadgets.example.com"},
        False,
        ['spec.names.plural: Invalid value: "gadgets": field is immutable'],
    ),
    ({"spec__names__shortNames": ["other"]}, True, []),
    ({"spec__versions": second_version()}, True, []),
]


@pytest.mark.parametrize(("changes", "served", "problems"), UPDATES)
def test_what_objects_are_kept_under_cannot_change(changes: dict[str, Any], served: bool, problems: list[str]) -> None:
    old = definition()
    old = with_status(old) if served else old
    assert [str(problem) for problem in resource_types.problems(definition(**changes), old)] == problems


def test_a_version_that_objects_are_stored_in_stays() -> None:
    old = with_status(definition())
    new = {**definition(spec__versions__0__name="v2"), "status": old["status"]}
    (problem,) = resource_types.problems(new, old)
    assert problem.field == "status.storedVersions[0]"
    assert resource_types.accept(new, (), now=NOW)["storedVersions"] == ["v1", "v2"]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 2) | st.sampled_from(["", "a", "v1", "object", ".spec", "Namespaced"]),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(st.sampled_from(["name", "schema", "openAPIV3Schema", "type", "scale"]), inner, max_size=3)
    ),
    max_leaves=6,
)
PLACES = [
    "spec", "metadata", "spec__names", "spec__names__kind", "spec__names__shortNames", "spec__versions", VERSION,
    f"{VERSION}__name", f"{VERSION}__schema", f"{VERSION}__schema__openAPIV3Schema", f"{VERSION}__subresources",
    f"{VERSION}__subresources__scale", f"{VERSION}__additionalPrinterColumns", f"{VERSION}__selectableFields",
    "spec__conversion", "spec__group", "spec__scope", f"{VERSION}__served",
]  # fmt: skip


@given(st.sampled_from(PLACES), JSON.filter(lambda value: value is not None))
def test_no_definition_surprises_the_checks(place: str, value: Any) -> None:
    crd = definition(**{place: value})
    for old in (None, definition()):
        problems = resource_types.problems(crd, old)
        assert all(map(str, problems))
    if not problems:
        assert resource_types.types_of(with_status(crd))


# --- status ------------------------------------------------------------------


def test_names_that_no_other_definition_has_are_accepted_at_once() -> None:
    assert resource_types.accept(definition(), (), now=NOW) == {
        "conditions": [
            {
                "type": "NamesAccepted",
                "status": "True",
                "lastTransitionTime": "2026-01-31T12:00:00Z",
                "reason": "NoConflicts",
                "message": "no conflicts found",
            },
            {
                "type": "Established",
                "status": "True",
                "lastTransitionTime": "2026-01-31T12:00:00Z",
                "reason": "InitialNamesAccepted",
                "message": "the initial names have been accepted",
            },
        ],
        "acceptedNames": {
            "plural": "widgets",
            "singular": "widget",
            "shortNames": ["wd"],
            "kind": "Widget",
            "listKind": "WidgetList",
            "categories": ["all"],
        },
        "storedVersions": ["v1"],
    }


def test_a_status_that_stays_keeps_its_times() -> None:
    crd = with_status(definition())
    assert resource_types.accept(crd, (), now=LATER) == crd["status"]


CONFLICTS: list[tuple[dict[str, Any], str, str]] = [
    ({"spec__names__shortNames": ["wd", "ga"]}, "ShortNamesConflict", '"wd" is already in use'),
    ({"spec__names__singular": "widget"}, "SingularConflict", '"widget" is already in use'),
    ({"spec__names__kind": "Widget"}, "KindConflict", '"Widget" is already in use'),
    ({"spec__names__shortNames": ["wd", "widgets"]}, "ShortNamesConflict",
     '["wd" is already in use, "widgets" is already in use]'),
]  # fmt: skip


@pytest.mark.parametrize(("changes", "reason", "message"), CONFLICTS)
def test_names_of_another_definition_are_not_accepted(changes: dict[str, Any], reason: str, message: str) -> None:
    own = {
        "metadata__name": "gadgets.example.com",
        "spec__names": {
            "plural": "gadgets",
            "singular": "gadget",
            "kind": "Gadget",
            "listKind": "GadgetList",
            "shortNames": ["ga"],
        },
    }
    crd = definition(**own, **changes)
    status = resource_types.accept(crd, [with_status(definition())], now=NOW)
    named, established = status["conditions"]
    assert (named["status"], named["reason"], named["message"]) == ("False", reason, message)
    assert (established["status"], established["reason"]) == ("False", "NotAccepted")
    assert not resource_types.is_established({**crd, "status": status})


def test_another_group_may_have_the_same_names() -> None:
    other = definition(spec__group="other.com", metadata__name="widgets.other.com")
    assert resource_types.is_established(with_status(definition(), with_status(other)))


def test_what_was_served_goes_on_under_the_names_that_it_had() -> None:
    served = with_status(definition())
    changed = {**definition(spec__names__shortNames=["taken"]), "status": served["status"]}
    taken = with_status(definition(metadata__name="takens.example.com", spec__names={"plural": "taken", "kind": "T"}))
    status = resource_types.accept(changed, [taken], now=LATER)
    assert resource_types.is_established({**changed, "status": status})
    assert status["acceptedNames"]["shortNames"] == ["wd"]


def test_a_definition_that_goes_waits_for_its_objects() -> None:
    crd = with_status(definition())
    resource_types.begin_deletion(crd, now=LATER)
    resource_types.begin_deletion(crd, now=LATER)
    assert crd["metadata"]["finalizers"] == [resource_types.FINALIZER]
    *_, terminating = crd["status"]["conditions"]
    assert (terminating["type"], terminating["reason"]) == ("Terminating", "InstanceDeletionPending")
    assert [each["type"] for each in resource_types.accept(crd, (), now=LATER)["conditions"]] == [
        "NamesAccepted",
        "Established",
        "Terminating",
    ]


# --- resource types ----------------------------------------------------------


def test_each_served_version_is_a_resource_type() -> None:
    columns = [{"name": "Size", "type": "integer", "jsonPath": ".spec.size", "priority": 1}]
    versions = second_version(additionalPrinterColumns=columns, selectableFields=[{"jsonPath": ".spec.colour"}])
    versions.append({**versions[0], "name": "v3", "served": False, "storage": False})
    versions[1]["deprecated"] = True
    first, second = resource_types.types_of(with_status(definition(spec__versions=versions)))
    assert (first.api_version, first.kind, first.plural, first.singular) == (
        "example.com/v1", "Widget", "widgets", "widget",
    )  # fmt: skip
    assert (first.custom, first.prune, first.status, first.namespaced) == (True, True, True, True)
    assert first.scale == Scale(spec=".spec.size", status=".status.ready", selector=None)
    assert (first.short_names, first.categories, first.list_kind) == (("wd",), ("all",), "WidgetList")
    assert second.columns == (Column(name="Size", value=".spec.size", type="integer", priority=1),)
    assert (second.fields, second.storage_version) == (("spec.colour",), "v1")
    assert second.deprecation == "example.com/v2 Widget is deprecated"


def test_the_numbers_of_a_scale_must_be_numbers() -> None:
    (kind,) = resource_types.types_of(
        with_status(definition(spec__versions__0__schema__openAPIV3Schema={"type": "object"}))
    )
    assert [str(problem) for problem in kind.validate({"spec": {"size": -1}, "status": 3}, None)] == [
        ".spec.size: Invalid value: -1: should be a non-negative integer",
        (
            ".status.ready: Invalid value: 0: .status.ready accessor error: "
            "3 is of the type int64, expected map[string]interface{}"
        ),
    ]
    (problem,) = kind.validate({"spec": {"size": 2**31}}, None)
    assert problem.detail == "should be less than or equal to 2147483647"


@pytest.mark.parametrize("kind", kinds.ALL, ids=lambda kind: kind.name)
def test_the_definitions_of_our_kinds_are_accepted(kind: Any) -> None:
    crd = json.loads(json.dumps(crd_of(kind)))
    DEFINITION.settle(crd)
    DEFINITION.default(crd)
    assert [str(problem) for problem in resource_types.problems(crd, None)] == []
    assert resource_types.types_of(with_status(crd))


EXAMPLES = [
    (path, document.translated().value)
    for path in sorted((ROOT / "examples").rglob("*.yaml"))
    for document in read(str(path))
    if kinds.by_name(document.value["kind"]) is not None
]


@pytest.mark.parametrize(("path", "document"), EXAMPLES, ids=lambda value: getattr(value, "name", ""))
def test_every_example_is_accepted(path: Path, document: dict[str, Any]) -> None:
    kind = kinds.find(document["apiVersion"], document["kind"])
    assert kind is not None
    (served,) = resource_types.types_of(with_status(json.loads(json.dumps(crd_of(kind)))))
    schema, obj = walk.compile(served.schema), copy.deepcopy(document)
    assert schema.prune(obj) == []
    schema.default(obj)
    assert [str(problem) for problem in served.validate(obj, None)] == []


# --- what a real API server answered -----------------------------------------


def stages() -> dict[str, list[dict[str, Any]]]:
    if not ORACLE.exists():
        return {}
    return {case["name"]: case["steps"] for case in json.loads(ORACLE.read_text())}


def refusal(kind: str, group: str, name: str, problems: list[Any]) -> dict[str, Any]:
    return Invalid.of(kind, name, group=group, problems=problems).to_status()


def widgets() -> ResourceType:
    crd = copy.deepcopy(stages()["install, discover"][0]["request"]["body"])
    DEFINITION.settle(crd)
    DEFINITION.default(crd)
    assert resource_types.problems(crd, None) == []
    (kind,) = resource_types.types_of(with_status(crd))
    return kind


@pytest.mark.skipif(not ORACLE.exists(), reason="the answers of a real API server are not here")
@pytest.mark.parametrize("step", stages().get("bad definitions", []))
def test_bad_definitions_are_answered_as_by_a_real_api_server(step: dict[str, Any]) -> None:
    crd = copy.deepcopy(step["request"]["body"])
    DEFINITION.settle(crd)
    DEFINITION.default(crd)
    answer = refusal(
        "CustomResourceDefinition", "apiextensions.k8s.io", crd["metadata"]["name"], resource_types.problems(crd, None)
    )
    body = step["answer"]["body"]
    if "details.causes.0.field" in body:
        assert answer["details"]["causes"][0]["field"] == body["details.causes.0.field"]
    else:
        assert answer == body


@pytest.mark.skipif(not ORACLE.exists(), reason="the answers of a real API server are not here")
@pytest.mark.parametrize("scenario", ["validation", "defaulting and pruning", "transition rules", "custom patches"])
def test_objects_are_answered_as_by_a_real_api_server(scenario: str) -> None:
    kind = widgets()
    schema = walk.compile(kind.schema)
    stored: dict[str, dict[str, Any]] = {}
    tried = 0
    for step in stages()[scenario]:
        request, answer = step["request"], step["answer"]
        media = request.get("headers", {}).get("Content-Type", "")
        if request["method"] == "POST":
            obj, old = copy.deepcopy(request["body"]), None
            name = obj["metadata"]["name"]
        elif request["method"] == "PATCH" and media.startswith(("application/merge-patch", "application/json-patch")):
            name = request["path"].rpartition("/")[2]
            old = stored[name]
            patch = merged if "merge" in media else json_patched
            obj = patch(copy.deepcopy(old), request["body"])
        else:
            continue
        tried += 1
        unknown = schema.prune(obj)
        if answer["code"] == 400:
            said = ", ".join(f'unknown field "{path}"' for path in unknown)
            assert answer["body"]["message"].endswith(f"strict decoding error: {said}")
            continue
        schema.default(obj)
        problems = kind.validate(obj, old)
        if answer["code"] == 422:
            assert refusal(kind.kind, kind.group, name, problems) == answer["body"]
        else:
            assert [str(problem) for problem in problems] == []
            assert obj["spec"] == answer["body"].get("spec", obj["spec"])
            stored[name] = obj
    assert tried > 1


def test_equal_schemas_are_compiled_once_and_others_apart() -> None:
    spec = {"type": "object", "properties": {"a": {"type": "string"}}}
    schema: dict[str, Any] = {"type": "object", "properties": {"spec": spec}}
    first = compiling.compiled(schema)
    assert compiling.compiled(copy.deepcopy(schema)) is first
    other = copy.deepcopy(schema)
    del other["properties"]["spec"]["properties"]["a"]
    assert compiling.compiled(other) is not first
    assert compiling.compiled(other).unknown({"spec": {"a": ""}}) == ["spec.a"]
    assert compiling.compiled(schema).unknown({"spec": {"a": ""}}) == []
