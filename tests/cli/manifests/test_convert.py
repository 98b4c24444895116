"""``holdfast convert`` and ``holdfast apply`` with manifests of another API."""

from __future__ import annotations

import json
from pathlib import Path

import yaml
from click.testing import CliRunner, Result
from tests.cli.api_runs import Cli
from tests.places import ROOT

from holdfast import kinds
from holdfast.cli import main
from holdfast.cli.errors import ExitCode
from holdfast.kinds.crds import crd_of

EXAMPLE = ROOT / "examples" / "cloudless" / "shop.yaml"
(WORKLOAD,) = (kind for kind in kinds.ALL if kind.name == "Workload")


def convert(*arguments: str, given: str | None = None) -> Result:
    return CliRunner().invoke(main, ["convert", *arguments], input=given, prog_name="holdfast")


def test_a_manifest_is_printed_as_the_object_that_it_means() -> None:
    result = convert("-f", str(EXAMPLE))
    assert (result.exit_code, result.stderr) == (ExitCode.OK, "")
    made = yaml.safe_load(result.stdout)
    assert (made["apiVersion"], made["spec"]["rollout"]["minAvailable"]) == ("cloudless.io/v1", 3)
    kinds.decode(made)
    assert json.loads(convert("-f", str(EXAMPLE), "-o", "json").stdout) == made


def test_what_was_converted_needs_no_conversion() -> None:
    once = convert("-f", str(EXAMPLE)).stdout
    assert convert("-f", "-", given=once).stdout == once


def test_other_objects_are_printed_as_they_are() -> None:
    given = f"{EXAMPLE.read_text()}---\napiVersion: v1\nkind: Secret\nmetadata: {{name: a}}\n"
    shop, secret = yaml.safe_load_all(convert("-f", "-", given=given).stdout)
    assert (shop["kind"], secret) == ("Workload", {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a"}})
    listed = json.loads(convert("-f", "-", "-o", "json", given=given).stdout)
    assert [each["kind"] for each in listed["items"]] == ["Workload", "Secret"]


def test_a_refusal_names_the_line_and_the_path_and_nothing_is_printed() -> None:
    given = EXAMPLE.read_text().replace("run_as_non_root: true", "host_network: true")
    result = convert("-f", "-", given=given)
    assert (result.exit_code, result.stdout) == (ExitCode.BAD_INPUT, "")
    line = next(number for number, text in enumerate(given.splitlines(), 1) if "host_network" in text)
    assert f"<stdin>:{line}:5: spec.security_context.host_network: replicas cannot share" in result.stderr


def test_what_is_left_out_is_named() -> None:
    given = EXAMPLE.read_text().replace("- secret_name: database\n", "- secret_name: database\n      audience: shop\n")
    result = convert("-f", "-", given=given)
    assert result.exit_code == ExitCode.OK
    assert "spec.secret_env[0].audience: left out" in result.stderr


def test_without_a_file_it_says_what_is_missing() -> None:
    assert "write -f FILE" in convert().stderr


def test_a_manifest_of_another_api_is_planned() -> None:
    result = CliRunner().invoke(main, ["plan", "-f", str(EXAMPLE), "-o", "json"], prog_name="holdfast")
    assert (result.exit_code, json.loads(result.stdout)["floor"]) == (ExitCode.OK, 3)


def test_a_manifest_of_another_api_is_applied_and_deleted(cli: Cli, tmp_path: Path) -> None:
    cli.apply(crd_of(WORKLOAD))
    file = tmp_path / "shop.yaml"
    file.write_text(EXAMPLE.read_text().replace("  namespace: default\n", ""))
    assert cli("apply", "-f", str(file)) == "workload.cloudless.io/shop created\n"
    assert cli.object("workload", "shop")["spec"]["restartPolicy"]["maxRetries"] == 5
    assert cli("apply", "-f", str(file)) == "workload.cloudless.io/shop unchanged\n"
    assert "deleted" in cli("delete", "-f", str(file))


def test_an_error_of_the_server_names_the_line_of_the_given_manifest(cli: Cli, tmp_path: Path) -> None:
    cli.apply(crd_of(WORKLOAD))
    text = EXAMPLE.read_text().replace("  namespace: default\n", "")
    text = text.replace("failure_threshold: 2", "failure_threshold: 2\n    exec: {command: [a]}")
    file = tmp_path / "shop.yaml"
    file.write_text(text)
    line = next(number for number, text in enumerate(text.splitlines(), 1) if "readiness_probe" in text)
    said = cli.refused("apply", "-f", str(file))
    assert "give exactly one of http, tcp, exec and grpc" in said
    assert f"shop.yaml:{line}:3: spec.readinessProbe" in said
