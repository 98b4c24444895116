"""Which key is worked on next, and when."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from holdfast.runtime.work.queues import NEVER, TURNS, Priority, Queue


def test_a_key_that_was_added_twice_is_taken_once() -> None:
    queue: Queue[str] = Queue()
    queue.add("a", 0)
    queue.add("a", 0)
    assert (queue.take(0), queue.take(0)) == ("a", None)


def test_the_earliest_of_several_times_wins() -> None:
    queue: Queue[str] = Queue()
    queue.add("a", 0, at=10)
    queue.add("a", 0, at=5)
    queue.add("a", 0, at=7)
    assert queue.next_due() == 5
    assert (queue.take(4.9), queue.take(5), queue.take(100)) == (None, "a", None)


def test_a_held_key_is_released_when_its_run_ends() -> None:
    queue: Queue[str] = Queue()
    queue.add("a", 0)
    queue.take(0)
    queue.add("a", 1)
    assert queue.take(1) is None
    queue.done("a")
    assert queue.take(1) == "a"


def test_a_key_that_is_withheld_waits_for_all_that_it_waits_for() -> None:
    queue: Queue[str] = Queue()
    queue.hold("a")
    queue.hold("a")
    queue.add("a", 0)
    assert (queue.take(0), queue.next_due()) == (None, NEVER)
    queue.release("a")
    assert queue.take(0) is None
    queue.release("a")
    assert queue.take(0) == "a"


def test_what_changed_goes_before_what_is_looked_at() -> None:
    queue: Queue[str] = Queue()
    queue.add("old", 0, priority=Priority.LOOKED_AT)
    queue.add("new", 1)
    assert [queue.take(1), queue.take(1)] == ["new", "old"]


def test_what_is_looked_at_gets_a_turn_however_much_changes() -> None:
    queue: Queue[str] = Queue()
    queue.add("look", 0, priority=Priority.LOOKED_AT)
    taken = []
    for now in range(2 * TURNS):
        queue.add(f"change {now}", now)
        key = queue.take(now)
        assert key is not None
        queue.done(key)
        taken.append(key)
    assert taken.index("look") == TURNS - 1


def test_a_change_lifts_a_key_that_was_only_to_be_looked_at() -> None:
    queue: Queue[str] = Queue()
    queue.add("a", 0, priority=Priority.LOOKED_AT)
    queue.add("b", 0, priority=Priority.LOOKED_AT)
    queue.add("b", 1)
    assert [queue.take(1), queue.take(1), queue.take(1)] == ["b", "a", None]


def test_among_equals_the_first_goes_first() -> None:
    queue: Queue[str] = Queue()
    for at, key in enumerate("cab"):
        queue.add(key, at)
    assert [queue.take(5) for _ in range(3)] == ["c", "a", "b"]


def test_failures_in_a_row_are_counted_until_a_run_succeeds() -> None:
    queue: Queue[str] = Queue()
    counts = []
    for failed in (True, True, False, True):
        queue.add("a", 0)
        assert queue.take(0) == "a"
        counts.append(queue.done("a", failed=failed))
    assert counts == [1, 2, 0, 1]


def test_a_real_change_ends_the_wait_after_a_failure_and_our_own_writes_do_not() -> None:
    queue: Queue[str] = Queue()
    queue.add("a", 0)
    queue.take(0)
    queue.done("a", failed=True)
    queue.add("a", 0, at=60, priority=Priority.LOOKED_AT)
    queue.touched("a", 1)
    assert queue.take(1) is None
    queue.changed("a", 2)
    assert queue.take(2) == "a"
    assert queue.done("a", failed=True) == 1, "failures before the change do not count"


def test_a_key_without_anything_to_remember_is_forgotten() -> None:
    queue: Queue[str] = Queue()
    queue.add("a", 0)
    queue.take(0)
    queue.done("a")
    assert not queue._entries


@given(
    st.lists(
        st.tuples(st.sampled_from(["add", "later", "take", "done", "hold", "release"]), st.sampled_from("abc")),
        max_size=60,
    )
)
def test_whatever_happens_no_key_runs_twice_at_a_time_and_none_is_lost(script: list[tuple[str, str]]) -> None:
    queue: Queue[str] = Queue()
    running: set[str] = set()
    holds: dict[str, int] = {}
    wanted: dict[str, float] = {}
    now = 0.0
    for what, key in script:
        now += 1
        if what in ("add", "later"):
            at = now + (5 if what == "later" else 0)
            queue.add(key, now, at=at)
            wanted[key] = min(wanted.get(key, NEVER), at)
        elif what == "take":
            taken = queue.take(now)
            able = {k for k, at in wanted.items() if at <= now and k not in running and not holds.get(k)}
            assert (taken in able) if able else taken is None
            if taken is not None:
                running.add(taken)
                del wanted[taken]
        elif what == "done" and key in running:
            running.discard(key)
            queue.done(key)
        elif what == "hold":
            queue.hold(key)
            holds[key] = holds.get(key, 0) + 1
        elif what == "release" and holds.get(key):
            queue.release(key)
            holds[key] -= 1
    assert queue.running == len(running)
    assert len(queue) == len(set(wanted) - running)


def test_workers_look_at_the_queue_again_only_where_a_key_can_run_earlier_than_before() -> None:
    queue: Queue[str] = Queue()
    assert queue.add("a", 0, at=5)
    assert not queue.add("a", 0, at=7)
    assert queue.changed("a", 1)
    assert not queue.changed("a", 2)
    assert queue.take(2) == "a"
    assert not queue.changed("a", 3)
    queue.hold("a")
    queue.hold("a")
    queue.done("a")
    assert not queue.release("a")
    assert queue.release("a")
    assert queue.take(3) == "a"
