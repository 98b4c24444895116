"""The order in which the cliques of a gang start.

A clique that starts after others gets the names of their PodCliques, and how many of
their pods must be ready.  A PodClique of the base gang waits for those of its parents
that are in the base gang; a replica of a scaling group beyond minAvailable is a gang of
its own, so it waits for its own cliques only.  Pure.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from holdfast.kinds.grove.sets import CliqueStartupType
from holdfast.operators.podcliqueset import names
from holdfast.operators.podcliqueset.templates import Layout


@dataclass(frozen=True, slots=True)
class Parent:
    """A PodClique that starts before, and how many of its pods must be ready."""

    clique: str
    ready: int

    def __str__(self) -> str:
        return f"{self.clique}:{self.ready}"


def parents_of(layout: Layout, clique: str) -> tuple[str, ...]:
    """The cliques of the template that a clique starts after."""
    match layout.startup:
        case CliqueStartupType.ANY_ORDER:
            return ()
        case CliqueStartupType.IN_ORDER:
            order = [each.name for each in layout.cliques]
            place = order.index(clique)
            return (order[place - 1],) if place else ()
        case CliqueStartupType.EXPLICIT:
            return layout.by_name[clique].spec.starts_after


def starts_after(layout: Layout, clique: str, *, index: int, group_index: int | None = None) -> tuple[Parent, ...]:
    """The parents of a PodClique, in replica `index` of the set and `group_index` of its scaling group."""
    return tuple(_parents(layout, clique, index, group_index))


def _parents(layout: Layout, clique: str, index: int, group_index: int | None) -> Iterator[Parent]:
    own = layout.group_of.get(clique)
    scaled = own is not None and group_index is not None and group_index >= layout.minimum(own)
    for name in parents_of(layout, clique):
        parent = layout.by_name.get(name)
        if parent is None:
            continue
        group = layout.group_of.get(name)
        if group is None:
            if not scaled:
                yield Parent(names.clique(layout.name, index, name), layout.minimum(parent))
            continue
        group_name = names.group(layout.name, index, group.name)
        if not scaled:
            for each in range(layout.minimum(group)):
                yield Parent(names.member(group_name, each, name), layout.minimum(parent))
        elif group is own and group_index is not None:
            yield Parent(names.member(group_name, group_index, name), layout.minimum(parent))


def cycle(layout: Layout) -> tuple[str, ...]:
    """The first cycle of cliques that start after each other, in its order; empty where there is none."""
    done: set[str] = set()

    def walk(name: str, path: tuple[str, ...]) -> tuple[str, ...]:
        if name in path:
            return path[path.index(name) :]
        if name in done or name not in layout.by_name:
            return ()
        for parent in layout.by_name[name].spec.starts_after:
            found = walk(parent, (*path, name))
            if found:
                return found
        done.add(name)
        return ()

    if layout.startup is not CliqueStartupType.EXPLICIT:
        return ()
    return next((found for clique in layout.cliques if (found := walk(clique.name, ()))), ())
