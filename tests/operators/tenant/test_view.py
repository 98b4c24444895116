"""The rollout of a Tenant as it is shown: what each status comes to, the whole on a screen, and its verbs."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from holdfast.client.resources import PODS, STATEFUL_SETS
from holdfast.operators.rollouts import Already, Answer, Case, Change, Observed, Refusal
from holdfast.operators.tenant import view as rollout_tenants
from holdfast.operators.tenant.observe import TENANTS as RESOURCE
from holdfast.operators.tenant.render import RESTARTED_AT
from holdfast.operators.tenant.verbs import ROLLOUT
from holdfast.runtime.controllers import PAUSED
from holdfast.testing.snapshots import Snapshot
from holdfast.views import rollout_screens, rollouts, spans
from holdfast.views.rollouts import RolloutState, Standing

NOW = datetime(2025, 1, 1, 12, tzinfo=UTC)
NOON = "2025-01-01T12:00:00Z"
OLD, NEW = "rustfs/rustfs:1.0.0-beta.10", "rustfs/rustfs:1.0.0-beta.11"


def ago(seconds: int) -> str:
    return (NOW - timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%SZ")


def pool_status(state: str = "PoolRolloutComplete", **fields: Any) -> dict[str, Any]:
    return {"ssName": "media-pool-0", "state": state, **fields}


def tenant(
    state: str = "Ready",
    reason: str = "ReconcileSucceeded",
    *,
    pool: dict[str, Any] | None = None,
    annotations: dict[str, str] | None = None,
    rollout: dict[str, Any] | None = None,
    observed: int = 3,
) -> dict[str, Any]:
    ready = "True" if state == "Ready" else "False"
    condition = {
        "type": "Ready",
        "status": ready,
        "reason": reason,
        "message": "it says so",
        "lastTransitionTime": NOON,
    }
    metadata = {
        "name": "media",
        "namespace": "default",
        "uid": "tenant",
        "generation": 3,
        "annotations": annotations or {},
    }
    return {
        "apiVersion": "rustfs.com/v1alpha1",
        "kind": "Tenant",
        "metadata": metadata,
        "spec": {
            "image": NEW,
            "pools": [{"name": "pool-0", "servers": 4, "persistence": {"volumesPerServer": 2}}],
            **({} if rollout is None else {"rollout": rollout}),
        },
        "status": {
            "observedGeneration": observed,
            "currentState": state,
            "availableReplicas": 4,
            "pools": [pool_status() if pool is None else pool],
            "conditions": [condition],
        },
    }


def stateful_set(
    *,
    image: str = NEW,
    current: str = "new",
    updated: int = 4,
    ready: int = 4,
    strategy: str = "RollingUpdate",
    observed: int = 7,
) -> dict[str, Any]:
    return {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {
            "name": "media-pool-0",
            "namespace": "default",
            "uid": "pool-0",
            "generation": 7,
            "labels": {"rustfs.tenant": "media", "rustfs.pool": "pool-0"},
            "ownerReferences": [{"kind": "Tenant", "name": "media", "uid": "tenant", "controller": True}],
        },
        "spec": {
            "replicas": 4,
            "updateStrategy": {"type": strategy},
            "template": {"spec": {"containers": [{"name": "rustfs", "image": image}]}},
        },
        "status": {
            "observedGeneration": observed,
            "replicas": 4,
            "readyReplicas": ready,
            "currentReplicas": 4 if current == "new" else 4 - updated,
            "updatedReplicas": updated,
            "currentRevision": f"media-pool-0-{current}",
            "updateRevision": "media-pool-0-new",
        },
    }


def server(ordinal: int, revision: str, *, ready: bool = True, age: int = 60) -> dict[str, Any]:
    name, is_ready = f"media-pool-0-{ordinal}", "True" if ready else "False"
    return {
        "metadata": {
            "name": name,
            "namespace": "default",
            "uid": name,
            "creationTimestamp": ago(age),
            "labels": {"rustfs.tenant": "media", "controller-revision-hash": f"media-pool-0-{revision}"},
            "ownerReferences": [{"kind": "StatefulSet", "name": "media-pool-0", "uid": "pool-0", "controller": True}],
        },
        "spec": {"nodeName": f"node-{ordinal}", "containers": [{"image": NEW if revision == "new" else OLD}]},
        "status": {
            "phase": "Running",
            "conditions": [{"type": "Ready", "status": is_ready, "lastTransitionTime": ago(age)}],
            "containerStatuses": [{"name": "rustfs", "ready": ready, "state": {"running": {"startedAt": ago(age)}}}],
        },
    }


def observed(wire: dict[str, Any], made: dict[str, Any] | None, *servers: dict[str, Any]) -> Observed:
    view = Snapshot(
        [*((STATEFUL_SETS, each) for each in (made,) if each is not None), *((PODS, each) for each in servers)]
    )
    return Observed(view.put(RESOURCE, wire), view)


def standing(wire: dict[str, Any], made: dict[str, Any] | None) -> Standing:
    return rollout_tenants.standing(observed(wire, made))


# What a status comes to.

UPDATING = tenant("Reconciling", "RolloutInProgress", pool=pool_status("PoolUpdating", lastProgressTime=ago(20)))

STATES: dict[str, tuple[dict[str, Any], dict[str, Any] | None, RolloutState]] = {
    "all are there": (tenant(), stateful_set(), RolloutState.COMPLETED),
    "not reconciled yet": (tenant(observed=2), stateful_set(), RolloutState.UNSEEN),
    "servers are replaced": (UPDATING, stateful_set(current="old", updated=1), RolloutState.UNDER_WAY),
    "its image was just changed": (tenant(), stateful_set(image=OLD), RolloutState.UNDER_WAY),
    "the StatefulSet has not looked at it": (tenant(), stateful_set(observed=6), RolloutState.UNDER_WAY),
    "the StatefulSet has just begun": (tenant(), stateful_set(current="old", updated=0), RolloutState.UNDER_WAY),
    "a restart has not reached it": (tenant(annotations={RESTARTED_AT: NOON}), stateful_set(), RolloutState.UNDER_WAY),
    "there is no pool yet": (tenant("Reconciling", "RolloutInProgress"), None, RolloutState.UNDER_WAY),
    "servers are ill": (tenant("Degraded", "PoolDegraded"), stateful_set(ready=3), RolloutState.UNDER_WAY),
    "paused by a user": (
        tenant("Reconciling", "RolloutPaused"),
        stateful_set(current="old", updated=1),
        RolloutState.WAITING,
    ),
    "it is late": (
        tenant("Degraded", "RolloutFailed", pool=pool_status("PoolRolloutFailed")),
        stateful_set(current="old", updated=1),
        RolloutState.FAILED,
    ),
    "it is late, and a server says why": (
        tenant("Degraded", "ImagePullFailed", pool=pool_status("PoolRolloutFailed")),
        stateful_set(current="old", updated=1),
        RolloutState.FAILED,
    ),
    "it cannot be had": (tenant("Blocked", "CredentialSecretNotFound"), stateful_set(), RolloutState.BLOCKED),
    "operators leave it alone": (
        tenant("Reconciling", "RolloutInProgress", annotations={PAUSED: "true"}),
        stateful_set(current="old", updated=1),
        RolloutState.WAITING,
    ),
}


@pytest.mark.parametrize("case", STATES)
def test_every_status_has_one_state(case: str) -> None:
    wire, made, state = STATES[case]
    assert standing(wire, made).state is state


def test_a_pause_says_how_it_ends() -> None:
    assert standing(tenant("Reconciling", "RolloutPaused"), stateful_set()).verb == "resume"


def test_programs_are_told_of_each_pool() -> None:
    shown = rollouts.to_json(standing(UPDATING, stateful_set(current="old", updated=1, ready=3, strategy="OnDelete")))
    (floor,) = shown["floors"]
    assert (floor["name"], floor["ready"], floor["desired"], floor["floor"]) == ("media-pool-0", 3, 4, 3)
    assert shown["pools"] == [
        {
            "name": "pool-0",
            "state": "PoolUpdating",
            "updateStrategy": "OnDelete",
            "readyReplicas": 3,
            "updatedReplicas": 1,
        }
    ]
    assert (shown["currentRevision"], shown["updateRevision"]) == ("old", "new")
    assert shown["lateAt"] == "2025-01-01T12:09:40Z"


def test_the_fewest_servers_that_were_ready_are_shown_with_the_floor() -> None:
    reported = pool_status(floor={"required": 3, "available": 4, "most": 4, "lowest": 2})
    (floor,) = standing(tenant(pool=reported), stateful_set()).floors
    assert (floor.floor, floor.lowest) == (3, 2)


def test_the_floor_of_a_pool_is_the_one_that_the_operator_reports_with_the_exception() -> None:
    reported = pool_status(floor={"required": 3, "available": 3, "most": 4, "lowest": 3, "lowered": 1})
    (floor,) = standing(tenant(pool=reported), stateful_set()).floors
    assert floor.words == "media-pool-0 3 ready (floor 3, lowered by 1)"


def test_a_floor_that_is_lowered_is_a_warning() -> None:
    wire = tenant()
    lowered = {"type": "FloorLowered", "status": "True", "reason": "FloorLowered", "message": "pool pool-0: one down"}
    wire["status"]["conditions"].append(lowered | {"lastTransitionTime": NOON})
    assert standing(wire, stateful_set()).warnings == ("pool pool-0: one down",)


def test_limits_that_cannot_be_had_break_no_screen() -> None:
    wire = tenant("Blocked", "InvalidRolloutSpec", rollout={"maxUnavailable": 2_000_000})
    (floor,) = standing(wire, stateful_set()).floors
    assert floor.floor == 0


def test_the_end_counts_servers() -> None:
    shown = standing(tenant(), stateful_set())
    assert rollouts.ending(shown) == "media: revision new is rolled out: 4 of 4 servers ready"


# The whole.


def test_a_screen_of_80_columns() -> None:
    whole = observed(
        UPDATING,
        stateful_set(current="old", updated=2, ready=3, strategy="OnDelete"),
        server(0, "old", age=4_000),
        server(1, "old", age=4_000),
        server(2, "new", ready=False, age=4),
        server(3, "new", age=20),
    )
    lines = rollout_screens.screen(rollout_tenants.tree(whole, NOW), width=80, called="tenant/media")
    assert (
        "\n" + spans.text(lines) + "\n"
        == """
 … media  RollingUpdate  …/rustfs:1.0.0-beta.10 → :1.0.0-beta.11    Reconciling
   old → new

 media-pool-0  ████████████████████████████████┃░░░░░░░░░░░  3 of 4   floor 3 ┃
 updated       ███████████░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░  1 of 4 available

 … RolloutInProgress   deadline in 9m40s
   it says so

 ▾ pool-0  Updating  floor 3  …/rustfs:1.0.0-beta.10 →…  ●○■■  3 of 4 available
   ○ …pool-0-2  0/1  node-2    4s  runs, and its readiness probe has not succe…
   ■ …pool-0-0  1/1  node-0  1h6m
   ■ …pool-0-1  1/1  node-1  1h6m
   ● …pool-0-3  1/1  node-3   20s
