"""The tree of a page."""

from __future__ import annotations

from datetime import timedelta

from tests.views.pages.standings import NOW, standing

from holdfast.kernel.fleet import State
from holdfast.views.pages.tree import branches
from holdfast.views.trees import NEW, OLD, Branch, Leaf, Tree


def leaf(name: str, state: State = State.AVAILABLE, index: int = NEW) -> Leaf:
    return Leaf(
        name=name,
        index=index,
        state=state,
        ready="1/1",
        node="node-1",
        age=timedelta(minutes=1),
        restarts=0,
        why="" if state is State.AVAILABLE else "it fails",
    )


def test_a_tree_becomes_branches_with_counts_by_revision_and_state() -> None:
    inner = Branch(name="v2", index=NEW, children=(leaf("b", State.DEAD), leaf("c")))
    outer = Branch(name="v1", index=OLD, children=(leaf("a", index=OLD), inner))
    (made,) = branches(Tree(standing=standing(), branches=(outer,), now=NOW, size=3))
    assert made.counts == {"new": {"available": 1, "dead": 1}, "old": {"available": 1}}
    assert [each.name for each in made.leaves] == ["a"]
    assert [(each.name, each.state, each.why) for each in made.branches[0].leaves] == [
        ("b", "dead", "it fails"),
        ("c", "available", ""),
    ]
    assert made.leaves[0].created == "2025-01-01T11:59:00Z"


def test_of_many_pods_some_are_counted_and_not_shown() -> None:
    parts = tuple(Branch(name=name, index=NEW, children=tuple(map(leaf, "abc"))) for name in "xy")
    made = branches(Tree(standing=standing(), branches=parts, now=NOW, size=6), most=4)
    assert [(len(each.leaves), each.hidden) for each in made] == [(3, 0), (1, 2)]
    assert made[1].counts == {"new": {"available": 3}}
