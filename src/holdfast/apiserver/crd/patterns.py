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
    """Compile a pattern; raises `PatternError` if it is not valid."""
    try:
        return re2.compile(pattern, _OPTIONS)
    except re2.error as error:
        raise PatternError(_text(error)) from error


def search(pattern: str) -> Search:
    """The `patterns` argument of `holdfast.meta.schemas.walk.compile`."""
    found: Search = compiled(pattern).search
    return found


def _text(error: Exception) -> str:
    """The message of the engine, which is in bytes."""
    said = error.args[0] if error.args else ""
    return said.decode(errors="replace") if isinstance(said, bytes) else str(said)
