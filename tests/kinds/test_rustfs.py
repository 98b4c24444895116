"""The Tenant kind: the seed's status, the spellings of pool states, what is refused and where."""

from __future__ import annotations

from enum import Enum
from typing import Any

import msgspec
import pytest
from tests.kinds.structural import crd_problems
from tests.kinds.values import rules_of, value_at, with_value, written

from holdfast.kinds import checks, rustfs
from holdfast.kinds.crds import crd_of
from holdfast.kinds.rustfs import PoolState, pools, tenants

TENANT = tenants.KIND


def tenant(**status: Any) -> dict[str, Any]:
    """The tenant of the seed: one pool of four servers."""
    doc: dict[str, Any] = {
        "apiVersion": "rustfs.com/v1alpha1",
        "kind": "Tenant",
        "metadata": {"name": "dev-minimal"},
        "spec": {"pools": [{"name": "dev-pool", "servers": 4, "persistence": {"volumesPerServer": 2}}]},
    }
    return {**doc, "status": status} if status else doc


# --- the status of the seed ----------------------------------------------------

REVISION = "dev-minimal-dev-pool-abc123"
SEED_POOL = {
    "ssName": "dev-minimal-dev-pool",
    "state": "PoolRolloutComplete",
    **dict.fromkeys(("replicas", "readyReplicas", "currentReplicas", "updatedReplicas"), 4),
    **dict.fromkeys(("currentRevision", "updateRevision"), REVISION),
    "lastUpdateTime": "2025-01-15T10:30:00Z",
}
SEED_STATUS = {"currentState": "Ready", "availableReplicas": 4, "pools": [SEED_POOL]}


def test_the_status_of_the_seed_is_read_whole_and_written_back_the_same() -> None:
    doc = tenant(**SEED_STATUS)
    assert checks.problems(TENANT, doc) == ()
    assert written(msgspec.convert(doc, rustfs.Tenant)) == doc


def test_the_pool_of_the_seed_has_its_values() -> None:
    pool = msgspec.convert(SEED_POOL, pools.PoolStatus)
    assert pool == pools.PoolStatus(
        ss_name="dev-minimal-dev-pool",
        state=PoolState.ROLLOUT_COMPLETE,
        replicas=4,
        ready_replicas=4,
        current_replicas=4,
        updated_replicas=4,
        current_revision=REVISION,
        update_revision=REVISION,
        last_update_time="2025-01-15T10:30:00Z",
    )


STATES = ["Created", "NotCreated", "Initialized", "Updating", "RolloutComplete", "RolloutFailed", "Degraded"]


def test_a_pool_has_the_seven_states_of_the_seed() -> None:
    assert [state.value for state in PoolState] == [f"Pool{name}" for name in STATES]


@pytest.mark.parametrize("name", STATES)
@pytest.mark.parametrize("prefix", ["Pool", ""], ids=["prefixed", "bare"])
def test_a_pool_state_is_read_with_or_without_its_prefix_and_written_with_it(prefix: str, name: str) -> None:
    doc = tenant(pools=[{"ssName": "dev-minimal-dev-pool", "state": f"{prefix}{name}"}])
    assert checks.problems(TENANT, doc) == ()
    read = msgspec.json.decode(msgspec.json.encode(doc), type=rustfs.Tenant)
    assert written(read)["status"]["pools"][0]["state"] == f"Pool{name}"


@pytest.mark.parametrize("state", ["Ready", "poolupdating", "PoolPoolUpdating", ""])
def test_a_pool_state_in_no_known_spelling_is_refused_at_its_path(state: str) -> None:
    doc = tenant(pools=[{"ssName": "dev-minimal-dev-pool", "state": state}])
    assert [problem.path for problem in checks.problems(TENANT, doc)] == ["status.pools[0].state"]
    with pytest.raises(msgspec.ValidationError, match=r"`\$\.status\.pools\[0\]\.state`"):
        msgspec.convert(doc, rustfs.Tenant)


def test_a_state_that_an_older_operator_left_behind_is_still_read() -> None:
    assert checks.problems(TENANT, tenant(currentState="Provisioning IO Service")) == ()


