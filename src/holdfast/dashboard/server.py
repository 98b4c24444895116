"""The server of the dashboard: pages, JSON and streams of changes, over HTTP.

    GET  /                    the page; /assets/NAME its scripts and styles
    GET  /api/session         who the viewer is; POST begins a session, DELETE ends it
    GET  /api/stream          the rows of the overview, or the sections of one object's page, as they change
    POST /api/verb            what a verb would do (preview), or the verb itself
    POST /api/plan            a plan and a simulation

Everything that is shown or changed is asked of the API server with the identity of the
viewer.  This module must not know how clients are made, nor any kind.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import logging
import ssl
import time
from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass, field
from importlib.resources import files
from typing import Any, Final, TypeVar

import msgspec
from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError

from holdfast.client.protocols import Unreachable, Untrusted
from holdfast.client.resources import Resource
from holdfast.dashboard import gate, planner
from holdfast.dashboard.sessions import LINK_LIFETIME, Session, Sessions
from holdfast.dashboard.worlds import FAILURES, World, Worlds
from holdfast.meta.errors import Forbidden, NotFound, StatusError, Unauthorized
from holdfast.meta.objects import Key
from holdfast.operators import steering
from holdfast.operators.operator import Operator
from holdfast.operators.rollouts import Already, Answer, Change, Refusal, RolloutKind
from holdfast.operators.shown import ShownKind
from holdfast.operators.steering import Order

_log: Final = logging.getLogger("holdfast.dashboard")

COOKIE: Final = "holdfast-session"
LARGEST: Final = 64 * 1024
"""The largest request."""

SLOW_SECONDS: Final = 20.0
"""Seconds after which a viewer that does not read is disconnected; it connects again by itself."""

PULSE_SECONDS: Final = 15.0
"""Seconds between signs of life on a stream."""

PACE: Final = 0.1
"""The least time between two messages of a stream: a burst of changes is one message."""

CHUNK: Final = 1_000
"""How many rows a message has at most, so that the first are shown while others are on their way."""

MOST_STREAMS: Final = 32
"""How many streams one session may have."""

MOST_SIGN_INS: Final = 16
"""How many viewers are signed in at once; each asks the API server who they are."""

MOST_PLANS: Final = 8
MOST_PLANS_EACH: Final = 4
"""How many plans are made at once, in all and for one user."""

RETRY_SECONDS: Final = 1
"""After how many seconds a viewer may try again for whom there is no place."""

MOST_DIGITS: Final = 20
"""How long the number of a change may be."""

_DRAIN_SECONDS: Final = 1.0

TYPES: Final = {
    "html": "text/html",
    "js": "text/javascript",
    "css": "text/css",
    "svg": "image/svg+xml",
    "webmanifest": "application/manifest+json",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """How the dashboard is served.

    server      the URL of the API server, for viewers
    hosts       names by which viewers reach it, beside addresses and localhost
    changes     whether verbs can be carried out
    links       whether a link begins a session for the user of the kubeconfig; else viewers enter tokens
    """

    server: str
    hosts: tuple[str, ...] = ()
    changes: bool = False
    links: bool = True


@dataclass(frozen=True, slots=True)
class Asset:
    """A file that the page consists of."""

    body: bytes
    type: str
    tag: str = field(compare=False, default="")


def assets() -> dict[str, Asset]:
    """The files of the page, by name."""
    found = {}
    for each in (files("holdfast.dashboard") / "assets").iterdir():
        suffix = each.name.rpartition(".")[2]
        if suffix in TYPES:
            body = each.read_bytes()
            found[each.name] = Asset(body, TYPES[suffix], f'"{hashlib.sha256(body).hexdigest()[:16]}"')
    return found


class Dashboard:
    """The dashboard of one cluster."""

    def __init__(self, worlds: Worlds, settings: Settings, *, watches: bool = False) -> None:
        self._watches = watches
        self._watching: asyncio.Task[None] | None = None
        self._worlds = worlds
        self._settings = settings
        self._sessions = Sessions(clock=time.monotonic, ended=self._end_streams)
        self._sign_ins = gate.Places(most=MOST_SIGN_INS, each=MOST_SIGN_INS)
        self._plans = gate.Places(most=MOST_PLANS, each=MOST_PLANS_EACH)
        self._assets = assets()
        self._streams: dict[asyncio.Task[Any], Session] = {}
        self._rollouts = tuple(each.rollout for each in worlds.kinds if each.rollout is not None)
        app = web.Application(client_max_size=LARGEST, middlewares=[gate.gate(settings.hosts), _answered])
        app.on_response_prepare.append(gate.forbid)
        app.add_routes(
            [
                web.get("/", self._index),
                web.get("/healthz", self._healthz),
                web.get("/assets/{name}", self._asset),
                web.get("/api/session", self._who),
                web.post("/api/session", self._begin),
                web.delete("/api/session", self._end),
                web.post("/api/link", self._link),
                web.get("/api/stream", self._stream),
                web.post("/api/verb", self._verb),
                web.post("/api/plan", self._plan),
            ]
        )
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=_DRAIN_SECONDS, handler_cancellation=True)
        self._listening: asyncio.Server | None = None
        self._cookie = COOKIE
        self._secure = False

    async def serve(self, bind: str, port: int, *, tls: ssl.SSLContext | None = None) -> tuple[str, int]:
        """Listen at an address; returns the host and the port, which is any free one for 0.  Raises `OSError`."""
        if self._runner.server is None:
            await self._runner.setup()
        loop, manager = asyncio.get_running_loop(), self._runner.server
        assert manager is not None, "the runner is set up"
        self._listening = await loop.create_server(lambda: gate.Connection(manager, loop), bind, port, ssl=tls)
        host, bound, *_ = self._listening.sockets[0].getsockname()
        if self._watches:
            self._watching = asyncio.ensure_future(self._worlds.watch())
        # Browsers share cookies between the ports of a host.
        self._cookie, self._secure = f"{COOKIE}-{bound}", tls is not None
        return str(host), int(bound)

    def link(self) -> str:
        """A secret that begins one session."""
        return self._sessions.link()

    async def close(self) -> None:
        if self._watching is not None:
            self._watching.cancel()
            await asyncio.gather(self._watching, return_exceptions=True)
        if self._listening is not None:
            self._listening.close()
        for task in tuple(self._streams):
            task.cancel()
        await self._runner.cleanup()
        await self._worlds.close()

    # The page.

    async def _index(self, request: web.Request) -> web.StreamResponse:
        return self._file(request, "index.html")

    async def _asset(self, request: web.Request) -> web.StreamResponse:
        return self._file(request, request.match_info["name"])

    def _file(self, request: web.Request, name: str) -> web.StreamResponse:
        found = self._assets.get(name)
        if found is None:
            raise Problem(404, f"there is no file {name}")
        headers = {"ETag": found.tag, "Cache-Control": "no-cache"}
        if request.headers.get("If-None-Match") == found.tag:
            return web.Response(status=304, headers=headers)
        response = web.Response(body=found.body, content_type=found.type, charset="utf-8", headers=headers)
        response.enable_compression()
        return response

    async def _healthz(self, request: web.Request) -> web.StreamResponse:
        return web.Response(text="ok\n")

    # Sessions.

    async def _who(self, request: web.Request) -> web.StreamResponse:
        found = self._sessions.find(request.cookies.get(self._cookie, ""))
        return _json({"user": None} if found is None else self._described(found))

    async def _begin(self, request: web.Request) -> web.StreamResponse:
        given = await _read(request, _Login)
        if given.link:
            if not self._settings.links or not self._sessions.is_valid(given.link):
                raise _used_before()
            token = ""
        elif token := given.token.strip():
            pass  # an empty token would be the user of the kubeconfig
        else:
            raise Problem(400, "neither a link nor a token was given", "open the link, or enter a bearer token")
        namespace = given.namespace.strip()
        if namespace:
            _checked("namespace", namespace)
        user = await self._user(token)
        # Only now, so that a link stays valid where the API server did not answer.
        if given.link and not self._sessions.redeem(given.link):
            raise _used_before()
        session = self._sessions.begin(token=token, user=user, namespace=namespace)
        response = _json(self._described(session))
        response.set_cookie(self._cookie, session.id, httponly=True, samesite="Strict", secure=self._secure, path="/")
        return response

    async def _user(self, token: str) -> str:
        """The name of the user of a token, whom the API server accepts."""
        if not self._sign_ins.take(token):
            raise Problem(429, f"{MOST_SIGN_INS} viewers are signing in", "try again", retry=RETRY_SECONDS)
        try:
            return await self._worlds.user(token)
        except Unauthorized as error:
            raise Problem(401, "the API server does not accept the token", error.message) from None
        except Untrusted as error:
            raise Problem(400, str(error)) from None
        except Unreachable as error:
            hint = "sign in again when it answers; a link stays valid until then"
            raise Problem(503, f"the API server does not answer: {error}", hint) from None
        finally:
            self._sign_ins.give_back(token)

    def _end_streams(self, session: Session) -> None:
        for task, viewer in tuple(self._streams.items()):
            if viewer is session:
                task.cancel()

    async def _end(self, request: web.Request) -> web.StreamResponse:
        session = self._changing(request)
        self._sessions.end(session)
        response = _json({})
        response.del_cookie(self._cookie, path="/")
        return response

    async def _link(self, request: web.Request) -> web.StreamResponse:
        """A link for another browser of the same user."""
        session = self._changing(request)
        if session.token or not self._settings.links:
            raise Problem(403, "a session with a token has no links", "enter the token in the other browser")
        return _json({"link": self._sessions.link(lifetime=LINK_LIFETIME)})

    def _session(self, request: web.Request) -> Session:
        found = self._sessions.find(request.cookies.get(self._cookie, ""))
        if found is None:
            raise Problem(401, "this browser has no session", "open the link, or enter a bearer token")
        return found

    def _changing(self, request: web.Request) -> Session:
        """The session of a request that changes something, which carries the session's token."""
        session = self._session(request)
        if not gate.matches(request.headers.get(gate.CSRF, ""), session.csrf):
            raise Problem(403, "the request does not carry the token of the session", "reload the page")
        return session

    def _described(self, session: Session) -> dict[str, Any]:
        shown = [
            {"resource": each.name, "kind": each.resource.kind, "group": each.resource.group}
            for each in self._worlds.kinds
        ]
        return {
            "user": session.user,
            "namespace": session.namespace,
            "csrf": session.csrf,
            "changes": self._settings.changes,
            "links": self._settings.links and not session.token,
            "server": self._settings.server,
            "kinds": shown,
            "planner": [planner.form(each) for each in planner.planned_kinds(self._rollouts)],
        }

    # Streams.

    async def _stream(self, request: web.Request) -> web.StreamResponse:
        session = self._session(request)
        if session.streams >= MOST_STREAMS:
            raise Problem(
                429,
                f"this session has {session.streams} streams already",
                "close other tabs of it",
                retry=RETRY_SECONDS,
            )
        task = asyncio.current_task()
        assert task is not None, "a handler runs in a task"
        stream = Stream(request)
        session.streams += 1
        self._streams[task] = session
        try:
            async with self._worlds.of(session.token, session.namespace) as world:
                await stream.send(
                    self._page(world, request)
                    if request.query.get("resource")
                    else self._overview(world, request.headers.get("Last-Event-ID") or request.query.get("since", ""))
                )
        finally:
            session.streams -= 1
            del self._streams[task]
        return stream.response

    async def _overview(self, world: World, since: str) -> AsyncIterator[Message]:
        """All rows, or those that changed since; then each change."""
        epoch, _, number = since.partition(".")
        is_number = number.isascii() and number.isdigit() and len(number) < MOST_DIGITS
        seen = int(number) if epoch == world.board.epoch and is_number else 0
        sent: tuple[str, bool] | None = None
        while True:
            delta = world.board.since(seen)
            if delta.reset or delta.rows or delta.gone or seen == 0:
                rows = delta.rows
                for start in range(0, max(len(rows), 1), CHUNK):
                    last = start + CHUNK >= len(rows)
                    yield Message(
                        "rows",
                        b'{"reset":%s,"rows":[%s],"gone":%s,"counts":%s}'
                        % (
                            b"true" if delta.reset and start == 0 else b"false",
                            b",".join(rows[start : start + CHUNK]),
                            msgspec.json.encode(delta.gone if last else []),
                            msgspec.json.encode(world.board.counts),
                        ),
                        f"{world.board.epoch}.{delta.number}" if last else "",
                    )
            seen = delta.number
            state = (world.trouble, world.loading)
            if state != sent:
                sent = state
                yield Message("state", msgspec.json.encode({"trouble": state[0], "loading": state[1]}))
            await asyncio.sleep(PACE)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(PULSE_SECONDS / 5):
                    await world.board.change(seen)

    async def _page(self, world: World, request: web.Request) -> AsyncIterator[Message]:
        """The sections of a page, and then those that change."""
        query = request.query
        kind = world.kind(query["resource"])
        if kind is None:
            raise Problem(404, f"there are no pages of {query['resource']}")
        key = _key(kind.resource, query.get("namespace", ""), query.get("name", ""))
        async with world.page(kind, key) as following:
            sent: dict[str, bytes] = {}
            seen, counts = 0, None
            while True:
                await following.change(seen)
                seen, sections = following.number, following.sections
                changed = {name: body for name, body in sections.items() if sent.get(name) != body}
                sent = dict(sections)
                latest = world.board.counts
                if latest != counts:
                    counts = latest
                    changed["counts"] = msgspec.json.encode(counts)
                if changed:
                    joined = b",".join(b'"%s":%s' % (name.encode(), body) for name, body in changed.items())
                    yield Message("page", b"{%s}" % joined)

    # Verbs.

    async def _verb(self, request: web.Request) -> web.StreamResponse:
        session = self._changing(request)
        given = await _read(request, _Verb)
        kind = self._rollout(given.resource)
        if given.verb not in kind.verbs and given.verb not in kind.unsupported:
            raise Problem(404, f"{kind.resource.kind} has no verb {given.verb!r}")
        if not given.preview and not self._settings.changes:
            raise Problem(403, "this dashboard is read-only", "start it with --allow-changes")
        order = Order(
            resource=kind.resource,
            key=_key(kind.resource, given.namespace, given.name),
            verb=given.verb,
            full=given.full,
            number=given.number,
        )
        async with self._worlds.of(session.token, session.namespace) as world:
            if given.preview:
                self._take_plan(session.identity)
                try:
                    return _json(await self._preview(world, kind, order))
                finally:
                    self._plans.give_back(session.identity)
            answer = await steering.carried_out(world.client, kind, order)
            _log.info("verb", extra={"fields": {"user": session.user, "verb": order.verb, "object": str(order.key)}})
            return _json(_answer_json(answer))

    async def _preview(self, world: World, kind: RolloutKind, order: Order) -> dict[str, Any]:
        """What a verb would write, and the plan of what follows."""
        obj = await world.client.get(order.resource, order.key)
        answer = await steering.answered(world.client, kind, order, obj)
        shown = _answer_json(answer)
        if not isinstance(answer, Change):
            return shown
        try:
            changed = await steering.as_it_would_be(world.client, obj, answer.patch)
            plan = await steering.planned(world.client, kind, changed)
        except Forbidden as error:
            return shown | {"planRefusal": error.message}
        if isinstance(plan, Refusal):
            return shown | {"planRefusal": plan.message}
        return shown | {"plan": planner.plan_json(plan)}

    def _rollout(self, name: str) -> RolloutKind:
        found = next((each for each in self._rollouts if each.name == name), None)
        if found is None:
            raise Problem(404, f"{name} has no verbs")
        return found

    # The planner.

    async def _plan(self, request: web.Request) -> web.StreamResponse:
        session = self._changing(request)
        given = await _read(request, _Plan)
        known = planner.planned_kinds(self._rollouts)
        kind = next((each for each in known if each.name == given.resource), None)
        if kind is None:
            raise Problem(404, f"{given.resource or 'nothing'} cannot be planned", "the page offers what can be")
        try:
            answer = await self._planned(session.identity, kind, given.asked)
        except planner.Wrong as error:
            problems = [{"setting": name, "message": message} for name, message in error.problems]
            return _json({"problems": problems}, status=422)
        return _json(answer)

    def _take_plan(self, viewer: str) -> None:
        if not self._plans.take(viewer):
            message = f"at most {MOST_PLANS_EACH} plans of one user are made at once, and {MOST_PLANS} in all"
            raise Problem(429, message, "try again when they are made", retry=RETRY_SECONDS)

    async def _planned(self, viewer: str, kind: RolloutKind, asked: planner.Asked) -> dict[str, Any]:
        self._take_plan(viewer)
        made = asyncio.get_running_loop().run_in_executor(None, planner.answer, kind, asked)

        def over(future: asyncio.Future[dict[str, Any]]) -> None:
            self._plans.give_back(viewer)
            if not future.cancelled():
                future.exception()  # read here too: there is no other reader if the viewer has gone

        made.add_done_callback(over)
        # A thread is not stopped where the viewer goes, so it keeps its place until it is done.
        return await asyncio.shield(made)


