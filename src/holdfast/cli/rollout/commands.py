"""``holdfast rollout``: watch, steer and plan rollouts.

This module has the commands and their options.  What a kind supports, and how it is shown,
is in its `RolloutKind`; this module must not know any kind.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import click

from holdfast.cli import connecting, painting
from holdfast.cli.bundling import together
from holdfast.cli.connecting import Refused, Session, Verb, Where
from holdfast.cli.errors import ExitCode
from holdfast.cli.groups import Group
from holdfast.cli.objects import completing, fetching, printers, targets
from holdfast.cli.objects.targets import Asked, Target
from holdfast.cli.objects.wait import timeout_of
from holdfast.cli.operator.selection import rollout_kinds
from holdfast.cli.rollout import status as rollout_status
from holdfast.cli.rollout.history import show_history
from holdfast.cli.rollout.plan import PlanOptions, plan
from holdfast.meta.errors import StatusError
from holdfast.operators import steering
from holdfast.operators.rollouts import Already, Answer, Change, Refusal, RolloutKind
from holdfast.operators.steering import Order

TARGET: Final = "TYPE/NAME"


@click.group("rollout", cls=Group)
def command() -> None:
    """Watch, pause, promote, abort, undo or restart rollouts.

    All but status, history and plan change annotations or fields of the object, which any other
    client may set too; the operator acts on them.
    """


def _rolls(target: Target) -> RolloutKind:
    """The declaration of the target's kind; raises `Refused`."""
    name = target.resource.group_resource
    found = next((kind for kind in rollout_kinds() if kind.name == name), None)
    if found is None:
        known = ", ".join(kind.name for kind in rollout_kinds())
        raise Refused(
            f"error: Holdfast does not roll out {name}; it rolls out {known}",
            "hint: use 'holdfast kubectl rollout' for built-in kinds",
        )
    return found


# The verbs.


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """A verb and its options."""

    verb: str
    full: bool = False
    number: int | None = None
    output: str | None = None


def _verb(name: str, help: str, *options: Callable[[Any], Any]) -> click.Command:
    """The command of a verb, for objects by name or by label."""

    def run(*, where: Where, asked: Asked, every: bool, output: str | None, **rest: Any) -> None:
        wanted = Wanted(verb=name, output=output, **rest)
        connecting.run(where, lambda session: _change(session, asked, wanted, every=every))

    with_options = together(
        targets.options,
        *options,
        click.option("--all", "every", is_flag=True, help="All objects of the type."),
        click.option("-o", "--output", type=click.Choice(["json"]), help="JSON, for programs."),
        connecting.options,
    )
    return click.command(name, cls=Verb, help=help)(with_options(run))


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
            click.echo(painting.folded(_said(target, answer)))
    return connecting.report(problems)


async def _answered(session: Session, target: Target, kind: RolloutKind, wanted: Wanted) -> Answer:
    order = Order(resource=target.resource, key=target.key, verb=wanted.verb, full=wanted.full, number=wanted.number)
    return await steering.carried_out(session.client, kind, order, ask=session.ask)


def _said(target: Target, answer: Change | Already) -> list[str]:
    lines = [f"{target.type}/{target.name} {answer.said}"]
    if isinstance(answer, Change):
        lines += [f"note: {note}" for note in answer.notes]
    return lines


def _json(target: Target, verb: str, answer: Answer) -> dict[str, Any]:
    """An answer for programs; fields are only ever added."""
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


command.add_command(_verb("pause", "Pause a rollout. Lost replicas are still replaced."))
command.add_command(_verb("resume", "Resume a rollout that is paused."))
command.add_command(
    _verb(
        "promote",
        "Approve the step that waits, for approval or for its pause to end. The next step begins at once.",
        click.option("--full", is_flag=True, help="Approve all remaining steps."),
    )
)
command.add_command(
    _verb(
        "abort",
        "Abort a rollout. The revision before is rolled out again, and this one is rejected "
        "until it changes or is retried.",
    )
)
command.add_command(_verb("retry", "Roll out a rejected revision again: one that was aborted, undone or rolled back."))
command.add_command(
    _verb(
        "undo",
        "Return to an earlier revision. The spec becomes that of the revision; the number of replicas and the settings "
        "of the rollout stay. The undone revision is rejected until it changes, also if it is applied again.",
        click.option(
            "--to-revision", "number", type=click.IntRange(0), metavar="N",
            help="The revision by its number in the history.  [default: the one before]",
        ),
    )
)  # fmt: skip
command.add_command(_verb("restart", "Replace all replicas, in a rollout of the same spec."))


