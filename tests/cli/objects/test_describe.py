"""``holdfast describe``: what is fetched for a description, on a real server."""

from __future__ import annotations

from typing import Any

from tests.cli.api_runs import WIDGETS, Cli, configmap, deployment, pod, widget

from holdfast.client.resources import EVENTS, NODES, PODS, REPLICA_SETS
from holdfast.meta.objects import Key, owner_reference


def section(text: str, title: str) -> list[str]:
    """The lines below a title."""
    lines = text.splitlines()
    start = lines.index(f"{title}:") + 1
    end = next((index for index in range(start, len(lines)) if not lines[index].startswith(" ")), len(lines))
    return [line.strip() for line in lines[start:end]]


def happened(cli: Cli, obj: dict[str, Any], reason: str) -> None:
    about = {name: obj[name] for name in ("apiVersion", "kind")} | {
        name: obj["metadata"][name] for name in ("name", "uid", "namespace") if name in obj["metadata"]
    }
    event = {
        "metadata": {"generateName": "e-", "namespace": cli.namespace},
        "involvedObject": {**about, "namespace": cli.namespace},
        "reason": reason,
        "message": "It was so.",
        "type": "Warning",
        "source": {"component": "tester"},
        "count": 3,
        "lastTimestamp": "2030-01-01T00:00:00Z",
    }
    cli.asked(lambda client: client.create(EVENTS, event))


def test_what_it_waits_for_stands_at_the_top_and_events_at_the_end(cli: Cli) -> None:
    cli.apply(pod("one"), pod("two"))
    happened(cli, cli.object("pod", "one"), "Odd")
    printed = cli("describe", "pod", "one")
    assert "Waits for:    a node: no scheduler has tried to place it yet\n" in printed
    assert section(printed, "Events")[1].split()[:2] == ["Warning", "Odd"]
    assert "(x3)" in section(printed, "Events")[1]
    assert section(cli("describe", "pod", "two"), "Events") == ["<none>"]
    assert "Events:" not in cli("describe", "pod", "one", "--show-events=false")


def test_several_objects_are_told_one_after_the_other(cli: Cli) -> None:
    cli.apply(configmap("a", labels={"app": "x"}), configmap("b", labels={"app": "x"}))
    printed = cli("describe", "cm", "-l", "app=x")
    assert printed.count("Kind:") == 2
    assert "\n\n\nName:         b\n" in printed


def test_what_belongs_to_an_object_is_shown_as_get_shows_it(cli: Cli) -> None:
    cli.apply(deployment("web"))
    web = cli.object("deploy", "web")
    made = {"metadata": {"name": "web-1", "namespace": cli.namespace, "ownerReferences": [owner_reference(web)]}}
    made["spec"] = {name: web["spec"][name] for name in ("replicas", "selector", "template")}
    cli.asked(lambda client: client.create(REPLICA_SETS, made))
    assert section(cli("describe", "deploy", "web"), "ReplicaSets")[1].split()[:2] == ["web-1", "2"]


def test_kinds_of_ones_own_show_what_belongs_to_them(cli: Cli) -> None:
    cli.apply(WIDGETS, widget("w"))
    owner = cli.object("widget", "w")
    mine = pod("mine", namespace=cli.namespace, ownerReferences=[owner_reference(owner)])
    cli.asked(lambda client: client.create(PODS, mine))
    cli.apply(pod("other"))
    assert [line.split()[0] for line in section(cli("describe", "wd", "w"), "Pods")] == ["NAME", "mine"]


def test_a_node_shows_its_pods_and_what_they_ask_for(cli: Cli) -> None:
    name = f"node-{cli.namespace}"
    node = {"metadata": {"name": name}, "status": {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "10"}}}
    on_it = pod("on-it", namespace=cli.namespace)
    on_it["spec"] |= {"nodeName": name}
    on_it["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "1", "memory": "512Mi"}}

    async def made(client: Any) -> None:
        await client.create(NODES, node)
        await client.patch(NODES, Key("", name), node, subresource="status")
        await client.create(PODS, on_it)

    cli.asked(made)
    printed = cli("describe", "node", name)
    assert "Waits for:    its kubelet to report that it is ready\n" in printed
    assert [line.split() for line in section(printed, "Requested")[1:]] == [
        ["cpu", "1", "4", "25%"],
        ["memory", "512Mi", "8Gi", "6%"],
        ["pods", "1", "10", "10%"],
    ]
    assert section(printed, "Pods")[1].split()[:2] == [cli.namespace, "on-it"]


def test_what_is_in_a_secret_is_never_shown(cli: Cli) -> None:
    secret = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {
            "name": "s",
            "annotations": {"kubectl.kubernetes.io/last-applied-configuration": '{"data": {"key": "aHVudGVyMg=="}}'},
        },
        "data": {"key": "aHVudGVyMg=="},
    }
    cli.apply(secret)
    printed = cli("describe", "secret", "s")
    assert section(printed, "Data") == ["key: 7 bytes"]
    assert "aHVudGVyMg" not in printed
    assert "hunter2" not in printed


def test_one_that_is_not_there_is_told_as_kubectl_tells_it(cli: Cli) -> None:
    assert cli.refused("describe", "pod", "none") == 'Error from server (NotFound): pods "none" not found\n'
    result = cli.run("describe", "pods")
    assert (result.exit_code, result.stderr) == (0, f"No resources found in {cli.namespace} namespace.\n")
