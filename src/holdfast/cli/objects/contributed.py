"""The command groups that operators add, such as those for objects that are more than what a spec says of them.

A group is loaded when one of its commands is run, as an attribute of this module.  What a command shows or changes is
the operator's; finding the object, the conversation with the server and the printing are done here, for all of them.
"""

from __future__ import annotations

from functools import partial
from importlib import import_module
from typing import Final

import click

from holdfast import operators
from holdfast.cli import connecting
from holdfast.cli.arguments import NameType
from holdfast.cli.connecting import Refused, Session, Verb, Where
from holdfast.cli.errors import ExitCode, printable
from holdfast.cli.groups import Group
from holdfast.meta.errors import Conflict
from holdfast.meta.objects import Key
from holdfast.operators import steering
from holdfast.operators.commands import CommandGroup, ObjectCommand, Shown
from holdfast.operators.rollouts import Already, Answer, Change, Refusal
from holdfast.operators.steering import ATTEMPTS

MANAGER: Final = "holdfast-commands"
"""The field manager of these commands."""


def __getattr__(name: str) -> click.Group:
    if name not in operators.COMMANDS:
        raise AttributeError(name)
    target, help = operators.COMMANDS[name]
    module, _, attribute = target.partition(":")
    group: CommandGroup = getattr(import_module(module), attribute)
    made = Group(name, help=help)
    for each in group.commands:
        made.add_command(_command(group, each))
    return made


def _command(group: CommandGroup, each: ObjectCommand) -> click.Command:
    def run(*, where: Where, name: str, argument: str = "") -> None:
        connecting.run(where, partial(_answered, group=group, each=each, name=name, argument=argument))

    decorated = connecting.options(run)
    decorated = click.argument("name", metavar="NAME", type=NameType())(decorated)
    if each.argument:
        choices = click.Choice(each.choices)
        decorated = click.argument("argument", metavar="|".join(each.choices), type=choices)(decorated)
    return click.command(each.name, cls=Verb, help=each.summary)(decorated)


async def _answered(
    session: Session, *, group: CommandGroup, each: ObjectCommand, name: str, argument: str
) -> ExitCode | None:
    key = Key(session.namespace if group.resource.namespaced else "", name)
    called = f"{group.resource.kind.lower()}/{name}"
    answer = await _carried_out(session, group, each, key, argument)
    match answer:
        case Shown(text=text):
            click.echo(printable(text))
        case Refusal():
            raise Refused(*answer.lines(called))
        case Already(said=said):
            click.echo(printable(f"{called} {said}"))
        case Change(said=said, notes=notes):
            click.echo(printable(f"{called} {said}"))
            for note in notes:
                click.echo(printable(f"note: {note}"))
    return None


async def _carried_out(
    session: Session, group: CommandGroup, each: ObjectCommand, key: Key, argument: str
) -> Shown | Answer:
    """The answer, carried out; after a conflict it is made again from the latest object."""
    for attempt in range(ATTEMPTS):
        obj = await session.client.get(group.resource, key)
        answer = each.answer(obj, argument)
        if not isinstance(answer, Change):
            return answer
        try:
            await session.ask(steering.patch_of(obj, answer.patch, manager=MANAGER))
        except Conflict:
            if attempt + 1 == ATTEMPTS:
                raise
        else:
            if "spec" in answer.patch:
                await steering.hand_back(session.ask, session.client, obj, manager=MANAGER)
            return answer
    raise AssertionError("the last attempt returns or raises")
