"""OpenAPI: the documents say of every kind what clients need to check, explain and merge its objects."""

from __future__ import annotations

import json
import shutil
import subprocess
import threading
from collections.abc import Callable, Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.apiserver.builtins import BUILTINS
from holdfast.apiserver.builtins.types.library import TYPES
from holdfast.apiserver.openapi import discovery, protobuf, v2, v3
from holdfast.apiserver.resources import Registry, ResourceType, Scale
from holdfast.meta.errors import MethodNotAllowed, NotAcceptable
from holdfast.meta.exchange import Request, Response

PROTOBUF = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"
COMPONENTS = "#/components/schemas/"
META = "io.k8s.apimachinery.pkg.apis.meta.v1"

WIDGET_SPEC: dict[str, Any] = {
    "type": "object",
    "description": "What is wanted.",
    "required": ["size"],
    "properties": {
        "size": {"type": "integer", "minimum": 1, "description": "How large it is to be."},
        "port": {"x-kubernetes-int-or-string": True, "anyOf": [{"type": "integer"}, {"type": "string"}]},
        "options": {"type": "object", "x-kubernetes-preserve-unknown-fields": True, "properties": {"a": {}}},
        "maybe": {"type": "object", "nullable": True, "properties": {"b": {"type": "string"}}},
        "parts": {"type": "array", "items": {"type": "object", "properties": {"c": {"type": "string"}}}},
        "anything": {"type": "array"},
        "labels": {"type": "object", "additionalProperties": {"type": "string", "nullable": True}},
        "inner": {"type": "object", "x-kubernetes-embedded-resource": True, "properties": {"d": {"type": "string"}}},
        "choice": {"type": "string", "enum": ["x", "y"], "not": {"enum": ["z"]}, "default": "x"},
    },
    "x-kubernetes-validations": [{"rule": "self.size < 10"}],
}


def builtin(kind: str, group: str = "", **rest: Any) -> ResourceType:
    schema = TYPES.schema(kind)
    names = {"kind": kind, "plural": f"{kind.lower()}s", "singular": kind.lower()}
    return ResourceType(group=group, version="v1", schema=schema, **names, **rest)


def widget(group: str = "example.com", **rest: Any) -> ResourceType:
    schema = {"type": "object", "description": "A widget.", "properties": {"spec": WIDGET_SPEC}}
    return ResourceType(
        group=group,
        version="v1",
        kind="Widget",
        plural="widgets",
        singular="widget",
        **{"schema": schema, "status": True, "scale": Scale(), "custom": True, **rest},
    )


def registry() -> Registry:
    pod = builtin("Pod", status=True, short_names=("po",), subresources=("log", "eviction", "binding", "proxy"))
    deployment = builtin("Deployment", "apps", short_names=("deploy",), scale=Scale())
    job = builtin("Job", "batch")
    template = builtin("PodTemplate")
    review = builtin("TokenReview", "authentication.k8s.io", namespaced=False, verbs=("create",))
    definition = builtin("CustomResourceDefinition", "apiextensions.k8s.io", namespaced=False)
    return Registry([pod, template, deployment, job, builtin("Node", namespaced=False), review, definition, widget()])


def ask(path: str, types: Registry, *, query: Mapping[str, tuple[str, ...]] | None = None, **headers: str) -> Response:
    names = {name.replace("_", "-"): value for name, value in headers.items()}
    response = v3.serve(Request("GET", path, query or {}, names), types)
    assert response is not None
    return response


def read(path: str, types: Registry | None = None) -> Any:
    response = ask(path, types or registry())
    assert response.status == 200
    return json.loads(response.body)


def component(path: str, name: str) -> Any:
    return read(f"/openapi/v3/{path}")["components"]["schemas"][name]


def references(value: Any) -> Iterator[str]:
    match value:
        case {"$ref": str(ref)}:
            yield ref
        case dict():
            for each in value.values():
                yield from references(each)
        case list():
            for each in value:
                yield from references(each)


# Version 3.


