"""Admission webhooks: asked over real TLS by a whole server, with answers good, bad and late."""

from __future__ import annotations

import asyncio
import base64
import io
import json
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import pytest
from aiohttp import web
from tests.apiserver.servers import (
    CONFIGMAPS,
    DEFINITIONS,
    DEPLOYMENTS,
    NAMESPACES,
    PODS,
    Answer,
    configmap,
    deployment,
    pod,
)

from holdfast.apiserver.admission.webhooks import matching
from holdfast.apiserver.admission.webhooks.dispatch import MUTATING, VALIDATING
from holdfast.apiserver.admission.webhooks.matching import Question, Rule
from holdfast.apiserver.auth.identity import Identity
from holdfast.apiserver.resources import ResourceType
from holdfast.apiserver.server import Server
from holdfast.apiserver.storage.store import Draft, Put
from holdfast.meta.exchange import Request, User

Object = dict[str, Any]
Respond = Callable[[Object], Any]

NOW = datetime.now(UTC)
SITE = Identity.ephemeral("127.0.0.1", now=NOW)
STRANGER = Identity.ephemeral("127.0.0.1", now=NOW)
REGISTRATION = "/apis/admissionregistration.k8s.io/v1"
RULE = {"operations": ["*"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"]}
ENDLESS, HANG_UP = "endless", "hang up"


def bundle(identity: Identity) -> str:
    return base64.b64encode(identity.authority.certificate_pem).decode()


def allow(request: Object) -> Object:
    return {"allowed": True}


def patch(*operations: Object) -> Respond:
    encoded = base64.b64encode(json.dumps(operations).encode()).decode()
    return lambda request: {"allowed": True, "patchType": "JSONPatch", "patch": encoded}


def put(path: str, value: Any) -> Respond:
    return patch({"op": "add", "path": path, "value": value})


def deny(status: Object | None = None) -> Respond:
    return lambda request: {"allowed": False} | ({"status": status} if status is not None else {})


@dataclass
class World:
    """A server, and a site with webhooks that it can reach; `responds` says what each path answers."""

    server: Server
    port: int = 0
    responds: dict[str, Respond] = field(default_factory=dict)
    asked: list[tuple[str, Object]] = field(default_factory=list)

    def webhook(self, path: str = "/hook", respond: Respond = allow, **rest: Any) -> Object:
        """A webhook of a configuration, whose answers are `respond`'s."""
        self.responds[path] = respond
        return {
            "name": f"{path.strip('/')}.example.com",
            "clientConfig": {"url": f"https://127.0.0.1:{self.port}{path}", "caBundle": bundle(SITE)},
            "rules": [RULE],
            "sideEffects": "None",
            "admissionReviewVersions": ["v1"],
        } | rest

    async def ask(self, method: str, target: str, body: Any = None, content_type: str = "application/json") -> Answer:
        path, _, query = target.partition("?")
        given = {name: (value,) for name, _, value in (each.partition("=") for each in query.split("&") if each)}
        headers = {"authorization": f"Bearer {self.server.identity.admin_token}", "content-type": content_type}
        encoded = json.dumps(body).encode() if body is not None else b""
        response = await self.server.handle(Request(method, path, given, headers, encoded))
        return Answer(response.status, response.body, response.warnings)

    async def configure(self, sort: str, *webhooks: Object, name: str = "site") -> None:
        kind = f"{sort}WebhookConfiguration"
        body = {"metadata": {"name": name}, "webhooks": list(webhooks)}
        assert (await self.ask("POST", f"{REGISTRATION}/{kind.lower()}s", body)).ok

    def requests(self, path: str = "/hook") -> list[Object]:
        return [request for asked, request in self.asked if asked == path]

    @property
    def order(self) -> list[str]:
        return [path for path, _ in self.asked]

    async def serve(self, incoming: web.BaseRequest) -> web.StreamResponse:
        review = json.loads(await incoming.read())
        assert (review["kind"], review["apiVersion"]) == ("AdmissionReview", "admission.k8s.io/v1")
        self.asked.append((incoming.path, review["request"]))
        response = self.responds[incoming.path](review["request"])
        if response == HANG_UP:
            assert incoming.transport is not None
            incoming.transport.abort()
        if response in (ENDLESS, HANG_UP):
            await asyncio.Event().wait()
        if isinstance(response, web.Response):
            return response
        answer = {"uid": review["request"]["uid"]} | response
        return web.json_response({"kind": review["kind"], "apiVersion": review["apiVersion"], "response": answer})


def play(scenario: Callable[[World], Coroutine[Any, Any, None]]) -> None:
    """Run a scenario with a server and a site of its own."""

    async def run() -> None:
        world = World(await Server.open(None))
        runner = web.ServerRunner(web.Server(world.serve, handler_cancellation=True), shutdown_timeout=0.1)
        await runner.setup()
        try:
            await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=SITE.tls()).start()
            world.port = runner.addresses[0][1]
            async with asyncio.timeout(20):
                await scenario(world)
        finally:
            await world.server.close()
            await runner.cleanup()

    asyncio.run(run())


# What webhooks are told, and what they change.


def test_a_webhook_is_told_everything_about_a_request() -> None:
    async def scenario(world: World) -> None:
        await world.configure("Mutating", world.webhook())
        target = f"{CONFIGMAPS}?fieldManager=me&fieldValidation=Strict"
        created = (await world.ask("POST", target, configmap("a", data={"x": "1"}))).ok
        (request,) = world.requests()
        assert len(request.pop("uid")) == 36
        assert request.pop("object")["data"] == {"x": "1"}
        assert request == {
            "kind": {"group": "", "version": "v1", "kind": "ConfigMap"},
            "resource": {"group": "", "version": "v1", "resource": "configmaps"},
            "requestKind": {"group": "", "version": "v1", "kind": "ConfigMap"},
            "requestResource": {"group": "", "version": "v1", "resource": "configmaps"},
            "name": "a",
            "namespace": "default",
            "operation": "CREATE",
            "userInfo": request["userInfo"],
            "oldObject": None,
            "dryRun": False,
            "options": {
                "kind": "CreateOptions",
                "apiVersion": "meta.k8s.io/v1",
                "fieldManager": "me",
                "fieldValidation": "Strict",
            },
        }
        assert "system:masters" in request["userInfo"]["groups"]
        await world.ask("PATCH", f"{CONFIGMAPS}/a", {"data": {"x": "2"}}, "application/merge-patch+json")
        update = world.requests()[1]
        assert update["operation"] == "UPDATE"
        assert update["options"]["kind"] == "UpdateOptions"
        assert (update["oldObject"]["data"], update["object"]["data"]) == ({"x": "1"}, {"x": "2"})
        assert update["oldObject"]["metadata"]["uid"] == created["metadata"]["uid"]

    play(scenario)


def test_the_patch_of_a_mutating_webhook_is_stored_with_defaults_and_without_unknown_fields() -> None:
    async def scenario(world: World) -> None:
        pods = [{**RULE, "resources": ["pods"]}]
        sidecar = {"name": "sidecar", "image": "proxy:1", "colour": "red"}
        await world.configure("Mutating", world.webhook(respond=put("/spec/containers/-", sidecar), rules=pods))
        made = (await world.ask("POST", PODS, pod("a"))).ok
        assert [each["name"] for each in made["spec"]["containers"]] == ["main", "sidecar"]
        added = made["spec"]["containers"][1]
        assert added["imagePullPolicy"] == "IfNotPresent"
        assert "colour" not in added
        assert made == (await world.ask("GET", f"{PODS}/a")).ok

    play(scenario)


def test_what_only_the_server_may_set_is_kept_whatever_webhooks_say() -> None:
    async def scenario(world: World) -> None:
        meddling = patch(
            {"op": "add", "path": "/metadata/uid", "value": "mine"},
            {"op": "add", "path": "/metadata/generation", "value": 70},
            {"op": "add", "path": "/metadata/creationTimestamp", "value": "2001-01-01T00:00:00Z"},
            {"op": "add", "path": "/status", "value": {"readyReplicas": 9}},
            {"op": "add", "path": "/spec/replicas", "value": 5},
        )
        rules = [{**RULE, "apiGroups": ["apps"], "resources": ["deployments"]}]
        await world.configure("Mutating", world.webhook(respond=meddling, rules=rules))
        made = (await world.ask("POST", DEPLOYMENTS, deployment("a"))).ok
        assert made["metadata"]["uid"] != "mine"
        assert made["metadata"]["generation"] == 1
        assert not made["metadata"]["creationTimestamp"].startswith("2001")
        assert "readyReplicas" not in made.get("status", {})
        assert made["spec"]["replicas"] == 5

    play(scenario)


def test_the_owner_of_applied_fields_stays_the_one_who_applied_them() -> None:
    async def scenario(world: World) -> None:
        meddling = patch(
            {"op": "replace", "path": "/metadata/managedFields", "value": []},
            {"op": "add", "path": "/data/y", "value": "webhook"},
        )
        await world.configure("Mutating", world.webhook(respond=meddling))
        body, content_type = configmap("a", data={"x": "1"}), "application/apply-patch+yaml"
        made = (await world.ask("PATCH", f"{CONFIGMAPS}/a?fieldManager=me", body, content_type)).ok
        assert made["data"] == {"x": "1", "y": "webhook"}
        assert [each["manager"] for each in made["metadata"]["managedFields"]] == ["me"]
        assert "f:y" not in json.dumps(made["metadata"]["managedFields"])

    play(scenario)


def test_webhooks_are_asked_in_the_order_of_their_configurations_names_and_of_their_lists() -> None:
    async def scenario(world: World) -> None:
        def append(letter: str) -> Respond:
            def respond(request: Object) -> Any:
                before = request["object"].get("data", {}).get("x", "")
                return put("/data", {"x": before + letter})(request)

            return respond

        await world.configure("Mutating", world.webhook("/c", append("c")), name="second")
        hooks = world.webhook("/b", append("b")), world.webhook("/a", append("a"))
        await world.configure("Mutating", *hooks, name="first")
        assert (await world.ask("POST", CONFIGMAPS, configmap("x"))).ok["data"] == {"x": "bac"}
        assert world.order == ["/b", "/a", "/c"]

    play(scenario)


def test_a_webhook_that_wants_to_see_later_changes_is_asked_once_more_and_only_if_there_are_any() -> None:
    async def scenario(world: World) -> None:
        def label(request: Object) -> Any:
            late = "late" in request["object"].get("data", {})
            return put("/metadata/labels", {"seen": "late" if late else "early"})(request)

        def only_b(request: Object) -> Any:
            return put("/data", {"late": "1"})(request) if request["name"] == "b" else allow(request)

        hooks = (
            world.webhook("/again", label, reinvocationPolicy="IfNeeded"),
            world.webhook("/never", allow),
            world.webhook("/late", only_b),
        )
        await world.configure("Mutating", *hooks)
        assert (await world.ask("POST", CONFIGMAPS, configmap("a"))).ok["metadata"]["labels"] == {"seen": "early"}
        assert world.order == ["/again", "/never", "/late"]
        world.asked.clear()
        assert (await world.ask("POST", CONFIGMAPS, configmap("b"))).ok["metadata"]["labels"] == {"seen": "late"}
        assert world.order == ["/again", "/never", "/late", "/again"]

    play(scenario)


# Refusals and warnings.

DENIALS: list[tuple[Object | None, int, str, str]] = [
    (None, 400, "", " without explanation"),
    ({}, 400, "", " without explanation"),
    ({"message": "no cats"}, 400, "", ": no cats"),
    ({"message": "no cats", "code": 403, "reason": "Forbidden"}, 403, "Forbidden", ": no cats"),
    ({"reason": "NoCats", "code": 200}, 400, "NoCats", ": NoCats"),
    ({"code": 422, "message": "bad"}, 422, "", ": bad"),
    ({"code": 1000, "message": "bad"}, 400, "", ": bad"),
]


@pytest.mark.parametrize("sort", ["Mutating", "Validating"])
def test_a_denial_has_the_words_and_the_code_of_the_webhook(sort: str) -> None:
    async def scenario(world: World) -> None:
        await world.configure(sort, world.webhook())
        for status, code, reason, words in DENIALS:
            world.responds["/hook"] = deny(status)
            answer = await world.ask("POST", CONFIGMAPS, configmap("a"))
            assert answer.refusal == (code, reason), status
            assert answer.message == f'admission webhook "hook.example.com" denied the request{words}'
        assert (await world.ask("GET", f"{CONFIGMAPS}/a")).status == 404

    play(scenario)


def test_warnings_of_all_webhooks_reach_the_client() -> None:
    async def scenario(world: World) -> None:
        def warn(text: str) -> Respond:
            return lambda request: {"allowed": True, "warnings": [text]}

        await world.configure("Mutating", world.webhook("/m", warn("first")))
        await world.configure("Validating", world.webhook("/v", warn("second")), world.webhook("/w", warn("third")))
        expected = ("first", "second", "third")
        assert (await world.ask("POST", CONFIGMAPS, configmap("a"))).warnings == expected
        assert (await world.ask("PUT", f"{CONFIGMAPS}/a", configmap("a", data={"x": "1"}))).warnings == expected
        assert (await world.ask("DELETE", f"{CONFIGMAPS}/a")).warnings == expected
        for name in ("b", "c"):
            await world.ask("POST", CONFIGMAPS, configmap(name))
        assert (await world.ask("DELETE", CONFIGMAPS)).warnings == expected * 2

    play(scenario)


def test_validating_webhooks_see_the_valid_outcome_and_of_several_refusals_the_first_counts() -> None:
    async def scenario(world: World) -> None:
        await world.configure("Mutating", world.webhook("/m", put("/data", {"x": "1"})))
        await world.configure(
            "Validating", world.webhook("/a", deny({"message": "a"})), world.webhook("/b", deny({"message": "b"}))
        )
        answer = await world.ask("POST", CONFIGMAPS, configmap("a"))
        assert answer.message == 'admission webhook "a.example.com" denied the request: a'
        assert [each["object"]["data"] for path in ("/a", "/b") for each in world.requests(path)] == [{"x": "1"}] * 2
        world.asked.clear()
        assert (await world.ask("POST", CONFIGMAPS, configmap("Not_A_Name"))).status == 422
        assert world.order == ["/m"]

    play(scenario)


# Deletions.


def test_a_deletion_is_asked_about_with_the_old_object_and_its_options() -> None:
    async def scenario(world: World) -> None:
        await world.ask("POST", CONFIGMAPS, configmap("a", data={"x": "1"}))
        await world.configure("Validating", world.webhook(respond=deny({"message": "stays"})))
        body = {"propagationPolicy": "Foreground", "gracePeriodSeconds": 0, "preconditions": {"uid": ""}}
        assert (await world.ask("DELETE", f"{CONFIGMAPS}/a", body)).status == 400
        assert (await world.ask("GET", f"{CONFIGMAPS}/a")).ok
        (request,) = world.requests()
        assert (request["operation"], request["object"]) == ("DELETE", None)
        assert request["oldObject"]["data"] == {"x": "1"}
        assert request["options"] == {
            "kind": "DeleteOptions",
            "apiVersion": "meta.k8s.io/v1",
            "propagationPolicy": "Foreground",
            "gracePeriodSeconds": 0,
        }
        assert (await world.ask("DELETE", CONFIGMAPS)).status == 400
        world.responds["/hook"] = allow
        assert (await world.ask("DELETE", f"{CONFIGMAPS}/a")).ok
        assert (await world.ask("GET", f"{CONFIGMAPS}/a")).status == 404

    play(scenario)


def test_mutating_webhooks_are_asked_about_deletions_but_cannot_change_anything() -> None:
    async def scenario(world: World) -> None:
        await world.ask("POST", CONFIGMAPS, configmap("a"))
        await world.configure("Mutating", world.webhook(respond=put("/data", {})))
        answer = await world.ask("DELETE", f"{CONFIGMAPS}/a")
        assert answer.refusal == (500, "InternalError")
        assert "attempted to modify the object, which is not supported for this operation" in answer.message
        world.responds["/hook"] = allow
        assert (await world.ask("DELETE", f"{CONFIGMAPS}/a")).ok

    play(scenario)


# Subresources.


def test_a_write_of_the_status_is_a_subresource_of_its_own_and_changes_nothing_else() -> None:
    async def scenario(world: World) -> None:
        await world.ask("POST", PODS, pod("a"))
        meddling = patch(
            {"op": "add", "path": "/status/message", "value": "seen"},
            {"op": "add", "path": "/metadata/labels", "value": {"x": "y"}},
        )
        rules = [{**RULE, "resources": ["pods/status"]}]
        await world.configure("Mutating", world.webhook(respond=meddling, rules=rules))
        status, content_type = {"status": {"phase": "Running"}}, "application/merge-patch+json"
        made = (await world.ask("PATCH", f"{PODS}/a/status", status, content_type)).ok
        (request,) = world.requests()
        assert (request["subResource"], request["requestSubResource"]) == ("status", "status")
        assert (made["status"]["phase"], made["status"]["message"]) == ("Running", "seen")
        assert made["metadata"].get("labels", {}) == {}
        await world.ask("PATCH", f"{PODS}/a", {"metadata": {"labels": {"a": "b"}}}, content_type)
        assert len(world.requests()) == 1

    play(scenario)


def test_of_a_scale_webhooks_see_and_change_the_scale() -> None:
    async def scenario(world: World) -> None:
        await world.ask("POST", DEPLOYMENTS, deployment("a", 3))
        rules = [{**RULE, "apiGroups": ["apps"], "resources": ["deployments/scale"]}]
        await world.configure("Mutating", world.webhook(respond=put("/spec/replicas", 2), rules=rules))
        body, content_type = {"spec": {"replicas": 7}}, "application/merge-patch+json"
        scale = (await world.ask("PATCH", f"{DEPLOYMENTS}/a/scale", body, content_type)).ok
        (request,) = world.requests()
        assert request["kind"] == {"group": "autoscaling", "version": "v1", "kind": "Scale"} == request["requestKind"]
        assert (request["oldObject"]["spec"], request["object"]["spec"]) == ({"replicas": 3}, {"replicas": 7})
        assert scale["spec"] == {"replicas": 2}
        assert (await world.ask("GET", f"{DEPLOYMENTS}/a")).ok["spec"]["replicas"] == 2

    play(scenario)


@pytest.mark.parametrize(
    ("subresource", "body", "kind"),
    [
        ("eviction", {"kind": "Eviction", "apiVersion": "policy/v1"}, "Eviction"),
        ("binding", {"target": {"kind": "Node", "name": "n"}}, "Binding"),
    ],
)
def test_what_is_posted_to_a_pod_is_asked_about_as_what_it_is(subresource: str, body: Object, kind: str) -> None:
    async def scenario(world: World) -> None:
        await world.ask("POST", PODS, pod("a"))
        rules = [{**RULE, "resources": [f"pods/{subresource}"]}]
        await world.configure("Validating", world.webhook(respond=deny({"message": "stays"}), rules=rules))
        assert (await world.ask("POST", f"{PODS}/a/{subresource}", body)).status == 400
        (request,) = world.requests()
        assert (request["operation"], request["kind"]["kind"], request["name"]) == ("CREATE", kind, "a")
        assert (await world.ask("GET", f"{PODS}/a")).ok["spec"].get("nodeName") is None
        world.responds["/hook"] = lambda request: {"allowed": True, "warnings": ["careful"]}
        answer = await world.ask("POST", f"{PODS}/a/{subresource}", body)
        assert (answer.status, answer.warnings) == (201, ("careful",))

    play(scenario)


# Who is asked.

KIND = ResourceType(group="apps", version="v1", kind="Thing", plural="things", singular="thing")
CLUSTER = ResourceType(group="", version="v1", kind="Node", plural="nodes", singular="node", namespaced=False)


@pytest.mark.parametrize(
    ("changed", "kind", "subresource", "matches"),
    [
        ({}, KIND, "", True),
        ({"operations": ["*"]}, KIND, "", True),
        ({"operations": ["UPDATE", "DELETE"]}, KIND, "", False),
        ({"apiGroups": ["*"]}, KIND, "", True),
        ({"apiGroups": [""]}, KIND, "", False),
        ({"apiVersions": ["*"]}, KIND, "", True),
        ({"apiVersions": ["v2"]}, KIND, "", False),
        ({}, KIND, "status", False),
        ({"resources": ["things/status"]}, KIND, "status", True),
        ({"resources": ["things/status"]}, KIND, "", False),
        ({"resources": ["things/*"]}, KIND, "status", True),
        ({"resources": ["things/*"]}, KIND, "", True),
        ({"resources": ["*"]}, KIND, "", True),
        ({"resources": ["*"]}, KIND, "status", False),
        ({"resources": ["*/status"]}, KIND, "status", True),
        ({"resources": ["*/status"]}, KIND, "scale", False),
        ({"resources": ["*/*"]}, KIND, "", True),
        ({"resources": ["*/*"]}, KIND, "scale", True),
        ({"resources": ["others"]}, KIND, "", False),
        ({"scope": "Namespaced"}, KIND, "", True),
        ({"scope": "Cluster"}, KIND, "", False),
        ({"scope": "Cluster", "apiGroups": [""], "resources": ["nodes"]}, CLUSTER, "", True),
        ({"scope": "Namespaced", "apiGroups": [""], "resources": ["nodes"]}, CLUSTER, "", False),
        ({"resources": None}, KIND, "", False),
    ],
)
def test_a_rule_matches_what_it_names(changed: Object, kind: ResourceType, subresource: str, matches: bool) -> None:
    rule = {"operations": ["CREATE"], "apiGroups": ["apps"], "apiVersions": ["v1"], "resources": ["things"]} | changed
    assert Rule.read(rule).matches(kind, subresource, operation="CREATE") is matches


def test_a_namespace_selector_goes_by_the_namespace_or_by_the_namespace_that_is_written() -> None:
    async def scenario(world: World) -> None:
        rules = [{**RULE, "resources": ["*"]}]
        hook = world.webhook(rules=rules, namespaceSelector={"matchLabels": {"team": "a"}})
        await world.configure("Validating", hook)
        labelled = {"metadata": {"name": "mine", "labels": {"team": "a"}}}
        await world.ask("POST", NAMESPACES, labelled)
        await world.ask("POST", NAMESPACES, {"metadata": {"name": "other"}})
        await world.ask("POST", "/api/v1/namespaces/mine/configmaps", configmap("x"))
        await world.ask("POST", "/api/v1/namespaces/other/configmaps", configmap("x"))
        await world.ask("POST", "/api/v1/nodes", {"metadata": {"name": "n"}})
        seen = [(each["requestKind"]["kind"], each.get("namespace")) for each in world.requests()]
        assert seen == [("Namespace", "mine"), ("ConfigMap", "mine"), ("Node", None)]
        world.asked.clear()
        unlabelled = {"metadata": {"labels": {"team": None}}}
        await world.ask("PATCH", f"{NAMESPACES}/mine", unlabelled, "application/merge-patch+json")
        assert world.asked == []

    play(scenario)


def test_an_object_selector_takes_the_new_object_or_the_old_one() -> None:
    async def scenario(world: World) -> None:
        selector = {"matchExpressions": [{"key": "watch", "operator": "Exists"}]}
        await world.configure("Validating", world.webhook(objectSelector=selector))
        await world.ask("POST", CONFIGMAPS, configmap("a"))
        assert world.asked == []
        for labels in ({"watch": "1"}, {"watch": None}):
            body = {"metadata": {"labels": labels}}
            await world.ask("PATCH", f"{CONFIGMAPS}/a", body, "application/merge-patch+json")
        assert len(world.asked) == 2
        await world.ask("DELETE", f"{CONFIGMAPS}/a")
        assert len(world.asked) == 2

    play(scenario)


CONDITIONS = [
    (["object.metadata.name == 'a'"], "Fail", "asked"),
    (["object.metadata.name == 'b'"], "Fail", "not asked"),
    (["request.operation == 'CREATE'", "oldObject == null"], "Fail", "asked"),
    (["request.userInfo.groups.exists(each, each == 'system:masters')"], "Fail", "asked"),
    (["request.resource.resource.matches('^config')"], "Fail", "asked"),
    (["object.nothing == 1"], "Fail", "refused"),
    (["object.nothing == 1"], "Ignore", "not asked"),
    (["object.nothing == 1", "false"], "Fail", "not asked"),
    (["'text'"], "Fail", "refused"),
    (["this does not compile"], "Fail", "refused"),
]


def test_match_conditions_decide_who_is_asked() -> None:
    async def scenario(world: World) -> None:
        for index, (expressions, policy, _) in enumerate(CONDITIONS):
            conditions = [{"name": f"c{place}", "expression": text} for place, text in enumerate(expressions)]
            only = {"matchLabels": {"case": str(index)}}
            hook = world.webhook(f"/c{index}", matchConditions=conditions, failurePolicy=policy, objectSelector=only)
            await world.configure("Validating", hook, name=f"c{index}")
        for index, (expressions, policy, expected) in enumerate(CONDITIONS):
            body = configmap("a", metadata={"labels": {"case": str(index)}})
            answer = await world.ask("POST", f"{CONFIGMAPS}?dryRun=All", body)
            outcome = "asked" if world.requests(f"/c{index}") else "not asked"
            if answer.status == 403:
                assert answer.message.startswith(f"configmaps \"a\" is forbidden: expression '{expressions[0]}' ")
                outcome = "refused"
            assert outcome == expected, (expressions, policy, answer.raw)

    play(scenario)


def test_rules_for_one_version_of_a_resource_hold_for_its_others_unless_they_are_to_be_exact() -> None:
    async def scenario(world: World) -> None:
        def version(name: str, *, storage: bool) -> Object:
            schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
            return {"name": name, "served": True, "storage": storage, "schema": {"openAPIV3Schema": schema}}

        names = {"plural": "cats", "singular": "cat", "kind": "Cat"}
        versions = [version("v1", storage=True), version("v2", storage=False)]
        spec = {"group": "pets.example.com", "scope": "Namespaced", "names": names, "versions": versions}
        await world.ask("POST", DEFINITIONS, {"metadata": {"name": "cats.pets.example.com"}, "spec": spec})
        rules = [{**RULE, "apiGroups": ["pets.example.com"], "resources": ["cats"]}]
        equivalent = world.webhook("/equivalent", put("/spec", {"colour": "red"}), rules=rules)
        exact = world.webhook("/exact", rules=rules, matchPolicy="Exact")
        await world.configure("Mutating", equivalent, exact)
        body = {"apiVersion": "pets.example.com/v2", "kind": "Cat", "metadata": {"name": "tom"}}
        made = (await world.ask("POST", "/apis/pets.example.com/v2/namespaces/default/cats", body)).ok
        assert world.order == ["/equivalent"]
        (request,) = world.requests("/equivalent")
        assert (request["kind"]["version"], request["requestKind"]["version"]) == ("v1", "v2")
        assert (request["resource"]["version"], request["requestResource"]["version"]) == ("v1", "v2")
        assert request["object"]["apiVersion"] == "pets.example.com/v1"
        assert (made["apiVersion"], made["spec"]) == ("pets.example.com/v2", {"colour": "red"})

    play(scenario)


def test_a_webhook_sees_and_changes_an_object_in_the_version_of_its_rules() -> None:
    async def scenario(world: World) -> None:
        rules = [{**RULE, "apiGroups": ["autoscaling"], "resources": ["horizontalpodautoscalers"]}]
        await world.configure("Mutating", world.webhook(respond=put("/spec/minReplicas", 2), rules=rules))
        cpu = {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 70}}
        target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "a"}
        spec = {"scaleTargetRef": target, "maxReplicas": 5, "metrics": [{"type": "Resource", "resource": cpu}]}
        body = {"apiVersion": "autoscaling/v2", "metadata": {"name": "a"}, "spec": spec}
        place = "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers"
        made = (await world.ask("POST", place, body)).ok
        (request,) = world.requests()
        assert request["object"]["apiVersion"] == "autoscaling/v1"
        assert request["object"]["spec"]["targetCPUUtilizationPercentage"] == 70
        assert (made["apiVersion"], made["spec"]["minReplicas"]) == ("autoscaling/v2", 2)
        assert made["spec"]["metrics"] == spec["metrics"]

    play(scenario)


