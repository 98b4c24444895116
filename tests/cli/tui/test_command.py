"""``holdfast tui`` without the library that it needs."""

from __future__ import annotations

import sys

import pytest
from click.testing import CliRunner

from holdfast.cli import main


def test_a_missing_library_is_named_with_the_command_that_installs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.startswith(("textual", "holdfast.cli.tui."))]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "textual", None)
    result = CliRunner().invoke(main, ["tui"])
    assert result.exit_code == 1
    assert "hint: install it: pip install 'holdfast[tui]'" in result.output