# --- requests and answers


class _Login(msgspec.Struct):
    link: str = ""
    token: str = ""
    namespace: str = ""


class _Verb(msgspec.Struct):
    resource: str
    name: str
    verb: str
    namespace: str = ""
    full: bool = False
    number: int | None = None
    preview: bool = False


class _Plan(msgspec.Struct):
    resource: str
    asked: planner.Asked = planner.Asked()


class Problem(Exception):
    """A request that is not answered: the status, what is wrong, what to do, and after how many seconds."""

    def __init__(self, status: int, message: str, hint: str = "", *, retry: int = 0) -> None:
        super().__init__(message)
        self.status = status
        self.retry = retry
        self.message = message
        self.hint = hint


def _used_before() -> Problem:
    hint = "'holdfast dashboard' prints a new one; or enter a bearer token"
    return Problem(401, "the link was used before, or is of another run", hint)


def _problem(error: StatusError | Unreachable | Problem) -> Problem:
    """A failure as viewers see it."""
    match error:
        case Problem():
            return error
        case NotFound():
            return Problem(404, error.message, "it may have been deleted")
        case Unauthorized():
            return Problem(401, f"the API server does not accept the identity: {error.message}")
        case StatusError():
            return Problem(error.code, f"the API server refuses: {error.message}")
        case Unreachable():
            return Problem(503, f"the API server does not answer: {error}", "it is asked again")


