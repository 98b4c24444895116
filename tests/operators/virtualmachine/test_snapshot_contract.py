"""The contract for snapshots: whatever fails once on the way, they end the same, on a provider that fails often too."""

from __future__ import annotations

import os

import pytest
from tests.operators.virtualmachine.snapshot_stories import gone, snapshot, taken
from tests.operators.virtualmachine.stories import KINDS, SNAPSHOTS, Fault, Hypervisors, created, operator, prepare

from holdfast.cluster.controllers.gc.collector import GarbageCollector
from holdfast.testing.clusters import Cluster
from holdfast.testing.contract import FAULTS, Scenario, check, check_deletion, check_second_look

WHOLE = bool(os.environ.get("HOLDFAST_WHOLE_CONTRACT"))
EVERY = 1 if WHOLE else 17


async def story(cluster: Cluster) -> None:
    """Three snapshots are taken; one is deleted, one expires and is deleted, one stays."""
    await prepare(cluster)
    await created(cluster)
    await taken(cluster, "stays")
    await taken(cluster, "goes")
    await cluster.create(SNAPSHOTS, snapshot("expires", retentionPolicy={"maxAge": "5s", "gracePeriod": "1s"}))
    await cluster.delete(SNAPSHOTS, "goes")
    await gone(cluster, "goes")
    await gone(cluster, "expires")


# A snapshot that is found again after a lost reply has no result of a task that could tell its size.
IGNORED = frozenset({"lastTaskRef", "id", "ips", "consoleURL", "name", "snapshotID", "size", "sizeBytes", "parent"})

SCENARIO = Scenario(
    name="snapshots that are taken, expire and are deleted",
    controllers=operator(Hypervisors()),
    story=story,
    kinds=KINDS,
    deleted=(SNAPSHOTS, "stays"),
    patience=45,
    ignored=IGNORED,
)

FLAKY = Scenario(
    name="the same, on a provider that fails a tenth of all calls",
    controllers=operator(
        Hypervisors(
            seed=11,
            faults=tuple(
                Fault(call=call, rate=rate, when=when)
                for call in ("create", "power", "snapshot", "delete_snapshot", "describe", "task")
                for when, rate in (("before", 0.05), ("after", 0.05), ("task", 0.1))
            ),
        )
    ),
    story=story,
    kinds=KINDS,
    deleted=(SNAPSHOTS, "stays"),
    patience=400,
    ignored=IGNORED,
)


@pytest.mark.parametrize("faults", FAULTS)
def test_the_contract_holds(faults: str) -> None:
    check(SCENARIO, faults, every=EVERY if faults.startswith(("dying", "losing", "any")) else 1 if WHOLE else 6)


@pytest.mark.parametrize("faults", FAULTS if WHOLE else ("dying with any write",))
def test_the_contract_holds_on_a_provider_that_fails_a_tenth_of_all_calls(faults: str) -> None:
    check(FLAKY, faults, every=EVERY)


def test_a_second_look_writes_nothing() -> None:
    check_second_look(SCENARIO)


def test_nothing_is_left_of_a_snapshot_that_is_deleted() -> None:
    check_deletion(SCENARIO, components=lambda: (GarbageCollector(),))
