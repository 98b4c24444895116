from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.kernel.phases import IllegalTransition, Ladder, Transitions, always


class Light(StrEnum):
    RED = "Red"
    GREEN = "Green"
    BROKEN = "Broken"


LADDER: Ladder[set[str], Light] = Ladder(
    (
        (Light.BROKEN, lambda facts: "broken" in facts),
        (Light.GREEN, lambda facts: "go" in facts),
        (Light.RED, always),
    )
)
TRANSITIONS = Transitions(
    {
        Light.RED: {Light.GREEN, Light.BROKEN},
        Light.GREEN: {Light.RED, Light.BROKEN},
        Light.BROKEN: (),
    },
    start=(Light.RED,),
)


@pytest.mark.parametrize(
    ("facts", "phase"),
    [
        (set(), Light.RED),
        ({"go"}, Light.GREEN),
        ({"broken"}, Light.BROKEN),
        ({"go", "broken"}, Light.BROKEN),
    ],
)
def test_the_first_rung_that_matches_names_the_phase(facts: set[str], phase: Light) -> None:
    assert LADDER.phase(facts) is phase


@given(st.lists(st.booleans()))
def test_every_world_has_a_phase_and_no_earlier_rung_matched(answers: list[bool]) -> None:
    def answer(position: int) -> Callable[[list[bool]], bool]:
        return lambda world: world[position]

    rungs = tuple((f"Phase{position}", answer(position)) for position in range(len(answers)))
    ladder = Ladder((*rungs, ("Otherwise", always)))
    expected = f"Phase{answers.index(True)}" if True in answers else "Otherwise"
    assert ladder.phase(answers) == expected


@pytest.mark.parametrize(
    ("rungs", "message"),
    [
        ((), "the last rung"),
        ((("Ready", bool),), "the last rung"),
        ((("Pending", always), ("Ready", always)), "rung Pending is `always` but not the last"),
    ],
)
def test_a_ladder_that_is_not_total_or_has_dead_rungs_is_refused(
    rungs: tuple[tuple[str, Callable[[object], bool]], ...], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        Ladder(rungs)


@pytest.mark.parametrize("old", [None, *Light])
@pytest.mark.parametrize("new", list(Light))
def test_exactly_the_edges_of_the_table_and_staying_are_legal(old: Light | None, new: Light) -> None:
    legal = {
        (None, Light.RED),
        (Light.RED, Light.GREEN),
        (Light.RED, Light.BROKEN),
        (Light.GREEN, Light.RED),
        (Light.GREEN, Light.BROKEN),
        *((phase, phase) for phase in Light),
    }
    if (old, new) in legal:
        TRANSITIONS.check(old, new)
    else:
        with pytest.raises(IllegalTransition):
            TRANSITIONS.check(old, new)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("Green", "Blue", "from Green to Blue; allowed: Broken, Red. "),
        ("Broken", "Red", "from Broken to Red; allowed: nothing, because Broken is final"),
        (None, "Green", "may not start as Green; allowed: Red. "),
        ("Blue", "Blue", "from Blue to Blue; allowed: nothing, because Blue is final or not in the table"),
    ],
)
def test_an_illegal_transition_names_both_phases_and_the_allowed_ones(old: str | None, new: str, message: str) -> None:
    plain: Transitions[str] = Transitions(
        {"Red": {"Green", "Broken"}, "Green": {"Red", "Broken"}, "Broken": ()}, start=("Red",)
    )
    with pytest.raises(IllegalTransition, match=message) as caught:
        plain.check(old, new)
    assert (caught.value.old, caught.value.new) == (old, new)


def test_a_phase_without_a_row_is_refused_at_construction() -> None:
    with pytest.raises(ValueError, match="no row for Blue"):
        Transitions({"Red": {"Blue"}}, start=("Red",))
    with pytest.raises(ValueError, match="no row for Blue"):
        Transitions({"Red": ()}, start=("Blue",))


def test_a_phase_that_nothing_leads_to_is_refused_at_construction() -> None:
    with pytest.raises(ValueError, match="no path from the start to Green, Yellow"):
        Transitions({"Red": (), "Green": {"Yellow"}, "Yellow": {"Red"}}, start=("Red",))


def test_the_table_cannot_change_after_it_was_checked() -> None:
    rows = {"Red": {"Green"}, "Green": {"Red"}}
    transitions = Transitions(rows, start=("Red",))
    rows["Red"].clear()
    transitions.check("Red", "Green")


def test_ladder_and_table_can_be_compared() -> None:
    assert {phase for phase, _ in LADDER.rungs} == set(TRANSITIONS.table)
