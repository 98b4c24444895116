from __future__ import annotations

from holdfast.runtime.recent import Recent


def test_what_was_put_longest_ago_is_forgotten_first() -> None:
    recent: Recent[str, int] = Recent(2)
    for number, key in enumerate("abc"):
        recent.put(key, number)
    assert (recent.get("a"), recent.get("b"), recent.get("c")) == (None, 1, 2)
    assert "a" not in recent
    assert len(recent) == 2


def test_what_is_put_again_is_kept_longer_and_what_is_only_read_is_not() -> None:
    recent: Recent[str, int] = Recent(2)
    recent.put("a", 1)
    recent.put("b", 1)
    recent.put("a", 2)
    recent.get("b")
    recent.put("c", 1)
    assert (recent.get("a"), recent.get("b"), recent.get("c")) == (2, None, 1)
