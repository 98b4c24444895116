"""``holdfast up`` as a process: a cluster that works, stops, goes on after a kill, and leaves nothing running."""

from __future__ import annotations

import asyncio
import os
import re
import select
import signal
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from tests.clusters import HOLDFAST, serving

from holdfast.cli import main
from holdfast.cli.errors import ExitCode
from holdfast.client import waiting
from holdfast.client.api import ApiClient
from holdfast.client.kubeconfig import connect
from holdfast.client.objects import Object
from holdfast.client.resources import DEFINITIONS, DEPLOYMENTS, EVENTS, NAMESPACES, NODES, PODS, Resource
from holdfast.cluster.process.running.containers import hiding
from holdfast.kinds.cloudless import KINDS
from holdfast.meta.exchange import Request
from holdfast.meta.objects import Key
from holdfast.operators.operator import load

WORKLOADS = Resource.of(KINDS[0])
NAMES = ", ".join(each.name for each in load())
PATIENCE = 60.0

up = partial(serving, "up")
"""A cluster that is ready, and its kubeconfig."""


def asked(kubeconfig: Path, story: Callable[[ApiClient], Awaitable[Any]]) -> Any:
    async def asked_server() -> Any:
        client = connect(kubeconfig).client
        try:
            return await story(client)
        finally:
            await client.close()

    return asyncio.run(asked_server())


def workload(image: str = "shop:1", replicas: int = 3) -> dict[str, Any]:
    return {
        "apiVersion": "cloudless.io/v1",
        "kind": "Workload",
        "metadata": {"name": "shop", "namespace": "default"},
        "spec": {"image": image, "replicas": replicas},
    }


def completed(obj: Object | None) -> bool:
    if obj is None:
        return False
    status = obj.wire().get("status", {})
    return bool(status.get("phase") == "Completed" and status["observedGeneration"] == obj.meta.generation)


SHOP = Key("default", "shop")


DEPLOYMENT = {
    "metadata": {"name": "web", "namespace": "default"},
    "spec": {
        "replicas": 1,
        "selector": {"matchLabels": {"app": "web"}},
        "template": {
            "metadata": {"labels": {"app": "web"}},
            "spec": {"containers": [{"name": "main", "image": "web:1"}]},
        },
    },
}


def available(obj: Object | None) -> bool:
    return obj is not None and obj.wire().get("status", {}).get("availableReplicas") == 1


@pytest.mark.parametrize(("operators", "groups"), [("none", set()), ("workload", {"cloudless.io"})])
def test_a_cluster_runs_the_operators_that_are_named(operators: str, groups: set[str]) -> None:
    async def story(client: ApiClient) -> set[str]:
        await client.create(DEPLOYMENTS, DEPLOYMENT)
        await waiting.until(client, DEPLOYMENTS, Key("default", "web"), available, timeout=PATIENCE)
        if groups:
            await client.create(WORKLOADS, workload())
            await waiting.until(client, WORKLOADS, SHOP, completed, timeout=PATIENCE)
        defined = {each.wire()["spec"]["group"] for each in (await client.list(DEFINITIONS)).objects}
        return defined - {"scheduler.grove.io"}  # the scheduler of the cluster reads PodGangs

    with up("--ephemeral", "--nodes", "1", "--operators", operators) as (process, kubeconfig):
        assert asked(kubeconfig, story) == groups
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE) == ExitCode.OK
        assert process.stderr is not None
        assert process.stderr.read() == ""


def test_events_live_as_long_as_the_option_says() -> None:
    about = {"kind": "Pod", "namespace": "default", "name": "p"}
    event = {"metadata": {"name": "e", "namespace": "default"}, "involvedObject": about}

    async def story(client: ApiClient) -> None:
        await client.create(EVENTS, event)
        await waiting.until(client, EVENTS, Key("default", "e"), lambda each: each is None, timeout=PATIENCE)

    with up("--ephemeral", "--nodes", "0", "--operators", "none", "--event-seconds", "1") as (_, kubeconfig):
        asked(kubeconfig, story)


