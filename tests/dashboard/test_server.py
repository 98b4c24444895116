"""The server of the dashboard: who gets in, what is refused, and what streams send."""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import json
import logging
import re
import socket
import threading
from collections.abc import AsyncGenerator, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.parse import urlencode

import pytest
from tests.dashboard.stub import MIGRATIONS, TOKEN, WORKLOADS, Cluster, Running, workload
from tests.waiting import eventually

from holdfast.client.protocols import Unreachable
from holdfast.dashboard import access, following, planner, streams, verbs
from holdfast.dashboard.files import assets
from holdfast.dashboard.gate import CSRF, Places, is_known_host
from holdfast.dashboard.sessions import LIFETIME, LINK_LIFETIME, MOST, MOST_EACH, Session, Sessions
from holdfast.dashboard.streams import Message
from holdfast.dashboard.worlds import World, Worlds

HEADERS = {"content-type": "application/json"}


@pytest.fixture(scope="module")
def running() -> Iterator[Running]:
    made = Running(Cluster(), hosts=("dash.example.com",))
    made.do(lambda: made.cluster.put(WORKLOADS, workload("shop")))
    yield made
    made.close()


class Viewer:
    """A browser without a page."""

    def __init__(self, running: Running) -> None:
        self.running = running
        self.cookie = ""
        self.csrf = ""

    def send(self, method: str, path: str, body: Any = None, **headers: str) -> tuple[int, dict[str, str], bytes]:
        connection = http.client.HTTPConnection("127.0.0.1", self.running.port, timeout=20)
        given = {
            "Host": f"127.0.0.1:{self.running.port}",
            "Origin": self.running.base,
            CSRF: self.csrf,
            "Cookie": self.cookie,
        }
        given |= {name.replace("_", "-"): value for name, value in headers.items()}
        content = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
        connection.request(method, path, content, {name: value for name, value in given.items() if value})
        answer = connection.getresponse()
        read = answer.read()
        connection.close()
        return answer.status, {name.lower(): value for name, value in answer.getheaders()}, read

    def sign_in(self, **proof: str) -> tuple[int, dict[str, str], bytes]:
        status, headers, body = self.send(
            "POST", "/api/session", proof or {"link": self.running.do(self.running.dashboard.link)}
        )
        if status == 200:
            self.cookie = headers["set-cookie"].partition(";")[0]
            self.csrf = json.loads(body)["csrf"]
        return status, headers, body

    def stream(self, path: str, events: int) -> list[tuple[str, str, Any]]:
        """The first events of a stream: name, id, data."""
        connection = http.client.HTTPConnection("127.0.0.1", self.running.port, timeout=20)
        connection.request("GET", path, headers={"Cookie": self.cookie, "Host": f"localhost:{self.running.port}"})
        answer = connection.getresponse()
        assert answer.status == 200, answer.read()
        assert answer.getheader("content-type") == "text/event-stream"
        found: list[tuple[str, str, Any]] = []
        name = id = ""
        while len(found) < events:
            read = answer.readline()
            assert read, f"the stream ended after {found}"
            line = read.decode().rstrip("\n")
            field, _, value = line.partition(": ")
            if field == "event":
                name, id = value, ""
            elif field == "id":
                id = value
            elif field == "data":
                found.append((name, id, json.loads(value)))
        connection.close()
        return found


@pytest.fixture
def viewer(running: Running) -> Viewer:
    made = Viewer(running)
    assert made.sign_in()[0] == 200
    return made


# --- getting in


def test_a_link_begins_one_session(running: Running) -> None:
    link = running.do(running.dashboard.link)
    first, second = Viewer(running), Viewer(running)
    status, headers, body = first.sign_in(link=link)
    assert (status, json.loads(body)["user"]) == (200, "viewer@example.com")
    cookie = headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=Strict" in cookie
    assert second.sign_in(link=link)[0] == 401
    assert "holdfast dashboard" in json.loads(second.sign_in(link=link)[2])["hint"]


def test_a_token_that_the_server_knows_begins_a_session_of_its_own_identity(running: Running) -> None:
    viewer = Viewer(running)
    assert viewer.sign_in(token=TOKEN)[0] == 200
    assert viewer.sign_in(token="guessed")[0] == 401
    assert viewer.sign_in(link="", token="")[0] == 400


