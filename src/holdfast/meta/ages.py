"""Ages: how long ago a time was, as kubectl prints it in a column."""

from __future__ import annotations

from typing import Final

from holdfast.meta import times

UNKNOWN: Final = "<unknown>"


def human_duration(seconds: float) -> str:
    """A span in two or three figures, as kubectl prints it: ``5m``, ``2m30s``, ``3d2h``, ``2y11d``."""
    whole = int(seconds)
    if whole < -1:
        return "<invalid>"
    if whole < 120:
        return f"{max(whole, 0)}s"
    minutes, hours, days = whole // 60, whole // 3600, whole // 86400
    if minutes < 10:
        return _two(minutes, "m", whole % 60, "s")
    if minutes < 180:
        return f"{minutes}m"
    if hours < 8:
        return _two(hours, "h", minutes % 60, "m")
    if hours < 48:
        return f"{hours}h"
    if days < 8:
        return _two(days, "d", hours % 24, "h")
    if days < 2 * 365:
        return f"{days}d"
    return _two(days // 365, "y", days % 365, "d") if days < 8 * 365 else f"{days // 365}y"


def _two(large: int, unit: str, small: int, smaller_unit: str) -> str:
    return f"{large}{unit}{small}{smaller_unit}" if small else f"{large}{unit}"


def age(instant: str | None, now: float) -> str:
    """How long ago a time was; ``<unknown>`` if there is none."""
    if not instant:
        return UNKNOWN
    try:
        return human_duration(now - times.parse_micro(instant).timestamp())
    except times.TimeError:
        return "<invalid>"
