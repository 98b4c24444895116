"""``holdfast crds``: definitions that an API server takes, in a stable order."""

from __future__ import annotations

import json
from typing import Any

import pytest
from click.testing import CliRunner, Result

from holdfast import kinds
from holdfast.apiserver.crd import resource_types
from holdfast.cli import main
from holdfast.cli.manifests.documents import Source, parse
from holdfast.cli.operator.definitions import marked


def invoke(*args: str) -> Result:
    return CliRunner().invoke(main, ["crds", *args])


def test_every_kind_is_printed_once_and_comes_back_as_it_was() -> None:
    result = invoke()
    found = parse(Source("crds", result.stdout))
    assert [document.value for document in found] == [marked(kind) for kind in kinds.ALL]
    assert result.stdout.count("---\n") == len(kinds.ALL)


def test_every_printed_definition_is_valid_and_means_the_same_to_kubectl() -> None:
    for document in parse(Source("crds", invoke().stdout)):
        assert resource_types.problems(document.value, None) == []
        assert document.cautions == ()


def test_the_output_is_the_same_every_time() -> None:
    assert invoke().stdout == invoke().stdout


@pytest.mark.parametrize("name", ["Workload", "workload", "workloads", "wl", "WL", "workloads.cloudless.io"])
def test_a_kind_goes_by_all_of_its_names(name: str) -> None:
    (document,) = parse(Source("crds", invoke("--kind", name).stdout))
    assert document.value["metadata"]["name"] == "workloads.cloudless.io"


def test_kinds_are_printed_in_the_order_asked_for_and_once() -> None:
    found: dict[str, Any] = json.loads(
        invoke("--kind", "wl", "--kind", "pcs", "--kind", "Workload", "-o", "json").stdout
    )
    assert [item["spec"]["names"]["kind"] for item in found["items"]] == ["Workload", "PodCliqueSet"]
    assert (found["apiVersion"], found["kind"]) == ("v1", "List")


def test_one_kind_as_json_is_the_definition_itself() -> None:
    found = json.loads(invoke("--kind", "tenant", "-o", "json").stdout)
    assert found["kind"] == "CustomResourceDefinition"


def test_the_list_names_every_kind() -> None:
    header, *lines = invoke("--list").stdout.splitlines()
    assert header.split() == ["NAME", "SHORT", "NAMES", "API", "VERSION", "KIND"]
    assert [line.split()[-1] for line in lines] == [kind.name for kind in kinds.ALL]
    assert invoke("--list", "--kind", "wl").stdout.splitlines()[1].split() == [
        "workloads",
        "wl",
        "cloudless.io/v1",
        "Workload",
    ]


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["--kind", "Worklaod"], "error: --kind: there is no kind 'Worklaod'\nhint: did you mean Workload?\n"),
        (
            ["--kind", "Deployment9"],
            "error: --kind: there is no kind 'Deployment9'\nhint: the kinds are PodCliqueSet, ",
        ),
        (["--list", "-o", "json"], "error: --list prints a table; leave out -o, or --list\n"),
        (["-o", "xml"], "error: invalid value for '-o' / '--output': 'xml' is not one of 'yaml', 'json'\n"),
    ],
)
def test_what_cannot_be_printed_is_refused(args: list[str], said: str) -> None:
    result = invoke(*args)
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith(said)
