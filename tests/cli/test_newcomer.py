"""What the README tells a newcomer to type, typed: the tour from ``holdfast up`` to ``holdfast down``."""

from __future__ import annotations

from pathlib import Path

from tests.docs.replaying import assert_shown
from tests.docs.terminals import Terminal
from tests.places import ROOT

README = ROOT / "README.md"


def test_the_readme_can_be_followed(tmp_path: Path) -> None:
    assert "```sh\nholdfast up\n```" in README.read_text()
    terminal = Terminal(tmp_path)
    with terminal.up() as cluster:
        assert_shown(README, terminal)
        assert cluster.wait(30) == 0, "holdfast down has stopped it"
