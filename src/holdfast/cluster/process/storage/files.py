"""Puts the files of volumes on the disk, so that a reader sees all of the old ones or all of the new.

The files stand in a directory of their own, which a link ``..data`` names; what a
container opens are links through that one.  To change the files, a new directory is
written and the link is replaced, which is one step.  This module must not know where
contents come from.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path, PurePosixPath
from typing import Final

from holdfast.cluster.process.storage.volumes import Contents, File

_DATA: Final = "..data"
_PRIVATE: Final = 0o700


def make_private(directory: Path) -> None:
    """A directory that only its owner can enter, and the same of those above it that were not there."""
    for missing in reversed([each for each in (directory, *directory.parents) if not each.exists()]):
        missing.mkdir(mode=_PRIVATE, exist_ok=True)


def publish(directory: Path, contents: Contents) -> bool:
    """Have a directory hold these files and no others; whether that changed anything."""
    make_private(directory)
    before = directory / _DATA
    if before.is_symlink() and _present(before) == contents:
        return False
    old = before.resolve() if before.is_symlink() else None
    # mkdtemp makes it for the owner alone.
    new = Path(tempfile.mkdtemp(prefix="..", dir=directory))
    for path, file in contents.items():
        _write(new / path, file)
    _link(before, new.name)
    names = {PurePosixPath(path).parts[0] for path in contents}
    for name in names:
        if not (directory / name).is_symlink():
            (directory / name).symlink_to(f"{_DATA}/{name}")
    for link in directory.iterdir():
        if not link.name.startswith("..") and link.name not in names:
            link.unlink()
    if old is not None:
        shutil.rmtree(old, ignore_errors=True)
    return True


def _present(data: Path) -> dict[str, File]:
    root = data.resolve()
    return {
        str(path.relative_to(root)): File(path.read_bytes(), path.stat().st_mode & 0o7777)
        for path in root.rglob("*")
        if path.is_file()
    }


def _write(path: Path, file: File) -> None:
    make_private(path.parent)
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(handle, "wb") as target:
        target.write(file.data)
        # The umask must not decide what readers can do.
        os.fchmod(handle, file.mode)


def _link(link: Path, target: str) -> None:
    fresh = link.with_name("..fresh")
    fresh.unlink(missing_ok=True)
    fresh.symlink_to(target)
    fresh.replace(link)


def read_tail(path: Path, limit: int) -> str:
    """The last bytes of a file, as text; nothing, if there is no such file."""
    try:
        with path.open("rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - limit))
            return file.read(limit).decode(errors="replace")
    except OSError:
        return ""
