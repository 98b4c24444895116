"""``holdfast delete``: which objects go, how, and when it returns."""

from __future__ import annotations

import json

import pytest
from tests.cli.api_runs import Cli, configmap, pod

from holdfast.client.resources import CONFIG_MAPS
from holdfast.meta.objects import Key


def test_objects_go_by_type_and_name(cli: Cli) -> None:
    cli.apply(configmap("a"), configmap("b"), pod("p"))
    assert cli("delete", "cm", "a", "b") == 'configmap "a" deleted\nconfigmap "b" deleted\n'
    assert cli("delete", "pod/p", "--now") == 'pod "p" deleted\n'
    assert cli.run("get", "cm,pods").stdout == ""


def test_objects_go_by_the_files_that_name_them(cli: Cli) -> None:
    cli.apply(configmap("a"), configmap("b"))
    given = f"{json.dumps(configmap('a'))}\n---\n{json.dumps(configmap('b'))}"
    assert cli("delete", "-f", "-", given=given) == 'configmap "a" deleted\nconfigmap "b" deleted\n'


def test_objects_go_by_labels_and_all_at_once(cli: Cli) -> None:
    cli.apply(configmap("a", labels={"app": "x"}), configmap("b"), pod("p", labels={"app": "x"}))
    assert cli("delete", "cm,pods", "-l", "app=x") == 'configmap "a" deleted\npod "p" deleted\n'
    assert cli("delete", "cm", "--all") == 'configmap "b" deleted\n'
    assert cli("delete", "cm", "--all") == "No resources found\n"


def test_one_that_is_not_there_keeps_no_other_from_going(cli: Cli) -> None:
    cli.apply(configmap("a"))
    result = cli.run("delete", "cm", "none", "a")
    assert (result.exit_code, result.stdout) == (1, 'configmap "a" deleted\n')
    assert result.stderr == 'Error from server (NotFound): configmaps "none" not found\n'


def test_one_that_is_not_there_can_be_fine(cli: Cli) -> None:
    assert cli("delete", "cm", "none", "--ignore-not-found") == ""
    assert cli("delete", "cm", "none", "--ignore-not-found=true") == ""


def test_it_returns_when_the_object_is_gone(cli: Cli) -> None:
    cli.apply(configmap("held", finalizers=["example.com/hold"]))
    deleting = cli.start("delete", "cm", "held")
    assert deleting.stdout is not None
    assert deleting.stdout.readline() == 'configmap "held" deleted\n'
    assert deleting.poll() is None
    free = {"metadata": {"finalizers": None}}
    cli.asked(lambda client: client.patch(CONFIG_MAPS, Key(cli.namespace, "held"), free))
    assert deleting.communicate(timeout=20) == ("", "")
    assert deleting.returncode == 0


@pytest.mark.parametrize("option", ["--no-wait", "--wait=false"])
def test_it_returns_at_once_if_it_shall(cli: Cli, option: str) -> None:
    cli.apply(configmap("held", finalizers=["example.com/hold"]))
    assert cli("delete", "cm", "held", option) == 'configmap "held" deleted\n'
    assert cli.object("cm", "held")["metadata"]["deletionTimestamp"]


def test_it_waits_no_longer_than_it_may(cli: Cli) -> None:
    cli.apply(configmap("held", finalizers=["example.com/hold"]))
    assert cli.refused("delete", "cm", "held", "--timeout=50ms") == (
        "error: timed out waiting for the condition on configmaps/held\n"
    )


def test_force_leaves_no_time_and_says_so(cli: Cli) -> None:
    cli.apply(pod("p"))
    result = cli.run("delete", "pod", "p", "--force")
    assert (result.exit_code, result.stdout) == (0, 'pod "p" force deleted\n')
    assert result.stderr.startswith("Warning: Immediate deletion does not wait for confirmation")


@pytest.mark.parametrize(
    ("cascade", "finalizers"),
    [("orphan", ["example.com/hold", "orphan"]), ("foreground", ["example.com/hold", "foregroundDeletion"])],
)
def test_what_becomes_of_children_is_the_servers_to_do(cli: Cli, cascade: str, finalizers: list[str]) -> None:
    cli.apply(configmap("held", finalizers=["example.com/hold"]))
    cli("delete", "cm", "held", f"--cascade={cascade}", "--no-wait")
    assert sorted(cli.object("cm", "held")["metadata"]["finalizers"]) == finalizers


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("pods", "error: resource(s) were provided, but no name was specified"),
        ("pods --all -l a=b", "error: --all and a selector are given"),
        ("pod p --now --grace-period=5", "error: --now and --grace-period are given"),
        ("pod p --force --grace-period=5", "error: --force leaves no time"),
        ("pod p --cascade=never", "error: invalid value for '--cascade'"),
    ],
)
def test_mistakes_are_explained(cli: Cli, words: str, message: str) -> None:
    assert cli.refused("delete", *words.split(), code=2).startswith(message)
