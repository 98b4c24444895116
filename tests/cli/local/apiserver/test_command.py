"""``holdfast apiserver`` as a process: started, asked, stopped, and given wrong options."""

from __future__ import annotations

import json
import signal
import socket
import ssl
import stat
import subprocess
import urllib.request
from base64 import b64decode
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner
from tests.clusters import HOLDFAST, serving

from holdfast.cli.errors import ExitCode
from holdfast.cli.local.apiserver.command import command

COMMAND = (*HOLDFAST, "apiserver")

running = partial(serving, "apiserver")
"""A server that is ready, and its kubeconfig."""


def ask(kubeconfig: Path, path: str) -> Any:
    config = yaml.safe_load(kubeconfig.read_text())
    cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
    context = ssl.create_default_context(cadata=b64decode(cluster["certificate-authority-data"]).decode())
    request = urllib.request.Request(cluster["server"] + path, headers={"Authorization": f"Bearer {user['token']}"})
    with urllib.request.urlopen(request, context=context) as answer:
        return json.load(answer)


def test_a_server_starts_answers_stops_and_is_the_same_again(tmp_path: Path) -> None:
    identities = []
    for _ in range(2):
        with running("--data-dir", str(tmp_path / "state")) as (process, kubeconfig):
            assert kubeconfig == tmp_path / "state" / "kubeconfig"
            assert stat.S_IMODE(kubeconfig.stat().st_mode) == 0o600
            names = {each["metadata"]["name"] for each in ask(kubeconfig, "/api/v1/namespaces")["items"]}
            assert "default" in names
            config = yaml.safe_load(kubeconfig.read_text())
            identities.append((config["users"], config["clusters"][0]["cluster"]["certificate-authority-data"]))
            second = subprocess.run([*COMMAND, "--data-dir", str(tmp_path / "state")], capture_output=True, text=True)
            assert second.returncode == ExitCode.BLOCKED
            assert second.stderr.count("\n") == 1
            assert "--data-dir" in second.stderr
            process.send_signal(signal.SIGTERM)
            assert process.wait(10) == ExitCode.OK
            assert process.stderr is not None
            assert process.stderr.read() == ""
    assert identities[0] == identities[1]


def test_an_ephemeral_server_leaves_nothing_behind() -> None:
    with running("--ephemeral") as (process, kubeconfig):
        assert ask(kubeconfig, "/version")["major"] == "1"
        process.send_signal(signal.SIGINT)
        assert process.wait(10) == ExitCode.OK
    assert not kubeconfig.parent.exists()


def refused(*options: str) -> tuple[int, str]:
    run = subprocess.run([*COMMAND, *options], capture_output=True, text=True)
    assert run.stdout == ""
    assert "Traceback" not in run.stderr
    assert run.stderr.count("\n") == 1, run.stderr
    return run.returncode, run.stderr


def test_a_port_in_use_is_told() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        code, message = refused("--ephemeral", "--port", str(port))
    assert code == ExitCode.BLOCKED
    assert f"{port} is in use on 127.0.0.1" in message


def test_a_directory_that_cannot_be_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    code, message = refused("--data-dir", str(tmp_path / "file" / "below"))
    assert code == ExitCode.BAD_INPUT
    assert "--data-dir" in message


def test_an_address_of_another_machine_is_told() -> None:
    code, message = refused("--ephemeral", "--bind", "192.0.2.7", "--allow-non-loopback")
    assert code == ExitCode.BAD_INPUT
    assert "not an address of this machine" in message


@pytest.mark.parametrize(
    ("options", "hint"),
    [
        (["--bind", "0.0.0.0"], "--allow-non-loopback"),
        (["--bind", "192.0.2.7"], "--allow-non-loopback"),
        (["--bind", "example.org"], "--allow-non-loopback"),
        (["--ephemeral", "--data-dir", "x"], "leave one of them out"),
        (["--port", "70000"], "--port"),
    ],
)
def test_what_cannot_be_meant_is_refused_with_what_to_write(options: list[str], hint: str) -> None:
    result = CliRunner().invoke(command, options)
    assert result.exit_code == ExitCode.BAD_INPUT
    assert hint in result.output
