"""Stores of exported disks: the storage of migrations."""

from __future__ import annotations

from typing import Protocol

from holdfast.providers.contract import (
    Transfer,
)


class Store(Protocol):
    """Where exported disks are put: the storage of migrations."""

    async def write(self, transfer: Transfer, data: bytes) -> None: ...
    async def read(self, transfer: Transfer) -> bytes | None: ...
    async def remove(self, transfer: Transfer) -> None: ...


class MemoryStore:
    """A store that several simulated hypervisors share in one process."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}

    async def write(self, transfer: Transfer, data: bytes) -> None:
        self.files[transfer.url] = data

    async def read(self, transfer: Transfer) -> bytes | None:
        return self.files.get(transfer.url)

    async def remove(self, transfer: Transfer) -> None:
        self.files.pop(transfer.url, None)
