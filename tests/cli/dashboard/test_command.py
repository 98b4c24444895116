"""``holdfast dashboard``: wrong options are explained, and nothing is changed on clusters of other machines."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from holdfast.cli.dashboard.command import command, is_local


@pytest.fixture
def kubeconfig(tmp_path: Path) -> Path:
    path = tmp_path / "kubeconfig"
    made = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "a",
        "contexts": [{"name": "a", "context": {"cluster": "a", "user": "a"}}],
        "clusters": [{"name": "a", "cluster": {"server": "http://127.0.0.1:1"}}],
        "users": [{"name": "a", "user": {"token": "secret"}}],
    }
    path.write_text(yaml.safe_dump(made))
    return path


def run(kubeconfig: Path, *arguments: str) -> tuple[int, str]:
    made = CliRunner().invoke(command, ["--kubeconfig", str(kubeconfig), *arguments])
    assert made.exception is None or isinstance(made.exception, SystemExit), made.exception
    return made.exit_code, made.output


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--bind", "0.0.0.0"), "add --allow-non-loopback"),
        (("--bind", "192.0.2.1", "--allow-non-loopback"), "is not an address of this machine"),
        (("--tls-cert", "a.pem"), "belong together"),
        (("--tls-cert", "a.pem", "--tls-key", "b.pem"), "no certificate with its key"),
        (("--context", "nowhere"), "there is no context 'nowhere'"),
        (("--port", "99999"), "99999 is not in the range"),
        (("--login", "magic"), "is not one of"),
    ],
)
def test_wrong_options_are_explained(kubeconfig: Path, arguments: tuple[str, ...], message: str) -> None:
    code, output = run(kubeconfig, *arguments)
    assert code != 0
    assert message in output


def test_a_port_that_is_taken_is_an_error_where_it_was_asked_for(kubeconfig: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        code, output = run(kubeconfig, "--port", str(port))
    assert code != 0
    assert f"{port} is in use on 127.0.0.1" in output


def test_a_kubeconfig_that_is_not_there_is_explained(tmp_path: Path) -> None:
    code, output = run(tmp_path / "nothing")
    assert code != 0
    assert "there is no kubeconfig" in output


@pytest.mark.parametrize(
    ("server", "local"),
    [
        ("https://127.0.0.1:6443", True),
        ("https://[::1]:6443", True),
        ("https://localhost:6443", True),
        ("https://10.0.0.1:6443", False),
        ("https://prod.example.com", False),
        ("", False),
    ],
)
def test_only_a_cluster_of_this_machine_may_be_changed_by_default(server: str, local: bool) -> None:
    assert is_local(server) is local