T = TypeVar("T")


async def _read(request: web.Request, type: type[T]) -> T:
    try:
        return msgspec.json.decode(await request.read(), type=type)
    except (HttpProcessingError, web.RequestPayloadError) as error:
        _log.debug("not HTTP", extra={"fields": {"remote": request.remote, "problem": error.__class__.__name__}})
        raise Problem(400, gate.NOT_HTTP) from None
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise Problem(400, f"the request cannot be read: {error}") from None


def _key(resource: Resource, namespace: str, name: str) -> Key:
    """The key of an object; what is no name would be another path of the API server."""
    return Key(_checked("namespace", namespace) if resource.namespaced else "", _checked("name", name))


def _checked(what: str, text: str) -> str:
    if not text or text in (".", "..") or not text.isprintable() or set(text) & set("/%"):
        raise Problem(400, f"{text!r} is no {what} of an object")
    return text


def _json(value: Any, *, status: int = 200) -> web.Response:
    return web.Response(body=msgspec.json.encode(value), content_type="application/json", status=status)


def _answer_json(answer: Answer) -> dict[str, Any]:
    match answer:
        case Change(patch, said, notes):
            return {"result": "changed", "message": said, "notes": list(notes), "patch": patch}
        case Already(said):
            return {"result": "unchanged", "message": said}
        case Refusal(message, hint):
            return {"result": "refused", "message": message, "hint": hint}


