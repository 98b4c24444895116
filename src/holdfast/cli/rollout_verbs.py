"""What can be asked of a rollout, as values: the case that a verb looks at, and its answer.

A verb is a pure function from a `Case` to an `Answer`.  What it changes are annotations
and fields that any client could set; the operator obeys them, whoever set them.  A kind
that rolls out is one row, `Rolls`; how rows are carried out is not known here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from holdfast.client.objects import Object
from holdfast.meta.objects import Key
from holdfast.runtime.controllers import Controller, View
from holdfast.views.plans import PlanView
from holdfast.views.rollouts import Record, Standing


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """What a verb looks at.

    full    promote: all steps, not only the one that waits
    number  undo: the number of the revision to return to; None: the one before
    """

    object: Object
    records: tuple[Record, ...] = ()
    now: datetime
    full: bool = False
    number: int | None = None


@dataclass(frozen=True, slots=True)
class Change:
    """A merge patch, what is said when it is done, and what else there is to know."""

    patch: dict[str, Any]
    said: str
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Already:
    """It is as was asked for."""

    said: str


@dataclass(frozen=True, slots=True)
class Refusal:
    """It cannot be done, why, and what can."""

    message: str
    hint: str


Answer = Change | Already | Refusal
Verb = Callable[[Case], Answer]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rolls:
    """A kind that rolls out.

    selector  the labels of the pods and records of an object
    fresh     whether the status is about the spec that there is now
    standing  where its rollout stands
    refused   the revision that is not to be rolled out; empty where none is
    outlook   the plan from what a view shows, or why there is none
    """

    resource: str
    selector: Callable[[Object], str]
    fresh: Callable[[Object], bool]
    standing: Callable[[Object, tuple[Record, ...]], Standing]
    refused: Callable[[Object], str]
    verbs: Mapping[str, Verb]
    controller: Controller[Any]
    outlook: Callable[[View, Key, datetime], PlanView | Refusal]
