"""A cluster in a few words, kept as objects change."""

from __future__ import annotations

from holdfast.views.summaries import SHOWN, Board, Share, Tally


def test_a_thing_counts_as_it_was_last() -> None:
    tally = Tally()
    for thing, is_well in (("a", False), ("b", True), ("a", True), ("a", True), ("c", False), ("b", None), ("d", None)):
        tally.put(thing, is_well)
    assert tally.share == Share(1, 2)


def test_a_cluster_without_anything_is_one_line() -> None:
    assert Board().summary().lines() == ("nodes 0/0 ready · pods 0/0 ready",)


def test_what_is_under_way_is_told_with_its_reason_in_order() -> None:
    board = Board()
    board.nodes.put("n", True)
    board.put("workload/b", ("Progressing", "waiting for b-1"))
    board.put("workload/a", ("New", "not reconciled yet"))
    board.put("workload/c", ("Progressing", "waiting"))
    board.put("workload/c", None)
    board.put("workload/gone", ("New", ""))
    board.drop("workload/gone")
    assert board.summary().lines() == (
        "nodes 1/1 ready · pods 0/0 ready · objects 1/3 ready",
        "  workload/a  New: not reconciled yet",
        "  workload/b  Progressing: waiting for b-1",
    )


def test_of_very_many_under_way_some_are_spelled_out() -> None:
    board = Board()
    for number in range(SHOWN + 1234):
        board.put(f"workload/w{number:04}", ("Progressing", "why"))
    *_, last = lines = board.summary().lines()
    assert (len(lines), last) == (1 + SHOWN + 1, "  and 1,234 more")


def test_objects_in_trouble_are_counted_and_come_first() -> None:
    board = Board()
    board.put("workload/a", ("Progressing", "why"))
    board.put("workload/b", ("Blocked", "no room"), trouble=True)
    assert board.summary().lines() == (
        "nodes 0/0 ready · pods 0/0 ready · objects 0/2 ready · 1 in trouble",
        "! workload/b  Blocked: no room",
        "  workload/a  Progressing: why",
    )
