"""The Helm chart, the kustomize base, alerts and the dashboard: complete, current, and installable."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner
from tests.cli.operator.test_commands import HOLDFAST, apiserver, asked, printed

from holdfast.cli.main import main
from holdfast.cli.operator import alerts, packaging, selection
from holdfast.client.protocols import Client
from holdfast.client.resources import DEFINITIONS, NAMESPACES, Resource
from holdfast.operators.metrics import RolloutMetrics
from holdfast.runtime.caches import Caches
from holdfast.runtime.metrics import Metrics

from tests.runtime.sources import FakeSource  # isort: skip

HELM = os.environ.get("HOLDFAST_HELM") or shutil.which("helm")
KUBECTL = shutil.which("kubectl")


def exist() -> set[str]:
    """The names of the metrics that an operator with all kinds has."""
    metrics = Metrics()
    caches = Caches(FakeSource(), random=lambda: 0.0)
    for kind in selection.rollout_kinds():
        caches.require(kind.resource)
    metrics.extend(RolloutMetrics(selection.rollout_kinds(), caches, lambda: datetime.now(UTC)))
    metrics.ask(leader=lambda: True)
    return set(re.findall(r"^# TYPE (\S+)", metrics.render().decode(), re.MULTILINE))


EXPRESSIONS = [alert.expression for alert in alerts.ALERTS] + [expression for _, expression in alerts.PANELS]


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_what_is_watched_exists(expression: str) -> None:
    there = exist()
    for name in re.findall(r"holdfast_[a-z_]+", expression):
        assert {name, name.removesuffix("_bucket")} & there, name


def test_every_alert_says_what_to_do() -> None:
    for alert in alerts.ALERTS:
        assert alert.rule()["annotations"]["description"].endswith(".")
    assert len({alert.name for alert in alerts.ALERTS}) == len(alerts.ALERTS)
    assert json.loads(alerts.dashboard())["panels"]


def test_the_kustomize_base_is_what_manifests_prints() -> None:
    files = packaging.kustomize()
    base = yaml.safe_load(files["base/kustomization.yaml"])
    objects = [each for name in base["resources"] for each in yaml.safe_load_all(files[f"base/{name}"])]
    assert objects == printed()
    optional = {name.split("/")[1] for name in files if name.startswith("components/")}
    assert optional == {"network-policy", "service-monitor", "prometheus-rule", "dashboard"}


@pytest.mark.skipif(KUBECTL is None, reason="needs kubectl")
def test_kubectl_builds_the_base(tmp_path: Path) -> None:
    packaging.write(packaging.kustomize(), tmp_path / "kustomize")
    built = subprocess.run(
        [str(KUBECTL), "kustomize", str(tmp_path / "kustomize" / "base")], capture_output=True, text=True, timeout=60
    )
    assert built.returncode == 0, built.stderr
    kinds = [each["kind"] for each in yaml.safe_load_all(built.stdout)]
    assert sorted(kinds) == sorted(each["kind"] for each in printed())


def test_a_package_is_written_again_without_what_it_no_longer_has(tmp_path: Path) -> None:
    packaging.write({"a": "1", "b/c": "2"}, tmp_path)
    packaging.write({"a": "3"}, tmp_path)
    assert (tmp_path / "a").read_text() == "3"
    assert not (tmp_path / "b/c").exists()


def test_a_directory_with_other_files_is_refused(tmp_path: Path) -> None:
    (tmp_path / "mine").touch()
    result = CliRunner().invoke(main, ["operator", "package", "chart", "--output", str(tmp_path)])
    assert result.exit_code == 2
    assert list(tmp_path.iterdir()) == [tmp_path / "mine"]


# --- the chart, with Helm itself


@pytest.fixture(scope="module")
def chart(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("chart")
    result = CliRunner().invoke(main, ["operator", "package", "chart", "--output", str(directory)])
    assert result.exit_code == 0, result.output
    return directory


def helm(*arguments: str, home: Path) -> subprocess.CompletedProcess[str]:
    places = {f"HELM_{each}_HOME": str(home / each) for each in ("CACHE", "CONFIG", "DATA")}
    return subprocess.run(
        [str(HELM), *arguments], env={**os.environ, **places}, capture_output=True, text=True, timeout=300
    )


needs_helm = pytest.mark.skipif(HELM is None, reason="needs helm, on the path or as HOLDFAST_HELM")


def rendered(chart: Path, home: Path, *options: str) -> list[dict[str, Any]]:
    answer = helm("template", "holdfast", str(chart), "--kube-version", "1.34.0", "-n", "ops", *options, home=home)
    assert answer.returncode == 0, answer.stderr
    return [each for each in yaml.safe_load_all(answer.stdout) if each]


def test_the_chart_has_a_value_for_every_operator(chart: Path) -> None:
    values = yaml.safe_load((chart / "values.yaml").read_text())
    assert values["operators"] == {each.name: True for each in selection.operators()}


@needs_helm
def test_the_chart_is_what_manifests_prints_and_the_definitions(chart: Path, tmp_path: Path) -> None:
    def names(objects: list[dict[str, Any]]) -> set[tuple[str, str]]:
        return {(each["kind"], each["metadata"]["name"]) for each in objects}

    own = names(printed("--namespace", "ops", "--webhooks")) - {("Namespace", "ops")}
    definitions = {
        ("CustomResourceDefinition", each.crd_name) for each in selection.kinds_of(selection.every_controller())
    }
    assert names(rendered(chart, tmp_path)) == own | definitions


OPTIONS = {
    "networkPolicy": "NetworkPolicy",
    "serviceMonitor": "ServiceMonitor",
    "prometheusRule": "PrometheusRule",
    "grafanaDashboard": "ConfigMap",
}


@needs_helm
@pytest.mark.parametrize("option", OPTIONS)
def test_an_option_adds_its_object_and_nothing_else(chart: Path, tmp_path: Path, option: str) -> None:
    with_it, without = rendered(chart, tmp_path, "--set", f"{option}=true"), rendered(chart, tmp_path)
    assert [each["kind"] for each in with_it if each not in without] == [OPTIONS[option]]


@needs_helm
def test_values_reach_the_deployment(chart: Path, tmp_path: Path) -> None:
    values = {
        "replicas": 3,
        "image": {"repository": "registry/holdfast", "tag": "2"},
        "operators": {each.name: each.name == "tenant" for each in selection.operators()},
        "settings": {"tenant.cluster-domain": "example.com"},
        "extraArguments": ["--log-level=debug"],
        "nodeSelector": {"role": "system"},
        "tolerations": [{"key": "system", "operator": "Exists"}],
        "priorityClassName": "system-cluster-critical",
        "crds": {"install": False},
        "webhooks": False,
    }
    (tmp_path / "values.yaml").write_text(yaml.safe_dump(values))
    objects = rendered(chart, tmp_path, "-f", str(tmp_path / "values.yaml"))
    (deployment,) = (each for each in objects if each["kind"] == "Deployment")
    pod = deployment["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    assert deployment["spec"]["replicas"] == 3
    assert container["image"] == "registry/holdfast:2"
    assert {
        "--controllers=tenant",
        "--set=tenant.cluster-domain=example.com",
        "--log-level=debug",
        "--no-install-crds",
    } <= set(container["args"])
    assert (pod["nodeSelector"], pod["tolerations"]) == (values["nodeSelector"], values["tolerations"])
    assert pod["priorityClassName"] == "system-cluster-critical"
    roles = {each["metadata"]["name"] for each in objects if each["kind"] == "ClusterRole"}
    assert roles == {"holdfast-operator-tenant", "holdfast-view", "holdfast-edit", "holdfast-admin"}
    assert not [each for each in objects if each["kind"] == "CustomResourceDefinition"]
    command = CliRunner().invoke(main, [*container["command"][1:], *container["args"], "--help"])
    assert command.exit_code == 0, command.output


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Path]:
    with apiserver(tmp_path) as (_, kubeconfig):
        yield kubeconfig


@needs_helm
def test_the_chart_is_installed_upgraded_and_uninstalled_without_a_trace(
    chart: Path, tmp_path: Path, server: Path
) -> None:
    place = ["--kubeconfig", str(server), "-n", "ops"]
    options = ["--set", "crds.keep=false,networkPolicy=true,grafanaDashboard=true"]

    async def namespaced(client: Client) -> None:
        await client.create(NAMESPACES, {"metadata": {"name": "ops"}})

    async def left(client: Client) -> list[str]:
        roles = Resource("rbac.authorization.k8s.io", "v1", "clusterroles", "ClusterRole", namespaced=False)
        found = [*(await client.list(DEFINITIONS)).objects, *(await client.list(roles)).objects]
        return [each.key.name for each in found if "holdfast" in each.key.name or "." in each.key.name]

    asked(server, namespaced)
    before = asked(server, left)
    for verb in ("install", "upgrade"):
        answer = helm(verb, "holdfast", str(chart), *place, *options, home=tmp_path)
        assert answer.returncode == 0, answer.stderr
    assert len(asked(server, left)) > len(before)
    answer = helm("uninstall", "holdfast", *place, home=tmp_path)
    assert answer.returncode == 0, answer.stderr
    assert asked(server, left) == before


def test_the_command_writes_a_package(tmp_path: Path) -> None:
    answer = subprocess.run(
        [*HOLDFAST, "operator", "package", "kustomize", "--output", str(tmp_path / "out")],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert answer.returncode == 0, answer.stderr
    assert (tmp_path / "out" / "base" / "kustomization.yaml").exists()
