"""The page of one object: its tree, conditions, Events, timeline, revisions, links and verbs.

Pure, and all of it can be written as JSON.  An operator makes the `Tree`, and the rest is
the same for every kind.  Times are sent as they are and never as ages, so a page that is
not sent again stays true.  This module must not know any kind, nor how a page is laid out.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any, Final

import msgspec

from holdfast.kernel.fleet import State
from holdfast.meta import times
from holdfast.views.fleets import ORDER
from holdfast.views.overview import FloorBar, Row
from holdfast.views.rollouts import Past, Standing, ending
from holdfast.views.trees import NEW, OLD, Branch, Leaf, Tree

Wire = Mapping[str, Any]

MOST_LEAVES: Final = 2_000
"""The most pods that a page shows one by one."""


class Value(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """A part of a page."""


# --- the tree

_AGES: Final = {OLD: "old", NEW: "new"}


class LeafView(Value, frozen=True, kw_only=True):
    """A pod or a machine.

    age     whether its revision is old, new, or one between (other)
    state   available, settling, unready, dead or terminating
    why     why it is not further; empty where it is as it should be
    """

    name: str
    age: str
    state: str
    ready: str = ""
    node: str = ""
    created: str = ""
    restarts: int = 0
    why: str = ""


class BranchView(Value, frozen=True, kw_only=True):
    """A part of an object, with its parts and pods.

    counts  how many pods are in each state, by age
    hidden  how many pods are counted and not shown one by one
    """

    name: str
    age: str
    number: str = ""
    marks: tuple[str, ...] = ()
    note: str = ""
    images: tuple[str, ...] = ()
    prefix: str = ""
    why: str = ""
    urgent: bool = False
    words: str = ""
    counts: dict[str, dict[str, int]] = {}
    branches: tuple[BranchView, ...] = ()
    leaves: tuple[LeafView, ...] = ()
    hidden: int = 0


class _Allowance:
    """How many leaves may still be shown."""

    def __init__(self, most: int) -> None:
        self.left = most

    def take(self, number: int) -> int:
        taken = min(number, self.left)
        self.left -= taken
        return taken


def branches(tree: Tree, *, most: int = MOST_LEAVES) -> tuple[BranchView, ...]:
    """The branches of a tree, with at most so many pods one by one; those that need a look come first."""
    allowance = _Allowance(most)
    return tuple(_branch(each, tree.now, allowance) for each in tree.branches)


def _branch(branch: Branch, now: datetime, allowance: _Allowance) -> BranchView:
    leaves = [each for each in branch.children if isinstance(each, Leaf)]
    shown = allowance.take(len(leaves))
    return BranchView(
        name=branch.name,
        age=_AGES.get(branch.index, "other"),
        number=branch.number,
        marks=branch.marks,
        note=branch.note,
        images=branch.images,
        prefix=branch.prefix,
        why=branch.why,
        urgent=branch.urgent,
        words=branch.words,
        counts=_counts(branch),
        branches=tuple(_branch(each, now, allowance) for each in branch.children if isinstance(each, Branch)),
        leaves=tuple(_leaf(each, now) for each in leaves[:shown]),
        hidden=len(leaves) - shown,
    )


def _counts(branch: Branch) -> dict[str, dict[str, int]]:
    found: dict[str, dict[str, int]] = {}
    for row in branch.rows():
        counted = found.setdefault(_AGES.get(row.index, "other"), {})
        for state, number in row.counts:
            counted[_word(state)] = counted.get(_word(state), 0) + number
    return found


def _leaf(leaf: Leaf, now: datetime) -> LeafView:
    return LeafView(
        name=leaf.name,
        age=_AGES.get(leaf.index, "other"),
        state=_word(leaf.state),
        ready=leaf.ready,
        node=leaf.node,
        created=times.format(now - leaf.age),
        restarts=leaf.restarts,
        why=leaf.why,
    )


_WORDS: Final = {state: state.name.lower() for state in ORDER}


def _word(state: State) -> str:
    return _WORDS[state]


# --- conditions, Events, the timeline


class ConditionView(Value, frozen=True, kw_only=True):
    """A condition; `bad` where its status is not what the object needs."""

    type: str
    status: str
    reason: str = ""
    message: str = ""
    since: str | None = None
    bad: bool = False


_NEGATIVE: Final = (
    "Blocked",
    "Failed",
    "Stalled",
    "Degraded",
    "FloorLowered",
    "ReplicaFailure",
    "Pressure",
    "Breached",
)
"""Words at the end of a condition's type that mean trouble where it is True."""

