"""Replaying the console blocks of a page: what its commands print now, beside what the page shows.

``...`` stands for any lines.  Random names, ages, addresses and times may differ.
"""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Iterator
from pathlib import Path

from tests.docs.pages import BLOCK, COMMAND
from tests.docs.terminals import Terminal

DRAWN = (
    (r"\b[a-z0-9]{10}-[a-z0-9]{5}\b", "POD"),
    (r"\bb[a-z0-9]{9}\b", "REVISION"),
    (r"\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", "TIME"),
    (r"\b\d+(?:\.\d+){3}\b", "ADDRESS"),
    (r"\b\d+(?:\.\d+)?(?:ms|s|m|h)(?:\d+s)?\b", "AGE"),
    (r" +", " "),
)
"""What differs from one run to the next, and the widths of columns with it."""


def steady(text: str) -> str:
    for pattern, stands_for in DRAWN:
        text = re.sub(pattern, stands_for, text)
    return "".join(f"{line.rstrip()}\n" for line in text.splitlines())


def matches(written: str, shown: str) -> bool:
    parts = (re.escape(steady(part)) for part in written.split("...\n"))
    return re.fullmatch(r"(?:.*\n)*".join(parts), steady(shown)) is not None


def assert_shown(path: Path, terminal: Terminal) -> None:
    """Type every command of a page; with HOLDFAST_UPDATE_DOCS set, write what is different into the page."""
    page = path.read_text()
    now = BLOCK.sub(lambda block: "".join(_replayed(block[0], terminal)), page)
    if os.environ.get("HOLDFAST_UPDATE_DOCS"):
        path.write_text(now)
    different = "\n".join(
        difflib.unified_diff(page.splitlines(), now.splitlines(), "the page", "what is shown", "", "", 1)
    )
    assert not different, different


def _replayed(block: str, terminal: Terminal) -> Iterator[str]:
    """The block as it is when its commands are run now; a command that fails is followed by ``echo $?``."""
    code = 0
    found = COMMAND.findall(block)
    for number, (line, written) in enumerate(found):
        if line == "echo $?":
            shown, code = f"{code}\n", 0
        else:
            code, shown = terminal.run(line)
            may_fail = number + 1 < len(found) and found[number + 1][0] == "echo $?"
            assert may_fail or code == 0, f"$ {line}\n{shown}"
        yield f"$ {line}\n{written if matches(written, shown) else steady_end(shown)}"


def steady_end(text: str) -> str:
    return text if not text or text.endswith("\n") else f"{text}\n"
