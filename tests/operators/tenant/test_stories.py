"""Tenants from day to day: made, repaired, grown, blocked, and what their status says meanwhile."""

from __future__ import annotations

import base64
from typing import Any

import msgspec
import pytest
from tests.operators.tenant.stories import (
    answer,
    condition,
    images,
    is_ready,
    play_story,
    pool,
    reaches,
    servers,
    states,
    status_of,
    tenant,
)

from holdfast.client.resources import (
    CLAIMS,
    DEFINITIONS,
    EVENTS,
    PODS,
    SECRETS,
    SERVICE_ACCOUNTS,
    SERVICES,
    STATEFUL_SETS,
)
from holdfast.meta.errors import Invalid
from holdfast.operators.tenant.observe import TENANTS
from holdfast.operators.tenant.pools import TRANSITIONS
from holdfast.operators.tenant.reasons import BLOCKED, NEXT
from holdfast.testing.clusters import Cluster


def secret(name: str, **data: str | bytes) -> dict[str, Any]:
    encoded = {
        key: base64.b64encode(value if isinstance(value, bytes) else value.encode()).decode()
        for key, value in data.items()
    }
    return {"metadata": {"name": name}, "type": "Opaque", "data": encoded}


CONDITIONS = [
    "Ready", "Reconciling", "Degraded", "SpecValid", "CredentialsReady", "PoolsReady", "WorkloadsReady", "FloorHeld",
]  # fmt: skip
"""Those that every Tenant has; sections that nobody asked for have none."""


# --- what is made


def test_a_tenant_that_is_ready_says_so_in_every_condition() -> None:
    async def story(cluster: Cluster) -> None:
        await cluster.create(TENANTS, tenant())
        status = await reaches(cluster, "Ready")
        assert [each["type"] for each in status["conditions"]] == CONDITIONS
        assert answer(status, "Ready") == ("True", "ReconcileSucceeded")
        assert answer(status, "Reconciling") == ("False", "NothingToDo")
        assert answer(status, "Degraded") == ("False", "Healthy")
        assert answer(status, "CredentialsReady") == ("True", "DefaultCredentials")
        assert {each["observedGeneration"] for each in status["conditions"]} == {1}
        made = [each["metadata"]["name"] for each in await cluster.list(SERVICES)]
        assert {"store-io", "store-console", "store-hl"} <= set(made)
        owners = (await cluster.get(STATEFUL_SETS, "store-pool-0"))["metadata"]["ownerReferences"]
        assert [(each["kind"], each["controller"], each["blockOwnerDeletion"]) for each in owners] == [
            ("Tenant", True, True)
        ]
        assert len(await cluster.list(CLAIMS)) == 4

    play_story(story)


def test_the_states_of_a_pool_follow_the_diagram_from_its_beginning() -> None:
    async def story(cluster: Cluster) -> None:
        await cluster.create(TENANTS, tenant())
        seen: list[str] = []

        async def ends() -> bool:
            status = await status_of(cluster)
            seen.extend(state for state in states(status) if not seen or seen[-1] != state)
            return status.get("currentState") == "Ready"

        await cluster.until(ends, step=0.05)
        assert seen[-1] == "PoolRolloutComplete"
        for old, new in zip([None, *seen], seen, strict=False):
            if old is not None:
                TRANSITIONS.check(old, new)

    play_story(story)


def test_the_same_pass_again_leaves_the_status_as_it_was_to_the_byte() -> None:
    async def story(cluster: Cluster) -> None:
        await cluster.create(TENANTS, tenant())
        await reaches(cluster, "Ready")
        before = await cluster.get(TENANTS, "store")
        await cluster.advance(3600)
        await cluster.restart()
        await cluster.settle()
        after = await cluster.get(TENANTS, "store")
        assert msgspec.json.encode(before["status"]) == msgspec.json.encode(after["status"])
        assert before["metadata"]["resourceVersion"] == after["metadata"]["resourceVersion"]

    play_story(story)


def test_the_time_of_a_pool_moves_only_when_something_else_does() -> None:
    async def story(cluster: Cluster) -> None:
        await cluster.create(TENANTS, tenant())
        first = (await reaches(cluster, "Ready"))["pools"][0]["lastUpdateTime"]
        await cluster.advance(600)
        await cluster.patch(TENANTS, "store", {"spec": {"createServiceAccountRbac": True}})
        status = await reaches(cluster, "Ready")
        assert status["observedGeneration"] == 2
        assert status["pools"][0]["lastUpdateTime"] == first
        await cluster.delete(PODS, "store-pool-0-2")
        await cluster.until(lambda: later(cluster, first))

    async def later(cluster: Cluster, than: str) -> bool:
        (found,) = (await status_of(cluster))["pools"]
        return bool(found["lastUpdateTime"] > than and found["readyReplicas"] == 4)

    play_story(story)


