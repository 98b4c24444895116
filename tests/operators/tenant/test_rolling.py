"""The update strategy of StatefulSets, and which servers are stopped, for pools that are drawn as strings.

A pool has a letter for each server, from ordinal 0: `o` of the old revision, `n` of the new one, in capitals if
ready; `-` missing, `x` terminating.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest
from tests.operators.tenant.stories import pool, tenant

from holdfast.client.objects import Meta, Object
from holdfast.client.pods import Condition, Pod, PodSpec, PodStatus
from holdfast.kernel.outcomes import Again, Done
from holdfast.kinds.rustfs import PoolState, Tenant
from holdfast.meta import times
from holdfast.operators.tenant.observe import TENANTS, World
from holdfast.operators.tenant.pools import SetSpec, SetStatus, StatefulSet
from holdfast.operators.tenant.rolling import COMPLETE, STOPPED_BY_US, Rolling, roll
from holdfast.runtime.decisions import Delete, Evict

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
        spec=PodSpec(node_name=f"node-{ordinal}"),
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
    cordoned: str = "",
    **spec: Any,
) -> dict[str, Rolling]:
    specs = [pool(name, servers=len(servers)) for name, servers in pools.items()]
    made = tenant("store", *specs, **spec)
    if status is not None:
        made["status"] = status
    typed = msgspec.convert(made, Tenant)
    applied = strategy if strategy is not None else dict(STOPPED_BY_US)
    world = World(
        object=Object.of(TENANTS, made),
        tenant=typed,
        sets={
            name: stateful_set(servers, applied, observed=name != unobserved, complete=set(servers) <= set("N"))
            for name, servers in pools.items()
            if name != missing
        },
        pods={
            name: tuple(pod for index, letter in enumerate(servers) if (pod := server(letter, index, name)) is not None)
            for name, servers in pools.items()
        },
        cordoned=frozenset({cordoned} - {""}),
    )
    return roll(world, {each.name: each for each in typed.spec.pools}, renewed=renewed, now=NOW)


def stops(rolling: Rolling) -> list[str]:
    return sorted(stop.key.name.rpartition("-")[2] for stop in rolling.stops)


@pytest.mark.parametrize(
    ("servers", "stopped"),
    [
        # The highest ordinal first, and the next one when its successor is ready.
        ("OOOO", "3"),
        ("OOOx", ""),
        ("OOO-", ""),
        ("OOOn", ""),
        ("OOON", "2"),
        ("ONNN", "0"),
        # No ready server is stopped while another one is missing, whichever it is.
        ("xOOO", ""),
        ("-OOO", ""),
        ("-OON", ""),
        ("O-ON", ""),
        # Servers of the old revision that are not ready are stopped at once, wherever they are.
        ("OOOo", "3"),
        ("OoOO", "1"),
        ("oooo", "0123"),
        ("OnOO", ""),
        ("ONOO", "3"),
        ("ONON", "2"),
        # Servers of the new revision that are not ready are waited for.
        ("OOnN", ""),
    ],
)
def test_the_engine_names_the_servers_to_stop(servers: str, stopped: str) -> None:
    rolling = rolled({"a": servers})["a"]
    assert rolling.strategy == STOPPED_BY_US
    assert stops(rolling) == list(stopped)


def test_once_all_servers_are_new_the_stateful_set_may_report_its_rollout_as_complete() -> None:
    assert rolled({"a": "NNNN"})["a"].strategy == COMPLETE
    assert rolled({"a": "NNnN"})["a"].strategy == COMPLETE, "a server that is not ready is waited for by its controller"
    assert rolled({"a": "NN-N"})["a"].strategy == COMPLETE


@pytest.mark.parametrize("servers", ["OOOO", "OoOO", "oooo", "OOON"])
def test_no_server_is_stopped_before_its_stateful_set_has_observed_the_strategy(servers: str) -> None:
    rolling = rolled({"a": servers}, strategy=dict(COMPLETE))["a"]
    assert rolling.strategy == STOPPED_BY_US
    assert rolling.stops == ()
    unobserved = rolled({"a": servers}, unobserved="a")["a"]
    assert unobserved.strategy is None, "it is applied again when its controller has observed it"
    assert unobserved.stops == ()


def test_several_are_stopped_where_several_may_be_down() -> None:
    assert stops(rolled({"a": "OOOO"}, rollout={"maxUnavailable": 2})["a"]) == ["2", "3"]


def test_ready_servers_are_evicted_while_a_node_of_the_pool_is_cordoned() -> None:
    (stop,) = rolled({"a": "OOOO"}, cordoned="node-1")["a"].stops
    assert isinstance(stop, Evict)
    (stop,) = rolled({"a": "OOOo"}, cordoned="node-1")["a"].stops
    assert isinstance(stop, Delete), "a server that is not ready is no loss"
    (stop,) = rolled({"a": "OOOO"}, cordoned="node-9")["a"].stops
    assert isinstance(stop, Delete), "the node has no server of the pool"


def test_a_new_template_is_applied_together_with_a_strategy_that_stops_nothing() -> None:
    rolling = rolled({"a": "NNNN", "b": "NNNN"}, strategy=dict(COMPLETE), renewed=frozenset({"a"}))
    assert rolling["a"].strategy == STOPPED_BY_US
    assert rolling["b"].strategy == COMPLETE
    assert all(not each.stops for each in rolling.values())


def test_a_template_that_follows_another_one_midway_stops_nothing_before_it_is_observed() -> None:
    rolling = rolled({"a": "OOON"}, renewed=frozenset({"a"}))["a"]
    assert rolling.strategy == STOPPED_BY_US
    assert rolling.stops == ()


def test_no_server_is_stopped_before_the_stateful_sets_of_all_pools_are_observed() -> None:
    rolling = rolled({"a": "OOOO", "b": "OOOO"}, unobserved="b")
    assert all(not each.stops for each in rolling.values())


def test_while_a_pool_is_missing_the_others_are_left_as_they_are() -> None:
    rolling = rolled({"a": "OOOO", "b": "----"}, missing="b")
    assert rolling["a"].strategy is None
    assert rolling["a"].stops == ()
    assert rolling["b"].strategy == COMPLETE
    assert rolling["b"].state is PoolState.NOT_CREATED


def test_pools_are_replaced_in_lockstep() -> None:
    rolling = rolled({"a": "OOON", "b": "OOOO"})
    assert stops(rolling["a"]) == [], "it is one server ahead"
    assert stops(rolling["b"]) == ["3"]


def test_a_pool_that_is_complete_does_not_hold_the_others() -> None:
    rolling = rolled({"a": "NNNN", "b": "OOOO"})
    assert stops(rolling["b"]) == ["3"]
    assert rolling["a"].progressed_at is None


def test_no_server_is_stopped_while_the_rollout_is_paused() -> None:
    rolling = rolled({"a": "OoON"}, rollout={"paused": True})["a"]
    assert rolling.strategy == STOPPED_BY_US
    assert rolling.stops == ()


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
def test_a_rollout_fails_when_it_makes_no_progress_for_too_long(
    servers: str, said: dict[str, Any], state: PoolState
) -> None:
    rolling = rolled({"a": servers}, status={"pools": [said]})["a"]
    assert rolling.state is state
    assert isinstance(rolling.outcome, Again if state is PoolState.UPDATING else Done)


def test_the_deadline_is_looked_at_when_it_passes() -> None:
    rolling = rolled({"a": "OOOn"}, status={"pools": [before(9)]})["a"]
    assert isinstance(rolling.outcome, Again)
    assert rolling.outcome.after == timedelta(minutes=1)


def test_a_pool_that_waits_for_another_one_is_not_late() -> None:
    said = {"pools": [before(60, name="a"), before(1, name="b")]}
    rolling = rolled({"a": "OOON", "b": "OOOn"}, status=said)
    assert [each.state for each in rolling.values()] == [PoolState.UPDATING, PoolState.UPDATING]
    assert [each.outcome.after for each in rolling.values() if isinstance(each.outcome, Again)] == [
        timedelta(minutes=9)
    ] * 2


def test_a_paused_rollout_is_never_late() -> None:
    rolling = rolled({"a": "OOOn"}, status={"pools": [before(600)]}, rollout={"paused": True})["a"]
    assert rolling.state is PoolState.UPDATING
    assert rolling.progressed_at is None
