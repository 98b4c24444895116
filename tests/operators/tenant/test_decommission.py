"""How pools leave: drained by the store, followed, canceled, failed; their volumes always stay."""

from __future__ import annotations

import base64
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any

import pytest
from tests.operators.tenant.stories import answer, play_story, pool, reaches, servers, status_of, tenant

from holdfast.client.resources import CLAIMS, EVENTS, SECRETS, STATEFUL_SETS
from holdfast.meta import times
from holdfast.meta.exchange import Request, Response
from holdfast.meta.signatures import Credentials
from holdfast.operators.tenant.admin import Admin, AdminError, Store
from holdfast.operators.tenant.observe import TENANTS
from holdfast.testing.clusters import Cluster
from holdfast.testing.loops import EPOCH
from holdfast.testing.rustfs import RustFS

KEYS = {"accesskey": "rootroot", "secretkey": "secretsecret"}


def volumes(name: str) -> str:
    return f"http://store-{name}-{{0...1}}.store-hl.default.svc.cluster.local:9000/data/rustfs{{0...0}}"


def played(
    story: Callable[[Cluster, RustFS], Awaitable[None]], *pools: str, keys: dict[str, str] | None = None
) -> None:
    """A store of two pools that is ready, and a story about it."""
    store = RustFS(
        [volumes(each) for each in pools or ("a", "b")],
        access_key="rootroot",
        secret_key="secretsecret",
        now=lambda: EPOCH,
    )

    async def send(url: str, request: Request) -> Response:
        assert url == "http://store-io.default.svc.cluster.local:9000"
        try:
            return await store.send(url, request)
        except OSError as error:
            raise AdminError("RustfsUnreachable", "the store does not answer") from error

    def connected(url: str, credentials: Credentials) -> Admin:
        return Store(url, credentials, send=send, now=store.now)

    async def begun(cluster: Cluster) -> None:
        store.now = cluster.now
        data = {key: base64.b64encode(value.encode()).decode() for key, value in (keys or KEYS).items()}
        await cluster.create(SECRETS, {"metadata": {"name": "root"}, "data": data})
        made = tenant("store", pool("a", 2), pool("b", 2), credsSecret={"name": "root"})
        await cluster.create(TENANTS, made)
        await reaches(cluster, "Ready")
        await story(cluster, store)

    play_story(begun, connect=connected)


def request(name: str = "b", id: str = "1", action: str = "Start", **more: Any) -> dict[str, Any]:
    return {"poolName": name, "requestId": id, "action": action, **more}


async def asked(cluster: Cluster, *requests: dict[str, Any]) -> None:
    lifecycle = {"decommissionRequests": list(requests)} if requests else None
    await cluster.patch(TENANTS, "store", {"spec": {"poolLifecycle": lifecycle}})


async def found(cluster: Cluster, name: str = "b") -> dict[str, Any]:
    status = await status_of(cluster)
    return next(each for each in status["pools"] if each["ssName"] == f"store-{name}")


async def becomes(cluster: Cluster, state: str | None, name: str = "b", *, within: float = 900) -> dict[str, Any]:
    """Wait until a pool is in a state of its life; None: it is like any other."""

    async def holds() -> bool:
        return (await found(cluster, name)).get("lifecycleState") == state

    await cluster.until(holds, within=within, step=5)
    return (await found(cluster, name)).get("decommission") or {}


