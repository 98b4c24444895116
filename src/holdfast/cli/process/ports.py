"""The port of a server that is started again: the one that it had before, so that kubeconfigs and links stay valid.

It is kept in a file of the data directory.
"""

from __future__ import annotations

import contextlib
from pathlib import Path


def last(directory: Path | None, name: str) -> int:
    """The port that a server of this name had in a directory; 0 if it had none."""
    if directory is None:
        return 0
    try:
        text = (directory / f"{name}.port").read_text().strip()
    except (OSError, UnicodeDecodeError):
        return 0
    return int(text) if text.isdecimal() and 0 < int(text) < 65536 else 0


def keep(directory: Path | None, name: str, port: int) -> None:
    """Keep the port for the next start."""
    if directory is not None and last(directory, name) != port:
        # On a full disk the server runs all the same; the next one has another port.
        with contextlib.suppress(OSError):
            (directory / f"{name}.port").write_text(f"{port}\n")
