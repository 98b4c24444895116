"""Signing requests are deleted some time after they are over."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from tests.certificates import certificate_request
from tests.cluster.controllers.test_signing import CLIENT, CLIENT_USAGES, manifest

from holdfast.client.objects import Object
from holdfast.cluster.controllers import signing_cleanup
from holdfast.cluster.controllers.signing import SIGNING_REQUESTS
from holdfast.kernel.outcomes import Again
from holdfast.runtime.decisions import Delete
from holdfast.testing.clusters import Cluster, play
from holdfast.testing.contract import FAULTS, Scenario, check

NOW = datetime(2030, 1, 1, 12, tzinfo=UTC)


def ago(hours: float) -> str:
    return (NOW - timedelta(hours=hours)).strftime("%Y-%m-%dT%H:%M:%SZ")


def request(*conditions: tuple[str, float], created: float, certificate: str = "") -> Object:
    found = [{"type": type_, "status": "True", "lastUpdateTime": ago(hours)} for type_, hours in conditions]
    status: dict[str, Any] = {"conditions": found} if found else {}
    meta = {"name": "r", "uid": "u", "creationTimestamp": ago(created)}
    return Object.of(
        SIGNING_REQUESTS, {"metadata": meta, "status": status | ({"certificate": certificate} if certificate else {})}
    )


@pytest.mark.parametrize(
    "found",
    [
        pytest.param(request(created=24), id="without a decision for a day"),
        pytest.param(request(("Denied", 1), created=2), id="denied an hour ago"),
        pytest.param(request(("Approved", 2), ("Failed", 1), created=2), id="failed an hour ago"),
        pytest.param(request(("Approved", 1), created=2, certificate="eA=="), id="signed an hour ago"),
    ],
)
def test_a_request_that_is_over_is_deleted(found: Object) -> None:
    (write,) = signing_cleanup.decide(found, NOW).writes
    assert isinstance(write, Delete)
    assert write.uid == "u"


@pytest.mark.parametrize(
    ("found", "hours"),
    [
        pytest.param(request(created=20), 4, id="it waits for a decision"),
        pytest.param(request(("Denied", 0.5), created=40), 0.5, id="denied just now"),
        pytest.param(request(("Approved", 0.25), created=2, certificate="eA=="), 0.75, id="signed just now"),
        pytest.param(request(("Approved", 30), created=40), None, id="it waits for its signer"),
    ],
)
def test_a_request_is_left_alone_while(found: Object, hours: float | None) -> None:
    decision = signing_cleanup.decide(found, NOW)
    assert decision.writes == ()
    after = decision.outcome.after if isinstance(decision.outcome, Again) else None
    assert after == (None if hours is None else timedelta(hours=hours))


def test_a_request_goes_when_its_time_has_come() -> None:
    async def story(cluster: Cluster) -> None:
        await cluster.create(SIGNING_REQUESTS, manifest(certificate_request("jane"), CLIENT, CLIENT_USAGES))
        await cluster.advance(23 * 3600)
        assert await cluster.find(SIGNING_REQUESTS, "r")
        await cluster.advance(2 * 3600)
        assert await cluster.find(SIGNING_REQUESTS, "r") is None

    play(story, controllers=[signing_cleanup.CONTROLLER])


async def denied_and_deleted(cluster: Cluster) -> None:
    await cluster.create(SIGNING_REQUESTS, manifest(certificate_request("jane"), CLIENT, CLIENT_USAGES))
    denied = {"status": {"conditions": [{"type": "Denied", "status": "True", "reason": "Test"}]}}
    await cluster.patch(SIGNING_REQUESTS, "r", denied, namespace="", subresource="approval")

    async def gone() -> bool:
        return await cluster.find(SIGNING_REQUESTS, "r") is None

    await cluster.until(gone, within=4 * 3600, step=60)


SCENARIO = Scenario(
    name="a denied request", controllers=(signing_cleanup.CONTROLLER,), story=denied_and_deleted, patience=60
)


@pytest.mark.parametrize("faults", FAULTS)
def test_the_contract_holds(faults: str) -> None:
    check(SCENARIO, faults)