def test_a_pool_is_drained_and_leaves_and_its_volumes_stay() -> None:
    async def story(cluster: Cluster, store: RustFS) -> None:
        await asked(cluster, request())
        running = await becomes(cluster, "Decommissioning")
        assert running["requestId"] == "1"
        await cluster.advance(120)
        running = (await found(cluster))["decommission"]
        assert running["phase"] == "Running"
        assert running["rustfsPoolId"] == "1"
        assert 0 < running["progress"]["objectsMigrated"] < 1000
        status = await status_of(cluster)
        assert status["currentState"] == "Reconciling"
        assert answer(status, "WorkloadsReady") == ("False", "PoolDecommissioning")

        await becomes(cluster, "Decommissioned")
        await cluster.until(lambda: retained(cluster), step=5)
        gone = (await found(cluster))["decommission"]
        assert gone["phase"] == "Complete"
        assert gone["cleanup"]["pvcRetentionPolicy"] == "Retain"
        assert gone["progress"]["objectsMigrated"] == 1000
        assert await cluster.find(STATEFUL_SETS, "store-b") is None
        await cluster.advance(30)
        assert await servers(cluster, pool="b") == []
        assert len(await cluster.list(CLAIMS)) == 4, "volumes are always kept"
        status = await status_of(cluster)
        assert status["availableReplicas"] == 2, "a pool that has left does not count"
        assert answer(status, "Ready") == ("False", "PoolDecommissioned")
        assert store.asked.count("decommission 1") == 1

        spec = {"pools": [pool("a", 2)], "poolLifecycle": None}
        await cluster.patch(TENANTS, "store", {"spec": spec})
        status = await reaches(cluster, "Ready")
        assert [each["ssName"] for each in status["pools"]] == ["store-a"]
        reasons = [each["reason"] for each in await cluster.list(EVENTS)]
        assert reasons.count("PvcRetained") == 1

    async def retained(cluster: Cluster) -> bool:
        cleanup = (await found(cluster))["decommission"].get("cleanup") or {}
        return bool(cleanup.get("state") == "PvcRetained")

    played(story)


def test_a_pool_that_was_drained_may_be_taken_out_while_its_servers_are_still_there() -> None:
    async def story(cluster: Cluster, store: RustFS) -> None:
        store.takes = timedelta(seconds=1)
        await asked(cluster, request())
        await becomes(cluster, "Decommissioned")
        store.away = True
        spec = {"pools": [pool("a", 2)], "poolLifecycle": None}
        await cluster.patch(TENANTS, "store", {"spec": spec})
        await reaches(cluster, "Ready")
        assert await cluster.find(STATEFUL_SETS, "store-b") is None
        assert len(await cluster.list(CLAIMS)) == 4

    played(story)


def test_draining_is_canceled_on_request_and_the_pool_is_like_any_other_when_the_request_is_gone() -> None:
    async def story(cluster: Cluster, store: RustFS) -> None:
        await asked(cluster, request())
        await becomes(cluster, "Decommissioning")
        await cluster.advance(60)
        await asked(cluster, request(action="Cancel"))
        canceled = await becomes(cluster, "DecommissionCanceled")
        assert canceled["phase"] == "Canceled"
        status = await reaches(cluster, "Blocked")
        assert answer(status, "PoolsReady") == ("False", "PoolDecommissionCanceled")
        before = await status_of(cluster)
        await cluster.advance(3600)
        assert await status_of(cluster) == before, "and stays so"
        await asked(cluster)
        await becomes(cluster, None)
        await reaches(cluster, "Ready")
        await asked(cluster, request(id="2"))
        await becomes(cluster, "Decommissioned")

    played(story)


def test_canceling_what_was_never_started_does_nothing() -> None:
    async def story(cluster: Cluster, store: RustFS) -> None:
        await asked(cluster, request(action="Cancel"))
        await cluster.advance(60)
        assert (await found(cluster)).get("lifecycleState") is None
        assert (await status_of(cluster))["currentState"] == "Ready"

    played(story)


def test_a_drain_that_fails_is_said_and_tried_again_by_another_request_only() -> None:
    async def story(cluster: Cluster, store: RustFS) -> None:
        store.failing = {volumes("b")}
        await asked(cluster, request())
        failed = await becomes(cluster, "DecommissionFailed")
        assert failed["lastError"]["reason"] == "RustfsDecommissionFailed"
        status = await reaches(cluster, "Blocked")
        assert answer(status, "PoolsReady") == ("False", "PoolDecommissionFailed")
        await cluster.advance(3600)
        assert store.asked.count("decommission 1") == 1
        store.failing = set()
        store.pools[1].ended = "failed"
        await asked(cluster, request(id="2"))
        await becomes(cluster, "Decommissioned")
        assert store.asked.count("decommission 1") == 2

    played(story)


def test_the_last_pools_cannot_leave() -> None:
    async def story(cluster: Cluster, store: RustFS) -> None:
        await asked(cluster, request("a"), request("b"))
        for name in ("a", "b"):
            failed = await becomes(cluster, "DecommissionFailed", name)
            assert failed["lastError"]["reason"] == "LastPoolBlocked"
        assert store.asked.count("decommission 0") == store.asked.count("decommission 1") == 0

    played(story)