def test_without_a_session_nothing_is_shown(running: Running) -> None:
    outsider = Viewer(running)
    assert json.loads(outsider.send("GET", "/api/session")[2]) == {"user": None}
    assert outsider.send("GET", "/api/stream")[0] == 401
    for path in ("/api/verb", "/api/plan", "/api/link"):
        assert outsider.send("POST", path, {})[0] == 401
    assert outsider.send("GET", "/")[0] == 200


def test_a_session_that_is_ended_is_over(viewer: Viewer) -> None:
    assert viewer.send("DELETE", "/api/session")[0] == 200
    assert json.loads(viewer.send("GET", "/api/session")[2]) == {"user": None}


def test_sessions_end_after_a_while_and_links_are_not_guessed() -> None:
    now = 0.0
    sessions = Sessions(clock=lambda: now)
    session = sessions.begin(user="a")
    assert sessions.find(session.id) is session
    now += LIFETIME + 1
    assert sessions.find(session.id) is None
    assert not sessions.redeem("x" * 32)
    assert not sessions.redeem("ü")


def test_a_viewer_may_make_a_link_for_another_browser(viewer: Viewer) -> None:
    link = json.loads(viewer.send("POST", "/api/link", {})[2])["link"]
    assert Viewer(viewer.running).sign_in(link=link)[0] == 200
    other = Viewer(viewer.running)
    other.sign_in(token=TOKEN)
    assert other.send("POST", "/api/link", {})[0] == 403


# --- forged requests


@pytest.mark.parametrize(
    ("host", "known"),
    [
        ("127.0.0.1:6480", True),
        ("localhost", True),
        ("[::1]:6480", True),
        ("192.168.1.5:80", True),
        ("dash.example.com", True),
        ("DASH.example.com:443", True),
        ("evil.example.com", False),
        ("127.0.0.1.evil.example.com", False),
        ("", False),
        ("localhost@evil.example.com", False),
        ("localhost/../x", False),
        ("[::1", False),
        ("localhost:port", False),
    ],
)
def test_only_known_names_of_the_server_are_answered(host: str, known: bool) -> None:
    assert is_known_host(host, ("dash.example.com",)) is known


def test_a_page_of_another_site_reaches_nothing(viewer: Viewer) -> None:
    assert viewer.send("GET", "/api/session", Host="evil.example.com")[0] == 421
    for origin in ("https://evil.example.com", "null", f"http://localhost.evil.example.com:{viewer.running.port}"):
        assert viewer.send("POST", "/api/plan", {"resource": "x"}, Origin=origin)[0] == 403
    assert viewer.send("POST", "/api/plan", {"resource": "x"}, Origin="")[0] == 403
    viewer.csrf = "forged"
    status, _, body = viewer.send("POST", "/api/plan", {"resource": "x"})
    assert (status, json.loads(body)["hint"]) == (403, "reload the page")


def test_every_answer_forbids_what_the_page_does_not_need(viewer: Viewer) -> None:
    for path in ("/", "/assets/app.js", "/assets/nothing.js", "/api/session", "/api/stream?resource=x", "/nowhere"):
        _, headers, _ = viewer.send("GET", path)
        policy = headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert "frame-ancestors 'none'" in policy
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "no-referrer"
        assert headers["x-frame-options"] == "DENY"
    assert viewer.send("GET", "/api/session")[1]["cache-control"] == "no-store"


@pytest.mark.parametrize(
    "path", ["/assets/..%2fserver.py", "/assets/../server.py", "/assets/%2e%2e/__init__.py", "/assets/"]
)
def test_no_other_file_is_served(viewer: Viewer, path: str) -> None:
    assert viewer.send("GET", path)[0] == 404


def test_the_page_is_small_and_has_no_markup_from_strings() -> None:
    found = assets()
    assert sum(len(each.body) for each in found.values()) < 200_000
    for name, asset in found.items():
        for word in (b"innerHTML", b"outerHTML", b"insertAdjacentHTML", b"document.write", b"eval(", b"new Function"):
            assert word not in asset.body, name
    index = found["index.html"].body
    assert b"<style" not in index
    assert b" style=" not in index
    assert b"onclick" not in index


def test_the_page_asks_for_all_scripts_at_once() -> None:
    found = assets()
    index = found["index.html"].body.decode()
    named = re.findall(r'(?:<script type="module" src|<link rel="modulepreload" href)="/assets/([^"]+)"', index)
    assert sorted(named) == sorted(name for name in found if name.endswith(".js"))


