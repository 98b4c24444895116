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
from unittest.mock import MagicMock, patch

import pytest
import yaml
from click.testing import CliRunner
from tests.cli.operator.test_commands import HOLDFAST, apiserver, asked, printed

from holdfast.cli.main import main
from holdfast.cli.operator import alerts, commands, definitions, packaging, pages, registration, selection
from holdfast.cli.operator.permissions import MUTATING, VALIDATING
from holdfast.cli.operator.registration import WebhookOptions
from holdfast.client.protocols import Client
from holdfast.client.resources import DEFINITIONS, NAMESPACES, Resource
from holdfast.operators.admission import Admission
from holdfast.operators.metrics import RolloutMetrics
from holdfast.runtime.caching.caches import Caches
from holdfast.runtime.metrics import Metrics

from tests.runtime.sources import FakeSource  # isort: skip

HELM = os.environ.get("HOLDFAST_HELM") or shutil.which("helm")
KUBECTL = shutil.which("kubectl")
LOADER = yaml.CSafeLoader if yaml.__with_libyaml__ else yaml.SafeLoader


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
    webhooks = {"webhooks", "webhooks-cert-manager"}
    assert optional == {"network-policy", "service-monitor", "prometheus-rule", "dashboard", "pages", *webhooks}


@pytest.mark.skipif(KUBECTL is None, reason="needs kubectl")
def test_kubectl_builds_the_base(tmp_path: Path) -> None:
    packaging.write(packaging.kustomize(), tmp_path / "kustomize")
    built = subprocess.run(
        [str(KUBECTL), "kustomize", str(tmp_path / "kustomize" / "base")], capture_output=True, text=True, timeout=60
    )
    assert built.returncode == 0, built.stderr
    kinds = [each["kind"] for each in yaml.safe_load_all(built.stdout)]
    assert sorted(kinds) == sorted(each["kind"] for each in printed())


@pytest.mark.skipif(KUBECTL is None, reason="needs kubectl")
@pytest.mark.parametrize(
    ("component", "options"),
    [("webhooks", ["--webhooks"]), ("webhooks-cert-manager", ["--webhooks", "--cert-manager"])],
)
def test_kubectl_builds_the_base_with_webhooks(tmp_path: Path, component: str, options: list[str]) -> None:
    packaging.write(packaging.kustomize(), tmp_path / "kustomize")
    (tmp_path / "overlay").mkdir()
    overlay = {"resources": ["../kustomize/base"], "components": [f"../kustomize/components/{component}"]}
    (tmp_path / "overlay/kustomization.yaml").write_text(yaml.safe_dump(overlay))
    built = subprocess.run(
        [str(KUBECTL), "kustomize", str(tmp_path / "overlay")], capture_output=True, text=True, timeout=60
    )
    assert built.returncode == 0, built.stderr

    def of(objects: list[dict[str, Any]]) -> dict[tuple[str, str], dict[str, Any]]:
        return {(each["kind"], each["metadata"]["name"]): each for each in objects}

    made, meant = of(list(yaml.load_all(built.stdout, Loader=LOADER))), of(printed(*options))
    assert made.keys() == meant.keys()
    deployment = ("Deployment", "holdfast-operator")
    (arguments, pod), (wanted, wanted_pod) = deployed([made.pop(deployment)]), deployed([meant.pop(deployment)])
    assert sorted(arguments) == sorted(wanted)
    assert pod["volumes"] == wanted_pod["volumes"]
    assert made == meant


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
    return [each for each in yaml.load_all(answer.stdout, Loader=LOADER) if each]


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


def deployed(objects: list[dict[str, Any]]) -> tuple[list[str], dict[str, Any]]:
    """The arguments and the pod of the Deployment among objects."""
    (deployment,) = (each for each in objects if each["kind"] == "Deployment")
    pod = deployment["spec"]["template"]["spec"]
    return pod["containers"][0]["args"], pod


