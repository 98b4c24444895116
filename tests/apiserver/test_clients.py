"""Clients that others wrote, against a server on a loopback socket: the official one for Python, and kopf.

No test sleeps: each waits for an event of a watch that the server ends in time.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from tests.apiserver.servers import Loopback, configmap, deployment, loopback

kubernetes = pytest.importorskip("kubernetes", reason="drives the server with the official client")
client, config, watch = kubernetes.client, kubernetes.config, kubernetes.watch
dynamic = pytest.importorskip("kubernetes.dynamic")

Object = dict[str, Any]

PATIENCE = 8
"""Seconds after which the server ends a watch in which nothing came."""

WIDGETS = {"group": "example.com", "version": "v1", "namespace": "default", "plural": "widgets"}
DEFINITION: Object = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "widgets.example.com"},
    "spec": {
        "group": "example.com",
        "scope": "Namespaced",
        "names": {"plural": "widgets", "singular": "widget", "kind": "Widget"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "subresources": {"status": {}},
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "properties": {
                            "spec": {
                                "type": "object",
                                "properties": {
                                    "size": {"type": "integer", "minimum": 1},
                                    "colour": {"type": "string", "default": "red"},
                                },
                            },
                            "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
                        },
                    }
                },
            }
        ],
    },
}


def widget(name: str, size: int) -> Object:
    return {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": name}, "spec": {"size": size}}


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Loopback]:
    with loopback(tmp_path) as served:
        yield served


@pytest.fixture
def connection(served: Loopback) -> Iterator[client.ApiClient]:
    """The official client, configured by the kubeconfig alone."""
    settings = client.Configuration()
    config.load_kube_config(str(served.kubeconfig), client_configuration=settings, persist_config=False)
    with client.ApiClient(settings) as connection:
        yield connection
        connection.rest_client.pool_manager.clear()


def install(connection: client.ApiClient) -> None:
    """Install the definition and wait until its kind is served."""
    definitions = client.ApiextensionsV1Api(connection)
    definitions.create_custom_resource_definition(DEFINITION)

    def established(event: Object) -> bool:
        conditions = event["raw_object"].get("status", {}).get("conditions", ())
        return any((each["type"], each["status"]) == ("Established", "True") for each in conditions)

    awaited(established, definitions.list_custom_resource_definition)


def awaited(holds: Callable[[Object], bool], listing: Callable[..., Any], **where: Any) -> Any:
    """The first event of a watch for which something holds."""
    with watching(listing, **where) as events:
        for event in events:
            if holds(event):
                return event
    raise AssertionError(f"it did not come in {PATIENCE} seconds")


def watching(listing: Callable[..., Any], **where: Any) -> closing[Any]:
    """The events of a watch; leaving the block ends it."""
    return closing(watch.Watch().stream(listing, timeout_seconds=PATIENCE, **where))


# The official client.


def test_the_official_client_creates_lists_patches_watches_and_deletes(connection: client.ApiClient) -> None:
    core = client.CoreV1Api(connection)
    made = core.create_namespaced_config_map("default", configmap("a", metadata={"labels": {"of": "us"}}))
    core.create_namespaced_config_map("default", client.V1ConfigMap(metadata=client.V1ObjectMeta(name="b")))
    listed = core.list_namespaced_config_map("default", label_selector="of=us")
    assert [each.metadata.name for each in listed.items] == ["a"]

    patched = core.patch_namespaced_config_map("a", "default", {"data": {"key": "value"}})
    assert patched.data == {"key": "value"}
    assert patched.metadata.uid == made.metadata.uid

    made.data = {"key": "from an old version"}
    with pytest.raises(client.ApiException) as refused:
        core.replace_namespaced_config_map("a", "default", made)
    assert (refused.value.status, refused.value.reason) == (409, "Conflict")

    core.delete_namespaced_config_map("a", "default")
    with pytest.raises(client.ApiException) as missing:
        core.read_namespaced_config_map("a", "default")
    assert missing.value.status == 404

    with watching(
        core.list_namespaced_config_map,
        namespace="default",
        label_selector="of=us",
        resource_version=listed.metadata.resource_version,
    ) as events:
        happened = [(event["type"], event["object"].data) for event in islice(events, 2)]
    assert happened == [("MODIFIED", {"key": "value"}), ("DELETED", {"key": "value"})]


def test_the_official_client_pages_through_a_list(connection: client.ApiClient) -> None:
    core = client.CoreV1Api(connection)
    for number in range(5):
        core.create_namespaced_config_map("default", configmap(f"c{number}", metadata={"labels": {"of": "us"}}))
    names, sizes, more = [], [], None
    while more != "":
        options = {"_continue": more} if more else {}
        page = core.list_namespaced_config_map("default", label_selector="of=us", limit=2, **options)
        names += [each.metadata.name for each in page.items]
        sizes.append(len(page.items))
        more = page.metadata._continue or ""
    assert (names, sizes) == ([f"c{number}" for number in range(5)], [2, 2, 1])


def test_the_official_client_scales_a_deployment(connection: client.ApiClient) -> None:
    apps = client.AppsV1Api(connection)
    assert apps.create_namespaced_deployment("default", deployment("web", 3)).metadata.generation == 1
    scaled = apps.patch_namespaced_deployment_scale("web", "default", {"spec": {"replicas": 5}})
    assert (scaled.spec.replicas, scaled.status.selector) == (5, "app=web")
    found = apps.read_namespaced_deployment("web", "default")
    assert (found.spec.replicas, found.metadata.generation) == (5, 2)
    assert found.spec.strategy.rolling_update.max_surge == "25%"


def test_the_official_client_drives_custom_objects(connection: client.ApiClient) -> None:
    install(connection)
    widgets = client.CustomObjectsApi(connection)
    made = widgets.create_namespaced_custom_object(**WIDGETS, body=widget("w", 1))
    assert made["spec"] == {"size": 1, "colour": "red"}
    widgets.patch_namespaced_custom_object_status(**WIDGETS, name="w", body={"status": {"ready": True}})
    made["spec"]["size"] = 0
    made["metadata"].pop("resourceVersion")
    with pytest.raises(client.ApiException) as refused:
        widgets.patch_namespaced_custom_object(**WIDGETS, name="w", body=made)
    assert refused.value.status == 422
    listed = widgets.list_namespaced_custom_object(**WIDGETS)
    assert [(each["spec"]["size"], each["status"]) for each in listed["items"]] == [(1, {"ready": True})]
    widgets.delete_namespaced_custom_object(**WIDGETS, name="w")
    assert widgets.list_namespaced_custom_object(**WIDGETS)["items"] == []


def test_the_dynamic_client_finds_kinds_by_discovery_and_applies(connection: client.ApiClient) -> None:
    install(connection)
    widgets = dynamic.DynamicClient(connection).resources.get(api_version="example.com/v1", kind="Widget")
    applied = widgets.server_side_apply(body=widget("w", 2), name="w", namespace="default", field_manager="tests")
    assert [(each.manager, each.operation) for each in applied.metadata.managedFields] == [("tests", "Apply")]
    assert [each.spec.size for each in widgets.get(namespace="default").items] == [2]
    widgets.delete(name="w", namespace="default")
    assert widgets.get(namespace="default").items == []


# An operator on kopf.


@contextmanager
def operating(served: Loopback, core: client.CoreV1Api) -> Iterator[None]:
    """Run an operator that keeps a ConfigMap for each Widget, in a thread of its own, until the block ends."""
    kopf = pytest.importorskip("kopf", reason="runs an operator against the server")
    registry = kopf.OperatorRegistry()

    @kopf.on.login(registry=registry)
    def login(**_: Any) -> Any:
        return kopf.ConnectionInfo(server=served.url, ca_path=str(served.authority), token=served.token)

    @kopf.on.create("widgets.example.com", registry=registry)
    def create(body: Any, spec: Any, name: str, namespace: str, patch: Any, **_: Any) -> None:
        child = configmap(name, data={"size": str(spec["size"])})
        kopf.adopt(child, owner=body)
        core.create_namespaced_config_map(namespace, child)
        patch.status["size"] = spec["size"]

    @kopf.on.update("widgets.example.com", field="spec.size", registry=registry)
    def resize(new: int, name: str, namespace: str, patch: Any, **_: Any) -> None:
        core.patch_namespaced_config_map(name, namespace, {"data": {"size": str(new)}})
        patch.status["size"] = new

    @kopf.on.delete("widgets.example.com", registry=registry)
    def delete(name: str, namespace: str, **_: Any) -> None:
        core.delete_namespaced_config_map(name, namespace)

    stop, ready = threading.Event(), threading.Event()
    settings = {"registry": registry, "standalone": True, "namespaces": ["default"]}
    operator = kopf.operator(**settings, stop_flag=stop, ready_flag=ready)
    thread = threading.Thread(target=lambda: asyncio.run(operator), name="operator")
    thread.start()
    try:
        assert ready.wait(PATIENCE), "the operator did not start"
        yield
    finally:
        stop.set()
        thread.join(30)
    assert not thread.is_alive()


def test_an_operator_on_kopf_keeps_a_child_reports_status_and_finalizes(
    served: Loopback, connection: client.ApiClient
) -> None:
    core, widgets = client.CoreV1Api(connection), client.CustomObjectsApi(connection)
    install(connection)

    def widget_where(holds: Callable[[Object], bool]) -> Any:
        return awaited(lambda event: holds(event["object"]), widgets.list_namespaced_custom_object, **WIDGETS)["object"]

    with operating(served, core):
        made = widgets.create_namespaced_custom_object(**WIDGETS, body=widget("w", 1))
        held = widget_where(lambda found: found.get("status", {}).get("size") == 1)
        assert held["metadata"]["finalizers"] == ["kopf.zalando.org/KopfFinalizerMarker"]
        child = core.read_namespaced_config_map("w", "default")
        assert child.data == {"size": "1"}
        assert [owner.uid for owner in child.metadata.owner_references] == [made["metadata"]["uid"]]

        widgets.patch_namespaced_custom_object(**WIDGETS, name="w", body={"spec": {"size": 2}})
        widget_where(lambda found: found.get("status", {}).get("size") == 2)
        assert core.read_namespaced_config_map("w", "default").data == {"size": "2"}

        version = widgets.list_namespaced_custom_object(**WIDGETS)["metadata"]["resourceVersion"]
        marked = widgets.delete_namespaced_custom_object(**WIDGETS, name="w")
        assert marked["metadata"]["deletionTimestamp"]
        awaited(
            lambda event: event["type"] == "DELETED",
            widgets.list_namespaced_custom_object,
            resource_version=version,
            **WIDGETS,
        )
    assert "w" not in [each.metadata.name for each in core.list_namespaced_config_map("default").items]
