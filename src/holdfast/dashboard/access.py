"""Access: how viewers sign in and out, and which session a request belongs to."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Final

import msgspec
from aiohttp import web

from holdfast.client.protocols import Unreachable, Untrusted
from holdfast.dashboard import gate, planner
from holdfast.dashboard.answers import RETRY_SECONDS, Problem, checked, json_answer, read
from holdfast.dashboard.sessions import LINK_LIFETIME, Session, Sessions
from holdfast.dashboard.settings import Settings
from holdfast.dashboard.worlds import Worlds
from holdfast.meta.errors import Unauthorized

COOKIE: Final = "holdfast-session"
MOST_SIGN_INS: Final = 16
"""How many viewers are signed in at once; each asks the API server who they are."""

Handler = Callable[[web.Request, Session], Awaitable[web.StreamResponse]]


class _Login(msgspec.Struct):
    link: str = ""
    token: str = ""
    namespace: str = ""


class Access:
    """Signs viewers in with links and tokens, and finds their sessions by cookies."""

    def __init__(self, sessions: Sessions, worlds: Worlds, settings: Settings) -> None:
        self._sessions = sessions
        self._worlds = worlds
        self._settings = settings
        self._sign_ins = gate.Places(most=MOST_SIGN_INS, each=MOST_SIGN_INS)

    async def who(self, request: web.Request) -> web.StreamResponse:
        found = self._sessions.find(request.cookies.get(_cookie(request), ""))
        return json_answer({"user": None} if found is None else self._described(found))

    async def begin(self, request: web.Request) -> web.StreamResponse:
        given = await read(request, _Login)
        token, namespace = given.token.strip(), given.namespace.strip()
        if namespace:
            checked("namespace", namespace)
        if given.link:
            token = ""
            user = await self._user_by_link(given.link, namespace)
        else:
            user = await self._user_by_token(token, namespace)
        session = self._sessions.begin(token=token, user=user, namespace=namespace)
        response = json_answer(self._described(session))
        response.set_cookie(
            _cookie(request), session.id, httponly=True, samesite="Strict", secure=request.secure, path="/"
        )
        return response

    async def _user_by_link(self, link: str, namespace: str) -> str:
        """The user of the kubeconfig, for whom a link is redeemed."""
        if not self._settings.links or not self._sessions.is_valid(link):
            raise _used_before()
        self._worlds.prepare("", namespace)
        user = await self._user("")
        # Only now, so that a link stays valid where the API server did not answer.
        if not self._sessions.redeem(link):
            raise _used_before()
        return user

    async def _user_by_token(self, token: str, namespace: str) -> str:
        if not token:  # which would be the user of the kubeconfig
            raise Problem(400, "neither a link nor a token was given", "open the link, or enter a bearer token")
        user = await self._user(token)
        self._worlds.prepare(token, namespace)  # not before the API server has accepted the token
        return user

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

    async def end(self, request: web.Request, session: Session) -> web.StreamResponse:
        self._sessions.end(session)
        response = json_answer({})
        response.del_cookie(_cookie(request), path="/")
        return response

    async def link(self, request: web.Request, session: Session) -> web.StreamResponse:
        """A link for another browser of the same user."""
        if session.token or not self._settings.links:
            raise Problem(403, "a session with a token has no links", "enter the token in the other browser")
        return json_answer({"link": self._sessions.link(lifetime=LINK_LIFETIME)})

    def reading(self, handler: Handler) -> gate.Handler:
        """A handler of requests that change nothing, of viewers who are signed in."""

        async def answered(request: web.Request) -> web.StreamResponse:
            return await handler(request, self._session(request))

        return answered

    def changing(self, handler: Handler) -> gate.Handler:
        """A handler of requests that change something, which carry the token of the session."""

        async def answered(request: web.Request) -> web.StreamResponse:
            session = self._session(request)
            if not gate.matches(request.headers.get(gate.CSRF, ""), session.csrf):
                raise Problem(403, "the request does not carry the token of the session", "reload the page")
            return await handler(request, session)

        return answered

    def _session(self, request: web.Request) -> Session:
        found = self._sessions.find(request.cookies.get(_cookie(request), ""))
        if found is None:
            raise Problem(401, "this browser has no session", "open the link, or enter a bearer token")
        return found

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
            "planner": [planner.form(each) for each in planner.planned_kinds(self._worlds.rollouts)],
        }


def _used_before() -> Problem:
    hint = "'holdfast dashboard' prints a new one; or enter a bearer token"
    return Problem(401, "the link was used before, or is of another run", hint)


def _cookie(request: web.Request) -> str:
    """The name of the cookie, with the port: browsers share cookies between the ports of a host."""
    address = request.get_extra_info("sockname", ("", 0))
    return f"{COOKIE}-{address[1]}"
