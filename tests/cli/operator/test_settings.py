"""The settings of operators: by option or environment variable, checked, documented, and kept by what runs."""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner
from tests.clusters import HOLDFAST
from tests.places import ROOT

from holdfast.cli.errors import ExitCode, InputError
from holdfast.cli.main import main
from holdfast.cli.operator import selection, settings

DOMAIN = "tenant.cluster-domain"
IMAGE = "tenant.image"


def test_an_option_outranks_the_environment_and_an_empty_variable_sets_nothing() -> None:
    environment = {"TENANT_RUSTFS_IMAGE": "mine:1", "OPERATOR_CLUSTER_DOMAIN": ""}
    assert settings.values((), {}) == {}
    assert settings.values((), environment) == {IMAGE: "mine:1"}
    assert settings.values((f"{IMAGE}=mine:2", f"{DOMAIN}=k8s.example.com"), environment) == {
        IMAGE: "mine:2",
        DOMAIN: "k8s.example.com",
    }


@pytest.mark.parametrize(
    ("given", "environment", "said"),
    [
        ("tenant.imagee=x", {}, "there is no setting 'tenant.imagee'"),
        ("image", {}, "there is no setting 'image'"),
        (f"{IMAGE}=", {}, "tenant.image cannot be ''"),
        (f"{IMAGE}=a b", {}, "tenant.image cannot be 'a b'"),
        (f"{DOMAIN}=Cluster_Local", {}, "tenant.cluster-domain cannot be 'Cluster_Local'"),
        (f"{DOMAIN}", {}, "tenant.cluster-domain cannot be ''"),
        ("", {"OPERATOR_CLUSTER_DOMAIN": "a..b"}, "tenant.cluster-domain cannot be 'a..b'"),
    ],
)
def test_a_setting_that_cannot_be_is_refused_by_its_name(given: str, environment: dict[str, str], said: str) -> None:
    with pytest.raises(InputError) as refused:
        settings.values(filter(None, [given]), environment)
    (complaint,) = refused.value.complaints
    assert complaint.message.startswith(said)
    assert complaint.path == ("--set" if given else "OPERATOR_CLUSTER_DOMAIN")
    assert complaint.hint


@pytest.mark.parametrize("command", [("operator", "run"), ("operator", "manifests"), ("up", "--ephemeral")])
def test_every_command_that_runs_operators_refuses_a_setting_that_there_is_not(command: tuple[str, ...]) -> None:
    result = CliRunner().invoke(main, [*command, "--set", "tenant.imag=x"])
    assert result.exit_code == ExitCode.BAD_INPUT
    assert "did you mean tenant.image?" in result.output


def test_the_printed_deployment_has_the_settings() -> None:
    result = CliRunner().invoke(main, ["operator", "manifests", "--set", f"{DOMAIN}=k8s.example.com"])
    (deployment,) = (each for each in yaml.safe_load_all(result.output) if each["kind"] == "Deployment")
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    assert f"--set={DOMAIN}=k8s.example.com" in container["args"]


def test_every_setting_is_documented_with_its_variable_default_and_meaning() -> None:
    page = (ROOT / "docs" / "operator.md").read_text()
    rows = re.findall(r"^\| `([\w.-]+)` \| `(\w+)` \| `(.+?)` \| (.+?) \|$", page, re.MULTILINE)
    declared = [each for operator in selection.operators() for each in operator.settings]
    assert rows == [(each.name, each.variable, each.default, each.meaning) for each in declared]


# --- at work

STORE = """
apiVersion: rustfs.com/v1alpha1
kind: Tenant
metadata: {name: media}
spec:
  pools:
    - {name: p, servers: 2, persistence: {volumesPerServer: 1}}
"""


@contextmanager
def running(*command: str, kubeconfig: Path, **variables: str) -> Iterator[dict[str, str]]:
    """A server as a process, and the environment of its clients."""
    environment = {**os.environ, **variables, "KUBECONFIG": str(kubeconfig)}
    process = subprocess.Popen(
        [*HOLDFAST, *command, "--kubeconfig", str(kubeconfig)],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline().startswith("ready: ")
        yield environment
    finally:
        process.kill()
        process.communicate()


def server_of(environment: dict[str, str]) -> dict[str, Any]:
    """The container of the servers of a Tenant that names no image."""

    def holdfast(*command: str, given: str | None = None) -> str:
        run = subprocess.run(
            [*HOLDFAST, *command], input=given, env=environment, capture_output=True, text=True, timeout=60
        )
        assert run.returncode == 0, run.stderr
        return run.stdout

    holdfast("wait", "crd/tenants.rustfs.com", "--for=create", "--timeout=60s")
    holdfast("wait", "crd/tenants.rustfs.com", "--for=condition=Established", "--timeout=60s")
    holdfast("apply", "-f", "-", given=STORE)
    holdfast("wait", "statefulset/media-p", "--for=create", "--timeout=60s")
    found = json.loads(holdfast("get", "statefulset", "media-p", "-o", "json"))
    (container,) = found["spec"]["template"]["spec"]["containers"]
    return dict(container)


def test_a_cluster_gives_its_servers_the_domain_and_the_image_that_are_set(tmp_path: Path) -> None:
    options = ("up", "--ephemeral", "--nodes", "1", "--set", f"{DOMAIN}=k8s.example.com")
    image = "quay.io/rustfs/rustfs:1.0.0-beta.11"
    with running(*options, kubeconfig=tmp_path / "kubeconfig", TENANT_RUSTFS_IMAGE=image) as environment:
        container = server_of(environment)
    assert container["image"] == image
    (volumes,) = (each["value"] for each in container["env"] if each["name"] == "RUSTFS_VOLUMES")
    assert ".media-hl.default.svc.k8s.example.com:9000" in volumes


def test_an_operator_that_runs_alone_keeps_its_settings_too(tmp_path: Path) -> None:
    kubeconfig = tmp_path / "kubeconfig"
    image = "ghcr.io/rustfs/rustfs:1.0.0-glibc"
    with running("apiserver", "--ephemeral", kubeconfig=kubeconfig) as environment:
        command = [*HOLDFAST, "operator", "run", "--set", f"{IMAGE}={image}", "--controllers", "tenant"]
        with_domain = environment | {"OPERATOR_CLUSTER_DOMAIN": "corp.internal"}
        operator = subprocess.Popen(command, env=with_domain, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            container = server_of(environment)
        finally:
            operator.kill()
            operator.wait()
    assert container["image"] == image
    (volumes,) = (each["value"] for each in container["env"] if each["name"] == "RUSTFS_VOLUMES")
    assert ".svc.corp.internal:9000" in volumes
