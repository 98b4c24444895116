"""Discovery: both forms tell what the registry holds, as Kubernetes tells it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from holdfast.apiserver.openapi import discovery
from holdfast.apiserver.resources import Registry, ResourceType, Scale
from holdfast.meta.errors import MethodNotAllowed, NotAcceptable, NotFound
from holdfast.meta.exchange import Request, Response

AGGREGATED = "application/json;g=apidiscovery.k8s.io;v={};as=APIGroupDiscoveryList"
KUBECTL = f"{AGGREGATED.format('v2')},{AGGREGATED.format('v2beta1')},application/json"

POD = ResourceType(
    group="",
    version="v1",
    kind="Pod",
    plural="pods",
    singular="pod",
    short_names=("po",),
    categories=("all",),
    status=True,
    subresources=("log", "eviction", "binding", "exec", "ephemeralcontainers"),
)
NAMESPACE = ResourceType(
    group="",
    version="v1",
    kind="Namespace",
    plural="namespaces",
    singular="namespace",
    namespaced=False,
    status=True,
    subresources=("finalize",),
)
SERVICE_ACCOUNT = ResourceType(
    group="",
    version="v1",
    kind="ServiceAccount",
    plural="serviceaccounts",
    singular="serviceaccount",
    subresources=("token",),
)
DEPLOYMENT = ResourceType(
    group="apps",
    version="v1",
    kind="Deployment",
    plural="deployments",
    singular="deployment",
    status=True,
    scale=Scale(),
)
REVIEW = ResourceType(
    group="authentication.k8s.io",
    version="v1",
    kind="TokenReview",
    plural="tokenreviews",
    singular="tokenreview",
    namespaced=False,
    verbs=("create",),
)


def autoscaler(version: str) -> ResourceType:
    return ResourceType(
        group="autoscaling", version=version, kind="HorizontalPodAutoscaler", plural="hpas", singular="hpa"
    )


def widget(version: str = "v1", group: str = "oracle.example") -> ResourceType:
    return ResourceType(
        group=group,
        version=version,
        kind="Widget",
        plural="widgets",
        singular="widget",
        short_names=("wd",),
        categories=("oracle",),
        status=True,
        scale=Scale(),
        custom=True,
    )


def registry() -> Registry:
    builtins = [autoscaler("v1"), REVIEW, DEPLOYMENT, POD, SERVICE_ACCOUNT, NAMESPACE, autoscaler("v2")]
    return Registry([widget(group="zoo.example"), widget(), *builtins])


def get(path: str, types: Registry | None = None, **headers: str) -> Response:
    names = {name.replace("_", "-"): value for name, value in headers.items()}
    response = discovery.serve(Request("GET", path, headers=names), types or registry())
    assert response is not None
    return response


def read(path: str, types: Registry | None = None, **headers: str) -> Any:
    response = get(path, types, **headers)
    assert response.status == 200
    return json.loads(response.body)


def resources(path: str) -> dict[str, Any]:
    return {each["name"]: each for each in read(path)["resources"]}


# The old form.


def test_custom_resources_are_listed_as_kubernetes_lists_them() -> None:
    verbs = ["delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"]
    part = {"singularName": "", "namespaced": True, "verbs": ["get", "patch", "update"]}
    assert read("/apis/oracle.example/v1") == {
        "kind": "APIResourceList",
        "apiVersion": "v1",
        "groupVersion": "oracle.example/v1",
        "resources": [
            {
                "name": "widgets",
                "singularName": "widget",
                "namespaced": True,
                "kind": "Widget",
                "verbs": verbs,
                "shortNames": ["wd"],
                "categories": ["oracle"],
            },
            {"name": "widgets/status", "kind": "Widget"} | part,
            {"name": "widgets/scale", "group": "autoscaling", "version": "v1", "kind": "Scale"} | part,
        ],
    }


def test_built_in_resources_are_in_the_order_of_the_alphabet() -> None:
    names = [
        "namespaces",
        "namespaces/finalize",
        "namespaces/status",
        "pods",
        "pods/binding",
        "pods/ephemeralcontainers",
        "pods/eviction",
        "pods/exec",
        "pods/log",
        "pods/status",
        "serviceaccounts",
        "serviceaccounts/token",
    ]
    assert list(resources("/api/v1")) == names


@pytest.mark.parametrize(
    ("name", "kind", "verbs"),
    [
        ("pods/status", "Pod", ["get", "patch", "update"]),
        ("pods/ephemeralcontainers", "Pod", ["get", "patch", "update"]),
        ("pods/log", "Pod", ["get"]),
        ("pods/exec", "PodExecOptions", ["create", "get"]),
        ("pods/eviction", "policy/v1/Eviction", ["create"]),
        ("pods/binding", "Binding", ["create"]),
        ("serviceaccounts/token", "authentication.k8s.io/v1/TokenRequest", ["create"]),
        ("namespaces/finalize", "Namespace", ["update"]),
    ],
)
def test_a_subresource_tells_its_kind_and_what_can_be_done(name: str, kind: str, verbs: list[str]) -> None:
    entry = resources("/api/v1")[name]
    shown = "/".join(entry[field] for field in ("group", "version", "kind") if field in entry)
    assert (shown, entry["verbs"]) == (kind, verbs)


def test_a_resource_that_can_only_be_created_says_so() -> None:
    (entry,) = read("/apis/authentication.k8s.io/v1")["resources"]
    assert entry["verbs"] == ["create"]
    assert not entry["namespaced"]
    assert "shortNames" not in entry


def test_a_group_tells_its_versions_the_preferred_one_first() -> None:
    v2, v1 = ({"groupVersion": f"autoscaling/{name}", "version": name} for name in ("v2", "v1"))
    expected = {"kind": "APIGroup", "apiVersion": "v1", "name": "autoscaling"}
    assert read("/apis/autoscaling") == expected | {"versions": [v2, v1], "preferredVersion": v2}


def test_groups_are_listed_as_kubernetes_orders_them_and_custom_ones_last() -> None:
    listed = read("/apis")
    assert (listed["kind"], listed["apiVersion"]) == ("APIGroupList", "v1")
    names = [group["name"] for group in listed["groups"]]
    assert names == ["apps", "authentication.k8s.io", "autoscaling", "oracle.example", "zoo.example"]
    assert "kind" not in listed["groups"][0]


def test_the_core_says_where_the_client_came_in() -> None:
    assert read("/api", host="127.0.0.1:6443") == {
        "kind": "APIVersions",
        "versions": ["v1"],
        "serverAddressByClientCIDRs": [{"clientCIDR": "0.0.0.0/0", "serverAddress": "127.0.0.1:6443"}],
    }


def test_versions_are_preferred_as_kubernetes_prefers_them() -> None:
    ordered = ["v10", "v2", "v1", "v11beta2", "v10beta3", "v3beta1", "v12alpha1", "v11alpha2", "foo1", "foo10"]
    assert sorted(set(ordered), key=discovery.version_order) == ordered


@pytest.mark.parametrize("path", ["/apis/", "/api/", "/apis/apps/", "/apis/apps/v1/", "/version/"])
def test_a_slash_at_the_end_changes_nothing(path: str) -> None:
    assert get(path).body == get(path.rstrip("/")).body


def test_the_old_form_is_given_as_yaml_to_who_asks_for_it() -> None:
    response = get("/apis/apps", accept="application/yaml")
    assert response.content_type == "application/yaml"
    assert b"kind: APIGroup\n" in response.body


@pytest.mark.parametrize("path", ["/apis/nope", "/apis/nope/v1", "/apis/apps/v2"])
def test_what_is_not_served_is_a_page_that_is_not_found(path: str) -> None:
    response = get(path)
    assert (response.status, response.body) == (404, b"404 page not found\n")
    assert response.content_type.startswith("text/plain")


@pytest.mark.parametrize(
    "path", ["/", "/api/v1/pods", "/apis/apps/v1/deployments", "/healthz", "/openapi/v2", "/apiss"]
)
def test_other_paths_are_left_to_others(path: str) -> None:
    assert discovery.serve(Request("GET", path), registry()) is None


@pytest.mark.parametrize("path", ["/apis", "/api/v1", "/version"])
def test_discovery_cannot_be_written(path: str) -> None:
    with pytest.raises(MethodNotAllowed):
        discovery.serve(Request("POST", path), registry())


def test_what_cannot_be_given_is_refused() -> None:
    with pytest.raises(NotAcceptable):
        get("/apis", accept="text/html")


# The aggregated form.


@pytest.mark.parametrize(
    ("accept", "content_type"),
    [
        (KUBECTL, AGGREGATED.format("v2")),
        (f"{AGGREGATED.format('v2beta1')},application/json", AGGREGATED.format("v2beta1")),
        (f"{AGGREGATED.format('v9')},application/json", "application/json"),
        (f"{AGGREGATED.format('v2')};q=0.5,application/json", "application/json"),
        ("application/json", "application/json"),
        ("*/*", "application/json"),
        ("", "application/json"),
    ],
)
def test_the_form_is_the_best_that_the_client_takes(accept: str, content_type: str) -> None:
    for path in ("/api", "/apis"):
        assert get(path, accept=accept).content_type == content_type


def test_the_aggregated_form_is_for_the_roots_alone() -> None:
    assert get("/apis/apps", accept=KUBECTL).content_type == "application/json"


def test_the_aggregated_form_tells_everything_at_once() -> None:
    listed = read("/apis", accept=KUBECTL)
    assert (listed["kind"], listed["apiVersion"]) == ("APIGroupDiscoveryList", "apidiscovery.k8s.io/v2")
    apps = listed["items"][0]
    kind = {"group": "apps", "version": "v1", "kind": "Deployment"}
    scale = {"group": "autoscaling", "version": "v1", "kind": "Scale"}
    part = ["get", "patch", "update"]
    resource = {
        "resource": "deployments",
        "responseKind": kind,
        "scope": "Namespaced",
        "singularResource": "deployment",
        "verbs": ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"],
        "subresources": [
            {"subresource": "scale", "responseKind": scale, "verbs": part},
            {"subresource": "status", "responseKind": kind, "verbs": part},
        ],
    }
    version = {"version": "v1", "resources": [resource], "freshness": "Current"}
    assert apps == {"metadata": {"name": "apps"}, "versions": [version]}


def test_the_aggregated_core_has_no_name() -> None:
    (core,) = read("/api", accept=KUBECTL)["items"]
    assert core["metadata"] == {}
    assert [each["resource"] for each in core["versions"][0]["resources"]] == ["namespaces", "pods", "serviceaccounts"]
    assert core["versions"][0]["resources"][0]["scope"] == "Cluster"


@pytest.mark.parametrize("known", ["{}", "W/{}", '"other", {}', "*"])
def test_who_has_the_aggregated_form_is_not_given_it_again(known: str) -> None:
    types = registry()
    first = get("/apis", types, accept=KUBECTL)
    again = get("/apis", types, accept=KUBECTL, if_none_match=known.format(first.headers["ETag"]))
    assert (again.status, again.body) == (304, b"")
    assert again.headers["ETag"] == first.headers["ETag"]


def test_a_new_kind_is_told_at_once_and_changes_the_tag() -> None:
    types = registry()
    before = get("/apis", types, accept=KUBECTL)
    types.add(widget(group="new.example"))
    after = get("/apis", types, accept=KUBECTL, if_none_match=before.headers["ETag"])
    assert after.status == 200
    assert read("/apis/new.example/v1", types)["resources"]
    types.remove("new.example", "widgets")
    assert get("/apis", types, accept=KUBECTL).headers["ETag"] == before.headers["ETag"]
    assert get("/apis/new.example/v1", types).status == 404


# The version.


def test_the_version_is_that_of_the_kubernetes_it_speaks() -> None:
    shown = read("/version")
    assert (shown["major"], shown["minor"]) == ("1", "36")
    assert shown["gitVersion"].startswith("v1.36.")
    assert "/" in shown["platform"]


def test_a_version_of_the_core_group_that_is_not_served_is_refused() -> None:
    with pytest.raises(NotFound, match="could not find the requested resource"):
        get("/api/v2")
