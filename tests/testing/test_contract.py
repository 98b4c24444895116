"""The contract suite itself: it passes controllers that keep the contract, and catches those that do not."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest

from holdfast.client.objects import Object
from holdfast.client.resources import CONFIG_MAPS, SECRETS
from holdfast.kernel.children import Desired
from holdfast.meta.objects import Key, owner_reference
from holdfast.runtime.controllers import Controller, View
from holdfast.runtime.decisions import NOTHING, Create, Decision, Patch
from holdfast.testing.clusters import Cluster
from holdfast.testing.contract import FAULTS, Scenario, check, check_second_look
from holdfast.testing.loops import EPOCH

Pair = tuple[Object, tuple[Object, ...]]


def observe(view: View, key: Key) -> Pair | None:
    owner = view.get(CONFIG_MAPS, key)
    return None if owner is None else (owner, view.owned(SECRETS, owner.uid))


def secret(metadata: dict[str, Any]) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"namespace": "default", **metadata}, "data": {}}


def keeps_it(world: Pair, now: datetime) -> Decision:
    owner, _ = world
    wanted = int(owner.wire()["data"]["copies"])
    return Decision(children=tuple(Desired(secret({"name": f"{owner.key.name}-{n}"})) for n in range(wanted)))


def notes(world: Pair, now: datetime) -> Decision:
    """Makes its child and then notes that it has, instead of looking whether the child is there."""
    owner, _ = world
    if owner.meta.annotations.get("made"):
        return NOTHING
    manifest = secret({"generateName": "x-", "ownerReferences": [owner_reference(owner.wire())]})
    note = {"metadata": {"annotations": {"made": "yes"}}}
    return Decision(
        writes=(
            Create(because="not noted", resource=SECRETS, manifest=manifest),
            Patch(because="made", resource=CONFIG_MAPS, key=owner.key, patch=note, uid=owner.uid, wave=1),
        )
    )


def restless(world: Pair, now: datetime) -> Decision:
    """Writes the time whenever it looks."""
    owner, _ = world
    if now < EPOCH + timedelta(seconds=20) and owner.meta.annotations.get("looked"):
        return NOTHING
    patch = {"metadata": {"annotations": {"looked": str(now)}}}
    write = Patch(because="why not", resource=CONFIG_MAPS, key=owner.key, patch=patch, uid=owner.uid)
    return Decision(writes=(write,))


async def story(cluster: Cluster) -> None:
    await cluster.create(CONFIG_MAPS, {"metadata": {"name": "a"}, "data": {"copies": "2"}})
    await cluster.advance(1)
    await cluster.patch(CONFIG_MAPS, "a", {"data": {"copies": "1"}})


def scenario(decide: Any) -> Scenario:
    controller = Controller(name="copies", resource=CONFIG_MAPS, observe=observe, decide=decide, owns=(SECRETS,))
    return Scenario(name=decide.__name__, controllers=(controller,), story=story, patience=30)


@pytest.mark.parametrize("faults", FAULTS)
def test_a_controller_that_derives_everything_from_the_world_keeps_the_contract(faults: str) -> None:
    check(scenario(keeps_it), faults)


def test_a_second_look_of_a_controller_that_keeps_the_contract_writes_nothing() -> None:
    check_second_look(scenario(keeps_it))


def test_a_controller_that_trusts_its_notes_is_caught() -> None:
    with pytest.raises(AssertionError, match="ends otherwise than undisturbed"):
        check(scenario(notes), "dying with any write")


def test_a_controller_that_always_finds_something_to_write_is_caught() -> None:
    with pytest.raises(AssertionError, match="although nothing had changed"):
        check_second_look(scenario(restless))
