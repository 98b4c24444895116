"""Fuzz a whole server over HTTPS: methods, paths, queries, headers and bodies, with and without credentials.

    python -m tests.torture requests --seed 1

Some of the requests are sent to a whole cluster, whose controllers and nodes meet what is accepted of them.
Every request is drawn from the seed and its own number, so that one can be sent again alone.  A sound request must be
answered, a refusal must be a Status, no answer may be a 500, and a client without credentials gets no data.
"""

from __future__ import annotations

import asyncio
import json
import ssl
import tempfile
from base64 import b64decode
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from time import perf_counter
from typing import Any
from urllib.parse import quote, urlsplit

import yaml
from tests.apiserver.encoding import encode, envelope
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
from tests.apiserver.servers import DEFINITIONS, PATCHES, VALID, collection, valid
from tests.fuzz import mutations
from tests.torture.figures import Figure, at_most, counted, none_of
from tests.torture.server import COMMAND, UP, connected, ready, server_process

from holdfast.apiserver.builtins import BUILTINS
from holdfast.apiserver.http import messages
from holdfast.apiserver.resources import ResourceType

REQUESTS = 100_000
CONNECTIONS = 16
PATIENCE = 20.0
"""Seconds that an answer may take."""

IMPATIENCE = 0.5
"""Seconds after which a request that is not sound, and whose rest the server may wait for, is given up."""

WHOLE_STREAM = 0.05
"""Seconds for which a watch is read."""

METHODS = ["GET", "GET", "POST", "POST", "POST", "PUT", "PUT", "PATCH", "PATCH", "PATCH", "DELETE"]
ODD_METHODS = ["HEAD", "OPTIONS", "TRACE", "CONNECT", "get", "PROPFIND", "M-SEARCH", ""]
SUBRESOURCES = ["/scale", "/finalize", "/approval", "/token", "/eviction", "/binding", "/log", "/nothing"]
OPEN = ("healthz", "livez", "readyz", "version")
"""What a client without credentials may read."""

JSON, YAML, PROTOBUF = "application/json", "application/yaml", "application/vnd.kubernetes.protobuf"
KINDS = tuple({kind.key: kind for kind in BUILTINS if f"{kind.api_version} {kind.kind}" in VALID}.values())
NEVER_STORED = frozenset({"validatingwebhookconfigurations", "mutatingwebhookconfigurations"})
"""Kinds that change how all other requests are answered."""

UNSOUND = [
    b"GET\r\n\r\n",
    b"\r\n\r\n",
    b"GET / HTTP/9.9\r\n\r\n",
    b"GET /api HTTP/1.1\r\nno colon\r\n\r\n",
    b"GET /api HTTP/1.1\r\nA: b\r\n continued\r\n\r\n",
    b"GET /api HTTP/1.1\r\nContent-Length: -1\r\n\r\n",
    b"GET /api HTTP/1.1\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
    b"POST /api HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
    b"GET http://[::1 HTTP/1.1\r\n\r\n",
    b"GET /\xff\xfe HTTP/1.1\r\nHost: \xff\r\n\r\n",
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    b"\x16\x03\x01\x00\x01\x00",
    b"A" * 70_000,
]


@dataclass(frozen=True)
class Drawn:
    """One request: its bytes, whether they are sound HTTP/1.1, and whether its client has credentials."""

    method: str
    target: str
    raw: bytes
    sound: bool = True
    known: bool = True

    def __str__(self) -> str:
        return f"{self.method} {self.target[:200]} {self.raw[-200:]!r}"


@dataclass
class Tally:
    """What was answered."""

    statuses: Counter[str] = field(default_factory=Counter)
    defects: list[str] = field(default_factory=list)
    errors: int = 0
    unanswered: int = 0
    leaks: int = 0
    slowest: float = 0.0

    def note(self, kind: str, number: int, drawn: Drawn, said: str) -> None:
        self.defects.append(f"{kind}: request {number}: {drawn}: {said}")