_POSITIVE: Final = ("Ready", "Available", "Healthy", "Satisfied", "Succeeded", "Valid", "Validated", "Held", "Synced")
"""The same, where it is False; other conditions say what is done, and not whether it is good."""


def conditions(wire: Wire) -> tuple[ConditionView, ...]:
    """The conditions of an object, those first that are bad."""
    found = (wire.get("status") or {}).get("conditions") or ()
    made = [_condition(each) for each in found if isinstance(each, Mapping) and each.get("type")]
    return tuple(sorted(made, key=lambda each: not each.bad))


def _condition(stated: Wire) -> ConditionView:
    type, status = str(stated["type"]), str(stated.get("status", "Unknown"))
    bad = (status == "True" and type.endswith(_NEGATIVE)) or (status == "False" and type.endswith(_POSITIVE))
    return ConditionView(
        type=type,
        status=status,
        reason=str(stated.get("reason") or ""),
        message=str(stated.get("message") or ""),
        since=stated.get("lastTransitionTime"),
        bad=bad,
    )


class EventView(Value, frozen=True, kw_only=True):
    """An Event, or several that are the same."""

    id: str
    warning: bool = False
    reason: str = ""
    message: str = ""
    by: str = ""
    first: str | None = None
    last: str | None = None
    count: int = 1


MOST_EVENTS: Final = 200


def events(found: Iterable[Wire]) -> tuple[EventView, ...]:
    """Events, the latest first."""
    made = sorted(map(_event, found), key=lambda each: (each.last or "", each.id), reverse=True)
    return tuple(made[:MOST_EVENTS])


def _event(wire: Wire) -> EventView:
    meta, series = wire.get("metadata") or {}, wire.get("series") or {}
    first = wire.get("firstTimestamp") or wire.get("eventTime") or meta.get("creationTimestamp")
    source = wire.get("source") or {}
    return EventView(
        id=str(meta.get("name", "")),
        warning=wire.get("type") == "Warning",
        reason=str(wire.get("reason") or ""),
        message=str(wire.get("message") or wire.get("note") or ""),
        by=str(wire.get("reportingComponent") or source.get("component") or ""),
        first=first,
        last=series.get("lastObservedTime") or wire.get("lastTimestamp") or first,
        count=int(series.get("count") or wire.get("count") or 1),
    )


class Sample(msgspec.Struct, frozen=True, array_like=True):
    """How many replicas were ready, updated and desired from a moment on, and the floor."""

    at: str
    ready: int
    updated: int
    desired: int
    floor: int


class Timeline(Value, frozen=True, kw_only=True):
    """The rollout over time.

    lowest   the fewest ready replicas since the rollout began; None: not counted
    samples  the numbers, whenever one of them changed while the object was watched
    """

    started: str | None = None
    ended: str | None = None
    expected: str | None = None
    due: str | None = None
    until: str | None = None
    lowest: int | None = None
    samples: tuple[Sample, ...] = ()


def timeline(standing: Standing | None, samples: Iterable[Sample]) -> Timeline:
    if standing is None:
        return Timeline(samples=tuple(samples))
    lowest = [each.lowest for each in standing.floors if each.lowest is not None]
    return Timeline(
        started=_written(standing.started),
        ended=_written(standing.ended),
        expected=_written(standing.expected),
        due=_written(standing.due),
        until=_written(standing.until),
        lowest=min(lowest, default=None),
        samples=tuple(samples),
    )


def _written(moment: datetime | None) -> str | None:
    return None if moment is None else times.format(moment)


# --- revisions


class DiffLine(msgspec.Struct, frozen=True, array_like=True):
    """A line of a diff: ``+``, ``-`` or a space, and the text."""

    mark: str
    text: str


