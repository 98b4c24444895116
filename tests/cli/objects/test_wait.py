"""``holdfast wait``: what can be waited for, and how waiting ends."""

from __future__ import annotations

from typing import Any

import click
import pytest
from tests.cli.api_runs import Cli, configmap, pod

from holdfast.cli.objects.wait import condition, timeout_of
from holdfast.client.resources import CONFIG_MAPS, PODS
from holdfast.meta.objects import Key


def with_condition(
    status: str = "True", *, generation: int = 1, observed: int | None = None, whole: int | None = None
) -> Any:
    ready = {"type": "Ready", "status": status} | ({} if observed is None else {"observedGeneration": observed})
    obj_status: dict[str, Any] = {"conditions": [ready], "phase": "Running", "replicas": 3}
    if whole is not None:
        obj_status["observedGeneration"] = whole
    return {"metadata": {"name": "x", "generation": generation}, "status": obj_status}


@pytest.mark.parametrize(
    ("written", "obj", "holds"),
    [
        ("condition=Ready", with_condition(), True),
        ("condition=ready", with_condition(), True),
        ("condition=Ready=false", with_condition(), False),
        ("condition=Ready=False", with_condition("False"), True),
        ("condition=Other", with_condition(), False),
        ("condition=Ready", {"metadata": {}}, False),
        ("condition=Ready", with_condition(generation=2, observed=1), False),
        ("condition=Ready", with_condition(generation=2, whole=1), False),
        ("condition=Ready", with_condition(generation=2, observed=2), True),
        ("jsonpath={.status.phase}=Running", with_condition(), True),
        ("jsonpath='{.status.phase}'=Running", with_condition(), True),
        ("jsonpath={.status.phase}=Failed", with_condition(), False),
        ("jsonpath={.status.replicas}=3", with_condition(), True),
        ("jsonpath=.status.replicas=3", with_condition(), True),
        ("jsonpath={.status.replicas}", with_condition(), True),
        ("jsonpath={.status.none}", with_condition(), False),
        ("jsonpath={.status.conditions[5].type}=Ready", with_condition(), False),
        ('jsonpath={.status.conditions[?(@.type=="Ready")].status}=True', with_condition(), True),
        ("create", with_condition(), True),
        ("delete", with_condition(), False),
    ],
)
def test_what_holds_of_an_object(written: str, obj: dict[str, Any], holds: bool) -> None:
    assert condition(written).holds(obj) is holds


@pytest.mark.parametrize(
    "written", ["", "Ready", "condition", "condition=", "delete=now", "jsonpath={.a}=", "jsonpath={.a"]
)
def test_what_cannot_be_waited_for_is_told(written: str) -> None:
    with pytest.raises(click.BadParameter):
        condition(written)


@pytest.mark.parametrize(("written", "seconds"), [("30s", 30), ("5m", 300), ("0", 0), ("7", 7), ("-1s", 604800)])
def test_times_are_read_as_kubectl_reads_them(written: str, seconds: float) -> None:
    assert timeout_of(click.Context(click.Command("x")), click.Option(["--timeout"]), written) == seconds


def report(cli: Cli, name: str, **status: Any) -> None:
    cli.asked(lambda client: client.patch(PODS, Key(cli.namespace, name), {"status": status}, subresource="status"))


def test_what_holds_already_is_not_waited_for(cli: Cli) -> None:
    cli.apply(pod("one"), pod("two"))
    for name in ("one", "two"):
        report(cli, name, conditions=[{"type": "Ready", "status": "True"}])
    assert cli("wait", "--for=condition=Ready", "pods", "--all") == "pod/one condition met\npod/two condition met\n"
    assert cli("wait", "--for=jsonpath={.status.phase}=Pending", "pod/one", "--timeout=0") == "pod/one condition met\n"


def test_what_comes_to_hold_is_waited_for(cli: Cli) -> None:
    cli.apply(pod("one"))
    waiting = cli.start("wait", "--for=condition=Ready", "pod/one", "--timeout=20s")
    report(cli, "one", conditions=[{"type": "Ready", "status": "True"}])
    assert waiting.communicate(timeout=20) == ("pod/one condition met\n", "")
    assert waiting.returncode == 0


def test_an_object_is_waited_for_before_it_exists_and_until_it_does_not(cli: Cli) -> None:
    coming = cli.start("wait", "--for=create", "cm/late", "--timeout=20s")
    cli.apply(configmap("late"))
    assert coming.communicate(timeout=20) == ("configmap/late condition met\n", "")
    going = cli.start("wait", "--for=delete", "cm/late", "--timeout=20s")
    cli.asked(lambda client: client.delete(CONFIG_MAPS, Key(cli.namespace, "late")))
    out, errors = going.communicate(timeout=20)
    assert (going.returncode, errors) == (0, "")
    assert out in ("configmap/late condition met\n", "")


def test_being_too_late_is_told_as_kubectl_tells_it(cli: Cli) -> None:
    cli.apply(pod("one"))
    said = "error: timed out waiting for the condition on pods/one\n"
    assert cli.refused("wait", "--for=condition=Ready", "pod/one", "--timeout=10ms") == said
    assert cli.refused("wait", "--for=condition=Ready", "pod", "one", "--timeout=0s") == said


def test_an_object_that_is_not_there_is_an_error(cli: Cli) -> None:
    assert cli.refused("wait", "--for=condition=Ready", "pod/none") == (
        'Error from server (NotFound): pods "none" not found\n'
    )
    assert cli.refused("wait", "--for=condition=Ready", "pods", "-l", "app=none") == (
        "error: no matching resources found\n"
    )


def test_that_one_is_too_late_keeps_nobody_from_hearing_of_the_other(cli: Cli) -> None:
    cli.apply(pod("one"), pod("two"))
    report(cli, "two", conditions=[{"type": "Ready", "status": "True"}])
    result = cli.run("wait", "--for=condition=Ready", "pod", "one", "two", "--timeout=100ms")
    assert (result.exit_code, result.stdout) == (1, "pod/two condition met\n")
    assert result.stderr == "error: timed out waiting for the condition on pods/one\n"


def test_all_of_a_type_are_meant_only_if_somebody_says_so(cli: Cli) -> None:
    assert "no name was specified" in cli.refused("wait", "--for=delete", "pods", code=2)