def figures(scale: float, seed: int) -> Iterator[Figure]:
    for what, command, share in (("server", COMMAND, 0.8), ("cluster", UP, 0.2)):
        number = max(int(REQUESTS * share * scale), 100)
        with tempfile.TemporaryDirectory() as directory:
            tally = asyncio.run(fuzzed(Path(directory), requests=number, seed=seed, command=command))
        for defect in tally.defects[:20]:
            print(f"seed {seed}: {what}: {defect}", flush=True)
        classes = ("2xx", "4xx", "5xx", "none")
        answers = " / ".join(f"{tally.statuses[each]:,}" for each in classes)
        yield counted(f"{what}: fuzzed requests", number)
        yield Figure(f"{what}: {' / '.join(classes)}", answers)
        yield none_of(f"{what}: answers with 500, and tracebacks in the log", tally.errors)
        yield none_of(f"{what}: sound requests without a whole answer", tally.unanswered)
        yield none_of(f"{what}: data for clients without credentials", tally.leaks)
        yield at_most(f"{what}: slowest answer", tally.slowest * 1000, 5_000, "ms")


async def fuzzed(directory: Path, *, requests: int, seed: int, command: Sequence[str] = COMMAND) -> Tally:
    """Send so many requests to a server of its own, and judge the answers."""
    tally = Tally()
    log = directory / "log"
    with log.open("wb") as errors:
        async with server_process(directory, command=command, errors=errors) as process:
            await ready(process)
            async with connected(directory) as client:
                await _prepare(client)
            numbers = iter(range(requests))
            draw = Requests(seed, token_of(directory))
            async with asyncio.TaskGroup() as tasks:
                for _ in range(CONNECTIONS):
                    tasks.create_task(_send(address_of(directory), numbers, draw, tally))
            async with connected(directory) as client, client.get("/livez") as answer:
                assert answer.status == 200, f"the server is not healthy any more: {await answer.text()}"
    traces = log.read_text(errors="replace").count("Traceback")
    if traces:
        tally.defects.append(f"{traces} tracebacks in the server's log:\n{log.read_text(errors='replace')[:4000]}")
        tally.errors = max(tally.errors, traces)
    return tally


async def _prepare(client: Any) -> None:
    """One object of every kind, a kind of its own, and a user who may do a little."""
    made: list[tuple[str, Any]] = [(collection(kind), valid(kind, "a")) for kind in KINDS]
    made.append((DEFINITIONS, definition("widgets", "Widget", WIDGET)))
    made.append((WIDGETS, {**TYPE, "metadata": {"name": "a"}, "spec": {"size": 3, "ports": [{"port": 1}]}}))
    for path, obj in made:
        async with client.post(path, json=obj) as answer:
            assert answer.status in (201, 409), f"{path}: {await answer.text()}"


# --- drawing


class Requests:
    """Draws requests, each from the seed and its number."""

    def __init__(self, seed: int, token: str) -> None:
        self._seed = seed
        self._token = token

    def __call__(self, number: int) -> Drawn:
        random = Random(f"{self._seed}/{number}")
        if random.random() < 0.03:
            return Drawn("", "", random.choice(UNSOUND), sound=False, known=False)
        kind = random.choice(KINDS)
        method = random.choice(METHODS if random.random() < 0.95 else ODD_METHODS)
        path = _path(random, kind, method)
        target = path + _query(random, kind, path)
        media, body = ("", b"") if method in ("GET", "HEAD") else _body(random, kind, method, path)
        headers, known = self._headers(random)
        if media:
            headers["Content-Type"] = media
        sound = method in METHODS and target.isprintable() and " " not in target
        return Drawn(method, target, *_framed(random, method, target, headers, body, sound=sound), known=known)

    def _headers(self, random: Random) -> tuple[dict[str, str], bool]:
        headers = {"Host": "127.0.0.1"}
        chance = random.random()
        known = chance < 0.75
        if known:
            headers["Authorization"] = f"Bearer {self._token}"
            if chance < 0.1:
                headers["Impersonate-User"] = random.choice(["jane", "system:serviceaccount:default:a", "a,b"])
            if chance < 0.05:
                headers["Impersonate-Group"] = random.choice(["developers", "system:masters"])
        elif chance < 0.85:
            headers["Authorization"] = random.choice(["Bearer", "Bearer x", "Basic eA==", "Bearer a.b.c", "bearer  "])
        if random.random() < 0.4:
            headers["Accept"] = random.choice(ACCEPTS)
        for name in ("Accept-Encoding", "User-Agent", "Audit-Id", "If-None-Match", "X-Forwarded-For", "Cookie"):
            if random.random() < 0.05:
                headers[name] = random.choice(["gzip", "a" * 1000, "é".encode().decode("latin-1"), "", ";;", "*"])
        return headers, known