@pytest.mark.parametrize(
    ("names", "complaint"),
    [
        ("tenants", "error: --operators: there is no operator 'tenants'\nhint: did you mean tenant?\n"),
        ("none,tenant", "error: --operators: none stands alone\n"),
        (
            ",",
            f"error: --operators: it names no operator\nhint: write none, or names of {NAMES}\n",
        ),
    ],
)
def test_names_of_no_operators_are_refused(names: str, complaint: str) -> None:
    ended = subprocess.run([*HOLDFAST, "up", "--ephemeral", "--operators", names], capture_output=True, text=True)
    assert (ended.returncode, ended.stderr) == (ExitCode.BAD_INPUT, complaint)


def test_a_pod_that_is_a_process_cannot_read_the_files_of_its_cluster(tmp_path: Path) -> None:
    if not hiding(tmp_path).means:
        pytest.skip("this machine cannot hide directories")
    state, elsewhere = tmp_path / "state", tmp_path / "kubeconfig"
    with up("--data-dir", str(state), "--nodes", "1", "--kubeconfig", str(elsewhere)) as (_, kubeconfig):
        command = ["sh", "-c", f"ls {state}; grep -r token {state} {elsewhere}; cat {state}/admin.token"]
        container = {"name": "main", "image": "none", "command": command}
        spec = {"runtimeClassName": "process", "restartPolicy": "Never", "containers": [container]}

        async def story(client: ApiClient) -> str:
            await client.create(PODS, {"metadata": {"name": "spy", "namespace": "default"}, "spec": spec})
            await waiting.until(
                client,
                PODS,
                Key("default", "spy"),
                lambda pod: pod is not None and pod.wire().get("status", {}).get("phase") == "Failed",
                timeout=PATIENCE,
            )
            answer = await client.raw(Request("GET", "/api/v1/namespaces/default/pods/spy/log"))
            return answer.body.decode()

        log = asked(kubeconfig, story)
        assert log.splitlines()[0] == "node"
        assert (state / "admin.token").read_text().strip() not in log
        assert "token" not in log.replace(f"cat: {state}/admin.token: No such file or directory", "")


def test_a_cluster_runs_what_it_is_given_and_goes_on_after_a_stop_and_after_a_kill(tmp_path: Path) -> None:
    state = str(tmp_path / "state")

    async def roll_out(client: ApiClient) -> set[str]:
        await client.apply(WORKLOADS, workload())
        await waiting.until(client, WORKLOADS, SHOP, completed, timeout=PATIENCE)
        return {pod.uid for pod in (await client.list(PODS)).objects}

    async def look(client: ApiClient) -> set[str]:
        await waiting.until(client, WORKLOADS, SHOP, completed, timeout=PATIENCE)
        return {pod.uid for pod in (await client.list(PODS)).objects}

    async def change(client: ApiClient) -> list[str]:
        await client.patch(WORKLOADS, SHOP, {"spec": {"image": "shop:2"}})
        await waiting.until(client, WORKLOADS, SHOP, completed, timeout=PATIENCE)
        pods = [pod.wire() for pod in (await client.list(PODS)).objects if not pod.deleting]
        return sorted({pod["spec"]["containers"][0]["image"] for pod in pods})

    with up("--data-dir", state, "--nodes", "2") as (process, kubeconfig):
        before = asked(kubeconfig, roll_out)
        assert len(before) == 3
        second = subprocess.run([*HOLDFAST, "up", "--data-dir", state], capture_output=True, text=True)
        assert second.returncode == ExitCode.BLOCKED
        assert f"hint: 'holdfast down --data-dir {state}' stops the cluster that runs there\n" in second.stderr
        down = subprocess.run([*HOLDFAST, "down", "--data-dir", state], capture_output=True, text=True)
        assert (down.returncode, down.stderr) == (ExitCode.OK, "")
        assert process.wait(10) == ExitCode.OK
        assert process.stderr is not None
        assert process.stderr.read() == ""
    with up("--data-dir", state, "--nodes", "2") as (process, kubeconfig):
        assert asked(kubeconfig, look) == before
        process.kill()
        process.wait()
    with up("--data-dir", state, "--nodes", "2") as (_, kubeconfig):
        assert asked(kubeconfig, look) == before
        assert asked(kubeconfig, change) == ["shop:2"]


