"""Events: counted, combined and bounded; written to the API server, and never in the way."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from holdfast.apiserver.server import Server
from holdfast.client.api import ApiClient
from holdfast.client.inprocess import InProcess
from holdfast.client.objects import Object
from holdfast.client.protocols import Scope, Unreachable, Writer
from holdfast.client.resources import CONFIG_MAPS, EVENTS, NAMESPACES, PODS
from holdfast.meta.errors import Cause, Details, Forbidden, Invalid, TooManyRequests
from holdfast.meta.objects import Key
from holdfast.runtime.decisions import Notice
from holdfast.runtime.leadership.fencing import LeaseLost
from holdfast.runtime.metrics import Metrics
from holdfast.runtime.passes import events
from holdfast.runtime.passes.events import Events, EventState, Recorder, Subject
from holdfast.testing.loops import VirtualLoop, run

NOW = datetime(2030, 1, 1, 12, tzinfo=UTC)
POD = Subject(api_version="v1", kind="Pod", key=Key("default", "web-0"), uid="u1", version="5")
OTHER = Subject(api_version="v1", kind="Pod", key=Key("default", "web-1"), uid="u2", version="6")
PULLED = Notice(reason="Pulled", message="pulled the image")


class Story:
    """A recorder, and notices at times."""

    def __init__(self, **options: Any) -> None:
        self.recorder = Recorder(**options)
        self.now = NOW

    def record(self, notice: Notice = PULLED, *, about: Subject = POD, after: float = 0) -> EventState | None:
        self.now += timedelta(seconds=after)
        return self.recorder.record(about, notice, now=self.now)

    def recorded(self, notice: Notice = PULLED, *, about: Subject = POD, after: float = 0) -> EventState:
        state = self.record(notice, about=about, after=after)
        assert state is not None
        return state


# --- the same again


def test_what_is_told_again_is_counted() -> None:
    story = Story()
    first = story.recorded()
    second = story.recorded(after=60)
    assert (first.count, second.count, second.key) == (1, 2, first.key)
    assert (second.first, second.last) == (NOW, NOW + timedelta(seconds=60))


def test_what_is_told_again_and_again_stays_one_event() -> None:
    story = Story()
    first = story.recorded()
    assert [story.recorded(after=599).key for _ in range(10)] == [first.key] * 10


def test_what_is_told_after_a_long_silence_is_new() -> None:
    story = Story()
    first = story.recorded()
    second = story.recorded(after=600)
    assert second.count == 1
    assert second.key != first.key


@pytest.mark.parametrize(
    ("notice", "about"),
    [
        (Notice(reason="Pulled", message="another message"), POD),
        (Notice(reason="Started", message="pulled the image"), POD),
        (Notice(type="Warning", reason="Pulled", message="pulled the image"), POD),
        (PULLED, OTHER),
    ],
)
def test_what_differs_is_another_event(notice: Notice, about: Subject) -> None:
    story = Story()
    first = story.recorded()
    other = story.recorded(notice, about=about)
    assert other.count == 1
    assert other.key != first.key


def test_an_object_that_changed_is_the_same_and_one_that_was_replaced_is_not() -> None:
    story = Story()
    story.recorded()
    changed = Subject(api_version="v1", kind="Pod", key=POD.key, uid="u1", version="9")
    replaced = Subject(api_version="v1", kind="Pod", key=POD.key, uid="u9", version="9")
    assert (story.recorded(about=changed).count, story.recorded(about=replaced).count) == (2, 1)


# --- many variants of one thing


def variant(number: int) -> Notice:
    return Notice(type="Warning", reason="Unhealthy", message=f"probe failed on port {number}")


def test_many_variants_are_combined_from_the_eleventh_on() -> None:
    story = Story()
    single = [story.recorded(variant(number), after=1) for number in range(10)]
    combined = [story.recorded(variant(number), after=1) for number in range(10, 13)]
    assert len({state.key for state in single}) == 10
    assert [state.count for state in combined] == [1, 2, 3]
    assert len({state.key for state in combined}) == 1
    assert combined[-1].message == "(combined from similar events): probe failed on port 12"


def test_variants_are_forgotten_after_a_while() -> None:
    story = Story()
    for number in range(15):
        story.record(variant(number), after=1)
    assert story.recorded(variant(99), after=600).message == "probe failed on port 99"


def test_variants_that_are_far_between_are_told_one_by_one() -> None:
    story = Story()
    states = [story.recorded(variant(number), after=300) for number in range(30)]
    assert [state.count for state in states] == [1] * 30


def test_variants_of_other_objects_and_reasons_do_not_count() -> None:
    story = Story()
    for number in range(15):
        story.record(variant(number))
    assert story.recorded(variant(1), about=OTHER).message == "probe failed on port 1"
    assert story.recorded(PULLED).message == PULLED.message


# --- too much


def test_too_much_about_one_object_is_not_told_until_some_time_has_passed() -> None:
    story = Story()
    written = [story.record() is not None for _ in range(30)]
    assert written == [True] * 25 + [False] * 5
    assert story.record(about=OTHER) is not None
    assert story.record(after=299) is None
    last = story.recorded(after=1)
    assert last.count == 32, "what was not written is counted"
    assert story.record() is None


def test_routine_notices_swallow_no_warning() -> None:
    story = Story()
    while story.record() is not None:
        pass
    below = Notice(type="Warning", reason="BelowFloor", message="2 of 3 are available.")
    assert story.record(below) is not None
    assert [story.record(below) is not None for _ in range(25)] == [True] * 24 + [False], "they have a budget too"


def test_after_a_long_silence_as_much_can_be_told_as_at_first() -> None:
    story = Story()
    for _ in range(40):
        story.record()
    story.now += timedelta(days=7)
    assert [story.record() is not None for _ in range(26)] == [True] * 25 + [False]


def test_a_clock_that_is_set_back_gives_nothing_and_takes_nothing() -> None:
    story = Story()
    for _ in range(24):
        story.record()
    assert story.record(after=-3600) is not None
    assert story.record() is None


# --- bounds


def test_what_was_told_longest_ago_is_forgotten_first() -> None:
    story = Story(remembered=2)
    subjects = [Subject(api_version="v1", kind="Pod", key=Key("a", f"p{n}"), uid=f"u{n}", version="") for n in range(3)]
    for subject in subjects[:2]:
        story.recorded(about=subject)
    story.recorded(about=subjects[0])
    story.recorded(about=subjects[2])
    assert story.recorded(about=subjects[0]).count == 3
    assert story.recorded(about=subjects[1]).count == 1


@pytest.mark.parametrize("message", ["x" * 1024, "ä" * 512, "🎉" * 256, ""])
def test_messages_that_fit_are_told_in_full(message: str) -> None:
    assert events.bounded(message) == message


@pytest.mark.parametrize("message", ["x" * 1025, "xx" + "ä" * 512, "xxx" + "🎉" * 5000])
def test_long_messages_are_cut_between_characters(message: str) -> None:
    cut = events.bounded(message)
    assert 1024 - 4 <= len(cut.encode()) <= 1024
    assert cut.endswith("…")
    assert message.startswith(cut[:-1])


@pytest.mark.parametrize(
    ("key", "namespace", "starts"),
    [
        (Key("shop", "web"), "shop", "web."),
        (Key("", "node-1"), "default", "node-1."),
        (Key("", "system:node"), "default", ""),
        (Key("shop", "x" * 250), "shop", ""),
    ],
)
def test_an_event_is_named_for_its_object_and_kept_beside_it(key: Key, namespace: str, starts: str) -> None:
    about = Subject(api_version="v1", kind="Thing", key=key, uid="u", version="")
    state = Story().recorded(about=about)
    assert state.key.namespace == namespace
    assert state.key.name.removeprefix(starts).isalnum()
    assert len(state.key.name.removeprefix(starts)) == 16


# --- on the API server


class Teller:
    """Events on a server, about a pod that exists."""

    def __init__(self, client: ApiClient, loop: VirtualLoop, pod: Object) -> None:
        self.client = client
        self.loop = loop
        self.pod = pod
        self.metrics = Metrics()
        self.events = Events(client, "holdfast-workload", now=loop.now, metrics=self.metrics, instance="here")

    async def written(self, namespace: str = "") -> list[dict[str, Any]]:
        return [each.wire() for each in (await self.client.list(EVENTS, Scope(namespace=namespace))).objects]


def play(story: Callable[[Teller], Any]) -> None:
    async def inside(loop: VirtualLoop) -> None:
        server = await Server.open(None, now=loop.now)
        client = ApiClient(InProcess(server.handle, server.identity.admin_token))
        pod = {
            "metadata": {"namespace": "default", "name": "web-0"},
            "spec": {"containers": [{"name": "c", "image": "i"}]},
        }
        await story(Teller(client, loop, await client.create(PODS, pod)))
        await server.close()

    run(inside)


def test_an_event_says_what_kubectl_shows() -> None:
    async def story(teller: Teller) -> None:
        await teller.events.emit(teller.pod, [PULLED])
        (event,) = await teller.written("default")
        assert event["involvedObject"] == {
            "apiVersion": "v1",
            "kind": "Pod",
            "namespace": "default",
            "name": "web-0",
            "uid": teller.pod.uid,
            "resourceVersion": teller.pod.version,
        }
        said = {name: event[name] for name in ("type", "reason", "message", "count", "source")}
        assert said == {
            "type": "Normal",
            "reason": "Pulled",
            "message": "pulled the image",
            "count": 1,
            "source": {"component": "holdfast-workload"},
        }
        assert (event["firstTimestamp"], event["lastTimestamp"]) == ("2030-01-01T00:00:00Z",) * 2
        assert (event["reportingComponent"], event["reportingInstance"]) == ("holdfast-workload", "here")
        assert 'holdfast_events_emitted_total{component="holdfast-workload",type="Normal"} 1.0' in shown(teller)

    play(story)


def test_the_same_again_is_a_patch_of_the_event() -> None:
    async def story(teller: Teller) -> None:
        await teller.events.emit(teller.pod, [PULLED])
        await asyncio.sleep(90)
        await teller.events.emit(teller.pod, [PULLED, PULLED])
        (event,) = await teller.written()
        assert (event["count"], event["firstTimestamp"], event["lastTimestamp"]) == (
            3,
            "2030-01-01T00:00:00Z",
            "2030-01-01T00:01:30Z",
        )

    play(story)


def test_an_event_that_expired_is_written_anew_with_its_count() -> None:
    async def story(teller: Teller) -> None:
        await teller.events.emit(teller.pod, [PULLED])
        (event,) = await teller.written()
        await teller.client.delete(EVENTS, Key.of(event))
        await teller.events.emit(teller.pod, [PULLED])
        (event,) = await teller.written()
        assert event["count"] == 2

    play(story)


def test_a_notice_can_be_about_another_object_and_about_one_without_a_namespace() -> None:
    async def story(teller: Teller) -> None:
        namespace = (await teller.client.create(NAMESPACES, {"metadata": {"name": "shop"}})).wire()
        settings = await teller.client.create(CONFIG_MAPS, {"metadata": {"namespace": "shop", "name": "settings"}})
        notice = Notice(type="Warning", reason="Odd", message="look at this")
        await teller.events.emit(namespace, [notice])
        await teller.events.emit(
            teller.pod, [Notice(reason="Read", message="settings were read", about=settings.wire())]
        )
        (about_namespace,), (about_settings,) = await teller.written("default"), await teller.written("shop")
        assert about_namespace["involvedObject"]["kind"] == "Namespace"
        assert "namespace" not in about_namespace["involvedObject"]
        assert about_settings["involvedObject"]["uid"] == settings.uid

    play(story)


# --- what goes wrong


class Broken:
    """A writer that fails, or hangs if it has nothing to fail with."""

    def __init__(self, error: Exception | None) -> None:
        self._error = error

    async def fail(self, *args: Any, **options: Any) -> Any:
        if self._error is None:
            await asyncio.Event().wait()
        assert self._error is not None
        raise self._error

    create = apply = patch = delete = post = fail


SECRET = "hunter2"
TERMINATING = Forbidden("no", details=Details(causes=(Cause(reason="NamespaceTerminating"),)))


@pytest.mark.parametrize(
    ("error", "reason", "level"),
    [
        (Forbidden(f"you may not say {SECRET}"), "Forbidden", logging.WARNING),
        (Invalid(f"message: {SECRET}"), "Invalid", logging.WARNING),
        (TooManyRequests.of("later", retry_after_seconds=1), "TooManyRequests", logging.WARNING),
        (Unreachable("away"), "Unreachable", logging.WARNING),
        (LeaseLost(), "LeaseLost", logging.WARNING),
        (None, "Timeout", logging.WARNING),
        (TERMINATING, "Forbidden", logging.DEBUG),
    ],
)
def test_an_event_that_cannot_be_written_is_counted_and_dropped(
    error: Exception | None, reason: str, level: int, caplog: pytest.LogCaptureFixture
) -> None:
    metrics = Metrics()
    caplog.set_level(logging.DEBUG, "holdfast.runtime.passes.events")

    async def story(loop: VirtualLoop) -> None:
        writer: Writer = Broken(error)
        sink = Events(writer, "holdfast-workload", now=loop.now, metrics=metrics)
        await sink.emit(OBJECT, [Notice(reason="Odd", message=f"it says {SECRET}")])

    run(story)
    assert f'holdfast_events_dropped_total{{component="holdfast-workload",reason="{reason}"}} 1.0' in text(metrics)
    (record,) = [record for record in caplog.records if record.name == "holdfast.runtime.passes.events"]
    assert (record.levelno, record.message) == (level, "event dropped")
    assert SECRET not in str(record.__dict__)


OBJECT: Mapping[str, Any] = {"apiVersion": "v1", "kind": "Pod", "metadata": {"namespace": "a", "name": "p", "uid": "u"}}


def test_what_is_about_nothing_is_dropped_and_the_rest_is_recorded() -> None:
    async def story(teller: Teller) -> None:
        nothing = Notice(reason="Odd", message="about nothing", about={"metadata": {"name": "x"}})
        await teller.events.emit(teller.pod, [nothing, PULLED])
        assert [event["reason"] for event in await teller.written()] == ["Pulled"]
        assert 'reason="Malformed"} 1.0' in shown(teller)

    play(story)


def test_what_is_too_much_is_counted_as_dropped() -> None:
    async def story(teller: Teller) -> None:
        await teller.events.emit(teller.pod, [PULLED] * 30)
        (event,) = await teller.written()
        assert event["count"] == 25
        assert 'reason="TooMany"} 5.0' in shown(teller)

    play(story)


def shown(teller: Teller) -> str:
    return text(teller.metrics)


def text(metrics: Metrics) -> str:
    return metrics.render().decode()