def _path(random: Random, kind: ResourceType, method: str) -> str:
    chance = random.random()
    if chance < 0.15:
        parts = [random.choice(SEGMENTS) for _ in range(random.randrange(9))]
        return "/" + "/".join(quote(part, safe="") for part in parts)
    if chance < 0.25:
        below = random.choice(BELOW)
        return random.choice([*REVIEWS, f"/api/v1/{below}", f"/api/v1/namespaces/default/{below}"])
    if chance < 0.3:
        return random.choice(["/api", "/apis", "/openapi/v2", "/openapi/v3", "/version", "/metrics", "/livez"])
    base = random.choice([collection(kind)] * 8 + [WIDGETS, DEFINITIONS])
    if method == "POST" and random.random() < 0.9:
        return base
    name = (
        "a" if random.random() < 0.85 else random.choice(["b", "A", "a%2Fb", "%00", "..", "x" * 300, "%C3%A9", "%ff"])
    )
    below = random.choice(["", "", "", "", "/status"]) if random.random() < 0.9 else random.choice(SUBRESOURCES)
    return base if random.random() < 0.1 else f"{base}/{name}{below}"


def _query(random: Random, kind: ResourceType, path: str) -> str:
    query: dict[str, str] = {}
    if random.random() < 0.4:
        query = {random.choice(OPTIONS): random.choice(VALUES) for _ in range(random.randrange(1, 4))}
    if "timeoutSeconds" in query or query.get("watch") not in (None, "0", "false"):
        query["timeoutSeconds"] = "1"
    if kind.plural in NEVER_STORED or any(each in path for each in NEVER_STORED):
        query["dryRun"] = "All"
    if random.random() < 0.3:
        query.setdefault("fieldManager", "m")
    return "?" + "&".join(f"{name}={quote(value, safe='')}" for name, value in query.items()) if query else ""


def _body(random: Random, kind: ResourceType, method: str, path: str) -> tuple[str, bytes]:
    """A media type and a body in it."""
    made = _mutated(random, _sound(kind, path))
    if method == "DELETE":
        options = {"propagationPolicy": "Background", "preconditions": {"uid": "u"}, "gracePeriodSeconds": 0}
        made = _mutated(random, {"kind": "DeleteOptions", "apiVersion": "v1", **options})
    if method == "PATCH":
        media, body = _patch(random, made)
    else:
        media = random.choice([JSON, JSON, JSON, YAML, YAML, PROTOBUF])
        body = _encoded(random, kind, made, media)
    if random.random() < 0.1:
        body = _damaged(random, body)
    if random.random() < 0.05:
        media = random.choice(["", "text/plain", ";", f"{JSON}; charset=x", *PATCHES.values(), YAML, PROTOBUF])
    return media, body


def _sound(kind: ResourceType, path: str) -> dict[str, Any]:
    if path.startswith(WIDGETS):
        spec = {"size": 3, "name": "a", "limit": 1, "any": {}, "tags": ["a"], "ports": [{"port": 1}], "map": {"a": 1}}
        return {**TYPE, "metadata": {"name": "a"}, "spec": spec}
    if path.startswith(DEFINITIONS):
        return definition("widgets", "Widget", WIDGET)
    return valid(kind, "a")


METADATA = ("name", "namespace", "labels", "annotations", "ownerReferences", "finalizers", "managedFields", "uid")
METADATA_MORE = ("resourceVersion", "generateName", "deletionTimestamp", "creationTimestamp", "generation")


def _mutated(random: Random, obj: dict[str, Any]) -> dict[str, Any]:
    paths: list[mutations.Path] = list(mutations.fields(obj))
    chance = random.random()
    if chance < 0.2 or not paths:
        return obj
    made = mutations.applied(obj, mutations.drawn(random, paths))
    if chance < 0.4 and isinstance(made.get("metadata"), dict):
        made["metadata"] |= {random.choice((*METADATA, *METADATA_MORE)): _value(random)}
    if chance > 0.95:
        made = {random.choice(("kind", "apiVersion", "metadata", "status", "$patch", "")): _value(random), **made}
        made[random.choice(("kind", "apiVersion", "metadata"))] = _value(random)
    return made


def _value(random: Random) -> Any:
    value = random.choice(mutations.VALUES)
    return None if value is mutations.ABSENT else value


def _encoded(random: Random, kind: ResourceType, made: Any, media: str) -> bytes:
    if media == JSON:
        return json.dumps(made).encode()
    if media == YAML:
        return _as_yaml(random, made)
    named = (kind.api_version, kind.kind)
    for each in (made, valid(kind, "a")):
        # A document that no message can hold is sent as a sound one whose bytes are damaged.
        with suppress(Exception):
            body = envelope(*named, encode(messages.type_names()[named], each))
            return body if each is made else _damaged(random, body)
    return _damaged(random, b"k8s\x00")


