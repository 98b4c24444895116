"""The page of one object: its tree, conditions, Events, timeline, revisions, links and verbs.

Pure, and all of it can be written as JSON.  An operator makes the `Tree`, and the rest is
the same for every kind.  Times are sent as they are and never as ages, so a page that is
not sent again stays true.  These modules must not know any kind, and `screens` alone knows
how a page is laid out.
"""

from __future__ import annotations

from holdfast.views.pages.conditions import ConditionView
from holdfast.views.pages.events import EventView
from holdfast.views.pages.head import Head
from holdfast.views.pages.progress import Bar
from holdfast.views.pages.revisions import RevisionView
from holdfast.views.pages.sections import Chart, Link, Section, TableView, VerbView
from holdfast.views.pages.timeline import Timeline
from holdfast.views.pages.tree import BranchView


class Page(Section, frozen=True, kw_only=True):
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
