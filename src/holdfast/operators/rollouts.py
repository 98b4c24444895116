"""The declaration of a kind that rolls out: how its rollouts are shown, planned and steered.

The command line, the demo and the dashboard read these values and know no operator by
name.  A verb is a pure function from a `Case` to an `Answer`.  It changes annotations and
fields that any client could set; the operator acts on them, no matter which client set
them.  This module must not know any kind, nor how an answer is carried out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final

from msgspec.structs import replace

from holdfast.client.objects import Object
from holdfast.client.resources import PODS, Resource
from holdfast.kernel.planning import WorkloadSpec
from holdfast.kernel.rollout import OnFailure
from holdfast.meta.objects import Key
from holdfast.runtime.controllers import PAUSED, Controller, View, is_paused
from holdfast.views.descriptions import StatusTable
from holdfast.views.plans import PlanSummary, PlanView
from holdfast.views.rollouts import Because, Record, RolloutState, Standing
from holdfast.views.trees import Tree


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """The input of a verb.

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
    """A merge patch, the message when it is applied, and notes for the user.

    restored  the patch brings back an earlier spec, which the manager that applies the object owns again
    """

    patch: dict[str, Any]
    said: str
    notes: tuple[str, ...] = ()
    restored: bool = False


@dataclass(frozen=True, slots=True)
class Already:
    """The object is already in the requested state."""

    said: str


@dataclass(frozen=True, slots=True)
class Refusal:
    """The verb cannot be carried out: why, and what the user can do instead."""

    message: str
    hint: str

    def lines(self, called: str) -> tuple[str, str]:
        """The message for the object that is called so, and the hint."""
        return f"error: {called}: {self.message}", f"hint: {self.hint}"


Answer = Change | Already | Refusal
Verb = Callable[[Case], Answer]


@dataclass(frozen=True, slots=True)
class Observed:
    """One rollout at a moment: the object, and a view of everything that belongs to it."""

    object: Object
    view: View


@dataclass(frozen=True, slots=True, kw_only=True)
class Planner:
    """A plan from what runs in a cluster: which objects the controllers read, and the plan made from them."""

    controllers: tuple[Controller[Any], ...]
    plan: Callable[[View, Key, datetime], PlanView | PlanSummary | Refusal]


