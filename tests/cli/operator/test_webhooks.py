"""The webhooks of the operator: an API server converts objects by them, and processes share one certificate."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import aiohttp
import pytest
from click.testing import CliRunner

from holdfast.apiserver.server import Server
from holdfast.cli.main import main
from holdfast.cli.operator import deploying, installing, registration, webhooks
from holdfast.cli.operator.registration import WebhookOptions
from holdfast.client.api import ApiClient
from holdfast.client.inprocess import InProcess
from holdfast.client.resources import Resource
from holdfast.kinds import grove, nvidia, reviews
from holdfast.meta.errors import Invalid, NotFound, StatusError
from holdfast.meta.objects import Key
from holdfast.operators.admission import Admission
from holdfast.operators.operator import load

ADMISSION = Admission(load())
OLD, NEW = (Resource.of(kind) for kind in reversed(nvidia.GRAPHS.versions))
GRAPH: dict[str, Any] = {
    "apiVersion": "nvidia.com/v1alpha1",
    "kind": "DynamoGraphDeployment",
    "metadata": {"name": "chat", "namespace": "default"},
    "spec": {
        "services": {
            "Decode": {
                "dynamoNamespace": "chat",
                "componentType": "worker",
                "extraPodSpec": {"mainContainer": {"image": "engine:1"}},
            }
        }
    },
}


def played(story: Callable[[ApiClient], Awaitable[None]]) -> None:
    async def run() -> None:
        server = await Server.open(None)
        client = ApiClient(InProcess(server.handle, server.identity.admin_token))
        try:
            await story(client)
        finally:
            await client.close()
            await server.close()

    asyncio.run(run())


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def test_an_api_server_converts_by_the_webhook_of_the_operator() -> None:
    async def story(client: ApiClient) -> None:
        port = free_port()
        options = WebhookOptions(bind="127.0.0.1", port=port, url=f"https://127.0.0.1:{port}")
        async with webhooks.served(client, options, "kube-public", ADMISSION) as serving:
            await installing.install(client, [nvidia.GRAPHS], conversion=serving.registered.conversion)
            await client.create(OLD, GRAPH)
            found = (await client.get(NEW, Key("default", "chat"))).wire()
            assert found["spec"]["components"][0]["name"] == "Decode"
            assert (await client.get(OLD, Key("default", "chat"))).wire()["spec"] == GRAPH["spec"]
            async with (
                aiohttp.ClientSession() as session,
                session.post(f"https://127.0.0.1:{port}/convert", data=b"[", ssl=False) as answer,
            ):
                assert (answer.status, "not a review" in await answer.text()) == (400, True)

    played(story)


def test_the_older_version_is_not_served_where_nothing_converts_it() -> None:
    async def story(client: ApiClient) -> None:
        await installing.install(client, [nvidia.GRAPHS])
        with pytest.raises(NotFound):
            await client.create(OLD, GRAPH)

    played(story)


def test_a_service_of_the_operator_is_named_in_definitions() -> None:
    async def story(client: ApiClient) -> None:
        options = WebhookOptions(bind="127.0.0.1", port=free_port(), service=("system", "holdfast"))
        async with webhooks.served(client, options, "kube-public", ADMISSION) as serving:
            config = serving.registered.conversion["webhook"]["clientConfig"]
            assert config["service"] == {"namespace": "system", "name": "holdfast", "path": "/convert", "port": 443}

    played(story)


@pytest.mark.parametrize(
    ("review", "said"),
    [
        ({}, ""),
        ({"request": {"objects": 3}}, "not a ConversionReview"),
        ({"request": {"desiredAPIVersion": "nvidia.com/v1beta1", "objects": [{"kind": "Pod"}]}}, "cannot be converted"),
        ({"request": {"desiredAPIVersion": "nvidia.com/v9", "objects": [GRAPH]}}, "cannot be converted"),
    ],
)
def test_a_review_that_cannot_be_answered_says_why(review: dict[str, Any], said: str) -> None:
    result = reviews.answered(review)["response"]["result"]
    assert result["status"] == ("Failed" if said else "Success")
    assert said in result.get("message", "")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--webhook-url", "https://a"], "need --webhook-port"),
        (["--webhook-strict"], "need --webhook-port"),
        (["--webhook-port", "9", "--webhook-service", "a"], "write NAMESPACE/NAME"),
        (["--webhook-port", "9", "--webhook-url", "http://a"], "write https://HOST:PORT"),
        (["--webhook-port", "9", "--webhook-service", "a/b", "--webhook-url", "https://a"], "leave one out"),
    ],
)
def test_options_of_webhooks_that_do_not_fit_are_refused(options: list[str], said: str) -> None:
    result = CliRunner().invoke(main, ["operator", "run", *options])
    assert result.exit_code == 2
    assert said in " ".join(result.output.split())


def test_manifests_with_webhooks_have_a_service_and_the_right_to_keep_the_certificate() -> None:
    installation = deploying.Installation(
        namespace="system", image="holdfast:1", controllers={}, webhooks=deploying.webhook_options("system")
    )
    made = deploying.manifests(installation)
    kinds = {each["kind"]: each for each in made if not each["metadata"]["name"].endswith("-metrics")}
    assert kinds["Service"]["spec"]["ports"] == [{"name": "webhooks", "port": 443, "targetPort": 9443}]
    roles = {each["metadata"]["name"]: each["rules"] for each in made if each["kind"] == "Role"}
    assert roles["holdfast-operator-certificate"] == [
        {"apiGroups": [""], "resources": ["secrets"], "verbs": ["create"]},
        {
            "apiGroups": [""],
            "resources": ["secrets"],
            "verbs": ["get", "patch"],
            "resourceNames": ["holdfast-operator-webhooks"],
        },
    ]
    (container,) = kinds["Deployment"]["spec"]["template"]["spec"]["containers"]
    assert "--webhook-service=system/holdfast-operator" in container["args"]


def test_what_cert_manager_issues_is_kept_apart_and_is_trusted_through_renewals() -> None:
    options = deploying.webhook_options("system", cert_manager=True)
    own = deploying.Installation(
        namespace="system", image="holdfast:1", controllers={}, webhooks=deploying.webhook_options("system")
    )
    made = deploying.manifests(replace(own, webhooks=options))
    certificates = {each["metadata"]["name"]: each["spec"] for each in made if each["kind"] == "Certificate"}
    authority, serving = (
        certificates["holdfast-operator-webhooks-authority"],
        certificates["holdfast-operator-webhooks"],
    )
    # A renewed authority trusts what was signed before, because it has the same key.
    assert authority["privateKey"]["rotationPolicy"] == "Never"
    assert serving["privateKey"]["rotationPolicy"] == "Always"
    assert serving["dnsNames"] == list(options.hosts)
    # cert-manager does not delete its Secrets: neither may be one that an installation without it creates.
    secrets = {each["metadata"]["name"] for each in deploying.manifests(own) if each["kind"] == "Secret"}
    assert secrets.isdisjoint({authority["secretName"], serving["secretName"]})
    (deployment,) = (each for each in made if each["kind"] == "Deployment")
    volumes = {each["name"]: each for each in deployment["spec"]["template"]["spec"]["volumes"]}
    assert volumes["webhooks"]["secret"]["secretName"] == serving["secretName"]
    assert not [each for each in made if each["kind"] == "Secret" or each["metadata"]["name"].endswith("-certificate")]


SETS = next(Resource.of(kind) for kind in grove.KINDS if kind.name == "PodCliqueSet")


def in_a_cycle() -> dict[str, Any]:
    """A set whose cliques wait for each other, which no schema can say."""

    def clique(name: str, after: str) -> dict[str, Any]:
        pods = {"containers": [{"name": "main", "image": "x"}]}
        return {"name": name, "spec": {"roleName": name, "replicas": 1, "startsAfter": [after], "podSpec": pods}}

    template = {"cliqueStartupType": "CliqueStartupTypeExplicit", "cliques": [clique("a", "b"), clique("b", "a")]}
    return {"metadata": {"name": "ring", "namespace": "default"}, "spec": {"replicas": 1, "template": template}}


def test_an_api_server_has_objects_reviewed_by_the_webhook_of_the_operator() -> None:
    async def story(client: ApiClient) -> None:
        port = free_port()
        options = WebhookOptions(bind="127.0.0.1", port=port, url=f"https://127.0.0.1:{port}")
        await installing.install(client, grove.KINDS)
        async with webhooks.served(client, options, "kube-public", ADMISSION):
            with pytest.raises(StatusError) as refused:
                await client.create(SETS, in_a_cycle())
            assert "cliques start after each other in a cycle: a after b after a" in str(refused.value)
            assert [cause.field for cause in refused.value.causes] == ["spec.template.cliques"]
        # The operator is gone, and the cluster is not locked.
        await client.create(SETS, in_a_cycle())
        async with webhooks.served(client, options, "kube-public", ADMISSION):
            # What was stored with a problem can be changed, as long as no other problem is added.
            await client.patch(SETS, Key("default", "ring"), {"metadata": {"labels": {"a": "b"}}})

    played(story)


def test_reviews_leave_out_the_namespaces_that_a_cluster_needs_to_start() -> None:
    options = WebhookOptions(bind="127.0.0.1", port=1, service=("ops", "holdfast"), strict=True)
    made = {resource.kind: wire for resource, wire in registration.configurations(options, b"ca", ADMISSION, "ops")}
    paths = {"MutatingWebhookConfiguration": "/default", "ValidatingWebhookConfiguration": "/validate"}
    assert made.keys() == paths.keys()
    for name, path in paths.items():
        (webhook,) = made[name]["webhooks"]
        (expression,) = webhook["namespaceSelector"]["matchExpressions"]
        assert expression["operator"] == "NotIn"
        assert {"kube-system", "ops"} <= set(expression["values"])
        assert webhook["failurePolicy"] == "Fail"
        assert webhook["clientConfig"]["service"]["path"] == path
    reviewed = {plural for rule in webhook["rules"] for plural in rule["resources"]}
    assert {"workloads", "podcliquesets", "tenants", "dynamographdeployments"} <= reviewed


def test_the_embedded_server_asks_the_same_functions() -> None:
    async def run() -> None:
        server = await Server.open(None, admission=ADMISSION)
        client = ApiClient(InProcess(server.handle, server.identity.admin_token))
        try:
            await installing.install(client, grove.KINDS)
            with pytest.raises(Invalid) as refused:
                await client.create(SETS, in_a_cycle())
            assert [cause.field for cause in refused.value.causes] == ["spec.template.cliques"]
            assert 'PodCliqueSet.grove.io "ring" is invalid: spec.template.cliques: ' in str(refused.value)
        finally:
            await client.close()
            await server.close()

    asyncio.run(run())


def test_an_object_that_is_being_deleted_is_not_reviewed() -> None:
    wire = {"apiVersion": "grove.io/v1alpha1", "kind": "PodCliqueSet", **in_a_cycle()}
    assert ADMISSION.problems(wire)
    assert ADMISSION.problems(wire, wire) == ()
    wire["metadata"] = {**wire["metadata"], "deletionTimestamp": "2030-01-01T00:00:00Z"}
    assert ADMISSION.problems(wire) == ()


@pytest.mark.parametrize("review", [{}, {"request": 3}, {"request": {"object": {"kind": 3}}}])
def test_a_review_of_something_else_is_answered_too(review: dict[str, Any]) -> None:
    for answer in (ADMISSION.reviewed(review), ADMISSION.completed(review)):
        assert answer["kind"] == "AdmissionReview"
        assert isinstance(answer["response"]["allowed"], bool)
