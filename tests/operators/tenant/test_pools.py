"""The state of a pool, over every combination of what its StatefulSet can report."""

from __future__ import annotations

from itertools import product

import pytest

from holdfast.client.objects import Meta
from holdfast.kinds.rustfs.pools import PoolState
from holdfast.operators.tenant.pools import TRANSITIONS, SetSpec, SetStatus, StatefulSet, state_of

UP_TO = range(5)
REVISIONS = {"same": ("a", "a"), "different": ("a", "b"), "absent": ("", ""), "one": ("", "b")}
GENERATIONS = {"current": (2, 2), "ahead": (2, 3), "older": (2, 1), "never": (2, 0)}


def stateful_set(
    desired: int | None, *, ready: int, updated: int, current: int, revisions: str = "same", generation: str = "current"
) -> StatefulSet:
    asked, observed = GENERATIONS[generation]
    old, new = REVISIONS[revisions]
    return StatefulSet(
        metadata=Meta(name="t-p", generation=asked),
        spec=SetSpec(replicas=desired),
        status=SetStatus(
            observed_generation=observed,
            replicas=max(ready, updated, current),
            ready_replicas=ready,
            updated_replicas=updated,
            current_replicas=current,
            current_revision=old,
            update_revision=new,
        ),
    )


def snippet_of_the_seed(desired: int, ready: int, updated: int, current: int) -> PoolState:
    """The five branches of the seed, as they stand there."""
    if desired == 0:
        return PoolState.NOT_CREATED
    if ready == desired and updated == desired:
        return PoolState.ROLLOUT_COMPLETE
    if updated < desired or current < desired:
        return PoolState.UPDATING
    if ready < desired:
        return PoolState.DEGRADED
    return PoolState.INITIALIZED


def test_every_combination_has_the_state_that_the_rules_give() -> None:
    seen: set[PoolState] = set()
    for desired, ready, updated, current in product(UP_TO, repeat=4):
        for revisions, generation in product(REVISIONS, GENERATIONS):
            found = stateful_set(
                desired, ready=ready, updated=updated, current=current, revisions=revisions, generation=generation
            )
            if desired == 0:
                expected = PoolState.NOT_CREATED
            elif generation == "never":
                expected = PoolState.CREATED
            elif generation == "older" or revisions in ("different", "one"):
                expected = PoolState.UPDATING
            else:
                expected = snippet_of_the_seed(desired, ready, updated, current)
            assert state_of(found) is expected, found
            seen.add(expected)
            late = PoolState.ROLLOUT_FAILED if expected is PoolState.UPDATING else expected
            assert state_of(found, overdue=True) is late, found
            seen.add(late)
    assert seen == set(PoolState), "all seven can be reached"


def test_a_pool_without_a_stateful_set_is_not_created() -> None:
    assert state_of(None) is PoolState.NOT_CREATED


def test_a_stateful_set_that_does_not_say_how_many_it_wants_wants_what_it_has() -> None:
    assert state_of(stateful_set(None, ready=3, updated=3, current=3)) is PoolState.ROLLOUT_COMPLETE
    assert state_of(stateful_set(None, ready=0, updated=0, current=0)) is PoolState.NOT_CREATED


@pytest.mark.parametrize("state", PoolState)
def test_every_state_stands_in_the_diagram(state: PoolState) -> None:
    assert state.value in TRANSITIONS.table


def test_a_rollout_fails_only_after_it_has_run() -> None:
    before = {phase for phase, following in TRANSITIONS.table.items() if "PoolRolloutFailed" in following}
    assert before == {"PoolUpdating"}
