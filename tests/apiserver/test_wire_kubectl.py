"""What kubectl sends as messages, against a whole server on a socket; older ones send JSON and must fare as well."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from holdfast.apiserver.http import protobuf
from holdfast.apiserver.http.listener import listen
from holdfast.apiserver.server import Server
from holdfast.meta.exchange import Request, Response

FIRST_WITH_MESSAGES = 32
"""The minor version from which kubectl prefers messages."""

NODE = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}}
POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "bound"},
    "spec": {"nodeName": "n1", "containers": [{"name": "c", "image": "i"}]},
}
SCHEMA = {"openAPIV3Schema": {"type": "object"}}
WIDGETS = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "widgets.example.com"},
    "spec": {
        "group": "example.com",
        "names": {"kind": "Widget", "plural": "widgets"},
        "scope": "Namespaced",
        "versions": [
            {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object"}}}
        ],
    },
}


class Session:
    """kubectl with a home of its own, and what the server saw of it."""

    def __init__(self, program: str, home: Path) -> None:
        self.media_types: list[str] = []
        self.kubeconfig = home / "config"
        self._program = program
        self._home = home

    def run(self, command: str) -> str:
        env = {"HOME": str(self._home), "KUBECONFIG": str(self.kubeconfig), "PATH": os.environ["PATH"]}
        words = [self._program, "--request-timeout=30s", *command.split()]
        done = subprocess.run(words, capture_output=True, text=True, timeout=60, env=env, check=False)
        assert done.returncode == 0, f"{command}: {done.stderr}"
        return done.stdout

    def get(self, name: str) -> Any:
        return json.loads(self.run(f"get {name} -o json"))

    def create(self, obj: dict[str, Any]) -> None:
        path = self._home / "object.json"
        path.write_text(json.dumps(obj))
        self.run(f"create -f {path}")


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    program = shutil.which("kubectl")
    if program is None:
        pytest.skip("kubectl is not installed")
    session = Session(program, tmp_path_factory.mktemp("kubectl"))
    with running(session.media_types.append) as kubeconfig:
        session.kubeconfig.write_text(kubeconfig)
        yield session


@contextmanager
def running(told: Callable[[str], None]) -> Iterator[str]:
    """A server in a thread of its own; gives its kubeconfig, and tells the media type of every body."""
    loop, ready, ended = asyncio.new_event_loop(), threading.Event(), asyncio.Event()
    kubeconfigs: list[str] = []

    async def serving() -> None:
        server = await Server.open()

        async def handle(request: Request) -> Response:
            whole = await request.received()
            if whole.body:
                told(request.headers.get("content-type", ""))
            return await server.handle(whole)

        listener = await listen(handle, "127.0.0.1", tls=server.identity.tls())
        host, port = listener.address
        kubeconfigs.append(json.dumps(server.identity.kubeconfig(f"https://{host}:{port}")))
        ready.set()
        await ended.wait()
        await listener.drain(1.0)
        await server.close()

    thread = threading.Thread(target=loop.run_until_complete, args=(serving(),))
    thread.start()
    assert ready.wait(20), "the server did not start"
    try:
        yield kubeconfigs[0]
    finally:
        loop.call_soon_threadsafe(ended.set)
        thread.join()
        loop.close()


@pytest.mark.parametrize(
    ("command", "name", "said"),
    [
        ("configmap m --from-literal=color=red", "configmap/m", {"data": {"color": "red"}}),
        ("secret generic s --from-literal=k=v", "secret/s", {"type": "Opaque", "data": {"k": "dg=="}}),
        ("namespace elsewhere", "namespace/elsewhere", {"status": {"phase": "Active"}}),
        ("serviceaccount alice", "serviceaccount/alice", {}),
        (
            "deployment d --image=nginx --port=80 --replicas=2",
            "deployment/d",
            {
                "spec.replicas": 2,
                "spec.strategy.type": "RollingUpdate",
                "spec.template.spec.containers.0.ports": [{"containerPort": 80, "protocol": "TCP"}],
            },
        ),
        ("job j --image=busybox -- echo hi", "job/j", {"spec.template.spec.containers.0.command": ["echo", "hi"]}),
        (
            "cronjob c --image=busybox --schedule=@daily",
            "cronjob/c",
            {"spec.schedule": "@daily", "spec.jobTemplate.spec.template.spec.restartPolicy": "OnFailure"},
        ),
        (
            "role r --verb=get,list --resource=pods",
            "role/r",
            {"rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list"]}]},
        ),
        (
            "rolebinding b --role=r --serviceaccount=default:alice",
            "rolebinding/b",
            {"subjects": [{"kind": "ServiceAccount", "name": "alice", "namespace": "default"}]},
        ),
        ("poddisruptionbudget p --selector=a=b --min-available=50%", "pdb/p", {"spec.minAvailable": "50%"}),
        ("quota q --hard=cpu=1,pods=3", "quota/q", {"spec.hard": {"cpu": "1", "pods": "3"}}),
        (
            "service nodeport web --tcp=80:http",
            "service/web",
            {"spec.type": "NodePort", "spec.ports.0.port": 80, "spec.ports.0.targetPort": "http"},
        ),
        (
            "ingress i --rule=example.com/x=web:80",
            "ingress/i",
            {"spec.rules.0.http.paths.0.backend.service": {"name": "web", "port": {"number": 80}}},
        ),
    ],
)
def test_what_is_created_is_there(session: Session, command: str, name: str, said: dict[str, Any]) -> None:
    session.run(f"create {command}")
    found = session.get(name)
    assert {path: _at(found, path) for path in said} == said


def _at(obj: Any, path: str) -> Any:
    for step in path.split("."):
        obj = obj[int(step) if isinstance(obj, list) else step]
    return obj


def test_newer_ones_send_messages(session: Session) -> None:
    version = json.loads(session.run("version --client -o json"))["clientVersion"]
    session.run("create configmap sent")
    in_messages = int(version["minor"].rstrip("+")) >= FIRST_WITH_MESSAGES
    assert session.media_types[-1] == (protobuf.MEDIA_TYPE if in_messages else "application/json")


def test_questions_are_answered(session: Session) -> None:
    session.run("create serviceaccount bob")
    session.run("create clusterrole pods --verb=get --resource=pods")
    session.run("create clusterrolebinding pods --clusterrole=pods --serviceaccount=default:bob")
    assert session.run("auth can-i delete nodes").strip() == "yes"
    assert session.run("auth can-i get pods --as=system:serviceaccount:default:bob").strip() == "yes"
    assert "admin" in session.run("auth whoami")
    assert "pods" in session.run("auth can-i --list --as=system:serviceaccount:default:bob")
    assert session.run("create token bob --duration=10m --audience=x").count(".") == 2


def test_what_is_changed_is_changed(session: Session) -> None:
    session.run("create deployment scaled --image=nginx")
    session.run("scale deployment scaled --replicas=5 --current-replicas=1")
    session.run("label deployment scaled tier=front")
    found = session.get("deployment/scaled")
    assert (found["spec"]["replicas"], found["metadata"]["labels"]["tier"]) == (5, "front")


def test_nodes_are_emptied(session: Session) -> None:
    session.create(NODE)
    session.create(POD)
    session.run("taint node n1 key=value:NoSchedule")
    session.run("cordon n1")
    spec = session.get("node/n1")["spec"]
    assert {"key": "key", "value": "value", "effect": "NoSchedule"} in spec["taints"]
    assert spec["unschedulable"] is True
    assert "bound" in session.run("drain n1 --force --dry-run=server")


def test_what_is_deleted_is_gone(session: Session) -> None:
    session.run("create configmap gone")
    session.run("delete configmap gone --cascade=background")
    assert "configmap/gone" not in session.run("get configmaps -o name")


def test_custom_kinds_are_sent_in_json(session: Session) -> None:
    session.create(WIDGETS)
    session.create({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w"}})
    assert session.run("get widgets -o name").strip() == "widget.example.com/w"
