"""``holdfast backup`` and ``holdfast restore``: all data of a cluster in one file.

The file is gzip of lines of JSON: the files of the server's identity, then the objects.  gzip has a checksum, so that a
file that is damaged or cut off is noticed.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import gzip
import os
import zlib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any

import click
import msgspec

from holdfast.apiserver.auth.identity import FILES, write_private
from holdfast.apiserver.server import BACKUP
from holdfast.apiserver.storage import backups, recovery, sqlite_log
from holdfast.apiserver.storage.backups import SKIPPED, Backup, BackupError
from holdfast.apiserver.storage.sqlite_log import InUse, SqliteLog, StorageError
from holdfast.cli.arguments import PathType
from holdfast.cli.errors import Complaint, ExitCode, InputError
from holdfast.client.kubeconfig import connect
from holdfast.client.protocols import Unreachable
from holdfast.client.settings import KubeconfigError
from holdfast.meta.errors import StatusError
from holdfast.meta.exchange import Request, encode


class NotPossible(InputError):
    """What was asked for is valid, but not possible now."""

    exit_code = ExitCode.BLOCKED


@click.command("backup")
@click.argument("directory", metavar="DIR", type=PathType(exists=True, file_okay=False))
@click.argument("file", metavar="FILE", type=PathType(dir_okay=False))
@click.option(
    "--kubeconfig",
    type=PathType(exists=True, dir_okay=False),
    help="The kubeconfig of the running cluster.  [default: kubeconfig in DIR]",
)
def backup(directory: Path, file: Path, kubeconfig: Path | None) -> None:
    """Write all objects and keys of a cluster to one file.

    Works while the cluster runs, and while it does not.  The file has the keys and the admin token of the cluster, so
    only you can read it.  It does not have the files of pods that run as processes.
    """
    try:
        with _written(file) as target:
            target.write(encode({"files": _identity(directory)}) + b"\n")
            revision = _copy(directory, kubeconfig or directory / "kubeconfig", target)
        found = _read(file)[1]
    except (StorageError, BackupError, KubeconfigError, OSError) as error:
        raise InputError(Complaint(message=_text(error))) from error
    except (StatusError, Unreachable) as error:
        raise NotPossible(Complaint(message=f"the running cluster cannot be asked: {error}")) from error
    assert found.revision == revision
    click.echo(f"{file}: {len(found.entries)} objects, version {found.revision}")


@click.command("restore")
@click.argument("file", metavar="FILE", type=PathType(exists=True, dir_okay=False))
@click.argument("directory", metavar="DIR", type=PathType(file_okay=False))
def restore(file: Path, directory: Path) -> None:
    """Make the data directory of a cluster from a backup.

    DIR must have no data.  All clients of the cluster list again, and its kubeconfigs stay valid.
    """
    try:
        files, found = _read(file)
        for name in (sqlite_log.FILE, recovery.WAL):
            if (directory / name).exists():
                message = f"{directory / name} exists; move it away, or choose another directory"
                raise NotPossible(Complaint(message=message))
        for name, content in files.items():
            write_private(directory / name, content)
        (directory / sqlite_log.LAST).unlink(missing_ok=True)
        # The objects come last: without them the directory is not that of a cluster.
        recovery.write(directory, found.entries, revision=found.revision + SKIPPED, name=_DRAFT)
        (directory / _DRAFT).rename(directory / sqlite_log.FILE)
        sqlite_log.flush(directory)
    except (StorageError, BackupError, OSError) as error:
        raise InputError(Complaint(message=_text(error))) from error
    click.echo(f"{directory}: {len(found.entries)} objects, version {found.revision}")


_DRAFT = "restored.db"


class _Files(msgspec.Struct, frozen=True):
    files: dict[str, str]


def _identity(directory: Path) -> dict[str, str]:
    there = [directory / name for name in FILES if (directory / name).exists()]
    return {path.name: base64.b64encode(path.read_bytes()).decode() for path in there}


def _copy(directory: Path, kubeconfig: Path, target: gzip.GzipFile) -> int:
    """Write the objects of a data directory; asks the server that runs there, if one does."""
    if not (directory / sqlite_log.FILE).exists():
        raise BackupError(f"{directory / sqlite_log.FILE}: there is no such file; name a data directory")
    try:
        with contextlib.closing(SqliteLog.open(directory)) as log:
            loaded = log.load()
    except InUse:
        return asyncio.run(_ask(kubeconfig, target))
    target.writelines(backups.lines(loaded.revision, loaded.entries))
    return loaded.revision


async def _ask(kubeconfig: Path, target: gzip.GzipFile) -> int:
    client = connect(kubeconfig).client
    try:
        answer = await client.raw(Request("GET", BACKUP, {"follow": ("true",)}))
        assert answer.stream is not None, "a backup is a stream"
        head = b""
        async for chunk in answer.stream:
            head = head or chunk.partition(b"\n")[0]
            target.write(chunk)
    finally:
        await client.close()
    return int(msgspec.json.decode(head)["revision"])


@contextlib.contextmanager
def _written(path: Path) -> Iterator[gzip.GzipFile]:
    """A file that only its owner can read, and that is there once it is whole."""
    with contextlib.ExitStack() as stack:
        try:
            draft = stack.enter_context(NamedTemporaryFile(dir=path.absolute().parent, prefix=f".{path.name}."))
        except OSError as error:
            raise BackupError(f"{path}: {error.strerror}; choose a place that you can write to") from error
        with gzip.GzipFile(fileobj=draft, mode="wb", filename="", compresslevel=6) as packed:
            yield packed
        draft.flush()
        os.fsync(draft.fileno())
        os.link(draft.name, f"{draft.name}.whole")
        os.replace(f"{draft.name}.whole", path)


def _read(path: Path) -> tuple[Mapping[str, bytes], Backup]:
    try:
        with gzip.open(path, "rb") as lines:
            given: Iterable[bytes] = lines
            first = msgspec.json.decode(next(iter(given), b""), type=_Files)
            files = {name: base64.b64decode(text) for name, text in first.files.items() if name in FILES}
            return files, backups.read(given)
    except gzip.BadGzipFile as error:
        raise BackupError(f"{path}: this is not a backup; nothing was restored") from error
    except (EOFError, zlib.error, msgspec.MsgspecError, ValueError, BackupError) as error:
        raise BackupError(f"{path}: {error}; nothing was restored") from error


def _text(error: Any) -> str:
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}"
    return str(error)
