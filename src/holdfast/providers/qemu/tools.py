"""`qemu-img`: images, overlays, conversions with progress, internal snapshots."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import msgspec

from holdfast.providers.contract import Code, ProviderError

_PROGRESS: Final = re.compile(rb"\((\d+(?:\.\d+)?)/100%\)")

LOCK_ATTEMPTS: Final = 50
LOCK_PAUSE: Final = 0.2


async def run(
    *arguments: str | Path, on_progress: Callable[[float], None] | None = None, program: str = "qemu-img"
) -> bytes:
    """Run a program to its end; its process ends with the caller.  A failure is an error with its last words.

    While another process has an image open, such as one that a killed provider left, it is tried again.
    """
    for _ in range(LOCK_ATTEMPTS):
        try:
            return await _run(program, arguments, on_progress)
        except ProviderError as error:
            if not error.transient:
                raise
        await asyncio.sleep(LOCK_PAUSE)
    return await _run(program, arguments, on_progress)


async def _run(program: str, arguments: tuple[str | Path, ...], on_progress: Callable[[float], None] | None) -> bytes:
    process = await asyncio.create_subprocess_exec(
        program,
        *map(str, arguments),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env={**os.environ, "LC_ALL": "C"},
    )
    assert process.stdout is not None
    assert process.stderr is not None
    try:
        errors = asyncio.create_task(process.stderr.read())
        out = bytearray()
        while block := await process.stdout.read(4096):
            out += block
            if on_progress is not None and (found := _PROGRESS.findall(block)):
                on_progress(float(found[-1]))
        words = (await errors).decode(errors="replace").strip()
        if await process.wait() != 0:
            last = words.splitlines()[-1] if words else f"status {process.returncode}"
            raise _error(program, last)
        return bytes(out)
    finally:
        if process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()


def _error(program: str, words: str) -> ProviderError:
    code = Code.INTERNAL
    if "No space left" in words:
        code = Code.QUOTA
    elif "write" in words and "lock" in words:
        code = Code.RETRYABLE
    elif "Could not open" in words or "not in" in words or "Image is not" in words:
        code = Code.INVALID
    return ProviderError(code, f"{program}: {words}")


class ImageInfo(msgspec.Struct, kw_only=True, rename="kebab"):
    format: str
    virtual_size: int
    actual_size: int = 0
    backing_filename: str = ""
    full_backing_filename: str = ""
    snapshots: list[dict[str, Any]] = []

    def tags(self) -> tuple[str, ...]:
        return tuple(str(one["name"]) for one in self.snapshots)


async def info(path: Path, format: str = "") -> ImageInfo:
    if not path.exists():
        raise ProviderError(Code.NOT_FOUND, f"there is no image {path.name}")
    given = ("-f", format) if format else ()
    return msgspec.json.decode(await run("info", "-U", "--output=json", *given, path), type=ImageInfo)


async def probe(path: Path) -> ImageInfo:
    """What a file of unknown origin is; one that refers to other files is refused."""
    found = await info(path)
    if found.backing_filename:
        raise ProviderError(Code.INVALID, f"the image refers to another file, {found.backing_filename}")
    return found


def written(path: Path) -> None:
    """Wait until a file is on the disk, and its name too."""
    for one, flags in ((path, os.O_RDONLY), (path.parent, os.O_RDONLY | os.O_DIRECTORY)):
        handle = os.open(one, flags | os.O_CLOEXEC)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


async def create(path: Path, size: int, *, backing: Path | None = None) -> None:
    """A new disk, empty or an overlay; a disk that is there is kept."""
    if path.exists():
        return
    part = path.with_name(path.name + ".part")
    arguments: list[str | Path] = ["create", "-q", "-f", "qcow2"]
    if backing is not None:
        arguments += ["-b", backing, "-F", "qcow2"]
    arguments.append(part)
    if size:
        arguments.append(str(size))
    await run(*arguments)
    await asyncio.to_thread(written, part)
    part.rename(path)


async def convert(
    source: Path,
    target: Path,
    *,
    source_format: str = "qcow2",
    format: str = "qcow2",
    snapshot: str = "",
    backing: Path | None = None,
    compress: bool = False,
    on_progress: Callable[[float], None] | None = None,
) -> None:
    """Copy an image in another format; `target` has its name only when it is whole."""
    part = target.with_name(target.name + ".part")
    part.unlink(missing_ok=True)
    arguments: list[str | Path] = ["convert", "-p", "-U", "-f", source_format, "-O", format]
    if snapshot:
        arguments += ["-l", f"snapshot.name={snapshot}"]
    if backing is not None:
        arguments += ["-B", backing, "-F", "qcow2"]
    if compress and format == "qcow2":
        arguments.append("-c")
    try:
        await run(*arguments, source, part, on_progress=on_progress)
        await asyncio.to_thread(written, part)
        part.rename(target)
    finally:
        part.unlink(missing_ok=True)