Wire = Mapping[str, Any]
"""An object as it is in JSON."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OfflineRollout:
    """The rollout that a manifest describes, without a cluster.

    spec               the size and the strategy, as the engine takes them
    revision           a hash of what replicas are made from: equal where only the size or the strategy differs
    min_ready          how long a replica must be ready before it counts as available
    deadline           how long a rollout may make no progress
    count_terminating  whether replicas that are terminating count against the maximum
    ordered            whether one replica is replaced after another
    replaced_by        a hash of what a replica must be replaced for: where it is equal, replicas are changed in place;
                       empty: every change replaces them
    """

    spec: WorkloadSpec
    revision: str
    paused: bool = False
    min_ready: timedelta = timedelta()
    deadline: timedelta | None = None
    on_failure: OnFailure = OnFailure.HOLD
    count_terminating: bool = False
    ordered: bool = False
    replaced_by: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class OfflinePlanner:
    """A plan from a manifest, without a cluster: for `holdfast plan` and `holdfast simulate`.

    rollout    the rollout that a manifest describes; raises `kinds.DocumentError`
    minimal    the smallest manifest, for a rollout that options alone describe
    only_with  the fields that belong to one strategy, by JSON path, and that strategy
    """

    rollout: Callable[[Wire], OfflineRollout]
    minimal: Wire
    only_with: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """Earlier revisions.

    label    the label that names the revision of a record
    refused  the revision that is rejected, if any
    why      why and when it was rejected, in a sentence; empty where that is not known
    """

    label: str
    refused: Callable[[Object], str]
    why: Callable[[Object], str]


@dataclass(frozen=True, slots=True)
class Headline:
    """An object in one line: its phase, the reason, and whether everything that its spec asks for is there."""

    phase: str
    because: str
    at_rest: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Demo:
    """How `holdfast demo` shows a kind.

    group      the group of pods that a pod belongs to, by the object's name and the pod's labels; None: not its pod
    floors     for each group, how many pods must stay ready and how many there are
    change     a patch that sets another version of the image
    recovered  whether a broken revision was rolled back; None: the kind does not roll back by itself
    counted    what is counted, if not pods: objects with a condition Ready
    joins      an object of the kind is a change itself: it is applied when the other objects are changed
    """

    group: Callable[[str, Mapping[str, str]], str | None]
    floors: Callable[[Wire, View], Mapping[str, tuple[int, int]]]
    change: Callable[[Wire, str], Wire]
    recovered: Callable[[Wire], bool] | None = None
    counted: Resource = PODS
    joins: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RolloutKind:
    """A kind that rolls out: how its rollouts are shown (`view.py`) and steered (`verbs.py`).

    parts        the resources of the objects that belong to an object of the kind
    selector     the label selector of those objects
    fresh        whether the operator has observed the latest generation
    standing     the state of the rollout
    tree         the same in full, with all pods
    headline     the same in one line, from the object alone
    tables       parts of the status that `describe` shows as tables
    verbs        the verbs of `holdfast rollout` that the kind supports
    unsupported  the verbs, `history` and `plan` that it does not support, and why
    settings     the fields that options set (`--replicas`, `--image`, `--max-surge`, ...): JSON paths by setting
    history      where earlier revisions are kept
    planner      plans from what runs in a cluster
    offline      plans from a manifest alone
    demo         how `holdfast demo` shows the kind
    """

    resource: Resource
    parts: tuple[Resource, ...]
    selector: Callable[[Object], str]
    fresh: Callable[[Object], bool]
    standing: Callable[[Observed], Standing]
    tree: Callable[[Observed, datetime], Tree]
    headline: Callable[[Wire], Headline]
    verbs: Mapping[str, Verb]
    unsupported: Mapping[str, Refusal] = field(default_factory=dict)
    tables: tuple[StatusTable, ...] = ()
    settings: Mapping[str, str] = field(default_factory=dict)
    history: History | None = None
    planner: Planner | None = None
    offline: OfflinePlanner | None = None
    demo: Demo | None = None

    @property
    def name(self) -> str:
        """``workloads.cloudless.io``: how messages name it."""
        return self.resource.group_resource

    def answer(self, verb: str, case: Case) -> Answer:
        """The answer to a verb, supported or not."""
        return self.verbs[verb](case) if verb in self.verbs else self.unsupported[verb]


def generation_seen(obj: Object, observed: int | None) -> bool:
    """Whether this generation, observed by the operator, is the latest."""
    return observed == obj.meta.generation


LEFT_ALONE: Final = Because("LeftAlone", f"the annotation {PAUSED} is true, so no operator changes anything")


def left_alone(obj: Object, standing: Standing, *, because: Because = LEFT_ALONE) -> Standing:
    """A standing, corrected where an annotation keeps all operators from reconciling the object."""
    if not is_paused(obj):
        return standing
    if standing.state is RolloutState.COMPLETED:
        return replace(standing, warnings=(*standing.warnings, because.message))
    return replace(standing, state=RolloutState.WAITING, phase="Paused", because=because, remedy="", verb="")


def controlled(objects: Iterable[Object], owner: Object) -> list[Object]:
    """The objects that an owner controls."""
    return [each for each in objects if each.is_controlled_by(owner.uid)]


def records_of(objects: Iterable[Object], owner: Object) -> tuple[Record, ...]:
    """The earlier revisions of one owner."""
    return tuple(each.decode(Record) for each in controlled(objects, owner))


# --- reading JSON objects, for headlines and the demo


def status_of(wire: Wire) -> Wire:
    status: Wire = wire.get("status") or {}
    return status


def is_current(wire: Wire) -> bool:
    """Whether the operator has observed the latest generation."""
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
"""The message of an object that has no status."""