def test_many_rows_come_in_messages_of_which_all_but_the_last_say_that_more_follow(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(streams, "CHUNK", 2)
    cluster = Cluster()
    for number in range(5):
        cluster.put(WORKLOADS, workload(f"w{number}"))
    running = Running(cluster)
    try:
        viewer = Viewer(running)
        viewer.sign_in()
        messages = viewer.stream("/api/stream", 3)
    finally:
        running.close()
    assert [len(data["rows"]) for _, _, data in messages] == [2, 2, 1]
    assert [data["more"] for _, _, data in messages] == [True, True, False]
    assert [data["reset"] for _, _, data in messages] == [True, False, False]
    assert [bool(id) for _, id, _ in messages] == [False, False, True]


# --- bad requests


@pytest.mark.parametrize(
    "body", [b"", b"{", b"[]", b'{"resource": 1}', b"\xff", b"[" * 5000, b'"' + b"x" * 100_000 + b'"']
)
def test_a_request_that_cannot_be_read_is_refused(viewer: Viewer, body: bytes) -> None:
    for path in ("/api/verb", "/api/plan", "/api/session"):
        status, _, answer = viewer.send("POST", path, body)
        assert status in (400, 413), answer
        assert json.loads(answer)["error"]


def test_a_verb_is_refused_where_nothing_may_be_changed(viewer: Viewer) -> None:
    order = {"resource": "workloads.cloudless.io", "namespace": "default", "name": "shop", "verb": "pause"}
    status, _, body = viewer.send("POST", "/api/verb", order)
    assert (status, json.loads(body)["hint"]) == (403, "start it with --allow-changes")
    assert viewer.send("POST", "/api/verb", {**order, "verb": "explode"})[0] == 404
    assert viewer.send("POST", "/api/verb", {**order, "resource": "secrets"})[0] == 404
    assert viewer.send("POST", "/api/verb", {**order, "name": "gone", "preview": True})[0] == 404


# --- streams


def test_the_overview_sends_all_rows_and_then_changes(viewer: Viewer) -> None:
    cluster = viewer.running.cluster
    (name, id, first), *_ = viewer.stream("/api/stream", 1)
    assert (name, first["reset"]) == ("rows", True)
    assert [each["name"] for each in first["rows"]] == ["shop"]
    viewer.running.do(lambda: cluster.put(WORKLOADS, workload("shop", ready=1)))
    (_, _, change), *_ = viewer.stream(f"/api/stream?since={id}", 1)
    assert (change["reset"], [each["ready"] for each in change["rows"]]) == (False, [1])
    assert change["counts"] == {"trouble": 1, "progressing": 0, "good": 0}
    (_, _, again), *_ = viewer.stream("/api/stream?since=another.7", 1)
    assert again["reset"]
    viewer.running.do(lambda: cluster.put(WORKLOADS, workload("shop")))


def test_a_viewer_may_look_at_one_namespace_alone(running: Running) -> None:
    running.do(lambda: running.cluster.put(WORKLOADS, workload("far", namespace="other")))
    viewer = Viewer(running)
    viewer.sign_in(token=TOKEN, namespace="other")
    (_, _, first), *_ = viewer.stream("/api/stream", 1)
    assert [each["name"] for each in first["rows"]] == ["far"]
    running.do(lambda: running.cluster.delete(WORKLOADS, "far", "other"))


def test_viewers_of_one_identity_share_one_watch(viewer: Viewer) -> None:
    viewer.stream("/api/stream", 1)
    lists = viewer.running.cluster.lists
    for _ in range(3):
        Viewer(viewer.running)
        viewer.stream("/api/stream", 1)
    assert viewer.running.cluster.lists == lists


def test_a_page_is_sent_in_sections(viewer: Viewer) -> None:
    path = "/api/stream?resource=workloads.cloudless.io&namespace=default&name=shop"
    (name, _, page), *_ = viewer.stream(path, 1)
    assert name == "page"
    assert page["head"]["row"]["name"] == "shop"
    assert {"tree", "conditions", "events", "timeline", "verbs", "yaml", "links"} <= page.keys()


def test_a_page_that_cannot_be_made_says_so(viewer: Viewer, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*arguments: Any) -> Any:
        raise RuntimeError("a defect")

    viewer.running.do(lambda: viewer.running.cluster.put(WORKLOADS, workload("odd")))
    monkeypatch.setattr(following, "page", broken)
    ((name, _, page),) = viewer.stream("/api/stream?resource=workloads.cloudless.io&namespace=default&name=odd", 1)
    assert (name, page["trouble"]) == (
        "page",
        "the page cannot be made: RuntimeError; the log of the dashboard says where",
    )
    viewer.running.do(lambda: viewer.running.cluster.delete(WORKLOADS, "odd"))


def test_pages_of_unknown_objects_and_kinds_are_not_found(viewer: Viewer) -> None:
    for query in ("resource=workloads.cloudless.io&namespace=default&name=nothing", "resource=secrets&name=x"):
        ((name, _, problem),) = viewer.stream(f"/api/stream?{query}", 1)
        assert (name, problem["status"]) == ("failed", 404)


def test_a_migration_is_linked_to_its_machines(viewer: Viewer) -> None:
    move = {
        "metadata": {"name": "move"},
        "spec": {"source": {"vmRef": {"name": "db"}}},
        "status": {"progress": {"percentage": 30}},
    }
    viewer.running.do(lambda: viewer.running.cluster.put(MIGRATIONS, move))
    path = "/api/stream?resource=vmmigrations.infra.virtrigaud.io&namespace=default&name=move"
    (_, _, page), *_ = viewer.stream(path, 1)
    assert [(each["relation"], each["name"]) for each in page["links"]] == [("source", "db")]
    assert page["bars"][0]["percent"] == 30
    viewer.running.do(lambda: viewer.running.cluster.delete(MIGRATIONS, "move"))


def test_a_viewer_that_does_not_read_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "SLOW_SECONDS", 0.01)

    async def unread(data: bytes) -> None:
        await asyncio.get_running_loop().create_future()

    closed = []

    async def messages() -> AsyncGenerator[Message]:
        try:
            while True:
                yield Message("rows", b"{}")
        finally:
            closed.append(True)

    async def run() -> None:
        await asyncio.wait_for(streams.send(messages(), unread), 5)

    asyncio.run(run())
    assert closed


