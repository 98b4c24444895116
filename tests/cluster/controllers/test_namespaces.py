"""Namespaces on their way out: what goes first, what is waited for, and what is said of it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from holdfast.client.objects import Object
from holdfast.client.resources import CONFIG_MAPS, DEPLOYMENTS, NAMESPACES, PODS, SERVICE_ACCOUNTS, SERVICES
from holdfast.cluster.controllers import accounts, namespaces
from holdfast.cluster.controllers.namespaces import Findings, NamespaceTerminator, Remains
from holdfast.meta.errors import Forbidden
from holdfast.testing.clusters import Cluster, play

NOW = datetime(2030, 1, 1, tzinfo=UTC)
HOLD = "example.com/hold"
POD = {"containers": [{"name": "c", "image": "i"}]}


LEFT = (
    "Some resources are remaining: configmaps. has 1 resource instances, "
    "deployments.apps has 3 resource instances, pods. has 2 resource instances"
)
HELD = (
    f"Some content in the namespace has finalizers remaining: b in 1 resource instances, {HOLD} in 4 resource instances"
)


def said(findings: Findings) -> dict[str, tuple[str, str, str]]:
    return {
        each["type"].removeprefix("Namespace"): (each["status"], each["reason"], each["message"])
        for each in namespaces.conditions([], findings, NOW)
    }


GOOD = {
    "DeletionDiscoveryFailure": ("False", "ResourcesDiscovered", "All resources successfully discovered"),
    "DeletionGroupVersionParsingFailure": (
        "False",
        "ParsedGroupVersions",
        "All legacy kube types successfully parsed",
    ),
    "DeletionContentFailure": (
        "False",
        "ContentDeleted",
        "All content successfully deleted, may be waiting on finalization",
    ),
    "ContentRemaining": ("False", "ContentRemoved", "All content successfully removed"),
    "FinalizersRemaining": ("False", "ContentHasNoFinalizers", "All content-preserving finalizers finished"),
}


@pytest.mark.parametrize(
    ("findings", "bad"),
    [
        pytest.param(Findings(), {}, id="nothing is left"),
        pytest.param(
            Findings(unknown=("metrics.k8s.io/v1beta1",)),
            {
                "DeletionDiscoveryFailure": (
                    "DiscoveryFailed",
                    "Discovery failed for some groups, 1 failing: metrics.k8s.io/v1beta1",
                )
            },
            id="a group does not answer",
        ),
        pytest.param(
            Findings(failures=("pods: no", "secrets: never")),
            {
                "DeletionContentFailure": (
                    "ContentDeletionFailed",
                    "Failed to delete all resource types, 2 remaining: pods: no, secrets: never",
                )
            },
            id="a deletion is refused",
        ),
        pytest.param(
            Findings(
                remains=(
                    Remains(PODS, 2),
                    Remains(DEPLOYMENTS, 3, {HOLD: 3, "b": 1}),
                    Remains(CONFIG_MAPS, 1, {HOLD: 1}),
                )
            ),
            {
                "ContentRemaining": (
                    "SomeResourcesRemain",
                    LEFT,
                ),
                "FinalizersRemaining": (
                    "SomeFinalizersRemain",
                    HELD,
                ),
            },
            id="something is left",
        ),
    ],
)
def test_what_is_said(findings: Findings, bad: dict[str, tuple[str, str]]) -> None:
    assert said(findings) == GOOD | {type: ("True", *news) for type, news in bad.items()}
    assert findings.empty is not bool(bad)


def test_what_is_said_again_keeps_its_time() -> None:
    own = {"type": "Mine", "status": "True"}
    first = namespaces.conditions([own], Findings(remains=(Remains(PODS, 2),)), NOW)
    assert first[0] == own
    assert namespaces.conditions(first, Findings(remains=(Remains(PODS, 2),)), NOW + timedelta(hours=1)) == first
    later = namespaces.conditions(first, Findings(remains=(Remains(PODS, 1),)), NOW + timedelta(hours=1))
    assert [each["type"] for each in later if each not in first] == ["NamespaceContentRemaining"]


@pytest.mark.parametrize(
    ("remains", "seconds"),
    [
        pytest.param([Remains(PODS, 1, {}, timedelta(seconds=30))], 16, id="the grace of a pod"),
        pytest.param([Remains(CONFIG_MAPS, 1, {HOLD: 1})], 8.5, id="what finalizers may take"),
        pytest.param([], 8.5, id="what failed is tried again"),
    ],
)
def test_when_to_look_again(remains: list[Remains], seconds: float) -> None:
    assert namespaces.patience(Findings(remains=tuple(remains))) == timedelta(seconds=seconds)


def test_what_remains_is_counted() -> None:
    def thing(name: str, **meta: Any) -> Object:
        return Object.of(PODS, {"metadata": {"name": name, **meta}})

    left = [thing("a", finalizers=[HOLD]), thing("b", finalizers=[HOLD], deletionGracePeriodSeconds=30), thing("c")]
    assert Remains.of(PODS, left) == Remains(PODS, 3, {HOLD: 2}, timedelta(seconds=30))


# --- on a cluster


def ended(story: Any) -> None:
    play(story, controllers=[accounts.CONTROLLER], components=[NamespaceTerminator()])


async def begin(cluster: Cluster) -> None:
    await cluster.create(NAMESPACES, {"metadata": {"name": "shop"}})
    await cluster.settle()


async def news(cluster: Cluster) -> dict[str, str]:
    """The bad news of the namespace."""
    status = (await cluster.get(NAMESPACES, "shop"))["status"]
    assert status["phase"] == "Terminating"
    return {each["type"]: each["message"] for each in status.get("conditions", ()) if each["status"] == "True"}


def test_a_namespace_goes_with_everything_in_it() -> None:
    async def story(cluster: Cluster) -> None:
        await begin(cluster)
        for number in range(3):
            await cluster.create(CONFIG_MAPS, {"metadata": {"name": f"c{number}", "namespace": "shop"}})
        await cluster.create(
            SERVICES, {"metadata": {"name": "web", "namespace": "shop"}, "spec": {"ports": [{"port": 1}]}}
        )
        await cluster.create(PODS, {"metadata": {"name": "web", "namespace": "shop"}, "spec": POD})
        await cluster.delete(NAMESPACES, "shop")
        await cluster.settle()
        assert await cluster.find(NAMESPACES, "shop") is None
        for resource in (CONFIG_MAPS, SERVICES, PODS, SERVICE_ACCOUNTS):
            assert await cluster.list(resource, namespace="shop") == []
        await begin(cluster)
        assert await cluster.find(SERVICE_ACCOUNTS, "default", "shop")

    ended(story)


def test_a_namespace_waits_for_finalizers_and_says_so() -> None:
    async def story(cluster: Cluster) -> None:
        await begin(cluster)
        await cluster.create(CONFIG_MAPS, {"metadata": {"name": "held", "namespace": "shop", "finalizers": [HOLD]}})
        await cluster.delete(NAMESPACES, "shop")
        await cluster.settle()
        assert await news(cluster) == {
            "NamespaceContentRemaining": "Some resources are remaining: configmaps. has 1 resource instances",
            "NamespaceFinalizersRemaining": "Some content in the namespace has finalizers remaining: "
            f"{HOLD} in 1 resource instances",
        }
        with pytest.raises(Forbidden):
            await cluster.create(CONFIG_MAPS, {"metadata": {"name": "late", "namespace": "shop"}})
        before = cluster.server.store.revision
        await cluster.advance(60)
        assert cluster.server.store.revision == before
        await cluster.patch(CONFIG_MAPS, "held", {"metadata": {"finalizers": None}}, namespace="shop")
        await cluster.settle()
        assert await cluster.find(NAMESPACES, "shop") is None

    ended(story)


def test_pods_go_before_what_they_may_need() -> None:
    async def story(cluster: Cluster) -> None:
        await begin(cluster)
        await cluster.create(CONFIG_MAPS, {"metadata": {"name": "settings", "namespace": "shop"}})
        pod = {"metadata": {"name": "web", "namespace": "shop"}, "spec": {"nodeName": "n1", **POD}}
        await cluster.create(PODS, pod)
        await cluster.delete(NAMESPACES, "shop")
        await cluster.advance(5)
        assert "deletionTimestamp" in (await cluster.get(PODS, "web", "shop"))["metadata"]
        assert await cluster.find(CONFIG_MAPS, "settings", "shop")
        assert await news(cluster) == {
            "NamespaceContentRemaining": "Some resources are remaining: pods. has 1 resource instances"
        }
        await cluster.delete(PODS, "web", "shop", grace_seconds=0)
        await cluster.settle()
        assert await cluster.find(NAMESPACES, "shop") is None

    ended(story)


def test_others_may_keep_a_namespace_too() -> None:
    async def story(cluster: Cluster) -> None:
        await cluster.create(NAMESPACES, {"metadata": {"name": "shop", "finalizers": [HOLD]}})
        await cluster.delete(NAMESPACES, "shop")
        await cluster.settle()
        assert "finalizers" not in (await cluster.get(NAMESPACES, "shop"))["spec"]
        await cluster.patch(NAMESPACES, "shop", {"metadata": {"finalizers": None}})
        assert await cluster.find(NAMESPACES, "shop") is None

    ended(story)
