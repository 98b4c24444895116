"""The storage that exported disks pass through: folders for claims and NFS, and S3.

`pvc://CLAIM/PATH` and `nfs://SERVER/PATH` are files below a folder in which they are mounted; `s3://BUCKET/KEY` is an
object, uploaded in parts, of which a repeated upload sends only those that are missing.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import shutil
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import msgspec

from holdfast.providers.contract import Code, ProviderError, Transfer
from holdfast.providers.s3 import PART, Bucket

Progress = Callable[[int], None]
"""Called with the bytes that are done."""

BLOCK: Final = 1 << 20


class Options(msgspec.Struct, kw_only=True):
    """The storage options of a transfer."""

    endpoint: str = ""
    region: str = ""
    usepathstyle: bool = False


class Staging:
    """The storage of a provider; `root` is the folder with `pvc/CLAIM` and `nfs/SERVER`."""

    def __init__(self, root: Path | None = None, *, part_size: int = PART) -> None:
        self._root = root
        self._part_size = part_size

    @property
    def backends(self) -> tuple[str, ...]:
        return ("pvc", "nfs", "s3") if self._root else ("s3",)

    def path(self, transfer: Transfer) -> Path | None:
        """The file of a transfer, if it goes to a folder; None for S3."""
        parts = urlsplit(transfer.url)
        if parts.scheme == "s3":
            return None
        if parts.scheme not in ("pvc", "nfs"):
            raise ProviderError(Code.INVALID, f"{transfer.url} has none of the schemes pvc, nfs and s3")
        if self._root is None:
            raise ProviderError(
                Code.UNSUPPORTED, f"{transfer.url}: this provider has no folder for {parts.scheme} storage"
            )
        names = [parts.netloc, *(name for name in parts.path.split("/") if name)]
        if len(names) < 2 or any(name in ("", ".", "..") or "\0" in name for name in names):
            raise ProviderError(Code.INVALID, f"{transfer.url} is not {parts.scheme}://NAME/PATH")
        return self._root.joinpath(parts.scheme, *names)

    def bucket(self, transfer: Transfer) -> tuple[Bucket, str]:
        parts = urlsplit(transfer.url)
        key = parts.path.lstrip("/")
        if not parts.netloc or not key:
            raise ProviderError(Code.INVALID, f"{transfer.url} is not s3://BUCKET/KEY")
        try:
            read = msgspec.json.decode(transfer.options_json or "{}")
            options = msgspec.convert({str(name).lower(): value for name, value in dict(read).items()}, Options)
        except (msgspec.DecodeError, msgspec.ValidationError, TypeError, ValueError) as error:
            raise ProviderError(Code.INVALID, f"the storage options cannot be read: {error}") from None
        given = {name.lower().replace("_", ""): value for name, value in transfer.credentials.items()}
        bucket = Bucket(
            name=parts.netloc,
            endpoint=options.endpoint,
            region=options.region or "us-east-1",
            path_style=options.usepathstyle or bool(options.endpoint),
            access_key=given.get("accesskeyid", ""),
            secret_key=given.get("secretaccesskey", ""),
            token=given.get("sessiontoken", ""),
            part_size=self._part_size,
        )
        return bucket, key

    async def put(self, transfer: Transfer, source: Path, progress: Progress = lambda done: None) -> None:
        """Store a file.  A reader sees the whole file or none."""
        target = self.path(transfer)
        if target is None:
            bucket, key = self.bucket(transfer)
            async with bucket:
                await bucket.upload(key, source, progress)
            return
        await asyncio.to_thread(_copy, source, target)
        progress(source.stat().st_size)

    async def get(self, transfer: Transfer, target: Path, progress: Progress = lambda done: None) -> None:
        """Fetch a file; what is there of it already is not fetched again from S3."""
        source = self.path(transfer)
        if source is None:
            bucket, key = self.bucket(transfer)
            async with bucket:
                await bucket.download(key, target, progress)
            return
        if not source.is_file():
            raise ProviderError(Code.NOT_FOUND, f"there is no file at {transfer.url}")
        await asyncio.to_thread(shutil.copyfile, source, target)
        progress(target.stat().st_size)

    async def remove(self, transfer: Transfer) -> None:
        """Delete what a transfer stored, whole or in parts, and the folders that it leaves empty."""
        target = self.path(transfer)
        if target is None:
            bucket, key = self.bucket(transfer)
            async with bucket:
                await bucket.remove(key)
            return
        assert self._root is not None
        target.unlink(missing_ok=True)
        part(target).unlink(missing_ok=True)
        claim = self._root.joinpath(*target.relative_to(self._root).parts[:2])
        folder = target.parent
        while folder not in (claim, claim.parent) and folder.is_dir() and not any(folder.iterdir()):
            folder.rmdir()
            folder = folder.parent

    # --- small contents, for the simulated hypervisor ----------------------------------

    async def write(self, transfer: Transfer, data: bytes) -> None:
        await self._with_file(lambda path: self.put(transfer, path), data)

    async def read(self, transfer: Transfer) -> bytes | None:
        async def fetch(path: Path) -> None:
            path.unlink(missing_ok=True)
            await self.get(transfer, path)

        try:
            return await self._with_file(fetch, b"")
        except ProviderError as error:
            if error.code is Code.NOT_FOUND:
                return None
            raise

    @staticmethod
    async def _with_file(use: Callable[[Path], Awaitable[None]], data: bytes) -> bytes:
        import tempfile

        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "disk"
            path.write_bytes(data)
            await use(path)
            return path.read_bytes()


def part(path: Path) -> Path:
    """Where a file is written before it has its name."""
    return path.with_name(path.name + ".part")


def _copy(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    with source.open("rb") as reader, part(target).open("wb") as writer:
        shutil.copyfileobj(reader, writer, BLOCK)
        writer.flush()
        os.fsync(writer.fileno())
    part(target).rename(target)


def sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
