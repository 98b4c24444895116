"""Whether floors were kept, counted at every change."""

from __future__ import annotations

import pytest

from holdfast.views.floors import Ledger, bar, is_ready


def ledger(ready: int, floor: int) -> Ledger:
    made = Ledger()
    made.expect({"web": floor})
    for number in range(ready):
        made.see("web", f"pod-{number}", ready=True)
    return made


def test_what_happened_before_anybody_looked_does_not_count() -> None:
    made = ledger(ready=2, floor=2)
    made.see("web", "pod-0", ready=False)
    made.see("web", "pod-9", ready=True)
    made.look()
    assert made.kept
    assert made.groups["web"].lowest == 2


def test_the_fewest_are_remembered_though_more_come_back() -> None:
    made = ledger(ready=3, floor=2)
    made.look()
    made.see("web", "pod-0", ready=False)
    made.see("web", "pod-1", ready=False)
    made.see("web", "pod-1", ready=True)
    assert made.groups["web"].lowest == 1
    assert not made.kept


def test_pods_of_nobody_are_nobodys() -> None:
    made = ledger(ready=1, floor=1)
    made.look()
    made.see(None, "stranger", ready=False)
    made.see("other", "stranger", ready=False)
    assert made.kept


@pytest.mark.parametrize(
    ("ready", "floor", "size", "drawn"),
    [
        (10, 8, 10, "████████│██"),
        (8, 8, 10, "████████│░░"),
        (7, 8, 10, "███████░│░░"),
        (0, 0, 0, "│░"),
        (50, 40, 100, "████████│██░░░░░░░░░░"),
    ],
)
def test_a_bar_shows_ready_pods_against_the_floor(ready: int, floor: int, size: int, drawn: str) -> None:
    assert bar(ready, floor, size) == drawn


def test_a_pod_on_its_way_out_serves_nobody() -> None:
    pod = {"metadata": {}, "status": {"conditions": [{"type": "Ready", "status": "True"}]}}
    assert is_ready(pod)
    assert not is_ready(pod | {"metadata": {"deletionTimestamp": "2030-01-01T00:00:00Z"}})
    assert not is_ready(pod | {"status": pod["status"] | {"phase": "Failed"}})