SELECTOR = {"matchLabels": {"team": "a"}, "matchExpressions": [{"key": "env", "operator": "NotIn", "values": ["dev"]}]}
NAMES = [each.name for each in selection.operators()]

EQUIVALENT: dict[str, tuple[dict[str, Any], list[str]]] = {
    "by default": ({}, ["--webhooks"]),
    "without webhooks": ({"webhooks": {"enabled": False}}, []),
    "strict": ({"webhooks": {"failurePolicy": "Fail"}}, ["--webhooks", "--webhook-strict"]),
    "with exempt namespaces": (
        {"webhooks": {"exemptNamespaces": ["ci", "7"]}},
        ["--webhooks", "--webhook-exempt", "ci", "--webhook-exempt", "7"],
    ),
    "with selected namespaces": (
        {"webhooks": {"namespaceSelector": SELECTOR}},
        ["--webhooks", "--webhook-selector", "team=a,env notin (dev)"],
    ),
    "with cert-manager": ({"webhooks": {"certManager": True}}, ["--webhooks", "--cert-manager"]),
    **{
        f"{name} alone": (
            {"operators": {each: each == name for each in NAMES}},
            ["--webhooks", *(f"--controllers={each.name}" for each in selection.named(name)[0].controllers)],
        )
        for name in NAMES
    },
}
"""Values of the chart, and the options of ``holdfast operator manifests`` that mean the same."""


def sorted_expressions(objects: list[dict[str, Any]]) -> list[dict[str, Any]]:
    for each in objects:
        for webhook in each.get("webhooks", ()):
            webhook["namespaceSelector"]["matchExpressions"].sort(key=str)
    return objects


APART = ("Namespace", "CustomResourceDefinition", "Deployment")
"""What the chart and the manifests do differently: Helm makes the namespace, and the chart has the definitions."""


@needs_helm
@pytest.mark.parametrize("name", EQUIVALENT)
def test_the_chart_with_values_is_what_manifests_prints_with_options(chart: Path, tmp_path: Path, name: str) -> None:
    values, options = EQUIVALENT[name]
    (tmp_path / "values.yaml").write_text(yaml.safe_dump({"crds": {"install": False}, **values}))
    made = sorted_expressions(rendered(chart, tmp_path, "-f", str(tmp_path / "values.yaml")))
    meant = sorted_expressions(printed("--namespace", "ops", *options))

    def of(objects: list[dict[str, Any]]) -> dict[tuple[str, str], dict[str, Any]]:
        return {(each["kind"], each["metadata"]["name"]): each for each in objects if each["kind"] not in APART}

    ours, theirs = of(made), of(meant)
    for key in [key for key in theirs if key[1] == "holdfast-operator-definitions"]:
        # The operator installs definitions where the chart does not.
        del theirs[key]
        ours.pop(key, None)
    # The roles of users are for all kinds that the chart installs.
    for key in [("ClusterRole", f"holdfast-{role}") for role in ("view", "edit", "admin")]:
        users, some = ours.pop(key), theirs.pop(key)
        granted = {each for rule in users["rules"] for each in rule["resources"]}
        wanted = {each for rule in some["rules"] for each in rule["resources"]}
        assert wanted <= granted
    assert ours.keys() == theirs.keys()
    for key, wire in theirs.items():
        assert ours[key] == wire
    (arguments, pod), (wanted, wanted_pod) = deployed(made), deployed(meant)
    assert sorted(map(str, pod["volumes"])) == sorted(map(str, wanted_pod["volumes"]))
    assert options_of(arguments) == options_of(wanted)


def options_of(arguments: list[str]) -> WebhookOptions | None:
    """The options of webhooks that the command reads from its arguments."""
    with patch.object(commands, "operate", new_callable=MagicMock) as operate, patch.object(commands.asyncio, "Runner"):
        result = CliRunner().invoke(main, ["operator", "run", *arguments])
    assert result.exit_code == 0, result.output
    (run,) = operate.call_args.args
    options: WebhookOptions | None = run.webhooks
    return options