def test_a_status_with_every_field_survives_a_round_trip() -> None:
    time = "2025-01-15T10:30:00Z"
    item = {"name": "r", "state": "Ready", "reason": "Applied", "lastAppliedGeneration": 2}
    pool = {
        **SEED_POOL,
        "name": "dev-pool",
        "workloadState": "PoolRolloutComplete",
        "lifecycleState": "Decommissioned",
        "lastProgressTime": time,
        "floor": {"required": 3, "available": 4, "most": 4, "lowest": 3, "lowered": 1},
        "decommission": {
            "requestId": "1",
            "rustfsPoolId": "0",
            "endpointSetHash": "h",
            "phase": "Complete",
            "startedAt": time,
            "lastPollTime": time,
            "completedAt": time,
            "progress": {"objectsMigrated": 9, "bytesMigrated": 99, "objectsFailed": 0, "bytesFailed": 0},
            "cleanup": {"state": "PvcRetained", "statefulSetDeletedAt": time, "pvcRetentionPolicy": "Retain"},
            "lastError": {"reason": "R", "message": "m"},
        },
    }
    assert {field.encode_name for field in msgspec.structs.fields(pools.PoolStatus)} == set(pool)
    status = {
        **SEED_STATUS,
        "pools": [pool],
        "observedGeneration": 2,
        "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": time, "reason": "Ok", "message": "m"}],
        "certificates": {"tls": {"mode": "certManager", "ready": True, "serverSecretRef": {"name": "s"}}},
        "provisioning": {
            "phase": "Ready",
            "policies": [item],
            "users": [
                {
                    **item,
                    "ownership": {"state": "Managed", "tenantUid": "u", "userName": "r", "accessKeyHash": "h"},
                }
            ],
            "buckets": [{**item, "objectLock": False}],
        },
    }
    assert {field.encode_name for field in msgspec.structs.fields(tenants.TenantStatus)} == set(status)
    doc = tenant(**status)
    assert checks.problems(TENANT, doc) == ()
    assert written(msgspec.convert(doc, rustfs.Tenant)) == doc


# --- how it is served ----------------------------------------------------------


def test_a_tenant_has_the_names_and_columns_that_people_know() -> None:
    assert (TENANT.crd_name, TENANT.version, TENANT.short_names) == ("tenants.rustfs.com", "v1alpha1", ("tenant",))
    assert [(column.name, column.path) for column in TENANT.columns] == [
        ("State", ".status.currentState"),
        ("Servers", ".status.availableReplicas"),
        ("Reason", '.status.conditions[?(@.type=="Ready")].reason'),
        ("Message", '.status.conditions[?(@.type=="Ready")].message'),
        ("Age", ".metadata.creationTimestamp"),
    ]


def test_an_api_server_would_take_the_definition() -> None:
    assert crd_problems(crd_of(TENANT)) == []


ENUMS: list[tuple[type[Enum], str]] = [
    (
        pools.PoolLifecycleState,
        "Active Decommissioning Decommissioned DecommissionCanceled DecommissionFailed",
    ),
    (pools.DecommissionPhase, "Pending Running Complete Canceled Failed"),
    (pools.CleanupState, "Pending StatefulSetDeleting PvcRetained"),
    (pools.DecommissionAction, "Start Cancel"),
    (
        tenants.PodDeletionPolicy,
        "DoNothing Delete ForceDelete DeleteStatefulSetPod DeleteDeploymentPod DeleteBothStatefulSetAndDeploymentPod",
    ),
]


@pytest.mark.parametrize(("enum", "members"), ENUMS, ids=lambda value: getattr(value, "__name__", ""))
def test_an_enum_has_exactly_the_members_that_people_know(enum: type[Enum], members: str) -> None:
    assert [member.value for member in enum] == members.split()


CHOICES = [
    ("podManagementPolicy", "OrderedReady Parallel"),
    ("imagePullPolicy", "Always Never IfNotPresent"),
    ("logging.mode", "stdout emptydir persistent"),
    ("tls.mode", "disabled external certManager"),
    ("tls.rotationStrategy", "Rollout HotReload"),
    ("tls.caTrust.source", "CertificateSecretCa SecretRef SystemCa"),
    ("encryption.backend", "local vault"),
    ("poolLifecycle.pvcRetentionPolicy", "Retain"),
]