def test_the_index_names_a_document_for_every_group_and_version() -> None:
    types = registry()
    paths = read("/openapi/v3", types)["paths"]
    assert list(paths) == [
        "api/v1",
        "apis/apps/v1",
        "apis/authentication.k8s.io/v1",
        "apis/batch/v1",
        "apis/apiextensions.k8s.io/v1",
        "apis/example.com/v1",
    ]
    for path, entry in paths.items():
        address, _, digest = entry["serverRelativeURL"].partition("?hash=")
        assert address == f"/openapi/v3/{path}"
        assert ask(address, types).headers["ETag"] == f'"{digest}"'


def test_a_document_under_its_hash_may_be_kept_for_ever() -> None:
    types = registry()
    entry = read("/openapi/v3", types)["paths"]["apis/apps/v1"]["serverRelativeURL"]
    digest = entry.partition("?hash=")[2]
    kept = ask("/openapi/v3/apis/apps/v1", types, query={"hash": (digest,)})
    assert "immutable" in kept.headers["Cache-Control"]
    assert "Cache-Control" not in ask("/openapi/v3/apis/apps/v1", types).headers


def test_a_hash_of_yesterday_leads_to_the_document_of_today() -> None:
    moved = ask("/openapi/v3/apis/apps/v1", types := registry(), query={"hash": ("0FF",)})
    assert moved.status == 307
    path, _, digest = moved.headers["Location"].partition("?hash=")
    assert ask(path, types, query={"hash": (digest,)}).status == 200


def test_who_has_a_document_is_not_given_it_again() -> None:
    types = registry()
    for path in ("/openapi/v3", "/openapi/v3/api/v1", "/openapi/v2"):
        tag = ask(path, types).headers["ETag"]
        assert ask(path, types, if_none_match=tag).status == 304


@pytest.mark.parametrize("types", [registry(), Registry([*BUILTINS, widget()])], ids=["few", "all"])
def test_every_reference_leads_somewhere_in_its_document(types: Registry) -> None:
    for path in read("/openapi/v3", types)["paths"]:
        document = read(f"/openapi/v3/{path}", types)
        known = document["components"]["schemas"]
        missing = {ref for ref in references(document) if ref.removeprefix(COMPONENTS) not in known}
        assert not missing
    swagger = read("/openapi/v2", types)
    missing = {ref for ref in references(swagger) if ref.removeprefix("#/definitions/") not in swagger["definitions"]}
    assert not missing


@pytest.mark.parametrize(
    ("path", "names"),
    [
        ("api/v1", ["io.k8s.api.core.v1.Pod", "io.k8s.api.core.v1.PodList", "io.k8s.api.core.v1.Container"]),
        ("api/v1", ["io.k8s.api.policy.v1.Eviction", "io.k8s.api.core.v1.Binding"]),
        (
            "api/v1",
            [f"{META}.{name}" for name in ("ObjectMeta", "ListMeta", "Status", "Time", "DeleteOptions", "Patch")],
        ),
        ("apis/apps/v1", ["io.k8s.api.apps.v1.DeploymentSpec", "io.k8s.api.core.v1.PodTemplateSpec"]),
        ("apis/apps/v1", ["io.k8s.apimachinery.pkg.api.resource.Quantity", "io.k8s.api.autoscaling.v1.Scale"]),
        ("apis/apps/v1", ["io.k8s.apimachinery.pkg.util.intstr.IntOrString", f"{META}.LabelSelector"]),
        (
            "apis/apiextensions.k8s.io/v1",
            ["io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.CustomResourceDefinition"],
        ),
        ("apis/example.com/v1", ["com.example.v1.Widget", "com.example.v1.WidgetList"]),
        ("apis/example.com/v1", ["io.k8s.api.autoscaling.v1.Scale", f"{META}.ObjectMeta"]),
    ],
)
def test_components_are_named_as_kubernetes_names_them(path: str, names: list[str]) -> None:
    assert set(names) <= set(read(f"/openapi/v3/{path}")["components"]["schemas"])