# --- what others change


@pytest.mark.parametrize(
    ("change", "back"),
    [
        ({"spec": {"selector": {"rustfs.tenant": "other"}}}, {"rustfs.tenant": "store"}),
        ({"spec": {"selector": None}}, {"rustfs.tenant": "store"}),
    ],
)
def test_a_service_that_somebody_edits_is_repaired_at_once(change: dict[str, Any], back: dict[str, str]) -> None:
    async def story(cluster: Cluster) -> None:
        await cluster.create(TENANTS, tenant())
        await reaches(cluster, "Ready")
        await cluster.patch(SERVICES, "store-io", change)
        await cluster.settle()
        assert (await cluster.get(SERVICES, "store-io"))["spec"]["selector"] == back
        await cluster.delete(SERVICES, "store-console")
        await cluster.settle()
        assert await cluster.find(SERVICES, "store-console") is not None

    play_story(story)


def test_another_port_and_one_more_label_of_a_service_are_set_back_and_stop_nothing_else() -> None:
    async def story(cluster: Cluster) -> None:
        await cluster.create(TENANTS, tenant())
        await reaches(cluster, "Ready")
        before = (await cluster.get(SERVICES, "store-io"))["spec"]
        moved = [{**port, "port": 9999, "targetPort": 9999} for port in before["ports"]]
        await cluster.patch(SERVICES, "store-io", {"spec": {"ports": moved, "selector": {"only": "some"}}})
        await cluster.delete(STATEFUL_SETS, "store-pool-0")
        await cluster.settle()
        after = (await cluster.get(SERVICES, "store-io"))["spec"]
        assert (after["ports"], after["selector"]) == (before["ports"], before["selector"])
        assert await cluster.find(STATEFUL_SETS, "store-pool-0") is not None
        await reaches(cluster, "Ready")
        assert len(await servers(cluster)) == 4

    play_story(story)


def test_probes_and_sizes_of_a_stateful_set_that_somebody_edits_are_set_back() -> None:
    async def story(cluster: Cluster) -> None:
        await cluster.create(TENANTS, tenant())
        await reaches(cluster, "Ready")
        found = await cluster.get(STATEFUL_SETS, "store-pool-0")
        (server,) = found["spec"]["template"]["spec"]["containers"]
        server["readinessProbe"]["httpGet"]["path"] = "/anything"
        edited = {"spec": {"replicas": 2, "template": {"spec": {"containers": [server]}}}}
        await cluster.patch(STATEFUL_SETS, "store-pool-0", edited)
        await reaches(cluster, "Ready")
        spec = (await cluster.get(STATEFUL_SETS, "store-pool-0"))["spec"]
        assert spec["replicas"] == 4
        assert spec["template"]["spec"]["containers"][0]["readinessProbe"]["httpGet"]["path"] == "/health/ready"
        assert len(await servers(cluster)) == 4

    play_story(story)


def test_what_is_taken_out_of_the_spec_is_taken_out_of_the_servers() -> None:
    async def story(cluster: Cluster) -> None:
        made = tenant("store", pool(servers=1), env=[{"name": "RUST_LOG", "value": "debug"}])
        await cluster.create(TENANTS, made)
        await reaches(cluster, "Ready")
        await cluster.patch(TENANTS, "store", {"spec": {"env": None}})
        await cluster.settle()
        await reaches(cluster, "Ready")
        (server,) = await servers(cluster)
        assert "RUST_LOG" not in [each["name"] for each in server["spec"]["containers"][0]["env"]]

    play_story(story)


def test_an_account_of_somebody_else_is_used_and_left_alone() -> None:
    async def story(cluster: Cluster) -> None:
        await cluster.create(SERVICE_ACCOUNTS, {"metadata": {"name": "store-sa", "labels": {"mine": "yes"}}})
        await cluster.create(TENANTS, tenant())
        await reaches(cluster, "Ready")
        account = await cluster.get(SERVICE_ACCOUNTS, "store-sa")
        assert account["metadata"]["labels"] == {"mine": "yes"}
        assert "ownerReferences" not in account["metadata"]

    play_story(story)