class RevisionView(Value, frozen=True, kw_only=True):
    """A revision of the history, and how it differs from the one before."""

    number: int
    revision: str
    image: str = ""
    created: str | None = None
    marks: tuple[str, ...] = ()
    change: str = ""
    why: str = ""
    diff: tuple[DiffLine, ...] = ()


def revisions(past: Iterable[Past], *, dump: Callable[[Any], str]) -> tuple[RevisionView, ...]:
    """The history, newest first; `dump` writes a spec as YAML."""
    made: list[RevisionView] = []
    before: list[str] | None = None
    for each in past:
        text = dump(_content(each)).splitlines()
        made.append(
            RevisionView(
                number=each.number,
                revision=each.revision,
                image=each.image,
                created=each.made,
                marks=each.marks,
                change=each.change,
                why=each.why,
                diff=() if before is None else tuple(diff(before, text)),
            )
        )
        before = text
    return tuple(reversed(made))


def _content(past: Past) -> dict[str, Any]:
    data: dict[str, Any] = msgspec.to_builtins(past.record.data)
    return {name: value for name, value in data.items() if value}


_CONTEXT: Final = 2
"""How many equal lines are shown around a change."""


def diff(before: list[str], after: list[str]) -> Iterator[DiffLine]:
    """The lines that differ, with a few around them."""
    lines = difflib.unified_diff(before, after, n=_CONTEXT, lineterm="")
    for line in list(lines)[2:]:
        yield DiffLine("@", "") if line.startswith("@@") else DiffLine(line[0], line[1:])


# --- links, progress, tables, charts, verbs


class Link(Value, frozen=True, kw_only=True):
    """Another object that this one refers to, or that refers to it.

    relation  what the other object is to this one, such as ``owner`` or ``source``
    shown     whether it has a page
    """

    relation: str
    kind: str
    resource: str
    namespace: str = ""
    name: str
    shown: bool = True


class Bar(Value, frozen=True, kw_only=True):
    """How far something is, in per cent; None: it runs, and that is not known."""

    label: str
    percent: float | None = None
    words: str = ""


