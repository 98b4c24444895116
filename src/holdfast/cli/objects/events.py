"""``holdfast events``: the Events of an object and of everything that it owns, or of a namespace.

`views.events` makes the text; this module decides which Events are shown.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, Final

import click

from holdfast.cli import connecting, painting, watching
from holdfast.cli.connecting import Session, Verb, Where
from holdfast.cli.errors import ExitCode
from holdfast.cli.objects import completing, owned, printers, targets
from holdfast.client.discovery import Discovery, UnknownResource
from holdfast.client.objects import Object
from holdfast.client.protocols import Scope
from holdfast.client.resources import EVENTS, Resource
from holdfast.meta.ages import age
from holdfast.meta.errors import StatusError
from holdfast.meta.objects import GVK, Key, ObjectError
from holdfast.views import events as views
from holdfast.views.columns import Alignment

_DEPTH: Final = 8
"""Owners that are looked up, one above the other, for an object that is new."""

Shown = Callable[[Object], bool]


@click.command("events", cls=Verb)
@click.argument("words", nargs=-1, metavar="[TYPE/NAME]", shell_complete=completing.objects)
@click.option("-w", "--watch", is_flag=True, help="Go on to show Events as they occur.")
@click.option("--types", default="", metavar="TYPE,...", help="Only Events of these types: Normal, Warning.")
@click.option("-A", "--all-namespaces", "everywhere", is_flag=True, help="In all namespaces.")
@click.option("-o", "--output", type=click.Choice(["json", "yaml"]), help="JSON or YAML, for programs.")
@connecting.options
def command(
    *, where: Where, words: tuple[str, ...], watch: bool, types: str, everywhere: bool, output: str | None
) -> None:
    """Show the Events of an object and of everything it owns.

    Without an object, the Events of the namespace are shown. The newest Event comes last.

    \b
    Of an object:      holdfast events workload/shop
    As they occur:     holdfast events workload/shop --watch
    Of a namespace:    holdfast events -n team-a --types Warning
    Everywhere:        holdfast events -A
    """
    if words and everywhere:
        raise click.UsageError("an object is in one namespace, so -A shows nothing more; leave -A out")
    if watch and output:
        raise click.UsageError("-o prints Events once; leave out --watch, or use 'holdfast get events --watch -o json'")
    wanted = frozenset(each.strip().capitalize() for each in types.split(",") if each.strip())
    connecting.run(where, lambda session: _events(session, words, wanted, watch, everywhere, output))


async def _events(
    session: Session, words: tuple[str, ...], types: frozenset[str], watch: bool, everywhere: bool, output: str | None
) -> ExitCode | None:
    scope = Scope(namespace="" if everywhere else session.namespace)
    about: Family | None = None
    if words:
        known = await session.discovery()
        target = await targets.one(session, words, discovery=known)
        obj = await session.client.get(target.resource, target.key)
        below = await owned.owned(session, target.served, obj, known)
        about = Family(session, known, {obj.uid, *(each.uid for each in below)})
        # The Events of objects without a namespace, such as nodes, are in the namespace default.
        scope = Scope(namespace=target.scope.namespace)
    screen = _Screen(namespaces=everywhere, types=types)
    if watch:
        await _watch(session, scope, about, screen)
    found = [each for each in (await session.client.list(EVENTS, scope)).objects if about is None or about.has(each)]
    if output:
        wires = [each.wire() for each in sorted(found, key=lambda each: views.row(each.wire()).seen)]
        listed = [each for each in wires if not types or each.get("type") in types]
        click.echo(printers.printer(output).every(listed), nl=False)
    elif not screen.show(found):
        place = "" if everywhere else f" in namespace {scope.namespace}"
        subject = f" of {'/'.join(words)}" if words else place
        click.echo(f"no Events{subject}; the server keeps Events for a limited time", err=True)
    return None


async def _watch(session: Session, scope: Scope, about: Family | None, screen: _Screen) -> None:
    """Show Events until the command is interrupted."""
    changed: asyncio.Queue[Object] = asyncio.Queue()
    stores = watching.caches(session, {EVENTS: scope})
    async with watching.running(stores):
        screen.show(each for each in stores.list(EVENTS) if about is None or about.has(each))
        stores.subscribe(EVENTS, lambda old, new: None if new is None else changed.put_nowait(new))
        shown = {each.uid: each.version for each in stores.list(EVENTS)}
        while True:
            event = await changed.get()
            if shown.get(event.uid) != event.version and (about is None or await about.joins(event)):
                screen.show([event])
            shown[event.uid] = event.version


class Family:
    """An object and everything that it owns, by UID; it grows as objects are created."""

    def __init__(self, session: Session, known: Discovery, uids: set[str]) -> None:
        self._session = session
        self._known = known
        self._uids = uids
        self._others: set[str] = set()

    def has(self, event: Object) -> bool:
        """Whether an Event is about one of the objects."""
        return _about(event).get("uid", "") in self._uids

    async def joins(self, event: Object) -> bool:
        """The same, after a look at the owners of an object that was not seen before."""
        about = _about(event)
        uid = str(about.get("uid", ""))
        if uid in self._uids or uid in self._others:
            return uid in self._uids
        if await self._is_below(about):
            self._uids.add(uid)
            return True
        self._others.add(uid)
        return False

    async def _is_below(self, about: dict[str, Any]) -> bool:
        for _ in range(_DEPTH):
            try:
                gvk = GVK.parse(str(about.get("apiVersion") or "v1"), str(about.get("kind")))
                resource: Resource = self._known.kind(gvk).resource
                namespace = str(about.get("namespace") or self._session.namespace) if resource.namespaced else ""
                obj = await self._session.client.get(resource, Key(namespace, str(about.get("name"))))
            except (StatusError, UnknownResource, ObjectError):
                return False
            owners = obj.meta.owner_references
            if any(owner.uid in self._uids for owner in owners):
                return True
            if not owners:
                return False
            first = owners[0]
            about = {"apiVersion": first.api_version, "kind": first.kind, "name": first.name, "namespace": namespace}
        return False


def _about(event: Object) -> dict[str, Any]:
    found: dict[str, Any] = event.wire().get("involvedObject") or {}
    return found


class _Screen:
    """Prints Events; the columns of a table keep their widths."""

    def __init__(self, *, namespaces: bool, types: frozenset[str]) -> None:
        self._namespaces = namespaces
        self._types = types
        self._alignment = Alignment(painting.width())

    def show(self, events: Iterable[Object]) -> int:
        """Print the Events of the types that are asked for; returns how many these are."""
        rows = [each for each in views.ordered(event.wire() for event in events) if self._is_wanted(each)]
        if rows:
            lines = views.lines(
                rows,
                age=partial(age, now=time.time()),
                width=self._alignment.width,
                namespaces=self._namespaces,
                alignment=self._alignment,
            )
            click.echo(painting.text(lines, colours=painting.has_colours()), color=True)
        return len(rows)

    def _is_wanted(self, row: views.EventRow) -> bool:
        return not self._types or row.type in self._types
