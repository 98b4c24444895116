"""Custom objects in several versions: converted by the server's own function, or by a webhook over TLS."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import Awaitable, Callable, Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
from aiohttp import web
from tests.apiserver.servers import DEFINITIONS, Answer, Api, seen

from holdfast import kinds
from holdfast.apiserver.auth.identity import Identity
from holdfast.apiserver.server import Server
from holdfast.kinds import crds, nvidia
from holdfast.meta.exchange import Request

Object = dict[str, Any]

OLD = "/apis/nvidia.com/v1alpha1/namespaces/default/dynamographdeployments"
NEW = "/apis/nvidia.com/v1beta1/namespaces/default/dynamographdeployments"
GRAPH: Object = {
    "apiVersion": "nvidia.com/v1alpha1",
    "kind": "DynamoGraphDeployment",
    "metadata": {"name": "chat"},
    "spec": {
        "pvcs": [{"name": "cache", "create": False}],
        "services": {
            "Decode": {
                "dynamoNamespace": "chat",
                "componentType": "worker",
                "subComponentType": "decode",
                "replicas": 2,
                "resources": {"limits": {"gpu": "1"}},
                "extraPodSpec": {"mainContainer": {"image": "engine:1"}},
            }
        },
    },
}


@pytest.fixture
def api() -> Iterator[Api]:
    made = Api(conversions=kinds.conversion)
    made.post(DEFINITIONS, crds.crd_of(nvidia.GRAPHS, conversion={"strategy": "None"})).done()
    yield made
    made.close()


def test_an_object_of_the_older_version_is_stored_in_the_newer_one_and_read_in_both(api: Api) -> None:
    answer = api.post(OLD, GRAPH)
    assert answer.ok["spec"] == GRAPH["spec"]
    assert answer.warnings == (
        "nvidia.com/v1alpha1 DynamoGraphDeployment is deprecated; use nvidia.com/v1beta1 DynamoGraphDeployment",
    )
    (component,) = api.get(f"{NEW}/chat").ok["spec"]["components"]
    assert (component["name"], component["type"], component["replicas"]) == ("Decode", "decode", 2)
    assert api.get(f"{OLD}/chat").ok["spec"] == GRAPH["spec"]
    assert [each["spec"] for each in api.get(OLD).ok["items"]] == [GRAPH["spec"]]
    (entry,) = api.server.store.list("nvidia.com/dynamographdeployments")
    assert json.loads(entry.value)["apiVersion"] == "nvidia.com/v1beta1"


def test_a_watch_of_either_version_sees_what_the_other_one_writes(api: Api) -> None:
    watching = api.watch(f"{OLD}?resourceVersion={api.get(OLD).version}&timeoutSeconds=60")
    api.post(OLD, GRAPH).done()
    image = [{"op": "replace", "path": "/spec/components/0/podTemplate/spec/containers/0/image", "value": "engine:2"}]
    api.patch(f"{NEW}/chat", image, "json").done()
    api.delete(f"{NEW}/chat").done()
    events = watching.rest()
    assert seen(events) == [("ADDED", "chat"), ("MODIFIED", "chat"), ("DELETED", "chat")]
    images = [each["object"]["spec"]["services"]["Decode"]["extraPodSpec"] for each in events]
    assert [each["mainContainer"]["image"] for each in images] == ["engine:1", "engine:2", "engine:2"]
    assert events[1]["object"]["spec"]["pvcs"] == GRAPH["spec"]["pvcs"]


def test_each_version_is_validated_by_its_own_schema(api: Api) -> None:
    wrong = {**GRAPH, "spec": {"services": {"Decode": {"replicas": "two"}}}}
    assert "spec.services.Decode.replicas" in api.post(OLD, wrong).message
    api.post(OLD, GRAPH).done()
    assert (
        "spec.components[0].replicas"
        in api.patch(
            f"{NEW}/chat", [{"op": "replace", "path": "/spec/components/0/replicas", "value": -1}], "json"
        ).message
    )


def test_a_request_at_work_keeps_its_spec_in_the_older_version_too(api: Api) -> None:
    old = "/apis/nvidia.com/v1alpha1/namespaces/default/dynamographdeploymentrequests"
    api.post(DEFINITIONS, crds.crd_of(nvidia.REQUESTS, conversion={"strategy": "None"})).done()
    spec = {"model": "Qwen/Qwen3-8B", "backend": "vllm", "profilingConfig": {"profilerImage": "a:1"}}
    request = {"apiVersion": "nvidia.com/v1alpha1", "kind": "DynamoGraphDeploymentRequest", "metadata": {"name": "r"}}
    api.post(old, {**request, "spec": spec}).done()
    api.patch(f"{old.replace('v1alpha1', 'v1beta1')}/r/status", {"status": {"phase": "Ready"}}).done()
    assert "spec cannot change while the request is at work" in api.patch(f"{old}/r", {"spec": {"model": "b"}}).message
    api.patch(f"{old}/r", {"spec": {"autoApply": True}}).done()


def test_an_older_version_can_be_applied_again_and_changed_in_part(api: Api) -> None:
    api.apply(f"{OLD}/chat", GRAPH).done()
    changed = json.loads(json.dumps(GRAPH))
    changed["spec"]["services"]["Decode"]["replicas"] = 3
    api.apply(f"{OLD}/chat", changed).done()
    found = api.get(f"{NEW}/chat").ok
    assert found["spec"]["components"][0]["replicas"] == 3
    assert found["metadata"]["generation"] == 2
    api.patch(f"{NEW}/chat/status", {"status": {"state": "successful"}}).done()
    found = api.get(f"{OLD}/chat").ok
    assert (found["status"]["state"], found["spec"]) == ("successful", changed["spec"])


def test_tables_have_the_columns_of_their_version(api: Api) -> None:
    api.post(OLD, GRAPH).done()
    headers = {"accept": "application/json;as=Table;g=meta.k8s.io;v=v1"}
    table = api.get(OLD, headers=headers).ok
    assert [each["name"] for each in table["columnDefinitions"]] == ["Name", "Ready", "Backend", "Age"]


# --- webhooks

SITE = Identity.ephemeral("127.0.0.1", now=datetime.now(UTC))
WIDGETS = "/apis/example.com/{}/namespaces/default/widgets"
WIDE: Object = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


def definition(url: str) -> Object:
    schema = {"openAPIV3Schema": {"type": "object", "properties": {"spec": WIDE}}}
    versions = [
        {"name": name, "served": True, "storage": name == "v2", "schema": schema, "subresources": {"status": {}}}
        for name in ("v1", "v2")
    ]
    webhook = {
        "clientConfig": {"url": url, "caBundle": base64.b64encode(SITE.authority.certificate_pem).decode()},
        "conversionReviewVersions": ["v1"],
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"plural": "widgets", "kind": "Widget"},
            "versions": versions,
            "conversion": {"strategy": "Webhook", "webhook": webhook},
        },
    }


def swap(obj: Object, version: str) -> Object:
    """Sizes are texts in v1 and numbers in v2; a webhook may try to change the identity too."""
    size = obj["spec"]["size"]
    metadata = {**obj["metadata"], "uid": "another", "labels": {"seen": "yes"}}
    return {
        **obj,
        "apiVersion": f"example.com/{version}",
        "metadata": metadata,
        "spec": {"size": str(size) if version == "v1" else int(size)},
    }


class Site:
    """A server, and a site whose conversion webhook it calls."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self.calls: list[int] = []
        self.failure = ""

    async def convert(self, incoming: web.Request) -> web.Response:
        review = json.loads(await incoming.read())
        request = review["request"]
        self.calls.append(len(request["objects"]))
        version = request["desiredAPIVersion"].rpartition("/")[2]
        response: Object = {"uid": request["uid"], "result": {"status": "Success"}}
        if self.failure:
            response["result"] = {"status": "Failed", "message": self.failure}
        else:
            response["convertedObjects"] = [swap(each, version) for each in request["objects"]]
        kind = {"kind": "ConversionReview", "apiVersion": "apiextensions.k8s.io/v1"}
        return web.json_response({**kind, "response": response})

    async def ask(self, method: str, path: str, body: Any = None) -> Answer:
        headers = {
            "authorization": f"Bearer {self.server.identity.admin_token}",
            "content-type": "application/merge-patch+json" if method == "PATCH" else "application/json",
        }
        encoded = json.dumps(body).encode() if body is not None else b""
        response = await self.server.handle(Request(method, path, {}, headers, encoded))
        return Answer(response.status, response.body, response.warnings)