@needs_helm
@pytest.mark.parametrize("name", ["by default", "with selected namespaces", "with cert-manager"])
def test_the_chart_registers_webhooks_as_the_operator_does(chart: Path, tmp_path: Path, name: str) -> None:
    values, _ = EQUIVALENT[name]
    (tmp_path / "values.yaml").write_text(yaml.safe_dump(values))
    made = sorted_expressions(rendered(chart, tmp_path, "-f", str(tmp_path / "values.yaml")))
    options = options_of(deployed(made)[0])
    there = {each["kind"]: each for each in made if each["kind"].endswith("WebhookConfiguration")}
    assert options is not None
    admission = Admission(selection.operators())
    for resource, wire in registration.configurations(options, b"", admission, "ops"):
        (wanted,) = sorted_expressions([wire])
        assert there[resource.kind]["webhooks"] == wanted["webhooks"]
        assert there[resource.kind]["metadata"].get("annotations") == wanted["metadata"].get("annotations")
    definitions_made = {each["metadata"]["name"]: each for each in made if each["kind"] == "CustomResourceDefinition"}
    registered = registration.Registered.of(options, b"")
    for kind in selection.kinds_of(selection.every_controller()):
        ours = definitions.marked(kind, conversion=registered.conversion, annotations=registered.annotations)
        assert definitions.is_current(definitions_made[kind.crd_name], ours), "the operator has nothing to write"


@needs_helm
@pytest.mark.parametrize(
    ("values", "said"),
    [
        ("webhooks=true", "webhooks"),
        ("webhooks.failurePolicy=fail", "failurePolicy"),
        ("operators.workloads=false", "workloads"),
        ("replica=3", "replica"),
        ("replicas=many", "replicas"),
        ("crds.keep=often", "keep"),
    ],
)
def test_values_that_the_chart_does_not_know_are_refused_by_name(
    chart: Path, tmp_path: Path, values: str, said: str
) -> None:
    answer = helm("template", "holdfast", str(chart), "--kube-version", "1.34.0", "--set", values, home=tmp_path)
    assert answer.returncode != 0
    assert said in answer.stderr


OPTIONS = {
    "networkPolicy": "NetworkPolicy",
    "serviceMonitor": "ServiceMonitor",
    "prometheusRule": "PrometheusRule",
    "grafanaDashboard": "ConfigMap",
    "dashboard.enabled": "Deployment Service ServiceAccount",
}


@needs_helm
@pytest.mark.parametrize("option", OPTIONS)
def test_an_option_adds_its_object_and_nothing_else(chart: Path, tmp_path: Path, option: str) -> None:
    with_it, without = (
        rendered(chart, tmp_path, "--set", f"crds.install=false,{option}={on}") for on in ("true", "false")
    )
    assert sorted(each["kind"] for each in with_it if each not in without) == OPTIONS[option].split()


def test_the_dashboard_of_the_chart_runs_with_its_arguments_and_may_do_nothing_itself(chart: Path) -> None:
    template = (chart / "templates" / "pages.yaml").read_text()
    assert template.startswith("{{- if .Values.dashboard.enabled }}\n")
    assert "{{- if .Values.dashboard.allowChanges }}" in template
    assert yaml.safe_load((chart / "values.yaml").read_text())["dashboard"] == {
        "enabled": False,
        "allowChanges": False,
        "hosts": [],
    }
    made = pages.manifests("ops", "holdfast:1")
    assert [each["kind"] for each in made] == ["ServiceAccount", "Deployment", "Service"]
    (container,) = made[1]["spec"]["template"]["spec"]["containers"]
    command = CliRunner().invoke(main, [*container["command"][1:], *container["args"], "--help"])
    assert command.exit_code == 0, command.output


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
        "webhooks": {"enabled": False},
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