# Commands that change nothing.


@command.command("status", cls=Verb)
@click.argument("words", nargs=-1, metavar=TARGET, shell_complete=completing.objects)
@click.option(
    "-w/-W", "--watch/--no-watch", default=True, help="Whether to wait until the rollout ends.  [default: wait]"
)
@click.option(
    "--timeout", callback=timeout_of, default="0", metavar="DURATION", help="How long to wait; 0 waits without a limit."
)
@click.option(
    "-o", "--output", type=click.Choice(["tree", "line", "json"]),
    help="How to show it.  [default: a tree on a terminal, lines in a pipe]",
)  # fmt: skip
@connecting.options
def status(*, where: Where, words: tuple[str, ...], watch: bool, timeout: float, output: str | None) -> None:
    """Show a rollout until it ends.

    Shows its parts, their pods, the floors, and what each of them waits for.

    \b
    Until it ends:     holdfast rollout status workload/shop
    Once:              holdfast rollout status pcs/llm --watch=false
    In a script:       holdfast rollout status tenant/media --timeout=10m -o line

    Exits with 0 when the revision of the spec is rolled out (or, with --watch=false, in progress),
    with 1 when the rollout failed, was rejected or timed out, and with 3 when it is blocked until a
    user changes something. The command waits while a rollout is paused or waits for approval; with
    --watch=false it exits with 3.
    """

    async def show(session: Session) -> ExitCode | None:
        target = await targets.one(session, words)
        kind = _rolls(target)
        return await rollout_status.status(session, target, kind, watch=watch, timeout=timeout, output=output)

    connecting.run(where, show)


@command.command("history", cls=Verb)
@click.argument("words", nargs=-1, metavar=TARGET, shell_complete=completing.objects)
@click.option("--revision", "number", type=click.IntRange(1), metavar="N", help="Show one revision in full.")
@click.option("-o", "--output", type=click.Choice(["json", "yaml"]), help="JSON or YAML, for programs.")
@connecting.options
def history(*, where: Where, words: tuple[str, ...], number: int | None, output: str | None) -> None:
    """Show the revisions of an object.

    Shows which one is current, what each of them changed, and which is rejected.

    \b
    All revisions:  holdfast rollout history workload/shop
    One revision:   holdfast rollout history workload/shop --revision 3
    """

    async def show(session: Session) -> ExitCode | None:
        target = await targets.one(session, words)
        return await show_history(session, target, _rolls(target), number=number, output=output)

    connecting.run(where, show)


@command.command("plan", cls=Verb)
@click.argument("words", nargs=-1, metavar=f"[{TARGET}]", shell_complete=completing.objects)
@click.option("-f", "--filename", "file", default="", metavar="FILE|-", help="The manifest that would be applied.")
@click.option("--image", default="", metavar="IMAGE", help="Plan with this image.")
@click.option("--replicas", type=click.IntRange(0), metavar="N", help="Plan with this number of replicas.")
@click.option("-o", "--output", type=click.Choice(["table", "json"]), default="table", help="How to print the plan.")
@connecting.options
def plan_command(
    *, where: Where, words: tuple[str, ...], file: str, image: str, replicas: int | None, output: str
) -> None:
    """Show what a rollout will do, from what runs now.

    Shows each step before it is done; nothing is changed.

    \b
    A manifest:               holdfast rollout plan -f web.yaml
    Another image:            holdfast rollout plan workload/web --image web:2
    A rollout in progress:    holdfast rollout plan workload/web

    A dry run on the server gives the object as it would be; the engine of the operator makes the
    plan. Exits with 0 when there is a plan, and with 1 when the rollout would be blocked.
    """
    if bool(words) == bool(file):
        raise click.UsageError("name an object, or give a manifest with -f FILE")
    given = {"image": image or None, "replicas": replicas}
    settings = {setting: value for setting, value in given.items() if value is not None}
    options = PlanOptions(file=file, settings=settings, output=output)

    async def show(session: Session) -> ExitCode | None:
        target = await targets.one(session, words) if words else None
        if target is not None:
            _rolls(target)
        return await plan(session, target, options, kinds=rollout_kinds())

    connecting.run(where, show)
