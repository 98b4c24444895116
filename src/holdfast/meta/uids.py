"""Unique identifiers: the random UUIDs by which Kubernetes tells objects apart that have the same name."""

from __future__ import annotations

from typing import Final

_KEPT: Final = ~(0xF << 76 | 0x3 << 62)
_VERSION_4: Final = 0x4 << 76 | 0x2 << 62


def from_bits(bits: int) -> str:
    """The UUID of version 4 that is made of 128 random bits."""
    digits = f"{bits & _KEPT | _VERSION_4:032x}"
    return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"
