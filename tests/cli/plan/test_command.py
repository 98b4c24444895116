"""``holdfast plan``: manifests and options in, a plan out."""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from tests.places import ROOT

from holdfast.cli import main

EXAMPLES = ROOT / "examples"
WEB = str(EXAMPLES / "workloads" / "web-ha.yaml")

OTHERS = """\
apiVersion: v1
kind: Secret
metadata: {name: web}
---
apiVersion: kubevirt.io/v1
kind: VirtualMachine
metadata: {name: somebody-elses}
---
"""


def workload(name: str = "web", *, image: str = "web:1", replicas: int = 4, rollout: str = "{}") -> str:
    return (
        f"apiVersion: cloudless.io/v1\nkind: Workload\nmetadata: {{name: {name}}}\n"
        f"spec: {{image: '{image}', replicas: {replicas}, rollout: {rollout}}}\n"
    )


def invoke(*args: str, stdin: str | None = None) -> Result:
    return CliRunner().invoke(main, ["plan", *args], input=stdin, prog_name="holdfast")


def planned(*args: str, stdin: str | None = None) -> dict[str, Any]:
    result = invoke(*args, "-o", "json", stdin=stdin)
    assert result.stderr == ""
    assert result.exit_code in (0, 1)
    found: dict[str, Any] = json.loads(result.stdout)
    return found


def steps(found: dict[str, Any]) -> list[tuple[str, int]]:
    return [(step["action"], step["count"]) for step in found["steps"]]


def file(folder: Path, name: str, text: str) -> str:
    (folder / name).write_text(text)
    return str(folder / name)


def test_a_manifest_is_planned_as_a_new_revision_of_all_its_replicas() -> None:
    found = planned("-f", WEB)
    assert {key: found[key] for key in ("strategy", "floor", "maxLive", "lowestReady", "finalReplicas", "blocked")} == {
        "strategy": "RollingUpdate",
        "floor": 8,
        "maxLive": 12,
        "lowestReady": 10,
        "finalReplicas": 10,
        "blocked": None,
    }
    assert (found["current"], found["desired"], found["duration"]) == (10, 10, "1m15s")


@pytest.mark.parametrize("path", sorted((EXAMPLES / "workloads").glob("*.yaml")), ids=lambda path: path.stem)
def test_every_example_has_a_plan_that_keeps_its_floor(path: Path) -> None:
    found = planned("-f", str(path))
    assert found["lowestReady"] >= found["floor"]
    assert found["finalReplicas"] == found["desired"]


def test_a_manifest_is_read_from_standard_input_and_from_json() -> None:
    assert planned("-f", "-", stdin=workload())["desired"] == 4
    document = {"apiVersion": "cloudless.io/v1", "kind": "Workload", "metadata": {"name": "a"}, "spec": {"image": "b"}}
    assert planned("-f", "-", stdin=json.dumps(document))["desired"] == 1


def test_options_alone_describe_a_rollout() -> None:
    found = planned("--replicas", "3")
    assert [(step["action"], step["count"], step["repeat"]) for step in found["steps"]] == [
        ("stop", 1, 3),
        ("start", 1, 3),
        ("wait", 1, 3),
    ]
    found = planned("--replicas", "5", "--current", "3", "--max-surge", "40%", "--min-available", "5", "--pause", "2m")
    assert (found["floor"], found["maxSurge"], found["current"]) == (5, 2, 3)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (["--replicas", "20"], {"desired": 20, "current": 20, "maxSurge": 4}),
        (["--max-surge", "1"], {"maxSurge": 1, "floor": 8}),
        (["--min-available", "100%"], {"floor": 10}),
        (["--max-unavailable", "0"], {"floor": 10}),
        (["--strategy", "Recreate"], {"strategy": "Recreate", "floor": 0, "lowestReady": 0}),
        (["--strategy", "rolling_update"], {"strategy": "RollingUpdate"}),
        (["--strategy", "blue-green"], {"strategy": "BlueGreen", "maxLive": 20}),
        (["--current", "0"], {"current": 0, "lowestReady": 0}),
        (["--pause", "0s"], {"duration": "0s"}),
    ],
)
def test_options_override_the_manifest(options: list[str], expected: dict[str, Any]) -> None:
    found = planned("-f", WEB, *options)
    assert {key: found[key] for key in expected} == expected


