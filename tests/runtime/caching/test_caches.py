"""Caches on the embedded server: shared, merged, completed and dropped as they are wanted."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from random import Random
from typing import Any

import pytest

from holdfast.apiserver.server import Server
from holdfast.client.api import ApiClient
from holdfast.client.inprocess import InProcess
from holdfast.client.objects import Object
from holdfast.client.protocols import Scope
from holdfast.client.resources import CONFIG_MAPS, DEFINITIONS, NAMESPACES, PODS, SECRETS, Resource
from holdfast.meta.exchange import Request, Response
from holdfast.meta.objects import Key
from holdfast.meta.selectors import LabelSelector
from holdfast.runtime.caching.caches import Caches, NotWatched
from holdfast.runtime.controllers import Index, Stores
from holdfast.testing.loops import VirtualLoop, run

WIDGETS = Resource("example.com", "v1", "widgets", "Widget")
BY_COLOUR = Index(resource=CONFIG_MAPS, name="colour", values=lambda each: [each.decode(dict)["data"]["colour"]])


def config_map(name: str, colour: str = "red", *, namespace: str = "default", **meta: Any) -> dict[str, Any]:
    return {"metadata": {"name": name, "namespace": namespace, **meta}, "data": {"colour": colour}}


@dataclass
class Story:
    """A server, a client of it, and caches that follow it while `follow` is open."""

    loop: VirtualLoop
    server: Server
    client: ApiClient
    caches: Caches
    requests: list[Request] = field(default_factory=list)
    restarts: list[tuple[str, str]] = field(default_factory=list)
    task: asyncio.Task[None] | None = None

    def follow(self) -> None:
        self.task = self.loop.create_task(self.caches.run())

    async def unfollow(self) -> None:
        if self.task is not None:
            self.task.cancel()
            with suppress(asyncio.CancelledError):
                await self.task

    async def settle(self, seconds: float = 0.01) -> None:
        await asyncio.sleep(seconds)

    def colours(self, **options: Any) -> list[str]:
        return [each.wire()["data"]["colour"] for each in self.caches.list(CONFIG_MAPS, **options)]

    def watches(self, resource: Resource) -> list[str]:
        """The paths of the watches that were asked for."""
        return [each.path for each in self.requests if "watch" in each.query and each.path.endswith(resource.plural)]


def tell(story: Callable[[Story], Awaitable[None]], **options: Any) -> None:
    async def main(loop: VirtualLoop) -> None:
        server = await Server.open(None, now=loop.now)
        requests: list[Request] = []
        restarts: list[tuple[str, str]] = []

        async def handle(request: Request) -> Response:
            requests.append(request)
            return await server.handle(request)

        client = ApiClient(InProcess(handle, server.identity.admin_token), random=Random(1))

        def restarted(resource: str, reason: str) -> None:
            restarts.append((resource, reason))

        caches = Caches(client, random=Random(1).random, restarted=restarted, **options)
        it = Story(loop, server, client, caches, requests, restarts)
        try:
            await story(it)
        finally:
            await it.unfollow()
            await client.close()
            await server.close()
        assert [task for task in asyncio.all_tasks() if task.get_name().startswith("watch")] == []

    run(main)


def test_caches_are_what_components_are_given() -> None:
    async def story(it: Story) -> None:
        stores: Stores = it.caches
        assert stores is it.caches

    tell(story)


def test_what_is_required_before_or_after_the_start_is_followed() -> None:
    async def story(it: Story) -> None:
        await it.client.create(CONFIG_MAPS, config_map("a", labels={"app": "web"}))
        it.caches.require(CONFIG_MAPS, indexes=[BY_COLOUR])
        it.follow()
        await it.caches.synced(CONFIG_MAPS)
        assert it.colours() == ["red"]
        it.caches.require(NAMESPACES)
        await it.caches.synced()
        assert it.caches.get(NAMESPACES, Key("", "default")) is not None
        made = await it.client.create(CONFIG_MAPS, config_map("b", "blue"))
        await it.settle()
        assert it.caches.get(CONFIG_MAPS, made.key) is not None
        assert it.colours(labels=LabelSelector.parse("app=web")) == ["red"]
        assert [each.meta.name for each in it.caches.indexed(CONFIG_MAPS, "colour", "blue")] == ["b"]
        assert it.caches.owned(CONFIG_MAPS, "none") == ()
        assert it.caches.trouble() == {}

    tell(story)


def test_a_resource_is_watched_once_however_many_want_it() -> None:
    async def story(it: Story) -> None:
        it.caches.require(CONFIG_MAPS)
        it.follow()
        it.caches.require(CONFIG_MAPS, indexes=[BY_COLOUR])
        it.caches.subscribe(CONFIG_MAPS, lambda old, new: None, metadata_only=True)
        await it.caches.synced()
        assert len(it.watches(CONFIG_MAPS)) == 1

    tell(story)


def test_a_resource_that_is_not_watched_is_an_error_that_says_what_to_do() -> None:
    async def story(it: Story) -> None:
        for ask in (
            lambda: it.caches.get(PODS, Key("default", "a")),
            lambda: it.caches.list(PODS),
            lambda: it.caches.owned(PODS, "uid"),
            lambda: it.caches.indexed(PODS, "node", "n1"),
        ):
            with pytest.raises(NotWatched, match=r"pods \(v1\) is not watched; name it among"):
                ask()
        with pytest.raises(NotWatched):
            await it.caches.synced(PODS)

    tell(story)


def test_a_second_run_is_refused() -> None:
    async def story(it: Story) -> None:
        it.follow()
        await it.settle()
        with pytest.raises(RuntimeError, match="the caches run already"):
            await it.caches.run()

    tell(story)


def test_several_namespaces_are_read_as_one() -> None:
    async def story(it: Story) -> None:
        for namespace in ("one", "two", "three"):
            await it.client.create(NAMESPACES, {"metadata": {"name": namespace}})
            await it.client.create(CONFIG_MAPS, config_map("a", namespace, namespace=namespace, labels={"app": "web"}))
        it.caches.require(CONFIG_MAPS, indexes=[BY_COLOUR])
        it.caches.require(NAMESPACES)
        it.follow()
        await it.caches.synced()
        assert it.colours() == it.colours(labels=LabelSelector.parse("app=web")) == ["one", "two"]
        assert it.colours(namespace="two") == ["two"]
        assert it.colours(namespace="three") == []
        assert it.caches.get(CONFIG_MAPS, Key("three", "a")) is None
        assert len(it.caches.indexed(CONFIG_MAPS, "colour", "two")) == 1
        assert it.caches.get(NAMESPACES, Key("", "three")) is not None, "what has no namespace is seen whole"
        assert sorted(it.watches(CONFIG_MAPS)) == [
            "/api/v1/namespaces/one/configmaps",
            "/api/v1/namespaces/two/configmaps",
        ]
        called: list[str] = []
        it.caches.when_seen(CONFIG_MAPS, Key("three", "a"), "999999", lambda: called.append("unwatched"))
        assert called == ["unwatched"], "no decision reads what is not watched"

    tell(story, namespaces=["two", "one", "two"])


def test_only_what_selectors_match_is_seen() -> None:
    async def story(it: Story) -> None:
        await it.client.create(CONFIG_MAPS, config_map("a", "red", labels={"app": "web"}))
        await it.client.create(CONFIG_MAPS, config_map("b", "blue"))
        it.caches.require(CONFIG_MAPS)
        it.follow()
        await it.caches.synced()
        assert it.colours() == ["red"]
        await it.client.patch(CONFIG_MAPS, Key("default", "a"), {"metadata": {"labels": {"app": None}}})
        await it.settle()
        assert it.colours() == []

    tell(story, scopes={CONFIG_MAPS: Scope(labels="app=web")})


def test_own_writes_are_seen_when_they_are_in_the_store() -> None:
    async def story(it: Story) -> None:
        it.caches.require(CONFIG_MAPS)
        it.follow()
        await it.caches.synced()
        called: list[object] = []
        made = await it.client.create(CONFIG_MAPS, config_map("a"))
        it.caches.when_seen(
            CONFIG_MAPS, made.key, made.version, lambda: called.append(it.caches.get(CONFIG_MAPS, made.key))
        )
        await it.settle()
        assert [getattr(each, "version", None) for each in called] == [made.version]
        await it.client.delete(CONFIG_MAPS, made.key)
        it.caches.when_gone(CONFIG_MAPS, made.key, made.uid, lambda: called.append("gone"))
        it.caches.when_gone(SECRETS, made.key, made.uid, lambda: called.append("never watched"))
        await it.settle()
        assert called[1:] in (["gone", "never watched"], ["never watched", "gone"])

    tell(story)


def test_a_forgotten_past_costs_a_list_and_no_deletion() -> None:
    async def story(it: Story) -> None:
        calls: list[tuple[Object | None, Object | None]] = []
        made = await it.client.create(CONFIG_MAPS, config_map("a"))
        it.caches.subscribe(CONFIG_MAPS, lambda old, new: calls.append((old, new)))
        it.follow()
        await it.caches.synced()
        assert [new.uid for _, new in calls if new] == [made.uid]
        await it.unfollow()
        await it.client.delete(CONFIG_MAPS, made.key)
        again = await it.client.create(CONFIG_MAPS, config_map("a", "blue"))
        await it.server.store.compact()
        it.follow()
        await it.settle()
        assert [(old and old.uid, new and new.uid) for old, new in calls[1:]] == [(made.uid, None), (None, again.uid)]

    tell(story)


def test_a_day_of_watching_is_a_few_restarts_and_no_trouble() -> None:
    async def story(it: Story) -> None:
        it.caches.require(CONFIG_MAPS)
        it.follow()
        await it.settle(24 * 3600)
        await it.client.create(CONFIG_MAPS, config_map("a"))
        await it.settle()
        assert it.colours() == ["red"]
        assert set(it.restarts) == {("configmaps", "ended")}
        assert 140 < len(it.restarts) < 300
        assert it.caches.trouble() == {}

    tell(story)


# --- metadata


def test_metadata_alone_is_fetched_until_a_subscriber_needs_whole_objects() -> None:
    async def story(it: Story) -> None:
        content: list[str] = []
        whole: list[dict[str, Any]] = []
        await it.client.create(CONFIG_MAPS, config_map("a", finalizers=["example.com/hold"]))
        it.caches.subscribe(CONFIG_MAPS, lambda old, new: content.append(new.meta.name), metadata_only=True)
        it.follow()
        await it.caches.synced()
        held = it.caches.list(CONFIG_MAPS)[0]
        assert held.meta.finalizers == ("example.com/hold",)
        assert "data" not in held.wire()

        it.caches.subscribe(CONFIG_MAPS, lambda old, new: whole.append(new.wire()))
        it.caches.require(CONFIG_MAPS, indexes=[BY_COLOUR])
        assert whole == [], "a subscriber of whole objects is not called with a part"
        await it.caches.synced()
        assert it.colours() == ["red"]
        assert [each["data"] for each in whole] == [{"colour": "red"}]
        assert content == ["a"], "the subscriber of metadata was called once"
        await it.client.create(CONFIG_MAPS, config_map("b", "blue"))
        await it.settle()
        assert content == ["a", "b"]
        assert [each["data"]["colour"] for each in whole] == ["red", "blue"]
        assert len(it.caches.indexed(CONFIG_MAPS, "colour", "red")) == 1

    tell(story)


def test_a_subscriber_of_metadata_shares_whole_objects() -> None:
    async def story(it: Story) -> None:
        it.caches.require(CONFIG_MAPS)
        it.follow()
        await it.client.create(CONFIG_MAPS, config_map("a"))
        await it.caches.synced()
        seen: list[Object | None] = []
        it.caches.subscribe(CONFIG_MAPS, lambda old, new: seen.append(new), metadata_only=True)
        await it.settle()
        assert seen == list(it.caches.list(CONFIG_MAPS))
        assert len(it.watches(CONFIG_MAPS)) == 1

    tell(story)


def test_asking_for_more_from_within_the_first_list_is_answered_in_full() -> None:
    async def story(it: Story) -> None:
        whole: list[dict[str, Any]] = []

        def curious(old: Object | None, new: Object | None) -> None:
            if not it.caches.list(CONFIG_MAPS)[0].wire().get("data"):
                it.caches.subscribe(CONFIG_MAPS, lambda old, new: whole.append(new.wire()))

        await it.client.create(CONFIG_MAPS, config_map("a"))
        it.caches.subscribe(CONFIG_MAPS, curious, metadata_only=True)
        it.follow()
        await it.settle()
        assert it.caches.trouble() == {}
        assert [each["data"] for each in whole] == [{"colour": "red"}]

    tell(story)


# --- kinds that come and go


def definition() -> dict[str, Any]:
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    names = {"plural": "widgets", "kind": "Widget"}
    spec = {"group": "example.com", "scope": "Namespaced", "names": names, "versions": [version]}
    return {"metadata": {"name": "widgets.example.com"}, "spec": spec}


def test_a_kind_that_is_installed_later_is_found_and_until_then_it_is_known_what_is_missing() -> None:
    async def story(it: Story) -> None:
        it.caches.require(WIDGETS)
        it.caches.require(CONFIG_MAPS)
        it.follow()
        await it.caches.synced(CONFIG_MAPS)
        await it.settle(10)
        assert list(it.caches.trouble()) == [WIDGETS]
        assert it.caches.trouble()[WIDGETS].startswith("missing: ")
        await it.client.create(DEFINITIONS, definition())
        await it.settle(5)
        await it.client.create(WIDGETS, {"metadata": {"name": "w", "namespace": "default"}})
        await it.caches.synced()
        await it.settle()
        assert it.caches.get(WIDGETS, Key("default", "w")) is not None
        assert it.caches.trouble() == {}

    tell(story)


def test_what_the_last_subscriber_leaves_is_followed_no_longer() -> None:
    async def story(it: Story) -> None:
        it.follow()
        await it.settle()
        stop = it.caches.subscribe(SECRETS, lambda old, new: None, metadata_only=True)
        other = it.caches.subscribe(SECRETS, lambda old, new: None)
        await it.caches.synced(SECRETS)
        called: list[str] = []
        it.caches.when_seen(SECRETS, Key("default", "a"), "999999", lambda: called.append("released"))
        other()
        assert it.caches.list(SECRETS) == ()
        stop()
        stop()
        assert called == ["released"]
        with pytest.raises(NotWatched):
            it.caches.list(SECRETS)
        await it.settle()
        assert [task for task in asyncio.all_tasks() if task.get_name().startswith("watch")] == []

    tell(story)


def test_a_required_resource_is_watched_though_subscribers_leave() -> None:
    async def story(it: Story) -> None:
        it.caches.require(CONFIG_MAPS)
        it.follow()
        it.caches.subscribe(CONFIG_MAPS, lambda old, new: None)()
        await it.caches.synced()
        assert it.caches.list(CONFIG_MAPS) == ()

    tell(story)


def test_a_wait_for_a_resource_that_is_given_up_ends() -> None:
    async def story(it: Story) -> None:
        it.follow()
        stop = it.caches.subscribe(WIDGETS, lambda old, new: None)
        waiting = it.loop.create_task(it.caches.synced(WIDGETS))
        await it.settle(5)
        assert not waiting.done()
        stop()
        await waiting

    tell(story)
