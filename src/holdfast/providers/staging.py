"""The storage that exported disks pass through: folders for claims and NFS, and S3.

`pvc://CLAIM/PATH` and `nfs://SERVER/PATH` are files below the folders that have them mounted; `s3://BUCKET/KEY` is an
object, uploaded in parts, of which a repeated upload sends only those that are missing.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import shutil
from collections.abc import Awaitable, Callable, Mapping
from fnmatch import fnmatchcase
from ipaddress import ip_address
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import msgspec

from holdfast.providers.contract import Capabilities, Code, ProviderError, Transfer
from holdfast.providers.s3 import PART, Bucket

Progress = Callable[[int], None]
"""Called with the bytes that are done."""

BLOCK: Final = 1 << 20


class Options(msgspec.Struct, kw_only=True):
    """The storage options of a transfer."""

    endpoint: str = ""
    region: str = ""
    usepathstyle: bool = False


class HostPolicy(msgspec.Struct, frozen=True):
    """Which hosts a provider may be sent to by a URL: those that match a pattern, or all but link-local addresses."""

    patterns: tuple[str, ...] = ()

    def check(self, url: str) -> None:
        host = urlsplit(url).hostname or ""
        if self.patterns:
            if any(fnmatchcase(host, pattern) for pattern in self.patterns):
                return
            raise ProviderError(Code.INVALID, f"host {host!r} is not one of those that this provider may connect to")
        try:
            address = ip_address(host)
        except ValueError:
            return
        if address.is_link_local or address.is_unspecified or address.is_multicast:
            raise ProviderError(Code.INVALID, f"this provider does not connect to the address {host}")


class Staging:
    """The storage of a provider.

    `root` is the folder with `pvc/CLAIM` and `nfs/SERVER`; `claims` are the folders of claims that are elsewhere.
    """

    def __init__(
        self,
        root: Path | None = None,
        *,
        claims: Mapping[str, Path] | None = None,
        hosts: HostPolicy | None = None,
        part_size: int = PART,
    ) -> None:
        self._root = root
        self._claims = dict(claims or {})
        self.hosts = hosts or HostPolicy()
        self._part_size = part_size

    @property
    def backends(self) -> tuple[str, ...]:
        if self._root:
            return ("pvc", "nfs", "s3")
        return ("pvc", "s3") if self._claims else ("s3",)

    def able(self, capabilities: Capabilities) -> Capabilities:
        """What a provider with this storage can do; it writes to and reads from NFS itself, as that is mounted."""
        return msgspec.structs.replace(
            capabilities,
            export_backends=self.backends,
            import_backends=self.backends,
            transfer_modes=("relay", "direct") if "nfs" in self.backends else ("relay",),
        )

    def path(self, transfer: Transfer) -> Path | None:
        """The file of a transfer, if it goes to a folder; None for S3."""
        parts = urlsplit(transfer.url)
        if parts.scheme == "s3":
            return None
        if parts.scheme not in ("pvc", "nfs"):
            raise ProviderError(Code.INVALID, f"{transfer.url} has none of the schemes pvc, nfs and s3")
        if parts.scheme not in self.backends:
            raise ProviderError(
                Code.UNSUPPORTED, f"{transfer.url}: this provider has no folder for {parts.scheme} storage"
            )
        names = [parts.netloc, *(name for name in parts.path.split("/") if name)]
        if len(names) < 2 or any(name in ("", ".", "..") or "\0" in name for name in names):
            raise ProviderError(Code.INVALID, f"{transfer.url} is not {parts.scheme}://NAME/PATH")
        return self._mounted(parts.scheme, names[0]).joinpath(*names[1:])

    def _mounted(self, scheme: str, name: str) -> Path:
        """The folder of a claim or a server.  Claims may also be mounted directly below the root."""
        claim, root = scheme == "pvc", self._root
        folders = [self._claims[name]] if claim and name in self._claims else []
        folders += [] if root is None else [root / scheme / name, *([root / name] if claim else [])]
        for folder in folders:
            if folder.is_dir():
                return folder
        what = "claim" if claim else "NFS server"
        where = f": there is no folder {folders[0]}" if folders else ""
        raise ProviderError(Code.NOT_FOUND, f"{what} {name} is not mounted here{where}")

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
        if options.endpoint:
            self.hosts.check(options.endpoint)
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
        """Delete what a transfer stored, whole or in parts, and the folders of a claim that it leaves empty.

        The folders of an NFS server are those that the user named.
        """
        target = self.path(transfer)
        if target is None:
            bucket, key = self.bucket(transfer)
            async with bucket:
                await bucket.remove(key)
            return
        target.unlink(missing_ok=True)
        part(target).unlink(missing_ok=True)
        parts = urlsplit(transfer.url)
        mounted, folder = self._mounted(parts.scheme, parts.netloc), target.parent
        while parts.scheme == "pvc" and folder != mounted and folder.is_dir() and not any(folder.iterdir()):
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
