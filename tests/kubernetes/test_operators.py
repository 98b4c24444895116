"""The operators as processes, end to end: on a server of our own in short, and on a Kubernetes if one is given.

    HOLDFAST_KUBECONFIG=build/kubernetes/kubeconfig python -m pytest tests/kubernetes

Pods run on simulated nodes that each story adds, so a given cluster must have no others (`make kubernetes` starts one).
At every change of a pod the story counts those that serve, and compares with the floor.
"""

from __future__ import annotations

import asyncio
import copy
import json
import os
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.cli.operator.test_commands import asked
from tests.cli.operator.test_definitions import SET as SET_KIND
from tests.cli.operator.test_definitions import foreign
from tests.cli.operator.test_packaging import UPGRADES, elsewhere, helm, installed_resources, needs_helm
from tests.cli.operator.test_webhooks import free_port
from tests.kubernetes.sites import PATIENCE, Site, play
from tests.kubernetes.yards import KUBECTL, Yard, resting, yard
from tests.places import ROOT

from holdfast import kinds
from holdfast.cli.operator import installing, packaging, registration
from holdfast.cli.operator.selection import named, rollout_kinds
from holdfast.client import waiting
from holdfast.client.protocols import Client
from holdfast.client.resources import DEFINITIONS, DEPLOYMENTS, LEASES, NODES, Resource
from holdfast.meta.objects import Key

GIVEN = os.environ.get("HOLDFAST_KUBECONFIG", "")
EXAMPLES = ROOT / "examples"
Wire = dict[str, Any]
Act = Callable[[Yard], Awaitable[None]]
PlayStory = Callable[..., None]

given = pytest.mark.skipif(not GIVEN, reason="HOLDFAST_KUBECONFIG names no cluster")
needs_kubectl = pytest.mark.skipif(KUBECTL is None, reason="needs kubectl")


def example(name: str) -> Wire:
    manifest: Wire = yaml.safe_load((EXAMPLES / name).read_text())
    return manifest


WORKLOAD = example("demo/workload.yaml")
SET = example("demo/podcliqueset.yaml")
TENANT = example("demo/tenant.yaml")
SMALL = {
    **WORKLOAD,
    "metadata": {"name": "shop", "annotations": {"sim.holdfast.dev/ready-after": "0.5s"}},
    "spec": {**WORKLOAD["spec"], "replicas": 5, "rollout": {"minAvailable": 3, "maxSurge": 1}},
}
"""The Workload of stories on a server of our own, which are a part of every test run."""

KINDS = {kind.resource.kind: kind for kind in rollout_kinds()}
WORKLOADS, SETS = KINDS["Workload"].resource, KINDS["PodCliqueSet"].resource
GRAPH_KIND = KINDS["DynamoGraphDeployment"]
GRAPHS = GRAPH_KIND.resource
SET_CONTROLLERS = ",".join(each.name for operator in named("podcliqueset") for each in operator.controllers)
OURS = {kind.crd_name for kind in kinds.ALL}


async def found(yard: Yard, resource: Resource, name: str) -> Wire:
    wire: Wire = (await yard.site.client.get(resource, Key(yard.site.namespace, name))).wire()
    return wire


def reasons(wire: Wire) -> set[str]:
    return {each["reason"] for each in (wire.get("status") or {}).get("conditions") or ()}


@pytest.fixture(params=["embedded", pytest.param("given", marks=given)])
def tell(request: pytest.FixtureRequest, tmp_path: Path) -> PlayStory:
    """Plays an act in a yard with a Workload."""
    own = request.param == "embedded"
    return lambda act: _played(act, (SMALL if own else WORKLOAD,), own=own, directory=tmp_path)


@pytest.fixture
def play_story(tmp_path: Path) -> PlayStory:
    """Plays an act in a yard with subjects, on a given cluster only: other tests have it for a server of our own."""
    return lambda act, *manifests: _played(act, manifests, own=False, directory=tmp_path)


