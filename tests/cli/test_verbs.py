"""The page about the verbs shows what they show: its examples are run, in order, on one server."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner
from tests.cli.api_runs import Cli
from tests.places import ROOT

from holdfast.cli import main

PAGE = (ROOT / "docs" / "verbs.md").read_text()
FILES = re.findall(r"```yaml\n# (\S+)\n(.*?)```", PAGE, re.DOTALL)
EXAMPLES = re.findall(
    r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", "".join(re.findall(r"```shell-session\n(.*?)```", PAGE, re.DOTALL)), re.MULTILINE
)


def ageless(text: str) -> str:
    return re.sub(r"\b\d+s$", "2s", text, flags=re.MULTILINE)


def test_every_example_shows_what_is_shown(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name, text in FILES:
        (tmp_path / name).write_text(text)
    assert len(EXAMPLES) > 10
    for written, shown in EXAMPLES:
        program, *words = shlex.split(written)
        assert program == "holdfast"
        result = CliRunner().invoke(main, words, env=cli.environment, prog_name="holdfast")
        assert ageless(result.output) == shown, written
        assert result.exit_code == int(shown.lower().startswith(("error", "---"))), written
