"""Defaults that are written into objects: the same ones in process and by a webhook, and never against their owners."""

from __future__ import annotations

import asyncio
import base64
import copy
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import pytest
from tests.cli.operator.test_webhooks import free_port
from tests.places import ROOT

from holdfast.apiserver.server import Server
from holdfast.cli.operator import installing, webhooks
from holdfast.cli.operator.registration import WebhookOptions
from holdfast.client.api import ApiClient
from holdfast.client.inprocess import InProcess
from holdfast.client.resources import Resource
from holdfast.kinds.grove.sets import KIND
from holdfast.meta.objects import Key
from holdfast.meta.patches import json as jsonpatch
from holdfast.operators.admission import Admission
from holdfast.operators.operator import load

ADMISSION = Admission(load())
SETS = Resource.of(KIND)
KEY = Key("default", "llm")
Wire = dict[str, Any]
Story = Callable[[ApiClient], Awaitable[None]]


def clique(name: str, *, replicas: int | None = 3, minimum: int | None = None) -> Wire:
    spec: Wire = {"roleName": name, "podSpec": {"containers": [{"name": "main", "image": "x"}]}}
    spec |= {} if replicas is None else {"replicas": replicas}
    spec |= {} if minimum is None else {"minAvailable": minimum}
    return {"name": name, "spec": spec}


def a_set(*cliques: Wire) -> Wire:
    metadata = {"name": KEY.name, "namespace": KEY.namespace}
    spec = {"replicas": 1, "template": {"cliques": list(cliques)}}
    return {"apiVersion": KIND.api_version, "kind": KIND.name, "metadata": metadata, "spec": spec}


def minimums(wire: Any) -> dict[str, int | None]:
    return {each["name"]: each["spec"].get("minAvailable") for each in wire["spec"]["template"]["cliques"]}


# --- the functions


def test_a_new_set_gets_the_minimum_of_each_clique_that_leaves_it_out() -> None:
    new = a_set(clique("a"), clique("b", minimum=1), clique("c", replicas=None))
    before = copy.deepcopy(new)
    made = ADMISSION.defaulted(new)
    assert minimums(made) == {"a": 3, "b": 1, "c": 1}
    assert new == before, "the object of the request is not changed"
    assert ADMISSION.defaulted(made) is made, "an object that has its defaults stays as it is"


def test_an_update_that_leaves_the_minimum_out_keeps_it() -> None:
    old = a_set(clique("a", minimum=2), clique("b", minimum=1))
    new = a_set(clique("b", replicas=9), clique("a", replicas=5))
    assert minimums(ADMISSION.defaulted(new, old)) == {"a": 2, "b": 1}


def test_a_set_that_was_created_without_a_minimum_is_not_given_one() -> None:
    old = a_set(clique("a"))
    assert minimums(ADMISSION.defaulted(a_set(clique("a", replicas=5)), old)) == {"a": None}


@pytest.mark.parametrize(
    "broken",
    [
        {},
        {"apiVersion": "v1", "kind": "Pod"},
        {**a_set(clique("a")), "spec": None},
        {**a_set(clique("a")), "spec": {"template": {"cliques": [3]}}},
        {**a_set(clique("a")), "metadata": 3},
        {**a_set(clique("a")), "metadata": {"name": "llm", "deletionTimestamp": "2030-01-01T00:00:00Z"}},
    ],
)
def test_what_cannot_be_read_or_is_being_deleted_is_left_as_it_is(broken: Wire) -> None:
    assert ADMISSION.defaulted(broken) is broken


def test_the_webhook_answers_with_a_patch_that_gives_the_same_object() -> None:
    new = a_set(clique("a"), clique("b"))
    answer = ADMISSION.completed({"request": {"uid": "1", "operation": "CREATE", "object": new}})["response"]
    assert (answer["uid"], answer["allowed"], answer["patchType"]) == ("1", True, "JSONPatch")
    patch = msgspec.json.decode(base64.b64decode(answer["patch"]))
    assert jsonpatch.apply(new, patch) == ADMISSION.defaulted(new)
    complete = {"request": {"uid": "2", "operation": "UPDATE", "object": new, "oldObject": new}}
    assert ADMISSION.completed(complete)["response"] == {"uid": "2", "allowed": True}