# --- the planner


def test_the_planner_answers_with_the_plan_and_the_simulation_of_the_engine(viewer: Viewer) -> None:
    asked = {"settings": {"replicas": 4, "maxSurge": 1, "maxUnavailable": 0}, "crash": 0.2}
    status, _, body = viewer.send("POST", "/api/plan", {"resource": "workloads.cloudless.io", "asked": asked})
    answer = json.loads(body)
    assert status == 200
    assert (answer["plan"]["floor"], answer["plan"]["lowestReady"], answer["plan"]["holds"]) == (4, 4, True)
    assert answer["plan"]["steps"][0]["what"] == "start 1 new"
    assert answer["simulation"]["ending"] == "completed"
    assert answer["simulation"]["frames"]


@pytest.mark.parametrize(
    ("asked", "setting"),
    [
        ({"settings": {"replicas": "many"}}, "replicas"),
        ({"settings": {"maxSurge": -1}}, "maxSurge"),
        ({"settings": {"unknown": 1}}, "unknown"),
        ({"settings": {"replicas": 100000}}, "replicas"),
        ({"settings": {"replicas": 3}, "crash": 2}, "crash"),
        ({"settings": {"replicas": 3}, "readyAfter": "soon"}, "readyAfter"),
        ({"settings": {"replicas": 3}, "promoteAfter": ""}, "promoteAfter"),
        ({"settings": {"replicas": 3}, "current": -4}, "replicas"),
    ],
)
def test_a_plan_that_makes_no_sense_says_which_setting_is_wrong(viewer: Viewer, asked: Any, setting: str) -> None:
    status, _, body = viewer.send("POST", "/api/plan", {"resource": "workloads.cloudless.io", "asked": asked})
    assert status == 422, body
    assert [each["setting"] for each in json.loads(body)["problems"]] == [setting]


