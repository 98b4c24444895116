"""The runtime over HTTP and TLS, in real time: on a server of our own always, and on any Kubernetes if one is given.

    HOLDFAST_KUBECONFIG=~/.kube/config python -m pytest tests/kubernetes

Each story has a namespace of its own, which is deleted in the end; nothing in it runs a pod.
"""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.kubernetes.sites import TERMS, Site, play

from holdfast.client.objects import Object
from holdfast.client.resources import CONFIG_MAPS, EVENTS, LEASES, SECRETS, Resource
from holdfast.kernel.children import Desired
from holdfast.kernel.outcomes import Again
from holdfast.meta.objects import Key
from holdfast.runtime.controllers import PAUSED, Controller, View
from holdfast.runtime.decisions import Decision, Notice

GIVEN = os.environ.get("HOLDFAST_KUBECONFIG", "")

Story = Callable[[Site], Awaitable[None]]
Tell = Callable[[Story], None]


@pytest.fixture(
    params=[
        "embedded",
        pytest.param("given", marks=pytest.mark.skipif(not GIVEN, reason="HOLDFAST_KUBECONFIG names no cluster")),
    ]
)
def tell(request: pytest.FixtureRequest, tmp_path: Path) -> Tell:
    """Plays a story."""
    kubeconfig = Path(GIVEN).expanduser() if request.param == "given" else None
    return lambda story: play(story, kubeconfig=kubeconfig, directory=tmp_path)


# --- a controller: as many Secrets as a ConfigMap says


@dataclass(frozen=True)
class World:
    owner: Object
    now: int


def observe(view: View, key: Key) -> World | None:
    owner = view.get(CONFIG_MAPS, key)
    if owner is None or "copies" not in owner.wire().get("data", {}):
        return None
    return World(owner, len(view.owned(SECRETS, owner.uid)))


def copies(world: World, now: datetime) -> Decision:
    owner = world.owner
    names = [f"{owner.key.name}-{number}" for number in range(int(owner.wire()["data"]["copies"]))]
    return Decision(
        children=tuple(
            Desired(
                {"apiVersion": "v1", "kind": "Secret", "metadata": {"namespace": owner.key.namespace, "name": name}}
            )
            for name in names
        ),
        notices=(Notice(reason="Copied", message=f"There shall be {len(names)} copies."),),
    )


def controller(**changes: Any) -> Controller[World]:
    given: dict[str, Any] = {"decide": copies} | changes
    return Controller(name="copies", resource=CONFIG_MAPS, owns=(SECRETS,), observe=observe, **given)


async def has(site: Site, *names: str) -> None:
    async def holds() -> bool:
        return await site.children(SECRETS) == sorted(names)

    await site.eventually(holds, f"the secrets are {names}")


# --- stories


def test_children_follow_their_owner_come_back_and_are_pruned(tell: Tell) -> None:
    async def story(site: Site) -> None:
        await site.create(CONFIG_MAPS, "before", data={"copies": "1"})
        await site.start(controller())
        await has(site, "before-0")
        await site.create(CONFIG_MAPS, "a", data={"copies": "2"})
        await has(site, "a-0", "a-1", "before-0")
        await site.delete(SECRETS, "a-1")
        await has(site, "a-0", "a-1", "before-0")
        await site.patch(CONFIG_MAPS, "a", {"data": {"copies": "1"}})
        await has(site, "a-0", "before-0")
        child = await site.find(SECRETS, "a-0")
        assert child is not None
        assert child["metadata"]["ownerReferences"][0]["name"] == "a"
        assert "holdfast" in {entry["manager"] for entry in child["metadata"]["managedFields"]}
        found = await site.client.list(EVENTS)
        mine = [event.wire() for event in found.objects if event.meta.namespace == site.namespace]
        assert {event["reason"] for event in mine} == {"Copied"}

    tell(story)


