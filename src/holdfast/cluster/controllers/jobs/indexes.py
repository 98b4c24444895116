"""Sets of completion indexes, as a job's status writes them: ``0,2-4,7``."""

from __future__ import annotations

from collections.abc import Iterable


def parse(text: str, completions: int) -> frozenset[int]:
    """Read indexes below `completions`; a part that is no index or range is left out."""
    found: set[int] = set()
    for part in text.split(","):
        first, _, last = part.partition("-")
        if first.isdecimal() and (not last or last.isdecimal()):
            found.update(range(int(first), min(int(last or first), completions - 1) + 1))
    return frozenset(found)


def write(indexes: Iterable[int]) -> str:
    """Three or more in a row become a range."""
    parts: list[str] = []
    run: list[int] = []
    for index in [*sorted(indexes), None]:
        if run and (index is None or index != run[-1] + 1):
            parts.append(f"{run[0]}-{run[-1]}" if len(run) > 2 else ",".join(map(str, run)))
            run = []
        if index is not None:
            run.append(index)
    return ",".join(parts)