"""
    )


def test_a_pool_that_does_not_exist_yet_is_shown_too() -> None:
    (branch,) = rollout_tenants.tree(
        observed(tenant("Reconciling", "RolloutInProgress", pool=pool_status("PoolNotCreated")), None), NOW
    ).branches
    assert (branch.name, branch.marks, branch.note) == ("pool-0", ("NotCreated",), "floor 3")


# The verbs.


def answer(verb: str, wire: dict[str, Any]) -> Answer:
    return ROLLOUT.answer(verb, Case(object=observed(wire, None).object, now=NOW))


HELD = tenant(rollout={"paused": True})

CHANGES: dict[str, tuple[str, dict[str, Any], dict[str, Any], tuple[str, ...]]] = {
    "pause": ("pause", UPDATING, {"spec": {"rollout": {"paused": True}}}, ()),
    "pause what is complete": (
        "pause",
        tenant(),
        {"spec": {"rollout": {"paused": True}}},
        ("no rollout is under way; the next one starts when it is resumed",),
    ),
    "resume": ("resume", HELD, {"spec": {"rollout": {"paused": None}}}, ()),
    "restart": ("restart", tenant(), {"metadata": {"annotations": {RESTARTED_AT: NOON}}}, ()),
    "restart what is paused": (
        "restart",
        HELD,
        {"metadata": {"annotations": {RESTARTED_AT: NOON}}},
        ("it is paused, so no server is restarted before it is resumed",),
    ),
}


@pytest.mark.parametrize("case", CHANGES)
def test_a_verb_sets_what_any_client_could_set(case: str) -> None:
    verb, wire, patch, notes = CHANGES[case]
    given = answer(verb, wire)
    assert isinstance(given, Change)
    assert (given.patch, given.notes) == (patch, notes)


@pytest.mark.parametrize(
    ("verb", "wire"),
    [("pause", HELD), ("resume", tenant()), ("restart", tenant(annotations={RESTARTED_AT: NOON}))],
)
def test_a_verb_whose_wish_is_fulfilled_changes_nothing(verb: str, wire: dict[str, Any]) -> None:
    assert isinstance(answer(verb, wire), Already)


@pytest.mark.parametrize("verb", ["promote", "abort", "retry", "undo"])
def test_what_a_tenant_cannot_do_is_refused_with_a_way(verb: str) -> None:
    given = answer(verb, UPDATING)
    assert isinstance(given, Refusal)
    assert given.hint
