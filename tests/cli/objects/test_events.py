"""``holdfast events``: whose Events are shown, on a real server."""

from __future__ import annotations

import json
from typing import Any

from tests.cli.api_runs import Cli, deployment, pod

from holdfast.client.resources import EVENTS, PODS, REPLICA_SETS
from holdfast.meta.objects import owner_reference


def happened(cli: Cli, obj: dict[str, Any], reason: str, *, type: str = "Normal") -> None:
    about = {"apiVersion": obj["apiVersion"], "kind": obj["kind"], "name": obj["metadata"]["name"]}
    event = {
        "metadata": {"generateName": "e-", "namespace": cli.namespace},
        "involvedObject": {**about, "uid": obj["metadata"]["uid"], "namespace": cli.namespace},
        "reason": reason,
        "message": "It was so.",
        "type": type,
        "lastTimestamp": "2030-01-01T00:00:00Z",
    }
    cli.asked(lambda client: client.create(EVENTS, event))


def owning(cli: Cli) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
    """A Deployment, its ReplicaSet, and the pod of that."""
    cli.apply(deployment("web"))
    web = cli.object("deploy", "web")
    made = {"metadata": {"name": "web-1", "namespace": cli.namespace, "ownerReferences": [owner_reference(web)]}}
    made["spec"] = {name: web["spec"][name] for name in ("replicas", "selector", "template")}
    cli.asked(lambda client: client.create(REPLICA_SETS, made))
    replicas = cli.object("rs", "web-1")
    child = pod("web-1-a", namespace=cli.namespace, ownerReferences=[owner_reference(replicas)])
    cli.asked(lambda client: client.create(PODS, child))
    return web, replicas, cli.object("pod", "web-1-a")


def reasons(shown: str) -> set[str]:
    return {line.split()[2] for line in shown.splitlines()[1:]}


def test_an_object_shows_the_events_of_everything_that_it_owns_and_no_other(cli: Cli) -> None:
    web, replicas, child = owning(cli)
    cli.apply(pod("other"))
    happened(cli, web, "Scaled")
    happened(cli, replicas, "Created")
    happened(cli, child, "BackOff", type="Warning")
    happened(cli, cli.object("pod", "other"), "Odd")
    assert reasons(cli("events", "deployment/web")) == {"Scaled", "Created", "BackOff"}
    assert reasons(cli("events", "pod", "web-1-a")) == {"BackOff"}
    assert reasons(cli("events")) == {"Scaled", "Created", "BackOff", "Odd"}
    assert reasons(cli("events", "--types", "warning")) == {"BackOff"}
    assert [each["reason"] for each in json.loads(cli("events", "pod/other", "-o", "json"))["items"]] == ["Odd"]


def test_no_events_are_said_to_be_none(cli: Cli) -> None:
    cli.apply(pod("quiet"))
    result = cli.run("events", "pod/quiet")
    assert result.exit_code == 0
    assert result.stderr == "no Events of pod/quiet; the server keeps Events for a limited time\n"


def test_what_cannot_be_meant_is_refused(cli: Cli) -> None:
    assert "leave -A out" in cli.refused("events", "pod/x", "-A", code=2)
    assert "leave out --watch" in cli.refused("events", "--watch", "-o", "json", code=2)
    assert "name one object" in cli.refused("events", "pods", code=2)
    assert "NotFound" in cli.refused("events", "pod/missing")


def test_events_are_watched_also_of_objects_that_are_created_later(cli: Cli) -> None:
    web, replicas, _ = owning(cli)
    happened(cli, web, "Before")
    watching = cli.start("events", "deployment/web", "--watch")
    try:
        assert watching.stdout is not None
        watching.stdout.readline()
        assert watching.stdout.readline().split()[2] == "Before"
        later = pod("web-1-b", namespace=cli.namespace, ownerReferences=[owner_reference(replicas)])
        cli.asked(lambda client: client.create(PODS, later))
        cli.apply(pod("unrelated"))
        happened(cli, cli.object("pod", "unrelated"), "Other")
        happened(cli, cli.object("pod", "web-1-b"), "After")
        assert watching.stdout.readline().split()[2] == "After"
    finally:
        watching.terminate()
        watching.communicate()
