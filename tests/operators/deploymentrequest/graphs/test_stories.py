"""Graphs on simulated nodes: created, scaled, updated, restarted, given other components, and deleted."""

from __future__ import annotations

from collections import Counter
from typing import Any

from tests.operators.deploymentrequest.graphs.stories import (
    CLIQUES,
    GRAPHS,
    GROUPS,
    SETS,
    Cluster,
    component,
    condition,
    disaggregated,
    graph,
    message,
    simulated,
    status,
    until_ready,
    update,
    with_image,
)
from tests.operators.podcliqueset.gangsets import Film, filmed, is_ready

from holdfast.client.resources import CONFIG_MAPS, EVENTS, NODES, PODS, SERVICES, SLICES
from holdfast.operators.deploymentrequest.graphs.resources import ADAPTERS
from holdfast.operators.deploymentrequest.models.observe import MODELS

COMPONENT = "nvidia.com/dynamo-component"


async def pods(cluster: Cluster, name: str = "") -> list[dict[str, Any]]:
    labels = f"{COMPONENT}={name}" if name else ""
    return [each for each in await cluster.list(PODS, labels) if "deletionTimestamp" not in each["metadata"]]


def lowest(film: Film, present: list[dict[str, Any]]) -> Counter[str]:
    """The fewest pods of each component that were ready at once."""
    state = {pod["metadata"]["name"]: (pod["metadata"]["labels"][COMPONENT], is_ready(pod)) for pod in present}
    least = Counter(kind for kind, ready in state.values() if ready)
    for event, pod in film.frames:
        up = event != "Deleted" and is_ready(pod) and "deletionTimestamp" not in pod["metadata"]
        state[pod["metadata"]["name"]] = (pod["metadata"]["labels"][COMPONENT], up)
        now = Counter(kind for kind, ready in state.values() if ready)
        least = Counter({kind: min(least[kind], now[kind]) for kind in least})
    return least


def test_a_graph_is_pending_until_every_component_is_ready_and_the_service_of_its_frontend_leads_to_its_pods() -> None:
    async def story(cluster: Cluster) -> None:
        await cluster.create(GRAPHS, disaggregated())
        async with filmed(cluster, GRAPHS) as film:
            now = await until_ready(cluster)
        states = list(dict.fromkeys(each.get("state") for each in film.statuses()))
        assert [each for each in states if each] == ["initializing", "pending", "successful"]
        assert condition(now) == ("True", "all_resources_are_ready")
        decode = now["components"]["decode"]
        assert decode["componentKind"] == "PodClique"
        assert decode["componentNames"] == ["chat-0-decode"]
        counts = [decode[each] for each in ("replicas", "updatedReplicas", "readyReplicas", "availableReplicas")]
        assert counts == [3, 3, 3, 3]
        assert "rollingUpdate" not in now
        slices = await cluster.list(SLICES, "kubernetes.io/service-name=chat-frontend")
        (pod,) = await pods(cluster, "Frontend")
        assert [each["addresses"] for one in slices for each in one["endpoints"]] == [[pod["status"]["podIP"]]]

    simulated(story)


def test_replicas_change_by_scale_without_a_new_template_and_no_other_pod_is_replaced() -> None:
    async def story(cluster: Cluster) -> None:
        await cluster.create(GRAPHS, disaggregated())
        await until_ready(cluster)
        before = {pod["metadata"]["name"] for pod in await pods(cluster)}
        generation = (await cluster.get(SETS, "chat"))["status"]["currentGenerationHash"]
        manifest = disaggregated()
        manifest["spec"]["components"][2]["replicas"] = 5
        await update(cluster, manifest)
        now = await until_ready(cluster)
        assert now["components"]["decode"]["readyReplicas"] == 5
        assert before < {pod["metadata"]["name"] for pod in await pods(cluster)}
        assert (await cluster.get(SETS, "chat"))["status"]["currentGenerationHash"] == generation
        assert "rollingUpdate" not in now
        manifest["spec"]["components"][1]["replicas"] = 0
        await update(cluster, manifest)
        now = await until_ready(cluster)
        assert now["components"]["prefill"]["replicas"] == 0
        assert not await pods(cluster, "prefill")

    simulated(story)


