"""``holdfast simulate``: a rollout in virtual time, as a film, a log or JSON."""

from __future__ import annotations

import json
import os
import pty
import re
import shlex
import signal
import subprocess
import sys
from datetime import timedelta
from io import StringIO
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from rich.console import Console
from tests.places import ROOT

from holdfast.cli import main
from holdfast.cli.plan import simulate
from holdfast.cli.plan.simulate import FILM, Film, _cues
from holdfast.kernel.planning import RolloutStrategy, WorkloadSpec
from holdfast.simulator import simulation
from holdfast.simulator.frames import Ending, InvariantBroken, Run
from holdfast.simulator.replicas import Behaviour
from holdfast.simulator.scenarios import Scenario
from holdfast.simulator.scripts import Verb, parse_all

EXAMPLES = ROOT / "examples"
DEMO = ("-f", str(EXAMPLES / "simulate" / "v2.yaml"), "--from", str(EXAMPLES / "simulate" / "v1.yaml"))
PAGE = (EXAMPLES.parent / "docs" / "simulate.md").read_text()
CODES = re.compile(r"\x1b\[[0-9;?]*[a-zA-Z]")


def invoke(*args: str, stdin: str | None = None) -> Result:
    return CliRunner().invoke(main, ["simulate", *args], input=stdin, prog_name="holdfast")


def simulated(*args: str, stdin: str | None = None) -> dict[str, Any]:
    result = invoke(*args, "-o", "json", stdin=stdin)
    assert result.stderr == ""
    found: dict[str, Any] = json.loads(result.stdout)
    return found


def workload(rollout: str) -> str:
    return (
        "apiVersion: cloudless.io/v1\nkind: Workload\nmetadata: {name: web}\n"
        f"spec: {{image: 'web:1', replicas: 4, rollout: {rollout}}}\n"
    )


# In a pipe.


def test_the_demo_is_eventful_and_ends_with_a_floor_that_held() -> None:
    result = invoke(*DEMO, "--seed", "7", "--crash", "0.05", "--slow", "0.1")
    assert result.exit_code == 0
    assert "crashed" in result.stdout
    assert "18 held: 18 ready at worst" in result.stdout
    assert result.stdout.rstrip().endswith("seed       7")


def test_the_same_seed_prints_the_same_log() -> None:
    args = ("--replicas", "6", "--crash", "0.3", "--seed", "11")
    assert invoke(*args).stdout == invoke(*args).stdout
    assert invoke(*args).stdout != invoke(*args[:-1], "12").stdout


def test_a_log_says_who_did_what_and_why() -> None:
    text = invoke("--replicas", "3", "--max-surge", "1", "--script", "at 5s pause; at 20s resume").stdout
    assert re.search(r"0s   start 1 new +■■■  ○ +ready +3/3 floor 2  room for 1 replica", text)
    assert re.search(r"5s > pause", text)
    assert re.search(r"~ 1 ready", text)


# For programs.


def test_json_tells_the_outcome_and_every_frame() -> None:
    found = simulated("--replicas", "4", "--max-surge", "1", "--max-unavailable", "0")
    assert found["ending"] == "completed"
    assert (found["floor"], found["maxLive"], found["lowestReady"], found["mostLive"]) == (4, 5, 4, 5)
    assert (found["started"], found["stopped"], found["crashes"]) == (4, 4, 0)
    assert found["belowFloorByOthers"] == {"times": 0, "seconds": 0}
    last = found["frames"][-1]
    assert last["revisions"] == {"v1": {}, "v2": {"available": 4}}
    assert all(frame["because"]["code"] and frame["because"]["message"] for frame in found["frames"])


def test_a_manifest_decides_on_deadline_settling_and_failure() -> None:
    rollout = "{maxSurge: 1, maxUnavailable: 0, progressDeadline: 1m, onFailure: rollBack, minReadySeconds: 5}"
    found = simulated("-f", "-", "--broken", stdin=workload(rollout))
    assert found["ending"] == "withdrawn"
    assert found["rejected"] == ["v2"]
    assert found["seconds"] == 63
    settled = simulated("-f", "-", stdin=workload(rollout))
    assert any("settling" in frame["revisions"]["v2"] for frame in settled["frames"])


def test_the_same_image_is_only_scaled() -> None:
    found = simulated(*DEMO[:2], "--from", DEMO[1], "--replicas", "22")
    assert {revision for frame in found["frames"] for revision in frame["revisions"]} == {"v1"}
    assert (found["started"], found["stopped"], found["finalReady"]) == (2, 0, 22)


