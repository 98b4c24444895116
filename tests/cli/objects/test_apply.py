"""``holdfast apply``: what it reads, what it sends, and what it says of each object."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from tests.cli.api_runs import WIDGETS, Cli, configmap, deployment, widget

from holdfast.cli import main
from holdfast.cli.objects.apply import MANAGER
from holdfast.client.resources import DEPLOYMENTS
from holdfast.meta.objects import Key


def write(path: Path, *objects: dict[str, Any]) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n---\n".join(json.dumps(each, indent=1) for each in objects))
    return str(path)


def test_objects_are_created_configured_and_left_as_they_are(cli: Cli) -> None:
    web = deployment("web")
    assert cli.apply(web, configmap("a")) == "deployment.apps/web created\nconfigmap/a created\n"
    assert cli.apply(web, configmap("a")) == "deployment.apps/web unchanged\nconfigmap/a unchanged\n"
    web["spec"]["replicas"] = 5
    assert cli.apply(web, configmap("a")) == "deployment.apps/web configured\nconfigmap/a unchanged\n"
    assert cli.object("deploy", "web")["spec"]["replicas"] == 5


def test_what_is_applied_belongs_to_a_manager_of_its_own(cli: Cli) -> None:
    cli.apply(configmap("a"))
    fields = json.loads(cli("get", "cm", "a", "-o", "json", "--show-managed-fields"))["metadata"]["managedFields"]
    assert [(each["manager"], each["operation"]) for each in fields] == [(MANAGER, "Apply")]


def test_directories_are_read_in_order_and_deep_if_asked(cli: Cli, tmp_path: Path) -> None:
    for name in ("b.yaml", "a.json", "ignored.txt", "deep/c.yml"):
        write(tmp_path / "all" / name, configmap(Path(name).stem))
    shallow = "configmap/a created (dry run)\nconfigmap/b created (dry run)\n"
    assert cli("apply", "-f", str(tmp_path / "all"), "--dry-run=client") == shallow
    assert cli("apply", "-R", "-f", str(tmp_path / "all")) == (
        "configmap/a created\nconfigmap/b created\nconfigmap/c created\n"
    )


def test_a_dry_run_changes_nothing(cli: Cli) -> None:
    web = json.dumps(deployment("web"))
    assert cli("apply", "-f", "-", "--dry-run=client", given=web) == "deployment.apps/web created (dry run)\n"
    assert cli("apply", "-f", "-", "--dry-run=server", given=web) == "deployment.apps/web created (server dry run)\n"
    assert cli("get", "deploy", "web", "--ignore-not-found") == ""
    cli.apply(deployment("web"))
    assert cli("apply", "-f", "-", "--dry-run=server", given=web) == "deployment.apps/web unchanged (server dry run)\n"
    more = json.dumps(deployment("web", replicas=7))
    assert cli("apply", "-f", "-", "--dry-run=server", given=more) == (
        "deployment.apps/web configured (server dry run)\n"
    )
    assert cli.object("deploy", "web")["spec"]["replicas"] == 2


def test_namespaces_and_definitions_go_before_what_needs_them(cli: Cli) -> None:
    namespace = f"{cli.namespace}-new"
    team = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}
    inside = replace(cli, namespace=namespace)
    applied = inside.apply(widget("w"), configmap("a"), WIDGETS, team)
    assert [line.split()[0] for line in applied.splitlines()] == [
        f"namespace/{namespace}",
        "customresourcedefinition.apiextensions.k8s.io/widgets.example.com",
        "widget.example.com/w",
        "configmap/a",
    ]


def test_a_dry_run_takes_definitions_that_are_about_to_be_for_granted(cli: Cli) -> None:
    gadgets = json.loads(json.dumps(WIDGETS).replace("widget", "gadget").replace("Widget", "Gadget"))
    gadget = widget("g") | {"kind": "Gadget"}
    given = json.dumps({"apiVersion": "v1", "kind": "List", "items": [gadget, gadgets]})
    assert cli("apply", "-f", "-", "--dry-run=client", given=given) == (
        "customresourcedefinition.apiextensions.k8s.io/gadgets.example.com created (dry run)\n"
        "gadget.example.com/g created (dry run)\n"
    )


def test_one_that_is_refused_keeps_no_other_from_being_applied(cli: Cli, tmp_path: Path) -> None:
    bad = deployment("bad")
    bad["spec"]["replicas"] = -1
    path = write(tmp_path / "all.yaml", configmap("a"), bad, configmap("b"))
    result = cli.run("apply", "-f", path)
    assert (result.exit_code, result.stdout) == (1, "configmap/a created\nconfigmap/b created\n")
    title, excerpt, mark = result.stderr.splitlines()
    place, path_of, message = title.removeprefix("error: ").split(": ", 2)
    assert (path_of, message) == ("spec.replicas", "Invalid value: -1: must be greater than or equal to 0")
    line, column = map(int, place.removeprefix(f"{path}:").split(":"))
    assert "replicas" in Path(path).read_text().splitlines()[line - 1]
    assert '"replicas": -1' in excerpt
    assert mark.index("^") - mark.index("|") == column + 1


def test_every_problem_is_shown_at_its_line_with_what_to_write_instead(cli: Cli, tmp_path: Path) -> None:
    file = tmp_path / "bad.yaml"
    file.write_text(
        """apiVersion: apps/v1
kind: Deployment
metadata: {name: bad}
spec:
  replicas: three
  selector: {matchLabels: {a: b}}
  strategy: {type: Rolling}
  template:
    metadata: {labels: {a: b}}
    spec:
      container: [{name: x, image: web}]
