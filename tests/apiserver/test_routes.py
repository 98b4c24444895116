"""What a request is about, by table."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.apiserver.routes import RequestInfo, parse


def resource(verb: str, what: str, *, path: str = "", namespace: str = "", name: str = "") -> RequestInfo:
    """``apps/v1/deployments/scale`` in short; the core group is left out."""
    group, version, plural, subresource = what.split("/")
    return RequestInfo(
        verb=verb,
        path=path,
        is_resource=True,
        group=group,
        version=version,
        resource=plural,
        subresource=subresource,
        namespace=namespace,
        name=name,
    )


POD = "/api/v1/namespaces/ns/pods"
RESOURCES = [
    ("GET", POD, resource("list", "/v1/pods/", namespace="ns")),
    ("HEAD", POD, resource("list", "/v1/pods/", namespace="ns")),
    ("GET", POD + "?watch=true", resource("watch", "/v1/pods/", namespace="ns")),
    ("GET", POD + "?watch=1", resource("watch", "/v1/pods/", namespace="ns")),
    ("GET", POD + "?watch=false", resource("list", "/v1/pods/", namespace="ns")),
    ("GET", POD + "/a", resource("get", "/v1/pods/", namespace="ns", name="a")),
    ("GET", POD + "/a?watch=true", resource("get", "/v1/pods/", namespace="ns", name="a")),
    ("GET", POD + "/a/log", resource("get", "/v1/pods/log", namespace="ns", name="a")),
    ("GET", POD + "/a/proxy/x/y", resource("get", "/v1/pods/proxy", namespace="ns", name="a")),
    ("POST", POD, resource("create", "/v1/pods/", namespace="ns")),
    ("POST", POD + "/a/eviction", resource("create", "/v1/pods/eviction", namespace="ns", name="a")),
    ("PUT", POD + "/a", resource("update", "/v1/pods/", namespace="ns", name="a")),
    ("PATCH", POD + "/a", resource("patch", "/v1/pods/", namespace="ns", name="a")),
    ("DELETE", POD + "/a", resource("delete", "/v1/pods/", namespace="ns", name="a")),
    ("DELETE", POD, resource("deletecollection", "/v1/pods/", namespace="ns")),
    ("OPTIONS", POD, resource("", "/v1/pods/", namespace="ns")),
    ("GET", "/api/v1/pods", resource("list", "/v1/pods/")),
    ("GET", "/api/v1/nodes/n", resource("get", "/v1/nodes/", name="n")),
    ("GET", "/api/v1/namespaces", resource("list", "/v1/namespaces/")),
    ("GET", "/api/v1/namespaces/ns", resource("get", "/v1/namespaces/", namespace="ns", name="ns")),
    ("PUT", "/api/v1/namespaces/ns/finalize", resource("update", "/v1/namespaces/finalize", namespace="ns", name="ns")),
    ("GET", "/api/v1/namespaces/ns/status", resource("get", "/v1/namespaces/status", namespace="ns", name="ns")),
    ("GET", "/apis/apps/v1/deployments", resource("list", "apps/v1/deployments/")),
    (
        "GET",
        "/apis/apps/v1/namespaces/ns/deployments/d/scale",
        resource("get", "apps/v1/deployments/scale", namespace="ns", name="d"),
    ),
    ("GET", "/api/v1/watch/pods", resource("watch", "/v1/pods/")),
    ("GET", "/api/v1/watch/namespaces/ns/pods", resource("watch", "/v1/pods/", namespace="ns")),
    ("GET", "/api/v1/watch/namespaces/ns/pods/a", resource("watch", "/v1/pods/", namespace="ns", name="a")),
    ("GET", POD + "?fieldSelector=metadata.name=a", resource("list", "/v1/pods/", namespace="ns", name="a")),
    ("GET", POD + "?fieldSelector=metadata.name!=a", resource("list", "/v1/pods/", namespace="ns")),
    ("GET", POD + "?fieldSelector=metadata.name=a/b", resource("list", "/v1/pods/", namespace="ns")),
    ("GET", POD + "?fieldSelector===", resource("list", "/v1/pods/", namespace="ns")),
    ("GET", POD + "/", resource("list", "/v1/pods/", namespace="ns")),
]


@pytest.mark.parametrize(("method", "target", "expected"), RESOURCES, ids=lambda value: str(value)[:60])
def test_a_resource_path_says_verb_place_and_name(method: str, target: str, expected: RequestInfo) -> None:
    path, _, text = target.partition("?")
    name, _, value = text.partition("=")
    info = parse(method, path, {name: (value,)} if text else {})
    assert info == RequestInfo(**{field: getattr(expected, field) for field in FIELDS}, path=path)


FIELDS = ("verb", "is_resource", "group", "version", "resource", "subresource", "namespace", "name")


@pytest.mark.parametrize(
    "path",
    ["/", "", "/api", "/api/", "/api/v1", "/apis", "/apis/apps", "/apis/apps/v1", "/apis/apps/v1/", "/version",
     "/healthz/ping", "/openapi/v2", "/api/v1/watch", "/metrics", "/apix/v1/pods"],
)  # fmt: skip
def test_any_other_path_is_itself(path: str) -> None:
    assert parse("GET", path, {}) == RequestInfo(verb="get", path=path)


def test_a_resource_with_a_subresource_is_written_as_rules_write_it() -> None:
    assert parse("GET", POD + "/a/log", {}).full_resource == "pods/log"
    assert parse("GET", POD, {}).full_resource == "pods"


@given(st.sampled_from(["GET", "POST", "DELETE", "OPTIONS"]), st.text("/apisv1watchnme%.é", max_size=40))
def test_any_path_can_be_read(method: str, path: str) -> None:
    for prefix in ("", "/api/v1/", "/apis/g/v1/"):
        info = parse(method, prefix + path, {})
        assert info.path == prefix + path
        assert info.is_resource or not info.resource
