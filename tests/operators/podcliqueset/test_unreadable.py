"""Objects that are stored in a form that their types do not allow, as an older definition may have let in."""

from __future__ import annotations

from typing import Any

import pytest
from tests.operators.podcliqueset.gangsets import (
    CLIQUES,
    GROUPS,
    KINDS,
    SETS,
    Cluster,
    clique,
    condition,
    events,
    group,
    message,
    pcs,
    simulated,
    until_available,
)

from holdfast.client.resources import DEFINITIONS, Resource
from holdfast.kinds import crds


async def open_schema(cluster: Cluster, resource: Resource) -> None:
    """Let the API server accept anything of a resource."""
    kind = next(each for each in KINDS if Resource.of(each) == resource)
    versions = crds.crd_of(kind)["spec"]["versions"]
    versions[0]["schema"]["openAPIV3Schema"] = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    await cluster.patch(DEFINITIONS, f"{resource.plural}.{resource.group}", {"spec": {"versions": versions}})


MANIFEST = pcs("wl", clique("a", 2), clique("b"), group("g", "b"))


@pytest.mark.parametrize(
    ("wrong", "right", "path"),
    [
        pytest.param({"terminationDelay": 5}, {"terminationDelay": "1h"}, "terminationDelay", id="a number"),
        pytest.param({"cliqueStartupType": "Sideways"}, {"cliqueStartupType": None}, "cliqueStartupType", id="a name"),
    ],
)
def test_a_set_that_cannot_be_read_says_where_and_goes_on_when_it_is_corrected(
    wrong: dict[str, Any], right: dict[str, Any], path: str
) -> None:
    async def story(cluster: Cluster) -> None:
        await open_schema(cluster, SETS)
        await cluster.create(SETS, MANIFEST)
        await until_available(cluster)
        await cluster.patch(SETS, "wl", {"spec": {"template": wrong}})
        await cluster.settle()
        found = await cluster.get(SETS, "wl")
        assert condition(found, "Ready") == ("False", "InvalidSpec")
        assert condition(found, "Blocked") == ("True", "InvalidSpec")
        assert f"$.spec.template.{path}" in message(found, "Blocked")
        assert found["status"]["observedGeneration"] == found["metadata"]["generation"]
        assert ("Warning", "InvalidSpec", "wl") in await events(cluster)
        await cluster.advance(600)
        assert (await cluster.get(SETS, "wl"))["metadata"]["resourceVersion"] == found["metadata"]["resourceVersion"]
        await cluster.patch(SETS, "wl", {"spec": {"template": right}})
        await until_available(cluster)
        assert condition(await cluster.get(SETS, "wl"), "Blocked") == ("False", "NotBlocked")

    simulated(story)


@pytest.mark.parametrize(("resource", "name"), [(CLIQUES, "wl-0-a"), (GROUPS, "wl-0-g")])
def test_a_part_that_cannot_be_read_says_where(resource: Resource, name: str) -> None:
    async def story(cluster: Cluster) -> None:
        await open_schema(cluster, resource)
        await cluster.create(SETS, MANIFEST)
        await until_available(cluster)
        await cluster.patch(resource, name, {"spec": {"minAvailable": "two"}})
        await cluster.settle()
        found = await cluster.get(resource, name)
        assert condition(found, "Ready") == ("False", "InvalidSpec")
        assert "$.spec.minAvailable" in message(found, "Ready")
        await cluster.patch(resource, name, {"spec": {"minAvailable": 1}})
        await until_available(cluster)

    simulated(story)
