"""Completion in shells, and Holdfast as a plugin of kubectl, with the programs that an installation has."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from click.shell_completion import ShellComplete
from click.testing import CliRunner
from tests.cli.api_runs import Cli, pod

from holdfast.cli.completion import SHELLS
from holdfast.cli.main import COMMANDS, main

BIN = Path(sys.executable).parent
PROGRAMS = ("holdfast", "kubectl-holdfast", "kubectl_complete-holdfast")

installed = pytest.mark.skipif(
    not all((BIN / name).exists() for name in PROGRAMS), reason="needs the programs of an installation"
)


def run(*command: str, **environment: str) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "PATH": f"{BIN}:{os.environ['PATH']}", **environment}
    return subprocess.run(command, env=env, capture_output=True, text=True, timeout=60)


@pytest.mark.parametrize("shell", SHELLS)
def test_a_script_is_printed_that_asks_holdfast(shell: str) -> None:
    result = CliRunner().invoke(main, ["completion", shell])
    assert result.exit_code == 0, result.output
    assert f"_HOLDFAST_COMPLETE={shell}_complete" in result.output


@installed
@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
def test_bash_completes_commands_with_the_script(tmp_path: Path) -> None:
    script = tmp_path / "completion"
    script.write_text(run("holdfast", "completion", "bash").stdout)
    asked = 'source "$1"; COMP_WORDS=(holdfast roll); COMP_CWORD=1; _holdfast_completion holdfast; echo ${COMPREPLY[@]}'
    answer = run("bash", "--norc", "-c", asked, "bash", str(script))
    assert answer.stdout.strip() == "rollout", answer.stderr


@installed
def test_every_command_is_one_of_the_plugin_too() -> None:
    helped = run("kubectl-holdfast", "--help")
    assert helped.stdout.startswith("Usage: kubectl holdfast ")
    assert all(name in helped.stdout for name in COMMANDS)
    plan = run("kubectl-holdfast", "rollout", "--help")
    assert plan.stdout.startswith("Usage: kubectl holdfast rollout ")


@installed
def test_kubectl_is_answered_in_its_own_form() -> None:
    command, end = run("kubectl_complete-holdfast", "roll").stdout.splitlines()
    assert command.startswith("rollout\tWatch, pause, promote, abort")
    assert end == ":4"
    verbs = run("kubectl_complete-holdfast", "rollout", "un").stdout.splitlines()
    assert verbs[0].startswith("undo\t")
    assert verbs[-1] == ":4"
    assert run("kubectl_complete-holdfast", "operator", "run", "--kubeconfig", "").stdout.splitlines()[-1] == ":0"


@installed
@pytest.mark.skipif(shutil.which("kubectl") is None, reason="needs kubectl")
def test_kubectl_finds_the_plugin() -> None:
    answer = run("kubectl", "holdfast", "crds", "--kind", "Workload", "-o", "json")
    assert answer.returncode == 0, answer.stderr
    assert '"workloads.cloudless.io"' in answer.stdout


def completions(cli: Cli, *words: str) -> list[str]:
    """What may follow words, the last of which is unfinished."""
    *args, incomplete = words
    with pytest.MonkeyPatch.context() as patch:
        for name, value in cli.environment.items():
            patch.setenv(name, value)
        found = ShellComplete(main, {}, "holdfast", "_HOLDFAST_COMPLETE").get_completions(args, incomplete)
    return [item.value for item in found]


def test_types_and_names_come_from_the_server(cli: Cli) -> None:
    cli.apply(pod("web-0"), pod("web-1"), pod("other"))
    place = ("-n", cli.namespace)
    assert "deployment" in completions(cli, "get", *place, "dep")
    assert completions(cli, "get", *place, "pods", "web") == ["web-0", "web-1"]
    assert completions(cli, "describe", *place, "pod/web") == ["pod/web-0", "pod/web-1"]
    assert completions(cli, "logs", *place, "web") == ["web-0", "web-1"]
    assert "deployment/" in completions(cli, "exec", *place, "dep")


def test_a_server_that_does_not_answer_or_a_type_that_is_none_completes_nothing(cli: Cli, tmp_path: Path) -> None:
    assert completions(cli, "get", "nothing/x") == []
    assert completions(Cli(tmp_path / "missing", tmp_path, "default"), "get", "po") == []