class TableView(Value, frozen=True, kw_only=True):
    """A table that the operator of the kind makes."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...] = ()


class Point(Value, frozen=True, kw_only=True):
    """A configuration on a chart; `label` says what it is in full."""

    x: float
    y: float
    label: str
    chosen: bool = False
    good: bool = True
    front: bool = True


class Chart(Value, frozen=True, kw_only=True):
    """Points of which none is better than another in both directions, with the one that was chosen."""

    title: str
    x: str
    y: str
    points: tuple[Point, ...]
    note: str = ""


class VerbView(Value, frozen=True, kw_only=True):
    """A verb that an object supports; `refusal` says why it cannot be carried out now."""

    name: str
    label: str
    refusal: str = ""
    suggested: bool = False


class Fact(Value, frozen=True, kw_only=True):
    """Something worth knowing: a name and a value."""

    label: str
    value: str


class Head(Value, frozen=True, kw_only=True):
    """The top of a page: what the object is, and where it stands.

    summary  the state in one line
    remedy   what to change, where it is blocked
    leaf     the resource of the leaves of its tree, where they have pages
    """

    row: Row
    uid: str
    generation: int = 0
    summary: str = ""
    strategy: str = ""
    unit: str = "replica"
    step: int = 1
    steps: int = 1
    remedy: str = ""
    facts: tuple[Fact, ...] = ()
    warnings: tuple[str, ...] = ()
    floors: tuple[FloorBar, ...] = ()
    images: tuple[str, ...] = ()
    leaf: str = ""


class Page(Value, frozen=True, kw_only=True):
    """Everything of one object."""

    head: Head
    tree: tuple[BranchView, ...] = ()
    conditions: tuple[ConditionView, ...] = ()
    events: tuple[EventView, ...] = ()
    timeline: Timeline = Timeline()
    revisions: tuple[RevisionView, ...] = ()
    links: tuple[Link, ...] = ()
    bars: tuple[Bar, ...] = ()
    tables: tuple[TableView, ...] = ()
    charts: tuple[Chart, ...] = ()
    verbs: tuple[VerbView, ...] = ()
    yaml: str = ""


def head(row: Row, wire: Wire, tree: Tree | None, *, leaf: str = "") -> Head:
    """The top of the page; `tree` where the kind rolls out, and `leaf` the resource of its leaves."""
    meta = wire.get("metadata") or {}
    uid, generation = str(meta.get("uid", "")), int(meta.get("generation") or 0)
    if tree is None:
        return Head(row=row, uid=uid, generation=generation, summary=row.because)
    standing = tree.standing
    same = standing.current == standing.target
    revisions = (
        ("revision" if same else "current revision", standing.current),
        ("new revision", "" if same else standing.target),
    )
    named = [Fact(label=label, value=value) for label, value in revisions if value]
    return Head(
        row=row,
        uid=uid,
        generation=generation,
        summary=ending(standing).partition(": ")[2],
        strategy=standing.strategy,
        unit=standing.unit,
        step=standing.step,
        steps=standing.steps,
        remedy=standing.remedy,
        facts=(*named, *(Fact(label="", value=each) for each in standing.facts)),
        warnings=standing.warnings,
        floors=tuple(map(FloorBar.of, standing.floors)),
        images=tree.images,
        leaf=leaf,
    )


# --- progress, in the forms that statuses have it


def bars(wire: Wire) -> Iterator[Bar]:
    """The progress that a status reports: in per cent, or as so many of a total."""
    status = wire.get("status") or {}
    for name, found in status.items():
        if not isinstance(found, Mapping) or not (name.lower().endswith("progress") or name == "operation"):
            continue
        percent = next((found[each] for each in _PERCENT if isinstance(found.get(each), int | float)), None)
        done, total = found.get("done"), found.get("total")
        if percent is None and isinstance(done, int) and isinstance(total, int) and total:
            percent = 100 * done / total
        if percent is not None:
            yield Bar(label=_label(name, found), percent=float(percent), words=_progress_words(found))


_PERCENT: Final = ("percentage", "overallPercentage", "progressPercentage")


def _label(name: str, found: Wire) -> str:
    phase = found.get("currentPhase") or found.get("type") or ""
    return str(phase) or {"progress": "Progress"}.get(name, name.removesuffix("Progress").capitalize())


def _progress_words(found: Wire) -> str:
    known = []
    done, total = found.get("done"), found.get("total")
    if isinstance(done, int) and isinstance(total, int):
        known.append(f"{done:,} of {total:,}")
    moved = next(
        (found[each] for each in ("transferredBytes", "completedBytes") if isinstance(found.get(each), int)), None
    )
    whole = found.get("totalBytes")
    if isinstance(moved, int):
        known.append(f"{size(moved)} of {size(whole)}" if isinstance(whole, int) else size(moved))
    if isinstance(found.get("transferRate"), int):
        known.append(f"{size(found['transferRate'])}/s")
    if found.get("eta"):
        known.append(f"{found['eta']} left")
    return ", ".join(known)


def size(number: int) -> str:
    """A number of bytes: ``1.5 GiB``."""
    amount, units = float(number), ("B", "KiB", "MiB", "GiB", "TiB")
    unit = 0
    while amount >= 1024 and unit + 1 < len(units):
        amount, unit = amount / 1024, unit + 1
    return f"{amount:,.0f} {units[unit]}" if unit == 0 or amount >= 100 else f"{amount:,.1f} {units[unit]}"


# --- YAML

_DROPPED: Final = frozenset({"managedFields"})
_LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"


def presentable(wire: Wire) -> dict[str, Any]:
    """An object as it is shown: without what servers keep for themselves, and without the values of a Secret."""
    shown = dict(wire)
    meta = {name: value for name, value in (wire.get("metadata") or {}).items() if name not in _DROPPED}
    annotations = {name: value for name, value in (meta.get("annotations") or {}).items() if name != _LAST_APPLIED}
    meta.pop("annotations", None)
    shown["metadata"] = {**meta, "annotations": annotations} if annotations else meta
    if wire.get("kind") == "Secret":
        for field in ("data", "stringData"):
            if isinstance(wire.get(field), Mapping):
                shown[field] = {name: _hidden(value) for name, value in wire[field].items()}
    return shown


def _hidden(value: Any) -> str:
    return f"<hidden, {len(str(value)):,} characters>"
