"""Log lines of commands that show something at the end of a terminal."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest

from holdfast.cli import logs


@pytest.fixture
def configured() -> Iterator[None]:
    root = logging.getLogger()
    before, level = root.handlers[:], root.level
    logs.configure("text", level=logging.WARNING)
    yield
    root.handlers[:] = before
    root.setLevel(level)


@pytest.mark.usefixtures("configured")
def test_a_line_is_written_above_what_is_shown_at_the_end(capsys: pytest.CaptureFixture[str]) -> None:
    logs.configure("text", level=logging.WARNING)  # with the standard error of this test
    done: list[str] = []
    with logs.above(lambda: done.append("erased"), lambda: done.append("drawn")):
        logging.getLogger("holdfast").warning("something happened")
    logging.getLogger("holdfast").warning("later")
    assert done == ["erased", "drawn"]
    assert [line.split(maxsplit=2)[2] for line in capsys.readouterr().err.splitlines()] == [
        "something happened",
        "later",
    ]