"""
    )
    assert cli.refused("apply", "-f", str(file)) == (
        f"""error: {file}:5:3: spec.replicas: must be an integer, not a string
    5 |   replicas: three
      |   ^
error: {file}:10:5: spec.template.spec.containers: is required
   10 |     spec:
      |     ^
hint: Containers of the pod; at least one
error: {file}:11:7: spec.template.spec.container: unknown field
   11 |       container: [{{name: x, image: web}}]
      |       ^
hint: did you mean containers?
"""
    )


def test_a_kind_of_holdfast_is_explained_as_plan_explains_it(cli: Cli, tmp_path: Path) -> None:
    definition = CliRunner().invoke(main, ["crds", "--kind", "Workload"]).output
    assert cli.run("apply", "-f", "-", given=definition).exit_code == 0
    file = tmp_path / "bad.yaml"
    file.write_text(
        "apiVersion: cloudless.io/v1\nkind: Workload\nmetadata: {name: bad}\n"
        "spec:\n  image: web:1\n  rollout:\n    maxSurg: 1\n    strategy: Rolling\n"
    )
    planned = CliRunner().invoke(main, ["plan", "-f", str(file)]).output
    assert "hint: did you mean maxSurge?" in planned
    assert cli.refused("apply", "-f", str(file)) == planned


def test_a_value_that_only_the_server_refuses_has_its_line_and_the_nearest_that_is_supported(cli: Cli) -> None:
    wrong = deployment("web")
    wrong["spec"]["template"]["spec"]["restartPolicy"] = "Allways"
    said = cli.refused("apply", "-f", "-", given=json.dumps(wrong, indent=1))
    assert "spec.template.spec.restartPolicy: " in said
    assert "hint: did you mean Always?" in said


def test_a_namespace_that_does_not_exist_is_said_at_its_line(cli: Cli) -> None:
    lost = configmap("a", namespace="nowhere")
    said = Cli(cli.kubeconfig, cli.directory, "nowhere").refused("apply", "-f", "-", given=json.dumps(lost))
    assert "metadata.namespace: there is no namespace 'nowhere'" in said
    assert "kind: Namespace, metadata: {name: nowhere}" in said


def test_a_field_that_nobody_knows_is_refused_unless_that_is_wished(cli: Cli) -> None:
    odd = json.dumps(configmap("a") | {"dta": {}})
    assert "dta" in cli.refused("apply", "-f", "-", given=odd)


def test_fields_of_somebody_else_are_taken_over_only_by_force(cli: Cli) -> None:
    cli.apply(deployment("web", replicas=2))
    key = Key(cli.namespace, "web")
    cli.asked(lambda client: client.patch(DEPLOYMENTS, key, {"spec": {"replicas": 4}}))
    given = json.dumps(deployment("web", replicas=3))
    said = cli.refused("apply", "-f", "-", given=given)
    assert said.startswith(
        'Error from server (Conflict): error when applying "<stdin>:1:1": Apply failed with 1 conflict'
    )
    assert "hint: --force-conflicts takes these fields over" in said
    assert cli("apply", "-f", "-", "--force-conflicts", given=given) == "deployment.apps/web configured\n"


def test_nothing_is_sent_before_everything_is_checked(cli: Cli, tmp_path: Path) -> None:
    good = write(tmp_path / "good.yaml", configmap("good"))
    nameless = write(tmp_path / "nameless.yaml", {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {}})
    kindless = write(tmp_path / "kindless.yaml", {"apiVersion": "v1", "metadata": {"name": "x"}})
    said = cli.refused("apply", "-f", good, "-f", nameless, "-f", kindless, code=2)
    assert f"error: {nameless}:4:2: metadata.name: must be a text" in said
    assert f"error: {kindless}:1:1: kind: must be a text" in said
    assert cli("get", "cm", "good", "--ignore-not-found") == ""


def test_kinds_that_the_server_does_not_have_are_told_by_place(cli: Cli, tmp_path: Path) -> None:
    path = write(tmp_path / "odd.yaml", configmap("good"), {**configmap("x"), "kind": "ConfigMpa"})
    said = cli.refused("apply", "-f", path, code=2)
    assert "kind: the server has no v1 ConfigMpa; did you mean configmaps?" in said
    assert cli("get", "cm", "good", "--ignore-not-found") == ""


def test_a_namespace_that_contradicts_the_option_is_told(cli: Cli) -> None:
    said = cli.refused("apply", "-f", "-", given=json.dumps(configmap("a", namespace="elsewhere")), code=2)
    assert f"metadata.namespace: the object is in namespace 'elsewhere', and --namespace says '{cli.namespace}'" in said


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("", "error: nothing is given to apply; write -f FILE"),
        ("-f https://example.com/a.yaml", "error: https://example.com/a.yaml: manifests are not fetched from URLs"),
        ("-f none.yaml", "error: none.yaml: there is no such file"),
        ("-f x --prune", "error: --prune: apply deletes nothing"),
        ("-f x --server-side=false", "error: only server-side apply is there"),
    ],
)
def test_mistakes_are_explained(cli: Cli, words: str, message: str) -> None:
    assert cli.refused("apply", *words.split(), code=2).startswith(message)


def test_an_empty_directory_is_told(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    said = cli.refused("apply", "-f", str(tmp_path / "empty"), code=2)
    assert "there is no .json, .yaml or .yml file in it" in said


def test_values_that_kubectl_reads_otherwise_are_noted(cli: Cli) -> None:
    given = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {power: On}\n"
    result = cli.run("apply", "-f", "-", given=given)
    assert (result.exit_code, result.stdout) == (0, "configmap/a created\n")
    assert result.stderr.startswith("note: <stdin>:4:15: kubectl reads a bare On as a boolean")
