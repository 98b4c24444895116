"""``holdfast get``: prints objects as tables, or in a form for programs, once or as they change.

This module decides what is fetched and the order in which it is printed; `views.tables` and
`printers` make the text.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any, NoReturn, TypeVar

import click

from holdfast.cli import connecting, painting
from holdfast.cli.connecting import Session, Verb, Where
from holdfast.cli.errors import ExitCode
from holdfast.cli.objects import fetching, printers, targets
from holdfast.cli.objects.targets import Asked, Target
from holdfast.client.discovery import Served
from holdfast.meta.errors import NotFound, StatusError
from holdfast.meta.jsonpath import evaluate
from holdfast.views import tables
from holdfast.views.columns import Alignment
from holdfast.views.tables import Look, Table

T = TypeVar("T")
Object = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """The objects that the command prints, and the form in which it prints them."""

    asked: Asked
    look: Look
    output: str = ""
    sort_by: str = ""
    watch: bool = False
    watch_only: bool = False
    ignore_not_found: bool = False
    managed_fields: bool = False

    @property
    def include(self) -> fetching.Include:
        return "Object" if self.sort_by else "Metadata"


@click.command("get", cls=Verb)
@targets.options
@click.option(
    "-o", "--output", default="", metavar="FORMAT",
    help="wide, json, yaml, name, jsonpath=PATH or custom-columns=HEADING:PATH,...",
)  # fmt: skip
@click.option("-w", "--watch", is_flag=True, help="Go on to show whatever changes.")
@click.option("--watch-only", is_flag=True, help="Show only what changes.")
@click.option("--sort-by", default="", metavar="PATH", help="Order by a field: .metadata.creationTimestamp.")
@click.option("--show-labels", is_flag=True, help="Show all labels in a last column.")
@click.option("-L", "--label-columns", multiple=True, metavar="LABEL", help="Show a label in a column of its own.")
@click.option("--no-headers", is_flag=True, help="Leave out the first line.")
@click.option("--ignore-not-found", is_flag=True, help="Say nothing, and succeed, where there is no such object.")
@click.option("--show-managed-fields", is_flag=True, help="Keep managedFields in JSON and YAML.")
@connecting.options
def command(
    *,
    where: Where,
    asked: Asked,
    output: str,
    watch: bool,
    watch_only: bool,
    sort_by: str,
    show_labels: bool,
    label_columns: tuple[str, ...],
    no_headers: bool,
    ignore_not_found: bool,
    show_managed_fields: bool,
) -> None:
    """Show objects: as a table, or as JSON, YAML, names or fields.

    A TYPE is written as for kubectl: pods, po, deployment, deployments.apps; several with commas; or
    a category, such as all.

    \b
    All of a kind:       holdfast get pods -A
    One, in full:        holdfast get deployment web -o yaml
    What changes:        holdfast get pods -l app=web --watch
    A single field:      holdfast get pod web-0 -o jsonpath='{.status.podIP}'
    In an order:         holdfast get pods --sort-by=.metadata.creationTimestamp
    """
    labels = tuple(label for each in label_columns for label in each.split(","))
    look = Look(
        wide=output == "wide",
        headers=not no_headers,
        namespaces=asked.everywhere,
        labels=show_labels,
        label_columns=labels,
    )
    wanted = Wanted(
        asked=asked,
        output="" if output == "wide" else output,
        look=look,
        sort_by=_path(sort_by),
        watch=watch or watch_only,
        watch_only=watch_only,
        ignore_not_found=ignore_not_found,
        managed_fields=show_managed_fields,
    )
    if wanted.output:
        printers.printer(wanted.output)  # an invalid --output fails before any request
    connecting.run(where, lambda session: _get(session, wanted))


def _path(sort_by: str) -> str:
    try:
        evaluate.compile(sort_by)
    except evaluate.JSONPathError as error:
        raise click.BadParameter(str(error), param_hint="--sort-by") from None
    return sort_by


async def _get(session: Session, wanted: Wanted) -> ExitCode | None:
    found = await targets.targets(wanted.asked, session)
    if wanted.watch:
        await _watch(session, _only(found), wanted)
    if wanted.output:
        return await _print(session, found, wanted)
    return await _show(session, found, wanted)


# Now.


async def _show(session: Session, found: Sequence[Target], wanted: Wanted) -> ExitCode | None:
    fetched, problems = await _fetched(
        found, wanted, lambda each: fetching.table(session.client, each, include=wanted.include)
    )
    several = not targets.one_resource(found)
    shown = 0
    for served, group in groupby(fetched, key=lambda each: each[0].served):
        whole = _sorted(_joined(table for _, table in group), wanted.sort_by)
        look = _look(served, wanted.look, several=several)
        rows = [tables.line(whole.columns, row, look) for row in whole.rows or ()]
        if rows:
            text = _text(tables.header(whole.columns, look), rows, look.headers)
            click.echo("\n" * bool(shown) + text, color=True)
        shown += len(rows)
    if not shown and not problems and not wanted.ignore_not_found:
        click.echo(targets.nothing(found, wanted.asked, session), err=True)
    return connecting.report(problems)


def _text(titles: list[str], rows: list[list[str]], header: bool, alignment: Alignment | None = None) -> str:
    """Rows as text, whose states have colours on a terminal."""
    lines = tables.painted(titles, rows, alignment or Alignment(painting.width()), header=header)
    return painting.text(lines, colours=painting.has_colours(), exact=True)


def _look(served: Served, look: Look, *, several: bool = False) -> Look:
    """The form of a table for a resource; only namespaced objects have a column for the namespace."""
    kind = served.resource.gvk.group_kind.lower() if several else ""
    return replace(look, kind=kind, namespaces=look.namespaces and served.resource.namespaced)


async def _print(session: Session, found: Sequence[Target], wanted: Wanted) -> ExitCode | None:
    fetched, problems = await _fetched(found, wanted, lambda each: fetching.objects(session.client, each))
    objects = [_bare(obj, wanted) for _, group in fetched for obj in group]
    objects = [objects[index] for index in _order(objects, wanted.sort_by)]
    printer = _printer(wanted)
    single = len(found) == 1 and bool(found[0].name)
    click.echo("".join(map(printer.one, objects)) if single else printer.every(objects), nl=False)
    return connecting.report(problems)


async def _fetched(
    found: Sequence[Target], wanted: Wanted, fetch: Callable[[Target], Awaitable[T]]
) -> tuple[list[tuple[Target, T]], list[str]]:
    """The objects of each target, and the errors: a target that fails does not hide the others."""
    answers = await asyncio.gather(*map(fetch, found), return_exceptions=True)
    fetched, problems = [], []
    for target, answer in zip(found, answers, strict=True):
        if isinstance(answer, NotFound) and target.name and wanted.ignore_not_found:
            continue
        if isinstance(answer, StatusError):
            problems.append(connecting.words(answer))
        elif isinstance(answer, BaseException):
            raise answer
        else:
            fetched.append((target, answer))
    return fetched, problems


def _joined(parts: Iterable[Table]) -> Table:
    parts = list(parts)
    return Table(parts[0].columns, [row for part in parts for row in part.rows or ()])


def _sorted(table: Table, path: str) -> Table:
    rows = table.rows or []
    return Table(table.columns, [rows[index] for index in _order([row.object or {} for row in rows], path)])


def _order(objects: Sequence[Object], path: str) -> Iterable[int]:
    return tables.order(objects, path) if path else range(len(objects))


def _printer(wanted: Wanted) -> printers.Printer:
    return printers.printer(wanted.output, headers=wanted.look.headers, width=painting.width())


def _bare(obj: Object, wanted: Wanted) -> Object:
    if not wanted.managed_fields:
        obj["metadata"].pop("managedFields", None)
    return obj


# As it changes.


def _only(found: Sequence[Target]) -> Target:
    if len(found) != 1:
        message = f"only one object, or all of one type, can be watched, and this is {len(found)}"
        raise click.UsageError(f"{message}; name one of them")
    return found[0]


async def _watch(session: Session, target: Target, wanted: Wanted) -> NoReturn:
    """Show the target and its changes until the command is interrupted."""
    screen = _Screen(replace(wanted, look=_look(target.served, wanted.look)))
    include: fetching.Include = "Object" if wanted.output else wanted.include
    listed = await fetching.table(session.client, target, include=include)
    if not wanted.watch_only:
        screen.show(_sorted(listed, wanted.sort_by))
    version = listed.metadata.resource_version
    while True:
        async with fetching.table_changes(session.client, target, since=version, include=include) as changes:
            async for _, table in changes:
                screen.show(table)
                version = next((row.metadata.get("resourceVersion", version) for row in table.rows or ()), version)


class _Screen:
    """Prints rows as they arrive: the header once, and columns that keep their widths."""

    def __init__(self, wanted: Wanted) -> None:
        self._wanted = wanted
        self._columns: list[tables.Column] = []
        self._alignment = Alignment(painting.width())
        self._printer = _printer(wanted) if wanted.output else None
        self._shown = 0

    def show(self, table: Table) -> None:
        if self._printer is not None:
            self._print(self._printer, [_bare(row.object or {}, self._wanted) for row in table.rows or ()])
            return
        look = self._wanted.look
        heading = bool(look.headers and not self._columns and table.rows)
        if table.columns and table.rows:
            self._columns = table.columns
        rows = [tables.line(self._columns, row, look) for row in table.rows or ()]
        if rows:
            click.echo(_text(tables.header(self._columns, look), rows, heading, self._alignment), color=True)

    def _print(self, printer: printers.Printer, objects: Iterable[Object]) -> None:
        for obj in objects:
            click.echo((printer.between if self._shown else "") + printer.one(obj), nl=False)
            self._shown += 1
