"""Several rollouts share a screen: each keeps its headline and its floor, and what is under way gets the rest."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import msgspec
import pytest

from holdfast.kernel.fleet import State
from holdfast.views.rollouts import Because, Floor, RolloutState, Standing
from holdfast.views.spans import text
from holdfast.views.stages import Act, blocks, stage
from holdfast.views.trees import NEW, Branch, Leaf, Tree

NOW = datetime(2026, 1, 1, tzinfo=UTC)
ACT = Act("0:12", 2, 3, "change all of them at once")


def rollout(name: str, pods: int, *, done: bool = False, floors: int = 1) -> Tree:
    leaves = tuple(
        Leaf(
            name=f"{name}-{number}",
            index=NEW,
            state=State.AVAILABLE if done else State.UNREADY,
            ready="1/1" if done else "0/1",
            node="node-1",
            age=timedelta(seconds=3),
            restarts=0,
            why="",
        )
        for number in range(pods)
    )
    standing = Standing(
        name=name,
        strategy="RollingUpdate",
        state=RolloutState.COMPLETED if done else RolloutState.UNDER_WAY,
        phase="Completed" if done else "Updating",
        because=Because("WaitingForReady", f"{name} waits for its pods"),
        desired=pods,
        ready=pods,
        available=pods,
        updated=pods,
        floors=tuple(
            Floor(name=f"part-{number}" if floors > 1 else "", ready=pods - number, desired=pods, floor=1)
            for number in range(floors)
        ),
    )
    branch = Branch(name="b1", index=NEW, children=leaves)
    return Tree(standing=standing, branches=(branch,), now=NOW, size=pods)


def shown(*trees: Tree, width: int = 80, height: int = 24) -> list[str]:
    return text(stage(ACT, [("Workload", tree) for tree in trees], width=width, height=height)).split("\n")


def test_the_act_comes_first_and_the_legend_last() -> None:
    lines = shown(rollout("shop", 3))
    assert lines[0] == " 0:12  2/3  change all of them at once"
    assert lines[-1].startswith(" ● new  ■ old")


@pytest.mark.parametrize(("width", "height"), [(80, 24), (120, 40), (60, 16)])
def test_a_screen_is_never_wider_or_higher_than_the_terminal(width: int, height: int) -> None:
    lines = shown(*(rollout(f"set-{n}", 30, floors=3) for n in range(4)), width=width, height=height)
    assert len(lines) < height
    assert max(map(len, lines)) <= width


def test_every_rollout_keeps_its_headline_and_its_floor_on_a_small_terminal() -> None:
    lines = "\n".join(shown(*(rollout(f"set-{n}", 30) for n in range(4)), height=20))
    for number in range(4):
        assert f"set-{number}  Workload" in lines
    assert lines.count("of 30 ready, floor 1") == 4


def test_where_there_is_no_room_for_all_floors_the_one_with_the_fewest_to_spare_is_shown() -> None:
    (line,) = (each for each in shown(rollout("shop", 9, floors=5), height=8) if "floor 1" in each)
    assert "part-4" in line
    assert line.endswith("and 4 more floors")


def test_room_that_is_left_goes_to_what_is_under_way() -> None:
    lines = shown(rollout("done", 6, done=True), rollout("busy", 6), height=19)
    assert sum("busy-" in line for line in lines) == 6
    assert not any("done-" in line for line in lines)


def test_without_a_height_each_rollout_is_as_short_as_it_can_be() -> None:
    assert len(blocks([("Workload", rollout("shop", 6))], width=80)) == 3


REASON = (
    "shop waits for its pods, of which the first one cannot be scheduled on any node: insufficient memory on 4 nodes"
)


@pytest.mark.parametrize(
    ("height", "lines"),
    [
        (24, ["pods, of which the first one cannot", "be scheduled on any node: insufficient memory on 4", "nodes"]),
        (9, ["pods, of which the first one cannot", "be scheduled on any node: insufficient memory on 4 nod…"]),
        (8, ["pods, of which the first one cannot…"]),
        (7, []),
    ],
)
def test_a_long_reason_has_as_many_lines_as_there_are_for_it(height: int, lines: list[str]) -> None:
    tree = rollout("shop", 3)
    standing = msgspec.structs.replace(tree.standing, because=Because("Waits", REASON))
    found = shown(replace(tree, standing=standing), width=60, height=height)
    above = next(number for number, line in enumerate(found) if "… shop" in line) + 1
    below = next(number for number, line in enumerate(found) if "3 of 3 ready" in line)
    assert [line.strip().removeprefix("shop waits for its ") for line in found[above:below]] == lines
