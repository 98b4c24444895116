"""The lever: what a StatefulSet is told, and which servers are stopped, for pools drawn as strings.

A pool is a word for each server, from ordinal 0: `o` of the old revision, `n` of the new one, in capitals if ready;
`-` missing, `x` on its way out.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest
from tests.operators.tenant.stories import pool, tenant

from holdfast.client.objects import Meta, Object
from holdfast.client.pods import Condition, Pod, PodStatus
from holdfast.kernel.outcomes import Again, Done
from holdfast.kinds.rustfs import PoolState, Tenant
from holdfast.meta import times
from holdfast.operators.tenant.observe import TENANTS, World
from holdfast.operators.tenant.pools import SetSpec, SetStatus, StatefulSet
from holdfast.operators.tenant.rolling import ON_DELETE, Rolling, partitioned, roll

NOW = datetime(2030, 1, 1, 12, tzinfo=UTC)
STAMP = times.format(NOW - timedelta(hours=1))


def server(letter: str, ordinal: int, name: str) -> Pod | None:
    if letter == "-":
        return None
    revision = "new" if letter in "nN" else "old"
    ready = [Condition("Ready", "True", last_transition_time=STAMP)] if letter in "ONx" else []
    return Pod(
        metadata=Meta(
            name=f"store-{name}-{ordinal}",
            namespace="default",
            uid=f"{name}-{ordinal}",
            creation_timestamp=STAMP,
            deletion_timestamp=STAMP if letter == "x" else None,
            labels={"controller-revision-hash": revision},
        ),
        status=PodStatus(phase="Running", conditions=tuple(ready)),
    )


def stateful_set(
    servers: str, strategy: dict[str, Any], *, observed: bool = True, complete: bool = False
) -> StatefulSet:
    return StatefulSet(
        metadata=Meta(generation=3),
        spec=msgspec.convert({"replicas": len(servers), "updateStrategy": strategy}, SetSpec),
        status=SetStatus(
            observed_generation=3 if observed else 2,
            replicas=sum(letter != "-" for letter in servers),
            ready_replicas=sum(letter in "ON" for letter in servers),
            updated_replicas=sum(letter in "nN" for letter in servers),
            current_replicas=len(servers) if complete else sum(letter in "oO" for letter in servers),
            current_revision="new" if complete else "old",
            update_revision="new",
        ),
    )


def rolled(
    pools: dict[str, str],
    *,
    strategy: dict[str, Any] | None = None,
    unobserved: str = "",
    missing: str = "",
    renewed: frozenset[str] = frozenset(),
    status: dict[str, Any] | None = None,
    **spec: Any,
) -> dict[str, Rolling]:
    specs = [pool(name, servers=len(servers)) for name, servers in pools.items()]
    made = tenant("store", *specs, **spec)
    if status is not None:
        made["status"] = status
    typed = msgspec.convert(made, Tenant)
    told = strategy if strategy is not None else partitioned(4)
    world = World(
        object=Object.of(TENANTS, made),
        tenant=typed,
        sets={
            name: stateful_set(servers, told, observed=name != unobserved, complete=set(servers) <= set("N"))
            for name, servers in pools.items()
            if name != missing
        },
        pods={
            name: tuple(pod for index, letter in enumerate(servers) if (pod := server(letter, index, name)) is not None)
            for name, servers in pools.items()
        },
    )
    return roll(world, {each.name: each for each in typed.spec.pools}, renewed=renewed, now=NOW)


def stops(rolling: Rolling) -> list[str]:
    return sorted(stop.key.name.rpartition("-")[2] for stop in rolling.stops)


@pytest.mark.parametrize(
    ("servers", "told", "wanted", "stopped"),
    [
        # The highest is released, and left to the StatefulSet's controller.
        ("OOOO", partitioned(4), partitioned(3), ""),
        ("OOOO", partitioned(3), partitioned(3), ""),
        # What was released stays so while it goes and comes.
        ("OOOx", partitioned(3), partitioned(3), ""),
        ("OOO-", partitioned(3), partitioned(3), ""),
        ("OOOn", partitioned(3), partitioned(3), ""),
        # The next one follows when the one before it is ready.
        ("OOON", partitioned(3), partitioned(2), ""),
        ("ONNN", partitioned(1), partitioned(0), ""),
        ("NNNN", partitioned(0), partitioned(0), ""),
        # What was released and may no longer be stopped is taken back.
        ("xOOO", partitioned(3), partitioned(4), ""),
        ("-OOO", partitioned(3), partitioned(4), ""),
        ("-OON", partitioned(3), partitioned(3), ""),
        # A missing server that was not released comes back as it was.
        ("O-ON", partitioned(3), partitioned(3), ""),
        # A sick one of the old revision is replaced, not waited for: by the partition where that reaches it,
        ("OOOo", partitioned(4), partitioned(3), ""),
        ("OOOo", partitioned(3), partitioned(3), "3"),
        ("oooo", partitioned(0), partitioned(0), "0123"),
        # and otherwise apart, until its successor is there.
        ("OoOO", partitioned(4), ON_DELETE, ""),
        ("OoOO", ON_DELETE, ON_DELETE, "1"),
        ("OxOO", ON_DELETE, ON_DELETE, ""),
        ("O-OO", ON_DELETE, ON_DELETE, ""),
        ("OnOO", ON_DELETE, partitioned(4), ""),
        ("ONOO", partitioned(4), partitioned(3), ""),
        ("ONON", partitioned(3), partitioned(1), ""),
        # Sick ones of the new revision are waited for.
        ("OOnN", partitioned(2), partitioned(2), ""),
    ],
)
def test_the_lever_follows_the_servers(
    servers: str, told: dict[str, Any], wanted: dict[str, Any], stopped: str
) -> None:
    rolling = rolled({"a": servers}, strategy=told)["a"]
    assert rolling.strategy == wanted
    assert stops(rolling) == list(stopped)


def test_several_are_stopped_by_us_where_several_may_be_down() -> None:
    wish = {"maxUnavailable": 2}
    assert rolled({"a": "OOOO"}, rollout=wish)["a"].strategy == partitioned(2)
    assert stops(rolled({"a": "OOOO"}, strategy=partitioned(2), rollout=wish)["a"]) == ["2", "3"]


def test_a_new_template_is_withheld_from_every_server() -> None:
    rolling = rolled({"a": "NNNN", "b": "NNNN"}, strategy=partitioned(0), renewed=frozenset({"a"}))
    assert rolling["a"].strategy == partitioned(4)
    assert rolling["b"].strategy == partitioned(0)


def test_nothing_is_released_before_all_pools_are_known_as_they_are() -> None:
    rolling = rolled({"a": "OOOO", "b": "OOOO"}, unobserved="b")
    assert [each.strategy for each in rolling.values()] == [partitioned(4), partitioned(4)]
    assert all(not each.stops for each in rolling.values())


def test_while_a_pool_is_missing_the_others_are_left_as_they_are() -> None:
    rolling = rolled({"a": "OOOO", "b": "----"}, missing="b")
    assert rolling["a"].strategy is None
    assert rolling["b"].strategy == partitioned(0)
    assert rolling["b"].state is PoolState.NOT_CREATED


def test_pools_go_in_lockstep() -> None:
    rolling = rolled({"a": "OOON", "b": "OOOO"}, strategy=partitioned(3))
    assert rolling["a"].strategy == partitioned(3), "it is one ahead"
    assert rolling["b"].strategy == partitioned(3)


def test_a_pool_that_is_complete_holds_nobody_up() -> None:
    rolling = rolled({"a": "NNNN", "b": "OOOO"})
    assert rolling["b"].strategy == partitioned(3)
    assert rolling["a"].progressed_at is None


# --- deadlines


def before(minutes: int, *, updated: int = 1, name: str = "a") -> dict[str, Any]:
    moment = times.format(NOW - timedelta(minutes=minutes))
    return {
        "ssName": f"store-{name}",
        "state": "PoolUpdating",
        "updatedReplicas": updated,
        "updateRevision": "new",
        "lastProgressTime": moment,
        "lastUpdateTime": moment,
    }


@pytest.mark.parametrize(
    ("servers", "said", "state"),
    [
        ("OOOn", before(9), PoolState.UPDATING),
        ("OOOn", before(10), PoolState.ROLLOUT_FAILED),
        ("OOOn", before(60), PoolState.ROLLOUT_FAILED),
        ("OOnN", before(60), PoolState.UPDATING),
        ("OOOn", before(60, updated=2), PoolState.ROLLOUT_FAILED),
    ],
)
def test_a_rollout_fails_when_it_did_not_get_further_for_too_long(
    servers: str, said: dict[str, Any], state: PoolState
) -> None:
    rolling = rolled({"a": servers}, strategy=partitioned(3), status={"pools": [said]})["a"]
    assert rolling.state is state
    assert isinstance(rolling.outcome, Again if state is PoolState.UPDATING else Done)


def test_the_deadline_is_looked_at_when_it_passes() -> None:
    rolling = rolled({"a": "OOOn"}, strategy=partitioned(3), status={"pools": [before(9)]})["a"]
    assert isinstance(rolling.outcome, Again)
    assert rolling.outcome.after == timedelta(minutes=1)


def test_who_waits_for_another_pool_is_not_late() -> None:
    said = {"pools": [before(60, name="a"), before(1, name="b")]}
    rolling = rolled({"a": "OOON", "b": "OOOn"}, strategy=partitioned(3), status=said)
    assert [each.state for each in rolling.values()] == [PoolState.UPDATING, PoolState.UPDATING]
    assert [each.outcome.after for each in rolling.values() if isinstance(each.outcome, Again)] == [
        timedelta(minutes=9)
    ] * 2


def test_a_paused_rollout_is_never_late() -> None:
    rolling = rolled({"a": "OOOn"}, strategy=partitioned(3), status={"pools": [before(600)]}, rollout={"paused": True})[
        "a"
    ]
    assert rolling.state is PoolState.UPDATING
    assert rolling.progressed_at is None
