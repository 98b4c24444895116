"""Pods as real processes, end to end: the API server, the runtime, the node, and what ``kubectl`` would see."""

from __future__ import annotations

import asyncio
import base64
import os
import signal
import socket
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.cluster.processes import (
    PATIENCE,
    Local,
    Wire,
    condition,
    container,
    is_ready,
    is_running,
    local,
    phase,
    play,
    pod,
    shell,
    state,
    terminated,
)
from tests.places import ROOT
from tests.waiting import eventually

from holdfast.client.protocols import Scope
from holdfast.client.resources import (
    CLAIMS,
    CONFIG_MAPS,
    EVENTS,
    LEASES,
    NODES,
    PODS,
    SECRETS,
    SERVICE_ACCOUNTS,
    Resource,
)
from holdfast.cluster.nodes.lifecycle import KUBELET
from holdfast.meta.errors import BadRequest
from holdfast.meta.objects import Key

FOREVER = ("sleep", "1000")


def pid(pod: Wire, name: str = "main") -> int:
    return int(state(pod, name)["containerID"].removeprefix("process://"))


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def config(name: str, **data: str) -> Wire:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "default"}, "data": data}


def test_the_machine_is_a_node_that_is_ready_and_heard_from(tmp_path: Path) -> None:
    async def story(cluster: Local) -> None:
        await eventually(lambda: conditions(cluster))
        node = (await cluster.client.get(NODES, Key("", "local"))).wire()
        assert node["metadata"]["labels"]["holdfast.dev/runtime"] == "process"
        assert int(node["status"]["capacity"]["cpu"]) == os.cpu_count()
        assert node["status"]["nodeInfo"]["kubeletVersion"] == KUBELET
        assert conditions(cluster)["Ready"] == "True"
        lease = (await cluster.client.get(LEASES, Key("kube-node-lease", "local"))).wire()
        assert lease["spec"]["holderIdentity"] == "local"

        await cluster.client.patch(
            NODES,
            Key("", "local"),
            {"status": {"conditions": [{"type": "Ready", "status": "Unknown"}]}},
            subresource="status",
        )
        await eventually(lambda: conditions(cluster).get("Ready") == "True")

    def conditions(cluster: Local) -> dict[str, str]:
        node = cluster.manager.caches.get(NODES, Key("", "local"))
        found = node.wire().get("status", {}).get("conditions", ()) if node else ()
        return {each["type"]: each["status"] for each in found}

    play(tmp_path, story)


def test_a_command_runs_and_its_end_is_the_end_of_the_pod(tmp_path: Path) -> None:
    async def story(cluster: Local) -> None:
        await cluster.create(pod("job", shell("echo done"), restartPolicy="Never"))
        done = await cluster.until("job", phase("Succeeded"))
        assert terminated(done)["reason"] == "Completed"
        assert condition(done)["reason"] == "PodCompleted"
        assert await cluster.log("job") == "done\n"

        await cluster.create(pod("bad", shell("echo why >/dev/termination-log; exit 3"), restartPolicy="OnFailure"))
        crashed = await cluster.until("bad", lambda pod: state(pod).get("restartCount") == 1)
        last = (await cluster.until("bad", lambda pod: state(pod)["lastState"]))["status"]
        ended = last["containerStatuses"][0]["lastState"]["terminated"]
        assert (ended["exitCode"], ended["reason"], ended["message"]) == (3, "Error", "why\n")
        assert crashed["status"]["phase"] == "Running"
        waiting = await cluster.until("bad", lambda pod: "waiting" in state(pod)["state"] and state(pod)["lastState"])
        assert state(waiting)["state"]["waiting"]["reason"] in ("CrashLoopBackOff", "ContainerCreating")

    play(tmp_path, story)