def test_a_service_of_somebody_else_is_left_alone_and_said() -> None:
    async def story(cluster: Cluster) -> None:
        theirs = {"metadata": {"name": "store-io"}, "spec": {"ports": [{"port": 1}]}}
        await cluster.create(SERVICES, theirs)
        await cluster.create(TENANTS, tenant())
        status = await reaches(cluster, "Blocked")
        assert answer(status, "WorkloadsReady") == ("False", "ChildConflict")
        assert (await cluster.get(SERVICES, "store-io"))["spec"]["ports"][0]["port"] == 1
        await cluster.delete(SERVICES, "store-io")
        await reaches(cluster, "Ready")

    play_story(story)


def test_a_server_that_is_lost_degrades_its_pool_until_it_is_back() -> None:
    async def story(cluster: Cluster) -> None:
        await cluster.create(TENANTS, tenant())
        await reaches(cluster, "Ready")
        sick = {"metadata": {"annotations": {"sim.holdfast.dev/never-ready": "true"}}}
        await cluster.patch(PODS, "store-pool-0-1", sick)
        status = await reaches(cluster, "Degraded")
        assert states(status) == ["PoolDegraded"]
        assert answer(status, "PoolsReady") == ("False", "PoolDegraded")
        assert status["availableReplicas"] == 3
        await cluster.delete(PODS, "store-pool-0-1")
        await reaches(cluster, "Ready")

    play_story(story)


# --- growth and removal


def test_a_new_pool_is_made_before_the_others_are_told_of_it() -> None:
    async def story(cluster: Cluster) -> None:
        await cluster.create(TENANTS, tenant("store", pool("a", 2)))
        await reaches(cluster, "Ready")
        revision = (await status_of(cluster))["pools"][0]["updateRevision"]
        await cluster.patch(TENANTS, "store", {"spec": {"pools": [pool("a", 2), pool("b", 3)]}})
        lowest = [2]

        async def ends() -> bool:
            old = await servers(cluster, pool="a")
            lowest.append(sum(map(is_ready, old)))
            status = await status_of(cluster)
            if await cluster.find(STATEFUL_SETS, "store-b") is None:
                assert states(status)[:1] == ["PoolRolloutComplete"]
                assert status["pools"][0]["updateRevision"] == revision
            return status["currentState"] == "Ready" and len(status["pools"]) == 2

        await cluster.until(ends, step=0.05)
        assert min(lowest) == 1, "one at a time"
        for server in await servers(cluster):
            told_of = server["spec"]["containers"][0]["env"][0]["value"].split()
            assert len(told_of) == 2, "all know both pools"

    play_story(story)


@pytest.mark.parametrize(
    "changed",
    [
        pool(servers=5),
        pool(volumes=2),
        pool(persistence={"volumesPerServer": 1, "volumeClaimTemplate": {"storageClassName": "fast"}}),
    ],
)
def test_the_shape_of_a_pool_is_refused_at_admission(changed: dict[str, Any]) -> None:
    async def story(cluster: Cluster) -> None:
        await cluster.create(TENANTS, tenant())
        with pytest.raises(Invalid, match="immutable"):
            await cluster.patch(TENANTS, "store", {"spec": {"pools": [changed]}})

    play_story(story)


def test_a_pool_that_is_taken_out_without_being_drained_stays_and_the_reason_is_said() -> None:
    async def story(cluster: Cluster) -> None:
        await cluster.create(TENANTS, tenant("store", pool("a", 2), pool("b", 2)))
        await reaches(cluster, "Ready")
        await cluster.patch(TENANTS, "store", {"spec": {"pools": [pool("a", 2)]}})
        status = await reaches(cluster, "Blocked")
        assert answer(status, "SpecValid") == ("False", "PoolDeleteBlocked")
        said = condition(status, "SpecValid")
        assert said is not None
        assert "drain it with a decommission request first" in said["message"]
        assert [each["ssName"] for each in status["pools"]] == ["store-a", "store-b"]
        assert len(await servers(cluster)) == 4
        await cluster.patch(TENANTS, "store", {"spec": {"pools": [pool("a", 2), pool("c", 2)]}})
        await cluster.settle()
        assert answer(await status_of(cluster), "SpecValid") == ("False", "ImmutableFieldModified")
        assert await cluster.find(STATEFUL_SETS, "store-c") is None
        await cluster.patch(TENANTS, "store", {"spec": {"pools": [pool("a", 2), pool("b", 2)]}})
        await reaches(cluster, "Ready")

    play_story(story)


