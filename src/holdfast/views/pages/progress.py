"""The progress that the status of an object reports, in the forms that statuses have."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from holdfast.meta.sizes import readable
from holdfast.views.pages.sections import Section, Wire


class Bar(Section, frozen=True, kw_only=True):
    """How far something is, in per cent; None: it runs, and that is not known."""

    label: str
    percent: float | None = None
    words: str = ""


def bars(wire: Wire) -> Iterator[Bar]:
    """The progress that a status reports: in per cent, or as so many of a total."""
    status = wire.get("status") or {}
    for name, found in status.items():
        if not isinstance(found, Mapping) or not (name.lower().endswith("progress") or name == "operation"):
            continue
        percent = next((found[each] for each in _PERCENT if isinstance(found.get(each), int | float)), None)
        done, total = found.get("done"), found.get("total")
        if percent is None and isinstance(done, int) and isinstance(total, int) and total:
            percent = 100 * done / total
        if percent is not None:
            yield Bar(label=_label(name, found), percent=float(percent), words=_progress_words(found))


_PERCENT: Final = ("percentage", "overallPercentage", "progressPercentage")


def _label(name: str, found: Wire) -> str:
    phase = found.get("currentPhase") or found.get("type") or ""
    return str(phase) or {"progress": "Progress"}.get(name, name.removesuffix("Progress").capitalize())


def _progress_words(found: Wire) -> str:
    known = []
    done, total = found.get("done"), found.get("total")
    if isinstance(done, int) and isinstance(total, int):
        known.append(f"{done:,} of {total:,}")
    moved = next(
        (found[each] for each in ("transferredBytes", "completedBytes") if isinstance(found.get(each), int)), None
    )
    whole = found.get("totalBytes")
    if isinstance(moved, int):
        known.append(f"{readable(moved)} of {readable(whole)}" if isinstance(whole, int) else readable(moved))
    if isinstance(found.get("transferRate"), int):
        known.append(f"{readable(found['transferRate'])}/s")
    if found.get("eta"):
        known.append(f"{found['eta']} left")
    return ", ".join(known)