def test_another_strategy_drops_what_belonged_to_the_manifests_own() -> None:
    found = planned("-f", str(EXAMPLES / "workloads" / "canary.yaml"), "--strategy", "RollingUpdate")
    assert found["strategy"] == "RollingUpdate"
    assert "Paused" not in {step["phase"] for step in found["steps"]}


def test_a_comparison_finds_that_only_the_number_differs(tmp_path: Path) -> None:
    old = file(tmp_path, "old.yaml", workload(replicas=4))
    new = file(tmp_path, "new.yaml", workload(replicas=6, rollout="{maxSurge: 1}"))
    found = planned("-f", new, "--from", old)
    assert (found["current"], found["desired"]) == (4, 6)
    assert steps(found) == [("start", 2), ("wait", 2)]


def test_a_comparison_finds_a_new_revision(tmp_path: Path) -> None:
    old = file(tmp_path, "old.yaml", workload(replicas=4))
    new = file(tmp_path, "new.yaml", workload(image="web:2"))
    assert ("stop", 1) in steps(planned("-f", new, "--from", old))


def test_a_set_of_machines_is_planned_and_a_comparison_finds_a_change_in_place(tmp_path: Path) -> None:
    old = EXAMPLES / "virtualmachines" / "set.yaml"
    assert planned("-f", str(old))["maxLive"] == 6
    text = old.read_text()
    large = text.replace("classRef:\n        name: medium", "classRef:\n        name: large")
    assert large != text
    result = invoke("-f", file(tmp_path, "large.yaml", large), "--from", str(old))
    assert (result.exit_code, "changed in place" in result.stderr) == (0, True)
    assert "at most 5 live" in result.stdout, "no machine is created beside the others"


def test_an_option_for_which_the_kind_has_no_field_is_refused() -> None:
    result = invoke("-f", str(EXAMPLES / "virtualmachines" / "set.yaml"), "--pause", "3s")
    assert result.exit_code == 2
    assert "--pause: a VMSet has no field for it" in result.stderr


def test_equal_manifests_need_nothing(tmp_path: Path) -> None:
    old = file(tmp_path, "old.yaml", workload())
    result = invoke("-f", old, "--from", old)
    assert "nothing to do: 4 replicas of the desired revision available" in result.stdout


def test_other_peoples_objects_in_the_file_are_skipped() -> None:
    assert planned("-f", "-", stdin=OTHERS + workload())["desired"] == 4


def test_one_of_several_workloads_is_chosen_by_name(tmp_path: Path) -> None:
    both = file(tmp_path, "both.yaml", workload("a", replicas=2) + "---\n" + workload("b", replicas=3))
    assert planned("-f", both, "--name", "b")["desired"] == 3
    only_b = file(tmp_path, "b.yaml", workload("b", replicas=5))
    assert planned("-f", only_b, "--from", both)["current"] == 3


def test_lists_of_kubectl_are_taken_apart() -> None:
    item = {"apiVersion": "cloudless.io/v1", "kind": "Workload", "metadata": {"name": "a"}, "spec": {"image": "b"}}
    assert planned("-f", "-", stdin=json.dumps({"apiVersion": "v1", "kind": "List", "items": [item]}))["desired"] == 1


def test_a_blocked_plan_exits_with_1_and_names_the_ways_out() -> None:
    result = invoke("--replicas", "3", "--min-available", "3", "--max-surge", "0")
    assert result.exit_code == 1
    assert result.stderr == ""
    assert "blocked: all 3 replicas must stay available" in result.stdout
    assert "fix: --max-surge 1  (spec.rollout.maxSurge: 1)" in result.stdout
    assert "fix: --min-available 2  (spec.rollout.minAvailable: 2)" in result.stdout


def test_a_blocked_plan_is_json_too() -> None:
    found = planned("--replicas", "3", "--min-available", "3", "--max-surge", "0")
    assert found["blocked"]["reason"] == "NoDisruptionBudget"
    assert found["blocked"]["remedy"].startswith("set maxSurge to 1 or more")
    assert found["steps"] == []


def test_missing_quotes_are_noted_beside_the_plan() -> None:
    manifest = workload().replace("image: 'web:1'", "image: 'web:1', env: {DEBUG: on}")
    result = invoke("-f", "-", stdin=manifest)
    assert result.exit_code == 0
    assert result.stderr.startswith("note: <stdin>:4:37: kubectl reads a bare on as a boolean\n")


