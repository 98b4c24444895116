"""``holdfast describe``: all about objects, with what belongs to them and what happened to them.

Fetches; what is told, and how, is `views.descriptions`'.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final, TypeVar

import click

from holdfast.cli import connecting
from holdfast.cli.connecting import Session, Verb, Where
from holdfast.cli.errors import ExitCode, printable
from holdfast.cli.objects import fetching, targets
from holdfast.cli.objects.targets import Asked, Target
from holdfast.client.discovery import Discovery, Served
from holdfast.client.protocols import Scope
from holdfast.client.resources import EVENTS, NODES, PODS
from holdfast.meta.ages import age
from holdfast.meta.errors import Forbidden, MethodNotAllowed, NotFound, StatusError
from holdfast.views import tables
from holdfast.views.descriptions import Surroundings, describe
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
"""What the built-in kinds make; those that are not here make nothing."""

MADE: Final = (
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
"""What kinds of one's own make of the built-in ones, besides kinds of their own group."""


@click.command("describe", cls=Verb)
@targets.options
@click.option("--show-events/--no-show-events", default=True, help="Whether to tell what happened.  [default: show]")
@connecting.options
def command(
    *,
    where: Where,
    asked: Asked,
    show_events: bool,
) -> None:
    """Tell all about objects: what they wait for, and why.

    What keeps an object from being as it should stands first; then what is wanted of it, what it
    is, what belongs to it, and what happened. What is in a Secret is not shown.

    \b
    One:                holdfast describe deployment web
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
                around = await _around(session, target.served, obj, known)
                lines = describe(
                    obj, around if show_events else replace(around, events=None), age=partial(age, now=time.time())
                )
                click.echo("\n\n" * bool(shown) + printable("\n".join(lines)))
                shown += 1
        except StatusError as error:
            problems.append(connecting.words(error))
    if not shown and not problems:
        click.echo(targets.nothing(found, asked, session), err=True)
    return connecting.report(problems)


async def _around(session: Session, served: Served, obj: Object, known: Discovery) -> Surroundings:
    """What there is besides an object: what belongs to it, and what happened to it."""
    meta = obj["metadata"]
    if served.resource == NODES:
        on_it = Target(known.find(PODS.plural), Scope(fields=f"spec.nodeName={meta['name']}"))
        running = await _seen(fetching.table(session.client, on_it, include="Object")) or Table()
        rows = running.rows or []
        return Surroundings(
            belongings=_titled("Pods", running.columns, rows, Look(namespaces=True)),
            # Their kubelets know no other uid of them than the name.
            events=await _events(session, f"involvedObject.kind=Node,involvedObject.name={meta['name']}"),
            pods=[row.object or {} for row in rows],
        )
    made = [Target(each, Scope(namespace=meta.get("namespace", ""))) for each in children_of(served, known)]
    found = await asyncio.gather(*(_seen(fetching.table(session.client, each)) for each in made))
    belongings: list[tuple[str, list[str]]] = []
    for target, table in zip(made, found, strict=True):
        if table is not None:
            rows = [row for row in table.rows or () if _owned(row, meta["uid"])]
            belongings += _titled(_plural(target.resource.kind), table.columns, rows, Look())
    return Surroundings(belongings=belongings, events=await _events(session, f"involvedObject.uid={meta['uid']}"))


async def _events(session: Session, fields: str) -> list[Object]:
    listing = await _seen(session.client.list(EVENTS, Scope(fields=fields)))
    return [] if listing is None else [each.wire() for each in listing.objects]


async def _seen(answer: Awaitable[T]) -> T | None:
    """An answer, or nothing where it is not for everybody's eyes, or not served: the rest is still worth telling."""
    try:
        return await answer
    except (Forbidden, NotFound, MethodNotAllowed):
        return None


def children_of(served: Served, known: Discovery) -> list[Served]:
    """Resources in which there may be objects that one of this resource owns."""
    resource = served.resource
    names = CHILDREN.get(resource.group_resource)
    if names is None and not _is_custom(resource.group):
        return []
    if names is not None:
        return [each for each in known.preferred() if each.resource.group_resource in names]
    from holdfast import kinds  # hundreds of types, which most descriptions do without

    groups = {resource.group, *(kind.group for kind in kinds.ALL)}
    return [
        each
        for each in known.preferred()
        if each.resource.namespaced and (each.resource.group_resource in MADE or each.resource.group in groups)
    ]


def _is_custom(group: str) -> bool:
    return "." in group and not group.endswith(".k8s.io")


def _owned(row: Row, uid: str) -> bool:
    return any(owner.get("uid") == uid for owner in row.metadata.get("ownerReferences") or ())


def _plural(kind: str) -> str:
    return f"{kind}es" if kind.endswith("s") else f"{kind}s"


def _titled(title: str, columns: Sequence[Column], rows: Sequence[Row], look: Look) -> list[tuple[str, list[str]]]:
    """A table with its title, if there is anything in it."""
    if not rows:
        return []
    cells = [tables.header(columns, look), *(tables.line(columns, row, look) for row in rows)]
    return [(title, tables.aligned(cells))]
