"""LogOnce: a problem is new until it is known, changes or is over."""

from __future__ import annotations

from holdfast.runtime.log_once import LogOnce


def test_a_problem_is_new_when_it_begins_when_it_changes_and_after_it_was_over() -> None:
    logged: LogOnce[str] = LogOnce()
    assert logged.is_new("a", "Away", "no answer")
    assert not logged.is_new("a", "Away", "no answer")
    assert logged.is_new("b", "Away", "no answer"), "another key's"
    assert logged.is_new("a", "Away", "refused")
    logged.clear("a")
    assert logged.is_new("a", "Away", "refused")


def test_nothing_is_kept_of_those_who_are_well() -> None:
    logged: LogOnce[int] = LogOnce()
    for each in range(100):
        logged.is_new(each, "Away")
        logged.clear(each)
    logged.clear(-1)
    assert len(logged) == 0