def test_a_size_that_is_scaled_by_hand_is_corrected_and_a_scaling_adapter_sets_its_component() -> None:
    async def story(cluster: Cluster) -> None:
        free = component("Free", replicas=2, scalingAdapter={}, minAvailable=2)
        await cluster.create(GRAPHS, graph(component("fixed", replicas=2), free))
        await until_ready(cluster)
        adapter = await cluster.get(ADAPTERS, "chat-free")
        assert adapter["spec"] == {"replicas": 2, "dgdRef": {"name": "chat", "componentName": "Free"}}
        assert condition(adapter["status"]) == ("True", "Scaled")
        await cluster.patch(CLIQUES, "chat-0-fixed", {"spec": {"replicas": 3}}, subresource="scale")
        await cluster.patch(ADAPTERS, "chat-free", {"spec": {"replicas": 3}}, subresource="scale")
        await cluster.advance(10)
        now = await until_ready(cluster)
        assert now["components"]["fixed"]["readyReplicas"] == 2
        assert now["components"]["Free"]["readyReplicas"] == 3
        scale = (await cluster.get(ADAPTERS, "chat-free"))["status"]
        assert scale["replicas"] == 3
        assert len(await cluster.list(PODS, scale["selector"])) == 3
        await cluster.patch(ADAPTERS, "chat-free", {"spec": {"replicas": 1}}, subresource="scale")
        await cluster.advance(10)
        assert (await until_ready(cluster))["components"]["Free"]["readyReplicas"] == 2, "minAvailable is kept"
        await update(cluster, graph(component("fixed", replicas=2), component("Free", replicas=2, minAvailable=2)))
        await until_ready(cluster)
        assert not await cluster.list(ADAPTERS)

    simulated(story)


def test_a_changed_image_is_rolled_out_above_the_floor_of_each_component() -> None:
    async def story(cluster: Cluster) -> None:
        await cluster.create(GRAPHS, disaggregated())
        await until_ready(cluster)
        present = await pods(cluster)
        async with filmed(cluster, GRAPHS) as statuses, filmed(cluster, PODS) as film:
            await update(cluster, with_image(disaggregated(), "engine:2"))
            now = await until_ready(cluster)
        least = lowest(film, present)
        assert least["Frontend"] >= 1
        assert least["prefill"] >= 2
        assert least["decode"] >= 2
        states = [each["state"] for each in statuses.statuses() if each.get("observedGeneration") == 2]
        assert states.index("successful") == states.count("pending"), "it was successful before the end of the update"
        phases = [(each.get("rollingUpdate") or {}).get("phase") for each in statuses.statuses()]
        assert list(dict.fromkeys(phases))[-2:] == ["InProgress", "Completed"]
        assert sorted(now["rollingUpdate"]["updatedComponents"]) == ["Frontend", "decode", "prefill"]
        assert now["rollingUpdate"]["startTime"] <= now["rollingUpdate"]["endTime"]
        assert {pod["spec"]["containers"][0]["image"] for pod in await pods(cluster)} == {"engine:2"}
        reasons = {condition(each) for each in statuses.statuses() if each.get("state") == "pending"}
        assert ("False", "rolling_update_in_progress") in reasons
        assert all(condition(each, "Available") == ("True", "Serving") for each in statuses.statuses())
        told = [each["reason"] for each in await cluster.list(EVENTS) if each["involvedObject"]["name"] == "chat"]
        assert {"RollingUpdateStarted", "RollingUpdateCompleted"} <= set(told)

    simulated(story)


def test_a_component_on_several_nodes_is_scaled_and_updated_replica_by_replica() -> None:
    async def story(cluster: Cluster) -> None:
        manifest = graph(
            component("Frontend", "frontend"), component("decode", "decode", 1, gpus=1, multinode={"nodeCount": 2})
        )
        await cluster.create(GRAPHS, manifest)
        now = await until_ready(cluster)
        assert now["components"]["decode"]["componentKind"] == "PodCliqueScalingGroup"
        assert now["components"]["decode"]["availableReplicas"] == 1
        assert "readyReplicas" not in now["components"]["decode"]
        assert len(await pods(cluster, "decode")) == 2
        manifest["spec"]["components"][1]["replicas"] = 2
        await update(cluster, manifest)
        await until_ready(cluster)
        assert (await cluster.get(GROUPS, "chat-0-decode"))["spec"]["replicas"] == 2
        await update(cluster, with_image(manifest, "engine:2", "decode"))
        await until_ready(cluster)
        assert {pod["spec"]["containers"][0]["image"] for pod in await pods(cluster, "decode")} == {"engine:2"}

    simulated(story)


def test_a_graph_that_does_not_fit_says_that_capacity_is_missing_and_where() -> None:
    async def story(cluster: Cluster) -> None:
        await cluster.create(
            GRAPHS, graph(component("decode", "decode", 2, gpus=8), component("prefill", "prefill", 1, gpus=8))
        )
        await cluster.advance(30)
        now = await status(cluster)
        assert now["state"] == "pending"
        assert condition(now) == ("False", "insufficient_capacity")
        assert "nvidia.com/gpu" in message(now)

    simulated(story, nodes=2)