def _played(act: Act, manifests: tuple[Wire, ...], *, own: bool, directory: Path) -> None:
    async def story(site: Site) -> None:
        if not own:
            await _only_ours(site)
        async with yard(site, *manifests, own=own) as made:
            await act(made)

    play(story, kubeconfig=None if own else Path(GIVEN).expanduser(), directory=directory)


async def _only_ours(site: Site) -> None:
    nodes = (await site.client.list(NODES)).objects
    others = [node.key.name for node in nodes if not node.wire()["spec"].get("providerID", "").startswith("sim://")]
    if others:
        pytest.skip(f"the cluster has nodes of its own ({', '.join(others[:3])}); use one of 'make kubernetes'")


@pytest.fixture(scope="module", autouse=True)
def fresh() -> Iterator[Callable[..., Awaitable[None]]]:
    """Removes definitions that these tests installed, and all of them in the end; skips if they were there before."""

    async def there(client: Client) -> set[str]:
        return {each.key.name for each in (await client.list(DEFINITIONS)).objects} & OURS

    before = asked(Path(GIVEN).expanduser(), there) if GIVEN else set()

    async def removed(client: Client, *names: str) -> None:
        for name in await there(client) - before:
            if not names or name in names:
                await client.delete(DEFINITIONS, Key("", name))
                await waiting.until(client, DEFINITIONS, Key("", name), lambda obj: obj is None, timeout=PATIENCE)

    async def free(site: Site, *names: str) -> None:
        if kept := before & set(names or OURS):
            pytest.skip(f"the cluster had {', '.join(sorted(kept)[:3])} before; use one of 'make kubernetes'")
        await removed(site.client, *names)

    yield free
    if GIVEN:
        asked(Path(GIVEN).expanduser(), removed)


# --- rollouts


@given
def test_every_kind_rolls_out_above_its_floor(play_story: PlayStory) -> None:
    async def act(yard: Yard) -> None:
        await yard.operate()
        await yard.apply()
        before = await yard.images()
        await yard.change()
        await yard.at_rest()
        assert not await yard.images() & before
        assert yard.kept()

    play_story(act, WORKLOAD, SET, TENANT)


@given
def test_a_graph_rolls_out_above_the_floors_of_its_cliques(play_story: PlayStory) -> None:
    manifest = example("graphdeployments/minimal.yaml")
    name = manifest["metadata"]["name"]

    def components(version: str) -> list[Wire]:
        changed = copy.deepcopy(manifest["spec"]["components"])
        for each in changed:
            each["replicas"] = 2
            each["podTemplate"]["spec"]["containers"][0]["image"] = f"registry.example.com/runtime:{version}"
        return changed

    async def act(yard: Yard) -> None:
        namespace = {"namespace": yard.site.namespace}
        await yard.operate()
        spec = {"components": components("1")}
        await yard.site.client.apply(GRAPHS, {**manifest, "metadata": manifest["metadata"] | namespace, "spec": spec})
        await yard.until(GRAPHS, name, resting(GRAPH_KIND))
        await yard.look()
        await yard.site.patch(GRAPHS, name, {"spec": {"components": components("2")}})
        await yard.until(GRAPHS, name, resting(GRAPH_KIND))
        assert await yard.images() == {"registry.example.com/runtime:2"}
        assert yard.kept()

    # The floors are those of the set that the graph creates, which has its name.
    play_story(act, {"apiVersion": "grove.io/v1alpha1", "kind": "PodCliqueSet", "metadata": {"name": name}})


