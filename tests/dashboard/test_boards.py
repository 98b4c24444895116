"""The board: a row for each object, numbered changes, floors of parts, and links between objects."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from holdfast.client.objects import Object
from holdfast.client.resources import Resource
from holdfast.dashboard import boards
from holdfast.dashboard.boards import Board
from holdfast.operators.shown import Reference, ShownKind, completed
from holdfast.runtime.controllers import Change

SETS = Resource("toy.example.com", "v1", "sets", "Set")
PARTS = Resource("toy.example.com", "v1", "parts", "Part")
MOVES = Resource("toy.example.com", "v1", "moves", "Move")

KINDS = (
    completed(ShownKind(resource=SETS), None),
    completed(ShownKind(resource=PARTS), None),
    completed(
        ShownKind(
            resource=MOVES,
            references=(Reference(path="spec.setRef", resource=SETS, relation="what moves", back="move"),),
        ),
        None,
    ),
)


class Stores:
    """The subscriptions of a board."""

    def __init__(self) -> None:
        self.changes: dict[Resource, Change] = {}
        self.known: dict[tuple[Resource, str], Object] = {}

    def subscribe(self, resource: Resource, change: Change) -> Callable[[], None]:
        self.changes[resource] = change
        return lambda: None

    def put(self, resource: Resource, name: str, *, uid: str = "", owner: str = "", **fields: Any) -> None:
        meta: dict[str, Any] = {"name": name, "namespace": "default", "uid": uid or name, "generation": 1}
        if owner:
            meta["ownerReferences"] = [
                {"apiVersion": "toy.example.com/v1", "kind": "Set", "name": owner, "uid": owner, "controller": True}
            ]
        obj = Object.of(resource, {"metadata": meta, **fields})
        old = self.known.get((resource, name))
        self.known[resource, name] = obj
        if old is not None and old.uid != obj.uid:
            self.changes[resource](old, None)
            old = None
        self.changes[resource](old, obj)

    def drop(self, resource: Resource, name: str) -> None:
        self.changes[resource](self.known.pop((resource, name)), None)


@pytest.fixture
def stores() -> Stores:
    return Stores()


@pytest.fixture
def board(stores: Stores) -> Board:
    made = Board(stores.subscribe)
    made.follow(KINDS)
    return made


def ready(value: bool = True) -> dict[str, Any]:
    return {"conditions": [{"type": "Ready", "status": str(value)}]}


def names(board: Board, since: int) -> list[str]:
    return [msgspec.json.decode(each)["name"] for each in board.since(since).rows]


def test_a_viewer_gets_all_rows_and_then_only_those_that_changed(board: Board, stores: Stores) -> None:
    stores.put(SETS, "a", status=ready())
    stores.put(SETS, "b", status=ready())
    first = board.since(0)
    assert (first.reset, len(first.rows)) == (True, 2)
    stores.put(SETS, "b", status=ready(False))
    assert names(board, first.number) == ["b"]
    assert names(board, board.number) == []


def test_an_object_that_changed_often_is_one_row(board: Board, stores: Stores) -> None:
    stores.put(SETS, "a", status=ready())
    seen = board.number
    for number in range(50):
        stores.put(SETS, "a", status={"phase": f"P{number}"})
    assert len(board.since(seen).rows) == 1


def test_a_change_that_no_row_shows_is_no_change(board: Board, stores: Stores) -> None:
    stores.put(SETS, "a", status=ready())
    seen = board.number
    stores.put(SETS, "a", status={**ready(), "somethingElse": 1})
    assert board.number == seen


def test_a_deletion_is_sent_once_and_not_for_an_object_that_is_back(board: Board, stores: Stores) -> None:
    stores.put(SETS, "a", status=ready())
    stores.put(SETS, "b", status=ready())
    seen = board.number
    stores.drop(SETS, "a")
    stores.put(SETS, "b", uid="another", status=ready())
    delta = board.since(seen)
    assert delta.gone == ["sets.toy.example.com/default/a"]
    assert names(board, seen) == ["b"]
    assert board.since(delta.number).gone == []


def test_a_viewer_that_missed_too_many_deletions_gets_everything_again(
    board: Board, stores: Stores, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(boards, "MOST_GONE", 2)
    for name in "abcd":
        stores.put(SETS, name)
    seen = board.number
    for name in "abc":
        stores.drop(SETS, name)
    delta = board.since(seen)
    assert (delta.reset, len(delta.rows)) == (True, 1)
    assert board.since(board.number + 5).reset


def test_states_are_counted_as_they_change(board: Board, stores: Stores) -> None:
    stores.put(SETS, "a", status=ready())
    stores.put(SETS, "b", status={"phase": "Failed"})
    assert (board.counts.good, board.counts.trouble) == (1, 1)
    stores.put(SETS, "b", status=ready())
    stores.drop(SETS, "a")
    assert (board.counts.good, board.counts.trouble, board.counts.total) == (1, 0, 1)


def part(available: int) -> dict[str, Any]:
    return {"spec": {"replicas": 3}, "status": {"floor": {"required": 2, "available": available, "lowest": available}}}


def test_an_object_without_a_floor_shows_the_worst_floor_of_its_parts(board: Board, stores: Stores) -> None:
    stores.put(SETS, "set", status=ready())
    stores.put(PARTS, "x", owner="set", **part(3))
    stores.put(PARTS, "y", owner="set", **part(2))
    (row,) = [each for each in board.rows() if each.name == "set"]
    assert row.floor is not None
    assert (row.floor.ready, row.floor.floor, row.floors) == (2, 2, 2)
    seen = board.number
    stores.put(PARTS, "y", owner="set", **part(1))
    assert sorted(names(board, seen)) == ["set", "y"]
    stores.drop(PARTS, "y")
    (row,) = [each for each in board.rows() if each.name == "set"]
    assert row.floor is not None
    assert (row.floor.ready, row.floors) == (3, 1)


def test_objects_are_linked_to_owners_parts_and_referrers(board: Board, stores: Stores) -> None:
    stores.put(SETS, "set", status=ready())
    stores.put(PARTS, "x", owner="set")
    stores.put(MOVES, "move", spec={"setRef": {"name": "set"}})

    def links(id: str) -> list[tuple[str, str]]:
        return [(each.relation, each.name) for each in board.links(id)]

    assert links("sets.toy.example.com/default/set") == [("part", "x"), ("move", "move")]
    assert links("parts.toy.example.com/default/x") == [("owner", "set")]
    assert links("moves.toy.example.com/default/move") == [("what moves", "set")]
    stores.put(MOVES, "move", spec={"setRef": {"name": "other"}})
    stores.drop(PARTS, "x")
    assert links("sets.toy.example.com/default/set") == []
    assert links("moves.toy.example.com/default/gone") == []


def test_the_numbers_of_an_object_are_kept_as_they_change(board: Board, stores: Stores) -> None:
    for available in (3, 3, 1, 3):
        status = {"availableReplicas": available, "floor": {"required": 2, "available": available, "lowest": 1}}
        stores.put(SETS, "a", spec={"replicas": 3}, status={**status, **ready(available == 3)})
    entry = board.entry("sets.toy.example.com/default/a")
    assert entry is not None
    assert [(each.ready, each.desired, each.floor) for each in entry.samples] == [(3, 3, 2), (1, 3, 2), (3, 3, 2)]


def test_a_board_keeps_nothing_of_what_is_deleted(
    board: Board, stores: Stores, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(boards, "MOST_GONE", 10)
    for number in range(200):
        stores.put(SETS, f"set{number}", status=ready())
        stores.put(PARTS, f"x{number}", owner=f"set{number}", **part(3))
        stores.put(MOVES, f"move{number}", spec={"setRef": {"name": f"set{number}"}})
    for number in range(200):
        for resource, name in ((SETS, "set"), (PARTS, "x"), (MOVES, "move")):
            stores.drop(resource, f"{name}{number}")
    kept = (board._entries, board._by_uid, board._parts, board._referrers)
    assert [len(each) for each in kept] == [0, 0, 0, 0]
    assert len(board._gone) == 10
    assert board.counts.total == 0


def test_viewers_wait_until_something_changes(board: Board, stores: Stores) -> None:
    async def run() -> None:
        waiting = [asyncio.ensure_future(board.change(board.number)) for _ in range(3)]
        await asyncio.sleep(0)
        assert not any(each.done() for each in waiting)
        stores.put(SETS, "a")
        await asyncio.gather(*waiting)

    asyncio.run(run())