def test_a_simulation_that_never_ends_stops_at_the_most_frames(viewer: Viewer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(planner, "MOST_FRAMES", 200)
    asked = {"settings": {"replicas": 50}, "crash": 1}
    _, _, body = viewer.send("POST", "/api/plan", {"resource": "workloads.cloudless.io", "asked": asked})
    simulation = json.loads(body)["simulation"]
    assert (simulation["ending"], len(simulation["frames"])) == ("out of time", 200)


def test_a_blocked_plan_says_what_would_unblock_it(viewer: Viewer) -> None:
    asked = {"settings": {"replicas": 3, "maxSurge": 0, "minAvailable": 3}}
    _, _, body = viewer.send("POST", "/api/plan", {"resource": "workloads.cloudless.io", "asked": asked})
    answer = json.loads(body)
    assert answer["plan"]["blocked"]["remedy"]
    assert answer["simulation"]["ending"] == "blocked"


@pytest.mark.parametrize("token", [" ", "\n", "\t \u00a0"])
def test_a_token_of_blanks_is_not_the_user_of_the_kubeconfig(running: Running, token: str) -> None:
    status, headers, body = Viewer(running).sign_in(token=token)
    assert (status, "set-cookie" in headers) == (400, False), body


def test_a_link_for_another_browser_expires() -> None:
    now = 0.0
    sessions = Sessions(clock=lambda: now)
    printed, copied = sessions.link(), sessions.link(lifetime=LINK_LIFETIME)
    now += LINK_LIFETIME + 1
    assert not sessions.redeem(copied)
    assert sessions.redeem(printed)
    assert not sessions.redeem(printed)


@pytest.mark.parametrize("proof", [{}, {"token": TOKEN}])
def test_objects_are_loaded_while_a_viewer_signs_in(proof: dict[str, str]) -> None:
    running = Running(Cluster())
    try:
        assert Viewer(running).sign_in(**proof)[0] == 200
        asyncio.run(eventually(lambda: running.do(lambda: len(running.cluster.watchers))))
    finally:
        running.close()


def test_nothing_is_loaded_for_a_token_that_is_not_accepted() -> None:
    running = Running(Cluster())
    try:
        assert Viewer(running).sign_in(token="unknown")[0] == 401
        assert running.do(lambda: (running.worlds._worlds, running.cluster.watchers)) == ({}, [])
    finally:
        running.close()


def test_a_stream_ends_with_its_session(running: Running) -> None:
    viewer = Viewer(running)
    viewer.sign_in()
    connection = http.client.HTTPConnection("127.0.0.1", running.port, timeout=5)
    connection.request("GET", "/api/stream", headers={"Cookie": viewer.cookie})
    answer = connection.getresponse()
    assert answer.readline() == b"event: rows\n"
    assert viewer.send("DELETE", "/api/session")[0] == 200
    with contextlib.suppress(http.client.IncompleteRead, ConnectionError):
        answer.read()
    connection.close()


def test_streams_count_before_the_cluster_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "MOST_STREAMS", 2)
    running = Running(Cluster())
    answers = threading.Event()

    async def slow(world: World) -> None:
        await asyncio.to_thread(answers.wait, 10)

    monkeypatch.setattr(World, "ready", slow)
    try:
        viewer = Viewer(running)
        viewer.sign_in()
        waiting = [http.client.HTTPConnection("127.0.0.1", running.port, timeout=5) for _ in range(2)]
        for each in waiting:
            each.request("GET", "/api/stream", headers={"Cookie": viewer.cookie})
            # The next request is read only after this one, which the loop has begun to handle.
            viewer.send("GET", "/api/session")
        assert viewer.send("GET", "/api/stream")[0] == 429
        for each in waiting:
            each.close()
    finally:
        answers.set()
        running.close()


# --- attacks


@pytest.mark.parametrize("origin", ["http://[", "http://[::1", "http://127.0.0.1:x"])
def test_an_origin_that_cannot_be_read_is_refused(viewer: Viewer, origin: str) -> None:
    status, headers, _ = viewer.send("POST", "/api/plan", {"resource": "x"}, Origin=origin)
    assert status == 403
    assert "content-security-policy" in headers


def test_a_page_at_another_port_of_the_host_begins_no_requests(viewer: Viewer) -> None:
    # Cookies are sent to every port of a host, so a page at another one is of the same site.
    for site in ("same-site", "cross-site"):
        assert viewer.send("GET", "/api/stream", Sec_Fetch_Site=site)[0] == 403
        assert viewer.send("GET", "/api/session", Sec_Fetch_Site=site)[0] == 403
        assert viewer.send("GET", "/", Sec_Fetch_Site=site)[0] == 200
    for site in ("same-origin", "none"):
        assert viewer.send("GET", "/api/session", Sec_Fetch_Site=site)[0] == 200