async def drained(yard: Yard) -> None:
    await yard.operate()
    await yard.apply()
    node = max(yard.nodes, key=[pod["spec"]["nodeName"] for pod in await yard.pods()].count)
    answer = await yard.kubectl("drain", node, "--timeout=60s", "--ignore-daemonsets", "--delete-emptydir-data")
    assert answer.returncode == 0, answer.stderr
    assert "evicting pod" in answer.stdout + answer.stderr

    async def moved() -> bool:
        return not any(pod["spec"].get("nodeName") == node for pod in await yard.pods())

    await yard.site.eventually(moved, f"the pods of {node} run elsewhere")
    await yard.at_rest()
    assert yard.kept()


@needs_kubectl
def test_a_node_is_drained_above_the_floor(tell: PlayStory) -> None:
    tell(drained)


@given
@needs_kubectl
def test_a_node_with_gangs_and_stores_is_drained_above_their_floors(play_story: PlayStory) -> None:
    gangs = copy.deepcopy(SET)
    for clique in gangs["spec"]["template"]["cliques"]:
        clique["spec"]["minAvailable"] = clique["spec"]["replicas"] - 1
    play_story(drained, gangs, TENANT)


# --- processes that end


def midway(wire: Wire) -> bool:
    return 0 < (wire.get("status") or {}).get("updatedReplicas", 0) < wire["spec"]["replicas"]


def test_an_operator_that_is_killed_in_a_rollout_goes_on_when_it_is_started_again(tell: PlayStory) -> None:
    async def act(yard: Yard) -> None:
        running = await yard.operate("--controllers", "workload")
        await yard.apply()
        await yard.change()
        await yard.until(WORKLOADS, "shop", midway)
        running.process.kill()
        assert midway(await found(yard, WORKLOADS, "shop"))
        await yard.operate("--controllers", "workload")
        await yard.at_rest()
        assert await yard.images() == {"registry.example.com/shop:2"}
        assert yard.kept()

    tell(act)


@given
def test_another_process_takes_over_when_the_leader_is_killed_in_a_rollout(play_story: PlayStory) -> None:
    async def act(yard: Yard) -> None:
        election = ("--leader-elect", "--lease-namespace", yard.site.namespace)
        leader = await yard.operate(*election)
        before = (await found(yard, LEASES, "holdfast-operator"))["spec"]["holderIdentity"]
        second = await yard.operate(*election, waits="operator started")
        await yard.apply()
        assert "operator working" not in second.messages
        await yard.change()
        await yard.until(WORKLOADS, "shop", midway)
        leader.process.kill()
        await yard.at_rest()
        lease = (await found(yard, LEASES, "holdfast-operator"))["spec"]
        assert lease["holderIdentity"] != before
        assert await yard.images() == {"registry.example.com/shop:2"}
        assert yard.kept()

    play_story(act, WORKLOAD)


# --- definitions, webhooks, packages


@given
def test_a_definition_of_another_project_is_refused_until_it_is_adopted(
    play_story: PlayStory, fresh: Callable[..., Any]
) -> None:
    async def act(yard: Yard) -> None:
        await fresh(yard.site, SETS.group_resource)
        definition = foreign(without="rollingUpdateProgress")
        del definition["metadata"]["managedFields"]
        await yard.site.client.create(DEFINITIONS, definition)
        await installing.install(yard.site.client, [SET_KIND], writes=False)
        manifest = {**SET, "metadata": {"name": "llm", "namespace": yard.site.namespace}}
        await yard.site.client.create(SETS, manifest)
        running = await yard.operate("--controllers", SET_CONTROLLERS, waits="kind refused")
        await yard.until(SETS, "llm", lambda wire: reasons(wire) == {"ForeignDefinition"})
        assert await yard.pods() == []
        running.close()
        await yard.operate("--controllers", SET_CONTROLLERS, "--adopt-crds")
        await yard.until(SETS, "llm", resting(KINDS["PodCliqueSet"]))

    play_story(act)