@pytest.mark.parametrize(
    ("path", "name", "kind"),
    [
        ("api/v1", "io.k8s.api.core.v1.Pod", ("", "v1", "Pod")),
        ("api/v1", "io.k8s.api.core.v1.PodList", ("", "v1", "PodList")),
        ("api/v1", "io.k8s.api.policy.v1.Eviction", ("policy", "v1", "Eviction")),
        ("apis/example.com/v1", "com.example.v1.Widget", ("example.com", "v1", "Widget")),
    ],
)
def test_a_component_says_of_which_kind_it_is(path: str, name: str, kind: tuple[str, str, str]) -> None:
    group, version, name_of_kind = kind
    shown = component(path, name)["x-kubernetes-group-version-kind"]
    assert shown == [{"group": group, "version": version, "kind": name_of_kind}]


def test_a_type_is_told_once_and_referred_to() -> None:
    containers = component("api/v1", "io.k8s.api.core.v1.PodSpec")["properties"]["containers"]
    assert containers["items"] == {"$ref": f"{COMPONENTS}io.k8s.api.core.v1.Container"}
    assert containers["x-kubernetes-patch-merge-key"] == "name"
    assert containers["x-kubernetes-list-map-keys"] == ["name"]


def test_what_is_said_at_the_place_of_use_stands_around_the_reference() -> None:
    spec = component("apis/apps/v1", "io.k8s.api.apps.v1.Deployment")["properties"]["spec"]
    assert spec["allOf"] == [{"$ref": f"{COMPONENTS}io.k8s.api.apps.v1.DeploymentSpec"}]
    assert spec["description"]
    assert "properties" not in spec


def test_a_time_a_quantity_and_a_number_or_string_are_types_of_their_own() -> None:
    metadata = component("api/v1", f"{META}.ObjectMeta")["properties"]
    assert metadata["creationTimestamp"]["allOf"] == [{"$ref": f"{COMPONENTS}{META}.Time"}]
    assert "nullable" not in metadata["creationTimestamp"]
    limits = component("api/v1", "io.k8s.api.core.v1.ResourceRequirements")["properties"]["limits"]
    assert list(references(limits)) == [f"{COMPONENTS}io.k8s.apimachinery.pkg.api.resource.Quantity"]


def test_a_custom_kind_is_published_as_its_definition_wrote_it() -> None:
    published = component("apis/example.com/v1", "com.example.v1.Widget")
    assert published["description"] == "A widget."
    assert published["properties"]["spec"] == WIDGET_SPEC
    assert published["properties"]["metadata"]["allOf"] == [{"$ref": f"{COMPONENTS}{META}.ObjectMeta"}]
    assert {"apiVersion", "kind"} <= set(published["properties"])


# Paths.


@pytest.mark.parametrize(
    ("document", "path", "actions"),
    [
        ("api/v1", "/api/v1/pods", {"get": "list"}),
        (
            "api/v1",
            "/api/v1/namespaces/{namespace}/pods",
            {"get": "list", "post": "post", "delete": "deletecollection"},
        ),
        (
            "api/v1",
            "/api/v1/namespaces/{namespace}/pods/{name}",
            {"get": "get", "put": "put", "patch": "patch", "delete": "delete"},
        ),
        ("api/v1", "/api/v1/namespaces/{namespace}/pods/{name}/log", {"get": "get"}),
        ("api/v1", "/api/v1/namespaces/{namespace}/pods/{name}/eviction", {"post": "post"}),
        (
            "api/v1",
            "/api/v1/namespaces/{namespace}/pods/{name}/proxy",
            {"get": "get", "put": "put", "post": "post", "patch": "patch", "delete": "delete"},
        ),
        ("api/v1", "/api/v1/nodes", {"get": "list", "post": "post", "delete": "deletecollection"}),
        (
            "apis/example.com/v1",
            "/apis/example.com/v1/namespaces/{namespace}/widgets/{name}/scale",
            {"get": "get", "put": "put", "patch": "patch"},
        ),
        ("apis/authentication.k8s.io/v1", "/apis/authentication.k8s.io/v1/tokenreviews", {"post": "post"}),
    ],
)
def test_a_path_tells_its_actions(document: str, path: str, actions: dict[str, str]) -> None:
    item = read(f"/openapi/v3/{document}")["paths"][path]
    shown = {name: each["x-kubernetes-action"] for name, each in item.items() if name != "parameters"}
    assert shown == actions


