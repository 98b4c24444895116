"""Tutorials and how-to pages: every command is typed beside a live cluster, and shows what the page shows.

After a change, run

    HOLDFAST_UPDATE_DOCS=1 python -m pytest tests/docs/test_live.py

and read what it changed.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.docs.pages import BLOCK, LIVE, name
from tests.docs.replaying import assert_shown, matches
from tests.docs.terminals import Terminal


@pytest.fixture(scope="module")
def terminal(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Terminal]:
    terminal = Terminal(tmp_path_factory.mktemp("live"))
    with terminal.up():
        yield terminal


@pytest.mark.parametrize("path", [path for path in LIVE if BLOCK.search(path.read_text())], ids=name)
def test_every_command_shows_what_the_page_shows(path: Path, terminal: Terminal) -> None:
    assert_shown(path, terminal)


@pytest.mark.parametrize(
    ("written", "shown", "same"),
    [
        ("a\n...\nb\n", "a\nc\nd\nb\n", True),
        ("...\nb\n", "b\n", True),
        ("a\n", "a\nb\n", False),
        ("web  5s\n", "web  12m3s\n", True),
        ("web: revision bfcftkkm4r\n", "web: revision bqqqqqqqqq\n", True),
        ("6 of 6 ready\n", "5 of 6 ready\n", False),
    ],
)
def test_only_what_is_drawn_anew_may_differ(written: str, shown: str, same: bool) -> None:
    assert matches(written, shown) is same