@pytest.mark.parametrize("name", ["", ".", "..", "../secrets/db", "web:80/proxy/delete", "web%2fproxy", "a\nb"])
def test_what_is_no_name_reaches_no_other_path_of_the_api_server(viewer: Viewer, name: str) -> None:
    query = urlencode({"resource": "pods", "namespace": "default", "name": name})
    ((event, _, problem),) = viewer.stream(f"/api/stream?{query}", 1)
    assert (event, problem["status"]) == ("failed", 400)
    order = {"resource": "workloads.cloudless.io", "verb": "pause", "preview": True}
    assert viewer.send("POST", "/api/verb", {**order, "namespace": "default", "name": name})[0] == 400
    if name:
        assert viewer.send("POST", "/api/verb", {**order, "namespace": name, "name": "web"})[0] == 400
        assert viewer.sign_in(token=TOKEN, namespace=name)[0] == (400 if name.strip() else 200)


def test_a_stream_goes_on_from_no_number_that_is_too_long(viewer: Viewer) -> None:
    ((_, id, _),) = viewer.stream("/api/stream", 1)
    ((event, _, first),) = viewer.stream(f"/api/stream?since={id.partition('.')[0]}.{'9' * 5000}", 1)
    assert (event, first["reset"]) == ("rows", True)


POST = b"POST /api/session HTTP/1.1\r\nHost: localhost\r\nOrigin: http://localhost\r\n"


@pytest.mark.parametrize(
    "sent",
    [
        b"\x16\x03\x01 not HTTP\r\n\r\n",
        b"GET / HTTP/9\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: localhost\r\n: x\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: localhost\r\nX: %s\r\n\r\n" % (b"a" * 20_000),
        b"GET / HTTP/1.1\r\nHost: localhost\r\nContent-Length: -1\r\n\r\n",
        POST + b"Transfer-Encoding: chunked\r\n\r\nnothing\r\n",
        POST + b"Content-Encoding: gzip\r\nContent-Length: 4\r\n\r\nnope",
    ],
)
def test_what_is_not_http_is_refused_without_a_traceback_in_the_log(
    running: Running, caplog: pytest.LogCaptureFixture, sent: bytes
) -> None:
    with caplog.at_level(logging.DEBUG), socket.create_connection(("127.0.0.1", running.port), timeout=5) as connection:
        connection.sendall(sent)
        with contextlib.closing(http.client.HTTPResponse(connection)) as answer:
            answer.begin()
            status, body = answer.status, answer.read()
        assert not connection.recv(1), "the server closes the connection, so it has logged what it logs"
    assert (status, "not valid HTTP" in json.loads(body)["error"]) == (400, True), body
    assert "default-src 'none'" in (answer.getheader("content-security-policy") or "")
    logged = [each for each in caplog.records if each.name.startswith(("holdfast.dashboard", "aiohttp"))]
    assert [(each.levelno, each.exc_info) for each in logged] in ([(logging.DEBUG, None)], [])


# --- limits


def test_a_user_with_many_sessions_ends_no_session_of_others() -> None:
    ended: list[Session] = []
    sessions = Sessions(clock=lambda: 0.0, ended=ended.append)
    other = sessions.begin(token="o", user="other")
    mine = [sessions.begin(token=f"t{number}", user="one") for number in range(MOST_EACH + 2)]
    assert ended == mine[:2]
    assert sessions.find(other.id) is other
    unnamed = [sessions.begin(token=f"unnamed-{number}") for number in range(MOST - MOST_EACH)]
    assert ended == mine[:3]
    assert sessions.find(other.id) is other
    assert sessions.find(unnamed[-1].id) is unnamed[-1]


