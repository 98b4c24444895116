"""Conditions: what is true of an object, why, and since when.

Checks give a `Verdict` for each condition type; `merge` turns the verdicts and
the conditions of the last pass into the conditions to write.  `mirror`,
`summary` and `aggregate` make one verdict of the conditions of other objects.
A condition that is missing is Unknown, never assumed.

The module must not know a clock (`now` is an argument), any operator's
condition types, or how a status is written.

    READY = (deleting, paused, children_missing, children_unready)    # the order is the product decision

    verdicts = {"Ready": evaluate(READY, world, otherwise=Verdict.true(Why.SERVING, "All pods serve."))}
    conditions = merge(old, verdicts, generation=7, now=now, unnamed="drop")
    events = changed(old, conditions)
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from typing import Any, Final, Literal, TypeAlias, TypeVar

from holdfast.kernel.reasons import Reason, is_code, some
from holdfast.meta import times

World = TypeVar("World")

MAX_MESSAGE: Final = 32_768
"""The longest message the API accepts; a longer one would have the whole status refused."""


class Status(StrEnum):
    """The three answers of a condition."""

    TRUE = "True"
    FALSE = "False"
    UNKNOWN = "Unknown"


_STATUSES: Final = {status.value: status for status in Status}
_OPPOSITE: Final = {Status.TRUE: Status.FALSE, Status.FALSE: Status.TRUE, Status.UNKNOWN: Status.UNKNOWN}


class Common(Reason):
    """Reasons that the algebra itself gives."""

    NOT_REPORTED = "NotReported", "The condition is missing, so nothing is known about it."
    OUTDATED = "Outdated", "The condition describes an earlier generation of its object."
    UNEXPLAINED = "Unexplained", "The condition has no reason, or one that the API does not accept."
    ALL_MET = "AllMet", "Every condition is as it should be."
    SEVERAL_NOT_MET = (
        "SeveralNotMet",
        "Several are not as they should be, for different reasons; the message lists them.",
    )
    SEVERAL_NOT_KNOWN = "SeveralNotKnown", "Several are not known, for different reasons; the message lists them."
    NONE_EXIST = "NoneExist", "There is no object to aggregate conditions of."


@dataclass(frozen=True, slots=True)
class Verdict:
    """An answer with its reason: a code for machines and a sentence for people."""

    status: Status
    reason: str
    message: str

    def __post_init__(self) -> None:
        if not is_code(self.reason):
            raise ValueError(f"reason {self.reason!r} would be refused by the API; use a member of a Reason family")

    @classmethod
    def true(cls, reason: str, message: str) -> Verdict:
        return cls(Status.TRUE, reason, message)

    @classmethod
    def false(cls, reason: str, message: str) -> Verdict:
        return cls(Status.FALSE, reason, message)

    @classmethod
    def unknown(cls, reason: str, message: str) -> Verdict:
        return cls(Status.UNKNOWN, reason, message)


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """One entry of ``status.conditions``.  Other controllers may leave out everything but type and status."""

    type: str
    status: Status
    reason: str = ""
    message: str = ""
    observed_generation: int | None = None
    last_transition_time: datetime | None = None

    @classmethod
    def from_wire(cls, wire: Mapping[str, Any]) -> Condition:
        """Read what any controller may have written; a status that is none of the three is Unknown."""
        since = wire.get("lastTransitionTime")
        return cls(
            type=wire["type"],
            status=_STATUSES.get(str(wire.get("status")), Status.UNKNOWN),
            reason=wire.get("reason") or "",
            message=wire.get("message") or "",
            observed_generation=wire.get("observedGeneration"),
            last_transition_time=times.parse(since) if since else None,
        )

    def to_wire(self) -> dict[str, Any]:
        wire: dict[str, Any] = {"type": self.type, "status": self.status.value}
        if self.observed_generation is not None:
            wire["observedGeneration"] = self.observed_generation
        if self.last_transition_time is not None:
            wire["lastTransitionTime"] = times.format(self.last_transition_time)
        return wire | {"reason": str(self.reason), "message": self.message}


def find(conditions: Iterable[Condition], type: str) -> Condition | None:
    """The condition of that type, if it is there."""
    return next((condition for condition in conditions if condition.type == type), None)


# --- from a world to verdicts

Check: TypeAlias = Callable[[World], Verdict | None]
"""Checks one aspect of the world; returns a verdict if it fails, None if not."""


def evaluate(checks: Iterable[Check[World]], world: World, *, otherwise: Verdict) -> Verdict:
    """The verdict of the first check that fails, or `otherwise` if none does."""
    return next((verdict for check in checks if (verdict := check(world)) is not None), otherwise)


# --- from verdicts to conditions


def merge(
    old: Iterable[Condition],
    verdicts: Mapping[str, Verdict],
    *,
    generation: int,
    now: datetime,
    unnamed: Literal["drop", "keep"],
) -> tuple[Condition, ...]:
    """The conditions to write: the verdicts in their declared order, then kept ones by name.

    A transition time moves only when a status changes, so merging the same
    verdicts again gives an equal tuple and nothing needs to be written.
    `unnamed` says what becomes of old conditions that no verdict names: an
    operator that owns the whole list drops them, one that shares it keeps them.
    """
    before = {condition.type: condition for condition in old}
    # The wire keeps whole seconds; keeping more in memory would make equal conditions differ.
    moment = times.truncate(now)
    named = tuple(
        _succeed(before.get(type), type, verdict=verdict, generation=generation, now=moment)
        for type, verdict in verdicts.items()
    )
    if unnamed == "drop":
        return named
    return named + tuple(before[type] for type in sorted(before.keys() - verdicts.keys()))


def _succeed(old: Condition | None, type: str, *, verdict: Verdict, generation: int, now: datetime) -> Condition:
    stayed = old is not None and old.status == verdict.status
    since = (old.last_transition_time if old and stayed else None) or now
    return Condition(
        type=type,
        status=verdict.status,
        reason=verdict.reason,
        message=_shortened(verdict.message),
        observed_generation=generation,
        last_transition_time=times.truncate(since),
    )


def _shortened(message: str) -> str:
    return message if len(message) <= MAX_MESSAGE else message[: MAX_MESSAGE - 1] + "…"


@dataclass(frozen=True, slots=True, kw_only=True)
class Transition:
    """A condition that appeared (`old` is None), went (`new` is None), or changed status or reason."""

    type: str
    old: Condition | None
    new: Condition | None


def changed(old: Iterable[Condition], new: Iterable[Condition]) -> tuple[Transition, ...]:
    """What is worth an event: changes of (type, status, reason), in the order of `new`, then what went.

    A message that counts down changes with every reconcile and is no event.
    """
    before = {condition.type: condition for condition in old}
    after = {condition.type: condition for condition in new}
    transitions = (
        Transition(type=type, old=before.get(type), new=after.get(type)) for type in dict.fromkeys((*after, *before))
    )
    return tuple(transition for transition in transitions if _said(transition.old) != _said(transition.new))


def _said(condition: Condition | None) -> tuple[str, str] | None:
    return None if condition is None else (condition.status, condition.reason)


# --- from the conditions of others to verdicts


def current(conditions: Iterable[Condition], *, generation: int) -> tuple[Condition, ...]:
    """The conditions as of `generation`: one that describes an earlier generation is Unknown.

    Without this, a child that was just changed would still pass for Ready.
    """

    def aged(condition: Condition) -> Condition:
        observed = condition.observed_generation
        if observed is None or observed >= generation:
            return condition
        message = f"{condition.type} describes generation {observed}; the object is at {generation}."
        return replace(condition, status=Status.UNKNOWN, reason=Common.OUTDATED, message=message)

    return tuple(aged(condition) for condition in conditions)


def mirror(conditions: Iterable[Condition], type: str, *, source: str) -> Verdict:
    """The condition of another object as a verdict; `source` names that object where the condition is missing."""
    condition = find(conditions, type)
    if condition is None:
        return Verdict.unknown(Common.NOT_REPORTED, f"{source} does not report {type} yet.")
    reason = condition.reason if is_code(condition.reason) else Common.UNEXPLAINED
    return Verdict(condition.status, reason, condition.message)


def summary(
    conditions: Iterable[Condition], types: Sequence[str], *, negative: Collection[str] = frozenset()
) -> Verdict:
    """Several conditions of one object as one verdict, True when all are as they should be.

    Types in `negative` are bad news when True (``Degraded``).  One that is bad
    makes the verdict False; failing that, one that is not known makes it
    Unknown.  The message lists them in the order of `types`, bad ones first.
    """
    if not types:
        raise ValueError("summary of no types would be true of anything; name the conditions that count")
    present = tuple(conditions)
    answers = {type: _upright(mirror(present, type, source="The object"), type in negative) for type in types}
    faults = (*_having(answers, Status.FALSE), *_having(answers, Status.UNKNOWN))
    listed = "; ".join(f"{type}: {answers[type].message or answers[type].reason}" for type in faults)
    return _worst(answers, faults=listed, good=f"As it should be: {', '.join(types)}.")


def aggregate(objects: Mapping[str, Iterable[Condition]], type: str, *, negative: bool = False) -> Verdict:
    """One condition of many objects, by name, as one verdict of the same type and polarity.

    "2 of 5 not Ready: a, b" becomes True when every object is Ready; with
    `negative`, "2 of 5 Degraded: a, b" is True as soon as one object is.
    No objects is Unknown: a fleet of none is not a fleet that works.
    """
    if not objects:
        return Verdict.unknown(Common.NONE_EXIST, f"There is no object that could be {type}.")
    answers = {name: _upright(mirror(objects[name], type, source=name), negative) for name in sorted(objects)}
    total = len(answers)
    counted = (
        (_having(answers, Status.FALSE), type if negative else f"not {type}"),
        (_having(answers, Status.UNKNOWN), f"not known to be {type}"),
    )
    faults = "; ".join(f"{len(names)} of {total} {what}: {some(names)}" for names, what in counted if names)
    good = f"none of {total} {type}" if negative else f"all {total} {type}"
    return _upright(_worst(answers, faults=faults, good=good), negative)


def _upright(verdict: Verdict, negative: bool) -> Verdict:
    """With True as the good answer, whatever the polarity; its own inverse."""
    return replace(verdict, status=_OPPOSITE[verdict.status]) if negative else verdict


def _having(answers: Mapping[str, Verdict], status: Status) -> list[str]:
    return [name for name, answer in answers.items() if answer.status is status]


def _worst(answers: Mapping[str, Verdict], *, faults: str, good: str) -> Verdict:
    """Bad outweighs not known, which outweighs good; a reason that all at fault share is kept."""
    for status, several in ((Status.FALSE, Common.SEVERAL_NOT_MET), (Status.UNKNOWN, Common.SEVERAL_NOT_KNOWN)):
        reasons = {answers[name].reason for name in _having(answers, status)}
        if reasons:
            return Verdict(status, reasons.pop() if len(reasons) == 1 else several, faults)
    return Verdict.true(Common.ALL_MET, good)
