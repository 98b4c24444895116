"""What must be corrected before a Tenant is reconciled, found without a server; and currentState."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from tests.operators.tenant.stories import pool, tenant

from holdfast.client.objects import Object
from holdfast.kernel.conditions import Status, Verdict
from holdfast.kinds.rustfs import Tenant
from holdfast.operators.tenant import render
from holdfast.operators.tenant.observe import TENANTS, Sealed, World
from holdfast.operators.tenant.pools import StatefulSet
from holdfast.operators.tenant.reasons import TenantReason
from holdfast.operators.tenant.render import DEFAULTS
from holdfast.operators.tenant.rolling import COMPLETE
from holdfast.operators.tenant.status import current_state
from holdfast.operators.tenant.validate import findings


def world(made: dict[str, Any], **more: Any) -> World:
    return World(object=Object.of(TENANTS, made), tenant=msgspec.convert(made, Tenant), **more)


def found(made: dict[str, Any], **more: Any) -> list[tuple[str, str]]:
    return [(each.condition, each.reason.value) for each in findings(world(made, **more), DEFAULTS)]


@pytest.mark.parametrize("name", ["9lives", "a.b", "x" * 56, "Store"])
def test_a_name_that_services_cannot_have_is_found(name: str) -> None:
    assert ("SpecValid", "InvalidTenantName") in found(tenant(name))


@pytest.mark.parametrize(
    ("pools", "problem"),
    [
        ([pool("a"), pool("b")], False),
        ([pool("a"), pool("a")], True),
        ([pool("p" * 55, servers=10)], False),
        ([pool("p" * 55, servers=11)], True),
    ],
)
def test_pools_whose_servers_cannot_be_told_apart_or_named_are_found(pools: list[Any], problem: bool) -> None:
    assert (("SpecValid", "InvalidPoolSpec") in found(tenant("store", *pools))) is problem


def test_limits_that_are_none_are_found() -> None:
    assert found(tenant(rollout={"maxUnavailable": 2**31 - 1})) == []
    assert found(tenant("store", pool(progressDeadline="99999999h"))) == [("SpecValid", "InvalidRolloutSpec")]


def test_root_that_is_forbidden_by_the_tenant_and_asked_for_by_a_pool_is_found() -> None:
    made = tenant("store", pool(securityContext={"runAsUser": 0}), securityContext={"runAsNonRoot": True})
    assert found(made) == [("SpecValid", "InvalidWorkloadSecurityProfile")]


def test_the_most_fundamental_finding_is_first() -> None:
    made = tenant("9lives", image="mine", credsSecret={"name": "none"}, rpcSecret={"name": "none", "key": "k"})
    assert [reason for _, reason in found(made)] == [
        "InvalidTenantName",
        "WorkloadSecurityIncompatible",
        "CredentialSecretNotFound",
        "RpcSecretNotFound",
    ]


def test_a_secret_does_not_show_itself() -> None:
    sealed = Sealed({"secretkey": b"do not show"})
    assert "do not show" not in repr(world(tenant(), secrets={"root": sealed}))


# --- what runs already


def running(made: dict[str, Any], **changes: Any) -> StatefulSet:
    """The StatefulSet of the first pool, as it was made for another spec."""
    typed = msgspec.convert(made, Tenant)
    manifest = render.stateful_set(
        typed, typed.spec.pools[0], namespace="default", strategy=COMPLETE, settings=DEFAULTS
    )
    manifest["spec"] |= changes
    return msgspec.convert(manifest, StatefulSet)


def sized(storage: Any) -> dict[str, Any]:
    template = {"resources": {"requests": {"storage": storage}}}
    return pool(persistence={"volumesPerServer": 1, "volumeClaimTemplate": template})


def classed(name: str) -> dict[str, Any]:
    return pool(persistence={"volumesPerServer": 1, "volumeClaimTemplate": {"storageClassName": name}})


def moded(*modes: str) -> dict[str, Any]:
    return pool(persistence={"volumesPerServer": 1, "volumeClaimTemplate": {"accessModes": list(modes)}})


@pytest.mark.parametrize(
    ("was", "asked", "same"),
    [
        (pool(), pool(), True),
        (pool(servers=4), pool(servers=5), False),
        (pool(volumes=1), pool(volumes=2), False),
        (sized("1Gi"), sized("1024Mi"), True),
        (sized("1Gi"), sized(2**30), True),
        (sized("1e3"), sized("1k"), True),
        (sized("1Gi"), sized("2Gi"), False),
        (sized("10Gi"), pool(), True),
        (classed("a"), classed("a"), True),
        (classed("a"), classed("b"), False),
        (classed("a"), pool(), False),
        (pool(), classed("a"), False),
        (moded("ReadWriteOnce"), pool(), True),
        (moded("ReadWriteMany"), pool(), False),
        (pool(resources={"limits": {"cpu": "1"}}), pool(), True),
    ],
)
def test_the_shape_of_a_pool_never_changes(was: dict[str, Any], asked: dict[str, Any], same: bool) -> None:
    made = running(tenant("store", was))
    expected = [] if same else [("WorkloadsReady", "StatefulSetUpdateValidationFailed")]
    assert found(tenant("store", asked), sets={"pool-0": made}) == expected


def test_a_stateful_set_that_somebody_scaled_is_no_finding_but_repaired() -> None:
    assert found(tenant(), sets={"pool-0": running(tenant(), replicas=2)}) == []


@pytest.mark.parametrize(
    "changes",
    [
        {"serviceName": "other"},
        {"selector": {"matchLabels": {"app": "other"}}},
        {"podManagementPolicy": "OrderedReady"},
    ],
)
def test_a_stateful_set_that_was_made_otherwise_is_found(changes: dict[str, Any]) -> None:
    assert found(tenant(), sets={"pool-0": running(tenant(), **changes)}) == [
        ("WorkloadsReady", "StatefulSetUpdateValidationFailed")
    ]


# --- one word for all conditions

INVALID = f"False {TenantReason.INVALID_NAME}"


@pytest.mark.parametrize(
    ("said", "state"),
    [
        ({"Ready": "True", "Reconciling": "False", "Degraded": "False"}, "Ready"),
        ({"Ready": "True", "Degraded": "True"}, "Degraded"),
        ({"Ready": "True", "Reconciling": "True"}, "Reconciling"),
        ({"Ready": "False", "SpecValid": INVALID}, "Blocked"),
        ({"Reconciling": "True", "SpecValid": INVALID}, "Blocked"),
        ({"Reconciling": "True", "SpecValid": f"Unknown {TenantReason.INVALID_NAME}"}, "Reconciling"),
        ({"Reconciling": "True", "Degraded": "True"}, "Reconciling"),
        ({"Ready": "False", "Degraded": "True"}, "Degraded"),
        ({"Ready": "False"}, "NotReady"),
        ({"Ready": "Unknown"}, "Unknown"),
        ({}, "Unknown"),
    ],
)
def test_one_word_is_derived_from_the_conditions(said: dict[str, str], state: str) -> None:
    verdicts = {
        type: Verdict(Status(status), reason or "Any", "")
        for type, (status, _, reason) in ((type, each.partition(" ")) for type, each in said.items())
    }
    assert current_state(verdicts) == state
