"""Definitions that another project installed: kept, checked for what they would drop, and replaced only when asked."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
from tests.cli.operator.test_commands import PATIENCE, SETS, apiserver, asked, operator, refused

from holdfast import kinds
from holdfast.cli.operator import definitions, installing
from holdfast.client import waiting
from holdfast.client.objects import Object
from holdfast.client.protocols import Client
from holdfast.client.resources import DEFINITIONS, NAMESPACES, PODS
from holdfast.kinds import crds
from holdfast.kinds.model import Kind
from holdfast.meta.objects import Key


def kind(name: str) -> Kind:
    return next(each for each in kinds.ALL if each.name == name)


SET = kind("PodCliqueSet")


def schema(definition: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]
    return found


def foreign(*, without: str = "", opened: str = "") -> dict[str, Any]:
    """Another project's definition of PodCliqueSets: ours, without a field of the status, or with an open part."""
    definition = copy.deepcopy(crds.crd_of(SET))
    definition["metadata"]["managedFields"] = [{"manager": "helm"}]
    if without:
        del schema(definition)["status"]["properties"][without]
    if opened:
        schema(definition)[opened] = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    return definition


def test_a_definition_with_every_field_serves_whoever_wrote_it() -> None:
    assert definitions.foreign(SET, foreign(), created=True).dropped == ()
    assert definitions.foreign(SET, foreign(opened="status"), created=True).dropped == ()


def test_a_field_that_would_be_dropped_is_named_with_who_wrote_the_definition_and_what_to_do() -> None:
    found = definitions.foreign(SET, foreign(without="rollingUpdateProgress"), created=False)
    assert found.dropped == ("status.rollingUpdateProgress",)
    assert "written by helm" in str(found)
    assert "would drop status.rollingUpdateProgress" in str(found)
    assert "--adopt-crds" in str(found)


def test_the_spec_counts_only_where_objects_of_the_kind_are_created() -> None:
    definition = foreign()
    del schema(definition)["spec"]["properties"]["replicas"]
    assert definitions.foreign(SET, definition, created=False).dropped == ()
    assert definitions.foreign(SET, definition, created=True).dropped == ("spec.replicas",)


def test_another_version_or_a_missing_subresource_is_named() -> None:
    older, plain = foreign(), foreign()
    older["spec"]["versions"][0]["name"] = "v1"
    del plain["spec"]["versions"][0]["subresources"]
    assert definitions.foreign(SET, older, created=False).dropped == ("the version v1alpha1",)
    assert definitions.foreign(SET, plain, created=False).dropped == ("the subresource status",)


def test_versions_that_a_definition_without_conversion_takes_away_are_named() -> None:
    graph = kind("DynamoGraphDeployment")
    converted = definitions.marked(graph, conversion={"strategy": "Webhook", "webhook": {}})
    assert definitions.no_longer_served(converted, definitions.marked(graph)) == ["v1alpha1"]
    assert definitions.no_longer_served(definitions.marked(graph), converted) == []
    assert definitions.no_longer_served({}, converted) == []


@pytest.mark.parametrize("each", kinds.ALL, ids=lambda each: each.name)
def test_our_own_definitions_drop_nothing(each: Kind) -> None:
    assert definitions.foreign(each, crds.crd_of(each), created=True).dropped == ()


@pytest.fixture
def server(tmp_path: Path) -> Any:
    with apiserver(tmp_path) as (_, kubeconfig):
        yield kubeconfig


async def _install_foreign(client: Client) -> None:
    definition = foreign(without="rollingUpdateProgress")
    del definition["metadata"]["managedFields"]
    await client.create(DEFINITIONS, definition)
    await installing.install(client, [SET], writes=False)


def _set(name: str) -> dict[str, Any]:
    pods = {"containers": [{"name": "main", "image": "x"}]}
    clique = {"name": "w", "spec": {"roleName": "w", "replicas": 1, "podSpec": pods}}
    return {
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"replicas": 1, "template": {"cliques": [clique]}},
    }


def test_a_foreign_definition_is_left_and_its_kind_is_refused_until_it_is_adopted(server: Path) -> None:
    async def prepared(client: Client) -> None:
        await _install_foreign(client)
        if not any(each.key.name == "default" for each in (await client.list(NAMESPACES)).objects):
            await client.create(NAMESPACES, {"metadata": {"name": "default"}})
        await client.create(SETS, _set("a"))

    async def status(client: Client) -> dict[str, Any]:
        found: dict[str, Any] = (await client.get(SETS, Key("default", "a"))).wire().get("status") or {}
        return found

    async def annotations(client: Client) -> Any:
        return (await client.get(DEFINITIONS, Key("", SET.crd_name))).meta.annotations

    async def pods(client: Client) -> int:
        return len((await client.list(PODS)).objects)

    asked(server, prepared)
    with operator(server) as running:
        refusal = running.wait_for("kind refused")
        assert refusal["kind"] == "PodCliqueSet"
        assert "status.rollingUpdateProgress" in refusal["why"]
        running.wait_for("pass failed")
        running.end(code=0)
    conditions = asked(server, status)["conditions"]
    assert {each["reason"] for each in conditions} == {"ForeignDefinition"}
    assert "--adopt-crds" in conditions[0]["message"]
    assert definitions.HASH not in asked(server, annotations)
    assert asked(server, pods) == 0

    def works(found: Object | None) -> bool:
        conditions = found.wire()["status"]["conditions"] if found is not None else ()
        return bool(conditions) and all(each["reason"] != "ForeignDefinition" for each in conditions)

    async def adopted(client: Client) -> None:
        await waiting.until(client, SETS, Key("default", "a"), works, timeout=PATIENCE)

    with operator(server, "--adopt-crds") as running:
        asked(server, adopted)
        running.end(code=0)
    assert definitions.HASH in asked(server, annotations)


def test_what_writes_definitions_and_what_writes_none_exclude_each_other(tmp_path: Path) -> None:
    code, said = refused(tmp_path / "none", "--adopt-crds", "--no-install-crds")
    assert code == 2
    assert "leave one out" in said