def test_a_paused_rollout_is_planned_with_a_warning() -> None:
    result = invoke("-f", "-", stdin=workload(rollout="{paused: true}"))
    assert "warning: the rollout is paused; this is what follows when it is resumed (Paused)" in result.stdout


def test_plain_lines_are_aligned_and_end_with_the_outcome() -> None:
    assert invoke("--replicas", "3", "--min-available", "3").stdout.splitlines() == [
        "fleet: RollingUpdate, 3 replicas, new revision",
        "floor 3, lowest ready 3, at most 4 live",
        f"warning: {DERIVED} (SurgeDerived)",
        "",
        "ROUND  TIMES  PHASE     ACTION          READY  REASON",
        "1      x1     Updating  start 1 new     3      room for 1 replica: 3 live, at most 4 may",
        "1      x1     Updating  wait for 1 new  4      1 replica of the new revision not ready yet (0 of 3 are)",
        "2      x2     Updating  stop 1 old      3      4 available, the floor needs 3",
        "2      x2     Updating  start 1 new     3      room for 1 replica: 3 live, at most 4 may",
        "2      x2     Updating  wait for 1 new  4      1 replica of the new revision not ready yet (1 of 3 are)",
        "3      x1     Updating  stop 1 old      3      4 available, the floor needs 3",
        "",
        "done: 3 replicas of the desired revision available",
    ]


DERIVED = (
    "the floor of 3 leaves no replica that may be down and maxSurge is not set, "
    "so one replica is started first; set maxSurge to choose another number"
)


def _bare(text: str) -> str:
    """Without colours."""
    return re.sub(r"\x1b\[[0-9;]*m", "", text)


def on_a_terminal(*args: str, columns: int = 120, **environment: str) -> str:
    """What a terminal of that width is sent."""
    ours, theirs = pty.openpty()
    env = {"PATH": os.environ["PATH"], "TERM": "xterm-256color", "COLUMNS": str(columns), **environment}
    command = [sys.executable, "-m", "holdfast", "plan", *args]
    with subprocess.Popen(command, stdout=theirs, stderr=theirs, stdin=theirs, env=env) as process:
        os.close(theirs)
        sent = bytearray()
        try:
            while chunk := os.read(ours, 65536):
                sent += chunk
        except OSError:  # Linux says so when the other end is closed
            pass
        process.wait()
    os.close(ours)
    return sent.decode().replace("\r\n", "\n")


def test_a_terminal_gets_a_table_with_bars_and_brackets() -> None:
    shown = _bare(on_a_terminal("--replicas", "10", "--min-available", "10", "--max-surge", "2"))
    assert shown.startswith(
        "\n"
        "  fleet  RollingUpdate  10 replicas, new revision\n"
        "  floor 10   lowest ready 10   at most 12 live\n"
        "\n"
        "       phase     action          ready                     reason\n"
        "       Updating  start 2 new     ━━━━━━━━━━╎┄┄┄┄┄┄┄┄┄┄ 10  room for 2 replicas: 10 live, at most 12 may\n"
    )
    assert " ×4 ┌  Updating  stop 2 old      ━━━━━━━━━━╎┄┄┄┄┄┄┄┄┄┄ 10  12 available, the floor needs 10\n" in shown
    assert "    └            wait for 2 new  ━━━━━━━━━━╎━━━━━━━━━━ 12  2 replicas of the new" in shown
    assert shown.endswith("\n  ✓ done  10 replicas of the desired revision available\n\n")


@pytest.mark.parametrize("columns", [40, 80, 120, 200])
def test_no_line_is_wider_than_the_terminal(columns: int) -> None:
    shown = on_a_terminal("--replicas", "10000", "--max-surge", "1", columns=columns)
    assert max(map(len, _bare(shown).splitlines())) <= columns


def test_colours_are_for_terminals_that_want_them() -> None:
    assert "\x1b[32m" in on_a_terminal("--replicas", "3")
    assert "\x1b[32m" not in on_a_terminal("--replicas", "3", NO_COLOR="1")


def test_a_blocked_plan_on_a_terminal_names_the_ways_out() -> None:
    shown = _bare(on_a_terminal("--replicas", "3", "--min-available", "3", "--max-surge", "0"))
    assert "✗ blocked  all 3 replicas must stay available" in shown
    assert "fix   --max-surge 1       spec.rollout.maxSurge: 1\n" in shown
