"""``holdfast describe``: objects in detail, with the objects that they own and their Events.

This module reads them; `views.descriptions` makes the text.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final, TypeVar

import click

from holdfast.cli import connecting, painting
from holdfast.cli.connecting import Session, Verb, Where
from holdfast.cli.errors import ExitCode, printable
from holdfast.cli.objects import fetching, targets
from holdfast.cli.objects.targets import Asked, Target
from holdfast.cli.operator import selection
from holdfast.client.discovery import Discovery, Served
from holdfast.client.protocols import Scope
from holdfast.client.resources import EVENTS, NODES, PODS, Resource
from holdfast.meta.ages import age
from holdfast.meta.errors import Forbidden, MethodNotAllowed, NotFound, StatusError
from holdfast.views import tables
from holdfast.views.descriptions import Rows, StatusTable, Surroundings, describe
from holdfast.views.tables import Column, Look, Row, Table

T = TypeVar("T")
Object = dict[str, Any]

CHILDREN: Final = {
    "deployments.apps": ("replicasets.apps",),
    "replicasets.apps": ("pods",),
    "statefulsets.apps": ("pods", "controllerrevisions.apps"),
    "daemonsets.apps": ("pods",),
    "jobs.batch": ("pods",),
    "cronjobs.batch": ("jobs.batch",),
}
"""The resources of the objects that built-in kinds own; the other built-in kinds own none."""

CUSTOM_CHILDREN: Final = (
    "pods",
    "services",
    "configmaps",
    "secrets",
    "persistentvolumeclaims",
    "deployments.apps",
    "statefulsets.apps",
    "jobs.batch",
    "poddisruptionbudgets.policy",
    "horizontalpodautoscalers.autoscaling",
)
"""The built-in resources of objects that a custom kind may own."""


@click.command("describe", cls=Verb)
@targets.options
@click.option("--show-events/--no-show-events", default=True, help="Whether to show Events.  [default: show]")
@connecting.options
def command(
    *,
    where: Where,
    asked: Asked,
    show_events: bool,
) -> None:
    """Show objects in detail: what they wait for, and why.

    The metadata and what the object waits for come first, then its spec, its status, the objects
    that it owns, and its Events. The values in a Secret are not shown.

    \b
    One object:         holdfast describe deployment web
    A node:             holdfast describe node/node-1
    All with a label:   holdfast describe pods -l app=web
    """
    connecting.run(where, lambda session: _describe(session, asked, show_events=show_events))


async def _describe(session: Session, asked: Asked, *, show_events: bool) -> ExitCode | None:
    known = await session.discovery()
    shown = 0
    problems: list[str] = []
    found = await targets.targets(asked, session, discovery=known)
    for target in found:
        try:
            for obj in await fetching.objects(session.client, target):
                lines = await described(
                    session, target.served, obj, known, show_events=show_events, width=painting.width()
                )
                click.echo("\n\n" * bool(shown) + printable("\n".join(lines)))
                shown += 1
        except StatusError as error:
            problems.append(connecting.words(error))
    if not shown and not problems:
        click.echo(targets.nothing(found, asked, session), err=True)
    return connecting.report(problems)


async def described(
    session: Session,
    served: Served,
    obj: Object,
    known: Discovery,
    *,
    show_events: bool = True,
    width: int | None = None,
) -> list[str]:
    """The lines of the description of an object."""
    around = await _around(session, served, obj, known)
    around = around if show_events else replace(around, events=None)
    return describe(obj, around, age=partial(age, now=time.time()), width=width)


async def _around(session: Session, served: Served, obj: Object, known: Discovery) -> Surroundings:
    """What is shown beside an object: the objects that it owns, its Events, the tables of its operator."""
    meta = obj["metadata"]
    if served.resource == NODES:
        on_it = Target(known.find(PODS.plural), Scope(fields=f"spec.nodeName={meta['name']}"))
        running = await seen(fetching.table(session.client, on_it, include="Object")) or Table()
        rows = running.rows or []
        return Surroundings(
            children=_titled("Pods", running.columns, rows, Look(namespaces=True)),
            # A kubelet writes the name of its node as the uid.
            events=await _events(session, f"involvedObject.kind=Node,involvedObject.name={meta['name']}"),
            pods=[row.object or {} for row in rows],
        )
    made = [Target(each, Scope(namespace=meta.get("namespace", ""))) for each in children_of(served, known)]
    found = await asyncio.gather(*(seen(fetching.table(session.client, each)) for each in made))
    children: list[tuple[str, Rows]] = []
    for target, table in zip(made, found, strict=True):
        if table is not None:
            rows = [row for row in table.rows or () if _owned(row, meta["uid"])]
            children += _titled(_plural(target.resource.kind), table.columns, rows, Look())
    return Surroundings(
        children=children,
        events=await _events(session, f"involvedObject.uid={meta['uid']}"),
        tables=_tables(served.resource),
    )


def _tables(resource: Resource) -> tuple[StatusTable, ...]:
    if not _is_custom(resource.group):
        return ()
    kind = selection.rollout_kind(resource.group_resource)
    return () if kind is None else kind.tables


async def _events(session: Session, fields: str) -> list[Object]:
    listing = await seen(session.client.list(EVENTS, Scope(fields=fields)))
    return [] if listing is None else [each.wire() for each in listing.objects]


async def seen(answer: Awaitable[T]) -> T | None:
    """An answer, or None where the user may not read the resource, or it is not served."""
    try:
        return await answer
    except (Forbidden, NotFound, MethodNotAllowed):
        return None


def children_of(served: Served, known: Discovery) -> list[Served]:
    """The resources whose objects one of this resource may own."""
    resource = served.resource
    names = CHILDREN.get(resource.group_resource)
    if names is None and not _is_custom(resource.group):
        return []
    if names is not None:
        return [each for each in known.preferred() if each.resource.group_resource in names]
    from holdfast import kinds  # hundreds of types that built-in kinds do not need

    groups = {resource.group, *(kind.group for kind in kinds.ALL)}
    return [
        each
        for each in known.preferred()
        if each.resource.namespaced
        and (each.resource.group in groups or each.resource.group_resource in CUSTOM_CHILDREN)
    ]


def _is_custom(group: str) -> bool:
    return "." in group and not group.endswith(".k8s.io")


def _owned(row: Row, uid: str) -> bool:
    return any(owner.get("uid") == uid for owner in row.metadata.get("ownerReferences") or ())


def _plural(kind: str) -> str:
    return f"{kind}es" if kind.endswith("s") else f"{kind}s"


def _titled(title: str, columns: Sequence[Column], rows: Sequence[Row], look: Look) -> list[tuple[str, Rows]]:
    """A table with its title; nothing where it has no rows."""
    if not rows:
        return []
    cells = [tables.header(columns, look), *(tables.line(columns, row, look) for row in rows)]
    return [(title, cells)]
