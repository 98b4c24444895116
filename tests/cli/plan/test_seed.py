"""The seed's rules for a minimum of 0 and for scaling up, by ``holdfast plan`` and ``holdfast simulate``."""

from __future__ import annotations

import json
from typing import Any

import pytest
from click.testing import CliRunner

from holdfast.cli import main


def printed(command: str, *options: str, stdin: str | None = None) -> dict[str, Any]:
    result = CliRunner().invoke(main, [command, *options, "-o", "json"], input=stdin, prog_name="holdfast")
    assert (result.exit_code, result.stderr) == (0, "")
    found: dict[str, Any] = json.loads(result.stdout)
    return found


@pytest.mark.parametrize(
    ("options", "minimum", "floor"),
    [
        (["--min-available", "0"], 4, 4),
        (["--min-available", "0", "--max-unavailable", "2"], 3, 3),
        (["--min-available", "0%"], 0, 0),
        (["--min-available", "0%", "--max-unavailable", "2"], 0, 3),
    ],
    ids=["nothing else is set", "maxUnavailable is set", "none in earnest", "none in earnest, maxUnavailable is set"],
)
def test_a_minimum_of_0_is_derived_and_0_percent_is_none(options: list[str], minimum: int, floor: int) -> None:
    made = printed("plan", "--replicas", "5", *options)
    assert (made["minAvailable"], made["floor"]) == (minimum, floor)
    assert made["lowestReady"] == floor


def test_a_minimum_of_0_in_a_manifest_is_derived_too() -> None:
    manifest = {
        "apiVersion": "cloudless.io/v1",
        "kind": "Workload",
        "metadata": {"name": "web"},
        "spec": {"image": "web:1", "replicas": 5, "rollout": {"minAvailable": 0}},
    }
    assert printed("plan", "-f", "-", stdin=json.dumps(manifest))["lowestReady"] == 4


def test_a_simulated_rollout_with_a_minimum_of_0_keeps_the_derived_floor() -> None:
    assert printed("simulate", "--replicas", "5", "--min-available", "0")["floor"] == 4


CASE_27 = (
    *("--current", "2", "--replicas", "5", "--min-available", "2"),
    *("--max-unavailable", "2", "--max-surge", "2", "--pause", "1s"),
)


def test_case_27_scales_up_within_the_surge_and_keeps_old_replicas_until_new_ones_are_ready() -> None:
    made = printed("plan", *CASE_27)
    assert (made["minAvailable"], made["maxSurge"], made["maxLive"]) == (2, 2, 5 + 2)
    live, first_stop = 2, None
    for index, step in enumerate(made["steps"]):
        live += {"start": step["count"], "stop": -step["count"]}.get(step["action"], 0)
        assert live <= made["maxLive"]
        if step["action"] == "stop" and first_stop is None:
            first_stop = index
    assert [(step["phase"], step["action"]) for step in made["steps"]][:2] == [
        ("ScalingUp", "start"),
        ("ScalingUp", "wait"),
    ]
    assert first_stop is not None
    assert (made["lowestReady"], made["finalReplicas"], live) == (2, 5, 5)


def test_case_27_simulated_keeps_the_surge_and_the_minimum() -> None:
    run = printed("simulate", *CASE_27)
    assert (run["ending"], run["mostLive"]) == ("completed", 5 + 2)
    assert run["lowestReady"] >= 2
