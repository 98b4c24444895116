"""Files of disks: how large they are, and how they are removed."""

from __future__ import annotations

from pathlib import Path

from holdfast.providers.staging import part


def discard(path: Path) -> None:
    path.unlink(missing_ok=True)
    part(path).unlink(missing_ok=True)


def allocated(path: Path) -> int:
    return path.stat().st_blocks * 512
