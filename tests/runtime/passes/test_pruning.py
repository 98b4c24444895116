"""A status that the server does not keep: noticed at the first write, said in the object, and nothing more is done."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pytest
from tests.runtime.sources import wire

from holdfast.client.objects import Object
from holdfast.client.resources import CONFIG_MAPS, EVENTS, Resource
from holdfast.kernel.children import Desired
from holdfast.kernel.outcomes import Permanent
from holdfast.kinds import model
from holdfast.kinds.model import Kind, OpenObject
from holdfast.meta.objects import Key
from holdfast.runtime.controllers import Controller, View
from holdfast.runtime.decisions import Decision
from holdfast.runtime.passes.pruning import Kept, Pruned
from holdfast.testing.clusters import Cluster, play


class GadgetStatus(model.Status):
    """Fewer fields than the controller writes."""

    replicas: int | None = None


class Gadget(model.Resource):
    """A kind whose definition is another project's."""

    spec: OpenObject | None = None
    status: GadgetStatus | None = None


KIND = Kind(model=Gadget, group="example.com", version="v1", plural="gadgets")
GADGETS = Resource.of(KIND)

STATUS = {"replicas": 1, "progress": {"step": 2}}


def controller(status: dict[str, Any]) -> Controller[Object]:
    def observe(view: View, key: Key) -> Object | None:
        return view.get(GADGETS, key)

    def decide(gadget: Object, now: datetime) -> Decision:
        child = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": f"of-{gadget.key.name}"}}
        return Decision(
            children=(Desired(child | {"metadata": {**child["metadata"], "namespace": "default"}}),), status=status
        )

    return Controller(name="gadgets", resource=GADGETS, owns=(CONFIG_MAPS,), observe=observe, decide=decide)


def gadget(name: str) -> dict[str, Any]:
    return {"metadata": {"name": name}, "spec": {}}


def ready(held: dict[str, Any]) -> dict[str, Any]:
    (found,) = (each for each in held["status"]["conditions"] if each["type"] == "Ready")
    return found


def test_a_status_that_the_server_prunes_is_said_in_the_object_and_the_kind_is_left_alone() -> None:
    async def story(cluster: Cluster) -> None:
        await cluster.create(GADGETS, gadget("a"))
        await cluster.advance(1)
        condition = ready(await cluster.get(GADGETS, "a"))
        assert (condition["status"], condition["reason"]) == ("False", "StatusPruned")
        assert "the API server dropped status.progress: " in condition["message"]
        assert "--adopt-crds" in condition["message"]
        assert [event["reason"] for event in await cluster.list(EVENTS)] == ["StatusPruned"]
        # From now on no object of the kind is worked on.
        await cluster.create(GADGETS, gadget("b"))
        await cluster.settle()
        assert ready(await cluster.get(GADGETS, "b"))["reason"] == "StatusPruned"
        assert [each["metadata"]["name"] for each in await cluster.list(CONFIG_MAPS)] == ["of-a"]
        # And nothing is written again and again.
        before = (await cluster.get(GADGETS, "a"))["metadata"]["resourceVersion"]
        await cluster.advance(3600)
        assert (await cluster.get(GADGETS, "a"))["metadata"]["resourceVersion"] == before

    play(story, controllers=[controller(STATUS)], kinds=[KIND])


def test_a_kind_that_is_refused_from_the_start_is_not_touched() -> None:
    async def story(cluster: Cluster) -> None:
        cluster.manager.refusals.add(GADGETS, Permanent("ForeignDefinition", "why"))
        await cluster.create(GADGETS, gadget("a"))
        await cluster.settle()
        assert ready(await cluster.get(GADGETS, "a"))["message"] == "why"
        assert await cluster.list(CONFIG_MAPS) == []
        await cluster.delete(GADGETS, "a")
        await cluster.settle()
        assert await cluster.list(GADGETS) == []

    play(story, controllers=[controller({"replicas": 1})], kinds=[KIND])


@pytest.mark.parametrize(
    ("sent", "kept", "lost"),
    [
        ({"a": 1, "b": {"c": 2}}, {"a": 1, "b": {"c": 2}}, None),
        ({"a": None, "b": {}, "c": [], "d": ""}, {}, None),
        ({"a": {"b": None, "c": {"d": None}}}, {}, None),
        ({"a": 1}, {}, "status.a:"),
        ({"a": {"b": 1, "c": 2}}, {}, "status.a:"),
        ({"a": {"b": 1, "c": 2}}, {"a": {"b": 1}}, "status.a.c:"),
        ({"a": [{"b": 1, "c": 0}, {"b": 2}]}, {"a": [{"b": 1}, {"b": 2}]}, "status.a[].c:"),
        ({"a": 1, "b": 2}, {"c": 3}, "status.a, status.b:"),
        ({"a": False, "b": 0}, {"a": False, "b": 0}, None),
    ],
)
def test_what_was_dropped_is_named(sent: dict[str, Any], kept: dict[str, Any], lost: str | None) -> None:
    answer = Object.of(GADGETS, wire("a", version=2) | {"status": kept})
    if lost is None:
        Kept().check(sent, answer)
        return
    with pytest.raises(Pruned) as dropped:
        Kept().check(sent, answer)
    assert f"dropped {lost}" in dropped.value.message


def test_what_was_kept_once_is_not_looked_for_again() -> None:
    kept = Kept()
    kept.check({"a": {"b": 1}}, Object.of(GADGETS, wire("a", version=2) | {"status": {"a": {"b": 1}}}))
    kept.check({"a": {"b": 2}}, Object.of(GADGETS, wire("a", version=3)))