def test_a_paused_object_is_left_alone_until_it_is_resumed(tell: Tell) -> None:
    async def story(site: Site) -> None:
        await site.start(controller())
        await site.create(CONFIG_MAPS, "paused", annotations={PAUSED: "true"}, data={"copies": "1"})
        await site.create(CONFIG_MAPS, "other", data={"copies": "1"})
        await has(site, "other-0")
        await site.patch(CONFIG_MAPS, "paused", {"metadata": {"annotations": {PAUSED: None}}})
        await has(site, "other-0", "paused-0")

    tell(story)


def test_a_finalizer_holds_an_object_until_the_cleanup_is_done(tell: Tell) -> None:
    left = 2

    def cleanup(world: World, now: datetime) -> Decision:
        nonlocal left
        left -= 1
        if left > 0:
            return Decision(outcome=Again(timedelta(seconds=0.2), "the other side is slow"))
        return Decision(finalized=True)

    async def story(site: Site) -> None:
        await site.start(controller(finalizer="holdfast.dev/test", cleanup=cleanup))
        await site.create(CONFIG_MAPS, "a", data={"copies": "1"})
        await has(site, "a-0")
        held = await site.find(CONFIG_MAPS, "a")
        assert held is not None
        assert held["metadata"]["finalizers"] == ["holdfast.dev/test"]
        await site.delete(CONFIG_MAPS, "a")

        async def gone() -> bool:
            return await site.find(CONFIG_MAPS, "a") is None

        await site.eventually(gone, "the object goes")
        assert left <= 0

    tell(story)


def test_a_kind_that_comes_late_is_worked_on_and_its_status_is_written_once(tell: Tell) -> None:
    async def story(site: Site) -> None:
        widgets = Resource(f"{site.namespace}.holdfast.dev", "v1", "widgets", "Widget")

        def decide(widget: Object, now: datetime) -> Decision:
            return Decision(status={"size": widget.wire()["spec"]["size"]})

        copying = Controller(
            name="widgets", resource=widgets, observe=lambda view, key: view.get(widgets, key), decide=decide
        )
        process = await site.start(copying, controller(), waits=False)
        await site.create(CONFIG_MAPS, "a", data={"copies": "1"})
        await has(site, "a-0")
        assert process.manager.waiting == {"widgets": (widgets,)}
        await site.define(widgets)
        await site.eventually(process.manager.working.is_set, "the kind is seen")
        await site.create(widgets, "w", spec={"size": 3})

        async def says(size: int) -> bool:
            found = await site.find(widgets, "w")
            return found is not None and found.get("status") == {"size": size}

        await site.eventually(lambda: says(3), "the status follows the spec")
        await site.patch(widgets, "w", {"spec": {"size": 4}})
        await site.eventually(lambda: says(4), "the status follows the spec again")
        written = 'holdfast_writes_total{controller="widgets",verb="patch"} 2.0'
        await site.eventually(lambda: written in process.manager.metrics.render().decode(), "it is written once each")

    tell(story)


def test_one_of_several_leads_and_another_takes_over_when_it_stops_or_dies(tell: Tell) -> None:
    async def story(site: Site) -> None:
        first = await site.start(controller(), identity="first")
        second = await site.start(controller(), identity="second", waits=False)
        await site.create(CONFIG_MAPS, "a", data={"copies": "1"})
        await has(site, "a-0")
        assert not second.manager.working.is_set()
        await first.stop()
        await site.eventually(second.manager.working.is_set, "the second takes over at once")
        third = await site.start(controller(), identity="third", waits=False)
        await second.kill()
        await site.create(CONFIG_MAPS, "b", data={"copies": "1"})
        await has(site, "a-0", "b-0")
        assert third.manager.working.is_set()
        lease = await site.find(LEASES, "leader")
        assert lease is not None
        assert lease["spec"]["holderIdentity"] == "third"
        assert lease["spec"]["leaseDurationSeconds"] == TERMS.duration
        assert lease["spec"]["leaseTransitions"] == 2

    tell(story)
