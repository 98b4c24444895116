"""Kinds that are kept in another version than they are asked for in, and what the server gives services."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

from holdfast.apiserver.server import Server
from holdfast.meta.exchange import Request

Call = Callable[..., Awaitable[tuple[int, Any]]]


def conversation(talk: Callable[[Call], Awaitable[None]]) -> None:
    """Let `talk` speak with a server that forgets everything, as its admin."""

    async def run() -> None:
        server = await Server.open()

        async def call(method: str, path: str, body: Any = None, **query: str) -> tuple[int, Any]:
            headers = {"authorization": f"Bearer {server.identity.admin_token}", "content-type": "application/json"}
            content = b"" if body is None else json.dumps(body).encode()
            values = {name: (value,) for name, value in query.items()}
            response = await server.handle(Request(method, path, values, headers, content))
            return response.status, json.loads(response.body)

        try:
            await talk(call)
        finally:
            await server.close()

    asyncio.run(run())


AUTOSCALERS = "/apis/autoscaling/{}/namespaces/default/horizontalpodautoscalers"


def test_an_autoscaler_written_in_one_version_is_read_in_the_other() -> None:
    async def talk(call: Call) -> None:
        old = {
            "apiVersion": "autoscaling/v1",
            "kind": "HorizontalPodAutoscaler",
            "metadata": {"name": "web"},
            "spec": {
                "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
                "maxReplicas": 5,
                "targetCPUUtilizationPercentage": 70,
            },
        }
        code, made = await call("POST", AUTOSCALERS.format("v1"), old)
        assert (code, made["apiVersion"]) == (201, "autoscaling/v1")
        assert made["spec"]["targetCPUUtilizationPercentage"] == 70
        _, new = await call("GET", AUTOSCALERS.format("v2") + "/web")
        assert new["apiVersion"] == "autoscaling/v2"
        assert new["spec"]["metrics"][0]["resource"]["target"]["averageUtilization"] == 70
        _, listed = await call("GET", AUTOSCALERS.format("v1"))
        assert listed["items"][0]["spec"]["targetCPUUtilizationPercentage"] == 70

    conversation(talk)


def test_an_event_of_either_group_is_an_event_of_both() -> None:
    async def talk(call: Call) -> None:
        event = {
            "metadata": {"name": "e"},
            "involvedObject": {"kind": "Pod", "name": "p", "namespace": "default"},
            "reason": "Started",
            "message": "it began",
            "type": "Normal",
        }
        code, _ = await call("POST", "/api/v1/namespaces/default/events", event)
        assert code == 201
        _, other = await call("GET", "/apis/events.k8s.io/v1/namespaces/default/events/e")
        assert other["apiVersion"] == "events.k8s.io/v1"
        assert (other["regarding"]["name"], other["note"]) == ("p", "it began")
        code, _ = await call("DELETE", "/apis/events.k8s.io/v1/namespaces/default/events/e")
        assert code == 200
        code, _ = await call("GET", "/api/v1/namespaces/default/events/e")
        assert code == 404

    conversation(talk)


def test_services_get_addresses_and_node_ports_of_their_own() -> None:
    async def talk(call: Call) -> None:
        path = "/api/v1/namespaces/default/services"
        made = []
        for name in ("a", "b"):
            service = {"metadata": {"name": name}, "spec": {"type": "NodePort", "ports": [{"port": 80}]}}
            code, answer = await call("POST", path, service)
            assert code == 201, answer
            made.append(answer["spec"])
        assert made[0]["clusterIP"] != made[1]["clusterIP"]
        assert made[0]["clusterIPs"] == [made[0]["clusterIP"]]
        assert made[0]["ports"][0]["nodePort"] != made[1]["ports"][0]["nodePort"]
        headless = {"metadata": {"name": "c"}, "spec": {"clusterIP": "None", "ports": [{"port": 80}]}}
        _, answer = await call("POST", path, headless)
        assert answer["spec"]["clusterIP"] == "None"

    conversation(talk)


def test_a_node_comes_with_its_status_and_is_selected_by_what_it_is_not() -> None:
    async def talk(call: Call) -> None:
        node = {"metadata": {"name": "n1"}, "status": {"capacity": {"cpu": "4"}}}
        _, made = await call("POST", "/api/v1/nodes", node)
        assert made["status"]["capacity"] == {"cpu": "4"}
        _, found = await call("GET", "/api/v1/nodes", fieldSelector="spec.unschedulable=false")
        assert [each["metadata"]["name"] for each in found["items"]] == ["n1"]

    conversation(talk)


def test_a_custom_object_is_updated_only_at_a_version() -> None:
    async def talk(call: Call) -> None:
        definition = {
            "metadata": {"name": "things.example.com"},
            "spec": {
                "group": "example.com",
                "scope": "Namespaced",
                "names": {"kind": "Thing", "plural": "things"},
                "versions": [
                    {
                        "name": "v1",
                        "served": True,
                        "storage": True,
                        "schema": {
                            "openAPIV3Schema": {
                                "type": "object",
                                "properties": {
                                    "spec": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
                                },
                            }
                        },
                    }
                ],
            },
        }
        code, answer = await call("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition)
        assert code == 201, answer
        path = "/apis/example.com/v1/namespaces/default/things"
        kind = {"apiVersion": "example.com/v1", "kind": "Thing"}
        _, thing = await call("POST", path, {**kind, "metadata": {"name": "a"}, "spec": {"x": 1}})
        blind: dict[str, Any] = {**kind, "metadata": {"name": "a"}, "spec": {"x": 2}}
        code, answer = await call("PUT", f"{path}/a", blind)
        assert code == 422
        assert answer["details"]["causes"][0]["field"] == "metadata.resourceVersion"
        blind["metadata"]["resourceVersion"] = thing["metadata"]["resourceVersion"]
        code, answer = await call("PUT", f"{path}/a", blind)
        assert (code, answer["metadata"]["generation"]) == (200, 2)

    conversation(talk)


def test_what_cannot_be_a_token_request_is_refused_in_words() -> None:
    async def talk(call: Call) -> None:
        await call("POST", "/api/v1/namespaces/default/serviceaccounts", {"metadata": {"name": "bob"}})
        path = "/api/v1/namespaces/default/serviceaccounts/bob/token"
        code, answer = await call("POST", path, [1])
        assert (code, answer["reason"]) == (400, "BadRequest")
        code, answer = await call("POST", path, {"spec": {"audiences": []}})
        assert code == 201
        assert answer["status"]["token"]

    conversation(talk)
