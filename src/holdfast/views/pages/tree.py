"""The tree of a page: the parts of an object, with their pods or machines."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from holdfast.kernel.fleet import State
from holdfast.meta import times
from holdfast.views.fleets import ORDER
from holdfast.views.pages.sections import Section
from holdfast.views.trees import NEW, OLD, Branch, Leaf, Tree

MOST_LEAVES: Final = 2_000
"""The most pods that a page shows one by one."""

_AGES: Final = {OLD: "old", NEW: "new"}


class LeafView(Section, frozen=True, kw_only=True):
    """A pod or a machine.

    age     whether its revision is old, new, or one between (other)
    state   available, settling, unready, dead or terminating
    why     why it is not further; empty where it is as it should be
    """

    name: str
    age: str
    state: str
    ready: str = ""
    node: str = ""
    created: str = ""
    restarts: int = 0
    why: str = ""


class BranchView(Section, frozen=True, kw_only=True):
    """A part of an object, with its parts and pods.

    counts  how many pods are in each state, by age
    hidden  how many pods are counted and not shown one by one
    """

    name: str
    age: str
    number: str = ""
    marks: tuple[str, ...] = ()
    note: str = ""
    images: tuple[str, ...] = ()
    prefix: str = ""
    why: str = ""
    urgent: bool = False
    words: str = ""
    counts: dict[str, dict[str, int]] = {}
    branches: tuple[BranchView, ...] = ()
    leaves: tuple[LeafView, ...] = ()
    hidden: int = 0


class _Allowance:
    """How many leaves may still be shown."""

    def __init__(self, most: int) -> None:
        self.left = most

    def take(self, number: int) -> int:
        taken = min(number, self.left)
        self.left -= taken
        return taken


def branches(tree: Tree, *, most: int = MOST_LEAVES) -> tuple[BranchView, ...]:
    """The branches of a tree, with at most so many pods one by one; those that need a look come first."""
    allowance = _Allowance(most)
    return tuple(_branch(each, tree.now, allowance) for each in tree.branches)


def _branch(branch: Branch, now: datetime, allowance: _Allowance) -> BranchView:
    leaves = [each for each in branch.children if isinstance(each, Leaf)]
    shown = allowance.take(len(leaves))
    return BranchView(
        name=branch.name,
        age=_AGES.get(branch.index, "other"),
        number=branch.number,
        marks=branch.marks,
        note=branch.note,
        images=branch.images,
        prefix=branch.prefix,
        why=branch.why,
        urgent=branch.urgent,
        words=branch.words,
        counts=_counts(branch),
        branches=tuple(_branch(each, now, allowance) for each in branch.children if isinstance(each, Branch)),
        leaves=tuple(_leaf(each, now) for each in leaves[:shown]),
        hidden=len(leaves) - shown,
    )


def _counts(branch: Branch) -> dict[str, dict[str, int]]:
    found: dict[str, dict[str, int]] = {}
    for row in branch.rows():
        counted = found.setdefault(_AGES.get(row.index, "other"), {})
        for state, number in row.counts:
            counted[_word(state)] = counted.get(_word(state), 0) + number
    return found


def _leaf(leaf: Leaf, now: datetime) -> LeafView:
    return LeafView(
        name=leaf.name,
        age=_AGES.get(leaf.index, "other"),
        state=_word(leaf.state),
        ready=leaf.ready,
        node=leaf.node,
        created=times.format(now - leaf.age),
        restarts=leaf.restarts,
        why=leaf.why,
    )


_WORDS: Final = {state: state.name.lower() for state in ORDER}


def _word(state: State) -> str:
    return _WORDS[state]