def test_a_process_is_told_about_its_pod(tmp_path: Path) -> None:
    async def story(cluster: Local) -> None:
        await cluster.create(config("settings", color="red"), CONFIG_MAPS)
        env = [
            {"name": "NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
            {"name": "IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}},
            {"name": "COLOR", "valueFrom": {"configMapKeyRef": {"name": "settings", "key": "color"}}},
            {"name": "ALL", "value": "$(NAME)-$(COLOR)-$$(NAME)"},
        ]
        main = container("sh", "-c", "echo $0 $1 $IP", "$(ALL)", "$(MISSING)", env=env)
        await cluster.create(pod("told", main, restartPolicy="Never"))
        done = await cluster.until("told", phase("Succeeded"))
        assert await cluster.log("told") == f"told-red-$(NAME) $(MISSING) {done['status']['podIP']}\n"

    play(tmp_path, story)


def test_a_process_has_a_token_of_its_service_account_that_ends_with_its_pod(tmp_path: Path) -> None:
    source = {"serviceAccountToken": {"path": "token", "expirationSeconds": 600}}
    volume = {"name": "api", "projected": {"sources": [source]}}
    main = container(
        "sh",
        "-c",
        "cat /var/run/api/token; echo; sleep 1000",
        volumeMounts=[{"name": "api", "mountPath": "/var/run/api"}],
    )

    async def story(cluster: Local) -> None:
        await cluster.create(pod("reader", main, serviceAccountName="reader", volumes=[volume]))
        waiting = await cluster.until("reader", lambda pod: "waiting" in state(pod).get("state", {}))
        await cluster.until(
            "reader", lambda pod: "not found" in state(pod)["state"].get("waiting", {}).get("message", "")
        )
        assert waiting["status"]["phase"] == "Pending"

        account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "reader", "namespace": "default"}}
        await cluster.create(account, SERVICE_ACCOUNTS)
        await cluster.until("reader", is_running)
        token = (await eventually(lambda: cluster.log("reader"))).strip()
        assert (await reviewed(cluster, token))["user"]["username"] == "system:serviceaccount:default:reader"
        await cluster.client.delete(PODS, Key("default", "reader"), grace_seconds=0)
        assert not (await reviewed(cluster, token)).get("authenticated")

    async def reviewed(cluster: Local, token: str) -> Wire:
        review = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": token}}
        reviews = Resource("authentication.k8s.io", "v1", "tokenreviews", "TokenReview", namespaced=False)
        answered = await cluster.client.create(reviews, {**review, "metadata": {}})
        status: Wire = answered.wire()["status"]
        return status

    play(tmp_path, story)


SERVER = """
import http.server, os
at = os.environ["IP"], int(os.environ["PORT"])
http.server.HTTPServer(at, http.server.SimpleHTTPRequestHandler).serve_forever()
"""


