"""``holdfast version``: with a server, without one, and without asking for one."""

from __future__ import annotations

import json
from pathlib import Path

from tests.cli.api_runs import Cli

import holdfast


def test_client_server_and_kinds_are_shown(cli: Cli) -> None:
    client, server, kinds, *rest = cli("version").splitlines()
    assert client.startswith(f"client:  holdfast {holdfast.__version__}, Python 3.")
    assert server.startswith("server:  v1.")
    assert kinds.endswith(" are served")
    assert rest
    found = json.loads(cli("version", "-o", "json"))
    assert found["client"]["version"] == holdfast.__version__
    assert {each["name"] for each in found["kinds"]} >= {"workloads.cloudless.io", "tenants.rustfs.com"}


def test_no_server_is_asked_for_the_version_of_the_client_alone(tmp_path: Path) -> None:
    lonely = Cli(tmp_path / "missing", tmp_path, "default")
    assert lonely("version", "--client") == lonely("version", "--client")
    assert len(lonely("version", "--client").splitlines()) == 1


def test_a_missing_server_is_said_and_is_no_error(tmp_path: Path) -> None:
    client, server = Cli(tmp_path / "missing", tmp_path, "default")("version").splitlines()
    assert client.startswith("client:")
    assert server.startswith("server:  ")
