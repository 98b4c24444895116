"""Create, read, update, patch, apply and delete, as any client asks for them."""

from __future__ import annotations

import re
from typing import Any

import pytest
from tests.apiserver.servers import (
    CONFIGMAPS,
    DEFINITIONS,
    DEPLOYMENTS,
    JOB,
    NAMESPACES,
    PODS,
    SECRETS,
    Api,
    collection,
    configmap,
    deployment,
    pod,
    valid,
)

from holdfast.apiserver.builtins import BUILTINS
from holdfast.apiserver.resources import ResourceType

A = f"{CONFIGMAPS}/a"
MERGE = {"content-type": "application/merge-patch+json"}
LEASES = "/apis/coordination.k8s.io/v1/namespaces/default/leases"


# Create.


def test_a_new_object_gets_what_only_the_server_can_give(api: Api) -> None:
    meta = api.post(CONFIGMAPS, configmap("a", data={"k": "v"})).ok["metadata"]
    assert (meta["name"], meta["namespace"]) == ("a", "default")
    assert re.fullmatch(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", meta["uid"])
    assert meta["creationTimestamp"] == "2030-01-01T00:00:00Z"
    assert int(meta["resourceVersion"]) == api.server.store.revision
    assert [entry["operation"] for entry in meta["managedFields"]] == ["Update"]


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ({"uid": "x", "creationTimestamp": "2001-01-01T00:00:00Z"}, {}),
        ({"deletionTimestamp": "2001-01-01T00:00:00Z", "deletionGracePeriodSeconds": 5}, {}),
        ({"selfLink": "/x"}, {}),
        ({"labels": {"l": "1"}, "annotations": {"a": "2"}}, {"labels": {"l": "1"}, "annotations": {"a": "2"}}),
        ({"finalizers": ["example.com/f"]}, {"finalizers": ["example.com/f"]}),
    ],
)
def test_only_what_clients_own_of_the_metadata_is_taken_from_them(
    api: Api, given: dict[str, Any], kept: dict[str, Any]
) -> None:
    meta = api.post(CONFIGMAPS, configmap("a", metadata=given)).ok["metadata"]
    own = {"name", "namespace", "uid", "resourceVersion", "creationTimestamp", "managedFields"}
    assert {name: value for name, value in meta.items() if name not in own} == kept
    assert meta["uid"] != "x"
    assert meta["creationTimestamp"] == "2030-01-01T00:00:00Z"


def test_a_generated_name_is_the_base_and_five_letters(api: Api) -> None:
    made = [
        api.post(CONFIGMAPS, {"metadata": {"generateName": base}}).ok["metadata"]["name"]
        for base in ("web-", "web-", "x" * 80)
    ]
    assert all(re.fullmatch(r"web-[bcdfghjklmnpqrstvwxz2456789]{5}", name) for name in made[:2])
    assert made[0] != made[1]
    assert len(made[2]) == 63
    named = api.post(CONFIGMAPS, {"metadata": {"generateName": "web-", "name": "own"}}).ok["metadata"]
    assert (named["name"], named["generateName"]) == ("own", "web-")