def test_a_paused_manifest_waits_until_it_is_resumed() -> None:
    text = workload("{maxSurge: 1, paused: true}")
    assert simulated("-f", "-", stdin=text)["because"]["code"] == "Paused"
    assert simulated("-f", "-", "--script", "at 30s resume", stdin=text)["ending"] == "completed"


def test_somebody_promotes_a_canary_unless_nobody_is_there() -> None:
    canary = str(EXAMPLES / "workloads" / "canary.yaml")
    assert simulated("-f", canary)["ending"] == "completed"
    assert simulated("-f", canary, "--promote-after", "never")["ending"] == "waiting for a user"


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("workloads/*.yaml")), ids=lambda path: path.stem)
def test_every_example_can_be_simulated_in_a_bad_neighbourhood(path: Path) -> None:
    for seed in range(5):
        found = simulated("-f", str(path), "--seed", str(seed), "--crash", "0.1", "--slow", "0.1")
        assert found["ending"] in ("completed", "withdrawn"), f"seed {seed}"


# How it ends.


@pytest.mark.parametrize(
    ("args", "code"),
    [
        (("--replicas", "3"), 0),
        (("--replicas", "3", "--strategy", "OnDelete"), 0),
        (("--replicas", "3", "--min-available", "3", "--max-surge", "0"), 1),
        (("--replicas", "3", "--broken"), 1),
    ],
)
def test_the_exit_code_tells_whether_the_rollout_got_anywhere(args: tuple[str, ...], code: int) -> None:
    assert invoke(*args).exit_code == code


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ((), "give a manifest with -f"),
        (("--replicas", "1001"), "1,001 replicas are too many: 1,000 can be simulated"),
        (("--replicas", "3", "--script", "at 5s scale 1001"), "1,001 replicas are too many"),
        (("--replicas", "3", "--script", "at 5s explode"), "--script: 'at 5s explode' is not a command"),
        (("--replicas", "3", "--crash", "2"), "not in the range"),
        (("--replicas", "3", "--speed", "0x"), "write 20x for twenty times as fast as life"),
        (("--replicas", "3", "--speed", "fast"), "write 20x for twenty times as fast as life"),
        (("--replicas", "3", "--ready-after", "-3s"), "is not between 0s and"),
        (("--replicas", "3", "--ready-after", "soon"), "is not a duration"),
        (("--replicas", "3", "--promote-after", "soon"), "is not a duration"),
    ],
)
def test_bad_input_is_one_message_with_what_to_write(args: tuple[str, ...], message: str) -> None:
    result = invoke(*args)
    assert result.exit_code == 2
    assert message in result.stderr
    assert result.stdout == ""


def test_durations_of_thousands_of_years_end_in_a_message() -> None:
    text = workload("{maxUnavailable: 1, pauseDuration: 2562047h, progressDeadline: 2562047h}")
    result = invoke("-f", "-", "--pause", "2562047h", stdin=text)
    assert result.exit_code in (1, 2)
    assert "Traceback" not in result.output