@given
@needs_kubectl
def test_webhooks_refuse_what_the_schema_cannot_and_convert_older_versions(play_story: PlayStory) -> None:
    cyclic = copy.deepcopy(SET)
    one, other = cyclic["spec"]["template"]["cliques"]
    cyclic["spec"]["template"]["cliqueStartupType"] = "CliqueStartupTypeExplicit"
    one["spec"]["startsAfter"], other["spec"]["startsAfter"] = [other["name"]], [one["name"]]
    documents = yaml.safe_load_all((EXAMPLES / "graphdeployments/v1alpha1.yaml").read_text())
    older = next(each for each in documents if each["kind"] == GRAPHS.kind)

    async def act(yard: Yard) -> None:
        await yard.operate("--webhook-port", str(free_port()))
        try:
            place = ("-n", yard.site.namespace)
            refused = await yard.kubectl("apply", *place, "-f", "-", input=json.dumps(cyclic))
            assert refused.returncode != 0
            assert "spec.template.cliques: cliques start after each other in a cycle" in refused.stderr, refused.stderr
            applied = await yard.kubectl("apply", *place, "-f", "-", input=json.dumps(older))
            assert applied.returncode == 0, applied.stderr
            name = older["metadata"]["name"]
            newer = await found(yard, GRAPHS, name)
            assert {each["name"] for each in newer["spec"]["components"]} == set(older["spec"]["services"])
            old = Resource(GRAPHS.group, "v1alpha1", GRAPHS.plural, GRAPHS.kind)
            assert (await found(yard, old, name))["spec"]["services"].keys() == older["spec"]["services"].keys()
        finally:
            for sort in ("mutating", "validating"):
                await yard.kubectl("delete", f"{sort}webhookconfiguration", registration.CONFIGURATION)
            await yard.kubectl("delete", "secret", "-n", "default", registration.SECRET)

    play_story(act)


@given
@needs_kubectl
@pytest.mark.parametrize("how", [(), ("--server-side",)], ids=["client-side", "server-side"])
def test_a_webhook_writes_defaults_that_apply_never_fights(play_story: PlayStory, how: tuple[str, ...]) -> None:
    gangs = copy.deepcopy(SET)
    gangs["spec"]["replicas"] = 0
    for clique in gangs["spec"]["template"]["cliques"]:
        clique["spec"].pop("minAvailable", None)
    replicas = [each["spec"]["replicas"] for each in gangs["spec"]["template"]["cliques"]]

    async def act(yard: Yard) -> None:
        await yard.operate("--controllers", SET_CONTROLLERS, "--webhook-port", str(free_port()))
        try:
            for image in ("1", "1", "2"):
                changed = copy.deepcopy(gangs)
                changed["spec"]["template"]["cliques"][0]["spec"]["podSpec"]["containers"][0]["image"] = f"x:{image}"
                changed["spec"]["template"]["cliques"][0]["spec"]["replicas"] += int(image) - 1
                command = ("apply", *how, "-n", yard.site.namespace, "-f", "-")
                applied = await yard.kubectl(*command, input=json.dumps(changed))
                assert applied.returncode == 0, applied.stderr
                stored = await found(yard, SETS, gangs["metadata"]["name"])
                cliques = stored["spec"]["template"]["cliques"]
                assert [each["spec"]["minAvailable"] for each in cliques] == replicas
                assert stored["metadata"]["generation"] == int(image), "the same manifest changes nothing"
        finally:
            for sort in ("mutating", "validating"):
                await yard.kubectl("delete", f"{sort}webhookconfiguration", registration.CONFIGURATION)
            await yard.kubectl("delete", "secret", "-n", "default", registration.SECRET)

    play_story(act)


