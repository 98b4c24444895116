"""Verbs and plans: what a verb would do, the verb itself, and plans of rollouts without a cluster."""

from __future__ import annotations

import asyncio
import logging
from typing import Any, Final

import msgspec
from aiohttp import web

from holdfast.dashboard import gate, planner
from holdfast.dashboard.answers import RETRY_SECONDS, Problem, json_answer, key_of, read
from holdfast.dashboard.sessions import Session
from holdfast.dashboard.settings import Settings
from holdfast.dashboard.worlds import World, Worlds
from holdfast.meta.errors import Forbidden
from holdfast.operators import steering
from holdfast.operators.rollouts import Already, Answer, Change, Refusal, RolloutKind
from holdfast.operators.steering import Order

_log: Final = logging.getLogger("holdfast.dashboard")

MOST_PLANS: Final = 8
MOST_PLANS_EACH: Final = 4
"""How many plans are made at once, in all and for one user."""


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


class Verbs:
    """Answers what viewers may do to rollouts."""

    def __init__(self, worlds: Worlds, settings: Settings) -> None:
        self._worlds = worlds
        self._settings = settings
        self._plans = gate.Places(most=MOST_PLANS, each=MOST_PLANS_EACH)

    async def verb(self, request: web.Request, session: Session) -> web.StreamResponse:
        given = await read(request, _Verb)
        kind = self._rollout(given.resource)
        if given.verb not in kind.verbs and given.verb not in kind.unsupported:
            raise Problem(404, f"{kind.resource.kind} has no verb {given.verb!r}")
        if not given.preview and not self._settings.changes:
            raise Problem(403, "this dashboard is read-only", "start it with --allow-changes")
        order = Order(
            resource=kind.resource,
            key=key_of(kind.resource, given.namespace, given.name),
            verb=given.verb,
            full=given.full,
            number=given.number,
        )
        async with self._worlds.of(session.token, session.namespace) as world:
            if given.preview:
                self._take_plan(session.identity)
                try:
                    return json_answer(await _preview(world, kind, order))
                finally:
                    self._plans.give_back(session.identity)
            answer = await steering.carried_out(world.client, kind, order)
            _log.info("verb", extra={"fields": {"user": session.user, "verb": order.verb, "object": str(order.key)}})
            return json_answer(_answer_json(answer))

    def _rollout(self, name: str) -> RolloutKind:
        found = next((each for each in self._worlds.rollouts if each.name == name), None)
        if found is None:
            raise Problem(404, f"{name} has no verbs")
        return found

    async def plan(self, request: web.Request, session: Session) -> web.StreamResponse:
        given = await read(request, _Plan)
        known = planner.planned_kinds(self._worlds.rollouts)
        kind = next((each for each in known if each.name == given.resource), None)
        if kind is None:
            raise Problem(404, f"{given.resource or 'nothing'} cannot be planned", "the page offers what can be")
        try:
            answer = await self._planned(session.identity, kind, given.asked)
        except planner.Wrong as error:
            problems = [{"setting": name, "message": message} for name, message in error.problems]
            return json_answer({"problems": problems}, status=422)
        return json_answer(answer)

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


async def _preview(world: World, kind: RolloutKind, order: Order) -> dict[str, Any]:
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


def _answer_json(answer: Answer) -> dict[str, Any]:
    match answer:
        case Change(patch, said, notes):
            return {"result": "changed", "message": said, "notes": list(notes), "patch": patch}
        case Already(said):
            return {"result": "unchanged", "message": said}
        case Refusal(message, hint):
            return {"result": "refused", "message": message, "hint": hint}