def test_pods_that_do_not_become_ready_are_told_apart_from_missing_capacity() -> None:
    async def story(cluster: Cluster) -> None:
        broken = component("decode", "decode", 1)
        broken["podTemplate"]["metadata"]["annotations"] = {"sim.holdfast.dev/never-ready": "true"}
        await cluster.create(GRAPHS, graph(broken, component("prefill", "prefill", 1)))
        await cluster.advance(60)
        now = await status(cluster)
        assert condition(now) == ("False", "pods_not_ready")
        assert message(now).startswith("decode: 0 of 1 replica ready")

    simulated(story)


def test_pods_that_cannot_be_created_are_not_a_lack_of_capacity() -> None:
    async def story(cluster: Cluster) -> None:
        mounts = {"volumeMounts": [{"name": "absent", "mountPath": "/data"}]}
        await cluster.create(GRAPHS, graph(component("decode", "decode", 1, main=mounts)))
        await cluster.advance(10)
        now = await status(cluster)
        assert condition(now) == ("False", "pods_not_ready")
        assert "volumeMounts[0].name" in message(now)

    simulated(story)


def restarted(pods: list[dict[str, Any]]) -> set[str | None]:
    return {pod["metadata"].get("annotations", {}).get("nvidia.com/restartAt") for pod in pods}


def test_a_restart_goes_from_component_to_component_in_the_order_asked_for() -> None:
    async def story(cluster: Cluster) -> None:
        await cluster.create(GRAPHS, graph(component("prefill", "prefill"), component("decode", "decode")))
        await until_ready(cluster)
        strategy = {"type": "Sequential", "order": ["decode"]}
        async with filmed(cluster, GRAPHS) as film:
            await cluster.patch(GRAPHS, "chat", {"spec": {"restart": {"id": "one", "strategy": strategy}}})
            now = await until_ready(cluster)
        turns = [each.get("restart", {}).get("inProgress") for each in film.statuses()]
        assert [turn for turn in dict.fromkeys(map(str, turns)) if turn != "None"] == [
            "['decode']",
            "['prefill']",
        ]
        assert now["restart"] == {"observedID": "one", "phase": "Completed"}
        assert restarted(await pods(cluster)) == {"one"}
        kept = {pod["metadata"]["name"] for pod in await pods(cluster)}
        await cluster.patch(GRAPHS, "chat", {"spec": {"restart": None}})
        await cluster.advance(30)
        assert {pod["metadata"]["name"] for pod in await pods(cluster)} == kept

    simulated(story)


def test_a_parallel_restart_takes_all_components_at_once() -> None:
    async def story(cluster: Cluster) -> None:
        await cluster.create(GRAPHS, graph(component("prefill", "prefill"), component("decode", "decode")))
        await until_ready(cluster)
        await cluster.patch(GRAPHS, "chat", {"spec": {"restart": {"id": "two", "strategy": {"type": "Parallel"}}}})
        await cluster.advance(0.1)
        now = await status(cluster)
        assert now["restart"]["phase"] == "Restarting"
        assert sorted(now["restart"]["inProgress"]) == ["decode", "prefill"]
        assert (await until_ready(cluster))["restart"]["phase"] == "Completed"
        assert restarted(await pods(cluster)) == {"two"}

    simulated(story)


def test_other_components_come_in_a_second_set_and_the_first_is_deleted_when_that_is_ready() -> None:
    async def story(cluster: Cluster) -> None:
        await cluster.create(GRAPHS, graph(component("Frontend", "frontend"), component("worker", "worker", 2)))
        await until_ready(cluster)
        present = await pods(cluster)
        async with filmed(cluster, PODS) as film:
            await update(
                cluster,
                graph(
                    component("Frontend", "frontend"), component("prefill", "prefill"), component("decode", "decode")
                ),
            )
            await cluster.settle()
            now = await status(cluster)
            assert now["rollingUpdate"]["phase"] == "InProgress"
            assert "replaces chat, which is deleted once it is ready" in message(now)
            now = await until_ready(cluster)
        assert lowest(film, present)["Frontend"] >= 1
        assert now["rollingUpdate"]["phase"] == "Completed"
        (left,) = await cluster.list(SETS)
        assert left["metadata"]["name"].startswith("chat-")
        await cluster.advance(60)
        assert {pod["metadata"]["labels"][COMPONENT] for pod in await pods(cluster)} == {
            "Frontend",
            "prefill",
            "decode",
        }
        names = {each["metadata"]["name"] for each in await cluster.list(SERVICES)}
        assert {"chat-frontend", "chat-prefill", "chat-decode"} <= names
        assert "chat-worker" not in names

    simulated(story)


