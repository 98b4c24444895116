"""What a user needs before the commands that are suggested can be typed in another terminal."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path


def activation() -> Iterator[str]:
    """How to make the command available, where it is in a virtual environment that is not active."""
    if shutil.which("holdfast") is None:
        script, here = Path(sys.prefix) / "bin/activate", Path.cwd()
        shown = script.relative_to(here) if script.is_relative_to(here) else script
        yield f"first, for the command holdfast:  . {shown}"


def next_commands() -> str:
    """Commands to try on a new cluster; the terminal interface where what it needs is installed."""
    return "'holdfast examples'" + (" or 'holdfast tui'" if find_spec("textual") is not None else "")
