"""Troubles: what was told is not told again until it changes or is over."""

from __future__ import annotations

from holdfast.runtime.log_once import Troubles


def test_a_trouble_is_news_when_it_begins_when_it_changes_and_after_it_was_over() -> None:
    troubles: Troubles[str] = Troubles()
    assert troubles.is_news("a", "Away", "no answer")
    assert not troubles.is_news("a", "Away", "no answer")
    assert troubles.is_news("b", "Away", "no answer"), "it is another one's"
    assert troubles.is_news("a", "Away", "refused")
    troubles.over("a")
    assert troubles.is_news("a", "Away", "refused")


def test_nothing_is_kept_of_those_who_are_well() -> None:
    troubles: Troubles[int] = Troubles()
    for each in range(100):
        troubles.is_news(each, "Away")
        troubles.over(each)
    troubles.over(-1)
    assert len(troubles) == 0
