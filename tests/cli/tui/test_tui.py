"""``holdfast tui`` on a live cluster, driven by keys on a screen of 80 by 24."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from tests.clusters import up
from tests.waiting import eventually

from holdfast.cli import main
from holdfast.cli.connecting import Session
from holdfast.cli.objects import logs
from holdfast.client.api import ApiClient
from holdfast.client.kubeconfig import connect
from holdfast.client.resources import EVENTS, Resource
from holdfast.kinds.cloudless import KINDS
from holdfast.meta import times
from holdfast.meta.objects import Key
from holdfast.views.spans import text

pytest.importorskip("textual")

from textual import events
from textual.keys import _character_to_key
from textual.pilot import Pilot
from textual.widgets import Input

from holdfast.cli.tui.app import HoldfastApp
from holdfast.cli.tui.view import View

WORKLOADS = Resource.of(KINDS[0])
Story = Callable[["Driver"], Awaitable[None]]


@pytest.fixture(scope="module")
def kubeconfig() -> Iterator[Path]:
    """The kubeconfig of a cluster with the operator of Workloads."""
    with up("--nodes", "1", "--operators", "workload") as path:
        for name, image, replicas in (("shop", "web:1", 3), ("stuck", "web:broken", 2)):
            asyncio.run(_created(path, name, image, replicas))
        yield path


async def _created(kubeconfig: Path, name: str, image: str, replicas: int) -> None:
    client = connect(kubeconfig).client
    try:
        rollout = {"progressDeadline": "2s", "minAvailable": 1, "maxSurge": 1}
        spec = {"image": image, "replicas": replicas, "rollout": rollout}
        await client.create(WORKLOADS, {"metadata": {"name": name, "namespace": "default"}, "spec": spec})
    finally:
        await client.close()


class Driver:
    """A user at the terminal."""

    def __init__(self, app: HoldfastApp, pilot: Pilot[None], client: ApiClient) -> None:
        self.app, self.pilot, self.client = app, pilot, client

    @property
    def screen(self) -> str:
        """The text on the screen."""
        strips = self.app.screen._compositor.render_strips()
        return "\n".join("".join(segment.text for segment in strip).rstrip() for strip in strips)

    async def press(self, *keys: str) -> None:
        await self.pilot.press(*keys)

    async def sees(self, text: str) -> str:
        """Wait until a text is on the screen."""
        try:
            await eventually(lambda: text in self.screen)
        except TimeoutError:
            raise AssertionError(f"{text!r} is not on the screen:\n{self.screen}") from None
        return self.screen

    async def misses(self, text: str) -> None:
        """Wait until a text is gone from the screen."""
        await eventually(lambda: text not in self.screen)

    @property
    def view(self) -> View:
        assert isinstance(self.app.screen, View)
        return self.app.screen

    async def event(self, reason: str, name: str = "shop") -> None:
        """Create an Event of a Workload."""
        obj = await self.client.get(WORKLOADS, Key("default", name))
        about = {"kind": "Workload", "apiVersion": "cloudless.io/v1", "namespace": "default", "name": name}
        meta = {"generateName": f"{name}-", "namespace": "default"}
        now = times.format(datetime.now(UTC))
        wire = {"metadata": meta, "involvedObject": {**about, "uid": obj.uid}, "reason": reason, "lastTimestamp": now}
        await self.client.create(EVENTS, wire)

    async def restarts(self, name: str = "shop") -> Any:
        obj = await self.client.get(WORKLOADS, Key("default", name))
        return obj.wire()["spec"].get("restartedAt") or obj.meta.annotations


def play(kubeconfig: Path, story: Story, **options: Any) -> None:
    async def run() -> None:
        connection = connect(kubeconfig)
        session = Session(connection.client, "default")
        app = HoldfastApp(session, await session.discovery(), **options)
        try:
            async with app.run_test(size=(80, 24)) as pilot:
                await story(Driver(app, pilot, connection.client))
        finally:
            await connection.client.close()

    asyncio.run(run())


def test_objects_in_trouble_come_first_and_every_line_fits(kubeconfig: Path) -> None:
    async def story(user: Driver) -> None:
        await user.sees("✗ Workload      default/stuck")
        shown = await user.sees("✓ Workload      default/shop")
        assert shown.index("default/stuck") < shown.index("default/shop")
        assert "✗ 1 in trouble" in shown
        assert "3/3" in shown
        assert all(len(line) <= 80 for line in shown.splitlines())
        assert len(shown.splitlines()) <= 24

    play(kubeconfig, story)


def test_a_filter_narrows_as_it_is_typed_and_escape_clears_it(kubeconfig: Path) -> None:
    async def story(user: Driver) -> None:
        await user.sees("default/shop")
        await user.press("slash", *"stu")
        await user.misses("default/shop")
        await user.press("enter")
        assert "filter 'stu'" in await user.sees("default/stuck")
        await user.press("escape")
        await user.sees("default/shop")
        await user.press("t")
        await user.misses("default/shop")

    play(kubeconfig, story)


@pytest.mark.parametrize("typed", ["/stuck", "/quit: s/l?v"])
def test_what_is_typed_at_once_behind_the_key_of_a_prompt_is_in_the_prompt(kubeconfig: Path, typed: str) -> None:
    async def story(user: Driver) -> None:
        await user.sees("default/shop")
        for character in typed:
            # As a terminal delivers it: all keys are there before the first one is handled.
            user.app.post_message(events.Key(_character_to_key(character), character))
        prompt = user.view.query_one("#prompt", Input)
        await eventually(lambda: prompt.value == typed[1:])
        await user.press("escape")
        await user.sees("default/shop")

    play(kubeconfig, story)


def test_commands_choose_kinds_and_namespaces_and_suggest_what_was_meant(kubeconfig: Path) -> None:
    async def story(user: Driver) -> None:
        await user.sees("default/shop")
        await user.press("colon", *"workloud", "enter")
        await user.sees("there is no command or kind 'workloud'; did you mean workload?")
        await user.press("colon", *"workload", "enter")
        await user.sees("kind workloads.cloudless.io")
        await user.press("colon", *"ns", "space", *"nowhere", "enter")
        await user.sees("namespace nowhere")
        await user.misses("shop")
        await user.press("colon", *"ns", "space", *"all", "enter")
        await user.sees("default/shop")
        await user.press("colon", "q", "enter")

    play(kubeconfig, story)


def test_the_page_of_an_object_has_its_tree_conditions_and_events(kubeconfig: Path) -> None:
    async def story(user: Driver) -> None:
        await user.sees("✓ Workload      default/shop")
        await user.press("slash", *"shop", "enter", "enter")
        shown = await user.sees("3 of 3 available")
        assert "floor 1" in shown
        assert "●●●" in shown
        assert all(len(line) <= 80 for line in shown.splitlines())
        await user.press("G")
        await user.sees("RolledOut")
        await user.press("escape")
        await user.sees("in progress")

    play(kubeconfig, story)


@pytest.mark.parametrize(
    ("key", "text"),
    [
        ("d", "Kind:         Workload (cloudless.io/v1)"),
        ("y", "apiVersion: cloudless.io/v1"),
        ("l", "This container is simulated"),
        ("e", "RolledOut  workload/shop"),
        ("question_mark", "only objects in trouble"),
    ],
)
def test_each_view_of_an_object_opens_by_its_key_and_closes_by_escape(kubeconfig: Path, key: str, text: str) -> None:
    async def story(user: Driver) -> None:
        await user.sees("✓ Workload      default/shop")
        await user.press("slash", *"shop", "enter", key)
        await user.sees(text)
        await user.press("j", "k", "ctrl+f", "ctrl+b", "G", "g", "escape")
        await user.sees("filter 'shop'")

    play(kubeconfig, story)


def test_the_description_fits_the_screen(kubeconfig: Path) -> None:
    async def story(user: Driver) -> None:
        await user.sees("default/stuck")
        await user.press("d")
        await user.sees("describe workload/stuck")
        await eventually(lambda: bool(user.view.text.lines))
        lines = [text([line]) for line in user.view.text.lines]
        assert any(line.startswith("       MESSAGE: ") for line in lines)
        assert [line for line in lines if len(line) > 79] == []

    play(kubeconfig, story)


def test_logs_of_more_containers_than_are_followed_are_refused(
    kubeconfig: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logs, "MOST", 2)

    async def story(user: Driver) -> None:
        await user.sees("✓ Workload      default/shop")
        await user.press("slash", *"shop", "enter", "l")
        await user.sees("there are 3 containers, and at most 2 are followed at once")
        await user.press("escape")
        await user.sees("filter 'shop'")

    play(kubeconfig, story)


def test_a_new_event_leaves_a_user_who_scrolled_up_where_they_are(kubeconfig: Path) -> None:
    async def story(user: Driver) -> None:
        await user.sees("✓ Workload      default/shop")
        await user.press("slash", *"shop", "enter", "e")
        await user.sees("RolledOut  workload/shop")
        body = user.view.text
        body.styles.max_height = 3
        await user.pilot.pause()
        await user.press("g")
        await user.event("Later")
        await eventually(lambda: any("Later" in span.text for line in body.lines for span in line))
        assert body.scroll_offset.y == 0
        await user.press("G")
        await user.event("Latest")
        await user.sees("Latest")

    play(kubeconfig, story)


def test_a_verb_shows_its_plan_and_changes_nothing_before_it_is_confirmed(kubeconfig: Path) -> None:
    async def story(user: Driver) -> None:
        await user.sees("✓ Workload      default/shop")
        await user.press("slash", *"shop", "enter")
        before = await user.restarts()
        await user.press("colon", *"restart", "enter")
        shown = await user.sees("workload/shop will be restarted")
        assert "floor 1, lowest ready" in shown
        await user.press("n")
        await user.sees("workload/shop was not changed")
        assert await user.restarts() == before
        await user.press("v")
        await user.sees("Which verb?")
        await user.press("k", "enter")
        await user.sees("will be restarted")
        await user.press("y")
        await user.sees("workload/shop restarted")
        assert await user.restarts() != before

    play(kubeconfig, story)


def test_the_menu_says_which_verbs_would_change_nothing(kubeconfig: Path) -> None:
    async def story(user: Driver) -> None:
        await user.sees("✓ Workload      default/shop")
        await user.press("slash", *"shop", "enter", "v")
        shown = await user.sees("Which verb?")
        assert re.search(r"resume +not now: ", shown)
        assert re.search(r"restart +Restart: replace all replicas", shown)

    play(kubeconfig, story)


def test_the_number_of_replicas_is_set_after_its_plan_is_confirmed(kubeconfig: Path) -> None:
    async def story(user: Driver) -> None:
        await user.sees("✓ Workload      default/shop")
        await user.press("slash", *"shop", "enter", "s")
        await user.sees("How many replicas for workload/shop?")
        await user.press("5", "enter")
        assert "floor 1" in await user.sees("shop: 3 → 5 replicas")
        await user.press("y")
        await user.sees("workload/shop scaled from 3 to 5")
        await user.sees("5/5")
        await user.press("s")
        await user.sees("How many replicas")
        await user.press("0", "enter")
        await user.sees("warning: minAvailable is 1 but there are only 0 replicas")
        await user.press("n")
        await user.press("s", "3", "enter")
        await user.sees("→ 3 replicas")
        await user.press("y")
        await user.sees("3/3")

    play(kubeconfig, story)


def test_the_cursor_stays_at_the_top_until_it_is_moved_and_then_with_its_object(kubeconfig: Path) -> None:
    async def story(user: Driver) -> None:
        await user.sees("✓ Workload      default/shop")
        overview = user.app.main
        assert overview is not None
        first = overview.chosen()
        assert first is not None
        assert first.name == "stuck"
        await user.press("j")
        moved = overview.chosen()
        assert moved is not None
        overview._trouble_only = False
        overview.draw()
        assert overview.chosen() == moved

    play(kubeconfig, story)


def test_a_verb_that_is_refused_says_why(kubeconfig: Path) -> None:
    async def story(user: Driver) -> None:
        await user.sees("default/shop")
        await user.press("slash", *"shop", "enter", "colon", *"resume", "enter")
        await user.sees("workload/shop")
        await user.sees("paused")

    play(kubeconfig, story)


def test_read_only_changes_nothing(kubeconfig: Path) -> None:
    async def story(user: Driver) -> None:
        await user.sees("default/shop")
        await user.press("colon", *"restart", "enter")
        await user.sees("started with --read-only")
        await user.press("ctrl+d")
        await user.sees("started with --read-only")

    play(kubeconfig, story, read_only=True)


def test_a_change_of_an_object_is_shown_without_a_key(kubeconfig: Path) -> None:
    async def story(user: Driver) -> None:
        await user.sees("default/shop")
        meta = {"name": "later", "namespace": "default"}
        await user.client.create(WORKLOADS, {"metadata": meta, "spec": {"image": "shop:1", "replicas": 1}})
        await user.sees("✓ Workload      default/later")
        await user.press("slash", *"later", "enter", "ctrl+d")
        await user.sees("This cannot be undone.")
        await user.press("y")
        await user.misses("default/later")

    play(kubeconfig, story)


def test_a_lost_connection_is_said_and_what_was_seen_stays(kubeconfig: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def story(user: Driver) -> None:
        await user.sees("default/shop")
        monkeypatch.setattr(user.view.world, "outage", lambda: "connection lost since 12:00:00, retrying")
        await user.sees("! connection lost since 12:00:00, retrying; what follows is as it was then")
        assert "default/shop" in user.screen

    play(kubeconfig, story)


def test_without_a_terminal_it_says_what_to_use_instead(kubeconfig: Path) -> None:
    result = CliRunner().invoke(main, ["tui", "--kubeconfig", str(kubeconfig)])
    assert result.exit_code == 1
    assert "needs a terminal" in result.output