@pytest.mark.parametrize(
    ("pools", "reason"),
    [(("a", "c"), "RustfsPoolMappingFailed"), (("a", "b", "b"), "RustfsPoolMappingAmbiguous")],
)
def test_a_pool_that_the_store_does_not_know_by_its_volumes_is_not_drained(pools: tuple[str, ...], reason: str) -> None:
    async def story(cluster: Cluster, store: RustFS) -> None:
        await asked(cluster, request())
        failed = await becomes(cluster, "DecommissionFailed")
        assert failed["lastError"]["reason"] == reason
        assert not any("decommission" in each for each in store.asked)

    played(story, *pools)


@pytest.mark.parametrize("earlier", [True, False])
def test_a_drain_that_somebody_else_began_is_adopted_only_if_it_began_after_the_request(earlier: bool) -> None:
    async def story(cluster: Cluster, store: RustFS) -> None:
        await cluster.advance(60)
        moment = cluster.now()
        store.begin(volumes("b"))
        await cluster.advance(10)
        requested = moment + (timedelta(seconds=5) if earlier else timedelta(seconds=-5))
        await asked(cluster, request(requestedAt=times.format(requested)))
        if earlier:
            failed = await becomes(cluster, "DecommissionFailed")
            assert failed["lastError"]["reason"] == "RustfsDecommissionAlreadyRunning"
        else:
            await becomes(cluster, "Decommissioned")

    played(story)


def test_a_store_that_is_away_is_asked_again() -> None:
    async def story(cluster: Cluster, store: RustFS) -> None:
        store.away = True
        await asked(cluster, request())
        pending = await becomes(cluster, "Decommissioning")
        assert pending["phase"] == "Pending"
        assert pending["lastError"]["reason"] == "RustfsUnreachable"
        store.away = False
        await becomes(cluster, "Decommissioned")

    played(story)


def test_credentials_that_the_store_refuses_are_said_without_being_shown() -> None:
    async def story(cluster: Cluster, store: RustFS) -> None:
        await asked(cluster, request())
        pending = await becomes(cluster, "Decommissioning")
        assert pending["lastError"]["reason"] == "RustfsAccessDenied"
        assert "not the secret" not in str(await cluster.get(TENANTS, "store"))

    played(story, keys={"accesskey": "rootroot", "secretkey": "not the secret"})


def test_servers_are_not_removed_while_the_store_knows_the_pool_by_another_number() -> None:
    async def story(cluster: Cluster, store: RustFS) -> None:
        await asked(cluster, request())
        await cluster.advance(60)
        store.pools[1].id = 7
        await becomes(cluster, "Decommissioned")
        await cluster.advance(300)
        held = (await found(cluster))["decommission"]
        assert held["lastError"]["reason"] == "RustfsPoolIdentityChanged"
        assert held["cleanup"]["state"] == "Pending"
        assert len(await servers(cluster, pool="b")) == 2
        store.pools[1].id = 1
        await cluster.advance(60)
        assert await cluster.find(STATEFUL_SETS, "store-b") is None

    played(story)


def test_a_pool_that_leaves_is_not_rolled_out() -> None:
    async def story(cluster: Cluster, store: RustFS) -> None:
        await asked(cluster, request())
        await becomes(cluster, "Decommissioning")
        before = (await cluster.get(STATEFUL_SETS, "store-b"))["metadata"]["generation"]
        await cluster.patch(TENANTS, "store", {"spec": {"env": [{"name": "RUST_LOG", "value": "info"}]}})
        await cluster.advance(60)
        assert (await cluster.get(STATEFUL_SETS, "store-b"))["metadata"]["generation"] == before
        first = (await servers(cluster, pool="a"))[0]["spec"]["containers"][0]["env"][-1]
        assert first == {"name": "RUST_LOG", "value": "info"}, "the others are"

    played(story)


@pytest.mark.parametrize("when", [1, 2, 5, 40])
def test_an_operator_that_dies_on_the_way_starts_no_drain_twice(when: int) -> None:
    async def story(cluster: Cluster, store: RustFS) -> None:
        await asked(cluster, request())
        await cluster.advance(when)
        await cluster.restart()
        await becomes(cluster, "Decommissioned")
        assert store.asked.count("decommission 1") == 1

    played(story)