def test_configurations_and_the_servers_own_writes_ask_nobody() -> None:
    async def scenario(world: World) -> None:
        everything = [{"operations": ["*"], "apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*/*"]}]
        for sort in ("Mutating", "Validating"):
            await world.configure(sort, world.webhook(f"/{sort.lower()}", deny(), rules=everything))
        assert (await world.ask("POST", CONFIGMAPS, configmap("a"))).status == 400
        world.asked.clear()
        for sort in ("mutating", "validating"):
            assert (await world.ask("DELETE", f"{REGISTRATION}/{sort}webhookconfigurations/site")).ok
        assert world.asked == []
        assert (await world.ask("POST", CONFIGMAPS, configmap("a"))).status == 201
        assert world.asked == []

    play(scenario)


# Dry runs.


def test_a_dry_run_is_told_to_webhooks_and_kept_from_those_with_side_effects() -> None:
    async def scenario(world: World) -> None:
        await world.configure("Mutating", world.webhook(respond=put("/data", {"x": "1"})))
        made = (await world.ask("POST", f"{CONFIGMAPS}?dryRun=All", configmap("a"))).ok
        assert made["data"] == {"x": "1"}
        (request,) = world.requests()
        assert request["dryRun"] is True
        assert request["options"]["dryRun"] == ["All"]
        # Configurations of old may have side effects; new ones are refused, so this one is put where they are.
        old = {"metadata": {"name": "old"}, "webhooks": [world.webhook("/old", sideEffects="Some")]}
        await world.server.store.write(Put(VALIDATING, "", "old", Draft.of(old)))
        answer = await world.ask("POST", f"{CONFIGMAPS}?dryRun=All", configmap("a"))
        assert answer.refusal == (400, "BadRequest")
        assert answer.message == 'admission webhook "old.example.com" does not support dry run'
        assert world.requests("/old") == []
        assert (await world.ask("POST", CONFIGMAPS, configmap("a"))).ok
        world.responds["/hook"] = allow
        assert (await world.ask("DELETE", f"{CONFIGMAPS}/a?dryRun=All")).status == 400

    play(scenario)