@pytest.mark.parametrize(("path", "choices"), CHOICES)
def test_a_choice_of_the_spec_has_exactly_the_values_that_people_know(path: str, choices: str) -> None:
    schema: Any = crd_of(TENANT)["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    for step in ("spec", *path.split(".")):
        schema = schema["properties"][step]
    assert set(schema["enum"]) == set(choices.split())


def test_an_empty_security_context_differs_from_none() -> None:
    read = msgspec.convert(with_value(tenant(), "spec.securityContext", {}), rustfs.Tenant)
    assert read.spec.security_context == pools.SecurityContext()
    assert written(read)["spec"]["securityContext"] == {}


DEFAULTS = [
    ("spec.pools.0.progressDeadline", "10m"),
    ("spec.rollout.paused", False),
    ("spec.logging.mode", "stdout"),
    ("spec.tls.mode", "disabled"),
    ("spec.tls.requireSanMatch", True),
    ("spec.encryption.enabled", False),
    ("spec.encryption.backend", "local"),
]


@pytest.mark.parametrize(("path", "expected"), DEFAULTS)
def test_an_api_server_fills_in_the_default(path: str, expected: Any) -> None:
    doc = tenant()
    doc["spec"] |= {"rollout": {}, "logging": {}, "tls": {}, "encryption": {}}
    assert value_at(checks.defaulted(TENANT, doc), path) == expected


# --- what it refuses, and where ------------------------------------------------

POOL = "spec.pools.0"

REFUSED = [
    ("spec.pools", []),
    ("spec.pools", [tenant()["spec"]["pools"][0]] * 2),
    (f"{POOL}.name", "Dev"),
    (f"{POOL}.name", "d" * 64),
    (f"{POOL}.servers", 0),
    (f"{POOL}.persistence.volumesPerServer", 0),
    (f"{POOL}.persistence.path", ""),
    (f"{POOL}.persistence.volumeClaimTemplate.accessModes", "ReadWriteOnce"),
    (f"{POOL}.progressDeadline", "soon"),
    (f"{POOL}.volumesPerServer", 2),
    ("spec.rollout.maxUnavailable", -1),
    ("spec.rollout.minAvailable", "most"),
    ("spec.securityContext.runAsUser", 2**31),
    ("spec.securityContext.fsGroup", -1),
    ("spec.credsSecret.name", ""),
    ("spec.rpcSecret", {"name": "s", "key": ""}),
    ("spec.poolLifecycle.decommissionRequests", [{"poolName": "p", "requestId": "", "action": "Start"}]),
    ("spec.poolLifecycle.decommissionRequests", [{"poolName": "p", "requestId": "r", "action": "Stop"}]),
    ("spec.policies", [{"name": "a b", "document": {"configMapKeyRef": {"name": "c", "key": "k"}}}]),
    ("spec.users", [{"name": "u", "policies": []}]),
    ("spec.users", [{"name": "u", "policies": ["p", "p"]}]),
    ("spec.buckets", [{"name": "ab"}]),
    ("spec.buckets", [{"name": "Abc"}]),
    ("spec.tls.certificates", [{"name": "c", "hosts": ["*.example.com"], "certManager": {}}]),
]


@pytest.mark.parametrize(("path", "value"), REFUSED)
def test_a_value_out_of_bounds_is_refused_at_its_path(path: str, value: Any) -> None:
    found = checks.problems(TENANT, with_value(tenant(), path, value))
    where = path.replace(".0", "[0]")
    assert found
    assert all(problem.path.startswith(where) for problem in found), found


def test_a_volume_claim_is_kept_whole() -> None:
    claim = {"storageClassName": "fast", "volumeMode": "Block", "selector": {"matchLabels": {"a": "b"}}}
    doc = with_value(tenant(), f"{POOL}.persistence.volumeClaimTemplate", claim)
    read = checks.decode(TENANT, doc)
    assert isinstance(read, rustfs.Tenant)
    assert read.spec.pools[0].persistence.volume_claim_template == claim


SERVER = "spec.pools[0]"


@pytest.mark.parametrize(
    ("path", "value", "where"),
    [
        (f"{POOL}.resources", {"requests": {"memory": "16 GiB"}}, f"{SERVER}.resources.requests.memory"),
        (f"{POOL}.resources", {"request": {"memory": "16Gi"}}, f"{SERVER}.resources.request"),
        (f"{POOL}.resources", {"limits": ["4"]}, f"{SERVER}.resources.limits"),
        (f"{POOL}.affinity", {"nodeAffinty": {}}, f"{SERVER}.affinity.nodeAffinty"),
        (
            f"{POOL}.tolerations",
            [{"key": "a", "tolerationSeconds": "60"}],
            f"{SERVER}.tolerations[0].tolerationSeconds",
        ),
        (
            f"{POOL}.topologySpreadConstraints",
            [{"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "Never"}],
            f"{SERVER}.topologySpreadConstraints[0].whenUnsatisfiable",
        ),
        (
            f"{POOL}.containerSecurityContext",
            {"capabilities": {"drop": "ALL"}},
            f"{SERVER}.containerSecurityContext.capabilities.drop",
        ),
        (
            f"{POOL}.securityContext",
            {"seccompProfile": {"type": "none"}},
            f"{SERVER}.securityContext.seccompProfile.type",
        ),
        ("spec.containerSecurityContext", {"runAsUser": "root"}, "spec.containerSecurityContext.runAsUser"),
        ("spec.containerSecurityContext", {"privilege": True}, "spec.containerSecurityContext.privilege"),
        ("spec.lifecycle", {"preStop": {"exec": {"command": "sleep 5"}}}, "spec.lifecycle.preStop.exec.command"),
        ("spec.lifecycle", {"prestop": {}}, "spec.lifecycle.prestop"),
        (
            "spec.env",
            [{"name": "A", "valueFrom": {"secretKeyRef": {"name": "s"}}}],
            "spec.env[0].valueFrom.secretKeyRef",
        ),
        ("spec.env", [{"name": "A", "valuefrom": {}}], "spec.env[0].valuefrom"),
        (
            f"{POOL}.persistence.volumeClaimTemplate",
            {"resources": {"requests": {"storage": "100 GB"}}},
            f"{SERVER}.persistence.volumeClaimTemplate.resources.requests.storage",
        ),
        (
            f"{POOL}.persistence.volumeClaimTemplate",
            {"storageClass": "fast"},
            f"{SERVER}.persistence.volumeClaimTemplate.storageClass",
        ),
    ],
)
def test_what_could_not_be_in_a_pod_is_refused_by_its_path_when_a_tenant_is_applied(
    path: str, value: Any, where: str
) -> None:
    found = checks.problems(TENANT, with_value(tenant(), path, value))
    assert [problem.path for problem in found if problem.path.startswith(where)], found


# --- what only a rule can say --------------------------------------------------


CLAIM = ".spec.pools[].persistence.volumeClaimTemplate"

RULES = [
    ("", "at most 55"),
    ("", "must not exceed 63 characters"),
    (".spec", "works with one server only"),
    (".spec.rollout", "set paused to hold a rollout"),
    (".spec.securityContext", "runAsUser 0 is root"),
    (".spec.pools[].securityContext", "runAsUser 0 is root"),
    (".spec.pools[].progressDeadline", "longer than 0s"),
    (".spec.pools[].servers", "servers is immutable; add a pool to grow"),
    (".spec.pools[].persistence", "volumeClaimTemplate is immutable; add a pool to grow"),
    (".spec.pools[].persistence.volumesPerServer", "volumesPerServer is immutable; add a pool to grow"),
    (CLAIM, "the StorageClass of a pool's volumes is immutable"),
    (CLAIM, "the access mode of a pool's volumes is immutable"),
    (CLAIM, "the size of a pool's volumes is immutable"),
    (".spec.env[].name", "set from spec.encryption"),
    (".spec.encryption", "the local backend needs"),
    (".spec.encryption", "the vault backend needs"),
    (".spec.encryption.local.keyDirectory", "move the keys below one"),
    (".spec.tls", "exactly one certificate must be the default one"),
    (".spec.tls", "one certificate only"),
    (".spec.tls.certificates[]", "needs hosts"),
    (".spec.tls.certificates[]", "only the default certificate can have caTrust"),
    (".spec.users", "a Secret of its own"),
    (".spec.buckets[].name", "named like a host"),
]


@pytest.mark.parametrize(("path", "message"), RULES)
def test_a_rule_stands_where_it_can_see_what_it_judges(path: str, message: str) -> None:
    assert any(at == path and message in text for at, text in rules_of(TENANT))
