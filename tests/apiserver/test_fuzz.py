"""Whatever is sent, the server answers: never with a defect of its own, and a refusal is always a whole Status.

`HOLDFAST_FUZZ` multiplies the number of examples and lets chance choose them anew, for a longer run by hand.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy
from tests.apiserver.odd_requests import (
    ACCEPTS,
    BELOW,
    KNOWN_500,
    OPTIONS,
    REVIEWS,
    SEGMENTS,
    TYPE,
    VALUES,
    WIDGET,
    WIDGETS,
    definition,
)
from tests.apiserver.servers import (
    CONFIGMAPS,
    DEFINITIONS,
    DEPLOYMENTS,
    PATCHES,
    PODS,
    VALID,
    Answer,
    Api,
    collection,
    valid,
)

from holdfast.apiserver.builtins import BUILTINS
from holdfast.apiserver.resources import ResourceType

FACTOR = int(os.environ.get("HOLDFAST_FUZZ", "0"))


def examples(number: int) -> settings:
    quiet = [
        HealthCheck.too_slow,
        HealthCheck.data_too_large,
        HealthCheck.large_base_example,
        HealthCheck.filter_too_much,
    ]
    return settings(max_examples=number * max(FACTOR, 1), derandomize=not FACTOR, suppress_health_check=quiet)


@pytest.fixture(scope="module")
def api() -> Any:
    api = Api()
    for kind in {kind.key: kind for kind in BUILTINS if f"{kind.api_version} {kind.kind}" in VALID}.values():
        api.post(collection(kind), valid(kind, "a")).done()
    api.post(DEFINITIONS, definition("widgets", "Widget", WIDGET)).done()
    api.post(WIDGETS, {**TYPE, "metadata": {"name": "a"}, "spec": {"size": 3, "ports": [{"port": 1}]}}).done()
    yield api
    api.close()


def judge(answer: Answer) -> None:
    """A success, a page that is not there, or a Status that says what is wrong."""
    assert 200 <= answer.status < 600
    if answer.status == 404 and answer.content_type.startswith("text/plain"):
        assert answer.raw == b"404 page not found\n"
        return
    if answer.status < 400:
        return
    code, reason = answer.refusal
    assert answer.message
    if code == 500:
        assert any(words in answer.message for words in KNOWN_500), answer.message
    else:
        assert reason
    if "causes" in answer.body.get("details", {}):
        assert all(cause["reason"] and cause["message"] for cause in answer.body["details"]["causes"])


def ask(api: Api, method: str, target: str, body: bytes = b"", headers: Mapping[str, str] | None = None) -> None:
    judge(api.ask(method, target, body, headers=headers or {}))


# What is sent.

texts = st.text(max_size=12)
names = st.sampled_from(["a", "b", "default", "", "A", "a.b", "-", "kube-system", "x" * 300, "é", "\x00", "..", "a/b"])
scalars = (
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False, allow_infinity=False)
    | texts
    | names
    | st.sampled_from(["1", "5m", "10Gi", "50%", "2030-01-01T00:00:00Z", "None", "TCP", "Always", "127.0.0.1", "a=b"])
)
KEYS = ["metadata", "spec", "status", "data", "name", "labels", "kind", "apiVersion", "items", "$patch", "$retainKeys"]
keys = st.sampled_from(KEYS) | texts
junk = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=3), max_leaves=6
)
metadata = st.fixed_dictionaries(
    {},
    optional={
        "name": names,
        "generateName": names,
        "namespace": names,
        "uid": texts,
        "resourceVersion": st.sampled_from(["", "1", "abc", "99999999999999999999"]) | texts,
        "labels": st.dictionaries(keys, texts, max_size=3) | junk,
        "annotations": st.dictionaries(keys, texts, max_size=3) | junk,
        "finalizers": st.lists(texts | names, max_size=3) | junk,
        "ownerReferences": junk,
        "managedFields": junk,
        "deletionTimestamp": scalars,
        "creationTimestamp": scalars,
        "generation": scalars,
        "deletionGracePeriodSeconds": scalars,
    },
)


def shaped(schema: Mapping[str, Any], depth: int = 0) -> SearchStrategy[Any]:
    """Values that are of a schema in most places, and junk in some."""
    if depth > 6:
        return junk
    kind = schema.get("type")
    if kind == "object" and schema.get("properties"):
        fields = {
            name: st.deferred(lambda each=each: shaped(each, depth + 1)) for name, each in schema["properties"].items()
        }
        made: SearchStrategy[Any] = st.lists(st.sampled_from(sorted(fields)), max_size=4, unique=True).flatmap(
            lambda chosen: st.fixed_dictionaries({name: fields[name] for name in chosen})
        )
    elif kind == "object":
        inner = schema.get("additionalProperties")
        made = st.dictionaries(keys, shaped(inner, depth + 1) if isinstance(inner, Mapping) else junk, max_size=2)
    elif kind == "array":
        made = st.lists(st.deferred(lambda: shaped(schema.get("items") or {}, depth + 1)), max_size=3)
    elif kind == "string":
        made = (
            st.sampled_from(schema["enum"])
            if schema.get("enum")
            else texts | scalars.filter(lambda x: isinstance(x, str))
        )
    elif kind == "integer":
        made = st.integers(-3, 3) | st.integers(-(2**40), 2**40)
    elif kind == "boolean":
        made = st.booleans()
    else:
        made = scalars
    return st.integers(0, 19).flatmap(lambda chance: junk if chance == 0 else made)


def objects(kind: ResourceType) -> SearchStrategy[Any]:
    schema = {
        name: each
        for name, each in (kind.schema.get("properties") or {}).items()
        if name not in ("metadata", "kind", "apiVersion")
    }
    body = shaped({"type": "object", "properties": schema}) if schema else junk
    return st.builds(
        lambda body, meta: {**body, "metadata": meta} if isinstance(body, dict) else body,
        body,
        metadata | st.just({"name": "a"}),
    )


def with_type(value: Any, kind: ResourceType) -> Any:
    return {"kind": kind.kind, "apiVersion": kind.api_version, **value} if isinstance(value, dict) else value


def encoded(value: Any) -> bytes:
    return json.dumps(value).encode("utf-8", "surrogatepass")


bodies = st.binary(max_size=40) | (junk | st.fixed_dictionaries({"metadata": metadata, "data": junk})).map(encoded)
media_types = st.sampled_from(
    ["application/json", "application/yaml", "application/vnd.kubernetes.protobuf", "text/plain", "", *PATCHES.values()]
)


@examples(100)
@given(body=bodies, media=media_types, method=st.sampled_from(["POST", "PUT", "PATCH", "DELETE"]), raw=st.booleans())
def test_any_body_is_answered(api: Api, body: bytes, media: str, method: str, raw: bool) -> None:
    if raw and "protobuf" in media:
        body = b"k8s\x00" + body
    target = CONFIGMAPS if method == "POST" else f"{CONFIGMAPS}/a"
    ask(api, method, f"{target}?fieldManager=m", body, {"content-type": media})


@examples(300)
@given(data=st.data())
def test_any_object_of_any_kind_is_answered(api: Api, data: st.DataObject) -> None:
    kinds = [kind for kind in api.server.registry if "update" in kind.verbs or "create" in kind.verbs]
    kind = data.draw(st.sampled_from(kinds))
    within = collection(kind)
    body = encoded(with_type(data.draw(objects(kind)), kind))
    method, target, media = data.draw(
        st.sampled_from(
            [
                ("POST", within, "application/json"),
                ("PUT", f"{within}/a", "application/json"),
                ("PUT", f"{within}/a/status", "application/json"),
                ("PATCH", f"{within}/a", PATCHES["merge"]),
                ("PATCH", f"{within}/a", PATCHES["strategic"]),
                ("PATCH", f"{within}/a/status", PATCHES["merge"]),
                ("PATCH", f"{within}/a?fieldManager=m&force=true", PATCHES["apply"]),
            ]
        )
    )
    ask(api, method, target, body, {"content-type": media})


pointers = st.lists(
    st.sampled_from(["data", "k", "metadata", "labels", "spec", "0", "-", "~1", "~", "", "containers"]), max_size=4
)
operations = st.lists(
    st.fixed_dictionaries(
        {"op": st.sampled_from(["add", "remove", "replace", "move", "copy", "test", "fly"]) | scalars},
        optional={
            "path": pointers.map(lambda parts: "".join(f"/{part}" for part in parts)) | scalars,
            "from": pointers.map(lambda parts: "".join(f"/{part}" for part in parts)) | scalars,
            "value": junk,
        },
    ),
    max_size=4,
)


@examples(100)
@given(
    target=st.sampled_from([f"{CONFIGMAPS}/a", f"{PODS}/a", f"{DEPLOYMENTS}/a", f"{WIDGETS}/a", f"{WIDGETS}/a/scale"]),
    kind=st.sampled_from(list(PATCHES)),
    patch=operations
    | st.fixed_dictionaries({}, optional={"spec": shaped(WIDGET["properties"]["spec"]), "data": junk})
    | junk,
)
def test_any_patch_is_answered(api: Api, target: str, kind: str, patch: Any) -> None:
    ask(api, "PATCH", f"{target}?fieldManager=m&dryRun=All", encoded(patch), {"content-type": PATCHES[kind]})


@examples(100)
@given(data=st.data())
def test_any_question_and_anything_below_an_object_is_answered(api: Api, data: st.DataObject) -> None:
    targets = [*(f"/api/v1/namespaces/default/{each}" for each in BELOW), *REVIEWS, f"{DEPLOYMENTS}/a/scale"]
    target = data.draw(st.sampled_from(targets))
    attributes = st.fixed_dictionaries(
        {}, optional={"verb": scalars, "resource": scalars, "namespace": names, "path": scalars}
    )
    spec = st.fixed_dictionaries(
        {},
        optional={
            "resourceAttributes": attributes | junk,
            "nonResourceAttributes": attributes | junk,
            "user": scalars,
            "groups": junk,
            "extra": junk,
            "token": scalars,
            "audiences": junk,
            "expirationSeconds": scalars,
            "boundObjectRef": junk,
            "replicas": scalars,
            "finalizers": junk,
            "namespace": scalars,
        },
    )
    body = st.fixed_dictionaries(
        {},
        optional={
            "metadata": metadata | junk,
            "spec": spec | junk,
            "target": junk,
            "deleteOptions": junk,
            "kind": scalars,
        },
    )
    method = data.draw(st.sampled_from(["POST", "POST", "PUT", "GET"]))
    ask(api, method, target, encoded(data.draw(body | junk)), {"content-type": "application/json"})


queries = st.dictionaries(st.sampled_from(OPTIONS), texts | st.sampled_from(VALUES), max_size=4)


def with_query(target: str, query: Mapping[str, str]) -> str:
    if query.get("timeoutSeconds", "").isdigit():
        query = {**query, "timeoutSeconds": query["timeoutSeconds"][:3]}  # even virtual years take their time
    return target + "?" + "&".join(f"{name}={quote(value, safe='', errors='ignore')}" for name, value in query.items())


@examples(100)
@given(
    target=st.sampled_from(
        [CONFIGMAPS, PODS, WIDGETS, f"{CONFIGMAPS}/a", "/api/v1/namespaces", "/apis", "/openapi/v3"]
    ),
    method=st.sampled_from(["GET", "GET", "GET", "DELETE", "POST", "HEAD"]),
    query=queries,
)
def test_any_option_is_answered(api: Api, target: str, method: str, query: dict[str, str]) -> None:
    if method == "DELETE":
        query = {**query, "dryRun": "All"}
    ask(api, method, with_query(target, query))


segments = st.sampled_from(SEGMENTS)


@examples(300)
@given(
    path=st.lists(segments, max_size=8),
    method=st.sampled_from(["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "HEAD", "TRACE", "CONNECT", "get", ""]),
    query=queries,
)
def test_any_path_is_answered(api: Api, path: list[str], method: str, query: dict[str, str]) -> None:
    target = with_query("/" + "/".join(quote(part, safe="") for part in path), {**query, "dryRun": "All"})
    ask(api, method, target)


@examples(100)
@given(
    target=st.sampled_from(
        [CONFIGMAPS, f"{CONFIGMAPS}/a", f"{WIDGETS}?watch=1&timeoutSeconds=1", "/api", "/apis", "/openapi/v2"]
    ),
    headers=st.fixed_dictionaries(
        {},
        optional={
            "accept": st.sampled_from(ACCEPTS) | texts,
            "authorization": st.sampled_from(["Bearer", "Bearer x", "Basic eA==", "Bearer a.b.c", "bearer  "]) | texts,
            "content-type": st.sampled_from(["", ";", "application/json; charset=x"]) | texts,
            "impersonate-user": st.sampled_from(["admin", "system:serviceaccount:a:b", ""]) | texts,
            "impersonate-group": texts,
            "impersonate-uid": texts,
            "impersonate-extra-x%": texts,
            "accept-encoding": texts,
            "user-agent": texts,
            "audit-id": texts,
            "if-none-match": texts,
        },
    ),
)
def test_any_header_is_answered(api: Api, target: str, headers: dict[str, str]) -> None:
    ask(api, "GET", target, headers=headers)


@examples(100)
@given(
    schema=st.recursive(
        st.fixed_dictionaries(
            {},
            optional={
                "type": st.sampled_from(["object", "string", "integer", "array", "number", "boolean", "thing"])
                | scalars,
                "default": junk,
                "enum": junk,
                "format": scalars,
                "pattern": st.sampled_from(["^a$", "(", "[", "(?=a)", "\\d+"]) | scalars,
                "minimum": scalars,
                "maxLength": scalars,
                "nullable": scalars,
                "required": junk,
                "x-kubernetes-int-or-string": scalars,
                "x-kubernetes-preserve-unknown-fields": scalars,
                "x-kubernetes-list-type": scalars,
                "x-kubernetes-list-map-keys": junk,
                "x-kubernetes-validations": st.lists(
                    st.fixed_dictionaries(
                        {
                            "rule": st.sampled_from(
                                ["self == oldSelf", "self.", "self.a > 1", "true", "size(self) > 1", ""]
                            )
                            | scalars
                        },
                        optional={
                            "message": scalars,
                            "messageExpression": scalars,
                            "reason": scalars,
                            "fieldPath": scalars,
                        },
                    ),
                    max_size=2,
                )
                | junk,
            },
        ),
        lambda inner: st.fixed_dictionaries(
            {"type": st.sampled_from(["object", "array"])},
            optional={
                "properties": st.dictionaries(keys, inner, max_size=3),
                "items": inner,
                "additionalProperties": inner,
                "allOf": st.lists(inner, max_size=2),
            },
        ),
        max_leaves=6,
    ),
    rest=st.fixed_dictionaries(
        {}, optional={"names": junk, "scope": scalars, "versions": junk, "group": scalars, "conversion": junk}
    ),
)
def test_any_definition_is_answered(api: Api, schema: dict[str, Any], rest: dict[str, Any]) -> None:
    body = definition("things", "Thing", schema)
    body["spec"] |= rest
    ask(api, "POST", DEFINITIONS, encoded(body), {"content-type": "application/json"})
    ask(
        api,
        "POST",
        WIDGETS.replace("widgets", "things"),
        encoded({**TYPE, "kind": "Thing", "metadata": {"name": "a"}, "spec": schema}),
    )
    ask(api, "DELETE", f"{DEFINITIONS}/things.example.com")
    api.run(api.server.store.write())