def test_a_resource_that_can_only_be_created_has_no_paths_of_objects() -> None:
    assert list(read("/openapi/v3/apis/authentication.k8s.io/v1")["paths"]) == [
        "/apis/authentication.k8s.io/v1/tokenreviews"
    ]


@pytest.mark.parametrize(
    ("document", "path", "strategic"),
    [
        ("apis/apps/v1", "/apis/apps/v1/namespaces/{namespace}/deployments/{name}", True),
        ("apis/example.com/v1", "/apis/example.com/v1/namespaces/{namespace}/widgets/{name}", False),
    ],
)
def test_a_patch_tells_that_the_server_checks_fields_and_runs_dry(document: str, path: str, strategic: bool) -> None:
    patch = read(f"/openapi/v3/{document}")["paths"][path]["patch"]
    names = {each["name"] for each in patch["parameters"] if each["in"] == "query"}
    assert {"dryRun", "fieldManager", "fieldValidation", "force"} <= names
    content = patch["requestBody"]["content"]
    assert "application/apply-patch+yaml" in content
    assert ("application/strategic-merge-patch+json" in content) is strategic


def test_identifiers_of_operations_are_unique_and_in_the_known_form() -> None:
    items = read("/openapi/v2")["paths"].values()
    ids = [each["operationId"] for item in items for name, each in item.items() if name != "parameters"]
    assert len(ids) == len(set(ids))
    assert {
        "listCoreV1PodForAllNamespaces",
        "listCoreV1NamespacedPod",
        "createAppsV1NamespacedDeployment",
        "deleteCoreV1CollectionNode",
        "readCoreV1NamespacedPodLog",
        "patchExampleComV1NamespacedWidgetStatus",
        "createAuthenticationV1TokenReview",
    } <= set(ids)


# Version 2.


@pytest.mark.parametrize(
    ("field", "shown"),
    [
        ("size", {"type": "integer", "minimum": 1, "description": "How large it is to be."}),
        ("port", {"x-kubernetes-int-or-string": True}),
        ("options", {"x-kubernetes-preserve-unknown-fields": True}),
        ("maybe", {}),
        ("parts", WIDGET_SPEC["properties"]["parts"]),
        ("anything", {}),
        ("labels", {"type": "object", "additionalProperties": {}}),
        ("choice", {"type": "string", "enum": ["x", "y"], "default": "x"}),
    ],
)
def test_version_2_says_nothing_where_it_cannot_say_what_is_allowed(field: str, shown: dict[str, Any]) -> None:
    spec = v2.schema_of(WIDGET_SPEC)
    assert spec["properties"][field] == shown
    assert "x-kubernetes-validations" not in spec


def test_version_2_knows_that_an_object_within_an_object_is_an_object() -> None:
    inner = v2.schema_of(WIDGET_SPEC)["properties"]["inner"]["properties"]
    assert set(inner) == {"apiVersion", "kind", "metadata", "d"}


def test_version_2_takes_numbers_or_strings_for_strings() -> None:
    definitions = read("/openapi/v2")["definitions"]
    number = definitions["io.k8s.apimachinery.pkg.util.intstr.IntOrString"]
    assert (number["type"], number["format"]) == ("string", "int-or-string")
    assert definitions["io.k8s.apimachinery.pkg.api.resource.Quantity"]["type"] == "string"


def test_version_2_has_bodies_among_the_parameters() -> None:
    post = read("/openapi/v2")["paths"]["/apis/apps/v1/namespaces/{namespace}/deployments"]["post"]
    assert post["parameters"][-1] == {
        "name": "body",
        "in": "body",
        "required": True,
        "schema": {"$ref": "#/definitions/io.k8s.api.apps.v1.Deployment"},
    }
    assert post["consumes"] == ["application/json", "application/yaml"]
    assert post["responses"]["201"]["schema"] == {"$ref": "#/definitions/io.k8s.api.apps.v1.Deployment"}


