"""``holdfast exec`` and ``holdfast logs`` on pods that are processes of a real cluster; kubectl does the same."""

from __future__ import annotations

import os
import pty
import re
import select
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any

import pytest
from tests.cli.api_runs import Cli
from tests.clusters import up

SERVER = """
import socketserver
class Handler(socketserver.StreamRequestHandler):
    def handle(self):
        self.wfile.write(self.rfile.readline().upper())
socketserver.ThreadingTCPServer(("", 18377), Handler).serve_forever()
"""
SCRIPT = "trap 'exit 0' TERM; echo begun; touch /data/x; while true; do sleep 0.1; done"
PATIENCE = 30.0


@pytest.fixture(scope="module")
def cli(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cli]:
    """A cluster with a Deployment of one process, and a simulated pod."""
    directory = tmp_path_factory.mktemp("cluster")
    with up("--nodes", "1", "--operators", "none") as kubeconfig:
        cli = Cli(kubeconfig, directory, "default")
        volumes = {"volumes": [{"name": "data", "emptyDir": {}}]}
        mounts = [{"name": "data", "mountPath": "/data"}]
        main = {"name": "main", "image": "none", "command": ["sh", "-c", SCRIPT], "volumeMounts": mounts}
        server = {"name": "server", "image": "none", "command": [sys.executable, "-c", SERVER]}
        template: dict[str, Any] = {
            "metadata": {"labels": {"app": "real"}},
            "spec": {"runtimeClassName": "process", "containers": [main, server], **volumes},
        }
        spec = {"replicas": 1, "selector": {"matchLabels": {"app": "real"}}, "template": template}
        simulated = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "simulated"}}
        cli.apply(
            {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "real"}, "spec": spec},
            {**simulated, "spec": {"containers": [{"name": "main", "image": "x"}]}},
        )
        cli("wait", "--for=condition=Available", "deployment/real", "--timeout=30s")
        cli("wait", "--for=condition=Ready", "pod/simulated", "--timeout=30s")
        yield cli


def command(cli: Cli, *arguments: str, given: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "holdfast", *arguments],
        input=given,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        env=os.environ | cli.environment,
    )


def test_a_command_runs_in_the_container_of_an_object_and_its_code_is_that_of_the_command(cli: Cli) -> None:
    ran = command(cli, "exec", "deployment/real", "--", "sh", "-c", "echo out; echo err >&2; exit 3")
    assert (ran.returncode, ran.stdout, ran.stderr) == (3, "out\n", "err\n")


def test_input_is_sent_from_a_pipe_and_paths_of_volumes_lead_to_them(cli: Cli) -> None:
    ran = command(cli, "exec", "-i", "deployment/real", "--", "cat", given="hello\n" * 5000)
    assert (ran.returncode, ran.stdout) == (0, "hello\n" * 5000)
    assert command(cli, "exec", "deployment/real", "--", "ls", "/data").stdout == "x\n"


def test_a_shell_has_a_terminal(cli: Cli) -> None:
    master, slave = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "holdfast", "exec", "-it", "deployment/real", "--", "sh"],
        stdin=slave,
        stdout=slave,
        stderr=slave,
        env=os.environ | cli.environment,
        start_new_session=True,
    )
    os.close(slave)
    try:
        os.write(master, b"test -t 0 && echo terminal-$((40 + 2)); exit 5\n")
        seen, deadline = b"", time.monotonic() + PATIENCE
        while b"terminal-42" not in seen and time.monotonic() < deadline:
            if select.select([master], [], [], 1)[0]:
                seen += os.read(master, 4096)
        assert b"terminal-42" in seen
        assert process.wait(PATIENCE) == 5
    finally:
        process.kill()
        process.wait()
        os.close(master)


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["exec", "deployment/real", "--", "no-such-command"], 1, "no such executable"),
        (["exec", "simulated", "--", "ls"], 1, "pod simulated is simulated, so no command can run in it"),
        (["exec", "deployment/real", "-c", "other", "--", "ls"], 1, "container other is not valid"),
        (["exec", "missing", "--", "ls"], 1, 'pods "missing" not found'),
        (["exec", "deployment/real"], 2, "no command is given"),
        (["exec"], 2, "name a pod and a command"),
    ],
)
def test_what_cannot_run_says_why(cli: Cli, words: list[str], code: int, said: str) -> None:
    ran = command(cli, *words)
    assert ran.returncode == code, ran.stderr
    assert said in ran.stderr


def test_the_logs_of_an_object_are_those_of_its_processes(cli: Cli) -> None:
    assert cli("logs", "deployment/real", "-c", "main") == "begun\n"
    assert "simulated, so it has no log" in cli("logs", "simulated")


@pytest.mark.skipif(shutil.which("kubectl") is None, reason="needs kubectl")
def test_kubectl_runs_commands_as_well(cli: Cli) -> None:
    ran = subprocess.run(
        ["kubectl", "exec", "-i", "deployment/real", "--", "sh", "-c", "cat; exit 4"],
        input="hello\n",
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        env=os.environ | cli.environment,
    )
    assert (ran.returncode, ran.stdout) == (4, "hello\n"), ran.stderr


@pytest.mark.skipif(shutil.which("kubectl") is None, reason="needs kubectl")
def test_kubectl_forwards_ports(cli: Cli) -> None:
    process = subprocess.Popen(
        ["kubectl", "port-forward", "deployment/real", ":18377"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | cli.environment,
    )
    try:
        assert process.stdout is not None
        found = re.search(r"127.0.0.1:(\d+) -> 18377", process.stdout.readline())
        assert found
        for text in (b"one\n", b"two\n"):
            with socket.create_connection(("127.0.0.1", int(found[1])), timeout=PATIENCE) as connection:
                connection.sendall(text)
                assert connection.recv(100) == text.upper()
    finally:
        process.kill()
        process.communicate()


def test_a_user_who_may_only_read_cannot_run_commands(cli: Cli) -> None:
    rules = [{"apiGroups": [""], "resources": ["pods", "pods/exec"], "verbs": ["get", "list"]}]
    role = {"apiVersion": "rbac.authorization.k8s.io/v1", "metadata": {"name": "reader"}}
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "reader"}
    subjects = [{"kind": "ServiceAccount", "name": "reader", "namespace": "default"}]
    cli.apply(
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "reader"}},
        {**role, "kind": "Role", "rules": rules},
        {**role, "kind": "RoleBinding", "roleRef": reference, "subjects": subjects},
    )
    config = cli.kubeconfig.read_text()
    other = cli.directory / "reader"
    other.write_text(config.replace("token:", "as: system:serviceaccount:default:reader\n    token:"))
    name = cli("get", "pods", "-l", "app=real", "-o", "name").strip()
    reader = Cli(other, cli.directory, "default")
    assert name in reader("get", name, "-o", "name")
    ran = command(reader, "exec", name, "--", "ls")
    assert ran.returncode == 1
    assert "cannot create resource" in ran.stderr
