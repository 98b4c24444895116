"""What sections of a page are, and those that operators make: links, tables, charts and verbs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

Wire = Mapping[str, Any]
"""An object as the API server sends it."""


class Section(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """A section of a page, or a part of one."""


class Link(Section, frozen=True, kw_only=True):
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


class TableView(Section, frozen=True, kw_only=True):
    """A table that the operator of the kind makes."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...] = ()


class Point(Section, frozen=True, kw_only=True):
    """A configuration on a chart; `label` says what it is in full."""

    x: float
    y: float
    label: str
    chosen: bool = False
    good: bool = True
    front: bool = True


class Chart(Section, frozen=True, kw_only=True):
    """Points of which none is better than another in both directions, with the one that was chosen."""

    title: str
    x: str
    y: str
    points: tuple[Point, ...]
    note: str = ""


class VerbView(Section, frozen=True, kw_only=True):
    """A verb that an object supports; `refusal` says why it cannot be carried out now."""

    name: str
    label: str
    refusal: str = ""
    suggested: bool = False