# Protocol buffers.

Wire = dict[int, list[Any]]


def wire(content: bytes) -> Wire:
    """The fields of a message as any reader of protocol buffers sees them."""
    found: Wire = {}
    rest = iter(content)

    def varint() -> int:
        total = shift = 0
        for byte in rest:
            total |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return total
        raise StopIteration

    while True:
        try:
            tag = varint()
        except StopIteration:
            return found
        readers: dict[int, Callable[[], Any]] = {
            0: varint,
            1: lambda: bytes(next(rest) for _ in range(8)),
            2: lambda: bytes(next(rest) for _ in range(varint())),
        }
        found.setdefault(tag >> 3, []).append(readers[tag & 7]())


def named(entries: list[bytes]) -> dict[str, bytes]:
    messages = map(wire, entries)
    return {each[1][0].decode(): each[2][0] for each in messages}


def test_old_clients_are_given_protocol_buffers() -> None:
    response = ask("/openapi/v2", registry(), accept=PROTOBUF)
    # The answer is spelt without "@": clients cannot read a media type that has one.
    assert response.content_type == PROTOBUF.replace("@", ".")
    document = wire(response.body)
    assert document[1] == [b"2.0"]
    definitions = named(wire(document[9][0])[1])
    assert set(definitions) == set(read("/openapi/v2")["definitions"])
    widget_definition = wire(definitions["com.example.v1.Widget"])
    assert widget_definition[4] == [b"A widget."]
    extension = named(widget_definition[31])["x-kubernetes-group-version-kind"]
    assert json.loads(wire(extension)[2][0]) == [{"group": "example.com", "kind": "Widget", "version": "v1"}]
    spec = wire(named(wire(widget_definition[25][0])[1])["spec"])
    assert spec[19] == [b"size"]


def test_protocol_buffers_tell_the_paths_and_their_parameters() -> None:
    paths = named(wire(wire(ask("/openapi/v2", registry(), accept=PROTOBUF).body)[8][0])[2])
    patch = wire(wire(paths["/apis/example.com/v1/namespaces/{namespace}/widgets/{name}"])[8][0])
    parameters = [wire(wire(each)[1][0]) for each in patch[8]]
    queries = [wire(wire(each[2][0])[3][0])[4][0] for each in parameters if 2 in each]
    assert b"dryRun" in queries


@given(st.text(), st.integers(0, 2**40), st.floats(allow_nan=False), st.lists(st.text()))
def test_what_is_encoded_is_what_is_read(text: str, count: int, number: float, names: list[str]) -> None:
    schema = {"description": text, "maxLength": count, "maximum": number, "required": names, "enum": names}
    document = {"definitions": {text: schema}, "unknown": 1}
    entry = wire(wire(wire(protobuf.encode(document))[9][0])[1][0])
    assert entry[1] == [text.encode()]
    shown = wire(entry[2][0])
    assert shown[4] == [text.encode()]
    assert shown[11] == [count]
    assert shown.get(19, []) == [name.encode() for name in names]
    assert [json.loads(wire(each)[2][0]) for each in shown.get(20, [])] == names


# Serving.


@pytest.mark.parametrize("path", ["/openapi/v3/apis/nope/v1", "/openapi/v3/api", "/openapi/v1", "/openapi"])
def test_documents_that_are_not_there_are_pages_that_are_not_found(path: str) -> None:
    response = ask(path, registry())
    assert (response.status, response.body) == (404, b"404 page not found\n")


def test_other_paths_are_left_to_others() -> None:
    for path in ("/", "/api", "/openapis", ""):
        assert v3.serve(Request("GET", path), registry()) is None


@pytest.mark.parametrize("path", ["/openapi/v2", "/openapi/v3", "/openapi/v3/api/v1"])
def test_what_cannot_be_given_or_written_is_refused(path: str) -> None:
    with pytest.raises(NotAcceptable):
        ask(path, registry(), accept="text/html")
    with pytest.raises(MethodNotAllowed):
        v3.serve(Request("PUT", path), registry())


