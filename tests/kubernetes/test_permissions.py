"""Every operator alone, on a given Kubernetes, with exactly the role that its manifests grant.

    HOLDFAST_KUBECONFIG=build/kubernetes/kubeconfig python -m pytest tests/kubernetes/test_permissions.py

An operator that is refused anything, once, fails its story: the metrics count requests by the code of their answer.
"""

from __future__ import annotations

import asyncio
import json
import re
import urllib.request
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.cli.operator.test_commands import TYPES, Operator, printed
from tests.cli.operator.test_webhooks import free_port
from tests.kubernetes.sites import Site
from tests.kubernetes.test_operators import EXAMPLES, SET, TENANT, WORKLOAD, PlayStory, fresh, given, play_story
from tests.kubernetes.yards import Yard

from holdfast import kinds
from holdfast.cli.operator import registration, selection
from holdfast.cli.operator.permissions import MUTATING, VALIDATING
from holdfast.client.protocols import Scope
from holdfast.client.resources import SECRETS, SERVICE_ACCOUNTS, Resource
from holdfast.meta.errors import NotFound
from holdfast.meta.objects import Key
from holdfast.operators.virtualmachine.names import FORCE_DELETE
from holdfast.operators.virtualmachine.resources import MACHINES

__all__ = ["fresh", "play_story"]

Wire = dict[str, Any]
CLUSTERED = ("ClusterRole", "ClusterRoleBinding")
CONTROLLERS = {each.name: ",".join(it.name for it in each.controllers) for each in selection.operators()}
ROLLED = {"workload": WORKLOAD, "podcliqueset": SET, "tenant": TENANT}


def documents(name: str) -> list[Wire]:
    found = yaml.safe_load_all((EXAMPLES / name).read_text())
    # A machine is deleted only when its provider answers, and no provider can run here.
    known = [each for each in found if each["kind"] == "Secret" or kinds.find(each["apiVersion"], each["kind"])]
    return [each for each in known if each["kind"] != "VirtualMachine"]


OTHERS = {
    "virtualmachine": ["virtualmachines/realistic.yaml", "virtualmachines/set.yaml", "virtualmachines/snapshots.yaml"],
    "deploymentrequest": ["graphdeployments/minimal.yaml", "deploymentrequests/minimal.yaml"],
}
"""The examples of operators that need more than a cluster to complete a rollout: their objects get a status."""


async def signed_in(site: Site, directory: Path) -> Path:
    """The kubeconfig of the account of the operator in the namespace of a story."""
    request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
    key = Key(site.namespace, "holdfast-operator")
    answer = json.loads(await site.client.post(SERVICE_ACCOUNTS, key, "token", request))
    config = yaml.safe_load(site.kubeconfig.read_text())
    config["users"][0]["user"] = {"token": answer["status"]["token"]}
    config["contexts"][0]["context"]["namespace"] = site.namespace
    (directory / "account").write_text(json.dumps(config))
    return directory / "account"


@asynccontextmanager
async def account(site: Site, directory: Path, *options: str) -> AsyncIterator[Path]:
    """The kubeconfig of the account that manifests make, with their roles and nothing else."""
    made = [each for each in printed("--namespace", site.namespace, *options) if each["kind"] in TYPES]
    made = [each for each in made if each["kind"] not in ("Namespace", "Deployment", "Service", "PodDisruptionBudget")]
    try:
        for manifest in made:
            await site.client.apply(TYPES[manifest["kind"]], manifest)
        yield await signed_in(site, directory)
    finally:
        for manifest in made:
            if manifest["kind"] in CLUSTERED:
                with suppress(NotFound):
                    await site.client.delete(TYPES[manifest["kind"]], Key("", manifest["metadata"]["name"]))


def refusals(running: Operator) -> list[str]:
    """The requests that were refused, as the metrics count them, and what the log says is missing."""
    assert "operator working" in running.messages
    (started,) = (each for each in running.records if each["message"] == "operator started")
    with urllib.request.urlopen(f"{started['health']}/metrics", timeout=10) as answer:
        metrics = answer.read().decode()
    lacking = [each["permission"] for each in running.records if each["message"] == "permission missing"]
    return re.findall(r'holdfast_api_requests_total\{.*code="40[13]".*', metrics) + lacking


@given
@pytest.mark.parametrize("name", ROLLED)
def test_an_operator_rolls_out_with_its_own_role_alone(play_story: PlayStory, tmp_path: Path, name: str) -> None:
    async def act(yard: Yard) -> None:
        async with account(yard.site, tmp_path, "--controllers", CONTROLLERS[name]) as kubeconfig:
            # Without --namespace: the roles are for the whole cluster, as in an installation.
            running = Operator(kubeconfig, "--controllers", CONTROLLERS[name], "--leader-elect")
            try:
                await asyncio.to_thread(running.wait_for, "operator working")
                await yard.apply()
                await yard.change()
                await yard.at_rest()
                assert yard.kept()
                for subject in yard.subjects:
                    await yard.site.client.delete(subject.resource, subject.key)

                async def gone() -> bool:
                    return not await yard.pods()

                await yard.site.eventually(gone, "all pods are gone")
                assert refusals(running) == []
            finally:
                running.close()

    play_story(act, ROLLED[name])


