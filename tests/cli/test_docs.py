"""The documentation of the command line is what the command line says.

Every ``$ holdfast ...`` in a console block of a page that needs no cluster is run, and its
output and exit code compared; ``...`` stands for any lines.  After a change, run

    HOLDFAST_UPDATE_DOCS=1 python -m pytest tests/cli/test_docs.py

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
from tests.docs.pages import BLOCK, COMMAND, OFFLINE, PAGES, name
from tests.places import ROOT

from holdfast.cli import main
from holdfast.cli.errors import ExitCode
from holdfast.cli.main import COMMANDS

PAGE = ROOT / "docs" / "cli.md"

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


@pytest.mark.parametrize("path", [path for path in OFFLINE if BLOCK.search(path.read_text())], ids=name)
def test_every_console_block_shows_what_is_shown(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    page = path.read_text()
    now = BLOCK.sub(lambda block: "".join(replayed(block[0])), page)
    if os.environ.get("HOLDFAST_UPDATE_DOCS"):
        path.write_text(now)
    assert now == page


def test_every_command_and_every_option_is_documented() -> None:
    page = "\n".join(path.read_text() for path in PAGES)
    for called in COMMANDS:
        assert f"\n## holdfast {called}\n" in page
        command = main.get_command(click.Context(main), called)
        assert command is not None
        for parameter in command.params:
            assert all(option in page for option in parameter.opts), (called, parameter.opts)


@pytest.mark.parametrize("code", ExitCode)
def test_every_exit_code_is_documented(code: ExitCode) -> None:
    assert f"\n| {code.value} | " in PAGE.read_text()
