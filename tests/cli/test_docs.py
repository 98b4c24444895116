"""The documentation of the command line is what the command line says.

Every ``$ holdfast ...`` in a console block of README.md and docs/ is run, and its output
and exit code compared; ``...`` stands for any lines.  After a change, run

    HOLDFAST_UPDATE_DOCS=1 python -m pytest tests/cli/test_cli_docs.py

and read what it changed.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from click.testing import CliRunner
from tests.places import ROOT

from holdfast.cli import main
from holdfast.cli.errors import ExitCode
from holdfast.cli.main import COMMANDS

PAGE = ROOT / "docs" / "cli.md"
PAGES = (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")))
BLOCK = re.compile(r"(?<=```console\n)(.*?)(?=```)", re.DOTALL)
COMMAND = re.compile(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", re.MULTILINE)

LASTING = ("up", "demo", "apiserver", "operator run")
"""Commands that run until they are stopped."""


def replayed(block: str) -> Iterator[str]:
    """The block as it is when its commands are run now."""
    code = 0
    for line, written in COMMAND.findall(block):
        program, *args = shlex.split(line)
        if line == "echo $?":
            shown, code = f"{code}\n", 0
        else:
            assert program == "holdfast", f"only holdfast is run here: {line}"
            assert not " ".join(args).startswith(LASTING), f"a command that does not end is no console block: {line}"
            result = CliRunner().invoke(main, args, prog_name="holdfast", env={"COLUMNS": "100", "NO_COLOR": "1"})
            shown, code = result.output, int(result.exit_code)
            assert code == expected_code(shown), line
        yield f"$ {line}\n{written if matches(written, shown) else shown}"


def expected_code(shown: str) -> ExitCode:
    """The exit code that goes with what a command says."""
    if shown.startswith("error: "):
        return ExitCode.BAD_INPUT
    return ExitCode.BLOCKED if "\nblocked: " in shown else ExitCode.OK


def matches(written: str, shown: str) -> bool:
    parts = (re.escape(part) for part in written.split("...\n"))
    return bool(written) and re.fullmatch(r"(?:.*\n)*".join(parts), shown) is not None


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_console_block_shows_what_is_shown(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    page = path.read_text()
    now = BLOCK.sub(lambda block: "".join(replayed(block[0])), page)
    if os.environ.get("HOLDFAST_UPDATE_DOCS"):
        path.write_text(now)
    assert now == page


def test_every_command_and_every_option_is_documented() -> None:
    page = "\n".join(path.read_text() for path in PAGES)
    for name in COMMANDS:
        assert f"\n## holdfast {name}\n" in page
        command = main.get_command(click.Context(main), name)
        assert command is not None
        for parameter in command.params:
            assert all(option in page for option in parameter.opts), (name, parameter.opts)


@pytest.mark.parametrize("code", ExitCode)
def test_every_exit_code_is_documented(code: ExitCode) -> None:
    assert f"\n| {code.value} | " in PAGE.read_text()