def test_two_pods_can_use_one_port(tmp_path: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]

    async def story(cluster: Local) -> None:
        env = [
            {"name": "IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}},
            {"name": "PORT", "value": str(port)},
        ]
        probes = {
            "ports": [{"name": "http", "containerPort": port}],
            "startupProbe": {"tcpSocket": {"port": port}, "periodSeconds": 1, "failureThreshold": 30},
            "readinessProbe": {"httpGet": {"port": "http", "path": "/"}, "periodSeconds": 1},
        }
        for name in ("one", "two"):
            await cluster.create(pod(name, container(sys.executable, "-c", SERVER, env=env, **probes)))
        ips = {(await cluster.until(name, is_ready))["status"]["podIP"] for name in ("one", "two")}
        assert len(ips) == 2

    if sys.platform != "linux":
        pytest.skip("only Linux has more than one loopback address by default")
    play(tmp_path, story)


def test_a_command_that_fails_as_a_probe_takes_readiness_and_one_that_fails_for_life_restarts(tmp_path: Path) -> None:
    async def story(cluster: Local) -> None:
        probe = {"periodSeconds": 1, "failureThreshold": 1}
        main = shell(
            "exec sleep 1000",
            volumeMounts=[{"name": "v", "mountPath": "/state"}],
            readinessProbe={"exec": {"command": ["test", "-e", "/state/ready"]}, **probe},
            livenessProbe={"exec": {"command": ["test", "!", "-e", "/state/sick"]}, **probe},
        )
        made = await cluster.create(pod("probed", main, volumes=[{"name": "v", "emptyDir": {}}]))
        running = await cluster.until("probed", is_running)
        assert not is_ready(running)
        volume = tmp_path / "pods" / made["metadata"]["uid"] / "volumes" / "v"
        (volume / "ready").touch()
        await cluster.until("probed", is_ready)
        (volume / "ready").unlink()
        await cluster.until("probed", lambda pod: not is_ready(pod))
        (volume / "sick").touch()
        again = await cluster.until("probed", lambda pod: state(pod).get("restartCount") == 1)
        assert state(again)["lastState"]["terminated"]["exitCode"] == 143
        events = await events_of(cluster, "Killing")
        assert "it failed its liveness probe" in events[0]["message"]
        assert await events_of(cluster, "Unhealthy")

    play(tmp_path, story)


async def events_of(cluster: Local, reason: str) -> list[Wire]:
    """The Events with a reason, as soon as there is one."""

    async def found() -> list[Wire]:
        events = [each.wire() for each in (await cluster.client.list(EVENTS, Scope())).objects]
        return [each for each in events if each["reason"] == reason]

    return await eventually(found)


def test_a_deleted_pod_is_asked_to_end_and_nothing_of_it_stays(tmp_path: Path) -> None:
    async def story(cluster: Local) -> None:
        script = "trap 'echo bye; exit 0' TERM; echo ready; while :; do sleep 0.01; done"
        made = await cluster.create(pod("polite", shell(script)))
        running = await cluster.until("polite", is_running)
        await heard(cluster, "polite", "ready\n")
        stream = await cluster.stream("polite", follow="true")
        reading = asyncio.create_task(collected(stream))
        await cluster.delete("polite")
        await cluster.gone("polite")
        assert (await reading).endswith("bye\n")
        assert not is_alive(pid(running))
        directory = tmp_path / "pods" / made["metadata"]["uid"]
        await eventually(lambda: not directory.exists())

    play(tmp_path, story)


async def collected(stream: Any) -> str:
    return b"".join([chunk async for chunk in stream]).decode()


def test_a_pod_that_does_not_listen_is_killed_after_its_grace(tmp_path: Path) -> None:
    async def story(cluster: Local) -> None:
        stubborn = shell("trap '' TERM; echo deaf; while :; do sleep 0.01; done")
        await cluster.create(pod("deaf", stubborn, metadata={"finalizers": ["example.com/keep"]}))
        await cluster.until("deaf", is_running)
        await heard(cluster, "deaf", "deaf\n")
        await cluster.delete("deaf", grace_seconds=1)
        ended = await cluster.until("deaf", lambda pod: terminated(pod))
        assert (terminated(ended)["exitCode"], terminated(ended)["signal"]) == (137, 9)
        assert ended["status"]["phase"] == "Failed"
        await cluster.client.patch(PODS, Key("default", "deaf"), {"metadata": {"finalizers": None}})
        await cluster.gone("deaf")

    play(tmp_path, story)


async def heard(cluster: Local, name: str, text: str) -> None:
    """Until a pod has said something."""

    async def said() -> bool:
        return text in await cluster.log(name)

    await eventually(said)


def test_a_pod_that_is_removed_by_force_ends_too(tmp_path: Path) -> None:
    async def story(cluster: Local) -> None:
        await cluster.create(pod("gone", container(*FOREVER)))
        running = await cluster.until("gone", is_running)
        await cluster.delete("gone", grace_seconds=0)
        await cluster.gone("gone")
        await eventually(lambda: not is_alive(pid(running)))

    play(tmp_path, story)


def test_hooks_run_beside_the_command(tmp_path: Path) -> None:
    async def story(cluster: Local) -> None:
        lifecycle = {
            "postStart": {"exec": {"command": ["sh", "-c", "echo up > $HOLDFAST_VOLUME_V/post"]}},
            "preStop": {"exec": {"command": ["sh", "-c", "echo down > /v/pre"]}},
        }
        claim = {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {"name": "c", "namespace": "default"},
            "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Mi"}}},
        }
        disk = await cluster.create(claim, CLAIMS)
        main = container(*FOREVER, lifecycle=lifecycle, volumeMounts=[{"name": "v", "mountPath": "/v"}])
        volumes = [{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}]
        await cluster.create(pod("hooked", main, volumes=volumes))
        await cluster.until("hooked", is_ready)
        kept = tmp_path / "claims" / "default" / disk["metadata"]["uid"]
        assert (kept / "post").read_text() == "up\n"
        await cluster.delete("hooked")
        await cluster.gone("hooked")
        assert (kept / "pre").read_text() == "down\n", "and a claim outlives its pods"

    play(tmp_path, story)