def test_a_new_kind_changes_its_own_document_and_no_other() -> None:
    types = registry()
    before = read("/openapi/v3", types)["paths"]
    core = ask("/openapi/v3/api/v1", types).body
    types.add(widget("new.example"))
    after = read("/openapi/v3", types)["paths"]
    assert before == {path: entry for path, entry in after.items() if path != "apis/new.example/v1"}
    assert ask("/openapi/v3/api/v1", types).body is core
    assert "example.new.v1.Widget" in read("/openapi/v2", types)["definitions"]
    types.remove("new.example", "widgets")
    assert read("/openapi/v3", types)["paths"] == before


def test_a_changed_kind_changes_its_document() -> None:
    types = registry()
    before = ask("/openapi/v3/apis/example.com/v1", types).headers["ETag"]
    types.add(widget(schema={"type": "object", "description": "Another."}))
    assert ask("/openapi/v3/apis/example.com/v1", types).headers["ETag"] != before


def test_the_document_of_the_core_stays_small() -> None:
    assert len(ask("/openapi/v3/api/v1", Registry(BUILTINS)).body) < 1_500_000


# kubectl itself.


class Handler(BaseHTTPRequestHandler):
    """Discovery and OpenAPI on a socket, and nothing else."""

    types = Registry([*BUILTINS, widget()])

    def do_GET(self) -> None:
        parts = urlsplit(self.path)
        query = {name: tuple(values) for name, values in parse_qs(parts.query).items()}
        request = Request("GET", parts.path, query, {name.lower(): value for name, value in self.headers.items()})
        answer = discovery.serve(request, self.types) or v3.serve(request, self.types) or Response(404)
        self.send_response(answer.status)
        for name, value in {**answer.headers, "Content-Type": answer.content_type}.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(answer.body)))
        self.end_headers()
        self.wfile.write(answer.body)

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing: the test's own output is enough."""


Kubectl = Callable[..., str]


@pytest.fixture(scope="module")
def kubectl(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kubectl]:
    program = shutil.which("kubectl")
    if program is None:
        pytest.skip("kubectl is not installed")
    home: Path = tmp_path_factory.mktemp("kubectl")
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        address = f"http://127.0.0.1:{server.server_port}"

        def run(*args: str) -> str:
            command = [program, "--server", address, "--cache-dir", str(home / "cache"), *args]
            env = {"HOME": str(home), "KUBECONFIG": str(home / "none")}
            done = subprocess.run(command, capture_output=True, text=True, timeout=60, env=env, check=False)
            assert done.returncode == 0, done.stderr
            return done.stdout

        yield run
        server.shutdown()
        thread.join()


@pytest.mark.parametrize(
    ("command", "shown"),
    [
        ("version", ["v1.36.0+holdfast"]),
        ("api-versions", ["apps/v1\n", "example.com/v1\n", "v1\n"]),
        ("api-resources --no-headers", ["deployments", "deploy", "widgets", "Widget", "tokenreviews"]),
        ("explain widgets", ["A widget.", "metadata", "spec"]),
        ("explain widgets.spec.size", ["How large it is to be.", "<integer>"]),
        ("explain po.spec.containers.resources.limits", ["map[string]"]),
        ("explain hpa.spec.minReplicas --api-version=autoscaling/v1", ["<integer>"]),
        ("explain crd.spec.versions", ["served"]),
        ("explain deploy.spec.template.metadata.ownerReferences", ["blockOwnerDeletion"]),
    ],
)
def test_kubectl_understands(kubectl: Kubectl, command: str, shown: list[str]) -> None:
    output = kubectl(*command.split())
    assert [each for each in shown if each not in output] == []


def test_kubectl_refuses_no_good_object(kubectl: Kubectl, tmp_path: Path) -> None:
    manifest = tmp_path / "widget.json"
    good = {"size": 3, "port": 80, "options": {"more": 1}, "maybe": None, "labels": {"a": "b"}, "anything": [1, "b"]}
    manifest.write_text(
        json.dumps({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w"}, "spec": good})
    )
    assert "widget.example.com/w" in kubectl("create", "--dry-run=client", "-f", str(manifest))