# Failures.


def raw(body: bytes | str, status: int = 200, **headers: str) -> Respond:
    content = body.encode() if isinstance(body, str) else body
    return lambda request: web.Response(body=io.BytesIO(content), status=status, headers=headers)


def review(**response: Any) -> Respond:
    """A whole review of the site's own making."""
    return raw(json.dumps({"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "response": response}))


def unreviewed(request: Object) -> web.Response:
    return web.json_response({"response": {"uid": request["uid"], "allowed": True}})


def fixed(**response: Any) -> Respond:
    return lambda request: {"allowed": True} | response


FAILURES: list[tuple[str, Respond, str]] = [
    ("Mutating", raw("no", 404), "failed to call webhook: the server could not find the requested resource"),
    ("Mutating", raw("no", 503), "failed to call webhook: the server is currently unable to handle the request"),
    ("Mutating", raw("no", 500), 'failed to call webhook: an error on the server ("unknown") has prevented'),
    ("Mutating", raw("no", 302, Location="https://127.0.0.1/"), "failed to call webhook: the server answered 302"),
    ("Mutating", raw("x" * (3 << 20) + "x"), "failed to call webhook: the answer is larger than 3145728 bytes"),
    ("Mutating", raw("what?"), "received invalid webhook response: couldn't decode it"),
    ("Mutating", raw(b'{"kind": "\xff"}'), "received invalid webhook response: couldn't decode it"),
    ("Mutating", raw("[" * 100_000), "received invalid webhook response: couldn't decode it"),
    ("Mutating", raw("{}"), "received invalid webhook response: webhook response was absent"),
    ("Mutating", review(uid="other", allowed=True), "received invalid webhook response: expected response.uid="),
    ("Mutating", unreviewed, "expected webhook response of admission.k8s.io/v1, Kind=AdmissionReview, got /, Kind="),
    ("Mutating", fixed(allowed="yes"), "received invalid webhook response: couldn't decode it"),
    ("Mutating", fixed(patch="W10="), "webhook returned response.patch but not response.patchType"),
    ("Mutating", fixed(patchType="JSONPatch"), "webhook returned response.patchType but not response.patch"),
    ("Mutating", fixed(patch="W10=", patchType="Merge"), 'unsupported patch type "Merge"'),
    ("Mutating", fixed(patch="e30=", patchType="JSONPatch"), "undecodable patch"),
    ("Validating", fixed(patch="W10=", patchType="JSONPatch"), "validating webhook may not return response.patch"),
    ("Validating", fixed(patchType="JSONPatch"), "validating webhook may not return response.patchType"),
]


@pytest.mark.parametrize("policy", ["Fail", "Ignore"])
def test_a_webhook_that_cannot_be_understood_fails_the_request_or_is_passed_over(policy: str) -> None:
    async def scenario(world: World) -> None:
        for sort in ("Mutating", "Validating"):
            await world.configure(sort, world.webhook(f"/{sort.lower()}", failurePolicy=policy))
        for sort, respond, words in FAILURES:
            world.responds |= {"/mutating": allow, "/validating": allow, f"/{sort.lower()}": respond}
            answer = await world.ask("POST", f"{CONFIGMAPS}?dryRun=All", configmap("a"))
            if policy == "Ignore":
                assert answer.status == 201, (sort, words, answer.raw)
                continue
            assert answer.refusal == (500, "InternalError"), (sort, words)
            start = f'Internal error occurred: failed calling webhook "{sort.lower()}.example.com": '
            assert answer.message.startswith(start)
            assert words in answer.message

    play(scenario)


BAD_PATCHES: list[Object] = [
    {"op": "remove", "path": "/data"},
    {"op": "replace", "path": "", "value": 3},
    {"op": "add", "path": "/metadata/labels", "value": 3},
    {"op": "add", "path": "/metadata/labels", "value": {"x": 1}},
    {"op": "add", "path": "/data", "value": {"x": 1}},
    {"op": "add", "path": "/kind", "value": "Secret"},
    {"op": "remove", "path": "/metadata"},
]


def test_a_patch_that_cannot_be_used_fails_the_request_whatever_the_policy() -> None:
    async def scenario(world: World) -> None:
        await world.configure("Mutating", world.webhook(failurePolicy="Ignore"))
        for operation in BAD_PATCHES:
            world.responds["/hook"] = patch(operation)
            answer = await world.ask("POST", CONFIGMAPS, configmap("a"))
            if operation == {"op": "remove", "path": "/metadata"}:
                assert answer.ok["metadata"]["name"] == "a"
                continue
            assert answer.refusal == (500, "InternalError"), operation
            assert 'the patch of admission webhook "hook.example.com" cannot be used' in answer.message

    play(scenario)


def test_values_that_a_patch_copies_are_independent_of_each_other() -> None:
    async def scenario(world: World) -> None:
        operations = (
            {"op": "copy", "from": "/spec/containers/0", "path": "/spec/containers/-"},
            {"op": "replace", "path": "/spec/containers/1/name", "value": "twin"},
        )
        rules = [{**RULE, "resources": ["pods"]}]
        await world.configure("Mutating", world.webhook(respond=patch(*operations), rules=rules))
        made = (await world.ask("POST", PODS, pod("a"))).ok
        assert [each["name"] for each in made["spec"]["containers"]] == ["main", "twin"]

    play(scenario)


def test_a_webhook_that_does_not_answer_in_its_time_has_failed() -> None:
    async def scenario(world: World) -> None:
        def hook(policy: str) -> Object:
            only = {"matchLabels": {"policy": policy}}
            path = f"/{policy.lower()}"
            return world.webhook(
                path, lambda request: ENDLESS, timeoutSeconds=1, failurePolicy=policy, objectSelector=only
            )

        await world.configure("Validating", hook("Fail"), hook("Ignore"))
        bodies = [configmap(policy.lower(), metadata={"labels": {"policy": policy}}) for policy in ("Fail", "Ignore")]
        failed, ignored = await asyncio.gather(*(world.ask("POST", CONFIGMAPS, body) for body in bodies))
        assert failed.message == (
            'Internal error occurred: failed calling webhook "fail.example.com": failed to call webhook: '
            f'Post "https://127.0.0.1:{world.port}/fail?timeout=1s": context deadline exceeded'
        )
        assert ignored.status == 201

    play(scenario)


def test_a_connection_that_ends_without_an_answer_is_tried_once_more() -> None:
    async def scenario(world: World) -> None:
        def hanging_up(times: int) -> Respond:
            left = iter(range(times))
            return lambda request: HANG_UP if next(left, None) is not None else {"allowed": True}

        await world.configure("Validating", world.webhook(respond=hanging_up(1)))
        assert (await world.ask("POST", CONFIGMAPS, configmap("a"))).ok
        assert len(world.asked) == 2
        world.responds["/hook"] = hanging_up(3)
        answer = await world.ask("POST", CONFIGMAPS, configmap("b"))
        assert answer.refusal == (500, "InternalError")
        assert f'failed to call webhook: Post "https://127.0.0.1:{world.port}/hook?timeout=10s": ' in answer.message

    play(scenario)


def test_a_webhook_that_cannot_be_reached_or_trusted_has_failed() -> None:
    async def scenario(world: World) -> None:
        url = f"https://127.0.0.1:{world.port}/hook"
        placed: list[tuple[Object, str]] = [
            ({"url": url, "caBundle": bundle(STRANGER)}, "tls: failed to verify certificate: "),
            ({"url": url}, "tls: failed to verify certificate: "),
            ({"url": "https://127.0.0.1:1/"}, "dial tcp 127.0.0.1:1: connect: connection refused"),
            ({"url": url, "caBundle": "AAAA"}, "clientConfig.caBundle has no certificate in PEM"),
            ({"url": "https://127.0.0.1:99999/"}, "failed to call webhook: Post"),
            ({"service": {"namespace": "default", "name": "none"}}, 'service "none" not found'),
        ]
        hooks = [
            world.webhook(f"/h{index}", clientConfig=config, objectSelector={"matchLabels": {"case": str(index)}})
            for index, (config, _) in enumerate(placed)
        ]
        await world.configure("Validating", *hooks)
        for index, (config, words) in enumerate(placed):
            body = configmap("a", metadata={"labels": {"case": str(index)}})
            answer = await world.ask("POST", CONFIGMAPS, body)
            assert answer.refusal == (500, "InternalError"), config
            assert words in answer.message
            assert "secret" not in answer.message
        assert world.asked == []

    play(scenario)


def test_a_path_with_repeated_slashes_is_requested_without_them() -> None:
    async def scenario(world: World) -> None:
        config = {"url": f"https://127.0.0.1:{world.port}//hook/", "caBundle": bundle(SITE)}
        await world.configure("Validating", world.webhook("/hook", clientConfig=config))
        assert (await world.ask("POST", CONFIGMAPS, configmap("a"))).ok
        assert len(world.asked) == 1

    play(scenario)


def test_a_webhook_is_trusted_by_its_own_certificate() -> None:
    async def scenario(world: World) -> None:
        own = base64.b64encode(SITE.serving.certificate_pem).decode()
        config = {"url": f"https://127.0.0.1:{world.port}/hook", "caBundle": own}
        await world.configure("Validating", world.webhook("/hook", clientConfig=config))
        assert (await world.ask("POST", CONFIGMAPS, configmap("a"))).ok
        assert len(world.asked) == 1

    play(scenario)


def test_a_webhook_that_wants_reviews_of_an_unknown_version_has_failed() -> None:
    async def scenario(world: World) -> None:
        await world.configure("Validating", world.webhook(admissionReviewVersions=["v1beta1"]))
        answer = await world.ask("POST", CONFIGMAPS, configmap("a"))
        assert "webhook does not accept known AdmissionReview versions (v1)" in answer.message

    play(scenario)


def test_a_selector_that_cannot_be_read_fails_what_the_rules_match() -> None:
    webhook = {
        "name": "x",
        "namespaceSelector": {"matchExpressions": [{"key": "a", "operator": "Is"}]},
        "rules": [RULE],
    }
    (hook,) = matching.read({"webhooks": [webhook]})
    assert hook.problem.startswith("namespaceSelector.matchExpressions[0].operator: ")
    question = Question(
        kind=ResourceType(group="", version="v1", kind="ConfigMap", plural="configmaps", singular="configmap"),
        operation="CREATE",
        namespace="default",
        name="a",
        user=User("me"),
        options={},
    )
    assert matching.version_for(hook, question, ()) is question.kind


# Services.


@pytest.mark.parametrize("source", ["slice", "endpoints", "external"])
def test_the_service_of_a_webhook_is_found_by_the_stored_objects(source: str) -> None:
    async def scenario(world: World) -> None:
        # The site's certificate is good for this name.
        meta = {"name": "kubernetes", "namespace": "default"}
        spec: Object = {"ports": [{"name": "web", "port": 443, "targetPort": 8443}], "clusterIP": "None"}
        port = [{"name": "web", "port": world.port, "protocol": "TCP"}]
        if source == "external":
            spec = {"type": "ExternalName", "externalName": "127.0.0.1"}
        assert (await world.ask("POST", "/api/v1/namespaces/default/services", {"metadata": meta, "spec": spec})).ok
        service: Object = {"namespace": "default", "name": "kubernetes", "path": "/hook"}
        if source == "external":
            service["port"] = world.port
        config = {"service": service, "caBundle": bundle(SITE)}
        await world.configure("Validating", world.webhook(clientConfig=config))
        if source != "external":
            answer = await world.ask("POST", CONFIGMAPS, configmap("a"))
            assert answer.message.endswith(
                'Post "https://kubernetes.default.svc:443/hook?timeout=10s": '
                'no endpoints available for service "kubernetes"'
            )
        if source == "endpoints":
            body = {"metadata": meta, "subsets": [{"addresses": [{"ip": "127.0.0.1"}], "ports": port}]}
            assert (await world.ask("POST", "/api/v1/namespaces/default/endpoints", body)).status < 300
        if source == "slice":
            endpoints = [
                {"addresses": ["192.0.2.1"], "conditions": {"ready": False}},
                {"addresses": ["127.0.0.1"], "conditions": {"ready": True}},
            ]
            labels = {"kubernetes.io/service-name": "kubernetes"}
            body = {"metadata": {"name": "s", "labels": labels}, "addressType": "IPv4"}
            target = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices"
            assert (await world.ask("POST", target, body | {"endpoints": endpoints, "ports": port})).ok
        assert (await world.ask("POST", CONFIGMAPS, configmap("b"))).ok
        assert len(world.requests()) == 1

    play(scenario)


def test_a_service_without_the_port_of_the_webhook_is_no_way_to_it() -> None:
    async def scenario(world: World) -> None:
        spec = {"ports": [{"port": 80}], "clusterIP": "None"}
        await world.ask("POST", "/api/v1/namespaces/default/services", {"metadata": {"name": "s"}, "spec": spec})
        config = {"service": {"namespace": "default", "name": "s"}}
        await world.configure("Mutating", world.webhook(clientConfig=config))
        answer = await world.ask("POST", CONFIGMAPS, configmap("a"))
        assert answer.message.endswith('no service port 443 found for service "s"')

    play(scenario)


def test_configurations_are_read_again_only_when_one_has_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(world: World) -> None:
        read: list[str] = []
        whole = world.server.store.list

        def counted(resource: str, namespace: str | None = None) -> Any:
            read.append(resource)
            return whole(resource, namespace)

        monkeypatch.setattr(world.server.store, "list", counted)
        for name in ("a", "b"):
            await world.ask("POST", CONFIGMAPS, configmap(name))
        assert (read.count(MUTATING), read.count(VALIDATING)) == (1, 1)
        await world.configure("Mutating", world.webhook())
        for name in ("c", "d"):
            await world.ask("POST", CONFIGMAPS, configmap(name))
        assert (read.count(MUTATING), read.count(VALIDATING)) == (2, 1)
        assert len(world.requests()) == 2

    play(scenario)
