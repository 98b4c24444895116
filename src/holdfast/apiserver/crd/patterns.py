"""Regular expressions of schemas and rules: the syntax of RE2, in time linear in the text.

Patterns come from clients; one of them could stall a backtracking engine.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import re2

from holdfast.meta.schemas.constraints import PatternError, Search

_OPTIONS = re2.Options()
_OPTIONS.log_errors = False


@lru_cache(maxsize=4096)
def compiled(pattern: str) -> Any:
    """A pattern of RE2; raises `PatternError` where it is not one."""
    try:
        return re2.compile(pattern, _OPTIONS)
    except re2.error as error:
        raise PatternError(_text(error)) from error


def search(pattern: str) -> Search:
    """What `holdfast.meta.schemas.walk.compile` takes as `patterns`."""
    found: Search = compiled(pattern).search
    return found


def _text(error: Exception) -> str:
    """What the engine says, which it says in bytes."""
    said = error.args[0] if error.args else ""
    return said.decode(errors="replace") if isinstance(said, bytes) else str(said)
