"""What is written, and on what condition."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from holdfast.apiserver.server import Server
from holdfast.client.objects import Object
from holdfast.client.protocols import Client
from holdfast.client.resources import CONFIG_MAPS, SECRETS
from holdfast.kernel.children import Desired
from holdfast.kernel.outcomes import Permanent
from holdfast.meta.objects import Key
from holdfast.runtime.decisions import Create, Delete, Patch
from holdfast.runtime.passes.execution import Executor, Written
from holdfast.runtime.passes.failures import Stale
from holdfast.testing.clusters import connected
from holdfast.testing.loops import VirtualLoop, run
from holdfast.testing.snapshots import Snapshot

A = Key("default", "a")


def config(name: str, **data: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": "default"},
        "data": data,
    }


def on_a_server(story: Callable[[Client], Awaitable[None]]) -> None:
    async def play(loop: VirtualLoop) -> None:
        server = await Server.open(None, now=loop.now)
        client = connected(server)
        await story(client)
        await client.close()
        await server.close()

    run(play)


def test_a_patch_of_another_object_of_the_same_name_is_stale() -> None:
    async def story(client: Client) -> None:
        await client.create(CONFIG_MAPS, config("a", x="1"))
        written: list[Written] = []
        patch = Patch(because="test", resource=CONFIG_MAPS, key=A, patch={"data": {"x": "2"}}, uid="another")
        with pytest.raises(Stale):
            await Executor(client, written).carry_out([patch])
        assert (await client.get(CONFIG_MAPS, A)).wire()["data"] == {"x": "1"}
        assert written == []

    on_a_server(story)


def test_a_patch_of_an_object_that_changed_since_is_stale() -> None:
    async def story(client: Client) -> None:
        made = await client.create(CONFIG_MAPS, config("a", x="1"))
        await client.patch(CONFIG_MAPS, A, {"data": {"y": "1"}})
        patch = {"data": {"x": "2"}}
        write = Patch(because="t", resource=CONFIG_MAPS, key=A, patch=patch, uid=made.uid, version=made.version)
        with pytest.raises(Stale):
            await Executor(client).carry_out([write])

    on_a_server(story)


def test_deleting_what_is_gone_is_no_failure_and_deleting_a_successor_is_stale() -> None:
    async def story(client: Client) -> None:
        made = await client.create(CONFIG_MAPS, config("a"))
        await client.delete(CONFIG_MAPS, A)
        delete = Delete(because="t", resource=CONFIG_MAPS, key=A, uid=made.uid)
        await Executor(client).carry_out([delete])
        await client.create(CONFIG_MAPS, config("a"))
        with pytest.raises(Stale):
            await Executor(client).carry_out([delete])

    on_a_server(story)


def test_a_wave_is_not_begun_before_the_one_before_it_has_succeeded() -> None:
    async def story(client: Client) -> None:
        await client.create(CONFIG_MAPS, config("b"))
        writes = [
            Create(because="t", resource=CONFIG_MAPS, manifest=config("later"), wave=1),
            Create(because="t", resource=CONFIG_MAPS, manifest=config("b")),
            Create(because="t", resource=CONFIG_MAPS, manifest=config("c")),
        ]
        written: list[Written] = []
        with pytest.raises(Stale):
            await Executor(client, written).carry_out(writes)
        assert [each.key.name for each in written] == ["c"]
        assert {obj.key.name for obj in (await client.list(CONFIG_MAPS)).objects} == {"b", "c"}

    on_a_server(story)


def test_children_are_created_applied_and_pruned_and_those_of_others_are_left_alone() -> None:
    async def story(client: Client) -> None:
        owner = await client.create(SECRETS, {**config("owner"), "kind": "Secret", "data": {}})
        foreign = await client.create(CONFIG_MAPS, config("foreign", x="theirs"))
        view = Snapshot()
        await Executor(client).settle(
            [Desired(config("a", x="1")), Desired(config("b", x="1"))], owner=owner, owned=[CONFIG_MAPS], view=view
        )
        for obj in (await client.list(CONFIG_MAPS)).objects:
            view.put(CONFIG_MAPS, obj.wire())
        written: list[Written] = []
        with pytest.raises(Permanent, match="foreign exists and no controller owns it"):
            await Executor(client, written).settle(
                [Desired(config("a", x="2")), Desired(config("foreign", x="ours"))],
                owner=owner,
                owned=[CONFIG_MAPS],
                view=view,
            )
        left = {obj.key.name: obj.wire()["data"] for obj in (await client.list(CONFIG_MAPS)).objects}
        assert left == {"a": {"x": "2"}, "foreign": {"x": "theirs"}}
        assert [each.verb for each in written] == ["apply", "delete"]
        assert foreign.uid

    on_a_server(story)


def test_a_status_that_does_not_differ_is_not_written() -> None:
    class Refusing:
        def __getattr__(self, verb: str) -> Any:
            raise AssertionError(f"{verb} was called")

    obj = Object.of(CONFIG_MAPS, {"metadata": {"name": "a"}, "status": {"x": 1}})
    asyncio.run(Executor(Refusing()).status(obj, {"x": 1}))


def test_a_child_that_is_refused_does_not_stop_the_others_and_each_refusal_is_named() -> None:
    async def story(client: Client) -> None:
        owner = await client.create(SECRETS, {**config("owner"), "kind": "Secret", "data": {}})
        view = Snapshot()
        await Executor(client).settle([Desired(config("old"))], owner=owner, owned=[CONFIG_MAPS], view=view)
        view.put(CONFIG_MAPS, (await client.get(CONFIG_MAPS, Key("default", "old"))).wire())
        wrong = [Desired({**config(name), "data": {"not/a/key": "1"}}) for name in ("b", "d")]
        with pytest.raises(Permanent) as refused:
            await Executor(client).settle(
                [Desired(config("a")), *wrong, Desired(config("c"))], owner=owner, owned=[CONFIG_MAPS], view=view
            )
        assert {obj.key.name for obj in (await client.list(CONFIG_MAPS)).objects} == {"a", "c", "old"}, (
            "what is wanted no more is not deleted while its successor may be what was refused"
        )
        assert refused.value.reason == "Invalid"
        for name in ("b", "d"):
            assert f"creating ConfigMap default/{name}: " in refused.value.message
        assert "not/a/key" in refused.value.message

    on_a_server(story)
