"""Compiled schemas: those of equal content are compiled once, whatever uses them.

A large schema takes a tenth of a second and some megabytes.  Pruning and validation share one, and so do the versions
of a definition with equal schemas, a definition that is applied again, and the servers of one process.
"""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import blake2b
from typing import Any, Final

from holdfast.apiserver.crd import patterns
from holdfast.meta.exchange import encode
from holdfast.meta.schemas import walk

_KEPT: Final = 128
"""The most schemas that are kept; the oldest ones go first."""

_compiled: Final[dict[bytes, walk.Schema]] = {}


def compiled(schema: Mapping[str, Any]) -> walk.Schema:
    """The schema, compiled for an API server; nothing changes it."""
    key = blake2b(encode(schema), digest_size=16).digest()
    found = _compiled.get(key)
    if found is None:
        while len(_compiled) >= _KEPT:
            _compiled.pop(next(iter(_compiled)), None)
        found = _compiled[key] = walk.compile(schema, patterns=patterns.search)
    return found
