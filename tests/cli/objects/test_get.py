"""``holdfast get``: what it shows, in every form, and that it is what kubectl shows."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess

import pytest
import yaml
from tests.cli.api_runs import WIDGETS, Cli, configmap, deployment, pod, widget

from holdfast.cli.manifests import documents
from holdfast.cli.manifests.documents import Source
from holdfast.client.resources import CONFIG_MAPS
from holdfast.meta.objects import Key

KUBECTL = shutil.which("kubectl")

ODD = {
    "bool": "yes", "number": "1e3", "html": "a <b> & c", "time": "2024-01-01T00:00:00Z", "colon": "a: b",
    "empty": "", "lines": "a\nb\n", "blank": "a\n  b \nc", "tab": "a\tb", "sixty": "1:30", "hex": "0x1f",
    "dash": "- a", "null": "~", "unicode": "ü→", "y": "n", "quote": "it's \"so\"", "long": "word " * 60,
}  # fmt: skip
"""Texts that YAML and JSON can get wrong."""


@pytest.fixture
def team(cli: Cli) -> Cli:
    """A namespace with a little of everything."""
    cli.apply(
        deployment("web", labels={"app": "web"}),
        configmap("conf", annotations=ODD),
        pod("one", labels={"app": "web", "example.com/tier": "front"}),
        pod("two"),
        {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"}, "spec": {"ports": [{"port": 80}]}},
    )
    return cli


def ageless(text: str) -> str:
    """A text without ages, which tick between one look and the next."""
    return re.sub(r"\b\d+(s|m|h)(\d+s)?(?= |$)", "AGE", text, flags=re.MULTILINE)


QUESTIONS = [
    "pods",
    "po,svc,cm",
    "pods -o wide",
    "pods --show-labels",
    "pods -L app,example.com/tier",
    "pods --no-headers",
    "pods -l app=web",
    "pods -l app=none",
    "pods -A --field-selector=metadata.name=two",
    "pods one two",
    "pod/one deployment.apps/web",
    "pod one -o name",
    "pods,deploy -o name",
    "all",
    "cm conf -o yaml",
    "cm conf -o json",
    "cm conf -ojson --show-managed-fields",
    "pods,svc -o yaml",
    "all -o json",
    "pods -o jsonpath={.items[*].metadata.name}",
    "pod one -o=jsonpath={.metadata.labels.app}",
    "pods -o custom-columns=NAME:.metadata.name,NODE:.spec.nodeName,L:.metadata.labels.app",
    "pods -o custom-columns=NAME:metadata.name --no-headers",
    "pods --sort-by=.metadata.name",
    "pod one --ignore-not-found",
    "pod none --ignore-not-found",
    "pod one none",
    "secrets",
    "pods -o name -l app=none",
    "pods -o json -l app=none",
    "nodes",
    "nodes,pods",
    "ns default -A",
    "ns,pods -A --field-selector=metadata.name=two",
    "ns,pods -A --field-selector=metadata.name=default",
    "pod one -o jsonpath={.status.none}",
]
"""Each is asked of kubectl and of holdfast; they must answer alike, errors and exit codes included."""


@pytest.mark.skipif(KUBECTL is None, reason="kubectl is not installed")
def test_everything_is_shown_as_kubectl_shows_it(team: Cli) -> None:
    assert KUBECTL is not None
    for question in QUESTIONS:
        words = question.split()
        theirs = subprocess.run(
            [KUBECTL, "get", "-n", team.namespace, *words],
            capture_output=True,
            text=True,
            check=False,
            env=os.environ | team.environment,
        )
        ours = team.run("get", *words)
        assert ageless(ours.stdout) == ageless(theirs.stdout), question
        assert (ours.stderr, ours.exit_code) == (theirs.stderr, theirs.returncode), question


def test_a_table_shows_each_object_of_a_kind(team: Cli) -> None:
    assert ageless(team("get", "pods")) == (
        "NAME   READY   STATUS    RESTARTS   AGE\none    0/1     Pending   0          AGE\n"
        "two    0/1     Pending   0          AGE\n"
    )


def test_several_kinds_are_told_apart(team: Cli) -> None:
    lines = team("get", "pods,services", "--no-headers").splitlines()
    assert [line.split()[0] if line else "" for line in lines] == ["pod/one", "pod/two", "", "service/web"]


def test_yaml_is_read_back_as_it_was_by_anybody(team: Cli) -> None:
    text = team("get", "cm", "conf", "-o", "yaml")
    assert yaml.safe_load(text)["metadata"]["annotations"] == ODD
    (document,) = documents.parse(Source("conf", text))
    assert document.value["metadata"]["annotations"] == ODD
    assert document.cautions == ()


def test_managed_fields_are_shown_only_if_they_are_asked_for(team: Cli) -> None:
    assert "managedFields" not in team("get", "pod", "one", "-o", "yaml")
    assert "managedFields" in team("get", "pod", "one", "-o", "yaml", "--show-managed-fields")


def test_objects_are_shown_by_the_files_that_name_them(team: Cli) -> None:
    given = f"{json.dumps(pod('one'))}\n---\n{json.dumps(configmap('conf'))}"
    assert team("get", "-f", "-", "-o", "name", given=given) == "pod/one\nconfigmap/conf\n"


def test_kinds_of_ones_own_go_by_all_their_names(cli: Cli) -> None:
    cli.apply(WIDGETS, widget("big"))
    for name in ("widgets", "widget", "wd", "Widget", "widgets.example.com", "widgets.v1.example.com"):
        assert cli("get", name, "-o", "name") == "widget.example.com/big\n"


def test_numbers_in_names_are_sorted_as_numbers(cli: Cli) -> None:
    cli.apply(*(configmap(f"c-{number}") for number in (10, 9, 100)))
    named = cli("get", "cm", "-o", "name", "--sort-by=.metadata.name", "-l", "!none")
    assert named.split() == ["configmap/c-9", "configmap/c-10", "configmap/c-100"]


def test_a_namespace_that_is_empty_is_told_on_standard_error(cli: Cli) -> None:
    result = cli.run("get", "pods")
    assert (result.exit_code, result.stdout) == (0, "")
    assert result.stderr == f"No resources found in {cli.namespace} namespace.\n"


@pytest.mark.parametrize(
    ("question", "message"),
    [
        ("", "error: no type is named\nhint: write a type"),
        ("pods one svc/web", "error: 'pods' stands beside 'svc/web'"),
        ("pods/", "error: 'pods/' is not TYPE/NAME"),
        ("pods one -A", "error: a resource cannot be retrieved by name across all namespaces"),
        ("pods one -l app=web", "error: a name and a selector are given"),
        ("pods -o toml", "error: -o: 'toml' is not a format\nhint: write wide, json,"),
        ("pods -o go-template={{.metadata.name}}", "error: -o: go-template is Go's\nhint: write it as -o jsonpath="),
        ("pods -o jsonpath", "error: -o: jsonpath needs a value\nhint: write -o jsonpath="),
        ("pods -o jsonpath={.a", "error: -o: "),
        ("pods -o custom-columns=NAME", "error: -o: 'NAME' is not a column; write HEADING:PATH"),
        ("pods --sort-by={.a", "error: invalid value for --sort-by: "),
        ("pods,svc -w", "error: only one object, or all of one type, can be watched, and this is 2"),
        ("pods -f x.yaml", "error: -f names the objects already"),
    ],
)
def test_mistakes_are_explained_with_what_to_write(cli: Cli, question: str, message: str) -> None:
    assert cli.refused("get", *question.split(), code=2).startswith(message)


def test_a_kind_that_the_server_does_not_have_is_told_with_the_nearest(cli: Cli) -> None:
    assert cli.refused("get", "deploymnets") == (
        "error: the server has no resource 'deploymnets'; did you mean deployments.apps?\n"
    )


def changed(cli: Cli, name: str, **data: str) -> None:
    key = Key(cli.namespace, name)
    cli.asked(lambda client: client.patch(CONFIG_MAPS, key, {"data": data}))


def test_a_watch_shows_what_is_and_then_what_changes_below_one_headline(cli: Cli) -> None:
    cli.apply(configmap("first"))
    watching = cli.start("get", "cm", "--watch")
    assert watching.stdout is not None
    try:
        assert watching.stdout.readline().split() == ["NAME", "DATA", "AGE"]
        assert watching.stdout.readline().split()[:2] == ["first", "1"]
        changed(cli, "first", more="x")
        assert watching.stdout.readline().split()[:2] == ["first", "2"]
        cli.apply(configmap("other"))
        assert watching.stdout.readline().startswith("other   1      ")
    finally:
        watching.send_signal(signal.SIGINT)
        _, errors = watching.communicate(timeout=10)
    assert (watching.returncode, errors.strip()) == (130, "")


def test_a_watch_of_one_object_prints_each_version_of_it_for_programs(cli: Cli) -> None:
    cli.apply(configmap("first"), configmap("other"))
    watching = cli.start("get", "cm", "first", "--watch", "-o", "jsonpath={.data.k}{'\\n'}")
    assert watching.stdout is not None
    try:
        assert watching.stdout.readline() == "v\n"
        changed(cli, "other", k="not shown")
        changed(cli, "first", k="shown")
        assert watching.stdout.readline() == "shown\n"
    finally:
        watching.send_signal(signal.SIGINT)
        watching.communicate(timeout=10)


def test_a_stream_of_pages_is_shown_as_one_table(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("holdfast.cli.objects.fetching._PAGE", "2")
    cli.apply(*(configmap(f"c{number}") for number in range(5)))
    assert len(cli("get", "cm", "--no-headers").splitlines()) == 5


def test_a_server_that_makes_no_tables_is_shown_by_names_and_ages(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("holdfast.cli.objects.fetching._ACCEPT", {"accept": "application/json"})
    cli.apply(pod("one"))
    assert ageless(cli("get", "pods")) == "NAME   AGE\none    AGE\n"
    assert ageless(cli("get", "pod", "one")) == "NAME   AGE\none    AGE\n"
