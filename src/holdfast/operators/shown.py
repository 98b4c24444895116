"""How a kind is shown: its row on the overview, and the page of one object.

The dashboard and the terminal read these values and know no operator by name.  A kind
without a declaration is shown by its phase and its conditions, so a new operator appears
by itself.  Pure; this module must not know any kind, nor how pages are laid out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import Any, Final, TypeVar

import msgspec

from holdfast.client.objects import Object, OwnerReference, Undecodable
from holdfast.client.resources import CONTROLLER_REVISIONS, PODS, Resource
from holdfast.meta import times
from holdfast.meta.ages import age
from holdfast.operators.rollouts import (
    Already,
    Case,
    Change,
    Observed,
    Refusal,
    RolloutKind,
    Wire,
    records_of,
)
from holdfast.runtime.controllers import is_paused
from holdfast.views import overview, rollouts
from holdfast.views.overview import Counted, FloorBar, Glance, Health, Row
from holdfast.views.pages import Page, progress
from holdfast.views.pages.conditions import conditions
from holdfast.views.pages.events import events
from holdfast.views.pages.head import head
from holdfast.views.pages.manifest import presentable
from holdfast.views.pages.revisions import RevisionView, revisions
from holdfast.views.pages.sections import Chart, Link, TableView, VerbView
from holdfast.views.pages.timeline import Sample, timeline
from holdfast.views.pages.tree import branches
from holdfast.views.rollouts import Record, Standing


@dataclass(frozen=True, slots=True, kw_only=True)
class Reference:
    """A field that names another object, in the same namespace unless it says otherwise.

    path      the field: a name, or an object with ``name`` and perhaps ``namespace``; of a list, each item
    resource  the kind of the other object
    relation  what the other object is to this one, such as ``source``
    back      what this object is to the other one
    """

    path: str
    resource: Resource
    relation: str
    back: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownKind:
    """A kind as it is shown.

    glance      the object in one row; None: by the headline of its rollout or its conditions, its floors and counts
    floors      its floors, from the object alone
    counts      how many replicas are ready, desired and updated, from the object alone
    references  the fields that name other objects
    bars        the progress of what is done to it
    chart       its points on a chart, if it has some
    rollout     how its rollouts are shown and steered; `completed` fills it in
    """

    resource: Resource
    glance: Callable[[Wire], Glance] | None = None
    floors: Callable[[Wire], Iterable[FloorBar]] = overview.floors_of
    counts: Callable[[Wire], Counted] = overview.counted
    references: tuple[Reference, ...] = ()
    bars: Callable[[Wire], Iterable[progress.Bar]] = progress.bars
    chart: Callable[[Wire], Chart | None] | None = None
    rollout: RolloutKind | None = None

    @property
    def name(self) -> str:
        """``workloads.cloudless.io``."""
        return self.resource.group_resource

    def row(self, obj: Object) -> Row:
        """The row of an object; one that cannot be read has a row that says so."""
        wire = obj.wire()
        return overview.row(
            wire,
            _seen(self, wire),
            resource=self.name,
            kind=self.resource.kind,
            owner=_owner(obj),
            paused=is_paused(obj),
        )

    def links(self, obj: Object) -> tuple[tuple[Reference, Link], ...]:
        """The objects that its fields name."""
        if not self.references:
            return ()
        wire, found = obj.wire(), []
        for each in self.references:
            for name, namespace in _named(wire, each.path.split(".")):
                place = namespace or obj.key.namespace if each.resource.namespaced else ""
                found.append((each, _link(each.relation, each.resource, place, name)))
        return tuple(found)


def completed(kind: ShownKind, rollout: RolloutKind | None) -> ShownKind:
    """The kind with its rollouts, and with a glance where it declares none."""
    kind = replace(kind, rollout=rollout)
    return kind if kind.glance is not None else replace(kind, glance=partial(_glance, kind))


def _glance(kind: ShownKind, wire: Wire) -> Glance:
    seen = overview.glance(wire, floors=tuple(kind.floors(wire)), counts=kind.counts(wire))
    if kind.rollout is None or seen.phase == overview.DELETING:
        return seen
    line = kind.rollout.headline(wire)
    health = overview.health_of(wire, at_rest=line.at_rest, floors=seen.floors, phase=line.phase)
    return msgspec.structs.replace(seen, phase=line.phase, because=line.because, health=health)


def of_standing(standing: Standing, wire: Wire) -> Glance:
    """A glance from the state of a rollout, for kinds that know it from the object alone."""
    since = standing.ended or standing.progressed or standing.started
    floors = tuple(map(FloorBar.of, standing.floors))
    return Glance(
        phase=standing.phase,
        health=overview.health_of_rollout(standing.state, floors),
        because=standing.because.message,
        code=standing.because.code,
        since=overview.since(wire, None) if since is None else times.format(since),
        verb=standing.verb,
        ready=standing.ready,
        desired=standing.desired,
        updated=standing.updated,
        floors=floors,
    )


UNREADABLE: Final = (Undecodable, msgspec.ValidationError, LookupError, TypeError, AttributeError, ValueError)
"""What the functions of a kind may raise for an object that no server with the kind's schema would store."""

T = TypeVar("T")


def _or(default: T, make: Callable[[], T]) -> T:
    """What `make` returns; the default where the object cannot be read, which its row says."""
    try:
        return make()
    except UNREADABLE:
        return default


def _seen(kind: ShownKind, wire: Wire) -> Glance:
    try:
        return (kind.glance or overview.glance)(wire)
    except UNREADABLE as error:
        # An object of another version of its kind still has a phase and conditions.
        unknown = Glance(phase="Unreadable", health=Health.TROUBLE)
        seen = _or(unknown, lambda: overview.glance(wire))
        return msgspec.structs.replace(seen, health=Health.TROUBLE, because=f"it cannot be read in full: {error}")


