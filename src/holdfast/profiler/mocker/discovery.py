"""Which workers there are: URLs that are given, hosts whose names have one address for each worker, or a file.

The file is JSON and is read again whenever it changes, so that a ConfigMap in a volume is one:

    {"workers": [{"component": "Decode", "type": "decode", "address": "127.8.0.3:9090"}]}
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import msgspec

FILE_SECONDS: Final = 0.25
"""Between two looks at whether the file has changed; Python has no notices of that."""
NAME_SECONDS: Final = 5.0
"""Between two lookups of the addresses of a host."""

_log: Final = logging.getLogger("holdfast.profiler.mocker")

Found = Callable[[Iterable[str]], None]
"""Called with the URLs of all workers."""


class _Listed(msgspec.Struct, frozen=True):
    address: str


class _File(msgspec.Struct, frozen=True):
    workers: tuple[_Listed, ...] = ()


def read(content: bytes) -> tuple[str, ...]:
    """The URLs in a file; raises `ValueError`."""
    try:
        return tuple(url(each.address) for each in msgspec.json.decode(content, type=_File).workers)
    except msgspec.MsgspecError as error:
        raise ValueError(f"this is no list of workers: {error}") from None


def url(text: str) -> str:
    """A worker as it is given: a URL, or a host and port, perhaps after its role and ``=``; raises `ValueError`."""
    _, _, place = text.strip().rpartition("=")
    given = place if "://" in place else f"http://{place}"
    parts = urlsplit(given)
    try:
        port = parts.port
    except ValueError:
        port = None
    if parts.scheme not in ("http", "https") or not parts.hostname or port is None:
        raise ValueError(f"{text!r} is not the address of a worker; write http://HOST:PORT")
    return given.rstrip("/")


async def follow_file(path: Path, found: Found) -> None:
    """Report the workers of a file whenever it changes, until cancelled; what cannot be read changes nothing."""
    seen: bytes | None = None
    while True:
        try:
            content = path.read_bytes()
            if content != seen:
                seen = content
                found(read(content))
        except (OSError, ValueError) as error:
            if seen != b"":
                _log.warning("workers cannot be read", extra={"fields": {"file": str(path), "error": str(error)}})
            seen = b""
        await asyncio.sleep(FILE_SECONDS)


@dataclass(frozen=True, slots=True)
class _Host:
    scheme: str
    name: str
    port: int


async def follow_names(urls: Iterable[str], found: Found) -> None:
    """Report the addresses behind the hosts of URLs, each a worker, until cancelled."""
    hosts = []
    for each in urls:
        parts = urlsplit(each)
        hosts.append(_Host(parts.scheme, parts.hostname or "", parts.port or 80))
    while True:
        addresses = await asyncio.gather(*map(_addresses, hosts))
        found(url for listed in addresses for url in listed)
        await asyncio.sleep(NAME_SECONDS)


async def _addresses(host: _Host) -> list[str]:
    try:
        infos = await asyncio.get_running_loop().getaddrinfo(host.name, host.port, type=socket.SOCK_STREAM)
    except OSError:
        return []
    ips = sorted({str(info[4][0]) for info in infos})
    return [f"{host.scheme}://{f'[{ip}]' if ':' in ip else ip}:{host.port}" for ip in ips]
