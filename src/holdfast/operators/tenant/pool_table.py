"""The pools of a Tenant as a table: their states, servers and floors, and how far a rollout or a drain is.

A Tenant in, rows of text out.  This module must not know where the Tenant comes from.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

Object = Mapping[str, Any]


def pool_rows(tenant: Object, age: Callable[[str | None], str]) -> Iterator[list[str]]:
    """A row for each pool, below the titles; a pool without a status has the name and the size of its spec."""
    yield ["POOL", "STATE", "READY", "UPDATED", "FLOOR", "REVISION", "LEAVING", "CHANGED"]
    name = (tenant.get("metadata") or {}).get("name", "")
    wanted = {f"{name}-{pool.get('name')}": pool for pool in (tenant.get("spec") or {}).get("pools") or ()}
    reported = {pool.get("ssName"): pool for pool in (tenant.get("status") or {}).get("pools") or ()}
    for set_name in dict.fromkeys((*wanted, *reported)):
        pool, servers = reported.get(set_name, {}), wanted.get(set_name, {}).get("servers", "?")
        yield [
            str(set_name).removeprefix(f"{name}-"),
            str(pool.get("state", "PoolNotCreated")).removeprefix("Pool"),
            f"{pool.get('readyReplicas', 0)}/{servers}",
            f"{pool.get('updatedReplicas', 0)}/{servers}",
            _floor(pool),
            _revision(str(set_name), pool),
            _leaving(pool),
            age(pool.get("lastUpdateTime")),
        ]


def _revision(set_name: str, pool: Object) -> str:
    """The revision of the servers, or the old and the new one of a rollout."""
    old, new = (
        str(pool.get(field) or "").removeprefix(f"{set_name}-") for field in ("currentRevision", "updateRevision")
    )
    return new or "<none>" if old == new else f"{old} -> {new}"


def _floor(pool: Object) -> str:
    """How many servers must be ready, and the fewest that were, if those were fewer."""
    floor = pool.get("floor")
    if floor is None:
        return "<none>"
    required, lowest = floor.get("required", 0), floor.get("lowest")
    return f"{required} (lowest {lowest})" if lowest is not None and lowest < required else str(required)


def _leaving(pool: Object) -> str:
    state, moved = pool.get("lifecycleState"), (pool.get("decommission") or {}).get("progress") or {}
    if state in (None, "Active"):
        return "no"
    objects = moved.get("objectsMigrated")
    return str(state) if objects is None else f"{state} ({objects:,} objects moved)"
