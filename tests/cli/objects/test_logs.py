"""``holdfast logs``: which containers are read, and how their lines are shown, on a real server."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from tests.cli.api_runs import Cli, deployment, pod, served

from holdfast.cli.objects.logs import MOST, Wanted
from holdfast.client.objects import Object
from holdfast.client.protocols import Client
from holdfast.client.resources import PODS, REPLICA_SETS
from holdfast.meta.exchange import Request
from holdfast.meta.objects import Key, owner_reference

_numbers = count(1)


def source(pod: Any, request: Request) -> AsyncIterator[bytes] | None:
    """A node whose containers write three lines and what they were asked for; followed, they go on until deleted."""
    statuses = (pod.get("status") or {}).get("containerStatuses")
    return _lines(pod["metadata"]["name"], request) if statuses else None


async def _lines(name: str, request: Request) -> AsyncIterator[bytes]:
    container = request.param("container") or "main"
    count = int(request.param("tailLines", "3"))
    stamps = [f"2030-01-01T00:00:0{number}.5Z " if request.flag("timestamps") else "" for number in range(3)]
    run = "before" if request.flag("previous") else "now"
    for number in list(range(3))[-count:] if count else ():
        yield f"{stamps[number]}{name} {container} {run} {number}\n".encode()
    if request.flag("follow"):
        await asyncio.sleep(3600)


@pytest.fixture(scope="module")
def kubeconfig(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    with served(tmp_path_factory.mktemp("served"), log_source=source) as path:
        yield path


@pytest.fixture
def cli(kubeconfig: Path, tmp_path: Path) -> Cli:
    cli = Cli(kubeconfig, tmp_path, f"logs-{next(_numbers)}")
    cli.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": cli.namespace}})
    return cli


def run_pod(cli: Cli, name: str, *, containers: tuple[str, ...] = ("main",), **metadata: Any) -> None:
    """A pod whose containers run."""
    made = pod(name, namespace=cli.namespace, **metadata)
    made["spec"]["containers"] = [{"name": each, "image": "x"} for each in containers]
    statuses = [
        {"name": each, "restartCount": 0, "ready": True, "image": "x", "imageID": "", "state": {"running": {}}}
        for each in containers
    ]
    status = {"status": {"phase": "Running", "containerStatuses": statuses}}

    async def create(client: Client) -> Object:
        await client.create(PODS, made)
        return await client.patch(PODS, Key(cli.namespace, name), status, subresource="status")

    cli.asked(create)


def replica_set(cli: Cli) -> dict[str, Any]:
    """A Deployment and its ReplicaSet; returns the latter."""
    cli.apply(deployment("web"))
    web = cli.object("deploy", "web")
    made = {"metadata": {"name": "web-1", "namespace": cli.namespace, "ownerReferences": [owner_reference(web)]}}
    made["spec"] = {name: web["spec"][name] for name in ("replicas", "selector", "template")}
    cli.asked(lambda client: client.create(REPLICA_SETS, made))
    found: dict[str, Any] = cli.object("rs", "web-1")
    return found


def test_one_pod_is_printed_as_it_was_written(cli: Cli) -> None:
    run_pod(cli, "one")
    assert cli("logs", "one") == "one main now 0\none main now 1\none main now 2\n"
    assert cli("logs", "pod/one", "--tail", "1", "--timestamps") == "2030-01-01T00:00:02.5Z one main now 2\n"
    assert cli("logs", "one", "--previous", "--tail=1") == "one main before 2\n"
    assert cli("logs", "one", "--tail=1", "--prefix") == "one │ one main now 2\n"


def test_the_first_container_is_shown_or_the_one_that_is_named(cli: Cli) -> None:
    run_pod(cli, "two", containers=("app", "proxy"))
    assert cli("logs", "two", "--tail=1") == "two app now 2\n"
    assert cli("logs", "two", "--tail=1", "-c", "proxy") == "two proxy now 2\n"
    shown = cli("logs", "two", "--tail=1", "--all-containers").splitlines()
    assert shown == ["two/app   │ two app now 2", "two/proxy │ two proxy now 2"]
    assert "write one of app, proxy" in cli.refused("logs", "two", "-c", "main", code=2)


def test_all_pods_of_an_object_are_shown_with_their_names(cli: Cli) -> None:
    owner = owner_reference(replica_set(cli))
    run_pod(cli, "web-1-a", ownerReferences=[owner])
    run_pod(cli, "web-1-bb", ownerReferences=[owner])
    run_pod(cli, "other", labels={"app": "other"})
    shown = cli("logs", "deployment/web", "--tail=1").splitlines()
    assert shown == ["web-1-a  │ web-1-a main now 2", "web-1-bb │ web-1-bb main now 2"]
    assert cli("logs", "-l", "app=other", "--tail=1") == "other main now 2\n"
    service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "svc"}}
    cli.apply({**service, "spec": {"selector": {"app": "other"}, "ports": [{"port": 80}]}})
    assert cli("logs", "svc/svc", "--tail=1") == "other main now 2\n"


def test_a_pod_that_has_not_started_is_a_note_beside_others_and_an_error_alone(cli: Cli) -> None:
    owner = owner_reference(replica_set(cli))
    run_pod(cli, "web-1-a", ownerReferences=[owner])
    cli.asked(lambda client: client.create(PODS, pod("web-1-b", namespace=cli.namespace, ownerReferences=[owner])))
    result = cli.run("logs", "deployment/web", "--tail=1")
    assert result.exit_code == 0
    assert result.stdout == "web-1-a │ web-1-a main now 2\n"
    assert result.stderr.startswith('note: container "main" in pod "web-1-b" is waiting to start')
    assert "waiting to start" in cli.refused("logs", "web-1-b")


def test_an_object_without_pods_says_where_to_look(cli: Cli) -> None:
    cli.apply(deployment("idle"))
    said = cli.refused("logs", "deployment/idle")
    assert said.startswith("error: deployment.apps/idle has no pods now")
    assert f"'holdfast describe deployment.apps/idle -n {cli.namespace}'" in said


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "name a pod or an object"),
        (["web", "-l", "app=web"], "name a pod or an object"),
        (["web", "-f", "-p"], "nothing to follow"),
        (["web", "-c", "x", "--all-containers"], "leave one of them out"),
        (["web", "--since", "1m", "--since-time", "2030-01-01T00:00:00Z"], "leave one of them out"),
        (["web", "--since", "often"], "often"),
        (["web", "--since-time", "noon"], "2030-01-31T12:00:00Z"),
    ],
)
def test_what_cannot_be_meant_is_refused(cli: Cli, words: list[str], said: str) -> None:
    assert said in cli.refused("logs", *words, code=2)


def test_few_lines_of_many_containers_are_asked_for_unless_the_user_says_otherwise() -> None:
    assert Wanted().query("main", several=True)["tailLines"] == ("10",)
    assert "tailLines" not in Wanted().query("main", several=False)
    assert "tailLines" not in Wanted(tail=-1).query("main", several=True)
    assert Wanted(tail=3).query("main", several=True)["tailLines"] == ("3",)


def test_a_connection_is_resumed_after_the_last_line_and_not_from_the_tail() -> None:
    query = Wanted(tail=3, follow=True).query("main", several=True, after="2030-01-01T00:00:00Z")
    assert query["sinceTime"] == ("2030-01-01T00:00:00Z",)
    assert "tailLines" not in query


def test_followed_pods_are_joined_by_those_that_start_later(cli: Cli) -> None:
    owner = owner_reference(replica_set(cli))
    run_pod(cli, "web-1-a", ownerReferences=[owner])
    following = cli.start("logs", "deployment/web", "--follow", "--tail=1")
    try:
        assert following.stdout is not None
        assert following.stdout.readline() == "web-1-a │ web-1-a main now 2\n"
        run_pod(cli, "other")
        run_pod(cli, "web-1-b", ownerReferences=[owner])
        assert following.stdout.readline() == "web-1-b │ web-1-b main now 2\n"
    finally:
        following.terminate()
        following.communicate()


def test_more_containers_than_can_be_followed_are_refused(cli: Cli) -> None:
    owner = owner_reference(replica_set(cli))
    names = tuple(f"c{number}" for number in range(MOST + 1))
    run_pod(cli, "web-1-a", containers=names, ownerReferences=[owner])
    said = cli.refused("logs", "deployment/web", "--follow", code=2)
    assert f"there are {MOST + 1} containers" in said