# --- Secrets

GOOD = {"accesskey": "0123456789", "secretkey": "abcdefgh"}


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        (None, "CredentialSecretNotFound"),
        ({"accesskey": "0123456789"}, "CredentialSecretMissingKey"),
        ({**GOOD, "secretkey": b"\xff\xfe\xfd\xfc\xfb\xfa\xf9\xf8"}, "CredentialSecretInvalidEncoding"),
        ({**GOOD, "accesskey": "short"}, "CredentialSecretTooShort"),
    ],
)
def test_credentials_that_will_not_do_stop_everything_until_they_are_corrected(
    given: dict[str, Any] | None, reason: str
) -> None:
    async def story(cluster: Cluster) -> None:
        if given is not None:
            await cluster.create(SECRETS, secret("root", **given))
        await cluster.create(TENANTS, tenant("store", pool(servers=1), credsSecret={"name": "root"}))
        status = await reaches(cluster, "Blocked")
        assert answer(status, "CredentialsReady") == ("False", reason)
        assert answer(status, "Ready") == ("False", reason)
        assert await cluster.list(STATEFUL_SETS) == []
        said = condition(status, "CredentialsReady")
        assert said is not None
        assert said["message"].endswith(NEXT[reason])
        for value in (given or {}).values():
            assert not isinstance(value, str) or value not in msgspec.json.encode(status).decode()
        if given is None:
            await cluster.create(SECRETS, secret("root", **GOOD))
        else:
            data = secret("root", **GOOD)["data"]
            await cluster.patch(SECRETS, "root", {"data": data})
        status = await reaches(cluster, "Ready")
        assert answer(status, "CredentialsReady") == ("True", "Valid")

    play_story(story)


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        (None, "RpcSecretNotFound"),
        ({"other": "x"}, "RpcSecretMissingKey"),
        ({"key": "  \n"}, "RpcSecretInvalid"),
        ({"key": b"a\0b"}, "RpcSecretInvalid"),
        ({"key": "rustfsadmin\n"}, "RpcSecretInvalid"),
        ({"key": b"\xff"}, "RpcSecretInvalid"),
    ],
)
def test_an_rpc_secret_that_will_not_do_is_said(given: dict[str, Any] | None, reason: str) -> None:
    async def story(cluster: Cluster) -> None:
        if given is not None:
            await cluster.create(SECRETS, secret("rpc", **given))
        reference = {"name": "rpc", "key": "key"}
        await cluster.create(TENANTS, tenant("store", pool(servers=1), rpcSecret=reference))
        status = await reaches(cluster, "Blocked")
        assert answer(status, "RpcAuthReady") == ("False", reason)
        await cluster.patch(TENANTS, "store", {"spec": {"rpcSecret": None}})
        status = await reaches(cluster, "Ready")
        assert condition(status, "RpcAuthReady") is None, "what does not apply any more is cleared"

    play_story(story)


# --- what is not done yet


@pytest.mark.parametrize(
    ("spec", "field", "type"),
    [
        ({"tls": {"mode": "external"}}, "spec.tls", "TlsReady"),
        (
            {"encryption": {"enabled": True, "backend": "local", "local": {"allowInsecureDevDefaults": True}}},
            "spec.encryption",
            "KmsReady",
        ),
        ({"buckets": [{"name": "photos"}]}, "spec.buckets", "ProvisioningReady"),
        (
            {"users": [{"name": "anna", "policies": ["p"]}]},
            "spec.users",
            "ProvisioningReady",
        ),
        (
            {"policies": [{"name": "p", "document": {"configMapKeyRef": {"name": "c", "key": "k"}}}]},
            "spec.policies",
            "ProvisioningReady",
        ),
    ],
)
def test_what_is_not_done_yet_is_said_by_its_field(spec: dict[str, Any], field: str, type: str) -> None:
    async def story(cluster: Cluster) -> None:
        await cluster.create(TENANTS, tenant("store", pool(servers=1), **spec))
        status = await reaches(cluster, "Blocked")
        assert answer(status, "NotSupportedYet") == ("True", "NotSupportedYet")
        said = condition(status, "NotSupportedYet")
        assert said is not None
        assert field in said["message"]
        assert answer(status, type) == ("False", "NotSupportedYet")
        protected = type == "ProvisioningReady"
        await cluster.advance(60)
        assert bool(await cluster.list(STATEFUL_SETS)) is protected, "nothing is begun with less than was asked for"
        await cluster.patch(TENANTS, "store", {"spec": dict.fromkeys(spec)})
        status = await reaches(cluster, "Ready")
        assert condition(status, "NotSupportedYet") is None
        assert condition(status, type) is None

    play_story(story)


