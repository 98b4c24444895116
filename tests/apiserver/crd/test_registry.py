"""Custom resource definitions: how kinds come, change and go, and that what is served follows at once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.apiserver.servers import DEFINITIONS, NAMESPACES, Api, seen

from holdfast.apiserver.storage.store import Window

Object = dict[str, Any]

WIDGETS = "/apis/example.com/v1/namespaces/default/widgets"
W = f"{WIDGETS}/w"
DEFINITION = f"{DEFINITIONS}/widgets.example.com"

SPEC: Object = {
    "type": "object",
    "required": ["size"],
    "properties": {
        "size": {"type": "integer", "minimum": 1, "maximum": 10},
        "colour": {"type": "string", "default": "red", "enum": ["red", "blue"]},
        "fixed": {"type": "string", "x-kubernetes-validations": [{"rule": "self == oldSelf", "message": "stays"}]},
        "tags": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
    },
}
STATUS: Object = {"type": "object", "properties": {"replicas": {"type": "integer"}, "selector": {"type": "string"}}}


def version(name: str = "v1", *, storage: bool = True, served: bool = True, **rest: Any) -> Object:
    spec = rest.pop("spec", SPEC)
    schema = {"type": "object", "properties": {"spec": spec, "status": STATUS}}
    return {"name": name, "served": served, "storage": storage, "schema": {"openAPIV3Schema": schema}, **rest}


def definition(
    *versions: Object, plural: str = "widgets", kind: str = "Widget", scope: str = "Namespaced", **names: Any
) -> Object:
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.example.com"},
        "spec": {
            "group": "example.com",
            "scope": scope,
            "names": {"plural": plural, "kind": kind, **names},
            "versions": list(versions or (version(),)),
        },
    }


def widget(name: str = "w", api_version: str = "v1", metadata: Object | None = None, **spec: Any) -> Object:
    meta = {"name": name, **(metadata or {})}
    return {
        "apiVersion": f"example.com/{api_version}",
        "kind": "Widget",
        "metadata": meta,
        "spec": {"size": 3, **spec},
    }


def install(api: Api, *versions: Object, **options: Any) -> Object:
    made = api.post(DEFINITIONS, definition(*versions, **options)).ok
    return dict(api.get(f"{DEFINITIONS}/{made['metadata']['name']}").ok)


def conditions(obj: Object) -> dict[str, str]:
    return {each["type"]: each["status"] for each in obj["status"]["conditions"]}


def resources(api: Api, group_version: str = "example.com/v1") -> list[str]:
    answer = api.get(f"/apis/{group_version}")
    return [each["name"] for each in answer.ok["resources"]] if answer.status == 200 else []


# Install.


def test_a_definition_is_served_as_soon_as_it_is_made(api: Api) -> None:
    made = install(api, shortNames=["wd"], categories=["all"])
    assert conditions(made) == {"NamesAccepted": "True", "Established": "True"}
    assert made["status"]["storedVersions"] == ["v1"]
    assert made["status"]["acceptedNames"] == {
        "plural": "widgets",
        "singular": "widget",
        "kind": "Widget",
        "listKind": "WidgetList",
        "shortNames": ["wd"],
        "categories": ["all"],
    }
    assert resources(api) == ["widgets"]
    assert (
        "/apis/example.com/v1/namespaces/{namespace}/widgets" in api.get("/openapi/v3/apis/example.com/v1").ok["paths"]
    )
    assert "example.com" in [each["name"] for each in api.get("/apis").ok["groups"]]
    listed = api.get(WIDGETS).ok
    assert (listed["kind"], listed["apiVersion"], listed["items"]) == ("WidgetList", "example.com/v1", [])


@pytest.mark.parametrize(
    "accept",
    [
        "application/json;as=Table;g=meta.k8s.io;v=v1",
        "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1",
        "application/yaml",
    ],
)
def test_a_definition_is_served_in_whatever_form_its_response_is(api: Api, accept: str) -> None:
    api.post(DEFINITIONS, definition(), headers={"accept": accept}).done()
    api.post(WIDGETS, widget()).done()


def test_objects_are_pruned_defaulted_and_judged(api: Api) -> None:
    install(api)
    answer = api.post(WIDGETS, widget(junk=1))
    assert answer.ok["spec"] == {"size": 3, "colour": "red"}
    assert answer.ok["metadata"]["generation"] == 1
    assert answer.warnings == ('unknown field "spec.junk"',)
    strict = api.post(f"{WIDGETS}?fieldValidation=Strict", widget("x", junk=1))
    assert strict.refusal == (400, "BadRequest")
    bad = api.post(WIDGETS, widget("x", size=11, colour="green"))
    assert bad.refusal == (422, "Invalid")
    assert {field for field, _ in bad.causes} >= {"spec.size", "spec.colour"}


@pytest.mark.parametrize("missing", ["kind", "apiVersion"])
def test_an_object_of_a_custom_kind_says_what_it_is(api: Api, missing: str) -> None:
    install(api)
    answer = api.post(WIDGETS, {name: value for name, value in widget().items() if name != missing})
    assert answer.refusal == (400, "BadRequest")
    assert "is missing" in answer.message


def test_the_generation_counts_a_status_that_is_not_written_apart(api: Api) -> None:
    install(api)
    api.post(WIDGETS, widget()).done()
    assert api.patch(W, {"status": {"replicas": 1}}).ok["metadata"]["generation"] == 2
    assert api.patch(W, {"metadata": {"labels": {"l": "1"}}}).ok["metadata"]["generation"] == 2


def test_an_unqualified_finalizer_warns(api: Api) -> None:
    install(api)
    made = api.post(WIDGETS, widget(metadata={"finalizers": ["hold"]}))
    assert made.warnings[0].startswith('metadata.finalizers: "hold": prefer a domain-qualified finalizer name')
    assert api.patch(W, {"spec": {"size": 4}}).warnings == ()


def test_a_field_of_ones_own_called_finalizers_holds_nothing(api: Api) -> None:
    install(api, version(spec={"type": "object", "x-kubernetes-preserve-unknown-fields": True}))
    api.post(WIDGETS, widget(finalizers=["x"])).done()
    api.delete(W).done()
    assert api.get(W).refusal == (404, "NotFound")


def test_transition_rules_compare_with_what_was(api: Api) -> None:
    install(api)
    api.post(WIDGETS, widget(fixed="one")).done()
    assert api.patch(W, {"spec": {"fixed": "two"}}).refusal == (422, "Invalid")
    api.patch(W, {"spec": {"size": 4}}).done()


def test_an_update_of_a_custom_object_wants_the_version(api: Api) -> None:
    install(api)
    made = api.post(WIDGETS, widget()).ok
    answer = api.put(W, widget(size=5))
    assert answer.refusal == (422, "Invalid")
    problem = "metadata.resourceVersion: Invalid value: 0: must be specified for an update"
    assert answer.message == f'widgets.example.com "w" is invalid: {problem}'
    assert api.put(W, {**made, "spec": {"size": 5}}).ok["metadata"]["generation"] == 2


def test_custom_kinds_have_the_patches_of_custom_kinds(api: Api) -> None:
    install(api)
    api.post(WIDGETS, widget(tags=["a"])).done()
    assert api.patch(W, {"spec": {"size": 4}}, "strategic").refusal == (415, "UnsupportedMediaType")
    assert api.patch(W, [{"op": "add", "path": "/spec/tags/-", "value": "b"}], "json").ok["spec"]["tags"] == ["a", "b"]
    tags = widget(tags=["c"])
    del tags["spec"]["size"]
    assert api.apply(W, tags, "other").ok["spec"]["tags"] == ["a", "b", "c"]


def test_status_and_scale_are_there_where_they_are_asked_for(api: Api) -> None:
    plain = install(api)
    assert plain["spec"]["versions"][0].get("subresources") is None
    made = api.post(WIDGETS, {**widget(), "status": {"replicas": 2}}).ok
    assert made["status"] == {"replicas": 2}  # a field like any other
    assert api.get(f"{W}/status").refusal == (404, "NotFound")
    scale = {
        "specReplicasPath": ".spec.size",
        "statusReplicasPath": ".status.replicas",
        "labelSelectorPath": ".status.selector",
    }
    changed = {**plain, "spec": definition(version(subresources={"status": {}, "scale": scale}))["spec"]}
    api.put(DEFINITION, changed).done()
    assert resources(api) == ["widgets", "widgets/status", "widgets/scale"]
    api.patch(W, {"status": {"replicas": 9}, "spec": {"size": 4}}).done()
    api.patch(
        f"{W}/status", {"status": {"selector": "a=b"}, "spec": {"size": 9}, "metadata": {"labels": {"l": "1"}}}
    ).done()
    after = api.get(W).ok
    assert (after["spec"]["size"], after["status"]) == (4, {"replicas": 2, "selector": "a=b"})
    assert "labels" not in after["metadata"]
    assert api.get(f"{W}/scale").ok["status"] == {"replicas": 2, "selector": "a=b"}
    assert api.patch(f"{W}/scale", {"spec": {"replicas": 7}}).ok["spec"] == {"replicas": 7}
    assert api.patch(f"{W}/scale", {"spec": {"replicas": 70}}).refusal == (422, "Invalid")
    assert api.get(W).ok["spec"]["size"] == 7


def test_columns_of_a_definition_are_those_of_its_table(api: Api) -> None:
    columns = [{"name": "Size", "type": "integer", "jsonPath": ".spec.size"}]
    install(api, version(additionalPrinterColumns=columns))
    api.post(WIDGETS, widget()).done()
    table = api.get(WIDGETS, headers={"accept": "application/json;as=Table;g=meta.k8s.io;v=v1"}).ok
    assert [each["name"] for each in table["columnDefinitions"]] == ["Name", "Size"]
    assert table["rows"][0]["cells"] == ["w", 3]


def test_a_kind_without_namespaces_is_served_without(api: Api) -> None:
    install(api, scope="Cluster")
    api.post("/apis/example.com/v1/widgets", widget()).done()
    assert api.get("/apis/example.com/v1/widgets/w").ok["metadata"].get("namespace") is None
    for method in ("GET", "POST"):
        assert api.ask(method, WIDGETS, widget("x")).status == 404
    assert api.get(W).status == 404


# Several versions.


def test_one_object_is_seen_in_all_served_versions(api: Api) -> None:
    install(api, version("v1"), version("v1beta1", storage=False), version("v1alpha1", storage=False, served=False))
    assert [resources(api, f"example.com/{name}") for name in ("v1", "v1beta1", "v1alpha1")] == [["widgets"]] * 2 + [[]]
    beta = WIDGETS.replace("/v1/", "/v1beta1/")
    made = api.post(beta, widget(api_version="v1beta1")).ok
    assert made["apiVersion"] == "example.com/v1beta1"
    assert api.get(W).ok["apiVersion"] == "example.com/v1"
    assert api.get(f"{beta}/w").ok == made
    assert [each["apiVersion"] for each in api.get(beta).ok["items"]] == ["example.com/v1beta1"]
    (event,) = api.watch(f"{beta}?timeoutSeconds=1").rest()
    assert event["object"] == made
    assert api.post(beta, widget("x")).refusal == (400, "BadRequest")
    assert api.get(WIDGETS.replace("/v1/", "/v1alpha1/")).status == 404
    preferred = api.get("/apis/example.com").ok["preferredVersion"]["version"]
    assert preferred == "v1"


def test_a_deprecated_version_warns(api: Api) -> None:
    install(api, version(deprecated=True, deprecationWarning="use v2"))
    assert api.post(WIDGETS, widget()).warnings == ("use v2",)
    assert api.get(WIDGETS).warnings == ("use v2",)


def test_a_version_that_was_stored_stays_defined(api: Api) -> None:
    made = install(api, version("v1"), version("v2", storage=False))
    moved = {**made, "spec": definition(version("v1", storage=False), version("v2"))["spec"]}
    assert api.put(DEFINITION, moved).status == 200
    after = api.get(DEFINITION).ok
    assert after["status"]["storedVersions"] == ["v1", "v2"]
    dropped = api.put(DEFINITION, {**after, "spec": definition(version("v2"))["spec"]})
    assert dropped.refusal == (422, "Invalid")
    assert dropped.causes == [("status.storedVersions[0]", "FieldValueInvalid")]
    api.patch(f"{DEFINITION}/status", {"status": {"storedVersions": ["v2"]}}).done()
    fresh = api.get(DEFINITION).ok
    assert api.put(DEFINITION, {**fresh, "spec": definition(version("v2"))["spec"]}).status == 200
    assert resources(api) == []


# Changes.


def test_a_change_of_the_schema_holds_for_the_next_write(api: Api) -> None:
    made = install(api)
    api.post(WIDGETS, widget(size=9)).done()
    smaller = {
        **SPEC,
        "properties": {**SPEC["properties"], "size": {"type": "integer", "maximum": 5}, "new": {"type": "string"}},
    }
    api.put(DEFINITION, {**made, "spec": definition(version(spec=smaller))["spec"]}).done()
    assert api.post(WIDGETS, widget("x", size=9)).refusal == (422, "Invalid")
    assert api.post(WIDGETS, widget("y", new="field")).ok["spec"]["new"] == "field"
    assert api.get(W).ok["spec"]["size"] == 9
    # What was valid and is left alone stays: only what changes is judged anew.
    assert api.patch(W, {"metadata": {"labels": {"l": "1"}}}).status == 200


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"scope": "Cluster"}, "spec.scope"),
        ({"group": "other.com"}, "spec.group"),
        ({"versions": []}, "spec.versions"),
    ],
)
def test_some_of_a_definition_stays_as_it_is(api: Api, change: Object, field: str) -> None:
    made = install(api)
    answer = api.put(DEFINITION, {**made, "spec": {**made["spec"], **change}})
    assert answer.refusal == (422, "Invalid")
    assert field in {name for name, _ in answer.causes}
    assert resources(api) == ["widgets"]


def test_a_definition_that_is_none_serves_nothing(api: Api) -> None:
    bad = definition(version(spec={"type": "object", "properties": {"a": {}}}))
    assert api.post(DEFINITIONS, bad).refusal == (422, "Invalid")
    assert api.post(DEFINITIONS, {"metadata": {"name": "x"}}).refusal == (422, "Invalid")
    assert resources(api) == []


def test_of_two_who_want_a_name_the_second_waits_for_it(api: Api) -> None:
    install(api, shortNames=["wd"])
    second = install(api, plural="others", kind="Other", shortNames=["wd"])
    assert conditions(second) == {"NamesAccepted": "False", "Established": "False"}
    assert resources(api) == ["widgets"]
    third = install(api, plural="thirds", kind="Widget")
    assert conditions(third)["NamesAccepted"] == "False"
    api.delete(DEFINITION).done()
    api.until(lambda: resources(api) == ["others"])
    assert conditions(api.get(f"{DEFINITIONS}/others.example.com").ok)["Established"] == "True"


def test_a_definition_of_a_kind_that_is_built_in_does_not_hide_it(api: Api) -> None:
    other = definition(plural="configmaps", kind="ConfigMap")
    api.post(DEFINITIONS, other).done()
    assert api.get("/api/v1/namespaces/default/configmaps").ok["apiVersion"] == "v1"


# Removal.


def test_a_definition_takes_its_objects_with_it(api: Api) -> None:
    install(api)
    for name in ("a", "b"):
        api.post(WIDGETS, widget(name)).done()
    watch = api.watch(WIDGETS)
    assert seen([watch.next(), watch.next()]) == [("ADDED", "a"), ("ADDED", "b")]
    going = api.delete(DEFINITION).ok
    assert conditions(going)["Terminating"] == "True"
    assert going["metadata"]["finalizers"] == ["customresourcecleanup.apiextensions.k8s.io"]
    api.until(
        lambda: (
            api.server.store.get("apiextensions.k8s.io/customresourcedefinitions", "", "widgets.example.com") is None
        )
    )
    assert api.get(DEFINITION).refusal == (404, "NotFound")
    assert api.get(WIDGETS).status == 404
    assert seen([watch.next(), watch.next()]) == [("DELETED", "a"), ("DELETED", "b")]
    assert api.server.store.count("example.com/widgets") == 0
    install(api)
    assert api.names(WIDGETS) == []


def test_a_definition_waits_for_the_finalizers_of_its_objects(api: Api) -> None:
    install(api)
    api.post(WIDGETS, widget(metadata={"finalizers": ["example.com/f"]})).done()
    api.delete(DEFINITION).done()
    api.until(lambda: "deletionTimestamp" in api.get(W).ok["metadata"])
    refused = api.post(WIDGETS, widget("late"))
    assert refused.refusal == (405, "MethodNotAllowed")
    assert refused.message == "create not allowed while custom resource definition is terminating"
    assert api.get(DEFINITION).status == 200
    api.patch(W, {"metadata": {"finalizers": None}}).done()
    api.until(lambda: api.get(DEFINITION).status == 404)
    assert api.get(WIDGETS).status == 404


def test_a_removal_of_very_many_objects_comes_to_its_end(api: Api) -> None:
    install(api)
    api.server.store._history.window = Window(events=10)
    for number in range(40):
        finalizers = {"finalizers": ["example.com/f"]} if number == 0 else {}
        api.post(WIDGETS, widget(f"w{number}", metadata=finalizers)).done()
    api.delete(DEFINITION).done()
    api.until(lambda: api.server.store.count("example.com/widgets") == 1)
    api.patch(f"{WIDGETS}/w0", {"metadata": {"finalizers": None}}).done()
    api.until(lambda: api.get(DEFINITION).status == 404)


# Restart.


def test_definitions_and_their_objects_outlive_the_server(tmp_path: Path) -> None:
    api = Api(tmp_path / "state")
    install(api)
    made = api.post(WIDGETS, widget()).ok
    api.restart()
    assert api.get(W).ok == made
    assert resources(api) == ["widgets"]
    api.patch(W, {"metadata": {"finalizers": ["example.com/f"]}}).done()
    api.delete(DEFINITION).done()
    api.restart()
    api.until(lambda: "deletionTimestamp" in api.get(W).ok["metadata"])
    api.patch(W, {"metadata": {"finalizers": None}}).done()
    api.until(lambda: api.get(DEFINITION).status == 404)
    api.close()


def test_objects_live_in_their_namespace(api: Api) -> None:
    install(api)
    api.post(NAMESPACES, {"metadata": {"name": "team"}}).done()
    team = WIDGETS.replace("/default/", "/team/")
    api.post(team, widget()).done()
    assert api.names(WIDGETS) == []
    across = api.get("/apis/example.com/v1/widgets").ok["items"]
    assert [each["metadata"]["namespace"] for each in across] == ["team"]
    assert api.get("/apis/example.com/v1/widgets/w").status == 404
    assert api.post(WIDGETS.replace("/default/", "/nowhere/"), widget()).refusal == (404, "NotFound")
