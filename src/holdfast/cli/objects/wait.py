"""``holdfast wait``: until something holds of objects, or it is too late.

What can be waited for is `Condition`, read from ``--for`` and pure; how one
waits is `client.waiting`'s matter.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import Any, Final

import click

from holdfast.cli import connecting, progress
from holdfast.cli.connecting import Refused, Session, Verb, Where
from holdfast.cli.errors import ExitCode
from holdfast.cli.objects import fetching, targets
from holdfast.cli.objects.targets import Asked, Target
from holdfast.client import waiting
from holdfast.client.objects import Object
from holdfast.meta import durations
from holdfast.meta.errors import NotFound, StatusError
from holdfast.meta.jsonpath import evaluate

A_WEEK: Final = timedelta(weeks=1)

_FORMS: Final = "condition=Ready, condition=Ready=false, jsonpath='{.status.phase}'=Running, create, or delete"


@dataclass(frozen=True, slots=True)
class Condition:
    """What is waited for."""

    holds: Callable[[dict[str, Any]], bool]
    """Whether it holds of an object that exists."""
    without: bool | None = None
    """Whether it holds of an object that does not exist; None: that it does not is an error."""


def condition(text: str) -> Condition:
    """What ``--for`` says; raises `click.BadParameter`."""
    form, _, rest = text.partition("=")
    match form.lower():
        case "delete" if not rest:
            return Condition(lambda obj: False, without=True)
        case "create" if not rest:
            return Condition(lambda obj: True, without=False)
        case "condition" if rest:
            type, _, status = rest.partition("=")
            return Condition(lambda obj: has_condition(obj, type, status or "true"))
        case "jsonpath" if rest:
            path, value = _path(rest)
            return Condition(lambda obj: has_value(obj, path, value))
        case _:
            raise click.BadParameter(f"{text!r} cannot be waited for; write {_FORMS}", param_hint="--for")


def has_condition(obj: dict[str, Any], type: str, status: str) -> bool:
    """Whether an object has a condition; one that was observed of an earlier generation is not it."""
    generation = obj["metadata"].get("generation") or 0
    reported = obj.get("status") or {}
    for each in reported.get("conditions") or ():
        if str(each.get("type", "")).lower() == type.lower():
            observed = each.get("observedGeneration") or reported.get("observedGeneration")
            stale = observed is not None and observed < generation
            return not stale and str(each.get("status", "")).lower() == status.lower()
    return False


def has_value(obj: dict[str, Any], path: evaluate.Path, value: str | None) -> bool:
    """Whether a path leads to a value in an object; to any value at all, if none is given."""
    try:
        found = path.find(obj)
    except evaluate.EvaluationError:
        return False  # such as the first of no items: what is waited for may still come
    if value is None:
        return bool(found)
    return any(evaluate.text_of(each) == value for each in found)


def _path(text: str) -> tuple[evaluate.Path, str | None]:
    """``{.status.phase}=Running``, or a path alone; quotes that no shell took away do no harm."""
    head, brace, tail = text.rpartition("}")
    path, equals, value = tail.lstrip("'\"").partition("=") if brace else text.partition("=")
    path = f"{head}}}{path}" if brace else path
    if equals and not value:
        raise click.BadParameter(f"{text!r} has no value; write '{{.status.phase}}'=Running", param_hint="--for")
    try:
        return evaluate.compile(path.strip("'\"")), value.strip("'\"") if equals else None
    except evaluate.JSONPathError as error:
        raise click.BadParameter(str(error), param_hint="--for") from None


def timeout_of(ctx: click.Context, parameter: click.Parameter, text: str) -> float:
    """Seconds; less than none means a week, as in kubectl."""
    try:
        given = durations.parse(f"{text}s" if text.removeprefix("-").isdecimal() else text)
    except durations.DurationError as error:
        raise click.BadParameter(str(error)) from None
    return (given if given >= timedelta() else A_WEEK).total_seconds()


@click.command("wait", cls=Verb)
@targets.options
@click.option("--for", "wanted", required=True, metavar="CONDITION", help=f"What to wait for: {_FORMS}.")
@click.option(
    "--timeout", callback=timeout_of, default="30s", show_default=True, metavar="DURATION",
    help="How long to wait at most; 0 looks once, and -1s waits for a week.",
)  # fmt: skip
@click.option("--all", "every", is_flag=True, help="All objects of the type.")
@connecting.options
def command(
    *,
    where: Where,
    asked: Asked,
    wanted: str,
    timeout: float,
    every: bool,
) -> None:
    """Wait until objects meet a condition.

    \b
    To be ready:      holdfast wait --for=condition=Ready pod/web-0
    To be rolled out: holdfast wait --for=condition=Available deploy -l app=web
    To say so:        holdfast wait --for=jsonpath={.status.phase}=Running pod/a
    To be gone:       holdfast wait --for=delete pod/web-0

    Exits with 1 when it did not come to hold in time.
    """
    goal = condition(wanted)
    connecting.run(where, lambda session: _wait(session, asked, goal, every=every, timeout=timeout))


async def _wait(session: Session, asked: Asked, goal: Condition, *, every: bool, timeout: float) -> ExitCode | None:
    found = await targets.targets(asked, session)
    targets.check_named(found, asked, every=every)
    objects = await fetching.named(session.client, found)
    if not objects and not goal.without:
        raise Refused("error: no matching resources found")
    waits = [asyncio.ensure_future(_problem(session, each, goal, timeout=timeout)) for each in objects]
    problems = []
    for target, wait in zip(objects, waits, strict=True):
        async with progress.waiting(partial(_words, target, waits)):
            problem = await wait
        if problem is None:
            click.echo(f"{target.type}/{target.name} condition met")
        else:
            problems.append(problem)
    return connecting.report(problems)


def _words(target: Target, waits: Sequence[asyncio.Future[str | None]]) -> str:
    more = sum(not each.done() for each in waits) - 1
    return f"waiting for {target.type}/{target.name}{f' and {more} more' if more > 0 else ''}"


async def _problem(session: Session, target: Target, goal: Condition, *, timeout: float) -> str | None:
    """Wait for one object; what is to be said of it, if it did not come to hold."""
    try:
        await met(session, target, goal, timeout=timeout)
    except StatusError as error:
        return connecting.words(error)
    except TimeoutError:
        return too_late(target)
    return None


def too_late(target: Target) -> str:
    return f"error: timed out waiting for the condition on {target.resource}/{target.name}"


async def met(session: Session, target: Target, goal: Condition, *, timeout: float) -> None:
    """Wait for one object, or with no time only look; raises `TimeoutError` or `StatusError`."""

    def holds(obj: Object | None) -> bool:
        if obj is not None:
            return goal.holds(obj.wire())
        if goal.without is None:
            raise NotFound.of(target.resource.plural, target.name, group=target.resource.group)
        return goal.without

    if timeout:
        await waiting.until(session.client, target.resource, target.key, holds, timeout=timeout)
    elif not holds(await _looked(session, target)):
        raise TimeoutError


async def _looked(session: Session, target: Target) -> Object | None:
    try:
        return await session.client.get(target.resource, target.key)
    except NotFound:
        return None
