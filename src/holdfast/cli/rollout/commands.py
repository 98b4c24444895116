"""``holdfast rollout``: everything that is asked of a rollout while it lasts, and afterwards.

The commands and their options; what can be asked of a kind, and how it is shown, is in its
`RolloutKind`, and nothing of it here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final
from urllib.parse import unquote

import click

from holdfast.cli import connecting
from holdfast.cli.connecting import Refused, Session, Verb, Where
from holdfast.cli.errors import Complaint, ExitCode, InputError, printable
from holdfast.cli.objects import fetching, printers, targets
from holdfast.cli.objects.targets import Asked, Target
from holdfast.cli.objects.wait import timeout_of
from holdfast.cli.operator.selection import rollout_kinds
from holdfast.cli.rollout import following
from holdfast.cli.rollout import status as rollout_status
from holdfast.cli.rollout.history import show_history
from holdfast.cli.rollout.plan import PlanOptions, plan
from holdfast.client import waiting
from holdfast.client.objects import Object
from holdfast.client.protocols import PatchType
from holdfast.meta.errors import Conflict, StatusError
from holdfast.meta.exchange import JSON, Request, encode
from holdfast.operators.rollouts import Already, Answer, Case, Change, Refusal, RolloutKind, is_left_alone

MANAGER: Final = "holdfast-rollout"
"""Who owns what these commands set: neither the operators nor those who apply manifests."""

ATTEMPTS: Final = 10
"""How often a change is tried again that was overtaken by another."""

FRESH_SECONDS: Final = 5.0
"""How long the operator is given to look at the latest change before it is asked about."""

TARGET: Final = "TYPE/NAME"


@click.group("rollout")
def command() -> None:
    """Watch, pause, promote, abort, undo or restart what is rolled out.

    All but status, history and plan change the object, by annotations and fields that any other
    client may set too; what then happens is the operator's doing.
    """


def _rolls(target: Target) -> RolloutKind:
    """The row of the kind; raises `Refused`."""
    name = target.resource.group_resource
    found = next((kind for kind in rollout_kinds() if kind.name == name), None)
    if found is None:
        known = ", ".join(kind.name for kind in rollout_kinds())
        raise Refused(
            f"error: {name} is nothing that Holdfast rolls out; it rolls out {known}",
            "hint: for kinds of Kubernetes itself there is 'holdfast kubectl rollout'",
        )
    return found


async def _one(session: Session, words: Sequence[str]) -> Target:
    """The only object that is meant."""
    asked = Asked(words=tuple(words))
    found = await targets.targets(asked, session)
    if len(found) != 1 or not found[0].name:
        raise InputError(Complaint(message="one object has to be named", hint="write TYPE/NAME, such as workload/shop"))
    return found[0]


# What changes something.


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """A verb and its options."""

    verb: str
    full: bool = False
    number: int | None = None
    output: str | None = None


def _verb(name: str, help: str, *options: Callable[[Any], Any]) -> click.Command:
    """The command of a verb that takes objects by name or by label."""

    def run(*, where: Where, asked: Asked, every: bool, output: str | None, **rest: Any) -> None:
        wanted = Wanted(verb=name, output=output, **rest)
        connecting.run(where, lambda session: _change(session, asked, wanted, every=every))

    for option in reversed(
        (
            targets.options,
            *options,
            click.option("--all", "every", is_flag=True, help="All objects of the type."),
            click.option("-o", "--output", type=click.Choice(["json"]), help="JSON, for programs."),
            connecting.options,
        )
    ):
        run = option(run)
    return click.command(name, cls=Verb, help=help)(run)


async def _change(session: Session, asked: Asked, wanted: Wanted, *, every: bool) -> ExitCode | None:
    found = await targets.targets(asked, session)
    targets.check_named(found, asked, every=every)
    named = await fetching.named(session.client, found)
    if not named:
        raise Refused("error: no matching resources found")
    problems: list[str] = []
    for target in named:
        kind = _rolls(target)
        try:
            answer = await _answered(session, target, kind, wanted)
        except StatusError as error:
            problems.append(connecting.words(error))
            continue
        if wanted.output:
            click.echo(printers.as_json(_json(target, wanted.verb, answer)), nl=False)
        if isinstance(answer, Refusal):
            problems.append("\n".join(answer.lines(f"{target.type}/{target.name}")))
        elif not wanted.output:
            click.echo(printable(_said(target, answer)))
    return connecting.report(problems)


async def _answered(session: Session, target: Target, kind: RolloutKind, wanted: Wanted) -> Answer:
    """What comes of a verb; it is thought over again whenever somebody else was faster."""
    for attempt in range(ATTEMPTS):
        obj = await _fresh(session, target, kind)
        known = await following.records(session, obj, kind)
        case = Case(object=obj, records=known, now=datetime.now(UTC), full=wanted.full, number=wanted.number)
        answer = kind.answer(wanted.verb, case)
        if not isinstance(answer, Change):
            return answer
        try:
            await session.ask(_request(target, obj, answer))
        except Conflict:
            if attempt + 1 == ATTEMPTS:
                raise
        else:
            return answer
    raise AssertionError("the last attempt returns or raises")


async def _fresh(session: Session, target: Target, kind: RolloutKind) -> Object:
    """The object, once its operator has seen it as it is; or as it is, if that takes too long."""

    def seen(obj: Object | None) -> bool:
        return obj is None or is_left_alone(obj) or kind.fresh(obj)

    try:
        found = await waiting.until(session.client, target.resource, target.key, seen, timeout=FRESH_SECONDS)
    except TimeoutError:
        found = None
    return found or await session.client.get(target.resource, target.key)


def _request(target: Target, obj: Object, change: Change) -> Request:
    """The patch, which only the object takes that was looked at."""
    metadata = {**change.patch.get("metadata", {}), "resourceVersion": obj.version, "uid": obj.uid}
    headers = {"accept": JSON, "content-type": PatchType.MERGE.value}
    query = {"fieldManager": (MANAGER,)}
    return Request("PATCH", unquote(target.path), query, headers, encode({**change.patch, "metadata": metadata}))


def _said(target: Target, answer: Change | Already) -> str:
    lines = [f"{target.type}/{target.name} {answer.said}"]
    if isinstance(answer, Change):
        lines += [f"note: {note}" for note in answer.notes]
    return "\n".join(lines)


def _json(target: Target, verb: str, answer: Answer) -> dict[str, Any]:
    """An answer for machines; fields are only ever added."""
    shown: dict[str, Any] = {
        "object": f"{target.type}/{target.name}",
        "namespace": target.scope.namespace,
        "verb": verb,
        "result": {Change: "changed", Already: "unchanged", Refusal: "refused"}[type(answer)],
    }
    match answer:
        case Change(patch, said, notes):
            return shown | {"message": said, "notes": list(notes), "patch": patch}
        case Already(said):
            return shown | {"message": said}
        case Refusal(message, hint):
            return shown | {"message": message, "hint": hint}


command.add_command(_verb("pause", "Let a rollout stand still. Replicas that are lost are replaced all the same."))
command.add_command(_verb("resume", "Let a rollout go on that was paused."))
command.add_command(
    _verb(
        "promote",
        "Approve the step that waits. It waits for somebody, or for its time; the next one begins at once.",
        click.option("--full", is_flag=True, help="Approve all steps that are left."),
    )
)
command.add_command(
    _verb(
        "abort",
        "Give up what is being rolled out. What was there before returns, and the revision is refused "
        "until it changes or is retried.",
    )
)
command.add_command(
    _verb("retry", "Roll out again what was rejected. It was aborted or undone, or it failed and was rolled back.")
)
command.add_command(
    _verb(
        "undo",
        "Return to an earlier revision. The spec becomes what it was then; its size and the settings of the rollout "
        "stay. What is undone is refused until it changes, also if a machine applies it again.",
        click.option(
            "--to-revision", "number", type=click.IntRange(0), metavar="N",
            help="The revision by its number in the history.  [default: the one before]",
        ),
    )
)  # fmt: skip
command.add_command(
    _verb("restart", "Replace all replicas by new ones. The spec stays; it is a rollout like any other.")
)


# What only looks.


@command.command("status", cls=Verb)
@click.argument("words", nargs=-1, metavar=TARGET)
@click.option("-w/-W", "--watch/--no-watch", default=True, help="Whether to wait until it is over.  [default: wait]")
@click.option(
    "--timeout", callback=timeout_of, default="0", metavar="DURATION", help="How long to wait at most; 0 is for ever."
)
@click.option(
    "-o", "--output", type=click.Choice(["tree", "line", "json"]),
    help="How to show it.  [default: a tree on a terminal, lines in a pipe]",
)  # fmt: skip
@connecting.options
def status(*, where: Where, words: tuple[str, ...], watch: bool, timeout: float, output: str | None) -> None:
    """Show a rollout until it is over.

    Its parts, their pods, the floors, and what each of them waits for.

    \b
    Until it is over:  holdfast rollout status workload/shop
    As it is now:      holdfast rollout status pcs/llm --watch=false
    In a script:       holdfast rollout status tenant/media --timeout=10m -o line

    Exits with 0 when the revision that is asked for is rolled out (or, with --watch=false, under way),
    with 1 when it failed, was rejected or took too long, and with 3 when it is blocked: it does not
    go on before somebody acts. A rollout that is paused or waits for approval is waited for; with
    --watch=false it is 3.
    """

    async def show(session: Session) -> ExitCode | None:
        target = await _one(session, words)
        kind = _rolls(target)
        return await rollout_status.status(session, target, kind, watch=watch, timeout=timeout, output=output)

    connecting.run(where, show)


@command.command("history", cls=Verb)
@click.argument("words", nargs=-1, metavar=TARGET)
@click.option("--revision", "number", type=click.IntRange(1), metavar="N", help="Show what is in one revision.")
@click.option("-o", "--output", type=click.Choice(["json", "yaml"]), help="JSON or YAML, for programs.")
@connecting.options
def history(*, where: Where, words: tuple[str, ...], number: int | None, output: str | None) -> None:
    """Show the revisions there were.

    Which one runs, what each changed, and which was rejected.

    \b
    All:      holdfast rollout history workload/shop
    One:      holdfast rollout history workload/shop --revision 3
    """

    async def show(session: Session) -> ExitCode | None:
        target = await _one(session, words)
        return await show_history(session, target, _rolls(target), number=number, output=output)

    connecting.run(where, show)


@command.command("plan", cls=Verb)
@click.argument("words", nargs=-1, metavar=f"[{TARGET}]")
@click.option("-f", "--filename", "file", default="", metavar="FILE|-", help="The manifest that would be applied.")
@click.option("--image", default="", metavar="IMAGE", help="What if this were the image.")
@click.option("--replicas", type=click.IntRange(0), metavar="N", help="What if there were so many replicas.")
@click.option("-o", "--output", type=click.Choice(["table", "json"]), default="table", help="How to print the plan.")
@connecting.options
def plan_command(
    *, where: Where, words: tuple[str, ...], file: str, image: str, replicas: int | None, output: str
) -> None:
    """Show what will happen, from what runs now.

    Step by step, before it is applied; nothing is changed.

    \b
    Of a manifest:            holdfast rollout plan -f web.yaml
    Of another image:         holdfast rollout plan workload/web --image web:2
    Of what is under way:     holdfast rollout plan workload/web

    The server is asked what it would make of the change, and the operator's own engine what it would
    do then. Exits with 0 when there is a plan, and with 1 when the rollout would be blocked.
    """
    if bool(words) == bool(file):
        raise click.UsageError("name an object, or give what would be applied with -f FILE")
    given = {"image": image or None, "replicas": replicas}
    settings = {setting: value for setting, value in given.items() if value is not None}
    options = PlanOptions(file=file, settings=settings, output=output)

    async def show(session: Session) -> ExitCode | None:
        target = await _one(session, words) if words else None
        if target is not None:
            _rolls(target)
        return await plan(session, target, options, kinds=rollout_kinds())

    connecting.run(where, show)
