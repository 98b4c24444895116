"""What goes when an owner or a namespace goes, whatever fails meanwhile: the contract of all controllers."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.client.resources import CONFIG_MAPS, NAMESPACES, PODS, SECRETS, SERVICE_ACCOUNTS
from holdfast.cluster.controllers import accounts
from holdfast.cluster.controllers.gc.collector import GarbageCollector
from holdfast.cluster.controllers.namespaces import NamespaceTerminator
from holdfast.testing.clusters import Cluster
from holdfast.testing.contract import FAULTS, Scenario, check, check_second_look

POD = {"containers": [{"name": "c", "image": "i"}]}


def owner(obj: dict[str, Any], **more: Any) -> dict[str, Any]:
    reference = {"apiVersion": obj["apiVersion"], "kind": obj["kind"], "name": obj["metadata"]["name"]}
    return reference | {"uid": obj["metadata"]["uid"]} | more


async def _owners_go(cluster: Cluster) -> None:
    """One owner waits for its own, whose own follow, and one leaves them behind."""
    for name, propagation in (("a", "Foreground"), ("b", "Orphan")):
        first = await cluster.create(CONFIG_MAPS, {"metadata": {"name": name}})
        references = [owner(first, blockOwnerDeletion=True)]
        second = await cluster.create(
            SECRETS,
            {"metadata": {"name": f"{name}-1", "ownerReferences": references, "finalizers": ["example.com/hold"]}},
        )
        await cluster.create(CONFIG_MAPS, {"metadata": {"name": f"{name}-2", "ownerReferences": [owner(second)]}})
        await cluster.settle()
        await cluster.delete(CONFIG_MAPS, name, propagation=propagation)
    await cluster.advance(60)
    await cluster.patch(SECRETS, "a-1", {"metadata": {"finalizers": None}})


async def _namespace_goes(cluster: Cluster) -> None:
    await cluster.create(NAMESPACES, {"metadata": {"name": "shop"}})
    await cluster.until(lambda: cluster.find(SERVICE_ACCOUNTS, "default", "shop"))
    await cluster.create(CONFIG_MAPS, {"metadata": {"name": "settings", "namespace": "shop"}})
    pod = {"name": "web", "namespace": "shop", "finalizers": ["example.com/hold"]}
    await cluster.create(PODS, {"metadata": pod, "spec": POD})
    await cluster.delete(NAMESPACES, "shop")
    await cluster.advance(30)
    await cluster.patch(PODS, "web", {"metadata": {"finalizers": None}}, namespace="shop")

    async def gone() -> bool:
        return await cluster.find(NAMESPACES, "shop") is None

    await cluster.until(gone)


SCENARIOS = (
    Scenario(name="owners go", controllers=(), components=lambda: [GarbageCollector()], story=_owners_go),
    Scenario(
        name="a namespace goes",
        controllers=(accounts.CONTROLLER,),
        components=lambda: [NamespaceTerminator()],
        story=_namespace_goes,
    ),
)


@pytest.mark.parametrize("faults", FAULTS)
@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
def test_the_end_is_the_same(scenario: Scenario, faults: str) -> None:
    check(scenario, faults)


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
def test_a_second_look_writes_nothing(scenario: Scenario) -> None:
    check_second_look(scenario)
