"""The page of one object on a screen: its rollout or its state, conditions, progress, revisions, links and Events.

Pure layout: a `Page` and the width of the screen in, lines of spans out.  The tree of a rollout is laid out by
`rollout_screens`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final

from holdfast.views import rollout_screens
from holdfast.views.columns import aligned
from holdfast.views.folding import wrap
from holdfast.views.overview import Health
from holdfast.views.overview_screens import MARKS
from holdfast.views.pages import Page
from holdfast.views.pages.conditions import ConditionView
from holdfast.views.pages.events import EventView
from holdfast.views.pages.progress import Bar
from holdfast.views.pages.revisions import RevisionView
from holdfast.views.pages.sections import TableView
from holdfast.views.spans import Line, Span, Tone, cropped, cut
from holdfast.views.trees import Tree

Age = Callable[[str | None], str]

MOST_EVENTS: Final = 12
MOST_REVISIONS: Final = 5
_BAR: Final = 30


def lines(page: Page, tree: Tree | None, *, width: int, called: str, age: Age) -> tuple[Line, ...]:
    """The lines of a page; `called` is how commands name the object: ``workload/shop``."""
    made: list[Line] = []
    if tree is not None:
        made += rollout_screens.screen(tree, width=width, called=called)
    else:
        made += _head(page, width)
    for title, part in (
        ("Progress", _bars(page.bars, width)),
        ("Conditions", _conditions(page.conditions, width, age)),
        *((table.title, _table(table, width)) for table in page.tables),
        ("Revisions", _revisions(page.revisions, age)),
        ("Related", _links(page)),
        ("Events", _events(page.events, width, age)),
    ):
        found = list(part)
        if found:
            made += [(), (Span(f" {title}", Tone.STRONG),), *((Span("   "), *line) for line in found)]
    return tuple(cropped(line, width) for line in made)


def _head(page: Page, width: int) -> Iterator[Line]:
    row = page.head.row
    mark, tone = MARKS[row.health]
    yield (
        Span(f" {mark} ", tone),
        Span(row.name, Tone.STRONG),
        Span(f"  {row.kind}", Tone.FAINT),
        Span(f"  {row.phase}", tone),
    )
    words = page.head.summary or row.because
    for part in wrap(words, max(width - 5, 20)):
        yield (Span(f"   {part}", Tone.PLAIN if row.health is Health.GOOD else tone),)
    for fact in page.head.facts:
        yield (Span(f"   {f'{fact.label}: ' if fact.label else ''}{fact.value}", Tone.FAINT),)
    for warning in page.head.warnings:
        yield (Span(f"   ! {warning}", Tone.CARE),)


def _bars(bars: Iterable[Bar], width: int) -> Iterator[Line]:
    cells = max(min(_BAR, width - 40), 10)
    for each in bars:
        full = round((each.percent or 0) * cells / 100)
        percent = "" if each.percent is None else f" {each.percent:.0f}%"
        yield (
            Span(f"{cut(each.label, 20):<20} "),
            Span("█" * full, Tone.GOOD),
            Span("░" * (cells - full), Tone.FAINT),
            Span(f"{percent}  {each.words}"),
        )


def _conditions(found: Iterable[ConditionView], width: int, age: Age) -> Iterator[Line]:
    rows = list(found)
    if not rows:
        return
    name = max(len(each.type) for each in rows)
    for each in rows:
        mark, tone = ("✗", Tone.BAD) if each.bad else ("·", Tone.PLAIN)
        since = age(each.since) if each.since else ""
        yield (
            Span(f"{mark} {each.type:<{name}}  ", tone),
            Span(f"{each.status:<7}  "),
            Span(f"{since:>6}  ", Tone.FAINT),
            Span(each.reason),
        )
        if each.message and each.bad:
            for part in wrap(each.message, max(width - 7, 20)):
                yield (Span(f"    {part}", Tone.FAINT),)


def _table(table: TableView, width: int) -> Iterator[Line]:
    first, *rest = aligned([table.columns, *table.rows], width - 3)
    yield (Span(first, Tone.FAINT),)
    for line in rest:
        yield (Span(line),)


def _revisions(found: tuple[RevisionView, ...], age: Age) -> Iterator[Line]:
    for each in found[:MOST_REVISIONS]:
        marks = f"  ({', '.join(each.marks)})" if each.marks else ""
        yield (
            Span(f"{each.number:>3}  ", Tone.STRONG),
            Span(each.revision),
            Span(f"  {each.image}" if each.image else "", Tone.FAINT),
            Span(marks, Tone.CARE),
            Span(f"  {age(each.created)}" if each.created else "", Tone.FAINT),
            Span(f"  {each.change}" if each.change else ""),
        )
    if len(found) > MOST_REVISIONS:
        yield (Span(f"and {len(found) - MOST_REVISIONS} more", Tone.FAINT),)


def _links(page: Page) -> Iterator[Line]:
    for each in page.links:
        name = f"{each.namespace}/{each.name}" if each.namespace else each.name
        yield (Span(f"{each.relation:<12} ", Tone.FAINT), Span(f"{each.kind} {name}"))


def _events(found: tuple[EventView, ...], width: int, age: Age) -> Iterator[Line]:
    for each in found[:MOST_EVENTS]:
        often = f" (x{each.count})" if each.count > 1 else ""
        tone = Tone.CARE if each.warning else Tone.PLAIN
        yield (
            Span(f"{age(each.last) if each.last else '':>6} ", Tone.FAINT),
            Span(f"{'!' if each.warning else ' '} {each.reason}{often}", Tone.CARE if each.warning else Tone.STRONG),
        )
        for part in wrap(each.message, max(width - 13, 20)):
            yield (Span(f"{'':>9}{part}", tone),)
    if len(found) > MOST_EVENTS:
        yield (Span(f"and {len(found) - MOST_EVENTS} more; press e for all", Tone.FAINT),)