@given
@pytest.mark.parametrize("name", OTHERS)
def test_an_operator_writes_what_it_can_with_its_own_role_alone(
    play_story: PlayStory, tmp_path: Path, name: str
) -> None:
    manifests = [each for example in OTHERS[name] for each in documents(example)]

    async def act(yard: Yard) -> None:
        async with account(yard.site, tmp_path, "--controllers", CONTROLLERS[name]) as kubeconfig:
            running = Operator(kubeconfig, "--controllers", CONTROLLERS[name], "--leader-elect")
            try:
                await asyncio.to_thread(running.wait_for, "operator working")
                custom = []
                for manifest in manifests:
                    kind = kinds.find(manifest["apiVersion"], manifest["kind"])
                    resource = SECRETS if kind is None else Resource.of(kind)
                    placed = {**manifest, "metadata": {**manifest["metadata"], "namespace": yard.site.namespace}}
                    await yard.site.client.apply(resource, placed)
                    custom += [] if kind is None else [(resource, manifest["metadata"]["name"])]
                for resource, each in custom:
                    await yard.until(resource, each, lambda wire: bool((wire.get("status") or {}).get("conditions")))
                await _give_up_machines(yard.site, name)
                for resource, each in custom:
                    await yard.site.client.delete(resource, Key(yard.site.namespace, each))
                for resource, each in custom:

                    async def gone(resource: Resource = resource, each: str = each) -> bool:
                        return await yard.site.find(resource, each) is None

                    await yard.site.eventually(gone, f"{resource} {each} is gone")
                assert refusals(running) == []
            finally:
                running.close()

    play_story(act)


async def _give_up_machines(site: Site, operator: str) -> None:
    """Have machines removed that no provider can delete: on simulated nodes its pods are ready, but no process runs."""
    if operator == "virtualmachine":
        given_up = {"metadata": {"annotations": {FORCE_DELETE: "true"}}}
        for machine in (await site.client.list(MACHINES, Scope(namespace=site.namespace))).objects:
            await site.client.patch(MACHINES, machine.key, given_up)


@given
def test_webhooks_are_served_with_the_role_for_them_alone(play_story: PlayStory, tmp_path: Path) -> None:
    async def act(yard: Yard) -> None:
        site = yard.site
        options = ("--controllers", "workload", "--webhooks")
        # The account may patch its two configurations, and create none.
        empty = {"metadata": {"name": registration.CONFIGURATION}, "webhooks": []}
        for resource in (MUTATING, VALIDATING):
            await site.client.apply(resource, empty)
        try:
            async with account(site, tmp_path, *options) as kubeconfig:
                running = Operator(
                    kubeconfig, *options[:2], "--leader-elect", "--webhook-port", str(free_port()), "--webhook-strict"
                )
                try:
                    await asyncio.to_thread(running.wait_for, "operator working")
                    secret = await site.find(SECRETS, registration.SECRET)
                    assert secret is not None
                    assert secret["data"]["tls.crt"]
                    for resource in (MUTATING, VALIDATING):
                        wire = (await site.client.get(resource, Key("", registration.CONFIGURATION))).wire()
                        assert wire["webhooks"][0]["clientConfig"]["caBundle"]
                    assert refusals(running) == []
                finally:
                    running.close()
        finally:
            for resource in (MUTATING, VALIDATING):
                await site.client.delete(resource, Key("", registration.CONFIGURATION))

    play_story(act)


@given
def test_the_roles_of_users_are_parts_of_view_edit_and_admin(play_story: PlayStory, tmp_path: Path) -> None:
    async def act(yard: Yard) -> None:
        site = yard.site
        roles = TYPES["ClusterRole"]

        async def rights(name: str) -> set[tuple[str, str]]:
            wire = (await site.client.get(roles, Key("", name))).wire()
            rules = [rule for rule in wire["rules"] if "resources" in rule]
            return {(each, verb) for rule in rules for each in rule["resources"] for verb in rule["verbs"]}

        async with account(site, tmp_path):

            async def aggregated() -> bool:
                view, edit, admin = [await rights(name) for name in ("view", "edit", "admin")]
                return (
                    {("tenants", "list"), ("virtualmachines/status", "get")} <= view
                    and ("tenants", "patch") not in view
                    and {("tenants", "patch"), ("podcliquesets/scale", "patch"), ("tenants", "list")} <= edit & admin
                )

            await site.eventually(aggregated, "the roles view, edit and admin have the rights on the kinds")

    play_story(act)
