"""Numbers of bytes: their units, and how messages and pages write them."""

from __future__ import annotations

from typing import Final

MIB: Final = 1 << 20
GIB: Final = 1 << 30

_UNITS: Final = ("B", "KiB", "MiB", "GiB", "TiB")


def readable(number: int) -> str:
    """A number of bytes in its largest unit: ``1.5 GiB``."""
    amount, unit = float(number), 0
    while amount >= 1024 and unit + 1 < len(_UNITS):
        amount, unit = amount / 1024, unit + 1
    return f"{amount:,.0f} {_UNITS[unit]}" if unit == 0 or amount >= 100 else f"{amount:,.1f} {_UNITS[unit]}"


def whole_gib(number: int) -> int:
    """A number of bytes in GiB, rounded up."""
    return -(-number // GIB)
