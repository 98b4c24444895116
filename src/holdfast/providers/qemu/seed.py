"""The disk from which cloud-init reads: an ISO 9660 image labelled `cidata`, with names as they are (Joliet)."""

from __future__ import annotations

import struct
from typing import Final

SECTOR: Final = 2048


def iso(files: dict[str, bytes], label: str = "cidata") -> bytes:
    """An image with files in its root."""
    names = sorted(files)
    # Sectors: 16 and 17 volumes, 18 their end, 19 to 22 path tables, 23 and 24 the two roots, then the files.
    starts, next_sector = {}, 25
    for name in names:
        starts[name] = next_sector
        next_sector += max(1, _sectors(len(files[name])))
    plain = [(name.upper().encode("ascii", "replace"), starts[name], len(files[name])) for name in names]
    joliet = [(name.encode("utf-16-be"), starts[name], len(files[name])) for name in names]
    parts = [
        b"\0" * (16 * SECTOR),
        _volume(1, label.encode("ascii"), b" ", b"", next_sector, tables=(19, 20), root=23),
        _volume(2, label.encode("utf-16-be"), b"\0 ", b"%/E", next_sector, tables=(21, 22), root=24),
        _padded(b"\xffCD001\x01"),
        _padded(_path_table("<", 23)),
        _padded(_path_table(">", 23)),
        _padded(_path_table("<", 24)),
        _padded(_path_table(">", 24)),
        _directory(23, plain),
        _directory(24, joliet),
        *(_padded(files[name] or b"\0") for name in names),
    ]
    return b"".join(parts)


def _sectors(size: int) -> int:
    return -(-size // SECTOR)


def _padded(data: bytes) -> bytes:
    return data + b"\0" * (-len(data) % SECTOR)


def _both(number: int, form: str) -> bytes:
    """A number in both orders of bytes."""
    return struct.pack("<" + form, number) + struct.pack(">" + form, number)


def _record(name: bytes, sector: int, size: int, *, folder: bool = False) -> bytes:
    body = (
        b"\0"
        + _both(sector, "I")
        + _both(size, "I")
        + bytes([100, 1, 1, 0, 0, 0, 0])
        + bytes([2 if folder else 0, 0, 0])
        + _both(1, "H")
        + bytes([len(name)])
        + name
    )
    body += b"\0" * ((len(body) + 1) % 2)
    return bytes([len(body) + 1]) + body


def _directory(sector: int, entries: list[tuple[bytes, int, int]]) -> bytes:
    records = [_record(b"\0", sector, SECTOR, folder=True), _record(b"\1", sector, SECTOR, folder=True)]
    records += [_record(name, start, size) for name, start, size in entries]
    data = b"".join(records)
    if len(data) > SECTOR:
        raise ValueError("too many files for one directory sector")
    return _padded(data)


def _path_table(order: str, root: int) -> bytes:
    return struct.pack(order + "BBIH", 1, 0, root, 1) + b"\0\0"


def _volume(
    kind: int, label: bytes, filler: bytes, escapes: bytes, sectors: int, *, tables: tuple[int, int], root: int
) -> bytes:
    def text(data: bytes, size: int) -> bytes:
        return (data + filler * size)[:size]

    data = bytes([kind]) + b"CD001\x01\0" + text(b"", 32) + text(label, 32) + b"\0" * 8 + _both(sectors, "I")
    data += escapes.ljust(32, b"\0") + _both(1, "H") + _both(1, "H") + _both(SECTOR, "H") + _both(10, "I")
    data += struct.pack("<II", tables[0], 0) + struct.pack(">II", tables[1], 0)
    data += _record(b"\0", root, SECTOR, folder=True)
    data += text(b"", 128) + text(b"", 128) + text(b"", 128) + text(b"", 128) + text(b"", 37) * 3
    data += (b"0" * 16 + b"\0") * 4 + b"\x01\0"
    return _padded(data)
