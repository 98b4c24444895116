"""The contract over a whole rolling update: whatever fails once on the way, it ends the same."""

from __future__ import annotations

import pytest
from tests.cluster.rollouts import rolled_out

from holdfast.cluster.controllers import deployments, replicasets
from holdfast.testing.contract import FAULTS, Scenario, check, check_second_look

# How many times a ReplicaSet was resized on the way may differ; where it ends may not.
ROLLOUT = Scenario(
    name="a rolling update",
    controllers=(deployments.CONTROLLER, replicasets.CONTROLLER),
    story=rolled_out,
    patience=30,
    ignored=frozenset({"generation", "observedGeneration"}),
)


@pytest.mark.parametrize("faults", FAULTS)
def test_the_contract_holds(faults: str) -> None:
    check(ROLLOUT, faults)


def test_a_second_look_writes_nothing() -> None:
    check_second_look(ROLLOUT)