@given
@needs_kubectl
@pytest.mark.parametrize("strict", [False, True], ids=["accepting", "strict"])
def test_a_webhook_that_is_killed_does_not_lock_the_cluster(play_story: PlayStory, strict: bool) -> None:
    workload = {**SMALL, "metadata": {"name": "locked"}}
    plain = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "locked"}}

    async def act(yard: Yard) -> None:
        own = f"{yard.site.namespace}-own"
        await yard.kubectl("create", "namespace", own)
        options = ["--webhook-port", str(free_port()), "--leader-elect", "--lease-namespace", own]
        running = await yard.operate("--controllers", "workload", *options, *(["--webhook-strict"] if strict else []))
        running.process.kill()

        async def created(namespace: str, manifest: Wire) -> bool:
            asked = await yard.kubectl("create", "-n", namespace, "-f", "-", input=json.dumps(manifest))
            assert asked.returncode == 0 or "failed calling webhook" in asked.stderr, asked.stderr
            await yard.kubectl("delete", "-n", namespace, manifest["kind"], "locked", "--ignore-not-found")
            return asked.returncode == 0

        try:
            for namespace in ("kube-system", own):
                assert await created(namespace, plain)
                assert await created(namespace, workload), "a cluster with a dead webhook can be repaired"
            assert await created(yard.site.namespace, plain)
            assert await created(yard.site.namespace, workload) is not strict
        finally:
            for sort in ("mutating", "validating"):
                await yard.kubectl("delete", f"{sort}webhookconfiguration", registration.CONFIGURATION)
            await yard.kubectl("delete", "namespace", own, "--wait=false")

    play_story(act)


@given
@needs_helm
def test_the_chart_is_accepted_upgraded_and_uninstalled(
    play_story: PlayStory, fresh: Callable[..., Any], tmp_path: Path
) -> None:
    chart = tmp_path / "chart"
    packaging.write(packaging.chart(), chart)

    async def act(yard: Yard) -> None:
        await fresh(yard.site)
        client = yard.site.client
        before = {each.key.name for each in (await client.list(DEFINITIONS)).objects}
        others = [each for each in elsewhere() if each["metadata"]["name"] not in before]
        for definition in others:
            await client.create(DEFINITIONS, definition)
        try:
            await installed(yard)
        finally:
            for definition in others:
                await client.delete(DEFINITIONS, Key("", definition["metadata"]["name"]))

    async def installed(yard: Yard) -> None:
        place = ("--kubeconfig", str(yard.site.kubeconfig), "-n", yard.site.namespace)
        values = tmp_path / "values.yaml"
        for verb, chosen in UPGRADES:
            values.write_text(yaml.safe_dump({"crds": {"keep": False}, **chosen}))
            command = (verb, "holdfast", str(chart), *place, "-f", str(values))
            answer = await asyncio.to_thread(helm, *command, home=tmp_path)
            assert answer.returncode == 0, answer.stderr
        deployment = await found(yard, DEPLOYMENTS, "holdfast-operator")
        assert deployment["spec"]["replicas"] == 2
        # The account of the installation may do what its operators do, and change its own webhooks only.
        account = f"system:serviceaccount:{yard.site.namespace}:holdfast-operator"
        for verb, resource, said in (
            ("patch", "workloads.cloudless.io/status", "yes"),
            ("create", "pods", "yes"),
            ("list", "nodes", "yes"),
            ("patch", "validatingwebhookconfigurations/other", "no"),
        ):
            own = "default" if said == "yes" else yard.site.namespace
            asked = await yard.kubectl("auth", "can-i", verb, resource, "--as", account, "-n", own)
            assert said in asked.stdout.split(), (verb, resource, asked)
        answer = await asyncio.to_thread(helm, "uninstall", "holdfast", *place, home=tmp_path)
        assert answer.returncode == 0, answer.stderr
        for resource in installed_resources():

            async def nothing_left(resource: Resource = resource) -> bool:
                names = {each.key.name for each in (await yard.site.client.list(resource)).objects}
                ours = OURS if resource is DEFINITIONS else {each for each in names if "holdfast-operator" in each}
                return not names & ours

            # A definition is removed in the background, after its objects.
            await yard.site.eventually(nothing_left, f"no {resource} are left")

    play_story(act)