NEVER_SYNCED = """
import asyncio, sys
from holdfast.cli.main import main
from holdfast.runtime.caching.caches import Caches

async def synced(self, *resources):
    print("waiting", flush=True)
    await asyncio.Event().wait()

Caches.synced = synced
sys.argv = ["holdfast", "up", "--ephemeral", "--port", "0"]
main()
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_a_cluster_that_waits_for_its_first_sync(number: signal.Signals) -> None:
    process = subprocess.Popen([sys.executable, "-c", NEVER_SYNCED], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "waiting\n"
        process.send_signal(number)
        assert process.wait(PATIENCE) == 0
        assert "ready" not in process.stdout.read()
    finally:
        process.kill()
        process.communicate()


def test_without_nodes_nothing_moves_a_pod() -> None:
    async def story(client: ApiClient) -> tuple[int, list[str]]:
        pods = {"app": "web"}
        spec = {
            "replicas": 1,
            "selector": {"matchLabels": pods},
            "template": {"metadata": {"labels": pods}, "spec": {"containers": [{"name": "c", "image": "i"}]}},
        }
        manifest = {"metadata": {"name": "web", "namespace": "default"}, "spec": spec}
        await client.create(DEPLOYMENTS, manifest)

        def has_replica(obj: Object | None) -> bool:
            return obj is not None and obj.wire().get("status", {}).get("replicas") == 1

        await waiting.until(client, DEPLOYMENTS, Key("default", "web"), has_replica, timeout=PATIENCE)
        (pod,) = (await client.list(PODS)).objects
        return len((await client.list(NODES)).objects), [pod.wire()["status"]["phase"]]

    with up("--ephemeral", "--nodes", "0") as (process, kubeconfig):
        assert asked(kubeconfig, story) == (0, ["Pending"])
        process.send_signal(signal.SIGINT)
        assert process.wait(10) == ExitCode.OK
    assert not kubeconfig.parent.exists()


@pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="only Linux can tell of the end of a stranger's process")
def test_a_process_pod_runs_is_logged_and_does_not_outlive_a_cluster_that_is_killed(tmp_path: Path) -> None:
    script = f"echo $$ > {tmp_path}/number; echo hello; exec sleep 600"
    # In a command two dollars stand for one.
    container = {"name": "c", "image": "none", "command": ["sh", "-c", script.replace("$$", "$$$$")]}
    pod = {
        "metadata": {"name": "real", "namespace": "default"},
        "spec": {"runtimeClassName": "process", "containers": [container]},
    }

    async def story(client: ApiClient) -> bytes:
        await client.create(PODS, pod)

        def ready(obj: Object | None) -> bool:
            conditions = {} if obj is None else obj.wire().get("status", {}).get("conditions") or ()
            return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)

        await waiting.until(client, PODS, Key("default", "real"), ready, timeout=PATIENCE)
        answer = await client.raw(Request("GET", "/api/v1/namespaces/default/pods/real/log"))
        assert answer.stream is not None or answer.body
        return answer.body if answer.stream is None else b"".join([chunk async for chunk in answer.stream])

    with up("--ephemeral", "--nodes", "1") as (process, kubeconfig):
        assert b"hello" in asked(kubeconfig, story)
        # A descriptor of the process tells when it ends, though it is not ours to wait for.
        container_process = os.pidfd_open(int((tmp_path / "number").read_text()))
        process.kill()
        process.wait()
        assert select.select([container_process], [], [], PATIENCE)[0]
        os.close(container_process)


def test_a_namespace_that_is_deleted_goes_with_all_that_is_in_it() -> None:
    async def story(client: ApiClient) -> bool:
        await client.create(NAMESPACES, {"metadata": {"name": "shop"}})
        await client.apply(WORKLOADS, workload() | {"metadata": {"name": "shop", "namespace": "shop"}})
        await waiting.until(client, WORKLOADS, Key("shop", "shop"), completed, timeout=PATIENCE)
        await client.delete(NAMESPACES, Key("", "shop"))
        gone = await waiting.until(client, NAMESPACES, Key("", "shop"), lambda obj: obj is None, timeout=PATIENCE)
        return gone is None and not (await client.list(PODS)).objects

    with up("--ephemeral") as (_, kubeconfig):
        assert asked(kubeconfig, story)


def test_health_and_metrics_are_served_where_they_are_asked_for() -> None:
    with up("--ephemeral", "--health-port", "0") as (process, _):
        assert process.stdout is not None
        found = re.fullmatch(r"health: (\S+)/readyz  metrics: \S+/metrics\n", process.stdout.readline())
        assert found
        with urllib.request.urlopen(f"{found[1]}/readyz?verbose") as answer:
            assert b"[+]stores ok" in answer.read()
        with urllib.request.urlopen(f"{found[1]}/metrics") as answer:
            assert b'holdfast_reconcile_total{controller="deployment",result="done"}' in answer.read()
        port = found[1].rpartition(":")[2]
        ended = subprocess.run(
            [*HOLDFAST, "up", "--ephemeral", "--nodes", "0", "--health-port", port], capture_output=True, text=True
        )
        assert ended.returncode == ExitCode.BLOCKED
        assert f"port {port}: Address already in use" in ended.stderr


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--ephemeral", "--data-dir", "x"], "--ephemeral keeps nothing"),
        (["--bind", "0.0.0.0"], "--allow-non-loopback"),
        (["--nodes", "-1"], "--nodes"),
    ],
)
def test_wrong_options_are_one_message(options: list[str], said: str) -> None:
    ended = subprocess.run([*HOLDFAST, "up", *options], capture_output=True, text=True)
    assert ended.returncode == ExitCode.BAD_INPUT
    assert said in ended.stderr
    assert "Traceback" not in ended.stderr


def test_down_where_nothing_runs_says_so(tmp_path: Path) -> None:
    ended = subprocess.run([*HOLDFAST, "down", "--data-dir", str(tmp_path)], capture_output=True, text=True)
    assert (ended.returncode, ended.stdout) == (ExitCode.OK, f"nothing runs in {tmp_path}\n")


def test_a_cluster_has_the_same_port_after_a_restart_and_a_context_while_it_runs(tmp_path: Path) -> None:
    config = tmp_path / "kube" / "config"
    options = ("--data-dir", str(tmp_path / "state"), "--nodes", "0", "--operators", "none")

    def started(*more: str) -> tuple[str, bool]:
        """The port of a cluster, and whether kubectl has a context for it."""
        environment = {**os.environ, "KUBECONFIG": str(config)}
        process = subprocess.Popen(
            [*HOLDFAST, "up", *options, *more],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=environment,
        )
        try:
            assert process.stdout is not None
            port = re.search(r"https://127.0.0.1:(\d+)", process.stdout.readline())
            assert port is not None
            if more:
                assert process.stdout.readline() == (
                    f"context: holdfast is the current one of {config}, until the cluster stops\n"
                )
            return port[1], config.exists() and f":{port[1]}" in config.read_text()
        finally:
            process.send_signal(signal.SIGTERM)
            process.communicate()

    first = started("--merge")
    assert first[1]
    assert "server" not in config.read_text()
    assert started() == (first[0], False)
    with socket.create_server(("127.0.0.1", int(first[0]))):
        assert started()[0] != first[0]


@pytest.mark.parametrize("given", ["soon", "8s..2s", "-1s", ".."])
def test_a_time_that_is_none_is_refused(given: str) -> None:
    result = CliRunner().invoke(main, ["up", "--ready-after", given])
    assert result.exit_code == ExitCode.BAD_INPUT
    assert "write such as 2s..8s" in result.output
