"""Secrets for tokens of service accounts are filled, and go with their accounts."""

from __future__ import annotations

import base64
from datetime import UTC, datetime
from typing import Any

import pytest

from holdfast.client.resources import SECRETS, SERVICE_ACCOUNTS
from holdfast.cluster.controllers import token_secrets
from holdfast.cluster.controllers.token_secrets import ACCOUNT_NAME, ACCOUNT_UID, TYPE, Bound, Tokens
from holdfast.meta.objects import Key
from holdfast.runtime.decisions import Delete, Patch
from holdfast.testing.clusters import Cluster
from holdfast.testing.contract import FAULTS, Scenario, check, check_second_look
from holdfast.testing.snapshots import Snapshot

NOW = datetime(2030, 1, 1, tzinfo=UTC)
ACCOUNT = {"metadata": {"name": "robot", "namespace": "default", "uid": "a"}}
CONTENT = {"ca.crt": "eA==", "namespace": "eA==", "token": "eA=="}


def issue(account: Bound, secret: Bound, now: datetime) -> str:
    return f"token of {account.key.name} {account.uid} for {secret.key.name}"


TOKENS = Tokens(issue, b"PEM")


def secret(*, uid: str = "", **fields: Any) -> dict[str, Any]:
    annotations = {ACCOUNT_NAME: "robot"} | ({ACCOUNT_UID: uid} if uid else {})
    meta = {"name": "t", "namespace": "default", "annotations": annotations, "uid": "s", "resourceVersion": "7"}
    return {"metadata": meta, "type": TYPE} | fields


def decided(found: dict[str, Any], *accounts: dict[str, Any]) -> tuple[Any, ...]:
    view = Snapshot([(SECRETS, found), *((SERVICE_ACCOUNTS, each) for each in accounts)])
    world = token_secrets.observe(view, Key("default", "t"))
    return () if world is None else token_secrets.decide(TOKENS, world, NOW).writes


def test_an_empty_secret_gets_a_token_of_its_account() -> None:
    (write,) = decided(secret(), ACCOUNT)
    assert isinstance(write, Patch)
    assert (write.uid, write.version) == ("s", "7")
    assert write.patch["metadata"] == {"annotations": {ACCOUNT_UID: "a"}}
    content = {name: base64.b64decode(value).decode() for name, value in write.patch["data"].items()}
    assert content == {"ca.crt": "PEM", "namespace": "default", "token": "token of robot a for t"}


@pytest.mark.parametrize("missing", CONTENT)
def test_what_is_missing_is_made_again(missing: str) -> None:
    left = {name: value for name, value in CONTENT.items() if name != missing}
    (write,) = decided(secret(uid="a", data=left), ACCOUNT)
    assert isinstance(write, Patch)


@pytest.mark.parametrize(
    ("found", "accounts"),
    [
        pytest.param(secret(uid="a", data=CONTENT), [ACCOUNT], id="it has a token"),
        pytest.param(secret(), [], id="its account does not exist yet"),
        pytest.param(secret() | {"type": "Opaque"}, [ACCOUNT], id="it is another Secret"),
    ],
)
def test_a_secret_is_left_alone_while(found: dict[str, Any], accounts: list[dict[str, Any]]) -> None:
    assert decided(found, *accounts) == ()


@pytest.mark.parametrize("accounts", [[], [{"metadata": ACCOUNT["metadata"] | {"uid": "another"}}]])
def test_a_secret_goes_with_its_account(accounts: list[dict[str, Any]]) -> None:
    (write,) = decided(secret(uid="a", data=CONTENT), *accounts)
    assert isinstance(write, Delete)
    assert write.uid == "s"


async def filled_and_deleted(cluster: Cluster) -> None:
    for name in ("first", "second"):
        meta = {"name": name, "annotations": {ACCOUNT_NAME: name}}
        await cluster.create(SECRETS, {"metadata": meta, "type": TYPE})
        await cluster.create(SERVICE_ACCOUNTS, {"metadata": {"name": name}})

    async def filled() -> bool:
        return all("token" in (each.get("data") or {}) for each in await cluster.list(SECRETS))

    await cluster.until(filled)
    await cluster.delete(SERVICE_ACCOUNTS, "second")

    async def gone() -> bool:
        return [each["metadata"]["name"] for each in await cluster.list(SECRETS)] == ["first"]

    await cluster.until(gone)


SCENARIO = Scenario(
    name="token secrets of two accounts, one of which is deleted",
    controllers=(token_secrets.controller(TOKENS),),
    story=filled_and_deleted,
    ignored=frozenset({"token", ACCOUNT_UID}),
)


@pytest.mark.parametrize("faults", FAULTS)
def test_the_contract_holds(faults: str) -> None:
    check(SCENARIO, faults)


def test_a_second_look_writes_nothing() -> None:
    check_second_look(SCENARIO)
