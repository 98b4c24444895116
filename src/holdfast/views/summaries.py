"""A cluster in a few words: how many nodes and pods are well, and what is under way.

Pure.  It reads wire objects of a few kinds and must not know where they come from.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Final

SHOWN: Final = 5
"""How many objects that are under way are spelled out."""


@dataclass(frozen=True, slots=True)
class Share:
    """How many of a number are well."""

    well: int
    of: int

    def __str__(self) -> str:
        return f"{self.well:,}/{self.of:,}"


@dataclass(frozen=True, slots=True)
class Underway:
    """An object that is not ready: what it is, what it does, why, and whether it is in trouble."""

    name: str
    phase: str
    because: str
    trouble: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    nodes: Share
    pods: Share
    objects: int
    underway: tuple[Underway, ...]

    @property
    def trouble(self) -> int:
        """How many objects are in trouble."""
        return sum(each.trouble for each in self.underway)

    @property
    def _first(self) -> tuple[Underway, ...]:
        """Those that are spelled out: first those in trouble."""
        return tuple(sorted(self.underway, key=lambda each: not each.trouble))[:SHOWN]

    def lines(self) -> tuple[str, ...]:
        """The summary as text: one line, and one for each object that is under way."""
        parts = [f"nodes {self.nodes} ready", f"pods {self.pods} ready"]
        if self.objects:
            parts.append(f"objects {Share(self.objects - len(self.underway), self.objects)} ready")
        if self.trouble:
            parts.append(f"{self.trouble:,} in trouble")
        more = len(self.underway) - SHOWN
        rows = [f"{'!' if each.trouble else ' '} {each.name}  {each.phase}: {each.because}" for each in self._first]
        return (" · ".join(parts), *rows, *((f"  and {more:,} more",) if more > 0 else ()))


class Board:
    """What a summary is made of, kept as objects change: a look costs no more where there are very many of them.

    nodes, pods  whether each of them is ready; those that do not count, as pods that have ended, are left out
    """

    def __init__(self) -> None:
        self.nodes = Tally()
        self.pods = Tally()
        self._objects: dict[str, Underway | None] = {}

    def put(self, name: str, underway: tuple[str, str] | None, *, trouble: bool = False) -> None:
        """An object: its phase and why, or None where it is ready."""
        self._objects[name] = None if underway is None else Underway(name, *underway, trouble)

    def drop(self, name: str) -> None:
        self._objects.pop(name, None)

    def summary(self) -> Summary:
        underway = tuple(each for _, each in sorted(self._objects.items()) if each is not None)
        return Summary(nodes=self.nodes.share, pods=self.pods.share, objects=len(self._objects), underway=underway)


class Tally:
    """How many of some things are well."""

    def __init__(self) -> None:
        self._is_well: dict[Hashable, bool] = {}
        self._well = 0

    def put(self, thing: Hashable, is_well: bool | None) -> None:
        """Count a thing as it is now; None if it does not count, any more or at all."""
        self._well -= self._is_well.pop(thing, False)
        if is_well is not None:
            self._is_well[thing] = is_well
            self._well += is_well

    @property
    def share(self) -> Share:
        return Share(self._well, len(self._is_well))