ODD_YAML = [
    b"? [a, b]\n: c\n",
    b"1: a\ntrue: b\nnull: c\n1.5: d\n",
    b"a: &a [*a]\n",
    b"<<: {a: b}\n",
    b"!!python/object:os.system {}\n",
    b"a: 1:1:1\nb: 0o17\nc: .inf\nd: .nan\ne: 2030-01-01\n",
    b"%YAML 9.9\n---\na: b\n",
    b"---\na: b\n---\nc: d\n",
    b"a:\n\t- b\n",
    b"[" * 500,
    b"\xff\xfea\x00:\x00",
]


def _as_yaml(random: Random, made: Any) -> bytes:
    if random.random() < 0.2:
        return random.choice(ODD_YAML)
    return yaml.safe_dump(made, default_flow_style=random.random() < 0.5, allow_unicode=random.random() < 0.5).encode()


def _patch(random: Random, made: dict[str, Any]) -> tuple[str, bytes]:
    name = random.choice(list(PATCHES))
    if name == "json":
        operations = [_operation(random, made) for _ in range(random.randrange(4))]
        return PATCHES[name], json.dumps(operations if random.random() < 0.95 else made).encode()
    if name == "apply":
        return PATCHES[name], _as_yaml(random, made) if random.random() < 0.5 else json.dumps(made).encode()
    if random.random() < 0.5:
        kept = random.choice(list(made) or [""])
        made = {kept: made.get(kept)}
    if name == "strategic" and random.random() < 0.4:
        directive = random.choice(
            ["$patch", "$retainKeys", "$setElementOrder/finalizers", "$deleteFromPrimitiveList/a"]
        )
        target = random.choice([each for each in (made, *made.values()) if isinstance(each, dict)])
        target[directive] = random.choice(["delete", "replace", "merge", "x", ["a"], [{}], None, {}])
    return PATCHES[name], json.dumps(made).encode()


def _operation(random: Random, made: Mapping[str, Any]) -> dict[str, Any]:
    paths: list[Sequence[Any]] = [*mutations.fields(made), ("metadata", "labels"), ("a~1b", "-"), (), ("",)]

    def pointer() -> str:
        return "".join(f"/{part}" for part in random.choice(paths))

    operation: dict[str, Any] = {"op": random.choice(["add", "remove", "replace", "move", "copy", "test", "fly", 1])}
    operation["path"] = pointer() if random.random() < 0.9 else _value(random)
    if random.random() < 0.5:
        operation["from"] = pointer()
    if random.random() < 0.8:
        operation["value"] = _value(random)
    return operation


def _damaged(random: Random, body: bytes) -> bytes:
    """Some bytes changed, cut off, repeated or put in."""
    made = bytearray(body)
    for _ in range(random.randrange(1, 5)):
        at = random.randrange(len(made) + 1)
        match random.randrange(4):
            case 0 if at < len(made):
                made[at] = random.randrange(256)
            case 1:
                del made[at:]
            case 2:
                made[at:at] = made[at : at + random.randrange(1, 50)]
            case _:
                made[at:at] = random.randbytes(random.randrange(1, 5))
    return bytes(made)


def _framed(
    random: Random, method: str, target: str, headers: dict[str, str], body: bytes, *, sound: bool
) -> tuple[bytes, bool]:
    """The bytes of a request, and whether they are sound HTTP/1.1."""
    chance = random.random()
    if body and chance < 0.1:
        headers["Transfer-Encoding"] = "chunked"
        body = b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in (body[:7], body[7:]) if part) + b"0\r\n\r\n"
    elif body or chance < 0.2:
        headers["Content-Length"] = str(len(body))
    if body and 0.1 < chance < 0.12:
        headers["Content-Length"], sound = str(len(body) + random.choice([-1, 5])), False
    if 0.12 < chance < 0.14:
        headers |= {f"X-{number}": "x" for number in range(random.choice([10, 200, 2000]))}
    if 0.14 < chance < 0.16:
        headers["X-Long"] = "x" * random.choice([5_000, 20_000, 100_000])
    lines = [f"{method} {target} HTTP/1.1", *(f"{name}: {value}" for name, value in headers.items()), "", ""]
    return "\r\n".join(lines).encode("latin-1", "replace") + body, sound