def _owner(obj: Object) -> str:
    owner = obj.controller
    if owner is None:
        return ""
    return f"{owner.kind}/{owner.name}"


# --- links


def _named(value: Any, path: list[str]) -> Iterator[tuple[str, str]]:
    """The names, and namespaces, that a field has."""
    if isinstance(value, list):
        for each in value:
            yield from _named(each, path)
    elif path:
        if isinstance(value, Mapping) and path[0] in value:
            yield from _named(value[path[0]], path[1:])
    elif isinstance(value, str) and value:
        yield value, ""
    elif isinstance(value, Mapping) and isinstance(value.get("name"), str) and value["name"]:
        namespace = value.get("namespace")
        yield value["name"], namespace if isinstance(namespace, str) else ""


def _link(relation: str, resource: Resource, namespace: str, name: str) -> Link:
    return Link(
        relation=relation,
        kind=resource.kind,
        resource=resource.group_resource,
        namespace=namespace,
        name=name,
    )


# --- the page


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What is known beside an object.

    events    its Events
    links     the objects that belong to it, own it, or refer to it
    samples   its replicas over time
    dump      writes a value as YAML
    """

    events: tuple[Object, ...] = ()
    links: tuple[Link, ...] = ()
    samples: tuple[Sample, ...] = ()
    dump: Callable[[Any], str]


_LABELS: Final = {
    "promote": "Promote",
    "pause": "Pause",
    "resume": "Resume",
    "restart": "Restart",
    "retry": "Retry",
    "undo": "Undo",
    "abort": "Abort",
}
"""The verbs in the order in which they are offered."""


def page(kind: ShownKind, observed: Observed, around: Surroundings, now: datetime) -> Page:
    """Everything of one object."""
    obj, rolls = observed.object, kind.rollout
    wire, row = obj.wire(), kind.row(obj)
    tree = None if rolls is None else _or(None, lambda: rolls.tree(observed, now))
    standing = None if tree is None else tree.standing
    records = () if rolls is None or rolls.history is None else _records(observed)
    parts = () if rolls is None else rolls.parts
    leaf = str(PODS if PODS in parts else parts[0]) if parts else ""
    if standing is not None:
        row = overview.with_rollout(row, standing)
    return Page(
        head=head(row, wire, tree, leaf=leaf),
        tree=() if tree is None else branches(tree),
        conditions=conditions(wire),
        events=events(each.wire() for each in around.events),
        timeline=timeline(standing, around.samples),
        revisions=() if rolls is None or standing is None else _revisions(rolls, obj, records, standing, around.dump),
        links=around.links,
        bars=_or((), lambda: tuple(kind.bars(wire))),
        tables=() if rolls is None else _or((), lambda: tuple(_tables(rolls, wire, now))),
        charts=_or((), lambda: tuple(_charts(kind, wire))),
        verbs=() if rolls is None else tuple(_verbs(rolls, Case(object=obj, records=records, now=now), standing)),
        yaml=around.dump(presentable(wire)),
    )


def _records(observed: Observed) -> tuple[Record, ...]:
    return records_of(observed.view.owned(CONTROLLER_REVISIONS, observed.object.uid), observed.object)


def _revisions(
    kind: RolloutKind, obj: Object, records: tuple[Record, ...], standing: Standing, dump: Callable[[Any], str]
) -> tuple[RevisionView, ...]:
    kept = kind.history
    if kept is None:
        return ()
    refused, why = kept.refused(obj), kept.why(obj)
    past = rollouts.history(standing, records, label=kept.label, refused=refused, why=why)
    return revisions(past, dump=dump)


def _charts(kind: ShownKind, wire: Wire) -> Iterator[Chart]:
    found = None if kind.chart is None else kind.chart(wire)
    if found is not None:
        yield found


def _tables(kind: RolloutKind, wire: Wire, now: datetime) -> Iterator[TableView]:
    def written(moment: str | None) -> str:
        return age(moment, now=now.timestamp())

    for each in kind.tables:
        first, *rest = (tuple(row) for row in each.rows(wire, written))
        if rest:
            yield TableView(title=each.title, columns=first, rows=tuple(rest))


def _verbs(kind: RolloutKind, case: Case, standing: Standing | None) -> Iterator[VerbView]:
    for name in sorted(kind.verbs, key=lambda each: list(_LABELS).index(each) if each in _LABELS else len(_LABELS)):
        yield VerbView(
            name=name,
            label=_LABELS.get(name, name.capitalize()),
            refusal=refusal(kind, name, case),
            suggested=standing is not None and standing.verb == name,
        )


def refusal(kind: RolloutKind, verb: str, case: Case) -> str:
    """Why a verb would change nothing now; empty where it would."""
    try:
        answer = kind.verbs[verb](case)
    except UNREADABLE as error:
        return f"it cannot be read: {error}"
    match answer:
        case Refusal(message, _):
            return message
        case Already(said):
            return said
        case Change():
            return ""


def owner_link(owner: OwnerReference, obj: Object, resources: Mapping[tuple[str, str], Resource]) -> Link:
    """The link to an owner; `resources` are those that have pages, by group and kind."""
    found = resources.get((owner.group, owner.kind))
    return Link(
        relation="owner",
        kind=owner.kind,
        resource="" if found is None else found.group_resource,
        namespace=obj.key.namespace if found is None or found.namespaced else "",
        name=owner.name,
        shown=found is not None,
    )
