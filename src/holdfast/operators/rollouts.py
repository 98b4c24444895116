"""What an operator declares of a kind that rolls out: how its rollouts are shown and steered.

The command line, the demo and the dashboard read these values and know no operator by
name.  A verb is a pure function from a `Case` to an `Answer`.  What it changes are
annotations and fields that any client could set; the operator acts on them, whichever
client did.  This module must not know any kind, nor how an answer is carried out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
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
class Planner:
    """How a plan is made: by what the operator of a kind would look at, and what would come of it."""

    controller: Controller[Any]
    plan: Callable[[View, Key, datetime], PlanView | Refusal]


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """What is kept of earlier revisions: by which label, and which one is not to be rolled out; empty where none is."""

    label: str
    refused: Callable[[Object], str]


Wire = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Headline:
    """An object in one line: its phase, why, and whether everything that is asked for is there."""

    phase: str
    because: str
    at_rest: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Demo:
    """What `holdfast demo` needs to know of a kind.

    group      the group of pods that a pod belongs to, by the object's name and the pod's labels; None: not its pod
    floors     of each group, how many must stay ready and how many there are
    change     a patch that asks for another version of the image
    recovered  whether a broken revision was taken back; None: the kind does not do so by itself
    """

    group: Callable[[str, Mapping[str, str]], str | None]
    floors: Callable[[Wire, View], Mapping[str, tuple[int, int]]]
    change: Callable[[Wire, str], Wire]
    recovered: Callable[[Wire], bool] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RolloutKind:
    """A kind that rolls out: how its rollouts are shown (`view.py`) and steered (`verbs.py`).

    parts        what belongs to an object, beside itself
    selector     the labels of all of that
    fresh        whether the status is about the spec that there is now
    standing     where its rollout stands
    tree         the same in full, with all pods
    headline     the same in one line, from the object alone
    verbs        what can be asked of it
    unsupported  the verbs, `history` and `plan` that it does not have, and why
    history      what is kept of earlier revisions
    planner      how it is planned
    demo         how the demo changes it
    """

    resource: Resource
    parts: tuple[Resource, ...]
    selector: Callable[[Object], str]
    fresh: Callable[[Object], bool]
    standing: Callable[[Scene], Standing]
    tree: Callable[[Scene, datetime], Tree]
    headline: Callable[[Wire], Headline]
    verbs: Mapping[str, Verb]
    unsupported: Mapping[str, Refusal] = field(default_factory=dict)
    history: History | None = None
    planner: Planner | None = None
    demo: Demo | None = None

    @property
    def name(self) -> str:
        """``workloads.cloudless.io``: how messages name it."""
        return self.resource.group_resource

    def answer(self, verb: str, case: Case) -> Answer:
        """What comes of a verb."""
        return self.verbs[verb](case) if verb in self.verbs else self.unsupported[verb]


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


def controlled(objects: Iterable[Object], owner: Object) -> list[Object]:
    """The objects that an owner manages."""
    return [each for each in objects if each.is_controlled_by(owner.uid)]


def records_of(objects: Iterable[Object], owner: Object) -> tuple[Record, ...]:
    """The earlier revisions of one owner."""
    return tuple(each.decode(Record) for each in controlled(objects, owner))


# --- reading objects as they came, for headlines and the demo


def status_of(wire: Wire) -> Wire:
    status: Wire = wire.get("status") or {}
    return status


def is_current(wire: Wire) -> bool:
    """Whether the status is about the spec that there is now."""
    return bool(status_of(wire).get("observedGeneration") == wire["metadata"].get("generation"))


def is_true(wire: Wire, type: str) -> bool:
    """Whether a condition is True."""
    return _condition(wire, type).get("status") == "True"


def message_of(wire: Wire, type: str) -> str:
    """The message of a condition."""
    return str(_condition(wire, type).get("message", NOT_REPORTED))


def with_version(image: str, version: str) -> str:
    """An image with another tag."""
    return f"{image.rpartition(':')[0]}:{version}"


def _condition(wire: Wire, type: str) -> Wire:
    conditions = status_of(wire).get("conditions") or ()
    return next((each for each in conditions if each.get("type") == type), {})


NOT_REPORTED: Final = "not reconciled yet"
"""What is said of an object that has no status."""
