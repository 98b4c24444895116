"""Decisions: what a controller decides, as values: children, writes, a status, notices, and when to look again.

A `Decision` is all that a pass may want.  It is made by a pure function and
carried out by the one driver, so that a test compares two values.  This module
must not know how anything is carried out.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from holdfast.client.protocols import PatchType, Propagation
from holdfast.client.resources import Resource
from holdfast.kernel.children import Desired
from holdfast.kernel.outcomes import Done, Outcome
from holdfast.meta.objects import Key, Ref

# --- writes: what is asked for once, and not a child that is to be kept as it is


@dataclass(frozen=True, slots=True, kw_only=True)
class _Write:
    """
    because  why, in words; it is logged, and nothing is written without a reason
    wave     writes of one wave may run side by side; a wave begins when the one before it has succeeded
    """

    because: str
    wave: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Create(_Write):
    """Create the manifest.  If it exists already, the view was old, and the pass is run again."""

    resource: Resource
    manifest: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Patch(_Write):
    """Patch an object, on condition that it is still the one that was seen.

    uid      the object must be this one; another of its name is not ours to change
    version  the object must not have changed since; leave it empty where the patch holds whatever else changed
    """

    resource: Resource
    key: Key
    patch: Any
    uid: str
    version: str = ""
    type: PatchType = PatchType.MERGE
    subresource: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Delete(_Write):
    """Delete an object, on condition that it is still the one with this UID; one that is gone already is no failure."""

    resource: Resource
    key: Key
    uid: str
    version: str = ""
    propagation: Propagation | None = None
    grace_seconds: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Evict(_Write):
    """Evict a pod.  A refusal by a disruption budget is no failure: the pass ends, and the pod is looked at again."""

    key: Key
    uid: str


Write: TypeAlias = Create | Patch | Delete | Evict


def without_deletions(writes: Iterable[Write]) -> tuple[Write, ...]:
    """The writes that come before any deletion or eviction, or beside the first one, without those themselves."""
    writes = tuple(writes)
    first = min((write.wave for write in writes if isinstance(write, Delete | Evict)), default=math.inf)
    return tuple(write for write in writes if write.wave <= first and not isinstance(write, Delete | Evict))


# --- rehearsals: what must be possible before something is deleted


@dataclass(frozen=True, slots=True, kw_only=True)
class Rehearsal:
    """An object that is about to replace others.  It is created with a dry run before anything is deleted.

    about  what is checked, in words: "the pod template of revision 7f"
    holds  children that are not written while it is refused
    """

    about: str
    resource: Resource
    manifest: Mapping[str, Any]
    holds: tuple[Ref, ...] = ()


# --- notices: what becomes an Event


@dataclass(frozen=True, slots=True, kw_only=True)
class Notice:
    """What becomes an Event: of the object itself, unless `about` names another (with its ``metadata.uid``)."""

    type: Literal["Normal", "Warning"] = "Normal"
    reason: str
    message: str
    about: Mapping[str, Any] | None = None


# --- the decision


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """What one pass wants.  They are carried out in this order: rehearse, children, writes, act, status, notices.

    rehearse  what must be accepted by the API before anything is deleted or evicted; where it is refused, the pass
              deletes nothing, and fails with what the API says
    children  the children there should be, all of them, compared with those that are owned (`kernel.children`);
              None leaves them alone, and () wants none
    writes    what else is asked for, by wave
    status    the whole status as it should be; None leaves it alone.  It is written once, and only if it differs
    notices   become Events after the status has been written; the same one within a while is counted, not repeated
    outcome   when to look again if nothing changes
    finalized of a `cleanup`: nothing is left to do, so the finalizer may go
    """

    rehearse: tuple[Rehearsal, ...] = ()
    children: tuple[Desired, ...] | None = None
    writes: tuple[Write, ...] = ()
    status: Mapping[str, Any] | None = None
    notices: tuple[Notice, ...] = ()
    outcome: Outcome = field(default_factory=Done)
    finalized: bool = False


NOTHING: Decision = Decision()
"""The decision of a pass that finds everything as it should be."""
