"""The objects of a set: names, labels, owners, environment, hashes, what starts after what, and what is refused."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import yaml
from tests.operators.podcliqueset.gangsets import (
    CLIQUES,
    GANGS,
    GROUPS,
    SETS,
    Cluster,
    changed,
    clique,
    group,
    pcs,
    pods,
    scale,
    simulated,
    until_available,
    update,
)
from tests.operators.podcliqueset.worlds import layout_of, stored
from tests.places import ROOT

from holdfast.client.resources import (
    AUTOSCALERS,
    NODES,
    PODS,
    ROLE_BINDINGS,
    ROLES,
    SECRETS,
    SERVICE_ACCOUNTS,
    SERVICES,
)
from holdfast.meta import hashing
from holdfast.meta.errors import Invalid
from holdfast.operators.podcliqueset import hashes, labels, startup
from holdfast.operators.podcliqueset.templates import Layout
from holdfast.operators.podcliqueset.validate import problems

MANIFEST = pcs(
    "P",
    clique("solo", 2, labels={"team": "red"}, spec={"autoScalingConfig": {"maxReplicas": 5}}),
    clique("lead"),
    clique("work", 2),
    group("G", "lead", "work", replicas=3, minimum=2, scaleConfig={"maxReplicas": 6}),
    replicas=2,
)
MANIFEST["metadata"] = {"name": "p", "labels": {"app": "p", "grove.io/mine": "x"}}
for _group in MANIFEST["spec"]["template"]["podCliqueScalingGroups"]:
    _group["name"] = "g"


def layout(manifest: dict[str, Any]) -> Layout:
    return layout_of(stored(SETS, manifest))


def test_a_set_makes_its_objects_with_their_names_owners_and_labels() -> None:
    async def story(cluster: Cluster) -> None:
        await cluster.create(SETS, MANIFEST)
        await until_available(cluster, "p")

        async def names(resource: Any) -> list[str]:
            return sorted(
                each["metadata"]["name"] for each in await cluster.list(resource, labels.text(labels.of_set("p")))
            )

        assert await names(SERVICE_ACCOUNTS) == ["p"]
        assert await names(ROLES) == await names(ROLE_BINDINGS) == ["grove.io:pcs:p"]
        assert await names(SECRETS) == ["p-ic-sat"]
        assert await names(SERVICES) == ["p-0", "p-1"]
        assert await names(GROUPS) == ["p-0-g", "p-1-g"]
        members = [f"p-{i}-g-{j}-{name}" for i in (0, 1) for j in (0, 1, 2) for name in ("lead", "work")]
        assert await names(CLIQUES) == sorted(["p-0-solo", "p-1-solo", *members])
        assert await names(GANGS) == ["p-0", "p-0-g-0", "p-1", "p-1-g-0"]
        assert await names(AUTOSCALERS) == ["p-0-g", "p-0-solo", "p-1-g", "p-1-solo"]

        member = await cluster.get(CLIQUES, "p-1-g-2-work")
        owner = member["metadata"]["ownerReferences"][0]
        assert (owner["kind"], owner["name"], owner["controller"]) == ("PodCliqueScalingGroup", "p-1-g", True)
        marks = member["metadata"]["labels"]
        assert {name: marks[name] for name in marks if name.startswith("grove.io/") and "hash" not in name} == {
            "grove.io/podcliqueset-replica-index": "1",
            "grove.io/podcliquescalinggroup": "p-1-g",
            "grove.io/podcliquescalinggroup-replica-index": "2",
            "grove.io/podgang": "p-1-g-0",
            "grove.io/base-podgang": "p-1",
        }
        solo = await cluster.get(CLIQUES, "p-0-solo")
        assert solo["metadata"]["ownerReferences"][0]["kind"] == "PodCliqueSet"
        assert solo["metadata"]["labels"]["team"] == "red"
        assert solo["metadata"]["labels"]["app.kubernetes.io/component"] == "pcs-podclique"

        base = await cluster.get(GANGS, "p-0")
        assert base["metadata"]["labels"]["app"] == "p"
        assert "grove.io/mine" not in base["metadata"]["labels"]
        groups = {each["name"]: (each["minReplicas"], len(each["podReferences"])) for each in base["spec"]["podgroups"]}
        assert groups == {
            "p-0-solo": (2, 2),
            "p-0-g-0-lead": (1, 1),
            "p-0-g-0-work": (2, 2),
            "p-0-g-1-lead": (1, 1),
            "p-0-g-1-work": (2, 2),
        }
        service = await cluster.get(SERVICES, "p-1")
        assert (service["spec"]["clusterIP"], service["spec"]["publishNotReadyAddresses"]) == ("None", True)
        scaler = await cluster.get(AUTOSCALERS, "p-0-g")
        assert scaler["spec"]["scaleTargetRef"] == {
            "apiVersion": "grove.io/v1alpha1",
            "kind": "PodCliqueScalingGroup",
            "name": "p-0-g",
        }
        assert (scaler["spec"]["minReplicas"], scaler["spec"]["maxReplicas"]) == (3, 6)

        # What goes with a replica goes altogether, Services too.
        await scale(cluster, SETS, "p", 1)
        await cluster.advance(10)
        for resource in (SERVICES, GROUPS, CLIQUES, GANGS, AUTOSCALERS):
            assert not [name for name in await names(resource) if name.startswith("p-1")]
        assert len(await pods(cluster)) == 2 + 3 * 3

    simulated(story)


def test_pods_know_their_place() -> None:
    manifest = copy.deepcopy(MANIFEST)
    container = manifest["spec"]["template"]["cliques"][2]["spec"]["podSpec"]["containers"][0]
    container["env"] = [
        {"name": "GROVE_PCS_NAME", "value": "mine"},
        {"name": "RANK", "value": "$(GROVE_PCLQ_POD_INDEX)"},
    ]

    async def story(cluster: Cluster) -> None:
        await cluster.create(SETS, manifest)
        await until_available(cluster, "p")
        found = await pods(cluster, "grove.io/podclique=p-0-g-1-work")
        pod = next(each for each in found if each["metadata"]["labels"]["grove.io/podclique-pod-index"] == "1")
        assert pod["metadata"]["name"].startswith("p-0-g-1-work-")
        assert (pod["spec"]["hostname"], pod["spec"]["subdomain"]) == ("p-0-g-1-work-1", "p-0")
        env = pod["spec"]["containers"][0]["env"]
        plain = {each["name"]: each["value"] for each in env if "value" in each}
        assert plain == {
            "GROVE_PCS_NAME": "p",
            "GROVE_PCS_INDEX": "0",
            "GROVE_PCLQ_NAME": "p-0-g-1-work",
            "GROVE_HEADLESS_SERVICE": "p-0.default.svc.cluster.local",
            "GROVE_PCSG_TEMPLATE_NUM_PODS": "3",
            "RANK": "$(GROVE_PCLQ_POD_INDEX)",
        }
        from_labels = [each["name"] for each in env if "valueFrom" in each]
        assert from_labels == ["GROVE_PCLQ_POD_INDEX", "GROVE_PCSG_NAME", "GROVE_PCSG_INDEX"]
        assert "schedulingGates" not in pod["spec"]

    simulated(story)


def test_the_size_of_a_part_is_its_own_once_it_exists() -> None:
    async def story(cluster: Cluster) -> None:
        await cluster.create(SETS, MANIFEST)
        await until_available(cluster, "p")
        await scale(cluster, CLIQUES, "p-0-solo", 4)
        await scale(cluster, GROUPS, "p-0-g", 2)
        other = copy.deepcopy(MANIFEST)
        other["spec"]["template"]["cliques"][0]["spec"]["replicas"] = 3
        await cluster.patch(SETS, "p", {"spec": other["spec"]})
        await cluster.advance(10)
        assert (await cluster.get(CLIQUES, "p-0-solo"))["spec"]["replicas"] == 4
        assert (await cluster.get(GROUPS, "p-0-g"))["spec"]["replicas"] == 2
        assert "rollingUpdateProgress" not in (await cluster.get(SETS, "p"))["status"], "a size is no new template"
        assert [each["metadata"]["name"] for each in await cluster.list(GANGS)] == ["p-0", "p-1", "p-1-g-0"]

    simulated(story)


# --- hashes


def hash_of(manifest: dict[str, Any]) -> str:
    return layout(manifest).generation_hash


def _reordered(manifest: dict[str, Any]) -> dict[str, Any]:
    made = copy.deepcopy(manifest)
    made["spec"]["template"]["cliques"].reverse()
    for each in made["spec"]["template"]["cliques"]:
        spec = each["spec"]["podSpec"]
        each["spec"]["podSpec"] = dict(reversed(spec.items()))
        for field in ("tolerations", "volumes"):
            spec.get(field, []).reverse()
        each["spec"]["podSpec"] = {name: spec[name] for name in reversed(spec)}
    return made


RICH = changed(MANIFEST)
for _clique in RICH["spec"]["template"]["cliques"]:
    _clique["spec"]["podSpec"] |= {
        "tolerations": [{"key": "a", "operator": "Exists"}, {"key": "b", "operator": "Exists"}],
        "volumes": [{"name": "x", "emptyDir": {}}, {"name": "y", "emptyDir": {}}],
    }


def test_565_the_order_in_which_something_is_written_is_no_change() -> None:
    assert hash_of(_reordered(RICH)) == hash_of(RICH) != hash_of(MANIFEST)


@pytest.mark.parametrize(
    ("path", "value", "same"),
    [
        pytest.param(("spec", "template", "terminationDelay"), "1h", True, id="terminationDelay"),
        pytest.param(("spec", "replicas"), 9, True, id="replicas"),
        pytest.param(("spec", "template", "cliques", 0, "spec", "replicas"), 9, True, id="replicas of a clique"),
        pytest.param(
            ("spec", "template", "cliques", 0, "spec", "podSpec", "restartPolicy"), "Always", True, id="a default"
        ),
        pytest.param(
            ("spec", "template", "cliques", 0, "spec", "podSpec", "restartPolicy"), "Never", False, id="its opposite"
        ),
        pytest.param(
            ("spec", "template", "cliques", 0, "annotations"), {"a": "b"}, False, id="annotations of a clique"
        ),
        pytest.param(("spec", "template", "priorityClassName"), "high", False, id="the priority of the set"),
    ],
)
def test_what_is_a_new_template(path: tuple[Any, ...], value: Any, same: bool) -> None:
    other = copy.deepcopy(MANIFEST)
    place: Any = other
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = value
    assert (hash_of(other) == hash_of(MANIFEST)) == same


def test_709_a_hash_of_another_form_is_kept_while_it_holds() -> None:
    value = {"spec": {"containers": [{"name": "main"}]}}
    recorded = hashing.canonical_hash(value)
    assert hashes.settled(value, [recorded]) == recorded
    assert hashes.settled({"spec": {}}, [recorded]) == hashing.short_hash({"spec": {}})
    assert hashes.settled(value, ["v99-0123456789abcdef"]) == "v99-0123456789abcdef", "a newer release's is not touched"
    assert hashes.settled(value, ["no hash"]) == hashing.short_hash(value)


# --- what starts after what


def test_what_starts_after_what() -> None:
    order = {"cliqueStartupType": "CliqueStartupTypeExplicit"}
    manifest = pcs(
        "w", clique("a", 2), clique("b", after=["a"]), clique("c", 3, minimum=2, after=["b"]),
        clique("z", after=["c", "a"]), group("g", "b", "c", replicas=3, minimum=2), **order,
    )  # fmt: skip
    found = layout(manifest)

    def after(name: str, place: int | None = None) -> list[str]:
        return [str(each) for each in startup.starts_after(found, name, index=0, group_index=place)]

    assert after("a") == []
    assert after("b", 0) == ["w-0-a:2"]
    assert after("c", 1) == ["w-0-g-0-b:1", "w-0-g-1-b:1"]
    assert after("z") == ["w-0-g-0-c:2", "w-0-g-1-c:2", "w-0-a:2"]
    assert after("b", 2) == [], "a scaled replica waits for its own cliques only"
    assert after("c", 2) == ["w-0-g-2-b:1"]


# --- what is refused


def _in_a_circle() -> dict[str, Any]:
    order = {"cliqueStartupType": "CliqueStartupTypeExplicit"}
    return pcs("w", clique("a", after=["c"]), clique("b", after=["a"]), clique("c", after=["b"]), **order)


def test_a_circle_of_cliques_is_refused_and_said_so() -> None:
    assert startup.cycle(layout(_in_a_circle())) == ("a", "c", "b")

    async def story(cluster: Cluster) -> None:
        await cluster.create(SETS, _in_a_circle())
        await cluster.advance(5)
        status = (await cluster.get(SETS, "w"))["status"]
        blocked = {each["type"]: each for each in status["conditions"]}["Blocked"]
        assert (blocked["status"], blocked["reason"]) == ("True", "InvalidSpec")
        assert "in a cycle: a after c after b after a" in blocked["message"]
        assert status["lastErrors"][0]["code"] == "InvalidSpec"
        assert not await cluster.list(CLIQUES)

    simulated(story, nodes=1)


def test_a_set_of_absurdly_many_pods_is_refused_before_an_object_of_it_is_made() -> None:
    manifest = pcs("w", clique("a", replicas=1_000))
    manifest["spec"]["replicas"] = 10_000
    assert ["10,000 replicas of 1,000 pods" in str(each) for each in problems(layout(manifest))] == [True]


def test_names_of_variables_must_be_unique() -> None:
    manifest = pcs("w", clique("a"))
    container = manifest["spec"]["template"]["cliques"][0]["spec"]["podSpec"]["containers"][0]
    container["env"] = [{"name": "A", "value": "1"}, {"name": "A", "value": "2"}]
    assert ["A is set 2 times" in str(each) for each in problems(layout(manifest))] == [True]


def test_829_a_group_cannot_be_scaled_below_its_minimum() -> None:
    async def story(cluster: Cluster) -> None:
        await cluster.create(SETS, MANIFEST)
        await until_available(cluster, "p")
        with pytest.raises(Invalid, match="at least minAvailable"):
            await scale(cluster, GROUPS, "p-0-g", 1)
        with pytest.raises(Invalid, match="at least minAvailable"):
            await scale(cluster, CLIQUES, "p-0-solo", 1)

    simulated(story)


def test_810_the_longest_names_fit() -> None:
    name, role = "a" * 20, "b" * 25
    manifest = pcs(name, clique(role, 1), replicas=1)

    async def story(cluster: Cluster) -> None:
        await cluster.create(SETS, manifest)
        await until_available(cluster, name)
        (pod,) = await pods(cluster)
        assert pod["spec"]["hostname"] == f"{name}-0-{role}-0"
        with pytest.raises(Invalid, match="must not exceed 45 characters"):
            await cluster.create(SETS, pcs(name + "c", clique(role)))

    simulated(story, nodes=1)


# --- manifests of others

MANIFESTS = ROOT.parent / "shared" / "manifests" / "grove"


@pytest.mark.skipif(not MANIFESTS.is_dir(), reason="there are no manifests of others here")
@pytest.mark.parametrize("name", sorted(path.name for path in MANIFESTS.glob("*.yaml")))
def test_manifests_of_others_become_available(name: str) -> None:
    documents = [each for each in yaml.safe_load_all((MANIFESTS / name).read_text()) if each]

    async def story(cluster: Cluster) -> None:
        marks = {"metadata": {"labels": {"node_role.e2e.grove.nvidia.com": "agent", "type": "kwok"}}}
        for node in await cluster.list(NODES):
            await cluster.patch(NODES, node["metadata"]["name"], marks)
        for document in documents:
            await cluster.apply(SETS, document)
            if not document["spec"].get("replicas"):
                await scale(cluster, SETS, document["metadata"]["name"], 5)
            status = await until_available(cluster, document["metadata"]["name"])
            assert status["availableReplicas"] == status["replicas"] == status["updatedReplicas"] > 0

    simulated(story)


def test_a_pod_spec_with_an_impossible_amount_is_refused_before_anything_is_replaced() -> None:
    manifest = pcs("wl", clique("a", 2))

    async def story(cluster: Cluster) -> None:
        await cluster.create(SETS, manifest)
        await until_available(cluster)
        before = {pod["metadata"]["uid"] for pod in await cluster.list(PODS)}
        with pytest.raises(Invalid, match=r"podSpec\.containers"):
            await update(cluster, pcs("wl", clique("a", 2, memory="16 GiB")))
        await cluster.advance(60)
        assert {pod["metadata"]["uid"] for pod in await cluster.list(PODS)} == before

    simulated(story)


@pytest.mark.parametrize(
    ("pod_spec", "path"),
    [
        ({"containers": [{"name": "c"}], "initContainers": ["busybox"]}, "initContainers"),
        ({"containers": "nginx"}, "containers"),
        ({"containers": [{"name": "c", "env": ["A=1"]}]}, "containers[c].env"),
        ({"containers": [{"name": "c", "env": "A=1"}]}, "containers[c].env"),
    ],
)
def test_a_list_of_the_wrong_shape_in_a_pod_spec_is_a_problem_with_a_path(pod_spec: Any, path: str) -> None:
    found = problems(layout(pcs("wl", clique("a", spec={"podSpec": pod_spec}))))
    assert [each.path for each in found] == [f"spec.template.cliques[a].spec.podSpec.{path}"]