def test_a_broken_promise_is_shown_with_its_log(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> Run:
        raise InvariantBroken("P1", "too few", seed=7, frames=())

    monkeypatch.setattr(simulate, "simulate", broken)
    result = invoke("--replicas", "3")
    assert result.exit_code == 70
    assert "the engine broke a promise: P1: too few (seed 7)" in result.stderr


# On a terminal.


def film(width: int, height: int, *, replicas: int = 12, script: str = "") -> tuple[Film, Console]:
    scenario = Scenario(
        spec=WorkloadSpec(name="web", replicas=replicas, rollout=RolloutStrategy(max_surge=2, max_unavailable=1)),
        behaviour=Behaviour(crash=0.2, slow=0.1),
        script=parse_all([script]),
    )
    console = Console(file=StringIO(), width=width, height=height, force_terminal=True, highlight=False)
    return Film(simulation.simulate(scenario, seed=7), scenario, console), console


def painted(width: int, height: int, *, every: int = 1, **fields: Any) -> list[list[str]]:
    """The frames of a film, or every so many of them, as lines without colours."""
    shown, console = film(width, height, **fields)
    screens = []
    for index, frame in list(enumerate(shown.run.frames))[::every]:
        with console.capture() as captured:
            console.print(shown.paint(index, frame.at, note="seed 7"))
        screens.append(CODES.sub("", captured.get()).splitlines())
    return screens


@pytest.mark.parametrize(("width", "height"), [(80, 24), (120, 35), (60, 16), (200, 60)])
def test_a_film_fits_the_terminal_and_nothing_jumps(width: int, height: int) -> None:
    screens = painted(width, height, script="at 20s revision v3")
    assert all(len(line) <= width for screen in screens for line in screen)
    for screen, after in pairwise(screens[:-1]):
        assert len(after) - len(screen) in (0, 1), "a screen only grows when a revision appears"
    if height >= 24:
        assert all(len(screen) <= height for screen in screens)


def test_a_screen_shows_cells_floor_chart_and_the_reason() -> None:
    screen = "\n".join(painted(80, 24)[8])
    assert "web  RollingUpdate  v1 → v2" in screen
    assert re.search(r"▸ v2  [●◉○ ]+", screen)
    assert re.search(r"ready [█░]+┃[█░]+ +\d+ of 12 ready   floor 11 ┃", screen)
    assert re.search(r"11 ┤[━╍]+┄+", screen)
    assert re.search(r"… WaitingForReady", screen)


def test_many_replicas_share_cells_and_the_scale_stays() -> None:
    screens = painted(80, 30, replicas=450, every=50)
    scales = {match[1] for screen in screens for match in re.finditer(r"(\d+) to a cell", "\n".join(screen))}
    assert scales == {"3"}
    assert max(line.count("■") + line.count("●") for screen in screens for line in screen) < 80


def test_a_film_lasts_twelve_seconds_unless_a_speed_is_asked_for() -> None:
    frames = film(80, 24)[0].run.frames
    assert _cues(frames, None)[-1] == pytest.approx(FILM)
    assert _cues(frames, 20.0)[-1] == pytest.approx(frames[-1].at / timedelta(seconds=20))
    assert _cues(frames, float("inf"))[-1] == 0
    assert _cues(frames, None) == sorted(_cues(frames, None))


def on_a_terminal(*args: str, interrupt: bool = False) -> tuple[int, str]:
    """Run the command with a pseudo-terminal as its output."""
    ours, theirs = pty.openpty()
    environment = {**os.environ, "COLUMNS": "80", "LINES": "24", "TERM": "xterm-256color"}
    command = [sys.executable, "-m", "holdfast", "simulate", *args]
    with subprocess.Popen(command, stdout=theirs, stderr=theirs, stdin=theirs, env=environment) as process:
        os.close(theirs)
        output = b""
        while True:
            try:
                chunk = os.read(ours, 65536)
            except OSError:
                break
            output += chunk
            if interrupt and b"ready" in output:
                process.send_signal(signal.SIGINT)
                interrupt = False
            if not chunk:
                break
        os.close(ours)
        code = process.wait()
    return code, CODES.sub("", output.decode())


def test_on_a_terminal_the_last_picture_stays_and_a_summary_follows() -> None:
    code, output = on_a_terminal("--replicas", "4", "--speed", "max")
    assert code == 0
    assert "✓        completed after" in output
    assert "another run with --seed 8" in output
    assert output.index("floor 3 ┃") < output.index("completed after")


def test_control_c_ends_the_film_cleanly() -> None:
    # A film of minutes, which no busy machine shows to its end before the signal comes.
    code, output = on_a_terminal("--replicas", "40", "--speed", "1x", interrupt=True)
    assert code == 130, output
    assert "interrupted; the same again with --seed 7" in output
    assert "Traceback" not in output


def test_no_live_prints_the_log_on_a_terminal_too() -> None:
    code, output = on_a_terminal("--replicas", "2", "--no-live")
    assert code == 0
    assert "# fleet, RollingUpdate, v1 → v2" in output


# The page.


def test_the_page_shows_what_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(EXAMPLES.parent)
    commands = re.findall(r"^\$ holdfast simulate (.*)\n((?:(?!```).*\n)*)", PAGE, re.MULTILINE)
    assert len(commands) >= 3
    for args, written in commands:
        result = invoke(*shlex.split(args))
        parts = (re.escape(part) for part in re.split(r"\.\.\.(?=\n)", written))
        assert re.fullmatch("(?s:.*)".join(parts), result.output), f"{args}\n{result.output}"


def test_the_example_of_the_page_runs() -> None:
    (example,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    exec(example, {})


def test_the_page_explains_every_command_of_a_script_and_every_ending() -> None:
    for verb in Verb:
        assert re.search(rf"`(at 30s )?{verb}\b", PAGE), verb
    for ending in Ending:
        assert f"`{ending}`" in PAGE, ending