def test_init_containers_come_first_and_sidecars_stay_until_the_end(tmp_path: Path) -> None:
    async def story(cluster: Local) -> None:
        mounts = {"volumeMounts": [{"name": "v", "mountPath": "/v"}]}
        main = shell("until test -e /v/side; do sleep 0.01; done; cat /v/order", **mounts)
        init = [
            shell("echo first >> /v/order", "first", **mounts),
            shell("touch /v/side; exec sleep 1000", "side", restartPolicy="Always", **mounts),
            shell("echo second >> /v/order", "second", **mounts),
        ]
        spec = {"initContainers": init, "volumes": [{"name": "v", "emptyDir": {}}], "restartPolicy": "Never"}
        await cluster.create(pod("ordered", main, **spec))
        done = await cluster.until("ordered", phase("Succeeded"))
        assert await cluster.log("ordered", container="main") == "first\nsecond\n"
        assert terminated(done, "side")["exitCode"] == 143

    play(tmp_path, story)


def test_what_is_missing_is_named_and_the_pod_starts_when_it_is_there(tmp_path: Path) -> None:
    async def story(cluster: Local) -> None:
        main = shell("echo $color", envFrom=[{"configMapRef": {"name": "late"}}])
        await cluster.create(pod("patient", main, restartPolicy="Never"))
        waiting = await cluster.until(
            "patient", lambda pod: state(pod)["state"].get("waiting", {}).get("reason") == "CreateContainerConfigError"
        )
        assert state(waiting)["state"]["waiting"]["message"] == 'configmap "late" not found'
        with pytest.raises(
            BadRequest, match='container "main" in pod "patient" is waiting to start: configmap "late" not found'
        ):
            await cluster.log("patient")
        await cluster.create(config("late", color="blue"), CONFIG_MAPS)
        await cluster.until("patient", phase("Succeeded"))
        assert await cluster.log("patient") == "blue\n"

    play(tmp_path, story)


@pytest.mark.parametrize(
    ("main", "reason", "message"),
    [
        ({"name": "main", "image": "nginx"}, "CreateContainerConfigError", "runs commands, not images; set command"),
        (container("no-such-program"), "StartError", "no-such-program: no such executable on this machine"),
    ],
)
def test_what_cannot_run_teaches(tmp_path: Path, main: Wire, reason: str, message: str) -> None:
    async def story(cluster: Local) -> None:
        def refused(pod: Wire) -> Wire:
            status = state(pod)["state"]
            found: Wire = status.get("waiting") or status.get("terminated") or {}
            return found if found.get("reason") == reason else {}

        await cluster.create(pod("refused", main, restartPolicy="Never"))
        found = refused(await cluster.until("refused", refused))
        assert message in found["message"]
        assert message in (await events_of(cluster, "Failed"))[0]["message"]

    play(tmp_path, story)


def test_files_follow_the_objects_they_are_made_of_and_secrets_are_private(tmp_path: Path) -> None:
    async def story(cluster: Local) -> None:
        await cluster.create(config("settings", level="low\n"), CONFIG_MAPS)
        secret = {"metadata": {"name": "key", "namespace": "default"}, "data": {"k": base64.b64encode(b"x").decode()}}
        await cluster.create({"apiVersion": "v1", "kind": "Secret", **secret}, SECRETS)
        mounts = [{"name": "s", "mountPath": "/etc/settings"}, {"name": "k", "mountPath": "/etc/key"}]
        volumes = [{"name": "s", "configMap": {"name": "settings"}}, {"name": "k", "secret": {"secretName": "key"}}]
        script = "cat /etc/settings/level; until grep -q high /etc/settings/level; do sleep 0.01; done; echo seen"
        made = await cluster.create(
            pod("reader", shell(script, volumeMounts=mounts), volumes=volumes, restartPolicy="Never")
        )
        await cluster.until("reader", is_running)
        await heard(cluster, "reader", "low")
        directory = tmp_path / "node" / "pods" / made["metadata"]["uid"] / "volumes" / "k"
        assert stat.S_IMODE((directory / "k").stat().st_mode) == 0o600
        assert all(stat.S_IMODE(each.stat().st_mode) == 0o700 for each in (directory, *directory.parents[:4]))
        await cluster.client.patch(CONFIG_MAPS, Key("default", "settings"), {"data": {"level": "high\n"}})
        await cluster.until("reader", phase("Succeeded"))
        assert await cluster.log("reader") == "low\nseen\n"

    play(tmp_path / "node", story)


