"""Every operator whose objects roll out keeps its bounds under mixed faults; `make torture` plays more rounds."""

from __future__ import annotations

import pytest
from tests.torture.rollouts import played, rolling, scenarios

SEED = 20250115


@pytest.mark.parametrize("name", rolling())
def test_no_bound_is_broken_while_replies_are_lost_changes_are_late_and_writes_are_refused(name: str) -> None:
    assert not played(name, scenarios()[name], rounds=1, seed=SEED)