def test_a_drain_keeps_the_floor_of_every_component() -> None:
    async def story(cluster: Cluster) -> None:
        await cluster.create(GRAPHS, disaggregated())
        await until_ready(cluster)
        present = await pods(cluster)
        victim = next(pod["spec"]["nodeName"] for pod in await pods(cluster, "decode"))
        async with filmed(cluster, PODS) as film:
            await cluster.patch(NODES, victim, {"spec": {"unschedulable": True}})
            await cluster.advance(60)
            now = await until_ready(cluster)
        least = lowest(film, present)
        assert least["Frontend"] >= 1
        assert least["decode"] >= 2
        assert victim not in {pod["spec"]["nodeName"] for pod in await pods(cluster)}
        assert now["state"] == "successful"

    simulated(story)


def test_nothing_is_left_of_a_graph_that_is_deleted() -> None:
    async def story(cluster: Cluster) -> None:
        process = component("Frontend", "frontend", spec={"runtimeClassName": "process"})
        await cluster.create(GRAPHS, graph(process, component("decode", "decode", 2)))
        await cluster.advance(20)
        assert [each["metadata"]["name"] for each in await cluster.list(CONFIG_MAPS)] == ["chat-workers"]
        await cluster.delete(GRAPHS, "chat")
        await cluster.advance(120)
        for resource in (SETS, CLIQUES, GROUPS, PODS, CONFIG_MAPS):
            assert not await cluster.list(resource), resource.plural
        assert not [each for each in await cluster.list(SERVICES) if each["metadata"]["name"].startswith("chat")]

    simulated(story)


def test_a_set_of_the_same_name_that_is_not_the_graphs_is_left_alone_and_reported() -> None:
    async def story(cluster: Cluster) -> None:
        pod = {"containers": [{"name": "main", "image": "other:1"}]}
        clique = {"name": "a", "spec": {"roleName": "a", "podSpec": pod}}
        await cluster.create(SETS, {"metadata": {"name": "chat"}, "spec": {"template": {"cliques": [clique]}}})
        await cluster.create(GRAPHS, disaggregated())
        await cluster.advance(10)
        now = await status(cluster)
        assert now["state"] == "failed"
        assert condition(now) == ("False", "failed_to_reconcile_the_resources")
        assert "no controller owns it" in message(now)
        await cluster.delete(SETS, "chat")
        assert (await until_ready(cluster))["state"] == "successful"

    simulated(story)


def test_a_spec_that_cannot_be_carried_out_is_failed_until_it_is_corrected() -> None:
    async def story(cluster: Cluster) -> None:
        await cluster.create(
            GRAPHS, graph({"name": "decode", "type": "decode"}, topologyConstraint={"packDomain": "rack"})
        )
        await cluster.advance(5)
        now = await status(cluster)
        assert now["state"] == "failed"
        assert condition(now) == ("False", "InvalidSpec")
        await update(cluster, graph(component("decode", "decode")))
        now = await until_ready(cluster)
        assert now["state"] == "successful"
        assert condition(now, "TopologyLevelsAvailable") == ("Unknown", "TopologyConditionPending")

    simulated(story)


def test_a_model_lists_the_pods_that_serve_it() -> None:
    async def story(cluster: Cluster) -> None:
        spec = {"modelName": "org/adapter", "baseModelName": "Qwen/Qwen3-32B", "modelType": "lora"}
        await cluster.create(MODELS, {"metadata": {"name": "adapter"}, "spec": spec})
        await cluster.settle()
        now = (await cluster.get(MODELS, "adapter"))["status"]
        assert condition(now, "ServicesFound") == ("False", "NoServicesFound")
        decode = component("decode", "decode", 2, modelRef={"name": "Qwen/Qwen3-32B"})
        await cluster.create(GRAPHS, graph(component("Frontend", "frontend"), decode))
        await until_ready(cluster)
        await cluster.advance(2)
        now = (await cluster.get(MODELS, "adapter"))["status"]
        assert condition(now, "ServicesFound") == ("True", "ServicesFound")
        assert condition(now, "EndpointsReady") == ("True", "AllEndpointsReady")
        assert (now["readyEndpoints"], now["totalEndpoints"]) == (2, 2)
        addresses = {f"http://{pod['status']['podIP']}:9090" for pod in await pods(cluster, "decode")}
        assert {each["address"] for each in now["endpoints"]} == addresses

    simulated(story)