def played(story: Callable[[Site], Awaitable[None]]) -> None:
    async def run() -> None:
        server = await Server.open(None)
        site = Site(server)
        app = web.Application()
        app.router.add_post("/convert", site.convert)
        runner = web.AppRunner(app)
        await runner.setup()
        listening = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=SITE.tls())
        await listening.start()
        port = runner.addresses[0][1]
        try:
            (await site.ask("POST", DEFINITIONS, definition(f"https://127.0.0.1:{port}/convert"))).done()
            await story(site)
        finally:
            await runner.cleanup()
            await server.close()

    asyncio.run(run())


def widget(name: str, size: Any, version: str = "v1") -> Object:
    return {
        "apiVersion": f"example.com/{version}",
        "kind": "Widget",
        "metadata": {"name": name},
        "spec": {"size": size},
    }


def test_a_webhook_of_another_operator_converts_its_objects() -> None:
    async def story(site: Site) -> None:
        old, new = WIDGETS.format("v1"), WIDGETS.format("v2")
        made = (await site.ask("POST", old, widget("a", "3"))).ok
        assert made["spec"] == {"size": "3"}
        found = (await site.ask("GET", f"{new}/a")).ok
        assert found["spec"] == {"size": 3}
        assert found["metadata"]["uid"] == made["metadata"]["uid"] != "another"
        assert found["metadata"]["labels"] == {"seen": "yes"}
        (await site.ask("POST", new, widget("b", 4, "v2"))).done()
        site.calls.clear()
        listed = (await site.ask("GET", old)).ok["items"]
        assert [each["spec"]["size"] for each in listed] == ["3", "4"]
        assert len(site.calls) == 1, "a list is converted with one call"
        (await site.ask("PATCH", f"{old}/b", {"spec": {"size": "5"}})).done()
        assert (await site.ask("GET", f"{new}/b")).ok["spec"] == {"size": 5}
        (await site.ask("DELETE", f"{old}/a")).done()

    played(story)


def test_a_webhook_that_fails_is_named_with_what_it_says() -> None:
    async def story(site: Site) -> None:
        site.failure = "sizes must be numbers"
        answer = await site.ask("POST", WIDGETS.format("v1"), widget("a", "many"))
        assert answer.status == 500
        assert answer.message == "conversion webhook for example.com/v1, Kind=Widget failed: sizes must be numbers"

    played(story)
