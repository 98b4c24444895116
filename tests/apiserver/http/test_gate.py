"""The gate: who passes, who waits, who is refused, and what is counted and logged of it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Mapping
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from holdfast.apiserver.auth import certificates
from holdfast.apiserver.auth.authentication import Authenticator
from holdfast.apiserver.auth.default_roles import bootstrap_objects
from holdfast.apiserver.auth.rbac import GROUP, KINDS, Authorizer
from holdfast.apiserver.auth.tokens import Issuer
from holdfast.apiserver.http.fairness import Bounds, Limits
from holdfast.apiserver.http.gate import PEER, Following, guarded
from holdfast.apiserver.http.metrics import Metrics
from holdfast.apiserver.routes import RequestInfo
from holdfast.apiserver.storage.store import Entry
from holdfast.meta.errors import NotFound
from holdfast.meta.exchange import Request, Response, User, encode

NOW = datetime(2025, 1, 15, 10, 0, tzinfo=UTC)
TOKEN = "an-admin-token-that-cannot-be-guessed"
ADMIN = {"authorization": f"Bearer {TOKEN}"}
PODS = "/api/v1/namespaces/ns/pods"
ISSUER = Issuer(certificates.new_key())

IMPERSONATOR = [
    {
        "kind": "ClusterRole",
        "metadata": {"name": "impersonator"},
        "rules": [{"verbs": ["impersonate"], "apiGroups": [""], "resources": ["users"], "resourceNames": ["jane"]}],
    },
    {
        "kind": "ClusterRoleBinding",
        "metadata": {"name": "impersonator"},
        "roleRef": {"apiGroup": GROUP, "kind": "ClusterRole", "name": "impersonator"},
        "subjects": [{"kind": "User", "name": "boss"}],
    },
]


class Roles:
    """The default roles and bindings, and those of the impersonator."""

    def changed_at(self, resource: str) -> int:
        return 0

    def list(self, resource: str) -> list[Entry]:
        kind = KINDS[resource]
        return [
            Entry(resource, "", obj["metadata"]["name"], 1, encode(obj))
            for obj in (*bootstrap_objects(), *IMPERSONATOR)
            if obj["kind"] == kind
        ]


class World:
    """A gate before a handler that remembers what came through."""

    def __init__(self, bounds: Bounds | None = None) -> None:
        self.seen: list[Request] = []
        self.answer: Response | Exception | None = None
        self.limits = Limits(bounds)
        self.metrics = Metrics(
            known=lambda info: info.resource == "pods",
            counts=lambda: {"pods": 7},
            in_flight=lambda: {"watches": self.limits.watches},
        )
        self.ask = guarded(
            self.handle,
            Authenticator(admin_token=TOKEN, issuer=ISSUER, uid_of=lambda *_: None),
            authorizer=Authorizer(Roles()),
            limits=self.limits,
            metrics=self.metrics,
            now=lambda: NOW,
        )

    async def handle(self, request: Request, info: RequestInfo) -> Response:
        self.seen.append(request)
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer or Response.of({"ok": True})

    def asked(self, path: str, *, headers: Mapping[str, str] | None = None, method: str = "GET") -> Response:
        async def run() -> Response:
            path_only, _, query = path.partition("?")
            name, _, value = query.partition("=")
            return await self.ask(Request(method, path_only, {name: (value,)} if query else {}, headers or {}))

        return asyncio.run(run())


def status(response: Response) -> Any:
    return msgspec.json.decode(response.body)


def test_the_handler_is_told_who_asks() -> None:
    world = World()
    assert world.asked(PODS, headers=ADMIN).status == 200
    assert world.seen[0].user.name == "admin"


@pytest.mark.parametrize("path", ["/healthz", "/livez/ping", "/readyz", "/version"])
def test_health_and_version_are_open_to_all(path: str) -> None:
    world = World()
    assert world.asked(path).status == 200
    assert world.asked(path, method="POST").status == 403


def test_an_anonymous_request_is_forbidden_and_a_wrong_token_unauthorized() -> None:
    world = World()
    refused = world.asked("/api/v1/namespaces/ns/configmaps")
    assert status(refused)["message"] == (
        'configmaps is forbidden: User "system:anonymous" cannot list resource "configmaps" in API group "" '
        'in the namespace "ns"'
    )
    wrong = world.asked(PODS, headers={"authorization": "Bearer wrong"})
    assert (wrong.status, status(wrong)["reason"]) == (401, "Unauthorized")
    assert world.seen == []


@pytest.mark.parametrize("path", ["/healthz", PODS])
def test_a_wrong_token_is_refused_even_on_open_paths(path: str) -> None:
    assert World().asked(path, headers={"authorization": "Bearer wrong"}).status == 401


def test_the_admin_may_impersonate_any_user_and_then_has_their_permissions() -> None:
    world = World()
    refused = world.asked(PODS, headers=ADMIN | {"impersonate-user": "jane"})
    assert 'User "jane" cannot list' in status(refused)["message"]
    world.asked("/api", headers=ADMIN | {"impersonate-user": "jane", "impersonate-group": "a\nb"})
    assert world.seen[0].user == User("jane", ("a", "b", "system:authenticated"))


@pytest.mark.parametrize(
    ("headers", "code"),
    [
        ({"impersonate-user": "jane"}, 200),
        ({"impersonate-user": "john"}, 403),
        ({"impersonate-user": "jane", "impersonate-group": "system:masters"}, 403),
        ({"impersonate-user": "jane", "impersonate-uid": "1"}, 403),
        ({"impersonate-user": "jane", "impersonate-extra-scope": "x"}, 403),
        ({"impersonate-group": "system:masters"}, 400),
    ],
)
def test_acting_as_another_needs_permission_for_each_part(headers: dict[str, str], code: int) -> None:
    world = World()
    request = replace(Request("GET", "/api", headers=headers), user=User("boss", ("system:authenticated",)))

    async def run() -> Response:
        return await world.ask(request)

    assert asyncio.run(run()).status == code


def test_refusals_of_the_handler_become_answers() -> None:
    world = World()
    world.answer = NotFound.of("pods", "a")
    assert status(world.asked(PODS + "/a", headers=ADMIN))["message"] == 'pods "a" not found'


def test_a_defect_is_a_500_without_its_details(caplog: pytest.LogCaptureFixture) -> None:
    world = World()
    world.answer = RuntimeError("secret")
    response = world.asked(PODS, headers=ADMIN)
    assert status(response)["reason"] == "InternalError"
    assert b"secret" not in response.body
    assert "secret" in caplog.text


@pytest.mark.parametrize(
    ("given", "kept"), [("abc-123", True), ("x" * 64, True), ("x" * 65, False), ("a\nb", False), ("é", False)]
)
def test_an_answer_has_the_audit_id_of_its_request_or_a_new_one(given: str, kept: bool) -> None:
    response = World().asked("/version", headers={"audit-id": given})
    assert (response.headers["Audit-Id"] == given) is kept
    assert response.headers["Audit-Id"]


def test_beyond_the_limits_is_429_but_health_is_still_seen() -> None:
    world = World(Bounds(seats=0, admin_seats=0, queue=0, queues=0))
    response = world.asked(PODS, headers=ADMIN)
    assert (response.status, response.headers["Retry-After"]) == (429, "1")
    assert world.asked("/healthz").status == 200


async def three() -> AsyncIterator[bytes]:
    for number in range(3):
        yield str(number).encode()


@pytest.mark.parametrize("read", [0, 1, 3])
def test_a_watch_is_counted_until_it_is_over(read: int) -> None:
    async def run() -> None:
        world = World()
        world.answer = Response(200, stream=three())
        response = await world.ask(Request("GET", PODS, {"watch": ("1",)}, ADMIN))
        assert (world.limits.watches, world.limits.seated) == (1, 0)
        stream = response.stream
        assert isinstance(stream, Following)
        assert [await anext(stream) for _ in range(read)] == [str(number).encode() for number in range(read)]
        await stream.aclose()
        await stream.aclose()
        assert world.limits.watches == 0

    asyncio.run(run())


def test_a_watch_that_is_refused_or_answered_at_once_is_not_counted() -> None:
    world = World()
    world.asked(PODS + "?watch=1", headers=ADMIN)
    world.answer = NotFound.of_path()
    world.asked(PODS + "?watch=1", headers=ADMIN)
    assert world.limits.watches == 0


def test_metrics_need_authentication_and_count_what_was_served() -> None:
    world = World()
    assert world.asked("/metrics").status == 403
    world.asked(PODS, headers=ADMIN)
    world.asked("/apis/made/up/names", headers=ADMIN)
    response = world.asked("/metrics", headers=ADMIN)
    text = response.body.decode()
    assert response.content_type.startswith("text/plain")
    line = 'apiserver_request_total{code="200",group="",resource="pods",subresource="",verb="LIST",version="v1"} 1.0'
    assert line in text
    assert "made" not in text
    assert 'apiserver_storage_objects{resource="pods"} 7.0' in text
    assert 'apiserver_current_inflight_requests{request_kind="watches"} 0.0' in text


def test_the_access_log_says_who_did_what_and_no_secrets(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "holdfast.apiserver.http.gate")
    World().asked(PODS, headers=ADMIN | {"user-agent": "kubectl", PEER: "127.0.0.1"})
    (record,) = caplog.records
    fields = vars(record)["fields"]
    assert record.getMessage() == "request"
    shown = {key: fields[key] for key in ("peer", "user", "verb", "method", "path", "agent", "code")}
    assert shown == {
        "peer": "127.0.0.1",
        "user": "admin",
        "verb": "list",
        "method": "GET",
        "path": PODS,
        "agent": "kubectl",
        "code": 200,
    }
    assert TOKEN not in str(fields)


class Sender:
    """The body of a request, which counts how often it is read."""

    def __init__(self, body: bytes = b"{}") -> None:
        self.body = body
        self.reads = 0
        self.may_end = asyncio.Event()
        self.may_end.set()

    async def receive(self) -> bytes:
        self.reads += 1
        await self.may_end.wait()
        return self.body


def posting(sender: Sender, *, token: str = TOKEN, length: int | None = 2) -> Request:
    headers = {"authorization": f"Bearer {token}"} if token else {}
    if length is not None:
        headers["content-length"] = str(length)
    return Request("POST", "/api/v1/namespaces/default/pods", {}, headers, receive=sender.receive)


@pytest.mark.parametrize(("token", "code"), [("", 403), ("wrong", 401)])
def test_the_body_of_a_refused_request_is_not_read(token: str, code: int) -> None:
    async def run() -> None:
        world, sender = World(), Sender()
        assert (await world.ask(posting(sender, token=token))).status == code
        assert sender.reads == 0
        assert (await world.ask(posting(sender))).status == 200
        assert (sender.reads, world.seen[-1].body) == (1, b"{}")

    asyncio.run(run())


@pytest.mark.parametrize("length", [None, 1_000_000])
def test_large_bodies_in_memory_are_few(length: int | None) -> None:
    async def run() -> None:
        world = World(Bounds(large_bodies=4, small_body=100))
        senders = [Sender() for _ in range(10)]
        for sender in senders:
            sender.may_end.clear()
        asked = [asyncio.create_task(world.ask(posting(sender, length=length))) for sender in senders]
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert sum(sender.reads for sender in senders) == 2, "one user has half of the places"
        assert (await world.ask(posting(Sender(), length=10))).status == 200, "small ones do not wait for them"
        for sender in senders:
            sender.may_end.set()
        assert {(await each).status for each in asked} == {200}
        assert sum(sender.reads for sender in senders) == 10

    asyncio.run(run())
