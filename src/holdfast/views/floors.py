"""Whether floors were kept: the ready pods, counted at every change of a pod.

A `Ledger` is given every pod as it changes.  For each group of pods that serve together
it counts how many are ready now, and the fewest since `look`.  It must not know where
pods come from.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

Wire = Mapping[str, Any]

BAR: Final = 20
"""How many cells a bar has."""


@dataclass(slots=True)
class Group:
    """Pods that serve together, with their floor."""

    floor: int = 0
    ready: set[str] = field(default_factory=set)
    lowest: int | None = None

    @property
    def kept(self) -> bool:
        return self.lowest is None or self.lowest >= self.floor


@dataclass(slots=True)
class Ledger:
    """Groups of pods by name."""

    groups: dict[str, Group] = field(default_factory=dict)
    looking: bool = False
    changes: int = 0

    def expect(self, floors: Mapping[str, int]) -> None:
        """Set the groups, and how many pods of each must stay ready."""
        for name, floor in floors.items():
            self.groups.setdefault(name, Group()).floor = floor

    def look(self) -> None:
        """From now on, keep the fewest ready pods of each group."""
        self.looking = True
        for group in self.groups.values():
            group.lowest = len(group.ready)

    def see(self, group: str | None, uid: str, *, ready: bool) -> None:
        """Count a pod as it is now; one that is deleted is not ready."""
        if group is None or group not in self.groups:
            return
        known = self.groups[group]
        before = len(known.ready)
        (known.ready.add if ready else known.ready.discard)(uid)
        if len(known.ready) != before:
            self.changes += 1
        if self.looking and (known.lowest is None or len(known.ready) < known.lowest):
            known.lowest = len(known.ready)

    @property
    def kept(self) -> bool:
        return all(group.kept for group in self.groups.values())


def is_ready(pod: Wire) -> bool:
    """Whether a pod serves: ready, and neither terminating nor ended.

    A pod on a node that is gone is marked Failed, and its Ready condition stays as the node reported it last.
    """
    status = pod.get("status") or {}
    if pod["metadata"].get("deletionTimestamp") or status.get("phase") in ("Failed", "Succeeded"):
        return False
    conditions = status.get("conditions") or ()
    return any(each.get("type") == "Ready" and each.get("status") == "True" for each in conditions)


def bar(ready: int, floor: int, size: int) -> str:
    """Ready pods as filled cells, with the floor as a line between cells."""
    size = max(size, ready, 1)
    cells = min(size, BAR)
    filled, line = round(ready * cells / size), round(floor * cells / size)
    drawn = ["█" if cell < filled else "░" for cell in range(cells)]
    return "".join(drawn[:line]) + "│" + "".join(drawn[line:])
