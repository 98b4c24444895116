"""The pools of a Tenant, as rows."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.operators.tenant.pool_table import pool_rows
from holdfast.operators.tenant.verbs import ROLLOUT
from holdfast.views.descriptions import Surroundings, describe


def tenant(*pools: dict[str, Any]) -> dict[str, Any]:
    return {
        "apiVersion": "rustfs.com/v1alpha1",
        "kind": "Tenant",
        "metadata": {"name": "media"},
        "spec": {"pools": [{"name": "a", "servers": 4}]},
        "status": {"currentState": "Ready", "pools": list(pools)},
    }


def row(pool: dict[str, Any]) -> list[str]:
    _, cells = pool_rows(tenant(pool), str)
    return cells


COMPLETE = {
    "ssName": "media-a",
    "state": "PoolRolloutComplete",
    "readyReplicas": 4,
    "updatedReplicas": 4,
    "currentRevision": "media-a-1",
    "updateRevision": "media-a-1",
    "floor": {"required": 3, "available": 4, "most": 4, "lowest": 3},
    "lastUpdateTime": "T1",
}
LEAVING = {"lifecycleState": "Decommissioning", "decommission": {"progress": {"objectsMigrated": 1200}}}


@pytest.mark.parametrize(
    ("pool", "cells"),
    [
        (COMPLETE, ["a", "RolloutComplete", "4/4", "4/4", "3", "1", "no", "T1"]),
        (
            {**COMPLETE, "state": "PoolUpdating", "updatedReplicas": 1, "updateRevision": "media-a-2"},
            ["a", "Updating", "4/4", "1/4", "3", "1 -> 2", "no", "T1"],
        ),
        (
            {**COMPLETE, **LEAVING},
            ["a", "RolloutComplete", "4/4", "4/4", "3", "1", "Decommissioning (1,200 objects moved)", "T1"],
        ),
        (
            {**COMPLETE, "floor": {"required": 3, "lowest": 1}},
            ["a", "RolloutComplete", "4/4", "4/4", "3 (lowest 1)", "1", "no", "T1"],
        ),
        (
            {**COMPLETE, "lifecycleState": "DecommissionFailed"},
            ["a", "RolloutComplete", "4/4", "4/4", "3", "1", "DecommissionFailed", "T1"],
        ),
    ],
)
def test_a_pool_is_a_row(pool: dict[str, Any], cells: list[str]) -> None:
    assert row(pool) == cells


def test_a_pool_without_a_status_has_the_name_of_its_spec() -> None:
    _, cells = pool_rows(tenant(), str)
    assert cells[:6] == ["a", "NotCreated", "0/4", "0/4", "<none>", "<none>"]


def test_a_pool_that_the_spec_no_longer_has_is_still_shown() -> None:
    rows = list(pool_rows(tenant(COMPLETE, {**COMPLETE, "ssName": "media-b"}), str))
    assert [each[0] for each in rows] == ["POOL", "a", "b"]
    assert rows[2][2] == "4/?"


def test_a_description_has_the_pools_as_a_table() -> None:
    lines = describe(tenant(COMPLETE), Surroundings(tables=ROLLOUT.tables), age=lambda since: since or "")
    at = lines.index("Pools:")
    assert lines[at + 1].split() == ["POOL", "STATE", "READY", "UPDATED", "FLOOR", "REVISION", "LEAVING", "CHANGED"]
    assert lines[at + 2].split() == ["a", "RolloutComplete", "4/4", "4/4", "3", "1", "no", "T1"]
    assert not any("ssName" in line for line in lines)