def test_logs_are_given_out_as_they_are_asked_for(tmp_path: Path) -> None:
    async def story(cluster: Local) -> None:
        script = "test -e /v/again && { echo new; exec sleep 1000; }; touch /v/again; for i in 1 2 3; do echo $i; done"
        main = shell(script, volumeMounts=[{"name": "v", "mountPath": "/v"}])
        other = container("sh", "-c", "echo other; exec sleep 1000", name="other")
        await cluster.create(pod("talker", main, other, volumes=[{"name": "v", "emptyDir": {}}]))
        await cluster.until("talker", lambda pod: state(pod).get("restartCount") == 1 and is_running(pod))
        stream = await cluster.stream("talker", container="main", follow="true")
        assert await anext(aiter(stream)) == b"new\n"
        assert await cluster.log("talker", container="main", previous="true") == "1\n2\n3\n"
        assert await cluster.log("talker", container="main", previous="true", tailLines="1") == "3\n"
        assert await cluster.log("talker", container="main", sinceSeconds="3600") == "new\n"
        assert (await cluster.log("talker", container="main", timestamps="true")).endswith("Z new\n")
        with pytest.raises(BadRequest, match="previous terminated container"):
            await cluster.log("talker", container="other", previous="true")
        os.kill(pid(await cluster.until("talker", is_running)), signal.SIGTERM)
        async with asyncio.timeout(PATIENCE):
            assert await collected(stream) == "", "a log that is followed ends with its run"

    play(tmp_path, story)


def test_a_status_is_written_when_it_changes_and_not_at_every_look(tmp_path: Path) -> None:
    async def story(cluster: Local) -> None:
        probe = {"exec": {"command": ["sh", "-c", "echo x >> /v/asked"]}, "periodSeconds": 1}
        mounts = [{"name": "v", "mountPath": "/v"}]
        main = container(*FOREVER, readinessProbe=probe, volumeMounts=mounts)
        made = await cluster.create(pod("calm", main, volumes=[{"name": "v", "emptyDir": {}}]))
        ready = await cluster.until("calm", is_ready)
        asked = tmp_path / "pods" / made["metadata"]["uid"] / "volumes" / "v" / "asked"
        await eventually(lambda: len(asked.read_text().split()) >= 3)
        now = await cluster.get("calm")
        assert now is not None
        assert now["metadata"]["resourceVersion"] == ready["metadata"]["resourceVersion"]

    play(tmp_path, story)


def test_pods_of_other_nodes_are_left_alone(tmp_path: Path) -> None:
    async def story(cluster: Local) -> None:
        await cluster.create(pod("theirs", container(*FOREVER), nodeName="elsewhere"))
        await cluster.create(pod("unbound", container(*FOREVER), nodeName=""))
        await cluster.create(pod("ours", container(*FOREVER)))
        await cluster.until("ours", is_running)
        for name in ("theirs", "unbound"):
            untouched = await cluster.get(name)
            assert untouched is not None
            assert "containerStatuses" not in untouched["status"]

    play(tmp_path, story)


