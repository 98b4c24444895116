"""A cluster in a few words: how many nodes and pods are well, and what is under way.

Pure.  It reads wire objects of a few kinds and must not know where they come from.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

Wire = Mapping[str, Any]

SHOWN: Final = 5
"""How many objects that are under way are spelled out."""

_ENDED: Final = frozenset({"Succeeded", "Failed"})


@dataclass(frozen=True, slots=True)
class Share:
    """How many of a number are well."""

    well: int
    of: int

    def __str__(self) -> str:
        return f"{self.well:,}/{self.of:,}"


@dataclass(frozen=True, slots=True)
class Underway:
    """An object that is not at rest: what it is, what it does, and why."""

    name: str
    phase: str
    because: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    nodes: Share
    pods: Share
    objects: int
    underway: tuple[Underway, ...]

    def lines(self) -> tuple[str, ...]:
        """The summary as text: one line, and one for each object that is under way."""
        parts = [f"nodes {self.nodes} ready", f"pods {self.pods} ready"]
        if self.objects:
            at_rest = self.objects - len(self.underway)
            parts.append(f"{at_rest:,} of {self.objects:,} {'object' if self.objects == 1 else 'objects'} at rest")
        more = len(self.underway) - SHOWN
        rows = [f"  {each.name}  {each.phase}: {each.because}" for each in self.underway[:SHOWN]]
        return (" · ".join(parts), *rows, *((f"  and {more:,} more",) if more > 0 else ()))


def summary(nodes: Iterable[Wire], pods: Iterable[Wire], objects: Iterable[Wire]) -> Summary:
    """Of pods, those that have ended do not count; of objects, those that roll out."""
    living = [pod for pod in pods if (pod.get("status") or {}).get("phase") not in _ENDED]
    known = list(objects)
    underway = tuple(found for obj in known if (found := _underway(obj)) is not None)
    return Summary(nodes=_ready(nodes), pods=_ready(living), objects=len(known), underway=underway)


def _ready(objects: Iterable[Wire]) -> Share:
    answers = [_is_ready(obj) for obj in objects]
    return Share(sum(answers), len(answers))


def _is_ready(obj: Wire) -> bool:
    conditions = (obj.get("status") or {}).get("conditions") or ()
    return any(each.get("type") == "Ready" and each.get("status") == "True" for each in conditions)


def _underway(obj: Wire) -> Underway | None:
    status = obj.get("status") or {}
    phase = status.get("phase") or "new"
    if phase == "Completed":
        return None
    because = ((status.get("rollout") or {}).get("because") or {}).get("message") or "nothing is known yet"
    return Underway(f"{obj['kind'].lower()}/{obj['metadata']['name']}", phase, because)
