"""One pass: objects that cannot be decoded, and evictions that a budget refuses, on the real server."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import datetime
from typing import Any

import msgspec
import pytest

from holdfast.client.objects import Object
from holdfast.client.resources import BUDGETS, CONFIG_MAPS, EVENTS, PODS, SECRETS, Resource
from holdfast.kinds import model
from holdfast.kinds.model import Kind, OpenObject
from holdfast.meta.objects import Key
from holdfast.runtime.controllers import Controller, Index, View, Watch
from holdfast.runtime.decisions import NOTHING, Decision, Evict
from holdfast.runtime.references import References
from holdfast.runtime.status import Invalid
from holdfast.testing.clusters import Cluster, play


class Widget(model.Resource):
    """A kind whose schema refuses nothing, as an older version of a definition may not have."""

    spec: OpenObject | None = None
    status: OpenObject | None = None


KIND = Kind(model=Widget, group="example.com", version="v1", plural="widgets")
WIDGETS = Resource.of(KIND)


class Size(msgspec.Struct, frozen=True):
    size: int = 0
    secret: str = ""


class Sized(msgspec.Struct, frozen=True):
    spec: Size = Size()


def widget(name: str = "a", **spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": name}, "spec": spec}


class Passes:
    """A controller of Widgets, and the Widgets that it observed."""

    def __init__(self, **changes: Any) -> None:
        self.looked: list[str] = []
        self.controller: Controller[Sized] = Controller(
            name="widgets", resource=WIDGETS, observe=self._observe, decide=self._decide, **changes
        )

    def _observe(self, view: View, key: Key) -> Sized | None:
        self.looked.append(key.name)
        obj = view.get(WIDGETS, key)
        return None if obj is None else obj.decode(Sized)

    def _decide(self, world: Sized, now: datetime) -> Decision:
        return Decision(status={"size": world.spec.size})


def condition(obj: dict[str, Any], type: str = "Ready") -> tuple[str, str, str]:
    (found,) = (each for each in obj["status"]["conditions"] if each["type"] == type)
    return found["status"], found["reason"], found["message"]


PROBLEM = "Expected `int`, got `str` - at `$.spec.size`"


def test_an_object_that_cannot_be_decoded_says_so_with_its_path_and_is_left_until_it_changes() -> None:
    passes = Passes()

    async def story(cluster: Cluster) -> None:
        await cluster.create(WIDGETS, widget(size="big"))
        await cluster.settle()
        held = await cluster.get(WIDGETS, "a")
        assert condition(held) == ("False", "InvalidSpec", PROBLEM)
        assert held["status"]["observedGeneration"] == held["metadata"]["generation"]
        (event,) = await cluster.list(EVENTS)
        assert (event["type"], event["reason"], event["message"], event["count"]) == (
            "Warning",
            "InvalidSpec",
            PROBLEM,
            1,
        )
        passes.looked.clear()
        await cluster.advance(3600)
        assert passes.looked == []
        await cluster.patch(WIDGETS, "a", {"spec": {"size": 3}})
        await cluster.settle()
        assert (await cluster.get(WIDGETS, "a"))["status"] == {"size": 3}

    play(story, controllers=[passes.controller], kinds=[KIND])


def test_another_problem_of_the_same_object_is_reported_again() -> None:
    async def story(cluster: Cluster) -> None:
        await cluster.create(WIDGETS, widget(size="big"))
        await cluster.settle()
        await cluster.patch(WIDGETS, "a", {"spec": {"size": 1, "secret": 5}})
        await cluster.settle()
        problem = "Expected `str`, got `int` - at `$.spec.secret`"
        assert condition(await cluster.get(WIDGETS, "a")) == ("False", "InvalidSpec", problem)
        assert {event["message"] for event in await cluster.list(EVENTS)} == {PROBLEM, problem}

    play(story, controllers=[Passes().controller], kinds=[KIND])


def test_a_kind_says_with_its_own_conditions_and_fields_that_it_cannot_be_decoded() -> None:
    invalid = Invalid(conditions={"Degraded": True, "Ready": False}, fields={"phase": "Failed"})

    async def story(cluster: Cluster) -> None:
        await cluster.create(WIDGETS, widget(size="big"))
        await cluster.settle()
        held = await cluster.get(WIDGETS, "a")
        assert held["status"]["phase"] == "Failed"
        assert condition(held) == ("False", "InvalidSpec", PROBLEM)
        assert condition(held, "Degraded") == ("True", "InvalidSpec", PROBLEM)

    play(story, controllers=[Passes(invalid=invalid).controller], kinds=[KIND])


@pytest.mark.parametrize("status", [{"conditions": "broken"}, {"conditions": [5, {"type": 7}]}])
def test_an_object_whose_status_is_not_one_either_gets_a_status(status: Any) -> None:
    async def story(cluster: Cluster) -> None:
        await cluster.stop()
        await cluster.create(WIDGETS, widget(size="big"))
        await cluster.patch(WIDGETS, "a", {"status": status}, subresource="status")
        await cluster.restart()
        await cluster.settle()
        assert condition(await cluster.get(WIDGETS, "a")) == ("False", "InvalidSpec", PROBLEM)

    play(story, controllers=[Passes().controller], kinds=[KIND])


def test_an_object_that_cannot_be_decoded_keeps_no_other_object_from_being_reconciled() -> None:
    def secrets(obj: Object) -> Iterable[tuple[Resource, str]]:
        name = obj.decode(Sized).spec.secret
        return [(SECRETS, name)] if name else []

    def by_size(obj: Object) -> Iterable[str]:
        yield str(obj.decode(Sized).spec.size)

    def same_size(obj: Object, view: View) -> Iterable[Key]:
        # A generator raises when its keys are read, not when the function is called.
        for each in view.indexed(WIDGETS, "size", str(obj.decode(Sized).spec.size)):
            yield each.key

    references = References(WIDGETS, secrets)
    passes = Passes(
        indexes=(references.index, Index(resource=WIDGETS, name="size", values=by_size)),
        watches=(Watch(resource=WIDGETS, keys=same_size), *references.watches(SECRETS)),
    )

    async def story(cluster: Cluster) -> None:
        await cluster.create(WIDGETS, widget("bad", size="big", secret="s"))
        for name in ("good", "other"):
            await cluster.create(WIDGETS, widget(name, size=1, secret="s" if name == "good" else ""))
        await cluster.settle()
        assert condition(await cluster.get(WIDGETS, "bad"))[1] == "InvalidSpec"
        passes.looked.clear()
        await cluster.create(SECRETS, {"metadata": {"name": "s"}})
        await cluster.settle()
        assert passes.looked == ["good"], "the bad one is found by no index"
        await cluster.patch(WIDGETS, "bad", {"spec": {"size": 1}})
        await cluster.settle()
        assert {"bad", "good", "other"} <= set(passes.looked)
        passes.looked.clear()
        await cluster.patch(SECRETS, "s", {"metadata": {"labels": {"x": "1"}}})
        await cluster.settle()
        assert sorted(passes.looked) == ["bad", "good"]

    play(story, controllers=[passes.controller], kinds=[KIND])


def test_a_watch_whose_keys_depend_on_another_unreadable_object_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    def by_size(obj: Object, view: View) -> Iterable[Key]:
        return [each.key for each in view.list(WIDGETS) if each.decode(Sized).spec.size]

    async def story(cluster: Cluster) -> None:
        await cluster.create(WIDGETS, widget("bad", size="big"))
        await cluster.settle()
        caplog.clear()
        await cluster.create(SECRETS, {"metadata": {"name": "s"}})
        await cluster.settle()
        (record,) = caplog.records
        assert record.__dict__["fields"] == {
            "controller": "widgets",
            "object": "Secret default/s",
            "error": f"Widget.example.com default/bad: {PROBLEM}",
        }

    passes = Passes(watches=(Watch(resource=SECRETS, keys=by_size),))
    play(story, controllers=[passes.controller], kinds=[KIND])


def test_an_event_names_another_object_that_cannot_be_decoded_and_the_status_stays() -> None:
    class Data(msgspec.Struct, frozen=True):
        data: dict[str, int] = {}

    def observe(view: View, key: Key) -> Object | None:
        other = view.get(CONFIG_MAPS, Key(key.namespace, "settings"))
        if other is not None:
            other.decode(Data)
        return view.get(WIDGETS, key)

    def of_settings(obj: Object, view: View) -> Iterable[Key]:
        return [each.key for each in view.list(WIDGETS)]

    def decide(world: Object, now: datetime) -> Decision:
        return Decision(status={"seen": True})

    controller: Controller[Object] = Controller(
        name="widgets",
        resource=WIDGETS,
        observe=observe,
        decide=decide,
        watches=(Watch(resource=CONFIG_MAPS, keys=of_settings),),
    )

    async def story(cluster: Cluster) -> None:
        await cluster.create(CONFIG_MAPS, {"metadata": {"name": "settings"}, "data": {"n": "many"}})
        await cluster.create(WIDGETS, widget(size=1))
        await cluster.settle()
        assert "status" not in await cluster.get(WIDGETS, "a")
        (event,) = await cluster.list(EVENTS)
        assert event["involvedObject"]["kind"] == "Widget"
        assert event["message"] == "ConfigMap default/settings: Expected `int`, got `str` - at `$.data[...]`"
        await cluster.delete(CONFIG_MAPS, "settings")
        await cluster.settle()
        assert (await cluster.get(WIDGETS, "a"))["status"] == {"seen": True}

    play(story, controllers=[controller], kinds=[KIND])


# --- evictions


def pod(name: str) -> dict[str, Any]:
    return {"metadata": {"name": name, "labels": {"app": "a"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}


def evicting(**changes: Any) -> Controller[Object]:
    """Evicts every pod once."""

    def observe(view: View, key: Key) -> Object | None:
        found = view.get(PODS, key)
        return None if found is None or found.deleting else found

    def decide(world: Object, now: datetime) -> Decision:
        return Decision(writes=(Evict(because="test", key=world.key, uid=world.uid),))

    given = {"name": "evicting", "resource": PODS, "observe": observe, "decide": decide}
    return Controller(**(given | changes))


def results(cluster: Cluster) -> dict[str, float]:
    """How many passes ended in which way."""
    text = cluster.manager.metrics.render().decode()
    found = re.findall(r'holdfast_reconcile_total\{controller="evicting",result="(\w+)"\} (\S+)', text)
    return {result: float(number) for result, number in found if float(number)}


BUDGET = {
    "metadata": {"name": "one"},
    "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "a"}}},
}


def test_an_eviction_that_a_budget_refuses_is_no_failure_and_is_tried_again(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def story(cluster: Cluster) -> None:
        await cluster.stop()
        await cluster.create(BUDGETS, BUDGET)
        await cluster.create(PODS, pod("p"))
        await cluster.report("p")
        await cluster.restart()
        await cluster.advance(30)
        assert await cluster.find(PODS, "p") is not None
        assert results(cluster) == {"again": 16.0}, "every two seconds"
        assert not caplog.records
        assert not await cluster.list(EVENTS)
        allowed = {"observedGeneration": 1, "disruptionsAllowed": 1, "currentHealthy": 1, "expectedPods": 1}
        counted = allowed | {"desiredHealthy": 0}
        await cluster.patch(BUDGETS, "one", {"status": counted}, subresource="status")
        await cluster.advance(2)
        left = await cluster.find(PODS, "p")
        assert left is None or "deletionTimestamp" in left["metadata"]

    play(story, controllers=[evicting()])


def test_an_eviction_of_a_pod_that_is_gone_has_nothing_to_do() -> None:
    def observe(view: View, key: Key) -> Object | None:
        return view.get(CONFIG_MAPS, key)

    def decide(world: Object, now: datetime) -> Decision:
        evict = Evict(because="test", key=Key("default", "gone"), uid="u")
        return NOTHING if world.key.name == "kube-root-ca.crt" else Decision(writes=(evict,))

    async def story(cluster: Cluster) -> None:
        await cluster.create(CONFIG_MAPS, {"metadata": {"name": "a"}})
        await cluster.advance(10)
        assert results(cluster) == {"done": 1.0}

    play(story, controllers=[evicting(resource=CONFIG_MAPS, observe=observe, decide=decide)])
