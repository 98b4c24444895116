"""Suggestions for misspelled words: which of the known ones was meant."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any


def nearest(word: str, choices: Iterable[str]) -> str | None:
    """The choice that `word` probably means: one in another style (``max_surge``) first, then a misspelled one."""
    import difflib  # only needed to report an error

    known = list(choices)
    styles = {_styleless(choice): choice for choice in reversed(known)}
    if _styleless(word) in styles:
        return styles[_styleless(word)]
    close = difflib.get_close_matches(word, known, n=1, cutoff=0.7)
    return close[0] if close else None


def distinct(choices: Iterable[Any]) -> list[str]:
    """The choices, without those that only write an earlier one in another style."""
    kept: dict[str, str] = {}
    for choice in choices:
        kept.setdefault(_styleless(str(choice)), str(choice))
    return list(kept.values())


def _styleless(word: str) -> str:
    return word.replace("_", "").replace("-", "").lower()
