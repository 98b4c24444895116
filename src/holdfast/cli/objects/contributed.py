"""The command groups that operators add, such as those for objects that are more than what a spec says of them.

A group is loaded when one of its commands is run, as an attribute of this module.  What a command shows or changes is
the operator's; finding the object, the conversation with the server and the printing are done here, for all of them.
"""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from importlib import import_module
from typing import Any, Final
from urllib.parse import unquote

import click

from holdfast import operators
from holdfast.cli import connecting
from holdfast.cli.connecting import Refused, Session, Verb, Where
from holdfast.cli.errors import ExitCode, printable
from holdfast.client.objects import Object
from holdfast.client.protocols import PatchType
from holdfast.meta.errors import Conflict
from holdfast.meta.exchange import JSON, Request, encode
from holdfast.meta.managed_fields import handed_back
from holdfast.meta.objects import Key
from holdfast.operators.commands import CommandGroup, ObjectCommand, Shown
from holdfast.operators.rollouts import Already, Answer, Change, Refusal

MANAGER: Final = "holdfast-commands"
"""The field manager of these commands."""

_ATTEMPTS: Final = 10
"""How often a change is tried again after a conflict."""


def __getattr__(name: str) -> click.Group:
    if name not in operators.COMMANDS:
        raise AttributeError(name)
    target, help = operators.COMMANDS[name]
    module, _, attribute = target.partition(":")
    group: CommandGroup = getattr(import_module(module), attribute)
    made = click.Group(name, help=help)
    for each in group.commands:
        made.add_command(_command(group, each))
    return made


def _command(group: CommandGroup, each: ObjectCommand) -> click.Command:
    def run(*, where: Where, name: str, argument: str = "") -> None:
        connecting.run(where, partial(_answered, group=group, each=each, name=name, argument=argument))

    decorated = connecting.options(run)
    decorated = click.argument("name", metavar="NAME")(decorated)
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
    for attempt in range(_ATTEMPTS):
        obj = await session.client.get(group.resource, key)
        answer = each.answer(obj, argument)
        if not isinstance(answer, Change):
            return answer
        try:
            await session.ask(_request(group, key, obj, answer))
        except Conflict:
            if attempt + 1 == _ATTEMPTS:
                raise
        else:
            if "spec" in answer.patch:
                await _hand_back(session, group, key, obj)
            return answer
    raise AssertionError("the last attempt returns or raises")


async def _hand_back(session: Session, group: CommandGroup, key: Key, before: Object) -> None:
    """Give the fields of the spec back to their owners: a user who applies them next must not meet a conflict."""
    for _ in range(_ATTEMPTS):
        with suppress(Conflict):
            obj = await session.client.get(group.resource, key)
            managed = handed_back(_managed(before), _managed(obj), manager=MANAGER, restored=False)
            if managed is not None:
                patch = Change({"metadata": {"managedFields": managed}}, "")
                await session.ask(_request(group, key, obj, patch))
            return


def _managed(obj: Object) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = obj.wire()["metadata"].get("managedFields") or []
    return found


def _request(group: CommandGroup, key: Key, obj: Object, change: Change) -> Request:
    metadata = {**change.patch.get("metadata", {}), "resourceVersion": obj.version, "uid": obj.uid}
    headers = {"accept": JSON, "content-type": PatchType.MERGE.value}
    path = unquote(group.resource.path(key.namespace, key.name))
    return Request("PATCH", path, {"fieldManager": (MANAGER,)}, headers, encode({**change.patch, "metadata": metadata}))
