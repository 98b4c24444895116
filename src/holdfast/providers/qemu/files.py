"""Files of disks: how large they are, and how they are removed."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from holdfast.providers.staging import part

GIB: Final = 1 << 30
MIB: Final = 1 << 20


def discard(path: Path) -> None:
    path.unlink(missing_ok=True)
    part(path).unlink(missing_ok=True)


def allocated(path: Path) -> int:
    return path.stat().st_blocks * 512