# --- sending


@dataclass(frozen=True)
class Address:
    host: str
    port: int
    trust: ssl.SSLContext


def _kubeconfig(directory: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    kubeconfig = yaml.safe_load((directory / "kubeconfig").read_text())
    return kubeconfig["clusters"][0]["cluster"], kubeconfig["users"][0]["user"]


def token_of(directory: Path) -> str:
    return str(_kubeconfig(directory)[1]["token"])


def address_of(directory: Path) -> Address:
    cluster, _ = _kubeconfig(directory)
    parts = urlsplit(cluster["server"])
    trust = ssl.create_default_context(cadata=b64decode(cluster["certificate-authority-data"]).decode())
    assert parts.hostname is not None
    assert parts.port is not None
    return Address(parts.hostname, parts.port, trust)


class _Connection:
    """A connection that is opened when it is needed."""

    def __init__(self, address: Address) -> None:
        self._address = address
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def streams(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        if self._streams is None:
            address = self._address
            self._streams = await asyncio.open_connection(address.host, address.port, ssl=address.trust)
        return self._streams

    def close(self) -> None:
        if self._streams is not None:
            self._streams[1].transport.abort()
            self._streams = None


async def _send(address: Address, numbers: Iterator[int], draw: Callable[[int], Drawn], tally: Tally) -> None:
    connection = _Connection(address)
    for number in numbers:
        drawn = draw(number)
        began = perf_counter()
        try:
            async with asyncio.timeout(PATIENCE if drawn.sound else IMPATIENCE):
                answer = await _answered(connection, drawn)
        except (TimeoutError, OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError) as error:
            connection.close()
            answer = None
            if drawn.sound:
                tally.unanswered += 1
                tally.note("no answer", number, drawn, f"{type(error).__name__} {error}")
        tally.slowest = max(tally.slowest, perf_counter() - began)
        if answer is None:
            tally.statuses["none"] += 1
            continue
        tally.statuses[f"{answer.status // 100}xx"] += 1
        _judge(tally, number, drawn, answer)
        if not drawn.sound or not answer.reusable:
            connection.close()
    connection.close()


@dataclass(frozen=True)
class _Answer:
    status: int
    headers: Mapping[str, str]
    body: bytes
    reusable: bool


async def _answered(connection: _Connection, drawn: Drawn) -> _Answer:
    reader, writer = await connection.streams()
    writer.write(drawn.raw)
    head = (await _head(reader)).decode("latin-1").split("\r\n")
    status = int(head[0].split()[1])
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in head[1:] if line)}
    reusable = headers.get("connection", "") != "close" and status != 101
    if drawn.method == "HEAD" or status in (101, 204, 304):
        return _Answer(status, headers, b"", reusable)
    if headers.get("transfer-encoding") == "chunked":
        part = b""
        with suppress(TimeoutError):
            part = await asyncio.wait_for(reader.read(2**16), WHOLE_STREAM)
        return _Answer(status, headers, part if status < 400 else b"", False)
    body = await reader.readexactly(int(headers.get("content-length", 0)))
    return _Answer(status, headers, body, reusable)


async def _head(reader: asyncio.StreamReader) -> bytes:
    while True:
        head = await reader.readuntil(b"\r\n\r\n")
        if not head.startswith(b"HTTP/1.1 100"):
            return head


def _judge(tally: Tally, number: int, drawn: Drawn, answer: _Answer) -> None:
    if (
        not drawn.known
        and answer.status < 300
        and drawn.target.partition("?")[0].split("/")[1:2] not in map(_one, OPEN)
    ):
        tally.leaks += 1
        tally.note("data without credentials", number, drawn, f"{answer.status} {answer.body[:300]!r}")
    if answer.status < 400 or drawn.method == "HEAD":
        return
    said = answer.body.decode(errors="replace")
    if answer.status == 500 and not any(words in said.replace("\\", "") for words in KNOWN_500):
        tally.errors += 1
        tally.note("500", number, drawn, said[:500])
        return
    if answer.status == 404 and said == "404 page not found\n":
        return
    if answer.headers.get("content-type", "").startswith(JSON):
        try:
            status = json.loads(said)
            whole = status["kind"] == "Status" and status["code"] == answer.status and bool(status["message"])
        except (ValueError, KeyError, TypeError):
            whole = False
        if not whole:
            tally.unanswered += 1
            tally.note("not a Status", number, drawn, said[:500])


def _one(segment: str) -> list[str]:
    return [segment]
