"""Every example runs on a fresh ``holdfast up`` as it is: what its comment says to type is typed, and succeeds."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.docs.pages import LIVE
from tests.docs.terminals import Terminal
from tests.places import ROOT

from holdfast.cli.manifests import examples

EXAMPLES = sorted((ROOT / "examples").glob("*/*.yaml"))
GPUS = ("deploymentrequests", "graphdeployments", "podcliquesets")
"""Folders whose examples may need most GPUs: they run one after another, while the others start."""


def named(path: Path) -> str:
    return f"{path.parent.name}/{path.stem}"


def test_what_the_comments_say_to_type_succeeds(tmp_path: Path) -> None:
    found = {path: examples.commands(path.read_text()) for path in EXAMPLES}
    # What a page tells to type is typed there (test_live.py).
    shown = "".join(page.read_text() for page in LIVE)
    terminal, typed = (
        Terminal(tmp_path),
        {path: lines for path, lines in found.items() if f"$ {lines[0]}\n" not in shown},
    )
    alone = [path for path in typed if path.parent.name in GPUS]
    together = [path for path in typed if path not in alone]
    with terminal.up():
        for path in together:
            terminal.type(typed[path][0])
        for path in alone:
            for line in typed[path]:
                terminal.type(line)
            # What a request deployed outlives the request.
            terminal.run("holdfast delete dgd --all --now")
            terminal.run("holdfast delete dgd --all --now -n inference")
            terminal.run("holdfast delete pcs chat-gangs minimal --now --ignore-not-found")
        for path in together:
            for line in typed[path][1:]:
                terminal.type(line)


@pytest.mark.parametrize("path", EXAMPLES, ids=named)
def test_the_comment_says_what_an_example_shows_and_how_to_run_it(path: Path) -> None:
    text, at = path.read_text(), path.relative_to(ROOT)
    assert examples.summary(text).endswith(".")
    assert any(f" {place}" in line for line in examples.commands(text) for place in (at, at.parent))