@web.middleware
async def _answered(request: web.Request, handler: gate.Handler) -> web.StreamResponse:
    """Every failure is an answer in JSON."""
    try:
        return await handler(request)
    except (*FAILURES, Problem) as error:
        problem = _problem(error)
        answer = _json({"error": problem.message, "hint": problem.hint}, status=problem.status)
        if problem.retry:
            answer.headers["Retry-After"] = str(problem.retry)
        return answer
    except web.HTTPException as error:
        return _json({"error": error.reason}, status=error.status)
    except Exception:
        _log.exception("request failed", extra={"fields": {"path": request.path}})
        return _json({"error": "the dashboard failed; its log says where"}, status=500)


@dataclass(frozen=True, slots=True)
class Message:
    """A server-sent event; `id` is where a viewer goes on that was disconnected after it."""

    event: str
    data: bytes
    id: str = ""

    @property
    def encoded(self) -> bytes:
        # JSON of msgspec has no line breaks outside of strings, and escapes those inside.
        id = b"id: %s\n" % self.id.encode() if self.id else b""
        return b"event: %s\n%sdata: %s\n\n" % (self.event.encode(), id, self.data)


class Stream:
    """A stream of server-sent events to one viewer, which is cut off if it does not read."""

    def __init__(self, request: web.Request) -> None:
        self._request = request
        self.response = web.StreamResponse(
            headers={"Content-Type": "text/event-stream", "Cache-Control": "no-store", "X-Accel-Buffering": "no"}
        )

    async def send(self, messages: AsyncIterator[Message]) -> None:
        """Send messages until they end or fail, or the viewer is gone."""
        waiting: asyncio.Task[Message] | None = asyncio.ensure_future(_next(messages))
        try:
            while True:
                assert waiting is not None
                done, _ = await asyncio.wait({waiting}, timeout=PULSE_SECONDS)
                if not done:
                    await self._write(b": still here\n\n")
                    continue
                try:
                    message = waiting.result()
                except StopAsyncIteration:
                    return
                except (*FAILURES, Problem) as error:
                    # A browser does not show the status of a stream to its page, so a failure is a message.
                    problem = _problem(error)
                    body = {"status": problem.status, "error": problem.message, "hint": problem.hint}
                    await self._write(Message("failed", msgspec.json.encode(body)).encoded)
                    return
                await self._write(message.encoded)
                waiting = asyncio.ensure_future(_next(messages))
        except (ConnectionError, TimeoutError):
            return
        finally:
            if waiting is not None:
                waiting.cancel()
                with contextlib.suppress(asyncio.CancelledError, Exception):
                    await waiting
            aclose = getattr(messages, "aclose", None)
            if aclose is not None:
                await aclose()

    async def _write(self, data: bytes) -> None:
        async with asyncio.timeout(SLOW_SECONDS):
            if not self.response.prepared:
                await self.response.prepare(self._request)
            await self.response.write(data)


async def _next(messages: AsyncIterator[Message]) -> Message:
    return await anext(messages)


def kinds_of(operators: Iterable[Operator]) -> tuple[ShownKind, ...]:
    """The kinds that operators show."""
    return tuple(kind for each in operators for kind in each.shown_kinds())