CHILD = """
import asyncio, sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from tests.cluster.processes import is_running, local, pod, shell
from tests.waiting import eventually

async def main():
    root = Path(sys.argv[2])
    async with local(root / "node", data=root / "data") as cluster:
        script = "sleep 1000 & echo $! > /v/child; touch /v/pid; wait"
        main = shell(script, volumeMounts=[{"name": "v", "mountPath": "/v"}])
        made = await cluster.create(pod("kept", main, volumes=[{"name": "v", "emptyDir": {}}]))
        running = await cluster.until("kept", is_running)
        status = running["status"]["containerStatuses"][0]
        volume = root / "node" / "pods" / made["metadata"]["uid"] / "volumes" / "v"
        await eventually((volume / "pid").exists)
        child = (volume / "child").read_text().strip()
        print(status["containerID"].removeprefix("process://"), child, flush=True)
        await asyncio.Event().wait()

asyncio.run(main())
"""


def test_a_node_that_is_killed_leaves_no_process_and_its_pods_go_on_with_the_next_one(tmp_path: Path) -> None:
    argv = [sys.executable, "-c", CHILD, str(ROOT), str(tmp_path)]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as node:
        assert node.stdout is not None
        pids = [int(each) for each in node.stdout.readline().split()]
        assert [is_alive(each) for each in pids] == [True, True]
        node.kill()

    async def story(cluster: Local) -> None:
        await eventually(lambda: not any(map(is_alive, pids)))
        again = await cluster.until("kept", lambda pod: state(pod)["restartCount"] == 1 and is_running(pod))
        assert state(again)["lastState"]["terminated"]["reason"] == "Unknown"

    play(tmp_path / "node", story, data=tmp_path / "data")


def test_processes_end_with_the_node_and_are_started_again_by_the_next_one(tmp_path: Path) -> None:
    async def story() -> None:
        async with local(tmp_path / "node", data=tmp_path / "data") as cluster:
            main = shell("touch /v/here; exec sleep 1000", volumeMounts=[{"name": "v", "mountPath": "/v"}])
            await cluster.create(pod("kept", main, volumes=[{"name": "v", "emptyDir": {}}]))
            await cluster.create(pod("done", shell("exit 0"), restartPolicy="Never"))
            before = await cluster.until("kept", is_running)
            await cluster.until("done", phase("Succeeded"))
        assert not is_alive(pid(before))
        async with local(tmp_path / "node", data=tmp_path / "data") as cluster:
            after = await cluster.until("kept", lambda pod: state(pod)["restartCount"] == 1 and is_running(pod))
            last = state(after)["lastState"]["terminated"]
            assert (last["reason"], last["exitCode"]) == ("Unknown", 255)
            assert after["status"]["podIP"] == before["status"]["podIP"]
            finished = await cluster.get("done")
            assert finished is not None
            assert state(finished)["restartCount"] == 0

    asyncio.run(story())


def test_a_pod_that_starts_after_others_waits_for_them_and_then_starts_without_any_executable(tmp_path: Path) -> None:
    def of(clique: str, **annotations: str) -> Wire:
        return {"labels": {"grove.io/podclique": clique}, "annotations": annotations}

    waiter = container("holdfast", "operator", "wait-for", "--podcliques=first:1", name="grove-initc")
    probe = {"exec": {"command": ["test", "-e", str(tmp_path / "go")]}, "periodSeconds": 1}

    async def story(cluster: Local) -> None:
        after = of("second", **{"holdfast.dev/starts-after": "first:1"})
        await cluster.create(pod("second", container(*FOREVER), metadata=after, initContainers=[waiter]))
        held = await cluster.until("second", lambda pod: "waiting" in state(pod, "grove-initc")["state"])
        await cluster.create(pod("first", container(*FOREVER, readinessProbe=probe), metadata=of("first")))
        await cluster.until("first", is_running)
        held = await cluster.until("second", lambda pod: "waiting" in state(pod, "grove-initc")["state"])
        waiting = state(held, "grove-initc")["state"]["waiting"]
        assert waiting == {"reason": "PodInitializing", "message": "waiting for 1 ready pods of first"}
        assert not is_running(held)
        (tmp_path / "go").touch()
        started = await cluster.until("second", is_running)
        assert terminated(started, "grove-initc")["exitCode"] == 0
        first = await cluster.until("first", is_ready)
        assert condition(first)["lastTransitionTime"] <= state(started)["state"]["running"]["startedAt"]

    play(tmp_path / "node", story)
