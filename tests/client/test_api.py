"""The client against the embedded server, and against answers that no good server gives."""

from __future__ import annotations

import asyncio
import gc
import sys
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
import pytest
from tests.client.api_servers import NAMESPACE, Chaos, Embedded, Scripted, configmap, embedded, pod, streamed

from holdfast.client import api
from holdfast.client.api import ApiClient
from holdfast.client.protocols import (
    MANAGER,
    Added,
    Bookmark,
    Client,
    Deleted,
    Event,
    Modified,
    PatchType,
    Scope,
    Unreachable,
    Unsent,
)
from holdfast.client.resources import CONFIG_MAPS, DEPLOYMENTS, NAMESPACES, NODES, PODS, ROLES
from holdfast.meta.errors import (
    AlreadyExists,
    Conflict,
    Expired,
    Forbidden,
    Gone,
    Invalid,
    NotFound,
    StatusError,
    TooManyRequests,
)
from holdfast.meta.exchange import Request, Response
from holdfast.meta.objects import Key
from holdfast.testing import loops

ONE = Key(NAMESPACE, "one")


def test_it_is_a_client() -> None:
    client: Client = ApiClient(Scripted())
    assert client


# Reading.


def test_what_was_created_can_be_read() -> None:
    async def test(api: Embedded) -> None:
        made = await api.client.create(CONFIG_MAPS, configmap("one", data={"k": "v"}))
        got = await api.client.get(CONFIG_MAPS, ONE)
        assert got.raw == made.raw
        assert got.wire()["data"] == {"k": "v"}
        assert (got.key, got.version, got.uid) == (ONE, made.version, made.uid)
        assert api.seen == [("create", "configmaps", 201), ("get", "configmaps", 200)]

    embedded(test)


def test_a_name_that_a_url_must_escape_is_found() -> None:
    async def test(api: Embedded) -> None:
        await api.client.create(ROLES, {"metadata": {"name": "a:b", "namespace": NAMESPACE}, "rules": []})
        assert (await api.client.get(ROLES, Key(NAMESPACE, "a:b"))).meta.name == "a:b"

    embedded(test)


@pytest.mark.parametrize(
    ("error", "ask"),
    [
        (NotFound, lambda client: client.get(CONFIG_MAPS, Key(NAMESPACE, "none"))),
        (NotFound, lambda client: client.delete(CONFIG_MAPS, Key(NAMESPACE, "none"))),
        (AlreadyExists, lambda client: client.create(CONFIG_MAPS, configmap("one"))),
        (Invalid, lambda client: client.create(CONFIG_MAPS, configmap("No Name"))),
        (Conflict, lambda client: client.patch(CONFIG_MAPS, ONE, {"metadata": {"uid": "another"}})),
        (Conflict, lambda client: client.patch(CONFIG_MAPS, ONE, {"metadata": {"resourceVersion": "1"}})),
        (Conflict, lambda client: client.apply(CONFIG_MAPS, configmap("one", metadata={"uid": "another"}))),
        (Conflict, lambda client: client.delete(CONFIG_MAPS, ONE, uid="another")),
        (Conflict, lambda client: client.delete(CONFIG_MAPS, ONE, version="1")),
        (Forbidden, lambda client: client.delete(NAMESPACES, Key("", "default"))),
    ],
)
def test_refusals_raise_the_error_they_stand_for(error: type[StatusError], ask: Any) -> None:
    async def test(api: Embedded) -> None:
        await api.client.create(CONFIG_MAPS, configmap("one"))
        with pytest.raises(error):
            await ask(api.client)

    embedded(test)