@pytest.mark.parametrize("kind", ADMISSION.defaulted_kinds, ids=lambda kind: kind.name)
def test_the_documentation_lists_the_kinds_with_defaults(kind: Any) -> None:
    text = (ROOT / "docs/operator.md").read_text().partition("\n## Defaults\n")[2].partition("\n## ")[0]
    assert f"| {kind.name} |" in text


# --- on a server, in process and by a webhook


@asynccontextmanager
async def opened(how: str) -> AsyncIterator[ApiClient]:
    server = await Server.open(None, admission=ADMISSION if how == "in process" else None)
    client = ApiClient(InProcess(server.handle, server.identity.admin_token))
    try:
        await installing.install(client, [KIND])
        if how == "in process":
            yield client
        else:
            port = free_port()
            options = WebhookOptions(bind="127.0.0.1", port=port, url=f"https://127.0.0.1:{port}")
            async with webhooks.served(client, options, "kube-public", ADMISSION):
                yield client
    finally:
        await client.close()
        await server.close()


@pytest.fixture(params=["in process", "webhook"])
def play(request: pytest.FixtureRequest) -> Callable[[Story], None]:
    async def run(story: Story) -> None:
        async with opened(request.param) as client:
            await story(client)

    return lambda story: asyncio.run(run(story))


def owners(wire: Any) -> set[str]:
    """The managers that own minAvailable of some clique."""
    return {
        each["manager"]
        for each in wire["metadata"]["managedFields"]
        if "f:minAvailable" in str(each["fieldsV1"]) and each.get("subresource") != "status"
    }


def test_a_default_belongs_to_no_manager_and_survives_all_forms_of_updates(play: Callable[[Story], None]) -> None:
    async def story(client: ApiClient) -> None:
        made = (await client.create(SETS, a_set(clique("a")))).wire()
        assert minimums(made) == {"a": 3}
        assert owners(made) == set()
        # A merge patch replaces the whole list, as `kubectl apply` does for custom kinds.
        patched = (await client.patch(SETS, KEY, {"spec": a_set(clique("a", replicas=5))["spec"]})).wire()
        assert minimums(patched) == {"a": 3}
        again = (await client.patch(SETS, KEY, {"spec": a_set(clique("a", replicas=5))["spec"]})).wire()
        assert again["metadata"]["resourceVersion"] == patched["metadata"]["resourceVersion"], "nothing to write"
        assert again["metadata"]["generation"] == 2

    play(story)


def test_server_side_apply_never_conflicts_with_a_default(play: Callable[[Story], None]) -> None:
    async def story(client: ApiClient) -> None:
        made = (await client.apply(SETS, a_set(clique("a")))).wire()
        assert minimums(made) == {"a": 3}
        assert owners(made) == set()
        again = (await client.apply(SETS, a_set(clique("a")))).wire()
        assert again["metadata"]["resourceVersion"] == made["metadata"]["resourceVersion"]
        # A user may write the default down, which makes it theirs, and leave it out again.
        owned = (await client.apply(SETS, a_set(clique("a", minimum=3)))).wire()
        assert len(owners(owned)) == 1
        dropped = (await client.apply(SETS, a_set(clique("a", replicas=4)))).wire()
        assert minimums(dropped) == {"a": 3}
        assert owners(dropped) == set()

    play(story)


def test_an_object_can_be_applied_again_after_the_webhook_is_gone() -> None:
    async def run() -> None:
        server = await Server.open(None)
        client = ApiClient(InProcess(server.handle, server.identity.admin_token))
        try:
            await installing.install(client, [KIND])
            await client.create(SETS, dict(ADMISSION.defaulted(a_set(clique("a", minimum=None)))))
            patched = await client.patch(SETS, KEY, {"spec": a_set(clique("a", replicas=5))["spec"]})
            assert minimums(patched.wire()) == {"a": None}
        finally:
            await client.close()
            await server.close()

    asyncio.run(run())
