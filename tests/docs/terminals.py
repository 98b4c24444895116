"""A terminal beside a cluster of ``holdfast up``: commands are typed into it as the documentation shows them."""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

from click.testing import CliRunner
from tests.clusters import HOLDFAST
from tests.places import ROOT

from holdfast.cli import main

STEP = re.compile(r"\s*\|\s*(?=holdfast |kubectl |sed |jq )")
PLAIN = re.compile(r"[^<>&;`$]*")
"""A command in which a shell would find nothing to do but to split it into words."""


class Terminal:
    """A working directory with the examples in it, and the commands that are typed there."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.environment = {name: value for name, value in os.environ.items() if name != "KUBECONFIG"}
        self.environment |= {
            "COLUMNS": "100",
            "NO_COLOR": "1",
            "HOLDFAST_READY_AFTER": "0s..300ms",
            "PYTHONPATH": str(ROOT / "src"),
        }
        programs = home / "bin"
        programs.mkdir()
        script = programs / "holdfast"
        script.write_text(f'#!/bin/sh\nexec {shlex.join(HOLDFAST)} "$@"\n')
        script.chmod(0o755)
        self.environment["PATH"] = f"{programs}:{self.environment['PATH']}"
        (home / "examples").symlink_to(ROOT / "examples")

    def type(self, line: str) -> str:
        """The output of a command line, which must succeed."""
        code, output = self.run(line)
        assert code == 0, f"$ {line}\n{output}"
        return output

    def run(self, line: str) -> tuple[int, str]:
        """The exit code and the output of a command line."""
        if not PLAIN.fullmatch(line.replace("jsonpath={.", "")):
            return self._shell(line, "")
        code, output = 0, ""
        for step in STEP.split(line):
            program, *arguments = shlex.split(step, comments=True)
            code, output = self._holdfast(arguments, output) if program == "holdfast" else self._shell(step, output)
        return code, output

    def _holdfast(self, arguments: list[str], given: str) -> tuple[int, str]:
        """In this process, which saves the start of another one."""
        gone = dict.fromkeys(("KUBECONFIG",))
        with contextlib.chdir(self.home):
            env = {**{name: self.environment[name] for name in ("COLUMNS", "NO_COLOR")}, **gone}
            result = CliRunner().invoke(main, arguments, input=given, prog_name="holdfast", env=env)
        return int(result.exit_code), result.output

    def _shell(self, line: str, given: str) -> tuple[int, str]:
        run = subprocess.run(
            line,
            shell=True,
            cwd=self.home,
            env=self.environment,
            input=given,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=120,
        )
        return run.returncode, run.stdout

    @contextlib.contextmanager
    def up(self, *options: str) -> Iterator[subprocess.Popen[str]]:
        """`holdfast up` in another window, until the end of the block."""
        command = [*HOLDFAST, "up", *options]
        with subprocess.Popen(
            command, cwd=self.home, env=self.environment, stdout=subprocess.PIPE, text=True
        ) as process:
            assert process.stdout is not None
            limit = threading.Timer(300, process.kill)
            limit.start()
            try:
                said = process.stdout.readline()
                assert said.startswith("ready: "), said
                threading.Thread(target=process.stdout.read, daemon=True).start()
                yield process
            finally:
                process.terminate()
                process.wait(60)
                limit.cancel()
