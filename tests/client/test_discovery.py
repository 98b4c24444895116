"""The resources of a server, in both forms of discovery, and what names mean in it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.client.api_servers import Embedded, embedded

from holdfast.client.api import ApiClient
from holdfast.client.discovery import Discovery, Served, UnknownResource, discover
from holdfast.client.protocols import Unreachable
from holdfast.client.resources import DEFINITIONS, DEPLOYMENTS, PODS, Resource
from holdfast.meta.errors import NotFound, ServiceUnavailable, StatusError
from holdfast.meta.exchange import JSON, Request, Response
from holdfast.meta.objects import GVK
from holdfast.testing import loops

DEFINITION: dict[str, Any] = {
    "metadata": {"name": "crons.stable.example.com"},
    "spec": {
        "group": "stable.example.com",
        "scope": "Cluster",
        "names": {
            "plural": "crons",
            "singular": "cron",
            "kind": "CronTab",
            "shortNames": ["cr"],
            "categories": ["all"],
        },
        "versions": [
            {
                "name": version,
                "served": True,
                "storage": version == "v1",
                "schema": {"openAPIV3Schema": {"type": "object"}},
                "subresources": {"status": {}},
            }
            for version in ("v1beta1", "v1")
        ],
    },
}


class Old:
    """A client of a server that knows only the old form."""

    def __init__(self, client: ApiClient) -> None:
        self._client = client

    async def raw(self, request: Request) -> Response:
        return await self._client.raw(Request("GET", request.path, headers={"accept": JSON}))


def test_both_forms_tell_the_same() -> None:
    async def test(api: Embedded) -> None:
        await api.client.create(DEFINITIONS, DEFINITION)
        while True:
            found = await discover(api.client)
            if any(each.resource.plural == "crons" for each in found.served):
                break
        assert found == await discover(Old(api.client))
        assert found.find("po").resource == PODS
        pods = found.find("pods")
        assert pods.subresources >= {"status", "log", "eviction", "binding"}
        assert pods.verbs >= {"get", "list", "watch", "create", "patch", "delete"}
        own = found.find("crons")
        assert own.resource == Resource("stable.example.com", "v1", "crons", "CronTab", False)
        assert own in found.in_category("all")
        assert [each.resource.version for each in found.served if each.resource.plural == "crons"] == ["v1", "v1beta1"]
        assert sum(each.resource.plural == "crons" for each in found.preferred()) == 1

    embedded(test)


def served(group: str, version: str, plural: str, kind: str, *short: str, **rest: Any) -> Served:
    return Served(Resource(group, version, plural, kind), rest.pop("singular", kind.lower()), short, **rest)


KNOWN = Discovery(
    (
        served("", "v1", "pods", "Pod", "po"),
        served("", "v1", "events", "Event", "ev"),
        served("", "v1", "endpoints", "Endpoints", "ep", singular=""),
        served("apps", "v1", "deployments", "Deployment", "deploy"),
        served("apps", "v1beta1", "deployments", "Deployment", "deploy"),
        served("events.k8s.io", "v1", "events", "Event", "ev"),
        served("stable.example.com", "v1", "crons", "CronTab", "pods", "cr", singular="cron"),
        served("metrics.k8s.io", "v1", "pods", "PodMetrics", singular=""),
    )
)


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("pods", "v1/pods"),
        ("Pods", "v1/pods"),
        ("pod", "v1/pods"),
        ("po", "v1/pods"),
        ("endpoints", "v1/endpoints"),
        ("deploy", "apps/v1/deployments"),
        ("deploy.apps", "apps/v1/deployments"),
        ("deployments.apps", "apps/v1/deployments"),
        ("deployment.v1beta1.apps", "apps/v1beta1/deployments"),
        ("deployments.v1.apps", "apps/v1/deployments"),
        ("pods.v1.", "v1/pods"),
        ("ev", "v1/events"),
        ("events", "v1/events"),
        ("events.events.k8s.io", "events.k8s.io/v1/events"),
        ("events.v1.events.k8s.io", "events.k8s.io/v1/events"),
        ("events.events", "events.k8s.io/v1/events"),
        ("pods.metrics", "metrics.k8s.io/v1/pods"),
        ("podmetrics", "metrics.k8s.io/v1/pods"),
        ("crontab", "stable.example.com/v1/crons"),
        ("cron", "stable.example.com/v1/crons"),
        ("cr", "stable.example.com/v1/crons"),
        ("crons.stable.example.com", "stable.example.com/v1/crons"),
        ("crons.v1.stable.example.com", "stable.example.com/v1/crons"),
    ],
)
def test_names_are_read_as_kubectl_reads_them(name: str, meant: str) -> None:
    resource = KNOWN.find(name).resource
    assert f"{resource.api_version}/{resource.plural}" == meant


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("podz", "did you mean pods?"),
        ("deploymnt", "did you mean deployments.apps?"),
        ("deployments.v2.apps", "did you mean deployments.apps?"),
        ("cronz", "did you mean crons.stable.example.com?"),
        ("zzzzzz", "create its CustomResourceDefinition"),
        ("", "CustomResourceDefinition"),
    ],
)
def test_a_name_that_is_not_there_comes_with_what_was_meant(name: str, hint: str) -> None:
    with pytest.raises(UnknownResource) as caught:
        KNOWN.find(name)
    assert hint in str(caught.value)


def test_the_kind_of_a_manifest_is_found_in_its_own_version() -> None:
    assert KNOWN.kind(GVK("apps", "v1", "Deployment")).resource == DEPLOYMENTS
    assert KNOWN.kind(GVK("apps", "v1beta1", "Deployment")).resource.version == "v1beta1"
    with pytest.raises(UnknownResource, match=r"did you mean deployments\.apps"):
        KNOWN.kind(GVK("apps", "v2", "Deployment"))


class Documents:
    """A client of a server that has these documents, and no others."""

    def __init__(self, **documents: bytes | StatusError | dict[str, Any]) -> None:
        self._documents = documents

    async def raw(self, request: Request) -> Response:
        document = self._documents.get(request.path.removeprefix("/").replace("/", "_").replace(".", "_"))
        if document is None:
            raise NotFound.of_path()
        if isinstance(document, StatusError):
            raise document
        return Response(200, document) if isinstance(document, bytes) else Response.of(document)


def discovered(**documents: bytes | StatusError | dict[str, Any]) -> Discovery:
    return loops.run(lambda loop: discover(Documents(**documents)))


AGGREGATED = {"kind": "APIGroupDiscoveryList", "items": []}


def test_what_cannot_be_asked_about_hides_nothing_else() -> None:
    groups = {
        "groups": [
            {
                "name": "apps",
                "versions": [{"version": "v1beta1"}, {"version": "v1"}],
                "preferredVersion": {"version": "v1"},
            },
            {"name": "away.example.com", "versions": [{"version": "v1"}]},
            {"name": "empty.example.com", "versions": [{"version": "v1"}]},
        ]
    }
    deployments = {"resources": [{"name": "deployments", "kind": "Deployment", "namespaced": True, "verbs": None}]}
    found = discovered(
        apis=groups,
        apis_apps_v1=deployments,
        apis_apps_v1beta1=deployments,
        apis_away_example_com_v1=ServiceUnavailable("no server"),
        apis_empty_example_com_v1={"resources": None},
    )
    assert [each.resource.version for each in found.served] == ["v1", "v1beta1"]
    assert found.missing == ("away.example.com/v1",)
    with pytest.raises(UnknownResource, match="away"):
        found.find("zzzzzz")


def test_a_group_that_is_stale_is_missing() -> None:
    stale = {"metadata": {"name": "away.example.com"}, "versions": [{"version": "v1", "freshness": "Stale"}]}
    assert discovered(api=AGGREGATED, apis={**AGGREGATED, "items": [stale]}) == Discovery((), ("away.example.com/v1",))


@pytest.mark.parametrize("body", [b"<html>", json.dumps({**AGGREGATED, "items": 5}).encode()])
def test_what_is_no_discovery_is_unreachable(body: bytes) -> None:
    with pytest.raises(Unreachable):
        discovered(api=body, apis=AGGREGATED)
