"""The contract: whatever fails once on the way, a migration ends the same, also where the providers fail many calls."""

from __future__ import annotations

import os

import pytest
from tests.operators.virtualmachine.migration_stories import Pair, in_phase, migration, prepare
from tests.operators.virtualmachine.stories import KINDS, MIGRATIONS, Fault, created, operator, reaches

from holdfast.cluster.controllers.gc.collector import GarbageCollector
from holdfast.testing.clusters import Cluster
from holdfast.testing.contract import FAULTS, Scenario, check, check_deletion, check_second_look

WHOLE = bool(os.environ.get("HOLDFAST_WHOLE_CONTRACT"))
EVERY = 1 if WHOLE else 61
OFF, RUNS = {"powerOffBeforeMigration": True}, {"powerOn": True}


async def story(cluster: Cluster) -> None:
    """A machine moves; what is left of the migration is removed."""
    await prepare(cluster)
    await created(cluster)
    policy = {"maxRetries": 10, "retryDelay": "1s", "backoffMultiplier": 1}
    await cluster.create(MIGRATIONS, migration(source=OFF, target=RUNS, options={"retryPolicy": policy}))
    await in_phase(cluster, "Ready")
    await reaches(cluster, "Running", "moved")
    await reaches(cluster, "Stopped")


IGNORED = frozenset(
    {
        "lastTaskRef", "id", "ips", "consoleURL", "name", "exportID", "importID", "snapshotID", "targetVMID", "diskID",
        "targetDiskID", "sourceDiskID", "targetPath", "path", "snapshotRef", "sourceHold", "heldFor", "provider",
        "virtrigaud.io/migration-hold", "retryCount", "lastRetryTime",
    }
)  # fmt: skip

SCENARIO = Scenario(
    name="a machine that is migrated",
    controllers=operator(Pair()),
    story=story,
    kinds=KINDS,
    deleted=(MIGRATIONS, "move"),
    patience=50,
    ignored=IGNORED,
)

FLAKY = Scenario(
    name="the same, between providers that fail a tenth of all calls",
    controllers=operator(
        Pair(
            seed=5,
            faults=tuple(
                Fault(call=call, rate=rate, when=when)
                for call in ("create", "power", "snapshot", "export_disk", "import_disk", "describe", "disk", "task")
                for when, rate in (("before", 0.05), ("after", 0.05), ("task", 0.1))
            ),
        )
    ),
    story=story,
    kinds=KINDS,
    deleted=(MIGRATIONS, "move"),
    patience=400,
    ignored=IGNORED,
)


@pytest.mark.parametrize("faults", FAULTS if WHOLE else ("losing any change", "any write refused", "stale reads"))
def test_the_contract_holds(faults: str) -> None:
    check(SCENARIO, faults, every=EVERY)


@pytest.mark.skipif(not WHOLE, reason="HOLDFAST_WHOLE_CONTRACT is not set")
def test_the_contract_holds_between_providers_that_fail_a_tenth_of_all_calls() -> None:
    check(FLAKY, "dying with any write", every=7)


def test_a_second_look_writes_nothing() -> None:
    check_second_look(SCENARIO)


def test_nothing_is_left_of_a_migration_that_is_deleted_but_its_machine() -> None:
    check_deletion(SCENARIO, components=lambda: (GarbageCollector(),))
