"""The last mile: a decision is cut down to what the freshest fleet allows."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.kernel.fleet import Fleet, Pool, Side
from holdfast.kernel.guard import guard
from holdfast.kernel.reasons import Because, Code
from holdfast.kernel.rollout import Blocked, Decision, Done, Kind, Shape, Start, Stop, Switch

WHY = Because(Code.STOPPING_OLD, "as decided")
SHAPE = Shape(new=5, old=0, floor=4, ceiling=6)


def stop(count: int, kind: Kind = Kind.READY, side: Side = Side.OLD) -> Stop:
    return Stop(side, kind, count, WHY)


CASES: dict[str, tuple[Decision, Fleet, int | Code]] = {
    "a stop that still keeps the floor stays": (stop(1), Fleet(old=Pool(available=5)), 1),
    "a stop is cut to what is spare": (stop(3), Fleet(old=Pool(available=6)), 2),
    "a crash since then leaves nothing to stop": (stop(1), Fleet(old=Pool(available=4)), Code.AT_FLOOR),
    "unready replicas may go at the floor": (stop(2, Kind.UNREADY), Fleet(old=Pool(unready=2, available=4)), 2),
    "the side without traffic may go": (stop(5), Fleet(old=Pool(available=5), traffic=100), 5),
    "a start within the ceiling stays": (Start(Side.NEW, 1, WHY), Fleet(old=Pool(available=5)), 1),
    "a start is cut to the room": (Start(Side.NEW, 3, WHY), Fleet(old=Pool(available=5)), 1),
    "no room since then": (Start(Side.NEW, 1, WHY), Fleet(old=Pool(available=6)), Code.AT_CEILING),
}


@pytest.mark.parametrize("name", CASES)
def test_guarding(name: str) -> None:
    decision, fleet, expected = CASES[name]
    guarded = guard(decision, fleet, shape=SHAPE)
    if isinstance(expected, int):
        assert isinstance(guarded, Start | Stop)
        assert guarded.count == expected
    else:
        assert isinstance(guarded, Blocked)
        assert guarded.because.code is expected
        assert guarded.remedy


def test_replicas_that_are_going_take_room_where_they_count() -> None:
    fleet, start = Fleet(old=Pool(available=5, terminating=1)), Start(Side.NEW, 1, WHY)
    assert guard(start, fleet, shape=SHAPE) is start
    counting = msgspec.structs.replace(SHAPE, count_terminating=True)
    assert isinstance(guard(start, fleet, shape=counting), Blocked)


def test_traffic_stays_when_the_new_set_has_crashed_since_unless_the_old_one_is_no_better() -> None:
    switch = Switch(100, WHY)
    whole = Fleet(old=Pool(available=5), new=Pool(available=5), traffic=0)
    assert guard(switch, whole, shape=SHAPE) is switch
    crashed = guard(switch, msgspec.structs.replace(whole, new=Pool(available=3, unready=2)), shape=SHAPE)
    assert isinstance(crashed, Blocked)
    assert crashed.because.code is Code.AT_FLOOR
    both = Fleet(old=Pool(available=2, unready=3), new=Pool(available=3, unready=2), traffic=0)
    assert guard(switch, both, shape=SHAPE) is switch


def test_what_touches_nothing_passes() -> None:
    done = Done(Because(Code.COMPLETED, "all there"))
    assert guard(done, Fleet(), shape=SHAPE) is done


@given(available=st.integers(0, 9), unready=st.integers(0, 4), wanted=st.integers(1, 9), floor=st.integers(0, 9))
def test_no_guarded_stop_takes_available_replicas_below_the_floor(
    available: int, unready: int, wanted: int, floor: int
) -> None:
    fleet = Fleet(old=Pool(unready=unready, available=available))
    guarded = guard(stop(wanted), fleet, shape=Shape(5, 0, floor, 9))
    taken = guarded.count if isinstance(guarded, Stop) else 0
    assert available - taken >= min(floor, available)