def test_an_image_that_is_not_known_to_run_is_not_run() -> None:
    async def story(cluster: Cluster) -> None:
        await cluster.create(TENANTS, tenant("store", pool(servers=1)))
        await reaches(cluster, "Ready")
        await cluster.patch(TENANTS, "store", {"spec": {"image": "mine/rustfs:1"}})
        status = await reaches(cluster, "Blocked")
        assert answer(status, "WorkloadsReady") == ("False", "WorkloadSecurityIncompatible")
        assert images(await servers(cluster)) != ["mine/rustfs:1"]
        acknowledged = {"operator.rustfs.com/runtime-default-image-ack": "mine/rustfs:1"}
        await cluster.patch(TENANTS, "store", {"metadata": {"annotations": acknowledged}})
        await cluster.settle()
        await reaches(cluster, "Ready")
        assert images(await servers(cluster)) == ["mine/rustfs:1"]

    play_story(story)


# --- what is reported


def test_events_tell_what_was_done_and_when_it_was_ready() -> None:
    async def story(cluster: Cluster) -> None:
        await cluster.create(TENANTS, tenant())
        await reaches(cluster, "Ready")
        await cluster.settle()
        events = await cluster.list(EVENTS)
        about = [each for each in events if each["involvedObject"]["kind"] == "Tenant"]
        reasons = [each["reason"] for each in about]
        assert "StatefulSetCreated" in reasons
        (done,) = [each for each in about if each["reason"] == "ReconcileSucceeded"]
        assert done["message"] == "4 of 4 servers ready"

    play_story(story)


def test_every_reason_that_stops_everything_has_a_next_action() -> None:
    assert sorted(BLOCKED - NEXT.keys()) == []


# --- what cannot be read


def test_a_tenant_that_its_types_refuse_says_so_until_it_is_corrected() -> None:
    async def story(cluster: Cluster) -> None:
        definition = await cluster.get(DEFINITIONS, "tenants.rustfs.com")
        (version,) = definition["spec"]["versions"]
        version["schema"] = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
        await cluster.patch(DEFINITIONS, "tenants.rustfs.com", {"spec": {"versions": [version]}})
        await cluster.settle()
        odd = tenant()
        odd["spec"]["pools"][0]["servers"] = "many"
        await cluster.create(TENANTS, odd)
        status = await reaches(cluster, "Blocked")
        for type, expected in (("Ready", "False"), ("SpecValid", "False"), ("Degraded", "True")):
            assert answer(status, type) == (expected, "InvalidSpec")
        said = condition(status, "SpecValid")
        assert said is not None
        assert "$.spec.pools[0].servers" in said["message"]
        await cluster.create(TENANTS, tenant("other"))
        await reaches(cluster, "Ready", "other")
        await cluster.patch(TENANTS, "store", {"spec": tenant()["spec"]})
        status = await reaches(cluster, "Ready")
        assert answer(status, "SpecValid") == ("True", "Valid")

    play_story(story)


# --- what can never change


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (
            {"podManagementPolicy": "OrderedReady"},
            "podManagementPolicy is immutable: it is Parallel and the spec asks for OrderedReady",
        ),
        (
            {"logging": {"mode": "persistent"}},
            "the volumes of each server is immutable: it is vol-0 and the spec asks for logs, vol-0",
        ),
        (
            {"pools": [pool(persistence={"volumesPerServer": 1, "labels": {"tier": "hot"}})]},
            "the labels of vol-0 is immutable: it is",
        ),
    ],
)
def test_what_a_stateful_set_cannot_change_is_said_before_it_is_tried(change: dict[str, Any], said: str) -> None:
    async def story(cluster: Cluster) -> None:
        await cluster.create(TENANTS, tenant())
        await reaches(cluster, "Ready")
        await cluster.patch(TENANTS, "store", {"spec": change})
        status = await reaches(cluster, "Blocked")
        assert answer(status, "WorkloadsReady") == ("False", "StatefulSetUpdateValidationFailed")
        found = condition(status, "WorkloadsReady")
        assert found is not None
        assert said in found["message"]
        assert states(status) == ["PoolRolloutComplete"]

    play_story(story)