UPGRADES: list[tuple[str, dict[str, Any]]] = [
    ("install", {}),
    ("upgrade", {"replicas": 1, "networkPolicy": True, "grafanaDashboard": True, "prometheusRule": True}),
    ("upgrade", {"serviceMonitor": True, "webhooks": {"certManager": True, "namespaceSelector": SELECTOR}}),
    ("upgrade", {"operators": {each: each == "tenant" for each in NAMES}, "webhooks": {"enabled": False}}),
    ("upgrade", {"webhooks": {"failurePolicy": "Fail"}}),
]
"""Values with which the chart is installed and upgraded, one after another."""


def elsewhere() -> Iterator[dict[str, Any]]:
    """Definitions of the kinds of other projects that the chart has objects of."""
    others = {
        "monitoring.coreos.com": ("ServiceMonitor", "PrometheusRule"),
        "cert-manager.io": ("Issuer", "Certificate"),
    }
    for group, kinds in others.items():
        for kind in kinds:
            plural = f"{kind.lower()}s"
            schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
            version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
            names = {"kind": kind, "plural": plural, "singular": kind.lower(), "listKind": f"{kind}List"}
            spec = {"group": group, "scope": "Namespaced", "names": names, "versions": [version]}
            yield {"metadata": {"name": f"{plural}.{group}"}, "spec": spec}


def installed_resources() -> list[Resource]:
    """What an installation can leave behind: every kind of the chart with all options."""
    named = [
        ("", "v1", "serviceaccounts", "ServiceAccount", True),
        ("", "v1", "services", "Service", True),
        ("", "v1", "secrets", "Secret", True),
        ("", "v1", "configmaps", "ConfigMap", True),
        ("apps", "v1", "deployments", "Deployment", True),
        ("policy", "v1", "poddisruptionbudgets", "PodDisruptionBudget", True),
        ("coordination.k8s.io", "v1", "leases", "Lease", True),
        ("networking.k8s.io", "v1", "networkpolicies", "NetworkPolicy", True),
        ("rbac.authorization.k8s.io", "v1", "roles", "Role", True),
        ("rbac.authorization.k8s.io", "v1", "rolebindings", "RoleBinding", True),
        ("rbac.authorization.k8s.io", "v1", "clusterroles", "ClusterRole", False),
        ("rbac.authorization.k8s.io", "v1", "clusterrolebindings", "ClusterRoleBinding", False),
        ("monitoring.coreos.com", "v1", "servicemonitors", "ServiceMonitor", True),
        ("monitoring.coreos.com", "v1", "prometheusrules", "PrometheusRule", True),
        ("cert-manager.io", "v1", "issuers", "Issuer", True),
        ("cert-manager.io", "v1", "certificates", "Certificate", True),
    ]
    resources = [Resource(*each[:4], namespaced=each[4]) for each in named]
    return [*resources, DEFINITIONS, MUTATING, VALIDATING]


@needs_helm
def test_the_chart_is_installed_upgraded_and_uninstalled_without_a_trace(
    chart: Path, tmp_path: Path, server: Path
) -> None:
    place = ["--kubeconfig", str(server), "-n", "ops"]

    async def prepared(client: Client) -> None:
        await client.create(NAMESPACES, {"metadata": {"name": "ops"}})
        for definition in elsewhere():
            await client.create(DEFINITIONS, definition)

    async def left(client: Client) -> set[tuple[str, str]]:
        found: set[tuple[str, str]] = set()
        for resource in installed_resources():
            found |= {(resource.plural, str(each.key)) for each in (await client.list(resource)).objects}
        return {(plural, key) for plural, key in found if plural != "events"}

    asked(server, prepared)
    before = asked(server, left)
    for verb, values in UPGRADES:
        (tmp_path / "values.yaml").write_text(yaml.safe_dump({"crds": {"keep": False}, **values}))
        more = ["-f", str(tmp_path / "values.yaml")]
        answer = helm(verb, "holdfast", str(chart), *place, *more, home=tmp_path)
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
