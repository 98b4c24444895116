"""``holdfast diff``: what apply would change, and nothing is."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

from tests.cli.api_runs import Cli, configmap, deployment


def diff(cli: Cli, obj: dict[str, Any], *options: str, code: int) -> str:
    result = cli.run("diff", "-f", "-", *options, given=obj)
    assert result.exit_code == code, result.output
    return result.output


def test_what_is_applied_already_differs_in_nothing(cli: Cli) -> None:
    cli.apply(deployment("web"))
    assert diff(cli, deployment("web"), code=0) == ""


def test_a_change_is_shown_and_not_made(cli: Cli) -> None:
    cli.apply(deployment("web", replicas=2))
    shown = diff(cli, deployment("web", replicas=3), code=1)
    assert shown.startswith("--- deployment.apps/web (now)\n+++ deployment.apps/web (as applied)\n")
    assert "-  replicas: 2\n+  replicas: 3\n" in shown
    assert cli.object("deploy", "web")["spec"]["replicas"] == 2


def test_a_new_object_is_shown_whole_with_its_defaults(cli: Cli) -> None:
    shown = diff(cli, deployment("new"), code=1)
    assert "--- deployment.apps/new (created)" in shown
    assert "+  revisionHistoryLimit: 10" in shown
    assert "not found" in cli.refused("get", "deploy", "new")


def test_the_values_of_a_secret_are_hidden_but_their_change_is_seen(cli: Cli) -> None:
    def secret(**data: str) -> dict[str, Any]:
        encoded = {name: base64.b64encode(value.encode()).decode() for name, value in data.items()}
        return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "data": encoded}

    cli.apply(secret(password="old-secret", user="me"))
    shown = diff(cli, secret(password="new-secret", user="me"), code=1)
    assert "-  password: '*** (before)'\n+  password: '*** (after)'" in shown.replace('"', "'")
    assert base64.b64encode(b"new-secret").decode() not in shown
    assert base64.b64encode(b"old-secret").decode() not in shown


def test_what_cannot_be_told_exits_with_2(cli: Cli) -> None:
    assert "there is no such file" in diff(cli, configmap("x"), "-f", "missing.yaml", code=2)
    wrong = deployment("web") | {"spec": {"replicas": "many"}}
    assert "replicas" in diff(cli, wrong, code=2)
    assert "write -f FILE" in cli.refused("diff", code=2)


def test_a_server_that_cannot_be_reached_exits_with_2(tmp_path: Path) -> None:
    result = Cli(tmp_path / "missing", tmp_path, "default").run("diff", "-f", "-", given=configmap("x"))
    assert result.exit_code == 2
