"""The journal of a simulated hypervisor: its records, in a file that a killed process leaves readable.

A line is a record that was written or removed.  A line that was cut off is the last one, and is ignored; the file is
rewritten without history when it is opened.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import msgspec


class Journal:
    """Records by kind and id; `write` and `remove` are in the file when they return."""

    def __init__(self, path: Path | None) -> None:
        self._file = -1
        self.records: dict[tuple[str, str], Any] = {}
        if path is None:
            return
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.exists():
            self._read(path)
        fresh = path.with_name(path.name + ".new")
        with fresh.open("wb") as file:
            for (kind, id), value in self.records.items():
                file.write(_line(kind, id, value))
            file.flush()
            os.fsync(file.fileno())
        fresh.rename(path)
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)

    def _read(self, path: Path) -> None:
        for line in path.read_bytes().splitlines(keepends=True):
            try:
                kind, id, value = msgspec.json.decode(line, type=tuple[str, str, Any])
            except msgspec.DecodeError:
                continue
            if value is None:
                self.records.pop((kind, id), None)
            else:
                self.records[kind, id] = value

    def write(self, kind: str, id: str, value: msgspec.Struct) -> None:
        if self._file >= 0:
            os.write(self._file, _line(kind, id, value))

    def remove(self, kind: str, id: str) -> None:
        if self._file >= 0:
            os.write(self._file, _line(kind, id, None))

    def close(self) -> None:
        if self._file >= 0:
            os.close(self._file)
            self._file = -1


def _line(kind: str, id: str, value: Any) -> bytes:
    return msgspec.json.encode((kind, id, value)) + b"\n"
