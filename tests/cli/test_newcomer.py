"""What the README tells a newcomer to type, typed."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from subprocess import PIPE

from tests.places import ROOT

from holdfast.cli.errors import ExitCode

HOLDFAST = [sys.executable, "-m", "holdfast"]


def commands() -> list[list[str]]:
    """The commands of the README's cluster, in order, without their remarks."""
    (block,) = re.findall(r"```\n(holdfast up.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    return [shlex.split(line, comments=True) for line in block.splitlines()]


def test_the_readme_can_be_followed(tmp_path: Path) -> None:
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    up, *others, down = commands()
    assert (up, down) == (["holdfast", "up"], ["holdfast", "down"])
    # Whatever cluster somebody else works with is not meant.
    alone = {name: value for name, value in os.environ.items() if name != "KUBECONFIG"}
    cluster = subprocess.Popen([*HOLDFAST, *up[1:]], cwd=tmp_path, env=alone, stdout=PIPE, stderr=PIPE, text=True)
    try:
        assert cluster.stdout is not None
        assert cluster.stdout.readline().startswith("ready: ")
        for each in (*others, down):
            typed = [*HOLDFAST, *each[1:]]
            told = subprocess.run(typed, cwd=tmp_path, env=alone, capture_output=True, text=True, timeout=120)
            assert (told.returncode, told.stderr) == (ExitCode.OK, ""), (each, told.stdout, told.stderr)
        assert cluster.wait(30) == ExitCode.OK
    finally:
        cluster.kill()
        cluster.communicate()
