"""How commands find their server, and what they say when there is none or it says no."""

from __future__ import annotations

from pathlib import Path

import click
import pytest
import yaml
from click.testing import CliRunner
from tests.cli.api_runs import Cli, deployment

from holdfast.cli import connecting, main
from holdfast.cli.connecting import Verb, words
from holdfast.meta.errors import FieldError, Forbidden, Invalid, NotFound, StatusError, Unauthorized

OWN = Path(".holdfast") / "kubeconfig"

NOWHERE = """
apiVersion: v1
kind: Config
current-context: here
clusters: [{name: here, cluster: {server: "https://127.0.0.1:1"}}]
users: [{name: me, user: {}}]
contexts: [{name: here, context: {cluster: here, user: me, namespace: mine}}]
"""


def write(path: Path, text: str = "") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def test_a_kubeconfig_that_is_named_counts_before_all_others(tmp_path: Path) -> None:
    write(tmp_path / OWN)
    given = tmp_path / "given"
    assert connecting.kubeconfig(given, environment={"KUBECONFIG": "other"}, directory=tmp_path) == given


def test_the_variable_counts_before_what_is_found(tmp_path: Path) -> None:
    write(tmp_path / OWN)
    assert connecting.kubeconfig(None, environment={"KUBECONFIG": "other"}, directory=tmp_path) is None


def test_the_nearest_directory_above_counts(tmp_path: Path) -> None:
    far, near = write(tmp_path / OWN), write(tmp_path / "a" / OWN)
    for directory, found in ((tmp_path / "a" / "b", near), (tmp_path / "a", near), (tmp_path / "c", far)):
        directory.mkdir(exist_ok=True)
        assert connecting.kubeconfig(None, environment={}, directory=directory) == found


def test_where_nothing_is_found_the_home_directory_counts(tmp_path: Path) -> None:
    assert connecting.kubeconfig(None, environment={}, directory=tmp_path) is None


def test_commands_use_what_up_wrote_here(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path / OWN, cli.kubeconfig.read_text())
    (tmp_path / "deep").mkdir()
    monkeypatch.chdir(tmp_path / "deep")
    environment = {"KUBECONFIG": "", "HOME": str(tmp_path)}
    result = CliRunner().invoke(main, ["get", "ns", cli.namespace, "-o", "name"], env=environment)
    assert (result.exit_code, result.stdout) == (0, f"namespace/{cli.namespace}\n"), result.output


def test_no_kubeconfig_is_told_with_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(main, ["get", "pods"], env={"KUBECONFIG": "", "HOME": str(tmp_path)})
    assert result.exit_code == 1
    assert result.stderr.startswith(f"error: there is no kubeconfig at {tmp_path}/.kube/config; ")
    assert "hint: 'holdfast up' starts a server" in result.stderr
    assert result.stdout == ""


def test_a_server_that_is_away_is_told_with_what_to_do(tmp_path: Path) -> None:
    kubeconfig = write(tmp_path / "kubeconfig", NOWHERE)
    result = CliRunner().invoke(main, ["get", "pods", "--kubeconfig", str(kubeconfig)])
    assert result.exit_code == 1
    assert result.stderr.startswith("error: https://127.0.0.1:1 cannot be reached: ")
    assert "hint: 'holdfast up' starts a server" in result.stderr
    assert "Traceback" not in result.output


def test_a_context_that_is_not_there_is_told_with_those_that_are(tmp_path: Path) -> None:
    kubeconfig = write(tmp_path / "kubeconfig", NOWHERE)
    result = CliRunner().invoke(main, ["get", "pods", "--kubeconfig", str(kubeconfig), "--context", "there"])
    assert (result.exit_code, "there is no context 'there'; there are here" in result.stderr) == (1, True)


def test_somebody_unknown_is_told_so(cli: Cli, tmp_path: Path) -> None:
    settings = yaml.safe_load(cli.kubeconfig.read_text())
    settings["users"][0]["user"] = {"token": "made-up"}
    wrong = write(tmp_path / "wrong", yaml.safe_dump(settings))
    result = CliRunner().invoke(main, ["get", "pods", "--kubeconfig", str(wrong)])
    assert result.exit_code == 1
    assert result.stderr == "error: You must be logged in to the server (Unauthorized)\n"


PROBLEM = FieldError.required("spec.a")
OTHER = FieldError.required("spec.b")


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (NotFound.of("pods", "x"), 'Error from server (NotFound): pods "x" not found'),
        (
            Forbidden.of("pods", "x", why="you may not"),
            'Error from server (Forbidden): pods "x" is forbidden: you may not',
        ),
        (Unauthorized.of(), "error: You must be logged in to the server (Unauthorized)"),
        (StatusError("odd", code=499), "Error from server: odd"),
        (Invalid.of("Pod", "x", problems=[PROBLEM]), 'The Pod "x" is invalid: spec.a: Required value'),
        (
            Invalid.of("Pod", "x", problems=[PROBLEM, OTHER]),
            'The Pod "x" is invalid: \n* spec.a: Required value\n* spec.b: Required value',
        ),
        (Invalid("no body"), "The request is invalid: no body"),
    ],
)
def test_refusals_are_in_the_words_of_kubectl(error: StatusError, message: str) -> None:
    assert words(error) == message


def test_a_refusal_says_what_it_is_about() -> None:
    message = words(NotFound.of("pods", "x"), doing='error when applying "a.yaml"')
    assert message == 'Error from server (NotFound): error when applying "a.yaml": pods "x" not found'


@click.command(cls=Verb)
@click.option("-o", "--output", default="")
@click.option("--wait/--no-wait", default=True)
@click.option("--all", "every", is_flag=True)
@click.argument("words", nargs=-1)
def echo(output: str, wait: bool, every: bool, words: tuple[str, ...]) -> None:
    click.echo(f"{output} {wait} {every} {','.join(words)}")


@pytest.mark.parametrize(
    ("written", "read"),
    [
        (["-o=json"], "json True False "),
        (["-ojson", "a"], "json True False a"),
        (["-o", "json"], "json True False "),
        (["--output=json"], "json True False "),
        (["--wait=false"], " False False "),
        (["--wait=true", "--all=true"], " True True "),
        (["--all=false"], " True False "),
        (["--", "-o=x"], " True False -o=x"),
    ],
)
def test_options_are_read_as_the_users_of_kubectl_write_them(written: list[str], read: str) -> None:
    result = CliRunner().invoke(echo, written)
    assert (result.exit_code, result.output) == (0, f"{read}\n")


def test_hints_carry_the_namespace_that_the_user_named(cli: Cli) -> None:
    cli.apply(deployment("idle"))
    said = cli.refused("logs", "deployment/idle")
    assert f"'holdfast describe deployment.apps/idle -n {cli.namespace}'" in said
    assert "looked for in namespace" not in cli.refused("logs", "missing")
    result = CliRunner().invoke(main, ["logs", "missing"], env=cli.environment)
    assert "hint: it was looked for in namespace default; -n NAME names another one" in result.output


def test_a_command_that_names_its_namespace_or_all_of_them_is_left_as_it_is() -> None:
    token = connecting._named.set("shop")
    try:
        assert connecting.placed("see 'holdfast get pods'") == "see 'holdfast get pods -n shop'"
        for text in ("'holdfast get pods -A'", "'holdfast get pods -n x'", "'holdfast up' starts it", "plain"):
            assert connecting.placed(text) == text
        assert connecting.addressed("workload/web") == "workload/web -n shop"
    finally:
        connecting._named.reset(token)
    assert connecting.placed("see 'holdfast get pods'") == "see 'holdfast get pods'"