def test_the_streams_of_a_session_end_when_another_takes_its_place(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("holdfast.dashboard.sessions.MOST_EACH", 1)
    running = Running(Cluster())
    try:
        viewer = Viewer(running)
        viewer.sign_in()
        connection = http.client.HTTPConnection("127.0.0.1", running.port, timeout=5)
        connection.request("GET", "/api/stream", headers={"Cookie": viewer.cookie})
        answer = connection.getresponse()
        assert answer.readline() == b"event: rows\n"
        assert Viewer(running).sign_in()[0] == 200
        with contextlib.suppress(http.client.IncompleteRead, ConnectionError):
            answer.read()
        connection.close()
        assert json.loads(viewer.send("GET", "/api/session")[2]) == {"user": None}
    finally:
        running.close()


def test_a_link_stays_valid_until_a_sign_in_succeeds(running: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    async def away(worlds: Worlds, token: str) -> str:
        raise Unreachable("connection refused")

    link = running.do(running.dashboard.link)
    with monkeypatch.context() as patched:
        patched.setattr(Worlds, "user", away)
        status, _, body = Viewer(running).sign_in(link=link)
        assert (status, "link stays valid" in json.loads(body)["hint"]) == (503, True)
    assert Viewer(running).sign_in(link=link)[0] == 200
    assert Viewer(running).sign_in(link=link)[0] == 401


def test_a_link_that_two_browsers_redeem_at_once_begins_one_session(
    running: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    both = threading.Barrier(2)

    async def slow(worlds: Worlds, token: str) -> str:
        await asyncio.to_thread(both.wait, 10)
        return "viewer@example.com"

    monkeypatch.setattr(Worlds, "user", slow)
    link = running.do(running.dashboard.link)
    with ThreadPoolExecutor(2) as browsers:
        found = browsers.map(lambda _: Viewer(running).sign_in(link=link)[0], range(2))
        assert sorted(found) == [200, 401]


def test_more_sign_ins_than_there_are_places_are_to_come_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(access, "MOST_SIGN_INS", 1)
    running, begun, answers = Running(Cluster()), threading.Event(), threading.Event()

    async def slow(worlds: Worlds, token: str) -> str:
        begun.set()
        await asyncio.to_thread(answers.wait, 10)
        return "viewer@example.com"

    monkeypatch.setattr(Worlds, "user", slow)
    try:
        with ThreadPoolExecutor(1) as other:
            first = other.submit(Viewer(running).sign_in, token=TOKEN)
            assert begun.wait(10)
            status, headers, _ = Viewer(running).sign_in(token="guessed")
            assert (status, headers["retry-after"]) == (429, "1")
            answers.set()
            assert first.result()[0] == 200
        assert Viewer(running).sign_in()[0] == 200
    finally:
        answers.set()
        running.close()


def test_a_plan_keeps_its_place_until_it_is_made_even_if_its_viewer_has_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verbs, "MOST_PLANS_EACH", 1)
    running, begun, answers, made = Running(Cluster()), threading.Event(), threading.Event(), threading.Event()
    give_back = Places.give_back

    def slow(kind: Any, asked: Any) -> dict[str, Any]:
        begun.set()
        answers.wait(10)
        return {}

    def given_back(places: Places, viewer: str) -> None:
        give_back(places, viewer)
        if begun.is_set():
            made.set()

    monkeypatch.setattr(planner, "answer", slow)
    monkeypatch.setattr(Places, "give_back", given_back)
    asked = {"resource": "workloads.cloudless.io", "asked": {}}
    try:
        viewer = Viewer(running)
        viewer.sign_in()
        gone = http.client.HTTPConnection("127.0.0.1", running.port, timeout=5)
        given = {"Origin": running.base, CSRF: viewer.csrf, "Cookie": viewer.cookie}
        gone.request("POST", "/api/plan", json.dumps(asked).encode(), given)
        assert begun.wait(10)
        gone.close()
        status, headers, body = viewer.send("POST", "/api/plan", asked)
        assert (status, headers["retry-after"]) == (429, "1"), body
        answers.set()
        assert made.wait(10)
        assert viewer.send("POST", "/api/plan", asked)[0] == 200
    finally:
        answers.set()
        running.close()


# --- objects that cannot be read


@pytest.mark.parametrize("preview", [True, False])
def test_a_verb_for_an_object_that_cannot_be_read_is_refused(preview: bool) -> None:
    running = Running(Cluster(), changes=True)
    wire = workload("shop")
    wire["spec"]["replicas"] = "three"
    try:
        running.do(lambda: running.cluster.put(WORKLOADS, wire))
        viewer = Viewer(running)
        viewer.sign_in()
        order = {"resource": "workloads.cloudless.io", "namespace": "default", "name": "shop", "verb": "restart"}
        status, _, body = viewer.send("POST", "/api/verb", {**order, "preview": preview})
        answer = json.loads(body)
        assert (status, answer["result"]) == (200, "refused"), body
        assert "it cannot be read" in answer["message"]
        assert "$.spec.replicas" in answer["message"]
        assert answer["hint"] == "correct the field and apply it again"
    finally:
        running.close()