REFUSED_CREATES: dict[str, tuple[str, Any, tuple[int, str], str]] = {
    "no name": (CONFIGMAPS, {"metadata": {}}, (422, "Invalid"), "name or generateName is required"),
    "no metadata": (CONFIGMAPS, {}, (422, "Invalid"), "name or generateName is required"),
    "a bad name": (CONFIGMAPS, configmap("A_b"), (422, "Invalid"), "RFC 1123 subdomain"),
    "a bad generated name": (CONFIGMAPS, {"metadata": {"generateName": "A_"}}, (422, "Invalid"), "RFC 1123"),
    "another namespace": (
        CONFIGMAPS,
        configmap("a", metadata={"namespace": "other"}),
        (400, "BadRequest"),
        "the namespace of the provided object does not match the namespace sent on the request",
    ),
    "a namespace that is not there": (
        "/api/v1/namespaces/nowhere/configmaps",
        configmap("a"),
        (404, "NotFound"),
        'namespaces "nowhere" not found',
    ),
    "a version": (
        CONFIGMAPS,
        configmap("a", metadata={"resourceVersion": "5"}),
        (500, ""),
        "resourceVersion should not be set on objects to be created",
    ),
    "another kind": (CONFIGMAPS, {**configmap("a"), "kind": "Secret"}, (400, "BadRequest"), "as a ConfigMap"),
    "another version": (CONFIGMAPS, {**configmap("a"), "apiVersion": "v2"}, (400, "BadRequest"), '"v2"'),
    "a kind that is no text": (CONFIGMAPS, {**configmap("a"), "kind": 5}, (400, "BadRequest"), "as a ConfigMap"),
    "a list": (CONFIGMAPS, [], (400, "BadRequest"), "must be of type ConfigMap"),
    "no JSON": (CONFIGMAPS, b"{oops", (400, "BadRequest"), "json parse error"),
    "nothing": (CONFIGMAPS, b"", (400, "BadRequest"), "json parse error"),
    "metadata that is a list": (CONFIGMAPS, {"metadata": []}, (400, "BadRequest"), "metadata"),
    "a name that is a number": (CONFIGMAPS, {"metadata": {"name": 5}}, (400, "BadRequest"), "metadata.name"),
    "labels that are no text": (
        CONFIGMAPS,
        configmap("a", metadata={"labels": {"k": 5}}),
        (400, "BadRequest"),
        "labels",
    ),
    "a bad label": (CONFIGMAPS, configmap("a", metadata={"labels": {"k": "!"}}), (422, "Invalid"), "metadata.labels"),
    "a bad finalizer": (
        CONFIGMAPS,
        configmap("a", metadata={"finalizers": ["no good"]}),
        (422, "Invalid"),
        "metadata.finalizers",
    ),
    "an owner without a uid": (
        CONFIGMAPS,
        configmap("a", metadata={"ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "p"}]}),
        (422, "Invalid"),
        "metadata.ownerReferences[0].uid: Required value: must not be empty",
    ),
    "an owner of no version": (
        CONFIGMAPS,
        configmap("a", metadata={"ownerReferences": [{"apiVersion": "a/b/c", "kind": "K", "name": "n", "uid": "u"}]}),
        (422, "Invalid"),
        'metadata.ownerReferences.apiVersion: Invalid value: "a/b/c": version must not be empty',
    ),
    "an event as an owner": (
        CONFIGMAPS,
        configmap("a", metadata={"ownerReferences": [{"apiVersion": "v1", "kind": "Event", "name": "n", "uid": "u"}]}),
        (422, "Invalid"),
        "/v1, Kind=Event is disallowed from being an owner",
    ),
    "a finalizer without a domain": (
        CONFIGMAPS,
        configmap("a", metadata={"finalizers": ["hold"]}),
        (422, "Invalid"),
        'metadata.finalizers[0]: Invalid value: "hold": name is neither a standard finalizer name nor is it',
    ),
    "finalizers that exclude each other": (
        CONFIGMAPS,
        configmap("a", metadata={"finalizers": ["orphan", "foregroundDeletion"]}),
        (422, "Invalid"),
        "finalizer orphan and foregroundDeletion cannot be both set",
    ),
    "two controllers": (
        CONFIGMAPS,
        configmap(
            "a",
            metadata={
                "ownerReferences": [
                    {"apiVersion": "v1", "kind": "Pod", "name": name, "uid": name, "controller": True}
                    for name in ("p", "q")
                ]
            },
        ),
        (422, "Invalid"),
        'Only one reference can have Controller set to true. Found "true" in references for Pod/p and Pod/q',
    ),
    "too many annotations": (
        CONFIGMAPS,
        configmap("a", metadata={"annotations": {"k": "x" * (256 * 1024)}}),
        (422, "Invalid"),
        "metadata.annotations: Too long",
    ),
    "a name in the path": (A, configmap("a"), (405, "MethodNotAllowed"), "does not allow this method"),
    "no namespace in the path": ("/api/v1/configmaps", configmap("a"), (405, "MethodNotAllowed"), "method"),
    "a resource that is not there": ("/api/v1/namespaces/default/things", {}, (404, "NotFound"), "could not find"),
}


@pytest.mark.parametrize("what", REFUSED_CREATES)
def test_a_create_is_refused_with_the_reason(api: Api, what: str) -> None:
    target, body, refusal, words = REFUSED_CREATES[what]
    answer = api.post(target, body)
    assert answer.refusal == refusal
    assert words in answer.message
    assert api.names(CONFIGMAPS) == []


def test_a_write_whose_response_has_no_served_form_writes_nothing(api: Api) -> None:
    plain = {"accept": "text/plain"}
    assert api.post(CONFIGMAPS, configmap("a"), headers=plain).refusal == (406, "NotAcceptable")
    assert api.get(A).refusal == (404, "NotFound")
    before = api.post(CONFIGMAPS, configmap("a")).version
    assert api.patch(A, {"data": {"k": "v"}}, headers=plain).refusal == (406, "NotAcceptable")
    assert api.put(A, configmap("a", data={"k": "v"}), headers=plain).refusal == (406, "NotAcceptable")
    assert api.get(A).version == before


def test_what_exists_is_not_created_again(api: Api) -> None:
    api.post(CONFIGMAPS, configmap("a")).done()
    for target in (CONFIGMAPS, f"{CONFIGMAPS}?dryRun=All"):
        answer = api.post(target, configmap("a"))
        assert answer.refusal == (409, "AlreadyExists")
        assert answer.message == 'configmaps "a" already exists'
        assert answer.body["details"] == {"name": "a", "kind": "configmaps"}


def test_owners_that_are_named_twice_are_kept_once(api: Api) -> None:
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u"}
    made = api.post(CONFIGMAPS, configmap("a", metadata={"ownerReferences": [owner, owner]}))
    assert made.ok["metadata"]["ownerReferences"] == [owner]
    assert made.warnings[0].startswith(".metadata.ownerReferences contains duplicate entries")
    assert made.warnings[0].endswith("duplicate UID(s) observed: u")


def test_a_namespace_in_an_object_that_has_none_is_dropped(api: Api) -> None:
    made = api.post(NAMESPACES, {"metadata": {"name": "team", "namespace": "default"}}).ok
    assert "namespace" not in made["metadata"]


def test_a_body_may_be_yaml(api: Api) -> None:
    yaml = b"apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\ndata:\n  quoted: '1'\n"
    made = api.post(CONFIGMAPS, yaml, headers={"content-type": "application/yaml"}).ok
    assert made["data"] == {"quoted": "1"}


@pytest.mark.parametrize("kind", ["text/plain", "application/xml", "multipart/form-data; boundary=x"])
def test_a_body_of_another_type_is_unsupported(api: Api, kind: str) -> None:
    answer = api.post(CONFIGMAPS, b"x", headers={"content-type": kind})
    assert answer.refusal == (415, "UnsupportedMediaType")


# Update.


def test_an_update_replaces_the_object_and_counts_the_version(api: Api) -> None:
    first = api.post(CONFIGMAPS, configmap("a", data={"k": "1"}, metadata={"labels": {"l": "1"}})).ok
    second = api.put(A, configmap("a", data={"n": "2"})).ok
    assert second["data"] == {"n": "2"}
    assert "labels" not in second["metadata"]
    assert second["metadata"]["uid"] == first["metadata"]["uid"]
    assert int(second["metadata"]["resourceVersion"]) > int(first["metadata"]["resourceVersion"])
    assert api.get(A).ok == second


def test_an_update_at_an_old_version_conflicts(api: Api) -> None:
    old = api.post(CONFIGMAPS, configmap("a")).version
    api.put(A, configmap("a", data={"k": "1"})).done()
    answer = api.put(A, configmap("a", metadata={"resourceVersion": old}))
    assert answer.refusal == (409, "Conflict")
    assert "the object has been modified; please apply your changes to the latest version" in answer.message


REFUSED_UPDATES: dict[str, tuple[str, Any, tuple[int, str], str]] = {
    "another name": (A, configmap("b"), (400, "BadRequest"), "(b) does not match the name on the URL (a)"),
    "no name": (A, {"metadata": {}}, (400, "BadRequest"), "name must be provided"),
    "another namespace": (
        A,
        configmap("a", metadata={"namespace": "other"}),
        (400, "BadRequest"),
        "(other) does not match the namespace on the request (default)",
    ),
    "another uid": (A, configmap("a", metadata={"uid": "x"}), (409, "Conflict"), "UID in precondition: x"),
    "a version that is none": (A, configmap("a", metadata={"resourceVersion": "abc"}), (409, "Conflict"), "modified"),
    "what is missing": (f"{CONFIGMAPS}/zz", configmap("zz"), (404, "NotFound"), 'configmaps "zz" not found'),
    "a collection": (CONFIGMAPS, configmap("a"), (405, "MethodNotAllowed"), "does not allow this method"),
    "a new owner that is none": (
        A,
        configmap("a", metadata={"ownerReferences": [{}]}),
        (422, "Invalid"),
        "metadata.ownerReferences.apiVersion",
    ),
}


@pytest.mark.parametrize("what", REFUSED_UPDATES)
def test_an_update_is_refused_with_the_reason(api: Api, what: str) -> None:
    before = api.post(CONFIGMAPS, configmap("a")).ok
    target, body, refusal, words = REFUSED_UPDATES[what]
    answer = api.put(target, body)
    assert answer.refusal == refusal
    assert words in answer.message
    assert api.get(A).ok == before


def test_of_many_who_update_the_same_version_one_wins(api: Api) -> None:
    version = api.post(CONFIGMAPS, configmap("a")).version
    answers = api.together(
        *(
            ("PUT", A, configmap("a", data={"by": str(number)}, metadata={"resourceVersion": version}))
            for number in range(20)
        )
    )
    won = [number for number, answer in enumerate(answers) if answer.status == 200]
    assert len(won) == 1
    assert {answer.refusal for answer in answers if answer.status != 200} == {(409, "Conflict")}
    assert api.get(A).ok["data"] == {"by": str(won[0])}


def test_of_many_who_create_the_same_name_one_wins(api: Api) -> None:
    answers = api.together(*(("POST", CONFIGMAPS, configmap("a", data={"by": str(n)})) for n in range(20)))
    assert sorted(answer.status for answer in answers) == [201, *[409] * 19]


def test_patches_without_a_version_all_arrive_despite_concurrent_writes(api: Api) -> None:
    api.post(CONFIGMAPS, configmap("a")).done()

    answers = api.together(*(("PATCH", A, {"data": {f"k{n}": "v"}}) for n in range(5)), headers=MERGE)
    assert [answer.status for answer in answers] == [200] * 5
    assert len(api.get(A).ok["data"]) == 5


# Kinds that want the version, and kinds that an update may create.


def test_a_lease_is_created_by_an_update(api: Api) -> None:
    lease = {"metadata": {"name": "l"}, "spec": {"holderIdentity": "me"}}
    assert api.put(f"{LEASES}/l", lease).status == 201
    assert api.get(f"{LEASES}/l").ok["spec"] == {"holderIdentity": "me"}


def test_a_lease_is_updated_at_a_version_only(api: Api) -> None:
    version = api.put(f"{LEASES}/l", {"metadata": {"name": "l"}}).version
    unconditional = api.put(f"{LEASES}/l", {"metadata": {"name": "l"}, "spec": {"holderIdentity": "me"}})
    assert unconditional.refusal == (422, "Invalid")
    assert unconditional.causes == [("metadata.resourceVersion", "FieldValueInvalid")]
    assert "must be specified for an update" in unconditional.message
    meta = {"name": "l", "resourceVersion": version}
    assert api.put(f"{LEASES}/l", {"metadata": meta, "spec": {"holderIdentity": "me"}}).status == 200


# Nothing changes.


@pytest.mark.parametrize(
    "write",
    [
        lambda api, obj: api.put(A, obj),
        lambda api, obj: api.put(A, {"metadata": {"name": "a"}, "data": obj["data"]}),
        lambda api, obj: api.patch(A, {"data": obj["data"]}),
        lambda api, obj: api.patch(A, {}),
        lambda api, obj: api.patch(A, [], "json"),
        lambda api, obj: api.patch(A, [{"op": "replace", "path": "/data/k", "value": "1"}], "json"),
        lambda api, obj: api.patch(A, {"data": {"k": "1"}}, "strategic"),
        lambda api, obj: api.patch(A, {"metadata": {"uid": obj["metadata"]["uid"]}}),
        lambda api, obj: api.patch(A, {"metadata": {"generation": 9, "creationTimestamp": None}}),
    ],
)
def test_a_write_that_changes_nothing_keeps_the_version(api: Api, write: Any) -> None:
    before = api.post(CONFIGMAPS, configmap("a", data={"k": "1"})).ok
    api.advance(60)
    assert write(api, before).ok == before
    assert api.get(A).ok == before
    assert str(api.server.store.revision) == before["metadata"]["resourceVersion"]


def test_an_apply_that_changes_nothing_keeps_the_version(api: Api) -> None:
    before = api.apply(A, configmap("a", data={"k": "1"})).ok
    api.advance(60)
    assert api.apply(A, configmap("a", data={"k": "1"})).ok == before


# Generation.


def test_the_generation_counts_changes_of_the_spec_alone(api: Api) -> None:
    d = f"{DEPLOYMENTS}/d"

    def generation() -> int:
        return int(api.get(d).ok["metadata"]["generation"])

    assert api.post(DEPLOYMENTS, deployment("d")).ok["metadata"]["generation"] == 1
    api.patch(d, {"metadata": {"labels": {"l": "1"}}}).done()
    api.patch(f"{d}/status", {"status": {"replicas": 3}}).done()
    api.patch(d, {"metadata": {"generation": 40}, "status": {"replicas": 9}}).done()
    assert generation() == 1
    api.patch(d, {"spec": {"replicas": 4}}).done()
    assert generation() == 2
    api.patch(f"{d}/scale", {"spec": {"replicas": 5}}).done()
    assert generation() == 3
    api.patch(d, {"metadata": {"finalizers": ["example.com/f"]}}).done()
    assert generation() == 3
    api.delete(d).done()
    assert generation() == 4


def test_kinds_without_a_spec_have_no_generation(api: Api) -> None:
    assert "generation" not in api.post(CONFIGMAPS, configmap("a")).ok["metadata"]
    assert "generation" not in api.put(A, configmap("a", data={"k": "1"})).ok["metadata"]


# Dry run.


@pytest.mark.parametrize(
    ("method", "target", "body", "code"),
    [
        ("POST", CONFIGMAPS, configmap("new"), 201),
        ("PUT", A, configmap("a", data={"k": "2"}), 200),
        ("DELETE", A, None, 200),
        ("DELETE", A, {"kind": "DeleteOptions", "apiVersion": "v1", "dryRun": ["All"]}, 200),
        ("DELETE", CONFIGMAPS, None, 200),
    ],
)
def test_a_dry_run_answers_as_if_and_writes_nothing(api: Api, method: str, target: str, body: Any, code: int) -> None:
    before = api.post(CONFIGMAPS, configmap("a", data={"k": "1"})).ok
    revision = api.server.store.revision
    assert api.ask(method, f"{target}?dryRun=All", body).status == code
    assert api.get(A).ok == before
    assert api.server.store.revision == revision


@pytest.mark.parametrize("kind", ["merge", "strategic", "json", "apply"])
def test_a_dry_run_of_a_patch_shows_what_would_be(api: Api, kind: str) -> None:
    api.post(CONFIGMAPS, configmap("a", data={"k": "1"})).done()
    revision = api.server.store.revision
    body: Any = configmap("a", data={"n": "2"})
    if kind == "json":
        body = [{"op": "add", "path": "/data/n", "value": "2"}]
    shown = api.patch(f"{A}?dryRun=All&fieldManager=m", body, kind).ok
    assert shown["data"] == {"k": "1", "n": "2"}
    assert api.get(A).ok["data"] == {"k": "1"}
    assert api.server.store.revision == revision


def test_a_dry_run_of_what_is_refused_is_refused(api: Api) -> None:
    assert api.post(f"{CONFIGMAPS}?dryRun=All", configmap("A")).refusal == (422, "Invalid")
    assert api.put(f"{A}?dryRun=All", configmap("a")).refusal == (404, "NotFound")
    assert api.delete(f"{A}?dryRun=All").refusal == (404, "NotFound")
    api.apply(f"{A}?dryRun=All", configmap("a")).done()
    assert api.names(CONFIGMAPS) == []


# Options.


@pytest.mark.parametrize(
    ("method", "query", "field"),
    [
        ("POST", "dryRun=Some", "dryRun"),
        ("POST", "dryRun=All&dryRun=Some", "dryRun"),
        ("POST", "fieldValidation=Loud", "fieldValidation"),
        ("POST", f"fieldManager={'x' * 129}", "fieldManager"),
        ("POST", "fieldManager=%07", "fieldManager"),
        ("PUT", "fieldValidation=strict", "fieldValidation"),
        ("PATCH", "force=true", "force"),
        ("PATCH", "dryRun=none", "dryRun"),
        ("DELETE", "propagationPolicy=Sideways", "propagationPolicy"),
        ("DELETE", "dryRun=Some", "dryRun"),
    ],
)
def test_an_option_that_is_none_is_named(api: Api, method: str, query: str, field: str) -> None:
    api.post(CONFIGMAPS, configmap("a")).done()
    target = CONFIGMAPS if method == "POST" else A
    body = None if method == "DELETE" else configmap("a" if method != "POST" else "b")
    answer = api.ask(method, f"{target}?{query}", body, headers=MERGE if method == "PATCH" else {})
    assert answer.refusal == (422, "Invalid")
    assert field in {name for name, _ in answer.causes}
    assert answer.body["details"]["group"] == "meta.k8s.io"


UNKNOWN = {**configmap("b"), "bogus": 1}


def test_strict_validation_refuses_unknown_and_repeated_fields(api: Api) -> None:
    answer = api.post(f"{CONFIGMAPS}?fieldValidation=Strict", UNKNOWN)
    assert answer.refusal == (400, "BadRequest")
    assert 'strict decoding error: unknown field "bogus"' in answer.message
    repeated = b'{"metadata":{"name":"b"},"data":{"k":"1","k":"2"}}'
    answer = api.post(f"{CONFIGMAPS}?fieldValidation=Strict", repeated, headers={"content-type": "application/json"})
    assert answer.refusal == (400, "BadRequest")
    assert 'strict decoding error: duplicate field "data.k"' in answer.message
    assert api.names(CONFIGMAPS) == []


@pytest.mark.parametrize(
    ("query", "warned"), [("", True), ("?fieldValidation=Warn", True), ("?fieldValidation=Ignore", False)]
)
def test_unknown_fields_are_dropped_and_warned_of(api: Api, query: str, warned: bool) -> None:
    answer = api.post(f"{CONFIGMAPS}{query}", UNKNOWN)
    assert "bogus" not in answer.ok
    assert answer.warnings == (('unknown field "bogus"',) if warned else ())


# Deletion.


def test_a_deletion_answers_with_a_status_or_with_the_pod_that_went(api: Api) -> None:
    uid = api.post(CONFIGMAPS, configmap("a")).ok["metadata"]["uid"]
    assert api.delete(A).ok == {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Success",
        "details": {"name": "a", "kind": "configmaps", "uid": uid},
    }
    api.post(PODS, pod("p")).done()
    assert api.delete(f"{PODS}/p").ok["kind"] == "Pod"
    assert api.get(A).refusal == api.get(f"{PODS}/p").refusal == (404, "NotFound")


def test_finalizers_hold_an_object_until_the_last_is_gone(api: Api) -> None:
    api.post(CONFIGMAPS, configmap("a", metadata={"finalizers": ["example.com/f", "example.com/g"]})).done()
    marked = api.delete(A).ok
    assert marked["metadata"]["deletionTimestamp"] == "2030-01-01T00:00:00Z"
    assert marked["metadata"]["deletionGracePeriodSeconds"] == 0
    api.advance(60)
    assert api.delete(A).ok["metadata"]["deletionTimestamp"] == "2030-01-01T00:00:00Z"
    late = api.patch(A, {"metadata": {"finalizers": ["example.com/f", "example.com/g", "example.com/h"]}})
    assert late.refusal == (422, "Invalid")
    assert "no new finalizers can be added if the object is being deleted" in late.message
    api.patch(A, {"metadata": {"finalizers": ["example.com/g"]}, "data": {"still": "editable"}}).done()
    cleared = api.patch(A, {"metadata": {"deletionTimestamp": None}}).ok
    assert "deletionTimestamp" in cleared["metadata"]
    api.patch(A, {"metadata": {"finalizers": None}}).done()
    assert api.get(A).refusal == (404, "NotFound")


@pytest.mark.parametrize(
    ("options", "finalizer"),
    [
        ({"propagationPolicy": "Foreground"}, "foregroundDeletion"),
        ({"propagationPolicy": "Orphan"}, "orphan"),
        ({"orphanDependents": True}, "orphan"),
        ({"propagationPolicy": "Background"}, None),
        ({"orphanDependents": False}, None),
        ({}, None),
    ],
)
@pytest.mark.parametrize("where", ["body", "query"])
def test_the_propagation_policy_is_kept_as_a_finalizer(
    api: Api, options: dict[str, Any], finalizer: str | None, where: str
) -> None:
    api.post(CONFIGMAPS, configmap("a")).done()
    if where == "body":
        api.delete(A, {"kind": "DeleteOptions", "apiVersion": "v1", **options}).done()
    else:
        api.delete(
            A
            + "?"
            + "&".join(
                f"{name}={str(value).lower() if value in (True, False) else value}" for name, value in options.items()
            )
        ).done()
    found = api.get(A)
    assert found.body["metadata"].get("finalizers") == ([finalizer] if finalizer else None)
    assert found.status == (200 if finalizer else 404)


def test_a_job_leaves_its_pods_unless_it_is_told_otherwise(api: Api) -> None:
    jobs = "/apis/batch/v1/namespaces/default/jobs"
    api.post(jobs, {"metadata": {"name": "j"}, "spec": JOB}).done()
    deleted = api.delete(f"{jobs}/j")
    assert deleted.ok["metadata"]["finalizers"] == ["orphan"]
    assert deleted.warnings[0].startswith("child pods are preserved by default when jobs are deleted")
    assert api.delete(f"{jobs}/j?propagationPolicy=Background").warnings == ()
    assert api.get(f"{jobs}/j").refusal == (404, "NotFound")


@pytest.mark.parametrize(
    "preconditions", [{"uid": "another"}, {"resourceVersion": "1"}, {"uid": "another", "resourceVersion": "1"}]
)
def test_preconditions_keep_what_is_not_meant(api: Api, preconditions: dict[str, str]) -> None:
    meta = api.post(CONFIGMAPS, configmap("a")).ok["metadata"]
    assert api.delete(A, {"preconditions": preconditions}).refusal == (409, "Conflict")
    met = {name: meta[name] for name in preconditions}
    assert api.delete(A, {"preconditions": met}).status == 200


def test_a_collection_is_deleted_by_its_selector(api: Api) -> None:
    for name in "abcd":
        api.post(CONFIGMAPS, configmap(name, metadata={"labels": {"odd": str("abcd".index(name) % 2)}})).done()
    answer = api.delete(f"{CONFIGMAPS}?labelSelector=odd=1").ok
    assert (answer["kind"], [each["metadata"]["name"] for each in answer["items"]]) == ("ConfigMapList", ["b", "d"])
    assert api.names(CONFIGMAPS) == ["a", "c"]
    api.delete(CONFIGMAPS).done()
    assert api.names(CONFIGMAPS) == []


def test_a_scheduled_pod_is_given_its_time(api: Api) -> None:
    api.post(PODS, pod("p", nodeName="n", terminationGracePeriodSeconds=40)).done()
    marked = api.delete(f"{PODS}/p").ok["metadata"]
    assert (marked["deletionTimestamp"], marked["deletionGracePeriodSeconds"]) == ("2030-01-01T00:00:40Z", 40)
    api.advance(10)
    longer = api.delete(f"{PODS}/p", {"gracePeriodSeconds": 300}).ok["metadata"]
    assert (longer["deletionTimestamp"], longer["deletionGracePeriodSeconds"]) == ("2030-01-01T00:00:40Z", 40)
    again = api.delete(f"{PODS}/p").ok["metadata"]
    assert again["resourceVersion"] == marked["resourceVersion"]
    shorter = api.delete(f"{PODS}/p", {"gracePeriodSeconds": 15}).ok["metadata"]
    assert (shorter["deletionTimestamp"], shorter["deletionGracePeriodSeconds"]) == ("2030-01-01T00:00:15Z", 15)
    api.delete(f"{PODS}/p?gracePeriodSeconds=0").done()
    assert api.get(f"{PODS}/p").refusal == (404, "NotFound")


@pytest.mark.parametrize(
    ("spec", "phase", "options", "grace"),
    [
        ({}, "Pending", {}, None),
        ({"nodeName": "n"}, "Succeeded", {}, None),
        ({"nodeName": "n"}, "Failed", {}, None),
        ({"nodeName": "n"}, "Running", {"gracePeriodSeconds": 0}, None),
        ({"nodeName": "n"}, "Running", {"gracePeriodSeconds": -5}, 1),
        ({"nodeName": "n"}, "Running", {}, 30),
        ({"nodeName": "n"}, "Pending", {"gracePeriodSeconds": 5}, 5),
    ],
)
def test_a_pod_that_no_node_runs_goes_at_once(
    api: Api, spec: dict[str, Any], phase: str, options: dict[str, Any], grace: int | None
) -> None:
    api.post(PODS, pod("p", **spec)).done()
    api.patch(f"{PODS}/p/status", {"status": {"phase": phase}}).done()
    api.delete(f"{PODS}/p", options).done()
    found = api.get(f"{PODS}/p")
    assert (found.status, found.body["metadata"].get("deletionGracePeriodSeconds")) == (200 if grace else 404, grace)


@pytest.mark.parametrize(
    "body",
    [
        b"{oops",
        [],
        {"gracePeriodSeconds": "soon"},
        {"gracePeriodSeconds": 1.5},
        {"propagationPolicy": 5},
        {"preconditions": 5},
        {"preconditions": {"uid": 5}},
        {"dryRun": "All"},
        {"dryRun": {}},
        {"orphanDependents": "yes"},
        {"kind": "Pod", "apiVersion": "v1"},
    ],
)
def test_delete_options_that_are_none_delete_nothing(api: Api, body: Any) -> None:
    api.post(CONFIGMAPS, configmap("a")).done()
    answer = api.delete(A, body)
    assert answer.refusal == (400, "BadRequest")
    assert api.names(CONFIGMAPS) == ["a"]


@pytest.mark.parametrize("name", ["default", "kube-system", "kube-public"])
def test_the_namespaces_that_the_server_stands_on_stay(api: Api, name: str) -> None:
    answer = api.delete(f"{NAMESPACES}/{name}")
    assert answer.refusal == (403, "Forbidden")
    assert "this namespace may not be deleted" in answer.message


def test_nothing_is_created_in_a_namespace_that_is_going(api: Api) -> None:
    api.post(NAMESPACES, {"metadata": {"name": "team"}}).done()
    api.post("/api/v1/namespaces/team/configmaps", configmap("old")).done()
    going = api.delete(f"{NAMESPACES}/team").ok
    assert going["status"]["phase"] == "Terminating"
    answer = api.post("/api/v1/namespaces/team/configmaps", configmap("a"))
    assert answer.refusal == (403, "Forbidden")
    assert "because it is being terminated" in answer.message
    assert api.patch("/api/v1/namespaces/team/configmaps/old", {"data": {"k": "1"}}).status == 200


# Patches.


def test_a_merge_patch_sets_removes_and_leaves(api: Api) -> None:
    api.post(CONFIGMAPS, configmap("a", data={"a": "1", "b": "2"})).done()
    assert api.patch(A, {"data": {"a": None, "c": "3"}}).ok["data"] == {"b": "2", "c": "3"}
    assert "data" not in api.patch(A, {"data": None}).ok


def test_a_json_patch_is_done_whole_or_not_at_all(api: Api) -> None:
    before = api.post(CONFIGMAPS, configmap("a", data={"a": "1", "b": "2"})).ok
    operations: list[dict[str, Any]] = [
        {"op": "test", "path": "/data/a", "value": "1"},
        {"op": "move", "from": "/data/a", "path": "/data/c"},
        {"op": "copy", "from": "/data/b", "path": "/data/d"},
        {"op": "remove", "path": "/data/b"},
    ]
    failing = api.patch(A, [*operations, {"op": "test", "path": "/data/c", "value": "no"}], "json")
    assert failing.refusal == (422, "Invalid")
    assert api.get(A).ok == before
    assert api.patch(A, operations, "json").ok["data"] == {"c": "1", "d": "2"}


def test_a_strategic_patch_merges_lists_by_their_key(api: Api) -> None:
    api.post(DEPLOYMENTS, deployment("d")).done()
    d = f"{DEPLOYMENTS}/d"

    def containers(patch: list[dict[str, Any]]) -> list[tuple[str, str]]:
        body = {"spec": {"template": {"spec": {"containers": patch}}}}
        found = api.patch(d, body, "strategic").ok["spec"]["template"]["spec"]["containers"]
        return [(each["name"], each["image"]) for each in found]

    assert containers([{"name": "side", "image": "envoy:1"}]) == [("side", "envoy:1"), ("main", "nginx:1")]
    assert containers([{"name": "main", "image": "nginx:2"}]) == [("side", "envoy:1"), ("main", "nginx:2")]
    assert containers([{"name": "side", "$patch": "delete"}]) == [("main", "nginx:2")]


@pytest.mark.parametrize(
    ("kind", "patch", "refusal"),
    [
        ("merge", b"{oops", (400, "BadRequest")),
        ("merge", [1], (400, "BadRequest")),
        ("merge", "text", (400, "BadRequest")),
        ("merge", {"metadata": {"name": "b"}}, (400, "BadRequest")),
        ("merge", {"metadata": {"namespace": "b"}}, (400, "BadRequest")),
        ("merge", {"metadata": {"resourceVersion": "1"}, "data": {"k": "2"}}, (409, "Conflict")),
        ("merge", {"metadata": {"uid": "x"}}, (409, "Conflict")),
        ("merge", {"metadata": None}, (400, "BadRequest")),
        ("merge", {"metadata": 5}, (422, "Invalid")),
        ("merge", {"kind": "Secret"}, (422, "Invalid")),
        ("merge", {"data": {"k": 5}}, (422, "Invalid")),
        ("merge", {"data": {"bad key!": "v"}}, (422, "Invalid")),
        ("json", {"op": "add"}, (400, "BadRequest")),
        ("json", [5], (400, "BadRequest")),
        ("json", [{"op": "fly", "path": "/data"}], (422, "Invalid")),
        ("json", [{"op": "remove", "path": "/none"}], (422, "Invalid")),
        ("json", [{"op": "add", "path": "", "value": 5}], (422, "Invalid")),
        ("json", [{"op": "add", "path": "/data", "value": "text"}], (422, "Invalid")),
        ("strategic", [1], (400, "BadRequest")),
        ("strategic", {"data": "text"}, (422, "Invalid")),
        ("strategic", {"$patch": "fly"}, (400, "BadRequest")),
        ("apply", b"a: [", (400, "BadRequest")),
        ("apply", {"metadata": {"name": "a"}}, (400, "BadRequest")),
        ("apply", configmap("b"), (400, "BadRequest")),
        ("apply", configmap("a", metadata={"managedFields": []}), (400, "BadRequest")),
        ("apply", configmap("a", metadata={"resourceVersion": "1"}), (409, "Conflict")),
        ("apply", configmap("a", bogus=1), (400, "BadRequest")),
    ],
)
def test_a_patch_is_refused_with_the_reason(api: Api, kind: str, patch: Any, refusal: tuple[int, str]) -> None:
    before = api.post(CONFIGMAPS, configmap("a", data={"k": "1"})).ok
    assert api.patch(f"{A}?fieldManager=m", patch, kind).refusal == refusal
    assert api.get(A).ok == before


def test_a_patch_that_makes_its_object_unreadable_is_to_blame(api: Api) -> None:
    api.post(CONFIGMAPS, configmap("a")).done()
    answer = api.patch(A, {"data": {"k": 5}})
    assert answer.causes == [("patch", "FieldValueInvalid")]
    assert "cannot unmarshal number" in answer.message
    strict = api.patch(f"{A}?fieldValidation=Strict", {"bogus": 1})
    assert strict.causes == [("patch", "FieldValueInvalid")]
    assert 'strict decoding error: unknown field "bogus"' in strict.message


def test_an_applied_field_that_is_not_declared_is_refused(api: Api) -> None:
    answer = api.apply(A, configmap("a", bogus=1))
    where = "/a; /v1, Kind=ConfigMap"
    assert answer.message == f"failed to create typed patch object ({where}): .bogus: field not declared in schema"


def test_a_patch_of_what_is_missing_finds_nothing(api: Api) -> None:
    for kind, patch in (("merge", {}), ("strategic", {}), ("json", [])):
        assert api.patch(A, patch, kind).refusal == (404, "NotFound")


def test_custom_kinds_have_no_strategic_patch(api: Api) -> None:
    answer = api.patch(f"{DEFINITIONS}/x", {}, "strategic", headers={"content-type": "text/plain"})
    assert answer.refusal == (415, "UnsupportedMediaType")


# Apply.


def test_an_apply_creates_updates_and_removes_what_it_owned(api: Api) -> None:
    assert api.apply(A, configmap("a", data={"x": "1", "y": "2"})).status == 201
    changed = api.apply(A, configmap("a", data={"x": "3"}))
    assert (changed.status, changed.ok["data"]) == (200, {"x": "3"})
    managed = changed.ok["metadata"]["managedFields"]
    assert [(entry["manager"], entry["operation"]) for entry in managed] == [("one", "Apply")]
    assert managed[0]["fieldsV1"] == {"f:data": {"f:x": {}}}


def test_an_apply_conflicts_with_the_owner_of_the_field_and_force_takes_it(api: Api) -> None:
    api.apply(A, configmap("a", data={"x": "1"})).done()
    answer = api.apply(A, configmap("a", data={"x": "2"}), "two")
    assert answer.refusal == (409, "Conflict")
    assert answer.message == 'Apply failed with 1 conflict: conflict with "one": .data.x'
    assert answer.causes == [(".data.x", "FieldManagerConflict")]
    assert api.apply(f"{A}?force=true", configmap("a", data={"x": "2"}), "two").ok["data"] == {"x": "2"}
    owners = {entry["manager"]: entry["fieldsV1"] for entry in api.get(A).ok["metadata"]["managedFields"]}
    assert owners == {"two": {"f:data": {"f:x": {}}}}


def test_an_update_takes_ownership_that_an_apply_respects(api: Api) -> None:
    api.apply(A, configmap("a", data={"x": "1"})).done()
    api.patch(f"{A}?fieldManager=hand", {"data": {"x": "9"}}).done()
    answer = api.apply(A, configmap("a", data={"x": "1"}))
    assert answer.refusal == (409, "Conflict")
    assert 'conflict with "hand" using v1: .data.x' in answer.message


def test_an_apply_needs_a_manager(api: Api) -> None:
    answer = api.patch(A, configmap("a"), "apply")
    assert answer.refusal == (422, "Invalid")
    assert answer.causes == [("fieldManager", "FieldValueRequired")]


def test_an_apply_that_names_a_uid_creates_nothing(api: Api) -> None:
    assert api.apply(A, configmap("a", metadata={"uid": "x"})).refusal == (409, "Conflict")


def test_an_apply_may_be_yaml(api: Api) -> None:
    yaml = b"apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\ndata:\n  k: v\n"
    assert api.apply(A, yaml).ok["data"] == {"k": "v"}


# What is not there.


@pytest.mark.parametrize(
    ("method", "target", "refusal"),
    [
        ("GET", "/api/v1/namespaces/default/nothings", (404, "NotFound")),
        ("GET", "/api/v1/namespaces/default/nothings/a", (404, "NotFound")),
        ("GET", f"{A}/nothing", (404, "NotFound")),
        ("GET", f"{A}/status", (404, "NotFound")),
        ("GET", f"{A}/scale", (404, "NotFound")),
        ("GET", "/api/v1/configmaps/a", (404, "NotFound")),
        ("PATCH", CONFIGMAPS, (405, "MethodNotAllowed")),
        ("POST", f"{PODS}/p/status", (405, "MethodNotAllowed")),
        ("DELETE", f"{PODS}/p/status", (405, "MethodNotAllowed")),
        ("OPTIONS", CONFIGMAPS, (405, "MethodNotAllowed")),
        ("TRACE", A, (405, "MethodNotAllowed")),
        ("GET", f"{PODS}/p/exec", (501, "NotImplemented")),
        ("POST", f"{PODS}/p/attach", (501, "NotImplemented")),
        ("POST", f"{PODS}/p/portforward", (501, "NotImplemented")),
        ("GET", f"{PODS}/p/proxy", (501, "NotImplemented")),
        ("GET", "/api/v1/componentstatuses", (404, "NotFound")),
    ],
)
def test_what_is_not_there_is_a_status(api: Api, method: str, target: str, refusal: tuple[int, str]) -> None:
    api.post(CONFIGMAPS, configmap("a")).done()
    api.post(PODS, pod("p")).done()
    assert api.ask(method, target).refusal == refusal


def test_secrets_in_words_become_data(api: Api) -> None:
    made = api.post(SECRETS, {"metadata": {"name": "s"}, "stringData": {"k": "v"}}).ok
    assert (made["data"], "stringData" in made, made["type"]) == ({"k": "dg=="}, False, "Opaque")


# Every kind.

STORED = [kind for kind in BUILTINS if "update" in kind.verbs and kind.kind != "CustomResourceDefinition"]


@pytest.mark.parametrize("kind", STORED, ids=lambda kind: f"{kind.api_version} {kind.kind}")
def test_an_object_of_every_kind_goes_the_whole_way(api: Api, kind: ResourceType) -> None:
    target = collection(kind)
    made = api.post(f"{target}?fieldValidation=Strict", valid(kind, "x1"))
    name = made.ok["metadata"]["name"]
    assert api.post(target, valid(kind, name)).refusal == (409, "AlreadyExists")
    assert api.get(f"{target}/{name}").ok == made.ok
    assert api.put(f"{target}/{name}", made.ok).ok == made.ok
    assert name in api.names(target)
    table = api.get(target, headers={"accept": "application/json;as=Table;g=meta.k8s.io;v=v1"}).ok
    assert name in str([row["cells"] for row in table["rows"]])
    labelled = api.patch(f"{target}/{name}", {"metadata": {"labels": {"l": "1"}}}).ok
    assert labelled["metadata"]["labels"]["l"] == "1"
    assert labelled["metadata"].get("generation") == made.ok["metadata"].get("generation")
    applied = {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": {"name": name, "labels": {"m": "2"}}}
    assert api.apply(f"{target}/{name}", applied).ok["metadata"]["labels"]["m"] == "2"
    api.delete(f"{target}/{name}?propagationPolicy=Background").done()
    assert kind.kind == "Namespace" or api.get(f"{target}/{name}").refusal == (404, "NotFound")