def test_a_list_is_all_pages_at_one_version(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(api, "PAGE", 2)

    async def test(api: Embedded) -> None:
        made = [await api.client.create(CONFIG_MAPS, configmap(f"m{number}")) for number in range(5)]
        way = Chaos(api.transport)
        listing = await api.through(way).list(CONFIG_MAPS, Scope(namespace=NAMESPACE))
        assert [each.meta.name for each in listing.objects] == ["m0", "m1", "m2", "m3", "m4"]
        assert listing.version == made[-1].version
        assert len(way.requests) == 3

    embedded(test)


def test_a_list_whose_pages_expire_is_asked_for_as_a_whole() -> None:
    page = Response.of({"metadata": {"resourceVersion": "5", "continue": "more"}, "items": [configmap("old")]})
    expired = Response.of(Expired.of_page("elsewhere").to_status(), status=410)
    whole = Response.of({"metadata": {"resourceVersion": "9"}, "items": [configmap("a"), configmap("b")]})

    async def test(loop: loops.VirtualLoop) -> None:
        way = Scripted(page, expired, whole)
        listing = await ApiClient(way).list(CONFIG_MAPS)
        assert ([each.meta.name for each in listing.objects], listing.version) == (["a", "b"], "9")
        assert [sorted(request.query) for request in way.requests] == [["limit"], ["continue", "limit"], []]

    loops.run(test)


def test_a_list_without_items_is_empty() -> None:
    async def test(loop: loops.VirtualLoop) -> None:
        listing = await ApiClient(Scripted(Response.of({"metadata": {"resourceVersion": "5"}, "items": None}))).list(
            PODS
        )
        assert (listing.objects, listing.version) == ((), "5")

    loops.run(test)


def test_selectors_and_namespaces_narrow_a_list() -> None:
    async def test(api: Embedded) -> None:
        await api.client.create(NAMESPACES, {"metadata": {"name": "other"}})
        for name, namespace, app in (("a", NAMESPACE, "x"), ("b", NAMESPACE, "y"), ("c", "other", "x")):
            await api.client.create(CONFIG_MAPS, configmap(name, namespace, metadata={"labels": {"app": app}}))

        async def names(scope: Scope) -> list[str]:
            return [each.meta.name for each in (await api.client.list(CONFIG_MAPS, scope)).objects]

        assert await names(Scope(labels="app=x")) == ["a", "c"]
        assert await names(Scope(namespace=NAMESPACE, labels="app=x")) == ["a"]
        assert await names(Scope(fields="metadata.name=b")) == ["b"]

    embedded(test)


def test_metadata_alone_is_enough_for_who_asks_for_no_more() -> None:
    async def test(api: Embedded) -> None:
        await api.client.create(CONFIG_MAPS, configmap("one", data={"k": "v" * 1000}))
        (only,) = (await api.client.list(CONFIG_MAPS, metadata_only=True)).objects
        assert (only.meta.name, b'"data"' in only.raw) == ("one", False)
        async with api.client.watch(CONFIG_MAPS, initial=True, metadata_only=True) as events:
            first = await anext(events)
        assert isinstance(first, Added)
        assert (first.object.meta.name, b'"data"' in first.object.raw) == ("one", False)

    embedded(test)


def test_an_object_does_not_keep_the_page_alive_that_it_came_with() -> None:
    body = msgspec.json.encode({"metadata": {}, "items": [configmap("a", data={"k": "v" * 100}) for _ in range(100)]})
    page = Response(200, body)

    async def test(loop: loops.VirtualLoop) -> int:
        objects = (await ApiClient(Scripted(page)).list(CONFIG_MAPS)).objects
        gc.collect()
        assert all(type(each.raw) is bytes and len(each.raw) < 200 for each in objects)
        return sys.getrefcount(body)

    before = sys.getrefcount(body)
    assert loops.run(test) == before


# Watching.


async def seen_until(api: ApiClient, last: str, **options: Any) -> list[Event]:
    """The events of a watch up to the one of the object `last`."""
    found: list[Event] = []
    async with api.watch(CONFIG_MAPS, **options) as events:
        async for event in events:
            found.append(event)
            if not isinstance(event, Bookmark) and event.object.meta.name == last:
                break
    return found


def test_a_watch_goes_on_where_a_list_ended() -> None:
    async def test(api: Embedded) -> None:
        await api.client.create(CONFIG_MAPS, configmap("before"))
        version = (await api.client.list(CONFIG_MAPS)).version
        await api.client.create(CONFIG_MAPS, configmap("one"))
        changed = await api.client.patch(CONFIG_MAPS, ONE, {"data": {"k": "v"}})
        await api.client.delete(CONFIG_MAPS, ONE)
        await api.client.create(CONFIG_MAPS, configmap("last"))
        added, modified, deleted, last = await seen_until(api.client, "last", since=version)
        assert [type(each) for each in (added, modified, deleted, last)] == [Added, Modified, Deleted, Added]
        assert isinstance(modified, Modified)
        assert modified.object.version == changed.version
        assert isinstance(deleted, Deleted)
        assert int(deleted.object.version) > int(changed.version)

    embedded(test)


def test_a_streaming_list_says_where_its_beginning_ends() -> None:
    async def test(api: Embedded) -> None:
        await api.client.create(CONFIG_MAPS, configmap("one"))
        made = await api.client.create(CONFIG_MAPS, configmap("two"))
        async with api.client.watch(CONFIG_MAPS, initial=True) as events:
            first, second, end = [await anext(events) for _ in range(3)]
        assert isinstance(first, Added)
        assert isinstance(second, Added)
        assert end == Bookmark(made.version, initial=True)

    embedded(test)


def test_a_watch_ends_after_its_time_which_is_no_error() -> None:
    async def test(api: Embedded) -> None:
        clock = asyncio.get_running_loop().time
        started = clock()
        async with api.client.watch(CONFIG_MAPS, since="1") as events:
            bookmarks = [event async for event in events]
        assert {type(event) for event in bookmarks} == {Bookmark}
        assert 300 <= clock() - started <= 600

    embedded(test)


def test_watches_begun_together_do_not_end_together() -> None:
    async def test(loop: loops.VirtualLoop) -> None:
        way = Scripted(*(streamed([]) for _ in range(10)))
        client = ApiClient(way)
        for _ in range(10):
            async with client.watch(PODS):
                pass
        lengths = {request.param("timeoutSeconds") for request in way.requests}
        assert len(lengths) > 5
        assert all(300 <= int(length) <= 600 for length in lengths)

    loops.run(test)


def test_a_watch_of_what_is_forgotten_raises_that_it_is() -> None:
    async def test(api: Embedded) -> None:
        with pytest.raises(Gone):
            await seen_until(api.client, "none", since="999999")

    embedded(test)


def test_a_watch_that_is_left_is_closed_on_the_server() -> None:
    async def test(api: Embedded) -> None:
        for _ in range(3):
            async with api.client.watch(CONFIG_MAPS, initial=True) as events:
                await anext(events)
            async with api.client.watch(CONFIG_MAPS):
                pass  # never read
        with pytest.raises(RuntimeError, match="of the reader"):
            async with api.client.watch(CONFIG_MAPS) as events:
                raise RuntimeError("of the reader")
        assert api.server.limits.watches == 0

    embedded(test)


def test_a_watch_that_breaks_off_is_unreachable() -> None:
    async def test(api: Embedded) -> None:
        await api.client.create(CONFIG_MAPS, configmap("one"))
        with pytest.raises(Unreachable):
            await seen_until(api.through(Chaos(api.transport, "cut")), "one", initial=True)
        assert api.server.limits.watches == 0

    embedded(test)


# Writing.


def test_writes_are_ours_by_name() -> None:
    async def test(api: Embedded) -> None:
        made = await api.client.create(CONFIG_MAPS, configmap("one"))
        applied = await api.client.apply(CONFIG_MAPS, configmap("one", data={"k": "v"}))
        patched = await api.client.patch(CONFIG_MAPS, ONE, {"data": {"l": "w"}})
        managers = [each["manager"] for each in patched.wire()["metadata"]["managedFields"]]
        assert set(managers) == {MANAGER}
        assert int(made.version) < int(applied.version) < int(patched.version)
        assert [verb for verb, _, _ in api.seen] == ["create", "apply", "patch"]

    embedded(test)


def test_an_apply_without_force_yields_to_others() -> None:
    async def test(api: Embedded) -> None:
        other = Request(
            "PATCH",
            CONFIG_MAPS.path(NAMESPACE, "one"),
            {"fieldManager": ("other",)},
            {"content-type": PatchType.APPLY.value},
            msgspec.json.encode({"apiVersion": "v1", "kind": "ConfigMap", **configmap("one", data={"k": "theirs"})}),
        )
        await api.client.raw(other)
        with pytest.raises(Conflict):
            await api.client.apply(CONFIG_MAPS, configmap("one", data={"k": "ours"}), force=False)
        assert (await api.client.apply(CONFIG_MAPS, configmap("one", data={"k": "ours"}))).wire()["data"]["k"] == "ours"

    embedded(test)


@pytest.mark.parametrize(
    ("type", "patch"),
    [
        (PatchType.MERGE, {"data": {"k": "v"}}),
        (PatchType.STRATEGIC, {"data": {"k": "v"}}),
        (PatchType.JSON, [{"op": "add", "path": "/data", "value": {"k": "v"}}]),
    ],
)
def test_every_type_of_patch_works(type: PatchType, patch: Any) -> None:
    async def test(api: Embedded) -> None:
        await api.client.create(CONFIG_MAPS, configmap("one"))
        assert (await api.client.patch(CONFIG_MAPS, ONE, patch, type=type)).wire()["data"] == {"k": "v"}

    embedded(test)


def test_a_status_is_written_apart() -> None:
    async def test(api: Embedded) -> None:
        await api.client.create(PODS, pod("one"))
        status = {"status": {"phase": "Running"}}
        assert (await api.client.patch(PODS, ONE, status)).wire()["status"]["phase"] == "Pending"
        assert (await api.client.patch(PODS, ONE, status, subresource="status")).wire()["status"]["phase"] == "Running"

    embedded(test)


def test_subresources_that_are_created_are_posted() -> None:
    async def test(api: Embedded) -> None:
        await api.client.create(NODES, {"metadata": {"name": "node"}})
        await api.client.create(PODS, pod("one"))
        binding = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": "one"}, "target": {"name": "node"}}
        answer = msgspec.json.decode(await api.client.post(PODS, ONE, "binding", binding))
        assert answer["status"] == "Success"
        assert (await api.client.get(PODS, ONE)).wire()["spec"]["nodeName"] == "node"

    embedded(test)


def test_a_deletion_tells_what_lives_on_from_what_is_gone() -> None:
    async def test(api: Embedded) -> None:
        client = api.client
        await client.create(CONFIG_MAPS, configmap("one"))
        assert await client.delete(CONFIG_MAPS, ONE) is None

        await client.create(CONFIG_MAPS, configmap("one", metadata={"finalizers": ["example.com/hold"]}))
        held = await client.delete(CONFIG_MAPS, ONE)
        assert held is not None
        assert held.deleting

        await client.create(NODES, {"metadata": {"name": "node"}})
        await client.create(PODS, pod("one", nodeName="node"))
        graced = await client.delete(PODS, ONE)
        assert graced is not None
        assert graced.meta.deletion_grace_period_seconds == 30
        assert await client.delete(PODS, ONE, grace_seconds=0) is None

        await client.create(PODS, pod("one"))  # no node knows it, so that there is no kubelet to wait for
        assert await client.delete(PODS, ONE) is None

        await client.create(NAMESPACES, {"metadata": {"name": "full"}})
        assert await client.delete(NAMESPACES, Key("", "full"), grace_seconds=0) is not None

    embedded(test)


def test_a_deletion_obeys_its_propagation() -> None:
    async def test(api: Embedded) -> None:
        template = {"metadata": {"labels": {"app": "x"}}, "spec": pod("x")["spec"]}
        spec = {"selector": {"matchLabels": {"app": "x"}}, "template": template}
        await api.client.create(DEPLOYMENTS, {"metadata": {"name": "one", "namespace": NAMESPACE}, "spec": spec})
        left = await api.client.delete(DEPLOYMENTS, ONE, propagation="Foreground")
        assert left is not None
        assert left.meta.finalizers == ("foregroundDeletion",)

    embedded(test)


# What goes wrong on the way.


def test_reads_survive_whatever_passes() -> None:
    async def test(api: Embedded) -> None:
        await api.client.create(CONFIG_MAPS, configmap("one"))
        client = api.through(Chaos(api.transport, "refused", "lost", "lost"))
        assert (await client.get(CONFIG_MAPS, ONE)).meta.name == "one"
        assert [code for _, _, code in api.seen] == [201, 0, 0, 0, 200]

    embedded(test)


def test_a_write_that_never_left_is_sent_again() -> None:
    async def test(api: Embedded) -> None:
        client = api.through(Chaos(api.transport, "refused", "refused"))
        assert (await client.create(CONFIG_MAPS, configmap("one"))).meta.name == "one"

    embedded(test)


def test_a_write_whose_answer_is_lost_is_not_sent_again() -> None:
    async def test(api: Embedded) -> None:
        way = Chaos(api.transport, "lost")
        with pytest.raises(Unreachable):
            await api.through(way).create(CONFIG_MAPS, configmap("one"))
        assert len(way.requests) == 1
        assert (await api.client.get(CONFIG_MAPS, ONE)).meta.name == "one"

    embedded(test)


def test_a_server_that_stays_away_is_not_asked_for_ever() -> None:
    async def test(api: Embedded) -> None:
        way = Chaos(api.transport, *["refused"] * 99)
        with pytest.raises(Unsent):
            await api.through(way).get(CONFIG_MAPS, ONE)
        assert len(way.requests) == 5

    embedded(test)


def test_a_server_in_trouble_is_asked_again_when_it_says() -> None:
    async def test(loop: loops.VirtualLoop) -> None:
        busy = Response.of(TooManyRequests("busy").to_status(), status=429)
        busy.headers["Retry-After"] = "7"
        made = Response.of(configmap("one"), status=201)
        client = ApiClient(Scripted(busy, made))
        assert (await client.create(CONFIG_MAPS, configmap("one"))).meta.name == "one"
        assert 7 <= loop.time() < 8

    loops.run(test)


def test_the_error_says_how_long_the_head_of_the_answer_asked_to_wait() -> None:
    async def test(loop: loops.VirtualLoop) -> None:
        away = Response(503, b"<html>upstream is away</html>", headers={"retry-after": "120"})
        with pytest.raises(StatusError, match="upstream is away") as caught:
            await ApiClient(Scripted(away)).create(CONFIG_MAPS, configmap("one"))
        assert (caught.value.code, caught.value.retry_after_seconds) == (503, 120)

    loops.run(test)


@pytest.mark.parametrize("body", [b"<html>", b"[]", b'{"metadata": 5}', b""])
def test_answers_that_no_api_server_gives_are_as_good_as_none(body: bytes) -> None:
    async def test(loop: loops.VirtualLoop) -> None:
        asks: tuple[Callable[[ApiClient], Awaitable[Any]], ...] = (
            lambda client: client.get(CONFIG_MAPS, ONE),
            lambda client: client.list(CONFIG_MAPS),
            lambda client: client.create(CONFIG_MAPS, configmap("one")),
            lambda client: client.delete(CONFIG_MAPS, ONE),
        )
        for ask in asks:
            with pytest.raises(Unreachable):
                await ask(ApiClient(Scripted(Response(200, body))))

    loops.run(test)


def test_a_watch_that_is_answered_whole_is_unreachable() -> None:
    async def test(loop: loops.VirtualLoop) -> None:
        with pytest.raises(Unreachable, match="without a stream"):
            async with ApiClient(Scripted(Response.of({}))).watch(PODS):
                raise AssertionError("nothing to watch")

    loops.run(test)
