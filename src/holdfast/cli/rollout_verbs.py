"""What can be asked of a rollout, as values: the case that a verb looks at, and its answer.

A verb is a pure function from a `Case` to an `Answer`.  What it changes are annotations
and fields that any client could set; the operator obeys them, whoever set them.  A kind
that rolls out is one row, `Rolls`; how rows are carried out is not known here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Final

from holdfast.client.objects import Object
from holdfast.client.resources import Resource
from holdfast.meta.objects import Key
from holdfast.runtime.controllers import PAUSED, Controller, View
from holdfast.views.plans import PlanView
from holdfast.views.rollouts import Because, Record, Standing, Verdict
from holdfast.views.trees import Tree


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

    def lines(self, called: str) -> tuple[str, str]:
        """How it is told of the object that is called so."""
        return f"error: {called}: {self.message}", f"hint: {self.hint}"


Answer = Change | Already | Refusal
Verb = Callable[[Case], Answer]


@dataclass(frozen=True, slots=True)
class Scene:
    """One rollout at a moment: the object, and a view of everything that belongs to it."""

    object: Object
    view: View


@dataclass(frozen=True, slots=True, kw_only=True)
class Outlook:
    """How a plan is made: by what the operator of a kind would look at, and what would come of it."""

    controller: Controller[Any]
    plan: Callable[[View, Key, datetime], PlanView | Refusal]


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """What is kept of earlier revisions: by which label, and which one is not to be rolled out; empty where none is."""

    label: str
    refused: Callable[[Object], str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rolls:
    """A kind that rolls out.

    parts     what belongs to an object, beside itself
    selector  the labels of all of that
    fresh     whether the status is about the spec that there is now
    standing  where its rollout stands
    tree      the same in full, with all pods
    verbs     what can be asked of it
    history   what is kept of earlier revisions
    outlook   how it is planned
    lacks     what it has none of (verbs, history, plan), and why; every other command it has
    """

    resource: str
    parts: tuple[Resource, ...]
    selector: Callable[[Object], str]
    fresh: Callable[[Object], bool]
    standing: Callable[[Scene], Standing]
    tree: Callable[[Scene, datetime], Tree]
    verbs: Mapping[str, Verb]
    history: Kept | None = None
    outlook: Outlook | None = None
    lacks: Mapping[str, Refusal] = field(default_factory=dict)

    def answer(self, verb: str, case: Case) -> Answer:
        """What comes of a verb."""
        return self.verbs[verb](case) if verb in self.verbs else self.lacks[verb]


def generation_seen(obj: Object, observed: int | None) -> bool:
    """Whether a status that observed this generation is about the spec that there is now."""
    return observed == obj.meta.generation


LEFT_ALONE: Final = Because("LeftAlone", f"the annotation {PAUSED} is true, so no operator touches it")


def is_left_alone(obj: Object) -> bool:
    """Whether somebody told operators not to touch it."""
    return obj.meta.annotations.get(PAUSED) == "true"


def left_alone(obj: Object, standing: Standing, *, because: Because = LEFT_ALONE) -> Standing:
    """The standing of an object that operators may have been told not to touch: then nothing goes on by itself."""
    if not is_left_alone(obj):
        return standing
    if standing.verdict is Verdict.COMPLETED:
        return replace(standing, warnings=(*standing.warnings, because.message))
    return replace(standing, verdict=Verdict.WAITING, phase="Paused", because=because, remedy="", verb="")
